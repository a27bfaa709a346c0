package channel

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/eventing/pkg/apis"
	"knative.dev/eventing/pkg/utils"

	"github.com/slipway-dev/slipway/deploy/local/eventing/names"
)

// headerRequest carries the number of a request to the ingress on to the
// channel. Knative's ingress passes on headers of this prefix.
const headerRequest = "Knative-Slipway-Request"

// Gate lets the source hear what the channel says.
//
// The ingress answers 500 to whatever goes wrong in the channel, and a source
// gives an event up that is answered 500. So the gate, which stands in front of
// the ingress and behind it, remembers which requests the channel refused and
// why, and answers those with 429 or 503, which a source tries again.
type Gate struct {
	table    *Table
	requests atomic.Uint64
	refused  sync.Map
}

// NewGate makes the gate of the table's channels.
func NewGate(table *Table) *Gate {
	return &Gate{table: table}
}

// Ingress is the broker's ingress, behind the gate.
func (g *Gate) Ingress(ingress http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := strconv.FormatUint(g.requests.Add(1), 10)
		r.Header.Set(headerRequest, number)
		defer g.refused.Delete(number)
		ingress.ServeHTTP(&translator{ResponseWriter: w, why: func() int {
			why, _ := g.refused.Load(number)
			status, _ := why.(int)
			return status
		}}, r)
	})
}

// translator turns 500 into what the channel said.
type translator struct {
	http.ResponseWriter
	why func() int
}

// WriteHeader implements http.ResponseWriter.
func (t *translator) WriteHeader(status int) {
	if why := t.why(); status == http.StatusInternalServerError && why != 0 {
		status = why
	}
	t.ResponseWriter.WriteHeader(status)
}

// Channel takes the events that the ingress sends to a channel's address.
func (g *Gate) Channel() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := names.Parse(r.Host)
		event, err := cehttp.NewEventFromHTTPRequest(r)
		if err != nil {
			http.Error(w, "cannot read the event: "+err.Error(), http.StatusBadRequest)
			return
		}
		if err := event.Validate(); err != nil {
			http.Error(w, "the event is not valid: "+err.Error(), http.StatusBadRequest)
			return
		}
		headers := utils.PassThroughHeaders(r.Header)
		headers.Del(headerRequest)
		headers.Set(apis.KnNamespaceHeader, host.Namespace)
		err = g.table.Receive(r.Context(), types.NamespacedName{Namespace: host.Namespace, Name: host.Name}, *event, headers)
		if err == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		status := http.StatusServiceUnavailable
		if errors.Is(err, ErrFull) {
			status = http.StatusTooManyRequests
		}
		g.refused.Store(r.Header.Get(headerRequest), status)
		http.Error(w, err.Error(), status)
	})
}
