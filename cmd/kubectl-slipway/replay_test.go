package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/shared/record"
)

// specimenPath is a recording that the repository holds as a test case.
const specimenPath = "../../functions/organization-onboarder/testdata/recordings/an-organization-is-made-ready.txtar"

// shelf is a directory with the specimen and a dead letter, as a local stack has them.
func shelf(t *testing.T) (dir, id string) {
	t.Helper()
	keepEnvironment(t)
	r, err := record.ReadFile(specimenPath, false)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for path, content := range map[string]string{
		filepath.Join("recordings", r.Header.Function, r.Header.ID+record.Suffix): string(text),
		filepath.Join("event-archive", "20260101T000000.000000000Z-aa.json"): `{"specversion":"1.0","id":"lost-1","type":"dev.knative.apiserver.ref.update","source":"https://test",
			"subject":"/apis/x/y","time":"2026-01-01T00:00:00Z","datacontenttype":"application/json","apiversion":"v1","kind":"Organization","name":"a",
			"knativeerrorcode":"503","knativeerrordata":"c","authtoken":"canary-3f9d1c","data":{"password":"canary-3f9d1c"}}`,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, r.Header.ID
}

// keepEnvironment puts back at the end what commands change in the environment. No
// cluster is in reach.
func keepEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"SLIPWAY_RECORD", "SLIPWAY_RECORD_DIR", "SLIPWAY_RECORD_ARCHIVE", "SLIPWAY_MODE", "K_SINK", "LOG_LEVEL"} {
		t.Setenv(name, os.Getenv(name))
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
}

func TestAReplayOfTheSameVersionIsTheSame(t *testing.T) {
	dir, id := shelf(t)
	for _, args := range [][]string{{specimenPath}, {id, "--from", dir}} {
		out, err := run(t, append([]string{"replay"}, args...)...)
		if err != nil || !strings.Contains(out, "byte for byte") || !strings.Contains(out, "organization-onboarder of Organization") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	out, err := run(t, "replay", specimenPath, "-o", "json")
	var reports []replayReport
	if err != nil || json.Unmarshal([]byte(out), &reports) != nil || len(reports) != 1 || !reports[0].Same {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAReplayThatDiffersSaysHowAndEndsWithTwo(t *testing.T) {
	dir, _ := shelf(t)
	r, err := record.ReadFile(specimenPath, false)
	if err != nil {
		t.Fatal(err)
	}
	r.Conclusion.Reason = "SomethingElse"
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "other.txtar")
	if err := os.WriteFile(path, text, 0o600); err != nil { //nolint:gosec // a directory of the test's
		t.Fatal(err)
	}
	out, err := run(t, "replay", path)
	var code exitCode
	if !errors.As(err, &code) || code != exitChanges || !strings.Contains(out, "-  reason: SomethingElse") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err = run(t, "replay", path, "--save", "new", "--save-dir", dir); err == nil || !strings.Contains(err.Error(), "--accept") {
		t.Errorf("a test case that fails must not be saved by accident: %v", err)
	}
	if _, err = run(t, "replay", path, "--save", "new", "--save-dir", dir, "--accept"); !errors.As(err, &code) {
		t.Errorf("%v", err)
	}
	if out, err = run(t, "replay", filepath.Join(dir, "new.txtar")); err != nil {
		t.Errorf("what was saved has to come to the same: %v\n%s", err, out)
	}
}

func TestBadRecordingsAndFlagsAreRefusedWithTheWayOut(t *testing.T) {
	dir, id := shelf(t)
	good, err := os.ReadFile(specimenPath)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil { //nolint:gosec // a directory of the test's
			t.Fatal(err)
		}
		return path
	}
	edited := file("edited.txtar", []byte(strings.Replace(string(good), "reads: ", "reads: 1", 1)))
	for name, c := range map[string]struct {
		reason string
		args   []string
		says   string
	}{
		"Truncated":      {"half a file", []string{file("half.txtar", good[:len(good)/2])}, "it is cut off"},
		"OtherFormat":    {"a later version's", []string{file("later.txtar", []byte(strings.Replace(string(good), "recording 1:", "recording 9:", 1)))}, "this program reads format 1"},
		"Edited":         {"somebody tried something", []string{edited}, "--edited replays it all the same"},
		"Huge":           {"not even looked at", []string{file("huge.txtar", make([]byte, record.MaxSize+1))}, "at most 16777216 are read"},
		"Missing":        {"a typo", []string{"nowhere", "--from", dir}, `cannot find recording "nowhere"`},
		"Traversal":      {"a name is no path", []string{"..", "--from", dir}, `recording`},
		"ApplyOffline":   {"there is nothing to write to", []string{id, "--mode", "apply"}, "without --live"},
		"LiveAndSend":    {"one or the other", []string{id, "--live", "--send"}, "--live and --send"},
		"UnknownMode":    {"the modes are named", []string{id, "--live", "--mode", "sideways"}, "plan, observe or apply"},
		"Nothing":        {"what is to be replayed?", nil, "name a recording"},
		"BadTarget":      {"a URL is asked for", []string{id, "--from", dir, "--send", "--to", "nowhere"}, "write a URL"},
		"NoSuchLetter":   {"a typo", []string{"--from-dead-letter", "x", "--from", dir}, `cannot find dead letter "x"`},
		"BadName":        {"a test case is a file", []string{id, "--from", dir, "--save", "../x", "--save-dir", dir}, `cannot save as "../x"`},
		"LiveNowhere":    {"there is no cluster", []string{id, "--from", dir, "--live"}, "cannot find the cluster"},
		"ClusterArchive": {"nor an archive", []string{"some-id"}, "--from"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t, append([]string{"replay"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: want an error with %q, got %v", c.reason, c.says, err)
			}
		})
	}
	if out, err := run(t, "replay", edited, "--edited"); err != nil {
		t.Errorf("asked for, an edited one is replayed: %v\n%s", err, out)
	}
}

// receiver keeps what it is sent.
func receiver(t *testing.T) (string, func() []*http.Request, *[]string) {
	t.Helper()
	var got []*http.Request
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, bodies = append(got, r), append(bodies, string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []*http.Request { return got }, &bodies
}

func TestASentEventHasEveryAttribute(t *testing.T) {
	dir, id := shelf(t)
	url, got, _ := receiver(t)
	if _, err := run(t, "replay", id, "--from", dir, "--to", url); err != nil || len(got()) > 0 {
		t.Fatalf("nothing is sent unless --send says so: %v, %d were", err, len(got()))
	}
	out, err := run(t, "replay", id, "--from", dir, "--send", "--to", url)
	if err != nil || len(got()) != 1 {
		t.Fatalf("%v, %d were sent\n%s", err, len(got()), out)
	}
	r, err := record.ReadFile(specimenPath, false)
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]string{}
	for name := range got()[0].Header {
		if attribute, ok := strings.CutPrefix(strings.ToLower(name), "ce-"); ok {
			sent[attribute] = got()[0].Header.Get(name)
		}
	}
	want := map[string]string{}
	for name, value := range r.Event.Attributes {
		if name != "datacontenttype" {
			want[name] = value
		}
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("(-recorded +sent):\n%s", diff)
	}
}

func TestDeadLettersAreSentAgainOnlyIfAskedFor(t *testing.T) {
	dir, _ := shelf(t)
	url, got, bodies := receiver(t)
	out, err := run(t, "replay", "--from-dead-letter", "--all", "--from", dir, "--to", url)
	if err != nil || len(got()) > 0 || !strings.Contains(out, "lost-1") || strings.Contains(out, "canary") {
		t.Fatalf("%v, %d were sent\n%s", err, len(got()), out)
	}
	if _, err = run(t, "replay", "--from-dead-letter", "lost-1", "--send", "--from", dir, "--to", url); err != nil || len(got()) != 1 {
		t.Fatalf("%v, %d were sent", err, len(got()))
	}
	header := got()[0].Header
	want := []string{"lost-1", "/apis/x/y", "2026-01-01T00:00:00Z", "Organization", "", "application/json"}
	var have []string
	for _, name := range []string{"Ce-Id", "Ce-Subject", "Ce-Time", "Ce-Kind", "Ce-Knativeerrorcode", "Content-Type"} {
		have = append(have, header.Get(name))
	}
	if diff := cmp.Diff(want, have); diff != "" || !strings.Contains((*bodies)[0], "password") {
		t.Errorf("%s (-want +sent):\n%s", (*bodies)[0], diff)
	}
}

func TestEventsAreListedInEveryFormat(t *testing.T) {
	dir, id := shelf(t)
	for _, args := range [][]string{nil, {"-o", "wide"}, {"-o", "json"}, {"-o", "yaml"}, {"organization", "-A"}, {"--function", "organization-onboarder"}} {
		out, err := run(t, append([]string{"events", "--from", dir}, args...)...)
		if err != nil || !strings.Contains(out, id) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	if out, err := run(t, "events", "--from", dir, "machine"); err != nil || strings.Contains(out, id) {
		t.Errorf("of another kind: %v\n%s", err, out)
	}
	if _, err := run(t, "events", "--from", dir, "nonsense"); err == nil || !strings.Contains(err.Error(), "functions reconcile cluster") {
		t.Errorf("%v", err)
	}
}

func TestPlanAndRecordWantToKnowOfWhat(t *testing.T) {
	keepEnvironment(t)
	for _, args := range [][]string{{"plan"}, {"plan", "machine/a", "-f", "x"}, {"record"}, {"record", "--stop", "machine"}, {"explain"}} {
		if _, err := run(t, args...); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	for text, says := range map[string]string{"": "holds no object", "a: b": "lacks apiVersion", "{": "cannot read"} {
		if _, err := manifestsOf("-", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
