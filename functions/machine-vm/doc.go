// Package machinevm is the function machine-vm: it turns a Machine into a
// KubeVirt VirtualMachine and brings the virtual machine's state back into the
// Machine's status.
//
// # What wakes it
//
// Changes of Machines, of the objects that it makes (virtual machines, their
// instances, claims, DataVolumes), and of what Machines name (MachineClasses,
// KubevirtConfigs, NetworkConfigurations, NetworkNamespaces, and those Secrets
// and ConfigMaps that carry the label slipway.dev/watch). An event is only a key
// (keys.go); what no event tells, the resync finds.
//
// # What it does
//
//  1. gather.go reads: what may be written first, what is decided from last.
//  2. Package decide thinks: which cluster, which virtual machine, what the spec
//     comes to, what has to be written, what is wrong.
//  3. The runtime writes, in this order: the finalizer and the cluster's
//     name on the Machine, the namespace on another cluster, the record of the
//     interfaces, network definitions, claims, the Secret for cloud-init, the
//     virtual machine, the growth of claims, the removal of a boot image.
//  4. Package decide concludes status, conditions and a Kubernetes Event.
//
// A Machine that is deleted is taken down in the reverse order, and held by its
// finalizer until the virtual machine and its instance are gone.
//
// # What holds
//
//   - Nothing is created while anything about the Machine is wrong or awaited,
//     except that the record is kept while only an address is awaited.
//   - An existing virtual machine is never touched because of a wrong spec, never
//     restarted, and never loses what others added to it.
//   - Only objects marked for the Machine (annotation vitistack.io/machine-uid,
//     owner reference, or label with a managed-by label) are changed or deleted.
//     Claims, Secrets and virtual machines are made by create, so a race cannot
//     share them.
//   - What the Machine states is enforced; what it leaves open is written once, at
//     creation.
//   - At the fixpoint nothing is written.
//
// # Marks
//
// The labels vitistack.io/managed-by, vitistack.io/machine and
// vitistack.io/source-machine, and the annotations vitistack.io/machine-uid and
// vitistack.io/machine-name are on every object that is made for a Machine;
// vitistack.io/adopted is on a virtual machine that others made. What was made
// also carries slipway.dev/installation, by which orphans of this installation
// are told from those of another. The rest is in package decide.
//
// # Many clusters
//
// A KubevirtConfig names a Secret with the kubeconfig of a cluster that Machines
// can run on. Both are read in every reconcile, so a rotated kubeconfig counts
// from the next one on; with the label slipway.dev/watch on the Secret, that is
// at once. The function itself never sees a kubeconfig: it learns the server's
// address, or why the kubeconfig was refused (it may not run programs or read
// files).
//
// While there is no KubevirtConfig, and the management cluster has KubeVirt, Machines run
// there: the definition of KubevirtConfigs alone, which comes with every installation, says
// nothing. SINGLE_CLUSTER says so for all, or forbids it.
//
// Every cluster is reached through one door, the Reader of shared/read: it lists the
// KubevirtConfigs, connects by one of them, reads, and says whether a cluster answers; the
// runtime's applier writes through the same connections. A test puts a recording, or
// servers of its own, behind it.
//
// clusters.go looks at the clusters that the Machine's placement depends on, all
// at once; decide/placement.go and decide/place.go choose. The choice is noted on
// the Machine before anything is made on the cluster, and a placed Machine never
// moves. A cluster that does not answer makes its own Machines wait, and costs
// one call the timeout of one request; one that answers so slowly that nothing
// could be done in the time of an event counts as one that does not.
//
// # Metrics
//
// metrics.go declares those of the operator that the function replaces, under its
// names and labels. The gauges are counted in the cluster at the end of each resync,
// since a function at zero has no memory; the others are what conclusions observe
// (decide/observe.go).
package machinevm
