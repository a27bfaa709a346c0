package dockyards

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	annotationDefaultRelease = "dockyards.io/is-default-release"
	// TypeTalosInstaller is the type of Releases that machines boot from.
	TypeTalosInstaller = "TalosInstaller"
)

// ReleaseType is what a Release releases.
func ReleaseType(release *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(release.Object, "spec", "type")
	return text
}

// DefaultRelease is the Release of type TalosInstaller that pools boot from
// which name none, and whether others claim to be it too. Among several, the one
// in the preferred namespace is taken, then the oldest, then the first by
// namespace and name. Nil: there is none.
func DefaultRelease(releases []unstructured.Unstructured, preferred string) (release *unstructured.Unstructured, several bool) {
	var found []*unstructured.Unstructured
	for i := range releases {
		_, marked := releases[i].GetAnnotations()[annotationDefaultRelease]
		if marked && ReleaseType(&releases[i]) == TypeTalosInstaller && !Going(&releases[i]) {
			found = append(found, &releases[i])
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(rank(a, preferred)-rank(b, preferred), Older(a, b))
	})
	return found[0], len(found) > 1
}

func rank(release *unstructured.Unstructured, preferred string) int {
	if release.GetNamespace() == preferred {
		return 0
	}
	return 1
}
