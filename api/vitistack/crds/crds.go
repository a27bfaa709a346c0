// Package crds carries the CustomResourceDefinitions of the API group
// vitistack.io, as they are generated from package v1alpha1, so that a program
// can install them without a file beside it.
package crds

import "embed"

// FS holds one YAML file for each CustomResourceDefinition, named
// <group>_<plural>.yaml.
//
//go:embed vitistack.io_*.yaml
var FS embed.FS
