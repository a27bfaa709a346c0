package adapter

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// endless is a text without end.
type endless string

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e[i%len(e)]
	}
	return len(p), nil
}

// serveAs answers everything with one body.
func serveAs(t *testing.T, code int, header, first string, rest io.Reader) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if header != "" {
			w.Header().Set("Content-Encoding", header)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, first)
		if rest != nil {
			_, _ = io.Copy(w, rest)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAnAnswerWithoutEndIsLeft(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.CopyN(w, endless(" "), 64<<20)
	_ = w.Close()
	for name, server := range map[string]string{
		"white space":                            serveAs(t, http.StatusOK, "", "", endless(" ")),
		"a string":                               serveAs(t, http.StatusOK, "", `{"a":"`, endless("}\\\"")),
		"lists in lists":                         serveAs(t, http.StatusOK, "", `{"a":`, endless("[")),
		"lines":                                  serveAs(t, http.StatusOK, "", `{"a":[`, endless("1,\n")),
		"what unpacks to more":                   serveAs(t, http.StatusOK, "gzip", packed.String(), nil),
		"a refusal":                              serveAs(t, http.StatusForbidden, "", `{"message":"`, endless("x")),
		"an object that is closed and not begun": serveAs(t, http.StatusOK, "", `}`, endless("}")),
	} {
		for _, query := range []string{"", "?watch=true"} {
			client, err := connect(t.Context(), &rest.Config{Host: server}, time.Minute, true)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer, err := client.Get(server + "/" + query)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			runtime.ReadMemStats(&after)
			if refused := answer.StatusCode >= 400; len(body) > maxAnswer+1<<16 || refused == (err != nil) || (refused && len(body) > maxComplaint) {
				t.Errorf("%s%s: %d bytes, %v", name, query, len(body), err)
			}
			if err != nil && !errors.Is(err, errTooLarge) {
				t.Errorf("%s%s: %v", name, query, err)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 20*maxAnswer {
				t.Errorf("%s%s: %d MiB were allocated", name, query, grown>>20)
			}
		}
	}
}

func TestAWatchMayGoOnForEver(t *testing.T) {
	event := `{"type":"MODIFIED","object":{"a":"{\"}` + strings.Repeat("x", 400<<10) + `"}}` + "\n"
	const count = 20
	server := serveAs(t, http.StatusOK, "", "", strings.NewReader(strings.Repeat(event, count)))
	client, err := connect(t.Context(), &rest.Config{Host: server}, time.Minute, true)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(server + "/?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if n, err := io.Copy(io.Discard, answer.Body); err != nil || n != int64(count*len(event)) {
		t.Errorf("%d events of a bounded size were cut off after %d bytes: %v", count, n, err)
	}
}

var services = schema.GroupVersionResource{Version: "v1", Resource: "services"}

func TestAListIsForItsVersionAlone(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ServiceList","metadata":{"resourceVersion":"7","continue":"more","remainingItemCount":9},"items":[{"metadata":{"name":"a"}}]}`)
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	list, err := narrow{Interface: client}.Resource(services).List(t.Context(), metav1.ListOptions{ResourceVersion: "0", LabelSelector: "l", Limit: 500})
	if err != nil || len(list.Items) != 0 || list.GetContinue() != "" || list.GetResourceVersion() != "7" {
		t.Errorf("%v %v", list, err)
	}
	if asked != "labelSelector=l&limit=1" {
		t.Errorf("asked was %q", asked)
	}
}

func TestARemoteClusterPassesOffNothingAsSomethingElse(t *testing.T) {
	const events = `{"type":"ADDED","object":{"apiVersion":"vitistack.io/v1alpha1","kind":"Machine","metadata":{"namespace":"n","name":"a"}}}
{"type":"ADDED","object":{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"../n","name":"b"}}}
{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"n","name":"b\r\nCe-Type: x"}}}
{"type":"DELETED","object":{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"n","name":"c"}}}
`
	client, err := dynamic.NewForConfig(&rest.Config{Host: serveAs(t, http.StatusOK, "", events, nil)})
	if err != nil {
		t.Fatal(err)
	}
	kinds := resources{{Versions: []string{"v1"}, Resource: "services", Kind: "Service"}}.kinds()
	watching, err := narrow{Interface: client, kinds: kinds}.Resource(services).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for event := range watching.ResultChan() {
		if object, ok := event.Object.(*unstructured.Unstructured); ok && len(got) < 5 {
			got = append(got, string(event.Type)+" "+object.GetKind()+" "+object.GetName())
		}
	}
	if want := "ADDED Service a, DELETED Service c"; strings.Join(got, ", ") != want {
		t.Errorf("the events are %q, want %q", got, want)
	}
}

func TestOfAKindThatOthersUseTooOnlyWhatIsOwnedIsSeen(t *testing.T) {
	const events = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"n","name":"nobodys"}}}
{"type":"ADDED","object":{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"n","name":"ours","ownerReferences":[{"apiVersion":"v1","kind":"Pod"},{"apiVersion":"dockyards.io/v1alpha4","kind":"Workload"}]}}}
{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"n","name":"anothers","ownerReferences":[{"apiVersion":"example.com/v1","kind":"Workload"}]}}}
{"type":"DELETED","object":{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"n","name":"ours","ownerReferences":[{"apiVersion":"dockyards.io/v1alpha3","kind":"Workload"}]}}}
`
	client, err := dynamic.NewForConfig(&rest.Config{Host: serveAs(t, http.StatusOK, "", events, nil)})
	if err != nil {
		t.Fatal(err)
	}
	watching, err := narrow{Interface: client, owner: "Workload.dockyards.io"}.Resource(services).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for event := range watching.ResultChan() {
		if object, ok := event.Object.(*unstructured.Unstructured); ok && len(got) < 5 {
			got = append(got, string(event.Type)+" "+object.GetName())
		}
	}
	if want := "ADDED ours, DELETED ours"; strings.Join(got, ", ") != want {
		t.Errorf("the events are %q, want %q", got, want)
	}
}

type counting struct {
	cloudevents.Client
	sent int
}

func (c *counting) Send(context.Context, cloudevents.Event) cloudevents.Result {
	c.sent++
	return nil
}

func TestAClusterSendsOnlySoManyEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &counting{}
		client := paced{below, rate.NewLimiter(perSecond, atOnce)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for client.Send(ctx, cloudevents.NewEvent()) == nil {
			if below.sent > 100*perSecond {
				break
			}
		}
		if most := atOnce + 60*perSecond; below.sent > most || below.sent < most-perSecond {
			t.Errorf("%d events went out in a minute, want %d", below.sent, most)
		}
	})
}
