package nodepool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	provisioner "github.com/slipway-dev/slipway/functions/nodepool-provisioner"
	"github.com/slipway-dev/slipway/functions/nodepool-provisioner/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

const (
	// owner is the Cluster of all pools, subject the pool of most tests.
	owner   = "prod"
	subject = "prod-a"
	// image is the default Release.
	image = "talos"
)

// Conditions of pools.
const (
	template = v1alpha3.ConditionKubevirtMachineTemplateReconciled
	control  = v1alpha3.ConditionTalosControlPlaneReconciled
	config   = v1alpha3.ConditionTalosConfigTemplateReconciled
	deployed = v1alpha3.ConditionMachineDeploymentReconciled
	ready    = v1alpha3.ConditionReady
)

// world is a namespace that is a platform of its own: it holds the config map and the
// Release too.
type world struct {
	*suite.World
	settings provisioner.Settings
}

// newWorld is a platform with everything that a pool needs.
func newWorld(t *testing.T) *world {
	t.Helper()
	settings, err := provisioner.ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	w := &world{World: suit.World(t), settings: settings}
	w.settings.ConfigMapNamespace = w.NS
	w.configMap("dockyards-kubevirt.ntp.servers: time.a, dockyards-kubevirt.env.HTTP_PROXY: 'http://proxy.secret:3128'")
	w.release(image, "dockyards.io/is-default-release: ''")
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: ` + owner + `},
		spec: {version: v1.34.1, podSubnets: [10.244.0.0/16], serviceSubnets: [10.96.0.0/12]}}`)
	w.endpoint(w.NS + "-prod.example.com")
	w.capiCluster()
	return w
}

func (w *world) configMap(data string) {
	w.TB.Helper()
	w.Create(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {%s}}", w.settings.ConfigMapName, data))
}

// release makes a Release with its imported image.
func (w *world) release(name, annotations string) {
	w.TB.Helper()
	w.Create(fmt.Sprintf(`
{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: %[1]s, annotations: {%[2]s}}, spec: {type: TalosInstaller}}
---
{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataSource, metadata: {name: %[1]s}, spec: {source: {pvc: {name: %[1]s-v1.12.0, namespace: %[3]s}}}}
---
{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: %[1]s-v1.12.0}, spec: {
	source: {http: {url: "https://images.example.com/x"}}, pvc: {accessModes: [ReadWriteMany], resources: {requests: {storage: 8Gi}}}}}
`, name, annotations, w.NS))
}

func (w *world) endpoint(host string) {
	w.TB.Helper()
	w.Patch(dockyards.Clusters, owner, "status: {apiEndpoint: {host: "+host+", port: 6443}}", "status")
}

// capiCluster makes the Cluster API Cluster as dockyards-cluster-api does.
func (w *world) capiCluster() {
	w.TB.Helper()
	cluster := w.Must(dockyards.Clusters, owner)
	w.Create(fmt.Sprintf(`{apiVersion: %s, kind: Cluster, metadata: {name: %s, ownerReferences: [
		{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: %[2]s, uid: %s, controller: true, blockOwnerDeletion: true}]},
		spec: {clusterNetwork: {serviceDomain: cluster.local}}}`, capis.APIVersion(), owner, cluster.GetUID()))
}

// pool makes a NodePool as the backend does; spec may add to what every pool has.
func (w *world) pool(name string, controlPlane bool, spec string) *unstructured.Unstructured {
	w.TB.Helper()
	cluster := w.Must(dockyards.Clusters, owner)
	return w.Create(fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: NodePool, metadata: {name: %s, labels: {dockyards.io/cluster-name: %s, dockyards.io/node-pool-name: %[1]q},
		ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: %[2]s, uid: %s, blockOwnerDeletion: true}]},
		spec: {controlPlane: %v, resources: {cpu: 2500m, memory: 4096Mi, storage: 20Gi}%s}}`, name, owner, cluster.GetUID(), controlPlane, spec))
}

// settled is a world with a pool of three machines that the function has made.
func settled(t *testing.T, controlPlane bool) (*world, *suite.Copy) {
	t.Helper()
	w := newWorld(t)
	w.pool(subject, controlPlane, ", replicas: 3")
	f := w.provisioner()
	w.converged(f)
	w.is(subject, ready, "True Reconciled")
	return w, f
}

// bothRoles runs a test with a control plane and with workers.
func bothRoles(t *testing.T, do func(t *testing.T, controlPlane bool)) {
	t.Helper()
	suite.Each(t, []bool{true, false}, func(controlPlane bool) string {
		return map[bool]string{true: "ControlPlane", false: "Workers"}[controlPlane]
	}, do)
}

// provisioner starts a copy of the function. The kinds that it is woken by are named
// in the version that is served.
func (w *world) provisioner(options ...suite.Option) *suite.Copy {
	w.TB.Helper()
	return suite.Run(w.World, w.declared(), options...)
}

func (w *world) declared() reconcile.Function[decide.Input] {
	fn := provisioner.Declare(w.settings)
	for i := range fn.Spec.Watches {
		for _, res := range []kind.Resource{capis, deployments, configTemplates} {
			if fn.Spec.Watches[i].Resource.String() == res.String() {
				fn.Spec.Watches[i].Resource = res
			}
		}
	}
	return fn
}

// converged hands a copy the event of the subject until it is done.
func (w *world) converged(f *suite.Copy) {
	w.TB.Helper()
	f.Insist(w.Event(dockyards.NodePools, subject))
}

// is wants a pool's condition to be "status reason".
func (w *world) is(name, conditionType, want string) {
	w.TB.Helper()
	is, reason, message := suite.Condition(w.Must(dockyards.NodePools, name), conditionType)
	if got := strings.TrimSpace(is + " " + reason); got != want {
		w.TB.Errorf("%s of NodePool %q is %q, want %q: %s", conditionType, name, got, want, message)
	}
}

// says wants the message of a pool's condition to hold a text.
func (w *world) says(name, conditionType, want string) {
	w.TB.Helper()
	_, _, message := suite.Condition(w.Must(dockyards.NodePools, name), conditionType)
	if !strings.Contains(message, want) {
		w.TB.Errorf("%s of NodePool %q says %q, want %q", conditionType, name, message, want)
	}
}

// keeper is the resource of what keeps a pool's machines.
func keeper(controlPlane bool) kind.Resource {
	if controlPlane {
		return dockyards.TalosControlPlanes
	}
	return deployments
}

// machines is what keeps the subject's machines.
func (w *world) machines(controlPlane bool) *unstructured.Unstructured {
	w.TB.Helper()
	return w.Must(keeper(controlPlane), subject)
}

// named are the templates that the subject's machines are made from.
func (w *world) named(controlPlane bool) (infrastructure, bootstrap string) {
	w.TB.Helper()
	return decide.References(w.machines(controlPlane))
}

func (w *world) spec(body string) {
	w.TB.Helper()
	w.Patch(dockyards.NodePools, subject, "spec: {"+body+"}")
}

// replicas and version of the subject's machines.
func (w *world) runs(controlPlane bool) string {
	w.TB.Helper()
	obj := w.machines(controlPlane)
	version := []string{"spec", "version"}
	if !controlPlane {
		version = []string{"spec", "template", "spec", "version"}
	}
	return suite.Text(obj, "spec", "replicas") + " of " + suite.Text(obj, version...)
}

// events are reason and message of the Kubernetes Events in the world.
func (w *world) events() []string {
	w.TB.Helper()
	list, err := w.Client.Resource(kind.Events.GVR()).Namespace(w.NS).List(w.TB.Context(), metav1.ListOptions{})
	if err != nil {
		w.TB.Fatal(err)
	}
	var found []string
	for i := range list.Items {
		found = append(found, suite.Text(&list.Items[i], "reason")+": "+suite.Text(&list.Items[i], "note"))
	}
	slices.Sort(found)
	return found
}

func nested(content map[string]any, path ...string) (any, bool, error) {
	return unstructured.NestedFieldNoCopy(content, path...)
}
