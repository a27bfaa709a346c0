package nodepool

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// change is something that replaces machines.
type change struct {
	name string
	do   func(w *world)
	// template and bootstrap tell which reference of workers moves.
	template, bootstrap bool
	want                string
}

var changes = []change{
	{"CPU", func(w *world) { w.spec("resources: {cpu: 5}") }, true, false, "cpu"},
	{"Memory", func(w *world) { w.spec("resources: {memory: 8Gi}") }, true, false, "memory"},
	{"Storage", func(w *world) { w.spec("resources: {storage: 30Gi}") }, true, false, "disks"},
	{"FurtherDisk", func(w *world) { w.spec("storageResources: [{name: data, quantity: 5Gi, type: HostPath}]") }, true, false, "disks"},
	{"Release", func(w *world) {
		w.release("newer", "")
		w.spec("releaseRef: {apiGroup: dockyards.io, kind: Release, name: newer}")
	}, true, false, "release"},
	{"Network", func(w *world) {
		w.Create(`{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: a.b}, spec: {config: "{}"}}`)
	}, true, false, "networks"},
	{"PodSubnets", func(w *world) { w.Patch(dockyards.Clusters, owner, "spec: {podSubnets: [10.0.0.0/9]}") }, false, true, "Talos patches"},
	{"ConfigMap", func(w *world) {
		w.Patch(kind.ConfigMaps, w.settings.ConfigMapName, "data: {dockyards-kubevirt.env.NO_PROXY: 'internal.secret'}")
	}, false, true, "Talos patches"},
	{"Both", func(w *world) {
		w.spec("resources: {cpu: 5}")
		w.Patch(dockyards.Clusters, owner, "spec: {podSubnets: [10.0.0.0/9]}")
	}, true, true, "cpu, Talos patches"},
}

func TestAChangeMovesTheReferenceToANewTemplate(t *testing.T) {
	bothRoles(t, func(t *testing.T, controlPlane bool) {
		suite.Each(t, changes, func(c change) string { return c.name }, func(t *testing.T, c change) {
			w := newWorld(t)
			w.settings.Multus = true
			w.pool(subject, controlPlane, ", replicas: 3")
			f := w.provisioner()
			w.converged(f)
			before := w.machines(controlPlane)
			old := w.Must(dockyards.KubevirtMachineTemplates, subject)
			c.do(w)
			w.converged(f)

			infrastructure, bootstrap := w.named(controlPlane)
			if moved := infrastructure != subject; moved != c.template {
				t.Errorf("machines are made from template %q", infrastructure)
			}
			if moved := bootstrap != subject; !controlPlane && moved != c.bootstrap {
				t.Errorf("machines boot from template %q", bootstrap)
			}
			after := w.machines(controlPlane)
			if after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration()+1 {
				t.Errorf("generation %d became %d, UID %s became %s", before.GetGeneration(), after.GetGeneration(), before.GetUID(), after.GetUID())
			}
			if still := w.Get(dockyards.KubevirtMachineTemplates, subject); still != nil && still.GetGeneration() != old.GetGeneration() {
				t.Errorf("a template was changed, which cannot be")
			}
			if got, want := w.events(), []string{"RolloutStarted: machines are replaced, since these changed: " + c.want}; !slices.Equal(got, want) {
				t.Errorf("announced as %v, want %v", got, want)
			}
			w.is(subject, ready, "True Reconciled")
			// What nothing names goes with the next event.
			w.converged(f)
			for _, res := range []kind.Resource{dockyards.KubevirtMachineTemplates, configTemplates} {
				for _, name := range w.Names() {
					if rest, is := strings.CutPrefix(name, res.Kind+"/"); is && rest != infrastructure && rest != bootstrap {
						t.Errorf("%s is left, named are %q and %q", name, infrastructure, bootstrap)
					}
				}
			}
			f.Rests(w.Event(dockyards.NodePools, subject))
			if log := f.Log.String(); strings.Contains(log, "secret") || strings.Contains(strings.Join(w.events(), " "), "secret") {
				t.Error("a value of the config map got into the log or an Event")
			}
		})
	})
}

func TestAnOldTemplateStaysWhileMachinesNameIt(t *testing.T) {
	w, f := settled(t, false)
	w.Create(`{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtMachine, metadata: {name: m1, annotations: {cluster.x-k8s.io/cloned-from-name: `+subject+`}},
		spec: {virtualMachineTemplate: {spec: {template: {spec: {domain: {devices: {}}}}}}}}`,
		`{apiVersion: `+configs.APIVersion()+`, kind: TalosConfig, metadata: {name: m1, annotations: {cluster.x-k8s.io/cloned-from-name: `+subject+`}}, spec: {generateType: worker}}`,
		`{apiVersion: `+sets.APIVersion()+`, kind: MachineSet, metadata: {name: s1}, spec: {clusterName: prod, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
		spec: {clusterName: prod, bootstrap: {configRef: `+capiReference(configTemplates, subject)+`}, infrastructureRef: `+capiReference(dockyards.KubevirtMachineTemplates, subject)+`}}}}`)
	w.spec("resources: {cpu: 5}")
	w.Patch(dockyards.Clusters, owner, "spec: {podSubnets: [10.0.0.0/9]}")
	for _, user := range []func(){
		func() {},
		func() { w.Remove(sets, "s1") },
		func() { w.Remove(dockyards.KubevirtMachines, "m1") },
	} {
		user()
		w.converged(f)
		w.converged(f)
		w.Must(configTemplates, subject)
	}
	if w.Get(dockyards.KubevirtMachineTemplates, subject) != nil {
		t.Error("no machine names the machine template any more, and it is there")
	}
	w.Remove(configs, "m1")
	w.converged(f)
	if w.Get(configTemplates, subject) != nil {
		t.Error("no machine names the config template any more, and it is there")
	}
	f.Rests(w.Event(dockyards.NodePools, subject))
}

// TestReplicasAndVersionWaitForNothing breaks everything else about a live pool.
func TestReplicasAndVersionWaitForNothing(t *testing.T) {
	refuse := func(resource string, verbs ...string) suite.Tap {
		return func(c suite.Call) (*http.Response, error) {
			if c.Resource == resource && slices.Contains(verbs, c.Verb) {
				return suite.Answer(c.HTTP, http.StatusForbidden), nil
			}
			return nil, nil
		}
	}
	type hurdle struct {
		name string
		do   func(w *world)
		tap  suite.Tap
	}
	hurdles := []hurdle{
		{name: "NoRelease", do: func(w *world) { w.Remove(dockyards.Releases, image) }},
		{name: "NoConfigMap", do: func(w *world) { w.Remove(kind.ConfigMaps, w.settings.ConfigMapName) }},
		{name: "InvalidSpec", do: func(w *world) { w.spec("resources: {cpu: 0}") }},
		{name: "NoEndpoint", do: func(w *world) { w.Patch(dockyards.Clusters, owner, "status: {apiEndpoint: null}", "status") }},
		{name: "TemplateRefused", do: func(w *world) { w.spec("resources: {cpu: 5}") }, tap: refuse("kubevirtmachinetemplates", "create")},
		{name: "TemplatesUnread", do: func(*world) {}, tap: refuse("kubevirtmachinetemplates", "list", "get")},
		{name: "ReleasesUnread", do: func(*world) {}, tap: refuse("releases", "list")},
		{name: "Held", do: func(w *world) {
			w.Patch(dockyards.NodePools, subject, "metadata: {annotations: {slipway.dev/hold-rollouts: ''}}")
		}},
	}
	bothRoles(t, func(t *testing.T, controlPlane bool) {
		suite.Each(t, hurdles, func(h hurdle) string { return h.name }, func(t *testing.T, h hurdle) {
			w, _ := settled(t, controlPlane)
			infrastructure, bootstrap := w.named(controlPlane)
			h.do(w)
			w.spec("replicas: 5")
			want := "5 of v1.35.0"
			if h.name == "Held" {
				want = "5 of v1.34.1"
			}
			w.Patch(dockyards.Clusters, owner, "spec: {version: v1.35.0}")
			f := w.provisioner(suite.WithTap(h.tap))
			f.Send(w.Event(dockyards.NodePools, subject))
			if got := w.runs(controlPlane); got != want {
				t.Errorf("the pool runs %s, want %s; the log:\n%s", got, want, f.Log)
			}
			if i, b := w.named(controlPlane); i != infrastructure || b != bootstrap {
				t.Errorf("machines are made from %q and %q", i, b)
			}
		})
	})
}

func TestAHeldRolloutGoesOnWhenItIsLetGo(t *testing.T) {
	w, f := settled(t, true)
	w.Patch(dockyards.Clusters, owner, "metadata: {annotations: {slipway.dev/hold-rollouts: ''}}")
	w.spec("resources: {cpu: 5}")
	f.Insist(w.Event(dockyards.Clusters, owner))
	w.is(subject, control, "False RolloutHeld")
	w.is(subject, ready, "False RolloutHeld")
	w.says(subject, control, "cpu")
	if name, _ := w.named(true); name != subject || len(w.events()) > 0 {
		t.Errorf("held, and template %q is named, %v", name, w.events())
	}
	f.Rests(w.Event(dockyards.NodePools, subject))
	w.Patch(dockyards.Clusters, owner, "metadata: {annotations: {slipway.dev/hold-rollouts: null}}")
	f.Insist(w.Event(dockyards.Clusters, owner))
	if name, _ := w.named(true); name == subject || len(w.events()) != 1 {
		t.Errorf("let go, and template %q is named, %v", name, w.events())
	}
}

func TestAConfigMapThatIsGoneOrEmptyOrHalfWrittenStripsNothing(t *testing.T) {
	states := map[string]func(w *world){
		"gone":  func(w *world) { w.Remove(kind.ConfigMaps, w.settings.ConfigMapName) },
		"empty": func(w *world) { w.Patch(kind.ConfigMaps, w.settings.ConfigMapName, "data: null") },
		"half written": func(w *world) {
			w.Patch(kind.ConfigMaps, w.settings.ConfigMapName, "data: {dockyards-kubevirt.ntp.servers: null}")
		},
	}
	bothRoles(t, func(t *testing.T, controlPlane bool) {
		for name, state := range states {
			w, f := settled(t, controlPlane)
			before := w.machines(controlPlane)
			state(w)
			f.Insist(w.Event(kind.ConfigMaps, w.settings.ConfigMapName))
			after := w.machines(controlPlane)
			if before.GetResourceVersion() != after.GetResourceVersion() {
				t.Errorf("the config map is %s, and the machines' keeper was written: %s", name, suite.Bytes(t, after, "spec"))
			}
			part := map[bool]string{true: control, false: config}[controlPlane]
			if name == "gone" {
				w.is(subject, part, "False WaitingForConfigMap")
			} else {
				w.is(subject, part, "True Reconciled")
				w.says(subject, part, "dockyards-kubevirt.ntp.servers")
			}
			f.Rests(w.Event(dockyards.NodePools, subject))
		}
	})
}

func TestAConfigMapThatCannotBeReadStopsThePass(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		w, _ := settled(t, false)
		w.spec("replicas: 9")
		f := w.provisioner(suite.WithTap(func(c suite.Call) (*http.Response, error) {
			if c.Resource == "configmaps" {
				return suite.Answer(c.HTTP, code), nil
			}
			return nil, nil
		}))
		if got := f.Send(w.Event(dockyards.NodePools, subject)); got != http.StatusServiceUnavailable {
			t.Errorf("%d was answered by %d", code, got)
		}
		w.is(subject, config, "False ErrorReconciling")
		if got := w.runs(false); got != "3 of v1.34.1" {
			t.Errorf("it wrote all the same: %s", got)
		}
		w.converged(w.provisioner())
		w.is(subject, ready, "True Reconciled")
	}
}
