package subjects

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stack"
)

//go:embed *.yaml
var files embed.FS

// manager is the field manager of what is put.
const manager = "person"

// Subject is what a function is tried with.
type Subject struct {
	// Function is its name.
	Function string `json:"-"`
	// Event is about the object that the function reconciles.
	Event Key `json:"event"`
	// Single says that there can be one alone.
	Single bool `json:"single"`
	// Most is how many of it make sense side by side; 0 for any number.
	Most int `json:"most"`
	// Files, of the repository, and Platform are there before everything.
	Files    []string         `json:"files"`
	Platform []map[string]any `json:"platform"`
	// Each are the objects of one subject, Change merge patches of some of them.
	Each   []map[string]any `json:"each"`
	Change []map[string]any `json:"change"`
	// Gone are objects that others remove with the subject: their keys alone.
	Gone []map[string]any `json:"gone"`
}

// Key names an object.
type Key struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// Functions are those that have a subject: all.
func Functions() []string {
	var names []string
	for _, spec := range slipway.Specs() {
		names = append(names, spec.Name)
	}
	return names
}

// Read is the subject of a function.
func Read(function string) (*Subject, error) {
	raw, err := files.ReadFile(function + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot find a subject of function %q, there are %s: %w", function, strings.Join(Functions(), ", "), err)
	}
	s := &Subject{Function: function}
	if err := yaml.UnmarshalStrict(raw, s); err != nil {
		return nil, fmt.Errorf("cannot read the subject of function %q: %w", function, err)
	}
	return s, nil
}

// Ground are the objects that have to be there before the first.
func (s *Subject) Ground(root string) ([]*unstructured.Unstructured, error) {
	var paths []string
	for _, file := range s.Files {
		paths = append(paths, filepath.Join(root, file))
	}
	objects, err := kube.ReadFiles(paths...)
	if err != nil {
		return nil, err
	}
	// A sample's own objects are none of ours, but its template is.
	objects = slices.DeleteFunc(objects, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == s.Event.Kind })
	for _, obj := range objects {
		if obj.GetKind() == "WorkloadTemplate" {
			obj.SetNamespace(s.space())
		}
	}
	space := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": s.space()}}
	return slices.Concat(s.filled([]map[string]any{space}, "", ""), objects, s.filled(s.Platform, "", "")), nil
}

// Objects are those of one subject, in the order in which they are made.
func (s *Subject) Objects(name, kubeconfig string) []*unstructured.Unstructured {
	return s.filled(s.Each, name, kubeconfig)
}

// Changes are merge patches of some of them.
func (s *Subject) Changes(name string) []*unstructured.Unstructured {
	return s.filled(s.Change, name, "")
}

// GoneToo are the objects that others remove with the subject.
func (s *Subject) GoneToo(name string) []*unstructured.Unstructured {
	return s.filled(s.Gone, name, "")
}

// About is the event's key of a subject.
func (s *Subject) About(name string) Key {
	in := strings.NewReplacer("NAME", name, "SPACE", s.space()).Replace
	return Key{APIVersion: s.Event.APIVersion, Kind: s.Event.Kind, Namespace: in(s.Event.Namespace), Name: in(s.Event.Name)}
}

// space is the namespace of a function's subjects: what the others have made must not
// stand beside them.
func (s *Subject) space() string { return "try-" + s.Function }

func (s *Subject) filled(all []map[string]any, name, kubeconfig string) []*unstructured.Unstructured {
	replacer := strings.NewReplacer("NAME", name, "SPACE", s.space(), "KUBECONFIG", kubeconfig)
	var objects []*unstructured.Unstructured
	for _, fields := range all {
		content, _ := replaced(fields, replacer).(map[string]any)
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects
}

// replaced is a value of JSON with every string in it changed.
func replaced(value any, replacer *strings.Replacer) any {
	switch v := value.(type) {
	case string:
		return replacer.Replace(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = replaced(child, replacer)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = replaced(child, replacer)
		}
		return out
	}
	return value
}

// Put makes the objects of a subject, statuses too, and returns them as they are.
func Put(ctx context.Context, client dynamic.Interface, objects ...*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var made []*unstructured.Unstructured
	for _, obj := range objects {
		owned(obj, made)
		live, err := put(ctx, client, obj)
		if err != nil {
			return made, fmt.Errorf("cannot make %s %q: %w", obj.GetKind(), obj.GetName(), err)
		}
		made = append(made, live)
	}
	return made, nil
}

// owned fills in the UIDs of owners that have just been made.
func owned(obj *unstructured.Unstructured, made []*unstructured.Unstructured) {
	owners := obj.GetOwnerReferences()
	for i := range owners {
		for _, owner := range made {
			if owners[i].UID == "OWNER" && owner.GetName() == owners[i].Name && owner.GetKind() == owners[i].Kind && owner.GetAPIVersion() == owners[i].APIVersion {
				owners[i].UID = owner.GetUID()
			}
		}
	}
	if len(owners) > 0 {
		obj.SetOwnerReferences(owners)
	}
}

func put(ctx context.Context, client dynamic.Interface, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	bare := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
	delete(bare.Object, "status")
	live, err := In(client, obj).Apply(ctx, obj.GetName(), bare, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil || obj.Object["status"] == nil {
		return live, err
	}
	return live, patch(ctx, client, obj, map[string]any{"status": obj.Object["status"]})
}

// Patch changes objects as merge patches say.
func Patch(ctx context.Context, client dynamic.Interface, patches ...*unstructured.Unstructured) error {
	for _, obj := range patches {
		fields := maps.Clone(obj.Object)
		status := fields["status"]
		delete(fields, "status")
		if err := patch(ctx, client, obj, fields); err != nil {
			return fmt.Errorf("cannot change %s %q: %w", obj.GetKind(), obj.GetName(), err)
		}
		if status == nil {
			continue
		}
		if err := patch(ctx, client, obj, map[string]any{"status": status}); err != nil {
			return fmt.Errorf("cannot change the status of %s %q: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

func patch(ctx context.Context, client dynamic.Interface, obj *unstructured.Unstructured, fields map[string]any) error {
	fields["apiVersion"], fields["kind"] = obj.GetAPIVersion(), obj.GetKind()
	raw, err := (&unstructured.Unstructured{Object: fields}).MarshalJSON()
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: manager}
	if fields["status"] != nil {
		_, err := In(client, obj).Patch(ctx, obj.GetName(), types.MergePatchType, raw, options, "status")
		if !apierrors.IsNotFound(err) {
			return err
		} // else the status is no resource of its own, or there is no object
	}
	_, err = In(client, obj).Patch(ctx, obj.GetName(), types.MergePatchType, raw, options)
	return err
}

// In is the client for an object's resource.
func In(client dynamic.Interface, obj *unstructured.Unstructured) dynamic.ResourceInterface {
	gvk := obj.GroupVersionKind()
	gvr := gvk.GroupVersion().WithResource(cmp.Or(plurals[gvk.Kind], stack.ResourceOf(gvk.Group, gvk.Kind)))
	if ns := obj.GetNamespace(); ns != "" {
		return client.Resource(gvr).Namespace(ns)
	}
	return client.Resource(gvr)
}

// plurals are those that are not regular.
var plurals = map[string]string{"HelmRepository": "helmrepositories", "GitRepository": "gitrepositories"}
