package stack

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/deploy/local/eventing/function"
	"github.com/slipway-dev/slipway/deploy/local/eventing/names"
)

// mux finds out by the Host header who is meant.
type mux struct {
	ingress, filter, channel http.Handler
	functions                *function.Activator
}

// ServeHTTP implements http.Handler.
func (m *mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host := names.Parse(r.Host)
	switch host.Role {
	case names.Ingress:
		m.ingress.ServeHTTP(w, r)
	case names.Filter:
		m.filter.ServeHTTP(w, r)
	case names.Channel:
		m.channel.ServeHTTP(w, r)
	case names.Service:
		m.functions.Handler(types.NamespacedName{Namespace: host.Namespace, Name: host.Name}).ServeHTTP(w, r)
	case names.Foreign, names.APIServer:
		m.byPath(w, r)
	}
}

// byPath serves callers that know the address only.
func (m *mux) byPath(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		return
	}
	rest, isFunction := strings.CutPrefix(r.URL.Path, names.FunctionPath)
	namespace, rest, hasName := strings.Cut(rest, "/")
	if !isFunction || !hasName {
		m.ingress.ServeHTTP(w, r)
		return
	}
	name, rest, _ := strings.Cut(rest, "/")
	r.URL.Path = "/" + rest
	r.URL.RawPath = ""
	m.functions.Handler(types.NamespacedName{Namespace: namespace, Name: name}).ServeHTTP(w, r)
}
