package slipway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzEvent: whatever arrives at the functions' port, in headers and body, is decoded,
// mapped to keys by each function that it wakes, and answered in a way that a broker
// understands. The API server has nothing of what an event names.
func FuzzEvent(f *testing.F) {
	server := httptest.NewServer(http.HandlerFunc(nothing))
	f.Cleanup(server.Close)
	kubeconfig := filepath.Join(f.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "`+server.URL+`"}}],
		users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Setenv("KUBECONFIG", kubeconfig)
	f.Setenv("LOG_LEVEL", "error")
	functions := New()
	for _, spec := range Specs() {
		for _, watch := range spec.Watches {
			res := watch.Resource
			f.Add("dev.knative.apiserver.ref.update", res.APIVersion(), res.Kind, "team", "web", "", []byte(nil))
			f.Add("dev.knative.apiserver.resource.delete", res.APIVersion(), res.Kind, "", "a.b", "east", []byte(`{"kind":"`+res.Kind+`","metadata":{"labels":{"a":"b"}}}`))
		}
		f.Add("dev.slipway.resync", "", "", "", "", "", []byte(`{"function":"`+spec.Name+`","after":"a/b/c","continue":"x","page":-1}`))
	}
	f.Add("dev.slipway.cluster.connected", "", "", "", "", "a/b", []byte(`[]`))
	f.Fuzz(func(t *testing.T, eventType, apiVersion, kind, namespace, name, cluster string, body []byte) {
		req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		for header, value := range map[string]string{
			"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/fuzz", "Ce-Type": eventType, "Content-Type": "application/json",
			"Ce-Apiversion": apiVersion, "Ce-Kind": kind, "Ce-Namespace": namespace, "Ce-Name": name, "Ce-Cluster": cluster,
		} {
			req.Header.Set(header, value)
		}
		ce, err := cloudevents.NewEventFromHTTPRequest(req)
		if err != nil {
			return
		}
		reply, err := functions.Handle(t.Context(), *ce)
		if reply != nil {
			return
		}
		var result *cehttp.Result
		if !errors.As(err, &result) || !slices.Contains([]int{http.StatusNoContent, http.StatusBadRequest, http.StatusServiceUnavailable}, result.StatusCode) {
			t.Errorf("it is answered with %v", err)
		}
	})
}

// nothing is an API server that has no objects.
func nothing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
	})
}
