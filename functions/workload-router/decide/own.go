package decide

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// bring makes an object that is wanted, or changes the one that lies under its name,
// if that is the Workload's. same tells, of one without any owner, whether it is what
// dockyards-kubevirt would have made. set writes what is wanted into an object and
// leaves alone what already says the same.
func (v *view) bring(res kind.Resource, live *unstructured.Unstructured, version, name, why string,
	same func(live *unstructured.Unstructured) bool, set func(obj *unstructured.Unstructured),
) (ours bool) {
	v.want(res, name)
	switch {
	case live == nil:
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetAPIVersion(apiVersion(res, version))
		obj.SetKind(res.Kind)
		obj.SetNamespace(v.namespace)
		obj.SetName(name)
		v.own(obj)
		set(obj)
		v.writes = append(v.writes, plan.Entry{Verb: plan.Create, Resource: res, Object: obj, Reason: why})
		return true
	case !v.mine(live) && (len(live.GetOwnerReferences()) > 0 || !same(live)):
		v.said.names = append(v.said.names, fmt.Sprintf("%s %q belongs to somebody else", res.Kind, name))
		return false
	case dockyards.Going(live):
		v.said.errors = append(v.said.errors, fmt.Sprintf("%s %q is being deleted, and is made anew when it is gone", res.Kind, name))
		return true
	}
	changed := live.DeepCopy()
	v.own(changed)
	set(changed)
	v.change(res, live, changed, why)
	return true
}

// change plans a change, if there is one. A change that gives up hostnames goes
// before any that takes some.
func (v *view) change(res kind.Resource, live, changed *unstructured.Unstructured, why string) {
	if same(live.Object, changed.Object) {
		return
	}
	entry := plan.Entry{Verb: plan.Patch, Resource: res, Base: live, Object: changed, Reason: why}
	if gone(hostnames(live), hostnames(changed)) {
		v.revocations = append(v.revocations, entry)
		return
	}
	v.writes = append(v.writes, entry)
}

// Matters tells which objects of its namespace a decision about a Workload looks at:
// those that it owns, and those under a name that it may want.
func Matters(workload *unstructured.Unstructured) func(obj *unstructured.Unstructured) bool {
	return func(obj *unstructured.Unstructured) bool {
		return MayBeFor(obj.GetName(), workload.GetName()) || dockyards.OwnedBy(obj, workload)
	}
}

// own adds the Workload to an object's owners. Those of others stay.
func (v *view) own(obj *unstructured.Unstructured) {
	if !dockyards.OwnedBy(obj, v.in.Workload) {
		dockyards.SetOwner(obj, dockyards.Reference(dockyards.Workloads, v.in.Workload))
	}
}

// alone tells whether the Workload is an object's only owner.
func (v *view) alone(obj *unstructured.Unstructured) bool {
	refs := obj.GetOwnerReferences()
	return len(refs) == 1 && v.mine(obj) && !isController(refs[0])
}

func isController(ref metav1.OwnerReference) bool { return ref.Controller != nil && *ref.Controller }

func apiVersion(res kind.Resource, version string) string {
	if res.Group == "" {
		return version
	}
	return res.Group + "/" + version
}
