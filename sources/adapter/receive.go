package adapter

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/kelseyhightower/envconfig"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"knative.dev/eventing/pkg/adapter/apiserver"
	eventingadapter "knative.dev/eventing/pkg/adapter/v2"
	"knative.dev/eventing/pkg/metrics/source"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/logging"
)

// Component is the name under which Knative's receive adapter knows itself.
const Component = "apiserversource"

// Cluster is an API server to watch.
type Cluster struct {
	// Provider is where a remote cluster comes from, an entry of Config.Remotes,
	// and Name what it is called there; both are empty for the management
	// cluster. The name is put on the cluster's events.
	Provider, Name string
	// Config reaches the API server. Its host becomes the source of the events.
	Config *rest.Config
}

// id tells a cluster from all others.
func (c Cluster) id() string { return c.Provider + "/" + c.Name }

// Environment is what a receive adapter is configured by: the variables of the
// container that an ApiServerSource would run it in.
type Environment map[string]string

// processEnvironment guards the environment of this process while a receive
// adapter reads its own from it.
var processEnvironment sync.Mutex

// Receive runs Knative's receive adapter on the cluster until ctx is done. It
// calls watching when all watches have begun: what changes before gives no event.
// An error means that it could not start: most often its API group is not served.
func Receive(ctx context.Context, cluster Cluster, env Environment, log *zap.Logger, watching func()) error {
	client, err := rest.HTTPClientFor(cluster.Config)
	if err != nil {
		return fmt.Errorf("cannot make a client for %s: %w", cluster.Config.Host, err)
	}
	return receiving{config: cluster.Config, client: client, env: env, log: log, watching: watching, again: func() {}}.run(ctx)
}

// receiving is a run of a receive adapter.
type receiving struct {
	config *rest.Config
	client *http.Client
	env    Environment
	// name limits it to the objects of one name; empty for all.
	name string
	// owner limits it to objects that one of this kind owns; empty for all.
	owner string
	// fields limits it to changes of these; empty for all.
	fields []string
	// kinds are what the objects must be; nil leaves it to the cluster.
	kinds map[schema.GroupResource]string
	// pace holds back the events; nil does not.
	pace *rate.Limiter
	log  *zap.Logger
	// watching is called when all watches have begun, again when one had to start
	// over.
	watching, again func()
}

func (r receiving) run(ctx context.Context) error {
	settings, err := r.env.parse()
	if err != nil {
		return err
	}
	settings.SetComponent(Component)
	seen, err := newWitness(r.env, r.watching, r.again)
	if err != nil {
		return err
	}
	ctx, err = r.inject(ctx, seen.client(r.client))
	if err != nil {
		return err
	}
	reporter, err := source.NewStatsReporter()
	if err != nil {
		return fmt.Errorf("cannot make a metrics reporter: %w", err)
	}
	client, err := eventingadapter.NewClient(eventingadapter.ClientConfig{Env: settings, Reporter: reporter})
	if err != nil {
		return fmt.Errorf("cannot make a client for sink %q: %w", settings.GetSink(), err)
	}
	defer client.CloseIdleConnections()
	var events cloudevents.Client = client
	if r.pace != nil {
		events = paced{client, r.pace}
	}
	if err := apiserver.NewAdapter(ctx, settings, events).Start(ctx); err != nil {
		return fmt.Errorf("cannot watch: %w", err)
	}
	return nil
}

// inject puts into ctx what the receive adapter looks for there.
func (r receiving) inject(ctx context.Context, client *http.Client) (context.Context, error) {
	config := Unlimited(r.config)
	kube, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for %s: %w", config.Host, err)
	}
	var dyn dynamic.Interface
	if dyn, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("cannot make a dynamic client for %s: %w", config.Host, err)
	}
	limited := narrow{Interface: dyn, name: r.name, owner: r.owner, kinds: r.kinds}
	if len(r.fields) > 0 {
		limited.changes = changesOf(r.fields)
	}
	dyn = limited
	ctx = context.WithValue(ctx, kubeclient.Key{}, kubernetes.Interface(kube))
	ctx = context.WithValue(ctx, dynamicclient.Key{}, dyn)
	ctx = context.WithValue(ctx, apiserver.Key{}, config.Host)
	return logging.WithLogger(ctx, r.log.Sugar()), nil
}

// Unlimited is the configuration without client-side throttling: with client-go's
// 5 queries a second the first lists of many resources would take minutes.
func Unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// parse reads the variables the way Knative does, which knows only one place to
// read them from: the environment of the process.
func (e Environment) parse() (eventingadapter.EnvConfigAccessor, error) {
	processEnvironment.Lock()
	defer processEnvironment.Unlock()
	defer e.restore()()

	for name, value := range e {
		if err := os.Setenv(name, value); err != nil {
			return nil, fmt.Errorf("cannot set environment variable %q: %w", name, err)
		}
	}
	settings := apiserver.NewEnvConfig()
	if err := envconfig.Process("", settings); err != nil {
		return nil, fmt.Errorf("cannot read the environment of the receive adapter: %w", err)
	}
	return settings, nil
}

// restore remembers the variables' present values and returns what puts them
// back.
func (e Environment) restore() func() {
	before := map[string]string{}
	for name := range e {
		if value, set := os.LookupEnv(name); set {
			before[name] = value
		}
	}
	return func() {
		for name := range e {
			value, set := before[name]
			if !set {
				_ = os.Unsetenv(name)
				continue
			}
			_ = os.Setenv(name, value)
		}
	}
}
