package router

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

var hostileScenarios = []scenario{
	{"more Services than anybody needs", tooMany},
	{"a Service names another tenant wherever it can", namesOthers},
	{"an API server that answers without end", withoutEnd},
	{"an API server that makes things up", madeUp},
	{"an API server that refuses every change", neverChanges},
	{"names that lie in the way", conflicts},
}

// tooMany: WR13, with real objects: time and size of a pass are bounded, and what
// was there first stays.
func tooMany(x *tenant) {
	ways, more := 120, 400
	if suite.Exhaustive() {
		more = 4000
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, 8)
	// Times of creation are in seconds.
	first := x.service(x.there, "first", webPorts)
	x.settle()
	time.Sleep(time.Until(first.GetCreationTimestamp().Add(time.Second)))
	for i := range ways + more {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			allocate := i < ways
			x.there.Create(fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: a%04d, labels: {dockyards.io/workload-name: %s}},
				spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: %t, ports: [{name: http, port: 80}]}}`, i, x.workload, allocate))
		})
	}
	all.Wait()
	x.asked()
	started := time.Now()
	x.settle()
	took := time.Since(started)
	x.says("True Reconciled", "beyond the limit of 100 Services, and not mirrored: ")
	x.says("True Reconciled", fmt.Sprintf(" and %d more", ways+more+1-100-3))
	reads, writes := x.asked()
	x.t.Logf("a pass over %d Services took %s, %d reads and %d writes there", ways+more+1, took.Round(time.Millisecond), len(reads), len(writes))
	if len(reads) > 2*(1+(ways+more)/50+1) {
		x.t.Errorf("WR13: the list took %d calls", len(reads))
	}
	count := 0
	for key := range x.Objects() {
		if strings.HasPrefix(key, "Service/") {
			count++
		}
	}
	if count > 100 || x.Get(dockyards.Services, x.workload+"-first") == nil {
		x.t.Errorf("WR13: there are %d mirrors, the first one among them: %t", count, x.Get(dockyards.Services, x.workload+"-first") != nil)
	}
	x.rests()

	// With less that may be read, nothing goes.
	x.settings.Limits.Read = 50
	x.run()
	before := x.made()
	x.settle()
	x.says("True Reconciled", "more than 50 Services are labelled for the Workload")
	if now := x.made(); len(now) < len(before) {
		x.t.Errorf("WR14: after an incomplete list %d of %d are left", len(now), len(before))
	}
	x.rests()
}

// namesOthers: W15, X20: nothing that stands in a Service leads out of the tenant's
// own Workload.
func namesOthers(x *tenant) {
	victim := newTenant(x.t, suit.World(x.t), x.there)
	victim.settle()
	x.there.Create(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata:
  name: evil
  labels: {dockyards.io/workload-name: %s, kustomize.toolkit.fluxcd.io/namespace: %s, dockyards.io/cluster-name: prod}
  annotations: {external-dns.alpha.kubernetes.io/hostname: "*.shop.example", slipway.dev/mode: unmanaged, filler: %q}
  ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Workload, name: %s, uid: %s}]
spec: {type: LoadBalancer, externalName: x.shop.example, ports: [{name: http, port: 80}]}`,
		x.workload, victim.NS, strings.Repeat("x", 200000), victim.workload, victim.Must(dockyards.Workloads, victim.workload).GetUID()))
	x.zones(x.cluster, "own.example")
	before := victim.Versions()
	x.f.Insist(x.remoteEvent("add", x.NS, "evil"))
	x.says("True Reconciled", "")
	if got := hostnames(x.Must(dockyards.HTTPRoutes, x.workload+"-evil")); !slices.Equal(got, []string{"*.own.example"}) {
		x.t.Errorf("X20: the route has %v", got)
	}
	if mirror := x.mirror("evil"); len(mirror.GetAnnotations())+len(mirror.GetLabels()) > 0 || len(suite.Bytes(x.t, mirror, "spec")) > 1000 {
		x.t.Errorf("X20: the mirror took over %v", mirror.Object)
	}
	// The victim is woken by an event of that cluster in vain.
	victim.f.Insist(x.remoteEvent("add", x.NS, "evil"))
	for key, version := range before {
		if now := victim.Versions()[key]; now != version {
			x.t.Errorf("X20: %s of the other tenant was written", key)
		}
	}
}

// withoutEnd: an API server is its tenant's. It cannot make the function take in
// more than it may.
func withoutEnd(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.settle()
	before := x.made()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.CopyN(w, endless{}, 1<<28)
	_ = w.Close()
	zeros := func(req *http.Request, body io.Reader, header string) *http.Response {
		resp := &http.Response{StatusCode: http.StatusOK, Request: req, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Header: http.Header{}, Body: io.NopCloser(body)}
		resp.Header.Set("Content-Type", "application/json")
		if header != "" {
			resp.Header.Set("Content-Encoding", header)
		}
		return resp
	}
	for name, answer := range map[string]func(*http.Request) *http.Response{
		"an endless answer": func(req *http.Request) *http.Response { return zeros(req, endless{}, "") },
		"a small one that unpacks to an endless one": func(req *http.Request) *http.Response {
			return zeros(req, bytes.NewReader(packed.Bytes()), "gzip")
		},
		"ever more pages": func(req *http.Request) *http.Response {
			return zeros(req, strings.NewReader(`{"kind":"ServiceList","apiVersion":"v1","metadata":{"continue":"more"},"items":[]}`), "")
		},
		"ever more objects": func(req *http.Request) *http.Response {
			var items []string
			for i := range 250 {
				items = append(items, fmt.Sprintf(`{"metadata":{"namespace":"n","name":"s%d-%d"},"spec":{"type":"LoadBalancer","ports":[{"port":80,"nodePort":30000}]}}`, time.Now().UnixNano(), i))
			}
			return zeros(req, strings.NewReader(`{"kind":"ServiceList","apiVersion":"v1","metadata":{"continue":"more"},"items":[`+strings.Join(items, ",")+`]}`), "")
		},
	} {
		var first, last runtime.MemStats
		runtime.ReadMemStats(&first)
		started := time.Now()
		x.proxy.Before(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPatch {
				return suite.Answer(req, http.StatusNotFound), nil
			}
			return answer(req), nil
		})
		x.settle()
		runtime.ReadMemStats(&last)
		x.t.Logf("%s: %s, %d MiB allocated in all", name, time.Since(started).Round(time.Millisecond), (last.TotalAlloc-first.TotalAlloc)>>20)
		if took := time.Since(started); took > 20*time.Second {
			x.t.Errorf("%s took %s", name, took)
		}
		if name != "ever more objects" && name != "ever more pages" {
			x.says("False ErrorReconciling", "the answer is larger than allowed")
		}
		for _, made := range before {
			if !slices.Contains(x.made(), made) {
				x.t.Errorf("WR14, %s: %s is gone", name, made)
			}
		}
	}
	x.proxy.Before(x.count)
	x.settle()
	x.says("True Reconciled", "")
	if diff := x.made(); !slices.Equal(diff, before) {
		x.t.Errorf("afterwards there are %v", diff)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// madeUp: what no real API server would store.
func madeUp(x *tenant) {
	service := func(meta, spec string) string {
		return `{"metadata":` + meta + `,"spec":{"type":"LoadBalancer",` + spec + `}}`
	}
	ok := `"ports":[{"name":"http","port":80,"nodePort":30080}]`
	items := []string{
		service(`{"namespace":"n","name":"good","resourceVersion":"1"}`, ok),
		service(`{"namespace":"n","name":"good","resourceVersion":"2"}`, ok),
		service(`{"namespace":"../../../..","name":"path"}`, ok),
		service(`{"namespace":"n","name":"Not A Name"}`, ok),
		service(`{"name":"homeless"}`, ok),
		service(`{"namespace":"n","name":"numbers"}`, `"ports":[{"name":"a","port":0,"nodePort":1},{"name":"b","port":70000,"nodePort":1},{"name":"c","port":-1,"nodePort":99999},{"name":"d","port":80.5,"nodePort":3}]`),
		service(`{"namespace":"n","name":"types"}`, `"ports":{"port":80},"selector":7`),
		service(`{"namespace":"n","name":"nulls","creationTimestamp":"never","labels":null}`, `"ports":[null,"x",7,{"name":7,"port":"80","nodePort":"x"}]`),
		service(`{"namespace":"n","name":"doubles"}`, `"ports":[{"name":"a","port":80,"nodePort":30001},{"name":"b","port":80,"nodePort":30002},{"name":"a","port":81,"nodePort":30003},{"port":82,"nodePort":30004},{"name":"UPPER","port":83,"nodePort":30005},{"name":"x","port":84,"nodePort":30006,"protocol":"HOPOPT"}]`),
		service(`{"namespace":"n","name":"many"}`, `"ports":[`+strings.Repeat(`{"name":"p","port":80,"nodePort":30007},`, 4000)+`{"name":"q","port":443,"nodePort":30008}]`),
		`{"metadata":{"namespace":"n","name":"bare"}}`,
		`{}`,
	}
	list := `{"kind":"ServiceList","apiVersion":"v1","metadata":{},"items":[` + strings.Join(items, ",") + `]}`
	if !json.Valid([]byte(list)) {
		x.t.Fatal("the list is no JSON")
	}
	x.proxy.Before(func(req *http.Request) (*http.Response, error) {
		resp := suite.Answer(req, http.StatusNotFound)
		if req.Method == http.MethodGet {
			resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(strings.NewReader(list))
			resp.ContentLength = int64(len(list))
			resp.Header = http.Header{"Content-Type": []string{"application/json"}}
		}
		return resp, nil
	})
	x.settle()
	x.says("True Reconciled", "")
	want := []string{
		"HTTPRoute/" + x.workload + "-doubles", "HTTPRoute/" + x.workload + "-good", "HTTPRoute/" + x.workload + "-many",
		"Service/" + x.workload + "-doubles", "Service/" + x.workload + "-good", "Service/" + x.workload + "-many",
	}
	if got := x.made(); !slices.Equal(got, want) {
		x.t.Errorf("made are %v, want %v", got, want)
	}
	if got := ports(x.mirror("doubles")); !slices.Equal(got, []string{"a 80/TCP>30001"}) {
		x.t.Errorf("WR5: the ports are %v", got)
	}
	x.f.Asked()
	x.settle()
	if _, writes := x.f.Asked(); len(writes) > 0 {
		x.t.Errorf("at the fixpoint: %v", writes)
	}
	// Answers that are no lists at all.
	before := x.made()
	for _, body := range []string{``, `null`, `[]`, `{"kind":"Status","apiVersion":"v1"}`, `{"kind":"ServiceList","apiVersion":"v1","items":7}`, strings.Repeat(`[`, 100000)} {
		x.proxy.Before(func(req *http.Request) (*http.Response, error) {
			resp := suite.Answer(req, http.StatusOK)
			resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			resp.Header = http.Header{"Content-Type": []string{"application/json"}}
			return resp, nil
		})
		if got := x.f.Send(x.Event(dockyards.Workloads, x.workload)); got != http.StatusNoContent {
			x.t.Errorf("an answer %.20q: the event was answered %d; the log:\n%s", body, got, x.f.Log)
		}
		if is, reason, _ := suite.Condition(x.Must(dockyards.Workloads, x.workload), condition); !slices.Equal(before, x.made()) {
			x.t.Errorf("an answer %.20q: left are %v (%s %s)", body, x.made(), is, reason)
		}
	}
}

// neverChanges: an API server that answers every change with a conflict costs a
// bounded number of calls.
func neverChanges(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.proxy.Before(func(req *http.Request) (*http.Response, error) {
		_, _ = x.count(req)
		if req.Method == http.MethodPatch {
			return suite.Answer(req, http.StatusConflict), nil
		}
		return nil, nil
	})
	started := time.Now()
	x.f.Send(x.Event(dockyards.Workloads, x.workload))
	_, writes := x.asked()
	if took := time.Since(started); took > 20*time.Second || len(writes) > 10 {
		x.t.Errorf("it took %s and %d writes", took, len(writes))
	}
	if len(x.made()) != 3 {
		x.t.Errorf("X13: what the management cluster has is %v", x.made())
	}
	x.proxy.Before(x.count)
	x.settle()
	x.says("True Reconciled", "")
	x.rests()
}

// conflicts: X10, for each kind; what is somebody else's is not touched.
func conflicts(x *tenant) {
	x.service(x.there, "a", webPorts)
	x.service(x.there, "b", webPorts)
	x.service(x.there, "c", webPorts)
	x.service(x.there, "free", webPorts)
	a, b, c := x.workload+"-a", x.workload+"-b", x.workload+"-c"
	route := `spec: {hostnames: [theirs.example], rules: [{backendRefs: [{name: theirs, port: 1}]}]}`
	x.Create(`{apiVersion: v1, kind: Service, metadata: {name: `+a+`}, spec: {selector: {theirs: "1"}, ports: [{port: 80}]}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: `+b+`}, `+route+`}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: TLSRoute, metadata: {name: `+c+`, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Workload, name: other, uid: 00000000-0000-0000-0000-000000000001}]}, `+route+`}`)
	before := x.Versions()
	if got := x.f.Send(x.Event(dockyards.Workloads, x.workload)); got != http.StatusNoContent {
		x.t.Errorf("the event was answered %d", got)
	}
	x.says("False NameConflict", `Service "`+a+`" belongs to somebody else; HTTPRoute "`+b+`" belongs to somebody else; TLSRoute "`+c+`" belongs`)
	for _, key := range []string{"Service/" + a, "HTTPRoute/" + b, "TLSRoute/" + c} {
		if now := x.Versions()[key]; now != before[key] {
			x.t.Errorf("X10: %s was written", key)
		}
	}
	want := []string{"HTTPRoute/" + c, "HTTPRoute/" + x.workload + "-free", "Service/" + b, "Service/" + c, "Service/" + x.workload + "-free", "TLSRoute/" + b, "TLSRoute/" + c, "TLSRoute/" + x.workload + "-free"}
	if got := x.made(); !slices.Equal(got, want) {
		x.t.Errorf("X13: there are %v, want %v", got, want)
	}
	x.wantEvent("NameConflict")
	x.rests()
	for res, name := range map[*kind.Resource]string{&dockyards.Services: a, &dockyards.HTTPRoutes: b, &dockyards.TLSRoutes: c} {
		x.Remove(*res, name)
		x.f.Insist(suite.Changed("delete", res.APIVersion(), res.Kind, x.NS, name))
	}
	x.says("True Reconciled", "")
	x.rests()
}
