package baseline

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	baselineapplier "github.com/slipway-dev/slipway/functions/baseline-applier"
	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

// hcos are HyperConvergeds in the version that the reduced definition has.
var hcos = func() kind.Resource {
	res := kinds.HyperConvergeds
	res.Versions = []string{"v1beta1"}
	return res
}()

// managed are the kinds of the baseline, but for the HyperConverged.
func managed() []kind.Resource {
	return slices.DeleteFunc(kinds.Managed(), func(res kind.Resource) bool { return res.Kind == hcos.Kind })
}

var suit = suite.New(suite.Options{
	Specs:  []reconcile.Spec{baselineapplier.DefaultSpec()},
	CRDs:   []string{crds.OpenShiftMachineConfig, crds.PrometheusRules, crds.MetalLB, crds.UIPlugins, crds.AAQ},
	Files:  []string{"test/baseline/crds"},
	Kinds:  append(managed(), hcos, kind.ConfigMaps),
	Others: []kind.Resource{kind.Events, kind.CRDs, kinds.Nodes},
	Objects: []*unstructured.Unstructured{
		namespace("openshift-mtv"), namespace("metallb-system"), namespace("openshift-kube-descheduler-operator"),
	},
})

func namespace(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
}

func TestMain(m *testing.M) { os.Exit(suit.Main(m)) }

// scene is a platform with a HyperConverged, and a clock that the test turns.
type scene struct {
	*suite.World
	t        *testing.T
	settings baselineapplier.Settings

	mu  sync.Mutex
	now time.Time
}

// newScene makes a platform. Annotations are those of the HyperConverged.
func newScene(t *testing.T, annotations map[string]string) *scene {
	t.Helper()
	s := &scene{World: suit.World(t), t: t, settings: baselineapplier.DefaultSettings(), now: time.Now()}
	s.settings.HCONamespace, s.settings.StateNamespace = s.NS, s.NS
	s.wipe()
	t.Cleanup(s.wipe)
	hco := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": hcos.APIVersion(), "kind": hcos.Kind, "metadata": map[string]any{"name": decide.HCOName, "namespace": s.NS}, "spec": map[string]any{},
	}}
	hco.SetAnnotations(annotations)
	if _, err := s.In(hcos).Create(t.Context(), hco, metav1.CreateOptions{FieldManager: "person", FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatal(err)
	}
	return s
}

// wipe takes away what tests before have left: the objects of the baseline have fixed
// names.
func (s *scene) wipe() {
	for _, a := range catalog.BuiltIn().Assets {
		if a.Name != catalog.HCO {
			_ = s.of(a.Name).Delete(context.Background(), a.Object, metav1.DeleteOptions{})
		}
	}
	nodes, err := s.In(kinds.Nodes).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range nodes.Items {
		_ = s.In(kinds.Nodes).Delete(context.Background(), nodes.Items[i].GetName(), metav1.DeleteOptions{})
	}
}

func (s *scene) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *scene) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// run starts a copy of the function.
func (s *scene) run(options ...suite.Option) *suite.Copy {
	s.t.Helper()
	clock := suite.WithOptions(func(o *reconcile.Options) { o.Now = s.clock })
	return suite.Run(s.World, baselineapplier.Declare(s.settings), append(options, clock)...)
}

// begin starts a copy that has looked after some assets: a whole pass takes long.
func (s *scene) begin(names ...string) *suite.Copy {
	s.t.Helper()
	f := s.run()
	for _, name := range names {
		f.Insist(s.event("add", name))
	}
	return f
}

// stays wants events to write nothing, as [suite.Copy.Rests] does with a resync.
func (s *scene) stays(f *suite.Copy, events ...cloudevents.Event) {
	s.t.Helper()
	f.Asked()
	for range 3 {
		for _, ce := range events {
			f.Insist(ce)
		}
	}
	if _, wrote := f.Asked(); len(wrote) > 0 {
		s.t.Errorf("events that tell nothing new have written: %s", strings.Join(wrote, "; "))
	}
}

// asset is one of the catalog.
func asset(t testing.TB, name string) catalog.Asset {
	t.Helper()
	a, found := catalog.BuiltIn().Find(name)
	if !found {
		t.Fatalf("there is no asset %q", name)
	}
	return a
}

// of is the client for an asset's object.
func (s *scene) of(name string) interface {
	Get(ctx context.Context, name string, options metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions, subresources ...string) error
	Create(ctx context.Context, obj *unstructured.Unstructured, options metav1.CreateOptions, subresources ...string) (*unstructured.Unstructured, error)
} {
	a := asset(s.t, name)
	return s.At(a.NamespaceIn(s.NS)).In(resource(a))
}

func resource(a catalog.Asset) kind.Resource {
	if a.Name == catalog.HCO {
		return hcos
	}
	return a.Resource()
}

// live is an asset's object; nil if there is none.
func (s *scene) live(name string) *unstructured.Unstructured {
	s.t.Helper()
	a := asset(s.t, name)
	return s.At(a.NamespaceIn(s.NS)).Get(resource(a), a.Object)
}

func (s *scene) must(name string) *unstructured.Unstructured {
	s.t.Helper()
	obj := s.live(name)
	if obj == nil {
		s.t.Fatalf("the object of asset %s is not there", name)
	}
	return obj
}

// edit changes an asset's object, by a merge patch in JSON, as somebody.
func (s *scene) edit(who, name, body string) *unstructured.Unstructured {
	s.t.Helper()
	obj, err := s.of(name).Patch(s.t.Context(), asset(s.t, name).Object, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: who})
	if err != nil {
		s.t.Fatal(err)
	}
	return obj
}

// annotate sets, or with "" removes, an annotation of an asset's object.
func (s *scene) annotate(name, key, value string) {
	s.t.Helper()
	obj := map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
	if value == "" {
		obj["metadata"].(map[string]any)["annotations"] = map[string]any{key: nil}
	}
	raw, err := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Patch", "metadata": obj["metadata"]}}).MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.Replace(strings.Replace(string(raw), `"apiVersion":"v1",`, "", 1), `"kind":"Patch",`, "", 1)
	s.edit("person", name, text)
}

// changed is the event that an asset's object has changed.
func (s *scene) changed(name string) cloudevents.Event { return s.event("update", name) }

func (s *scene) event(what, name string) cloudevents.Event {
	a := asset(s.t, name)
	return suite.Changed(what, resource(a).APIVersion(), a.Component, a.NamespaceIn(s.NS), a.Object)
}

// memory is what the function remembers.
func (s *scene) memory() decide.State {
	s.t.Helper()
	return decide.ReadState(s.Get(kind.ConfigMaps, decide.StateName))
}

func (s *scene) outcome(name string) decide.Outcome { return s.memory().Assets[name].Outcome }

// outcomes are those of all assets that are not as they should be.
func (s *scene) outcomes() map[string]string {
	out := map[string]string{}
	for name, r := range s.memory().Assets {
		if r.Outcome != decide.InSync {
			out[name] = string(r.Outcome)
		}
	}
	return out
}

// told are the reasons of the Kubernetes Events about an asset, with how often.
func (s *scene) told(name string) map[string]int {
	s.t.Helper()
	list, err := s.In(kind.Events).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]int{}
	for i := range list.Items {
		if name == "" || suite.Text(&list.Items[i], "related", "name") == asset(s.t, name).Object {
			out[suite.Text(&list.Items[i], "reason")]++
		}
	}
	return out
}

// notes are the texts of the Events of a reason.
func (s *scene) notes(reason string) []string {
	s.t.Helper()
	list, err := s.In(kind.Events).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		if suite.Text(&list.Items[i], "reason") == reason {
			out = append(out, suite.Text(&list.Items[i], "note"))
		}
	}
	return out
}

// value reads a field of an asset's object.
func (s *scene) value(name string, path ...string) any {
	s.t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(s.must(name).Object, path...)
	if err != nil {
		s.t.Fatal(err)
	}
	return value
}

// writes are those of a copy since the last look, without Events.
func writes(f *suite.Copy) []string {
	_, all := f.Asked()
	return slices.DeleteFunc(all, func(w string) bool { return strings.Contains(w, "events.k8s.io") })
}

// versions are the resource versions of all objects of the baseline.
func (s *scene) versions() map[string]string {
	out := map[string]string{}
	for _, a := range catalog.BuiltIn().Assets {
		if obj := s.live(a.Name); obj != nil {
			out[a.Name] = string(obj.GetUID()) + "/" + obj.GetResourceVersion()
		}
	}
	return out
}

// everything asks for all that has to be asked for.
func everything() map[string]string {
	return map[string]string{
		"platform.kubevirt.io/enable-loadaware": "true", "platform.kubevirt.io/enable-cpu-manager": "true", "platform.kubevirt.io/enable-aaq": "true",
	}
}

// hardware is a node that has it all.
const hardware = `{apiVersion: v1, kind: Node, metadata: {name: full, annotations: {kubevirt.io/topology-manager-policy: x}, labels: {feature.node.kubernetes.io/pci-present: "true",
	feature.node.kubernetes.io/usb-present: "true", feature.node.kubernetes.io/iommu-enabled: "true"}}}`
