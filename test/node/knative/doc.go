// Package knative pins the Knative, and the cluster DNS, of the real node
// (test/node). It is a module of its own: Serving and Eventing agree with each
// other, with CoreDNS and with client-go v0.34, and with nothing else here.
//
// Their programs are built by import path from the modules that tools.go names,
// and their manifests are read from the same modules (test/node/bundle). Three
// programs are this module's own: coredns (CoreDNS with the six plugins that a
// cluster needs), ingress (the smallest that satisfies Knative Serving: Kourier's
// gateway is Envoy, which no Go module brings) and policies (what enforces network
// policies in kube-router).
package knative
