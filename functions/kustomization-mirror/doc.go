// Package kustomizationmirror is the function kustomization-mirror: it keeps a WorkloadInventory of
// each Kustomization that belongs to a Workload, and lets one go whose cluster is gone.
// What it thinks is in package shared/inventory, how it is wired in the package mirror
// below that.
//
// It is woken by Kustomizations, by the inventories that it keeps, and by Clusters: when
// one goes, the Kustomizations on their way out that are for it are looked at once
// more. That the Secret with a kubeconfig goes, the Cluster's event or the resync
// tells: Secrets are not watched.
package kustomizationmirror
