package decide

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/vault"
	"github.com/slipway-dev/slipway/test/virt/admission"
)

// anySpec draws a spec, good or bad, that the schema would let through.
func anySpec(t *rapid.T) string {
	var parts []string
	maybe := func(name, yaml string) {
		if rapid.Bool().Draw(t, name) {
			parts = append(parts, yaml)
		}
	}
	pick := func(name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }

	maybe("template?", "template: "+pick("template", "small", "medium", "large", "huge"))
	maybe("instanceType?", "instanceType: "+pick("instanceType", "small", "c", "t3.medium"))
	maybe("resources?", fmt.Sprintf("resources: {cpu: {cores: %d, threads: %d}, memory: {size: %s}}",
		rapid.IntRange(0, 256).Draw(t, "cores"), rapid.IntRange(0, 8).Draw(t, "threads"), pick("memory", "0", "1Gi", "1", "512Mi", "1e9", "-1Gi")))
	maybe("running?", "running: "+pick("running", "true", "false"))
	if n := rapid.IntRange(0, 3).Draw(t, "disks"); n > 0 {
		var disks []string
		for i := range n {
			disk := "{"
			if name := pick(fmt.Sprint("disk", i), "", "root", "data", "iso", "Data", "cloudinitdisk", "a-b"); name != "" {
				disk += "name: " + name + ", "
			}
			disk += fmt.Sprintf("size: %s, boot: %t, type: %s}", pick(fmt.Sprint("size", i), "1Gi", "0", "20Gi"), rapid.Bool().Draw(t, fmt.Sprint("boot", i)),
				pick(fmt.Sprint("bus", i), "virtio", "sata", "scsi", "usb", "nvme", "gp3"))
			disks = append(disks, disk)
		}
		parts = append(parts, "disks: ["+strings.Join(disks, ", ")+"]")
	}
	if n := rapid.IntRange(0, 3).Draw(t, "networks"); n > 0 {
		var networks []string
		for i, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"default", "lan", "n_1", "A-2"}), n, n, rapid.ID[string]).Draw(t, "names") {
			network := "{name: " + name
			if to := pick(fmt.Sprint("to", i), "", "blue", "red", "none"); to != "" {
				network += ", networkName: " + to
			}
			if mac := pick(fmt.Sprint("mac", i), "", "02:00:00:00:00:01", "01-00-5E-00-00-01", "02-00-00-00-00-0F"); mac != "" {
				network += `, macAddress: "` + mac + `"`
			}
			networks = append(networks, network+", model: "+pick(fmt.Sprint("model", i), "virtio", "e1000", "pcnet")+"}")
		}
		parts = append(parts, "networks: ["+strings.Join(networks, ", ")+"]")
	} else {
		maybe("namespace?", "network: {networkNamespaceName: prod}")
	}
	maybe("boot order?", "bootOrder: "+pick("order", "[disk]", "[network, disk]", "[cdrom, network, disk]", "[network]"))
	maybe("cloud-init?", "cloudInit: "+pick("cloud-init", "{}", "{userData: u}", "{secretRef: {name: s}}", "{userDataBase64: aGk=, networkData: n}",
		"{type: configDrive, userDataConfigMapRef: {name: m}}", "{userData: "+strings.Repeat("x", 2100)+"}"))
	maybe("features?", "domain: "+pick("domain", "{features: {acpi: false, apic: true, hyperv: true}}", "{firmware: {bootloader: {efi: true}}}",
		"{firmware: {bootloader: {secureBoot: true}}, features: {hyperv: false}}", "{firmware: {bootloader: {efi: false}}}"))
	maybe("os?", "os: "+pick("os", "{architecture: arm64}", `{imageID: "https://x/y.iso"}`))
	return strings.Join(parts, ", ")
}

func anyWorld(t *testing.T, rt *rapid.T) *world {
	w := newWorld(t, secret("s", map[string]string{"userdata": "pw"}), configMap("m", "userdata", "hello"),
		netconf("blue", "vlan: 7"), netconf("red", "bridge: br1"),
		`{apiVersion: vitistack.io/v1alpha1, kind: NetworkNamespace, metadata: {name: prod}, status: {vlanId: 42}}`,
		fmt.Sprintf(classes, "c", true, 2, 0, 0, "3Gi"))
	annotations := ""
	if rapid.Bool().Draw(rt, "ISO") {
		annotations = ", annotations: {kubevirt.io/boot-source: datavolume}"
	}
	w.add("{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-web" + annotations + "}, spec: {" + anySpec(rt) + "}}")
	return w
}

func admit(t *testing.T, w *world) {
	t.Helper()
	for _, vm := range w.all(kinds.VirtualMachines, "") {
		for _, err := range admission.Check(&vm) {
			t.Errorf("section 23: %v in %v; the Machine: %v", err, vm.Object["spec"], w.must(kinds.Machines, "web").Object["spec"])
		}
	}
}

// noTwoMACs checks what KubeVirt does not.
func noTwoMACs(t *testing.T, w *world) {
	t.Helper()
	for _, vm := range w.all(kinds.VirtualMachines, "") {
		macs := strings.Fields(macsOf(&vm))
		slices.Sort(macs)
		if len(slices.Compact(slices.Clone(macs))) != len(macs) {
			t.Errorf("section 24: one MAC address twice: %v", macs)
		}
	}
}

func TestEveryVMIsAdmittedAndEveryMachineSettles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := anyWorld(t, rt)
		w.settle("web")
		admit(t, w)
		noTwoMACs(t, w)
		made := w.get(kinds.VirtualMachines, "vm-web") != nil
		if bad := strings.HasPrefix(w.ready("web"), "False ") && w.status("web").FailureReason != nil; bad == made {
			t.Errorf("RC-2: Ready is %s, and a virtual machine exists: %t", w.ready("web"), made)
		}
		// Any other spec afterwards: the live virtual machine stays valid too.
		for i := range 3 {
			w.respec(anySpec(rt))
			if made && i == 0 {
				w.kubevirt("vm-web")
			}
			w.settle("web")
			admit(t, w)
			noTwoMACs(t, w)
		}
		w.deleteMachine("web")
		for range 8 {
			if w.get(kinds.Machines, "web") != nil && len(w.must(kinds.Machines, "web").GetFinalizers()) > 0 {
				w.remove(kinds.VirtualMachineInstances, "vm-web")
				w.reconcile("web")
			}
		}
		for _, res := range []kind.Resource{kinds.VirtualMachines, kind.PersistentVolumeClaims, kinds.NetworkAttachmentDefinitions} {
			if left := w.all(res, ""); len(left) > 0 {
				t.Errorf("DL-2: %s is left", left[0].GetName())
			}
		}
	})
}

func TestDecideIsDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := anyWorld(t, rt)
		w.settings.MACSet = "12"
		w.reconcile("web")
		w.respec(anySpec(rt))
		v := vault.New()
		in := w.input("web", v)
		answers := plan.Answers{}
		for range 6 {
			for _, need := range Decide(instant, in, answers).Needs {
				answers[need.Key()] = w.answer(need)
			}
		}
		encode := func(in Input) string {
			d := Decide(instant, in, answers)
			c := Conclude(instant, in, answers, nil)
			raw, err := json.Marshal(map[string]any{"decision": d, "conclusion": c})
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		first := encode(in)
		for range 3 {
			for _, list := range [][]unstructured.Unstructured{in.VMs, in.Claims, in.Attachments, in.Networks, in.Classes, in.Secrets, in.ConfigMaps} {
				rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			}
			for _, answer := range answers {
				rand.Shuffle(len(answer.Items), func(i, j int) { answer.Items[i], answer.Items[j] = answer.Items[j], answer.Items[i] })
			}
			if diff := cmp.Diff(first, encode(in)); diff != "" {
				t.Fatalf("the same input gives another decision:\n%s", diff)
			}
		}
	})
}

func TestDecideDoesNotChangeItsInput(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := anyWorld(t, rt)
		w.settle("web")
		w.respec(anySpec(rt))
		in := w.input("web", vault.New())
		before, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		Decide(instant, in, plan.Answers{})
		Conclude(instant, in, plan.Answers{}, nil)
		after, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(before), string(after)); diff != "" {
			t.Fatalf("the input has changed:\n%s", diff)
		}
	})
}

// TestNamesNeverReachForeignClaims: whatever a Machine and its disks are
// called, a claim of others is neither written nor deleted.
func TestNamesNeverReachForeignClaims(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		part := rapid.StringMatching(`[a-z0-9]{1,3}(-[a-z0-9]{1,3}){0,3}`)
		machine := part.Draw(rt, "machine")
		disks := rapid.SliceOfNDistinct(part, 1, 3, rapid.ID[string]).Draw(rt, "disks")
		w := newWorld(t)
		var list, foreign []string
		for i, d := range disks {
			list = append(list, `{name: "`+d+`", size: 1Gi}`)
			if i == 0 || rapid.Bool().Draw(rt, "taken") {
				foreign = append(foreign, machine+"-"+d)
			}
		}
		foreign = append(foreign, machine, machine+"-root", machine+"-iso")
		marks := rapid.SampledFrom([]string{
			"", ", labels: {app: db}", ", labels: {vitistack.io/machine: other, vitistack.io/managed-by: kubevirt-operator}",
			", annotations: {vitistack.io/machine-uid: other}, labels: {vitistack.io/machine: \"" + machine + "\", vitistack.io/managed-by: kubevirt-operator}",
			", labels: {vitistack.io/machine: \"" + machine + "\"}",
		}).Draw(rt, "marks")
		for _, name := range foreign {
			w.add("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: \"" + name + "\", uid: foreign-" + name + marks + "}}")
		}
		versions := map[string]string{}
		for _, name := range foreign {
			versions[name] = w.must(kind.PersistentVolumeClaims, name).GetResourceVersion()
		}
		w.add("{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: \"" + machine + "\", uid: uid-web}, spec: {disks: [" + strings.Join(list, ", ") + "]}}")
		w.settle(machine)
		w.deleteMachine(machine)
		for range 3 {
			if w.get(kinds.Machines, machine) != nil {
				w.reconcile(machine)
			}
		}
		for name, version := range versions {
			if live := w.get(kind.PersistentVolumeClaims, name); live == nil || live.GetResourceVersion() != version {
				t.Errorf("DK-11: the foreign claim %q was touched (marks %q)", name, marks)
			}
		}
	})
}

// neighbours draws two names of which one is made of the other and of what the
// function appends, so that their children's names come close.
func neighbours(rt *rapid.T) (a, b string) {
	a = rapid.StringMatching(`[a-z0-9]{1,3}(-[a-z0-9]{1,3}){0,2}`).Draw(rt, "name")
	b = rapid.SampledFrom([]string{
		a + "-root", a + "-cloudinit", a + "-data", a + "-iso", "vm-" + a, a + "-0", a + "-" + a, "lan", "source", a + "-lan",
	}).Draw(rt, "other name")
	if rapid.Bool().Draw(rt, "swapped") {
		return b, a
	}
	return a, b
}

// neighbourSpec draws a spec whose disks, networks and cloud-init are called like the
// Machines and their children.
func neighbourSpec(rt *rapid.T, label string, names []string) string {
	pick := func(what string, values []string) string {
		return rapid.SampledFrom(values).Draw(rt, label+" "+what)
	}
	disks := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"root", "data", "cloudinit", "root-data", "a", "lan"}), 1, 3, rapid.ID[string]).Draw(rt, label+" disks")
	var list []string
	for _, d := range disks {
		list = append(list, `{name: "`+d+`", size: 1Gi}`)
	}
	return fmt.Sprintf(`template: small, disks: [%s], networks: [{name: eth0, networkName: "%s"}], cloudInit: {secretRef: {name: "%s"}}`,
		strings.Join(list, ", "), pick("network", names), pick("source", slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasSuffix(name, "-cloudinit") })))
}

// TestOneMachineNeverTouchesWhatIsAnothers: whatever two Machines, their networks and
// their sources are called, the life of the second changes no claim, Secret, network
// definition, record or virtual machine that was there before.
func TestOneMachineNeverTouchesWhatIsAnothers(t *testing.T) {
	kindsOf := []kind.Resource{
		kind.PersistentVolumeClaims, kind.Secrets, kinds.NetworkAttachmentDefinitions, kinds.NetworkConfigurations,
		kinds.VirtualMachines, kinds.Machines,
	}
	rapid.Check(t, func(rt *rapid.T) {
		first, second := neighbours(rt)
		w := newWorld(t)
		names := []string{first, second, first + "-cloudinit", second + "-cloudinit", "lan"}
		slices.Sort(names)
		names = slices.Compact(names)
		for i, name := range names {
			there := func(what string, of int) bool { return rapid.IntRange(1, 6).Draw(rt, what+" "+name) <= of }
			often := 6
			if strings.HasSuffix(name, "-cloudinit") {
				often = 1 // it is in the way of a Machine's own
			}
			if there("network", 5) {
				w.add(netconf(name, fmt.Sprintf("vlan: %d", i+1)))
			}
			if there("definition", 1) {
				w.add(`{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: "` + name + `"}, spec: {config: '{"type": "bridge", "bridge": "br0", "vlan": 1}'}}`)
			}
			if there("Secret", often) {
				w.add(secret(name, map[string]string{"userdata": "pw-" + name}))
			}
		}
		live := func(name, uid, spec string) {
			w.add(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: "` + name + `", uid: ` + uid + `}, spec: {` + spec + `}}`)
			w.settle(name)
		}
		live(first, "uid-first", neighbourSpec(rt, "first", names))
		before := map[string]string{}
		for _, res := range kindsOf {
			for _, obj := range w.all(res, "") {
				before[id(res, ns, obj.GetName())] = string(obj.GetUID()) + " " + obj.GetResourceVersion()
			}
		}
		unharmed := func(when string) {
			t.Helper()
			for key, was := range before {
				obj, there := w.objects[key]
				if !there {
					t.Errorf("%s: %s is gone; the Machines are %q and %q", when, key, first, second)
				} else if is := string(obj.GetUID()) + " " + obj.GetResourceVersion(); is != was {
					t.Errorf("%s: %s was written; the Machines are %q and %q", when, key, first, second)
				}
			}
		}
		live(second, "uid-second", neighbourSpec(rt, "second", names))
		unharmed("while the second is made")
		w.edit(kinds.Machines, second, func(obj *unstructured.Unstructured) {
			obj.Object["spec"] = parse(t, `{apiVersion: v1, kind: X, spec: {`+neighbourSpec(rt, "changed", names)+`}}`).Object["spec"]
		})
		w.settle(second)
		unharmed("while the second is changed")
		w.deleteMachine(second)
		for range 5 {
			if w.get(kinds.Machines, second) != nil {
				w.reconcile(second)
			}
		}
		unharmed("while the second is deleted")
		if o := w.reconcile(first); o.writes > 0 {
			t.Errorf("the second has come and gone, and the first has to write %v", o.decision.Plan)
		}
	})
}
