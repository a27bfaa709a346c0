package small

import (
	"os"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	nodecapacity "github.com/slipway-dev/slipway/functions/node-capacity"
	organizationonboarder "github.com/slipway-dev/slipway/functions/organization-onboarder"
	releaseimporter "github.com/slipway-dev/slipway/functions/release-importer"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

// upstream is the field manager of the operator whose place the functions take.
const upstream = "dockyards-kubevirt"

var suit = suite.New(suite.Options{
	Specs: []reconcile.Spec{organizationonboarder.DefaultSpec(), nodecapacity.DefaultSpec(), releaseimporter.DefaultSpec()},
	CRDs:  []string{crds.CDI, crds.CAPK},
	Files: []string{"api/dockyards/crds"},
	Kinds: []kind.Resource{
		dockyards.Organizations, dockyards.Nodes, dockyards.NodePools, dockyards.Releases, dockyards.KubevirtMachines,
		dockyards.DataVolumes, dockyards.DataSources, dockyards.Roles, dockyards.RoleBindings,
	},
	Others: []kind.Resource{kind.Events},
})

func TestMain(m *testing.M) { os.Exit(suit.Main(m)) }

// world is a namespace, with what the tests of these functions ask again and again.
type world struct{ *suite.World }

func newWorld(t *testing.T) *world { return &world{suit.World(t)} }

func (w *world) onboarder(options ...suite.Option) *suite.Copy {
	w.TB.Helper()
	return suite.Run(w.World, organizationonboarder.Declare(), options...)
}

func (w *world) capacity(options ...suite.Option) *suite.Copy {
	w.TB.Helper()
	return suite.Run(w.World, nodecapacity.Declare(), options...)
}

func (w *world) importer(options ...suite.Option) *suite.Copy {
	w.TB.Helper()
	return suite.Run(w.World, releaseimporter.Declare(dockyards.DefaultSettings()), options...)
}

// setStatus changes an object's status as its controller does, under the version
// that it read, again if somebody was faster.
func (w *world) setStatus(res kind.Resource, name, manager string, change func(status map[string]any)) *unstructured.Unstructured {
	w.TB.Helper()
	for {
		obj := w.Must(res, name)
		status, _ := obj.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
			obj.Object["status"] = status
		}
		change(status)
		stored, err := w.In(res).UpdateStatus(w.TB.Context(), obj, metav1.UpdateOptions{FieldManager: manager})
		if apierrors.IsNotFound(err) { // the status is no resource of its own
			stored, err = w.In(res).Update(w.TB.Context(), obj, metav1.UpdateOptions{FieldManager: manager})
		}
		if err == nil {
			return stored
		}
		if !apierrors.IsConflict(err) {
			w.TB.Fatal(err)
		}
	}
}

// told are the reasons of the Kubernetes Events on objects of a name, sorted.
func (w *world) told(name string) []string {
	w.TB.Helper()
	list, err := w.In(kind.Events).List(w.TB.Context(), metav1.ListOptions{})
	if err != nil {
		w.TB.Fatal(err)
	}
	var reasons []string
	for i := range list.Items {
		if suite.Text(&list.Items[i], "regarding", "name") == name {
			reasons = append(reasons, suite.Text(&list.Items[i], "reason"))
		}
	}
	slices.Sort(reasons)
	return reasons
}

func (w *world) tells(name string, want ...string) {
	w.TB.Helper()
	slices.Sort(want)
	if got := w.told(name); !slices.Equal(got, want) {
		w.TB.Errorf("the Events on %s are %v, want %v", name, got, want)
	}
}

// writes are those of a copy since the last look, without Events, in short:
// "create datavolumes.cdi.kubevirt.io talos".
func (w *world) writes(f *suite.Copy) []string {
	_, writes := f.Asked()
	return slices.DeleteFunc(writes, func(s string) bool { return strings.Contains(s, "events.k8s.io") })
}

func (w *world) changed(what string, res kind.Resource, name string) cloudevents.Event {
	return suite.Changed(what, res.APIVersion(), res.Kind, w.NS, name)
}
