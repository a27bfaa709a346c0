package render

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/kind"
)

// Output is one object that a template gives.
type Output struct {
	// Field is its name in the template, for messages.
	Field string `json:"field"`
	// Object is what shall be applied.
	Object *unstructured.Unstructured `json:"object"`
}

// Clone is a copy that shares nothing with the output.
func (o Output) Clone() Output { return Output{Field: o.Field, Object: o.Object.DeepCopy()} }

// Decode turns the answer of the child process into objects. It trusts nothing:
// caps are looked at once more, and each output has to be an object with
// apiVersion, kind and metadata.name.
func (r Request) Decode(answer Answer) Result {
	result := Result{Facts: answer.Facts, Failure: answer.Failure}
	if result.Failure != nil {
		return result
	}
	if result.Failure = r.Limits.tooMuch(answer.Outputs); result.Failure != nil {
		return result
	}
	seen := map[string]string{}
	for _, raw := range answer.Outputs {
		object, problem := decodeObject(raw.JSON)
		if problem == "" {
			id := identity(object)
			if other, twice := seen[id]; twice {
				problem = fmt.Sprintf("is the same object as output %q", other)
			}
			seen[id] = raw.Field
		}
		if problem != "" {
			cause := Cause{Line: raw.Line, Column: raw.Column, Path: raw.Field, Text: fmt.Sprintf("output %q %s", raw.Field, problem)}
			return Result{Facts: answer.Facts, Failure: Caused(ReasonDecode, []Cause{cause})}
		}
		result.Outputs = append(result.Outputs, Output{Field: raw.Field, Object: object})
	}
	return result
}

// identity is what two outputs must not have in common. An absent namespace is
// the Workload's; whoever names that too names the same object.
func identity(obj *unstructured.Unstructured) string {
	gvk := obj.GroupVersionKind()
	return strings.Join([]string{gvk.Group, gvk.Kind, obj.GetName()}, "|")
}

func (l Limits) tooMuch(outputs []Raw) *Failure {
	if len(outputs) > l.MaxObjects {
		return Exceeded("the template gives %d objects, %d are allowed", len(outputs), l.MaxObjects)
	}
	total := 0
	for _, raw := range outputs {
		if len(raw.JSON) > l.MaxObject {
			return Exceeded("output %q has %d bytes, %d are allowed", raw.Field, len(raw.JSON), l.MaxObject)
		}
		if total += len(raw.JSON); total > l.MaxOutput {
			return Exceeded("the outputs have more than %d bytes together", l.MaxOutput)
		}
	}
	return nil
}

// Exceeded is the failure of a render that went beyond a limit.
func Exceeded(format string, args ...any) *Failure {
	return &Failure{Reason: ReasonLimit, Message: clip.Line(fmt.Sprintf(format, args...), maxMessage), Limit: true}
}

func decodeObject(text string) (obj *unstructured.Unstructured, problem string) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, "is no JSON"
	}
	if _, err := decoder.Token(); err != io.EOF { //nolint:errorlint // the decoder returns the sentinel itself
		return nil, "is more than one JSON value"
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, "is no object: an output is a struct with apiVersion, kind and metadata.name"
	}
	if _, problem := plainNumbers(fields, ""); problem != "" {
		return nil, problem
	}
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
		text, found, err := unstructured.NestedString(fields, path...)
		if err != nil || !found || text == "" {
			return nil, "has no " + strings.Join(path, ".")
		}
	}
	obj = &unstructured.Unstructured{Object: fields}
	if gvk := obj.GroupVersionKind(); gvk.Version == "" || strings.Count(obj.GetAPIVersion(), "/") > 1 {
		return nil, fmt.Sprintf("has apiVersion %q, which is none", clip.Line(obj.GetAPIVersion(), 80))
	}
	return obj, secretProblem(obj)
}

// secretProblem: the values of a Secret are sealed before anybody looks at them, so
// what they are is looked at here.
func secretProblem(obj *unstructured.Unstructured) string {
	if !kind.Secrets.Is(obj.GetAPIVersion(), obj.GetKind()) {
		return ""
	}
	for _, field := range []string{"data", "stringData"} {
		value, found := obj.Object[field]
		entries, ok := value.(map[string]any)
		if found && !ok {
			return "has a " + field + " that is no struct"
		}
		for _, key := range sortedKeys(entries) {
			text, ok := entries[key].(string)
			if _, err := base64.StdEncoding.DecodeString(text); !ok || (field == "data" && err != nil) {
				return fmt.Sprintf("has %s[%q] that is no %s", field, clip.Line(key, 80), map[string]string{"data": "bytes", "stringData": "string"}[field])
			}
		}
	}
	return ""
}

// plainNumbers turns numbers as text into the two types that objects know.
func plainNumbers(value any, path string) (any, string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			child, problem := plainNumbers(v[key], strings.TrimPrefix(path+"."+key, "."))
			if problem != "" {
				return nil, problem
			}
			v[key] = child
		}
	case []any:
		for i := range v {
			child, problem := plainNumbers(v[i], fmt.Sprintf("%s[%d]", path, i))
			if problem != "" {
				return nil, problem
			}
			v[i] = child
		}
	case json.Number:
		if whole, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return whole, ""
		}
		if decimal, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return decimal, ""
		}
		return nil, fmt.Sprintf("has at %s the number %s, which does not fit into 64 bits", path, clip.Line(v.String(), 40))
	}
	return value, ""
}
