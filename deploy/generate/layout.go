package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slipway-dev/slipway/shared/reconcile"
)

// rootName is the whole set as one function: its Service, Trigger and account.
const rootName = "slipway"

// layout is every kustomization that lists functions, and what the components patch
// in each of them.
func layout(files map[string][]byte, specs []reconcile.Spec) error {
	var names, services []string
	for _, spec := range specs {
		names = append(names, "functions/"+spec.Name+".yaml")
		services = append(services, spec.Name)
	}
	secured, err := authenticated(append(services, rootName))
	if err != nil {
		return err
	}
	for path, objects := range map[string][]object{
		"sources/triggers/triggers.yaml":      triggers(specs),
		"sources/triggers/kustomization.yaml": {kustomization("triggers.yaml")},
		"sources/kustomization.yaml":          {kustomization("account.yaml", "adapter.yaml", "apiserversources.yaml", "broker.yaml", "resync.yaml")},
		"deploy/base/kustomization.yaml": {kustomization(append([]string{
			"../common", "../../sources", "../../sources/triggers",
		}, names...)...)},
		// The whole set as one function acts under one account with all rights.
		"deploy/root/account.yaml":                             rootAccount(specs),
		"deploy/root/service.yaml":                             {rootService(specs)},
		"deploy/root/trigger.yaml":                             {rootTrigger(specs)},
		"deploy/root/kustomization.yaml":                       {kustomization("account.yaml", "service.yaml", "trigger.yaml")},
		"deploy/components/authentication/kustomization.yaml":  {secured},
		"deploy/components/authentication/policy.yaml":         {eventPolicy(specs)},
		"deploy/components/authentication/account.yaml":        tokenReview(append(services, rootName)),
		"deploy/components/without-adapter/kustomization.yaml": {withoutAdapter(specs)},
		"deploy/components/archive-volume/kustomization.yaml":  {archiveVolume()},
	} {
		if err := add(files, path, objects); err != nil {
			return err
		}
	}
	return nil
}

// rootService is the Service of the whole set. It has the settings of every
// function, and room for all of them.
func rootService(specs []reconcile.Spec) object {
	whole := reconcile.Spec{
		Name:            rootName,
		Memory:          most(specs, reconcile.Spec.MemoryLimit),
		MemoryRequested: most(specs, reconcile.Spec.MemoryRequest),
	}
	seen := map[string]bool{}
	var env []any
	for _, spec := range specs {
		whole.Concurrency = max(whole.Concurrency, spec.Concurrency)
		for _, v := range environment(spec) {
			name := v.(object)["name"].(string)
			if !seen[name] {
				seen[name] = true
				env = append(env, v)
			}
		}
	}
	obj := service(whole)
	container := obj["spec"].(object)["template"].(object)["spec"].(object)["containers"].([]any)[0].(object)
	container["image"] = images + "cmd/" + rootName
	container["env"] = env
	return obj
}

// most is the largest of the amounts of memory that the functions name.
func most(specs []reconcile.Spec, amount func(reconcile.Spec) string) string {
	largest := resource.Quantity{}
	for _, spec := range specs {
		if one := resource.MustParse(amount(spec)); one.Cmp(largest) > 0 {
			largest = one
		}
	}
	return largest.String()
}

// rootTrigger hands the whole set every event that one of the functions is woken
// by, once.
func rootTrigger(specs []reconcile.Spec) object {
	var matches []any
	seen := map[string]bool{}
	for _, spec := range specs {
		for _, m := range wakes(spec) {
			if text := fmt.Sprint(m); !seen[text] {
				seen[text] = true
				matches = append(matches, m)
			}
		}
	}
	return trigger(rootName, matches)
}

// withoutAdapter takes sources/adapter out: what it watches is then seen at the
// next resync only.
func withoutAdapter(specs []reconcile.Spec) object {
	gone := append(adapter(specs), adapterAccount(specs)...)
	var patches []any
	for _, obj := range gone {
		metadata := obj["metadata"].(object)
		stub := object{"name": metadata["name"]}
		if ns, ok := metadata["namespace"]; ok {
			stub["namespace"] = ns
		}
		patches = append(patches, patch(nil, object{
			"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": stub, "$patch": "delete",
		}))
	}
	return component(nil, patches)
}

// archiveVolume keeps dead letters on a volume. Volumes are switched off in Knative
// Serving by default, so the archive is a Deployment here, and the Service before
// it one of Kubernetes.
func archiveVolume() object {
	sink := []any{object{
		"op": "replace", "path": "/spec/delivery/deadLetterSink/ref",
		"value": object{"apiVersion": "v1", "kind": "Service", "name": archive, "namespace": namespace},
	}}
	return component([]string{"archive.yaml"}, []any{
		patch(nil, object{
			"apiVersion": "serving.knative.dev/v1", "kind": "Service",
			"metadata": object{"name": archive, "namespace": namespace}, "$patch": "delete",
		}),
		patch(object{"group": "eventing.knative.dev", "kind": "Trigger|Broker"}, sink),
	})
}

// component is a kustomization that overlays add.
func component(resources []string, patches []any) object {
	obj := object{"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
	if len(resources) > 0 {
		obj["resources"] = resources
	}
	if len(patches) > 0 {
		obj["patches"] = patches
	}
	return obj
}

// patch is an entry of a kustomization: a merge patch, or a list of operations for
// what the target selects.
func patch(target object, content any) object {
	entry := object{"patch": text(content)}
	if target != nil {
		entry["target"] = target
	}
	return entry
}
