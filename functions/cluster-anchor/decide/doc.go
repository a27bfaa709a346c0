// Package decide holds all of cluster-anchor's thinking, without a client, a clock
// or randomness.
//
// Each part of a Cluster is decided on its own, so that none waits for another:
//
//   - hostname.go: what makes a hostname, and which Clusters would get the same
//     one. endpoint.go: which host is in force. route.go: the TLSRoute to it.
//   - workload.go, workloadinput.go: the Workload of the ingress.
//   - infrastructure.go: KubevirtClusters, and the references to them.
//
// relation.go tells whose an object is. plan.go puts the writes in order.
// conclude.go turns the answers of the API server into status.
//
// # Which host is in force
//
// The host of a new Cluster is made from its namespace, its name and the hostname of
// externalURL. On the route, hosts and the hostname that they were made from (the
// record) are written by one patch, so they agree. With the host in the status:
//
//   - no record: a host that is valid stays, the present hostname is recorded.
//   - record = hostname: the host stays. If the route already leads to the host
//     of that hostname, a move was cut off before the status was written, and is
//     completed.
//   - record ≠ hostname: the host moves: the route first, then the status, with an
//     Event; or nothing changes while rollouts are held.
//   - a host that is no DNS name never worked, and is corrected at once.
package decide
