package catalog

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Bounds of what a template may come to.
const (
	maxSize  = 10 << 20
	maxDepth = 100
)

// Facts are what a template can see. A name that is not there is an error.
type Facts map[string]any

// functions are all that templates may call besides the language's own.
var functions = template.FuncMap{"pinning": pinning}

// pinning is the base64 text of the file that reserves CPUs for management.
func pinning(cpus string) (string, error) {
	text, err := json.Marshal(cpus)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString([]byte("{ \n  \"management\": {\n    \"cpuset\": " + string(text) + "\n  }\n}\n")), nil
}

func parseTemplate(name string, text []byte) (*template.Template, error) {
	t, err := template.New(name).Delims("[[", "]]").Funcs(functions).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("cannot read the template: %w", err)
	}
	return t, nil
}

// Render makes the asset's object; nil says that it does not apply here. The facts
// get the asset's own parameters as params.
func (a Asset) Render(facts Facts) (*unstructured.Unstructured, error) {
	seen := Facts{"params": a.Params}
	for key, value := range facts {
		seen[key] = value
	}
	var out bytes.Buffer
	if err := a.template.Execute(&out, map[string]any(seen)); err != nil {
		return nil, fmt.Errorf("cannot render asset %q: %w", a.Name, err)
	}
	if len(bytes.TrimSpace(out.Bytes())) == 0 {
		return nil, nil
	}
	if out.Len() > maxSize {
		return nil, fmt.Errorf("cannot render asset %q: it has %d bytes, %d are allowed", a.Name, out.Len(), maxSize)
	}
	if n := len(documents(out.Bytes())); n != 1 {
		return nil, fmt.Errorf("cannot render asset %q: it makes %d documents, one is allowed", a.Name, n)
	}
	raw, err := yaml.YAMLToJSONStrict(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("cannot render asset %q: %w", a.Name, err)
	}
	obj := &unstructured.Unstructured{}
	// Integers keep their value: the package of apimachinery makes no floats of them.
	if err := utiljson.Unmarshal(raw, &obj.Object); err != nil {
		return nil, fmt.Errorf("cannot render asset %q: %w", a.Name, err)
	}
	if depth(obj.Object) > maxDepth {
		return nil, fmt.Errorf("cannot render asset %q: it is nested deeper than %d", a.Name, maxDepth)
	}
	if !a.resource.Is(obj.GetAPIVersion(), obj.GetKind()) || obj.GetName() != a.Object {
		return nil, fmt.Errorf("cannot render asset %q: the template makes %s %q, the catalog says %s %q", a.Name, obj.GetKind(), obj.GetName(), a.Component, a.Object)
	}
	return obj, nil
}

func depth(value any) int {
	deepest := 0
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			deepest = max(deepest, depth(child))
		}
	case []any:
		for _, child := range v {
			deepest = max(deepest, depth(child))
		}
	default:
		return 0
	}
	return deepest + 1
}
