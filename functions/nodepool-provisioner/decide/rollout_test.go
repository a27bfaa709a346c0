package decide

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

func TestANewPoolGetsItsObjectsAndThenRests(t *testing.T) {
	for controlPlane, want := range map[bool][]string{
		true: {
			"create KubevirtMachineTemplate team/pool", "create TalosControlPlane team/pool", "patch Cluster team/c1",
		},
		false: {
			"create KubevirtMachineTemplate team/pool", "create TalosConfigTemplate team/pool", "create MachineDeployment team/pool",
		},
	} {
		w := newWorld(t, controlPlane)
		writes, c := w.pass()
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if c.Class != plan.Done {
			t.Errorf("it came to %s %s: %s", c.Class, c.Reason, c.Message)
		}
		for conditionType, got := range w.conditions() {
			if got != "True Reconciled" {
				t.Errorf("%s is %s", conditionType, got)
			}
		}
		before := w.in.Pool
		if writes, _ := w.pass(); len(writes) > 0 {
			t.Errorf("the second pass wrote %v", writes)
		}
		if diff := cmp.Diff(before.Object, w.in.Pool.Object); diff != "" {
			t.Errorf("the second pass wrote another status:\n%s", diff)
		}
	}
}

func TestAChangedInputRollsMachinesByANewTemplate(t *testing.T) {
	cases := map[string]struct {
		change func(w *world)
		want   string
	}{
		"cpu":     {func(w *world) { set(w.in.Pool, "4", "spec", "resources", "cpu") }, "cpu"},
		"memory":  {func(w *world) { set(w.in.Pool, "8Gi", "spec", "resources", "memory") }, "memory"},
		"storage": {func(w *world) { set(w.in.Pool, "30Gi", "spec", "resources", "storage") }, "disks"},
		"a further disk": {func(w *world) {
			set(w.in.Pool, []any{map[string]any{"name": "data", "quantity": "1Gi"}}, "spec", "storageResources")
		}, "disks"},
		"release":        {func(w *world) { w.in.Release.SetName("other"); w.in.DataSource.SetName("other") }, "release"},
		"storage class":  {func(w *world) { w.in.Settings.StorageClass = "" }, "disks"},
		"live migration": {func(w *world) { w.in.Settings.PodBridgeLiveMigration = true }, "machine template"},
		"networks":       {func(w *world) { w.in.Settings.Multus = true; w.in.Networks = definitions(t, "blue") }, "networks"},
		"pod subnets":    {func(w *world) { set(w.in.Cluster, []any{"10.0.0.0/8"}, "spec", "podSubnets") }, "Talos patches"},
		"time servers":   {func(w *world) { w.config(map[string]string{dockyards.KeyNTPServers: "time.a"}) }, "Talos patches"},
		"Talos version":  {func(w *world) { w.in.Settings.TalosVersion = "v1.13" }, "Talos version or type"},
		"cpu and subnets": {func(w *world) {
			set(w.in.Pool, "4", "spec", "resources", "cpu")
			w.in.Settings.NodeSubnets = []string{"10.0.0.0/8"}
		}, "cpu, Talos patches"},
		"Kubernetes alone": {func(w *world) { set(w.in.Cluster, "v1.35.0", "spec", "version") }, "version"},
	}
	for name, tc := range cases {
		for _, controlPlane := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, controlPlane)
				w.rest()
				first := w.infrastructure()
				tc.change(w)
				writes, events, _ := w.rest()
				if want := []string{"RolloutStarted: machines are replaced, since these changed: " + tc.want}; !slices.Equal(events, want) {
					t.Errorf("it was announced as %v, want %v", events, want)
				}
				machines := w.conditions()[map[bool]string{true: "TalosControlPlaneReconciled", false: "MachineDeploymentReconciled"}[controlPlane]]
				if !strings.HasPrefix(machines, "True Reconciled: last rollout ") || !strings.HasSuffix(machines, ": "+tc.want) {
					t.Errorf("the condition says %q", machines)
				}
				moved := w.infrastructure() != first
				if template := !strings.Contains(tc.want, "Talos") && tc.want != "version" || strings.Contains(tc.want, "cpu"); moved != template {
					t.Errorf("the machine template was %s and is %s, after %v", first, w.infrastructure(), writes)
				}
				for _, name := range w.templates() {
					if moved && name == "KubevirtMachineTemplate "+first {
						t.Errorf("template %s is still there, after %v", name, writes)
					}
				}
			})
		}
	}
}

func TestAnInputThatIsWrittenInAnotherWayRollsNothing(t *testing.T) {
	w := newWorld(t, true)
	w.in.Settings.Multus, w.in.Networks = true, definitions(t, "blue", "a.red")
	w.rest()
	set(w.in.Pool, "4Gi", "spec", "resources", "memory")
	set(w.in.Pool, int64(3), "spec", "resources", "cpu")
	slices.Reverse(w.in.Networks)
	set(w.in.Cluster, "1.34.1", "spec", "version")
	if writes, events, _ := w.rest(); len(writes)+len(events) > 0 {
		t.Errorf("it wrote %v %v", writes, events)
	}
}

func TestAnOldTemplateStaysWhileAnythingNamesIt(t *testing.T) {
	users := map[string]string{
		"KubevirtMachine": `{kind: KubevirtMachine, metadata: {name: m, annotations: {cluster.x-k8s.io/cloned-from-name: pool}}}`,
		"MachineSet": `{kind: MachineSet, metadata: {name: s}, spec: {template: {spec: {
			infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: KubevirtMachineTemplate, name: pool}}}}}`,
	}
	for kindName, manifest := range users {
		w := newWorld(t, false)
		w.rest()
		w.further[kindName] = []unstructured.Unstructured{*object(t, manifest)}
		set(w.in.Pool, "4", "spec", "resources", "cpu")
		w.rest()
		if got := w.templates(); len(got) != 3 {
			t.Errorf("a %s names template pool, and there are %v", kindName, got)
		}
		delete(w.further, kindName)
		w.rest()
		if got := w.templates(); len(got) != 2 || slices.Contains(got, "KubevirtMachineTemplate pool") {
			t.Errorf("no %s names template pool any more, and there are %v", kindName, got)
		}
	}
}

func TestATemplateThatSaysItAlreadyIsUsedAgain(t *testing.T) {
	w := newWorld(t, false)
	w.rest()
	w.further["KubevirtMachine"] = []unstructured.Unstructured{
		*object(t, `{kind: KubevirtMachine, metadata: {name: m, annotations: {cluster.x-k8s.io/cloned-from-name: pool}}}`),
	}
	set(w.in.Pool, "4", "spec", "resources", "cpu")
	w.rest()
	set(w.in.Pool, "2500m", "spec", "resources", "cpu")
	w.rest()
	if got := w.infrastructure(); got != "pool" {
		t.Errorf("the pool is as it was, and its machines are made from %s", got)
	}
	// The other one is younger than the one in use: a copy that still sees the pool
	// as it was between may be about to name it.
	if got := w.templates(); len(got) != 3 {
		t.Errorf("there are %v", got)
	}
}

func TestAHeldPoolKeepsItsMachinesAndGetsReplicas(t *testing.T) {
	for _, where := range []string{"pool", "Cluster"} {
		w := newWorld(t, true)
		w.rest()
		before := w.in.Machines.DeepCopy()
		holder := map[string]*unstructured.Unstructured{"pool": w.in.Pool, "Cluster": w.in.Cluster}[where]
		dockyards.SetAnnotation(holder, v1alpha3.AnnotationHoldRollouts, "")
		w.rest()
		w.is("TalosControlPlaneReconciled", "True Reconciled")
		set(w.in.Pool, "4", "spec", "resources", "cpu")
		set(w.in.Pool, int64(5), "spec", "replicas")
		set(w.in.Cluster, "v1.35.0", "spec", "version")
		if _, events, _ := w.rest(); len(events) > 0 {
			t.Errorf("it announced %v", events)
		}
		w.is("TalosControlPlaneReconciled", "False RolloutHeld: held back by annotation slipway.dev/hold-rollouts: cpu, version")
		w.is("Ready", "False RolloutHeld")
		set(before, int64(5), "spec", "replicas")
		if diff := cmp.Diff(before.Object["spec"], w.in.Machines.Object["spec"]); diff != "" {
			t.Errorf("held by its %s, and changed:\n%s", where, diff)
		}
		for _, obj := range []*unstructured.Unstructured{w.in.Pool, w.in.Cluster} {
			obj.SetAnnotations(nil)
		}
		if _, events, _ := w.rest(); len(events) != 1 {
			t.Errorf("no more held, it announced %v", events)
		}
		w.is("Ready", "True Reconciled")
	}
}

func TestAdoptionKeepsWhatWasFound(t *testing.T) {
	for _, controlPlane := range []bool{true, false} {
		w := newWorld(t, controlPlane)
		w.rest()
		// Upstream's objects carry no record, and a template that the pool has left
		// behind; the config map has changed since.
		w.in.Machines.SetAnnotations(nil)
		set(w.in.Pool, "8Gi", "spec", "resources", "memory")
		w.config(map[string]string{dockyards.KeyNTPServers: "time.a"})
		before := w.in.Machines.DeepCopy()
		writes, events, _ := w.rest()
		if len(writes) != 1 || len(events) != 0 || w.recorded() == "" {
			t.Errorf("adoption wrote %v %v", writes, events)
		}
		if diff := cmp.Diff(before.Object["spec"], w.in.Machines.Object["spec"]); diff != "" {
			t.Errorf("adoption changed:\n%s", diff)
		}
		const found = "True Reconciled: found otherwise than asked for, which follows with the next rollout: "
		w.is("KubevirtMachineTemplateReconciled", found+"memory")
		w.is(map[bool]string{true: "TalosControlPlaneReconciled", false: "TalosConfigTemplateReconciled"}[controlPlane], found+"Talos patches")
		w.is("Ready", "True Reconciled")

		set(w.in.Pool, "4", "spec", "resources", "cpu")
		if _, events, _ := w.rest(); len(events) != 1 || !strings.HasSuffix(events[0], ": cpu, memory, Talos patches") {
			t.Errorf("the next change carries everything out: %v", events)
		}
	}
}

func TestNothingIsRecordedWhileAnInputIsMissing(t *testing.T) {
	w := newWorld(t, true)
	w.rest()
	w.in.Machines.SetAnnotations(nil)
	w.in.Release = nil
	set(w.in.Pool, int64(1), "spec", "replicas")
	w.rest()
	if w.recorded() != "" {
		t.Errorf("without a Release it recorded %s", w.recorded())
	}
	if replicas, _ := number(w.in.Machines.Object, "spec", "replicas"); replicas != 1 {
		t.Errorf("there are %d replicas", replicas)
	}
}

func TestReplicasThatThePoolDoesNotStateAreLeft(t *testing.T) {
	for _, controlPlane := range []bool{true, false} {
		w := newWorld(t, controlPlane)
		w.rest()
		drop(w.in.Pool.Object, "spec", "replicas")
		set(w.in.Machines, int64(7), "spec", "replicas")
		if writes, _, _ := w.rest(); len(writes) > 0 {
			t.Errorf("it wrote %v", writes)
		}
	}
}

func TestATemplateThatIsMissingIsMadeUnderTheNameThatIsUsed(t *testing.T) {
	for _, controlPlane := range []bool{true, false} {
		w := newWorld(t, controlPlane)
		w.rest()
		set(w.in.Pool, "4", "spec", "resources", "cpu")
		w.rest()
		used := w.infrastructure()
		w.in.MachineTemplates = nil
		before := w.in.Machines.DeepCopy()
		w.rest()
		if find(w.in.MachineTemplates, used) == nil {
			t.Errorf("template %s was not made again: %v", used, w.templates())
		}
		if diff := cmp.Diff(before.Object, w.in.Machines.Object); diff != "" {
			t.Errorf("what names the template changed:\n%s", diff)
		}
	}
}

func TestAFailureOfTheTemplateIsSaidAndRetried(t *testing.T) {
	w := newWorld(t, false)
	decision, known := w.decide()
	refused := &fault.Fault{Class: fault.Refused, Call: "create kubevirtmachinetemplates team/pool", Code: 403, Message: "no"}
	var outcomes plan.Outcomes
	for _, stage := range decision.Plan.Stages {
		for _, entry := range stage.Entries {
			o := plan.Outcome{Entry: entry, Result: plan.Skipped}
			switch entry.Resource.Kind {
			case "KubevirtMachineTemplate":
				o.Result, o.Fault = plan.Failed, refused
			case "TalosConfigTemplate":
				o.Result, o.Object = plan.Created, entry.Object
			}
			outcomes = append(outcomes, o)
		}
	}
	c := Conclude(now, w.in, known, outcomes)
	set(w.in.Pool, c.Status, "status")
	if c.Class != plan.Retry {
		t.Errorf("it came to %s", c.Class)
	}
	w.is("KubevirtMachineTemplateReconciled", "False ErrorReconciling: cannot create kubevirtmachinetemplates team/pool: no")
	w.is("TalosConfigTemplateReconciled", "True Reconciled")
	w.is("MachineDeploymentReconciled", "False WaitingForMachineTemplate")
	w.is("Ready", "False ErrorReconciling")
}

func TestARolloutIsAnnouncedOnceWhateverComesBetween(t *testing.T) {
	w := newWorld(t, true)
	w.rest()
	set(w.in.Pool, "4", "spec", "resources", "cpu")
	status := w.in.Pool.DeepCopy().Object["status"]
	if _, c := w.pass(); len(c.Events) != 1 {
		t.Fatalf("announced: %v", c.Events)
	}
	// The status met a newer pool: the next pass sees nothing left to roll.
	set(w.in.Pool, status, "status")
	if _, c := w.pass(); len(c.Events) != 1 {
		t.Errorf("not announced after the status was lost: %v", c.Events)
	}
	if _, c := w.pass(); len(c.Events) != 0 {
		t.Errorf("announced again: %v", c.Events)
	}
	w.in.CAPICluster = nil
	if _, c := w.pass(); len(c.Events) != 0 {
		t.Errorf("announced again with another condition: %v", c.Events)
	}
}
