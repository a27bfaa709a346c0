// Package inventory is the thinking of the two functions that mirror what Flux
// applies: kustomization-mirror and helmrelease-mirror. It is pure.
//
// Of each Kustomization and HelmRelease that belongs to a Workload it keeps a
// WorkloadInventory: by which labels its objects are found in the workload cluster,
// and how it is. Another component looks there and writes spec.urls, which is never
// touched here.
//
// It also lets a Kustomization or a HelmRelease go whose workload cluster is gone
// for good: Flux' finalizer would wait for ever for a cluster that nobody can reach.
// That needs more than a missing kubeconfig, since one that is being replaced is
// missing too.
package inventory
