// Command kube is the Kubernetes of one machine in one file: etcd, the control
// plane, the node's agents and kubectl, each started through its project's own
// constructor.
//
// The component is picked by the name under which the program was started (a
// link named "etcd" is etcd) or, under any other name, by the first argument:
//
//	kube kube-apiserver --etcd-servers=http://127.0.0.1:2379 ...
//	kube kubectl get namespaces
//
// One program instead of seven saves minutes of linking and most of a gigabyte
// of disk. It lives in a Go module of its own because k8s.io/kubernetes needs a
// replace line for each of its staging modules, and a function's module must
// have none.
//
// The build has to stamp the version (deploy/local/build does):
// an unstamped API server calls itself v0.0.0-master, which Knative refuses.
//
// The module also pins sigs.k8s.io/kwok, whose command deploy/local/build
// compiles from here as it is.
package main
