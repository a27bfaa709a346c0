package decide

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

const (
	template = "KubevirtMachineTemplateReconciled"
	control  = "TalosControlPlaneReconciled"
	config   = "TalosConfigTemplateReconciled"
	deployed = "MachineDeploymentReconciled"
)

func TestWhatIsWrongIsSaidAndNothingIsMadeOfIt(t *testing.T) {
	cases := map[string]problemCase{
		"NoCluster": {
			reason: "the owner is gone", controlPlane: true,
			change: func(w *world) { w.in.Cluster = nil },
			want:   map[string]string{template: "False WaitingForCluster", control: "False WaitingForCluster", "Ready": "False WaitingForCluster"},
		},
		"NoOwner": {
			reason: "neither owner nor label",
			change: func(w *world) {
				w.in.Cluster = nil
				w.in.Pool.SetOwnerReferences(nil)
				w.in.Pool.SetLabels(nil)
			},
			want: map[string]string{template: "False WaitingForCluster", config: "False WaitingForCluster", deployed: "False WaitingForCluster"},
		},
		"NoRelease": {
			reason: "nothing to boot from", controlPlane: true,
			change: func(w *world) { w.in.Release = nil },
			want:   map[string]string{template: "False WaitingForRelease", control: "False WaitingForMachineTemplate", "Ready": "False WaitingForRelease"},
		},
		"NoReleaseForWorkers": {
			reason: "the config template does not need one",
			change: func(w *world) { w.in.Release = nil },
			want:   map[string]string{template: "False WaitingForRelease", config: "True Reconciled", deployed: "False WaitingForMachineTemplate"},
			made:   []string{"TalosConfigTemplate pool"},
		},
		"NoDataSource": {
			reason: "the image has never been imported", controlPlane: true,
			change: func(w *world) { w.in.DataSource = nil },
			want:   map[string]string{template: "False WaitingForDataSource", "Ready": "False WaitingForDataSource"},
		},
		"DataSourceNotReady": {
			reason: "no new machine could boot", controlPlane: true,
			change: func(w *world) {
				set(w.in.DataSource, []any{map[string]any{"type": "Ready", "status": "False"}}, "status", "conditions")
			},
			want: map[string]string{template: "False WaitingForDataSource"},
		},
		"NoCPU":          invalidSpec("spec.resources.cpu is missing", func(w *world) { drop(w.in.Pool.Object, "spec", "resources", "cpu") }),
		"ZeroMemory":     invalidSpec("spec.resources.memory is 0", func(w *world) { set(w.in.Pool, "0", "spec", "resources", "memory") }),
		"NegativeDisk":   invalidSpec("spec.resources.storage is -1Gi", func(w *world) { set(w.in.Pool, "-1Gi", "spec", "resources", "storage") }),
		"StrangeCPU":     invalidSpec("spec.resources or spec.storageResources cannot be read", func(w *world) { set(w.in.Pool, "many", "spec", "resources", "cpu") }),
		"TooManyCores":   invalidSpec("spec.resources.cpu is 5e9", func(w *world) { set(w.in.Pool, "5e9", "spec", "resources", "cpu") }),
		"AbsurdCPU":      invalidSpec("spec.resources.cpu is 1e30", func(w *world) { set(w.in.Pool, "1e30", "spec", "resources", "cpu") }),
		"AbsurdMemory":   invalidSpec("spec.resources.memory is", func(w *world) { set(w.in.Pool, "1e30", "spec", "resources", "memory") }),
		"AbsurdDisk":     invalidSpec("spec.storageResources[0].quantity is", disks("a", "1e30")),
		"DiskCalledBoot": invalidSpec(`spec.storageResources[0].name is "boot"`, disks("boot", "1Gi")),
		"ProvidersDisk":  invalidSpec(`spec.storageResources[0].name is "cloudinitvolume"`, disks("cloudinitvolume", "1Gi")),
		"DiskTwice":      invalidSpec(`spec.storageResources[1].name is "a" a second time`, disks("a", "1Gi", "a", "1Gi")),
		"DiskWithoutDNS": invalidSpec("spec.storageResources[0].name is no DNS label", disks("A_b", "1Gi")),
		"EmptyDisk":      invalidSpec("spec.storageResources[0].quantity is 0", disks("a", "0")),
		"SmallerThanImage": invalidSpec("spec.resources.storage is 20Gi, and the image takes 40Gi", func(w *world) {
			w.in.Image = object(t, `{kind: DataVolume, metadata: {name: i}, spec: {pvc: {resources: {requests: {storage: 40Gi}}}}}`)
		}),
		"SmallerThanStorageImage": invalidSpec("spec.resources.storage is 20Gi, and the image takes 40Gi", func(w *world) {
			w.in.Image = object(t, `{kind: DataVolume, metadata: {name: i}, spec: {storage: {resources: {requests: {storage: 40Gi}}}}}`)
		}),
		"LongName": invalidSpec("the pool's name is no label value", func(w *world) { w.in.Pool.SetName(strings.Repeat("a", 64)) }),
		"LongClusterName": invalidSpec("the Cluster's name is no label value", func(w *world) {
			w.in.Cluster.SetName(strings.Repeat("a", 64))
		}),
		"TwoDefaultNetworks": {
			reason: "which one is meant cannot be told", controlPlane: true,
			change: func(w *world) {
				w.in.Settings.Multus, w.in.Networks = true, definitions(t, "a", "b")
				for i := range w.in.Networks {
					dockyards.SetLabels(&w.in.Networks[i], map[string]string{"kubevirt.dockyards.io/network-as-default": "false"})
				}
			},
			want: map[string]string{template: "False AmbiguousDefaultNetwork"},
		},
		"NoEndpoint": {
			reason: "the control plane waits, its template does not", controlPlane: true,
			change: func(w *world) { drop(w.in.Cluster.Object, "status") },
			want:   map[string]string{template: "True Reconciled", control: "False WaitingForClusterEndpoint"},
			made:   []string{"KubevirtMachineTemplate pool"},
		},
		"NoEndpointForWorkers": {
			reason: "workers wait, their templates do not",
			change: func(w *world) { set(w.in.Cluster, int64(0), "status", "apiEndpoint", "port") },
			want:   map[string]string{template: "True Reconciled", config: "True Reconciled", deployed: "False WaitingForClusterEndpoint"},
			made:   []string{"KubevirtMachineTemplate pool", "TalosConfigTemplate pool"},
		},
		"NoConfigMap": {
			reason: "nothing is made that carries Talos patches", controlPlane: true,
			change: func(w *world) { w.in.Config = dockyards.Config{} },
			want:   map[string]string{template: "True Reconciled", control: "False WaitingForConfigMap"},
			made:   []string{"KubevirtMachineTemplate pool"},
		},
		"NoConfigMapForWorkers": {
			reason: "nothing is made that carries Talos patches",
			change: func(w *world) { w.in.Config = dockyards.Config{} },
			want:   map[string]string{config: "False WaitingForConfigMap", deployed: "False WaitingForMachineTemplate"},
			made:   []string{"KubevirtMachineTemplate pool"},
		},
		"NoVersion": {
			reason: "the backend has not filled it in", controlPlane: true,
			change: func(w *world) { set(w.in.Cluster, "", "spec", "version") },
			want:   map[string]string{control: "False WaitingForVersion"},
			made:   []string{"KubevirtMachineTemplate pool"},
		},
		"StrangeVersion": {
			reason: "the provider would refuse it", controlPlane: true,
			change: func(w *world) { set(w.in.Cluster, "1.34", "spec", "version") },
			want:   map[string]string{control: "False InvalidSpec: the Cluster's spec.version is no version"},
			made:   []string{"KubevirtMachineTemplate pool"},
		},
		"NoSubnet": {
			reason: "Talos would refuse it", controlPlane: true,
			change: func(w *world) { set(w.in.Cluster, []any{"10.0.0.0/8", "10.1.0.0"}, "spec", "podSubnets") },
			want:   map[string]string{control: "False InvalidSpec: the Cluster's spec.podSubnets[1] is no subnet"},
			made:   []string{"KubevirtMachineTemplate pool"},
		},
		"NoSubnetForWorkers": {
			reason: "Talos would refuse it",
			change: func(w *world) { set(w.in.Cluster, []any{"pods"}, "spec", "serviceSubnets") },
			want:   map[string]string{config: "False InvalidSpec: the Cluster's spec.serviceSubnets[0] is no subnet", deployed: "False WaitingForMachineTemplate"},
			made:   []string{"KubevirtMachineTemplate pool"},
		},
		"NegativeReplicas": {
			reason: "no provider has fewer than none", controlPlane: true,
			change: func(w *world) { set(w.in.Pool, int64(-1), "spec", "replicas") },
			want:   map[string]string{control: "False InvalidSpec: spec.replicas is -1"},
			made:   []string{"KubevirtMachineTemplate pool"},
		},
		"AnotherControlPlane": {
			reason: "a Cluster has one control plane", controlPlane: true,
			change: func(w *world) {
				set(w.in.CAPICluster, map[string]any{"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "TalosControlPlane", "name": "x"}, "spec", "controlPlaneRef")
			},
			want: map[string]string{control: `False ControlPlaneConflict: another control plane has the Cluster: TalosControlPlane "x"`},
			made: []string{"KubevirtMachineTemplate pool"},
		},
		"AnOlderPool": {
			reason: "the older of two control planes has the Cluster", controlPlane: true,
			change: func(w *world) {
				other := object(t, `{apiVersion: dockyards.io/v1alpha3, kind: NodePool, metadata: {name: a, namespace: team, labels: {dockyards.io/cluster-name: c1}}, spec: {controlPlane: true}}`)
				w.further["NodePool"] = []unstructured.Unstructured{*other}
			},
			want: map[string]string{control: `False ControlPlaneConflict: another control plane has the Cluster: TalosControlPlane "a"`},
			made: []string{"KubevirtMachineTemplate pool"},
		},
		"NoCAPICluster": {
			reason: "the control plane is made all the same", controlPlane: true,
			change: func(w *world) { w.in.CAPICluster = nil },
			want:   map[string]string{control: `False WaitingForCluster: Cluster API Cluster "c1" does not exist`},
			made:   []string{"KubevirtMachineTemplate pool", "TalosControlPlane pool"},
		},
		"SomebodyElsesMachines": {
			reason: "an object of the wanted name stays untouched", controlPlane: true,
			change: func(w *world) {
				w.in.Machines = object(t, `{apiVersion: controlplane.cluster.x-k8s.io/v1alpha3, kind: TalosControlPlane, metadata: {name: pool, namespace: team,
					ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: x}]}}`)
			},
			want: map[string]string{control: `False NameConflict: TalosControlPlane "pool" belongs to somebody else`},
			made: []string{"KubevirtMachineTemplate pool"},
		},
		"SomebodyElsesTemplate": {
			reason: "an object of the wanted name stays untouched", controlPlane: true,
			change: func(w *world) {
				w.in.MachineTemplates = []unstructured.Unstructured{*object(t, `{kind: KubevirtMachineTemplate, metadata: {name: pool, namespace: team}}`)}
			},
			want: map[string]string{template: `False NameConflict: KubevirtMachineTemplate "pool" belongs to somebody else`},
		},
		"UnreadableConfigMap": {
			reason: "what cannot be read is not what is absent",
			change: func(w *world) {
				w.in.Blocked = &fault.Fault{Class: fault.Unavailable, Call: "get configmaps a/b", Message: "127.0.0.1:1234 is away"}
			},
			want: map[string]string{config: "False ErrorReconciling: cannot get configmaps a/b: the API server did not answer"},
		},
		"NoClusterAPI": {
			reason: "no version of it is served",
			change: func(w *world) { w.in.MachinesVersion = "" },
			want:   map[string]string{deployed: "False ErrorReconciling: the API server does not know machinedeployments"},
			made:   []string{"KubevirtMachineTemplate pool", "TalosConfigTemplate pool"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.controlPlane)
			tc.change(w)
			writes, _, c := w.rest()
			var made []string
			for _, write := range writes {
				if verb, what, _ := strings.Cut(write, " "); verb == "create" {
					made = append(made, strings.ReplaceAll(what, "team/", ""))
				}
			}
			if !slices.Equal(made, tc.made) {
				t.Errorf("%s: it made %v, want %v", tc.reason, made, tc.made)
			}
			if c.Class == plan.Done {
				t.Errorf("%s: it came to %s", tc.reason, c.Class)
			}
			for conditionType, want := range tc.want {
				got := w.conditions()[conditionType]
				if !strings.HasPrefix(got, want) {
					t.Errorf("%s: %s is %q, want %q", tc.reason, conditionType, got, want)
				}
				if len(got) > 256+40 {
					t.Errorf("%s: %s is too long: %s", tc.reason, conditionType, got)
				}
			}
			if !strings.HasPrefix(w.conditions()["Ready"], "False ") {
				t.Errorf("%s: Ready is %s", tc.reason, w.conditions()["Ready"])
			}
		})
	}
}

// problemCase is something wrong about a pool, what is said about it, and what is made
// all the same.
type problemCase struct {
	reason       string
	controlPlane bool
	change       func(w *world)
	want         map[string]string
	made         []string
}

func invalidSpec(message string, change func(w *world)) problemCase {
	return problemCase{
		reason: "the spec can never work", controlPlane: true, change: change,
		want: map[string]string{template: "False InvalidSpec: " + message, "Ready": "False InvalidSpec"},
	}
}

func disks(pairs ...string) func(w *world) {
	return func(w *world) {
		var list []any
		for i := 0; i+1 < len(pairs); i += 2 {
			list = append(list, map[string]any{"name": pairs[i], "quantity": pairs[i+1]})
		}
		set(w.in.Pool, list, "spec", "storageResources")
	}
}

// TestReplicasAndVersionWaitForNothing breaks everything else about a live pool.
func TestReplicasAndVersionWaitForNothing(t *testing.T) {
	breaks := map[string]func(w *world){
		"NoRelease":      func(w *world) { w.in.Release = nil },
		"NoDataSource":   func(w *world) { w.in.DataSource = nil },
		"InvalidSpec":    func(w *world) { set(w.in.Pool, "0", "spec", "resources", "cpu") },
		"UnreadableSpec": func(w *world) { set(w.in.Pool, "many", "spec", "resources", "cpu") },
		"NoEndpoint":     func(w *world) { drop(w.in.Cluster.Object, "status") },
		"NoConfigMap":    func(w *world) { w.in.Config = dockyards.Config{} },
		"NoSubnet":       func(w *world) { set(w.in.Cluster, []any{"x"}, "spec", "podSubnets") },
		"TemplateTaken": func(w *world) {
			set(w.in.Pool, "9", "spec", "resources", "cpu")
			w.in.MachineTemplates[0].SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}})
		},
		"TemplatesRefused": func(w *world) {
			w.in.Refused = []Refusal{{Part: PartTemplate, Fault: fault.Fault{Class: fault.Refused, Call: "list x", Message: "no"}}}
		},
		"NoNetworks": func(w *world) { w.in.Settings.Multus, w.in.NetworksNotServed = true, true },
	}
	for name, breakIt := range breaks {
		for _, controlPlane := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, controlPlane)
				w.rest()
				names := w.templates()
				infrastructure, bootstrap := References(w.in.Machines)
				breakIt(w)
				set(w.in.Pool, int64(5), "spec", "replicas")
				set(w.in.Cluster, "v1.35.0", "spec", "version")
				w.rest()
				replicas, _ := number(w.in.Machines.Object, "spec", "replicas")
				version := text(w.in.Machines.Object, look(now, w.in, nil).roller().version...)
				if replicas != 5 || version != "v1.35.0" {
					t.Errorf("there are %d replicas of %s", replicas, version)
				}
				if i, b := References(w.in.Machines); i != infrastructure || b != bootstrap || !slices.Equal(w.templates(), names) {
					t.Errorf("templates are %v, %s and %s are named", w.templates(), i, b)
				}
			})
		}
	}
}

func TestSeveralDefaultReleasesAreToldApart(t *testing.T) {
	w := newWorld(t, true)
	w.in.Several = true
	w.rest()
	w.is(template, `True Reconciled: several default Releases: "dockyards-system/talos" is used`)
}

func TestNothingHappensWhileTheClusterGoes(t *testing.T) {
	gone := metav1.NewTime(now)
	for name, going := range map[string]func(w *world) *unstructured.Unstructured{
		"Cluster":             func(w *world) *unstructured.Unstructured { return w.in.Cluster },
		"Cluster API Cluster": func(w *world) *unstructured.Unstructured { return w.in.CAPICluster },
	} {
		w := newWorld(t, true)
		going(w).SetDeletionTimestamp(&gone)
		if writes, c := w.pass(); len(writes) > 0 || c.Status != nil {
			t.Errorf("the %s is being deleted, and it wrote %v %v", name, writes, c.Status)
		}
	}
}

func TestAPoolThatGoesIsTakenDownInOrder(t *testing.T) {
	gone := metav1.NewTime(now)
	w := newWorld(t, false)
	w.rest()
	w.in.Pool.SetDeletionTimestamp(&gone)
	if writes, _ := w.pass(); !slices.Equal(writes, []string{"delete MachineDeployment team/pool"}) {
		t.Errorf("first it wrote %v", writes)
	}
	if writes, _ := w.pass(); len(writes) != 2 || !strings.HasPrefix(writes[0], "delete KubevirtMachineTemplate") || !strings.HasPrefix(writes[1], "delete TalosConfigTemplate") {
		t.Errorf("then it wrote %v", writes)
	}
	w = newWorld(t, true)
	w.rest()
	w.in.Pool.SetDeletionTimestamp(&gone)
	if writes, c := w.pass(); len(writes) > 0 || c.Class != plan.Waiting {
		t.Errorf("the control plane goes with its Cluster, and it wrote %v", writes)
	}
	// A deployment that has finalizers goes slowly, and templates wait.
	w = newWorld(t, false)
	w.rest()
	w.in.Pool.SetDeletionTimestamp(&gone)
	w.in.Machines.SetDeletionTimestamp(&gone)
	if writes, _ := w.pass(); len(writes) > 0 {
		t.Errorf("the MachineDeployment is going, and it wrote %v", writes)
	}
}

func TestAPoolThatChangesItsRoleLosesTheOtherConditions(t *testing.T) {
	w := newWorld(t, true)
	w.rest()
	w.in.Machines, w.in.MachineTemplates = nil, nil
	drop(w.in.Pool.Object, "spec", "controlPlane")
	list, _ := at(w.in.Pool.Object, "status", "conditions").([]any)
	foreign := map[string]any{"type": "Theirs", "status": "True", "reason": "X", "message": "", "lastTransitionTime": "2025-01-01T00:00:00.5Z", "more": "y"}
	set(w.in.Pool, append(list, foreign), "status", "conditions")
	w.rest()
	if got, want := strings.Join(sortedKeys(w.conditions()), " "), "KubevirtMachineTemplateReconciled MachineDeploymentReconciled Ready TalosConfigTemplateReconciled Theirs"; got != want {
		t.Errorf("the conditions are %s, want %s", got, want)
	}
	list, _ = at(w.in.Pool.Object, "status", "conditions").([]any)
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == "Theirs" && (c["more"] != "y" || c["lastTransitionTime"] != "2025-01-01T00:00:00.5Z") {
			t.Errorf("another writer's condition became %v", c)
		}
	}
}
