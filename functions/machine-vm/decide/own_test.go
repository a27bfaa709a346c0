package decide

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

func TestRelation(t *testing.T) {
	const claim, vm = "apiVersion: v1, kind: PersistentVolumeClaim", "apiVersion: kubevirt.io/v1, kind: VirtualMachine"
	for name, c := range map[string]struct {
		reason, object, metadata string
		adopt                    bool
		want                     relation
	}{
		"no mark":                      {reason: "nobody's", object: claim, metadata: "labels: {app: x}", want: unmarked},
		"ID-4.1 our UID":               {reason: "the surest mark", object: claim, metadata: "annotations: {vitistack.io/machine-uid: uid-web}", want: own},
		"ID-4.1 another UID":           {reason: "whatever the labels say", object: claim, metadata: "annotations: {vitistack.io/machine-uid: other}, labels: {vitistack.io/machine: web, vitistack.io/managed-by: kubevirt-operator}", want: foreign},
		"ID-4.1 another UID, adopted":  {reason: "a person said so, and the label is ours", object: claim, adopt: true, metadata: "annotations: {vitistack.io/machine-uid: other}, labels: {vitistack.io/machine: web, vitistack.io/managed-by: kubevirt-operator}", want: own},
		"ID-4.1 adopted without label": {reason: "rule 3 decides", object: claim, adopt: true, metadata: "annotations: {vitistack.io/machine-uid: other}", want: foreign},
		"ID-4.2 our owner reference":   {reason: "by UID", object: claim, metadata: "ownerReferences: [{apiVersion: vitistack.io/v1alpha1, kind: Machine, name: web, uid: uid-web}]", want: own},
		"ID-4.2 another's":             {reason: "by UID, although the label is ours", object: vm, metadata: "labels: {vitistack.io/machine: web}, ownerReferences: [{apiVersion: vitistack.io/v1alpha1, kind: Machine, name: web, uid: other}]", want: foreign},
		"ID-4.2 other kinds":           {reason: "do not count", object: claim, metadata: "ownerReferences: [{apiVersion: apps/v1, kind: Machine, name: web, uid: uid-web}]", want: unmarked},
		"ID-4.3 upstream's label":      {reason: "on a virtual machine", object: vm, metadata: "labels: {vitistack.io/source-machine: web}", want: own},
		"ID-4.3 upstream's old label":  {reason: "on a virtual machine", object: vm, metadata: "labels: {source-machine: web}", want: own},
		"ID-4.3 a claim, managed":      {reason: "by the old key", object: claim, metadata: "labels: {source-machine: web, managed-by: kubevirt-operator}", want: own},
		"ID-4.3 a claim, by others":    {reason: "another manager", object: claim, metadata: "labels: {vitistack.io/machine: web, vitistack.io/managed-by: helm}", want: foreign},
		"ID-4.3 another label":         {reason: "another Machine's", object: vm, metadata: "labels: {vitistack.io/machine: web-2}", want: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			machine := parse(t, `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-web}}`)
			who := identify(machine, DefaultSettings())
			who.adopt = c.adopt
			if got := who.relate(parse(t, "{"+c.object+", metadata: {name: x, "+c.metadata+"}}")); got != c.want {
				t.Errorf("the relation is %d, want %d: %s", got, c.want, c.reason)
			}
		})
	}
}

func TestWhichVM(t *testing.T) {
	vm := func(name, metadata string) string {
		return `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: ` + name + `, ` + metadata + `}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}}`
	}
	const mine, other, nobody = "labels: {vitistack.io/source-machine: web}", "labels: {vitistack.io/machine: other}", "labels: {app: x}"
	for name, c := range map[string]struct {
		reason  string
		objects []string
		prefix  string
		machine string
		vm      string
		ready   string
	}{
		"ID-5 none":                           {reason: "a new one, with the prefix", prefix: "vm-", vm: "vm-web"},
		"ID-6 one of upstream's":              {reason: "under its own name", prefix: "vm-", objects: []string{vm("web", mine)}, vm: "web"},
		"ID-6 the one in status":              {reason: "the prefix was changed since", prefix: "vm-", objects: []string{vm("x-web", mine)}, machine: "status: {vmName: x-web}", vm: "x-web"},
		"TK-7 of before November 2025":        {reason: "today's names have no prefix, and its own has", objects: []string{vm("vm-web", "labels: {source-machine: web, managed-by: kubevirt-operator}")}, vm: "vm-web"},
		"TK-7 the other name is a stranger's": {reason: "only a marked one is found by it", objects: []string{vm("vm-web", nobody)}, vm: "web"},
		"ID-6 two":                            {reason: "nobody can tell which", prefix: "vm-", objects: []string{vm("web", mine), vm("vm-web", mine)}, ready: "False VirtualMachineConflict"},
		"ID-6 adoption by name":               {reason: "it carries no marks", prefix: "vm-", objects: []string{vm("vm-web", nobody)}, vm: "vm-web"},
		"ID-6 the name is another Machine's":  {reason: "it is in the way", prefix: "vm-", objects: []string{vm("vm-web", other)}, ready: "False VirtualMachineConflict"},
		"ID-6 a stranger of the bare name":    {reason: "ignored", prefix: "vm-", objects: []string{vm("web", nobody)}, vm: "vm-web"},
		"ID-6 a foreign one of the name":      {reason: "ignored", prefix: "vm-", objects: []string{vm("web", other)}, vm: "vm-web"},
		"ID-6 no prefix, a stranger":          {reason: "in the way, and not adopted", objects: []string{vm("web", nobody)}, ready: "False VirtualMachineConflict"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			w.settings.VMNamePrefix = c.prefix
			w.add(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-web}, ` + c.machine + `}`)
			before := len(w.all(kinds.VirtualMachines, ""))
			w.settle("web")
			if c.ready != "" {
				sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
				if len(w.all(kinds.VirtualMachines, "")) != before || len(w.all(kind.PersistentVolumeClaims, "")) > 0 {
					t.Errorf("something was made (%s): %v", c.reason, w.names())
				}
				return
			}
			sees(t, "the virtual machine ("+c.reason+")", w.status("web").VMName, c.vm)
			sees(t, "its mark", w.must(kinds.VirtualMachines, c.vm).GetAnnotations()[v1alpha1.AnnotationMachineUID], "uid-web")
		})
	}
}

func TestAVMThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	w := newWorld(t, `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm-web, labels: {vitistack.io/machine: web}, deletionTimestamp: "2026-11-21T00:00:00Z", finalizers: [x]}, status: {printableStatus: Terminating}}`)
	w.machine(``)
	w.settle("web")
	sees(t, "UP-8: Ready", w.ready("web"), "False ObjectTerminating")
	sees(t, "phase", w.status("web").Phase, v1alpha1.PhaseStopped)
	w.remove(kinds.VirtualMachines, "vm-web")
	w.settle("web")
	sees(t, "Ready once it is gone", w.ready("web"), "False Creating")
}

func TestARestoredSupervisorAdoptsWhatAPersonAllows(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small, cloudInit: {userData: ` + strings.Repeat("x", 3000) + `}`)
	w.settle("web")
	w.remove(kinds.Machines, "web")
	w.add(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-new}, spec: {template: small, cloudInit: {userData: ` + strings.Repeat("x", 3000) + `}}}`)
	w.settle("web")
	// ER-3: storage goes before cloud-init, and that before the virtual machine.
	sees(t, "ID-4: Ready without permission", w.ready("web"), "False ClaimConflict")
	holdsText(t, "VirtualMachineReady", w.message("web", v1alpha1.ConditionVirtualMachineReady), "InvalidSpec: Secret ")
	w.add(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-new, annotations: {vitistack.io/adopt: "true"}}, spec: {template: small, cloudInit: {userData: ` + strings.Repeat("x", 3000) + `}}}`)
	w.settle("web")
	sees(t, "Ready with it", w.ready("web"), "False Creating")
	for res, name := range map[string]string{"vm": "vm-web", "claim": "web-root", "secret": "web-cloudinit", "record": "web"} {
		kinds := map[string]kind.Resource{"vm": kinds.VirtualMachines, "claim": kind.PersistentVolumeClaims, "secret": kind.Secrets, "record": kinds.NetworkConfigurations}
		sees(t, "the UID on the "+res, w.must(kinds[res], name).GetAnnotations()[v1alpha1.AnnotationMachineUID], "uid-new")
	}
	sees(t, "a virtual machine of the function's own stays so", w.must(kinds.VirtualMachines, "vm-web").GetAnnotations()[v1alpha1.AnnotationAdopted], "")
}

func TestLongNames(t *testing.T) {
	name := strings.Repeat("a.long-name", 23)[:253]
	w := newWorld(t)
	w.add(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: ` + name + `, uid: uid-long}, spec: {template: small, cloudInit: {userData: ` + strings.Repeat("x", 3000) + `}}}`)
	w.settle(name)
	sees(t, "ID-3: Ready", w.ready(name), "False Creating")
	for key, obj := range w.objects {
		if len(obj.GetName()) > 253 {
			t.Errorf("ID-3: %s has a name of %d characters", key, len(obj.GetName()))
		}
		for label, value := range obj.GetLabels() {
			if len(value) > 63 {
				t.Errorf("ID-3: label %s of %s has %d characters", label, key, len(value))
			}
		}
	}
	vm := w.all(kinds.VirtualMachines, "")[0]
	sees(t, "the full name", vm.GetAnnotations()[v1alpha1.AnnotationMachineName], name)
	machine := w.must(kinds.Machines, name)
	put(machine.Object, "2026-11-21T00:00:00Z", "metadata", "deletionTimestamp")
	w.store(machine)
	for range 4 {
		if w.get(kinds.Machines, name) != nil {
			w.reconcile(name)
		}
	}
	if left := w.names(); len(left) != 1 {
		t.Errorf("DL-8: after deletion there are %v", left)
	}
}
