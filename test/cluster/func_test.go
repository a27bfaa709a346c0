package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/test/cluster"
	"github.com/slipway-dev/slipway/test/node/bundle"
)

const (
	// byFunc is the function that kn func builds here, byFuncImage what its image is called.
	byFunc      = "node-capacity"
	byFuncImage = "dev.local/slipway/func/" + byFunc + ":" + bundle.Tag
)

var (
	knativeServices = schema.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "services"}
	dockyardsNodes  = schema.GroupVersionResource{Group: "dockyards.io", Version: "v1alpha3", Resource: "nodes"}
)

// sized is what byFunc works for: a Node, and the machine that says what it was given.
const sized = `apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: KubevirtMachine
metadata: {name: by-func, namespace: default}
spec:
  virtualMachineTemplate:
    spec:
      template: {spec: {domain: {cpu: {cores: 3}, memory: {guest: 4Gi}, devices: {}}}}
---
apiVersion: dockyards.io/v1alpha3
kind: Node
metadata: {name: by-func, namespace: default}
spec: {providerID: "kubevirt://by-func"}
`

// builtByFunc runs a function out of the image that kn func's host builder makes of it.
func builtByFunc(f *fixture, report *report) {
	program := filepath.Join(f.Root, filepath.FromSlash(build.DefaultBin), "func")
	if _, err := os.Stat(program); err != nil {
		f.t.Skip("the image of kn func was NOT run: kn func is not built yet; run make func once")
	}
	ctx := f.t.Context()
	began := time.Now()
	id, err := f.ImportLayout(ctx, byFuncImage, f.funcBuild(program))
	if err != nil {
		f.t.Fatal(err)
	}
	report.add("%s built by kn func and imported: %.1f s", byFunc, time.Since(began).Seconds())
	// Who patches owns the containers then: only a new Service is deploy's own again.
	defer func() {
		f.kubectl("delete", "services.serving.knative.dev", byFunc, "-n", cluster.Namespace)
		if err := errors.Join(f.Deploy(ctx), f.AwaitReady(ctx)); err != nil {
			f.t.Error(err)
		}
	}()
	revision := f.useImage(byFunc, byFuncImage)
	if status, err := f.Ask(ctx, byFunc); err != nil || status != http.StatusNoContent {
		f.t.Errorf("%s by kn func answers %d, %v", byFunc, status, err)
	}
	f.eventually("a pod that runs what kn func built", func() string {
		running := f.kubectl("get", "pods", "-n", cluster.Namespace, "-l", "serving.knative.dev/revision="+revision,
			"-o", `jsonpath={.items[*].status.containerStatuses[?(@.name=="user-container")].imageID}`)
		if !strings.Contains(running, id) {
			return fmt.Sprintf("%s runs image %q, not %s", revision, running, id)
		}
		return ""
	})
	f.apply(sized)
	defer f.kubectl("delete", "-f", filepath.Join(cluster.State(f.Root), "manifest.yaml"))
	took := f.eventually("the Node's resources", func() string {
		node, err := f.Client.Resource(dockyardsNodes).Namespace("default").Get(ctx, "by-func", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if cpu, _, _ := unstructured.NestedFieldNoCopy(node.Object, "status", "resources", "cpu"); cpu != "3" {
			return fmt.Sprintf("its cpu is %v", cpu)
		}
		return ""
	})
	report.add("the image of kn func answers 204 in containerd, and a Node has its resources %.1f s after its event", took.Seconds())
}

// funcBuild stages byFunc, builds it with kn func, and returns the folder of the image.
func (f *fixture) funcBuild(program string) string {
	f.t.Helper()
	staged := filepath.Join(cluster.State(f.Root), "func")
	dir := filepath.Join(staged, byFunc)
	stage := exec.CommandContext(f.t.Context(), "go", "run", "./deploy/stage", "-out", staged, byFunc)
	stage.Dir = f.Root
	image := exec.CommandContext(f.t.Context(), program, "build", "--builder=host", "--image", byFuncImage) //nolint:gosec // of this repository
	image.Dir = dir
	// As make deploy-NAME has it, without what its user has configured.
	image.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath -buildvcs=false", "GOWORK=off", "XDG_CONFIG_HOME="+filepath.Join(staged, "config"))
	for _, cmd := range []*exec.Cmd{stage, image} {
		if out, err := cmd.CombinedOutput(); err != nil {
			f.t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	return filepath.Join(dir, ".func", "build", "oci")
}

// useImage gives a function another image, as `kn func deploy --build=false` does, waits
// until its Service is Ready with it, and returns the name of its revision.
func (f *fixture) useImage(function, image string) string {
	f.t.Helper()
	f.kubectl("patch", "services.serving.knative.dev", function, "-n", cluster.Namespace, "--type=json",
		"-p", fmt.Sprintf(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": %q}]`, image))
	var revision string
	f.eventually(function+" to be Ready with "+image, func() string {
		service, err := f.Client.Resource(knativeServices).Namespace(cluster.Namespace).Get(f.t.Context(), function, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		observed, _, _ := unstructured.NestedInt64(service.Object, "status", "observedGeneration")
		if observed != service.GetGeneration() || !ready(*service) {
			return fmt.Sprint("it says ", service.Object["status"])
		}
		revision, _, _ = unstructured.NestedString(service.Object, "status", "latestReadyRevisionName")
		return ""
	})
	return revision
}
