// Package v1alpha1 holds the Go types of the API group vitistack.io in its only
// version, and everything about that group that is a fixed value or a pure
// function: constants, names of derived objects, condition lists.
//
// The kinds are
//
//   - Machine: a virtual machine that a person asks for,
//   - MachineClass: a named size,
//   - KubevirtConfig: a cluster on which virtual machines run,
//   - NetworkConfiguration: a network a Machine attaches to, and the record of
//     the interfaces a Machine has got.
//
// Invariants:
//
//   - The schema accepts every object that the upstream project ever stored. A
//     field may be added; none may be removed, renamed, made required or given
//     a narrower range.
//   - Encoding invents nothing: an optional field that is unset is absent, so
//     that an object read, changed in one field and written back differs in
//     that field alone. Fields that the schema requires are always written.
//   - What a person can get wrong in a name is no enum: it has to reach the
//     function, which answers with a condition.
//   - The package imports k8s.io/apimachinery and nothing else of weight.
//
// The deep copies and the CustomResourceDefinitions in the folder crds beside
// this one are generated from the types.
//
// +kubebuilder:object:generate=true
// +groupName=vitistack.io
package v1alpha1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object crd paths=. output:crd:dir=../crds
