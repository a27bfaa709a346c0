package manifests

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

const namespace = "slipway-system"

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// platform is an API server with the definitions of what Slipway is installed on.
type platform struct {
	t      *testing.T
	env    *kubetest.Env
	root   string
	mapper meta.RESTMapper
}

var shared struct {
	sync.Mutex
	mapper meta.RESTMapper
}

func start(t *testing.T) *platform {
	t.Helper()
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Load(t.Context(), crds.KnativeEventing, crds.KnativeServing, crds.PrometheusRules, crds.ServiceMonitors)
	if err != nil {
		t.Fatal(err)
	}
	env := kubetest.Start(t, kubetest.Options{
		Objects: definitions, Files: []string{"api/dockyards/crds", "api/vitistack/crds"}, ControllerManager: true,
	})
	shared.Lock()
	defer shared.Unlock()
	if shared.mapper == nil {
		client, err := discovery.NewDiscoveryClientForConfig(env.Config)
		if err != nil {
			t.Fatal(err)
		}
		shared.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	}
	return &platform{t: t, env: env, root: root, mapper: shared.mapper}
}

// run runs a program from the root of the repository, against the API server.
func (p *platform) run(stdin []byte, program string, args ...string) ([]byte, error) {
	p.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), program, args...) //nolint:gosec // programs of this repository
	cmd.Dir = p.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.env.Cluster.Kubeconfig, "KUBECTL="+p.kubectl())
	cmd.Stdin = bytes.NewReader(stdin)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return out, &failure{err, complaints.String()}
	}
	return out, nil
}

type failure struct {
	err  error
	says string
}

func (f *failure) Error() string { return f.err.Error() + "\n" + f.says }

func (p *platform) must(stdin []byte, program string, args ...string) []byte {
	p.t.Helper()
	out, err := p.run(stdin, program, args...)
	if err != nil {
		p.t.Fatalf("%s %s: %v", filepath.Base(program), strings.Join(args, " "), err)
	}
	return out
}

func (p *platform) kubectl() string {
	return filepath.Join(p.root, filepath.FromSlash(build.DefaultBin), "kube") + " kubectl"
}

// render is what kubectl makes of a kustomization.
func (p *platform) render(dir string) []*unstructured.Unstructured {
	p.t.Helper()
	program, args, _ := strings.Cut(p.kubectl(), " ")
	return p.decode(p.must(nil, program, args, "kustomize", dir))
}

func (p *platform) decode(manifests []byte) []*unstructured.Unstructured {
	p.t.Helper()
	objs, err := kube.Decode(bytes.NewReader(manifests))
	if err != nil {
		p.t.Fatal(err)
	}
	if len(objs) == 0 {
		p.t.Fatal("nothing is rendered")
	}
	return objs
}

// in is the interface to an object's resource.
func (p *platform) in(obj *unstructured.Unstructured) dynamic.ResourceInterface {
	p.t.Helper()
	gvk := obj.GroupVersionKind()
	mapping, err := p.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		p.t.Fatalf("%s %q: %v", obj.GetKind(), obj.GetName(), err)
	}
	resource := p.env.Client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(obj.GetNamespace())
	}
	return resource
}

// offer applies an object as a dry run, strictly.
func (p *platform) offer(obj *unstructured.Unstructured) error {
	p.t.Helper()
	body, err := obj.MarshalJSON()
	if err != nil {
		return err
	}
	force := true
	_, err = p.in(obj).Patch(p.t.Context(), obj.GetName(), "application/apply-patch+yaml", body, metav1.PatchOptions{
		FieldManager: "manifests", Force: &force, DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

func text(obj *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(obj.Object, path...)
	return value
}

func named(obj *unstructured.Unstructured) string { return obj.GetKind() + "/" + obj.GetName() }
