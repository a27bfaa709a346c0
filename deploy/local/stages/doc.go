// Package stages holds what kwok plays in a local stack: the life of objects that
// belong to nobody here, told as kwok's Stage resources.
//
//	claim.yaml       PersistentVolumeClaims are bound, and follow a larger request
//	datavolume.yaml  DataVolumes import, with a claim of their own
//	datasource.yaml  DataSources are ready
//	gateway.yaml     Gateways have an address
//	instance.yaml    VirtualMachineInstances, from the node on: they boot, and shut down
//	kubevirt.yaml    the KubeVirt object becomes available
//	objects.yaml     no stages: the storage classes and the KubeVirt object themselves
//
// The part of virt-controller (an instance for each machine that is on, claims that
// must be there first, the status of machines) needs more than one object at a time,
// which a stage cannot look at: test/virt plays it.
//
// A stage never writes the status of a kind of vitistack.io or dockyards.io, and
// nothing here asks kwok to manage nodes or pods. Delays are fixed and short, without
// jitter; a pace makes all of them longer for a demonstration.
//
// Each patch carries the resourceVersion of the object that it was made from, so a
// stage that comes late is refused, and the change that overtook it starts the stage
// that fits.
package stages
