package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
)

// managementCluster plays a management cluster without KubevirtConfigs, and returns a
// kubeconfig for it. What a real one says is for test/clustercheck.
func managementCluster(t *testing.T, objects map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, ok := objects[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			text = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return kubeconfig(t, server.URL)
}

func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "` + server + `"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const served = `{"kind":"APIResourceList","groupVersion":"vitistack.io/v1alpha1","resources":[{"name":"machines"},{"name":"networkconfigurations"},{"name":"kubevirtconfigs"}]}`

func TestCheckPrintsEveryFormatAndFailsWithAFailure(t *testing.T) {
	path := managementCluster(t, map[string]string{
		"/apis/vitistack.io/v1alpha1":                 served,
		"/apis/vitistack.io/v1alpha1/kubevirtconfigs": `{"apiVersion":"vitistack.io/v1alpha1","kind":"KubevirtConfigList","metadata":{},"items":[]}`,
	})
	table, err := run(t, "check", "--kubeconfig", path)
	if err == nil || err.Error() != "1 of 3 checks failed" {
		t.Errorf("the error is %v", err)
	}
	var first []string
	for line := range strings.Lines(table) {
		first = append(first, strings.Join(strings.Fields(line)[:3], " "))
	}
	want := []string{"CHECK CLUSTER RESULT", "resources (management) ok", "configs (management) failed", "schemas (management) warning"}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, table)
	}
	text, err := run(t, "check", "--kubeconfig", path, "-o", "json")
	var got report
	if err == nil || json.Unmarshal([]byte(text), &got) != nil || got.Passed || got.Failed != 1 || got.Warnings != 1 || len(got.Checks) != 3 {
		t.Errorf("%v: %s", err, text)
	}
	if text, err = run(t, "check", "--kubeconfig", path, "-o", "yaml"); err == nil || !strings.Contains(text, "check: configs") {
		t.Errorf("%v: %s", err, text)
	}
}

func TestCheckTellsWhatItCannotUse(t *testing.T) {
	path := managementCluster(t, map[string]string{"/apis/vitistack.io/v1alpha1": served})
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"NoTime":        {"nothing could answer", []string{"--timeout", "0s"}, "--timeout 0s: give a duration above 0"},
		"UnknownMode":   {"the modes are named", []string{"--single-cluster", "maybe"}, `"maybe": use auto, true, false`},
		"NobodyAnswers": {"the management cluster is needed for everything", []string{"--kubeconfig", kubeconfig(t, "http://127.0.0.1:1")}, "cannot check: cannot discover"},
		"UnknownConfig": {"a typo must not check nothing", []string{"--single-cluster", "false", "east"}, `cannot find KubevirtConfig "east"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if out, err := run(t, append([]string{"check", "--kubeconfig", path}, tc.args...)...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v: %s", tc.reason, tc.want, err, out)
			}
		})
	}
}

func TestWarningsAndWhatIsSkippedPass(t *testing.T) {
	r := judge([]decide.Finding{{Result: decide.OK}, {Result: decide.Warning}, {Result: decide.Skipped}})
	if !r.Passed || r.Warnings != 1 || r.Failed != 0 {
		t.Errorf("%+v", r)
	}
}

func TestKubevirtConfigsAreCompleted(t *testing.T) {
	path := managementCluster(t, map[string]string{
		"/apis/vitistack.io/v1alpha1/kubevirtconfigs": `{"apiVersion":"vitistack.io/v1alpha1","kind":"KubevirtConfigList","metadata":{},"items":[
			{"apiVersion":"vitistack.io/v1alpha1","kind":"KubevirtConfig","metadata":{"name":"west"}},
			{"apiVersion":"vitistack.io/v1alpha1","kind":"KubevirtConfig","metadata":{"name":"east"}}]}`,
	})
	out, err := run(t, "__complete", "check", "--kubeconfig", path, "")
	if err != nil || !strings.HasPrefix(out, "east\nwest\n") {
		t.Errorf("%v: %q", err, out)
	}
	if out, err = run(t, "__complete", "check", "--kubeconfig", path, "east", ""); err != nil || !strings.HasPrefix(out, "west\n") {
		t.Errorf("%v: %q", err, out)
	}
}

// terminal is what a person sees.
type terminal struct {
	mu    sync.Mutex
	b     bytes.Buffer
	drawn chan struct{}
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.drawn <- struct{}{}:
	default:
	}
	return s.b.Write(p)
}

func (s *terminal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestProgressNamesWhoIsWaitedForAndGoes(t *testing.T) {
	screen := &terminal{drawn: make(chan struct{}, 1)}
	p := startProgress(screen, time.Millisecond, time.Millisecond)
	p.update(2, 7, []string{"east", "north", "south", "west", "zulu"})
	<-screen.drawn
	p.end()
	shown := screen.String()
	if !strings.Contains(shown, "2 of 7 clusters checked, waiting for east, north, south and 2 more (0s)") || !strings.HasSuffix(shown, eraseLine) {
		t.Errorf("shown is %q", shown)
	}
}

func TestWhatIsQuickOrNoTerminalShowsNoProgress(t *testing.T) {
	screen := &terminal{}
	p := startProgress(screen, time.Hour, time.Hour)
	p.update(1, 1, nil)
	p.end()
	if shown := screen.String(); shown != "" {
		t.Errorf("shown is %q", shown)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p = newProgress(file)
	p.update(0, 1, []string{"east"})
	p.end()
	if info, err := file.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("a file got %v bytes, %v", info.Size(), err)
	}
}
