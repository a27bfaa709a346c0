package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/plan"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	asJSON, err := yaml.YAMLToJSON([]byte("{apiVersion: example.org/v1, kind: Any, " + text[1:]))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestCapacity(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   map[string]string
	}{
		"Example": {
			"the specification's own example",
			`{template: {spec: {domain: {cpu: {cores: 3}, memory: {guest: 4Gi}}}}, dataVolumeTemplates: [
				{spec: {pvc: {resources: {requests: {storage: 20Gi}}}}}, {spec: {pvc: {resources: {requests: {storage: 50G}}}}}]}`,
			map[string]string{"cpu": "3", "memory": "4Gi", "storage": "69799645Ki"},
		},
		"Canonical":         {"upstream writes the canonical form", `{template: {spec: {domain: {memory: {guest: 4096Mi}}}}}`, map[string]string{"memory": "4Gi"}},
		"Topology":          {"sockets and threads multiply", `{template: {spec: {domain: {cpu: {cores: 2, sockets: 3, threads: 2}}}}}`, map[string]string{"cpu": "12"}},
		"SocketsAlone":      {"what is not set counts as one", `{template: {spec: {domain: {cpu: {sockets: 2, cores: 0}}}}}`, map[string]string{"cpu": "2"}},
		"ModelWithoutCores": {"nothing is counted", `{template: {spec: {domain: {cpu: {model: host-model}}}}}`, map[string]string{}},
		"NegativeCores":     {"no machine has so few", `{template: {spec: {domain: {cpu: {cores: -1}}}}}`, map[string]string{}},
		"TooManyCores":      {"the product must not overflow", `{template: {spec: {domain: {cpu: {cores: 4294967295, sockets: 4294967295, threads: 4294967295}}}}}`, map[string]string{}},
		"StorageField":      {"storage stands in for an absent pvc", `{dataVolumeTemplates: [{spec: {storage: {resources: {requests: {storage: 1Gi}}}}}]}`, map[string]string{"storage": "1Gi"}},
		"ClaimDecides":      {"a pvc without a size has none", `{dataVolumeTemplates: [{spec: {pvc: {}, storage: {resources: {requests: {storage: 1Gi}}}}}]}`, map[string]string{}},
		"SomeWithoutSize":   {"the others count", `{dataVolumeTemplates: [{spec: {}}, {}, text, {spec: {pvc: {resources: {requests: {storage: 1Gi}}}}}]}`, map[string]string{"storage": "1Gi"}},
		"Numbers":           {"quantities may be numbers", `{template: {spec: {domain: {memory: {guest: 1024}}}}, dataVolumeTemplates: [{spec: {pvc: {resources: {requests: {storage: 2048}}}}}]}`, map[string]string{"memory": "1024", "storage": "2048"}},
		"BadQuantities":     {"what is no quantity is left out", `{template: {spec: {domain: {memory: {guest: lots}}}}, dataVolumeTemplates: [{spec: {pvc: {resources: {requests: {storage: -1Gi}}}}}]}`, map[string]string{}},
		"OddTypes":          {"nothing panics", `{template: text, dataVolumeTemplates: text}`, map[string]string{}},
		"Empty":             {"nothing is said", `{}`, map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for key, value := range Capacity(parse(t, `{spec: {virtualMachineTemplate: {spec: `+tc.spec+`}}}`)) {
				got[key] = value.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	for _, text := range []string{`{}`, `{spec: {}}`, `{spec: {virtualMachineTemplate: {}}}`, `{spec: text}`} {
		if got := Capacity(parse(t, text)); len(got) > 0 {
			t.Errorf("%s has %v", text, got)
		}
	}
}

func TestMachineName(t *testing.T) {
	for id, want := range map[string]string{
		"kubevirt://a": "a", "kubevirt://a-b.c": "a-b.c", "kubevirt://": "", "kubevirt:/a": "", "dockyards://a": "", "": "",
		"kubevirt://a/../../secrets/b": "", "kubevirt://a/status": "", "kubevirt://A": "", "kubevirt:// a": "",
	} {
		node := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"providerID": id}}}
		if got := MachineName(node); got != want {
			t.Errorf("MachineName of %q = %q, want %q", id, got, want)
		}
	}
	if got := MachineName(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"providerID": int64(1)}}}); got != "" {
		t.Errorf("MachineName of a number = %q", got)
	}
}

func TestConclude(t *testing.T) {
	const (
		node    = `{metadata: {name: a}, spec: {providerID: "kubevirt://a"}, status: `
		machine = `{spec: {virtualMachineTemplate: {spec: {template: {spec: {domain: {cpu: {cores: 2}, memory: {guest: 4Gi}}}}}}}}`
	)
	cases := map[string]struct {
		reason        string
		node, machine string
		// want is the status; empty: no write expected.
		want  string
		class plan.Class
	}{
		"First":              {"nothing was there", `{metadata: {name: a}, spec: {providerID: "kubevirt://a"}}`, machine, `{resources: {cpu: "2", memory: 4Gi}}`, plan.Done},
		"OthersStay":         {"conditions and foreign keys are kept", node + `{conditions: [{type: Ready}], systemInfo: {a: b}, resources: {gpu: "1", cpu: "1"}}}`, machine, `{conditions: [{type: Ready}], systemInfo: {a: b}, resources: {gpu: "1", cpu: "2", memory: 4Gi}}`, plan.Done},
		"EqualByValue":       {"equal quantities keep their spelling", node + `{resources: {cpu: "2000m", memory: 4096Mi}}}`, machine, "", plan.Done},
		"NoLongerSaid":       {"what the template no longer says goes", node + `{resources: {cpu: "2", memory: 4Gi, storage: 1Gi}}}`, machine, `{resources: {cpu: "2", memory: 4Gi}}`, plan.Done},
		"BadValueIsReplaced": {"what is no quantity is not equal", node + `{resources: {cpu: 2, memory: lots}}}`, machine, `{resources: {cpu: 2, memory: 4Gi}}`, plan.Done},
		"NothingSaid":        {"an empty template writes nothing", node + `{}}`, `{spec: {}}`, "", plan.Done},
		"NoMachine":          {"nothing is known, so nothing is written", node + `{resources: {cpu: "9"}}}`, "", "", plan.Waiting},
		"OtherProvider":      {"it is no machine of KubeVirt", `{metadata: {name: a}, spec: {providerID: "aws://a"}}`, "", "", plan.Done},
		"NoProvider":         {"it has no machine yet", `{metadata: {name: a}}`, "", "", plan.Done},
		"Going":              {"it is being deleted", `{metadata: {name: a, deletionTimestamp: "2026-03-01T10:00:00Z"}, spec: {providerID: "kubevirt://a"}}`, machine, "", plan.Done},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := Input{Node: parse(t, tc.node), Machine: parse(t, tc.machine)}
			before := in.Node.DeepCopy()
			if decision := Decide(time.Time{}, in, nil); len(decision.Plan.Stages) > 0 || len(decision.Needs) > 0 {
				t.Errorf("the decision is %v", decision)
			}
			got := Conclude(time.Time{}, in, nil, nil)
			var want map[string]any
			if tc.want != "" {
				want = parse(t, `{status: `+tc.want+`}`).Object["status"].(map[string]any)
			}
			if diff := cmp.Diff(want, got.Status); diff != "" || got.Class != tc.class {
				t.Errorf("%s: class %s (-want +got):\n%s", tc.reason, got.Class, diff)
			}
			if !cmp.Equal(before, in.Node) {
				t.Error("the input has been changed")
			}
			if got.Status == nil {
				return
			}
			in.Node.Object["status"] = got.Status
			if again := Conclude(time.Time{}, in, nil, nil); again.Status != nil {
				t.Errorf("at the fixpoint it writes %v", again.Status)
			}
		})
	}
}
