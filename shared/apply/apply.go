package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/vault"
)

// MaxDeletes is how many objects one run deletes at most.
const MaxDeletes = 100

// keepTimeout bounds the clean-up at the end of a run.
const keepTimeout = 3 * time.Second

// ErrConflict: something moved since it was read. Gather and decide again.
var ErrConflict = errors.New("the world has moved since it was read")

// Writer brings plans to clusters, for one reconcile.
type Writer struct {
	Clusters *cluster.Set
	Vault    *vault.Vault
	// Manager is the field manager.
	Manager string
	// Predecessors are managers whose fields, owned by create or update, become the
	// Manager's own with its first apply.
	Predecessors []string
	// DryRun writes nothing: every entry that would write ends as Skipped.
	DryRun bool
	// Log gets one line per write.
	Log *slog.Logger
	// AfterCreate is called once at the end of a run that created something,
	// however it ends, and reports whether the created objects may stay. If
	// not, they are deleted.
	AfterCreate func(ctx context.Context) (bool, error)
	// Stays is asked of each created object after AfterCreate said yes; one that may
	// not stay is deleted. Nil lets all stay.
	Stays func(entry plan.Entry) bool
	// Wrote is called once per write that changed something; may be nil.
	Wrote func(entry plan.Entry, result plan.Result)
	// Tried is called once per dry-run; may be nil.
	Tried func(entry plan.Entry)
	// Tape sees every request; may be nil.
	Tape Tape

	latest  map[string]*unstructured.Unstructured
	deletes int
	capped  bool
}

// Run carries a plan out. The error is ErrConflict, or that of the context;
// everything else that goes wrong is in the outcomes.
func (w *Writer) Run(ctx context.Context, p plan.Plan) (plan.Outcomes, error) {
	outcomes, err := w.stages(ctx, p)
	if kept := w.keep(ctx, outcomes); kept != nil {
		err = kept
	}
	return outcomes, err
}

func (w *Writer) stages(ctx context.Context, p plan.Plan) (plan.Outcomes, error) {
	var outcomes plan.Outcomes
	failed := false
	for _, stage := range p.Stages {
		if failed {
			for _, entry := range stage.Entries {
				outcomes = append(outcomes, plan.Outcome{Entry: entry, Result: plan.Skipped})
			}
			continue
		}
		done, err := w.stage(ctx, stage)
		outcomes = append(outcomes, done...)
		if err != nil {
			return outcomes, err
		}
		// What is left of a capped deletion has to go before anything later.
		failed = len(done.Faults()) > 0 || w.capped
	}
	return outcomes, nil
}

func (w *Writer) stage(ctx context.Context, stage plan.Stage) (plan.Outcomes, error) {
	var outcomes plan.Outcomes
	conflict := false
	for _, entry := range stage.Entries {
		outcome := w.entry(ctx, entry)
		outcomes = append(outcomes, outcome)
		conflict = conflict || (outcome.Fault != nil && outcome.Fault.Class == fault.Conflict)
		if err := ctx.Err(); err != nil {
			return outcomes, fmt.Errorf("cannot finish stage %q: %w", stage.Name, err)
		}
	}
	if conflict {
		return outcomes, ErrConflict
	}
	return outcomes, nil
}

// keep undoes creations whose reason vanished while they were made: the
// reconciled object was deleted meanwhile, and nobody else would clean up.
func (w *Writer) keep(ctx context.Context, outcomes plan.Outcomes) error {
	var created []plan.Outcome
	for _, outcome := range outcomes {
		if outcome.Result == plan.Created && !outcome.Entry.Shared {
			created = append(created, outcome)
		}
	}
	if len(created) == 0 || w.AfterCreate == nil {
		return nil
	}
	// A call whose time is up cleans up all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	wanted, err := w.AfterCreate(ctx)
	if err != nil {
		return err
	}
	if wanted {
		created = slices.DeleteFunc(created, func(outcome plan.Outcome) bool { return w.Stays == nil || w.Stays(outcome.Entry) })
	}
	if len(created) == 0 {
		return nil
	}
	for _, outcome := range created {
		entry := outcome.Entry
		entry.Verb, entry.Base, entry.Object = plan.Delete, outcome.Object, nil
		entry.Reason = "the reconciled object went, or wants it no more, since it was decided to create this"
		client, err := w.client(ctx, entry)
		if err == nil {
			uid := outcome.Object.GetUID()
			_, err = w.request(entry, VerbDelete, nil, func() (*unstructured.Unstructured, error) {
				return nil, client.Delete(ctx, outcome.Object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			})
		}
		switch {
		case err == nil:
			w.note(entry, plan.Deleted)
		case !apierrors.IsNotFound(err):
			// The next resync's clean-up comes to it again.
			w.failed(entry, err)
		}
	}
	return ErrConflict
}

func (w *Writer) entry(ctx context.Context, entry plan.Entry) plan.Outcome {
	client, err := w.client(ctx, entry)
	if err != nil {
		return w.failed(entry, err)
	}
	switch entry.Verb {
	case plan.Create:
		return w.create(ctx, client, entry)
	case plan.Apply:
		return w.apply(ctx, client, entry)
	case plan.Patch:
		return w.patch(ctx, client, entry)
	case plan.Delete:
		return w.delete(ctx, client, entry)
	}
	return w.failed(entry, fmt.Errorf("cannot carry out the unknown verb %q", entry.Verb))
}

func (w *Writer) create(ctx context.Context, client dynamic.ResourceInterface, entry plan.Entry) plan.Outcome {
	if w.DryRun {
		return w.skipped(entry)
	}
	obj, err := w.request(entry, VerbCreate, entry.Object.Object, func() (*unstructured.Unstructured, error) {
		opened := &unstructured.Unstructured{Object: w.Vault.OpenObject(entry.Resource, entry.Object.Object)}
		return client.Create(ctx, opened, metav1.CreateOptions{FieldManager: w.Manager})
	})
	if err != nil {
		return w.failed(entry, err)
	}
	return w.done(entry, plan.Created, obj)
}

func (w *Writer) patch(ctx context.Context, client dynamic.ResourceInterface, entry plan.Entry) plan.Outcome {
	if current := w.current(entry); current.GetResourceVersion() != entry.Base.GetResourceVersion() {
		// Written earlier in this run: lists of the gathered base are stale.
		return plan.Outcome{Entry: entry, Result: plan.Failed, Fault: &fault.Fault{Class: fault.Conflict, Cluster: entry.Cluster, Call: entry.String(), Message: "written before in the same run"}}
	}
	patch, err := mergePatch(entry.Base, entry.Object)
	if err != nil {
		return w.failed(entry, err)
	}
	if len(patch) == 0 {
		return plan.Outcome{Entry: entry, Result: plan.Unchanged, Object: w.current(entry)}
	}
	if w.DryRun {
		return w.skipped(entry)
	}
	return w.sendPatch(ctx, client, entry, patch)
}

func (w *Writer) sendPatch(ctx context.Context, client dynamic.ResourceInterface, entry plan.Entry, patch map[string]any) plan.Outcome {
	base := w.current(entry)
	if err := unstructured.SetNestedField(patch, base.GetResourceVersion(), "metadata", "resourceVersion"); err != nil {
		return w.failed(entry, err)
	}
	body, err := json.Marshal(w.Vault.OpenObject(entry.Resource, patch))
	if err != nil {
		return w.failed(entry, err)
	}
	var sub []string
	if entry.Subresource != "" {
		sub = []string{entry.Subresource}
	}
	obj, err := w.request(entry, VerbPatch, patch, func() (*unstructured.Unstructured, error) {
		return client.Patch(ctx, base.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: cmp.Or(entry.Manager, w.Manager)}, sub...)
	})
	if err != nil {
		return w.failed(entry, err)
	}
	result := plan.Configured
	if obj.GetResourceVersion() == base.GetResourceVersion() {
		result = plan.Unchanged
	}
	return w.done(entry, result, obj)
}

func (w *Writer) delete(ctx context.Context, client dynamic.ResourceInterface, entry plan.Entry) plan.Outcome {
	base := w.current(entry)
	if w.DryRun {
		return w.skipped(entry)
	}
	if w.deletes >= MaxDeletes {
		w.capped = true
		w.Log.Warn("deletion put off", "object", entry.String(), "error", fmt.Sprintf("one run deletes %d objects at most", MaxDeletes))
		return plan.Outcome{Entry: entry, Result: plan.Capped, Object: entry.Base}
	}
	uid, rv := base.GetUID(), base.GetResourceVersion()
	background := metav1.DeletePropagationBackground
	_, err := w.request(entry, VerbDelete, nil, func() (*unstructured.Unstructured, error) {
		return nil, client.Delete(ctx, base.GetName(), metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &rv},
			PropagationPolicy: &background,
		})
	})
	if apierrors.IsNotFound(err) {
		return plan.Outcome{Entry: entry, Result: plan.Unchanged}
	}
	if err != nil {
		return w.failed(entry, err)
	}
	w.deletes++
	w.note(entry, plan.Deleted)
	return plan.Outcome{Entry: entry, Result: plan.Deleted}
}

func (w *Writer) client(ctx context.Context, entry plan.Entry) (client dynamic.ResourceInterface, err error) {
	_, err = w.request(entry, VerbConnect, nil, func() (*unstructured.Unstructured, error) {
		client, err = w.connect(ctx, entry)
		return nil, err
	})
	return client, err
}

func (w *Writer) connect(ctx context.Context, entry plan.Entry) (dynamic.ResourceInterface, error) {
	c, err := w.Clusters.Client(entry.Cluster)
	if err != nil {
		return nil, err
	}
	gvr, err := c.Resource(ctx, entry.Resource)
	if err != nil {
		return nil, err
	}
	obj := entry.Object
	if obj == nil {
		obj = entry.Base
	}
	// An object is written in the version that it speaks.
	if version := obj.GroupVersionKind().Version; slices.Contains(entry.Resource.Versions, version) {
		gvr.Version = version
	}
	if namespace := entry.Resource.Within(obj.GetNamespace()); namespace != "" {
		return c.Dynamic.Resource(gvr).Namespace(namespace), nil
	}
	return c.Dynamic.Resource(gvr), nil
}

// current is the object under an entry as it is known now: as gathered, or as
// the server answered a write of this run.
func (w *Writer) current(entry plan.Entry) *unstructured.Unstructured {
	if obj, ok := w.latest[objectKey(entry)]; ok {
		return obj
	}
	return entry.Base
}

func (w *Writer) done(entry plan.Entry, result plan.Result, obj *unstructured.Unstructured) plan.Outcome {
	w.Vault.SealObject(entry.Resource, obj)
	if w.latest == nil {
		w.latest = map[string]*unstructured.Unstructured{}
	}
	w.latest[objectKey(entry)] = obj
	if result != plan.Unchanged {
		w.note(entry, result)
	}
	return plan.Outcome{Entry: entry, Result: result, Object: obj}
}

func (w *Writer) skipped(entry plan.Entry) plan.Outcome {
	if w.DryRun {
		w.Log.Info("would "+entry.String(), "reason", entry.Reason)
	}
	return plan.Outcome{Entry: entry, Result: plan.Skipped, Object: entry.Base}
}

func (w *Writer) failed(entry plan.Entry, err error) plan.Outcome {
	f := read.Fault(err, entry.Cluster, fmt.Sprintf("%s %s %s", entry.Verb, entry.Resource, entry.Name()), w.Vault)
	if c, err := w.Clusters.Client(entry.Cluster); err == nil && f.Class == fault.NotServed {
		c.Forget(entry.Resource)
	}
	if f.Class != fault.Conflict {
		w.Log.Warn("write failed", "call", f.Call, "cluster", f.Cluster, "code", f.Code, "error", f.Message)
	}
	return plan.Outcome{Entry: entry, Result: plan.Failed, Fault: f}
}

func (w *Writer) note(entry plan.Entry, result plan.Result) {
	w.Log.Info(string(result)+" "+entry.Resource.String()+" "+entry.Name(), "reason", entry.Reason, "subresource", entry.Subresource)
	if w.Wrote != nil {
		w.Wrote(entry, result)
	}
}

func objectKey(entry plan.Entry) string {
	return entry.Cluster + "|" + entry.Resource.String() + "|" + entry.Name()
}

// mergePatch is the RFC 7396 patch that turns base into object; empty when
// they are equal. Numbers are compared as JSON.
func mergePatch(base, object *unstructured.Unstructured) (map[string]any, error) {
	from, err := base.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot compare %s: %w", base.GetName(), err)
	}
	to, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot compare %s: %w", base.GetName(), err)
	}
	raw, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("cannot compare %s: %w", base.GetName(), err)
	}
	patch := map[string]any{}
	if err := json.Unmarshal(raw, &patch); err != nil {
		return nil, fmt.Errorf("cannot compare %s: %w", base.GetName(), err)
	}
	return patch, nil
}

// Latest is the newest known state of an object that this run wrote, or base.
func (w *Writer) Latest(clusterName string, res kind.Resource, base *unstructured.Unstructured) *unstructured.Unstructured {
	return w.current(plan.Entry{Cluster: clusterName, Resource: res, Base: base})
}
