package decide

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

// Labels of Cluster API.
const (
	labelDeployment = "cluster.x-k8s.io/deployment-name"
	labelCluster    = "cluster.x-k8s.io/cluster-name"
)

// keepDeployment plans the MachineDeployment of a worker pool. The problems come in
// the order in which people are told of them.
func (v *view) keepDeployment() {
	d := v.machines
	v.checkConfig()
	v.checkSubnets()
	v.checkEndpoint()
	if v.live == nil && (v.infrastructure == "" || v.bootstrap == "") {
		d.add(waiting(v1alpha3.ReasonWaitingForMachineTemplate, "there is no machine template or no Talos config template yet"))
	}
	v.checkVersion()
	if len(v.needs) > 0 || v.refused(PartMachines) || v.handsOff {
		return
	}
	switch {
	case v.live != nil:
		v.announce()
		v.rollDeployment(v.scale())
	case v.in.MachinesVersion == "":
		d.add(notServed(dockyards.MachineDeployments))
	case !d.bad():
		v.createDeployment()
	}
}

// deploymentSpec is the spec of a new MachineDeployment, in every version.
type deploymentSpec struct {
	ClusterName string                 `json:"clusterName"`
	Replicas    *int32                 `json:"replicas,omitempty"`
	Selector    metav1.LabelSelector   `json:"selector"`
	Template    deploymentTemplateSpec `json:"template"`
}

type deploymentTemplateSpec struct {
	Metadata deploymentTemplateMetadata `json:"metadata"`
	Spec     deploymentMachineSpec      `json:"spec"`
}

type deploymentTemplateMetadata struct {
	Labels map[string]string `json:"labels"`
}

type deploymentMachineSpec struct {
	ClusterName       string         `json:"clusterName"`
	Version           string         `json:"version,omitempty"`
	Bootstrap         map[string]any `json:"bootstrap"`
	InfrastructureRef map[string]any `json:"infrastructureRef"`
}

// configResource is the resource of config templates in the version that is served.
func (v *view) configResource() kind.Resource {
	res := dockyards.TalosConfigTemplates
	if v.in.ConfigVersion != "" {
		res.Versions = []string{v.in.ConfigVersion}
	}
	return res
}

// createDeployment plans a MachineDeployment that is complete without Cluster API's
// webhook.
func (v *view) createDeployment() {
	replicas := v.replicas()
	if v.machines.bad() {
		return
	}
	version := v.in.MachinesVersion
	labels := map[string]string{labelDeployment: v.name, labelCluster: v.clusterName}
	obj, p := objectOf(dockyards.MachineDeployments, version, &deploymentSpec{
		ClusterName: v.clusterName, Replicas: replicas,
		Selector: metav1.LabelSelector{MatchLabels: labels},
		Template: deploymentTemplateSpec{
			Metadata: deploymentTemplateMetadata{Labels: labels},
			Spec: deploymentMachineSpec{
				ClusterName: v.clusterName, Version: v.version,
				Bootstrap:         map[string]any{"configRef": reference(version, v.configResource(), v.bootstrap)},
				InfrastructureRef: reference(version, dockyards.KubevirtMachineTemplates, v.infrastructure),
			},
		},
	})
	if p != nil {
		v.machines.add(*p)
		return
	}
	dockyards.SetLabels(obj, map[string]string{labelCluster: v.clusterName})
	v.createMachines(obj)
}

// rollDeployment plans the replacement of workers, on top of what never waits. A
// reference that names the right template already stays byte for byte.
func (v *view) rollDeployment(scaled *unstructured.Unstructured) {
	if v.phase != phaseRoll || !v.settled() || len(v.changes) == 0 {
		return
	}
	obj, version := scaled.DeepCopy(), versionOf(v.live)
	if v.infrastructureOf(obj) != v.infrastructure {
		put(obj.Object, reference(version, dockyards.KubevirtMachineTemplates, v.infrastructure), deploymentRoller.infrastructure...)
	}
	if v.bootstrapOf(obj) != v.bootstrap {
		put(obj.Object, reference(version, v.configResource(), v.bootstrap), deploymentRoller.bootstrap...)
	}
	v.rolled(obj)
}
