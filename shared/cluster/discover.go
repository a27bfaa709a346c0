package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/slipway-dev/slipway/shared/kind"
)

var dynamicSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()

// Discover finds the first of a resource's versions that the server serves.
// What is served is remembered until the server denies it; what is not served may
// arrive at any time and is asked for again.
func (c *Client) Discover(ctx context.Context, res kind.Resource) (schema.GroupVersionResource, bool, error) {
	key := res.GVR().GroupResource()
	c.mu.Lock()
	gvr, known := c.served[key]
	c.mu.Unlock()
	if known {
		return gvr, true, nil
	}
	for _, version := range res.Versions {
		gv := schema.GroupVersion{Group: res.Group, Version: version}
		list, err := c.resources(ctx, gv)
		if err != nil {
			return schema.GroupVersionResource{}, false, err
		}
		for _, r := range list {
			if r.Name != res.Plural {
				continue
			}
			found := gv.WithResource(res.Plural)
			c.mu.Lock()
			c.served[key] = found
			c.mu.Unlock()
			return found, true, nil
		}
	}
	return schema.GroupVersionResource{}, false, nil
}

// Forget drops what is remembered of a resource: the server has just said that it
// does not serve it in that version any more.
func (c *Client) Forget(res kind.Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.served, res.GVR().GroupResource())
}

func (c *Client) resources(ctx context.Context, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	raw, err := c.http.Get().AbsPath(path).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot discover %s: %w", gv, err)
	}
	list := metav1.APIResourceList{}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("cannot discover %s: %w", gv, err)
	}
	return list.APIResources, nil
}
