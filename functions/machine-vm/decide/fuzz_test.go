package decide

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/virt/admission"
)

// fuzzed puts JSON that somebody sent into an object; not ok for what is no map.
func fuzzed(manifest string, t *testing.T, field string, text []byte) (*unstructured.Unstructured, bool) {
	t.Helper()
	obj := parse(t, manifest)
	with := &unstructured.Unstructured{}
	if len(text) > 1<<16 || with.UnmarshalJSON([]byte(`{"apiVersion": "v1", "kind": "X", "x": `+string(text)+`}`)) != nil {
		return nil, false
	}
	value, isMap := with.Object["x"].(map[string]any)
	if !isMap {
		return nil, false
	}
	obj.Object[field] = value
	return obj, true
}

// ends is calms, and KubeVirt takes every virtual machine.
func (w *world) ends() {
	w.t.Helper()
	w.calms()
	for _, vm := range w.all(kinds.VirtualMachines, "") {
		for _, err := range admission.Check(&vm) {
			w.t.Errorf("%v in %v", err, vm.Object["spec"])
		}
	}
}

// calms lets the function decide until it writes nothing more. Whatever was sent, that
// comes soon, and the same input gives the same decision.
func (w *world) calms() {
	w.t.Helper()
	var last outcome
	for range 8 {
		if last = w.reconcile("web"); last.writes == 0 {
			break
		}
	}
	if last.writes > 0 {
		w.t.Fatalf("it never comes to rest: %v", last.decision.Plan)
	}
	again := w.reconcile("web")
	if diff := cmp.Diff(asText(w.t, last.conclusion.Status), asText(w.t, again.conclusion.Status)); diff != "" {
		w.t.Errorf("the same input gives another status:\n%s", diff)
	}
}

func asText(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const webMachine = `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-web}}`

// FuzzMachine: any spec at all, sizes, disks and networks included.
func FuzzMachine(f *testing.F) {
	for _, seed := range []string{
		`{"template": "small"}`, `{"resources": {"cpu": {"cores": 4, "threads": 9223372036854775807}, "memory": {"size": "1e30"}}}`,
		`{"template": "small", "disks": [{"name": "data", "size": "-1Gi", "boot": true}, {"name": "data"}]}`, `{"disks": 7}`, `{"cloudInit": {}}`,
		`{"template": "small", "networks": [{"name": "a", "networkName": "blue", "macAddress": "02:00:00:00:00:01"}, {"name": "A_1"}]}`,
		`{"instanceType": "c", "os": {"imageID": "https://x/y.iso"}, "bootOrder": ["cdrom", "network"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, spec []byte) {
		machine, ok := fuzzed(webMachine, t, "spec", spec)
		if !ok {
			return
		}
		w := newWorld(t, netconf("blue", "vlan: 7"))
		w.store(machine)
		w.calms() // what the schema would refuse, KubeVirt may refuse too
	})
}

// FuzzSizes: memory, disks and processors as any text and number.
func FuzzSizes(f *testing.F) {
	f.Add("2Gi", "20Gi", int64(2), int64(1))
	f.Add("9223372036854775807", "1m", int64(-1), int64(0))
	f.Add("1e18", "0x10", int64(1)<<62, int64(1)<<62)
	f.Add("1Ki", "9999999999999E", int64(0), int64(3))
	f.Fuzz(func(t *testing.T, memory, disk string, cores, threads int64) {
		spec, err := json.Marshal(map[string]any{
			"resources": map[string]any{"cpu": map[string]any{"cores": cores, "threads": threads}, "memory": map[string]any{"size": memory}},
			"disks":     []any{map[string]any{"name": "root", "size": disk, "boot": true}},
		})
		if err != nil {
			t.Fatal(err)
		}
		machine, ok := fuzzed(webMachine, t, "spec", spec)
		if !ok {
			return
		}
		w := newWorld(t)
		w.store(machine)
		w.ends()
	})
}

// FuzzNetworkConfiguration: a network that a tenant writes is named by a Machine, and
// holds another one's record where names collide.
func FuzzNetworkConfiguration(f *testing.F) {
	for _, seed := range []string{
		`{"vlan": 7}`, `{"vlan": -1, "bridge": "br0"}`, `{"bridge": "a\",\"type\":\"host-device"}`, `{"vlan": 4095}`, `{"networkInterfaces": [{"name": "default", "macAddress": "x"}]}`,
		`{"networkInterfaces": [{"name": "default", "macAddress": "ff:ff:ff:ff:ff:ff", "vlan": "7"}], "name": "web"}`, `{"provider": [], "vlan": "seven"}`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, spec []byte, record bool) {
		name := "blue"
		if record {
			name = "web"
		}
		network, ok := fuzzed(`{apiVersion: vitistack.io/v1alpha1, kind: NetworkConfiguration, metadata: {name: `+name+`}}`, t, "spec", spec)
		if !ok {
			return
		}
		w := newWorld(t)
		w.store(network)
		w.machine(`template: small, networks: [{name: eth0, networkName: blue}]`)
		w.ends()
		for _, definition := range w.all(kinds.NetworkAttachmentDefinitions, "") {
			config, _, _ := unstructured.NestedString(definition.Object, "spec", "config")
			var list struct{ Plugins []struct{ Type string } }
			if err := json.Unmarshal([]byte(config), &list); err != nil || len(list.Plugins) != 1 || list.Plugins[0].Type != "bridge" {
				t.Errorf("the definition of a network has become %q: %v", config, err)
			}
		}
	})
}

// FuzzCloudInit: data in the spec, in a Secret and in a ConfigMap. What stands in a
// Secret is not told anywhere.
func FuzzCloudInit(f *testing.F) {
	f.Add("#cloud-config\n", "", "version: 2", "userdata", false)
	f.Add("", "aGk=", "", "networkdata", true)
	f.Add("\x00\xff", "====", "{", "../..", true)
	f.Add(strings.Repeat("x", 3000), "!", "n", "", false)
	const canary = "canary-of-the-secret"
	f.Fuzz(func(t *testing.T, inline, encoded, network, key string, drive bool) {
		spec := map[string]any{"template": "small", "cloudInit": map[string]any{
			"userData": inline, "userDataBase64": encoded, "networkData": network,
			"userDataSecretRef":       map[string]any{"name": "s", "key": key},
			"networkDataConfigMapRef": map[string]any{"name": "m", "key": key},
		}}
		if drive {
			spec["cloudInit"].(map[string]any)["type"] = "configDrive"
		}
		raw, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		machine, ok := fuzzed(webMachine, t, "spec", raw)
		if !ok {
			return
		}
		w := newWorld(t, secret("s", map[string]string{"userdata": canary}), configMap("m", "userdata", "hello"))
		w.store(machine)
		w.ends()
		for _, key := range w.names() {
			if obj := w.objects[key]; obj.GetKind() != kind.Secrets.Kind && strings.Contains(asText(t, obj.Object), canary) {
				t.Errorf("the Secret's value stands in %s", key)
			}
		}
	})
}
