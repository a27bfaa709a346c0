package record

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func lookup(settings map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, ok := settings[name]; return value, ok }
}

func TestThePolicySaysWhichReconcilesAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		reason                string
		settings              map[string]string
		namespace, annotation string
		want                  bool
	}{
		"Nothing":            {"nobody asked for it", nil, "a", "", false},
		"Annotated":          {"an object asks for itself", nil, "a", "true", true},
		"Nonsense":           {"what nobody understands asks for nothing", nil, "a", "maybe", false},
		"All":                {"the function's setting", map[string]string{"SLIPWAY_RECORD": "all"}, "a", "", true},
		"AllButOne":          {"an object can refuse", map[string]string{"SLIPWAY_RECORD": "all"}, "a", "false", false},
		"Off":                {"off is off, whatever an object says", map[string]string{"SLIPWAY_RECORD": "off"}, "a", "true", false},
		"Namespace":          {"one of those that are named", map[string]string{"SLIPWAY_RECORD_NAMESPACES": "b, a"}, "a", "", true},
		"OtherNamespace":     {"none of those", map[string]string{"SLIPWAY_RECORD_NAMESPACES": "b"}, "a", "", false},
		"SampledAway":        {"a share of nothing", map[string]string{"SLIPWAY_RECORD": "all", "SLIPWAY_RECORD_SAMPLE": "0"}, "a", "", false},
		"SampledButAskedFor": {"who asks is not sampled", map[string]string{"SLIPWAY_RECORD": "all", "SLIPWAY_RECORD_SAMPLE": "0"}, "a", "true", true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ParsePolicy(lookup(c.settings))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Wants(c.namespace, c.annotation, "id", func() string { t.Error("the namespace is asked"); return "" }); got != c.want {
				t.Errorf("%s: got %v", c.reason, got)
			}
		})
	}
}

func TestANamespaceSaysSoForItsObjects(t *testing.T) {
	for name, c := range map[string]struct {
		reason               string
		annotation, of, more string
		want                 bool
	}{
		"Yes":           {"its objects are kept", "", "true", "", true},
		"Silent":        {"nobody asks", "", "", "", false},
		"ObjectRefuses": {"the object is nearer", "false", "true", "", false},
		"ObjectAsks":    {"the object is nearer", "true", "false", "", true},
		"Refuses":       {"the namespace is nearer than the list of the function", "", "false", "a", false},
		"Listed":        {"the list still counts", "", "", "a", true},
	} {
		p, err := ParsePolicy(lookup(map[string]string{"SLIPWAY_RECORD": "namespaces", "SLIPWAY_RECORD_NAMESPACES": c.more}))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Wants("a", c.annotation, "id", func() string { return c.of }); got != c.want {
			t.Errorf("%s: %s: got %v", name, c.reason, got)
		}
	}
	p, err := ParsePolicy(lookup(map[string]string{"SLIPWAY_RECORD": "namespaces", "SLIPWAY_RECORD_SAMPLE": "0"}))
	if err != nil || p.Wants("a", "", "id", func() string { return "true" }) {
		t.Errorf("what a namespace asks for is not sampled, %v", err)
	}
}

func TestASampleIsAboutAsLargeAsItShouldBe(t *testing.T) {
	p := Policy{All: true, Sample: 0.25}
	kept := 0
	for i := range 4000 {
		if p.Wants("a", "", fmt.Sprint(i), nil) {
			kept++
		}
	}
	if kept < 900 || kept > 1100 {
		t.Errorf("%d of 4000 are kept", kept)
	}
}

func TestBadSettingsAreRefusedByName(t *testing.T) {
	for name, value := range map[string]string{
		"SLIPWAY_RECORD": "yes", "SLIPWAY_RECORD_SAMPLE": "2", "SLIPWAY_RECORD_MAX_BYTES": "0", "SLIPWAY_RECORD_KEEP": "-1", "SLIPWAY_RECORD_ARCHIVE": "nowhere",
	} {
		if _, err := FromEnvironment("demo", lookup(map[string]string{name: value, "SLIPWAY_RECORD_DIR": "x"}), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	r, err := FromEnvironment("demo", lookup(map[string]string{"SLIPWAY_RECORD": "all"}), nil)
	if r != nil || err != nil {
		t.Errorf("without a sink there is nothing to keep: %v, %v", r, err)
	}
}

// shelf is a sink.
type shelf struct {
	mu    sync.Mutex
	kept  map[string][]byte
	block chan struct{}
	err   error
}

func (s *shelf) Keep(_ context.Context, id string, text []byte) error {
	if s.block != nil {
		<-s.block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string][]byte{}
	}
	s.kept[id] = text
	return s.err
}

// counted makes a recorder, keeps recordings, and tells what became of them.
func counted(t *testing.T, sink *shelf, most int, recordings ...func() *Recording) map[string]int {
	t.Helper()
	var mu sync.Mutex
	results := map[string]int{}
	r := New(Policy{All: true, Sample: 1, MaxBytes: most}, slog.New(slog.DiscardHandler), sink)
	r.Count = func(result string) { mu.Lock(); defer mu.Unlock(); results[result]++ }
	for _, make := range recordings {
		r.Keep(make)
	}
	if sink.block != nil {
		close(sink.block)
	}
	r.Close(t.Context())
	r.Close(t.Context())
	r.Keep(specimen)
	mu.Lock()
	defer mu.Unlock()
	return results
}

func TestWhatCannotBeKeptIsDroppedAndCounted(t *testing.T) {
	many := make([]func() *Recording, 3*waiting)
	for i := range many {
		many[i] = specimen
	}
	got := counted(t, &shelf{block: make(chan struct{})}, MaxSize, many...)
	if got[Kept]+got[Dropped] != len(many)+1 || got[Kept] < waiting || got[Dropped] < waiting {
		t.Errorf("with a sink that hangs: %v", got)
	}
	if got := counted(t, &shelf{err: errors.New("full")}, MaxSize, specimen); got[Dropped] != 2 {
		t.Errorf("with a sink that refuses: %v", got)
	}
	if got := counted(t, &shelf{}, MaxSize, func() *Recording { panic("broken") }, specimen); got[Dropped] != 2 || got[Kept] != 1 {
		t.Errorf("with one that cannot be made: %v", got)
	}
}

func TestWhatIsTooLargeIsCutAndSaysSo(t *testing.T) {
	large := func() *Recording {
		r := specimen()
		r.Reads = append(r.Reads, Read{Question: "get", Name: "x", Object: map[string]any{"a": strings.Repeat("x", 10000)}})
		return r
	}
	sink := &shelf{}
	if got := counted(t, sink, 6000, large); got[Cut] != 1 {
		t.Fatalf("%v", got)
	}
	r, err := Parse(sink.kept[specimen().Header.ID])
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Cut == "" || len(r.Reads) > 0 || len(r.Decisions) != 1 {
		t.Errorf("it is cut to %+v", r)
	}
	if got := counted(t, sink, 100, large); got[Cut] != 1 {
		t.Errorf("%v", got)
	}
	if r, err = Parse(sink.kept[specimen().Header.ID]); err != nil || len(r.Decisions) > 0 || r.Header.Name != "w" {
		t.Errorf("want the header alone, got %v, %+v", err, r)
	}
}

func TestADirectoryKeepsTheNewestAndListsThem(t *testing.T) {
	dir := t.TempDir()
	d := &Directory{Path: dir, Function: "demo", Most: 5}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 20 {
		r := specimen()
		r.Header.ID = start.Add(time.Duration(i)*time.Second).Format("20060102T150405.000000Z") + "-demo-0000000a"
		r.Header.Name = fmt.Sprintf("w%d", i%2)
		if err := d.Keep(t.Context(), r.Header.ID, encoded(t, r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "demo", "broken.txtar"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Headers(dir, Filter{})
	if err != nil || len(all) != 5 || !strings.HasPrefix(all[4].ID, "20260101T000019") {
		t.Fatalf("%d are listed: %v, %v", len(all), all, err)
	}
	some, err := Headers(dir, Filter{Name: "w1", Kind: "widget", Limit: 1, After: all[0].ID})
	if err != nil || len(some) != 1 || some[0].ID != all[4].ID {
		t.Errorf("the newest of one object is %v, %v", some, err)
	}
	path, err := Find(dir, all[0].ID)
	if err != nil || filepath.Base(path) != all[0].ID+Suffix {
		t.Errorf("%s, %v", path, err)
	}
	for _, id := range []string{"../../etc/passwd", "", "missing", "a/b"} {
		if path, err := Find(dir, id); err == nil {
			t.Errorf("%q is found as %s", id, path)
		}
	}
}

func TestPasswordsInURLsAreReplacedByAsManyCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"http://user:hunter2@proxy:3128":           "http://user:xxxxxxx@proxy:3128",
		"a http://u:p@h and https://v:qq@i/x?y=z@": "a http://u:x@h and https://v:xx@i/x?y=z@",
		"http://proxy:3128/a@b":                    "http://proxy:3128/a@b",
		"user:hunter2@proxy":                       "user:hunter2@proxy",
	} {
		if diff := cmp.Diff(want, WithoutPasswords(text)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
