package read

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/vault"
)

func liveReader(t *testing.T, do http.HandlerFunc) *Reader {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		do(w, r)
	}))
	t.Cleanup(server.Close)
	client, err := cluster.New(cluster.Management, "test", &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return New(cluster.NewSet(client), vault.New())
}

func namesOf(items []unstructured.Unstructured) []string {
	var names []string
	for i := range items {
		names = append(names, items[i].GetName())
	}
	return names
}

// wanted are the names that Within finds, of objects whose name begins with w.
func wanted(t *testing.T, r *Reader) []string {
	t.Helper()
	var names []string
	err := r.Within(t.Context(), "", kind.ConfigMaps, "", func(obj *unstructured.Unstructured) bool {
		if !strings.HasPrefix(obj.GetName(), "w") {
			return false
		}
		names = append(names, obj.GetName())
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestOnlyWhatIsConcernedIsRememberedAndItIsPlayedAgain(t *testing.T) {
	live := liveReader(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("continue") == "" {
			_, _ = w.Write([]byte(page("next", "x1", "w2")))
			return
		}
		_, _ = w.Write([]byte(page("", "w1", "x2", "w2")))
	})
	if got := wanted(t, live); len(got) != 3 {
		t.Errorf("found %v", got)
	}
	records := live.Records()
	if len(records) != 1 || !records[0].Complete || records[0].Asked() != AskScan {
		t.Fatalf("remembered is %+v", records)
	}
	if diff := cmp.Diff([]string{"w1", "w2"}, namesOf(records[0].Answer.Items)); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
	played := Play(tape{"scan " + plan.Need{Resource: kind.ConfigMaps}.Key(): records[0]}, vault.Played())
	if diff := cmp.Diff([]string{"w1", "w2"}, wanted(t, played)); diff != "" {
		t.Errorf("played (-want +got):\n%s", diff)
	}
}

func TestAListKeepsOnlyWhatIsWantedAndAReplayJudgesAgain(t *testing.T) {
	live := liveReader(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("limit") != "100" {
			t.Errorf("a page has %s objects: what is thrown away must not lie about in large heaps", r.FormValue("limit"))
		}
		if r.FormValue("continue") == "" {
			_, _ = w.Write([]byte(page("next", "x1", "w2")))
			return
		}
		_, _ = w.Write([]byte(page("", "w1", "x2")))
	})
	named := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	named.SetName("w3")
	live.Over(Overlay{named})
	need := plan.Need{Resource: kind.ConfigMaps, Only: func(obj *unstructured.Unstructured) bool { return strings.HasPrefix(obj.GetName(), "w") }}
	live.Ahead(t.Context(), need)
	found, err := live.Find(t.Context(), need)
	if diff := cmp.Diff([]string{"w1", "w2", "w3"}, namesOf(found)); err != nil || diff != "" {
		t.Errorf("found (-want +got):\n%s%v", diff, err)
	}
	records := live.Records()
	if len(records) != 1 || len(records[0].Answer.Items) != 3 {
		t.Fatalf("remembered is %+v", records)
	}
	need.Only = func(obj *unstructured.Unstructured) bool { return obj.GetName() == "w2" }
	found, err = Play(tape{"list " + need.Key(): records[0]}, vault.Played()).Find(t.Context(), need)
	if diff := cmp.Diff([]string{"w2"}, namesOf(found)); err != nil || diff != "" {
		t.Errorf("played to a function that wants less (-want +got):\n%s%v", diff, err)
	}
}

func TestWhatCannotBeListedIsRememberedAsAFault(t *testing.T) {
	r := liveReader(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	err := r.Within(t.Context(), "", kind.ConfigMaps, "", func(*unstructured.Unstructured) bool { return true })
	if records := r.Records(); err == nil || len(records) != 1 || records[0].Answer.Fault == nil || records[0].Complete {
		t.Errorf("%v, remembered is %+v", err, records)
	}
}

func TestAnOverlayIsFoundToo(t *testing.T) {
	named := func(name string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"from": "overlay"}}}
		obj.SetName(name)
		return obj
	}
	r := liveReader(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page("", "a", "b"))) })
	r.Over(Overlay{named("b"), named("c")})
	got := map[string]string{}
	if _, err := r.Each(t.Context(), "", kind.ConfigMaps, "", func(obj *unstructured.Unstructured) {
		from, _, _ := unstructured.NestedString(obj.Object, "data", "from")
		got[obj.GetName()] += from + "."
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": ".", "b": "overlay.", "c": "overlay."}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
