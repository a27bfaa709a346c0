package controller

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// Kinds of keys.
const (
	// machineKey is the name of a machine and of its instance.
	machineKey = "machine"
	// claimKey is the name of a claim that is being deleted.
	claimKey = "claim"
)

// key names what a pass is about.
type key struct{ kind, namespace, name string }

// byClaim is the index of machines and instances by the claims of their volumes.
const byClaim = "claim"

// watch sets up what wakes the passes.
func (p *player) watch(factory dynamicinformer.DynamicSharedInformerFactory) error {
	index := cache.Indexers{byClaim: indexByClaim}
	for kind, indexer := range map[string]*cache.Indexer{machines.Resource: &p.machines, instances.Resource: &p.instances} {
		informer := factory.ForResource(machines.GroupVersion().WithResource(kind)).Informer()
		if err := informer.AddIndexers(index); err != nil {
			return err
		}
		*indexer = informer.GetIndexer()
		if _, err := informer.AddEventHandler(handler(p.machineChanged)); err != nil {
			return err
		}
	}
	if _, err := factory.ForResource(claims).Informer().AddEventHandler(handler(p.claimChanged)); err != nil {
		return err
	}
	if !p.hasDataVolumes {
		return nil
	}
	_, err := factory.ForResource(dataVolumes).Informer().AddEventHandler(handler(p.dataVolumeChanged))
	return err
}

// handler calls f for whatever happens to an object.
func handler(f func(*unstructured.Unstructured)) cache.ResourceEventHandler {
	call := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if u, ok := obj.(*unstructured.Unstructured); ok {
			f(u)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: call, UpdateFunc: func(_, obj any) { call(obj) }, DeleteFunc: call}
}

// machineChanged wakes the pass of a machine or of an instance, and those of the
// claims that an instance may have let go.
func (p *player) machineChanged(obj *unstructured.Unstructured) {
	p.queue.Add(key{machineKey, obj.GetNamespace(), obj.GetName()})
	if obj.GetKind() != "VirtualMachineInstance" || obj.GetDeletionTimestamp() == nil {
		return
	}
	for _, claim := range claimsOf(obj) {
		p.queue.Add(key{claimKey, obj.GetNamespace(), claim})
	}
}

func (p *player) claimChanged(obj *unstructured.Unstructured) {
	if obj.GetDeletionTimestamp() != nil {
		p.queue.Add(key{claimKey, obj.GetNamespace(), obj.GetName()})
	}
	p.wakeUsers(obj)
}

func (p *player) dataVolumeChanged(obj *unstructured.Unstructured) {
	p.wakeUsers(obj)
}

// wakeUsers wakes the passes of those who use a claim, or a data volume, which has
// the name of its claim.
func (p *player) wakeUsers(obj *unstructured.Unstructured) {
	for _, indexer := range []cache.Indexer{p.machines, p.instances} {
		users, err := indexer.ByIndex(byClaim, obj.GetNamespace()+"/"+obj.GetName())
		if err != nil {
			continue
		}
		for _, user := range users {
			if u, ok := user.(*unstructured.Unstructured); ok {
				p.queue.Add(key{machineKey, u.GetNamespace(), u.GetName()})
			}
		}
	}
}

func indexByClaim(obj any) ([]string, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	var keys []string
	for _, claim := range claimsOf(u) {
		keys = append(keys, u.GetNamespace()+"/"+claim)
	}
	return keys, nil
}

// claimsOf returns the names of the claims behind the volumes of a machine or an
// instance.
func claimsOf(obj *unstructured.Unstructured) []string {
	path := []string{"spec", "volumes"}
	if obj.GetKind() == "VirtualMachine" {
		path = []string{"spec", "template", "spec", "volumes"}
	}
	volumes, _, _ := unstructured.NestedSlice(obj.Object, path...)
	var names []string
	for _, volume := range volumes {
		v, ok := volume.(map[string]any)
		if !ok {
			continue
		}
		if name, _, _ := unstructured.NestedString(v, "persistentVolumeClaim", "claimName"); name != "" {
			names = append(names, name)
		}
		if name, _, _ := unstructured.NestedString(v, "dataVolume", "name"); name != "" {
			names = append(names, name)
		}
	}
	return names
}
