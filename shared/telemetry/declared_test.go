package telemetry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func page(m *Metrics) string {
	page := httptest.NewRecorder()
	m.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return page.Body.String()
}

func metricsWith(t *testing.T, instruments ...Instrument) *Metrics {
	t.Helper()
	m, err := New(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Declare("Machine", instruments...); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDeclaredMetricsHaveTheirNamesAndLabelsAndNoOthers(t *testing.T) {
	m := metricsWith(
		t,
		Instrument{Name: "old_machines_total", Kind: Gauge, Labels: []string{"phase", "template"}},
		Instrument{Name: "old_duration_seconds", Kind: Reconciles, Labels: []string{"controller"}, Buckets: []float64{1}},
		Instrument{Name: "old_errors_total", Kind: Counter, Labels: []string{"controller", "error_type"}},
		Instrument{Name: "old_provisioning_seconds", Kind: Histogram, Labels: []string{"storage_class"}, Buckets: []float64{10}},
	)
	m.Reconciled(t.Context(), "done", "Running", 2*time.Second, 1)
	m.Observe(t.Context(), "old_errors_total", 1, "Machine", "InvalidSpec")
	m.Observe(t.Context(), "old_errors_total", 1, "Machine", "InvalidSpec")
	m.Observe(t.Context(), "old_provisioning_seconds", 3, "fast")
	var count Count
	count.Add("Running", "small")
	count.Add("Running", "small")
	count.Add("Failed", "none")
	m.Set("old_machines_total", count, time.Now())
	text := page(m)
	for _, want := range []string{
		`old_machines_total{phase="Running",template="small"} 2`,
		`old_machines_total{phase="Failed",template="none"} 1`,
		`old_duration_seconds_count{controller="Machine"} 1`,
		`old_duration_seconds_bucket{controller="Machine",le="1"} 0`,
		`old_errors_total{controller="Machine",error_type="InvalidSpec"} 2`,
		`old_provisioning_seconds_sum{storage_class="fast"} 3`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no line %s in\n%s", want, text)
		}
	}
}

func TestAGaugeShowsTheLastCountAlone(t *testing.T) {
	m := metricsWith(t, Instrument{Name: "things", Kind: Gauge, Labels: []string{"phase"}})
	var first, second Count
	first.Add("Pending")
	second.Add("Running")
	m.Set("things", first, time.Now())
	m.Set("things", second, time.Now())
	if text := page(m); strings.Contains(text, "Pending") || !strings.Contains(text, `things{phase="Running"} 1`) {
		t.Errorf("the phase that nothing is in any more must be gone:\n%s", text)
	}
	m.Set("things", second, time.Now().Add(-gaugeLife))
	if text := page(m); strings.Contains(text, "things{") {
		t.Errorf("another copy may have counted since:\n%s", text)
	}
}

func TestWhatPeopleCanWriteDoesNotFillTheStore(t *testing.T) {
	m := metricsWith(
		t,
		Instrument{Name: "errors_total", Kind: Counter, Labels: []string{"network_name"}},
		Instrument{Name: "things", Kind: Gauge, Labels: []string{"name"}},
	)
	var count Count
	for i := range 3 * maxSeries {
		m.Observe(t.Context(), "errors_total", 1, fmt.Sprintf("net-%d", i))
		count.Add(fmt.Sprintf("name-%d", i))
	}
	m.Set("things", count, time.Now())
	text := page(m)
	for _, name := range []string{"errors_total", "things"} {
		if n := strings.Count(text, "\n"+name+"{"); n != maxSeries+1 {
			t.Errorf("%s has %d series, want %d and one for the rest", name, n, maxSeries)
		}
	}
	if want := fmt.Sprintf(`errors_total{network_name="other"} %d`, 2*maxSeries); !strings.Contains(text, want) {
		t.Errorf("there is no line %s", want)
	}
}

func TestAMistakeOfAFunctionMeasuresNothing(t *testing.T) {
	m := metricsWith(t, Instrument{Name: "errors_total", Kind: Counter, Labels: []string{"a"}}, Instrument{Name: "things", Kind: Gauge})
	for name, ok := range map[string]bool{
		"unknown":        m.Observe(t.Context(), "unknown", 1),
		"wrong labels":   m.Observe(t.Context(), "errors_total", 1, "x", "y"),
		"negative":       m.Observe(t.Context(), "errors_total", -1, "x"),
		"a gauge":        m.Observe(t.Context(), "things", 1),
		"no gauge":       m.Set("errors_total", Count{}, time.Now()),
		"unknown gauge":  m.Set("unknown", Count{}, time.Now()),
		"unknown values": m.Declare("Machine", Instrument{Name: "x", Kind: "nonsense"}) == nil,
	} {
		if ok {
			t.Errorf("%s was taken", name)
		}
	}
	if text := page(m); strings.Contains(text, "errors_total{") {
		t.Errorf("something was measured:\n%s", text)
	}
}
