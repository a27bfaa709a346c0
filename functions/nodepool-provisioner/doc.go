// Package nodepoolprovisioner is the function nodepool-provisioner: it turns a
// NodePool into a KubevirtMachineTemplate and, of a control plane, a
// TalosControlPlane; of workers, a TalosConfigTemplate and a MachineDeployment.
//
// # What wakes it
//
// Changes of NodePools; of their Clusters, here and in Cluster API; of the Release and
// the DataSource that machines boot from; of the shared config map; of networks, where
// machines join them; and of everything that it makes. An event is only a key
// (keys.go); what no event tells, the resync finds.
//
// # What it does
//
//  1. gather.go reads: what may be written first, what is decided from last.
//  2. Package decide thinks: what machines shall be, which templates say so already,
//     whether machines are replaced now.
//  3. The runtime writes: replicas, Kubernetes version, marks and new templates side
//     by side; then what names the templates; then, in a pass of its own, it removes
//     those that nothing names.
//  4. Package decide concludes conditions and Kubernetes Events.
//
// # What holds
//
//   - Templates are never changed: a pool that asks for something else gets a new
//     template under a name made of its content, and the reference moves.
//   - Machines are replaced only when an input changes after the object was made or
//     adopted; see package decide. Adoption changes metadata, replicas and version.
//   - Replicas and the Kubernetes version wait for nothing but a Cluster, and a config
//     map that can be read or is known to be absent.
//   - What is absent from the config map takes nothing out of live machines.
//   - A TalosControlPlane is never deleted; the Cluster API Cluster takes it along.
//   - Everything is made by create and changed by a merge patch under the
//     resourceVersion that was read, in the fields that are the function's alone: what
//     Cluster API and its webhooks add stays, and so does everything that upstream's
//     field manager owns.
//   - Values of the config map appear in no condition, Event or log.
//   - At the fixpoint nothing is written.
//
// # Rights
//
// What spec.go grants: reading what is listed above, the one config map by its name,
// and writing templates, TalosControlPlanes, MachineDeployments, the control-plane
// reference of Cluster API Clusters, and the status of NodePools. A pool gets no
// finalizer, so that nothing is left behind on the way back to upstream; its children
// have it as owner. A garbage collector that sees Cluster API's Cluster as another owner
// deletes none of them; the event of the pool's end does: first what keeps its machines,
// and the templates with the event of that one's end. The resync removes what a missed
// event has left.
package nodepoolprovisioner
