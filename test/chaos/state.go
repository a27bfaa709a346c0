package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shared/kind"
)

// writing are the verbs that make a kind a function's work.
var writing = []string{"create", "patch", "update", "delete"}

// looked are the kinds that functions reconcile or write. Kubernetes Events tell of the
// way, not of the end.
func looked() []kind.Resource {
	var all []kind.Resource
	add := func(res kind.Resource) {
		known := slices.ContainsFunc(all, func(other kind.Resource) bool { return other.Group == res.Group && other.Plural == res.Plural })
		if !known && res.Plural != kind.Events.Plural {
			all = append(all, res)
		}
	}
	for _, spec := range slipway.Specs() {
		add(spec.Reconciles)
		for _, grant := range slices.Concat(spec.Grants, spec.TargetGrants) {
			if grant.Subresource == "" && slices.ContainsFunc(grant.Verbs, func(verb string) bool { return slices.Contains(writing, verb) }) {
				add(grant.Resource)
			}
		}
	}
	return all
}

// foreign are namespaces whose content is none of the functions' doing.
var foreign = regexp.MustCompile(`^(kube-.*|knative-.*)$`)

// servers are objects of the API server's own.
var servers = []string{"kube-root-ca.crt", "kubernetes"}

// everything are all objects of those kinds, by "Kind namespace/name".
func everything(ctx context.Context, client dynamic.Interface) (map[string]*unstructured.Unstructured, error) {
	all := map[string]*unstructured.Unstructured{}
	for _, res := range looked() {
		items, err := list(ctx, client, res)
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", res, err)
		}
		for i := range items {
			obj := &items[i]
			if !foreign.MatchString(obj.GetNamespace()) && !slices.Contains(servers, obj.GetName()) {
				all[strings.TrimSpace(obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName())] = obj
			}
		}
	}
	return all, nil
}

// list reads a kind in the first version that is served.
func list(ctx context.Context, client dynamic.Interface, res kind.Resource) ([]unstructured.Unstructured, error) {
	for _, version := range res.Versions {
		gvr := res.GVR()
		gvr.Version = version
		items, err := client.Resource(gvr).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return items.Items, nil
	}
	return nil, nil
}

func versions(objects map[string]*unstructured.Unstructured) map[string]string {
	all := map[string]string{}
	for key, obj := range objects {
		all[key] = obj.GetResourceVersion()
	}
	return all
}

// What two worlds may differ in, and no more:
//
//   - uid, resourceVersion, generation, managedFields and times are given by the server;
//     a UID that stands elsewhere becomes the name of what it belongs to, as long as that
//     is there.
//   - observedGeneration and desiredGeneration count changes, of which a retry may make
//     more: only whether it is the present one counts. A virtual machine's instance keeps
//     the number in an annotation, and its revision in its name.
//   - Conditions are a map by their type, and finalizers and owners are sets: the order in
//     which several writers came to them is history.
//   - An Organization that is Ready keeps the generation at which it became so, whatever
//     comes after (organization-onboarder leaves it as upstream does): whether it changed
//     before or after that is history.
//   - Addresses, of hardware too, are given out by simulators, and by the server to
//     Services, at random or in order of arrival.
//   - The ports of processes and API servers differ; so do certificates and tokens. Node
//     ports are given out at random: one that stands elsewhere becomes the port that it is
//     of, so that one that is wrong still differs.
//   - baseline-applier's record says what it wrote when, and on which resource versions: of
//     that, what object an asset is and how it ended counts.
var (
	timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	uids       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	addresses  = regexp.MustCompile(`\b(10|127)\.\d+\.\d+\.\d+(:\d+)?\b|\bfd10:[0-9a-f:]+|\b([0-9a-f]{2}:){5}[0-9a-f]{2}\b`)
	recorded   = regexp.MustCompile(`"(object|outcome|message)":"(?:[^"\\]|\\.)*"`)
	revisions  = regexp.MustCompile(`^(revision-start-vm-.+-)\d+$`)
	started    = "kubevirt.io/vm-generation"
	counters   = []string{"observedGeneration", "desiredGeneration"}
	given      = []string{"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "deletionGracePeriodSeconds", "selfLink"}
)

// normal are objects as text, without what may differ.
func normal(objects map[string]*unstructured.Unstructured) map[string]string {
	var pairs []string
	for key, obj := range objects {
		if uid := string(obj.GetUID()); uid != "" {
			pairs = append(pairs, uid, "UID of "+key)
		}
	}
	names, ports := strings.NewReplacer(pairs...), nodePorts(objects)
	all := map[string]string{}
	for key, obj := range objects {
		plain := bare(obj, ports)
		value := each(plain.Object, obj.GetGeneration(), func(s string) string {
			s = uids.ReplaceAllString(names.Replace(s), "UID")
			s = revisions.ReplaceAllString(s, "${1}GENERATION")
			return addresses.ReplaceAllString(timestamps.ReplaceAllString(s, "TIME"), "ADDRESS")
		})
		raw, err := yaml.Marshal(value)
		if err != nil {
			raw = []byte(err.Error())
		}
		all[key] = string(raw)
	}
	return all
}

// nodePorts are what the server gave to Services, each with whose it is.
func nodePorts(objects map[string]*unstructured.Unstructured) map[int64]string {
	all := map[int64]string{}
	for key, obj := range objects {
		if obj.GetKind() != "Service" {
			continue
		}
		ports, _, _ := unstructured.NestedSlice(obj.Object, "spec", "ports")
		for _, port := range ports {
			fields, _ := port.(map[string]any)
			if number, ok := fields["nodePort"].(int64); ok {
				all[number] = fmt.Sprintf("node port of %s %v", key, fields["port"])
			}
		}
	}
	return all
}

// bare is an object without what only the server or a simulator decides.
func bare(obj *unstructured.Unstructured, nodePorts map[int64]string) *unstructured.Unstructured {
	plain := obj.DeepCopy()
	for _, field := range given {
		unstructured.RemoveNestedField(plain.Object, "metadata", field)
	}
	inOrder(plain)
	switch {
	case obj.GetKind() == "Organization":
		undated(plain)
	case obj.GetKind() == "VirtualMachineInstance":
		unstructured.RemoveNestedField(plain.Object, "metadata", "annotations", started)
	case obj.GetKind() == "Secret":
		delete(plain.Object, "data")
	case obj.GetKind() == "ConfigMap" && obj.GetName() == "baseline-applier":
		data, _, _ := unstructured.NestedStringMap(plain.Object, "data")
		for name, text := range data {
			data[name] = strings.Join(recorded.FindAllString(text, -1), " ")
		}
		_ = unstructured.SetNestedStringMap(plain.Object, data, "data")
	case obj.GetKind() == "Service":
		for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			unstructured.RemoveNestedField(plain.Object, "spec", field)
		}
		ports, _, _ := unstructured.NestedSlice(plain.Object, "spec", "ports")
		for _, port := range ports {
			if fields, ok := port.(map[string]any); ok {
				delete(fields, "nodePort")
				if number, ok := fields["targetPort"].(int64); ok && nodePorts[number] != "" {
					fields["targetPort"] = nodePorts[number]
				}
			}
		}
		if ports != nil {
			_ = unstructured.SetNestedSlice(plain.Object, ports, "spec", "ports")
		}
	}
	return plain
}

// inOrder sorts what has no order.
func inOrder(obj *unstructured.Unstructured) {
	conditions, found, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if found && err == nil {
		slices.SortStableFunc(conditions, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
		_ = unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions")
	}
	if finalizers := obj.GetFinalizers(); len(finalizers) > 1 {
		obj.SetFinalizers(slices.Sorted(slices.Values(finalizers)))
	}
	if owners := obj.GetOwnerReferences(); len(owners) > 1 {
		slices.SortFunc(owners, func(a, b metav1.OwnerReference) int {
			return strings.Compare(a.APIVersion+a.Kind+a.Name, b.APIVersion+b.Kind+b.Name)
		})
		obj.SetOwnerReferences(owners)
	}
}

// undated takes the generation off the condition Ready.
func undated(obj *unstructured.Unstructured) {
	conditions, found, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if !found || err != nil {
		return
	}
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && typeOf(condition) == "Ready" {
			delete(fields, "observedGeneration")
		}
	}
	_ = unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions")
}

// typeOf is what a condition is about.
func typeOf(condition any) string {
	fields, _ := condition.(map[string]any)
	name, _ := fields["type"].(string)
	return name
}

// each is a value with every string in it changed, and generations that were observed
// judged.
func each(value any, generation int64, change func(string) string) any {
	switch v := value.(type) {
	case string:
		return change(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if n, ok := child.(int64); ok && slices.Contains(counters, key) {
				out[key] = map[bool]string{true: "present", false: "old"}[n == generation]
				continue
			}
			if key == "resourceVersion" {
				continue
			}
			out[change(key)] = each(child, generation, change)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = each(child, generation, change)
		}
		return out
	}
	return value
}

// differing are the keys that one side has not, or otherwise.
func differing(a, b map[string]string) []string {
	keys := map[string]bool{}
	for key := range maps.Keys(a) {
		keys[key] = true
	}
	for key := range maps.Keys(b) {
		keys[key] = true
	}
	maps.DeleteFunc(keys, func(key string, _ bool) bool {
		left, inA := a[key]
		right, inB := b[key]
		return inA == inB && left == right
	})
	return slices.Sorted(maps.Keys(keys))
}

// lines are those that one text has and the other has not.
func lines(a, b string) string {
	var out strings.Builder
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for _, line := range left {
		if !slices.Contains(right, line) {
			out.WriteString("- " + line + "\n")
		}
	}
	for _, line := range right {
		if !slices.Contains(left, line) {
			out.WriteString("+ " + line + "\n")
		}
	}
	if out.Len() == 0 {
		out.WriteString("  the same lines in another order: in peace\n" + a + "  under faults\n" + b)
	}
	return out.String()
}

// shown is how many differences are shown in full.
const shown = 40

// compare says what two worlds differ in; that there is something is an error.
func compare(out io.Writer, script *script, calm, stormy *world) error {
	different := differing(calm.objects, stormy.objects)
	for i, key := range different {
		if i == shown {
			_, _ = fmt.Fprintf(out, "and %d more: %s\n", len(different)-shown, strings.Join(different[shown:], ", "))
			break
		}
		_, inCalm := calm.objects[key]
		_, inStormy := stormy.objects[key]
		switch {
		case !inCalm:
			_, _ = fmt.Fprintf(out, "%s%s is there only under faults:\n%s", key, script.about(key), stormy.objects[key])
		case !inStormy:
			_, _ = fmt.Fprintf(out, "%s%s is there only in peace:\n%s", key, script.about(key), calm.objects[key])
		default:
			_, _ = fmt.Fprintf(out, "%s%s differs (-in peace +under faults):\n%s", key, script.about(key), lines(calm.objects[key], stormy.objects[key]))
		}
	}
	if len(different)+len(calm.late)+len(stormy.late) > 0 {
		return fmt.Errorf("%d objects differ; a second resync changed %d in peace and %d under faults", len(different), len(calm.late), len(stormy.late))
	}
	_, _ = fmt.Fprintf(out, "both worlds are the same: %d objects\n", len(calm.objects))
	return nil
}
