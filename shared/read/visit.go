package read

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// maxConcerned is how many of the objects that Within found are remembered: an event
// that concerns more becomes a resync.
const maxConcerned = 64

// Each goes through all objects of a resource, a page at a time, so that they
// need not all fit into memory, and remembers none of them. An object may come
// twice. It reports whether the server serves the resource at all.
func (r *Reader) Each(ctx context.Context, clusterName string, res kind.Resource, selector string, visit func(obj *unstructured.Unstructured)) (served bool, err error) {
	need := plan.Need{Cluster: clusterName, Resource: res, Selector: selector}
	if r.tape != nil {
		return false, missing("list", need)
	}
	return r.visit(ctx, need, visit)
}

// Within goes through the objects of a namespace, or of all if it is empty, as Each
// does, to find those that an event concerns: visit says of each whether it does. Only
// those are remembered. A resource that is not served has none.
func (r *Reader) Within(ctx context.Context, clusterName string, res kind.Resource, namespace string, visit func(obj *unstructured.Unstructured) (concerned bool)) error {
	need := plan.Need{Cluster: clusterName, Resource: res, Namespace: namespace}
	if r.tape != nil {
		return r.playWithin(need, visit)
	}
	record := Record{Need: need, Scanned: true, Complete: true}
	seen := map[string]bool{}
	_, err := r.visit(ctx, need, func(obj *unstructured.Unstructured) {
		if !visit(obj) {
			return
		}
		id := obj.GetNamespace() + "/" + obj.GetName()
		switch {
		case seen[id]:
		case len(seen) == maxConcerned:
			record.Complete = false
		default:
			seen[id] = true
			record.Answer.Items = append(record.Answer.Items, *obj)
		}
	})
	var f *fault.Fault
	if errors.As(err, &f) {
		record.Answer, record.Complete = plan.Answer{Fault: f}, false
	}
	record.Answer.Items = ordered(record.Answer.Items)
	r.note(record)
	return err
}

func (r *Reader) visit(ctx context.Context, need plan.Need, visit func(obj *unstructured.Unstructured)) (served bool, err error) {
	served, err = r.pages(ctx, need, visitSize, func(page []unstructured.Unstructured, _ bool) {
		for i := range page {
			if r.overlay.covers(need, &page[i]) {
				continue
			}
			drop(need.Resource, &page[i])
			r.vault.SealObject(need.Resource, &page[i])
			visit(&page[i])
		}
	})
	if err != nil {
		return served, r.fault(err, "list", need)
	}
	added := r.overlay.onto(need, plan.Answer{}, r.vault)
	for i := range added.Items {
		visit(&added.Items[i])
	}
	return served, nil
}

// playWithin shows the objects that were concerned when it was recorded.
func (r *Reader) playWithin(need plan.Need, visit func(obj *unstructured.Unstructured) (concerned bool)) error {
	record, ok := r.tape.Play(AskScan, need)
	if !ok {
		record = Record{Need: need, Scanned: true, Answer: plan.Answer{Fault: missing("list", need)}}
	}
	r.note(record)
	if record.Answer.Fault != nil {
		return record.Answer.Fault
	}
	for i := range record.Answer.Items {
		visit(&record.Answer.Items[i])
	}
	return nil
}
