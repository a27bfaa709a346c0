package baselineapplier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/apply"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/vault"
)

// maxRounds is how often a survey asks at most.
const maxRounds = 10

// ErrNoHyperConverged says that there is no baseline without one.
var ErrNoHyperConverged = errors.New("there is no HyperConverged " + decide.HCOName)

// Survey looks at a cluster with the code that applies, and writes nothing: what each
// asset is, should be and would become. Values that nobody could apply now, because a
// patch or a definition is in the way, are told like in the function's own report.
func Survey(ctx context.Context, clusters *cluster.Set, settings decide.Settings) (decide.View, error) {
	ctx = cluster.WithMemory(ctx)
	view := clusters.View()
	v := vault.New()
	r := read.New(view, v)
	hco, err := r.Get(ctx, decide.Management, kinds.HyperConvergeds, settings.HCONamespace, decide.HCOName)
	if err != nil {
		return decide.View{}, err
	}
	if hco == nil {
		return decide.View{}, fmt.Errorf("%w in namespace %q", ErrNoHyperConverged, settings.HCONamespace)
	}
	g := gatherer{settings: settings, catalog: catalog.BuiltIn()}
	in, err := g.whole(ctx, r, hco)
	if err != nil {
		return decide.View{}, err
	}
	writer := &apply.Writer{Clusters: view, Vault: v, Manager: catalog.Manager, DryRun: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	return look(in, func(need plan.Need) plan.Answer {
		if need.DryRun != nil {
			obj, f := writer.Try(ctx, *need.DryRun)
			return plan.Answer{Object: obj, Fault: f}
		}
		return r.Answer(ctx, need)
	})
}

// look asks until nothing is left to be known.
func look(in decide.Input, answer func(plan.Need) plan.Answer) (decide.View, error) {
	in.Preview = true
	known, now := plan.Answers{}, time.Now()
	for range maxRounds {
		view := decide.Look(now, in, known)
		if len(view.Needs) == 0 {
			return view, nil
		}
		for _, need := range view.Needs {
			known[need.Key()] = answer(need)
		}
	}
	return decide.View{}, fmt.Errorf("cannot look at the baseline: more than %d rounds of questions", maxRounds)
}

// Offline looks at objects as if they were a cluster: a HyperConverged, Nodes,
// definitions and objects of the baseline, each of which may be left out. Kinds whose
// definition is not given count as installed, namespaces as there, and an apply as a
// plain merge.
func Offline(objects []*unstructured.Unstructured, settings decide.Settings) (decide.View, error) {
	o := offline{objects: objects}
	in := decide.Input{Settings: settings, Catalog: catalog.BuiltIn(), Listed: true}
	if in.HCO = o.find(kinds.HyperConvergeds.Group, kinds.HyperConvergeds.Kind, "", decide.HCOName); in.HCO == nil {
		in.HCO = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": kinds.HyperConvergeds.Group + "/v1beta1", "kind": kinds.HyperConvergeds.Kind,
			"metadata": map[string]any{"name": decide.HCOName, "namespace": settings.HCONamespace},
		}}
	}
	if in.HCO.GetNamespace() != "" {
		in.Settings.HCONamespace = in.HCO.GetNamespace()
	}
	in.HCO.SetNamespace(in.Settings.HCONamespace)
	var nodes []unstructured.Unstructured
	for _, obj := range objects {
		if kinds.Nodes.Is(obj.GetAPIVersion(), obj.GetKind()) {
			nodes = append(nodes, *obj)
		}
	}
	in.Hardware = decide.Providers(nodes)
	return look(in, o.answer)
}

// offline are objects that play a cluster.
type offline struct{ objects []*unstructured.Unstructured }

func (o offline) find(group, kindName, namespace, name string) *unstructured.Unstructured {
	for _, obj := range o.objects {
		gvk := obj.GroupVersionKind()
		if gvk.Group == group && gvk.Kind == kindName && obj.GetName() == name && (namespace == "" || obj.GetNamespace() == namespace) {
			return obj
		}
	}
	return nil
}

func (o offline) answer(need plan.Need) plan.Answer {
	if entry := need.DryRun; entry != nil {
		result := entry.Object.DeepCopy()
		if entry.Base != nil {
			merged, _ := merge(entry.Base.DeepCopy().Object, result.Object).(map[string]any)
			result.Object = merged
		}
		return plan.Answer{Object: result}
	}
	res := need.Resource
	found := o.find(res.Group, res.Kind, need.Namespace, need.Name)
	switch {
	case res.Kind == kinds.Schemas.Kind:
		return plan.Answer{Object: assumed(need.Name, found)}
	case found == nil && res.Kind == "Namespace":
		found = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": need.Name}}}
	}
	return plan.Answer{Object: found}
}

// assumed is a definition that is installed: the given one, or one that has any field.
func assumed(name string, given *unstructured.Unstructured) *unstructured.Unstructured {
	established := []any{map[string]any{"type": "Established", "status": "True"}}
	if given != nil {
		given = given.DeepCopy()
		_ = unstructured.SetNestedSlice(given.Object, established, "status", "conditions")
		return given
	}
	var versions []any
	for _, res := range kinds.Managed() {
		if res.String() != name {
			continue
		}
		for _, version := range res.Versions {
			versions = append(versions, map[string]any{
				"name": version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"x-kubernetes-preserve-unknown-fields": true}},
			})
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"versions": versions}, "status": map[string]any{"conditions": established},
	}}
}

// merge lays one value over another; lists are replaced.
func merge(under, over any) any {
	a, bothMaps := under.(map[string]any)
	b, isMap := over.(map[string]any)
	if !isMap || !bothMaps {
		return over
	}
	for key, value := range b {
		a[key] = merge(a[key], value)
	}
	return a
}
