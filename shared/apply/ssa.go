package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
)

func (w *Writer) apply(ctx context.Context, client dynamic.ResourceInterface, entry plan.Entry) plan.Outcome {
	base := w.current(entry)
	if base == nil {
		// A forced apply would take over whatever appeared since it was read.
		return w.create(ctx, client, entry)
	}
	verdict, err := compare(entry.Object, base, w.Manager)
	if err != nil {
		return w.failed(entry, err)
	}
	if verdict == unsure {
		if verdict, err = w.dryRun(ctx, client, entry, base); err != nil {
			return w.failed(entry, err)
		}
	}
	switch {
	case verdict == equal && !ownsByUpdate(base, w.Predecessors...):
		return plan.Outcome{Entry: entry, Result: plan.Unchanged, Object: base}
	case w.DryRun:
		return w.skipped(entry)
	}
	if base, err = w.fold(ctx, client, entry, base); err != nil {
		return w.failed(entry, err)
	}
	return w.sendApply(ctx, client, entry, base)
}

// fold turns the fields that the function owns by a create or a patch into
// fields that it owns by apply: else fields left out later would stay.
func (w *Writer) fold(ctx context.Context, client dynamic.ResourceInterface, entry plan.Entry, base *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	managers := append([]string{w.Manager}, w.Predecessors...)
	if !ownsByUpdate(base, managers...) {
		return base, nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(base, sets.New(managers...), w.Manager)
	if err != nil || patch == nil {
		return base, err
	}
	folded, err := w.request(entry, VerbFold, patch, func() (*unstructured.Unstructured, error) {
		return client.Patch(ctx, base.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: w.Manager})
	})
	if err != nil {
		return nil, err
	}
	entry.Reason = "fields owned since the creation become fields owned by apply"
	return w.done(entry, plan.Configured, folded).Object, nil
}

func ownsByUpdate(obj *unstructured.Unstructured, managers ...string) bool {
	for _, entry := range obj.GetManagedFields() {
		if slices.Contains(managers, entry.Manager) && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" {
			return true
		}
	}
	return false
}

func (w *Writer) sendApply(ctx context.Context, client dynamic.ResourceInterface, entry plan.Entry, base *unstructured.Unstructured) plan.Outcome {
	obj, err := w.serverSideApply(ctx, client, entry, base, nil)
	if err != nil {
		return w.failed(entry, err)
	}
	if base.GetResourceVersion() == obj.GetResourceVersion() {
		return w.done(entry, plan.Unchanged, obj)
	}
	return w.done(entry, plan.Configured, obj)
}

func (w *Writer) serverSideApply(ctx context.Context, client dynamic.ResourceInterface, entry plan.Entry, base *unstructured.Unstructured, dryRun []string) (*unstructured.Unstructured, error) {
	intent := &unstructured.Unstructured{Object: w.Vault.OpenObject(entry.Resource, entry.Object.Object)}
	intent.SetManagedFields(nil)
	intent.SetResourceVersion(base.GetResourceVersion())
	// The version alone would not do: an apply makes an object anew that was deleted
	// meanwhile.
	intent.SetUID(base.GetUID())
	body, err := json.Marshal(intent.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s %q: %w", entry.Resource, entry.Name(), err)
	}
	force := true
	opts := metav1.PatchOptions{FieldManager: w.Manager, Force: &force, DryRun: dryRun}
	var sub []string
	if entry.Subresource != "" {
		sub = []string{entry.Subresource}
	}
	verb := VerbApply
	if len(dryRun) > 0 {
		verb = VerbDryRun
	}
	return w.request(entry, verb, entry.Object.Object, func() (*unstructured.Unstructured, error) {
		return client.Patch(ctx, intent.GetName(), types.ApplyPatchType, body, opts, sub...)
	})
}

// seen remembers, for the life of the process, for which live object which
// intent was found to change nothing. It cannot grow stale: the key holds the
// resourceVersion.
var seen = struct {
	sync.Mutex
	verdicts map[string]verdict
}{verdicts: map[string]verdict{}}

const seenMax = 10000

func (w *Writer) dryRun(ctx context.Context, client dynamic.ResourceInterface, entry plan.Entry, base *unstructured.Unstructured) (verdict, error) {
	// Opened: tokens differ from one reconcile to the next. Only the hash stays.
	intent, err := json.Marshal(w.Vault.OpenObject(entry.Resource, entry.Object.Object))
	if err != nil {
		return unsure, fmt.Errorf("cannot encode %s %q: %w", entry.Resource, entry.Name(), err)
	}
	sum := sha256.Sum256(intent)
	key := strings.Join([]string{
		entry.Cluster, w.Manager, entry.Subresource, string(base.GetUID()), base.GetResourceVersion(), hex.EncodeToString(sum[:]),
	}, "|")
	if known, ok := w.remembered(entry, key); ok {
		return known, nil
	}
	if w.Tried != nil {
		w.Tried(entry)
	}
	answer, err := w.serverSideApply(ctx, client, entry, base, []string{metav1.DryRunAll})
	if err != nil {
		return unsure, err
	}
	w.Vault.SealObject(entry.Resource, answer)
	result := different
	if sameObject(answer, base) {
		result = equal
	}
	if w.Tape != nil && w.Tape.Plays() {
		return result, nil
	}
	seen.Lock()
	defer seen.Unlock()
	if len(seen.verdicts) >= seenMax {
		clear(seen.verdicts)
	}
	seen.verdicts[key] = result
	return result, nil
}

// Try asks what the server would make of an Apply, and makes nothing: the object as
// it would be, as the function's own or as one that is new.
func (w *Writer) Try(ctx context.Context, entry plan.Entry) (*unstructured.Unstructured, *fault.Fault) {
	call := fmt.Sprintf("dry-run %s %s", entry.Resource, entry.Name())
	client, err := w.client(ctx, entry)
	if err != nil {
		return nil, read.Fault(err, entry.Cluster, call, w.Vault)
	}
	if w.Tried != nil {
		w.Tried(entry)
	}
	base := entry.Base
	if base == nil {
		base = &unstructured.Unstructured{}
	}
	obj, err := w.serverSideApply(ctx, client, entry, base, []string{metav1.DryRunAll})
	if err != nil {
		return nil, read.Fault(err, entry.Cluster, call, w.Vault)
	}
	w.Vault.SealObject(entry.Resource, obj)
	return obj, nil
}
