// Package kind describes the resources that functions read and write: their
// group, versions, plural and scope, and which of their fields hold secrets.
//
// It is plain data, so that decisions, the runtime and the manifest generator
// speak of a resource by the same value.
package kind

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource names one resource of an API server.
type Resource struct {
	// Group is the API group; empty for the core group.
	Group string
	// Versions are the versions a function understands, the preferred one
	// first. With more than one, discovery decides which is used.
	Versions []string
	// Kind and Plural are the two names of the resource.
	Kind, Plural string
	// Namespaced tells the scope. EitherScope tells that an older definition of
	// the resource has the other one, so that the namespace of each object decides.
	Namespaced, EitherScope bool
	// Sealed lists the fields whose string values are secret: dotted paths,
	// with [] after a list and * for any key of a map. A path that ends in
	// ":base64" holds base64 text.
	Sealed []string
	// Dropped lists fields, written like Sealed, that are let go of as soon as an
	// object is read: they are large, and nobody looks at them. Objects that lack
	// them must not be written.
	Dropped []string
	// Bare tells that of an object nothing but its metadata is looked at: a list asks the
	// server for no more.
	Bare bool
}

// Metadata is the resource of which nothing but the metadata is read, without some of its
// fields (Dropped). Objects that are read so must not be written.
func (r Resource) Metadata(without ...string) Resource {
	r = r.Without(without...)
	r.Bare = true
	return r
}

// Without is the resource with more fields that are let go of (Dropped).
func (r Resource) Without(fields ...string) Resource {
	r.Dropped = append(slices.Clone(r.Dropped), fields...)
	return r
}

// GVK is the group, version and kind under the preferred version.
func (r Resource) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Versions[0], Kind: r.Kind}
}

// GVR is the group, version and resource under the preferred version.
func (r Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Versions[0], Resource: r.Plural}
}

// APIVersion is the preferred version as it stands in a manifest.
func (r Resource) APIVersion() string { return r.GVK().GroupVersion().String() }

// String is kubectl's name of the resource: plural and group.
func (r Resource) String() string {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}.String()
}

// Within is the namespace to ask for an object of the resource in, given the one
// that stands on the object: empty for what lies in none.
func (r Resource) Within(namespace string) string {
	if r.Namespaced || r.EitherScope {
		return namespace
	}
	return ""
}

// Is reports whether an apiVersion and a kind, as an event carries them, name
// this resource in any version.
func (r Resource) Is(apiVersion, kindName string) bool {
	group, _, slash := strings.Cut(apiVersion, "/")
	if !slash {
		group = ""
	}
	return kindName == r.Kind && group == r.Group
}
