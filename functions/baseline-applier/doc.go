// Package baselineapplier is the function baseline-applier: it keeps the platform
// below KubeVirt in a recommended state. It renders a catalog of objects, the
// HyperConverged first, merges what users say in annotations on the objects, and
// applies what differs. It has no API of its own: annotations are the control, and
// Events, metrics and one ConfigMap with record and report are the feedback.
//
// # What wakes it
//
// Changes of the HyperConverged kubevirt-hyperconverged in one namespace (the whole
// baseline, unless only its status changed), of the objects of the catalog (one
// asset), of the definitions of their kinds (the assets that need them), of Nodes
// (the assets that depend on hardware, if the node can change what is known of it),
// and the resync. An event is only a key; its part (reconcile.Key) is the asset, so
// that one changed object makes nothing else be rendered or tried (keys.go). A write of
// the function's own comes back as an event too: it costs one read in the process that
// wrote (left.go), two in another.
//
// # What it does
//
//  1. gather.go reads the record and, for a whole pass, the Nodes.
//  2. Package decide looks at the assets in question; package catalog has them.
//     It asks for live objects, definitions, namespaces and dry-runs as needed.
//  3. The runtime writes the record, then the objects, and it is looked at again.
//
// # What it writes
//
//   - objects of the catalog, by server-side apply as virt-platform-autopilot, with
//     the label platform.kubevirt.io/managed-by=virt-platform-autopilot;
//   - the annotation platform.kubevirt.io/reconcile-paused, on an object that somebody
//     else keeps changing back, as virt-platform-autopilot-pause;
//   - the annotation platform.kubevirt.io/problem, on an object whose annotations
//     cannot be used;
//   - ConfigMap baseline-applier in its own namespace.
//
// # What holds
//
//   - The HyperConverged is never made. Another one than the configured is left alone.
//   - No patch changes what object is applied, or reaches a sensitive kind.
//   - Fields that are ignored are not owned: anybody can set them without a conflict.
//   - An object is written 5 times within a minute at most, whatever wakes the
//     function and however many copies of it run: the record is written first, under
//     its version.
//   - Throttled, paused, opted out, skipped or rejected is an answer of success.
//   - What the API itself changes at every write (a webhook, say) is told, not fought.
//   - What is not wanted any more loses label and ownership; only what the function
//     itself made, of kinds where the catalog says so, is deleted.
//   - What cannot be seen now (nodes, definitions, rules) changes nothing.
package baselineapplier
