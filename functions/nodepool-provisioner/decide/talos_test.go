package decide

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/shared/dockyards"
)

// rendered are the Talos patches of a pool.
func (w *world) rendered() []string {
	w.t.Helper()
	v := look(now, w.in, nil)
	if v.talos == nil {
		w.t.Fatalf("nothing can be said about Talos: %v", v.config.problems)
	}
	return carried(v.talos.documents, nil)
}

// bare is a pool without any patch but what is always there.
func bare(t *testing.T, controlPlane bool) *world {
	w := newWorld(t, controlPlane)
	set(w.in.Cluster, nil, "spec", "podSubnets")
	set(w.in.Cluster, "localhost", "status", "apiEndpoint", "host")
	return w
}

func TestTalosPatchesAreExactlyThese(t *testing.T) {
	nodeSubnets := func(subnets ...string) func(*world) {
		return func(w *world) { w.in.Settings.NodeSubnets = subnets }
	}
	cases := map[string]struct {
		reason       string
		controlPlane bool
		change       func(*world)
		want         []string
	}{
		"Plain": {
			reason: "a control plane always has the name of its API server", controlPlane: true,
			want: []string{"version: v1alpha1\ncluster:\n    apiServer:\n        certSANs:\n            - localhost\n"},
		},
		"NoNetworkPlugin": {
			reason: "the plugin is turned off before the API server's names", controlPlane: true,
			change: func(w *world) { set(w.in.Cluster, true, "spec", "noDefaultNetworkPlugin") },
			want: []string{
				"version: v1alpha1\ncluster:\n    network:\n        cni:\n            name: none\n    apiServer:\n        certSANs:\n            - localhost\n",
			},
		},
		"WorkerWithoutAnything": {reason: "a worker may have no patch at all"},
		"SubnetsOnly": {
			reason: "subnets of pods and services are for all machines",
			change: func(w *world) {
				set(w.in.Cluster, []any{"192.168.0.0/16"}, "spec", "podSubnets")
				set(w.in.Cluster, []any{"172.16.0.0/12"}, "spec", "serviceSubnets")
			},
			want: []string{
				"version: v1alpha1\ncluster:\n    network:\n        podSubnets:\n            - 192.168.0.0/16\n        serviceSubnets:\n            - 172.16.0.0/12\n",
			},
		},
		"NodeSubnetsOnly": {
			reason: "an address is plain even if it holds colons",
			change: nodeSubnets("192.168.0.0/16", "fd00:192:168::/56"),
			want: []string{
				"version: v1alpha1\nmachine:\n    kubelet:\n        nodeIP:\n            validSubnets:\n                - 192.168.0.0/16\n                - fd00:192:168::/56\n",
			},
		},
		"EmptyProxy": {
			reason: "a proxy that is set to nothing is set",
			change: func(w *world) { w.config(map[string]string{dockyards.KeyHTTPProxy: ""}) },
			want:   []string{"version: v1alpha1\nmachine:\n    env:\n        http_proxy: \"\"\n"},
		},
		"AllThreeProxies": {
			reason: "they stand in the order HTTP, HTTPS, no proxy",
			change: func(w *world) {
				w.config(map[string]string{dockyards.KeyNoProxy: ".a.local,*.b.c", dockyards.KeyHTTPSProxy: "http://u:p@h:1/#x", dockyards.KeyHTTPProxy: "x y"})
			},
			want: []string{
				"version: v1alpha1\nmachine:\n    env:\n        http_proxy: x y\n        https_proxy: http://u:p@h:1/#x\n        no_proxy: .a.local,*.b.c\n",
			},
		},
		"TimeServers": {
			reason: "they are trimmed, and none is named twice",
			change: func(w *world) { w.config(map[string]string{dockyards.KeyNTPServers: " time.a ,, time.b,time.a"}) },
			want: []string{
				"apiVersion: v1alpha1\nkind: TimeSyncConfig\nntp:\n    servers:\n        - time.a\n        - time.b\n",
			},
		},
		"NoTimeServersLeft": {
			reason: "a list of nothing is no document",
			change: func(w *world) { w.config(map[string]string{dockyards.KeyNTPServers: " , "}) },
		},
		"EverythingOnAControlPlane": {
			reason: "the full example", controlPlane: true,
			change: func(w *world) {
				set(w.in.Cluster, "org1-c1.dockyards.example.com", "status", "apiEndpoint", "host")
				set(w.in.Cluster, true, "spec", "noDefaultNetworkPlugin")
				set(w.in.Cluster, []any{"10.244.0.0/16"}, "spec", "podSubnets")
				set(w.in.Cluster, []any{"10.96.0.0/12"}, "spec", "serviceSubnets")
				nodeSubnets("10.10.0.0/16", "fd00:10::/64")(w)
				w.config(map[string]string{
					dockyards.KeyHTTPProxy: "http://proxy:3128", dockyards.KeyNoProxy: "localhost,10.0.0.0/8",
					dockyards.KeyNTPServers: "time.a, time.b,time.a",
				})
			},
			want: []string{
				`version: v1alpha1
cluster:
    network:
        cni:
            name: none
    apiServer:
        certSANs:
            - org1-c1.dockyards.example.com
    etcd:
        advertisedSubnets:
            - 10.10.0.0/16
            - fd00:10::/64
        listenSubnets:
            - 10.10.0.0/16
            - fd00:10::/64
`, `version: v1alpha1
machine:
    kubelet:
        nodeIP:
            validSubnets:
                - 10.10.0.0/16
                - fd00:10::/64
    env:
        http_proxy: http://proxy:3128
        no_proxy: localhost,10.0.0.0/8
cluster:
    network:
        podSubnets:
            - 10.244.0.0/16
        serviceSubnets:
            - 10.96.0.0/12
`, `apiVersion: v1alpha1
kind: TimeSyncConfig
ntp:
    servers:
        - time.a
        - time.b
`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := bare(t, tc.controlPlane)
			if tc.change != nil {
				tc.change(w)
			}
			if tc.want == nil {
				tc.want = []string{}
			}
			if diff := cmp.Diff(tc.want, w.rendered()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestScalarsAreQuotedAsTheEncoderDoes(t *testing.T) {
	long := "localhost," + strings.Repeat("10.0.0.0/8,very-long-name.example.com,", 20)
	cases := map[string]string{
		"fd00::/8": "fd00::/8", "::1": "::1", "2001:db8::1": "2001:db8::1", "http://u:p@h:1/#x": "http://u:p@h:1/#x",
		".a.local,*.b.c": ".a.local,*.b.c", "x y": "x y", "": `""`, long: long,
		"*": "'*'", "*.example.com": "'*.example.com'", "@x": "'@x'", "&x": "'&x'", "!x": "'!x'", "%x": "'%x'", "-": "'-'", "- x": "'- x'",
		"[::1]": "'[::1]'", "{a}": "'{a}'", "a: b": "'a: b'", "a #b": "'a #b'", " a": "' a'", "a ": "'a '", "fd00:10::": "'fd00:10::'",
		"true": `"true"`, "no": `"no"`, "y": `"y"`, "null": `"null"`, "~": `"~"`, "12345": `"12345"`, "1.5": `"1.5"`, "0x1f": `"0x1f"`,
		"1_000": `"1_000"`, "12:30": `"12:30"`, "2001-01-01": `"2001-01-01"`, "a\nb": "|-\n            a\n            b",
	}
	for value, want := range cases {
		w := bare(t, false)
		w.config(map[string]string{dockyards.KeyNoProxy: value})
		if got := w.rendered()[0]; got != "version: v1alpha1\nmachine:\n    env:\n        no_proxy: "+want+"\n" {
			t.Errorf("%q is written as %q", value, got)
		}
	}
}

func TestAStoredPatchThatSaysTheSameStaysByteForByte(t *testing.T) {
	doc, err := render(controlPlaneDocument{Version: talosAPIVersion, Cluster: controlPlaneCluster{APIServer: apiServer{CertSANs: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		stored []string
		want   string
	}{
		"another style":        {[]string{`{"cluster": {apiServer: {certSANs: [a]}}, version: "v1alpha1"}`}, `{"cluster": {apiServer: {certSANs: [a]}}, version: "v1alpha1"}`},
		"with a marker":        {[]string{"---\n" + doc.text}, "---\n" + doc.text},
		"another document":     {[]string{"version: v1alpha1\n"}, doc.text},
		"two documents in one": {[]string{doc.text + "---\nkind: More\n"}, doc.text},
		"no YAML":              {[]string{"a: b: c", "\t"}, doc.text},
		"nothing":              {nil, doc.text},
	}
	for name, tc := range cases {
		if got := carried([]document{doc}, tc.stored)[0]; got != tc.want {
			t.Errorf("%s: %q became %q", name, tc.stored, got)
		}
	}
}

func TestWhatIsAbsentFromTheConfigMapTakesNothingAway(t *testing.T) {
	full := map[string]string{
		dockyards.KeyHTTPProxy: "http://proxy:3128", dockyards.KeyHTTPSProxy: "http://secure:3128",
		dockyards.KeyNoProxy: "localhost", dockyards.KeyNTPServers: "time.a",
	}
	for _, controlPlane := range []bool{true, false} {
		w := newWorld(t, controlPlane)
		w.config(full)
		w.rest()
		before, record := w.rendered(), w.recorded()
		w.config(nil)
		if writes, _, _ := w.rest(); len(writes) > 0 {
			t.Errorf("an empty config map made it write %v", writes)
		}
		if diff := cmp.Diff(before, w.rendered()); diff != "" || w.recorded() != record {
			t.Errorf("the patches changed (-before +after):\n%s", diff)
		}
		conditionType := map[bool]string{true: "TalosControlPlaneReconciled", false: "TalosConfigTemplateReconciled"}[controlPlane]
		for key := range full {
			if got := w.conditions()[conditionType]; !strings.Contains(got, key) || strings.Contains(got, full[key]) {
				t.Errorf("the message must name key %s and no value: %s", key, got)
			}
		}
		w.config(map[string]string{dockyards.KeyHTTPProxy: "", dockyards.KeyNTPServers: ""})
		_, events, _ := w.rest()
		if got := strings.Join(w.rendered(), ""); strings.Contains(got, "TimeSyncConfig") || !strings.Contains(got, `http_proxy: ""`) ||
			!strings.Contains(got, "https_proxy: http://secure:3128") {
			t.Errorf("empty values take the effect away, absent ones do not: %s", got)
		}
		if len(events) != 1 || !strings.HasPrefix(events[0], "RolloutStarted: ") || strings.Contains(events[0], "secure") {
			t.Errorf("the rollout is announced without values: %v", events)
		}
	}
}
