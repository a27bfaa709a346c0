// Package clusteranchor is the function cluster-anchor: it gives a Dockyards
// Cluster its place on the platform. That is the host of its API endpoint, the
// route that leads there, the Workload of its ingress, and the KubevirtCluster
// behind its Cluster API Cluster.
//
// # What wakes it
//
// Changes of Clusters, of Cluster API Clusters, of what is made for them
// (Workload, TLSRoute, KubevirtCluster), and of the two things that all of them
// depend on: the shared Gateway and the shared config map, each of which wakes
// every Cluster. A Cluster also wakes those that would get the same host. An
// event is only a key (keys.go); what no event tells, the resync finds.
//
// # What it does
//
//  1. gather.go reads: what may be written first, what is decided from last.
//  2. Package decide thinks.
//  3. The runtime writes: KubevirtCluster, route and Workload side by side, then
//     the reference to a KubevirtCluster that was made just now, then what has to
//     go.
//  4. Package decide concludes the endpoint, two conditions and Kubernetes
//     Events.
//
// # What holds
//
//   - Of a Cluster's status it writes apiEndpoint and the conditions
//     APIEndpointReconciled and IngressWorkloadReconciled. Those of others, the
//     summary Ready among them, stay as they are.
//   - A host that is in force never changes unnoticed: control planes roll when it
//     does. It moves with the config map's externalURL only, with a Kubernetes
//     Event, and not while the Cluster carries slipway.dev/hold-rollouts.
//   - Two Clusters never get the same host: the older one has it.
//   - A config map that is gone, empty or unusable takes nothing away.
//   - What lies under a wanted name and belongs to somebody else is not touched.
//   - A Cluster or Cluster API Cluster that is being deleted is no reason to make or
//     change anything. What was made goes with its owner.
//   - Objects that exist are patched from what was read, under its
//     resourceVersion, in the fields that are owned here; with equal meaning
//     nothing is written. So what dockyards-kubevirt has made is taken over as it
//     is, whoever owns its fields.
//
// # Marks
//
// On the TLSRoute, slipway.dev/rollout-inputs holds the hostname of externalURL
// that its host was made from. On the Workload, slipway.dev/managed-by is
// cluster-anchor: it may be removed again when the Cluster wants no ingress.
package clusteranchor
