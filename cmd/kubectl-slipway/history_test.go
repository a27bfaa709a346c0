package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-dev/slipway/shared/record"
)

// archiveCluster is an API server behind which an event-archive runs, whose first token
// has expired.
func archiveCluster(t *testing.T, tokens *atomic.Int32) string {
	t.Helper()
	text, err := os.ReadFile(specimenPath)
	if err != nil {
		t.Fatal(err)
	}
	h, err := record.ParseHeader(text)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(w http.ResponseWriter, value any) { _ = json.NewEncoder(w).Encode(value) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const proxy = "/api/v1/namespaces/slipway-system/services/http:event-archive-readers:80/proxy"
		path, proxied := strings.CutPrefix(r.URL.Path, proxy)
		switch {
		case strings.HasSuffix(r.URL.Path, "/serviceaccounts/recordings-reader/token"):
			tokens.Add(1)
			w.WriteHeader(http.StatusCreated)
			answer(w, map[string]any{"status": map[string]any{"token": "good"}})
		case proxied && r.Header.Get("X-Slipway-Token") != "good":
			w.WriteHeader(http.StatusUnauthorized)
		case proxied && path == "/api/recordings" && r.URL.Query().Get("limit") == "50":
			answer(w, map[string]any{"items": []record.Header{h}})
		case proxied && path == "/api/recordings/"+h.ID:
			_, _ = w.Write(text)
		case proxied && path == "/api/deadletters":
			answer(w, map[string]any{"items": []any{map[string]any{"id": "l1", "event": map[string]any{"specversion": "1.0", "id": "x", "type": "t", "source": "s"}}}})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheClustersArchiveIsReachedThroughTheAPIServer(t *testing.T) {
	keepEnvironment(t)
	var tokens atomic.Int32
	server := archiveCluster(t, &tokens)
	path := t.TempDir() + "/kubeconfig"
	config := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "` + server + `"}}]}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "events", "-A", "--kubeconfig", path)
	if err != nil || !strings.Contains(out, "organization-onboarder") {
		t.Fatalf("%v\n%s", err, out)
	}
	id := strings.Fields(out)[len(strings.Fields(out))-1]
	if out, err = run(t, "replay", id, "--kubeconfig", path); err != nil || !strings.Contains(out, "byte for byte") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = run(t, "replay", "--from-dead-letter", "--all", "--kubeconfig", path); err != nil || !strings.Contains(out, "l1") {
		t.Errorf("%v\n%s", err, out)
	}
	if tokens.Load() != 3 {
		t.Errorf("%d tokens were made for three commands", tokens.Load())
	}
}

func TestAnArchiveIsReadWithATokenFromAFile(t *testing.T) {
	keepEnvironment(t)
	var tokens atomic.Int32
	server := archiveCluster(t, &tokens)
	file := t.TempDir() + "/token"
	h, err := (&options{}).history(server + "/api/v1/namespaces/slipway-system/services/http:event-archive-readers:80/proxy")
	if err != nil {
		t.Fatal(err)
	}
	if err := byTokenFile(h, file); err != nil {
		t.Fatal(err)
	}
	if _, err := h.letters(t.Context()); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("without the file: %v", err)
	}
	for _, token := range []string{"stale", "good"} { // the kubelet renews it
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := h.letters(t.Context()); (err == nil) != (token == "good") {
			t.Errorf("with a %s token: %v", token, err)
		}
	}
	if err := byTokenFile(folder("."), file); err == nil {
		t.Error("a directory is asked with a token")
	}
}
