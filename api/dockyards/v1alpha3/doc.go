// Package v1alpha3 holds the Go types of the API group dockyards.io in its only
// version, and everything about that group that is a fixed value or a pure
// look-up: constants, the owner Cluster of an object, endpoints, condition lists.
//
// The kinds are
//
//   - Organization: a tenant, and the only kind without a namespace,
//   - Cluster: a workload cluster that a tenant asks for,
//   - NodePool: a set of equal machines of a Cluster,
//   - Node: one machine of a NodePool,
//   - Release: versions that can be installed, and where their image is,
//   - Workload, WorkloadTemplate: what is installed into a Cluster, and how it is
//     rendered,
//   - Worktree, WorkloadInventory: files that belong to a Workload, and what it has
//     brought about,
//   - DNSZone: a zone whose name Clusters of its namespace may use.
//
// Invariants:
//
//   - The schema accepts every object that the upstream project ever stored. A
//     field may be added; none may be removed, renamed, made required or given
//     a narrower range. Nothing is defaulted but the name of an Organization's
//     namespace reference, which the shared type brings along.
//   - Two revisions of the group are in the field. Fields of the second one are
//     marked so; a server with the definitions of the first one prunes them.
//   - Encoding invents nothing: an optional field that is unset is absent. Clients
//     of siblings do send zero structs (security: {}); they say nothing.
//   - An object is never written back whole from these types: fields of a
//     revision yet to come would be lost. They are for reading, and for what is
//     created.
//   - status.conditions is one list without a key in which several controllers
//     write: it is read, changed in one's own types, and written under its
//     resourceVersion, never applied.
//   - The package imports k8s.io/apimachinery, k8s.io/api and apiextensions' JSON,
//     and nothing else of weight.
//
// The deep copies and the CustomResourceDefinitions in the folder crds beside
// this one are generated from the types.
//
// +kubebuilder:object:generate=true
// +groupName=dockyards.io
package v1alpha3

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object crd paths=. output:crd:dir=../crds
