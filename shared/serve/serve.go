// Package serve is the outside of a function's process: its port for
// CloudEvents on Knative's own middleware, the listener for probes and
// metrics, and the log format.
package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	function "knative.dev/func-go/cloudevents"

	"github.com/slipway-dev/slipway/shared/caller"
	"github.com/slipway-dev/slipway/shared/cluster"
)

// maxBody bounds the body of an event, in bytes: an object of the API server
// has at most 1.5 MiB, and twice that as JSON.
const maxBody = 4 << 20

// Main serves a function until it is told to stop, and exits the process.
func Main(instance any) {
	MainWith(instance, func(events http.Handler) http.Handler { return events })
}

// MainWith is Main with more to serve on the same port: around is given the handler of
// events.
func MainWith(instance any, around func(events http.Handler) http.Handler) {
	// The middleware logs every step at debug level; the function logs itself.
	zerolog.SetGlobalLevel(zerolog.WarnLevel)
	service := function.New(instance)
	gate, err := caller.FromEnvironment(os.Getenv, review)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	service.Handler = around(gate.Guard(Middleware(service.Handler)))
	if err := service.Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// review asks the management cluster whose a token is.
func review() (caller.Review, error) {
	config, err := cluster.Config()
	if err != nil {
		return nil, err
	}
	client, err := cluster.New(cluster.Management, "slipway/caller", config)
	if err != nil {
		return nil, err
	}
	return caller.ByTokenReview(client.Dynamic), nil
}

// Middleware adds to Knative's what it lacks: a request that is no CloudEvent
// is answered 400 (it says 415, which a broker does not know), and the trace
// context of the request reaches the handler.
func Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !isCloudEvent(r) {
			http.Error(w, "the request is no CloudEvent: neither the header Ce-Specversion nor a content type of application/cloudevents", http.StatusBadRequest)
			return
		}
		if err := checkStructured(w, r); err != nil {
			http.Error(w, "the request is no CloudEvent: "+err.Error(), http.StatusBadRequest)
			return
		}
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func isCloudEvent(r *http.Request) bool {
	return r.Header.Get("Ce-Specversion") != "" || isStructured(r)
}

func isStructured(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && strings.HasPrefix(mediaType, "application/cloudevents")
}

// checkStructured bounds the body of every event, and decodes that of one in
// structured mode: the SDK answers 500 for one that it cannot decode, which a
// broker would send again.
func checkStructured(w http.ResponseWriter, r *http.Request) error {
	if r.Body == nil {
		return nil
	}
	if r.ContentLength > maxBody {
		return fmt.Errorf("its body of %d bytes is longer than %d", r.ContentLength, maxBody)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if !isStructured(r) {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("cannot read the body: %w", err)
	}
	var event cloudevents.Event
	if err := json.Unmarshal(body, &event); err != nil {
		return fmt.Errorf("cannot decode the body: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// TraceParent gives a context the trace of an event: that of the HTTP request
// if there was one, else the event's own extension.
func TraceParent(ctx context.Context, ce cloudevents.Event) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	for _, name := range []string{"traceparent", "tracestate"} {
		if value, ok := ce.Extensions()[name].(string); ok {
			carrier[name] = value
		}
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}
