package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
)

func TestHealthAddresses(t *testing.T) {
	cases := map[string]struct {
		reason string
		env    map[string]string
		want   []string
	}{
		"Default":    {"one listener beside the function's port", nil, []string{":8081"}},
		"Chosen":     {"two functions on one machine need two ports", map[string]string{"HEALTH_LISTEN_ADDRESS": "127.0.0.1:9"}, []string{"127.0.0.1:9"}},
		"OtherPorts": {"the settings of the operator that is replaced keep their meaning", map[string]string{"HEALTH_PROBE_BIND_ADDRESS": ":8082", "METRICS_BIND_ADDRESS": ":8083"}, []string{":8081", ":8082", ":8083"}},
		"SamePort":   {"one port is served once", map[string]string{"HEALTH_PROBE_BIND_ADDRESS": "0.0.0.0:8081", "METRICS_BIND_ADDRESS": ":8081"}, []string{":8081"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"HEALTH_LISTEN_ADDRESS", "HEALTH_PROBE_BIND_ADDRESS", "METRICS_BIND_ADDRESS"} {
				t.Setenv(key, tc.env[key])
			}
			if diff := cmp.Diff(tc.want, healthAddresses()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProbesAndMetricsAreServed(t *testing.T) {
	t.Setenv("HEALTH_LISTEN_ADDRESS", "127.0.0.1:0")
	ready := errors.New("not yet")
	h, err := StartHealth(func(context.Context) (bool, error) { return ready == nil, ready },
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Stop(context.WithoutCancel(t.Context())) }()
	get := func(path string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Addresses()[0]+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := get("/healthz"); got != http.StatusOK {
		t.Errorf("/healthz answers %d", got)
	}
	if got := get("/metrics"); got != http.StatusOK {
		t.Errorf("/metrics answers %d", got)
	}
	if got := get("/readyz"); got != http.StatusInternalServerError {
		t.Errorf("/readyz answers %d before the API server does", got)
	}
	ready = nil
	if got := get("/readyz"); got != http.StatusOK {
		t.Errorf("/readyz answers %d", got)
	}
}

func TestABusyHealthAddressIsNamedWithTheWayOut(t *testing.T) {
	t.Setenv("HEALTH_LISTEN_ADDRESS", "127.0.0.1:0")
	first, err := StartHealth(nil, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Stop(context.WithoutCancel(t.Context())) }()
	t.Setenv("HEALTH_LISTEN_ADDRESS", first.Addresses()[0])
	if _, err := StartHealth(nil, http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), first.Addresses()[0]) || !strings.Contains(err.Error(), "HEALTH_LISTEN_ADDRESS") {
		t.Errorf("want the address and the setting, got %v", err)
	}
}

func TestLogLinesHaveTheFieldsOfTheOperatorsTheyReplace(t *testing.T) {
	out := &bytes.Buffer{}
	log := Logger(out, "info")
	log.Debug("not shown")
	log.Info("hello", "machine", "web", "subresource", "")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if line["timestamp"] == nil {
		t.Error("no timestamp")
	}
	delete(line, "timestamp")
	if diff := cmp.Diff(map[string]any{"level": "info", "message": "hello", "machine": "web"}, line); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnEventKeepsItsOwnTraceWhenTheRequestHasNone(t *testing.T) {
	ce := cloudevents.NewEvent()
	ce.SetExtension("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	ctx := TraceParent(t.Context(), ce)
	if got := trace.SpanContextFromContext(ctx).TraceID().String(); got != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("the trace is %s", got)
	}
}
