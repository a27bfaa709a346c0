package evaluate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/shared/render"
)

const (
	cluster  = `{"apiVersion":"dockyards.io/v1alpha3","kind":"Cluster","metadata":{"name":"c1","namespace":"org"}}`
	workload = `{"apiVersion":"dockyards.io/v1alpha3","kind":"Workload","metadata":{"name":"w1","namespace":"org"},"spec":{"provenience":"User","targetNamespace":"apps"}}`
)

// withInput is the Workload with an input.
func withInput(input string) string {
	return strings.Replace(workload, `"provenience"`, `"input":`+input+`,"provenience"`, 1)
}

// head is what every template begins with.
const head = `package template

#cluster: {...}
#workload: {...}
`

// sample is a template of the shape that the documentation shows.
const sample = `package template

#Input: {
	url!:     string
	interval: string | *"5m"
	secret?:  string
}
#cluster: {...}
#workload: {
	metadata: {name: string, namespace: string, ...}
	spec: {input: #Input, ...}
	...
}

gitRepository: {
	apiVersion: "source.toolkit.fluxcd.io/v1"
	kind:       "GitRepository"
	metadata: {
		name:      #workload.metadata.name
		namespace: #workload.metadata.namespace
	}
	spec: {
		url:      #workload.spec.input.url
		interval: #workload.spec.input.interval
	}
}
`

func ask(t *testing.T, r render.Request) render.Answer {
	t.Helper()
	if r.Mode == "" {
		r.Mode = render.ModeRender
	}
	if r.Cluster == "" {
		r.Cluster = cluster
	}
	if r.Workload == "" {
		r.Workload = workload
	}
	r.Limits = render.DefaultLimits()
	return (&Evaluator{}).Evaluate(r)
}

func TestATemplateGivesItsTopLevelFieldsInTheirOrder(t *testing.T) {
	answer := ask(t, render.Request{Source: sample, Workload: withInput(`{"url":"https://example.test/r.git"}`)})
	if answer.Failure != nil {
		t.Fatal(answer.Failure.Reason, answer.Failure.Message)
	}
	want := []render.Raw{{
		Field: "gitRepository", Line: 15, Column: 1,
		JSON: `{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"GitRepository","metadata":{"name":"w1","namespace":"org"},"spec":{"url":"https://example.test/r.git","interval":"5m"}}`,
	}}
	if diff := cmp.Diff(want, answer.Outputs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOutputs(t *testing.T) {
	cases := map[string]struct {
		reason, source, workload string
		want                     []string
	}{
		"OnlyRegularFields": {
			reason: "definitions, hidden fields, lets and optional fields are no outputs",
			source: head + "#x: 1\n_y: 2\nlet z = 3\no?: 4\nb: 1\na: {v: z, w: _y}\n",
			want:   []string{`b=1`, `a={"v":3,"w":2}`},
		},
		"Conditional": {
			reason: "a field inside an if is an output when the condition holds",
			source: head + "if #workload.spec.provenience == \"User\" {\n\tyes: 1\n}\nif #cluster.metadata.name == \"other\" {\n\tno: 1\n}\n",
			want:   []string{`yes=1`},
		},
		"Bytes": {
			reason: "bytes become base64 text wherever they stand",
			source: head + "a: {b: 'hello', l: ['hi', {c: 'x'}]}\n",
			want:   []string{`a={"b":"aGVsbG8=","l":["aGk=",{"c":"eA=="}]}`},
		},
		"Numbers": {
			reason: "an integer of the input stays one, also where the template says int",
			source: head + "a: {i: int & #workload.spec.input.n, f: 1.5, big: 9223372036854775807}\n", workload: withInput(`{"n":3}`),
			want: []string{`a={"i":3,"f":1.5,"big":9223372036854775807}`},
		},
		"ByteOrderMark": {
			reason: "a byte order mark inside of a string is text",
			source: head + "a: #workload.spec.input\n", workload: withInput(`{"s":"x\ufeffy"}`),
			want: []string{"a={\"s\":\"x\ufeffy\"}"},
		},
		"StrangeText": {
			reason: "NUL, line separators and emoji pass",
			source: head + "a: #workload.spec.input.s\n", workload: withInput(`{"s":"a\u0000b\u2028c😀"}`),
			want: []string{`a="a\u0000b\u2028c😀"`},
		},
		"OpenWorkload": {
			reason: "a Workload declared as _ renders although it cannot be built alone",
			source: "package template\n#Input: {a: int}\n#cluster: _\n#workload: _\n#workload: spec: input: #Input\nx: #workload.metadata.name\n", workload: withInput(`{"a":1}`),
			want: []string{`x="w1"`},
		},
		"EmbeddedDisjunction": {
			reason: "a struct that holds nothing but a reference to a disjunction of closed structs is that reference",
			source: head + "#A: {kind: \"a\", x?: int}\n#B: {kind: \"b\", y?: int}\n#AB: #A | #B\n#S: {d: #AB}\nv: #S & {d: {#AB}}\nv: d: kind: \"a\"\n",
			want:   []string{`v={"d":{"kind":"a"}}`},
		},
		"BuiltIns": {
			reason: "CUE's own packages can be imported",
			source: "package template\nimport (\n\t\"strings\"\n\t\"encoding/yaml\"\n\t\"encoding/json\"\n\t\"encoding/base64\"\n)\n#cluster: _\n#workload: _\na: strings.ToUpper(\"x\") + yaml.Marshal({b: 1}) + json.Marshal([1]) + base64.Encode(null, \"q\")\nf: '\\(yaml.Marshal({k: \"v\"}))'\n",
			want:   []string{`a="Xb: 1\n[1]cQ=="`, `f="azogdgo="`},
		},
		"AbsentTests": {
			reason: "optional input can be asked for",
			source: "package template\n#Input: {o?: string}\n#cluster: _\n#workload: {spec: {input: #Input, ...}, ...}\na: {if #workload.spec.input.o != _|_ {o: #workload.spec.input.o}}\n", workload: withInput(`{}`),
			want: []string{`a={}`},
		},
		"HiddenNeedNotBeConcrete": {
			reason: "schemas inlined as hidden fields and definitions stay open",
			source: head + "_s: {name: string, n: int | *1}\n#T: {a!: string}\nx: _s & {name: \"q\"}\n",
			want:   []string{`x={"name":"q","n":1}`},
		},
		"Nothing": {reason: "an empty output is a success", source: head},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := ask(t, render.Request{Source: tc.source, Workload: tc.workload})
			if answer.Failure != nil {
				t.Fatalf("%s: %s: %s", tc.reason, answer.Failure.Reason, answer.Failure.Message)
			}
			var got []string
			for _, output := range answer.Outputs {
				got = append(got, output.Field+"="+output.JSON)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	cases := map[string]struct {
		reason, source, workload string
		want                     string
		hide                     string
	}{
		"Syntax":          {source: "package template\na: {\n", want: "BuildInstanceFailed: expected '}', found 'EOF' (template.cue:2:6)"},
		"NoPackage":       {source: "#cluster: _\n", want: `BuildInstanceFailed: there is no package clause: a template begins with "package template"`},
		"OtherPackage":    {source: "package other\n", want: `BuildInstanceFailed: the package is "other": a template begins with "package template" (template.cue:1:9)`},
		"Module":          {source: "package template\nimport \"example.test/schema\"\n", want: `BuildInstanceFailed: import "example.test/schema" is not allowed: a template is one file, and imports nothing but CUE's own packages without tool/... (template.cue:2:8)`},
		"Relative":        {source: "package template\nimport \"./schema\"\n", want: `BuildInstanceFailed: import "./schema" is not allowed: a template is one file, and imports nothing but CUE's own packages without tool/... (template.cue:2:8)`},
		"Tool":            {source: "package template\nimport \"tool/exec\"\nx: exec.Run\n", want: `BuildInstanceFailed: import "tool/exec" is not allowed: a template is one file, and imports nothing but CUE's own packages without tool/... (template.cue:2:8)`},
		"Embed":           {source: "@extern(embed)\npackage template\nx: _ @embed(file=go.mod)\n", want: "BuildInstanceFailed: attribute @extern is not allowed (template.cue:1:1) and 1 more"},
		"If":              {source: "@if(x)\npackage template\n", want: "BuildInstanceFailed: attribute @if is not allowed (template.cue:1:1)"},
		"Unknown":         {source: head + "a: b\n", want: `BuildInstanceFailed: a: reference "b" not found (template.cue:5:4)`},
		"UnusedImport":    {source: "package template\nimport \"list\"\n#cluster: _\n#workload: _\n", want: `BuildInstanceFailed: imported and not used: "list" (template.cue:2:8)`},
		"NoCluster":       {source: "package template\n#workload: _\n", want: "LookupPathFailed: must have cluster definition: the template declares no #cluster"},
		"NoneOfThem":      {source: "package template\n", want: "LookupPathFailed: must have cluster definition: the template declares no #cluster and 1 more"},
		"ClusterConflict": {source: "package template\n#cluster: metadata: name: \"other\"\n#workload: _\n", want: "FillPathFailed"},
		"Input":           {source: sample, workload: withInput(`{"url":1}`), want: "FillPathFailed: #workload.spec.input.url: conflicting values 1 and string (mismatched types int and string) (template.cue:4:12)"},
		"UnknownInput":    {source: sample, workload: withInput(`{"url":"x","foo":1}`), want: "FillPathFailed: #workload.spec.input.foo: field not allowed (template.cue:3:1)"},
		"Hidden":          {source: "package template\n#cluster: _\n#workload: {spec: {input: {password: =~\"^a\"}, ...}, ...}\n", workload: withInput(`{"password":"hunter2!"}`), want: "FillPathFailed", hide: "hunter2"},
		"HiddenElsewhere": {source: head + "a: \"x\" & #workload.spec.input.password\n", workload: withInput(`{"password":"hunter2!"}`), want: "ValidateFailed", hide: "hunter2"},
		"Conflict":        {source: head + "a: b: 1\na: b: 2\n", want: "ValidateFailed: a.b: conflicting values 2 and 1 (template.cue:6:7)"},
		"NotConcrete":     {source: head + "a: b: string\n", want: "ValidateFailed: a.b: incomplete value string (template.cue:5:7)"},
		"Percent":         {source: head + "a: b: \"%d%s\" & \"%v\"\n", want: `ValidateFailed: a.b: conflicting values "%v" and "%d%s" (template.cue:5:16)`},
		"TopLevelScalar":  {source: "package template\n5\n#cluster: _\n#workload: _\n", want: "FieldsFailed"},
		"Missing":         {source: sample, want: "ValidateFailed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := render.Request{Source: tc.source, Workload: tc.workload}
			answer := ask(t, request)
			if answer.Failure == nil {
				t.Fatalf("it gave %v", answer.Outputs)
			}
			got := answer.Failure.Reason + ": " + answer.Failure.Message
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("it said\n%s\nand not\n%s", got, tc.want)
			}
			if tc.hide != "" && strings.Contains(got, tc.hide) {
				t.Errorf("it shows a credential: %s", got)
			}
			t.Log(got)
			if again := ask(t, request); again.Failure == nil || again.Failure.Message != answer.Failure.Message {
				t.Errorf("once more it said %v", again.Failure)
			}
		})
	}
}

func TestInputTexts(t *testing.T) {
	source := "package template\n#Input: {\n\tx!: string\n\tn?: int\n\tp?: =~\"^[a-z].*$\"\n\td?: \"a\" | 5\n\tplain: string\n\tdeep?: {k?: int}\n}\n#cluster: {...}\n#workload: {spec: {input: #Input, ...}, ...}\n"
	for input, want := range map[string]string{
		`{"x":"y"}`:                "",
		`{"x":"y","n":3}`:          "",
		`{}`:                       "#Input.x: field is required but not present",
		`{"x":true}`:               "#Input.x: conflicting values string and true (mismatched types string and bool)",
		`{"x":"y","foo":1}`:        "#Input.foo: field not allowed",
		`{"x":"y","deep":{"z":1}}`: "#Input.deep.z: field not allowed",
		`{"x":"y","p":"ABC"}`:      `#Input.p: invalid value "ABC" (out of bound =~"^[a-z].*$")`,
		`{"x":"y","n":null}`:       "#Input.n: conflicting values int and null (mismatched types int and null)",
		`{"x":"y","d":true}`:       "#Input.d: 2 errors in empty disjunction:",
	} {
		answer := ask(t, render.Request{Mode: render.ModeInput, Source: source, Input: input})
		got := ""
		if answer.Failure != nil {
			got = answer.Failure.Causes[0].Text
			for _, cause := range answer.Failure.Causes {
				t.Log(input, cause.String())
			}
		}
		if got != want {
			t.Errorf("input %s gave\n%q, want\n%q", input, got, want)
		}
	}
}

func TestATemplateIsParsedOnceAndRendersTheSameEachTime(t *testing.T) {
	e := &Evaluator{}
	var first string
	for i := range 20 {
		r := render.Request{Mode: render.ModeRender, Source: sample, Cluster: cluster, Workload: withInput(`{"url":"https://example.test"}`), Limits: render.DefaultLimits()}
		if i%2 == 1 {
			r.Workload = withInput(`{"url":5}`)
		}
		answer := e.Evaluate(r)
		if i%2 == 1 {
			if answer.Failure == nil || answer.Failure.Reason != render.ReasonFill {
				t.Fatalf("bad input passed: %v", answer)
			}
			continue
		}
		if answer.Failure != nil {
			t.Fatal(answer.Failure.Message)
		}
		if first == "" {
			first = answer.Outputs[0].JSON
		}
		if answer.Outputs[0].JSON != first {
			t.Fatalf("render %d gave %s, the first %s", i, answer.Outputs[0].JSON, first)
		}
	}
	if len(e.order) != 1 {
		t.Errorf("%d sources were parsed, want one", len(e.order))
	}
}
