package decide

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

// Bounds of a user's patch.
const (
	maxPatch      = 256 << 10
	maxOperations = 100
	maxPatched    = 1 << 20
	// maxKept is how long a patch may be to be kept for the case that the next one
	// cannot be used.
	maxKept = 32 << 10
)

// ErrRefused marks a patch that may not be, whatever it would do: the unpatched
// baseline stays in force.
var ErrRefused = errors.New("the patch is refused")

// sensitive are the kinds that no patch may reach, by group and kind.
var sensitive = map[string]bool{
	"/Secret": true, "/ServiceAccount": true,
	"rbac.authorization.k8s.io/ClusterRole": true, "rbac.authorization.k8s.io/ClusterRoleBinding": true,
	"rbac.authorization.k8s.io/Role": true, "rbac.authorization.k8s.io/RoleBinding": true,
	"policy/PodSecurityPolicy": true, "extensions/PodSecurityPolicy": true,
	"security.openshift.io/SecurityContextConstraints":            true,
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration": true,
	"admissionregistration.k8s.io/MutatingWebhookConfiguration":   true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy":      true,
	"admissionregistration.k8s.io/MutatingAdmissionPolicy":        true,
}

// nodeKinds are those whose change restarts nodes.
var nodeKinds = []string{"machineconfiguration.openshift.io/MachineConfig", "machineconfiguration.openshift.io/KubeletConfig"}

// forbidden are the pointers that an operation may neither be nor lie under.
var forbidden = [][]string{
	{"apiVersion"},
	{"kind"},
	{"status"},
	{"metadata", "name"},
	{"metadata", "namespace"},
	{"metadata", "managedFields"},
	{"metadata", "finalizers"},
	{"metadata", "ownerReferences"},
	{"metadata", "uid"},
	{"metadata", "resourceVersion"},
	{"metadata", "generateName"},
	{"metadata", "deletionTimestamp"},
	{"metadata", "deletionGracePeriodSeconds"},
	{"metadata", "creationTimestamp"},
	{"metadata", "generation"},
	{"metadata", "selfLink"},
}

// Patched is an object after a user's patch, and how many operations that had. The
// object itself stays as it is. An error that is ErrRefused says that the patch may
// not be; any other that it cannot be read or does not fit.
func Patched(obj *unstructured.Unstructured, text string, nodeKindsToo bool) (*unstructured.Unstructured, int, error) {
	if err := patchable(obj, nodeKindsToo); err != nil {
		return nil, 0, err
	}
	if len(text) > maxPatch {
		return nil, 0, fmt.Errorf("cannot use the patch: it has %d bytes, %d are allowed", len(text), maxPatch)
	}
	patch, merge, err := decodePatch(text)
	if err != nil {
		return nil, 0, err
	}
	document := obj.DeepCopy()
	// Operations on /metadata/annotations/x and /metadata/labels/x work on objects
	// that have none.
	for _, field := range []string{"annotations", "labels"} {
		if _, found, _ := unstructured.NestedFieldNoCopy(document.Object, "metadata", field); !found {
			_ = unstructured.SetNestedMap(document.Object, map[string]any{}, "metadata", field)
		}
	}
	raw, err := json.Marshal(document.Object)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot encode %s: %w", obj.GetName(), err)
	}
	n := len(patch)
	if merge != nil {
		n = 1
		if raw, err = jsonpatch.MergePatch(raw, merge); err != nil {
			return nil, 0, fmt.Errorf("cannot apply the merge patch: %w", err)
		}
	}
	if raw, err = applied(raw, patch); err != nil {
		return nil, 0, err
	}
	result, err := decodeObject(raw)
	if err != nil {
		return nil, 0, err
	}
	tidy(result)
	return result, n, sameIdentity(obj, result, nodeKindsToo)
}

// patchable refuses patches on what is too sensitive for them.
func patchable(obj *unstructured.Unstructured, nodeKindsToo bool) error {
	gvk := obj.GroupVersionKind()
	name := gvk.Group + "/" + gvk.Kind
	switch {
	case sensitive[name]:
		return fmt.Errorf("%w: %s is a sensitive kind", ErrRefused, gvk.Kind)
	case slices.Contains(nodeKinds, name) && !nodeKindsToo:
		return fmt.Errorf("%w: %s is a sensitive kind here, BASELINE_PATCH_NODE_KINDS is false", ErrRefused, gvk.Kind)
	}
	return nil
}

// decodePatch reads a JSON patch, or an object as a merge patch, and checks what it
// wants to reach.
func decodePatch(text string) (jsonpatch.Patch, []byte, error) {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") {
		merge, err := decodeMerge(trimmed)
		return nil, merge, err
	}
	patch, err := jsonpatch.DecodePatch([]byte(trimmed))
	if err != nil || patch == nil {
		return nil, nil, fmt.Errorf("cannot read the patch: write a JSON array of operations: %w", cmpError(err))
	}
	if len(patch) > maxOperations {
		return nil, nil, fmt.Errorf("cannot use the patch: it has %d operations, %d are allowed", len(patch), maxOperations)
	}
	for i, op := range patch {
		if err := checkOperation(op); err != nil {
			return nil, nil, fmt.Errorf("operation %d: %w", i+1, err)
		}
	}
	return patch, nil, nil
}

func cmpError(err error) error {
	if err == nil {
		return errors.New("it is null")
	}
	return err
}

func decodeMerge(text string) ([]byte, error) {
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return nil, fmt.Errorf("cannot read the patch: %w", err)
	}
	for _, path := range forbidden {
		if _, found, err := unstructured.NestedFieldNoCopy(fields, path...); found || err != nil {
			return nil, fmt.Errorf("%w: /%s is forbidden", ErrRefused, strings.Join(path, "/"))
		}
	}
	if metadata, found := fields["metadata"]; found {
		if _, ok := metadata.(map[string]any); !ok {
			return nil, fmt.Errorf("%w: /metadata as a whole is forbidden", ErrRefused)
		}
	}
	return []byte(text), nil
}

func checkOperation(op jsonpatch.Operation) error {
	verb := op.Kind()
	if !slices.Contains([]string{"add", "remove", "replace", "move", "copy", "test"}, verb) {
		return fmt.Errorf("cannot use the operation %q: use add, remove, replace, move, copy or test", verb)
	}
	path, err := op.Path()
	if err != nil {
		return fmt.Errorf("cannot read its path: %w", err)
	}
	if err := checkPointer(path); err != nil {
		return err
	}
	if verb != "move" && verb != "copy" {
		return nil
	}
	from, err := op.From()
	if err != nil {
		return fmt.Errorf("cannot read its from: %w", err)
	}
	return checkPointer(from)
}

// checkPointer refuses what leads out of the object's values.
func checkPointer(pointer string) error {
	tokens, err := Tokens(pointer)
	if err != nil {
		if pointer == "" {
			return fmt.Errorf("%w: the whole document is forbidden", ErrRefused)
		}
		return err
	}
	if len(tokens) == 1 && tokens[0] == "metadata" {
		return fmt.Errorf("%w: /metadata as a whole is forbidden", ErrRefused)
	}
	for _, path := range forbidden {
		if len(tokens) >= len(path) && slices.Equal(tokens[:len(path)], path) {
			return fmt.Errorf("%w: /%s is forbidden", ErrRefused, strings.Join(path, "/"))
		}
	}
	for _, token := range tokens {
		if len(token) > 1 && token[0] == '-' && strings.Trim(token[1:], "0123456789") == "" {
			return fmt.Errorf("cannot use pointer %q: an index may not be negative", pointer)
		}
	}
	return nil
}

// applied carries out the operations one after the other, so that a copy cannot grow
// the document beyond its bound, and test can be held to RFC 6902: a path that is not
// there fails it, whatever value it compares with.
func applied(raw []byte, patch jsonpatch.Patch) ([]byte, error) {
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	for i, op := range patch {
		if op.Kind() == "test" {
			path, _ := op.Path()
			if !exists(raw, path) {
				return nil, fmt.Errorf("cannot apply operation %d: there is nothing to test at %s", i+1, path)
			}
		}
		next, err := jsonpatch.Patch{op}.ApplyWithOptions(raw, options)
		if err != nil {
			return nil, fmt.Errorf("cannot apply operation %d: %w", i+1, err)
		}
		if len(next) > maxPatched {
			return nil, fmt.Errorf("cannot apply operation %d: the object would have %d bytes, %d are allowed", i+1, len(next), maxPatched)
		}
		raw = next
	}
	return raw, nil
}

func exists(raw []byte, pointer string) bool {
	tokens, err := Tokens(pointer)
	if err != nil {
		return false
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return false
	}
	for _, token := range tokens {
		switch v := value.(type) {
		case map[string]any:
			child, ok := v[token]
			if !ok {
				return false
			}
			value = child
		case []any:
			i, ok := index(token)
			if !ok || i >= len(v) {
				return false
			}
			value = v[i]
		default:
			return false
		}
	}
	return true
}

func decodeObject(raw []byte) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &obj.Object); err != nil {
		return nil, fmt.Errorf("cannot read the patched object: %w", err)
	}
	if obj.Object == nil {
		return nil, fmt.Errorf("%w: nothing is left of the object", ErrRefused)
	}
	return obj, nil
}

// sameIdentity refuses a result that is another object, or reaches further.
func sameIdentity(before, after *unstructured.Unstructured, nodeKindsToo bool) error {
	metadata, ok := after.Object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("%w: it leaves no metadata", ErrRefused)
	}
	for _, field := range []string{"labels", "annotations"} {
		values, found := metadata[field]
		if !found {
			continue
		}
		fields, ok := values.(map[string]any)
		if !ok {
			return fmt.Errorf("cannot use the patch: metadata.%s is no map then", field)
		}
		for key, value := range fields {
			if _, ok := value.(string); !ok {
				return fmt.Errorf("cannot use the patch: metadata.%s.%s is no text then", field, key)
			}
		}
	}
	for field := range metadata {
		if !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, field) {
			return fmt.Errorf("%w: /metadata/%s is forbidden", ErrRefused, field)
		}
	}
	if _, found := after.Object["status"]; found {
		return fmt.Errorf("%w: /status is forbidden", ErrRefused)
	}
	if before.GroupVersionKind() != after.GroupVersionKind() || before.GetName() != after.GetName() || before.GetNamespace() != after.GetNamespace() {
		return fmt.Errorf("%w: it would be another object, which is forbidden", ErrRefused)
	}
	return patchable(after, nodeKindsToo)
}

// tidy takes out what no apply may own: the annotations that steer the baseline, and
// maps that have become empty by nobody's wish.
func tidy(obj *unstructured.Unstructured) {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, key := range []string{AnnotationPatch, AnnotationIgnore, AnnotationMode, AnnotationPaused, AnnotationProblem} {
		delete(annotations, key)
	}
	labels, _ := metadata["labels"].(map[string]any)
	for field, values := range map[string]map[string]any{"annotations": annotations, "labels": labels} {
		if _, isMap := metadata[field].(map[string]any); isMap && len(values) == 0 {
			delete(metadata, field)
		}
	}
}

// label marks an object as one of the baseline.
func label(obj *unstructured.Unstructured) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[catalog.LabelManaged] = catalog.Manager
	obj.SetLabels(labels)
}
