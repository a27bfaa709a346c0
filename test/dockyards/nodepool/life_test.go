package nodepool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// capiReference is a reference in the version of Cluster API that is served.
func capiReference(res kind.Resource, name string) string {
	if here.capi[0] == "v1beta1" {
		return fmt.Sprintf("{apiVersion: %s, kind: %s, name: %s}", res.APIVersion(), res.Kind, name)
	}
	return fmt.Sprintf("{apiGroup: %s, kind: %s, name: %s}", res.Group, res.Kind, name)
}

// holds compares the fields of a part of an object that are named in YAML.
func holds(t *testing.T, part any, want string) {
	t.Helper()
	var wanted any
	if err := yaml.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.Marshal(part)
	var got any
	if err == nil {
		err = yaml.Unmarshal(raw, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const (
	sharedPatch = `"version: v1alpha1\nmachine:\n    env:\n        http_proxy: http://proxy.secret:3128\ncluster:\n    network:\n        podSubnets:\n            - 10.244.0.0/16\n        serviceSubnets:\n            - 10.96.0.0/12\n"`
	timePatch   = `"apiVersion: v1alpha1\nkind: TimeSyncConfig\nntp:\n    servers:\n        - time.a\n"`
)

func TestAControlPlanePoolGetsItsObjects(t *testing.T) {
	w, f := settled(t, true)
	controlPatch := fmt.Sprintf(`"version: v1alpha1\ncluster:\n    apiServer:\n        certSANs:\n            - %s-prod.example.com\n"`, w.NS)
	holds(t, w.machines(true).Object["spec"], `
version: v1.34.1
replicas: 3
infrastructureTemplate: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtMachineTemplate, name: `+subject+`, namespace: `+w.NS+`}
controlPlaneConfig: {controlplane: {generateType: controlplane, talosVersion: v1.12, strategicPatches: [`+controlPatch+`, `+sharedPatch+`, `+timePatch+`]}}
rolloutStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
`)
	cluster, _, _ := nested(w.Must(capis, owner).Object, "spec", "controlPlaneRef")
	holds(t, cluster, capiReference(dockyards.TalosControlPlanes, subject))
	w.owned(t, dockyards.TalosControlPlanes, subject)
	w.owned(t, dockyards.KubevirtMachineTemplates, subject)
	for _, conditionType := range []string{template, control, ready} {
		w.is(subject, conditionType, "True Reconciled")
	}
	f.Rests(w.Event(dockyards.NodePools, subject), w.Event(dockyards.TalosControlPlanes, subject), w.Event(capis, owner))
}

func TestAWorkerPoolGetsItsObjects(t *testing.T) {
	w, f := settled(t, false)
	labels := "{cluster.x-k8s.io/deployment-name: " + subject + ", cluster.x-k8s.io/cluster-name: " + owner + "}"
	holds(t, w.machines(false).Object["spec"], `
clusterName: `+owner+`
replicas: 3
selector: {matchLabels: `+labels+`}
template:
  metadata: {labels: `+labels+`}
  spec:
    clusterName: `+owner+`
    version: v1.34.1
    bootstrap: {configRef: `+capiReference(configTemplates, subject)+`}
    infrastructureRef: `+capiReference(dockyards.KubevirtMachineTemplates, subject)+`
`)
	holds(t, w.Must(configTemplates, subject).Object["spec"], `
template: {spec: {generateType: worker, talosVersion: v1.12, strategicPatches: [`+sharedPatch+`, `+timePatch+`]}}`)
	for _, res := range []kind.Resource{deployments, configTemplates, dockyards.KubevirtMachineTemplates} {
		w.owned(t, res, subject)
	}
	for _, conditionType := range []string{template, config, deployed, ready} {
		w.is(subject, conditionType, "True Reconciled")
	}
	f.Rests(w.Event(dockyards.NodePools, subject), w.Event(deployments, subject), w.Event(configTemplates, subject))
}

// owned wants an object to say whose it is, in upstream's shape.
func (w *world) owned(t *testing.T, res kind.Resource, name string) {
	t.Helper()
	obj, pool := w.Must(res, name), w.Must(dockyards.NodePools, subject)
	refs, _, _ := nested(obj.Object, "metadata", "ownerReferences")
	holds(t, refs, fmt.Sprintf("[{apiVersion: dockyards.io/v1alpha3, kind: NodePool, name: %s, uid: %s}]", subject, pool.GetUID()))
	for key, want := range map[string]string{"dockyards.io/cluster-name": owner, "dockyards.io/node-pool-name": subject} {
		if got := obj.GetLabels()[key]; got != want {
			t.Errorf("%s %q has label %s=%q, want %q", res.Kind, name, key, got, want)
		}
	}
}

// TestEveryWakeReachesThePool changes one thing after the other and tells the function
// of that thing alone.
func TestEveryWakeReachesThePool(t *testing.T) {
	type wake struct {
		name         string
		controlPlane bool
		change       func(w *world)
		event        func(w *world) (kind.Resource, string)
		reached      func(w *world) bool
	}
	at := func(res kind.Resource, name string) func(*world) (kind.Resource, string) {
		return func(*world) (kind.Resource, string) { return res, name }
	}
	says := func(conditionType, want string) func(*world) bool {
		return func(w *world) bool { return w.Condition(dockyards.NodePools, subject, conditionType) == want }
	}
	wakes := []wake{
		{
			"Cluster", true, func(w *world) { w.Patch(dockyards.Clusters, owner, "spec: {version: v1.35.0}") }, at(dockyards.Clusters, owner),
			func(w *world) bool { return w.runs(true) == "3 of v1.35.0" },
		},
		{
			"CAPICluster", true, func(w *world) { w.Remove(capis, owner) }, at(capis, owner),
			says(control, "False WaitingForCluster"),
		},
		{
			"Release", false, func(w *world) { w.Remove(dockyards.Releases, image) }, at(dockyards.Releases, image),
			says(template, "False WaitingForRelease"),
		},
		{
			"DataSource", false, func(w *world) { w.Remove(dockyards.DataSources, image) }, at(dockyards.DataSources, image),
			says(template, "False WaitingForDataSource"),
		},
		{
			"ConfigMap", false, func(w *world) { w.Remove(kind.ConfigMaps, w.settings.ConfigMapName) },
			func(w *world) (kind.Resource, string) { return kind.ConfigMaps, w.settings.ConfigMapName },
			says(config, "False WaitingForConfigMap"),
		},
		{
			"MachineTemplate", true, func(w *world) { w.Remove(dockyards.KubevirtMachineTemplates, subject) }, at(dockyards.KubevirtMachineTemplates, subject),
			func(w *world) bool { return w.Get(dockyards.KubevirtMachineTemplates, subject) != nil },
		},
		{
			"LaterMachineTemplate", true,
			func(w *world) {
				w.spec("resources: {cpu: 5}")
				w.converged(w.provisioner())
				name, _ := w.named(true)
				w.Remove(dockyards.KubevirtMachineTemplates, name)
			},
			func(w *world) (kind.Resource, string) {
				name, _ := w.named(true)
				return dockyards.KubevirtMachineTemplates, name
			},
			func(w *world) bool {
				name, _ := w.named(true)
				return name != subject && w.Get(dockyards.KubevirtMachineTemplates, name) != nil
			},
		},
		{
			"ConfigTemplate", false, func(w *world) {
				w.Patch(configTemplates, subject, "metadata: {labels: {dockyards.io/node-pool-name: null}}")
			}, at(configTemplates, subject),
			func(w *world) bool {
				return w.Must(configTemplates, subject).GetLabels()["dockyards.io/node-pool-name"] == subject
			},
		},
		{
			"ControlPlane", true, func(w *world) { w.Remove(dockyards.TalosControlPlanes, subject) }, at(dockyards.TalosControlPlanes, subject),
			func(w *world) bool { return w.Get(dockyards.TalosControlPlanes, subject) != nil },
		},
		{
			"Deployment", false, func(w *world) { w.Patch(deployments, subject, "spec: {replicas: 9}") }, at(deployments, subject),
			func(w *world) bool { return w.runs(false) == "3 of v1.34.1" },
		},
		{
			"Network", true,
			func(w *world) {
				w.Create(`{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: blue}, spec: {config: "{}"}}`)
			},
			at(dockyards.NetworkAttachmentDefinitions, "blue"),
			func(w *world) bool {
				name, _ := w.named(true)
				return name != subject
			},
		},
	}
	suite.Each(t, wakes, func(one wake) string { return one.name }, func(t *testing.T, one wake) {
		w := newWorld(t)
		w.settings.Multus = one.name == "Network"
		w.pool(subject, one.controlPlane, ", replicas: 3")
		w.converged(w.provisioner())
		one.change(w)
		f := w.provisioner()
		res, name := one.event(w)
		f.Insist(w.Event(res, name))
		if !one.reached(w) {
			t.Errorf("the event about %s %q did not reach the pool; the log:\n%s", res.Kind, name, f.Log)
		}
	})
}

func TestAnEventThatConcernsNoPoolWritesNothing(t *testing.T) {
	w, f := settled(t, true)
	f.Asked()
	w.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`,
		`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: other}}`,
		`{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: other}, spec: {type: KubernetesReleases}}`)
	for _, ce := range []struct {
		res  kind.Resource
		name string
	}{
		{kind.ConfigMaps, "other"},
		{dockyards.Clusters, "other"},
		{dockyards.Releases, "other"},
		{capis, "other"},
		{dockyards.NetworkAttachmentDefinitions, "x"},
		{dockyards.DataSources, "x"},
	} {
		f.Insist(w.Event(ce.res, ce.name))
	}
	reads, writes := f.Asked()
	if len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}
	for _, read := range reads {
		if strings.Contains(read, "taloscontrolplanes") {
			t.Errorf("a pool was looked at: %v", reads)
			break
		}
	}
}

func TestAPoolThatNamesAReleaseGetsThatOne(t *testing.T) {
	w := newWorld(t)
	w.release("special", "")
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: kube}, spec: {type: KubernetesReleases}}`)
	w.pool(subject, true, ", releaseRef: {kind: Release, name: special}")
	w.pool("other", false, ", releaseRef: {kind: Release, name: kube}")
	f := w.provisioner()
	f.Insist(w.Event(dockyards.Releases, "special"))
	f.Insist(w.Event(dockyards.Releases, "kube"))
	for name, want := range map[string]string{subject: "special", "other": image} {
		bytes := suite.Bytes(t, w.Must(dockyards.KubevirtMachineTemplates, name), "spec")
		if !strings.Contains(bytes, `"name":"`+want+`"`) {
			t.Errorf("pool %q boots from another Release than %s: %s", name, want, bytes)
		}
	}
}

func TestWorkersFollowTheEndpoint(t *testing.T) {
	w := newWorld(t)
	w.Patch(dockyards.Clusters, owner, "status: {apiEndpoint: null}", "status")
	w.pool(subject, false, "")
	f := w.provisioner()
	w.converged(f)
	w.is(subject, template, "True Reconciled")
	w.is(subject, config, "True Reconciled")
	w.is(subject, deployed, "False WaitingForClusterEndpoint")
	f.Rests(w.Event(dockyards.NodePools, subject))
	w.endpoint("a.example.com")
	f.Insist(w.Event(dockyards.Clusters, owner))
	w.is(subject, ready, "True Reconciled")
	if got := w.runs(false); got != " of v1.34.1" {
		t.Errorf("a pool without replicas runs %s", got)
	}
}
