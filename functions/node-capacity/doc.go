// Package nodecapacity is the function node-capacity: it says on a Dockyards Node
// what its machine has been given.
//
// # What wakes it
//
// Changes of Nodes, of KubevirtMachines (the Node of that name, and those whose
// provider ID names it) and of the machines' VirtualMachineInstances, by the same
// name; the resync.
//
// # What it does
//
// A Node whose spec.providerID is kubevirt://<name> gets in status.resources what
// the template of the KubevirtMachine <name>, in the Node's own namespace, says:
// cpu (cores × sockets × threads), memory (that of the guest) and storage (the sum
// of the disks). What the template does not say is left out.
//
// # What holds
//
//   - Without a KubevirtMachine nothing is written; its event wakes the Node.
//   - Other keys of status.resources, the conditions and systemInfo belong to
//     others and stay as they are.
//   - Equal quantities are not written again, whatever their spelling.
//   - A provider ID that is no object's name reads nothing: a tenant cannot reach
//     other paths of the API through it.
//   - Nodes that are being deleted are left alone.
//
// Its rights are to read Nodes and KubevirtMachines, and to change the status of
// Nodes.
package nodecapacity
