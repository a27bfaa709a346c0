package machinevm

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/decide"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
)

// gatherer reads all that one decision about a Machine needs.
type gatherer struct{ settings decide.Settings }

// reading is one gathering under way.
type reading struct {
	r       *read.Reader
	machine *unstructured.Unstructured
	in      decide.Input
	// err is the first error that ends the gathering.
	err error
}

// gather reads what may be written first (record, virtual machine, instance,
// claims, DataVolume, Secret, definitions) and what is decided from last
// (NetworkConfigurations, classes, cloud-init's sources). StorageClasses and
// the lists of a whole namespace are read only if the decision asks for them.
func (g gatherer) gather(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	x := &reading{r: r, machine: root, in: decide.Input{Settings: g.settings, Machine: root}}
	x.ahead(ctx)
	x.place(ctx)
	x.in.Record = x.get(ctx, "", kinds.NetworkConfigurations, root.GetNamespace(), v1alpha1.RecordName(root.GetName()))
	if x.err != nil || x.in.Target.Problem != nil || x.in.Target.Nothing {
		return x.finish(ctx)
	}
	x.virtualMachine(ctx)
	x.claims(ctx)
	x.beside(ctx)
	x.attachments(ctx)
	return x.finish(ctx)
}

// ahead starts the reads that every round of a living Machine makes, so that
// they take the time of one.
func (x *reading) ahead(ctx context.Context) {
	if x.deleting() {
		return
	}
	x.r.Ahead(ctx,
		plan.Need{Resource: kinds.KubevirtConfigs},
		plan.Need{Resource: kinds.NetworkConfigurations, Namespace: x.machine.GetNamespace(), Name: v1alpha1.RecordName(x.machine.GetName())},
	)
	if x.in.Settings.SingleCluster != decide.SingleFalse && !decide.Stated(x.machine) {
		x.aheadTarget(ctx, decide.Management)
	}
}

// aheadTarget does the same for what lies on the Machine's cluster.
func (x *reading) aheadTarget(ctx context.Context, cluster string) {
	ns := x.machine.GetNamespace()
	needs := []plan.Need{labelledClaims(x.machine, cluster, v1alpha1.LabelSourceMachine)}
	for _, candidate := range decide.Candidates(x.machine, x.in.Settings) {
		needs = append(needs, plan.Need{Cluster: cluster, Resource: kinds.VirtualMachines, Namespace: ns, Name: candidate})
	}
	if vm, _, _ := unstructured.NestedString(x.machine.Object, "status", "vmName"); vm != "" {
		needs = append(needs, plan.Need{Cluster: cluster, Resource: kinds.VirtualMachineInstances, Namespace: ns, Name: vm})
	}
	x.r.Ahead(ctx, needs...)
}

func labelledClaims(machine *unstructured.Unstructured, cluster, key string) plan.Need {
	return plan.Need{
		Cluster: cluster, Resource: kind.PersistentVolumeClaims, Namespace: machine.GetNamespace(),
		Selector: key + "=" + v1alpha1.LabelValue(machine.GetName()),
	}
}

// finish reads what does not lie on the target.
func (x *reading) finish(ctx context.Context) (decide.Input, error) {
	if !x.deleting() && x.in.Target.Problem == nil {
		x.sources(ctx)
	}
	if x.err != nil {
		return decide.Input{}, x.err
	}
	uid, err := x.r.ClusterUID(ctx, "")
	if err != nil {
		return decide.Input{}, err
	}
	x.in.Installation = uid
	return x.in, nil
}

func (x *reading) deleting() bool { return x.machine.GetDeletionTimestamp() != nil }

// virtualMachine reads those that may be the Machine's, and the instance.
func (x *reading) virtualMachine(ctx context.Context) {
	if x.in.Target.KubeVirtMissing {
		return
	}
	ns, faults := x.machine.GetNamespace(), len(x.in.Faults)
	for _, name := range decide.Candidates(x.machine, x.in.Settings) {
		x.in.VMs = add(x.in.VMs, x.get(ctx, x.in.Target.Cluster, kinds.VirtualMachines, ns, name))
	}
	names := []string{decide.Chosen(x.machine, x.in.Settings, x.in.VMs)}
	if x.deleting() {
		names = decide.Candidates(x.machine, x.in.Settings)
	}
	for _, name := range names {
		if x.in.Instance == nil && (x.deleting() || len(x.in.VMs) > 0) {
			x.in.Instance = x.get(ctx, x.in.Target.Cluster, kinds.VirtualMachineInstances, ns, name)
		}
	}
	x.in.VMsUnread = len(x.in.Faults) > faults
}

// claims reads those that are labelled for the Machine, and those whose names
// its disks have or would get: such a claim may be somebody else's.
func (x *reading) claims(ctx context.Context) {
	cluster, ns := x.in.Target.Cluster, x.machine.GetNamespace()
	keys := []string{v1alpha1.LabelSourceMachine}
	if x.deleting() {
		keys = append(keys, v1alpha1.LabelMachine, v1alpha1.LabelLegacySourceMachine)
	}
	for _, key := range keys {
		for _, claim := range x.list(ctx, cluster, kind.PersistentVolumeClaims, ns, key+"="+v1alpha1.LabelValue(x.machine.GetName())) {
			x.in.Claims = add(x.in.Claims, &claim)
		}
	}
	for _, name := range decide.ClaimNames(x.machine, x.in.Settings, x.in.VMs, x.deleting()) {
		if !has(x.in.Claims, name) {
			x.in.Claims = add(x.in.Claims, x.get(ctx, cluster, kind.PersistentVolumeClaims, ns, name))
		}
	}
	chosen := decide.Chosen(x.machine, x.in.Settings, x.in.VMs)
	if legacy := x.machine.GetName(); !has(x.in.VMs, chosen) && !has(x.in.Claims, legacy) {
		x.in.Claims = add(x.in.Claims, x.get(ctx, cluster, kind.PersistentVolumeClaims, ns, legacy))
	}
}

// beside reads the DataVolume and the Secret that may lie beside the virtual
// machine.
func (x *reading) beside(ctx context.Context) {
	cluster, ns, name := x.in.Target.Cluster, x.machine.GetNamespace(), x.machine.GetName()
	if x.deleting() || x.machine.GetAnnotations()[v1alpha1.AnnotationBootSource] != "" {
		x.in.ISO = x.get(ctx, cluster, kinds.DataVolumes, ns, v1alpha1.ISOName(name))
	}
	if x.deleting() || (decide.CloudInitNeedsSecret(x.machine) && !decide.MadeByOthers(x.machine, x.in.Settings, x.in.VMs)) {
		x.in.CloudInit = x.get(ctx, cluster, kind.Secrets, ns, v1alpha1.CloudInitName(name))
	}
}

// attachments reads the network definitions: those that the Machine may use,
// or, when it goes, all of the namespace, for those nobody needs then. Which one a NetworkNamespace uses
// only it can tell; that definition is never changed, so it may be read after.
func (x *reading) attachments(ctx context.Context) {
	cluster, ns := x.in.Target.Cluster, x.machine.GetNamespace()
	if x.deleting() {
		x.in.Attachments = x.list(ctx, cluster, kinds.NetworkAttachmentDefinitions, ns, "")
		return
	}
	names := decide.Attachments(x.machine)
	namespace, _, _ := unstructured.NestedString(x.machine.Object, "spec", "network", "networkNamespaceName")
	if namespace != "" {
		x.in.NetworkNamespace = x.get(ctx, "", kinds.NetworkNamespaces, ns, namespace)
		if name := decide.NamespaceAttachment(x.in.NetworkNamespace); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		x.in.Attachments = add(x.in.Attachments, x.get(ctx, cluster, kinds.NetworkAttachmentDefinitions, ns, name))
	}
	x.in.AttachmentsServed = len(x.in.Attachments) > 0
	if len(x.in.Attachments) < len(names) && !x.in.AttachmentsServed {
		x.in.AttachmentsServed = x.serves(ctx, cluster, kinds.NetworkAttachmentDefinitions)
	}
}

// sources reads what the spec names.
func (x *reading) sources(ctx context.Context) {
	ns := x.machine.GetNamespace()
	for _, name := range decide.Attachments(x.machine) {
		if !has(x.in.Networks, name) {
			x.in.Networks = add(x.in.Networks, x.get(ctx, "", kinds.NetworkConfigurations, ns, name))
		}
	}
	if decide.Static(x.in.NetworkNamespace) {
		x.in.Addresses = x.get(ctx, "", kinds.NetworkConfigurations, ns, v1alpha1.RecordName(x.machine.GetName()))
	}
	for _, name := range decide.CloudInitSecrets(x.machine) {
		x.in.Secrets = add(x.in.Secrets, x.get(ctx, "", kind.Secrets, ns, name))
	}
	for _, name := range decide.CloudInitConfigMaps(x.machine) {
		x.in.ConfigMaps = add(x.in.ConfigMaps, x.get(ctx, "", kind.ConfigMaps, ns, name))
	}
	for _, field := range []string{"machineClass", "instanceType"} {
		name, _, _ := unstructured.NestedString(x.machine.Object, "spec", field)
		if name != "" && !has(x.in.Classes, name) {
			x.in.Classes = add(x.in.Classes, x.get(ctx, "", kinds.MachineClasses, "", name))
		}
	}
}

func (x *reading) get(ctx context.Context, cluster string, res kind.Resource, namespace, name string) *unstructured.Unstructured {
	if x.stopped() {
		return nil
	}
	obj, err := x.r.Get(ctx, cluster, res, namespace, name)
	x.note(err)
	return obj
}

func (x *reading) list(ctx context.Context, cluster string, res kind.Resource, namespace, selector string) []unstructured.Unstructured {
	if x.stopped() {
		return nil
	}
	items, err := x.r.List(ctx, cluster, res, namespace, selector)
	x.note(err)
	return items
}

func (x *reading) serves(ctx context.Context, cluster string, res kind.Resource) bool {
	if x.stopped() {
		return false
	}
	served, err := x.r.Serves(ctx, cluster, res)
	x.note(err)
	return served
}

// stopped tells whether further reads are of no use.
func (x *reading) stopped() bool { return x.err != nil || x.in.Target.Unreachable != nil }

// note sorts an error: what a server refuses is part of the input, a target
// that does not answer too; everything else ends the gathering.
func (x *reading) note(err error) {
	if err == nil {
		return
	}
	var f *fault.Fault
	switch {
	case !errors.As(err, &f):
		x.err = err
	case f.Class == fault.Refused || f.Class == fault.NotServed:
		x.in.Faults = append(x.in.Faults, *f)
	case f.Class == fault.Unavailable && f.Cluster != "":
		x.in.Target.Unreachable = f
	default:
		x.err = err
	}
}

func add(objects []unstructured.Unstructured, obj *unstructured.Unstructured) []unstructured.Unstructured {
	if obj == nil || has(objects, obj.GetName()) {
		return objects
	}
	return append(objects, *obj)
}

func has(objects []unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(objects, func(obj unstructured.Unstructured) bool { return obj.GetName() == name })
}
