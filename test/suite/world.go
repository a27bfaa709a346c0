package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// World is a namespace of an API server, seen with all rights.
type World struct {
	TB     testing.TB
	Env    *kubetest.Env
	NS     string
	Client dynamic.Interface

	suite *Suite
	// earlier are the UIDs of what is not namespaced and was there before.
	earlier map[string]bool
}

// At is the same server seen from another namespace.
func (w *World) At(namespace string) *World {
	other := *w
	other.NS = namespace
	return &other
}

// In is the client for a resource, in the world's namespace where it has one.
func (w *World) In(res kind.Resource) dynamic.ResourceInterface {
	if !res.Namespaced {
		return w.Client.Resource(res.GVR())
	}
	return w.Client.Resource(res.GVR()).Namespace(w.NS)
}

// ResourceOf finds the resource of an object among all that the suite knows.
func (w *World) ResourceOf(obj *unstructured.Unstructured) kind.Resource {
	w.TB.Helper()
	known := slices.Concat(w.suite.opts.Kinds, w.suite.opts.Others)
	for _, spec := range w.suite.opts.Specs {
		known = append(known, spec.Reconciles)
		for _, grant := range slices.Concat(spec.Grants, spec.TargetGrants) {
			known = append(known, grant.Resource)
		}
		for _, watch := range spec.Watches {
			known = append(known, watch.Resource)
		}
	}
	for _, res := range append(known, kind.Namespaces, kind.Secrets, kind.ConfigMaps, kind.PersistentVolumeClaims, kind.StorageClasses) {
		if res.Is(obj.GetAPIVersion(), obj.GetKind()) {
			res.Versions = []string{obj.GroupVersionKind().Version}
			return res
		}
	}
	w.TB.Fatalf("no resource is known for %s %s: add it to Options.Others", obj.GetAPIVersion(), obj.GetKind())
	return kind.Resource{}
}

// Create makes objects as their owners would; a document of a manifest that names
// no namespace is for the world's. It returns the last.
func (w *World) Create(manifests ...string) *unstructured.Unstructured {
	w.TB.Helper()
	var last *unstructured.Unstructured
	w.eachOf(manifests, func(obj *unstructured.Unstructured, client dynamic.ResourceInterface) error {
		var err error
		last, err = client.Create(w.TB.Context(), obj, metav1.CreateOptions{FieldManager: "person", FieldValidation: metav1.FieldValidationStrict})
		return err
	})
	return last
}

// CreateAs stores objects as an operator does that knows nothing of server-side
// apply: by POST, and PUT where there is a status, under its field manager.
// It returns the last.
func (w *World) CreateAs(manager string, manifests ...string) *unstructured.Unstructured {
	w.TB.Helper()
	var last *unstructured.Unstructured
	w.eachOf(manifests, func(obj *unstructured.Unstructured, client dynamic.ResourceInterface) error {
		status, has := obj.Object["status"]
		delete(obj.Object, "status")
		var err error
		if last, err = client.Create(w.TB.Context(), obj, metav1.CreateOptions{FieldManager: manager}); err != nil || !has {
			return err
		}
		last.Object["status"] = status
		stored, err := client.UpdateStatus(w.TB.Context(), last, metav1.UpdateOptions{FieldManager: manager})
		if apierrors.IsNotFound(err) { // the status is no resource of its own
			stored, err = client.Update(w.TB.Context(), last, metav1.UpdateOptions{FieldManager: manager})
		}
		last = stored
		return err
	})
	return last
}

// Apply puts objects in place, whether they are there or not, and leaves them there
// after the test.
func (w *World) Apply(manifests ...string) {
	w.TB.Helper()
	for _, text := range manifests {
		objs, err := kube.Decode(strings.NewReader(text))
		if err == nil {
			err = kube.Apply(context.WithoutCancel(w.TB.Context()), w.Env.Config, objs...)
		}
		if err != nil {
			w.TB.Fatal(err)
		}
	}
}

// eachOf goes through the objects of manifests. What is not namespaced goes with the
// test.
func (w *World) eachOf(manifests []string, do func(*unstructured.Unstructured, dynamic.ResourceInterface) error) {
	w.TB.Helper()
	for _, text := range manifests {
		objs, err := kube.Decode(strings.NewReader(text))
		if err != nil {
			w.TB.Fatalf("%v in %s", err, text)
		}
		for _, obj := range objs {
			res, at := w.ResourceOf(obj), w
			if ns := obj.GetNamespace(); ns != "" {
				at = w.At(ns)
			}
			client, name := at.In(res), obj.GetName()
			if err := do(obj, client); err != nil {
				w.TB.Fatal(err)
			}
			if !res.Namespaced {
				w.TB.Cleanup(func() { _ = client.Delete(context.Background(), name, metav1.DeleteOptions{}) })
			}
		}
	}
}

// Patch changes an object as a person would, by a merge patch in YAML.
func (w *World) Patch(res kind.Resource, name, body string, subresources ...string) *unstructured.Unstructured {
	w.TB.Helper()
	raw, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		w.TB.Fatalf("%v in %s", err, body)
	}
	obj, err := w.In(res).Patch(w.TB.Context(), name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: "person"}, subresources...)
	if err != nil {
		w.TB.Fatal(err)
	}
	return obj
}

// Update changes an object as another operator does: it reads, changes and stores
// the whole under its field manager, again if somebody was faster.
func (w *World) Update(res kind.Resource, name, manager string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	w.TB.Helper()
	for {
		obj := w.Must(res, name)
		change(obj)
		stored, err := w.In(res).Update(w.TB.Context(), obj, metav1.UpdateOptions{FieldManager: manager})
		if err == nil {
			return stored
		}
		if !apierrors.IsConflict(err) {
			w.TB.Fatal(err)
		}
	}
}

// Remove deletes an object.
func (w *World) Remove(res kind.Resource, name string) {
	w.TB.Helper()
	if err := w.In(res).Delete(w.TB.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.TB.Fatal(err)
	}
}

// Get reads an object; nil if there is none.
func (w *World) Get(res kind.Resource, name string) *unstructured.Unstructured {
	w.TB.Helper()
	obj, err := w.In(res).Get(w.TB.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.TB.Fatal(err)
	}
	return obj
}

// Must reads an object that has to be there.
func (w *World) Must(res kind.Resource, name string) *unstructured.Unstructured {
	w.TB.Helper()
	obj := w.Get(res, name)
	if obj == nil {
		w.TB.Fatalf("there is no %s %q; there are %v", res.Kind, name, w.Names())
	}
	return obj
}

// Await waits until an object is as a test wants it; nil is an object that is gone.
func (w *World) Await(res kind.Resource, name, what string, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	w.TB.Helper()
	ctx, cancel := context.WithTimeout(w.TB.Context(), Patience)
	defer cancel()
	var last *unstructured.Unstructured
	for ctx.Err() == nil {
		list, err := w.In(res).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			break
		}
		last = nil
		if len(list.Items) > 0 {
			last = &list.Items[0]
		}
		if is(last) {
			return last
		}
		stream, err := w.In(res).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			break
		}
		for e := range stream.ResultChan() {
			obj, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				break
			}
			if last = obj; e.Type == watch.Deleted {
				last = nil
			}
			if is(last) {
				stream.Stop()
				return last
			}
		}
		stream.Stop()
	}
	w.TB.Fatalf("waited in vain until %s %q %s; it is now:\n%v", res.Kind, name, what, show(last))
	return nil
}

func show(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "gone"
	}
	return fmt.Sprint(obj.Object["status"], obj.Object["spec"])
}

// Gone tells of an object that is not there; for [World.Await].
func Gone(obj *unstructured.Unstructured) bool { return obj == nil }

// Event is the event of a source about an object of the world that has changed.
func (w *World) Event(res kind.Resource, name string) cloudevents.Event {
	ns := w.NS
	if !res.Namespaced {
		ns = ""
	}
	return Changed("update", res.APIVersion(), res.Kind, ns, name)
}

// Changed is the event of a source about an object: what is add, update or delete.
func Changed(what, apiVersion, kindName, ns, name string) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID("test")
	ce.SetSource("https://test")
	ce.SetTime(time.Now())
	ce.SetType("dev.knative.apiserver.ref." + what)
	ce.SetExtension("apiversion", apiVersion)
	ce.SetExtension("kind", kindName)
	if ns != "" {
		ce.SetExtension("namespace", ns)
	}
	ce.SetExtension("name", name)
	return ce
}

// Cluster is the adapter's event that a remote cluster came or went.
func Cluster(eventType, cluster string) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID("test")
	ce.SetSource("https://test")
	ce.SetType(eventType)
	ce.SetExtension(event.ExtCluster, cluster)
	return ce
}

// Parse reads the one object of a manifest.
func Parse(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	objs, err := kube.Decode(strings.NewReader(text))
	if err != nil || len(objs) != 1 {
		tb.Fatalf("%d objects, %v, in %s", len(objs), err, text)
	}
	return objs[0]
}

// Condition is "status reason" of a condition of an object.
func (w *World) Condition(res kind.Resource, name, conditionType string) string {
	w.TB.Helper()
	is, reason, _ := Condition(w.Must(res, name), conditionType)
	return strings.TrimSpace(is + " " + reason)
}

// Condition is a condition of an object, empty if it has none of that type.
func Condition(obj *unstructured.Unstructured, conditionType string) (is, reason, message string) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		c, ok := item.(map[string]any)
		if !ok || c["type"] != conditionType {
			continue
		}
		is, _ = c["status"].(string)
		reason, _ = c["reason"].(string)
		message, _ = c["message"].(string)
	}
	return is, reason, message
}

// Text is a value of an object as text, empty if there is none.
func Text(obj *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// Bytes is a part of an object as the server holds it.
func Bytes(tb testing.TB, obj *unstructured.Unstructured, path ...string) string {
	tb.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if err != nil {
		tb.Fatal(err)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

// File reads a file of the repository.
func File(tb testing.TB, path string) string {
	tb.Helper()
	root, err := build.Root(".")
	if err != nil {
		tb.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}
