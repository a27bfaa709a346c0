package clustercheck

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	clustercheck "github.com/slipway-dev/slipway/functions/cluster-check"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

var suit = suite.New(suite.Options{
	Specs:   []reconcile.Spec{clustercheck.DefaultSpec()},
	CRDs:    []string{crds.KubeVirt},
	Files:   []string{"api/vitistack/crds"},
	Kinds:   []kind.Resource{kinds.KubevirtConfigs},
	Others:  []kind.Resource{kinds.KubeVirts, kind.CRDs},
	Servers: 2,
})

func TestMain(m *testing.M) { os.Exit(suit.Main(m)) }

const (
	// timeout is what the function allows one request to a target where one is to
	// run out, and patience where none is: a machine that is busy with other tests
	// may need seconds for a definition of KubeVirt.
	timeout, patience = 5 * time.Second, 20 * time.Second
	// east is the remote cluster, alpha the management cluster under a name.
	east, alpha = "east", "alpha"
)

// scene is a management cluster and a remote one.
type scene struct {
	t          *testing.T
	management *suite.World
	remote     *suite.World
	// way is the way to the remote cluster.
	way *suite.Way
	// good is a kubeconfig that leads there.
	good []byte
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, management: suit.World(t)}
	s.remote = suit.Remote(t, s.management)
	server, err := url.Parse(s.remote.Env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	s.way = suite.NewWay(t, server.Host)
	s.good = s.credential(s.remote, suite.Home, clustercheck.Name)
	return s
}

// step runs a part of the test that stands on those before it.
func (s *scene) step(name string, do func(s *scene)) {
	s.t.Run(name, func(t *testing.T) {
		at := func(w *suite.World) *suite.World {
			other := *w
			other.TB = t
			return &other
		}
		do(&scene{t: t, management: at(s.management), remote: at(s.remote), way: s.way, good: s.good})
	})
}

func settings(t *testing.T) clustercheck.Settings {
	t.Helper()
	settings, err := clustercheck.ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return settings
}

// run starts a copy of the function.
func (s *scene) run() *suite.Copy { return s.runWith(patience) }

func (s *scene) runWith(timeout time.Duration) *suite.Copy {
	s.t.Helper()
	return suite.Run(s.management, clustercheck.Declare(settings(s.t)), suite.WithOptions(func(o *reconcile.Options) { o.RemoteTimeout = timeout }))
}

// credential is a kubeconfig of an account; to the remote cluster it leads by the
// way that can be cut.
func (s *scene) credential(on *suite.World, namespace, account string) []byte {
	s.t.Helper()
	content, err := on.Env.Cluster.TokenKubeconfig(s.t.Context(), namespace, account)
	if err != nil {
		s.t.Fatal(err)
	}
	if on == s.management {
		return content
	}
	return suite.Redirect(s.t, content, "https://"+s.way.Address, nil)
}

// secret puts a kubeconfig into the Secret of a cluster.
func (s *scene) secret(name string, kubeconfig []byte) {
	s.t.Helper()
	obj := suite.Parse(s.t, `{apiVersion: v1, kind: Secret, metadata: {name: `+name+`, namespace: `+s.management.NS+`, labels: {slipway.dev/watch: "true"}}}`)
	obj.Object["stringData"] = map[string]any{"kubeconfig": string(kubeconfig)}
	if err := kube.Apply(s.t.Context(), s.management.Env.Config, obj); err != nil {
		s.t.Fatal(err)
	}
}

// config makes a KubevirtConfig whose Secret has its name. It goes with the step.
func (s *scene) config(name string, kubeconfig []byte) {
	s.t.Helper()
	s.secret(name, kubeconfig)
	s.management.Create(`{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: ` + name + `}, spec: {kubeconfigSecretRef: ` + name + `, secretNamespace: ` + s.management.NS + `}}`)
}

// kubevirt installs KubeVirt on a cluster, in a namespace of an unusual name. It
// goes with the step.
func (s *scene) kubevirt(on *suite.World, available string) {
	s.t.Helper()
	const namespace = "virt-platform"
	if err := kube.Apply(s.t.Context(), on.Env.Config, suite.Parse(s.t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+namespace+`}}`)); err != nil {
		s.t.Fatal(err)
	}
	in := on.At(namespace)
	in.Create(`{apiVersion: kubevirt.io/v1, kind: KubeVirt, metadata: {name: main}, spec: {}}`)
	s.t.Cleanup(func() {
		_ = in.In(kinds.KubeVirts).Delete(context.Background(), "main", metav1.DeleteOptions{})
	})
	s.says(on, available)
}

// says lets KubeVirt tell whether it is available.
func (s *scene) says(on *suite.World, available string) {
	s.t.Helper()
	on.At("virt-platform").Patch(kinds.KubeVirts, "main", `{status: {observedKubeVirtVersion: v1.9.0, conditions: [
		{type: Created, status: "True"}, {type: Available, status: "`+available+`", reason: R, message: 4 of 5 parts run}]}}`, "status")
}

// stores changes the version that a cluster stores virtual machines in, until the
// step ends.
func (s *scene) stores(on *suite.World, version string) {
	s.t.Helper()
	set := func(version string) {
		on.Update(kind.CRDs, kinds.VirtualMachines.String(), "person", func(crd *unstructured.Unstructured) {
			versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
			for _, item := range versions {
				if fields, ok := item.(map[string]any); ok {
					fields["storage"] = fields["name"] == version
				}
			}
			if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
				s.t.Fatal(err)
			}
		})
	}
	set(version)
	s.t.Cleanup(func() {
		on.TB = background{s.t}
		set("v1")
	})
}

// background is a test whose context is not over while it cleans up.
type background struct{ *testing.T }

func (background) Context() context.Context { return context.Background() }

func (s *scene) event(name string) cloudevents.Event {
	return s.management.Event(kinds.KubevirtConfigs, name)
}

func (s *scene) secretEvent(name string) cloudevents.Event {
	return s.management.Event(kind.Secrets, name)
}

// is wants a KubevirtConfig's phase, status and conditions to be as in "Ready
// Connected, True Connected, True KubeVirtAvailable, True VersionsMatch", and a text
// in its message.
func (s *scene) is(f *suite.Copy, name, want, says string) {
	s.t.Helper()
	config := s.management.Must(kinds.KubevirtConfigs, name)
	if got := told(config); got != want {
		s.t.Errorf("KubevirtConfig %q is\n %s, want\n %s; the log:\n%s", name, got, want, f.Log)
	}
	message := suite.Text(config, "status", "message")
	if !strings.Contains(message, says) || (says == "") != (message == "") {
		s.t.Errorf("the message of KubevirtConfig %q is %q, want %q in it", name, message, says)
	}
}

func told(config *unstructured.Unstructured) string {
	parts := []string{suite.Text(config, "status", "phase") + " " + suite.Text(config, "status", "status")}
	for _, conditionType := range []string{"Connected", "KubeVirtReady", "VersionsMatch"} {
		is, reason, _ := suite.Condition(config, conditionType)
		parts = append(parts, is+" "+reason)
	}
	return strings.Join(parts, ", ")
}

const well = "Ready Connected, True Connected, True KubeVirtAvailable, True VersionsMatch"

func (s *scene) apply(on *suite.World, objs ...*unstructured.Unstructured) {
	s.t.Helper()
	if err := kube.Apply(s.t.Context(), on.Env.Config, objs...); err != nil {
		s.t.Fatal(err)
	}
}

func targetRights() []suite.Right { return suite.RightsOf(clustercheck.DefaultSpec().TargetGrants...) }
