package caller

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func token(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + ".signature"
}

func send(t *testing.T, handler http.Handler, method, path, authorization string) int {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}"))
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, req)
	return rec.Code
}

func TestOnlyTokensOfKnownSendersOpenTheGate(t *testing.T) {
	good := token(`{"aud":["f.ns"],"sub":"trigger"}`)
	cases := map[string]struct {
		reason        string
		authorization string
		user          string
		err           error
		want, asked   int
	}{
		"None":     {"an event from anywhere has no token", "", "trigger", nil, 401, 0},
		"Basic":    {"another scheme is no token", "Basic abc", "trigger", nil, 401, 0},
		"Garbage":  {"what is no token is not asked about", "Bearer abc", "trigger", nil, 401, 0},
		"Huge":     {"a token has bounds", "Bearer " + strings.Repeat("a", 1<<20), "trigger", nil, 401, 0},
		"Audience": {"a token for the broker is not for the function", "Bearer " + token(`{"aud":["broker"]}`), "trigger", nil, 401, 0},
		"Invalid":  {"whatever it says of itself, the API server decides", "Bearer " + good, "", nil, 401, 1},
		"Stranger": {"a valid token of somebody else", "Bearer " + good, "system:serviceaccount:ns:other", nil, 403, 1},
		"Outage":   {"the broker shall send the event again", "Bearer " + good, "", errors.New("down"), 503, 1},
		"Good":     {"the Trigger's own token", "Bearer " + good, "trigger", nil, 204, 1},
		"One":      {"one audience may be written without a list", "bearer " + token(`{"aud":"f.ns"}`), "trigger", nil, 204, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			gate := &Gate{Audience: "f.ns", Senders: []string{"trigger"}, Now: time.Now, Review: func(_ context.Context, _, audience string) (string, error) {
				asked++
				if audience != "f.ns" {
					t.Errorf("asked for audience %q", audience)
				}
				return tc.user, tc.err
			}}
			handler := gate.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !Admitted(r.Context()) {
					t.Error("the handler cannot tell that the gate was there")
				}
				w.WriteHeader(http.StatusNoContent)
			}))
			if got := send(t, handler, http.MethodPost, "/", tc.authorization); got != tc.want || asked != tc.asked {
				t.Errorf("%s: %d with %d questions, want %d with %d", tc.reason, got, asked, tc.want, tc.asked)
			}
		})
	}
}

func TestAnAnswerIsRememberedForAMinute(t *testing.T) {
	now, asked := time.Unix(0, 0), 0
	gate := &Gate{Audience: "a", Senders: []string{"u"}, Now: func() time.Time { return now }, Review: func(context.Context, string, string) (string, error) {
		asked++
		return "u", nil
	}}
	handler := gate.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for i, step := range []struct {
		after time.Duration
		asked int
	}{{0, 1}, {59 * time.Second, 1}, {2 * time.Second, 2}} {
		now = now.Add(step.after)
		if got := send(t, handler, http.MethodPost, "/", "Bearer "+token(`{"aud":"a"}`)); got != 204 || asked != step.asked {
			t.Errorf("step %d: %d after %d questions, want %d", i, got, asked, step.asked)
		}
	}
	for i := range mostRemembered + 10 {
		send(t, handler, http.MethodPost, "/", "Bearer "+token(fmt.Sprintf(`{"aud":"a","n":%d}`, i)))
	}
	if len(gate.known) > mostRemembered {
		t.Errorf("%d tokens are remembered", len(gate.known))
	}
}

func TestProbesPassWithoutAToken(t *testing.T) {
	gate := &Gate{Audience: "a", Senders: []string{"u"}, Now: time.Now}
	handler := gate.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for path, want := range map[string]int{"/health/readiness": 204, "/health/liveness": 204, "/": 401} {
		if got := send(t, handler, http.MethodGet, path, ""); got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
	if got := send(t, handler, http.MethodPost, "/health/readiness", ""); got != 401 {
		t.Errorf("an event is no probe: %d", got)
	}
}

func TestTheGateIsOffUnlessItIsAskedFor(t *testing.T) {
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	review := func() (Review, error) { return nil, nil } //nolint:unparam // the signature is given
	gate, err := FromEnvironment(getenv, review)
	if gate != nil || err != nil || Required(getenv) {
		t.Errorf("without settings there is no gate: %v, %v", gate, err)
	}
	if got := send(t, gate.Guard(http.NotFoundHandler()), http.MethodPost, "/", ""); got != 404 {
		t.Errorf("no gate stops nobody: %d", got)
	}
	for _, half := range []map[string]string{{EnvAudience: "a"}, {EnvSenders: "u"}, {EnvAudience: "a", EnvSenders: " , "}} {
		env = half
		if _, err := FromEnvironment(getenv, review); err == nil || !strings.Contains(err.Error(), EnvAudience) || !Required(getenv) {
			t.Errorf("%v: half a gate is none: %v", half, err)
		}
	}
	env = map[string]string{EnvAudience: "a", EnvSenders: "u, v"}
	gate, err = FromEnvironment(getenv, review)
	if err != nil || len(gate.Senders) != 2 {
		t.Errorf("%+v, %v", gate, err)
	}
}

func TestTheTokenForTheBrokerIsReadAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	getenv := func(string) string { return path }
	if _, err := Authorization(getenv); err == nil || !strings.Contains(err.Error(), EnvTokenFile) {
		t.Errorf("a missing file: %v", err)
	}
	for _, want := range []string{"one", "two"} {
		if err := os.WriteFile(path, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Authorization(getenv); got != "Bearer "+want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := Authorization(func(string) string { return "" }); got != "" || err != nil {
		t.Errorf("without a file there is no header: %q, %v", got, err)
	}
}
