package nodepool

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// TestBadInputIsSaidAndHurtsNobodyElse makes a pool that cannot work beside one that
// can.
func TestBadInputIsSaidAndHurtsNobodyElse(t *testing.T) {
	type bad struct {
		name         string
		controlPlane bool
		spec         string
		do           func(w *world)
		conditionType,
		want, says string
		alone bool
	}
	cases := []bad{
		{name: "ZeroCPU", spec: ", replicas: 1", do: func(w *world) { w.spec("resources: {cpu: 0}") }, conditionType: template, want: "False InvalidSpec", says: "spec.resources.cpu"},
		{name: "NegativeMemory", do: func(w *world) { w.spec("resources: {memory: -1Gi}") }, conditionType: template, want: "False InvalidSpec", says: "spec.resources.memory"},
		{name: "NoStorage", do: func(w *world) { w.spec("resources: {storage: null}") }, conditionType: template, want: "False InvalidSpec", says: "spec.resources.storage"},
		{name: "HugeCPU", do: func(w *world) { w.spec("resources: {cpu: '1e30'}") }, conditionType: template, want: "False InvalidSpec", says: "cpu"},
		{name: "BelowTheImage", do: func(w *world) { w.spec("resources: {storage: 4Gi}") }, conditionType: template, want: "False InvalidSpec", says: "8Gi"},
		{name: "DiskCalledBoot", spec: ", storageResources: [{name: boot, quantity: 1Gi}]", conditionType: template, want: "False InvalidSpec", says: "boot"},
		{name: "DiskTwice", spec: ", storageResources: [{name: a, quantity: 1Gi}, {name: a, quantity: 1Gi}]", conditionType: template, want: "False InvalidSpec", says: "second time"},
		{name: "NegativeDisk", spec: ", storageResources: [{name: a, quantity: -1}]", conditionType: template, want: "False InvalidSpec", says: "quantity"},
		{name: "NegativeReplicas", controlPlane: true, spec: ", replicas: -3", conditionType: control, want: "False InvalidSpec", says: "spec.replicas"},
		{name: "NoRelease", do: func(w *world) { w.Remove(dockyards.Releases, image) }, conditionType: template, want: "False WaitingForRelease", alone: true},
		{name: "NoSubnet", do: func(w *world) { w.Patch(dockyards.Clusters, owner, "spec: {podSubnets: [10.0.0.0]}") }, conditionType: config, want: "False InvalidSpec", says: "podSubnets[0]", alone: true},
		{name: "EmptyVersion", do: func(w *world) { w.Patch(dockyards.Clusters, owner, "spec: {version: ''}") }, conditionType: deployed, want: "False WaitingForVersion", alone: true},
		{name: "StrangeVersion", controlPlane: true, do: func(w *world) { w.Patch(dockyards.Clusters, owner, "spec: {version: latest}") }, conditionType: control, want: "False InvalidSpec", alone: true},
		{name: "MissingOwner", do: func(w *world) {
			w.Patch(dockyards.NodePools, subject, "metadata: {ownerReferences: null, labels: {dockyards.io/cluster-name: gone}}")
		}, conditionType: ready, want: "False WaitingForCluster", says: `"gone"`},
		{name: "NoOwner", do: func(w *world) {
			w.Patch(dockyards.NodePools, subject, "metadata: {ownerReferences: null, labels: null}")
		}, conditionType: ready, want: "False WaitingForCluster"},
		{name: "SomebodyElsesDeployment", do: func(w *world) { w.strangers(deployments) }, conditionType: deployed, want: "False NameConflict"},
		{name: "SomebodyElsesTemplate", do: func(w *world) { w.strangers(dockyards.KubevirtMachineTemplates) }, conditionType: template, want: "False NameConflict"},
	}
	suite.Each(t, cases, func(c bad) string { return c.name }, func(t *testing.T, c bad) {
		w := newWorld(t)
		w.pool(subject, c.controlPlane, c.spec)
		w.pool("prod-good", false, ", replicas: 1")
		if c.do != nil {
			c.do(w)
		}
		f := w.provisioner()
		f.Resync()
		if got := w.Condition(dockyards.NodePools, subject, c.conditionType); got != c.want {
			t.Errorf("%s is %q, want %q; the log:\n%s", c.conditionType, got, c.want, f.Log)
		}
		w.says(subject, c.conditionType, c.says)
		if got := w.Condition(dockyards.NodePools, subject, ready); !strings.HasPrefix(got, "False ") {
			t.Errorf("Ready is %q", got)
		}
		if !c.alone {
			w.is("prod-good", ready, "True Reconciled")
		}
		f.Rests(w.Event(dockyards.NodePools, subject))
	})
}

// strangers makes an object of the subject's name that is somebody else's.
func (w *world) strangers(res kind.Resource) {
	w.TB.Helper()
	refs := "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: x}]"
	if res.Kind == "MachineDeployment" {
		w.Create(`{apiVersion: ` + res.APIVersion() + `, kind: MachineDeployment, metadata: {name: ` + subject + `, ` + refs + `}, spec: {clusterName: x, selector: {},
			template: {spec: {clusterName: x, bootstrap: {dataSecretName: x}, infrastructureRef: ` + capiReference(dockyards.KubevirtMachineTemplates, "x") + `}}}}`)
		return
	}
	w.Create(`{apiVersion: ` + res.APIVersion() + `, kind: ` + res.Kind + `, metadata: {name: ` + subject + `, ` + refs + `}, spec: {template: {spec: {
		virtualMachineTemplate: {spec: {template: {spec: {domain: {devices: {}}}}}}}}}}`)
}

func TestALongNameIsRefusedAndALiveOneStillScales(t *testing.T) {
	w := newWorld(t)
	cluster := w.Must(dockyards.Clusters, owner)
	long := strings.Repeat("a", 64)
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: NodePool, metadata: {name: ` + long + `, ownerReferences: [
		{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: ` + owner + `, uid: ` + string(cluster.GetUID()) + `}]},
		spec: {controlPlane: true, resources: {cpu: 1, memory: 2Gi, storage: 10Gi}}}`)
	f := w.provisioner()
	f.Insist(w.Event(dockyards.NodePools, long))
	w.is(long, template, "False InvalidSpec")
	f.Rests(w.Event(dockyards.NodePools, long))
}

func TestSeveralDefaultReleasesAreToldApart(t *testing.T) {
	w := newWorld(t)
	w.release("another", "dockyards.io/is-default-release: 'no'")
	w.pool(subject, true, "")
	f := w.provisioner()
	w.converged(f)
	w.is(subject, template, "True Reconciled")
	w.says(subject, template, "several default Releases: ")
	f.Rests(w.Event(dockyards.NodePools, subject))
}

func TestTheOlderOfTwoControlPlanesHasTheCluster(t *testing.T) {
	w := newWorld(t)
	w.pool("prod-z", true, ", replicas: 3")
	older := w.Must(dockyards.NodePools, "prod-z").GetCreationTimestamp()
	for {
		pool := w.pool(subject, true, ", replicas: 3")
		if created := pool.GetCreationTimestamp(); older.Before(&created) {
			break // the server knows seconds only
		}
		w.Remove(dockyards.NodePools, subject)
	}
	f := w.provisioner()
	w.converged(f)
	w.is(subject, control, "False ControlPlaneConflict")
	if w.Get(dockyards.TalosControlPlanes, subject) != nil {
		t.Error("a second control plane was made")
	}
	f.Insist(w.Event(dockyards.NodePools, "prod-z"))
	w.is("prod-z", ready, "True Reconciled")
	f.Rests(w.Event(dockyards.NodePools, subject), w.Event(dockyards.NodePools, "prod-z"))
	if events := w.events(); len(events) != 1 || !strings.HasPrefix(events[0], "ControlPlaneConflict: ") {
		t.Errorf("a person should notice, once: %v", events)
	}
}
