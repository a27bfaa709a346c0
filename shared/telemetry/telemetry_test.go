package telemetry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// collector plays an OTLP endpoint and keeps the bodies by path.
type collector struct {
	mu     sync.Mutex
	bodies map[string]string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies[r.URL.Path] += string(body)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func TestWhatIsLeftIsPushedAtTheStop(t *testing.T) {
	c := &collector{bodies: map[string]string{}}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	m, err := New(t.Context(), "machine-vm")
	if err != nil {
		t.Fatal(err)
	}
	_, span := m.Span(t.Context(), "reconcile machine-vm", "team-a/web")
	m.Reconciled(t.Context(), "done", "Running", 10*time.Millisecond, 9)
	m.Wrote("created", "virtualmachines.kubevirt.io")
	m.Received(t.Context(), "dev.knative.apiserver.ref.add", 204)
	span.End()
	if err := m.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{"slipway_reconcile_duration_seconds", "slipway_api_reads", "slipway_api_writes", "slipway_events", "machine-vm"} {
		if !strings.Contains(c.bodies["/v1/metrics"], name) {
			t.Errorf("metric %s was not pushed", name)
		}
	}
	if !strings.Contains(c.bodies["/v1/traces"], "reconcile machine-vm") {
		t.Error("the span was not pushed")
	}
}

func TestCountersArePushedAsDeltas(t *testing.T) {
	if got := deltas(metric.InstrumentKindCounter); got != metricdata.DeltaTemporality {
		t.Errorf("a process that starts anew with each event cannot push %v", got)
	}
}

func TestTheSameMetricsCanBeScraped(t *testing.T) {
	m, err := New(t.Context(), "machine-vm")
	if err != nil {
		t.Fatal(err)
	}
	m.Reconciled(t.Context(), "terminal", "TemplateNotFound", time.Millisecond, 3)
	page := httptest.NewRecorder()
	m.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	want := `slipway_reconcile_duration_seconds_count{class="terminal",function="machine-vm",reason="TemplateNotFound"} 1`
	if !strings.Contains(page.Body.String(), want) {
		t.Errorf("want the line %s, got\n%s", want, page.Body)
	}
	if err := m.Flush(t.Context()); err != nil {
		t.Errorf("without an endpoint nothing can fail: %v", err)
	}
}
