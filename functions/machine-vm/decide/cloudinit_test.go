package decide

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

func secret(name string, data map[string]string) string {
	var entries []string
	for key, value := range data {
		entries = append(entries, key+": "+base64.StdEncoding.EncodeToString([]byte(value)))
	}
	return `{apiVersion: v1, kind: Secret, metadata: {name: ` + name + `}, data: {` + strings.Join(entries, ", ") + `}}`
}

func configMap(name, key, value string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}, data: {` + key + `: "` + value + `"}}`
}

// cloudInitOf is the source of the cloud-init volume.
func cloudInitOf(vm *unstructured.Unstructured) string {
	volume := named(volumes(vm), cloudInitDisk)
	if volume == nil {
		return "none"
	}
	for _, source := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
		if fields, ok := volume[source].(map[string]any); ok {
			return source + " " + fmt.Sprint(fields)
		}
	}
	return "?"
}

func TestCloudInit(t *testing.T) {
	long := strings.Repeat("x", 3000)
	encoded := base64.StdEncoding.EncodeToString([]byte("hello"))
	const beside = "map[name:web-cloudinit]"
	for name, c := range map[string]struct {
		reason  string
		spec    string
		objects []string
		want    string
		held    map[string]string
		ready   string
		says    string
	}{
		"CI-1 none":               {reason: "no such disk", spec: ``, want: "none"},
		"CI-1 inline":             {reason: "both parts", spec: `cloudInit: {userData: hello, networkData: net}`, want: "cloudInitNoCloud map[networkData:net userData:hello]"},
		"CI-2 a Secret":           {reason: "goes into a Secret beside", spec: `cloudInit: {secretRef: {name: s}}`, objects: []string{secret("s", map[string]string{"userdata": "pw"})}, want: "cloudInitNoCloud map[secretRef:" + beside + "]", held: map[string]string{"userdata": "pw"}},
		"CI-2 inline wins":        {reason: "KubeVirt takes one source", spec: `cloudInit: {userData: hello, secretRef: {name: s}}`, want: "cloudInitNoCloud map[userData:hello]"},
		"CI-3 base64":             {reason: "as it is", spec: `cloudInit: {userDataBase64: ` + encoded + `}`, want: "cloudInitNoCloud map[userDataBase64:" + encoded + "]"},
		"CI-3 userDataSecretRef":  {reason: "before secretRef", spec: `cloudInit: {secretRef: {name: b}, userDataSecretRef: {name: a, key: k}}`, objects: []string{secret("a", map[string]string{"k": "A"}), secret("b", map[string]string{"userdata": "B"})}, want: "cloudInitNoCloud map[secretRef:" + beside + "]", held: map[string]string{"userdata": "A"}},
		"CI-3 a ConfigMap":        {reason: "inline, it is no secret", spec: `cloudInit: {userDataConfigMapRef: {name: m}}`, objects: []string{configMap("m", "userdata", "hello")}, want: "cloudInitNoCloud map[userData:hello]"},
		"CI-3 network from a map": {reason: "its key", spec: `cloudInit: {userData: u, networkDataConfigMapRef: {name: m}}`, objects: []string{configMap("m", "networkdata", "net")}, want: "cloudInitNoCloud map[networkData:net userData:u]"},
		"CI-4 long data":          {reason: "more than 2048 bytes", spec: `cloudInit: {userData: ` + long + `, networkData: net}`, want: "cloudInitNoCloud map[networkData:net secretRef:" + beside + "]", held: map[string]string{"userdata": long}},
		"CI-4 a long ConfigMap":   {reason: "plain, and long", spec: `cloudInit: {userDataConfigMapRef: {name: m}}`, objects: []string{configMap("m", "userdata", long)}, want: "cloudInitNoCloud map[secretRef:" + beside + "]", held: map[string]string{"userdata": long}},
		"CI-4 network alone": {
			reason: "each part on its own", spec: `cloudInit: {userData: u, networkDataSecretRef: {name: s}}`, objects: []string{secret("s", map[string]string{"networkdata": "net"})},
			want: "cloudInitNoCloud map[networkDataSecretRef:" + beside + " userData:u]", held: map[string]string{"networkdata": "net"},
		},
		"CI-5 bad base64":       {reason: "it can never be decoded", spec: `cloudInit: {userDataBase64: "%%"}`, ready: "False InvalidSpec", says: "userDataBase64"},
		"CI-5 too long":         {reason: "a Secret holds 1 MiB", spec: `cloudInit: {userData: ` + strings.Repeat("x", 1<<20+1) + `}`, ready: "False InvalidSpec", says: "1 MiB"},
		"CI-5 a taken Secret":   {reason: "somebody else's", spec: `cloudInit: {secretRef: {name: s}}`, objects: []string{secret("s", map[string]string{"userdata": "pw"}), secret("web-cloudinit", nil)}, ready: "False InvalidSpec", says: "web-cloudinit"},
		"CI-6 no Secret":        {reason: "awaited", spec: `cloudInit: {secretRef: {name: s}}`, ready: "False CloudInitSourceNotFound", says: `Secret "s"`},
		"CI-6 no key":           {reason: "awaited", spec: `cloudInit: {secretRef: {name: s, key: k}}`, objects: []string{secret("s", map[string]string{"userdata": "pw"})}, ready: "False CloudInitSourceNotFound", says: `no key "k"`},
		"CI-6 no ConfigMap":     {reason: "awaited", spec: `cloudInit: {networkDataConfigMapRef: {name: m}}`, ready: "False CloudInitSourceNotFound", says: `ConfigMap "m"`},
		"CI-7 no data":          {reason: "an empty configuration", spec: `cloudInit: {}`, want: "cloudInitNoCloud map[userData:#cloud-config\n]"},
		"CI-7 config drive":     {reason: "the same fields", spec: `cloudInit: {type: configDrive, userData: hello}`, want: "cloudInitConfigDrive map[userData:hello]"},
		"CI-7 empty inline":     {reason: "is none", spec: `cloudInit: {userData: "", secretRef: {name: s}}`, objects: []string{secret("s", map[string]string{"userdata": "pw"})}, want: "cloudInitNoCloud map[secretRef:" + beside + "]", held: map[string]string{"userdata": "pw"}},
		"CI-4 long base64 data": {reason: "what it decodes to goes into the Secret", spec: `cloudInit: {userDataBase64: ` + base64.StdEncoding.EncodeToString([]byte(long)) + `}`, want: "cloudInitNoCloud map[secretRef:" + beside + "]", held: map[string]string{"userdata": long}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			w.machine(c.spec)
			w.settle("web")
			if c.ready != "" {
				sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
				holdsText(t, "the message", w.message("web", v1alpha1.ConditionReady), c.says)
				if len(w.all(kinds.VirtualMachines, "")) > 0 {
					t.Errorf("RC-2: a virtual machine was made (%s)", c.reason)
				}
				if c.ready == "False CloudInitSourceNotFound" {
					sees(t, "phase", w.status("web").Phase, v1alpha1.PhasePending)
				}
				return
			}
			sees(t, "the source ("+c.reason+")", cloudInitOf(w.must(kinds.VirtualMachines, "vm-web")), c.want)
			for key, value := range c.held {
				sees(t, "the Secret's "+key, secretData(w.must(kind.Secrets, "web-cloudinit"), key), value)
			}
			if c.held == nil && w.get(kind.Secrets, "web-cloudinit") != nil {
				t.Errorf("there is a Secret (%s)", c.reason)
			}
		})
	}
}

func TestCloudInitFollowsItsSource(t *testing.T) {
	w := newWorld(t, secret("s", map[string]string{"userdata": "one"}), configMap("m", "networkdata", "net1"))
	w.machine(`cloudInit: {secretRef: {name: s}, networkDataConfigMapRef: {name: m}}`)
	w.settle("web")
	w.store(parse(t, secret("s", map[string]string{"userdata": "two"})))
	w.store(parse(t, configMap("m", "networkdata", "net2")))
	w.settle("web")
	sees(t, "CI-5: the Secret", secretData(w.must(kind.Secrets, "web-cloudinit"), "userdata"), "two")
	holdsText(t, "the same length, another content", cloudInitOf(w.must(kinds.VirtualMachines, "vm-web")), "networkData:net2")

	w.remove(kind.Secrets, "web-cloudinit")
	w.settle("web")
	sees(t, "UP-8: the Secret made again", secretData(w.must(kind.Secrets, "web-cloudinit"), "userdata"), "two")

	w.edit(kinds.VirtualMachines, "vm-web", func(obj *unstructured.Unstructured) {
		put(named(volumes(obj), cloudInitDisk), "hacked", "cloudInitNoCloud", "networkData")
	})
	w.settle("web")
	holdsText(t, "UP-1: a hand edit is put back", cloudInitOf(w.must(kinds.VirtualMachines, "vm-web")), "networkData:net2")

	w.respec(``)
	w.settle("web")
	sees(t, "UP-3: without cloudInit there is no such disk", cloudInitOf(w.must(kinds.VirtualMachines, "vm-web")), "none")
}

func TestCloudInitSourceThatArrives(t *testing.T) {
	w := newWorld(t)
	w.machine(`cloudInit: {secretRef: {name: s}}`)
	w.settle("web")
	sees(t, "CI-6: Ready", w.ready("web"), "False CloudInitSourceNotFound")
	sees(t, "VirtualMachineReady", w.cond("web", v1alpha1.ConditionVirtualMachineReady), "Unknown Waiting")
	w.add(secret("s", map[string]string{"userdata": "pw"}))
	w.settle("web")
	sees(t, "ER-2: Ready after it came", w.ready("web"), "False Creating")
}

func TestSecretsStayOutOfSight(t *testing.T) {
	const canary = "canary-5f3e"
	w := newWorld(t, secret("s", map[string]string{"userdata": canary}))
	w.machine(`cloudInit: {secretRef: {name: s}, networkData: ` + canary + `}, userData: ` + canary)
	o := w.reconcile("web")
	for _, what := range []any{o.decision, o.conclusion, w.must(kinds.Machines, "web").Object["status"]} {
		if strings.Contains(fmt.Sprintf("%+v", what), canary) {
			t.Errorf("CI-4: the secret shows in %T", what)
		}
	}
}

func TestStaticAddresses(t *testing.T) {
	w := newWorld(t, `{apiVersion: vitistack.io/v1alpha1, kind: NetworkNamespace, metadata: {name: prod}, spec: {ipAllocation: {type: static, static: {ipv4CIDR: 10.1.0.0/22, ipv4Gateway: 10.1.0.1, dns: [10.1.0.2, 10.1.0.3]}}}, status: {vlanId: 42}}`)
	w.machine(`network: {networkNamespaceName: prod}, cloudInit: {userData: u}`)
	w.settle("web")
	sees(t, "CI-8: Ready", w.ready("web"), "False StaticAddressPending")
	sees(t, "phase", w.status("web").Phase, v1alpha1.PhasePending)
	// RC-2: the record is written all the same, and after the finalizer.
	record := w.must(kinds.NetworkConfigurations, "web")
	sees(t, "the finalizer", strings.Join(w.must(kinds.Machines, "web").GetFinalizers(), " "), v1alpha1.MachineFinalizer)
	if len(w.all(kinds.VirtualMachines, ""))+len(w.all(kind.PersistentVolumeClaims, ""))+len(w.all(kinds.NetworkAttachmentDefinitions, "")) > 0 {
		t.Error("RC-2: something was made on the target")
	}
	mac := text(entries(record.Object, "spec", "networkInterfaces")[0], "macAddress")
	give := func(address string) {
		w.edit(kinds.NetworkConfigurations, "web", func(obj *unstructured.Unstructured) {
			put(obj.Object, []any{map[string]any{"macAddress": strings.ToUpper(mac), "ipv4Addresses": []any{address}}}, "status", "networkInterfaces")
		})
	}
	give("10.1.2.3/22")
	w.settle("web")
	sees(t, "the network data", text(named(volumes(w.must(kinds.VirtualMachines, "vm-web")), cloudInitDisk), "cloudInitNoCloud", "networkData"),
		"version: 1\nconfig:\n  - type: physical\n    name: \"vlan42\"\n    mac_address: \""+mac+"\"\n    subnets:\n      - type: static\n        address: \"10.1.2.3\"\n        netmask: 255.255.252.0\n"+
			"        gateway: \"10.1.0.1\"\n        dns_nameservers:\n          - \"10.1.0.2\"\n          - \"10.1.0.3\"\n")
	give("10.1.2.4/22")
	w.settle("web")
	holdsText(t, "a new address of the same length", text(named(volumes(w.must(kinds.VirtualMachines, "vm-web")), cloudInitDisk), "cloudInitNoCloud", "networkData"), "10.1.2.4")
}
