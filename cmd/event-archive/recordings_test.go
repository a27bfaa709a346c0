package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/record"
)

// specimen is the text of a recording.
func specimen(t *testing.T, id, function string, size int) []byte {
	t.Helper()
	r := record.Recording{
		Header: record.Header{Format: record.Format, ID: id, Function: function, Kind: "Widget", Namespace: "a", Name: "w"},
		Reads:  []record.Read{{Question: "get", Name: "w", Object: map[string]any{"x": strings.Repeat("x", size)}}},
	}
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func served(t *testing.T, store Store, change func(*Archive)) (string, *Archive) {
	t.Helper()
	a := archiveOn(store)
	if change != nil {
		change(a)
	}
	server := httptest.NewServer(a.Handler(http.NotFoundHandler()))
	t.Cleanup(server.Close)
	return server.URL, a
}

func do(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestARecordingIsKeptListedAndRead(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		url, a := served(t, store, nil)
		sink := record.NewArchive(url + "/recordings")
		for _, id := range []string{"20260101T000001.000000Z-demo-1", "20260101T000002.000000Z-other-2"} {
			function := strings.Split(id, "-")[1]
			if err := sink.Keep(t.Context(), id, specimen(t, id, function, 10)); err != nil {
				t.Fatal(err)
			}
		}
		// What another process of the archive has written is found too.
		other, _ := served(t, store, nil)
		for _, address := range []string{url, other} {
			code, text := do(t, http.MethodGet, address+"/api/recordings?kind=widget&after=20260101T000001.000000Z-demo-1", "")
			var list struct{ Items []record.Header }
			if err := json.Unmarshal([]byte(text), &list); code != http.StatusOK || err != nil || len(list.Items) != 1 || list.Items[0].Function != "other" {
				t.Errorf("%d %s, %v", code, text, err)
			}
		}
		code, text := do(t, http.MethodGet, url+"/api/recordings/20260101T000001.000000Z-demo-1", "")
		if _, err := record.Parse([]byte(text)); code != http.StatusOK || err != nil {
			t.Errorf("%d, %v", code, err)
		}
		if code, _ = do(t, http.MethodGet, url+"/api/recordings/missing", ""); code != http.StatusNotFound {
			t.Errorf("a missing one is answered %d", code)
		}
		a.known.asked = time.Time{} // as if the time to list again had come
		if headers, err := a.headers(t.Context(), record.Filter{Limit: 1}); err != nil || len(headers) != 1 || headers[0].Function != "other" {
			t.Errorf("the newest is %v, %v", headers, err)
		}
	})
}

func TestManyRecordingsAreFiltered(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		for i := range 50 {
			id := time.Unix(int64(i), 0).UTC().Format("20060102T150405.000000Z") + "-demo-1"
			if err := store.Put(t.Context(), recordingName(id), specimen(t, id, map[bool]string{true: "even", false: "odd"}[i%2 == 0], 10)); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Put(t.Context(), recordingName("29990101T000000.000000Z-broken-1"), []byte("hello")); err != nil {
			t.Fatal(err)
		}
		a := archiveOn(store)
		for range 2 {
			headers, err := a.headers(t.Context(), record.Filter{Function: "odd", Limit: 20})
			if err != nil || len(headers) != 20 || headers[19].ID[:15] != "19700101T000049" || headers[0].ID[:15] != "19700101T000011" {
				t.Errorf("%d are listed, %v", len(headers), err)
			}
		}
		if headers, err := a.headers(t.Context(), record.Filter{Name: "nobody"}); err != nil || len(headers) != 0 {
			t.Errorf("%v, %v", headers, err)
		}
	})
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		url, _ := served(t, store, nil)
		good := string(specimen(t, "x", "demo", 10))
		for name, c := range map[string]struct {
			id, body string
			want     int
		}{
			"another name":  {"y", good, http.StatusBadRequest},
			"a dotted name": {"..%2f..%2fx", good, http.StatusBadRequest},
			"no recording":  {"x", "hello", http.StatusBadRequest},
			"too large":     {"x", string(specimen(t, "x", "demo", 1<<17)), http.StatusRequestEntityTooLarge},
		} {
			if code, text := do(t, http.MethodPut, url+"/recordings/"+c.id, c.body); code != c.want {
				t.Errorf("%s: answered %d %s", name, code, text)
			}
		}
		if names := kept(t, store, recordingsDir); len(names) > 0 {
			t.Errorf("something was kept: %v", names)
		}
		if code, _ := do(t, http.MethodPut, url+"/recordings/x", string(specimen(t, "x", "../../up", 10))); code != http.StatusNoContent {
			t.Errorf("answered %d", code)
		}
		if names := kept(t, store, recordingsDir); len(names) != 1 || names[0] != recordingName("x") {
			t.Errorf("a function's name leads elsewhere: %v", names)
		}
	})
}

func TestTheOldestRecordingsGoWhenThereIsNoRoom(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		url, a := served(t, store, func(a *Archive) { a.MaxBytes = 20_000 })
		sink := record.NewArchive(url + "/recordings")
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		last := ""
		for i := range 30 {
			last = start.Add(time.Duration(i)*time.Second).Format("20060102T150405.000000Z") + "-demo-1"
			if err := sink.Keep(t.Context(), last, specimen(t, last, "demo", 1500)); err != nil {
				t.Fatal(err)
			}
		}
		headers, err := a.headers(t.Context(), record.Filter{})
		if err != nil || len(headers) > 13 || len(headers) < 5 || headers[len(headers)-1].ID != last {
			t.Errorf("%d are left, %v", len(headers), err)
		}
		if names := kept(t, store, recordingsDir); len(names) != len(headers) {
			t.Errorf("%d files, %d headers", len(names), len(headers))
		}
	})
}

func TestDeadLettersAreListed(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		url, a := served(t, store, nil)
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		for i, id := range []string{"1", "2"} {
			if err := a.Handle(t.Context(), letter(id, at.Add(time.Duration(i)*time.Second))); status(err) != http.StatusNoContent {
				t.Fatal(err)
			}
		}
		code, text := do(t, http.MethodGet, url+"/api/deadletters?limit=1", "")
		var list struct{ Items []Letter }
		if err := json.Unmarshal([]byte(text), &list); code != http.StatusOK || err != nil || len(list.Items) != 1 || !strings.Contains(string(list.Items[0].Event), `"id":"2"`) {
			t.Fatalf("%d %s, %v", code, text, err)
		}
		if code, text = do(t, http.MethodGet, url+"/api/deadletters/"+list.Items[0].ID, ""); code != http.StatusOK || !strings.Contains(text, "machines/web") {
			t.Errorf("%d %s", code, text)
		}
		if code, _ = do(t, http.MethodGet, url+"/api/deadletters/none", ""); code != http.StatusNotFound {
			t.Errorf("a missing one is answered %d", code)
		}
	})
}

// TestReadersHaveAPortOfTheirOwn, where nothing can be put.
func TestReadersHaveAPortOfTheirOwn(t *testing.T) {
	a := archiveOn(Directory(t.TempDir()))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.Readers = listener.Addr().String()
	_ = listener.Close()
	if err := a.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	url := "http://" + a.Readers
	if code, text := do(t, http.MethodGet, url+"/api/recordings", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := do(t, http.MethodPut, url+"/recordings/x", string(specimen(t, "x", "demo", 10))); code != http.StatusNotFound {
		t.Errorf("a recording is answered %d", code)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestTheClusterDecidesWhoReads: an API server that knows one token, and one right.
func TestTheClusterDecidesWhoReads(t *testing.T) {
	const canary = "canary-token-3f9d1c"
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Spec struct {
				Token     string
				Audiences []string
				User      string
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		switch {
		case strings.HasSuffix(r.URL.Path, "tokenreviews"):
			user := map[string]string{"good": "reader", "powerless": "somebody"}[review.Spec.Token]
			reply(w, map[string]any{"status": map[string]any{"authenticated": user != "", "user": map[string]any{"username": user}}})
		case strings.HasSuffix(r.URL.Path, "subjectaccessreviews"):
			reply(w, map[string]any{"status": map[string]any{"allowed": review.Spec.User == "reader"}})
		}
	}))
	defer api.Close()
	log := &strings.Builder{}
	url, _ := served(t, Directory(t.TempDir()), func(a *Archive) {
		var err error
		if a.Auth, err = NewAuth(&rest.Config{Host: api.URL}, "slipway-system"); err != nil {
			t.Fatal(err)
		}
		a.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	for name, c := range map[string]struct {
		header, value string
		want          int
	}{
		"nobody":                 {"X-None", "", http.StatusUnauthorized},
		"an unknown token":       {"X-Slipway-Token", canary, http.StatusUnauthorized},
		"somebody without right": {"X-Slipway-Token", "powerless", http.StatusForbidden},
		"a reader":               {"X-Slipway-Token", "good", http.StatusOK},
		"a reader in the usual":  {"Authorization", "Bearer good", http.StatusOK},
	} {
		for _, path := range []string{"/api/recordings", "/api/deadletters"} {
			if code, text := do(t, http.MethodGet, url+path, "", c.header, c.value); code != c.want || strings.Contains(text, canary) {
				t.Errorf("%s at %s: answered %d %s", name, path, code, text)
			}
		}
	}
	if strings.Contains(log.String(), canary) {
		t.Error("a token is in the log")
	}
}
