// Package crds carries the CustomResourceDefinitions of the API group
// dockyards.io, as they are generated from package v1alpha3, so that a program
// can install them without a file beside it.
package crds

import "embed"

// FS holds one YAML file for each CustomResourceDefinition, named
// <group>_<plural>.yaml.
//
//go:embed dockyards.io_*.yaml
var FS embed.FS
