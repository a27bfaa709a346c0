package adapter

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"knative.dev/eventing/pkg/adapter/apiserver"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheWitnessSeesWhenWatchesBeginAndStartOver(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("sendInitialEvents") {
			t.Errorf("%s reached the API server", r.URL)
		}
		if r.URL.Path == "/forbidden" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	env, err := testConfig.environment("", unit{mode: "Reference"}, make([]apiserver.ResourceWatch, 3))
	if err != nil {
		t.Fatal(err)
	}
	begun, again := 0, 0
	seen, err := newWitness(env, func() { begun++ }, func() { again++ })
	if err != nil {
		t.Fatal(err)
	}
	client := seen.client(server.Client())
	for _, step := range []struct {
		path         string
		begun, again int
	}{
		{"/a", 0, 0},
		{"/forbidden?watch=true", 0, 0},
		{"/a?watch=true", 0, 0},
		{"/a?watch=true", 0, 0},                        // goes on where it ended
		{"/a?watch=true&labelSelector=x", 0, 0},        // another watch of the same
		{"/b?watch=true&sendInitialEvents=true", 0, 0}, // is not let through
		{"/b?watch=true", 1, 0},                        // the last one
		{"/a?watch=true", 1, 0},
		{"/a", 1, 0},
		{"/a?watch=true", 1, 1}, // after a list
		{"/a?watch=true", 1, 1},
	} {
		answer, err := client.Get(server.URL + step.path)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if begun != step.begun || again != step.again {
			t.Errorf("after %s: begun %d times and again %d times, want %d and %d", step.path, begun, again, step.begun, step.again)
		}
	}
}

func TestOneNameIsAskedFor(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+"?"+r.URL.Query().Get("fieldSelector"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[]}`))
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	maps := narrow{Interface: client, name: "settings"}.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := maps.Namespace("platform").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/api/v1/configmaps", "/api/v1/namespaces/platform/configmaps"} {
		if len(asked) == 0 || asked[0] != path+"?metadata.name=settings" {
			t.Fatalf("asked %q, want %s for the name only", asked, path)
		}
		asked = asked[1:]
	}
}
