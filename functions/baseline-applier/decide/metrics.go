package decide

import (
	"strings"

	"github.com/slipway-dev/slipway/shared/plan"
)

// Names of metrics, as the alerts of the catalog have them.
const (
	MetricCompliance    = "virt_platform_compliance_status"
	MetricThrashing     = "virt_platform_thrashing_total"
	MetricPaused        = "virt_platform_paused_resources"
	MetricCustomization = "virt_platform_customization_info"
	MetricMissing       = "virt_platform_missing_dependency"
	MetricDuration      = "virt_platform_reconcile_duration_seconds"
	MetricTombstone     = "virt_platform_tombstone_status"
)

// labels are those of an asset's series.
func (f *Finding) labels() []string {
	return []string{f.Asset.Component, f.Asset.Object, f.Namespace, f.Asset.Resource().Group}
}

func (t *telling) level(metric string, labels []string, present bool, value float64) {
	t.observed = append(t.observed, plan.Observation{Metric: metric, Labels: labels, Value: value, Gone: !present})
}

// metrics says of every asset what is.
func (t *telling) metrics() {
	missing := map[string]bool{}
	for i := range t.view.Findings {
		f := &t.view.Findings[i]
		if f.Retry != "" {
			continue // the series keep what they said
		}
		labels := f.labels()
		compliant, known := f.Compliant()
		t.level(MetricCompliance, labels, known, number(compliant))
		paused := f.Record.Outcome == Paused
		t.level(MetricPaused, labels, known, number(paused))
		for kind, present := range map[string]bool{
			"patch": f.Record.Patched > 0, "ignore": len(f.Record.Ignored) > 0, "unmanaged": f.Record.Outcome == OptedOut,
		} {
			t.level(MetricCustomization, append(labels[:len(labels):len(labels)], kind), present, 1)
		}
		gvk := f.Asset.Resource().GVK()
		key := strings.Join([]string{gvk.Group, gvk.Version, gvk.Kind}, "\x00")
		switch f.Record.Outcome {
		case CRDMissing:
			missing[key] = true
		case Inactive, Excluded, NotApplicable, Unknown:
		case InSync, Drifted, Failed, Throttled, Paused, OptedOut, NamespaceMissing, Rewritten:
			missing[key] = missing[key] || false
		}
		if t.in.Part == PartAsset(f.Asset.Name) || f.Asset.Order == 0 {
			t.observed = append(t.observed, plan.Observation{Metric: MetricDuration, Labels: labels, Elapsed: true})
		}
	}
	for key, is := range missing {
		t.level(MetricMissing, strings.Split(key, "\x00"), true, number(is))
	}
}

// Compliant tells whether an object is as the baseline wants it; not known for one that
// the baseline does not want, or is not to look at.
func (f *Finding) Compliant() (is, known bool) {
	switch f.Record.Outcome {
	case InSync:
		return true, true
	case Failed, Throttled, Drifted, Rewritten:
		return false, true
	case Paused:
		return f.Live != nil && len(f.Record.Differs) == 0, true
	case OptedOut, Excluded, Inactive, NotApplicable, CRDMissing, NamespaceMissing, Unknown:
	}
	return false, false
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
