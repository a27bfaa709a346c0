package decide

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

const (
	address = "https://factory.example.org/image/a/v1.12.1/nocloud-amd64.raw.xz"
	other   = "https://factory.example.org/image/b/v1.12.1/nocloud-amd64.raw.xz"
	// hashOfAddress ends the name of an image whose plain name is taken.
	hashOfAddress = "-04bec3df"
	owner         = `ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Release, name: talos, uid: release-uid}]`
	foreign       = `ownerReferences: [{apiVersion: v1, kind: Secret, name: other, uid: other-uid}]`
	label         = `labels: {dockyards.io/release-name: talos}`
	madeByUs      = `managedFields: [{manager: ` + Manager + `, operation: Update, apiVersion: cdi.kubevirt.io/v1beta1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:source": {}}}}]`
	immediate     = `cdi.kubevirt.io/storage.bind.immediate.requested: ""`
)

// world is what there is, by kind and name, as a person writes it.
type world []string

func releaseOf(version, url string) string {
	return fmt.Sprintf(`{kind: Release, metadata: {name: talos, uid: release-uid, generation: 1}, spec: {type: TalosInstaller}, status: {latestVersion: %q, latestURL: %q}}`, version, url)
}

// image is a DataVolume with further metadata.
func image(name, url, phase string, metadata ...string) string {
	return fmt.Sprintf(`{kind: DataVolume, metadata: {name: %s, %s}, spec: {source: {http: {url: %q}}}, status: {phase: %s}}`,
		name, strings.Join(metadata, ", "), url, phase)
}

// marked is an image as the function leaves it.
func marked(name, url, phase string, annotations ...string) string {
	all := strings.Join(append([]string{immediate}, annotations...), ", ")
	return image(name, url, phase, owner, label, "annotations: {"+all+"}")
}

func source(image string, metadata ...string) string {
	return fmt.Sprintf(`{kind: DataSource, metadata: {name: talos, %s}, spec: {source: {pvc: {name: %s, namespace: images}}}}`, strings.Join(metadata, ", "), image)
}

const (
	role    = `{kind: Role, metadata: {name: talos, ` + owner + `}, rules: [{apiGroups: [cdi.kubevirt.io], resources: [datavolumes/source], verbs: [create]}]}`
	binding = `{kind: RoleBinding, metadata: {name: talos, ` + owner + `}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: talos},
		subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:acme"}]}`
	pool = `{kind: NodePool, metadata: {name: a-worker, namespace: acme}}`
)

var resources = []kind.Resource{
	dockyards.Releases, dockyards.DataVolumes, dockyards.DataSources, dockyards.Roles, dockyards.RoleBindings, dockyards.NodePools,
}

func resourceOf(t *testing.T, kindName string) kind.Resource {
	t.Helper()
	i := slices.IndexFunc(resources, func(r kind.Resource) bool { return r.Kind == kindName })
	if i < 0 {
		t.Fatalf("no resource is of kind %q", kindName)
	}
	return resources[i]
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte("{apiVersion: none, " + text[1:]))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	obj.SetAPIVersion(resourceOf(t, obj.GetKind()).APIVersion())
	if obj.GetNamespace() == "" {
		obj.SetNamespace("images")
	}
	return obj
}

// input reads the world as gather does.
func (w world) input(t *testing.T) Input {
	t.Helper()
	in := Input{Settings: dockyards.DefaultSettings(), Served: true}
	for _, text := range w {
		obj := parse(t, text)
		at := map[string]**unstructured.Unstructured{
			"Release": &in.Release, "DataSource": &in.DataSource, "Role": &in.Role, "RoleBinding": &in.RoleBinding,
		}[obj.GetKind()]
		switch {
		case obj.GetKind() == "DataVolume" && obj.GetNamespace() == "images":
			in.Images = append(in.Images, *obj)
		case obj.GetKind() == "NodePool":
			in.NodePools = append(in.NodePools, *obj)
		case at != nil && obj.GetNamespace() == "images":
			*at = obj
		}
	}
	return in
}

// known answers what a decision may ask.
func (w world) known(t *testing.T) plan.Answers {
	t.Helper()
	known := plan.Answers{}
	for _, need := range []plan.Need{needSources, needVolumes} {
		var answer plan.Answer
		for _, text := range w {
			if obj := parse(t, text); obj.GetKind() == need.Resource.Kind {
				answer.Items = append(answer.Items, *obj)
			}
		}
		known[need.Key()] = answer
	}
	return known
}

// decided is what became of a world after a decision, the outcomes, and each write in
// short.
func decided(t *testing.T, in Input, known plan.Answers) (after Input, outcomes plan.Outcomes, writes []string) {
	t.Helper()
	d := Decide(time.Time{}, in, plan.Answers{})
	if len(d.Needs) > 0 {
		d = Decide(time.Time{}, in, known)
	}
	if len(d.Needs) > 0 {
		t.Fatalf("it asks for what it has been told: %v", d.Needs)
	}
	after = in
	after.Images = slices.Clone(in.Images)
	for _, stage := range d.Plan.Stages {
		for _, e := range stage.Entries {
			name := e.Name()
			writes = append(writes, fmt.Sprintf("%s %s %s", e.Verb, e.Resource.Kind, name[strings.Index(name, "/")+1:]))
			result := map[plan.Verb]plan.Result{plan.Create: plan.Created, plan.Patch: plan.Configured, plan.Delete: plan.Deleted}[e.Verb]
			outcomes = append(outcomes, plan.Outcome{Entry: e, Result: result, Object: e.Object})
			after = applied(after, e)
		}
	}
	return after, outcomes, writes
}

func applied(in Input, e plan.Entry) Input {
	switch e.Resource.Kind {
	case "DataVolume":
		in.Images = slices.DeleteFunc(in.Images, func(i unstructured.Unstructured) bool { return i.GetName() == e.Name()[len("images/"):] })
		if e.Object != nil {
			in.Images = append(in.Images, *e.Object)
		}
	case "DataSource":
		in.DataSource = e.Object
	case "Role":
		in.Role = e.Object
	case "RoleBinding":
		in.RoleBinding = e.Object
	}
	return in
}

// events are those of a conclusion, in short.
func events(c plan.Conclusion) []string {
	var list []string
	for _, e := range c.Events {
		list = append(list, e.Reason)
	}
	return list
}

func refused(message string) plan.Answer {
	return plan.Answer{Fault: &fault.Fault{Class: fault.Refused, Code: 403, Call: "list", Message: message}}
}
