package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stages"
	"github.com/slipway-dev/slipway/test/node"
	"github.com/slipway-dev/slipway/test/node/bundle"
)

const (
	// Namespace is where everything of Slipway is installed.
	Namespace = "slipway-system"
	// images is what the images of Slipway's own programs are called, up to the path of
	// the command.
	images = "dev.local/slipway"
	// overlay is the folder of deploy/overlays that is installed.
	overlay = "development"
)

// Cluster is a running cluster with everything installed.
type Cluster struct {
	*node.Node
	// Root is the root of the repository.
	Root string
	// Config and Client reach the API server as administrator.
	Config *rest.Config
	Client dynamic.Interface
	// HTTP reaches addresses in the cluster's network.
	HTTP *http.Client
	// Functions are the functions' names.
	Functions []string
	// Guarded tells whether network policies are enforced: that takes ipset.
	Guarded bool

	bin     string
	out     io.Writer
	started time.Time
}

// State is where the cluster of a repository lives.
func State(root string) string { return filepath.Join(root, ".cache", "node", "state") }

// Programs are the programs that a cluster runs, as deploy/local/build knows them.
func Programs(root string) ([]string, error) {
	functions, err := build.Functions(root)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]string{"kube", "kwok", "virt", "providers", "event-archive", "source-adapter"}, functions, build.ClusterPrograms()), nil
}

// Up builds what is missing and starts everything. On an error, what was started is
// stopped again.
func Up(ctx context.Context, root string, out io.Writer) (*Cluster, error) {
	programs, err := Programs(root)
	if err != nil {
		return nil, err
	}
	if err := build.Binaries(ctx, build.Options{Root: root, Out: out}, programs...); err != nil {
		return nil, err
	}
	functions, err := build.Functions(root)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Root: root, Functions: functions, bin: filepath.Join(root, build.DefaultBin), out: out, started: time.Now()}
	if c.Node, err = node.Start(ctx, node.Options{Bin: c.bin, State: State(root), Out: out}); err != nil {
		return nil, err
	}
	if err := c.up(ctx); err != nil {
		err = fmt.Errorf("%w\n%s\n%s", err, c.Look(ctx), c.Tails())
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) up(ctx context.Context) error {
	var err error
	if c.Config, err = c.Node.Config(); err != nil {
		return err
	}
	if c.Client, err = dynamic.NewForConfig(c.Config); err != nil {
		return err
	}
	c.HTTP = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: c.Dial}}
	// Before there is any pod: what comes later shall work in spite of the policies.
	if err := c.guard(); err != nil {
		return err
	}
	imported := make(chan error, 1)
	go func() { imported <- c.Import(ctx, append(bundle.Images(c.bin), c.images()...)...) }()
	parts, err := bundle.Load(ctx, c.Root)
	if err != nil {
		return errors.Join(err, <-imported)
	}
	// While images are on their way: what needs none.
	err = errors.Join(c.platform(ctx), kube.Apply(ctx, c.Config, parts[1].Objects...))
	if err := errors.Join(err, <-imported); err != nil {
		return err
	}
	c.Say("images are imported, definitions are there")
	for _, part := range slices.Concat(parts[:1], parts[2:]) {
		if err := kube.Apply(ctx, c.Config, part.Objects...); err != nil {
			return fmt.Errorf("cannot install %s: %w", part.Name, err)
		}
	}
	for _, namespace := range []string{"kube-system", "kourier-system", "knative-serving", "knative-eventing"} {
		if _, err := c.Kubectl(ctx, "rollout", "status", "deployment", "-n", namespace, "--timeout=3m"); err != nil {
			return err
		}
	}
	c.Say("Knative is up")
	if err := c.install(ctx); err != nil {
		return err
	}
	// Not before: kwok gives up when it sees an API group half there.
	if err := c.simulators(ctx); err != nil {
		return err
	}
	if err := c.AwaitReady(ctx); err != nil {
		return err
	}
	c.Say("Slipway is Ready")
	return nil
}

// Say tells what happened, and when.
func (c *Cluster) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, "%6.1f s  %s\n", time.Since(c.started).Seconds(), fmt.Sprintf(format, args...))
}

// guard starts what enforces network policies, where it can be had.
func (c *Cluster) guard() error {
	if _, err := exec.LookPath("ipset"); err != nil {
		c.Say("network policies are not enforced: %v; on Debian: apt-get install ipset", err)
		return nil
	}
	c.Guarded = true
	return c.Guard(filepath.Join(c.bin, "node-policies"))
}

// images are Slipway's own, named as deploy/deploy names them.
func (c *Cluster) images() []node.Image {
	all := []node.Image{
		{Name: images + "/sources/adapter/cmd:" + bundle.Tag, Binary: filepath.Join(c.bin, "source-adapter")},
		{Name: images + "/cmd/event-archive:" + bundle.Tag, Binary: filepath.Join(c.bin, "event-archive")},
	}
	for _, name := range c.Functions {
		all = append(all, node.Image{Name: images + "/functions/" + name + "/cmd:" + bundle.Tag, Binary: filepath.Join(c.bin, name)})
	}
	return all
}

// platform installs the definitions of all that Slipway works with and has not itself.
func (c *Cluster) platform(ctx context.Context) error {
	definitions, err := crds.Load(ctx, crds.KubeVirt, crds.CDI, crds.Multus, crds.ClusterAPI, crds.CAPK, crds.TalosBootstrap,
		crds.TalosControlPlane, crds.GatewayAPI, crds.FluxKustomize, crds.FluxSource, crds.FluxHelm,
		crds.OpenShiftMachineConfig, crds.PrometheusRules, crds.MetalLB, crds.UIPlugins, crds.AAQ)
	if err != nil {
		return err
	}
	reduced, err := kube.ReadFiles(filepath.Join(c.Root, "test/baseline/crds"))
	if err != nil {
		return err
	}
	objects, err := stages.Objects()
	if err != nil {
		return err
	}
	return kube.Apply(ctx, c.Config, slices.Concat(definitions, reduced, objects)...)
}

// simulators start what plays the parts that need hardware or other operators.
func (c *Cluster) simulators(ctx context.Context) error {
	dir := filepath.Join(State(c.Root), "kwok")
	kwok, err := stages.Command(ctx, filepath.Join(c.bin, "kwok"), c.Kubeconfig(), dir, 1, stages.GatewayAPI, stages.Flux)
	if err != nil {
		return err
	}
	// They live as long as the node does.
	forever := context.WithoutCancel(ctx)
	inside := c.Beside(forever, kwok.Path, kwok.Args[1:]...)
	inside.Env = kwok.Env
	errs := []error{c.Run("kwok", inside)}
	for _, name := range []string{"virt", "providers"} {
		errs = append(errs, c.Run(name, c.Beside(forever, filepath.Join(c.bin, name), "--kubeconfig", c.Kubeconfig())))
	}
	return errors.Join(errs...)
}

// install deploys for the first time. Where much starts at once, one of Knative's webhooks
// may fall silent for a moment.
func (c *Cluster) install(ctx context.Context) error {
	var err error
	for range 5 {
		if err = c.Deploy(ctx); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			return err
		}
		c.Say("a webhook of Knative does not answer: once more")
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// Deploy installs Slipway, or brings it up to date, as `make deploy` does.
func (c *Cluster) Deploy(ctx context.Context, settings ...string) error {
	return c.script(ctx, "deploy/deploy", append([]string{"IMAGES=" + images, "TAG=" + bundle.Tag}, settings...)...)
}

// Undeploy removes Slipway, as `make undeploy` does.
func (c *Cluster) Undeploy(ctx context.Context, settings ...string) error {
	return c.script(ctx, "deploy/undeploy", settings...)
}

func (c *Cluster) script(ctx context.Context, path string, settings ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Root, path)) //nolint:gosec // of this repository
	cmd.Env = append(append(os.Environ(), "OVERLAY="+overlay, "KUBECTL="+c.KubectlCommand()), settings...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	return nil
}

// Rendered are the objects that Deploy applies.
func (c *Cluster) Rendered(ctx context.Context) ([]*unstructured.Unstructured, error) {
	file := filepath.Join(State(c.Root), "rendered.yaml")
	if err := c.Deploy(ctx, "OUT="+file); err != nil {
		return nil, err
	}
	return kube.ReadFiles(file)
}

// AwaitReady waits until all that Slipway consists of says Ready.
func (c *Cluster) AwaitReady(ctx context.Context) error {
	for _, kind := range []string{
		"services.serving.knative.dev", "brokers.eventing.knative.dev", "triggers.eventing.knative.dev",
		"apiserversources.sources.knative.dev", "pingsources.sources.knative.dev",
	} {
		if _, err := c.Kubectl(ctx, "wait", kind, "--all", "-n", Namespace, "--for=condition=Ready", "--timeout=3m"); err != nil {
			return err
		}
	}
	_, err := c.Kubectl(ctx, "rollout", "status", "deployment", "source-adapter", "-n", Namespace, "--timeout=2m")
	return err
}

// Look is what somebody wants to see when something went wrong.
func (c *Cluster) Look(ctx context.Context) string {
	var out strings.Builder
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"get", "ksvc,broker,trigger,apiserversource,pingsource", "-n", Namespace},
		{"get", "events", "-A", "--field-selector=type!=Normal", "--sort-by=.lastTimestamp"},
	} {
		text, err := c.Kubectl(ctx, args...)
		if err != nil {
			text += err.Error()
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		fmt.Fprintf(&out, "== kubectl %s\n%s\n", strings.Join(args, " "), strings.Join(lines[max(0, len(lines)-80):], "\n"))
	}
	return out.String()
}
