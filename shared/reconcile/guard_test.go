package reconcile

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/slipway-dev/slipway/shared/caller"
	"github.com/slipway-dev/slipway/shared/event"
)

func TestWhereSendersHaveToBeKnownOnlyTheGateLetsEventsIn(t *testing.T) {
	t.Setenv(caller.EnvAudience, "a")
	t.Setenv(caller.EnvSenders, "b")
	s := newStage(t)
	h := New(Function[struct{}]{Spec: Spec{Name: "widget", Reconciles: widgets}}, Options{Config: s.config, Log: slog.New(slog.DiscardHandler)})
	ce := event.Next(event.Resync{Function: "other"}, "1", time.Unix(0, 0))
	status := func(ctx context.Context) int {
		t.Helper()
		_, err := h.Handle(ctx, ce)
		var result *cehttp.Result
		if !errors.As(err, &result) {
			t.Fatalf("no HTTP result: %v", err)
		}
		return result.StatusCode
	}
	if got := status(t.Context()); got != http.StatusUnauthorized {
		t.Errorf("without the gate: %d", got)
	}
	gate := &caller.Gate{Audience: "a", Senders: []string{"b"}, Now: time.Now, Review: func(context.Context, string, string) (string, error) { return "b", nil }}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	req.Header.Set("Authorization", "Bearer e30.eyJhdWQiOiJhIn0.x")
	passed := false
	gate.Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		passed = true
		if got := status(r.Context()); got == http.StatusUnauthorized {
			t.Errorf("behind the gate: %d", got)
		}
	})).ServeHTTP(httptest.NewRecorder(), req)
	if !passed {
		t.Error("the gate does not open")
	}
}

func TestAPageForTheBrokerTellsWhoSendsIt(t *testing.T) {
	var seen string
	broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusAccepted)
	}))
	defer broker.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(caller.EnvTokenFile, file)
	s := newStage(t)
	h := New(Function[struct{}]{Spec: Spec{Name: "widget", Reconciles: widgets}}, Options{Config: s.config, Log: slog.New(slog.DiscardHandler), Broker: broker.URL})
	next := event.Next(event.Resync{Function: "widget"}, "1", time.Unix(0, 0))
	if _, err := h.send(t.Context(), next, chainLimit, h.log); (outcome{err: err}).status() >= http.StatusBadRequest || seen != "Bearer mine" {
		t.Errorf("the broker saw %q: %v", seen, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := h.send(t.Context(), next, chainLimit, h.log); (outcome{err: err}).status() != http.StatusServiceUnavailable {
		t.Errorf("without its token the page comes again: %v", err)
	}
}
