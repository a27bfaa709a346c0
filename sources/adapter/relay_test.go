package adapter

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheRelayTellsTheSinkWhoSends(t *testing.T) {
	var seen []string
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, r.Host+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Ce-Id")+" "+string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer sink.Close()
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	to, err := Relay(ctx, sink.URL+"/ns/default", file)
	if err != nil {
		t.Fatal(err)
	}
	send := func() int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Ce-Id", "1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for _, token := range []string{"one", "two"} {
		write(token)
		if got := send(); got != http.StatusAccepted {
			t.Errorf("the sink's answer is not passed on: %d", got)
		}
		want := strings.TrimPrefix(sink.URL, "http://") + " /ns/default Bearer " + token + " 1 {}"
		if got := seen[len(seen)-1]; got != want {
			t.Errorf("the sink saw %q, want %q", got, want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := send(); got != http.StatusServiceUnavailable || len(seen) != 2 {
		t.Errorf("without a token: %d, and the sink saw %d requests", got, len(seen))
	}
}

func TestWithoutATokenThereIsNoRelay(t *testing.T) {
	if got, err := Relay(t.Context(), "http://sink/a", ""); got != "http://sink/a" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Relay(t.Context(), "http://sink/a", filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), EnvTokenFile) {
		t.Errorf("a token that is not there stops the start: %v", err)
	}
}
