package decode

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var (
	spare    = []string{"spec.versions[].schema", "metadata.managedFields", "status"}
	answered = map[string]string{
		"an object":             `{"kind":"A","metadata":{"managedFields":[{"a":"}]\""}],"name":"x"},"spec":{"versions":[{"name":"v1","schema":{"a":[{}]}},{"name":"v2"}]},"status":1}`,
		"a list":                `{"items":[{"status":{"a":[1,2]},"metadata":{"name":"a"}},{"status":"x\\","b":1}],"metadata":{"managedFields":null}}`,
		"space everywhere":      " { \"status\" : { \"a\" : [ ] } , \"b\" : [ 1 , true ] } ",
		"names that do not fit": `{"spec":{"versions":{"schema":1},"Status":2},"a":{"status":3},"items":{"status":4}}`,
		"nothing in it":         `{}`,
		"lists of nothing":      `{"items":[],"spec":{"versions":[]}}`,
		"no object":             `[{"status":1}]`,
		"broken off":            `{"status":{"a":1`,
		"broken":                `{"status" 1}`,
		"no JSON":               `nothing`,
	}
)

func TestWhatIsUnwantedIsEmptiedBeforeItIsDecoded(t *testing.T) {
	for name, text := range answered {
		t.Run(name, func(t *testing.T) { equal(t, text) })
	}
	if got := string(emptied([]byte(answered["an object"]), spare)); got != `{"kind":"A","metadata":{"managedFields":null,"name":"x"},"spec":{"versions":[{"name":"v1","schema":null},{"name":"v2"}]},"status":null}` {
		t.Errorf("what is left is %s", got)
	}
}

// equal holds what is decoded without a part against the whole without that part.
func equal(t *testing.T, text string) {
	t.Helper()
	want, valid := parse([]byte(text))
	got, still := parse(emptied([]byte(text), spare))
	if valid && !still {
		t.Fatalf("%q is JSON, and %q is not", text, emptied([]byte(text), spare))
	}
	if !valid {
		return // the decoder says so, of the whole or of what is left
	}
	for _, fields := range []map[string]any{want, got} {
		drop(fields)
		items, _ := fields["items"].([]any)
		for _, item := range items {
			if object, ok := item.(map[string]any); ok {
				drop(object)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q is another thing without what is unwanted (-want +got):\n%s", text, diff)
	}
}

func drop(object map[string]any) {
	delete(object, "status")
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	spec, _ := object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, version := range versions {
		if fields, ok := version.(map[string]any); ok {
			delete(fields, "schema")
		}
	}
}

func FuzzWithout(f *testing.F) {
	for _, text := range answered {
		f.Add(text)
	}
	f.Fuzz(equal)
}

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

func TestOnlyAWholeAnswerIsChanged(t *testing.T) {
	broken := errors.New("broken off")
	for name, c := range map[string]struct {
		code int
		kind string
		body io.Reader
		want string
		err  error
	}{
		"an object":           {http.StatusOK, "application/json", strings.NewReader(`{"status":{"a":1}}`), `{"status":null}`, nil},
		"an error":            {http.StatusConflict, "application/json", strings.NewReader(`{"status":"Failure"}`), `{"status":"Failure"}`, nil},
		"another encoding":    {http.StatusOK, "text/plain", strings.NewReader(`{"status":1}`), `{"status":1}`, nil},
		"one that breaks off": {http.StatusOK, "application/json", io.MultiReader(strings.NewReader(`{"status":`), iotest.ErrReader(broken)), `{"status":`, broken},
	} {
		t.Run(name, func(t *testing.T) {
			client := lean{answers(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: c.code, Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(c.body)}, nil
			})}
			req, err := http.NewRequestWithContext(Without(t.Context(), spare), http.MethodGet, "http://api.test", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			got, err := io.ReadAll(resp.Body)
			if string(got) != c.want || !errors.Is(err, c.err) {
				t.Errorf("read %q and %v, want %q and %v", got, err, c.want, c.err)
			}
		})
	}
}

func BenchmarkWithout(b *testing.B) {
	text := many(100)
	paths := []string{"metadata.managedFields", "spec", "status"}
	b.Run("decoded whole", func(b *testing.B) {
		for b.Loop() {
			parse(text)
		}
	})
	b.Run("decoded without", func(b *testing.B) {
		for b.Loop() {
			parse(emptied(text, paths))
		}
	})
}
