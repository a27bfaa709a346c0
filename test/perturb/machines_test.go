package perturb

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	clustercheck "github.com/slipway-dev/slipway/functions/cluster-check"
	checked "github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	virtual "github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

// unstructuredObject is short for what scenarios change.
type unstructuredObject = unstructured.Unstructured

var machines = &scenario{
	fn: "machine-vm",
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{machinevm.DefaultSpec()}, Partial: true, CRDs: []string{crds.KubeVirt, crds.CDI, crds.Multus},
		Files: []string{"api/vitistack/crds", "api/vitistack/v1alpha1/testdata/networknamespace-crd.yaml"}, StorageClasses: true,
		Kinds: []kind.Resource{
			virtual.Machines, virtual.VirtualMachines, virtual.VirtualMachineInstances, kind.PersistentVolumeClaims, virtual.DataVolumes,
			kind.Secrets, virtual.NetworkAttachmentDefinitions, virtual.NetworkConfigurations, virtual.NetworkNamespaces,
		},
		Plain: uncounted, Sort: suite.DevicesByName, Derived: addresses,
	}),
	given: func(w *world) {
		w.Create(`
apiVersion: v1
kind: Secret
metadata: {name: source}
stringData: {userdata: "#cloud-config\nhostname: web\n"}
---
apiVersion: vitistack.io/v1alpha1
kind: NetworkConfiguration
metadata: {name: lan}
spec: {bridge: br7, vlan: 7}
`)
	},
	start: func(w *world, options ...suite.Option) *suite.Copy {
		settings, err := machinevm.ParseSettings(func(string) (string, bool) { return "", false })
		if err != nil {
			w.TB.Fatal(err)
		}
		return run(w, machinevm.Declare(settings), options...)
	},
	// Without KubeVirt nobody uses a claim: one that is being deleted goes.
	neighbours: func(w *world) {
		claims, err := w.In(kind.PersistentVolumeClaims).List(w.TB.Context(), metav1.ListOptions{})
		if err != nil {
			w.TB.Fatal(err)
		}
		for i := range claims.Items {
			if claims.Items[i].GetDeletionTimestamp() != nil {
				w.Patch(kind.PersistentVolumeClaims, claims.Items[i].GetName(), `{metadata: {finalizers: null}}`)
			}
		}
	},
	steps: []func(w *world){
		func(w *world) {
			w.vm("web", `{template: small, disks: [{name: data, size: 1Gi, storageClass: fast-ssd}], networks: [{name: eth0, networkName: lan}], cloudInit: {secretRef: {name: source}}}`)
		},
		func(w *world) {
			w.vm("db", `{template: small, cloudInit: {userData: "#cloud-config\nx: 1\n"}}`)
			w.vm("bad", `{template: unheard-of}`)
			w.Patch(virtual.Machines, "web", `{spec: {resources: {cpu: {cores: 4}}, disks: [{name: data, size: 1Gi, storageClass: fast-ssd}, {name: log, size: 2Gi}], networks: [{name: eth0, networkName: lan, model: e1000}]}}`)
		},
		func(w *world) {
			w.Patch(kind.Secrets, "source", `{stringData: {userdata: "#cloud-config\nhostname: other\n"}}`)
			w.Patch(virtual.NetworkConfigurations, "lan", `{spec: {vlan: 8}}`)
			w.Patch(virtual.Machines, "bad", `{spec: {template: small}}`)
		},
		func(w *world) { w.Remove(virtual.Machines, "db") },
	},
}

func (w *world) vm(name, spec string) {
	w.TB.Helper()
	w.Create(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: ` + name + `}, spec: ` + spec + `}`)
}

// Permitted differences of Machines: what counts writes, the order of devices, each
// with its name, which tells what came first, and what is derived from UIDs.
func uncounted(obj *unstructuredObject) {
	for _, path := range [][]string{{"status", "resourceVersion"}, {"metadata", "annotations", "kubevirt.io/vm-generation"}} {
		unstructured.RemoveNestedField(obj.Object, path...)
	}
}

// addresses turns MAC addresses, which are derived from UIDs (NW-7), into what they are
// derived from.
func addresses(_ *suite.World, objs map[string]*unstructuredObject) []string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(objs)) {
		obj := objs[key]
		if obj.GetKind() != virtual.Machines.Kind {
			continue
		}
		for _, name := range []string{"default", "vlan0", "eth0"} {
			sum := sha256.Sum256([]byte(string(obj.GetUID()) + "/" + name))
			pairs = append(pairs, fmt.Sprintf("02:12:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3]), "MAC("+obj.GetName()+"/"+name+")")
		}
	}
	return pairs
}

const virtHome = "virt-platform"

var check = &scenario{
	fn: "cluster-check",
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{clustercheck.DefaultSpec()}, Partial: true, CRDs: []string{crds.KubeVirt},
		Files: []string{"api/vitistack/crds"}, Kinds: []kind.Resource{checked.KubevirtConfigs}, Others: []kind.Resource{checked.KubeVirts},
		Objects: []*unstructured.Unstructured{
			{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": virtHome}}},
			{Object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": map[string]any{"name": "main", "namespace": virtHome}, "spec": map[string]any{}}},
			remoteAdmin, remoteAdminBinding,
		},
		Derived: func(w *suite.World, _ map[string]*unstructuredObject) []string { return []string{w.NS, "NAMESPACE"} },
	}),
	given: func(w *world) {
		w.At(virtHome).Patch(checked.KubeVirts, "main", `{status: {observedKubeVirtVersion: v1.9.0, conditions: [{type: Created, status: "True"}, {type: Available, status: "True", reason: R, message: fine}]}}`, "status")
		w.notes["kubeconfig"] = string(w.credential())
	},
	remote: func(*world) (namespace, cluster string) { return "", "" },
	start: func(w *world, options ...suite.Option) *suite.Copy {
		settings, err := clustercheck.ParseSettings(func(string) (string, bool) { return "", false })
		if err != nil {
			w.TB.Fatal(err)
		}
		return run(w, clustercheck.Declare(settings), append(options, suite.WithOptions(func(o *reconcile.Options) { o.RemoteTimeout = suite.Patience / 3 }))...)
	},
	steps: []func(w *world){
		func(w *world) { w.config("east") },
		func(w *world) {
			w.secret("east", w.notes["kubeconfig"])
			w.config("west")
		},
		func(w *world) { w.secret("west", "no kubeconfig: [") },
		func(w *world) { w.secret("west", w.notes["kubeconfig"]); w.secret("east", "") },
	},
}

// remoteAdmin is an account that may do anything in a workload cluster, which is the
// same API server here.
var (
	remoteAdmin = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "remote-admin", "namespace": suite.Home},
	}}
	remoteAdminBinding = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "perturb-remote-admin"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "remote-admin", "namespace": suite.Home}},
	}}
)

// credential is a kubeconfig that leads to the API server through the world's proxy.
func (w *world) credential() []byte {
	w.TB.Helper()
	content, err := w.Env.Cluster.TokenKubeconfig(w.TB.Context(), suite.Home, remoteAdmin.GetName())
	if err != nil {
		w.TB.Fatal(err)
	}
	return suite.Redirect(w.TB, content, w.proxy.URL, w.proxy.CA)
}

func (w *world) secret(name, kubeconfig string) {
	w.TB.Helper()
	if !w.has(kind.Secrets, name) {
		w.Create(`{apiVersion: v1, kind: Secret, metadata: {name: ` + name + `, labels: {slipway.dev/watch: "true"}}}`)
	}
	w.Patch(kind.Secrets, name, fmt.Sprintf(`{stringData: {kubeconfig: %q}}`, kubeconfig))
}

func (w *world) config(name string) {
	w.TB.Helper()
	w.create(`{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: ` + w.marked(name+"-WORLD") + `, spec: {kubeconfigSecretRef: ` + name + `, secretNamespace: WORLD}}`)
}
