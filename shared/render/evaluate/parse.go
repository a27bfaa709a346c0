package evaluate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/slipway-dev/slipway/shared/render"
)

// packageName is the one package that a template may be.
const packageName = "template"

// Names that templates share with whoever renders them.
const (
	defCluster  = "#cluster"
	defWorkload = "#workload"
	defInput    = "#Input"
)

// imports are CUE's own packages, but for tool/...: pure functions, none of which
// reads anything.
var imports = []string{
	"crypto/ed25519", "crypto/hmac", "crypto/md5", "crypto/sha1", "crypto/sha256", "crypto/sha512",
	"encoding/base64", "encoding/csv", "encoding/hex", "encoding/json", "encoding/openapi", "encoding/toml", "encoding/yaml",
	"html", "list", "math", "math/bits", "net", "path", "regexp", "strconv", "strings", "struct",
	"text/tabwriter", "text/template", "time", "uuid",
}

// template is a parsed source that may be evaluated.
type template struct {
	source string
	file   *ast.File
	// own are the declarations of the source, without what is bound.
	own   []ast.Decl
	facts render.Facts
}

// parse reads a source and refuses what no template may hold.
func parse(source string) (*template, *render.Failure) {
	file, err := parser.ParseFile(render.File, source)
	if err != nil {
		return nil, explain{source: source}.failure(render.ReasonBuild, err)
	}
	var causes []render.Cause
	refuse := func(pos token.Pos, format string, args ...any) {
		causes = append(causes, at(pos, fmt.Sprintf(format, args...)))
	}
	checkPackage(file, refuse)
	checkImports(file, refuse)
	checkAttributes(file, refuse)
	if len(causes) > 0 {
		return nil, render.Caused(render.ReasonBuild, causes)
	}
	for _, decl := range file.Decls {
		ast.Walk(decl, unwrap, nil)
	}
	t := &template{source: source, file: file, own: slices.Clone(file.Decls)}
	t.facts = render.Facts{Cluster: t.declares(defCluster), Workload: t.declares(defWorkload), Input: t.declares(defInput)}
	return t, nil
}

func at(pos token.Pos, text string) render.Cause {
	cause := render.Cause{Text: text}
	if pos.IsValid() {
		cause.Line, cause.Column = pos.Line(), pos.Column()
	}
	return cause
}

func checkPackage(file *ast.File, refuse func(token.Pos, string, ...any)) {
	for _, decl := range file.Decls {
		if clause, ok := decl.(*ast.Package); ok {
			if clause.Name.Name != packageName {
				refuse(clause.Name.Pos(), "the package is %q: a template begins with \"package %s\"", clause.Name.Name, packageName)
			}
			return
		}
	}
	refuse(file.Pos(), "there is no package clause: a template begins with \"package %s\"", packageName)
}

func checkImports(file *ast.File, refuse func(token.Pos, string, ...any)) {
	for spec := range file.ImportSpecs() {
		path, err := strconv.Unquote(spec.Path.Value)
		if bare, _, _ := strings.Cut(path, ":"); err != nil || !slices.Contains(imports, bare) {
			refuse(spec.Path.Pos(), "import %s is not allowed: a template is one file, and imports nothing but CUE's own packages without tool/...", spec.Path.Value)
		}
	}
}

// checkAttributes: @extern and @embed would let a template read files. An attribute
// of the whole file changes what the file means.
func checkAttributes(file *ast.File, refuse func(token.Pos, string, ...any)) {
	whole := map[*ast.Attribute]bool{}
	for _, decl := range file.Decls {
		if attr, ok := decl.(*ast.Attribute); ok {
			whole[attr] = true
		}
	}
	ast.Walk(file, func(node ast.Node) bool {
		attr, ok := node.(*ast.Attribute)
		if !ok {
			return true
		}
		key, _ := attr.Split()
		if key == "extern" || key == "embed" || (whole[attr] && key != "experiment") {
			refuse(attr.Pos(), "attribute @%s is not allowed", key)
		}
		return true
	}, nil)
}

// unwrap turns f: {ref} into f: ref. With ref a disjunction of closed structs, the
// former is ambiguous where the latter is not, since CUE v0.14; templates in the
// field rely on what it was before.
func unwrap(node ast.Node) bool {
	field, ok := node.(*ast.Field)
	if !ok {
		return true
	}
	literal, ok := field.Value.(*ast.StructLit)
	if !ok || len(literal.Elts) != 1 {
		return true
	}
	embedded, ok := literal.Elts[0].(*ast.EmbedDecl)
	if !ok {
		return true
	}
	switch embedded.Expr.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		field.Value = embedded.Expr
	}
	return true
}

// declares tells whether a definition stands at the top level of the source.
func (t *template) declares(name string) bool { return len(t.declarations(name)) > 0 }

// declarations are those of a definition at the top level of the source.
func (t *template) declarations(name string) []ast.Decl {
	var found []ast.Decl
	for _, decl := range t.own {
		field, ok := decl.(*ast.Field)
		if !ok {
			continue
		}
		if ident, ok := field.Label.(*ast.Ident); ok && ident.Name == name {
			found = append(found, decl)
		}
	}
	return found
}
