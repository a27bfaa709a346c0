// Package door shows template-validator at the door of a real API server, under its
// own account, with the manifests that are installed.
package door

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/cmd/template-validator/door"
	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/functions/workload-renderer/kinds"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render/worker"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

func TestMain(m *testing.M) {
	worker.Hook()
	os.Exit(kubetest.Main(m))
}

const home = "slipway-system"

var configurations = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}

// installed are the manifests, but for the configuration, which has to wait for the
// webhook's address.
func installed(t *testing.T) (objs []*unstructured.Unstructured, configuration *unstructured.Unstructured) {
	t.Helper()
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	all, err := kube.ReadFiles(root+"/deploy/template-validator/rights.yaml", root+"/deploy/template-validator/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{home, "dockyards-system"} {
		objs = append(objs, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}})
	}
	for _, obj := range all {
		switch obj.GetKind() {
		case "ValidatingWebhookConfiguration":
			configuration = obj
		case "Service":
			// The webhook runs on this machine, not in a pod.
			obj.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
			objs = append(objs, obj)
		case "Deployment":
		default:
			objs = append(objs, obj)
		}
	}
	return objs, configuration
}

func TestWhatCannotRenderDoesNotComeIn(t *testing.T) {
	objs, configuration := installed(t)
	env := kubetest.Start(t, kubetest.Options{Objects: objs, Files: []string{"api/dockyards/crds"}})
	t.Setenv("SYSTEM_NAMESPACE", home)
	settings, err := door.ParseSettings(func(name string) (string, bool) {
		value, ok := map[string]string{"SYSTEM_NAMESPACE": home, "LISTEN_ADDRESS": "127.0.0.1:0", "HEALTH_ADDRESS": "127.0.0.1:0"}[name]
		return value, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	pool := worker.New(2)
	t.Cleanup(pool.Close)
	ctx, cancel := context.WithCancel(t.Context())
	server, err := door.New(ctx, settings, env.As(t, home, "template-validator"), pool)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	admin, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(server.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	configure(t, admin, configuration, port)
	ns := env.Namespace(t)

	create := func(res kind.Resource, text string) error {
		objs, err := kube.Decode(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = admin.Resource(res.GVR()).Namespace(ns).Create(t.Context(), objs[0], metav1.CreateOptions{})
		return err
	}
	template := func(name, source string) string {
		return fmt.Sprintf("{apiVersion: dockyards.io/v1alpha3, kind: WorkloadTemplate, metadata: {name: %s}, spec: {type: dockyards.io/cue, source: %q}}", name, source)
	}
	workload := func(name, input string) string {
		return fmt.Sprintf("{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: %s, labels: {dockyards.io/cluster-name: demo}}, spec: {provenience: User, targetNamespace: a, workloadTemplateRef: {kind: WorkloadTemplate, name: good}, input: %s}}", name, input)
	}
	const good = "package template\n#Input: {x!: string}\n#cluster: {...}\n#workload: {spec: {input: #Input, ...}, ...}\na: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"a\", data: x: #workload.spec.input.x}\n"
	refused(t, create(kinds.WorkloadTemplates, template("broken", "package template\na: {\n")), "spec.source", "expected '}', found 'EOF' (template.cue:2:6)")
	refused(t, create(kinds.WorkloadTemplates, template("empty", "package template\n")), "spec.source.#cluster", "must have cluster definition")
	if err := create(kinds.WorkloadTemplates, template("good", good)); err != nil {
		t.Fatal(err)
	}
	refused(t, create(dockyards.Workloads, workload("bad", "{x: 1}")), "spec.input", "#Input.x: conflicting values string and 1 (mismatched types string and int)")
	if err := create(dockyards.Workloads, workload("fine", "{x: a}")); err != nil {
		t.Fatal(err)
	}
	_, err = admin.Resource(dockyards.Workloads.GVR()).Namespace(ns).Patch(t.Context(), "fine", types.MergePatchType, []byte(`{"spec":{"workloadTemplateRef":{"name":"other"}}}`), metav1.PatchOptions{})
	refused(t, err, "spec.workloadTemplateRef", "reference is immutable")
	if err := admin.Resource(kinds.WorkloadTemplates.GVR()).Namespace(ns).Delete(t.Context(), "good", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err = admin.Resource(dockyards.Workloads.GVR()).Namespace(ns).Patch(t.Context(), "fine", types.MergePatchType, []byte(`{"metadata":{"finalizers":["a.test/b"],"labels":{"l":"v"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("a Workload whose template is gone cannot be labelled: %v", err)
	}
	if _, err = admin.Resource(dockyards.Workloads.GVR()).Namespace(ns).Patch(t.Context(), "fine", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("a finalizer cannot be removed: %v", err)
	}

	inNamespace := func(namespace string) string {
		return strings.Replace(workload("far", "{x: a}"), "name: good}", "name: good, namespace: "+namespace+"}", 1)
	}
	refused(t, create(dockyards.Workloads, inNamespace("shared")), "spec.workloadTemplateRef", `templates of namespace "shared" may not be used: use one of namespace `+ns+", dockyards-public")
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "dockyards-system"}, "data": map[string]any{"publicNamespace": "shared"},
	}}
	if _, err := admin.Resource(kind.ConfigMaps.GVR()).Namespace("dockyards-system").Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refused(t, create(dockyards.Workloads, inNamespace("shared")), "spec.workloadTemplateRef", `Not found: "good"`)

	stop()
	if err := create(kinds.WorkloadTemplates, template("late", good)); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("with nobody at the door, a template was let in, or refused for another reason: %v", err)
	}
}

// configure installs the configuration for a port, and waits until the webhook has put
// its authority there and the API server calls it.
func configure(t *testing.T, admin dynamic.Interface, configuration *unstructured.Unstructured, port string) {
	t.Helper()
	number, err := strconv.ParseInt(port, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, item := range webhooks {
		if err := unstructured.SetNestedField(item.(map[string]any), number, "clientConfig", "service", "port"); err != nil {
			t.Fatal(err)
		}
	}
	configuration.Object["webhooks"] = webhooks
	client := admin.Resource(configurations)
	if _, err := client.Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + configuration.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	for e := range stream.ResultChan() {
		obj, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		webhooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
		trusted := 0
		for _, item := range webhooks {
			if bundle, _, _ := unstructured.NestedString(item.(map[string]any), "clientConfig", "caBundle"); bundle != "" {
				trusted++
			}
		}
		if trusted == 2 {
			called(ctx, t, admin)
			return
		}
	}
	t.Fatal("the configuration never got the webhook's authority")
}

// called waits until a template that cannot be built is refused by the webhook: of the
// API server's own idea of the configuration nothing else tells.
func called(ctx context.Context, t *testing.T, admin dynamic.Interface) {
	t.Helper()
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "dockyards.io/v1alpha3", "kind": "WorkloadTemplate", "metadata": map[string]any{"name": "probe"},
		"spec": map[string]any{"type": "dockyards.io/cue", "source": "{"},
	}}
	for {
		_, err := admin.Resource(kinds.WorkloadTemplates.GVR()).Namespace("default").Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsInvalid(err) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the API server never called the webhook: %v", err)
		}
	}
}

func refused(t *testing.T, err error, field, message string) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Errorf("want a refusal of %s, got %v", field, err)
		return
	}
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes { //nolint:errorlint // IsInvalid has looked
		if cause.Field == field && strings.Contains(cause.Message, message) {
			return
		}
	}
	t.Errorf("no cause says %q of %s: %v", message, field, err)
}
