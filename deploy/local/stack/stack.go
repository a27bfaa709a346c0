package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/shared/event"
)

const (
	// Namespace is where everything of Slipway is installed.
	Namespace = "slipway-system"
	// readyTimeout bounds the wait for one step of the start.
	readyTimeout = 60 * time.Second
)

// RecordingsDir is where recordings lie below the directory for all state.
const RecordingsDir = "recordings"

// Binaries are the programs that a stack runs.
var Binaries = []string{"kube", "kwok", "eventing", "virt", "providers", "event-archive"}

// Options say what to start and where.
type Options struct {
	// Root is the root of the repository, Data the directory for all state.
	Root, Data string
	// Port is the API server's port; 0 takes a free one.
	Port int
	// Clusters is how many clusters Machines can run on: one is the supervisor
	// itself, more are so many remote ones beside it.
	Clusters int
	// Workloads are clusters of Cluster API that have an API server each:
	// "namespace/name".
	Workloads []string
	// Audit lets each API server write down every write, in the file [AuditLog]
	// of its directory.
	Audit bool
	// Record lets the functions record every reconcile, in the directory recordings
	// of Data; else only what an object's annotation asks for.
	Record bool
	// Idle is how long a function may rest before its process is stopped.
	Idle time.Duration
	// Disable names functions whose process is never started.
	Disable []string
	// Out receives the lines for people, Progress those about builds.
	Out, Progress io.Writer
}

// Stack is a running stack.
type Stack struct {
	// Cluster is the API server; Broker is the URL of the broker's ingress, as
	// this machine can reach it.
	Cluster *kube.Cluster
	Broker  string
	// Client reaches the API server as an administrator.
	Client dynamic.Interface
	// Remotes are the target clusters besides, Workloads those of Cluster API.
	Remotes, Workloads []*Remote

	opts      Options
	bin       string
	printer   *Printer
	processes []*process
	drained   sync.WaitGroup
	// installed are the manifests of the functions and what leads events to them.
	installed []*unstructured.Unstructured
	// forsake ends those that bring remote API servers back, returns is until they have
	// ended, and broken is why one could not.
	forsake context.CancelFunc
	returns sync.WaitGroup
	broken  chan error
}

// Start builds what is missing and starts everything. On an error, what was
// started is stopped again.
func Start(ctx context.Context, opts Options) (*Stack, error) {
	s := &Stack{opts: opts, bin: filepath.Join(opts.Root, build.DefaultBin), printer: &Printer{Out: opts.Out, Now: time.Now}}
	// The manifests hold these; a folder that is not declared yet is not built.
	var functions []string
	for _, spec := range slipway.Specs() {
		functions = append(functions, spec.Name)
	}
	for _, name := range opts.Disable {
		if !slices.Contains(functions, name) {
			return nil, fmt.Errorf("cannot disable function %q: there are %s", name, strings.Join(functions, ", "))
		}
	}
	if err := build.Binaries(ctx, build.Options{Root: opts.Root, Out: opts.Progress}, append(Binaries, functions...)...); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) error {
	started := time.Now()
	platform, supervisor, err := s.definitions(ctx)
	if err != nil {
		return err
	}
	if err := s.clusters(ctx, platform, supervisor); err != nil {
		return err
	}
	s.printer.Say("API server ready after %.1f s: %s", time.Since(started).Seconds(), s.Cluster.URL)
	for _, remote := range s.others() {
		s.printer.Say("remote cluster %s ready: %s", remote.Name, remote.Cluster.URL)
	}
	manifests, err := s.manifests(ctx)
	if err != nil {
		return err
	}
	s.installed = manifests
	if err := s.eventing(ctx, manifests); err != nil {
		return err
	}
	if err := s.install(ctx, manifests); err != nil {
		return err
	}
	if err := s.simulators(ctx); err != nil {
		return err
	}
	if err := s.introduce(ctx); err != nil {
		return err
	}
	if err := s.introduceWorkloads(ctx); err != nil {
		return err
	}
	if err := s.Resync(ctx); err != nil {
		return err
	}
	s.outlive()
	s.printer.Say("everything is up after %.1f s", time.Since(started).Seconds())
	return nil
}

// definitions are the CRDs of the platform below, which every cluster has, and
// those of the supervisor. Slipway's own come with its manifests, but have to be
// there before the sources that watch them.
func (s *Stack) definitions(ctx context.Context) (platform, supervisor []*unstructured.Unstructured, err error) {
	if platform, err = crds.Load(ctx, crds.KubeVirt, crds.CDI, crds.Multus); err != nil {
		return nil, nil, err
	}
	module, err := output(ctx, filepath.Join(s.opts.Root, "deploy/local/eventing"), nil, "go", "list", "-m", "-f", "{{.Dir}}", "knative.dev/eventing")
	if err != nil {
		return nil, nil, err
	}
	text, err := output(ctx, s.opts.Root, nil, filepath.Join(s.bin, "eventing"), "crds", "--module-dir", strings.TrimSpace(string(module)))
	if err != nil {
		return nil, nil, err
	}
	knative, err := kube.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	supervisor = knative
	for _, group := range []string{"dockyards", "vitistack"} {
		own, err := kube.ReadFiles(filepath.Join(s.opts.Root, "api", group, "crds"))
		if err != nil {
			return nil, nil, err
		}
		supervisor = append(supervisor, own...)
	}
	// Clusters from Dockyards are made here alone, and what is installed in them.
	providers, err := crds.Load(ctx, crds.ClusterAPI, crds.CAPK, crds.TalosBootstrap, crds.TalosControlPlane, crds.GatewayAPI,
		crds.FluxKustomize, crds.FluxSource, crds.FluxHelm)
	if err != nil {
		return nil, nil, err
	}
	// So is what the baseline has objects of; what no module has is reduced.
	baseline, err := crds.Load(ctx, crds.OpenShiftMachineConfig, crds.PrometheusRules, crds.MetalLB, crds.UIPlugins, crds.AAQ)
	if err != nil {
		return nil, nil, err
	}
	reduced, err := kube.ReadFiles(filepath.Join(s.opts.Root, "test/baseline/crds"))
	if err != nil {
		return nil, nil, err
	}
	return platform, slices.Concat(supervisor, providers, baseline, reduced), nil
}

// manifests are those of a real cluster, with the local overlay, defaulted and
// validated by Knative's own code.
func (s *Stack) manifests(ctx context.Context) ([]*unstructured.Unstructured, error) {
	built, err := s.kustomize(ctx, "deploy/local/overlay")
	if err != nil {
		return nil, err
	}
	if built, err = output(ctx, s.opts.Root, built, filepath.Join(s.bin, "eventing"), "defaults"); err != nil {
		return nil, err
	}
	objects, err := kube.Decode(bytes.NewReader(built))
	if err != nil {
		return nil, err
	}
	for _, obj := range objects {
		if obj.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: "serving.knative.dev", Kind: "Service"}) {
			s.localise(obj)
		}
	}
	return objects, nil
}

func (s *Stack) kustomize(ctx context.Context, folder string) ([]byte, error) {
	return output(ctx, s.opts.Root, nil, filepath.Join(s.bin, "kube"), "kubectl", "kustomize", folder)
}

// Kustomize builds the objects of a folder, which is relative to the root of the
// repository.
func (s *Stack) Kustomize(ctx context.Context, folder string) ([]*unstructured.Unstructured, error) {
	built, err := s.kustomize(ctx, folder)
	if err != nil {
		return nil, err
	}
	return kube.Decode(bytes.NewReader(built))
}

// localise gives a Service what differs on one machine: where the archive
// keeps its files, which function is never started, and settings.
func (s *Stack) localise(service *unstructured.Unstructured) {
	for _, name := range s.opts.Disable {
		if service.GetName() == name {
			annotations := service.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["slipway.dev/disabled"] = "true"
			service.SetAnnotations(annotations)
		}
	}
	containers, _, _ := unstructured.NestedSlice(service.Object, "spec", "template", "spec", "containers")
	for _, item := range containers {
		container, ok := item.(map[string]any)
		if !ok {
			continue
		}
		env, _ := container["env"].([]any)
		for _, entry := range env {
			variable, _ := entry.(map[string]any)
			switch variable["name"] {
			case "ARCHIVE_DIR":
				variable["value"] = filepath.Join(s.opts.Data, "event-archive")
			case "ARCHIVE_READERS":
				variable["value"] = "" // readers open the directory
			case "SLIPWAY_RECORD_ARCHIVE":
				// On one machine a directory is all that is needed.
				variable["name"], variable["value"] = "SLIPWAY_RECORD_DIR", filepath.Join(s.opts.Data, RecordingsDir)
				if s.opts.Record {
					env = append(env, map[string]any{"name": "SLIPWAY_RECORD", "value": "all"})
				}
			}
		}
		for name, value := range s.settings(service.GetName()) {
			env = append(env, map[string]any{"name": name, "value": value})
		}
		env = append(env, memory(container)...)
		container["env"] = env
	}
	_ = unstructured.SetNestedSlice(service.Object, containers, "spec", "template", "spec", "containers")
}

// eventing starts Knative Eventing and waits until it takes events.
func (s *Stack) eventing(ctx context.Context, manifests []*unstructured.Unstructured) error {
	config, err := s.adapterConfig(manifests)
	if err != nil {
		return err
	}
	reader, writer := io.Pipe()
	cmd := s.command("eventing", "--kubeconfig", s.Cluster.Kubeconfig, "--functions-dir", s.bin,
		"--data-dir", filepath.Join(s.opts.Data, "functions"), "--idle", s.opts.Idle.String(), "--adapter-config", config)
	cmd.Stdout = writer
	p, err := start(s.opts.Data, "eventing", cmd)
	if err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	go func() { <-p.done; _ = writer.Close() }()
	ready := make(chan struct{})
	var once sync.Once
	s.drained.Go(func() {
		s.printer.Copy(reader, func(raw []byte) {
			var addresses struct {
				Ingress string `json:"ingress"`
			}
			_ = json.Unmarshal(raw, &addresses)
			once.Do(func() {
				s.Broker = strings.TrimSuffix(addresses.Ingress, "/") + "/" + Namespace + "/default"
				close(ready)
			})
		})
	})
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return p.await(ctx, ready)
}

// adapterConfig writes the configuration of sources/adapter to a file, out of
// the ConfigMap that a real cluster mounts.
func (s *Stack) adapterConfig(manifests []*unstructured.Unstructured) (string, error) {
	for _, obj := range manifests {
		if obj.GetKind() != "ConfigMap" || obj.GetName() != "source-adapter" {
			continue
		}
		text, _, err := unstructured.NestedString(obj.Object, "data", "config.yaml")
		if err != nil {
			return "", fmt.Errorf("cannot read ConfigMap source-adapter: %w", err)
		}
		if text, err = impatient(text); err != nil {
			return "", fmt.Errorf("cannot read ConfigMap source-adapter: %w", err)
		}
		path := filepath.Join(s.opts.Data, "source-adapter.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("cannot configure the source adapter: %w", err)
		}
		return path, nil
	}
	return "", errors.New("cannot configure the source adapter: the manifests hold no ConfigMap source-adapter")
}

// impatient lets the adapter notice within seconds that a remote cluster is gone:
// on one machine somebody waits for it.
func impatient(text string) (string, error) {
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return "", err
	}
	remotes, _ := config["remotes"].([]any)
	for _, item := range remotes {
		if remote, ok := item.(map[string]any); ok {
			remote["heartbeat"] = "2s"
		}
	}
	raw, err := yaml.Marshal(config)
	return string(raw), err
}

// install applies the manifests and waits until everything says Ready.
func (s *Stack) install(ctx context.Context, manifests []*unstructured.Unstructured) error {
	namespaces, rest := split(manifests, "Namespace")
	_, rest = split(rest, "CustomResourceDefinition")
	if err := kube.Apply(ctx, s.Cluster.Config, namespaces...); err != nil {
		return err
	}
	if err := kube.Apply(ctx, s.Cluster.Config, rest...); err != nil {
		return err
	}
	wired, _ := split(rest, "Broker", "Trigger", "ApiServerSource", "PingSource", "Deployment")
	return s.WaitReady(ctx, readyTimeout, wired...)
}

// command runs one of our own programs until Stop.
func (s *Stack) command(name string, args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(s.bin, name), args...) //nolint:gosec,noctx // programs of this repository; Stop ends them
}

// Resync asks every function for a resync.
func (s *Stack) Resync(ctx context.Context) error {
	for _, spec := range slipway.Specs() {
		id := fmt.Sprintf("resync-%s-%d", spec.Name, time.Now().UnixNano())
		next := event.Next(event.Resync{Function: spec.Name}, id, time.Now())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Broker, strings.NewReader(string(next.Data())))
		if err != nil {
			return fmt.Errorf("cannot ask for a resync: %w", err)
		}
		for name, value := range map[string]string{
			"Ce-Specversion": "1.0", "Ce-Id": id, "Ce-Type": next.Type(), "Ce-Source": next.Source(),
			"Ce-Function": spec.Name, "Content-Type": "application/json",
		} {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("cannot ask for a resync: %w", err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("cannot ask for a resync of %s: the broker at %s answered %s", spec.Name, s.Broker, resp.Status)
		}
	}
	return nil
}

// Apply applies manifests as a person would with kubectl: what needs a namespace and
// has none goes into default.
func (s *Stack) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	if err := kube.DefaultNamespace(ctx, s.Cluster.Config, "default", objects...); err != nil {
		return err
	}
	return kube.Apply(ctx, s.Cluster.Config, objects...)
}

// Kubectl runs kubectl against the stack and returns what it printed.
func (s *Stack) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	return s.kubectl(ctx, s.Cluster.Kubeconfig, args...)
}

func (s *Stack) kubectl(ctx context.Context, kubeconfig string, args ...string) ([]byte, error) {
	return output(ctx, s.opts.Root, nil, filepath.Join(s.bin, "kube"), append([]string{"kubectl", "--kubeconfig", kubeconfig}, args...)...)
}

// Pids are the processes of the stack, by name, without those of the functions.
func (s *Stack) Pids() map[string][]int {
	pids := map[string][]int{}
	for _, p := range s.processes {
		pids[p.name] = append(pids[p.name], p.cmd.Process.Pid)
	}
	if s.Cluster != nil {
		pids["supervisor"] = s.Cluster.Pids()
	}
	for _, remote := range s.others() {
		if remote.Cluster != nil {
			pids[remote.Name] = remote.Cluster.Pids()
		}
	}
	return pids
}

// Failed waits until a part of the stack ends by itself, or the context does;
// the error names the part and its log. The API server of a remote cluster may end: it
// comes back.
func (s *Stack) Failed(ctx context.Context) error {
	ended := make(chan error, len(s.processes)+len(s.others()))
	for _, p := range s.processes {
		go func() {
			select {
			case <-p.done:
				ended <- fmt.Errorf("%s ended by itself (%w); its log: %s", p.name, p.err, p.log.Name())
			case <-ctx.Done():
			}
		}()
	}
	for _, remote := range s.others() {
		go func() {
			select {
			case <-remote.Cluster.Done():
				ended <- fmt.Errorf("remote cluster %s ended by itself: %w", remote.Name, remote.Cluster.Err())
			case <-ctx.Done():
			}
		}()
	}
	select {
	case err := <-ended:
		return err
	case err := <-s.broken:
		return err
	case <-s.Cluster.Done():
		return fmt.Errorf("the API server ended by itself: %w", s.Cluster.Err())
	case <-ctx.Done():
		return nil
	}
}

// Stop ends everything in reverse order. The state stays in the data
// directory.
func (s *Stack) Stop() {
	if s.forsake != nil {
		s.forsake()
	}
	s.returns.Wait()
	for i := len(s.processes) - 1; i >= 0; i-- {
		s.processes[i].stop(10 * time.Second)
	}
	s.drained.Wait()
	for _, remote := range s.others() {
		if remote.Cluster != nil {
			remote.Cluster.Stop()
		}
	}
	if s.Cluster != nil {
		s.Cluster.Stop()
	}
}
