package cluster

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/kind"
)

// apiServer counts what is asked of it and answers by a function.
func apiServer(t *testing.T, do http.HandlerFunc) (kubeconfigText string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		do(w, r)
	}))
	t.Cleanup(srv.Close)
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	return kubeconfig(`server: "`+srv.URL+`", certificate-authority-data: `+authority, `token: `+canary), asked
}

func newSet(t *testing.T) *Set {
	t.Helper()
	client, err := New(Management, "test", &rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return NewSet(client)
}

func connected(t *testing.T, set *Set, name, text string) *Client {
	t.Helper()
	if err := set.Connect(name, []byte(text)); err != nil {
		t.Fatal(err)
	}
	client, err := set.Client(name)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func get(ctx context.Context, c *Client) error {
	_, err := c.Dynamic.Resource(kind.Namespaces.GVR()).Get(ctx, "x", metav1.GetOptions{})
	return err
}

func namespace(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}`))
}

func TestViewsDoNotShareNames(t *testing.T) {
	old, askedOld := apiServer(t, namespace)
	rotated, askedNew := apiServer(t, namespace)
	set := newSet(t)
	one, other := set.View(), set.View()
	a, b := connected(t, one, "east", old), connected(t, other, "east", rotated)
	if err := get(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := get(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if askedOld.Load() != 1 || askedNew.Load() != 1 {
		t.Errorf("CN-4: the reconciles reached %d and %d times their own cluster", askedOld.Load(), askedNew.Load())
	}
	if _, err := set.Client("east"); err == nil {
		t.Error("CN-4: a view's cluster is known outside of it")
	}
	if again := connected(t, set.View(), "west", old); again != a {
		t.Error("CN-2: the same kubeconfig makes a second connection")
	}
}

func TestACredentialIsShownToItsServerOnly(t *testing.T) {
	text, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+canary || r.UserAgent() != "test" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		namespace(w, r)
	})
	client := connected(t, newSet(t), "east", text)
	if err := get(t.Context(), client); err != nil {
		t.Error(err)
	}
	if !slices.Contains(client.Secrets(), canary) || client.Server() == "" {
		t.Errorf("the connection to %q keeps %d secrets", client.Server(), len(client.Secrets()))
	}
}

func TestACredentialDoesNotFollowARedirect(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	text, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if err := get(t.Context(), connected(t, newSet(t), "east", text)); err == nil || elsewhere.Load() != 0 {
		t.Errorf("the redirect was followed %d times: %v", elsewhere.Load(), err)
	}
}

func TestADeadClusterIsAskedOncePerCall(t *testing.T) {
	for name, c := range map[string]struct {
		do      http.HandlerFunc
		timeout time.Duration
		want    int32
	}{
		"slow":         {do: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, timeout: 2 * time.Second, want: 1},
		"unauthorized": {do: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, want: 1},
		"forbidden":    {do: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, want: 20},
		"well":         {do: namespace, want: 20},
	} {
		t.Run(name, func(t *testing.T) {
			text, asked := apiServer(t, c.do)
			set := newSet(t)
			set.RemoteTimeout = c.timeout
			ctx := WithMemory(t.Context())
			for range 20 {
				_ = get(ctx, connected(t, set.View(), "east", text))
			}
			if asked.Load() != c.want {
				t.Errorf("EV-5: it was asked %d times in one call, want %d", asked.Load(), c.want)
			}
			_ = get(WithMemory(t.Context()), connected(t, set.View(), "east", text))
			if asked.Load() != c.want+1 {
				t.Error("EV-5: another call does not ask again")
			}
		})
	}
}

func TestTheEndOfACallIsNoClustersFault(t *testing.T) {
	text, asked := apiServer(t, namespace)
	client := connected(t, newSet(t), "east", text)
	ctx := WithMemory(t.Context())
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_ = get(gone, client)
	if err := get(ctx, client); err != nil || asked.Load() == 0 {
		t.Errorf("a cancelled request counts as a dead cluster: %v", err)
	}
}

func TestThePoolIsBounded(t *testing.T) {
	p := &pool{size: 2}
	var made []*Client
	for _, host := range []string{"a", "b", "a", "c"} {
		client, err := p.client([]byte(kubeconfig(`server: "https://`+host+`"`, `token: t`)), "test", bounds{timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, client)
	}
	if made[0] != made[2] {
		t.Error("the same kubeconfig makes a second connection")
	}
	if len(p.byKey) != 2 || p.recent.Len() != 2 {
		t.Errorf("the pool of 2 keeps %d", len(p.byKey))
	}
	if again, err := p.client([]byte(kubeconfig(`server: "https://a"`, `token: t`)), "test", bounds{timeout: time.Second}); err != nil || again != made[0] {
		t.Error("the one that was used last was dropped")
	}
}

func TestARemoteClusterLeavesTimeToTellOfIt(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	call, cancel := context.WithTimeout(t.Context(), reserve+500*time.Millisecond)
	defer cancel()
	m := &memory{call: call, dead: map[*remembering]error{}}
	transport := &remembering{next: server.Client().Transport}
	req, err := http.NewRequestWithContext(context.WithValue(call, memoryKey{}, m), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := transport.RoundTrip(req); err == nil {
		resp.Body.Close()
		t.Fatal("the server has answered")
	}
	if call.Err() != nil {
		t.Error("the slow server has used up the whole call")
	}
	if m.recall(transport) == nil {
		t.Error("it is asked again in the same call")
	}
	// What cleans up after the call has a time of its own.
	after, cancel := context.WithTimeout(context.WithoutCancel(call), time.Minute)
	defer cancel()
	if bounded, end := m.bound(req.WithContext(after)); bounded.Context() != after {
		end()
		t.Error("cleaning up is bound by the call")
	}
}
