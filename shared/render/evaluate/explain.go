package evaluate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/render"
)

// maxCauses bounds the errors that are told one by one.
const maxCauses = 10

// hiddenText stands where a credential stood in an error.
const hiddenText = "(not shown)"

// credentialField are the names of fields whose values no message may show.
var credentialField = regexp.MustCompile(`(?i)pass(word|wd|phrase)?$|secret|token|credential|private|api_?-?key|access_?-?key|(^|[^a-z])key$|Key$|auth`)

// explain turns errors of CUE into failures.
type explain struct {
	source string
	// hidden are values that may not be shown.
	hidden []string
	// cluster are the declarations of #cluster.
	cluster []ast.Decl
	// declared is where the source declares what a path leads into, for errors that lie
	// in what was bound: that has no place that anybody could open. Nil tells none.
	declared func(path []string) token.Pos
}

// explain is for errors about the template and what it was given.
func (t *template) explain(given string) explain {
	return explain{source: t.source, hidden: credentials(given), cluster: t.declarations(defCluster)}
}

func (e explain) failure(reason string, err error) *render.Failure {
	var causes []render.Cause
	seen := map[string]bool{}
	more := 0
	for _, single := range errors.Errors(errors.Sanitize(errors.Promote(err, ""))) {
		cause := e.cause(single)
		if seen[cause.String()] {
			continue
		}
		seen[cause.String()] = true
		if len(causes) == maxCauses {
			more++
			continue
		}
		causes = append(causes, cause)
	}
	failure := render.Caused(reason, causes)
	if more > 0 {
		failure.Message = strings.TrimSuffix(failure.Message, fmt.Sprintf(" and %d more", maxCauses-1)) + fmt.Sprintf(" and %d more", maxCauses-1+more)
	}
	return failure
}

func (e explain) cause(err errors.Error) render.Cause {
	path := strings.Join(err.Path(), ".")
	format, args := err.Msg()
	text := fmt.Sprintf(format, args...)
	if text == "" {
		text = err.Error()
	}
	if slices.ContainsFunc(err.Path(), credentialField.MatchString) {
		text = quoted.ReplaceAllString(text, hiddenText)
	}
	for _, secret := range e.hidden {
		text = strings.ReplaceAll(text, secret, hiddenText)
	}
	if path != "" {
		text = path + ": " + text
	}
	cause := render.Cause{Path: path, Text: clip.Line(text, 600)}
	// The place of the error itself comes first, then what took part in it.
	for _, pos := range append(positions(err), errors.Positions(err)...) {
		if pos.IsValid() && pos.Filename() == render.File {
			cause.Line, cause.Column = pos.Line(), pos.Column()
			cause.Cluster = e.aboutCluster(pos)
			break
		}
	}
	if cause.Line == 0 && e.declared != nil {
		pos := e.declared(err.Path())
		cause.Line, cause.Column = pos.Line(), pos.Column()
	}
	return cause
}

// whereDeclared is the place of the definition that says what a path may hold: #Input of
// an input, else the one that the path begins with.
func (t *template) whereDeclared(path []string) token.Pos {
	if len(path) == 0 {
		return token.NoPos
	}
	names := []string{path[0]}
	if len(path) > 2 && path[0] == defWorkload && path[1] == "spec" && path[2] == "input" {
		names = []string{defInput, defWorkload}
	}
	for _, name := range names {
		if found := t.declarations(name); len(found) > 0 {
			return found[0].Pos()
		}
	}
	return token.NoPos
}

// ofCluster is the beginning of a reference into #cluster, up to the field that is
// missing.
var ofCluster = regexp.MustCompile(`#cluster(\.[\w"]+)*\.?$`)

// aboutCluster tells whether a place is in the declaration of #cluster, or in a
// reference to it.
func (e explain) aboutCluster(pos token.Pos) bool {
	if slices.ContainsFunc(e.cluster, func(decl ast.Decl) bool {
		return decl.Pos().Offset() <= pos.Offset() && pos.Offset() <= decl.End().Offset()
	}) {
		return true
	}
	at := pos.Offset()
	if at < 0 || at > len(e.source) {
		return false
	}
	return strings.HasPrefix(e.source[at:], defCluster) || ofCluster.MatchString(e.source[max(0, at-maxReference):at])
}

// maxReference bounds how far back a reference is followed.
const maxReference = 200

// quoted is a literal in a message of CUE.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\b-?\d[\w.]*`)

// credentials are the values in an input whose fields look like credentials, in
// the spellings in which they could be shown; longest first.
func credentials(text string) []string {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return nil
	}
	var found []string
	collect(value, false, &found)
	slices.SortFunc(found, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(found)
}

// shortest is the length below which a value would make any text unreadable.
const shortest = 4

func collect(value any, secret bool, found *[]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			collect(child, secret || credentialField.MatchString(key), found)
		}
	case []any:
		for _, child := range v {
			collect(child, secret, found)
		}
	case string:
		if secret && len(v) >= shortest {
			*found = append(*found, v, strings.Trim(strconv.Quote(v), `"`))
		}
	case float64:
		if text := strconv.FormatFloat(v, 'f', -1, 64); secret && len(text) >= shortest {
			*found = append(*found, text)
		}
	}
}

func positions(err errors.Error) []token.Pos {
	return append([]token.Pos{err.Position()}, err.InputPositions()...)
}
