// Package manifests shows that what is installed is what the platforms' own API takes:
// every overlay and the chart are rendered by the real tools and given to a real API
// server with the real definitions of Knative and of Prometheus' operator, strictly
// validated; Pods are held against Pod Security's level restricted by the API server
// itself; and the commands of docs/install.md deploy twice and undeploy.
//
// NOTE: Knative's webhooks do not run here. What they check beyond the schemas is seen
// on a real cluster only.
package manifests
