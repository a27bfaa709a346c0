// Package telemetry carries a function's metrics and traces out of a process
// that may be gone a moment later.
//
// Metrics are pushed by OTLP every ten seconds and once more at the stop, as
// deltas: a process at zero cannot be scraped, and counters that start anew
// with each process must add up. While it lives, the same metrics are served
// at /metrics. Nothing here is in the path of an answer.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// exportInterval is how often metrics are pushed.
const exportInterval = 10 * time.Second

// Metrics are the instruments of one function.
type Metrics struct {
	meters   *sdkmetric.MeterProvider
	traces   *sdktrace.TracerProvider
	registry *prometheus.Registry

	tracer     trace.Tracer
	duration   metric.Float64Histogram
	reads      metric.Int64Counter
	writes     metric.Int64Counter
	events     metric.Int64Counter
	recordings metric.Int64Counter
	attributes attribute.Set
	declared   declared
}

// New makes the instruments of a function. With OTEL_EXPORTER_OTLP_ENDPOINT
// (or its variants for traces and metrics) set, they are pushed there.
func New(ctx context.Context, function string) (*Metrics, error) {
	m := &Metrics{registry: prometheus.NewRegistry(), attributes: attribute.NewSet(attribute.String("function", function))}
	about := resource.NewSchemaless(attribute.String("service.name", function), attribute.String("service.namespace", "slipway"))

	scrape, err := promexporter.New(promexporter.WithRegisterer(m.registry), promexporter.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics: %w", err)
	}
	meterOptions := []sdkmetric.Option{sdkmetric.WithResource(about), sdkmetric.WithReader(scrape)}
	if endpoint("METRICS") {
		push, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithTemporalitySelector(deltas))
		if err != nil {
			return nil, fmt.Errorf("cannot push metrics: %w", err)
		}
		meterOptions = append(meterOptions, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(push, sdkmetric.WithInterval(exportInterval))))
	}
	m.meters = sdkmetric.NewMeterProvider(meterOptions...)

	traceOptions := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	if endpoint("TRACES") {
		push, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot push traces: %w", err)
		}
		traceOptions = append(traceOptions, sdktrace.WithBatcher(push))
	} else {
		traceOptions = append(traceOptions, sdktrace.WithSampler(sdktrace.NeverSample()))
	}
	m.traces = sdktrace.NewTracerProvider(traceOptions...)
	return m, m.instruments()
}

func endpoint(signal string) bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

func deltas(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DeltaTemporalitySelector(kind)
}

func (m *Metrics) instruments() error {
	const scope = "github.com/slipway-dev/slipway/shared/reconcile"
	m.tracer = m.traces.Tracer(scope)
	meter := m.meters.Meter(scope)
	var errs [5]error
	m.duration, errs[0] = meter.Float64Histogram("slipway_reconcile_duration_seconds",
		metric.WithDescription("Time of one reconcile, by class and reason of its outcome."),
		metric.WithExplicitBucketBoundaries(.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 25))
	m.reads, errs[1] = meter.Int64Counter("slipway_api_reads", metric.WithDescription("Reads that decisions were made on."))
	m.writes, errs[2] = meter.Int64Counter("slipway_api_writes", metric.WithDescription("Requests that changed an object, and dry-runs, by result and resource."))
	m.events, errs[3] = meter.Int64Counter("slipway_events", metric.WithDescription("CloudEvents received, by type and answer."))
	m.recordings, errs[4] = meter.Int64Counter("slipway_recordings", metric.WithDescription("Recordings of reconciles, by what became of them: kept, cut, dropped."))
	return errors.Join(errs[:]...)
}

// Reconciled counts one reconcile.
func (m *Metrics) Reconciled(ctx context.Context, class, reason string, d time.Duration, reads int) {
	m.duration.Record(ctx, d.Seconds(), m.with(attribute.String("class", class), attribute.String("reason", reason)))
	m.reads.Add(ctx, int64(reads), m.with())
	m.reconcile(ctx, d)
}

// Wrote counts one write.
func (m *Metrics) Wrote(result, resource string) {
	m.writes.Add(context.Background(), 1, m.with(attribute.String("result", result), attribute.String("resource", resource)))
}

// Recorded counts one recording.
func (m *Metrics) Recorded(result string) {
	m.recordings.Add(context.Background(), 1, m.with(attribute.String("result", result)))
}

// Received counts one event.
func (m *Metrics) Received(ctx context.Context, eventType string, status int) {
	m.events.Add(ctx, 1, m.with(attribute.String("type", eventType), attribute.Int("status", status)))
}

func (m *Metrics) with(attrs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(attrs, m.attributes.ToSlice()...)...)
}

// Span starts a span about an object.
func (m *Metrics) Span(ctx context.Context, name, object string) (context.Context, trace.Span) {
	return m.tracer.Start(ctx, name, trace.WithAttributes(attribute.String("object", object)))
}

// Handler serves the metrics in the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// flushTimeout bounds the last push: a dead collector must not hold the stop.
const flushTimeout = 5 * time.Second

// Flush sends what has not been sent, metrics and traces side by side. It is
// called once, at the stop.
func (m *Metrics) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	traces := make(chan error, 1)
	go func() { traces <- m.traces.Shutdown(ctx) }()
	return errors.Join(m.meters.Shutdown(ctx), <-traces)
}
