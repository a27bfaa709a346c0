package decide

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
)

// ReleaseRef is the Release that a pool names, its namespace being the pool's unless
// it says otherwise. Not ok: it names none.
func ReleaseRef(pool *unstructured.Unstructured) (namespace, name string, ok bool) {
	ref, _ := at(pool.Object, "spec", "releaseRef").(map[string]any)
	group, named := ref["apiGroup"]
	if text(ref, "kind") != v1alpha3.KindRelease || text(ref, "name") == "" || (named && group != v1alpha3.GroupName && group != "") {
		return "", "", false
	}
	if namespace = text(ref, "namespace"); namespace == "" {
		namespace = pool.GetNamespace()
	}
	return namespace, text(ref, "name"), true
}

// Installs tells whether machines can boot from a Release.
func Installs(release *unstructured.Unstructured) bool {
	return release != nil && dockyards.ReleaseType(release) == v1alpha3.ReleaseTypeTalosInstaller
}

// ImageOf is the DataVolume that a DataSource takes its image from.
func ImageOf(source *unstructured.Unstructured) (namespace, name string, ok bool) {
	if source == nil {
		return "", "", false
	}
	name = text(source.Object, "spec", "source", "pvc", "name")
	if namespace = text(source.Object, "spec", "source", "pvc", "namespace"); namespace == "" {
		namespace = source.GetNamespace()
	}
	return namespace, name, name != ""
}
