// Package controller plays what stands between a template and a machine that runs:
// Cluster API, its KubeVirt provider and its Talos providers, as far as others can see
// it in objects.
//
//	Cluster             adopts its KubevirtCluster and control plane; says when both are there
//	KubevirtCluster     is ready, and has the Service of the API server
//	TalosControlPlane   has so many Machines
//	MachineDeployment   has a MachineSet for each state of its template, that so many Machines
//	Machine             has a KubevirtMachine cloned from its template, a TalosConfig, and the
//	                    Node of dockyards.io that dockyards-cluster-api makes of it
//
// Machines roll as they do for real: when a field that the real providers look at
// changes (the control plane's configuration, template and version; the machine
// template of a deployment), new Machines are made and the old ones go. Replicas,
// labels and owner references roll nothing. So a test can tell from the names of
// Machines whether something rolled.
//
// No virtual machine boots here: a Machine is up as soon as its objects are there.
package controller
