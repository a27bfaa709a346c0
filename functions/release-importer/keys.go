package releaseimporter

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// ofImage: the Release that owns the DataVolume or that its label names, and those
// that would call an image so. One that is gone can be told by its name alone.
func ofImage(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	image, err := r.Get(ctx, "", dockyards.DataVolumes, e.Namespace, e.Name)
	if err != nil {
		return nil, err
	}
	return releases(ctx, r, e.Namespace, func(release *unstructured.Unstructured) bool {
		name := release.GetName()
		if image != nil && (dockyards.OwnedBy(image, release) || image.GetLabels()[v1alpha3.LabelReleaseName] == name) {
			return true
		}
		return strings.HasPrefix(e.Name, name+"-")
	})
}

// ofNodePool: every image, for the pool's namespace may be the first or the last
// time that it has pools. What a pool says does not matter.
func ofNodePool(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	if strings.HasSuffix(e.Type, ".update") {
		return nil, nil
	}
	return releases(ctx, r, "", func(*unstructured.Unstructured) bool { return true })
}

// releases are those of the type in a namespace, or in all, that an event concerns.
func releases(ctx context.Context, r *read.Reader, namespace string, concerned func(*unstructured.Unstructured) bool) ([]reconcile.Key, error) {
	all, err := r.List(ctx, "", dockyards.Releases, namespace, "")
	if err != nil {
		return nil, err
	}
	var keys []reconcile.Key
	for i := range all {
		if dockyards.ReleaseType(&all[i]) == dockyards.TypeTalosInstaller && concerned(&all[i]) {
			keys = append(keys, reconcile.Key{Namespace: all[i].GetNamespace(), Name: all[i].GetName()})
		}
	}
	return keys, nil
}
