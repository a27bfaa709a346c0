package runtime

import (
	"os"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

var suit = suite.New(suite.Options{
	Specs: []reconcile.Spec{spec()}, Objects: []*unstructured.Unstructured{definition()},
	Kinds: []kind.Resource{widgets, configMaps},
})

func TestMain(m *testing.M) { os.Exit(suit.Main(m)) }

func definition() *unstructured.Unstructured {
	obj := map[string]any{}
	if err := yaml.Unmarshal([]byte(crd), &obj); err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: obj}
}

// world is a namespace for Widgets.
type world struct{ *suite.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{suit.World(t)}
}

// copyOf is one copy of the function; a light one makes no children.
func (w *world) copyOf(tap suite.Tap, light bool) *suite.Copy {
	w.TB.Helper()
	return suite.Run(w.World, function(light), suite.WithTap(tap))
}

func (w *world) widget(name, specYAML string) {
	w.TB.Helper()
	w.Create(`{apiVersion: demo.slipway.dev/v1, kind: Widget, metadata: {name: ` + name + `}, spec: ` + specYAML + `}`)
}

func (w *world) patch(name, body string) { w.Patch(widgets, name, body) }

func (w *world) remove(name string) { w.Remove(widgets, name) }

func (w *world) changed(name string) cloudevents.Event { return w.Event(widgets, name) }
