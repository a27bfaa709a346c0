// Package admit decides about Workloads and WorkloadTemplates at the door of the API
// server: what cannot render does not come in, with a message that the author of a
// template or a Workload can act on.
//
// It makes the same checks as workload-renderer, through the same code, in the same
// child processes. An update that leaves the spec as it is, or that is about an object
// on its way out, passes without any check: old objects stay editable, and a finalizer
// can always be removed.
package admit
