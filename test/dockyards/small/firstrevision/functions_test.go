package firstrevision

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	nodecapacity "github.com/slipway-dev/slipway/functions/node-capacity"
	organizationonboarder "github.com/slipway-dev/slipway/functions/organization-onboarder"
	releaseimporter "github.com/slipway-dev/slipway/functions/release-importer"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/dockyards/api"
	"github.com/slipway-dev/slipway/test/suite"
)

var suit = suite.New(suite.Options{
	Specs:   []reconcile.Spec{organizationonboarder.DefaultSpec(), nodecapacity.DefaultSpec(), releaseimporter.DefaultSpec()},
	CRDs:    []string{crds.CDI, crds.CAPK},
	Objects: definitions(),
	Kinds: []kind.Resource{
		dockyards.Organizations, dockyards.Nodes, dockyards.NodePools, dockyards.Releases, dockyards.DataVolumes, dockyards.DataSources,
	},
	// The other suite shows that each right is needed.
	Partial: true,
})

func definitions() []*unstructured.Unstructured {
	objs, err := api.FirstRevision()
	if err != nil {
		panic(err)
	}
	return objs
}

func TestMain(m *testing.M) { os.Exit(suit.Main(m)) }

func TestAnOrganizationIsMadeReady(t *testing.T) {
	w := suit.World(t)
	name := "org-" + strings.TrimPrefix(w.NS, "t-")
	w.CreateAs("backend", `{apiVersion: dockyards.io/v1alpha3, kind: Organization, metadata: {name: `+name+`}, spec: {namespaceRef: {name: a}},
		status: {conditions: [{type: RoleBindingsReady, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-03-01T10:00:00Z"}]}}`)
	f := suite.Run(w, organizationonboarder.Declare())
	f.Insist(w.Event(dockyards.Organizations, name))
	if ready, other := w.Condition(dockyards.Organizations, name, "Ready"), w.Condition(dockyards.Organizations, name, "RoleBindingsReady"); ready != "True Ready" || other != "True Ready" {
		t.Errorf("Ready is %q, RoleBindingsReady is %q", ready, other)
	}
	f.Rests(w.Event(dockyards.Organizations, name))
}

func TestANodeSaysWhatItsMachineHasBeenGiven(t *testing.T) {
	w := suit.World(t)
	w.Create(`{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtMachine, metadata: {name: a}, spec: {virtualMachineTemplate: {spec: {
		template: {spec: {domain: {cpu: {cores: 2}, memory: {guest: 4Gi}, devices: {}}}}}}}}`)
	w.CreateAs("cluster-api", `{apiVersion: dockyards.io/v1alpha3, kind: Node, metadata: {name: a}, spec: {providerID: "kubevirt://a"}, status: {systemInfo: {
		machineID: a, systemUUID: b, bootID: c, kernelVersion: d, osImage: e, containerRuntimeVersion: f, kubeletVersion: g, kubeProxyVersion: "", operatingSystem: linux, architecture: amd64}}}`)
	before := suite.Bytes(t, w.Must(dockyards.Nodes, "a"), "status", "systemInfo")
	f := suite.Run(w, nodecapacity.Declare())
	f.Insist(w.Event(dockyards.Nodes, "a"))
	node := w.Must(dockyards.Nodes, "a")
	if got := suite.Bytes(t, node, "status", "resources"); got != `{"cpu":"2","memory":"4Gi"}` || suite.Bytes(t, node, "status", "systemInfo") != before {
		t.Errorf("the status is %v", node.Object["status"])
	}
	f.Rests(w.Event(dockyards.Nodes, "a"))
}

func TestAReleaseIsImported(t *testing.T) {
	w := suit.World(t)
	w.CreateAs("dockyards-talos", `{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: talos}, spec: {type: TalosInstaller},
		status: {latestVersion: v1.12.0, latestURL: "https://factory.example.org/a.raw.xz"}}`)
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: NodePool, metadata: {name: a-worker}, spec: {security: {}}}`)
	f := suite.Run(w, releaseimporter.Declare(dockyards.DefaultSettings()))
	f.Insist(w.Event(dockyards.Releases, "talos"))
	w.Patch(dockyards.DataVolumes, "talos-v1.12.0", "status: {phase: Succeeded}", "status")
	f.Insist(w.Event(dockyards.DataVolumes, "talos-v1.12.0"))
	if got := suite.Text(w.Must(dockyards.DataSources, "talos"), "spec", "source", "pvc", "name"); got != "talos-v1.12.0" {
		t.Errorf("the data source leads to %q", got)
	}
	f.Rests(w.Event(dockyards.Releases, "talos"))
}
