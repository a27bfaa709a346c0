// Package stack is Slipway on one machine: what `make run` starts and what the
// end-to-end tests drive.
//
// It starts, in this order, and stops in reverse:
//
//  1. etcd, kube-apiserver and a controller manager with three controllers
//     (package kube);
//  2. the CRDs of KubeVirt, CDI and Multus (package crds) and Knative's, which
//     the eventing process prints;
//  3. the eventing process: Knative's reconcilers, broker and sources, and the
//     activator that starts a function's process on its first event;
//  4. the manifests of deploy/local/overlay, the very ones of a real cluster,
//     defaulted and checked as Knative's webhook would;
//  5. kwok with the stages of deploy/local/stages, and test/virt, which play
//     what needs hardware: VMs that boot, claims that bind;
//  6. one resync for each function, since objects that exist already give no
//     event.
//
// With several clusters each has an API server and an etcd of its own. A remote API server
// that somebody ends comes back after a minute, so that an outage can be looked at; what
// else ends by itself ends the stack.
//
// Nothing listens on anything but loopback. All state lies in one directory.
package stack
