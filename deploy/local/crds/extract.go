package crds

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"sort"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// extractor reads definitions out of the content of one file.
type extractor func(content []byte) ([]*unstructured.Unstructured, error)

// fromYAML takes the definitions out of a file of YAML documents and leaves
// everything else in it alone.
func fromYAML(content []byte) ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var definitions []*unstructured.Unstructured
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return definitions, nil
		}
		if err != nil {
			return nil, err
		}
		object, err := decode(document)
		if err != nil {
			return nil, err
		}
		if object.GetKind() == "CustomResourceDefinition" {
			definitions = append(definitions, object)
		}
	}
}

// fromDefinitionMap takes whole definitions out of a Go variable of type
// map[string]string, in the order of its keys.
func fromDefinitionMap(variable string) extractor {
	return func(content []byte) ([]*unstructured.Unstructured, error) {
		documents, err := stringMap(content, variable)
		if err != nil {
			return nil, err
		}
		keys := make([]string, 0, len(documents))
		for key := range documents {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		definitions := make([]*unstructured.Unstructured, 0, len(keys))
		for _, key := range keys {
			definition, err := decode([]byte(documents[key]))
			if err != nil {
				return nil, fmt.Errorf("variable %s, key %q: %w", variable, key, err)
			}
			definitions = append(definitions, definition)
		}
		return definitions, nil
	}
}

// fromSchemaMap takes schemas out of a Go variable of type map[string]string, which
// has the singular names as keys, and composes a definition for each of the kinds.
func fromSchemaMap(variable string, kinds []kind) extractor {
	return func(content []byte) ([]*unstructured.Unstructured, error) {
		schemas, err := stringMap(content, variable)
		if err != nil {
			return nil, err
		}
		definitions := make([]*unstructured.Unstructured, 0, len(kinds))
		for _, k := range kinds {
			text, ok := schemas[k.singular]
			if !ok {
				return nil, fmt.Errorf("variable %s has no schema %q", variable, k.singular)
			}
			schema := map[string]any{}
			if err := utilyaml.Unmarshal([]byte(text), &schema); err != nil {
				return nil, fmt.Errorf("variable %s, key %q: %w", variable, k.singular, err)
			}
			definitions = append(definitions, k.compose(schema))
		}
		return definitions, nil
	}
}

// decode reads one YAML document into an object. YAML goes through JSON, as in the
// API server, so that numbers become what they become there.
func decode(document []byte) (*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return object, nil
	}
	// Files of deployments hold lists of other kinds, too: only the kind is asked
	// for here, so nothing but a mapping can fail.
	fields := map[string]any{}
	if err := utilyaml.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	object.Object = fields
	return object, nil
}

// stringMap reads a package variable that is a literal map of strings out of Go
// source, without compiling it.
func stringMap(source []byte, variable string) (map[string]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	literal := findLiteral(file, variable)
	if literal == nil {
		return nil, fmt.Errorf("no variable %s that is a literal map", variable)
	}
	values := make(map[string]string, len(literal.Elts))
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return nil, fmt.Errorf("variable %s is no map", variable)
		}
		key, err := stringLiteral(pair.Key)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", variable, err)
		}
		value, err := stringLiteral(pair.Value)
		if err != nil {
			return nil, fmt.Errorf("variable %s, key %q: %w", variable, key, err)
		}
		values[key] = value
	}
	return values, nil
}

// findLiteral returns the composite literal that a package variable is set to.
func findLiteral(file *ast.File, variable string) *ast.CompositeLit {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.VAR {
			continue
		}
		for _, spec := range general.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || len(value.Names) != 1 || value.Names[0].Name != variable || len(value.Values) != 1 {
				continue
			}
			if literal, ok := value.Values[0].(*ast.CompositeLit); ok {
				return literal
			}
		}
	}
	return nil
}

// stringLiteral evaluates a string, or several put together with "+": a raw string
// cannot hold a back quote, so generators break it there.
func stringLiteral(expression ast.Expr) (string, error) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return strconv.Unquote(e.Value)
		}
	case *ast.ParenExpr:
		return stringLiteral(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			break
		}
		left, err := stringLiteral(e.X)
		if err != nil {
			return "", err
		}
		right, err := stringLiteral(e.Y)
		return left + right, err
	}
	return "", errors.New("not a literal string")
}
