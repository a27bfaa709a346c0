package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// specimen is a recording with something in every part.
func specimen() *Recording {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	return &Recording{
		Header: Header{
			Format: Format, ID: "20260102T030405.678901Z-demo-0a1b2c3d", Function: "demo", Version: "v1", Kind: "Widget",
			Namespace: "team-a", Name: "w", Mode: "apply", Time: at, DurationMs: 1.5, EventID: "e", Result: Result{Class: "done", Status: 204},
			Clock: []time.Time{at}, Settings: map[string]string{"SIZE": "3"},
		},
		Event: &Event{Attributes: map[string]string{"id": "e", "time": "2026-01-02T03:04:05Z"}, Body: `{"a": "b"}`, Size: 10},
		Decisions: []Decision{{Round: 1, Reasons: []string{"it is missing"}, Stages: []Stage{{Name: "objects", Entries: []Entry{{
			Verb: "create", Resource: "configmaps", Name: "team-a/w", Object: map[string]any{"data": map[string]any{"n": int64(3), "f": 1.5, "text": "-- end --\n-- reads --\n"}},
		}}}}}},
		Calls: []Call{
			{Verb: "create", Resource: "configmaps", Namespace: "team-a", Name: "w", Body: map[string]any{"a": "yes"}, Answer: map[string]any{"a": "yes"}},
			{Verb: "fold", Resource: "configmaps", Name: "w", Body: []any{map[string]any{"op": "replace"}}, Fault: &fault.Fault{Class: fault.Conflict, Code: 409, Call: "x", Message: "m"}},
		},
		Conclusion: &Conclusion{Class: "done", Status: map[string]any{"ready": true}, Events: []plan.Event{{Reason: "Made", Message: "it"}}},
		Mapping:    []Read{{Question: "list", Resource: "widgets.demo", Items: []map[string]any{{"a": nil}}}},
		Reads:      []Read{{Question: "get", Resource: "widgets.demo", Namespace: "team-a", Name: "w", Absent: true}, {Question: "discover", Resource: "widgets.demo", Version: "v1"}},
	}
}

func encoded(t testing.TB, r *Recording) []byte {
	t.Helper()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := specimen()
	got, err := Parse(encoded(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	header, err := ParseHeader(encoded(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Header, header); diff != "" {
		t.Errorf("the header alone (-written +read):\n%s", diff)
	}
}

// TestAnyObjectIsReadAsItWasWritten draws objects with the strings and numbers that
// YAML has its own mind about.
func TestAnyObjectIsReadAsItWasWritten(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`(?s)[-~ \n\t:#'"|>&*!%@\x60{}\[\],?0-9a-fxoyn.]{0,12}`),
		rapid.SampledFrom([]string{"yes", "0x1f", "1_000", "1e3", "~", "null", "<<", "=", "2026-01-02", "-- end --", "\n-- end --\n", " x", "x ", "\n", "a: b", "\u2028", "\ufeff", "0o17", ".inf", "12:30:45", "\t"}))
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		kinds := []*rapid.Generator[any]{
			rapid.Map(text, func(s string) any { return strings.ToValidUTF8(s, "?") }), rapid.Map(rapid.Int64(), func(n int64) any { return n }),
			rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Map(rapid.Int32(), func(n int32) any { return float64(n) + 0.5 }), rapid.Just[any](nil),
		}
		if depth > 0 {
			kinds = append(kinds,
				rapid.Map(rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) }), 0, 3), func(list []any) any { return list }),
				rapid.Map(rapid.MapOfN(rapid.Map(text, func(s string) string { return strings.ToValidUTF8(s, "?") }), rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) }), 0, 3), func(m map[string]any) any { return m }))
		}
		return rapid.OneOf(kinds...)
	}
	rapid.Check(t, func(t *rapid.T) {
		want := specimen()
		want.Reads[0] = Read{Question: "get", Name: "w", Object: map[string]any{"value": value(2).Draw(t, "value")}}
		text, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(want.Reads[0], got.Reads[0]); diff != "" {
			t.Fatalf("(-written +read):\n%s\n%s", diff, text)
		}
	})
}

func TestABadRecordingSaysWhatIsWrong(t *testing.T) {
	good := string(encoded(t, specimen()))
	cut := func(at string) string { before, _, _ := strings.Cut(good, at); return before }
	for name, c := range map[string]struct{ reason, text, says string }{
		"Nothing":       {"an empty file", "", "it is no recording"},
		"SomethingElse": {"a manifest is no recording", "apiVersion: v1\nkind: Secret\n", "it is no recording"},
		"Truncated":     {"a copy that stopped half way", good[:len(good)/2], "it is cut off"},
		"NoEnd":         {"all but the checksum", cut("-- end --"), "it is cut off"},
		"OtherFormat":   {"what a later version wrote", strings.Replace(good, "recording 1:", "recording 2:", 1), `format "2", this program reads format 1: use the kubectl-slipway of the version`},
		"HeaderFormat":  {"the header counts too", strings.Replace(good, "format: 1\n", "format: 7\n", 1), "says format 7"},
		"Edited":        {"somebody tried something out", strings.Replace(good, "it is missing", "it is there", 1), "it was edited or damaged"},
		"UnknownField":  {"a slip of the hand", strings.Replace(good, "- absent: true", "- absemt: true", 1), `unknown field "[0].absemt"`},
		"TwoFields":     {"which one is meant?", strings.Replace(good, "- absent: true", "- absent: true\n  absent: false", 1), `already set`},
		"NoYAML":        {"an editor's mishap", strings.Replace(good, "attributes:", "attributes: [", 1), `part "event"`},
		"UnknownPart":   {"a part that no recording has", strings.Replace(good, "-- calls --", "-- calsl --", 1), `a part "calsl"`},
		"TwoParts":      {"two of one part", strings.Replace(good, "-- calls --", "-- reads --", 1), `part "reads"`},
		"NoFunction":    {"nobody to play it to", strings.Replace(good, "function: demo\n", "", 1), "names no function"},
		"Huge":          {"more than anybody wants to read", good + strings.Repeat("#", MaxSize), "at most 16777216 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: want an error with %q, got %v", c.reason, c.says, err)
			}
		})
	}
}

func TestAnEditedRecordingIsReadIfAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.txtar")
	text := strings.Replace(string(encoded(t, specimen())), "it is missing", "it is there", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path, false); !errors.Is(err, ErrEdited) || !strings.Contains(err.Error(), path) {
		t.Errorf("want it refused under its name, got %v", err)
	}
	r, err := ReadFile(path, true)
	if err != nil || r.Decisions[0].Reasons[0] != "it is there" {
		t.Errorf("want it read, got %v, %v", r, err)
	}
}

// FuzzParse: whatever stands in a file, reading it ends without a panic, and what could
// be read can be written and read again.
func FuzzParse(f *testing.F) {
	good := encoded(f, specimen())
	f.Add(good)
	f.Add(bytes.Replace(good, []byte("configmaps"), []byte("&a [*a]"), 1))
	f.Add([]byte("slipway recording 1: x\n-- recording --\n-- end --\n"))
	f.Add([]byte("slipway recording 1\n-- recording --\n{}\n-- reads --\n[{}]\n-- end --\nsha256: x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = ParseHeader(text)
		r, err := Parse(text)
		if err != nil && !errors.Is(err, ErrEdited) {
			return
		}
		again, err := r.Encode()
		if err != nil {
			t.Fatalf("cannot write what was read: %v", err)
		}
		if len(again) > MaxSize {
			return
		}
		if _, err := Parse(again); err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, again)
		}
	})
}
