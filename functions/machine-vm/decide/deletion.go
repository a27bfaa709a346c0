package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// kindClaims is short for the claims' resource.
var kindClaims = kind.PersistentVolumeClaims

// maxDeletes is how many claims one reconcile deletes, below what the runtime
// allows a plan. What is put off stands in the condition; the events of the
// deleted ones bring the next.
const maxDeletes = 50

// dismantle removes what was made for a Machine that goes, in an order in
// which every step can be interrupted and taken up again. Only own objects
// are touched; everything else is left, and never holds the Machine up.
func (v *view) dismantle() {
	if !v.abandoned() {
		if target := v.in.Target; target.Problem != nil {
			v.problem(*target.Problem)
			v.blind = true
			return
		}
		if v.in.Target.Unreachable != nil || (!v.in.Target.Nothing && !v.dismantleTarget()) {
			return
		}
		if v.in.Target.More {
			v.plan.Continue = true // another cluster comes next
			return
		}
	}
	v.dismantleRecord()
	v.plan.Add("finalizers", v.released())
}

// abandoned tells that a person gives up what is on another cluster. On the
// Machine's own cluster there is nothing to give up.
func (v *view) abandoned() bool {
	return v.in.Machine.GetAnnotations()[v1alpha1.AnnotationAbandonRemote] == v1alpha1.True && !v.in.Target.Same
}

// dismantleTarget removes what is on the cluster, and tells whether all of it
// is planned: the virtual machine and its instance have to be gone first.
func (v *view) dismantleTarget() bool {
	v.ownVM()
	if v.vm != nil {
		v.plan.Continue = true
		var entries []plan.Entry
		v.remove(v.in.Target.Cluster, kinds.VirtualMachines, v.vm, &entries, "the Machine is being deleted")
		v.plan.Add("virtual machine", entries...)
		return false
	}
	if instance := v.ownInstance(); instance != nil {
		v.plan.Continue = true
		var entries []plan.Entry
		v.remove(v.in.Target.Cluster, kinds.VirtualMachineInstances, instance, &entries, "the Machine is being deleted and its virtual machine is gone")
		v.plan.Add("instance", entries...)
		return false
	}
	leftovers, ok := v.ownLeftovers()
	if !ok {
		return false
	}
	if len(leftovers) > maxDeletes {
		v.putOff = len(leftovers) - maxDeletes
		v.reason("%d deletions are put off: one reconcile carries out %d at most", v.putOff, maxDeletes)
		v.plan.Add("claims", leftovers[:maxDeletes]...)
		return false
	}
	definitions, ok := v.unusedAttachments()
	if !ok {
		return false
	}
	v.plan.Add("claims", leftovers...)
	v.plan.Add("networks", definitions...)
	return true
}

// ownVM finds an own virtual machine among those whose names may be the
// Machine's. Only marks count: one that merely has the name is not deleted.
func (v *view) ownVM() {
	for _, name := range Candidates(v.in.Machine, v.in.Settings) {
		v.vmName = name
		if vm := find(v.in.VMs, name); vm != nil && v.id.relate(vm) == own {
			v.vm = vm
			return
		}
	}
}

func (v *view) ownInstance() *unstructured.Unstructured {
	if v.in.Instance == nil || v.id.relate(v.in.Instance) != own {
		return nil
	}
	v.vmName = v.in.Instance.GetName()
	return v.in.Instance
}

// ownLeftovers are the own DataVolume, claims and Secret. A claim that another
// virtual machine references is kept.
func (v *view) ownLeftovers() ([]plan.Entry, bool) {
	var entries []plan.Entry
	const reason = "the Machine is being deleted"
	if v.in.ISO != nil && v.id.relate(v.in.ISO) == own {
		v.remove(v.in.Target.Cluster, kinds.DataVolumes, v.in.ISO, &entries, reason)
	}
	for _, claim := range sorted(v.in.Claims) {
		if v.id.relate(claim) != own {
			v.reason("PersistentVolumeClaim %q belongs to %s and is kept", claim.GetName(), whose(claim))
			continue
		}
		if claim.GetDeletionTimestamp() != nil {
			continue
		}
		vms, ok := v.otherVMs()
		if !ok {
			return nil, false
		}
		if user := userOf(vms, claim.GetName()); user != "" {
			v.reason("PersistentVolumeClaim %q is used by VirtualMachine %q and is kept", claim.GetName(), user)
			continue
		}
		v.remove(v.in.Target.Cluster, kindClaims, claim, &entries, reason)
	}
	if secret := v.in.CloudInit; secret != nil && v.id.relate(secret) == own {
		v.remove(v.in.Target.Cluster, kind.Secrets, secret, &entries, reason)
	}
	return entries, true
}

// otherVMs are the virtual machines of the namespace. What may not be read
// counts as none there.
func (v *view) otherVMs() ([]unstructured.Unstructured, bool) {
	need := v.allVMs()
	if answer, known := v.known.To(need); known && answer.Fault != nil && answer.Fault.Class != fault.Unavailable {
		return nil, true
	}
	answer, ok := v.ask(need)
	return answer.Items, ok
}

// ClaimUser is the first of some virtual machines that uses a claim; empty when
// none does.
func ClaimUser(vms []unstructured.Unstructured, claim string) string { return userOf(vms, claim) }

func userOf(vms []unstructured.Unstructured, claim string) string {
	for _, vm := range sorted(vms) {
		if uses(vm, claim) {
			return vm.GetName()
		}
	}
	return ""
}

// unusedAttachments are the definitions of the namespace that were made for
// Machines and that nobody needs any more: not only those of the networks that
// the Machine has now, since it may have had others.
func (v *view) unusedAttachments() ([]plan.Entry, bool) {
	var entries []plan.Entry
	for _, definition := range sorted(v.in.Attachments) {
		if !v.madeAttachment(definition) || definition.GetDeletionTimestamp() != nil {
			continue
		}
		vms, ok := v.otherVMs()
		machines, ok2 := v.ask(plan.Need{Resource: kinds.Machines, Namespace: v.namespace})
		if !ok || !ok2 {
			return nil, false
		}
		wanted, ok := v.attachmentWanted(definition, vms, machines.Items)
		if !ok {
			return nil, false
		}
		if wanted {
			continue
		}
		v.remove(v.in.Target.Cluster, kinds.NetworkAttachmentDefinitions, definition, &entries, "no virtual machine and no Machine uses the network any more")
	}
	return entries, true
}

// attachmentWanted tells whether a virtual machine uses a definition, or a
// Machine that stays will.
func (v *view) attachmentWanted(definition *unstructured.Unstructured, vms, machines []unstructured.Unstructured) (wanted, ok bool) {
	name := definition.GetName()
	for i := range vms {
		if slices.Contains(attachmentsOf(&vms[i]), name) {
			return true, true
		}
	}
	for i := range machines {
		other := &machines[i]
		if other.GetName() == v.id.name || other.GetDeletionTimestamp() != nil {
			continue
		}
		if slices.Contains(Attachments(other), name) {
			return true, true
		}
		namespace := text(other.Object, "spec", "network", "networkNamespaceName")
		if namespace == "" {
			continue
		}
		answer, ok := v.ask(plan.Need{Resource: kinds.NetworkNamespaces, Namespace: v.namespace, Name: namespace})
		if !ok {
			return false, false
		}
		if NamespaceAttachment(answer.Object) == name {
			return true, true
		}
	}
	return false, true
}

func (v *view) dismantleRecord() {
	record := v.in.Record
	if record == nil {
		return
	}
	if v.id.relate(record) != own {
		v.reason("NetworkConfiguration %q belongs to %s and is kept", record.GetName(), whose(record))
		return
	}
	var entries []plan.Entry
	v.remove("", kinds.NetworkConfigurations, record, &entries, "the Machine is being deleted")
	v.plan.Add("record", entries...)
}

// released takes both finalizers off, in one patch.
func (v *view) released() plan.Entry {
	free := v.in.Machine.DeepCopy()
	left := slices.DeleteFunc(slices.Clone(free.GetFinalizers()), isFinalizer)
	free.SetFinalizers(left)
	if len(left) == 0 {
		drop(free.Object, "metadata", "finalizers")
	}
	return plan.Entry{
		Verb: plan.Patch, Resource: kinds.Machines, Base: v.in.Machine, Object: free,
		Reason: "nothing made for the Machine is left",
	}
}
