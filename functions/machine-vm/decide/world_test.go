package decide

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/vault"
)

// instant is the time of every test.
var instant = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const ns = "team-a"

// world is one cluster in memory: enough of an API server for decisions to be
// carried out and looked at again. What an API server really says is shown by
// the tests against one.
type world struct {
	t        *testing.T
	settings Settings
	objects  map[string]*unstructured.Unstructured
	serial   int
	// unserved are resources that the cluster does not know.
	unserved map[string]bool
	// sights are what is seen of other clusters.
	sights map[string]Sight
	// refuse makes writes of a resource fail.
	refuse map[string]*fault.Fault
}

func newWorld(t *testing.T, manifests ...string) *world {
	t.Helper()
	w := &world{
		t: t, settings: DefaultSettings(), objects: map[string]*unstructured.Unstructured{},
		unserved: map[string]bool{}, refuse: map[string]*fault.Fault{}, sights: map[string]Sight{},
	}
	w.add(`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, allowVolumeExpansion: true}`)
	for _, manifest := range manifests {
		w.add(manifest)
	}
	return w
}

var known = []kind.Resource{
	kinds.Machines, kinds.MachineClasses, kinds.KubevirtConfigs, kinds.NetworkConfigurations, kinds.NetworkNamespaces,
	kinds.VirtualMachines, kinds.VirtualMachineInstances, kinds.DataVolumes, kinds.StorageProfiles,
	kinds.NetworkAttachmentDefinitions, kind.PersistentVolumeClaims, kind.Secrets, kind.ConfigMaps, kind.StorageClasses, kind.Namespaces,
}

func resourceOf(t *testing.T, obj *unstructured.Unstructured) kind.Resource {
	t.Helper()
	for _, res := range known {
		if res.Is(obj.GetAPIVersion(), obj.GetKind()) {
			return res
		}
	}
	t.Fatalf("no resource for %s %s", obj.GetAPIVersion(), obj.GetKind())
	return kind.Resource{}
}

func id(res kind.Resource, namespace, name string) string {
	return res.String() + "|" + namespace + "|" + name
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	return obj
}

// add stores an object; what is missing of its metadata is filled in.
func (w *world) add(manifest string) *unstructured.Unstructured {
	w.t.Helper()
	return w.store(parse(w.t, manifest))
}

func (w *world) store(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	res := resourceOf(w.t, obj)
	if res.Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(ns)
	}
	w.serial++
	if obj.GetUID() == "" {
		obj.SetUID(types.UID(fmt.Sprintf("uid-%d", w.serial)))
	}
	if ts := obj.GetCreationTimestamp(); ts.IsZero() {
		obj.SetCreationTimestamp(metav1.NewTime(instant.Add(time.Duration(w.serial-1000) * time.Minute)))
	}
	if obj.GetGeneration() == 0 && res.String() == kinds.Machines.String() {
		obj.SetGeneration(1)
	}
	obj.SetResourceVersion(fmt.Sprint(w.serial))
	w.objects[id(res, obj.GetNamespace(), obj.GetName())] = obj
	return obj
}

// machine stores the Machine web with a spec.
func (w *world) machine(spec string) *unstructured.Unstructured {
	w.t.Helper()
	return w.add("{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-web}, spec: {" + spec + "}}")
}

// edit changes a stored object as a person would.
func (w *world) edit(res kind.Resource, name string, change func(obj *unstructured.Unstructured)) {
	w.t.Helper()
	obj := w.get(res, name)
	if obj == nil {
		w.t.Fatalf("there is no %s %q", res, name)
	}
	changed := obj.DeepCopy()
	change(changed)
	changed.SetGeneration(obj.GetGeneration() + 1)
	w.store(changed)
}

// respec replaces the spec of the Machine web.
func (w *world) respec(spec string) {
	w.t.Helper()
	fresh := parse(w.t, "{apiVersion: v1, kind: X, metadata: {name: x}, spec: {"+spec+"}}")
	w.edit(kinds.Machines, "web", func(obj *unstructured.Unstructured) { obj.Object["spec"] = fresh.Object["spec"] })
}

func (w *world) get(res kind.Resource, name string) *unstructured.Unstructured {
	if obj := w.objects[id(res, ns, name)]; obj != nil {
		return obj
	}
	return w.objects[id(res, "", name)]
}

func (w *world) must(res kind.Resource, name string) *unstructured.Unstructured {
	w.t.Helper()
	obj := w.get(res, name)
	if obj == nil {
		w.t.Fatalf("there is no %s %q; there are:\n%s", res, name, strings.Join(w.names(), "\n"))
	}
	return obj
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.objects)) }

func (w *world) remove(res kind.Resource, name string) { delete(w.objects, id(res, ns, name)) }

// all are the objects of a resource in the namespace, by name.
func (w *world) all(res kind.Resource, selector string) []unstructured.Unstructured {
	var found []unstructured.Unstructured
	for _, key := range w.names() {
		obj := w.objects[key]
		if !strings.HasPrefix(key, res.String()+"|") || w.unserved[res.String()] {
			continue
		}
		if name, value, ok := strings.Cut(selector, "="); ok && obj.GetLabels()[name] != value {
			continue
		}
		found = append(found, *obj.DeepCopy())
	}
	return found
}

// input reads for one decision what gather would.
func (w *world) input(name string, v *vault.Vault) Input {
	w.t.Helper()
	get := func(res kind.Resource, name string) *unstructured.Unstructured {
		if w.unserved[res.String()] || w.get(res, name) == nil {
			return nil
		}
		obj := w.get(res, name).DeepCopy()
		v.SealObject(res, obj)
		return obj
	}
	collect := func(list []unstructured.Unstructured, res kind.Resource, names ...string) []unstructured.Unstructured {
		for _, name := range names {
			if obj := get(res, name); obj != nil && find(list, name) == nil {
				list = append(list, *obj)
			}
		}
		return list
	}
	machine := get(kinds.Machines, name)
	in := Input{Settings: w.settings, Installation: "uid-here", Machine: machine}
	in.Target = w.place(machine)
	in.Record = get(kinds.NetworkConfigurations, name)
	in.VMs = collect(nil, kinds.VirtualMachines, Candidates(machine, w.settings)...)
	in.Instance = get(kinds.VirtualMachineInstances, Chosen(machine, w.settings, in.VMs))
	in.Claims = w.all(kind.PersistentVolumeClaims, v1alpha1.LabelSourceMachine+"="+v1alpha1.LabelValue(name))
	in.Claims = collect(in.Claims, kind.PersistentVolumeClaims, append(ClaimNames(machine, w.settings, in.VMs, true), name)...)
	in.ISO = get(kinds.DataVolumes, v1alpha1.ISOName(name))
	in.CloudInit = get(kind.Secrets, v1alpha1.CloudInitName(name))
	in.NetworkNamespace = get(kinds.NetworkNamespaces, text(machine.Object, "spec", "network", "networkNamespaceName"))
	names := Attachments(machine)
	in.Networks = collect(nil, kinds.NetworkConfigurations, names...)
	in.Attachments = collect(nil, kinds.NetworkAttachmentDefinitions, append(names, NamespaceAttachment(in.NetworkNamespace))...)
	if machine.GetDeletionTimestamp() != nil {
		in.Attachments = w.all(kinds.NetworkAttachmentDefinitions, "")
	}
	in.AttachmentsServed = !w.unserved[kinds.NetworkAttachmentDefinitions.String()]
	in.Secrets = collect(nil, kind.Secrets, CloudInitSecrets(machine)...)
	in.ConfigMaps = collect(nil, kind.ConfigMaps, CloudInitConfigMaps(machine)...)
	in.Classes = collect(nil, kinds.MachineClasses, text(machine.Object, "spec", "machineClass"), text(machine.Object, "spec", "instanceType"))
	return in
}

// place chooses the cluster; other clusters are as the test says, or lack their
// Secret.
func (w *world) place(machine *unstructured.Unstructured) Target {
	w.t.Helper()
	wish := Wishes(machine, w.settings, Served{
		KubevirtConfigs: true, VirtualMachines: !w.unserved[kinds.VirtualMachines.String()], Configs: w.all(kinds.KubevirtConfigs, ""),
	})
	var sights []Sight
	for _, name := range wish.Clusters() {
		sight, told := w.sights[name]
		switch {
		case told:
			sight.Cluster = name
		case name == Management:
			sight = Sight{UID: "uid-here", Same: true, KubeVirt: true, VMs: w.all(kinds.VirtualMachines, ""), Claims: w.all(kind.PersistentVolumeClaims, "")}
		default:
			sight = Sight{Cluster: name, Connection: plan.Connection{Refused: plan.SecretNotFound, Message: "there is no Secret"}}
		}
		sights = append(sights, sight)
	}
	return Place(machine, w.settings, wish, sights)
}

func (w *world) answer(need plan.Need) plan.Answer {
	if need.Name == "" {
		return plan.Answer{Items: w.all(need.Resource, need.Selector)}
	}
	if w.unserved[need.Resource.String()] || w.get(need.Resource, need.Name) == nil {
		return plan.Answer{}
	}
	return plan.Answer{Object: w.get(need.Resource, need.Name).DeepCopy()}
}

// outcome is one reconcile.
type outcome struct {
	decision   plan.Decision
	outcomes   plan.Outcomes
	conclusion plan.Conclusion
	writes     int
}

// reconcile decides once, carries it out, concludes, and writes the status.
func (w *world) reconcile(name string) outcome {
	w.t.Helper()
	v := vault.New()
	in := w.input(name, v)
	answers := plan.Answers{}
	var o outcome
	for range 7 {
		o.decision = Decide(instant, in, answers)
		if len(o.decision.Needs) == 0 {
			break
		}
		for _, need := range o.decision.Needs {
			answers[need.Key()] = w.answer(need)
		}
	}
	if len(o.decision.Needs) > 0 {
		w.t.Fatalf("still needs %v", o.decision.Needs)
	}
	failed := false
	for _, stage := range o.decision.Plan.Stages {
		failedHere := false
		for _, entry := range stage.Entries {
			if failed {
				o.outcomes = append(o.outcomes, plan.Outcome{Entry: entry, Result: plan.Skipped})
				continue
			}
			done := w.write(v, entry)
			failedHere = failedHere || done.Fault != nil
			if done.Result == plan.Created || done.Result == plan.Configured || done.Result == plan.Deleted {
				o.writes++
			}
			o.outcomes = append(o.outcomes, done)
		}
		failed = failed || failedHere
	}
	o.conclusion = Conclude(instant, in, answers, o.outcomes)
	if live := w.get(kinds.Machines, name); live != nil && o.conclusion.Status != nil {
		if changed := live.DeepCopy(); !sameStatus(live, o.conclusion.Status) {
			changed.Object["status"] = o.conclusion.Status
			w.store(changed)
			o.writes++
		}
	}
	return o
}

func sameStatus(obj *unstructured.Unstructured, status map[string]any) bool {
	a := &unstructured.Unstructured{Object: map[string]any{"status": obj.Object["status"]}}
	return sameObject(a, &unstructured.Unstructured{Object: map[string]any{"status": status}})
}

func (w *world) write(v *vault.Vault, entry plan.Entry) plan.Outcome {
	w.t.Helper()
	if f := w.refuse[entry.Resource.String()]; f != nil {
		return plan.Outcome{Entry: entry, Result: plan.Failed, Fault: f}
	}
	if entry.Verb == plan.Delete {
		return w.delete(entry)
	}
	opened := &unstructured.Unstructured{Object: v.OpenObject(entry.Resource, entry.Object.Object)}
	if strings.Contains(fmt.Sprint(opened.Object), "sealed:") {
		w.t.Errorf("%s sends a token: %v", entry, opened.Object)
	}
	live := w.objects[id(entry.Resource, entry.Object.GetNamespace(), entry.Object.GetName())]
	if entry.Verb == plan.Create && live != nil {
		w.t.Fatalf("%s: it exists", entry)
	}
	if entry.Verb == plan.Patch && live == nil {
		w.t.Fatalf("%s: there is none", entry)
	}
	result := plan.Created
	if live != nil {
		if result = plan.Configured; entry.Verb == plan.Apply {
			merged := live.DeepCopy()
			merged.Object["spec"] = opened.Object["spec"]
			merged.SetLabels(with(live.GetLabels(), opened.GetLabels()))
			opened = merged
		}
		if sameObject(live, opened) {
			return plan.Outcome{Entry: entry, Result: plan.Unchanged, Object: live.DeepCopy()}
		}
	}
	if gone := opened.GetDeletionTimestamp() != nil && len(opened.GetFinalizers()) == 0; gone {
		delete(w.objects, id(entry.Resource, opened.GetNamespace(), opened.GetName()))
		return plan.Outcome{Entry: entry, Result: plan.Configured, Object: opened}
	}
	stored := w.store(opened).DeepCopy()
	v.SealObject(entry.Resource, stored)
	return plan.Outcome{Entry: entry, Result: result, Object: stored}
}

func (w *world) delete(entry plan.Entry) plan.Outcome {
	w.t.Helper()
	key := id(entry.Resource, entry.Base.GetNamespace(), entry.Base.GetName())
	live := w.objects[key]
	if live == nil || live.GetUID() != entry.Base.GetUID() {
		w.t.Fatalf("%s: it is another or gone", entry)
	}
	if len(live.GetFinalizers()) > 0 {
		going := live.DeepCopy()
		now := metav1.NewTime(instant)
		going.SetDeletionTimestamp(&now)
		w.store(going)
	} else {
		delete(w.objects, key)
	}
	return plan.Outcome{Entry: entry, Result: plan.Deleted}
}

// settle reconciles until nothing is written, and fails if that takes long.
func (w *world) settle(name string) outcome {
	w.t.Helper()
	for range 6 {
		if w.get(kinds.Machines, name) == nil {
			return outcome{}
		}
		if o := w.reconcile(name); o.writes == 0 {
			return o
		}
	}
	w.t.Fatalf("it never settles: %v", w.reconcile(name).decision.Plan)
	return outcome{}
}

// kubevirt plays KubeVirt for the virtual machine of a name: claims are bound
// and the instance runs.
func (w *world) kubevirt(name string) {
	w.t.Helper()
	vm := w.must(kinds.VirtualMachines, name)
	for _, volume := range volumes(vm) {
		if claim := w.get(kind.PersistentVolumeClaims, volumeClaim(volume)); claim != nil {
			w.edit(kind.PersistentVolumeClaims, claim.GetName(), func(obj *unstructured.Unstructured) { put(obj.Object, "Bound", "status", "phase") })
		}
	}
	w.edit(kinds.VirtualMachines, name, func(obj *unstructured.Unstructured) { put(obj.Object, "Running", "status", "printableStatus") })
	w.add(`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: ` + name + `}, status: {phase: Running, nodeName: node-1,
		phaseTransitionTimestamps: [{phase: Running, phaseTransitionTimestamp: "2026-11-21T11:00:00Z"}],
		interfaces: [{name: default, mac: "02:12:00:00:00:01", ipAddress: 10.0.0.5, ipAddresses: [10.0.0.5, "fd00::5"]}],
		volumeStatus: [{name: root, target: vda, persistentVolumeClaimInfo: {claimName: web-root, accessModes: [ReadWriteOnce], volumeMode: Filesystem, capacity: {storage: 20Gi}}}]}}`)
}

// status is the Machine's, typed.
func (w *world) status(name string) v1alpha1.MachineStatus {
	w.t.Helper()
	machine, err := plan.Typed[v1alpha1.Machine](&unstructured.Unstructured{
		Object: map[string]any{"status": w.must(kinds.Machines, name).Object["status"]},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return machine.Status
}

// ready is condition Ready as "status reason".
func (w *world) ready(name string) string { return w.cond(name, v1alpha1.ConditionReady) }

func (w *world) cond(name, conditionType string) string {
	w.t.Helper()
	c := v1alpha1.FindCondition(w.status(name).Conditions, conditionType)
	if c == nil {
		return "absent"
	}
	return c.Status + " " + c.Reason
}

func (w *world) message(name, conditionType string) string {
	w.t.Helper()
	if c := v1alpha1.FindCondition(w.status(name).Conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}

// sees checks a text.
func sees(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %q, want %q", what, got, want)
	}
}

// holdsText checks that a text contains another.
func holdsText(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s is %q, want it to say %q", what, got, want)
	}
}

func secretData(obj *unstructured.Unstructured, key string) string {
	raw, _ := base64.StdEncoding.DecodeString(text(obj.Object, "data", key))
	return string(raw)
}
