// Package crds gives the CustomResourceDefinitions of the projects that Slipway
// works with, out of their own Go modules.
//
// No definition is copied into this repository. A table pins one module and one
// version for each project; the module is obtained with "go mod download", which
// checks it against the checksum database and keeps it in the module cache, and
// go.mod never hears of it. Two projects keep their definitions in Go source
// instead of YAML files: KubeVirt holds the schemas in a map and composes the rest
// in code, CDI holds whole definitions in a map. Both maps are read with go/parser,
// so nothing of theirs is compiled or linked.
//
// What is changed in a definition on the way, and nothing else:
//
//   - spec.conversion is removed where its strategy is Webhook. No conversion
//     webhook runs beside a local API server, and a definition that names one makes
//     every read of another version fail. Without it the API server converts by
//     changing apiVersion alone.
//   - labels that the project's own kustomization would add are added.
//   - status and metadata.creationTimestamp, which generators leave behind, are
//     removed.
package crds
