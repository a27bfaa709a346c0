// Package catalog is what the platform below KubeVirt should look like: one object
// per asset, as a template, described in metadata.yaml.
//
// Both are compiled in and read once, strictly: a key that nobody knows, a name that
// comes twice, a condition that lacks a field, a template that makes two objects is
// an error of the build, which the package's tests find. docs/assets.md is generated
// from the same description.
//
// Rendering is a pure function of the asset and its facts. Templates are Go's, with
// [[ and ]], since alerts carry Prometheus' own placeholders; what they may call is
// listed in render.go. A template that comes out empty says that the asset does not
// apply here.
package catalog
