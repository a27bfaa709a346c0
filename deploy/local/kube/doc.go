// Package kube runs a real Kubernetes API on one machine: etcd, kube-apiserver
// and, on request, a kube-controller-manager with three controllers (garbage
// collection, namespaces, service accounts). There are no nodes and no containers:
// Pods and Deployments are objects like any other.
//
// [Start] brings a cluster up in this order:
//
//  1. It locks the data directory, ends what a run that crashed may have left
//     running, and makes the certificates (or takes those of the last run while
//     they are good).
//  2. etcd, unless a running one is named: several API servers can share one, each
//     below a prefix of its own.
//  3. kube-apiserver, until /readyz answers; then the kubeconfig is written.
//  4. What the caller installs ([Options.Install]). Definitions belong here: the
//     garbage collector learns of new kinds only every 30 seconds once it runs.
//  5. kube-controller-manager, never sooner: it exits when the roles that the API
//     server creates at its start are not there yet.
//
// Each program is a child process whose output goes to a file of the data
// directory. On Linux a child dies with this process, however this process ends.
// [Cluster.Stop] ends them in the reverse order, and quickly: an API server with
// open watches would take a minute to go by itself, and since it keeps nothing
// that etcd does not have, it is killed after a short grace.
//
// Everything listens on 127.0.0.1 only, on ports that are free unless given.
package kube
