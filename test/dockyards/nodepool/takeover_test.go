package nodepool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// upstream is the field manager of dockyards-kubevirt: the name of its binary.
const upstream = "dockyards-kubevirt"

// poolReference is upstream's ownerReference to a pool.
func (w *world) poolReference() string {
	w.TB.Helper()
	pool := w.Must(dockyards.NodePools, subject)
	return fmt.Sprintf("{apiVersion: dockyards.io/v1alpha3, kind: NodePool, name: %s, uid: %s}", subject, pool.GetUID())
}

// capiOwner is what Cluster API adds to the owners.
func (w *world) capiOwner() string {
	w.TB.Helper()
	cluster := w.Must(capis, owner)
	return fmt.Sprintf("{apiVersion: %s, kind: Cluster, name: %s, uid: %s}", capis.APIVersion(), owner, cluster.GetUID())
}

// upstreamTemplate is a machine template as upstream's Go types write it: sizes as the
// pool had them once, networks in the order in which they came.
func (w *world) upstreamTemplate(memory, networks string) string {
	interfaces := ""
	for _, name := range strings.Split(networks, " ") {
		interfaces += "{name: " + name + ", bridge: {}}, "
	}
	nets := ""
	for _, name := range strings.Split(networks, " ") {
		if name == "default" {
			nets += "{name: default, pod: {}}, "
			continue
		}
		nets += "{name: " + name + ", multus: {networkName: " + w.NS + "/" + name + "}}, "
	}
	return `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: KubevirtMachineTemplate
metadata: {name: ` + subject + `, ownerReferences: [` + w.poolReference() + `]}
spec:
  template:
    spec:
      virtualMachineBootstrapCheck: {checkStrategy: none}
      virtualMachineTemplate:
        metadata: {creationTimestamp: null}
        spec:
          runStrategy: Always
          dataVolumeTemplates:
          - metadata: {name: boot, creationTimestamp: null}
            spec:
              pvc:
                accessModes: [ReadWriteMany]
                resources: {requests: {storage: 20Gi}}
                storageClassName: rook-ceph-block
                volumeMode: Block
              sourceRef: {kind: DataSource, name: ` + image + `, namespace: ` + w.NS + `}
          template:
            metadata: {creationTimestamp: null}
            spec:
              evictionStrategy: LiveMigrate
              domain:
                cpu: {cores: 3}
                memory: {guest: ` + memory + `}
                resources: {}
                devices:
                  disks: [{name: boot, disk: {bus: virtio}}]
                  interfaces: [` + interfaces + `]
              networks: [` + nets + `]
              volumes: [{name: boot, dataVolume: {name: boot}}]
`
}

// controlPatch and its spelling are upstream's.
func controlPatch(host string) string {
	return `"version: v1alpha1\ncluster:\n    apiServer:\n        certSANs:\n            - ` + host + `\n"`
}

func (w *world) upstreamControlPlane(patches ...string) string {
	return `
apiVersion: controlplane.cluster.x-k8s.io/v1alpha3
kind: TalosControlPlane
metadata: {name: ` + subject + `, labels: {cluster.x-k8s.io/cluster-name: ` + owner + `}, ownerReferences: [` + w.poolReference() + `, ` + w.capiOwner() + `]}
spec:
  version: v1.34.1
  replicas: 3
  infrastructureTemplate: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtMachineTemplate, name: ` + subject + `, namespace: ` + w.NS + `}
  controlPlaneConfig:
    controlplane: {generateType: controlplane, hostname: {}, talosVersion: v1.12, strategicPatches: [` + strings.Join(patches, ", ") + `]}
    init: {generateType: "", hostname: {}}
`
}

// upstreamDeployment is as upstream and Cluster API's webhook leave it.
func (w *world) upstreamDeployment() string {
	labels := "{cluster.x-k8s.io/deployment-name: " + subject + ", cluster.x-k8s.io/cluster-name: " + owner + "}"
	more, bootstrap, infrastructure := "", capiReference(configTemplates, subject), capiReference(dockyards.KubevirtMachineTemplates, subject)
	if here.capi[0] == "v1beta1" {
		more = "  minReadySeconds: 0\n  revisionHistoryLimit: 1\n  progressDeadlineSeconds: 600\n" +
			"  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n"
		bootstrap = strings.TrimSuffix(bootstrap, "}") + ", namespace: " + w.NS + "}"
		infrastructure = strings.TrimSuffix(infrastructure, "}") + ", namespace: " + w.NS + "}"
	}
	return `
apiVersion: ` + deployments.APIVersion() + `
kind: MachineDeployment
metadata: {name: ` + subject + `, labels: {cluster.x-k8s.io/cluster-name: ` + owner + `}, ownerReferences: [` + w.poolReference() + `, ` + w.capiOwner() + `]}
spec:
  clusterName: ` + owner + `
  replicas: 3
  selector: {matchLabels: ` + labels + `}
` + more + `  template:
    metadata: {labels: ` + labels + `}
    spec:
      clusterName: ` + owner + `
      version: v1.34.1
      bootstrap: {configRef: ` + bootstrap + `}
      infrastructureRef: ` + infrastructure + `
`
}

func (w *world) upstreamConfigTemplate(patches ...string) string {
	list := ""
	if len(patches) > 0 {
		list = ", strategicPatches: [" + strings.Join(patches, ", ") + "]"
	}
	return `{apiVersion: ` + configTemplates.APIVersion() + `, kind: TalosConfigTemplate, metadata: {name: ` + subject + `, ownerReferences: [` + w.poolReference() + `, ` + w.capiOwner() + `]},
		spec: {template: {spec: {generateType: worker, hostname: {}, talosVersion: v1.12` + list + `}}}}`
}

// leftovers is a pool as a live system has it, with conditions of upstream and others.
func leftovers(t *testing.T, controlPlane bool, settings func(w *world)) *world {
	t.Helper()
	w := newWorld(t)
	if settings != nil {
		settings(w)
	}
	w.pool(subject, controlPlane, ", replicas: 3")
	const at = `lastTransitionTime: "2025-01-01T00:00:00Z", observedGeneration: 1`
	w.Patch(dockyards.NodePools, subject, `status: {conditions: [
		{type: Ready, status: "True", reason: Reconciled, message: "", `+at+`},
		{type: KubevirtMachineTemplateReconciled, status: "True", reason: Reconciled, message: "", `+at+`},
		{type: Theirs, status: "False", reason: Theirs, message: of others, lastTransitionTime: "2025-01-01T00:00:00Z"}]}`, "status")
	if controlPlane {
		w.Patch(capis, owner, "spec: {controlPlaneRef: "+capiReference(dockyards.TalosControlPlanes, subject)+"}")
	}
	return w
}

// host is the Cluster's.
func (w *world) host() string { return w.NS + "-prod.example.com" }

// survives hands a live pool over, and wants nothing but metadata to change: UID,
// generation and spec of everything stay to the byte, over three passes and a resync.
func (w *world) survives(t *testing.T) *suite.Copy {
	t.Helper()
	before := w.Objects()
	f := w.provisioner()
	w.converged(f)
	f.Rests(w.Event(dockyards.NodePools, subject))
	after := w.Objects()
	for key, was := range before {
		is := after[key]
		if is == nil {
			t.Errorf("%s was deleted", key)
			continue
		}
		if is.GetUID() != was.GetUID() || is.GetGeneration() != was.GetGeneration() || suite.Bytes(t, is, "spec") != suite.Bytes(t, was, "spec") {
			t.Errorf("%s was changed from generation %d to %d:\n%s", key, was.GetGeneration(), is.GetGeneration(), cmp.Diff(was.Object["spec"], is.Object["spec"]))
		}
		for _, ref := range was.GetOwnerReferences() {
			if !strings.Contains(suite.Bytes(t, is, "metadata", "ownerReferences"), string(ref.UID)) {
				t.Errorf("%s lost owner %s %q", key, ref.Kind, ref.Name)
			}
		}
		for label, value := range was.GetLabels() {
			if is.GetLabels()[label] != value {
				t.Errorf("%s lost label %s", key, label)
			}
		}
	}
	if is, reason, message := suite.Condition(w.Must(dockyards.NodePools, subject), "Theirs"); is+reason+message != "FalseTheirsof others" {
		t.Errorf("the condition of others is %s %s %s", is, reason, message)
	}
	if events := w.events(); len(events) > 0 {
		t.Errorf("a takeover is no event: %v", events)
	}
	return f
}

func (w *world) recorded(controlPlane bool) bool {
	w.TB.Helper()
	return w.machines(controlPlane).GetAnnotations()[v1alpha3.AnnotationRolloutInputs] != ""
}

func TestAControlPlaneIsTakenOverAsItIs(t *testing.T) {
	w := leftovers(t, true, nil)
	w.CreateAs(upstream, w.upstreamTemplate("4Gi", "default"), w.upstreamControlPlane(controlPatch(w.host()), sharedPatch, timePatch))
	f := w.survives(t)
	for _, conditionType := range []string{template, control, ready} {
		w.is(subject, conditionType, "True Reconciled")
		if _, _, message := suite.Condition(w.Must(dockyards.NodePools, subject), conditionType); message != "" {
			t.Errorf("%s says %q, and nothing differs", conditionType, message)
		}
	}
	if !w.recorded(true) {
		t.Error("the inputs were not recorded")
	}
	// Later, patches that say the same stay as upstream wrote them.
	stored := suite.Bytes(t, w.machines(true), "spec", "controlPlaneConfig")
	w.spec("resources: {cpu: 5}")
	w.converged(f)
	if name, _ := w.named(true); name == subject || suite.Bytes(t, w.machines(true), "spec", "controlPlaneConfig") != stored {
		t.Errorf("template %q is named, the config is %s, was %s", name, suite.Bytes(t, w.machines(true), "spec", "controlPlaneConfig"), stored)
	}
}

func TestWorkersAreTakenOverAsTheyAre(t *testing.T) {
	w := leftovers(t, false, nil)
	w.CreateAs(upstream, w.upstreamTemplate("4Gi", "default"), w.upstreamConfigTemplate(sharedPatch, timePatch), w.upstreamDeployment())
	w.survives(t)
	for _, conditionType := range []string{template, config, deployed, ready} {
		w.is(subject, conditionType, "True Reconciled")
	}
	if !w.recorded(false) {
		t.Error("the inputs were not recorded")
	}
}

// TestWhatUpstreamCouldNotCarryOutWaitsForTheNextChange takes over pools that upstream
// left behind: templates older than the pool, config templates older than the config
// map, networks in any order, no template at all.
func TestWhatUpstreamCouldNotCarryOutWaitsForTheNextChange(t *testing.T) {
	const follows = "found otherwise than asked for, which follows with the next rollout: "
	multus := func(w *world) {
		w.settings.Multus = true
		for _, name := range []string{"blue", "red"} {
			w.Create(`{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: ` + name + `}, spec: {config: "{}"}}`)
		}
	}
	type leftover struct {
		name         string
		controlPlane bool
		settings     func(w *world)
		stored       func(w *world) []string
		template     string
		talos        string
		ready        string
	}
	cases := []leftover{
		{
			name: "FrozenTemplate", controlPlane: true, template: follows + "memory", ready: "True Reconciled",
			stored: func(w *world) []string {
				return []string{w.upstreamTemplate("2Gi", "default"), w.upstreamControlPlane(controlPatch(w.host()), sharedPatch, timePatch)}
			},
		},
		{
			name: "OldConfigTemplate", template: "", talos: follows + "Talos patches", ready: "True Reconciled",
			stored: func(w *world) []string {
				return []string{w.upstreamTemplate("4Gi", "default"), w.upstreamConfigTemplate(sharedPatch), w.upstreamDeployment()}
			},
		},
		{
			name: "NetworksInAnyOrder", controlPlane: true, settings: multus, ready: "True Reconciled",
			stored: func(w *world) []string {
				return []string{w.upstreamTemplate("4Gi", "red default blue"), w.upstreamControlPlane(controlPatch(w.host()), sharedPatch, timePatch)}
			},
		},
		{
			name: "NetworkMissing", controlPlane: true, settings: multus, template: follows + "networks", ready: "True Reconciled",
			stored: func(w *world) []string {
				return []string{w.upstreamTemplate("4Gi", "default red"), w.upstreamControlPlane(controlPatch(w.host()), sharedPatch, timePatch)}
			},
		},
		{
			name: "PatchesInAnotherSpelling", controlPlane: true, ready: "True Reconciled",
			stored: func(w *world) []string {
				return []string{w.upstreamTemplate("4096Mi", "default"), w.upstreamControlPlane(`"{cluster: {apiServer: {certSANs: [`+w.host()+`]}}, version: v1alpha1}"`, sharedPatch, timePatch)}
			},
		},
		{
			name: "StrippedWithoutConfigMap", controlPlane: true, talos: follows + "Talos patches", ready: "True Reconciled",
			stored: func(w *world) []string {
				return []string{w.upstreamTemplate("4Gi", "default"), w.upstreamControlPlane(controlPatch(w.host()))}
			},
		},
		{
			name: "OtherHost", controlPlane: true, talos: follows + "Talos patches", ready: "True Reconciled",
			stored: func(w *world) []string {
				return []string{w.upstreamTemplate("4Gi", "default"), w.upstreamControlPlane(controlPatch("other"), sharedPatch, timePatch)}
			},
		},
	}
	suite.Each(t, cases, func(c leftover) string { return c.name }, func(t *testing.T, c leftover) {
		w := leftovers(t, c.controlPlane, c.settings)
		w.CreateAs(upstream, c.stored(w)...)
		f := w.survives(t)
		w.is(subject, ready, c.ready)
		talos := map[bool]string{true: control, false: config}[c.controlPlane]
		for conditionType, want := range map[string]string{template: c.template, talos: c.talos} {
			if _, _, message := suite.Condition(w.Must(dockyards.NodePools, subject), conditionType); message != want {
				t.Errorf("%s says %q, want %q", conditionType, message, want)
			}
		}
		w.spec("resources: {cpu: 5}")
		w.converged(f)
		w.is(subject, ready, "True Reconciled")
		for _, conditionType := range []string{template, talos} {
			if _, _, message := suite.Condition(w.Must(dockyards.NodePools, subject), conditionType); strings.Contains(message, follows) {
				t.Errorf("with the next change everything is carried out, and %s says %q", conditionType, message)
			}
		}
	})
}

func TestAPoolWithoutTemplateIsTakenOverAndGetsOne(t *testing.T) {
	bothRoles(t, func(t *testing.T, controlPlane bool) {
		w := leftovers(t, controlPlane, nil)
		if controlPlane {
			w.CreateAs(upstream, w.upstreamControlPlane(controlPatch(w.host()), sharedPatch, timePatch))
		} else {
			w.CreateAs(upstream, w.upstreamConfigTemplate(sharedPatch, timePatch), w.upstreamDeployment())
		}
		w.survives(t)
		w.Must(dockyards.KubevirtMachineTemplates, subject)
		w.is(subject, ready, "True Reconciled")
	})
}

func TestNothingIsRecordedWhileAnInputIsMissing(t *testing.T) {
	for _, missing := range []struct {
		res  kind.Resource
		name string
	}{{dockyards.Releases, image}, {dockyards.DataSources, image}, {kind.ConfigMaps, "dockyards-system"}} {
		w := leftovers(t, true, nil)
		w.CreateAs(upstream, w.upstreamTemplate("2Gi", "default"), w.upstreamControlPlane(controlPatch(w.host()), timePatch))
		w.Remove(missing.res, missing.name)
		w.survives(t)
		if w.recorded(true) {
			t.Errorf("%s %q is missing, and the inputs were recorded", missing.res.Kind, missing.name)
		}
	}
}

func TestTwoControlPlanesOfOneClusterAreLeftAsTheyAre(t *testing.T) {
	w := leftovers(t, true, nil)
	w.Patch(capis, owner, "spec: {controlPlaneRef: "+capiReference(dockyards.TalosControlPlanes, "prod-z")+"}")
	w.CreateAs(upstream, w.upstreamTemplate("4Gi", "default"), w.upstreamControlPlane(controlPatch(w.host())))
	w.spec("replicas: 5")
	before := w.machines(true).GetResourceVersion()
	f := w.provisioner()
	w.converged(f)
	w.is(subject, control, "False ControlPlaneConflict")
	if w.machines(true).GetResourceVersion() != before {
		t.Error("a control plane that is not the Cluster's was written")
	}
}

// TestALateWriteOfUpstreamIsSurvived: on every pass upstream puts its own owner alone
// and no labels on what it makes.
func TestALateWriteOfUpstreamIsSurvived(t *testing.T) {
	w := leftovers(t, true, nil)
	w.CreateAs(upstream, w.upstreamTemplate("4Gi", "default"), w.upstreamControlPlane(controlPatch(w.host()), sharedPatch, timePatch))
	f := w.survives(t)
	for _, res := range []kind.Resource{dockyards.KubevirtMachineTemplates, dockyards.TalosControlPlanes} {
		w.Update(res, subject, upstream, func(obj *unstructured.Unstructured) {
			refs := obj.GetOwnerReferences()
			obj.SetOwnerReferences(refs[:1])
			obj.SetLabels(nil)
		})
	}
	generation := w.machines(true).GetGeneration()
	w.converged(f)
	f.Rests(w.Event(dockyards.NodePools, subject))
	if got := w.machines(true).GetGeneration(); got != generation || !w.recorded(true) {
		t.Errorf("generation %d became %d", generation, got)
	}
	w.is(subject, ready, "True Reconciled")
}
