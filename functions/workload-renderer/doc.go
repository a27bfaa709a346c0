// Package workloadrenderer is the function workload-renderer: it renders the
// WorkloadTemplate that a Workload names, and keeps what comes out in step with it.
//
// # What wakes it
//
// Changes of Workloads, of the templates and Clusters that they name, and of
// everything that was applied for them. An event is only a key (keys.go); what no
// event tells, the resync finds.
//
// # What it does
//
//  1. gather.go reads: what may be written first, what is decided from last.
//  2. Package decide thinks. The render is one of its needs: the runtime gives it to
//     the pool of child processes of package shared/render/worker, in which a
//     template can use up neither the time nor the memory of this process.
//  3. The runtime writes: finalizer and inventory on the Workload, then the objects
//     one after the other, then what has to go.
//  4. Package decide concludes the conditions WorkloadTemplateReconciled,
//     Reconciling and Ready.
//
// A Workload that is deleted is held by its finalizer until its Kustomizations and
// HelmReleases are gone: Flux cleans up while their sources are still there.
//
// # What holds
//
//   - A template may give the kinds, names and namespaces that package shared/render
//     allows. All outputs are looked at before the first is written.
//   - An object that another Workload, another controller or a person owns is never
//     touched.
//   - What a template leaves open is left to others: flux suspend, annotations,
//     defaults. What it stops setting goes.
//   - While anything stands in the way of rendering, nothing is changed or pruned.
//   - Pruned is only what the inventory on the Workload names, and what still is the
//     Workload's, under its UID.
//   - Equal input gives equal bytes; at the fixpoint nothing is written.
//   - Secrets in a Workload's input, and in the files of a Worktree, are in clear
//     text, here and in the repositories behind Worktrees. Templates should refer to
//     Secrets instead (valuesFrom, secretRef).
package workloadrenderer
