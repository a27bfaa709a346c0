package stack

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slipway-dev/slipway/deploy/local/eventing/function"
)

func TestTheHostOrElseThePathTellsWhoIsMeant(t *testing.T) {
	says := func(what string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, what, " ", r.URL.Path) //nolint:gosec // no browser reads this
		})
	}
	m := &mux{ingress: says("ingress"), filter: says("filter"), channel: says("channel"), functions: function.NewActivator(function.Options{})}
	cases := map[string]struct{ reason, host, path, want string }{
		"Ingress":  {"the ingress has a name", "broker-ingress.knative-eventing.svc.cluster.local", "/ns/default", "ingress /ns/default"},
		"Address":  {"at the bare address is the ingress", "127.0.0.1:1234", "/ns/default", "ingress /ns/default"},
		"Filter":   {"the filter has a name", "broker-filter.knative-eventing.svc", "/triggers/ns/t/uid", "filter /triggers/ns/t/uid"},
		"Channel":  {"a channel has a name", "c-kn-channel.ns.svc.cluster.local", "/", "channel /"},
		"Function": {"a function has a name", "fn.ns.svc.cluster.local", "/", "there is no function \"ns/fn\"\n"},
		"Path":     {"a function has a path too", "127.0.0.1:1234", "/functions/ns/fn/x/y", "there is no function \"ns/fn\"\n"},
		"Healthz":  {"health is empty and well", "127.0.0.1:1234", "/healthz", ""},
		"Elsewhere": {
			"a namespace called functions still has brokers", "127.0.0.1:1234", "/functions/default", "ingress /functions/default",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+tc.host+tc.path, nil)
			m.ServeHTTP(answer, request)
			if got := answer.Body.String(); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestOnlyLoopbackAddressesAreListenedOn(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0"} {
		if listener, err := listen(address); err == nil {
			_ = listener.Close()
			t.Errorf("listened on %q", address)
		}
	}
	listener, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if second, err := listen(listener.Addr().String()); err == nil {
		_ = second.Close()
		t.Error("a busy port was taken")
	}
	_ = listener.Close()
}
