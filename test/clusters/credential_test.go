package clusters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

// upstream is an account on the remote cluster with the rights of upstream's operator.
const upstream = "upstream"

// upstreamGrants are what upstream's operator asks for on a cluster, TK-8.
var upstreamGrants = []reconcile.Grant{
	{Resource: kinds.VirtualMachines, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
	{Resource: kinds.VirtualMachineInstances, Verbs: []string{"get"}},
	{Resource: kind.PersistentVolumeClaims, Verbs: []string{"get", "list", "create", "delete"}},
	{Resource: kind.Namespaces, Verbs: []string{"get", "list", "create"}},
	{Resource: kind.StorageClasses, Verbs: []string{"list"}},
	{Resource: kinds.StorageProfiles, Verbs: []string{"get"}},
	{Resource: kinds.DataVolumes, Verbs: []string{"get", "delete"}},
	{Resource: kinds.NetworkAttachmentDefinitions, Verbs: []string{"get", "list", "create", "delete"}},
}

// onSupervisor is a Machine as upstream's operator leaves it, with a network and
// cloud-init, and what lies beside it.
const onSupervisor = `
apiVersion: vitistack.io/v1alpha1
kind: NetworkNamespace
metadata: {name: prod}
spec: {ipAllocation: {type: static, static: {ipv4CIDR: 10.1.0.0/24, ipv4Gateway: 10.1.0.1}}}
---
apiVersion: v1
kind: Secret
metadata: {name: init}
stringData: {userdata: "#cloud-config"}
---
apiVersion: vitistack.io/v1alpha1
kind: NetworkConfiguration
metadata: {name: web, labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/source-machine: web}}
spec: {name: web, provider: kea, networkInterfaces: [{name: vlan0, macAddress: "02:AB:00:00:00:01"}]}
---
apiVersion: vitistack.io/v1alpha1
kind: Machine
metadata: {name: web, finalizers: [machine.vitistack.io/finalizer], annotations: {vitistack.io/nad-to-cleanup: vlan9}}
spec:
  provider: kubevirt
  cpu: {cores: 2}
  memory: 2147483648
  disks: [{name: root, sizeGB: 10, boot: true}]
  network: {networkNamespaceName: prod}
  cloudInit: {secretRef: {name: init}}
`

// onTarget is what it has made on the other cluster.
const onTarget = `
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: vlan0, labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/vlan-id: "0"}}
spec: {config: '{"cniVersion": "1.0.0", "name": "br0", "plugins": [{"type": "bridge", "bridge": "br0"}]}'}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web, labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/source-machine: web, disk-type: boot}}
spec: {accessModes: [ReadWriteMany], volumeMode: Block, storageClassName: standard, resources: {requests: {storage: 10Gi}}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/source-machine: web}}
spec:
  runStrategy: Always
  template:
    spec:
      domain:
        cpu: {cores: 2}
        memory: {guest: 2Gi}
        firmware: {bootloader: {efi: {secureBoot: false}}}
        devices:
          disks: [{name: root, bootOrder: 1, disk: {bus: virtio}}, {name: cloudinitdisk, disk: {bus: virtio}}]
          interfaces: [{name: vlan0, bridge: {}, macAddress: "02:ab:00:00:00:01"}]
      networks: [{name: vlan0, multus: {networkName: vlan0}}]
      volumes:
      - {name: root, persistentVolumeClaim: {claimName: web}}
      - {name: cloudinitdisk, cloudInitNoCloud: {userDataBase64: I2Nsb3VkLWNvbmZpZwo=}}
`

// TestUpstreamsCredentialIsEnoughForATakeover: TK-8, TK-1 and TK-7 on another cluster. A
// kubeconfig that upstream's operator has been using lets a Machine be taken over, looked
// after and deleted; it may read no Secret, and claims are never changed with it.
func TestUpstreamsCredentialIsEnoughForATakeover(t *testing.T) {
	w := newWorld(t)
	w.remote.Apply(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: ` + upstream + `, namespace: ` + suite.Home + `}}`)
	rights := suite.RightsOf(upstreamGrants...)
	if err := kube.Apply(t.Context(), w.remote.Env.Config, suite.Role("upstream", suite.Home, upstream, rights...)...); err != nil {
		t.Fatal(err)
	}
	suite.AwaitRight(t, w.remote.Env, suite.Home, upstream, rights[len(rights)-1])
	w.CreateAs("manager", onSupervisor)
	w.remote.Apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + w.NS + `}}`)
	w.remote.CreateAs("manager", onTarget)
	machine := w.Must(kinds.Machines, "web")
	w.remote.Update(kinds.VirtualMachines, "web", "manager", func(vm *unstructured.Unstructured) {
		vm.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: machine.GetAPIVersion(), Kind: machine.GetKind(), Name: "web", UID: machine.GetUID()}})
	})
	w.runs(w.remote, "web")
	before, generation := w.takenOver(), w.remote.Must(kinds.VirtualMachines, "web").GetGeneration()

	w.secret("east", w.direct(upstream))
	w.config("east")
	w.settled("web")
	w.ready("web", "True Running", "")
	if diff := cmp.Diff(before, w.takenOver()); diff != "" {
		t.Errorf("TK-1: the takeover has touched (-before +after):\n%s", diff)
	}
	vm := w.remote.Must(kinds.VirtualMachines, "web")
	if got := vm.GetGeneration(); got > generation+1 {
		t.Errorf("TK-1: the labels of the template are one change, the generation went from %d to %d", generation, got)
	}
	if refs := vm.GetOwnerReferences(); len(refs) > 0 {
		t.Errorf("TK-7: the other cluster's garbage collector would delete what names an owner that is not there: %v", refs)
	}
	w.f.Rests(w.Event(kinds.Machines, "web"), w.Event(kinds.Machines, "web"), w.Event(kinds.Machines, "web"))
	w.f.Resync()
	if diff := cmp.Diff(before, w.takenOver()); diff != "" {
		t.Errorf("TK-1: three passes and a resync have touched (-before +after):\n%s", diff)
	}

	w.Remove(kinds.Machines, "web")
	w.settled("web")
	w.remote.Remove(kinds.VirtualMachineInstances, "web") // as KubeVirt does, after its machine
	w.settledOrGone("web")
	if left := w.Get(kinds.Machines, "web"); left != nil {
		_, reason, message := suite.Condition(left, "Ready")
		t.Errorf("the Machine cannot be deleted: %s (%s); the log:\n%s", reason, message, w.f.Log)
	}
	for key, obj := range w.remote.Objects() {
		if obj.GetDeletionTimestamp() == nil {
			t.Errorf("the deletion leaves %s", key)
		}
	}
}

// takenOver is what a takeover must not change on the other cluster: all but the metadata
// of the virtual machine and its template.
func (w *world) takenOver() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for key, obj := range w.remote.Objects() {
		if strings.HasPrefix(key, "VirtualMachine/") {
			obj = obj.DeepCopy()
			unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata")
			all[key] = string(obj.GetUID()) + suite.Bytes(w.t, obj, "spec") + suite.Bytes(w.t, obj, "status")
			continue
		}
		all[key] = string(obj.GetUID()) + " " + obj.GetResourceVersion()
	}
	return all
}
