package images

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

var (
	asked = flag.Bool("images", false, "build and push images")
	every = flag.Bool("every", false, "build and push every function with kn func, not only the whole set and one of them")
)

// one is the function that stands for all.
const one = "node-capacity"

var machines = schema.GroupVersionResource{Group: "vitistack.io", Version: "v1alpha1", Resource: "machines"}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(kubetest.Main(m))
}

// workshop is where images are built.
type workshop struct {
	t        *testing.T
	root     string
	registry registry
	env      *kubetest.Env
}

func open(t *testing.T, programs ...string) *workshop {
	t.Helper()
	if !*asked {
		t.Skip("images are built when asked for: make func-test")
	}
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := build.Binaries(t.Context(), build.Options{Root: root, Out: os.Stderr}, append(programs, "registry")...); err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Load(t.Context(), crds.KnativeServing)
	if err != nil {
		t.Fatal(err)
	}
	env := kubetest.Start(t, kubetest.Options{
		Objects: definitions, Files: []string{"api/dockyards/crds", "api/vitistack/crds", "deploy/common/namespace.yaml"},
	})
	w := &workshop{t: t, root: root, env: env}
	w.registry = startRegistry(t, w.program("registry"))
	return w
}

func (w *workshop) program(name string) string {
	return filepath.Join(w.root, filepath.FromSlash(build.DefaultBin), name)
}

// run runs a program in a folder, with a home of its own and the caches of Go.
func (w *workshop) run(ctx context.Context, dir, program string, args ...string) (string, error) {
	w.t.Helper()
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // programs of this repository
	cmd.Dir = dir
	home := w.t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "KUBECONFIG="+w.env.Cluster.Kubeconfig,
		"GOFLAGS=-mod=mod -trimpath", "GOWORK=off", "FUNC_BUILDER=host")
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		cmd.Env = append(cmd.Env, name+"="+w.goenv(name))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (w *workshop) goenv(name string) string {
	w.t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(w.t.Context()), "go", "env", name).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (w *workshop) must(dir, program string, args ...string) string {
	w.t.Helper()
	began := time.Now()
	out, err := w.run(w.t.Context(), dir, program, args...)
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	w.t.Logf("%s %s: %s", filepath.Base(program), args[0], time.Since(began).Round(100*time.Millisecond))
	return out
}

// build builds and pushes a folder with kn func, and unpacks the program out of what
// was pushed.
func (w *workshop) build(dir, name string, staged bool) string {
	w.t.Helper()
	w.must(dir, w.program("func"), "build", "--builder=host", "--registry", string(w.registry)+"/slipway", "--push")
	repository := "slipway/" + name
	index := w.registry.index(w.t, repository, "latest")
	if got := len(index.Manifests); got != 3 {
		w.t.Errorf("%s is there for %d platforms, kn func compiles for 3", repository, got)
	}
	image, about := w.registry.image(w.t, repository, index, runtime.GOARCH)
	if about.Config.User != "1000:1000" {
		w.t.Errorf("%s runs as %q", repository, about.Config.User)
	}
	program, files := w.registry.unpack(w.t, repository, image, "/func/f", w.t.TempDir())
	// This version of kn func reads .funcignore nowhere: at the root of the repository
	// it takes everything along.
	for _, file := range files {
		if staged && (strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata")) {
			w.t.Errorf("%s holds %s", repository, file)
		}
	}
	return program
}

func (w *workshop) kubeconfig() string { return "KUBECONFIG=" + w.env.Cluster.Kubeconfig }

// TestTheWholeSetIsOneFunction builds the repository as it is, at its root.
func TestTheWholeSetIsOneFunction(t *testing.T) {
	w := open(t, "func")
	program := w.build(w.copy(), "slipway", false)
	p := start(t, program, w.kubeconfig())
	for _, function := range []string{one, "machine-vm"} {
		p.must(204, resync(function))
	}
	p.must(400, map[string]string{"type": "dev.slipway.unknown"})
	w.reconciles(p)
}

// copy is what git knows of the repository, elsewhere: kn func writes where it builds.
func (w *workshop) copy() string {
	w.t.Helper()
	out, err := exec.CommandContext(w.t.Context(), "git", "-C", w.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		w.t.Fatal(err)
	}
	dir := w.t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(w.root, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a copy
			w.t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o644); err != nil { //nolint:gosec // a copy
			w.t.Fatal(err)
		}
	}
	return dir
}

// reconciles shows that the program works, not only that it answers: a Machine that
// cannot be made says so.
func (w *workshop) reconciles(p *process) {
	w.t.Helper()
	ns := w.env.Namespace(w.t)
	machine := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
		"metadata": map[string]any{"name": "m", "namespace": ns}, "spec": map[string]any{"template": "no-such-template"},
	}}
	if _, err := w.env.Client.Resource(machines).Namespace(ns).Create(w.t.Context(), machine, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	p.must(204, added("vitistack.io/v1alpha1", "Machine", ns, "m"))
	live, err := w.env.Client.Resource(machines).Namespace(ns).Get(w.t.Context(), "m", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	if len(conditions) == 0 {
		w.t.Errorf("the Machine was not reconciled: %v\n%s", live.Object["status"], p.said())
	}
}

// TestAStagedFunctionIsOneImage builds folders that deploy/stage made.
func TestAStagedFunctionIsOneImage(t *testing.T) {
	w := open(t, "func")
	names := []string{one}
	if *every {
		var err error
		if names, err = build.Functions(w.root); err != nil {
			t.Fatal(err)
		}
		names = append(names, "slipway")
	}
	staged := t.TempDir()
	w.must(w.root, "go", append([]string{"run", "./deploy/stage", "-out", staged}, names...)...)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			dir := filepath.Join(staged, name)
			program := w.build(dir, name, true)
			p := start(t, program, w.kubeconfig())
			if name == "slipway" {
				p.must(204, resync(one))
				return
			}
			p.must(204, resync(name))
			p.must(400, added("example.com/v1", "Unknown", "ns", "n"))
			if name != one {
				return
			}
			t.Run("where senders have to be known, a main program without the gate lets nobody in", func(t *testing.T) {
				p := start(t, program, w.kubeconfig(), "EVENT_AUDIENCE=a", "EVENT_SENDERS=b")
				p.must(401, resync(name))
			})
			w.deploys(t, dir, name)
		})
	}
}

// deploys runs kn func deploy, as make deploy-NAME does, and then again with an image
// that somebody else built.
func (w *workshop) deploys(t *testing.T, dir, name string) {
	t.Helper()
	services := w.env.Client.Resource(schema.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "services"}).Namespace("slipway-system")
	w.object("v1", "ServiceAccount", name, nil)
	w.object("serving.knative.dev/v1", "Route", name, map[string]any{"url": "http://" + name + ".slipway-system.example.com"})

	deploy := func(dir string, args ...string) *unstructured.Unstructured {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go w.serving(ctx, name)
		out, err := w.run(ctx, dir, w.program("func"), append([]string{"deploy", "-n", "slipway-system"}, args...)...)
		if err != nil {
			t.Fatalf("func deploy %v: %v\n%s", args, err, out)
		}
		service, err := services.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return service
	}
	t.Run("kn func deploy makes the Service under the function's account, by digest", func(t *testing.T) {
		service := deploy(dir, "--builder=host", "--registry", string(w.registry)+"/slipway")
		spec, _, _ := unstructured.NestedMap(service.Object, "spec", "template", "spec")
		if got := spec["serviceAccountName"]; got != name {
			t.Errorf("it runs as %v", got)
		}
		image := image(spec)
		if !strings.HasPrefix(image, string(w.registry)+"/slipway/"+name+"@sha256:") {
			t.Errorf("it runs image %s", image)
		}
	})
	t.Run("staging again keeps where it was deployed to, and the source pristine", func(t *testing.T) {
		w.must(w.root, "go", "run", "./deploy/stage", "-out", filepath.Dir(dir), name)
		state, err := os.ReadFile(filepath.Join(dir, "func.yaml"))
		if err != nil || !bytes.Contains(state, []byte("namespace: slipway-system")) {
			t.Errorf("%v: %s", err, state)
		}
		source, err := os.ReadFile(filepath.Join(w.root, "functions", name, "func.yaml"))
		if err != nil || bytes.Contains(source, []byte("namespace:")) {
			t.Errorf("%v: %s", err, source)
		}
	})
	t.Run("an image that is there already is deployed without a build", func(t *testing.T) {
		// All that kn func needs is func.yaml.
		alone := t.TempDir()
		content, err := os.ReadFile(filepath.Join(w.root, "functions", name, "func.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(alone, "func.yaml"), content, 0o600); err != nil { //nolint:gosec // a folder of the test
			t.Fatal(err)
		}
		want := fmt.Sprintf("%s/slipway/%s@%s", w.registry, name, digest(w.registry.get(t, "slipway/"+name+"/manifests/latest")))
		service := deploy(alone, "--build=false", "--push=false", "--image", want)
		spec, _, _ := unstructured.NestedMap(service.Object, "spec", "template", "spec")
		if got := image(spec); got != want {
			t.Errorf("it runs image %s, want %s", got, want)
		}
	})
}

func image(spec map[string]any) string {
	containers, _ := spec["containers"].([]any)
	if len(containers) == 0 {
		return ""
	}
	container, _ := containers[0].(map[string]any)
	image, _ := container["image"].(string)
	return image
}

// object makes an object in the namespace of the installation, with a status.
func (w *workshop) object(apiVersion, kind, name string, status map[string]any) {
	w.t.Helper()
	group, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		w.t.Fatal(err)
	}
	resource := w.env.Client.Resource(group.WithResource(strings.ToLower(kind) + "s")).Namespace("slipway-system")
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
	if kind == "Route" {
		obj.Object["spec"] = map[string]any{}
	}
	made, err := resource.Create(w.t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	if status == nil {
		return
	}
	made.Object["status"] = status
	if _, err := resource.UpdateStatus(w.t.Context(), made, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// serving plays the part of Knative Serving that kn func waits for: it says of the
// Service's present generation that it is ready.
func (w *workshop) serving(ctx context.Context, name string) {
	services := w.env.Client.Resource(schema.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "services"}).Namespace("slipway-system")
	watch, err := services.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		service, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		seen, _, _ := unstructured.NestedInt64(service.Object, "status", "observedGeneration")
		if seen == service.GetGeneration() {
			continue
		}
		url := "http://" + name + ".slipway-system.example.com"
		status, err := json.Marshal(map[string]any{"status": map[string]any{
			"observedGeneration": service.GetGeneration(), "url": url, "address": map[string]any{"url": url},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}},
		}})
		if err != nil {
			return
		}
		_, _ = services.Patch(ctx, name, "application/merge-patch+json", status, metav1.PatchOptions{}, "status")
	}
}
