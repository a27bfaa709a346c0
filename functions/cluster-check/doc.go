// Package clustercheck is the function cluster-check: it looks at the clusters
// that Machines can run on, and says in the status of each KubevirtConfig
// whether they can. It changes nothing else, anywhere.
//
// # What wakes it
//
// Changes of KubevirtConfigs and of the Secrets with their kubeconfigs (those
// that carry the label slipway.dev/watch), the events by which sources/adapter
// tells that a cluster came or went, and the resync, which finds what sends no
// event: KubeVirt's own state. A resync event by hand is a check of all clusters,
// an event dev.slipway.cluster.connected a check of one. An event is only a key
// (keys.go).
//
// # What it does
//
//  1. gather.go reads the Secret, the management cluster's definitions of
//     Machines, NetworkConfigurations and KubevirtConfigs, and side by side from
//     the cluster, and from the one that it is compared with: one namespace, the
//     KubeVirt objects of all namespaces, the definitions of VirtualMachines and
//     their instances. Each request has a timeout of its own.
//  2. Package decide judges, and tells how the yardstick is found.
//  3. The runtime writes the status, if it differs.
//
// # Conditions
//
//   - Connected: the API server answers to the kubeconfig and lets namespaces be
//     listed. False: SecretNotFound, KubeconfigInvalid (also for one that would run
//     programs or read files), Unreachable, Unauthorized.
//   - KubeVirtReady: a KubeVirt object has the condition Available. False:
//     KubeVirtMissing, KubeVirtNotAvailable. Unknown while the cluster cannot be
//     seen (Waiting) or asked for it (Unauthorized).
//   - VersionsMatch, a warning only: the cluster stores VirtualMachines and their
//     instances in the same versions as the first cluster by name whose versions
//     can be read. False: VersionsDiffer, SchemaIncomplete (the management
//     cluster's definitions lack a property). Unknown while versions cannot be
//     read, with the reason of that; Waiting if it is those of the other cluster.
//
// The phase is Ready while the first two are True, else Failed; status.status is
// Connected or Disconnected after the first; status.message tells the first thing
// that is wrong.
//
// # What holds
//
//   - A cluster that does not answer, and one whose KubeVirt is missing, is waited
//     for; a kubeconfig that cannot be used, or lacks a right, is for a person to
//     change. Neither is tried again before an event or the resync.
//   - A cluster costs its own KubevirtConfig only. One that is compared with others
//     and stops answering leaves their verdicts as they are until the next one by
//     name takes its place.
//   - The same state gives the same status, to the byte: at the fixpoint nothing is
//     written. Conditions and fields of other writers stay.
//   - Where an older definition has KubevirtConfigs in namespaces, those of one
//     namespace (KUBEVIRT_CONFIGS_NAMESPACE) count; the others get no status.
//
// survey.go does the same checks on demand, for `kubectl slipway check`.
package clustercheck
