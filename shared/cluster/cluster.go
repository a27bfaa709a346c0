// Package cluster holds the connections to API servers: the management
// cluster, where the reconciled objects are, and the target clusters that a
// function was told of.
package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-dev/slipway/shared/decode"
	"github.com/slipway-dev/slipway/shared/kind"
)

// Timeout bounds one request to an API server.
const Timeout = 10 * time.Second

// Management is the name of the management cluster.
const Management = ""

// Client is the connection to one API server. All that it remembers is what the
// cluster is called by itself and which versions it serves.
type Client struct {
	// Name is the cluster's name; empty for the management cluster.
	Name    string
	Dynamic dynamic.Interface
	// metadata lists objects without anything but their metadata.
	metadata dynamic.Interface
	http     rest.Interface
	// userAgent is what the client calls itself; server, secrets and idle are
	// set for remote clusters.
	userAgent, server string
	secrets           []string
	idle              func()

	mu     sync.Mutex
	uid    string
	served map[schema.GroupResource]schema.GroupVersionResource
}

// Config finds the management cluster: the file that KUBECONFIG names, else
// the Pod's own account. kubectl's file in the home directory is not looked
// at: a function must never act on a cluster that it was not given.
func Config() (*rest.Config, error) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("cannot find the management cluster: set KUBECONFIG to a kubeconfig file, or run in a Pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig that KUBECONFIG names: %w", err)
	}
	return config, nil
}

// New connects to a cluster. The given configuration is copied; client-side
// throttling is switched off, since the server has fair queueing of its own.
func New(name, userAgent string, config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // else client-go prints to standard error, which holds JSON lines only
	config.UserAgent = userAgent
	if config.Timeout == 0 {
		config.Timeout = Timeout
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to cluster %q: %w", name, err)
	}
	return newClient(name, config, httpClient)
}

func newClient(name string, config *rest.Config, httpClient *http.Client) (*Client, error) {
	client, err := decode.Client(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to cluster %q: %w", name, err)
	}
	bare, err := decode.Metadata(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to cluster %q: %w", name, err)
	}
	plain := rest.CopyConfig(config)
	plain.GroupVersion = &schema.GroupVersion{}
	plain.NegotiatedSerializer = dynamicSerializer
	restClient, err := rest.UnversionedRESTClientForConfigAndClient(plain, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to cluster %q: %w", name, err)
	}
	return &Client{
		Name: name, Dynamic: client, metadata: bare, http: restClient, userAgent: config.UserAgent,
		served: map[schema.GroupResource]schema.GroupVersionResource{},
	}, nil
}

// Resource is the interface to a resource in the version that the server
// serves. With one known version there is no need to ask: a request for a
// resource that is not served says so itself.
func (c *Client) Resource(ctx context.Context, res kind.Resource) (schema.GroupVersionResource, error) {
	if len(res.Versions) == 1 {
		return res.GVR(), nil
	}
	gvr, served, err := c.Discover(ctx, res)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	if !served {
		return schema.GroupVersionResource{}, &meta.NoResourceMatchError{PartialResource: res.GVR()}
	}
	return gvr, nil
}

// UID identifies the cluster, once that is known.
func (c *Client) UID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uid
}

// SetUID remembers what identifies the cluster.
func (c *Client) SetUID(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uid = uid
}

// Alive asks the API server whether it is ready.
func (c *Client) Alive(ctx context.Context) error {
	if err := c.http.Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot reach the API server: %w", err)
	}
	return nil
}
