package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/vault"
)

// deleteMachine marks a Machine as being deleted.
func (w *world) deleteMachine(name string) {
	w.t.Helper()
	w.edit(kinds.Machines, name, func(obj *unstructured.Unstructured) {
		put(obj.Object, "2026-11-21T00:00:00Z", "metadata", "deletionTimestamp")
	})
}

// writesOf lists what a reconcile did.
func writesOf(o outcome) string {
	var list []string
	for _, done := range o.outcomes {
		list = append(list, fmt.Sprintf("%s %s", done.Result, done.Entry.Resource.Kind))
	}
	return strings.Join(list, ", ")
}

func TestDeletionOrder(t *testing.T) {
	w := newWorld(t, secret("s", map[string]string{"userdata": "pw"}), netconf("blue", "vlan: 7"))
	w.machine(`template: small, cloudInit: {secretRef: {name: s}}, networks: [{name: lan, networkName: blue}]`)
	w.settle("web")
	w.kubevirt("vm-web")
	w.settle("web")
	w.edit(kinds.VirtualMachines, "vm-web", func(obj *unstructured.Unstructured) {
		obj.SetFinalizers([]string{"kubevirt.io/virtualMachineControllerFinalize"})
	})
	w.edit(kinds.VirtualMachineInstances, "vm-web", func(obj *unstructured.Unstructured) {
		obj.SetLabels(map[string]string{v1alpha1.LabelMachine: "web"})
		obj.SetFinalizers([]string{"x"})
	})
	w.deleteMachine("web")

	sees(t, "DL-2: first", writesOf(w.reconcile("web")), "deleted VirtualMachine")
	sees(t, "DL-9: Ready", w.ready("web"), "False Deleting")
	o := w.reconcile("web")
	sees(t, "DL-3: while it is there", writesOf(o), "")
	sees(t, "the class", string(o.conclusion.Class), string(plan.Waiting))
	w.remove(kinds.VirtualMachines, "vm-web")
	sees(t, "DL-2: then the instance, if it is still there", writesOf(w.reconcile("web")), "deleted VirtualMachineInstance")
	sees(t, "DL-3: while it is there", writesOf(w.reconcile("web")), "")
	w.must(kind.PersistentVolumeClaims, "web-root")
	w.remove(kinds.VirtualMachineInstances, "vm-web")
	sees(t, "DL-2: then the rest, the finalizers last", writesOf(w.reconcile("web")),
		"deleted PersistentVolumeClaim, deleted Secret, deleted NetworkAttachmentDefinition, deleted NetworkConfiguration, configured Machine")
	if diff := cmp.Diff([]string{
		"networkconfigurations.vitistack.io|team-a|blue", "secrets|team-a|s", "storageclasses.storage.k8s.io||standard",
	}, w.names()); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

func TestDeletionCanBeInterruptedAnywhere(t *testing.T) {
	for stop := range 8 {
		w := newWorld(t)
		w.machine(`template: small, disks: [{name: data, size: 1Gi}]`)
		w.settle("web")
		w.deleteMachine("web")
		// The writes of one plan, cut off after some of them; then anew.
		in := w.input("web", vault.New())
		d := Decide(instant, in, plan.Answers{kinds.VirtualMachines.String(): {}})
		done := 0
		for _, stage := range d.Plan.Stages {
			for _, entry := range stage.Entries {
				if done < stop {
					w.write(vault.New(), entry)
					done++
				}
			}
		}
		for range 4 {
			if w.get(kinds.Machines, "web") != nil {
				w.reconcile("web")
			}
		}
		if left := w.names(); len(left) != 1 {
			t.Errorf("DL-8: cut off after %d writes there are %v", stop, left)
		}
	}
}

func TestDeletionSparesWhatIsNotOurs(t *testing.T) {
	w := newWorld(t,
		`{apiVersion: v1, kind: Secret, metadata: {name: web-cloudinit}}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web}}`,
		`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: web}, spec: {template: {spec: {volumes: [{name: x, persistentVolumeClaim: {claimName: web-root}}]}}}}`,
		netconf("web", "vlan: 3"),
	)
	w.machine(`template: small, disks: [{name: data, size: 1Gi}]`)
	// DL-4: the claim that another virtual machine has taken is kept.
	w.remove(kinds.VirtualMachines, "web")
	w.settle("web")
	w.add(`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: web}, spec: {template: {spec: {volumes: [{name: x, persistentVolumeClaim: {claimName: web-root}}]}}}}`)
	w.deleteMachine("web")
	for w.get(kinds.Machines, "web") != nil {
		w.reconcile("web")
	}
	if diff := cmp.Diff([]string{
		"networkconfigurations.vitistack.io|team-a|web", "persistentvolumeclaims|team-a|web", "persistentvolumeclaims|team-a|web-root",
		"secrets|team-a|web-cloudinit", "storageclasses.storage.k8s.io||standard", "virtualmachines.kubevirt.io|team-a|web",
	}, w.names()); diff != "" {
		t.Errorf("DL-4 (-want +got):\n%s", diff)
	}
}

func TestNetworkDefinitionsInUseStay(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		other  string
		label  string
		kept   bool
	}{
		"nobody":                {reason: "it was made by the function"},
		"another Machine":       {reason: "it names the NetworkConfiguration", other: `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: db}, spec: {networks: [{name: x, networkName: blue}]}}`, kept: true},
		"a Machine that goes":   {reason: "it needs it no more", other: `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: db, deletionTimestamp: "2026-11-21T00:00:00Z", finalizers: [x]}, spec: {networks: [{name: x, networkName: blue}]}}`},
		"a virtual machine":     {reason: "it uses it", other: `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: db}, spec: {template: {spec: {networks: [{name: x, multus: {networkName: team-a/blue}}]}}}}`, kept: true},
		"made by somebody else": {reason: "it carries no managed-by", label: "helm", kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, netconf("blue", "vlan: 7"))
			w.machine(`template: small, networks: [{name: lan, networkName: blue}]`)
			w.settle("web")
			if c.other != "" {
				w.add(c.other)
			}
			if c.label != "" {
				w.edit(kinds.NetworkAttachmentDefinitions, "blue", func(obj *unstructured.Unstructured) {
					obj.SetLabels(map[string]string{v1alpha1.LabelManagedBy: c.label})
				})
			}
			w.deleteMachine("web")
			for w.get(kinds.Machines, "web") != nil {
				w.reconcile("web")
			}
			if kept := w.get(kinds.NetworkAttachmentDefinitions, "blue") != nil; kept != c.kept {
				t.Errorf("DL-5: it is kept: %t (%s)", kept, c.reason)
			}
		})
	}
}

func TestDeletionWithoutFinalizerIsNobodysBusiness(t *testing.T) {
	w := newWorld(t)
	w.add(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, deletionTimestamp: "2026-11-21T00:00:00Z", finalizers: [theirs]}, spec: {}}`)
	if o := w.reconcile("web"); o.writes != 0 || o.conclusion.Status != nil {
		t.Errorf("it was written: %v", o.conclusion)
	}
}

func TestDeletionWhateverTheProvider(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.edit(kinds.Machines, "web", func(obj *unstructured.Unstructured) {
		obj.SetFinalizers([]string{v1alpha1.UpstreamMachineFinalizer, v1alpha1.MachineFinalizer})
	})
	w.respec(`provider: proxmox`)
	w.deleteMachine("web")
	for range 3 {
		if w.get(kinds.Machines, "web") != nil {
			w.reconcile("web")
		}
	}
	if left := w.names(); len(left) != 1 {
		t.Errorf("RC-7, DL-1: there are %v", left)
	}
}

func TestDeletionWhenTheClusterIsGone(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.edit(kinds.Machines, "web", func(obj *unstructured.Unstructured) { put(obj.Object, "gone", "status", "kubevirtConfigRef") })
	w.deleteMachine("web")
	o := w.reconcile("web")
	sees(t, "DL-7: Ready", w.ready("web"), "False KubevirtConfigNotFound")
	holdsText(t, "the way out", w.message("web", "Ready"), v1alpha1.AnnotationAbandonRemote)
	sees(t, "the writes", writesOf(o), "")
	w.edit(kinds.Machines, "web", func(obj *unstructured.Unstructured) {
		obj.SetAnnotations(map[string]string{v1alpha1.AnnotationAbandonRemote: "true"})
	})
	sees(t, "DL-7: afterwards", writesOf(w.reconcile("web")), "deleted NetworkConfiguration, configured Machine")
}

func TestDeletionWithoutRights(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.deleteMachine("web")
	in := w.input("web", vault.New())
	in.VMs, in.Instance, in.Claims = nil, nil, nil
	in.Faults = []fault.Fault{{Class: fault.Refused, Call: "get secrets team-a/web-cloudinit", Message: "forbidden"}}
	d := Decide(instant, in, plan.Answers{})
	if len(d.Plan.Stages) != 2 || d.Plan.Stages[1].Name != "finalizers" {
		t.Errorf("DL-4: what may not be read counts as none there: %v", d.Plan)
	}
}

func TestManyClaimsAreDeletedInPortions(t *testing.T) {
	w := newWorld(t)
	var disks []string
	for i := range 120 {
		disks = append(disks, fmt.Sprintf("{name: d%d, size: 1Gi}", i))
	}
	w.machine(`disks: [` + strings.Join(disks, ", ") + `]`)
	w.settle("web")
	w.deleteMachine("web")
	w.reconcile("web")
	o := w.reconcile("web")
	if o.writes > maxDeletes+1 {
		t.Errorf("one reconcile deleted %d objects", o.writes)
	}
	if ready := w.ready("web"); ready != "False Deleting" || !strings.Contains(w.message("web", "Ready"), "70 of them wait") {
		t.Errorf("Ready is %s (%s), and should tell how many deletions are put off", ready, w.message("web", "Ready"))
	}
	for range 4 {
		if w.get(kinds.Machines, "web") != nil {
			w.reconcile("web")
		}
	}
	if left := w.names(); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
}
