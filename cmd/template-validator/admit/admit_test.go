package admit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/shared/render/worker"
)

var pool *worker.Pool

func TestMain(m *testing.M) {
	worker.Hook()
	pool = worker.New(2)
	code := m.Run()
	pool.Close()
	os.Exit(code)
}

const head = "package template\n#cluster: {metadata: {name: string, ...}, ...}\n#workload: {metadata: {name: string, ...}, spec: {input?: #Input, ...}, ...}\n"

// good is a template with an input.
const good = head + `#Input: {
	x!:    string
	num?:  int
	late:  string | *"y"
	open?: string
}
a: {apiVersion: "v1", kind: "ConfigMap", metadata: name: #workload.metadata.name, data: {x: #workload.spec.input.x, cluster: #cluster.metadata.name}}
`

func validator(templates map[string]string) Validator {
	return Validator{
		Render: pool.Render, Rules: render.DefaultRules(), Limits: Limits(), PublicNamespaces: []string{"public"},
		Template: func(_ context.Context, namespace, name string) (*unstructured.Unstructured, error) {
			source, found := templates[namespace+"/"+name]
			switch {
			case name == "unreadable":
				return nil, errors.New("dial tcp 10.0.0.1:443: no route")
			case !found:
				return nil, nil
			}
			return &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": name, "namespace": namespace}, "spec": map[string]any{"type": "dockyards.io/cue", "source": source},
			}}, nil
		},
		Cluster: func(_ context.Context, namespace, name string) (*unstructured.Unstructured, error) {
			if name != "demo" {
				return nil, nil
			}
			return render.StandIn(namespace, name), nil
		},
	}
}

func request(t *testing.T, operation admissionv1.Operation, kindName, object, old string) *admissionv1.AdmissionRequest {
	t.Helper()
	r := &admissionv1.AdmissionRequest{
		Operation: operation, Namespace: "org", Kind: metav1.GroupVersionKind{Group: "dockyards.io", Version: "v1alpha3", Kind: kindName},
	}
	for text, to := range map[string]*runtime.RawExtension{object: &r.Object, old: &r.OldObject} {
		if text == "" {
			continue
		}
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		to.Raw = raw
	}
	return r
}

func workload(ref, rest string) string {
	return fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: w, namespace: org, labels: {dockyards.io/cluster-name: demo}},
  spec: {provenience: User, targetNamespace: apps, workloadTemplateRef: %s%s}}`, ref, rest)
}

// told is an answer as text: each cause with its type and field, then the warnings.
func told(answer *admissionv1.AdmissionResponse) string {
	var lines []string
	if answer.Result != nil {
		if answer.Result.Details == nil {
			lines = append(lines, fmt.Sprint(answer.Result.Code, " ", answer.Result.Message))
		} else {
			for _, cause := range answer.Result.Details.Causes {
				lines = append(lines, fmt.Sprintf("%s %s: %s", cause.Type, cause.Field, cause.Message))
			}
		}
	}
	for _, warning := range answer.Warnings {
		lines = append(lines, "warning "+warning)
	}
	return strings.Join(lines, "\n")
}

func TestWorkloads(t *testing.T) {
	templates := map[string]string{
		"org/good": good, "public/good": good, "other/good": good, "org/broken": "package template\na: {\n", "org/bare": "package template\n#cluster: _\n",
		"org/fixed":   head + "#Input: _\na: 1 & 2\n",
		"org/noinput": "package template\n#cluster: _\n#workload: _\n",
		"org/late":    head + "#Input: {p: string}\na: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"x\", data: p: #workload.spec.input.p}\n",
		"org/status":  "package template\n#cluster: {status: {version: string, ...}, ...}\n#workload: _\na: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"x\", data: v: #cluster.status.version}\n",
		"org/open":    "package template\n#cluster: {...}\n#workload: _\na: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"x\", data: v: #cluster.status.version}\n",
		"org/foreign": head + "#Input: _\na: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: {name: \"x\", namespace: \"kube-system\"}}\n",
		"org/endless": "package template\nimport \"strings\"\n#cluster: _\n#workload: _\nx: strings.Repeat(strings.Repeat(\"0123456789\", 100000), 100000)\n",
	}
	ref := func(name string) string { return "{kind: WorkloadTemplate, name: " + name + "}" }
	cases := map[string]struct{ reason, object, old, want string }{
		"Good":          {"", workload(ref("good"), ", input: {x: a}"), "", ""},
		"NoReference":   {"nothing to check", `{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: w}, spec: {provenience: User, targetNamespace: a}}`, "", ""},
		"Public":        {"", workload("{kind: WorkloadTemplate, name: good, namespace: public}", ", input: {x: a}"), "", ""},
		"Other":         {"another tenant's template", workload("{kind: WorkloadTemplate, name: good, namespace: other}", ", input: {x: a}"), "", `FieldValueForbidden spec.workloadTemplateRef: templates of namespace "other" may not be used: use one of namespace org, public`},
		"OtherKind":     {"a hint", workload("{kind: Anything, name: good}", ", input: {x: a}"), "", `warning spec.workloadTemplateRef.kind is "Anything": the reference leads to a WorkloadTemplate whatever stands there`},
		"Immutable":     {"W1", workload(ref("noinput"), ""), workload(ref("good"), ", input: {x: a}"), "FieldValueForbidden spec.workloadTemplateRef: reference is immutable"},
		"Removed":       {"W1", `{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: w}, spec: {provenience: User, targetNamespace: a}}`, workload(ref("good"), ""), "FieldValueForbidden spec.workloadTemplateRef: reference is immutable"},
		"MovedAway":     {"W1b", workload("{kind: WorkloadTemplate, name: good, namespace: public}", ", input: {x: a}"), workload(ref("good"), ""), "FieldValueForbidden spec.workloadTemplateRef: reference is immutable"},
		"SaidOtherwise": {"the same namespace", workload("{kind: WorkloadTemplate, name: good, namespace: org}", ", input: {x: b}"), workload(ref("good"), ""), ""},
		"Absent":        {"W3", workload(ref("none"), ""), "", `FieldValueNotFound spec.workloadTemplateRef: Not found: "none"`},
		"Unreadable":    {"W2, without addresses", workload(ref("unreadable"), ""), "", "InternalError spec.workloadTemplateRef: the template cannot be read: no answer from the API server"},
		"NoInput":       {"W4", workload(ref("noinput"), ", input: {x: a}"), "", "FieldValueForbidden spec.input: input not supported on template"},
		"Required":      {"W5", workload(ref("good"), ""), "", "FieldValueForbidden spec.input: #Input.x: field is required but not present"},
		"NotAllowed":    {"W5", workload(ref("good"), ", input: {x: a, why: 1}"), "", "FieldValueForbidden spec.input: #Input.why: field not allowed"},
		"Mismatch":      {"W5", workload(ref("good"), ", input: {x: true}"), "", "FieldValueForbidden spec.input: #Input.x: conflicting values string and true (mismatched types string and bool)"},
		"Two":           {"W5, one cause each", workload(ref("good"), ", input: {x: true, num: b}"), "", "FieldValueForbidden spec.input: #Input.num: conflicting values int and \"b\" (mismatched types int and string)\nFieldValueForbidden spec.input: #Input.x: conflicting values string and true (mismatched types string and bool)"},
		"Broken":        {"W6", workload(ref("broken"), ", input: {x: a}"), "", "FieldValueInvalid spec.workloadTemplateRef: the template cannot be built: expected '}', found 'EOF' (template.cue:2:6)"},
		"Bare":          {"W6", workload(ref("bare"), ""), "", "FieldValueInvalid spec.workloadTemplateRef: the template declares no #cluster or no #workload"},
		"Late":          {"W7: it only fails when it is rendered", workload(ref("late"), ", input: {}"), "", "FieldValueInvalid spec.input: "},
		"StandIn":       {"W7: what is not known yet is no error", strings.Replace(workload(ref("status"), ""), "cluster-name: demo", "cluster-name: later", 1), "", "warning the Cluster does not exist yet"},
		"StandInOpen":   {"W7: the same, where the template declares nothing of it", strings.Replace(workload(ref("open"), ""), "cluster-name: demo", "cluster-name: later", 1), "", "warning the Cluster does not exist yet"},
		"StandInLate":   {"W7: the input is to blame whatever the Cluster is", strings.Replace(workload(ref("late"), ", input: {}"), "cluster-name: demo", "cluster-name: later", 1), "", "FieldValueInvalid spec.input: "},
		"Foreign":       {"W7: what the function would refuse", workload(ref("foreign"), ""), "", `FieldValueInvalid spec.workloadTemplateRef: ObjectNotAllowed: output "a", ConfigMap kube-system/x`},
		"Endless":       {"W8", workload(ref("endless"), ""), "", "FieldValueInvalid spec.input: rendering takes more than 256 MiB of memory"},
		"Deprecated":    {"a hint", workload(ref("good"), ", input: {x: a}, workloadTemplateInput: {z: 1}"), "", "warning ignoring deprecated field workloadTemplateInput"},
		"Unchanged":     {"old objects stay editable", workload(ref("none"), ""), strings.Replace(workload(ref("none"), ""), "name: w", "name: w, finalizers: [a/b]", 1), ""},
		"Going":         {"a finalizer can be removed", strings.Replace(workload(ref("none"), ", input: 5"), "name: w", `name: w, deletionTimestamp: "2026-01-01T00:00:00Z"`, 1), workload(ref("good"), ""), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			operation := admissionv1.Create
			if tc.old != "" {
				operation = admissionv1.Update
			}
			answer := validator(templates).Workload(t.Context(), request(t, operation, "Workload", tc.object, tc.old))
			if got := told(answer); !strings.HasPrefix(got, tc.want) || (tc.want == "" && got != "") {
				t.Errorf("%s\nit said\n%s\nwant\n%s", tc.reason, got, tc.want)
			}
			if !answer.Allowed && (answer.Result.Code != http.StatusUnprocessableEntity || answer.Result.Reason != metav1.StatusReasonInvalid || answer.Result.Details.Kind != "Workload") {
				t.Errorf("the status is %v", answer.Result)
			}
			if want := tc.want == "" || strings.HasPrefix(tc.want, "warning"); answer.Allowed != want {
				t.Errorf("%s: allowed is %v", tc.reason, answer.Allowed)
			}
		})
	}
}

func TestTemplates(t *testing.T) {
	template := func(kindOf, source string) string {
		raw, err := json.Marshal(map[string]any{"apiVersion": "dockyards.io/v1alpha3", "kind": "WorkloadTemplate", "metadata": map[string]any{"name": "t", "namespace": "org"}, "spec": map[string]any{"type": kindOf, "source": source}})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	const cue = "dockyards.io/cue"
	cases := map[string]struct{ reason, kindOf, source, want string }{
		"Good":       {"", cue, good, ""},
		"OpenOutput": {"what an input may still bring", cue, head + "#Input: {x: string}\na: {kind: \"ConfigMap\", data: #workload.spec.input}\n", ""},
		"OtherType":  {"T0", "helm", "no CUE", `warning spec.type is "helm": nothing here renders the template, only dockyards.io/cue`},
		"Empty":      {"T1", cue, "", `FieldValueInvalid spec.source: there is no package clause: a template begins with "package template"`},
		"Package":    {"T1", cue, "package other\n", `FieldValueInvalid spec.source: Invalid value: "other": the package is "other": a template begins with "package template" (template.cue:1:9)`},
		"Syntax":     {"T1: value is the line from the column on", cue, "package template\na: b c\n", `FieldValueInvalid spec.source: Invalid value: "c": `},
		"Import":     {"T1", cue, "package template\nimport \"github.com/x\"\n", `FieldValueInvalid spec.source: Invalid value: "\"github.com/x\"": import "github.com/x" is not allowed`},
		"Conflict":   {"T2: one cause each", cue, head + "#Input: _\na: 1 & 2\nb: 3 & 4\n", "FieldValueInvalid spec.source: Invalid value: \"2\": a: conflicting values 2 and 1 (template.cue:5:8)\nFieldValueInvalid spec.source: Invalid value: \"4\": b: conflicting values 4 and 3 (template.cue:6:8)"},
		"Reference":  {"T2", cue, head + "#Input: _\na: nothing\n", `FieldValueInvalid spec.source: Invalid value: "nothing": a: reference "nothing" not found (template.cue:5:4)`},
		"Unbound":    {"T2: it would render, and still is not what it says", cue, "package template\n#Input: {a: int}\n#cluster: _\n#workload: _\n#workload: spec: input: #Input\nx: #workload.metadata.name\n", "FieldValueInvalid spec.source: "},
		"NoneOfThem": {"T3 and T4 together", cue, "package template\n", "FieldValueRequired spec.source.#cluster: must have cluster definition\nFieldValueRequired spec.source.#workload: must have workload definition"},
		"Attribute":  {"T5", cue, "package template\nx: _ @embed(file=a)\n", `FieldValueInvalid spec.source: Invalid value: "@embed(file=a)": attribute @embed is not allowed`},
		"Large":      {"T5", cue, "package template\n//" + strings.Repeat("x", 513<<10), "FieldValueInvalid spec.source: the source has"},
		"Memory":     {"T5", cue, "package template\nimport \"strings\"\n#cluster: _\n#workload: _\nx: strings.Repeat(strings.Repeat(\"0123456789\", 100000), 100000)\n", "FieldValueInvalid spec.source: rendering takes more than 256 MiB of memory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := validator(nil).WorkloadTemplate(t.Context(), request(t, admissionv1.Create, "WorkloadTemplate", template(tc.kindOf, tc.source), ""))
			if got := told(answer); !strings.HasPrefix(got, tc.want) || (tc.want == "" && got != "") {
				t.Errorf("%s\nit said\n%s\nwant\n%s", tc.reason, got, tc.want)
			}
			if want := tc.want == "" || strings.HasPrefix(tc.want, "warning"); answer.Allowed != want {
				t.Errorf("%s: allowed is %v", tc.reason, answer.Allowed)
			}
		})
	}
}

func TestWhatCannotBeCheckedDoesNotPass(t *testing.T) {
	v := validator(map[string]string{"org/good": good})
	v.Render = func(context.Context, render.Request) (render.Result, error) { return render.Result{}, worker.ErrBusy }
	answer := v.Workload(t.Context(), request(t, admissionv1.Create, "Workload", workload("{kind: WorkloadTemplate, name: good}", ", input: {x: a}"), ""))
	if answer.Allowed || answer.Result.Code != http.StatusServiceUnavailable {
		t.Errorf("it answered %v", answer)
	}
	broken := request(t, admissionv1.Create, "Workload", "", "")
	broken.Object.Raw = []byte("{")
	if answer := v.Workload(t.Context(), broken); answer.Allowed || answer.Result.Code != http.StatusBadRequest {
		t.Errorf("it answered %v", answer)
	}
	if answer := v.Workload(t.Context(), request(t, admissionv1.Create, "Workload", "", "")); answer.Allowed {
		t.Error("a request without object passed")
	}
	if answer := v.Workload(t.Context(), request(t, admissionv1.Delete, "Workload", "", "")); !answer.Allowed {
		t.Error("a deletion was held up")
	}
}

func TestTheSameIsSaidTwice(t *testing.T) {
	v := validator(map[string]string{"org/good": good})
	ask := func() string {
		return told(v.Workload(t.Context(), request(t, admissionv1.Create, "Workload", workload("{kind: WorkloadTemplate, name: good}", ", input: {x: 1, y: 2, n: a}"), "")))
	}
	if diff := cmp.Diff(ask(), ask()); diff != "" {
		t.Error(diff)
	}
}
