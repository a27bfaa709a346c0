package perturb

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	clusteranchor "github.com/slipway-dev/slipway/functions/cluster-anchor"
	nodecapacity "github.com/slipway-dev/slipway/functions/node-capacity"
	provisioner "github.com/slipway-dev/slipway/functions/nodepool-provisioner"
	organizationonboarder "github.com/slipway-dev/slipway/functions/organization-onboarder"
	releaseimporter "github.com/slipway-dev/slipway/functions/release-importer"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

// status changes an object's status as its controller does, under the version that it
// read, again if somebody was faster.
func (w *world) status(res kind.Resource, name string, change func(status map[string]any)) {
	w.TB.Helper()
	for {
		obj := w.Must(res, name)
		status, _ := obj.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
			obj.Object["status"] = status
		}
		change(status)
		_, err := w.In(res).UpdateStatus(w.TB.Context(), obj, metav1.UpdateOptions{FieldManager: "neighbour"})
		if apierrors.IsNotFound(err) { // the status is no resource of its own
			_, err = w.In(res).Update(w.TB.Context(), obj, metav1.UpdateOptions{FieldManager: "neighbour"})
		}
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			w.TB.Fatal(err)
		}
	}
}

var organizations = &scenario{
	fn: "organization-onboarder",
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{organizationonboarder.DefaultSpec()}, Partial: true,
		Files: []string{"api/dockyards/crds"}, Kinds: []kind.Resource{dockyards.Organizations}, Plain: whenever,
	}),
	given: func(*world) {},
	start: func(w *world, options ...suite.Option) *suite.Copy {
		return run(w, organizationonboarder.Declare(), options...)
	},
	steps: []func(w *world){
		func(w *world) {
			w.create(`{apiVersion: dockyards.io/v1alpha3, kind: Organization, metadata: ` + w.marked("a-WORLD") + `, spec: {displayName: A}}`)
		},
		func(w *world) {
			w.create(`{apiVersion: dockyards.io/v1alpha3, kind: Organization, metadata: ` + w.marked("b-WORLD") + `, spec: {displayName: B}}`)
			w.status(dockyards.Organizations, "a-"+w.NS, func(status map[string]any) {
				dockyards.SetCondition(status, metav1.Condition{Type: "RoleBindingsReady", Status: "True", Reason: "Ready"}, metav1.Now())
			})
		},
		func(w *world) { w.Patch(dockyards.Organizations, "a-"+w.NS, `spec: {displayName: AA}`) },
		func(w *world) { w.Remove(dockyards.Organizations, "b-"+w.NS) },
	},
}

// whenever takes out of conditions what tells when one was written first. Permitted
// differences: their order, and observedGeneration of one that is True, since another
// generation changes nothing about it.
func whenever(obj *unstructuredObject) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["status"] == "True" {
			delete(c, "observedGeneration")
		}
	}
	slices.SortFunc(conditions, func(a, b any) int {
		return strings.Compare(suite.Text(&unstructuredObject{Object: a.(map[string]any)}, "type"), suite.Text(&unstructuredObject{Object: b.(map[string]any)}, "type"))
	})
	if len(conditions) > 0 {
		_ = unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions")
	}
}

const machineSpec = `virtualMachineTemplate: {spec: {
	dataVolumeTemplates: [{metadata: {name: boot}, spec: {pvc: {accessModes: [ReadWriteMany], resources: {requests: {storage: 20Gi}}}, sourceRef: {kind: DataSource, name: talos}}}],
	template: {spec: {domain: {cpu: {cores: %d}, memory: {guest: 4Gi}, devices: {}}}}}}`

var nodes = &scenario{
	fn: "node-capacity",
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{nodecapacity.DefaultSpec()}, Partial: true, CRDs: []string{crds.CAPK},
		Files: []string{"api/dockyards/crds"}, Kinds: []kind.Resource{dockyards.Nodes, dockyards.KubevirtMachines},
	}),
	given: func(*world) {},
	start: func(w *world, options ...suite.Option) *suite.Copy { return run(w, nodecapacity.Declare(), options...) },
	steps: []func(w *world){
		func(w *world) { w.node("a") },
		func(w *world) { w.machine("a", 3) },
		func(w *world) {
			w.machine("b", 2)
			w.node("b")
			w.node("c")
		},
		func(w *world) {
			w.Remove(dockyards.KubevirtMachines, "a")
			w.machine("a", 5)
			w.Remove(dockyards.Nodes, "c")
		},
	},
}

func (w *world) node(name string) {
	w.TB.Helper()
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Node, metadata: {name: ` + name + `}, spec: {providerID: "kubevirt://` + name + `"}}`)
}

func (w *world) machine(name string, cores int) {
	w.TB.Helper()
	w.Create(`{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtMachine, metadata: {name: ` + name + `}, spec: {` + fmt.Sprintf(machineSpec, cores) + `}}`)
}

var releases = &scenario{
	fn: "release-importer",
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{releaseimporter.DefaultSpec()}, Partial: true, CRDs: []string{crds.CDI},
		Files: []string{"api/dockyards/crds"},
		Kinds: []kind.Resource{dockyards.Releases, dockyards.NodePools, dockyards.DataVolumes, dockyards.DataSources, dockyards.Roles, dockyards.RoleBindings},
	}),
	given: func(w *world) {
		w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: NodePool, metadata: {name: a-worker}, spec: {replicas: 1}}`)
	},
	start: func(w *world, options ...suite.Option) *suite.Copy {
		return run(w, releaseimporter.Declare(dockyards.DefaultSettings()), options...)
	},
	// CDI imports every image.
	neighbours: func(w *world) {
		list, err := w.In(dockyards.DataVolumes).List(w.TB.Context(), metav1.ListOptions{})
		if err != nil {
			w.TB.Fatal(err)
		}
		for i := range list.Items {
			if obj := &list.Items[i]; obj.GetDeletionTimestamp() == nil && suite.Text(obj, "status", "phase") != "Succeeded" {
				w.status(dockyards.DataVolumes, obj.GetName(), func(status map[string]any) { status["phase"] = "Succeeded" })
			}
		}
	},
	steps: []func(w *world){
		func(w *world) {
			w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: talos}, spec: {type: TalosInstaller, ranges: [">=1.12.0"]}}`)
			w.released("v1.12.0")
		},
		func(w *world) { w.released("v1.12.1") },
		func(w *world) { w.released("v1.12.2") },
	},
}

func (w *world) released(version string) {
	w.TB.Helper()
	w.status(dockyards.Releases, "talos", func(status map[string]any) {
		status["latestVersion"], status["latestURL"] = version, "https://factory.example.org/image/a/"+version+"/nocloud-amd64.raw.xz"
	})
}

// asCAPI gives Cluster API's Clusters a name of their own among the objects of a world.
var asCAPI = func() kind.Resource {
	res := dockyards.CAPIClusters
	res.Kind = "CAPICluster"
	return res
}()

// capiCluster makes the Cluster API Cluster as dockyards-cluster-api does.
func (w *world) capiCluster(name string) {
	w.TB.Helper()
	uid := w.Must(dockyards.Clusters, name).GetUID()
	w.Create(fmt.Sprintf(`{apiVersion: %s, kind: Cluster, metadata: {name: %s, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: %[2]s, uid: %s, controller: true, blockOwnerDeletion: true}]},
		spec: {clusterNetwork: {serviceDomain: cluster.local}}}`, dockyards.CAPIClusters.APIVersion(), name, uid))
}

var anchor = &scenario{
	fn: "cluster-anchor",
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{clusteranchor.DefaultSpec()}, Partial: true, CRDs: []string{crds.ClusterAPI, crds.CAPK, crds.GatewayAPI},
		Files:  []string{"api/dockyards/crds"},
		Kinds:  []kind.Resource{dockyards.Clusters, dockyards.Workloads, dockyards.TLSRoutes, asCAPI, dockyards.KubevirtClusters},
		Others: []kind.Resource{dockyards.Gateways},
	}),
	given: func(w *world) {
		w.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + dockyards.DefaultSettings().ConfigMapName + `}, data: {externalURL: "https://example.com"}}`)
		w.gateway("198.51.100.7")
	},
	start: func(w *world, options ...suite.Option) *suite.Copy {
		settings := dockyards.DefaultSettings()
		settings.GatewayNamespace, settings.GatewayName, settings.ConfigMapNamespace = w.NS, "public", w.NS
		return run(w, clusteranchor.Declare(settings), options...)
	},
	steps: []func(w *world){
		func(w *world) {
			w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: prod}, spec: {version: v1.34.1}}`)
		},
		func(w *world) {
			w.capiCluster("prod")
			w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: plain}, spec: {noDefaultIngressProvider: true}}`)
		},
		func(w *world) {
			w.Patch(dockyards.Gateways, "public", `status: {addresses: [{type: IPAddress, value: 198.51.100.8}]}`, "status")
		},
		func(w *world) {
			w.Patch(dockyards.Clusters, "prod", "spec: {noDefaultIngressProvider: true}")
			w.Patch(dockyards.Clusters, "plain", "spec: {noDefaultIngressProvider: false}")
		},
	},
}

func (w *world) gateway(address string) {
	w.TB.Helper()
	w.Create(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: public},
		spec: {gatewayClassName: test, listeners: [{name: api, port: 6443, protocol: TLS, tls: {mode: Passthrough}}]}}`)
	w.Patch(dockyards.Gateways, "public", `status: {addresses: [{type: IPAddress, value: `+address+`}]}`, "status")
}

var pools = &scenario{
	fn: "nodepool-provisioner",
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{provisioner.DefaultSpec()}, Partial: true,
		CRDs:  []string{crds.ClusterAPI, crds.CAPK, crds.TalosBootstrap, crds.TalosControlPlane, crds.KubeVirt, crds.CDI, crds.Multus},
		Files: []string{"api/dockyards/crds"},
		Kinds: []kind.Resource{
			dockyards.NodePools, dockyards.Clusters, dockyards.Releases, asCAPI, dockyards.KubevirtMachineTemplates, dockyards.TalosConfigTemplates,
			dockyards.TalosControlPlanes, dockyards.MachineDeployments, dockyards.MachineSets, dockyards.KubevirtMachines, dockyards.TalosConfigs,
			dockyards.DataSources, dockyards.DataVolumes, dockyards.NetworkAttachmentDefinitions,
			{Group: dockyards.CAPIClusters.Group, Versions: dockyards.CAPIClusters.Versions, Kind: "Machine", Plural: "machines", Namespaced: true},
		},
	}),
	given: func(w *world) {
		w.create(`
{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + dockyards.DefaultSettings().ConfigMapName + `}, data: {dockyards-kubevirt.ntp.servers: time.a}}
---
{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: talos, annotations: {dockyards.io/is-default-release: ""}}, spec: {type: TalosInstaller}}
---
{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataSource, metadata: {name: talos}, spec: {source: {pvc: {name: talos-v1.12.0, namespace: WORLD}}}}
---
{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: talos-v1.12.0}, spec: {
	source: {http: {url: "https://images.example.com/x"}}, pvc: {accessModes: [ReadWriteMany], resources: {requests: {storage: 8Gi}}}}}
---
{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: prod}, spec: {version: v1.34.1, podSubnets: [10.244.0.0/16], serviceSubnets: [10.96.0.0/12]}}
`)
		w.Patch(dockyards.Clusters, "prod", "status: {apiEndpoint: {host: prod.example.com, port: 6443}}", "status")
		w.capiCluster("prod")
	},
	start: func(w *world, options ...suite.Option) *suite.Copy {
		settings, err := provisioner.ParseSettings(func(string) (string, bool) { return "", false })
		if err != nil {
			w.TB.Fatal(err)
		}
		settings.ConfigMapNamespace = w.NS
		return run(w, provisioner.Declare(settings), options...)
	},
	steps: []func(w *world){
		func(w *world) { w.pool("prod-a", true); w.pool("prod-b", false) },
		func(w *world) { w.Patch(dockyards.NodePools, "prod-b", "spec: {replicas: 5}"); w.pool("prod-c", false) },
		func(w *world) {
			w.Patch(dockyards.NodePools, "prod-a", "spec: {resources: {cpu: 4}}")
			w.Patch(dockyards.NodePools, "prod-b", "spec: {resources: {memory: 8Gi}}")
		},
		func(w *world) {
			w.Patch(dockyards.NodePools, "prod-c", "metadata: {finalizers: [cluster-api.dockyards.io/finalizer]}")
			w.Remove(dockyards.NodePools, "prod-c")
		},
	},
	neighbours: letGo,
	state:      lasting,
}

// pool makes a NodePool as the backend does.
func (w *world) pool(name string, controlPlane bool) {
	w.TB.Helper()
	uid := w.Must(dockyards.Clusters, "prod").GetUID()
	w.Create(fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: NodePool, metadata: {name: %s, labels: {dockyards.io/cluster-name: prod, dockyards.io/node-pool-name: %[1]q},
		ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: prod, uid: %s, blockOwnerDeletion: true}]},
		spec: {controlPlane: %v, replicas: 3, resources: {cpu: 2500m, memory: 4096Mi, storage: 20Gi}}}`, name, uid, controlPlane))
}

// letGo plays dockyards-cluster-api: a pool goes when its machines are gone.
func letGo(w *world) {
	w.TB.Helper()
	for _, name := range []string{"prod-a", "prod-b", "prod-c"} {
		pool := w.Get(dockyards.NodePools, name)
		if pool == nil || pool.GetDeletionTimestamp() == nil {
			continue
		}
		if !w.has(dockyards.MachineDeployments, name) && !w.has(dockyards.KubevirtMachineTemplates, name) && !w.has(dockyards.TalosConfigTemplates, name) {
			w.Patch(dockyards.NodePools, name, "metadata: {finalizers: null}")
		}
	}
}
