// Package bundle reads what a cluster with Knative consists of: the manifests of
// Knative's own modules (test/node/knative pins them), CoreDNS, and the small ingress.
//
// [Load] joins the files of each part in the order that matters, replaces Knative's
// ko:// references by the names of the images that [Images] lists, and changes what a
// cluster for a few minutes wants different: probes every second, small CPU requests,
// the ingress's class, and a scale to zero after seconds.
//
// Module archives leave out symbolic links, and Knative's configuration is full of them:
// what is behind a link is read from where the link points, be it another module.
package bundle
