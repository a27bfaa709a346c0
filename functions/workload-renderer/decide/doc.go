// Package decide holds all of workload-renderer's thinking, without a client, a
// clock or randomness.
//
// A decision goes through these steps, each in a file of its own:
//
//  1. inventory.go: what was applied for the Workload before; settled.go: whether that
//     is all there is.
//  2. template.go: which template, which Cluster, and whether to render at all. The
//     render itself is a Need; one that was stopped is noted and not tried again.
//  3. own.go: whose the objects are that lie under the names of the outputs.
//  4. apply.go: what is written, in which order; prune.go: what goes because the
//     template stopped giving it; deletion.go: what goes with the Workload.
//  5. children.go and conclude.go turn what Flux says, and what the API servers
//     answered, into conditions.
//
// As long as anything stands in the way of rendering, no object is touched: a broken
// template leaves the last good state in place.
package decide
