package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// input is a healthy cluster; a test changes it.
func input(t testing.TB, change ...func(*Input)) Input {
	t.Helper()
	in := Input{Settings: DefaultSettings(), Config: config(t, "east"), Definitions: definitions(t), Sight: healthy(t, "east")}
	for _, do := range change {
		do(&in)
	}
	return in
}

// told is what a status says, in one line for each of its parts.
func told(status map[string]any) []string {
	lines := []string{text(status, "phase") + " " + text(status, "status")}
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok {
			lines = append(lines, text(fields, "type")+" "+text(fields, "status")+" "+text(fields, "reason"))
		}
	}
	return lines
}

func TestConclude(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Input)
		class  plan.Class
		want   []string
		says   string
	}{
		"all is well": {
			reason: "the first two decide the phase", change: func(*Input) {}, class: plan.Done,
			want: []string{"Ready Connected", "Connected True Connected", "KubeVirtReady True KubeVirtAvailable", "VersionsMatch True VersionsMatch"},
		},
		"the Secret is missing": {
			reason: "a person has to create it",
			change: func(in *Input) {
				in.Sight = Sight{Cluster: "east", Connection: plan.Connection{Refused: plan.SecretNotFound, Message: `Secret "east" does not exist`}}
			},
			class: plan.Terminal, says: `Secret "east" does not exist`,
			want: []string{"Failed Disconnected", "Connected False SecretNotFound", "KubeVirtReady Unknown Waiting", "VersionsMatch Unknown SecretNotFound"},
		},
		"the Secret lacks the key": {
			reason: "no kubeconfig is there",
			change: func(in *Input) {
				in.Sight = Sight{Cluster: "east", Connection: plan.Connection{Refused: plan.KeyMissing, Message: "no key"}}
			},
			class: plan.Terminal, says: "no key",
			want: []string{"Failed Disconnected", "Connected False SecretNotFound", "KubeVirtReady Unknown Waiting", "VersionsMatch Unknown SecretNotFound"},
		},
		"the kubeconfig is refused": {
			reason: "it would run a program, or is no kubeconfig",
			change: func(in *Input) {
				in.Sight = Sight{Cluster: "east", Connection: plan.Connection{Refused: plan.KubeconfigInvalid, Message: "user has the field exec"}}
			},
			class: plan.Terminal, says: "exec",
			want: []string{"Failed Disconnected", "Connected False KubeconfigInvalid", "KubeVirtReady Unknown Waiting", "VersionsMatch Unknown KubeconfigInvalid"},
		},
		"the cluster does not answer": {
			reason: "it may come back by itself",
			change: func(in *Input) { in.Sight.Unreachable = gone("dial tcp 10.0.0.1:6443: connect: connection refused") },
			class:  plan.Waiting, says: "https://east:6443 does not answer: it refuses connections",
			want: []string{"Failed Disconnected", "Connected False Unreachable", "KubeVirtReady Unknown Waiting", "VersionsMatch Unknown Unreachable"},
		},
		"the credentials are refused": {
			reason: "401 may be an API server that starts, and is waited for",
			change: func(in *Input) {
				in.Sight.Unreachable = &fault.Fault{Class: fault.Unavailable, Code: 401, Cluster: "east", Message: "Unauthorized"}
			},
			class: plan.Waiting, says: "401",
			want: []string{"Failed Disconnected", "Connected False Unauthorized", "KubeVirtReady Unknown Waiting", "VersionsMatch Unknown Unauthorized"},
		},
		"namespaces may not be listed": {
			reason: "a person has to grant it; the rest is checked all the same",
			change: func(in *Input) { in.Sight.NamespacesRefused = forbidden("list namespaces") },
			class:  plan.Terminal, says: "missing right: the account in the kubeconfig may not list namespaces",
			want: []string{"Failed Disconnected", "Connected False Unauthorized", "KubeVirtReady True KubeVirtAvailable", "VersionsMatch True VersionsMatch"},
		},
		"KubeVirt may not be listed": {
			reason: "nobody can tell whether it works",
			change: func(in *Input) {
				in.Sight.KubeVirts, in.Sight.KubeVirtsRefused = nil, forbidden("list kubevirts.kubevirt.io")
			},
			class: plan.Terminal, says: "may not list kubevirts.kubevirt.io",
			want: []string{"Failed Connected", "Connected True Connected", "KubeVirtReady Unknown Unauthorized", "VersionsMatch True VersionsMatch"},
		},
		"definitions may not be read": {
			reason: "the phase does not depend on it",
			change: func(in *Input) {
				in.Sight.Stored, in.Sight.StoredRefused = nil, forbidden("get customresourcedefinitions.apiextensions.k8s.io virtualmachines.kubevirt.io")
			},
			class: plan.Terminal, says: "virtualmachines.kubevirt.io",
			want: []string{"Ready Connected", "Connected True Connected", "KubeVirtReady True KubeVirtAvailable", "VersionsMatch Unknown Unauthorized"},
		},
		"KubeVirt is not there": {
			reason: "somebody may install it",
			change: func(in *Input) { in.Sight.KubeVirts, in.Sight.Stored = nil, map[string]string{} },
			class:  plan.Waiting, says: "install KubeVirt",
			want: []string{"Failed Connected", "Connected True Connected", "KubeVirtReady False KubeVirtMissing", "VersionsMatch Unknown KubeVirtMissing"},
		},
		"KubeVirt is not available": {
			reason: "it says why",
			change: func(in *Input) {
				in.Sight.KubeVirts = []unstructured.Unstructured{kubeVirt(t, "b", "False", "later"), kubeVirt(t, "a", "False", "deploying")}
			},
			class: plan.Waiting, says: `KubeVirt "kubevirt" in namespace "a" is not available: deploying`,
			want: []string{"Failed Connected", "Connected True Connected", "KubeVirtReady False KubeVirtNotAvailable", "VersionsMatch True VersionsMatch"},
		},
		"one of two installations is available": {
			reason: "one that works is enough, in whatever namespace",
			change: func(in *Input) {
				in.Sight.KubeVirts = []unstructured.Unstructured{kubeVirt(t, "a", "False", "old"), kubeVirt(t, "b", "True", "new")}
			},
			class: plan.Done,
			want:  []string{"Ready Connected", "Connected True Connected", "KubeVirtReady True KubeVirtAvailable", "VersionsMatch True VersionsMatch"},
		},
		"versions differ": {
			reason: "a warning: the phase is Ready",
			change: func(in *Input) {
				other := healthy(t, "alpha")
				in.Yardstick = &other
				in.Sight.Stored = map[string]string{"virtualmachines": "v1alpha3", "virtualmachineinstances": "v1"}
			},
			class: plan.Done, says: `virtualmachines v1alpha3, virtualmachineinstances v1; on cluster "alpha", the first by name: virtualmachines v1,`,
			want: []string{"Ready Connected", "Connected True Connected", "KubeVirtReady True KubeVirtAvailable", "VersionsMatch False VersionsDiffer"},
		},
		"one of the definitions is missing": {
			reason: "that is a difference too",
			change: func(in *Input) {
				other := healthy(t, "alpha")
				in.Yardstick = &other
				in.Sight.Stored = map[string]string{"virtualmachines": "v1"}
			},
			class: plan.Done, says: "virtualmachineinstances not there",
			want: []string{"Ready Connected", "Connected True Connected", "KubeVirtReady True KubeVirtAvailable", "VersionsMatch False VersionsDiffer"},
		},
		"the yardstick has just gone": {
			reason: "nobody knows yet; it will be said of that cluster first",
			change: func(in *Input) { in.Yardstick = &Sight{Cluster: "alpha", Unreachable: gone("EOF")} },
			class:  plan.Done, says: `the versions on cluster "alpha", the first by name, cannot be read`,
			want: []string{"Ready Connected", "Connected True Connected", "KubeVirtReady True KubeVirtAvailable", "VersionsMatch Unknown Waiting"},
		},
		"a definition of the management cluster lacks a property": {
			reason: "a warning",
			change: func(in *Input) {
				machines := in.Definitions.Found["machines.vitistack.io"]
				versions, _, _ := unstructured.NestedSlice(machines.Object, "spec", "versions")
				unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", "instanceType")
				_ = unstructured.SetNestedSlice(machines.Object, versions, "spec", "versions")
			},
			class: plan.Done, says: "machines.vitistack.io lacks spec.instanceType",
			want: []string{"Ready Connected", "Connected True Connected", "KubeVirtReady True KubeVirtAvailable", "VersionsMatch False SchemaIncomplete"},
		},
		"a definition of the management cluster does not exist": {
			reason: "a warning",
			change: func(in *Input) { delete(in.Definitions.Found, "networkconfigurations.vitistack.io") },
			class:  plan.Done, says: "networkconfigurations.vitistack.io does not exist",
			want: []string{"Ready Connected", "Connected True Connected", "KubeVirtReady True KubeVirtAvailable", "VersionsMatch False SchemaIncomplete"},
		},
		"the definitions of the management cluster may not be read": {
			reason: "that says nothing of the target",
			change: func(in *Input) {
				in.Definitions = Definitions{Refused: &fault.Fault{Class: fault.Refused, Code: 403, Call: "get"}}
			},
			class: plan.Done,
			want:  []string{"Ready Connected", "Connected True Connected", "KubeVirtReady True KubeVirtAvailable", "VersionsMatch True VersionsMatch"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(t, tc.change)
			c := Conclude(noon, in, nil, nil)
			if diff := cmp.Diff(tc.want, told(c.Status)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if c.Class != tc.class {
				t.Errorf("%s: class %s, want %s", tc.reason, c.Class, tc.class)
			}
			message := text(c.Status, "message")
			if !strings.Contains(message, tc.says) || (tc.says == "") != (message == "") || c.Message != message || len(message) > messageMax {
				t.Errorf("%s: the message is %q, want %q in it", tc.reason, message, tc.says)
			}
			if len(c.Log) != 3 || len(c.Events) != 1 {
				t.Errorf("%s: a first look is worth a line for each condition and an Event: %q, %v", tc.reason, c.Log, c.Events)
			}
			fixpoint(t, in, c)
			if d := Decide(noon, in, nil); len(d.Plan.Stages) > 0 || len(d.Needs) > 0 || len(d.Reasons) != 3 {
				t.Errorf("it decides to write more than the status: %+v", d)
			}
		})
	}
}

// fixpoint wants the same look, an hour later, to give the same status and to say
// nothing.
func fixpoint(t *testing.T, in Input, c plan.Conclusion) {
	t.Helper()
	in.Config = in.Config.DeepCopy()
	in.Config.Object["status"] = c.Status
	again := Conclude(noon.Add(time.Hour), in, nil, nil)
	if diff := cmp.Diff(c.Status, again.Status); diff != "" {
		t.Errorf("the same state gives another status (-first +second):\n%s", diff)
	}
	if len(again.Log) > 0 || len(again.Events) > 0 {
		t.Errorf("nothing happened, and it says %q, %v", again.Log, again.Events)
	}
}

func TestFieldsAndConditionsOfOthersStay(t *testing.T) {
	in := input(t, func(in *Input) {
		in.Config = config(t, "east", `status: {created: long ago, phase: Failed, message: old, conditions: [
			{type: Theirs, status: "True", lastTransitionTime: null},
			{type: Connected, status: "True", reason: Connected, lastTransitionTime: "2020-01-01T00:00:00Z"},
			{type: Theirs, status: "False"}]}`)
	})
	status := Conclude(noon, in, nil, nil).Status
	if status["created"] != "long ago" || status["name"] != "east" || status["message"] != nil {
		t.Errorf("the status is %v", status)
	}
	list, _ := status["conditions"].([]any)
	want := []any{
		map[string]any{"type": "Theirs", "status": "True", "lastTransitionTime": nil},
		map[string]any{
			"type": "Connected", "status": "True", "reason": "Connected", "message": "the API server at https://east:6443 answers",
			"observedGeneration": int64(3), "lastTransitionTime": "2020-01-01T00:00:00Z",
		},
		map[string]any{"type": "Theirs", "status": "False"},
	}
	if diff := cmp.Diff(want, list[:3]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnOlderDefinitionIsNotSentWhatItDoesNotStore(t *testing.T) {
	in := input(t, func(in *Input) {
		configs := in.Definitions.Found["kubevirtconfigs.vitistack.io"]
		versions, _, _ := unstructured.NestedSlice(configs.Object, "spec", "versions")
		unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "status", "properties", "conditions")
		_ = unstructured.SetNestedSlice(configs.Object, versions, "spec", "versions")
	})
	want := map[string]any{"name": "east", "phase": "Ready", "status": "Connected"}
	if diff := cmp.Diff(want, Conclude(noon, in, nil, nil).Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAConfigOfAnotherNamespaceIsLeftAlone(t *testing.T) {
	in := input(t, func(in *Input) { in.Config.SetNamespace("elsewhere") })
	c := Conclude(noon, in, nil, nil)
	if c.Status != nil || c.Class != plan.Done || len(c.Events) > 0 {
		t.Errorf("it is told %+v", c)
	}
	in.Config.SetNamespace(in.Settings.ConfigsNamespace)
	if c := Conclude(noon, in, nil, nil); c.Status == nil {
		t.Error("one of the right namespace is told nothing")
	}
}

// TestAVerdictStaysWhileItsYardstickIsAway: what was True or False stays, what
// was not known is Waiting.
func TestAVerdictStaysWhileItsYardstickIsAway(t *testing.T) {
	away := func(in *Input) { in.Yardstick = &Sight{Cluster: "alpha", Unreachable: gone("EOF")} }
	for before, want := range map[string]string{
		`{type: VersionsMatch, status: "True", reason: VersionsMatch, message: m}`:     "VersionsMatch True VersionsMatch",
		`{type: VersionsMatch, status: "False", reason: VersionsDiffer, message: m}`:   "VersionsMatch False VersionsDiffer",
		`{type: VersionsMatch, status: "Unknown", reason: Unreachable, message: gone}`: "VersionsMatch Unknown Waiting",
	} {
		in := input(t, away, func(in *Input) { in.Config = config(t, "east", "status: {conditions: ["+before+"]}") })
		if lines := told(Conclude(noon, in, nil, nil).Status); !slices.Contains(lines, want) {
			t.Errorf("it was %s, and is %q", before, lines)
		}
	}
}

// TestTheSameCauseGivesTheSameWords: an answer that the runtime remembers is the
// same as one that was given just now.
func TestTheSameCauseGivesTheSameWords(t *testing.T) {
	remembered := gone("the API server answered 401 Unauthorized to a request just before")
	refused := &fault.Fault{Class: fault.Unavailable, Code: 401, Cluster: "east", Message: "Unauthorized"}
	for _, f := range []*fault.Fault{remembered, refused} {
		if v := (Sight{Unreachable: f}).Connected(); v.Reason != "Unauthorized" || v.Message != (Sight{Unreachable: refused}).Connected().Message {
			t.Errorf("%v is told as %+v", f, v)
		}
	}
	one := gone("read tcp 10.0.0.2:41002->10.0.0.1:6443: read: connection reset by peer")
	other := gone("read tcp 10.0.0.2:50876->10.0.0.1:6443: read: connection reset by peer")
	if a, b := (Sight{Unreachable: one}).Connected(), (Sight{Unreachable: other}).Connected(); a != b {
		t.Errorf("a connection that breaks is told as %+v and %+v", a, b)
	}
}
