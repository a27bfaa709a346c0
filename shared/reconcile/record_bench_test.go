package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/record"
)

// answers is an API server without a network: it has every ConfigMap, and takes
// everything.
type answers struct{ annotation string }

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	name := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	body := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q, "namespace": "a", "uid": "u-%s", "resourceVersion": "1",
		"annotations": {"slipway.dev/record": %q}}, "data": {"size": "3"}}`, name, name, a.annotation)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(bytes.NewBufferString(body)),
	}, nil
}

// demoFunction reads ten objects and finds one of them wrong.
func demoFunction() Function[[]*unstructured.Unstructured] {
	return Function[[]*unstructured.Unstructured]{
		Spec: Spec{Name: "demo", Reconciles: kind.ConfigMaps},
		Gather: func(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
			in := []*unstructured.Unstructured{root}
			for i := range 10 {
				obj, err := r.Get(ctx, "", kind.ConfigMaps, "a", fmt.Sprintf("other-%d", i))
				if err != nil {
					return nil, err
				}
				in = append(in, obj)
			}
			return in, nil
		},
		Decide: func(now time.Time, in []*unstructured.Unstructured, _ plan.Answers) plan.Decision {
			intended := in[1].DeepCopy()
			intended.Object["data"] = map[string]any{"size": "4", "at": now.UTC().Format(time.RFC3339)}
			d := plan.Decision{Reasons: []string{"the size is wrong"}}
			d.Plan.Add("objects", plan.Entry{Verb: plan.Patch, Resource: kind.ConfigMaps, Base: in[1], Object: intended, Reason: "the size is wrong"})
			return d
		},
		Conclude: func(time.Time, []*unstructured.Unstructured, plan.Answers, plan.Outcomes) plan.Conclusion {
			return plan.Conclusion{Class: plan.Done, Reason: "Sized"}
		},
	}
}

// nowhere is a sink.
type nowhere struct{ texts chan []byte }

func (n nowhere) Keep(_ context.Context, _ string, text []byte) error {
	select {
	case n.texts <- text:
	default:
	}
	return nil
}

func demoHost(tb testing.TB, annotation string, recorder *record.Recorder) *Host {
	tb.Helper()
	h := New(demoFunction(), Options{
		Config: &rest.Config{Host: "http://api.invalid", Transport: answers{annotation}}, Log: slog.New(slog.DiscardHandler), Recorder: recorder,
	})
	if err := h.problem(); err != nil {
		tb.Fatal(err)
	}
	return h
}

// BenchmarkReconcile measures what recording costs the answer: nothing where it is off
// or not asked for. What is kept is written after the answer.
func BenchmarkReconcile(b *testing.B) {
	policy := record.Policy{Sample: 1, MaxBytes: record.MaxSize}
	all := policy
	all.All = true
	for _, c := range []struct {
		name     string
		recorder *record.Recorder
	}{
		{"off", nil},
		{"not-asked-for", record.New(policy, slog.New(slog.DiscardHandler), nowhere{})},
		{"recorded", record.New(all, slog.New(slog.DiscardHandler), nowhere{})},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := demoHost(b, "", c.recorder)
			b.ReportAllocs()
			for b.Loop() {
				if res := h.one(b.Context(), Key{Namespace: "a", Name: "root"}, h.log); res.class != plan.Done {
					b.Fatal(res)
				}
			}
		})
	}
}
