package read

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/shared/plan"
)

// Bounds keep small what a list may cost, whatever the server answers.
type Bounds struct {
	// Page is how many objects one request asks for.
	Page int
	// Objects is how many are looked at in all.
	Objects int
	// Fields is a field selector.
	Fields string
}

// Scan lists what a need selects, a page at a time, from a server that is not
// trusted. keep is shown each object and returns what shall be kept of it, nil for
// nothing: only that is remembered, and only that is there when it is played again.
// What was kept comes sorted by namespace and name. complete is false when there are
// more objects than may be looked at. A resource that is not served has none. An error
// is a *fault.Fault.
//
// Whoever scans should bound the size of an answer too (reconcile.Options).
func (r *Reader) Scan(ctx context.Context, need plan.Need, b Bounds, keep func(*unstructured.Unstructured) *unstructured.Unstructured) (kept []unstructured.Unstructured, complete bool, err error) {
	if r.tape != nil {
		return r.playScan(need, b)
	}
	kept, complete, err = r.scan(ctx, need, b, keep)
	need.Limit = int64(b.Objects)
	answer := plan.Answer{Items: kept}
	if err != nil {
		kept, answer = nil, plan.Answer{Fault: r.fault(err, "list", need)}
		err = answer.Fault
	}
	r.note(Record{Need: need, Answer: answer, Scanned: true, Complete: complete})
	return kept, complete, err
}

var errNoList = errors.New("the answer is no list of the resource")

func (r *Reader) scan(ctx context.Context, need plan.Need, b Bounds, keep func(*unstructured.Unstructured) *unstructured.Unstructured) (kept []unstructured.Unstructured, complete bool, err error) {
	client, err := r.resource(ctx, need)
	for tries := 0; err == nil && tries < 2; tries++ {
		kept, complete, err = r.scanOf(ctx, client, need, b, keep)
		if !apierrors.IsNotFound(err) {
			return kept, complete, err
		}
		client, err = r.elsewhere(ctx, err, need)
	}
	if err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, true, nil
	}
	return nil, false, err
}

func (r *Reader) scanOf(ctx context.Context, client dynamic.ResourceInterface, need plan.Need, b Bounds, keep func(*unstructured.Unstructured) *unstructured.Unstructured) (kept []unstructured.Unstructured, complete bool, err error) {
	opts := metav1.ListOptions{LabelSelector: need.Selector, FieldSelector: b.Fields, Limit: int64(b.Page)}
	seen := 0
	// A server that gives out ever more pages, or lets every page expire, is left
	// after as many as the objects need.
	for range b.Objects/b.Page + 2 {
		page, err := client.List(ctx, opts)
		switch {
		case (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) && opts.Continue != "":
			opts.Continue, kept, seen = "", nil, 0
			continue
		case err != nil:
			return nil, false, err
		case page.GetKind() != need.Resource.Kind+"List":
			// Whatever answers here, it would count as a cluster without objects.
			return nil, false, errNoList
		}
		for i := range page.Items {
			if seen == b.Objects {
				return ordered(kept), false, nil
			}
			seen++
			drop(need.Resource, &page.Items[i])
			r.vault.SealObject(need.Resource, &page.Items[i])
			if part := keep(&page.Items[i]); part != nil {
				kept = append(kept, *part)
			}
		}
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			return ordered(kept), true, nil
		}
	}
	return ordered(kept), false, nil
}

func ordered(items []unstructured.Unstructured) []unstructured.Unstructured {
	slices.SortFunc(items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return items
}
