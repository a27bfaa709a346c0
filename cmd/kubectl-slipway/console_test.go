package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/shared/record"
)

// consoleOn serves the console of a directory.
func consoleOn(t *testing.T, dir string) (*httptest.Server, *console) {
	t.Helper()
	c, err := newConsole(&options{out: io.Discard}, folder(dir))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c.handler())
	t.Cleanup(server.Close)
	return server, c
}

func ask(t *testing.T, method, address string, form url.Values, header ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func TestThePagesShowWhatThereIs(t *testing.T) {
	dir, id := shelf(t)
	server, _ := consoleOn(t, dir)
	for path, says := range map[string][]string{
		"/":                         {"<svg", "organization-onboarder", "/recording/" + id, "aria-live", "lang=\"en\""},
		"/flow":                     {"role=\"img\"", "organization-onboarder"},
		"/recording/" + id:          {"Replay offline", "Decision 1", "What was read"},
		"/object?kind=Organization": {id},
		"/deadletters":              {"lost-1", "503", "bytes"},
		"/style.css":                {"prefers-color-scheme: dark"},
		"/live.js":                  {"EventSource"},
	} {
		code, body, header := ask(t, http.MethodGet, server.URL+path, nil)
		if code != http.StatusOK || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s is answered %d with policy %q", path, code, header.Get("Content-Security-Policy"))
		}
		for _, text := range says {
			if text == "aria-live" {
				text = "role=\"status\"" // which is live, and polite
			}
			if !strings.Contains(body, text) {
				t.Errorf("%s does not show %q:\n%s", path, text, body)
			}
		}
		if strings.Contains(body, "canary") {
			t.Errorf("%s shows a secret", path)
		}
		if strings.Contains(body, "https://cdn") || strings.Contains(body, "style=\"") || strings.Contains(body, "onclick") {
			t.Errorf("%s needs what its policy forbids", path)
		}
	}
}

func TestNobodyElseCanUseTheConsole(t *testing.T) {
	dir, id := shelf(t)
	server, c := consoleOn(t, dir)
	replay := server.URL + "/recording/" + id + "/replay"
	good := url.Values{"token": {c.token}, "how": {"offline"}}
	for name, x := range map[string]struct {
		method, address string
		form            url.Values
		header          []string
		want            int
	}{
		"another host's name":  {http.MethodGet, server.URL + "/", nil, []string{"Host", "evil.example:80"}, http.StatusMisdirectedRequest},
		"no token":             {http.MethodPost, replay, url.Values{"how": {"plan"}}, nil, http.StatusForbidden},
		"another page's form":  {http.MethodPost, replay, good, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"a replay by get":      {http.MethodGet, replay, nil, nil, http.StatusMethodNotAllowed},
		"a name that is path":  {http.MethodGet, server.URL + "/recording/..%2f..%2fetc", nil, nil, http.StatusNotFound},
		"the form of the page": {http.MethodPost, replay, good, []string{"Sec-Fetch-Site", "same-origin"}, http.StatusOK},
	} {
		if code, body, _ := ask(t, x.method, x.address, x.form, x.header...); code != x.want {
			t.Errorf("%s is answered %d, want %d\n%s", name, code, x.want, body)
		}
	}
	if _, body, _ := ask(t, http.MethodPost, replay, good); !strings.Contains(body, "byte for byte") {
		t.Errorf("the replay says:\n%s", body)
	}
	if _, body, _ := ask(t, http.MethodPost, replay, url.Values{"token": {c.token}, "how": {"plan"}}); !strings.Contains(body, "cannot find the cluster") {
		t.Errorf("without a cluster the plan says:\n%s", body)
	}
	if err := c.serve(t.Context(), "0.0.0.0:0"); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("it would listen everywhere: %v", err)
	}
}

func TestAnOfflineConsoleNeverAsksTheCluster(t *testing.T) {
	dir, id := shelf(t)
	server, c := consoleOn(t, dir)
	c.offline = true
	if _, body, _ := ask(t, http.MethodGet, server.URL+"/recording/"+id, nil); strings.Contains(body, `value="plan"`) || !strings.Contains(body, "Replay offline") {
		t.Errorf("the page offers what it refuses:\n%s", body)
	}
	replay := server.URL + "/recording/" + id + "/replay"
	for how, want := range map[string]int{"plan": http.StatusForbidden, "offline": http.StatusOK} {
		if code, body, _ := ask(t, http.MethodPost, replay, url.Values{"token": {c.token}, "how": {how}}); code != want {
			t.Errorf("%s is answered %d:\n%s", how, code, body)
		}
	}
}

func TestWhatAnObjectIsCalledIsNoMarkup(t *testing.T) {
	dir, _ := shelf(t)
	r, err := record.ReadFile(specimenPath, false)
	if err != nil {
		t.Fatal(err)
	}
	const evil = `<script>alert(1)</script>`
	r.Header.ID, r.Header.Name, r.Header.Trigger, r.Header.Function = "20260101T000000.000000Z-evil-1", evil, evil+" x", evil
	r.Header.Written = []string{"created " + evil + " x"}
	r.Decisions[0].Reasons = []string{evil}
	r.Conclusion.Status = map[string]any{"a": evil}
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "recordings", r.Header.ID+record.Suffix), text, 0o600); err != nil {
		t.Fatal(err)
	}
	server, _ := consoleOn(t, dir)
	for _, path := range []string{"/", "/flow", "/recording/" + r.Header.ID, "/object?name=" + url.QueryEscape(evil)} {
		if code, body, _ := ask(t, http.MethodGet, server.URL+path, nil); code != http.StatusOK || strings.Contains(body, evil) {
			t.Errorf("%s is answered %d, with markup of somebody else's:\n%s", path, code, body)
		}
	}
}

func TestANewReconcileComesByItself(t *testing.T) {
	dir, _ := shelf(t)
	server, _ := consoleOn(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r, err := record.ReadFile(specimenPath, false)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.ID = time.Now().UTC().Add(time.Second).Format("20060102T150405.000000Z") + "-new-1"
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := record.WriteFile(filepath.Join(dir, "recordings", r.Header.ID+record.Suffix), text); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	n, err := resp.Body.Read(buffer)
	if err != nil || !strings.Contains(string(buffer[:n]), r.Header.ID) {
		t.Errorf("%v: %s", err, buffer[:n])
	}
}
