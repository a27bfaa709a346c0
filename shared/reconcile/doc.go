// Package reconcile is the engine that every function runs in.
//
// One event goes through these steps:
//
//  1. The event becomes keys of the reconciled kind (Spec.Watches, Watch.Keys);
//     its data is never looked at. A resync event becomes one page of keys.
//  2. Per key, calls that arrive while one is running share the next one.
//  3. gather: the reconciled object is read, then Function.Gather reads the
//     rest; at the end the reconciled object is read once more, and a changed
//     resourceVersion repeats the step.
//  4. decide: Function.Decide, pure; its Needs are read and it is asked again.
//  5. apply: package apply writes what differs.
//  6. conclude: Function.Conclude, pure, turns the outcomes into status and
//     Kubernetes Events; the status is written if it differs.
//     The conclusion's observations go to the function's own metrics.
//  7. The class of the conclusion becomes the HTTP answer, in one table
//     (answer.go).
//
// Where it is wanted, all of this is kept as a recording (package record), after the
// answer. Host.Replay runs the very same steps on a recording: the reader and the writer
// take their answers from it, everything else is what runs in a cluster.
//
// A write that meets a newer object, and a status that does, lead back to step
// 3. What outlives a call decides nothing: transports, which versions a cluster
// serves and what its UID is, and verdicts of dry-runs by resourceVersion.
package reconcile
