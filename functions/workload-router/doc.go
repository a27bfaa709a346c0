// Package workloadrouter is the function workload-router: it makes the load
// balancers that a Workload has in its workload cluster reachable through the shared
// Gateway of the management cluster.
//
// # What wakes it
//
// Changes of Workloads, of Clusters (their DNS zones) and Cluster API Clusters (their
// control plane), of the shared Gateway and the shared config map, of Secrets with
// kubeconfigs, of what it makes (Services, HTTPRoutes, TLSRoutes), and of labelled
// Services in workload clusters. An event is only a key (keys.go); what no event
// tells, the resync finds.
//
// A workload cluster is called "namespace/name" after its Cluster API Cluster, in
// the extension "cluster" of events and among the function's connections
// (dockyards.RemoteName): no name of an object holds a slash, so it is never taken
// for a KubevirtConfig. An event of a Service there is for the Workload that the
// Service's label names now, in the namespace of that cluster, which the event's
// sender vouches for and no tenant can choose. A Service that is gone has no label
// any more: then every Workload of the cluster is meant that has a mirror which may
// be the Service's, or whose condition has something to tell. A mirror that is made
// while its Service goes is itself an event, so none of the two is ever the last to
// be looked at.
//
// # What it does
//
//  1. gather.go reads: what may be written first, what is decided from last; the
//     workload cluster's Services only if everything else is there, page by page and
//     not beyond a bound.
//  2. Package decide thinks.
//  3. The runtime writes side by side, hostnames that are given up first: routes,
//     mirrors, and the status of the workload cluster's Services. Then it deletes what
//     nobody wants any more.
//  4. Package decide concludes the condition WorkloadIngressReconciled, and a
//     Kubernetes Event when it becomes a bad one.
//
// # What holds
//
//   - Of the Workload's status it writes that one condition. Those of others, the
//     summary Ready among them, stay as they are.
//   - A hostname is given to one Cluster: the oldest that has its zone. A Workload
//     whose workload cluster cannot be asked still gives up what is another's; nothing
//     else changes then.
//   - Without a hostname there is no route: one would catch what is others'.
//   - A workload cluster is its tenant's, its API server too. Nothing of it is passed
//     on but ports and the form of a name, whose number is bounded; an answer that is
//     too large is not read; a kubeconfig runs no program and reads no file; a cluster
//     that does not answer costs one request of one call, and is waited for.
//   - What lies under a wanted name and belongs to somebody else is not touched.
//   - Nothing is deleted after an incomplete list.
//   - Objects that exist are patched from what was read, under its resourceVersion;
//     with equal meaning nothing is written. So what dockyards-kubevirt has made is
//     taken over as it is, whoever owns its fields.
//   - A Workload or Cluster that is being deleted is no reason to make or change
//     anything. What was made goes with its Workload.
//
// It writes no labels and no annotations.
package workloadrouter
