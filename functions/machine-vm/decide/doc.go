// Package decide holds all of machine-vm's thinking, without a client, a clock
// or randomness.
//
// A decision goes through these steps, each in a file of its own:
//
//  1. placement.go, place.go: which cluster.
//  2. own.go, choose.go: whose an object is, and which virtual machine is the
//     Machine's.
//  3. firmware.go, size.go, network.go, disk.go, claim.go, cloudinit.go: what
//     the spec asks for, part by part. Each part collects its own problems, and
//     the order of the parts decides which one the Machine's condition Ready
//     speaks of.
//  4. vm.go builds a new virtual machine; update.go changes a live one, entry
//     by entry, so that what others wrote survives.
//  5. plan.go puts the writes in order; deletion.go does the same for a Machine
//     that goes.
//  6. status.go and its neighbours turn the answers of the API servers into
//     status.
//
// Marks that it writes, besides those of the package api/vitistack:
//
//   - slipway.dev/written, on a virtual machine: which statements of the
//     Machine it carries, so that a statement which is removed later can be told
//     from one that never was there. Defaults are written once and never
//     touched again; statements are enforced.
//   - slipway.dev/content, on the Secret for cloud-init: a hash of what is no
//     secret in it, since what is read back is sealed.
package decide
