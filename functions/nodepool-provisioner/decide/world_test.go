package decide

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// now is when tests happen.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// world is what a pool sees of the API server, which carries out its plans.
type world struct {
	t    testing.TB
	in   Input
	next int
	// further answers needs, by their key.
	further map[string][]unstructured.Unstructured
}

// object reads one manifest.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = obj.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if obj.GetUID() == "" {
		obj.SetUID(types.UID("uid-of-" + obj.GetName()))
	}
	obj.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Hour)))
	return obj
}

// newWorld is a pool with all that it needs: a control plane, or workers.
func newWorld(t testing.TB, controlPlane bool) *world {
	role := ""
	if controlPlane {
		role = "controlPlane: true, "
	}
	w := &world{t: t, in: Input{
		Settings: dockyards.DefaultSettings(),
		Pool: object(t, `
apiVersion: dockyards.io/v1alpha3
kind: NodePool
metadata:
  {name: pool, namespace: team, generation: 3, labels: {dockyards.io/cluster-name: c1},
  ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: c1, uid: uid-of-c1}]}
spec: {`+role+`replicas: 3, resources: {cpu: 2500m, memory: 4096Mi, storage: 20Gi}}
`),
		Cluster: object(t, `
apiVersion: dockyards.io/v1alpha3
kind: Cluster
metadata: {name: c1, namespace: team}
spec: {version: v1.34.1, podSubnets: [10.244.0.0/16]}
status: {apiEndpoint: {host: team-c1.example.com, port: 6443}}
`),
		CAPICluster: object(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c1, namespace: team, uid: uid-of-capi}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: KubevirtCluster, name: c1}}
`),
		Config: dockyards.ReadConfig(object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: dockyards-system}}`)),
		Release: object(t, `
apiVersion: dockyards.io/v1alpha3
kind: Release
metadata: {name: talos, namespace: dockyards-system, annotations: {dockyards.io/is-default-release: ""}}
spec: {type: TalosInstaller}
`),
		DataSource: object(t, `
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataSource
metadata: {name: talos, namespace: dockyards-system}
spec: {source: {pvc: {name: talos-v1.12.0, namespace: dockyards-system}}}
`),
		MachinesVersion: "v1beta2", ConfigVersion: "v1alpha3",
	}, further: map[string][]unstructured.Unstructured{}}
	return w
}

// config sets the data of the config map.
func (w *world) config(data map[string]string) {
	fields := map[string]any{}
	for key, value := range data {
		fields[key] = value
	}
	w.in.Config = dockyards.ReadConfig(&unstructured.Unstructured{Object: map[string]any{"data": fields}})
}

// set changes a field of an object: the last argument is the value.
func set(obj *unstructured.Unstructured, value any, path ...string) {
	put(obj.Object, value, path...)
}

// decide asks for a decision until it needs nothing more.
func (w *world) decide() (plan.Decision, plan.Answers) {
	known := plan.Answers{}
	for range 6 {
		decision := Decide(now, w.in, known)
		if len(decision.Needs) == 0 {
			return decision, known
		}
		for _, need := range decision.Needs {
			answer := plan.Answer{Items: w.further[need.Resource.Kind]}
			if need.Name != "" {
				answer = plan.Answer{Object: find(w.further[need.Resource.Kind], need.Name)}
			}
			known[need.Key()] = answer
		}
	}
	w.t.Fatal("the decision needs more and more")
	return plan.Decision{}, nil
}

// pass is one reconcile: what it wrote, and what it concluded.
func (w *world) pass() (writes []string, c plan.Conclusion) {
	w.t.Helper()
	decision, known := w.decide()
	var outcomes plan.Outcomes
	for _, stage := range decision.Plan.Stages {
		for _, entry := range stage.Entries {
			writes = append(writes, string(entry.Verb)+" "+entry.Resource.Kind+" "+entry.Name())
			outcomes = append(outcomes, w.write(entry))
		}
	}
	c = Conclude(now, w.in, known, outcomes)
	if c.Status != nil {
		w.in.Pool = w.in.Pool.DeepCopy()
		set(w.in.Pool, c.Status, "status")
	}
	return writes, c
}

// rest passes until nothing is written any more, and returns all writes and Events.
func (w *world) rest() (writes []string, events []string, last plan.Conclusion) {
	w.t.Helper()
	for range 6 {
		wrote, c := w.pass()
		for _, e := range c.Events {
			events = append(events, e.Reason+": "+e.Message)
		}
		if last = c; len(wrote) == 0 {
			return writes, events, last
		}
		writes = append(writes, wrote...)
	}
	w.t.Fatalf("six passes, and still something to write: %v", writes)
	return nil, nil, plan.Conclusion{}
}

// write carries out one entry.
func (w *world) write(entry plan.Entry) plan.Outcome {
	if entry.Verb == plan.Delete {
		gone := func(obj unstructured.Unstructured) bool { return obj.GetUID() == entry.Base.GetUID() }
		w.in.MachineTemplates = slices.DeleteFunc(slices.Clone(w.in.MachineTemplates), gone)
		w.in.ConfigTemplates = slices.DeleteFunc(slices.Clone(w.in.ConfigTemplates), gone)
		if entry.Resource.Kind == dockyards.MachineDeployments.Kind {
			w.in.Machines = nil
		}
		return plan.Outcome{Entry: entry, Result: plan.Deleted}
	}
	obj, result := entry.Object.DeepCopy(), plan.Configured
	if entry.Verb == plan.Create {
		w.next++
		obj.SetUID(types.UID("made-" + obj.GetKind() + "-" + obj.GetName()))
		obj.SetCreationTimestamp(metav1.NewTime(now.Add(time.Duration(w.next) * time.Second)))
		result = plan.Created
	}
	switch entry.Resource.Kind {
	case dockyards.KubevirtMachineTemplates.Kind:
		w.in.MachineTemplates = replaced(w.in.MachineTemplates, obj)
	case dockyards.TalosConfigTemplates.Kind:
		w.in.ConfigTemplates = replaced(w.in.ConfigTemplates, obj)
	case dockyards.CAPIClusters.Kind:
		w.in.CAPICluster = obj
	default:
		w.in.Machines = obj
	}
	return plan.Outcome{Entry: entry, Result: result, Object: obj}
}

func replaced(objects []unstructured.Unstructured, obj *unstructured.Unstructured) []unstructured.Unstructured {
	list := slices.DeleteFunc(slices.Clone(objects), func(have unstructured.Unstructured) bool { return have.GetName() == obj.GetName() })
	return append(list, *obj)
}

// conditions are "status reason: message" by type.
func (w *world) conditions() map[string]string {
	all := map[string]string{}
	list, _ := at(w.in.Pool.Object, "status", "conditions").([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		all[text(c, "type")] = strings.TrimSuffix(text(c, "status")+" "+text(c, "reason")+": "+text(c, "message"), ": ")
	}
	return all
}

func (w *world) is(conditionType, want string) {
	w.t.Helper()
	got := w.conditions()[conditionType]
	if got != want && !strings.HasPrefix(got, want+": ") {
		w.t.Errorf("%s is %q, want %q", conditionType, got, want)
	}
}

// templates are the names of all templates.
func (w *world) templates() []string {
	var names []string
	for _, obj := range slices.Concat(w.in.MachineTemplates, w.in.ConfigTemplates) {
		names = append(names, obj.GetKind()+" "+obj.GetName())
	}
	slices.Sort(names)
	return names
}

// infrastructure is the name of the machine template in use.
func (w *world) infrastructure() string {
	name, _ := References(w.in.Machines)
	return name
}

func (w *world) recorded() string {
	return w.in.Machines.GetAnnotations()[v1alpha3.AnnotationRolloutInputs]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
