package reconcile

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/telemetry"
	"github.com/slipway-dev/slipway/shared/vault"
)

// observe hands a conclusion's values to the function's metrics.
func (r *run[In]) observe(ctx context.Context, observations []plan.Observation, elapsed time.Duration) {
	for _, o := range observations {
		if o.Elapsed {
			o.Value = elapsed.Seconds()
		}
		if o.Gone {
			r.metrics.Drop(o.Metric, o.Labels...)
			continue
		}
		if !r.metrics.Observe(ctx, o.Metric, o.Value, o.Labels...) {
			r.log.Error("observation lost", "metric", o.Metric, "error", "the function's Spec does not declare the metric like this")
		}
	}
}

// count gives the function's gauges their values, from everything there is. What
// cannot be counted now is by the next resync.
func (h *Host) count(ctx context.Context, log *slog.Logger) {
	if len(h.spec.Gauges) == 0 || h.mode == ModeUnmanaged {
		return
	}
	c := census{
		host: h, reader: read.New(h.clusters.View(), vault.New()),
		owners: map[Key]string{}, counts: make([]telemetry.Count, len(h.spec.Gauges)), seen: map[string]bool{},
	}
	if err := c.take(ctx, log); err != nil {
		log.Debug("nothing is counted", "error", err.Error())
		return
	}
	for i, gauge := range h.spec.Gauges {
		if !h.metrics.Set(gauge.Metric, c.counts[i], h.now()) {
			log.Error("count lost", "metric", gauge.Metric, "error", "the function's Spec does not declare the gauge")
		}
	}
}

// census is one count.
type census struct {
	host   *Host
	reader *read.Reader
	owners map[Key]string
	counts []telemetry.Count
	// seen are the UIDs that were counted: two names may stand for one cluster, and
	// a list that begins anew shows objects twice.
	seen map[string]bool
}

// take goes through the reconciled objects first, then through the others, cluster
// by cluster.
func (c *census) take(ctx context.Context, log *slog.Logger) error {
	reconciled := c.host.spec.Reconciles.String()
	of := func(own bool) []int {
		var list []int
		for i, gauge := range c.host.spec.Gauges {
			if own == (gauge.Resource.String() == reconciled && gauge.Selector == "") {
				list = append(list, i)
			}
		}
		return list
	}
	_, err := c.reader.Each(ctx, cluster.Management, c.host.spec.Reconciles, "", func(obj *unstructured.Unstructured) {
		c.owners[Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}] = string(obj.GetUID())
		for _, i := range of(true) {
			c.add(i, obj)
		}
	})
	if err != nil {
		return err
	}
	clusters := []string{cluster.Management}
	if c.host.spec.Targets != nil {
		targets, err := c.host.spec.Targets(ctx, c.reader)
		if err != nil {
			return err
		}
		clusters = append(clusters, targets...)
	}
	for _, name := range clusters {
		if err := c.visit(ctx, name, of(false)); err != nil {
			log.Debug("not counted", "cluster", name, "detail", err.Error())
		}
	}
	return nil
}

// visit counts on one cluster.
func (c *census) visit(ctx context.Context, name string, gauges []int) error {
	for _, i := range gauges {
		gauge := c.host.spec.Gauges[i]
		if name != cluster.Management && !gauge.Targets {
			continue
		}
		_, err := c.reader.Each(ctx, name, gauge.Resource, gauge.Selector, func(obj *unstructured.Unstructured) {
			c.add(i, obj)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *census) add(i int, obj *unstructured.Unstructured) {
	gauge := c.host.spec.Gauges[i]
	id := gauge.Metric + "|" + string(obj.GetUID())
	if c.seen[id] {
		return
	}
	c.seen[id] = true
	if values, ok := gauge.Labels(obj, c.owned); ok {
		c.counts[i].Add(values...)
	}
}

func (c *census) owned(owner Key, uid string) bool { return uid != "" && c.owners[owner] == uid }
