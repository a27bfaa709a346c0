// Package adapter turns changes of Kubernetes objects into CloudEvents where an
// ApiServerSource cannot: on remote clusters, for kinds whose plural it guesses
// wrong, for kinds whose group is optional or whose version differs between
// installations, for objects of one namespace, one name or one kind of owner, and for
// changes of some fields alone.
//
// It writes no watch of its own. For every cluster and API group it runs the
// receive adapter of Knative, the very code behind an ApiServerSource, inside
// this process, so the events are the same to the byte. What it adds is when to
// run it:
//
//  1. It asks each cluster's discovery which of the configured resources are
//     served, and in which of their versions; the first one that is served wins.
//  2. It starts one receive adapter per API group, mode, namespace, name, owner and
//     fields. A group that is missing cannot keep another one from being watched.
//  3. It watches CustomResourceDefinitions. When one of a configured resource
//     comes or goes, the discovery of that group is read again until it has
//     settled, and its adapter is started, replaced or stopped. A replaced
//     adapter overlaps its successor, since a doubled event does no harm and a
//     lost one waits for the next resync.
//  4. Groups that no CustomResourceDefinition tells of (aggregated API servers)
//     are found by a discovery once a minute.
//
// Remote clusters are found on the management cluster. A provider knows which kind
// of object stands for a cluster and where its kubeconfig lies:
//
//   - KubevirtConfig: the Secret that it names; the cluster is called like it.
//   - capi: Clusters of Cluster API whose control plane is initialized, and their
//     Secrets <cluster>-kubeconfig; the cluster is called "namespace/name".
//
// Such a kind is followed like any other: while it is not served, nothing happens. Its
// objects are watched, their Secrets read by name, and the names of those watched that
// carry a label (slipway.dev/watch; cluster.x-k8s.io/cluster-name); of the others a
// change is noticed within a minute. So clusters are added, replaced and removed while
// the process runs. A kubeconfig that would run a program or read a file, or cannot be
// read at all, is refused, and its cluster left alone.
//
// Clusters of Cluster API are foreign ones: whoever has one may run any API server
// there. What such a cluster answers is bounded in size, and its events in number
// (distrust.go). No remote cluster can pass off its objects as others (narrow.go).
//
// Every remote cluster has a keeper, connections and timeouts of its own: one that
// is dead, slow, or does not let us in holds up no other. Its events carry the
// extension "cluster" with its name. dev.slipway.cluster.connected is sent when it is
// watched, after it was not or after a watch had to start over: what changed
// meanwhile gave no event. dev.slipway.cluster.disconnected is sent when it cannot be
// reached any more or was taken away.
//
// What it cannot promise is what an ApiServerSource cannot promise either:
// objects that exist at the start give no event, and what changes while nobody
// watches gives none. The resync makes up for both.
package adapter
