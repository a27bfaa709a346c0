package read

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/vault"
)

// scanned scans ConfigMaps of a server that answers by a function.
func scanned(t *testing.T, b Bounds, do http.HandlerFunc) (names []string, complete bool, asked int, r *Reader, err error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		do(w, req)
	}))
	t.Cleanup(srv.Close)
	client, err := cluster.New(cluster.Management, "test", &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	r = New(cluster.NewSet(client), vault.New())
	kept, complete, err := r.Scan(t.Context(), plan.Need{Resource: kind.ConfigMaps, Selector: "a=b"}, b, func(obj *unstructured.Unstructured) *unstructured.Unstructured {
		if strings.HasPrefix(obj.GetName(), "no") {
			return nil
		}
		part := &unstructured.Unstructured{Object: map[string]any{}}
		part.SetName(obj.GetName())
		return part
	})
	for i := range kept {
		names = append(names, kept[i].GetName())
	}
	return names, complete, asked, r, err
}

func page(more string, names ...string) string {
	items := make([]string, 0, len(names))
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"metadata": {"name": %q}, "data": {"k": "v"}}`, name))
	}
	return fmt.Sprintf(`{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"continue": %q}, "items": [%s]}`, more, strings.Join(items, ","))
}

func TestScan(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		do       http.HandlerFunc
		want     []string
		complete bool
		class    fault.Class
		most     int
	}{
		"pages": {reason: "what is kept is sorted", want: []string{"a", "b", "c"}, complete: true, most: 2, do: func(w http.ResponseWriter, req *http.Request) {
			if req.FormValue("continue") == "" {
				_, _ = w.Write([]byte(page("next", "c", "no")))
				return
			}
			_, _ = w.Write([]byte(page("", "b", "a")))
		}},
		"too many": {reason: "those that are not kept count too, and one that comes twice", want: []string{"a", "a", "b"}, most: 2, do: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(page("next", "a", "no", "b")))
		}},
		"ever more pages": {reason: "empty ones have an end too", most: 6, do: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(page("next")))
		}},
		"an expired page": {reason: "the list begins anew", want: []string{"a"}, complete: true, most: 3, do: func(w http.ResponseWriter, req *http.Request) {
			switch req.FormValue("continue") {
			case "":
				more := "old"
				if req.Header.Get("X-Again") != "" {
					more = ""
				}
				_, _ = w.Write([]byte(page(more, "a")))
			default:
				w.WriteHeader(http.StatusGone)
				_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}`))
			}
		}},
		"no list": {reason: "whatever answered, the cluster is not empty", class: fault.Unavailable, most: 1, do: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Success"}`))
		}},
		"refused": {reason: "the server's answer is a fault", class: fault.Refused, most: 1, do: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			names, complete, asked, r, err := scanned(t, Bounds{Page: 2, Objects: 4, Fields: "metadata.name=x"}, func(w http.ResponseWriter, req *http.Request) {
				if calls++; req.FormValue("limit") != strconv.Itoa(2) || req.FormValue("labelSelector") != "a=b" || req.FormValue("fieldSelector") != "metadata.name=x" {
					t.Errorf("it is asked for %s", req.URL)
				}
				if calls > 2 {
					req.Header.Set("X-Again", "yes")
				}
				c.do(w, req)
			})
			var f *fault.Fault
			if c.class != "" && (!errors.As(err, &f) || f.Class != c.class) || c.class == "" && err != nil {
				t.Fatalf("%s: the error is %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, names); diff != "" || complete != c.complete || asked > c.most {
				t.Errorf("%s: complete is %t after %d calls (-want +got):\n%s", c.reason, complete, asked, diff)
			}
			if records := r.Records(); len(records) != 1 || len(records[0].Answer.Items) != len(c.want) || records[0].Need.Limit != 4 {
				t.Errorf("remembered is %v", records)
			}
		})
	}
}
