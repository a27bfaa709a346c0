// Package node runs a real Kubernetes node on this very machine: containerd, runc and
// the node's network from Debian's packages, etcd, the control plane, the kubelet and
// kube-proxy from this repository's own builds, in namespaces of their own.
//
// [Probe] tells first whether this machine can do it at all, and names the step that it
// cannot. [Start] then
//
//  1. makes a process tree in mount, PID, network, UTS and IPC namespaces of its own
//     (boot.sh is its first process); nothing in there has a way out, so nothing can be
//     pulled by accident, and the machine's own network, mounts and settings stay as
//     they are;
//  2. starts containerd and imports images ([Image]: one static binary in a layer of
//     its own, no registry and no builder);
//  3. starts etcd and the API server, and only when that is ready the controller
//     manager, the scheduler, kube-proxy and the kubelet: earlier the roles are not
//     there that they need;
//  4. returns when the node is Ready.
//
// The API server is reached through a socket that is made inside of the node's network
// ([Node.Config]), or by a kubectl that is started there ([Node.Kubectl]).
//
// [Node.Stop] ends the first process, and with it everything that runs in there, and
// removes the state and the control groups, the one thing that lies outside. When the
// process that called Start dies, the pipe to the node's first process closes and the
// node ends by itself; the next Start removes what is left.
package node
