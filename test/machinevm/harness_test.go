package machinevm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stages"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/serve"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// patience is how long something may take that takes a fraction of a second on
// an idle machine.
const patience = 60 * time.Second

// world is a namespace of the package's API server.
type world struct {
	t      *testing.T
	env    *kubetest.Env
	ns     string
	client dynamic.Interface
}

// server is what the tests share beside the API server itself.
var server struct {
	sync.Mutex
	// function is the configuration of the function's own ServiceAccount.
	function *rest.Config
	admin    dynamic.Interface
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server.Lock()
	defer server.Unlock()
	opts := kubetest.Options{}
	if server.function == nil {
		opts.Objects = platformObjects(t)
		opts.Files = []string{"api/vitistack/crds", "api/vitistack/v1alpha1/testdata/networknamespace-crd.yaml"}
	}
	env := kubetest.Start(t, opts)
	if server.function == nil {
		config := rest.CopyConfig(env.Config)
		config.QPS = -1
		admin, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		server.admin, server.function = admin, env.As(t, home, account)
		awaitRights(t, env)
	}
	return &world{t: t, env: env, ns: env.Namespace(t), client: server.admin}
}

// platformObjects are the definitions of others, the StorageClasses, and the
// function's account with its rights.
func platformObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	definitions, err := crds.Load(t.Context(), crds.KubeVirt, crds.CDI, crds.Multus)
	if err != nil {
		t.Fatal(err)
	}
	classes, err := stages.Objects()
	if err != nil {
		t.Fatal(err)
	}
	rights, err := rbac()
	if err != nil {
		t.Fatal(err)
	}
	namespace := parse(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+home+`}}`)
	return slices.Concat(definitions, []*unstructured.Unstructured{namespace}, classes, rights)
}

// awaitRights waits until the API server's authorizer has heard of the bindings,
// of which nothing tells.
func awaitRights(t *testing.T, env *kubetest.Env) {
	t.Helper()
	client, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(patience)
	for _, attributes := range []*authorizationv1.ResourceAttributes{
		{Group: "vitistack.io", Resource: "networknamespaces", Verb: "get", Namespace: home},
		{Group: "storage.k8s.io", Resource: "storageclasses", Verb: "list"},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + home + ":" + account, ResourceAttributes: attributes,
		}}
		for {
			answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err == nil && answer.Status.Allowed {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the function's account never got its rights: %v %v", answer, err)
			}
		}
	}
}

// call is one request of a copy of the function, counted from 1.
type call struct {
	n int
	kubetest.Request
	req *http.Request
}

// tap sees every request of one copy before it is sent; it may answer instead of
// the server.
type tap func(c call) (*http.Response, error)

// function is one copy of the function, as a process of its own would be.
type function struct {
	*reconcile.Host
	t   *testing.T
	log *buffer
	tap tap
	// after sees each answer of the server and may lose it.
	after func(c call) error
	// provoked: the test wants refusals, so they are no evidence.
	provoked bool
	// ns is the namespace that a look at all namespaces is kept to.
	ns string

	mu sync.Mutex
	// requests are those answered since the last look, calls all that were made.
	requests, calls []kubetest.Request
}

// option changes how a copy is made.
type option func(*function, *rest.Config, map[string]string) *rest.Config

func withTap(do tap) option {
	return func(f *function, config *rest.Config, _ map[string]string) *rest.Config {
		f.tap = do
		return config
	}
}

func withAfter(do func(call) error) option {
	return func(f *function, config *rest.Config, _ map[string]string) *rest.Config {
		f.after = do
		return config
	}
}

// withEnv sets environment variables of the copy.
func withEnv(pairs ...string) option {
	return func(_ *function, config *rest.Config, env map[string]string) *rest.Config {
		for i := 0; i+1 < len(pairs); i += 2 {
			env[pairs[i]] = pairs[i+1]
		}
		return config
	}
}

// withRights gives the copy another account, whose refusals are wanted.
func withRights(other *rest.Config) option {
	return func(f *function, _ *rest.Config, _ map[string]string) *rest.Config {
		f.provoked = true
		return other
	}
}

// everywhere lets the copy see the namespaces of other tests too. All others are
// kept to their own, since those may be in the middle of something.
func everywhere(f *function, config *rest.Config, _ map[string]string) *rest.Config {
	f.ns = ""
	return config
}

// copyOf starts a copy of the function.
func (w *world) copyOf(options ...option) *function {
	w.t.Helper()
	f := &function{t: w.t, log: &buffer{}, ns: w.ns}
	config, env := server.function, map[string]string{}
	for _, option := range options {
		config = option(f, config, env)
	}
	settings, err := machinevm.ParseSettings(func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	if err != nil {
		w.t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return wire{next: next, f: f} })
	f.Host = reconcile.New(machinevm.Declare(settings), reconcile.Options{
		Config: config, Log: serve.Logger(f.log, "debug"), Parallel: settings.MaxConcurrentReconciles,
	})
	return f
}

// wire is the connection of a copy to the API server.
type wire struct {
	next http.RoundTripper
	f    *function
}

func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.f.mu.Lock()
	c := call{n: len(w.f.calls) + 1, Request: kubetest.ParseRequest(req), req: req}
	w.f.calls = append(w.f.calls, c.Request)
	w.f.mu.Unlock()
	if w.f.tap != nil {
		if resp, err := w.f.tap(c); resp != nil || err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return resp, err
		}
	}
	req = strict(scopedTo(w.f.ns, req), c.Request)
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	c.Status = resp.StatusCode
	w.f.mu.Lock()
	w.f.requests = append(w.f.requests, c.Request)
	w.f.mu.Unlock()
	if !w.f.provoked {
		seen.note(w.f.t, c.Request)
		examine(w.f.t, c.Request, resp)
	}
	if w.f.after != nil {
		if err := w.f.after(c); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	return resp, nil
}

// strict has the server refuse fields that it does not know.
func strict(req *http.Request, asked kubetest.Request) *http.Request {
	if !asked.Write() || asked.Verb == "delete" {
		return req
	}
	req = req.Clone(req.Context())
	query := req.URL.Query()
	query.Set("fieldValidation", metav1.FieldValidationStrict)
	req.URL.RawQuery = query.Encode()
	return req
}

// scopedTo keeps a look at all namespaces to one.
func scopedTo(ns string, req *http.Request) *http.Request {
	asked := kubetest.ParseRequest(req)
	if ns == "" || asked.Namespace != "" || !slices.ContainsFunc(made, func(res kind.Resource) bool {
		return res.Group == asked.Group && res.Plural == asked.Resource
	}) {
		return req
	}
	all := "/" + asked.Resource
	req = req.Clone(req.Context())
	req.URL.Path = strings.TrimSuffix(req.URL.Path, all) + "/namespaces/" + ns + all
	return req
}

// WrappedRoundTripper lets client-go find the transport below, to cancel requests.
func (w wire) WrappedRoundTripper() http.RoundTripper { return w.next }

// verbs are all calls that the copy has made, whatever came of them.
func (f *function) verbs() []kubetest.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// asked are the requests that the server has answered since the last time, as
// reads and writes.
func (f *function) asked() (reads, writes []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, request := range f.requests {
		if request.Write() {
			writes = append(writes, request.String())
			continue
		}
		reads = append(reads, request.String())
	}
	f.requests = nil
	return reads, writes
}

// send hands the copy an event and returns the HTTP status of its answer. The
// event outlives the test's context, as one that is being handled does.
func (f *function) send(ce cloudevents.Event) int {
	reply, err := f.Handle(context.WithoutCancel(f.t.Context()), ce)
	if reply != nil {
		return http.StatusOK
	}
	var result *cehttp.Result
	if !errors.As(err, &result) {
		return 0
	}
	return result.StatusCode
}

// insist sends an event again as long as the answer asks for it, as a broker does.
func (f *function) insist(ce cloudevents.Event) {
	f.t.Helper()
	for try := 0; ; try++ {
		got := f.send(ce)
		if got == http.StatusNoContent {
			return
		}
		if got != http.StatusServiceUnavailable || try == 5 {
			f.t.Fatalf("%s %s was answered %d at try %d; the log:\n%s", ce.Extensions()["kind"], ce.Extensions()["name"], got, try, f.log)
		}
	}
}

// resync plays PingSource and broker: it sends the pages that the function
// answers with until the last.
func (f *function) resync() {
	f.t.Helper()
	ce := event.Next(event.Resync{Function: machinevm.Name}, "resync", time.Now())
	for {
		reply, err := f.Handle(context.WithoutCancel(f.t.Context()), ce)
		if reply == nil {
			var result *cehttp.Result
			if !errors.As(err, &result) || result.StatusCode != http.StatusNoContent {
				f.t.Errorf("the resync was answered %v; the log:\n%s", err, f.log)
			}
			return
		}
		ce = *reply
	}
}

// changed is the event of a source about an object.
func changed(what, apiVersion, kindName, ns, name string) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID("test")
	ce.SetSource("https://test")
	ce.SetType("dev.knative.apiserver.ref." + what)
	ce.SetExtension("apiversion", apiVersion)
	ce.SetExtension("kind", kindName)
	ce.SetExtension("namespace", ns)
	ce.SetExtension("name", name)
	return ce
}

// of is the event about an object of the world's namespace.
func (w *world) of(res kind.Resource, name string) cloudevents.Event {
	return changed("update", res.APIVersion(), res.Kind, w.ns, name)
}

func (w *world) machineEvent(name string) cloudevents.Event { return w.of(kinds.Machines, name) }

// parse reads the one object of a manifest.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	objs, err := kube.Decode(strings.NewReader(text))
	if err != nil || len(objs) != 1 {
		t.Fatalf("%d objects, %v, in %s", len(objs), err, text)
	}
	return objs[0]
}

// known are the resources that tests make.
var known = []kind.Resource{
	kinds.Machines, kinds.MachineClasses, kinds.KubevirtConfigs, kinds.NetworkConfigurations, kinds.NetworkNamespaces,
	kinds.VirtualMachines, kinds.VirtualMachineInstances, kinds.DataVolumes, kinds.StorageProfiles,
	kinds.NetworkAttachmentDefinitions, kind.PersistentVolumeClaims, kind.Secrets, kind.ConfigMaps, kind.StorageClasses,
}

func resourceOf(t testing.TB, obj *unstructured.Unstructured) kind.Resource {
	t.Helper()
	for _, res := range known {
		if res.Is(obj.GetAPIVersion(), obj.GetKind()) {
			return res
		}
	}
	t.Fatalf("no resource is known for %s %s", obj.GetAPIVersion(), obj.GetKind())
	return kind.Resource{}
}

func (w *world) in(res kind.Resource) dynamic.ResourceInterface {
	if !res.Namespaced {
		return w.client.Resource(res.GVR())
	}
	return w.client.Resource(res.GVR()).Namespace(w.ns)
}

// create makes objects as their owners would.
func (w *world) create(manifests ...string) *unstructured.Unstructured {
	w.t.Helper()
	var last *unstructured.Unstructured
	for _, text := range manifests {
		objs, err := kube.Decode(strings.NewReader(text))
		if err != nil {
			w.t.Fatalf("%v in %s", err, text)
		}
		for _, obj := range objs {
			res := resourceOf(w.t, obj)
			last, err = w.in(res).Create(w.t.Context(), obj, metav1.CreateOptions{FieldManager: "person", FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				w.t.Fatal(err)
			}
			if !res.Namespaced {
				name := obj.GetName()
				w.t.Cleanup(func() { _ = w.in(res).Delete(context.Background(), name, metav1.DeleteOptions{}) })
			}
		}
	}
	return last
}

// machine makes a Machine with a spec.
func (w *world) machine(name, spec string) *unstructured.Unstructured {
	w.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		w.t.Fatalf("%v in %s", err, spec)
	}
	return w.create(fmt.Sprintf(`{"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": %q}, "spec": %s}`, name, raw))
}

// patch changes an object as a person would.
func (w *world) patch(res kind.Resource, name, body string, subresources ...string) *unstructured.Unstructured {
	w.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		w.t.Fatalf("%v in %s", err, body)
	}
	obj, err := w.in(res).Patch(w.t.Context(), name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: "person"}, subresources...)
	if err != nil {
		w.t.Fatal(err)
	}
	return obj
}

func (w *world) remove(res kind.Resource, name string) {
	w.t.Helper()
	if err := w.in(res).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// get reads an object; nil if there is none.
func (w *world) get(res kind.Resource, name string) *unstructured.Unstructured {
	w.t.Helper()
	obj, err := w.in(res).Get(w.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return obj
}

// must reads an object that has to be there.
func (w *world) must(res kind.Resource, name string) *unstructured.Unstructured {
	w.t.Helper()
	obj := w.get(res, name)
	if obj == nil {
		w.t.Fatalf("there is no %s %q; there are %v", res.Kind, name, w.names())
	}
	return obj
}

// made are the resources of which a namespace's state consists.
var made = []kind.Resource{
	kinds.Machines, kinds.VirtualMachines, kinds.VirtualMachineInstances, kind.PersistentVolumeClaims, kinds.DataVolumes,
	kind.Secrets, kinds.NetworkAttachmentDefinitions, kinds.NetworkConfigurations, kinds.NetworkNamespaces,
}

// objects are all of the namespace, by kind and name.
func (w *world) objects() map[string]*unstructured.Unstructured {
	w.t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, res := range made {
		list, err := w.in(res).List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range list.Items {
			all[res.Kind+"/"+list.Items[i].GetName()] = &list.Items[i]
		}
	}
	return all
}

// names are kind and name of everything in the namespace.
func (w *world) names() []string {
	w.t.Helper()
	return slices.Sorted(maps.Keys(w.objects()))
}

// release plays the controller that keeps claims in use: it lets those go that are
// being deleted. Without KubeVirt no instance uses them. It tells whether any went.
func (w *world) release() bool {
	w.t.Helper()
	went := false
	list, err := w.in(kind.PersistentVolumeClaims).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].GetDeletionTimestamp() != nil {
			w.patch(kind.PersistentVolumeClaims, list.Items[i].GetName(), `{metadata: {finalizers: null}}`)
			went = true
		}
	}
	return went
}

// condition is "status reason" of a Machine's condition.
func (w *world) condition(machine, conditionType string) string {
	w.t.Helper()
	is, reason, _ := condition(w.must(kinds.Machines, machine), conditionType)
	return strings.TrimSpace(is + " " + reason)
}

func condition(obj *unstructured.Unstructured, conditionType string) (is, reason, message string) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		c, ok := item.(map[string]any)
		if !ok || c["type"] != conditionType {
			continue
		}
		is, _ = c["status"].(string)
		reason, _ = c["reason"].(string)
		message, _ = c["message"].(string)
	}
	return is, reason, message
}

func text(obj *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// answer is what a broken API server says.
func answer(req *http.Request, code int) *http.Response {
	reason := map[int]metav1.StatusReason{
		http.StatusConflict: metav1.StatusReasonConflict, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	}[code]
	return kubetest.Answer(req, code, reason, "injected")
}

// buffer is a log that tests can read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// file reads a file of the repository.
func file(t testing.TB, path string) string {
	t.Helper()
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// atOnce is how many worlds a test plays at the same time: most of the time each
// waits for the API server.
const atOnce = 6

// concurrently runs a subtest for each item, a few at once, all of them before it
// returns.
func concurrently[T any](t *testing.T, items []T, name func(T) string, do func(*testing.T, T)) {
	t.Helper()
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, item := range items {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			t.Run(name(item), func(t *testing.T) { do(t, item) })
		})
	}
	all.Wait()
}
