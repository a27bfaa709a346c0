// Package decide holds all of nodepool-provisioner's thinking, without a client, a
// clock or randomness.
//
// A decision goes through these steps, each in a file of its own:
//
//  1. decide.go: is there a Cluster, may anything be written, is the pool going.
//  2. own.go: whose an object is, and the marks that say so.
//  3. machine.go, network.go: what the pool's machines shall be, or why that cannot
//     be said. talos.go, keep.go: the Talos documents that they boot with.
//  4. inputs.go: everything whose change replaces machines, as one hash.
//  5. shelf.go: which template says it already, and the name of a new one.
//     machinetemplate.go and configtemplate.go are the two kinds of templates.
//  6. rollout.go: whether machines are replaced now, are left as they were found,
//     or are held. controlplane.go and deployment.go write it.
//  7. prune.go: templates that nothing names any more; deletion.go: a pool that
//     goes.
//  8. conclude.go, conditions.go: status and Events.
//
// # What replaces machines
//
// A provider replaces machines when a field that rolls differs from what they were
// made from: one byte in one Talos patch is enough. So these fields are written
// only when the object is made, when the Kubernetes version changes, and when the
// hash of the inputs is another than the one recorded beside the fields. An object
// without a record is adopted: its fields stay as they were found, today's hash is
// recorded, and what differs is said in the condition's message. It follows with
// the next change of any input.
//
// # Marks
//
//   - slipway.dev/rollout-inputs, on a TalosControlPlane or MachineDeployment: the
//     hash of the inputs that its rolling fields were made from.
//   - slipway.dev/last-rollout, on the same: when machines were last told to be
//     replaced, and which inputs had changed. It is written together with the
//     fields, so that the announcement survives whatever comes between.
//   - dockyards.io/cluster-name, dockyards.io/node-pool-name and an ownerReference to
//     the pool are on everything that is made for it.
package decide
