// Package controller plays KubeVirt's virt-controller on an API server that has
// KubeVirt's definitions and nothing else of it.
//
// It follows the virt-controller of KubeVirt 1.9.0 in what others can see of it:
//
//   - Defaults. Right after a VirtualMachine was created it gets what KubeVirt's
//     webhooks and controller add behind the back of whoever made it: firmware uuid
//     and serial, machine type, architecture, annotations, the finalizer
//     kubevirt.io/virtualMachineControllerFinalize. KubeVirt does the first of these
//     within the request, this package in an update of its own.
//   - Power. A machine that is on (run strategies Always, RerunOnFailure, Once,
//     Manual with a start request, or running) has a VirtualMachineInstance of its
//     name, with the template's metadata and spec, an owner reference, and a
//     ControllerRevision of the spec it started from. One that is off or going has none.
//   - Instances. Pending until data volumes are there and claims exist, Scheduling
//     until the node has room and the claims are bound. From there on a node's part is
//     played by the stages of deploy/local/stages, up to Running, and from a deletion
//     to Succeeded. Finalizers keep an instance until it is final.
//   - Claims of a class that waits for its first consumer get the scheduler's
//     annotation volume.kubernetes.io/selected-node. A claim that is being deleted stays
//     until no instance uses it any more (kubernetes.io/pvc-protection), which is what
//     kube-controller-manager does elsewhere.
//   - Data volume templates become DataVolumes.
//   - Status. created, ready, printableStatus and conditions of a machine mirror its
//     instance. RestartRequired is set while the spec differs from the one the instance
//     started from, but for what KubeVirt changes live: more memory for an instance that
//     could migrate, more sockets.
//
// Not played: migration, hotplug of volumes, instance types, snapshots, the backoff of
// machines that crash while they start.
//
// Every pass reads the objects of one name live, so it can be stopped and started at
// any time; informers only wake it. All writes carry the resourceVersion that they were
// decided from.
package controller
