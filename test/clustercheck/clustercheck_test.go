package clustercheck

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/kube"
	clustercheck "github.com/slipway-dev/slipway/functions/cluster-check"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/reconcile"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
)

func TestClusterCheck(t *testing.T) {
	s := newScene(t)
	for _, step := range []struct {
		name string
		do   func(s *scene)
	}{
		{"ACheckedClusterIsReadyAndAtRest", (*scene).ready},
		{"ARotatedSecretCountsAtOnce", (*scene).rotated},
		{"ABadKubeconfigIsForAPerson", (*scene).badKubeconfigs},
		{"KubeVirtIsFoundWhereverItIs", (*scene).kubeVirt},
		{"AClusterThatStoppedIsWaitedFor", (*scene).stopped},
		{"ACertificateThatExpiredIsSaidSo", (*scene).certificate},
		{"AMissingRightIsNamed", (*scene).missingRights},
		{"VersionsThatDifferAreAWarning", (*scene).versions},
		{"TheYardstickMovesOn", (*scene).yardstickMovesOn},
		{"ADeadClusterCostsItsOwnConfigsOneTimeout", (*scene).deadClusters},
		{"TheRootFunctionHostsItBesideTheOthers", (*scene).root},
		{"TheCommandChecksTheSame", (*scene).command},
		{"TheCommandNamesTheRightThatAPersonLacks", (*scene).commandWithoutRights},
	} {
		s.step(step.name, step.do)
	}
}

func TestTheGeneratedRolesGrantWhatIsDeclaredAndNothingElse(t *testing.T) { suit.CheckManifest(t) }

// ready: CK-1, CK-3.
func (s *scene) ready() {
	f := s.run()
	s.kubevirt(s.remote, "True")
	s.config(east, s.good)
	f.Insist(s.event(east))
	s.is(f, east, well, "")
	config := s.management.Must(kinds.KubevirtConfigs, east)
	if _, _, message := suite.Condition(config, "KubeVirtReady"); !strings.Contains(message, `"virt-platform"`) || !strings.Contains(message, "v1.9.0") {
		s.t.Errorf("where KubeVirt is, and which version: %q", message)
	}
	if _, _, message := suite.Condition(config, "VersionsMatch"); !strings.Contains(message, "virtualmachines v1, virtualmachineinstances v1") {
		s.t.Errorf("the versions are told as %q", message)
	}
	if name := suite.Text(config, "status", "name"); name != east {
		s.t.Errorf("status.name is %q", name)
	}
	_, writes := f.Asked()
	if len(writes) != 2 || !strings.HasPrefix(writes[0], "patch kubevirtconfigs.vitistack.io/status") || !strings.HasPrefix(writes[1], "create events.events.k8s.io") {
		s.t.Errorf("a first look writes a status and an Event, and it has written %q", writes)
	}
	f.Rests(s.event(east), s.secretEvent(east), suite.Cluster(event.TypeConnected, east))

	// What others write stays, also when the status changes.
	s.management.Patch(kinds.KubevirtConfigs, east, `{status: {created: long ago}}`, "status")
	s.says(s.remote, "False")
	f.Resync()
	s.is(f, east, "Failed Connected, True Connected, False KubeVirtNotAvailable, True VersionsMatch", "4 of 5 parts run")
	if created := suite.Text(s.management.Must(kinds.KubevirtConfigs, east), "status", "created"); created != "long ago" {
		s.t.Errorf("status.created is %q", created)
	}
	if got := f.Send(s.event("nobody")); got != http.StatusNoContent {
		s.t.Errorf("the event of a KubevirtConfig that does not exist was answered %d", got)
	}
}

// rotated: CN-2.
func (s *scene) rotated() {
	f := s.run()
	s.kubevirt(s.remote, "True")
	s.config(east, s.good)
	f.Insist(s.event(east))
	s.is(f, east, well, "")
	s.secret(east, []byte(strings.Replace(string(s.good), "token: ", "token: x", 1)))
	if got := f.Send(s.secretEvent(east)); got != http.StatusNoContent {
		s.t.Errorf("a refused token is answered %d: it would be tried again and again", got)
	}
	s.is(f, east, "Failed Disconnected, False Unauthorized, Unknown Waiting, Unknown Unauthorized", "401")
	f.Rests(s.event(east))
	s.secret(east, s.good)
	f.Insist(s.secretEvent(east))
	s.is(f, east, well, "")
}

// badKubeconfigs: CN-1, CN-3; nothing of what stands there is told.
func (s *scene) badKubeconfigs() {
	f := s.run()
	s.config(east, s.good)
	good := string(s.good)
	for name, c := range map[string]struct{ kubeconfig, reason, says string }{
		"a program": {strings.Replace(good, "token: ", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/false, args: [hush-hush]}\n    password: ", 1), "KubeconfigInvalid", "exec"},
		"a file":    {strings.Replace(good, "token: ", "tokenFile: /etc/hush-hush/", 1), "KubeconfigInvalid", "tokenFile"},
		"garbage":   {"hush-hush: [", "KubeconfigInvalid", "cannot be read"},
		"nothing":   {"", "KubeconfigInvalid", "empty"},
		"no server": {strings.Replace(good, "server: https", "server: hush-hush", 1), "KubeconfigInvalid", "server"},
	} {
		s.secret(east, []byte(c.kubeconfig))
		if got := f.Send(s.secretEvent(east)); got != http.StatusNoContent {
			s.t.Errorf("%s is answered %d: it would be tried again and again", name, got)
		}
		s.is(f, east, "Failed Disconnected, False "+c.reason+", Unknown Waiting, Unknown "+c.reason, c.says)
		f.Rests(s.event(east))
		if raw := suite.Bytes(s.t, s.management.Must(kinds.KubevirtConfigs, east), "status"); strings.Contains(raw, "hush-hush") || strings.Contains(raw, "/bin/false") {
			s.t.Errorf("%s: the status quotes the kubeconfig: %s", name, raw)
		}
	}
	s.management.Patch(kinds.KubevirtConfigs, east, `{spec: {kubeconfigSecretRef: missing}}`)
	f.Insist(s.event(east))
	s.is(f, east, "Failed Disconnected, False SecretNotFound, Unknown Waiting, Unknown SecretNotFound", `"missing"`)
	s.management.Create(`{apiVersion: v1, kind: Secret, metadata: {name: missing, labels: {slipway.dev/watch: "true"}}, stringData: {other: key}}`)
	f.Insist(s.secretEvent("missing"))
	s.is(f, east, "Failed Disconnected, False SecretNotFound, Unknown Waiting, Unknown SecretNotFound", `has no key "kubeconfig"`)
	if log := f.Log.String(); strings.Contains(log, "hush-hush") {
		s.t.Errorf("the log quotes a kubeconfig:\n%s", log)
	}
}

// kubeVirt: CK-1.4, CK-4.
func (s *scene) kubeVirt() {
	f := s.run()
	s.config(east, s.good)
	f.Insist(s.event(east))
	s.is(f, east, "Failed Connected, True Connected, False KubeVirtMissing, True VersionsMatch", "install KubeVirt")
	f.Rests(s.event(east))
	s.kubevirt(s.remote, "False")
	f.Insist(s.event(east))
	s.is(f, east, "Failed Connected, True Connected, False KubeVirtNotAvailable, True VersionsMatch", `"main" in namespace "virt-platform" is not available: 4 of 5 parts run`)
	s.says(s.remote, "True")
	f.Resync()
	s.is(f, east, well, "")
}

// stopped: a cluster that is down is waited for, and said in the same words as long
// as it is.
func (s *scene) stopped() {
	f := s.run()
	s.kubevirt(s.remote, "True")
	s.config(east, s.good)
	f.Insist(s.event(east))
	s.way.Cut()
	if got := f.Send(suite.Cluster(event.TypeDisconnected, east)); got != http.StatusNoContent {
		s.t.Errorf("the event that a cluster went was answered %d", got)
	}
	const down = "Failed Disconnected, False Unreachable, Unknown Waiting, Unknown Unreachable"
	s.is(f, east, down, "it refuses connections")
	f.Rests(s.event(east))

	s.way.Stall()
	hasty := s.runWith(timeout)
	started := time.Now()
	hasty.Insist(s.event(east))
	if took := time.Since(started); took > 3*timeout {
		s.t.Errorf("a cluster that lets everybody wait took %s; a request may take %s", took, timeout)
	}
	s.is(hasty, east, down, "no answer in time")
	hasty.Asked()
	hasty.Insist(s.event(east))
	if _, writes := hasty.Asked(); len(writes) > 0 {
		s.t.Errorf("the same silence is written again: %q", writes)
	}

	s.way.Cut()
	s.way.Open()
	f.Insist(suite.Cluster(event.TypeConnected, east))
	s.is(f, east, well, "")
}

func (s *scene) certificate() {
	f := s.run()
	proxy := suite.NewProxy(s.t, s.remote.Env.Config)
	s.kubevirt(s.remote, "True")
	s.config(east, suite.Redirect(s.t, s.good, proxy.URL, proxy.CA))
	proxy.Late(timeout / 10)
	f.Insist(s.event(east))
	s.is(f, east, well, "") // slow is not dead
	proxy.Before(nil)
	proxy.Certificate(time.Now().Add(-time.Hour))
	f.Insist(s.event(east))
	s.is(f, east, "Failed Disconnected, False Unreachable, Unknown Waiting, Unknown Unreachable", "its certificate has expired")
	f.Rests(s.event(east))
	proxy.Certificate(time.Now().Add(time.Hour))
	s.secret(east, suite.Redirect(s.t, s.good, proxy.URL, nil))
	f.Insist(s.secretEvent(east))
	s.is(f, east, "Failed Disconnected, False Unreachable, Unknown Waiting, Unknown Unreachable", "an authority that the kubeconfig does not name")
}

// narrow makes an account on the remote cluster that has the rights for targets but
// one.
func (s *scene) narrow(name, lacks string) []byte {
	s.t.Helper()
	objs := []*unstructured.Unstructured{suite.Parse(s.t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: `+name+`, namespace: `+suite.Home+`}}`)}
	rights := slices.DeleteFunc(targetRights(), func(right suite.Right) bool { return right.Resource == lacks })
	objs = append(objs, suite.Role(name, suite.Home, name, rights...)...)
	s.apply(s.remote, objs...)
	suite.AwaitRight(s.t, s.remote.Env, suite.Home, name, rights[0])
	return s.credential(s.remote, suite.Home, name)
}

// missingRights takes away each right that is declared as implied: what is missing
// is named, the rest is checked, and nobody tries again and again.
func (s *scene) missingRights() {
	f := s.run()
	s.kubevirt(s.remote, "True")
	s.config(east, s.good)
	for lacks, c := range map[string]struct{ want, says string }{
		"namespaces":                {"Failed Disconnected, False Unauthorized, True KubeVirtAvailable, True VersionsMatch", "may not list namespaces"},
		"kubevirts":                 {"Failed Connected, True Connected, Unknown Unauthorized, True VersionsMatch", "may not list kubevirts.kubevirt.io"},
		"customresourcedefinitions": {"Ready Connected, True Connected, True KubeVirtAvailable, Unknown Unauthorized", "may not get customresourcedefinitions.apiextensions.k8s.io virtualmachines.kubevirt.io"},
	} {
		s.secret(east, s.narrow("without-"+lacks, lacks))
		if got := f.Send(s.secretEvent(east)); got != http.StatusNoContent {
			s.t.Errorf("without %s it is answered %d: sending it again gives no right", lacks, got)
		}
		s.is(f, east, c.want, "missing right: the account in the kubeconfig "+c.says)
		f.Rests(s.event(east))
	}
}

// versions: CK-1.6, CK-2. Events come from the API server here, as they do in life.
func (s *scene) versions() {
	f := s.run()
	s.kubevirt(s.management, "True")
	s.kubevirt(s.remote, "True")
	source := s.management.Source(f)
	s.config(alpha, s.credential(s.management, suite.Home, "cluster-check"))
	s.config(east, s.good)
	s.await(alpha, well)
	s.await(east, well)

	s.stores(s.remote, "v1alpha3")
	f.Resync()
	s.is(f, alpha, well, "")
	s.is(f, east, "Ready Connected, True Connected, True KubeVirtAvailable, False VersionsDiffer", `virtualmachines v1alpha3, virtualmachineinstances v1; on cluster "alpha"`)

	// The yardstick follows: the event of its own status wakes the other.
	s.stores(s.management, "v1alpha3")
	f.Send(s.event(alpha))
	s.await(east, well)
	s.is(f, alpha, well, "")
	source.Stop()
	f.Rests(s.event(alpha), s.event(east))
}

// yardstickMovesOn: who was compared with a cluster that is gone is compared with
// the next by name.
func (s *scene) yardstickMovesOn() {
	f := s.run()
	s.kubevirt(s.management, "True")
	s.kubevirt(s.remote, "True")
	s.stores(s.management, "v1alpha3")
	here := s.credential(s.management, suite.Home, "cluster-check")
	source := s.management.Source(f)
	s.config(alpha, s.good) // by the way that can be cut
	s.config("west", here)
	s.config("zulu", here)
	const differs = "Ready Connected, True Connected, True KubeVirtAvailable, False VersionsDiffer"
	s.await("west", differs)
	s.await("zulu", differs)
	s.way.Cut()
	f.Send(suite.Cluster(event.TypeDisconnected, alpha))
	s.await("west", well)
	s.await("zulu", well)
	s.way.Open()
	f.Send(suite.Cluster(event.TypeConnected, alpha))
	s.await("west", differs)
	s.await("zulu", differs)
	s.management.Remove(kinds.KubevirtConfigs, alpha)
	s.await("west", well)
	s.await("zulu", well)
	source.Stop()
	f.Rests(s.event("west"), s.event("zulu"))
	if s.t.Failed() {
		s.t.Logf("the log:\n%s", f.Log)
	}
}

// deadClusters: CK-4, CN-6, EV-5.
func (s *scene) deadClusters() {
	f := s.runWith(timeout)
	s.kubevirt(s.management, "True")
	const many = 20
	for i := range many {
		s.config(fmt.Sprintf("dead-%02d", i), s.good)
	}
	s.config("zulu", s.credential(s.management, suite.Home, "cluster-check"))
	s.way.Stall()
	defer func() { s.way.Cut(); s.way.Open() }()
	started := time.Now()
	f.Resync()
	f.Resync() // now it is recorded which of them can be no yardstick
	if took := time.Since(started); took > 6*timeout {
		s.t.Errorf("two resyncs of %d configs of a cluster that does not answer took %s, one timeout is %s", many, took, timeout)
	}
	for i := range many {
		s.is(f, fmt.Sprintf("dead-%02d", i), "Failed Disconnected, False Unreachable, Unknown Waiting, Unknown Unreachable", "no answer in time")
	}
	s.is(f, "zulu", well, "")
}

// TestAnOlderDefinitionHasConfigsInNamespaces: PL-7. Those of one namespace count,
// and what the definition does not know is not sent again and again.
func TestAnOlderDefinitionHasConfigsInNamespaces(t *testing.T) {
	management := suit.World(t)
	older := suite.Parse(t, suite.File(t, "api/vitistack/crds/vitistack.io_kubevirtconfigs.yaml"))
	versions, _, _ := unstructured.NestedSlice(older.Object, "spec", "versions")
	for _, item := range versions {
		if fields, ok := item.(map[string]any); ok {
			unstructured.RemoveNestedField(fields, "schema", "openAPIV3Schema", "properties", "status", "properties", "conditions")
		}
	}
	if err := errors.Join(unstructured.SetNestedSlice(older.Object, versions, "spec", "versions"),
		unstructured.SetNestedField(older.Object, "Namespaced", "spec", "scope")); err != nil {
		t.Fatal(err)
	}
	env := management.Env.Remote(t, kubetest.Options{Objects: []*unstructured.Unstructured{older}})
	requests := &kubetest.Requests{}
	h := reconcile.New(clustercheck.Declare(settings(t)), reconcile.Options{Config: requests.Config(env.Config), Log: slog.New(slog.DiscardHandler)})
	secrets := []string{"default", suite.Home}
	kubeconfig, err := env.Cluster.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	objs := []*unstructured.Unstructured{suite.Parse(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+suite.Home+`}}`)}
	for _, ns := range secrets {
		secret := suite.Parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: here, namespace: `+ns+`}}`)
		secret.Object["stringData"] = map[string]any{"kubeconfig": string(kubeconfig)}
		objs = append(objs, secret, suite.Parse(t, `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: here, namespace: `+ns+`}, spec: {kubeconfigSecretRef: here}}`))
	}
	if err := kube.Apply(t.Context(), env.Config, objs...); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, ns := range secrets {
			handled(t, h, suite.Changed("update", "vitistack.io/v1alpha1", "KubevirtConfig", ns, "here"))
		}
		handled(t, h, event.Next(event.Resync{Function: clustercheck.Name}, "resync", time.Now()))
	}
	var patches []string
	for _, request := range requests.Writes() {
		if request.Resource == kinds.KubevirtConfigs.Plural {
			patches = append(patches, request.String())
		}
	}
	if want := []string{"patch kubevirtconfigs.vitistack.io/status default/here 200"}; !slices.Equal(patches, want) {
		t.Errorf("written is %q, want %q", patches, want)
	}
	configs := env.Client.Resource(kinds.KubevirtConfigs.GVR())
	for ns, want := range map[string]string{"default": "Failed Connected", suite.Home: " "} {
		config, err := configs.Namespace(ns).Get(t.Context(), "here", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := suite.Text(config, "status", "phase") + " " + suite.Text(config, "status", "status"); got != want {
			t.Errorf("the KubevirtConfig of namespace %s is %q, want %q", ns, got, want)
		}
	}
}

// handled wants an event to be answered with 204.
func handled(t *testing.T, h *reconcile.Host, ce cloudevents.Event) {
	t.Helper()
	_, err := h.Handle(t.Context(), ce)
	var result *cehttp.Result
	if !errors.As(err, &result) || result.StatusCode != http.StatusNoContent {
		t.Fatal(err)
	}
}

func (s *scene) await(name, want string) {
	s.t.Helper()
	s.management.Await(kinds.KubevirtConfigs, name, "is "+want, func(config *unstructured.Unstructured) bool {
		return config != nil && told(config) == want
	})
}
