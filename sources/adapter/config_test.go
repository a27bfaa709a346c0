package adapter_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/sources/adapter"
)

func TestLoad(t *testing.T) {
	const resources = "resources: [{group: kubevirt.io, versions: [v1], resource: virtualmachines, kind: VirtualMachine}]\n"
	cases := map[string]struct {
		reason, text string
		env          map[string]string
		want         adapter.Config
		wantError    string
	}{
		"Defaults": {
			reason: "the mode is Reference unless the file says otherwise",
			text:   "sink: http://broker/ns/default\n" + resources,
			want: adapter.Config{
				Sink: "http://broker/ns/default", Namespace: "default",
				Resources: []adapter.Resource{{Group: "kubevirt.io", Versions: []string{"v1"}, Resource: "virtualmachines", Kind: "VirtualMachine", Mode: "Reference"}},
			},
		},
		"Environment": {
			reason: "what a SinkBinding sets wins",
			text:   "sink: http://broker/ns/default\nceOverrides: {extensions: {a: file, b: file}}\n" + resources,
			env: map[string]string{
				"K_SINK": "http://other/ns/default", "NAMESPACE": "slipway-system", "K_CE_OVERRIDES": `{"extensions":{"b":"env","c":"env"}}`,
			},
			want: adapter.Config{
				Sink: "http://other/ns/default", Namespace: "slipway-system",
				CEOverrides: adapter.Overrides{Extensions: map[string]string{"a": "file", "b": "env", "c": "env"}},
				Resources:   []adapter.Resource{{Group: "kubevirt.io", Versions: []string{"v1"}, Resource: "virtualmachines", Kind: "VirtualMachine", Mode: "Reference"}},
			},
		},
		"NoSink":    {reason: "events need a sink", text: resources, wantError: `sink "" is no http or https URL`},
		"NoKind":    {reason: "a resource is named in full", text: "sink: http://b\nresources: [{resource: pods}]", wantError: "resources[0] (pods): resource, kind and versions are required"},
		"Mode":      {reason: "there are two modes", text: "sink: http://b\nresources: [{resource: pods, kind: Pod, versions: [v1], mode: Full}]", wantError: `mode "Full" is unknown`},
		"Selector":  {reason: "a selector is a label selector", text: "sink: http://b\nresources: [{resource: pods, kind: Pod, versions: [v1], selector: 'a=='}, {resource: pods, kind: Pod, versions: [v1], selector: '!!'}]", wantError: `cannot read selector "!!"`},
		"Extension": {reason: "CloudEvents knows lower case letters and digits only", text: "sink: http://b\nceOverrides: {extensions: {a-b: c}}\n" + resources, wantError: `"a-b" is no name of a CloudEvents extension`},
		"Field":     {reason: "a field that does not exist is a mistake", text: "sinks: http://b\n" + resources, wantError: `unknown field "sinks"`},
		"Remotes": {
			reason: "a provider has defaults, and the environment names the namespace as for the functions",
			text:   "sink: http://b\n" + resources + "remotes: [{provider: KubevirtConfig, heartbeat: 2s, " + strings.TrimSpace(resources) + "}]",
			env:    map[string]string{"KUBEVIRT_CONFIGS_NAMESPACE": "clusters"},
			want: adapter.Config{
				Sink: "http://b", Namespace: "default",
				Resources: []adapter.Resource{{Group: "kubevirt.io", Versions: []string{"v1"}, Resource: "virtualmachines", Kind: "VirtualMachine", Mode: "Reference"}},
				Remotes: []adapter.Remote{{
					Provider: "KubevirtConfig", Namespace: "clusters", Key: "kubeconfig",
					Refresh: metav1.Duration{Duration: time.Minute}, Timeout: metav1.Duration{Duration: 10 * time.Second}, Heartbeat: metav1.Duration{Duration: 2 * time.Second},
					Resources: []adapter.Resource{{Group: "kubevirt.io", Versions: []string{"v1"}, Resource: "virtualmachines", Kind: "VirtualMachine", Mode: "Reference"}},
				}},
			},
		},
		"Provider": {reason: "an unknown provider is a mistake", text: "sink: http://b\n" + resources + "remotes: [{provider: Magic, " + strings.TrimSpace(resources) + "}]", wantError: `remotes[0]: provider "Magic" is unknown: use one of KubevirtConfig`},
		"Twice":    {reason: "each provider has one entry", text: "sink: http://b\n" + resources + "remotes: [{provider: KubevirtConfig, " + strings.TrimSpace(resources) + "}, {provider: KubevirtConfig, " + strings.TrimSpace(resources) + "}]", wantError: `remotes[1]: the provider "KubevirtConfig" is there twice`},
		"NoRemote": {reason: "a provider is there for something", text: "sink: http://b\n" + resources + "remotes: [{provider: KubevirtConfig}]", wantError: "remotes[0]: provider \"KubevirtConfig\": resources is empty"},
		"Remote":   {reason: "what is wrong is named in full", text: "sink: http://b\n" + resources + "remotes: [{provider: KubevirtConfig, resources: [{resource: pods}]}]", wantError: "remotes[0].resources[0] (pods): resource, kind and versions are required"},
		"Name":     {reason: "a name is no selector", text: "sink: http://b\nresources: [{resource: pods, kind: Pod, versions: [v1], name: 'a,b'}]", wantError: `must be names of one object each`},
		"Nothing":  {reason: "something must be watched", text: "sink: http://b", wantError: "resources is empty"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := adapter.Load(path, func(name string) string { return tc.env[name] })
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Fatalf("%s: got error %v, want %q", tc.reason, err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
