package clusters

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

const (
	// weak is an account on the remote cluster that may not make namespaces.
	weak = "weak"
	// timeout bounds one request to the remote cluster.
	timeout = "1s"
)

var suit = suite.New(suite.Options{
	Specs: []reconcile.Spec{machinevm.DefaultSpec()},
	CRDs:  []string{crds.KubeVirt, crds.CDI, crds.Multus},
	Files: []string{"api/vitistack/crds", "api/vitistack/v1alpha1/testdata/networknamespace-crd.yaml"}, StorageClasses: true,
	Kinds: []kind.Resource{
		kinds.Machines, kinds.VirtualMachines, kinds.VirtualMachineInstances, kind.PersistentVolumeClaims, kinds.DataVolumes,
		kind.Secrets, kinds.NetworkAttachmentDefinitions, kinds.NetworkConfigurations,
	},
	Servers: 2, Partial: true,
})

func TestMain(m *testing.M) { os.Exit(suit.Main(m)) }

// world is a management cluster, and a remote one with a way to it that can be cut.
type world struct {
	*suite.World
	t      *testing.T
	remote *suite.World
	// east is the way to the remote cluster.
	east *suite.Way
	f    *suite.Copy
	// evidence is the file that a kubeconfig's program would make.
	evidence string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: suit.World(t), t: t}
	w.remote = suit.Remote(t, w.World)
	w.remote.Apply(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: ` + weak + `, namespace: ` + suite.Home + `}}`)
	server, err := url.Parse(w.remote.Env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	w.east = suite.NewWay(t, server.Host)
	w.f = w.copyOf()
	return w
}

// copyOf makes a copy of the function.
func (w *world) copyOf(options ...suite.Option) *suite.Copy {
	w.t.Helper()
	settings, err := machinevm.ParseSettings(func(name string) (string, bool) {
		return timeout, name == "REMOTE_TIMEOUT"
	})
	if err != nil {
		w.t.Fatal(err)
	}
	host := suite.WithOptions(func(o *reconcile.Options) {
		o.Parallel, o.RemoteTimeout = settings.MaxConcurrentReconciles, settings.RemoteTimeout
	})
	return suite.Run(w.World, machinevm.Declare(settings), append([]suite.Option{host}, options...)...)
}

// credential is a kubeconfig of an account on the remote cluster, by the way that
// can be cut.
func (w *world) credential(account string) []byte {
	w.t.Helper()
	return suite.Redirect(w.t, w.direct(account), "https://"+w.east.Address, nil)
}

// direct is a kubeconfig of an account on the remote cluster.
func (w *world) direct(account string) []byte {
	w.t.Helper()
	content, err := w.remote.Env.Cluster.TokenKubeconfig(w.t.Context(), suite.Home, account)
	if err != nil {
		w.t.Fatal(err)
	}
	return content
}

// secret puts a kubeconfig into the Secret of a cluster.
func (w *world) secret(name string, kubeconfig []byte) {
	w.t.Helper()
	obj := suite.Parse(w.t, `{apiVersion: v1, kind: Secret, metadata: {name: `+name+`, namespace: default}}`)
	obj.Object["stringData"] = map[string]any{"kubeconfig": string(kubeconfig)}
	if err := kube.Apply(w.t.Context(), w.Env.Config, obj); err != nil {
		w.t.Fatal(err)
	}
}

// config makes a KubevirtConfig whose Secret has its name. It goes with the test.
func (w *world) config(name string) {
	w.t.Helper()
	w.Create(`{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: ` + name + `}, spec: {name: ` + name + `, kubeconfigSecretRef: ` + name + `}}`)
}

func (w *world) machine(name, spec string) {
	w.t.Helper()
	w.Create(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: ` + name + `}, spec: {template: small, ` + spec + `}}`)
}

// event hands the function the event of a Machine.
func (w *world) event(name string) int { return w.f.Send(w.Event(kinds.Machines, name)) }

// cluster hands it the adapter's event that a cluster came or went.
func (w *world) cluster(eventType, name string) int { return w.f.Send(suite.Cluster(eventType, name)) }

// settled wants an event to be answered with 204.
func (w *world) settled(name string) {
	w.t.Helper()
	for range 2 {
		if got := w.event(name); got != http.StatusNoContent {
			w.t.Fatalf("the event of Machine %q was answered %d; the log:\n%s", name, got, w.f.Log)
		}
	}
}

// ready wants "status reason" of a Machine's condition Ready, and a text in its
// message.
func (w *world) ready(name, want, says string) {
	w.t.Helper()
	is, reason, message := suite.Condition(w.Must(kinds.Machines, name), "Ready")
	if got := is + " " + reason; got != want || !strings.Contains(message, says) {
		w.t.Errorf("Machine %q is %q (%s), want %q (%s)", name, got, message, want, says)
	}
}

// runs plays KubeVirt on a cluster: the virtual machine runs.
func (w *world) runs(at *suite.World, name string) {
	w.t.Helper()
	at.Patch(kinds.VirtualMachines, name, `{status: {printableStatus: Running, ready: true}}`, "status")
	at.Create(`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: ` + name + `}, spec: {domain: {devices: {}}},
		status: {phase: Running, nodeName: node-1, interfaces: [{name: default, mac: "02:12:00:00:00:01", ipAddress: 10.0.0.5, ipAddresses: [10.0.0.5]}]}}`)
	for _, claim := range at.Objects() {
		if claim.GetKind() == kind.PersistentVolumeClaims.Kind {
			at.Patch(kind.PersistentVolumeClaims, claim.GetName(), `{status: {phase: Bound}}`, "status")
		}
	}
}

// forget takes a Secret or a Machine away without waiting for anything.
func (w *world) forget(res kind.Resource, ns, name string) {
	w.t.Helper()
	_ = w.At(ns).In(res).Delete(context.WithoutCancel(w.t.Context()), name, metav1.DeleteOptions{})
}
