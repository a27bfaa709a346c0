package machinevm

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/vault"
)

// server answers reads from a map of request path to manifest. Where a path
// ends in a plural, the manifest is a list. It shows which requests are made;
// what an API server says is for the tests against one.
func server(t *testing.T, objects map[string]string) *read.Reader {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		manifest, ok := objects[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			manifest = `{apiVersion: v1, kind: Status, status: Failure, reason: NotFound, code: 404}`
		}
		if strings.HasPrefix(manifest, "forbidden") {
			w.WriteHeader(http.StatusForbidden)
			manifest = `{apiVersion: v1, kind: Status, status: Failure, reason: Forbidden, message: no, code: 403}`
		}
		raw, err := yaml.YAMLToJSON([]byte(manifest))
		if err != nil {
			t.Error(err)
		}
		if _, err := w.Write(raw); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(srv.Close)
	client, err := cluster.New(cluster.Management, "test", &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	return read.New(cluster.NewSet(client), vault.New())
}

const (
	vitistack = "/apis/vitistack.io/v1alpha1"
	kubevirt  = "/apis/kubevirt.io/v1"
	core      = "/api/v1"
)

func cluster1(more map[string]string) map[string]string {
	objects := map[string]string{
		kubevirt:                         `{kind: APIResourceList, groupVersion: kubevirt.io/v1, resources: [{name: virtualmachines}, {name: virtualmachineinstances}]}`,
		core + "/namespaces/kube-system": `{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: uid-here}}`,
	}
	for path, manifest := range more {
		objects[path] = manifest
	}
	return objects
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// questions are the reads, in order.
func questions(r *read.Reader) []string {
	var list []string
	for _, record := range r.Records() {
		q := record.Need.Resource.Plural
		if record.Need.Name != "" {
			q += " " + record.Need.Name
		}
		if record.Need.Selector != "" {
			q += " " + record.Need.Selector
		}
		list = append(list, q)
	}
	return list
}

func TestGatherReadsWhatMayBeWrittenFirst(t *testing.T) {
	vm := map[string]string{
		kubevirt + "/namespaces/a/virtualmachines/vm-web": `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm-web, namespace: a, annotations: {vitistack.io/machine-uid: u}}, spec: {template: {spec: {volumes: [{name: root, persistentVolumeClaim: {claimName: odd}}]}}}}`,
	}
	for name, c := range map[string]struct {
		reason  string
		machine string
		objects map[string]string
		want    []string
	}{
		"a new Machine": {
			reason: "what its children would be called", machine: `metadata: {name: web, namespace: a, uid: u}, spec: {template: small}`,
			want: []string{
				"kubevirtconfigs", "networkconfigurations web", "virtualmachines vm-web", "virtualmachines web",
				"persistentvolumeclaims vitistack.io/source-machine=web", "persistentvolumeclaims web-root", "persistentvolumeclaims web",
				"namespaces kube-system",
			},
		},
		"a Machine with everything": {
			reason:  "what is decided from comes last",
			machine: `metadata: {name: web, namespace: a, uid: u}, spec: {machineClass: c, instanceType: i, disks: [{name: x}], networks: [{name: n, networkName: blue}], cloudInit: {secretRef: {name: s}, networkDataConfigMapRef: {name: m}}}`,
			objects: vm,
			want: []string{
				"kubevirtconfigs", "networkconfigurations web", "virtualmachines vm-web", "virtualmachines web", "virtualmachineinstances vm-web",
				"persistentvolumeclaims vitistack.io/source-machine=web", "persistentvolumeclaims web-root", "persistentvolumeclaims web-x", "persistentvolumeclaims odd",
				"secrets web-cloudinit", "network-attachment-definitions blue",
				"networkconfigurations blue", "secrets s", "configmaps m", "machineclasses c", "machineclasses i", "namespaces kube-system",
			},
		},
		"a Machine that was taken over": {
			reason:  "its cloud-init is left alone, and a credential from before may not read Secrets",
			machine: `metadata: {name: web, namespace: a, uid: u}, spec: {cloudInit: {secretRef: {name: s}}}`,
			objects: map[string]string{
				kubevirt + "/namespaces/a/virtualmachines/web": `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: web, namespace: a, labels: {vitistack.io/source-machine: web}}}`,
			},
			want: []string{
				"kubevirtconfigs", "networkconfigurations web", "virtualmachines vm-web", "virtualmachines web", "virtualmachineinstances web",
				"persistentvolumeclaims vitistack.io/source-machine=web", "persistentvolumeclaims web-root",
				"secrets s", "namespaces kube-system",
			},
		},
		"a Machine that goes": {
			reason:  "everything that may carry its marks",
			machine: `metadata: {name: web, namespace: a, uid: u, deletionTimestamp: "2026-11-21T00:00:00Z"}, spec: {template: small}`,
			want: []string{
				"kubevirtconfigs", "networkconfigurations web", "virtualmachines vm-web", "virtualmachines web", "virtualmachineinstances vm-web", "virtualmachineinstances web",
				"persistentvolumeclaims vitistack.io/source-machine=web", "persistentvolumeclaims vitistack.io/machine=web", "persistentvolumeclaims source-machine=web",
				"persistentvolumeclaims web-root", "persistentvolumeclaims web-iso", "persistentvolumeclaims web",
				"datavolumes web-iso", "secrets web-cloudinit", "network-attachment-definitions", "namespaces kube-system",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := server(t, cluster1(c.objects))
			in, err := gatherer{settings: decide.DefaultSettings()}.gather(t.Context(), r, object(t, `{apiVersion: vitistack.io/v1alpha1, kind: Machine, `+c.machine+`}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, questions(r)); diff != "" {
				t.Errorf("the reads (%s) (-want +got):\n%s", c.reason, diff)
			}
			if in.Installation != "uid-here" || !in.Target.Same || in.Target.KubeVirtMissing {
				t.Errorf("the input is %+v", in)
			}
		})
	}
}

func TestGatherKeepsWhatIsRefused(t *testing.T) {
	machine := object(t, `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, namespace: a, uid: u}}`)
	r := server(t, cluster1(map[string]string{kubevirt + "/namespaces/a/virtualmachines/vm-web": "forbidden"}))
	in, err := gatherer{settings: decide.DefaultSettings()}.gather(t.Context(), r, machine)
	if err != nil || len(in.Faults) != 1 || !in.VMsUnread {
		t.Errorf("a refused read is input, not an error: %+v, %v", in.Faults, err)
	}
}

func TestGatherFailsWhenTheManagementClusterDoes(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer srv.Close()
	client, err := cluster.New(cluster.Management, "test", &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	machine := object(t, `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, namespace: a, uid: u}}`)
	if _, err := (gatherer{settings: decide.DefaultSettings()}).gather(t.Context(), read.New(cluster.NewSet(client), vault.New()), machine); err == nil {
		t.Error("ER-4: a plain retry is what remains, and there is no error")
	}
}

func TestKeys(t *testing.T) {
	long := strings.Repeat("long-name.", 25)[:249]
	shortened := v1alpha1.VirtualMachineName("vm-", long+"abcd")
	machines := `{kind: MachineList, apiVersion: vitistack.io/v1alpha1, items: [
		{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, namespace: a}, spec: {machineClass: c, networks: [{name: n, networkName: blue}], network: {networkNamespaceName: prod}, cloudInit: {secretRef: {name: s}}}},
		{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: db, namespace: a}, spec: {instanceType: c, kubevirtConfigRef: east, cloudInit: {userDataConfigMapRef: {name: m}}}},
		{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: ` + long + `abcd, namespace: a}, spec: {}}]}`
	for name, c := range map[string]struct {
		reason string
		e      event.Event
		want   []string
	}{
		"a virtual machine":      {reason: "with and without the prefix", e: event.Event{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "vm-web"}, want: []string{"a/vm-web", "a/web"}},
		"an instance":            {reason: "upstream's name", e: event.Event{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Name: "web"}, want: []string{"a/web"}},
		"a shortened name":       {reason: "only the Machine can tell", e: event.Event{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: shortened}, want: []string{"a/" + shortened, "a/" + strings.TrimPrefix(shortened, "vm-"), "a/" + long + "abcd"}},
		"a claim":                {reason: "every part that ends before a dash", e: event.Event{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: "web-1-root"}, want: []string{"a/web-1-root", "a/web", "a/web-1"}},
		"a DataVolume":           {reason: "without -iso", e: event.Event{APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Name: "web-iso"}, want: []string{"a/web-iso", "a/web"}},
		"a NetworkConfiguration": {reason: "those that attach, and its namesake", e: event.Event{APIVersion: "vitistack.io/v1alpha1", Kind: "NetworkConfiguration", Name: "blue"}, want: []string{"a/blue", "a/web"}},
		"a NetworkNamespace":     {reason: "those that name it", e: event.Event{APIVersion: "vitistack.io/v1alpha1", Kind: "NetworkNamespace", Name: "prod"}, want: []string{"a/web"}},
		"a Secret":               {reason: "those whose cloud-init names it", e: event.Event{APIVersion: "v1", Kind: "Secret", Name: "s"}, want: []string{"a/web"}},
		"our own Secret":         {reason: "UP-8", e: event.Event{APIVersion: "v1", Kind: "Secret", Name: "db-cloudinit"}, want: []string{"a/db"}},
		"a ConfigMap":            {reason: "those whose cloud-init names it", e: event.Event{APIVersion: "v1", Kind: "ConfigMap", Name: "m"}, want: []string{"a/db"}},
		"a MachineClass":         {reason: "by either field", e: event.Event{APIVersion: "vitistack.io/v1alpha1", Kind: "MachineClass", Name: "c"}, want: []string{"a/web", "a/db"}},
		"a KubevirtConfig":       {reason: "those there, and those without placement", e: event.Event{APIVersion: "vitistack.io/v1alpha1", Kind: "KubevirtConfig", Name: "west"}, want: []string{"a/" + long + "abcd", "a/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := server(t, cluster1(map[string]string{vitistack + "/namespaces/a/machines": machines, vitistack + "/machines": machines}))
			c.e.Namespace = "a"
			if strings.HasPrefix(c.e.Kind, "MachineC") || c.e.Kind == "KubevirtConfig" {
				c.e.Namespace = ""
			}
			var got []string
			for _, watch := range DefaultSpec().Watches {
				if !watch.Resource.Is(c.e.APIVersion, c.e.Kind) {
					continue
				}
				keys, err := watch.Keys(t.Context(), r, c.e)
				if err != nil {
					t.Fatal(err)
				}
				for _, key := range keys {
					got = append(got, key.String())
				}
			}
			sorted := cmp.Transformer("set", func(list []string) map[string]bool {
				set := map[string]bool{}
				for _, item := range list {
					set[item] = true
				}
				return set
			})
			if diff := cmp.Diff(c.want, got, sorted); diff != "" {
				t.Errorf("EV-1, %s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestKeysOfAClustersSecretAndConnection(t *testing.T) {
	list := `{kind: MachineList, apiVersion: vitistack.io/v1alpha1, items: [
		{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: spec, namespace: a}, spec: {kubevirtConfigRef: east}},
		{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: recorded, namespace: a}, status: {kubevirtConfigRef: east}},
		{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: noted, namespace: b, annotations: {vitistack.io/kubevirt-config: east}}},
		{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: other, namespace: a}, spec: {kubevirtConfigRef: west, cloudInit: {secretRef: {name: kubeconfig-east}}}},
		{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: unplaced, namespace: a}}]}`
	configs := `{kind: KubevirtConfigList, apiVersion: vitistack.io/v1alpha1, items: [
		{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: east}, spec: {kubeconfigSecretRef: kubeconfig-east}},
		{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: west}, spec: {kubeconfigSecretRef: kubeconfig-west}}]}`
	r := server(t, cluster1(map[string]string{vitistack + "/machines": list, vitistack + "/kubevirtconfigs": configs}))
	want := []string{"a/recorded", "a/spec", "a/unplaced", "b/noted"}
	names := func(keys []reconcile.Key, err error) (list []string) {
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			list = append(list, key.String())
		}
		return list
	}
	settings := Settings{Settings: decide.DefaultSettings()}
	m := mapper{settings: settings}
	got := names(m.ofSecret(t.Context(), r, event.Event{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "kubeconfig-east"}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("EV-1, the Secret of a KubevirtConfig (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, names(DefaultSpec().Connected(t.Context(), r, "east"))); diff != "" {
		t.Errorf("CN-5, a cluster that came or went (-want +got):\n%s", diff)
	}
}

func TestChildrenAreOnlyWhatCarriesAllMarks(t *testing.T) {
	for name, c := range map[string]struct {
		annotations string
		ok          bool
	}{
		"all":             {annotations: "vitistack.io/machine-uid: u, vitistack.io/machine-name: web, slipway.dev/installation: i", ok: true},
		"adopted":         {annotations: "vitistack.io/machine-uid: u, vitistack.io/machine-name: web"},
		"no name":         {annotations: "vitistack.io/machine-uid: u, slipway.dev/installation: i"},
		"no UID":          {annotations: "vitistack.io/machine-name: web, slipway.dev/installation: i"},
		"nothing of ours": {annotations: "a: b"},
	} {
		t.Run(name, func(t *testing.T) {
			owner, uid, installation, ok := ownerOf(object(t, `{metadata: {name: x, namespace: a, annotations: {`+c.annotations+`}}}`))
			if ok != c.ok || (ok && (owner != reconcile.Key{Namespace: "a", Name: "web"} || uid != "u" || installation != "i")) {
				t.Errorf("it is ours: %t (%v, %s, %s)", ok, owner, uid, installation)
			}
		})
	}
}

// TestWhatWasMadeUnderAnotherWordStillCounts: an installation whose MANAGED_BY is changed,
// or that took machines over under another, still finds its orphans and counts them all.
func TestWhatWasMadeUnderAnotherWordStillCounts(t *testing.T) {
	for word, finds := range map[string]map[string]bool{
		"kubevirt-operator": {"kubevirt-operator": true, "mine": false, "": false},
		"mine":              {"kubevirt-operator": true, "mine": true, "theirs": false, "": false},
		"":                  {"kubevirt-operator": true, "": true, "theirs": false},
	} {
		settings := Settings{Settings: decide.DefaultSettings()}
		settings.ManagedBy = word
		spec := Spec(settings)
		selectors := []string{spec.Gauges[1].Selector}
		for _, children := range spec.Children {
			selectors = append(selectors, children.Selector)
		}
		for _, text := range selectors {
			selector, err := labels.Parse(text)
			if err != nil {
				t.Fatalf("MANAGED_BY %q: %v", word, err)
			}
			for label, want := range finds {
				if got := selector.Matches(labels.Set{"vitistack.io/managed-by": label}); got != want {
					t.Errorf("MANAGED_BY %q: %s selects what %q manages: %t, want %t", word, text, label, got, want)
				}
			}
		}
	}
}

// TestAVirtualMachineUnderAnOlderNameWakesItsMachine: TK-7, whatever prefix new ones get.
func TestAVirtualMachineUnderAnOlderNameWakesItsMachine(t *testing.T) {
	for prefix, want := range map[string][]string{"vm-": {"a/vm-web", "a/web"}, "": {"a/vm-web", "a/web"}, "x-": {"a/vm-web", "a/web"}} {
		settings := Settings{Settings: decide.DefaultSettings()}
		settings.VMNamePrefix = prefix
		keys, err := mapper{settings: settings}.ofVM(t.Context(), nil, event.Event{Namespace: "a", Name: "vm-web"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, key := range keys {
			got = append(got, key.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("prefix %q (-want +got):\n%s", prefix, diff)
		}
	}
}
