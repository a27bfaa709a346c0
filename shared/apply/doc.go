// Package apply is the only writer, but for Kubernetes Events. It takes a plan and brings the world to it,
// writing only what differs: at the fixpoint it writes nothing.
//
// How each verb writes:
//
//   - create: POST. An object of that name in the meantime is a conflict.
//   - apply: server-side apply under the function's field manager, forced, with
//     the resourceVersion that was read; an object that was absent is created,
//     and what that made the function own is folded into apply by the first
//     later change. It is left out when every leaf of the
//     intent equals the live object and the function owns exactly those
//     leaves; when that cannot be told without the schema, a server-side
//     dry-run decides, and its answer is remembered for the life of the process.
//   - patch: a merge patch from the gathered object to the intended one, with
//     the resourceVersion that was read. For lists that a foreign CRD declares
//     atomic: the decision has merged them by entry name.
//   - delete: under UID and resourceVersion.
//
// So no copy of a function that works on a stale read can undo another: it
// meets a conflict, and the engine gathers and decides again.
//
// A stage is left out when an entry of a stage before failed; in particular
// nothing is pruned after a failed apply. Deletions per run are capped.
package apply
