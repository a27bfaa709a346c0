package decide

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

// claimsOf lists claims as "name size class mode volumeMode [boot]".
func (w *world) claimsOf() string {
	var list []string
	for _, c := range w.all(kind.PersistentVolumeClaims, "") {
		line := fmt.Sprint(c.GetName(), " ", at(c.Object, "spec", "resources", "requests", "storage"), " ",
			text(c.Object, "spec", "storageClassName"), " ", strings.Join(texts(c.Object, "spec", "accessModes"), "+"))
		if mode := text(c.Object, "spec", "volumeMode"); mode != "" {
			line += " " + mode
		}
		if c.GetLabels()[v1alpha1.LabelDiskType] != "" {
			line += " boot"
		}
		list = append(list, line)
	}
	return strings.Join(list, ", ")
}

func TestDisks(t *testing.T) {
	long := strings.Repeat("d", 64)
	for name, c := range map[string]struct {
		reason string
		spec   string
		want   string
		ready  string
	}{
		"DK-1 other names are appended": {
			reason: "small and data", spec: `template: small, disks: [{name: data, size: 100Gi}]`,
			want: "web-data 100Gi standard ReadWriteOnce, web-root 20Gi standard ReadWriteOnce boot",
		},
		"DK-1 the same name overrides field by field": {
			reason: "size from the spec, the rest from the template", spec: `instanceType: medium, disks: [{name: root, size: 50Gi}]`,
			want: "web-root 50Gi standard ReadWriteOnce boot",
		},
		"DK-1 an entry without name is root": {reason: "index 0", spec: `template: small, disks: [{sizeGB: 30}]`, want: "web-root 30Gi standard ReadWriteOnce boot"},
		"DK-2 a boot disk of another name replaces root": {
			reason: "unless root is listed", spec: `template: small, disks: [{name: sys, size: 5Gi, boot: true}]`,
			want: "web-sys 5Gi standard ReadWriteOnce boot",
		},
		"DK-2 unless root is listed as well": {
			reason: "both are wanted", spec: `template: small, disks: [{name: sys, size: 5Gi, boot: true}, {name: root}]`,
			want: "web-root 20Gi standard ReadWriteOnce, web-sys 5Gi standard ReadWriteOnce boot",
		},
		"DK-3 exactly the spec": {
			reason: "no template", spec: `disks: [{size: 1Gi}, {size: 2Gi}]`,
			want: "web-disk1 2Gi standard ReadWriteOnce, web-root 1Gi standard ReadWriteOnce boot",
		},
		"DK-3 nothing at all":        {reason: "one default disk", spec: ``, want: "web-root 10Gi standard ReadWriteOnce boot"},
		"DK-4 the first disk boots":  {reason: "neither boot nor root", spec: `disks: [{name: a, size: 1Gi}, {name: b, size: 1Gi}]`, want: "web-a 1Gi standard ReadWriteOnce boot, web-b 1Gi standard ReadWriteOnce"},
		"DK-4 root boots":            {reason: "no boot: true", spec: `disks: [{name: a, size: 1Gi}, {name: root, size: 1Gi}]`, want: "web-a 1Gi standard ReadWriteOnce, web-root 1Gi standard ReadWriteOnce boot"},
		"DK-7 modes":                 {reason: "as stated", spec: `disks: [{size: 1Gi, accessMode: ReadWriteMany, volumeMode: Block}]`, want: "web-root 1Gi standard ReadWriteMany Block boot"},
		"DK-5 one name twice":        {reason: "each would hide the other", spec: `disks: [{name: a, size: 1Gi}, {name: a, size: 2Gi}]`, ready: "False InvalidSpec"},
		"DK-5 the template's twice":  {reason: "one override is enough", spec: `template: small, disks: [{name: root}, {name: root}]`, ready: "False InvalidSpec"},
		"DK-5 two boot disks":        {reason: "there can be one", spec: `disks: [{name: a, size: 1Gi, boot: true}, {name: b, size: 1Gi, boot: true}]`, ready: "False InvalidSpec"},
		"DK-5 no size":               {reason: "nothing to ask for", spec: `disks: [{name: a}]`, ready: "False InvalidSpec"},
		"DK-5 size zero":             {reason: "nothing to ask for", spec: `disks: [{name: a, size: 0}]`, ready: "False InvalidSpec"},
		"DK-5 less than one byte":    {reason: "an API server rounds it up", spec: `disks: [{name: a, size: 1n}]`, ready: "False InvalidSpec"},
		"DK-5 negative size":         {reason: "absurd", spec: `disks: [{name: a, size: "-5Gi"}]`, ready: "False InvalidSpec"},
		"DK-5 unreadable size":       {reason: "the schema lets it pass", spec: `disks: [{name: a, size: "1e1.5"}]`, ready: "False InvalidSpec"},
		"DK-5 upper case":            {reason: "KubeVirt refuses it after claims were made", spec: `disks: [{name: Data, size: 1Gi}]`, ready: "False InvalidSpec"},
		"DK-5 too long":              {reason: "64 characters", spec: `disks: [{name: ` + long + `, size: 1Gi}]`, ready: "False InvalidSpec"},
		"DK-5 cloudinitdisk":         {reason: "reserved", spec: `disks: [{name: cloudinitdisk, size: 1Gi}]`, ready: "False InvalidSpec"},
		"DK-5 cdrom-iso":             {reason: "reserved", spec: `disks: [{name: cdrom-iso, size: 1Gi}]`, ready: "False InvalidSpec"},
		"DK-5 iso":                   {reason: "the ISO's claim would be its", spec: `disks: [{name: iso, size: 1Gi}]`, ready: "False InvalidSpec"},
		"DK-5 sata on arm64":         {reason: "arm64 has none", spec: `os: {architecture: arm64}, disks: [{name: a, size: 1Gi, type: sata}]`, ready: "False InvalidSpec"},
		"DK-9 a class that is not":   {reason: "named", spec: `disks: [{name: a, size: 1Gi, storageClass: none}]`, ready: "False StorageClassNotFound"},
		"DK-8 a class that is named": {reason: "as stated", spec: `disks: [{size: 1Gi, storageClass: fast}]`, want: "web-root 1Gi fast ReadWriteOnce boot"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}}`)
			w.machine(c.spec)
			o := w.reconcile("web")
			if c.ready == "" {
				sees(t, "the claims ("+c.reason+")", w.claimsOf(), c.want)
				return
			}
			sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
			sees(t, "StorageReady", w.cond("web", v1alpha1.ConditionStorageReady)[:5], "False")
			// RC-2: nothing is created, and no finalizer is set.
			if len(o.decision.Plan.Stages) != 0 {
				t.Errorf("something is written: %v", o.decision.Plan)
			}
		})
	}
}

func TestBus(t *testing.T) {
	for diskType, want := range map[string]string{
		"": "virtio", "virtio": "virtio", "sata": "sata", "scsi": "scsi", "usb": "usb", "nvme": "virtio", "gp3": "virtio",
	} {
		if got := busOf(diskType); got != want {
			t.Errorf("DK-6: type %q has bus %q, want %q", diskType, got, want)
		}
	}
}

func TestStorageClassOfNewClaims(t *testing.T) {
	const older = `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s, creationTimestamp: "%s", annotations: {storageclass.kubernetes.io/is-default-class: "true"}}}`
	for name, c := range map[string]struct {
		reason   string
		spec     string
		settings Settings
		objects  []string
		without  bool
		want     string
	}{
		"DK-8 the newest default": {
			reason: "of several", objects: []string{fmt.Sprintf(older, "a", "2030-01-01T00:00:00Z")}, want: "a",
		},
		"DK-8 the first by name of equally new ones": {
			reason:  "of several",
			objects: []string{fmt.Sprintf(older, "z", "2030-01-01T00:00:00Z"), fmt.Sprintf(older, "b", "2030-01-01T00:00:00Z")}, want: "b",
		},
		"DK-8 from the environment": {
			reason: "no class stated", settings: Settings{StorageClass: "env"},
			objects: []string{`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: env}}`}, want: "env",
		},
		"DK-8 the word default is the default class": {
			reason: "also over the environment", spec: `template: small`, settings: Settings{StorageClass: "env"}, want: "standard",
		},
		"DK-8 unless a class is called default": {
			reason: "then it is a name", spec: `template: small`,
			objects: []string{`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: default}}`}, want: "default",
		},
		"DK-9 no default class": {reason: "where one is needed", without: true, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			w.settings.StorageClass = c.settings.StorageClass
			if c.without {
				delete(w.objects, id(kind.StorageClasses, "", "standard"))
			}
			w.machine(c.spec)
			w.reconcile("web")
			if c.want == "" {
				sees(t, "Ready ("+c.reason+")", w.ready("web"), "False StorageClassNotFound")
				return
			}
			sees(t, "the class ("+c.reason+")", text(w.must(kind.PersistentVolumeClaims, "web-root").Object, "spec", "storageClassName"), c.want)
		})
	}
}

func TestAccessModeOfNewClaims(t *testing.T) {
	const profile = `{apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, metadata: {name: standard}, status: {claimPropertySets: [{accessModes: [ReadWriteOnce, ReadWriteMany], volumeMode: Block}, {accessModes: [ReadOnlyMany, ReadWriteOncePod], volumeMode: Filesystem}]}}`
	for name, c := range map[string]struct {
		reason   string
		disk     string
		settings Settings
		objects  []string
		want     string
	}{
		"DK-10 as stated":            {reason: "over the profile", disk: "accessMode: ReadWriteOnce", objects: []string{profile}, want: "[ReadWriteOnce]"},
		"DK-10 the wanted mode":      {reason: "ReadWriteMany if offered", disk: "volumeMode: Block", objects: []string{profile}, want: "[ReadWriteMany]"},
		"DK-10 the first mode":       {reason: "no ReadWriteMany; a claim without mode is a filesystem", objects: []string{profile}, want: "[ReadOnlyMany]"},
		"DK-10 mode of environment":  {reason: "it is the wanted one", settings: Settings{VolumeMode: "Block"}, objects: []string{profile}, want: "[ReadWriteMany]"},
		"DK-10 profile over env":     {reason: "the environment comes after", settings: Settings{AccessMode: "ReadWriteOnce", VolumeMode: "Block"}, objects: []string{profile}, want: "[ReadWriteMany]"},
		"DK-10 from the environment": {reason: "no profile", settings: Settings{AccessMode: "ReadWriteMany"}, want: "[ReadWriteMany]"},
		"DK-10 the default":          {reason: "nothing known", want: "[ReadWriteOnce]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			w.settings.AccessMode, w.settings.VolumeMode = c.settings.AccessMode, c.settings.VolumeMode
			w.machine(`disks: [{name: root, size: 1Gi, ` + c.disk + `}]`)
			w.reconcile("web")
			sees(t, "the modes ("+c.reason+")", fmt.Sprint(at(w.must(kind.PersistentVolumeClaims, "web-root").Object, "spec", "accessModes")), c.want)
		})
	}
}

func TestClaimsThatExist(t *testing.T) {
	mine := `labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/machine: web, vitistack.io/source-machine: web}, annotations: {vitistack.io/machine-uid: uid-web, vitistack.io/machine-name: web}`
	const spec = `spec: {accessModes: [ReadWriteOnce], storageClassName: standard, resources: {requests: {storage: 20Gi}}}`
	claim := func(name, metadata string) string {
		return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: ` + name + `, uid: claim-uid, ` + metadata + `}, ` + spec + `}`
	}
	for name, c := range map[string]struct {
		reason  string
		objects []string
		ready   string
		says    string
		volume  string
	}{
		"DK-11 an own claim is used": {reason: "as it is", objects: []string{claim("web-root", mine)}, volume: "web-root"},
		"DK-11 a claim of nobody": {
			reason: "it is never adopted", objects: []string{claim("web-root", "labels: {app: db}")},
			ready: "False ClaimConflict", says: `"web-root" of disk "root" belongs to no Machine`,
		},
		"DK-11 a claim of another Machine": {
			reason:  "the first keeps it",
			objects: []string{claim("web-root", `annotations: {vitistack.io/machine-uid: other, vitistack.io/machine-name: web-}`)},
			ready:   "False ClaimConflict", says: `belongs to Machine "web-"`,
		},
		"DK-11 our label without managed-by": {
			reason: "labels alone are easily written", objects: []string{claim("web-root", "labels: {vitistack.io/machine: web}")}, ready: "False ClaimConflict",
		},
		"DK-13 another virtual machine uses it": {
			reason: "two writers on one disk", ready: "False ClaimConflict", says: `used by VirtualMachine "thief"`,
			objects: []string{claim("web-root", mine), `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: thief}, spec: {template: {spec: {volumes: [{name: x, dataVolume: {name: web-root}}]}}}}`},
		},
		"DK-13 being deleted": {
			reason: "waited for", ready: "False ObjectTerminating",
			objects: []string{claim("web-root", mine+`, deletionTimestamp: "2026-11-21T00:00:00Z", finalizers: [kubernetes.io/pvc-protection]`)},
		},
		"DK-17 upstream's claim named like the Machine": {
			reason:  "it is the boot disk's",
			objects: []string{claim("web", `labels: {managed-by: kubevirt-operator, source-machine: web, disk-type: boot}`)}, volume: "web",
		},
		"DK-17 not if it is no boot disk": {
			reason: "then it is something else", objects: []string{claim("web", `labels: {managed-by: kubevirt-operator, source-machine: web}`)}, volume: "web-root",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			w.machine(`template: small`)
			w.reconcile("web")
			if c.ready == "" {
				vm := w.must(kinds.VirtualMachines, "vm-web")
				sees(t, "the claim ("+c.reason+")", volumeClaim(volumes(vm)[0]), c.volume)
				return
			}
			sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
			sees(t, "StorageReady", w.cond("web", v1alpha1.ConditionStorageReady), "False PVCPending")
			holdsText(t, "the message", w.message("web", v1alpha1.ConditionStorageReady), c.says)
			if w.get(kinds.VirtualMachines, "vm-web") != nil {
				t.Errorf("a virtual machine was made (%s)", c.reason)
			}
			if live := w.get(kind.PersistentVolumeClaims, "web-root"); live.GetUID() != "claim-uid" || live.GetLabels()["vitistack.io/adopted"] != "" {
				t.Errorf("the claim was touched (%s): %v", c.reason, live)
			}
		})
	}
}

func TestTwoMachinesThatMapToOneClaim(t *testing.T) {
	w := newWorld(t)
	w.machine(`disks: [{name: 1-root, size: 1Gi}]`)
	w.add(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web-1}, spec: {disks: [{name: root, size: 1Gi}]}}`)
	w.settle("web")
	w.settle("web-1")
	sees(t, "DK-11: Ready of the second", w.ready("web-1"), "False ClaimConflict")
	sees(t, "Ready of the first", w.ready("web"), "False Creating")

	w.edit(kinds.Machines, "web", func(obj *unstructured.Unstructured) {
		obj.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-11-21T00:00:00Z"
	})
	for w.get(kinds.Machines, "web") != nil {
		w.reconcile("web")
	}
	w.settle("web-1")
	sees(t, "ER-2: Ready of the second once the name is free", w.ready("web-1"), "False Creating")
	sees(t, "the claim's Machine", w.must(kind.PersistentVolumeClaims, "web-1-root").GetAnnotations()["vitistack.io/machine-name"], "web-1")
}

func TestClaimGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		spec   string
		class  func(w *world)
		size   string
		ready  string
	}{
		"DK-15 larger": {reason: "the class allows expansion", spec: `template: small, disks: [{name: root, size: 30Gi}]`, size: "30Gi", ready: "True Running"},
		"DK-15 larger, not allowed": {
			reason: "nothing is written", spec: `template: small, disks: [{name: root, size: 30Gi}]`, size: "20Gi", ready: "False InvalidSpec",
			class: func(w *world) {
				w.add(`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: standard}}`)
			},
		},
		"DK-15 smaller":           {reason: "claims do not shrink", spec: `template: small, disks: [{name: root, size: 10Gi}]`, size: "20Gi", ready: "False InvalidSpec"},
		"DK-15 another class":     {reason: "claims do not move", spec: `template: small, disks: [{name: root, storageClass: fast}]`, size: "20Gi", ready: "False InvalidSpec"},
		"DK-15 another mode":      {reason: "fixed", spec: `template: small, disks: [{name: root, accessMode: ReadWriteMany}]`, size: "20Gi", ready: "False InvalidSpec"},
		"DK-15 another volume":    {reason: "fixed", spec: `template: small, disks: [{name: root, volumeMode: Block}]`, size: "20Gi", ready: "False InvalidSpec"},
		"DK-15 the same, spelled": {reason: "an absent mode is Filesystem", spec: `template: small, disks: [{name: root, volumeMode: Filesystem, accessMode: ReadWriteOnce, storageClass: standard}]`, size: "20Gi", ready: "True Running"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.machine(`template: small`)
			w.settle("web")
			w.kubevirt("vm-web")
			w.settle("web")
			if c.class != nil {
				c.class(w)
			}
			before := w.must(kinds.VirtualMachines, "vm-web").GetResourceVersion()
			w.respec(c.spec)
			w.settle("web")
			sees(t, "the size ("+c.reason+")", fmt.Sprint(at(w.must(kind.PersistentVolumeClaims, "web-root").Object, "spec", "resources", "requests", "storage")), c.size)
			sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
			if c.ready == "False InvalidSpec" && w.must(kinds.VirtualMachines, "vm-web").GetResourceVersion() != before {
				t.Errorf("RC-5: the virtual machine was touched (%s)", c.reason)
			}
			sees(t, "RC-5: phase", w.status("web").Phase, v1alpha1.PhaseRunning)
		})
	}
}

func TestADroppedDiskLeavesTheVMAndKeepsItsClaim(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small, disks: [{name: data, size: 1Gi}]`)
	w.settle("web")
	w.edit(kinds.VirtualMachines, "vm-web", func(obj *unstructured.Unstructured) {
		spec := at(obj.Object, "spec", "template", "spec").(map[string]any)
		spec["volumes"] = append(spec["volumes"].([]any), map[string]any{"name": "hotplugged", "persistentVolumeClaim": map[string]any{"claimName": "x", "hotpluggable": true}})
		spec["nodeSelector"] = map[string]any{"zone": "a"}
	})
	w.respec(`template: small`)
	w.settle("web")
	var names []string
	for _, volume := range volumes(w.must(kinds.VirtualMachines, "vm-web")) {
		names = append(names, text(volume, "name"))
	}
	sees(t, "DK-16, UP-3: the volumes", strings.Join(names, " "), "root hotplugged")
	w.must(kind.PersistentVolumeClaims, "web-data")
	w.kubevirt("vm-web")
	w.settle("web")
	holdsText(t, "StorageReady's message", w.message("web", v1alpha1.ConditionStorageReady), `"web-data"`)
	sees(t, "Ready", w.ready("web"), "True Running")
}
