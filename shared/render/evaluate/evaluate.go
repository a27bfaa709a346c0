package evaluate

import (
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"
	cuejson "cuelang.org/go/encoding/json"

	"github.com/slipway-dev/slipway/shared/render"
)

// keep is how many parsed templates an evaluator remembers.
const keep = 64

// Evaluator evaluates requests, one at a time. Each source is parsed once.
type Evaluator struct {
	parsed map[string]*template
	order  []string
}

// Evaluate answers a request. It may take any time and any memory.
func (e *Evaluator) Evaluate(r render.Request) render.Answer {
	if failure := r.TooLarge(); failure != nil {
		return render.Answer{Failure: failure}
	}
	t, failure := e.template(r.Source)
	if failure != nil {
		return render.Answer{Failure: failure}
	}
	answer := render.Answer{Facts: t.facts}
	switch r.Mode {
	case render.ModeTemplate:
		_, answer.Failure = t.unbound()
	case render.ModeInput:
		answer.Failure = t.fits(r.Input)
	default:
		answer.Outputs, answer.Failure = t.render(r)
	}
	return answer
}

// template is the parsed source, as remembered or anew.
func (e *Evaluator) template(source string) (*template, *render.Failure) {
	if t := e.parsed[source]; t != nil {
		return t, nil
	}
	t, failure := parse(source)
	if failure != nil {
		return nil, failure
	}
	if e.parsed == nil || len(e.order) >= keep {
		e.parsed, e.order = map[string]*template{}, nil
	}
	e.parsed[source] = t
	e.order = append(e.order, source)
	return t, nil
}

// build compiles the template with further declarations. They are part of the same
// file: what a definition says in several places counts as one.
func (t *template) build(bound ...ast.Decl) (cue.Value, errors.Error) {
	t.file.Decls = append(t.own[:len(t.own):len(t.own)], bound...)
	refuse := func(token.Pos, string) *build.Instance {
		// Only CUE's own packages pass checkImports, and those are never loaded.
		return nil
	}
	instance := build.NewContext().NewInstance("", refuse)
	if err := instance.AddSyntax(t.file); err != nil {
		return cue.Value{}, err
	}
	instance.PkgName = packageName
	values, err := cuecontext.New().BuildInstances([]*build.Instance{instance})
	if err != nil {
		return cue.Value{}, errors.Promote(err, "")
	}
	return values[0], nil
}

// unbound builds and evaluates the template alone.
func (t *template) unbound() (cue.Value, *render.Failure) {
	explain := t.explain("")
	value, err := t.build()
	if err != nil {
		return value, explain.failure(render.ReasonBuild, err)
	}
	if err := value.Validate(); err != nil {
		return value, explain.failure(render.ReasonValidate, err)
	}
	return value, nil
}

// fits compares an input with the template's #Input.
func (t *template) fits(input string) *render.Failure {
	expr, err := cuejson.Extract("input.json", []byte(input))
	explain := t.explain(input)
	if err != nil {
		return explain.failure(render.ReasonFill, err)
	}
	value, failure := t.unbound()
	if failure != nil {
		return failure
	}
	schema := value.LookupPath(cue.ParsePath(defInput))
	if err := schema.Err(); err != nil {
		return explain.failure(render.ReasonLookup, err)
	}
	given := cuecontext.New().BuildExpr(expr)
	if err := schema.Unify(given).Validate(cue.Final()); err != nil {
		failure := explain.failure(render.ReasonFill, err)
		failure.Input = true
		return failure
	}
	return nil
}

// render binds cluster and workload, both in one evaluation, and gives the outputs.
func (t *template) render(r render.Request) ([]render.Raw, *render.Failure) {
	if failure := t.undeclared(); failure != nil {
		return nil, failure
	}
	explain := t.explain(r.Workload)
	explain.declared = t.whereDeclared
	var bound []ast.Decl
	for _, given := range []struct{ name, text string }{{defCluster, r.Cluster}, {defWorkload, r.Workload}} {
		expr, err := cuejson.Extract(strings.TrimPrefix(given.name, "#")+".json", []byte(given.text))
		if err != nil {
			return nil, explain.failure(render.ReasonFill, err)
		}
		bound = append(bound, &ast.Field{Label: ast.NewIdent(given.name), Value: expr})
	}
	value, cueErr := t.build(bound...)
	if cueErr != nil {
		return nil, explain.failure(render.ReasonBuild, cueErr)
	}
	if err := value.Validate(cue.Concrete(true)); err != nil {
		failure := explain.failure(render.ReasonValidate, err)
		if i := firstBound(failure.Causes); i >= 0 {
			failure.Causes[0], failure.Causes[i] = failure.Causes[i], failure.Causes[0]
			failure = render.Caused(render.ReasonFill, failure.Causes)
			failure.Input = true
		}
		return nil, failure
	}
	return t.outputs(value, explain)
}

// firstBound is the first cause that lies in what is bound, or -1.
func firstBound(causes []render.Cause) int {
	for i, cause := range causes {
		root, _, _ := strings.Cut(cause.Path, ".")
		if root == defCluster || root == defWorkload {
			return i
		}
	}
	return -1
}

// undeclared: what is bound would always exist, so it is looked for before.
func (t *template) undeclared() *render.Failure {
	var causes []render.Cause
	if !t.facts.Cluster {
		causes = append(causes, render.Cause{Path: defCluster, Text: "must have cluster definition: the template declares no " + defCluster})
	}
	if !t.facts.Workload {
		causes = append(causes, render.Cause{Path: defWorkload, Text: "must have workload definition: the template declares no " + defWorkload})
	}
	if len(causes) == 0 {
		return nil
	}
	return render.Caused(render.ReasonLookup, causes)
}

// outputs are the regular fields at the top level, in the order of the source.
func (t *template) outputs(value cue.Value, explain explain) ([]render.Raw, *render.Failure) {
	fields, err := value.Fields()
	if err != nil {
		return nil, explain.failure(render.ReasonFields, err)
	}
	var outputs []render.Raw
	for fields.Next() {
		raw, err := fields.Value().MarshalJSON()
		if err != nil {
			return nil, explain.failure(render.ReasonDecode, err)
		}
		output := render.Raw{Field: fields.Selector().String(), JSON: string(raw)}
		if pos := fields.Value().Pos(); pos.IsValid() && pos.Filename() == render.File {
			output.Line, output.Column = pos.Line(), pos.Column()
		}
		outputs = append(outputs, output)
	}
	return outputs, nil
}
