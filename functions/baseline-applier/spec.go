package baselineapplier

import (
	"maps"
	"slices"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/setting"
	"github.com/slipway-dev/slipway/shared/telemetry"
)

// Name is the function's name.
const Name = "baseline-applier"

// concurrency is how many events one process takes at once.
const concurrency = 5

// Spec declares the function.
func Spec(settings Settings) reconcile.Spec { return specOf(settings, newLeft()) }

func specOf(settings Settings, l *left) reconcile.Spec {
	c := catalog.BuiltIn()
	m := mapper{settings: settings.Settings, catalog: c, left: l}
	spec := reconcile.Spec{
		Name:             Name,
		Summary:          "keeps the platform below KubeVirt in its recommended state, as its users have patched it",
		TakesOver:        "virt-platform-operator",
		Reconciles:       kinds.HyperConvergeds,
		Watches:          watches(m),
		Grants:           grants(c),
		Metrics:          metrics(),
		Manager:          catalog.Manager,
		Reporter:         catalog.Manager,
		ConcludesOutages: true,
		TellsEachRound:   true,
		Concurrency:      concurrency,
	}
	spec.Env = setting.Docs(variables)
	return spec
}

// watches go through the adapter where kinds come and go, each for the objects of the
// catalog alone.
func watches(m mapper) []reconcile.Watch {
	out := []reconcile.Watch{
		{Resource: kinds.HyperConvergeds, Names: []string{decide.HCOName}, Adapter: true, Keys: m.ofHCO},
		{Resource: kinds.Nodes, Fields: decide.HardwareFields(), Adapter: true, Keys: m.ofNode},
		{Resource: kind.CRDs, Names: definitions(m.catalog), Adapter: true, Keys: m.ofDefinition},
	}
	objects := objects(m.catalog)
	objects[kinds.PrometheusRules.String()] = append(objects[kinds.PrometheusRules.String()], decide.RuleName)
	for _, res := range kinds.Managed() {
		if names := objects[res.String()]; res.String() != kinds.HyperConvergeds.String() {
			out = append(out, reconcile.Watch{Resource: res, Names: sorted(names), Adapter: true, Keys: m.ofObject(res)})
		}
	}
	return out
}

// objects are the names of the catalog's objects, those that must go included, by kind.
func objects(c catalog.Catalog) map[string][]string {
	names := map[string][]string{}
	for _, a := range c.Assets {
		names[a.Resource().String()] = append(names[a.Resource().String()], a.Object)
	}
	for kindOf, gone := range buried(c) {
		names[kindOf] = append(names[kindOf], gone...)
	}
	return names
}

func buried(c catalog.Catalog) map[string][]string {
	names := map[string][]string{}
	for _, obj := range c.Buried() {
		res, _ := kinds.Of(obj.GetAPIVersion(), obj.GetKind())
		names[res.String()] = append(names[res.String()], obj.GetName())
	}
	return names
}

// definitions are those of the kinds that may be missing.
func definitions(c catalog.Catalog) []string {
	names := map[string]bool{}
	for _, a := range c.Assets {
		if a.Name != catalog.HCO {
			names[a.Definition()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func sorted(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

func grants(c catalog.Catalog) []reconcile.Grant {
	out := []reconcile.Grant{
		{Resource: kinds.HyperConvergeds, Verbs: []string{"list"}},
		// It is never made: one that was deleted must not come back.
		{Resource: kinds.HyperConvergeds, Verbs: []string{"get", "patch"}, Names: []string{decide.HCOName}},
		{Resource: kinds.PrometheusRules, Verbs: []string{"get"}, Names: []string{decide.RuleName}},
		{Resource: kinds.Nodes, Verbs: []string{"get", "list"}},
		{Resource: kind.CRDs, Verbs: []string{"get"}, Names: definitions(c)},
		{Resource: kind.Namespaces, Verbs: []string{"get"}},
		{Resource: kind.ConfigMaps, Verbs: []string{"create"}},
		{Resource: kind.ConfigMaps, Verbs: []string{"get", "patch"}, Names: []string{decide.StateName}},
		{Resource: kind.Events, Verbs: []string{"create"}},
	}
	leaving := buried(c)
	written := map[string][]string{}
	for _, a := range c.Assets {
		name := a.Resource().String()
		written[name] = append(written[name], a.Object)
		if a.OnLeave == catalog.Delete {
			leaving[name] = append(leaving[name], a.Object)
		}
	}
	gone := buried(c)
	for _, res := range kinds.Managed() {
		name := res.String()
		if name == kinds.HyperConvergeds.String() {
			continue
		}
		out = append(out,
			reconcile.Grant{Resource: res, Verbs: []string{"create"}},
			reconcile.Grant{Resource: res, Verbs: []string{"get", "patch"}, Names: sorted(written[name])})
		if names := gone[name]; len(names) > 0 {
			out = append(out, reconcile.Grant{Resource: res, Verbs: []string{"get"}, Names: sorted(names)})
		}
		if names := leaving[name]; len(names) > 0 {
			out = append(out, reconcile.Grant{Resource: res, Verbs: []string{"delete"}, Names: sorted(names)})
		}
	}
	return out
}

func metrics() []telemetry.Instrument {
	object := []string{"kind", "name", "namespace", "group"}
	return []telemetry.Instrument{
		{Name: decide.MetricCompliance, Kind: telemetry.Level, Labels: object, Help: "1: the object is as the baseline wants it, 0: it is not"},
		{Name: decide.MetricThrashing, Kind: telemetry.Counter, Labels: object, Help: "how often the object was paused because somebody works against the baseline"},
		{Name: decide.MetricPaused, Kind: telemetry.Level, Labels: object, Help: "1: the object is paused"},
		{Name: decide.MetricCustomization, Kind: telemetry.Level, Labels: append(slices.Clone(object), "type"), Help: "1: the object is patched, has ignored fields, or is unmanaged"},
		{Name: decide.MetricMissing, Kind: telemetry.Level, Labels: []string{"group", "version", "kind"}, Help: "1: a kind of the baseline is not installed"},
		{Name: decide.MetricTombstone, Kind: telemetry.Level, Labels: object, Help: "0: gone, 1: held by a finalizer, -1: it cannot be deleted, -2: somebody else's"},
		{
			Name: decide.MetricDuration, Kind: telemetry.Histogram, Labels: object, Help: "seconds that looking after an object takes",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10},
		},
	}
}
