package baseline

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/kind"
)

var webhooks = kind.Resource{Group: "admissionregistration.k8s.io", Versions: []string{"v1"}, Kind: "MutatingWebhookConfiguration", Plural: "mutatingwebhookconfigurations"}

// headstrong is a webhook that sets minHealthy of NodeHealthChecks to a value of its own,
// at real writes alone: a dry-run does not show it. It counts what it has changed.
func (s *scene) headstrong(value string) *atomic.Int32 {
	s.t.Helper()
	changed := &atomic.Int32{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review struct {
			Request struct {
				UID    string         `json:"uid"`
				DryRun bool           `json:"dryRun"`
				Object map[string]any `json:"object"`
			} `json:"request"`
		}
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		response := map[string]any{"uid": review.Request.UID, "allowed": true}
		if have, _, _ := unstructured.NestedString(review.Request.Object, "spec", "minHealthy"); have == "51%" && !review.Request.DryRun {
			changed.Add(1)
			response["patchType"] = "JSONPatch"
			response["patch"] = []byte(`[{"op":"replace","path":"/spec/minHealthy","value":"` + value + `"}]`)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
	}))
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	check := asset(s.t, health).Resource()
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": webhooks.APIVersion(), "kind": webhooks.Kind, "metadata": map[string]any{"name": "headstrong"},
		"webhooks": []any{map[string]any{
			"name": "headstrong.example.com", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "failurePolicy": "Ignore",
			"clientConfig": map[string]any{"url": server.URL, "caBundle": base64.StdEncoding.EncodeToString(authority)},
			"rules": []any{map[string]any{
				"apiGroups": []any{check.Group}, "apiVersions": []any{"*"}, "resources": []any{check.Plural}, "operations": []any{"CREATE", "UPDATE"},
			}},
		}},
	}}
	if _, err := s.In(webhooks).Create(s.t.Context(), config, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = s.In(webhooks).Delete(context.Background(), "headstrong", metav1.DeleteOptions{})
		server.Close()
	})
	// The server asks a webhook a moment after it was told of it.
	for s.edit("person", health, `{"spec":{"minHealthy":"51%"}}`); changed.Load() == 0; {
		s.edit("person", health, `{"spec":{"minHealthy":"51%"}}`)
	}
	changed.Store(0)
	return changed
}

// TestWhatTheAPIRewritesIsLeftAndToldOnce: a webhook that insists on a value of its own
// is no opponent to be fought, and no reason to write for ever.
func TestWhatTheAPIRewritesIsLeftAndToldOnce(t *testing.T) {
	s := newScene(t, nil)
	f := s.begin(health)
	changed := s.headstrong("60%")
	f.Insist(s.changed(health))
	if got := s.value(health, "spec", "minHealthy"); got != "60%" || s.outcome(health) != decide.Rewritten {
		t.Fatalf("it is %v, %s: %+v", got, s.outcome(health), s.memory().Assets[health])
	}
	if n := changed.Load(); n > 3 {
		t.Errorf("the function has tried %d times", n)
	}
	r := s.memory().Assets[health]
	if len(r.Oppositions) > 1 || !strings.Contains(r.Message, "/spec/minHealthy") || len(r.Differs) != 1 {
		t.Errorf("it is told as %+v", r)
	}
	told := s.told(health)[decide.ReasonDriftDetected]
	f.Resync()
	s.stays(f, s.changed(health))
	s.stays(s.run(), s.changed(health))
	if n := s.told(health)[decide.ReasonDriftDetected]; n != told {
		t.Errorf("it is told %d times more", n-told)
	}
	if got := grep(grep(f.Metrics(), "compliance"), `name="virt-node-health-check"`); !strings.HasSuffix(got, "} 0") {
		t.Errorf("it complies: %s", got)
	}
	// It may have been an accident: now and then it is tried again.
	changed.Store(0)
	s.pass(2 * time.Hour)
	f.Resync()
	if n := changed.Load(); n != 1 || s.outcome(health) != decide.Rewritten {
		t.Errorf("after hours it was tried %d times, and is %s", n, s.outcome(health))
	}
	s.stays(f, s.changed(health))
	// The rest of the object is enforced all the same.
	s.edit("admin", health, `{"metadata":{"labels":{"`+catalog.LabelManaged+`":null}}}`)
	f.Insist(s.changed(health))
	if s.must(health).GetLabels()[catalog.LabelManaged] != catalog.Manager || s.outcome(health) != decide.Rewritten {
		t.Errorf("it is %s, with %v", s.outcome(health), s.must(health).GetLabels())
	}
	// Its user can say that the value is right.
	s.annotate(health, decide.AnnotationIgnore, "/spec/minHealthy")
	f.Insist(s.changed(health))
	if s.outcome(health) != decide.InSync {
		t.Errorf("it is %s", s.outcome(health))
	}
}
