package telemetry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Kind says what an instrument measures.
type Kind string

const (
	// Counter adds up.
	Counter Kind = "counter"
	// Histogram sorts values into buckets.
	Histogram Kind = "histogram"
	// Reconciles is a histogram of the seconds that each reconcile takes, which the
	// runtime fills; its one label is the reconciled kind.
	Reconciles Kind = "reconciles"
	// Gauge is what there is now, by the last count.
	Gauge Kind = "gauge"
	// Level is a gauge whose series are each set by what a reconcile observed.
	Level Kind = "level"
)

// Instrument declares a metric of a function's own. Its series have the declared
// labels and no others.
type Instrument struct {
	Name, Help string
	Kind       Kind
	Labels     []string
	// Buckets are the upper bounds of a histogram's.
	Buckets []float64
}

const (
	// maxSeries bounds the series of one instrument in one process. What people
	// can write must not fill a metrics store: further series count as other.
	maxSeries = 100
	// other is the value of each label of what is too much.
	other = "other"
	// gaugeLife is how long a count holds. Another copy of the function may have
	// counted since.
	gaugeLife = 11 * time.Minute
)

// declared are the instruments of a function's own.
type declared struct {
	mu         sync.Mutex
	controller string
	known      map[string]*series
}

// series are those of one instrument.
type series struct {
	Instrument
	add    metric.Float64Counter
	record metric.Float64Histogram
	// seen are the label values in use.
	seen map[string]bool
	// counts and at are a gauge's last count.
	counts map[string]float64
	at     time.Time
	// levels are a level's last values.
	levels map[string]level
}

type level struct {
	value float64
	at    time.Time
}

// separator stands between label values in a key: no label value of Kubernetes
// holds it.
const separator = "\x00"

// Declare makes the instruments of a function's own; controller is the kind that it
// reconciles.
func (m *Metrics) Declare(controller string, instruments ...Instrument) error {
	m.declared.mu.Lock()
	defer m.declared.mu.Unlock()
	m.declared.controller = controller
	if m.declared.known == nil {
		m.declared.known = map[string]*series{}
	}
	meter := m.meters.Meter("github.com/slipway-dev/slipway/functions")
	for _, instrument := range instruments {
		s := &series{Instrument: instrument, seen: map[string]bool{}}
		var err error
		switch instrument.Kind {
		case Counter:
			s.add, err = meter.Float64Counter(instrument.Name, metric.WithDescription(instrument.Help))
		case Histogram, Reconciles:
			s.record, err = meter.Float64Histogram(instrument.Name, metric.WithDescription(instrument.Help), metric.WithExplicitBucketBoundaries(instrument.Buckets...))
		case Gauge:
			_, err = meter.Float64ObservableGauge(instrument.Name, metric.WithDescription(instrument.Help), metric.WithFloat64Callback(m.report(s)))
		case Level:
			s.levels = map[string]level{}
			_, err = meter.Float64ObservableGauge(instrument.Name, metric.WithDescription(instrument.Help), metric.WithFloat64Callback(m.reportLevels(s)))
		default:
			err = fmt.Errorf("the kind %q is unknown", instrument.Kind)
		}
		if err != nil {
			return fmt.Errorf("cannot make metric %q: %w", instrument.Name, err)
		}
		m.declared.known[instrument.Name] = s
	}
	return nil
}

// Observe adds a value to a counter, puts it into a histogram, or sets a level. An
// instrument that was not declared, and a number of labels that is not the declared one, are
// mistakes of a function's: nothing is measured then, and false returned.
func (m *Metrics) Observe(ctx context.Context, name string, value float64, labels ...string) bool {
	m.declared.mu.Lock()
	defer m.declared.mu.Unlock()
	s := m.declared.known[name]
	if s == nil || len(labels) != len(s.Labels) {
		return false
	}
	if s.levels != nil {
		s.levels[strings.Join(s.bounded(labels), separator)] = level{value: value, at: time.Now()}
		return true
	}
	at := metric.WithAttributes(s.attributes(s.bounded(labels))...)
	switch {
	case s.add != nil && value >= 0:
		s.add.Add(ctx, value, at)
	case s.record != nil:
		s.record.Record(ctx, value, at)
	default:
		return false
	}
	return true
}

// Drop ends a series of a level: what it was about is no more.
func (m *Metrics) Drop(name string, labels ...string) {
	m.declared.mu.Lock()
	defer m.declared.mu.Unlock()
	if s := m.declared.known[name]; s != nil && s.levels != nil {
		key := strings.Join(labels, separator)
		delete(s.levels, key)
		delete(s.seen, key)
	}
}

// reportLevels shows a level's last values to whoever exports.
func (m *Metrics) reportLevels(s *series) metric.Float64Callback {
	return func(_ context.Context, o metric.Float64Observer) error {
		m.declared.mu.Lock()
		defer m.declared.mu.Unlock()
		for key, l := range s.levels {
			if time.Since(l.at) <= gaugeLife {
				o.Observe(l.value, metric.WithAttributes(s.attributes(strings.Split(key, separator))...))
			}
		}
		return nil
	}
}

// reconcile puts the time of one reconcile into the instruments for it.
func (m *Metrics) reconcile(ctx context.Context, d time.Duration) {
	m.declared.mu.Lock()
	defer m.declared.mu.Unlock()
	for _, s := range m.declared.known {
		if s.Kind == Reconciles {
			s.record.Record(ctx, d.Seconds(), metric.WithAttributes(s.attributes([]string{m.declared.controller})...))
		}
	}
}

// Count is a gauge's next value: how many there are of each list of label values.
// Series that it does not name are gone.
type Count struct {
	counts map[string]float64
}

// Add counts one.
func (c *Count) Add(labels ...string) {
	if c.counts == nil {
		c.counts = map[string]float64{}
	}
	c.counts[strings.Join(labels, separator)]++
}

// Set gives a gauge its next value.
func (m *Metrics) Set(name string, c Count, now time.Time) bool {
	m.declared.mu.Lock()
	defer m.declared.mu.Unlock()
	s := m.declared.known[name]
	if s == nil || s.Kind != Gauge {
		return false
	}
	clear(s.seen)
	s.counts, s.at = map[string]float64{}, now
	for _, key := range sortedKeys(c.counts) {
		labels := strings.Split(key, separator)
		if len(labels) == len(s.Labels) {
			s.counts[strings.Join(s.bounded(labels), separator)] += c.counts[key]
		}
	}
	return true
}

func sortedKeys(counts map[string]float64) []string {
	keys := make([]string, 0, len(counts))
	for key := range counts {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// report shows a gauge's last count to whoever exports.
func (m *Metrics) report(s *series) metric.Float64Callback {
	return func(_ context.Context, o metric.Float64Observer) error {
		m.declared.mu.Lock()
		defer m.declared.mu.Unlock()
		if time.Since(s.at) > gaugeLife {
			return nil
		}
		for key, n := range s.counts {
			o.Observe(n, metric.WithAttributes(s.attributes(strings.Split(key, separator))...))
		}
		return nil
	}
}

// bounded are the label values, or others once there are too many of them.
func (s *series) bounded(labels []string) []string {
	key := strings.Join(labels, separator)
	if s.seen[key] || len(s.seen) < maxSeries {
		s.seen[key] = true
		return labels
	}
	return slices.Repeat([]string{other}, len(labels))
}

func (s *series) attributes(labels []string) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, len(labels))
	for i, value := range labels {
		attrs = append(attrs, attribute.String(s.Labels[i], strings.ToValidUTF8(value, "?")))
	}
	return attrs
}
