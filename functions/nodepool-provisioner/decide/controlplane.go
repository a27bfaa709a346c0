package decide

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// versions are those that the control-plane provider accepts.
var versions = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-0-9a-zA-Z_.+]*)?$`)

// checkVersion reads the Cluster's Kubernetes version.
func (v *view) checkVersion() {
	version := v.cluster.Spec.Version
	if version == "" {
		v.machines.add(waiting(v1alpha3.ReasonWaitingForVersion, "the Cluster's spec.version is empty"))
		return
	}
	if !strings.HasPrefix(version, "v") {
		version = "v" + version
	}
	if !versions.MatchString(version) {
		v.machines.add(invalid("the Cluster's spec.version is no version like v1.34.1"))
		return
	}
	v.version = version
}

// checkEndpoint waits for the Cluster's endpoint.
func (v *view) checkEndpoint() {
	if !v.cluster.Status.APIEndpoint.Valid() {
		v.machines.add(waiting(v1alpha3.ReasonWaitingForClusterEndpoint, "the Cluster has no API endpoint yet"))
	}
}

// checkConfig says why Talos cannot be told anything.
func (v *view) checkConfig() {
	if !v.in.Config.Found && !v.refused(PartConfig) {
		v.config.add(waiting(v1alpha3.ReasonWaitingForConfigMap, "config map %q does not exist",
			v.in.Settings.ConfigMapNamespace+"/"+v.in.Settings.ConfigMapName))
	}
}

func (v *view) checkSubnets() {
	if field := v.badSubnet(); field != "" {
		v.config.add(invalid("the Cluster's %s is no subnet: write one like 10.244.0.0/16", field))
	}
}

// keepControlPlane plans the TalosControlPlane of a control-plane pool. The problems
// come in the order in which people are told of them.
func (v *view) keepControlPlane() {
	d := v.machines
	v.checkEndpoint()
	if v.live == nil && v.infrastructure == "" {
		d.add(waiting(v1alpha3.ReasonWaitingForMachineTemplate, "there is no machine template yet"))
	}
	v.checkConfig()
	v.checkVersion()
	v.checkSubnets()
	v.checkRival()
	if len(v.needs) > 0 || v.refused(PartMachines) || v.handsOff {
		return
	}
	switch {
	case v.live != nil:
		v.announce()
		v.rollControlPlane(v.scale())
	case !d.bad():
		v.createControlPlane()
	}
	if v.live == nil && len(v.rolling) == 0 {
		return
	}
	v.refer()
}

// checkRival leaves a Cluster alone that has another control plane, or gets it from
// an older pool.
func (v *view) checkRival() {
	if v.in.CAPICluster != nil {
		if ref, _ := at(v.in.CAPICluster.Object, "spec", "controlPlaneRef").(map[string]any); text(ref, "name") != "" {
			if named(ref, dockyards.TalosControlPlanes) != v.name {
				v.rival(text(ref, "kind"), text(ref, "name"))
			}
			return
		}
	}
	if (v.live != nil && v.in.CAPICluster == nil) || (v.live == nil && v.machines.bad()) {
		return // nothing is written that another pool could object to
	}
	answer, ok := v.ask(v.machines, plan.Need{Resource: dockyards.NodePools, Namespace: v.namespace()})
	if !ok {
		return
	}
	for i := range answer.Items {
		other := &answer.Items[i]
		is, _ := at(other.Object, "spec", "controlPlane").(bool)
		if is && other.GetName() != v.name && !dockyards.Going(other) && dockyards.ClusterOf(other) == v.clusterName &&
			dockyards.Older(other, v.in.Pool) < 0 {
			v.rival(dockyards.TalosControlPlanes.Kind, other.GetName())
			return
		}
	}
}

func (v *view) rival(kindName, name string) {
	p := waiting(v1alpha3.ReasonControlPlaneConflict, "another control plane has the Cluster: %s %q", kindName, name)
	p.terminal = true
	v.machines.add(p)
	v.handsOff = true
}

// refer names the control plane in the Cluster API Cluster, unless one is named.
func (v *view) refer() {
	cluster := v.in.CAPICluster
	if cluster == nil {
		if !v.refused(PartReference) {
			v.machines.add(waiting(v1alpha3.ReasonWaitingForCluster, "Cluster API Cluster %q does not exist", v.clusterName))
		}
		return
	}
	if text(cluster.Object, "spec", "controlPlaneRef", "name") != "" {
		return
	}
	referring := cluster.DeepCopy()
	put(referring.Object, reference(versionOf(cluster), dockyards.TalosControlPlanes, v.name), "spec", "controlPlaneRef")
	v.patch(&v.references, dockyards.CAPIClusters, cluster, referring, "the Cluster has no control plane yet")
}

// controlPlaneSpec is the spec of a new TalosControlPlane.
type controlPlaneSpec struct {
	Version                string                 `json:"version"`
	Replicas               *int32                 `json:"replicas,omitempty"`
	InfrastructureTemplate map[string]any         `json:"infrastructureTemplate"`
	ControlPlaneConfig     map[string]*configSpec `json:"controlPlaneConfig"`
}

func (v *view) infrastructureTemplate() map[string]any {
	ref := reference(capiOld, dockyards.KubevirtMachineTemplates, v.infrastructure)
	ref["namespace"] = v.namespace()
	return ref
}

func (v *view) createControlPlane() {
	replicas := v.replicas()
	if v.machines.bad() {
		return
	}
	config := v.talos.template(nil).Template.Spec
	obj, p := objectOf(dockyards.TalosControlPlanes, "", &controlPlaneSpec{
		Version: v.version, Replicas: replicas, InfrastructureTemplate: v.infrastructureTemplate(),
		ControlPlaneConfig: map[string]*configSpec{"controlplane": &config},
	})
	if p != nil {
		v.machines.add(*p)
		return
	}
	v.createMachines(obj)
}

// createMachines plans what keeps the pool's machines.
func (v *view) createMachines(obj *unstructured.Unstructured) {
	obj.SetName(v.name)
	obj.SetNamespace(v.namespace())
	dockyards.SetAnnotation(obj, v1alpha3.AnnotationRolloutInputs, v.today)
	v.create(&v.rolling, v.roller().res, v.marked(obj), "nothing keeps the pool's machines yet")
}

// rollControlPlane plans the replacement of the machines of a control plane, on top
// of what never waits.
func (v *view) rollControlPlane(scaled *unstructured.Unstructured) {
	if v.phase != phaseRoll || !v.settled() || len(v.changes) == 0 {
		return
	}
	obj := scaled.DeepCopy()
	if v.infrastructureOf(obj) != v.infrastructure {
		put(obj.Object, v.infrastructureTemplate(), "spec", "infrastructureTemplate")
	}
	config := []string{"spec", "controlPlaneConfig", "controlplane"}
	put(obj.Object, v.talos.generateType, append(config, "generateType")...)
	put(obj.Object, v.talos.version, append(config, "talosVersion")...)
	put(obj.Object, anyList(carried(v.talos.documents, v.storedPatches())), append(config, "strategicPatches")...)
	if !blankInit(obj) {
		drop(obj.Object, "spec", "controlPlaneConfig", "init")
	}
	v.rolled(obj)
}

// rolled plans a rollout.
func (v *view) rolled(obj *unstructured.Unstructured) {
	dockyards.SetAnnotation(obj, v1alpha3.AnnotationRolloutInputs, v.today)
	v.told(obj, strings.TrimPrefix(v.today, scheme)[:contentDigits], v.changes)
	v.patch(&v.rolling, v.roller().res, v.live, obj, "replaces machines: "+strings.Join(v.changes, ", "))
}
