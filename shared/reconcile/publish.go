package reconcile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// said remembers, for the life of the process, which Events have been recorded: a
// problem that lasts is not told again at each pass over an unchanged object. The
// name of an Event holds the object's resourceVersion, so it cannot grow stale.
var said = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

const saidMax = 10000

// told reports whether an Event has been recorded already.
func told(name string) bool {
	said.Lock()
	defer said.Unlock()
	return said.names[name]
}

func noteTold(name string) {
	said.Lock()
	defer said.Unlock()
	if len(said.names) >= saidMax {
		clear(said.names)
	}
	said.names[name] = true
}

// publish records Kubernetes Events on the reconciled object, best effort: an
// Event that cannot be written changes nothing in the answer.
func (r *run[In]) publish(ctx context.Context, root *unstructured.Unstructured, events []plan.Event) {
	client, err := r.clusters.Client(cluster.Management)
	if err != nil {
		return
	}
	for _, e := range events {
		namespace := root.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		obj := r.event(root, namespace, e)
		key := r.fn.Spec.Name + "|" + namespace + "/" + obj.GetName()
		if told(key) {
			continue
		}
		_, err := client.Dynamic.Resource(kind.Events.GVR()).Namespace(namespace).
			Create(ctx, obj, metav1.CreateOptions{FieldManager: r.fn.Spec.FieldManager()})
		r.session.published(obj, err)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			r.log.Debug("cannot record an Event", "reason", e.Reason, "error", r.vault.Scrub(err.Error()))
			continue
		}
		noteTold(key)
	}
}

// event builds an events.k8s.io/v1 Event. Its name is derived from what it
// tells of which state, so that a doubled call makes no second one.
func (r *run[In]) event(root *unstructured.Unstructured, namespace string, e plan.Event) *unstructured.Unstructured {
	state := root.GetResourceVersion()
	if e.Key != "" {
		state = e.Key
	}
	sum := sha256.Sum256([]byte(string(root.GetUID()) + state + e.Reason + e.Message))
	name := root.GetName()
	if len(name) > 200 {
		name = name[:200]
	}
	kindOf := "Normal"
	if e.Warning {
		kindOf = "Warning"
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kind.Events.APIVersion(), "kind": kind.Events.Kind,
		"metadata":            map[string]any{"namespace": namespace, "name": name + "." + hex.EncodeToString(sum[:8])},
		"eventTime":           metav1.NewMicroTime(r.now()).UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
		"reportingController": cmp.Or(r.fn.Spec.Reporter, "slipway.dev/"+r.fn.Spec.Name),
		"reportingInstance":   r.fn.Spec.Name,
		"action":              cmp.Or(e.Action, "Reconcile"),
		"type":                kindOf,
		"reason":              e.Reason,
		"note":                e.Message,
		"regarding": map[string]any{
			"apiVersion": root.GetAPIVersion(), "kind": root.GetKind(), "namespace": root.GetNamespace(),
			"name": root.GetName(), "uid": string(root.GetUID()), "resourceVersion": root.GetResourceVersion(),
		},
	}}
	if e.Related != nil {
		obj.Object["related"] = map[string]any{
			"apiVersion": e.Related.APIVersion, "kind": e.Related.Kind, "namespace": e.Related.Namespace,
			"name": e.Related.Name, "uid": e.Related.UID,
		}
	}
	return obj
}
