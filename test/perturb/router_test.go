package perturb

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	workloadrouter "github.com/slipway-dev/slipway/functions/workload-router"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

// apps is the namespace that stands for the workload cluster of a world.
func (w *world) apps() *suite.World { return w.At(w.NS + "-apps") }

var router = &scenario{
	fn: "workload-router",
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{workloadrouter.DefaultSpec()}, Partial: true, CRDs: []string{crds.ClusterAPI, crds.GatewayAPI},
		Files:   []string{"api/dockyards/crds"},
		Kinds:   []kind.Resource{dockyards.Workloads, dockyards.Clusters, asCAPI, dockyards.Services, dockyards.HTTPRoutes, dockyards.TLSRoutes},
		Others:  []kind.Resource{dockyards.Gateways},
		Objects: []*unstructured.Unstructured{remoteAdmin, remoteAdminBinding},
		// Permitted difference: addresses and ports that the API server draws by lot.
		Plain: drawn,
	}),
	given: func(w *world) {
		w.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + w.apps().NS + `}}`)
		w.gateway("192.0.2.10")
		w.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + workloadrouter.DefaultSettings().ConfigMapName + `}, data: {externalURL: "https://cloud.example"}}`)
		w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: prod}, spec: {}}`)
		w.Patch(dockyards.Clusters, "prod", `{status: {dnsZones: ["shop.example."]}}`, "status")
		w.Create(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: prod}, spec: {paused: false}}`)
		w.Patch(dockyards.CAPIClusters, "prod", `{status: {initialization: {infrastructureProvisioned: true, controlPlaneInitialized: true}}}`, "status")
		w.Create(`{apiVersion: v1, kind: Secret, type: cluster.x-k8s.io/secret, metadata: {name: prod-kubeconfig, labels: {cluster.x-k8s.io/cluster-name: prod}}}`)
		w.Patch(kind.Secrets, "prod-kubeconfig", fmt.Sprintf(`{stringData: {value: %q}}`, w.credential()))
	},
	remote: func(w *world) (namespace, cluster string) { return w.apps().NS, w.NS + "/prod" },
	start: func(w *world, options ...suite.Option) *suite.Copy {
		settings := workloadrouter.DefaultSettings()
		settings.GatewayNamespace, settings.GatewayName, settings.ConfigMapNamespace = w.NS, "public", w.NS
		settings.RemoteTimeout = 20 * time.Second
		return run(w, workloadrouter.Declare(settings), append(options, suite.WithOptions(func(o *reconcile.Options) {
			set := workloadrouter.Options(settings)
			o.Parallel, o.RemoteTimeout, o.RemoteAnswer = set.Parallel, set.RemoteTimeout, set.RemoteAnswer
		}))...)
	},
	steps: []func(w *world){
		func(w *world) {
			uid := w.Must(dockyards.Clusters, "prod").GetUID()
			w.Create(fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: web-%s, labels: {dockyards.io/cluster-name: prod},
				ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: prod, uid: %s}]}, spec: {provenience: Dockyards, targetNamespace: %s}}`, w.NS, uid, w.apps().NS))
			w.service("front", `[{name: http, port: 80}, {name: https, port: 443}]`)
		},
		func(w *world) {
			w.service("back", `[{name: http, port: 80}]`)
			w.apps().Patch(dockyards.Services, "front", `{spec: {ports: [{name: http, port: 80}]}}`)
		},
		func(w *world) {
			w.Patch(dockyards.Gateways, "public", `status: {addresses: [{type: IPAddress, value: 192.0.2.11}]}`, "status")
			w.Patch(dockyards.Clusters, "prod", `{status: {dnsZones: ["shop.example.", "other.example."]}}`, "status")
		},
		func(w *world) { w.apps().Remove(dockyards.Services, "back") },
	},
}

func (w *world) service(name, ports string) {
	w.TB.Helper()
	w.apps().Create(`{apiVersion: v1, kind: Service, metadata: {name: ` + name + `, labels: {dockyards.io/workload-name: web-` + w.NS + `}}, spec: {type: LoadBalancer, ports: ` + ports + `}}`)
}

func drawn(obj *unstructuredObject) {
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(obj.Object, "spec", field)
	}
	ports, _, _ := unstructured.NestedSlice(obj.Object, "spec", "ports")
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			delete(fields, "targetPort")
		}
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(obj.Object, ports, "spec", "ports")
	}
}
