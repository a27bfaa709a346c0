// Package manifest prepares Knative's manifests for an API server without
// Knative's webhooks: it takes conversions out of CustomResourceDefinitions, and
// does to objects what the defaulting and validating webhooks would do.
package manifest
