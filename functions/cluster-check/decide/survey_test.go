package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

func allServed() map[string]bool {
	served := map[string]bool{"virtualmachines.kubevirt.io": false}
	for _, res := range Expected() {
		served[res.String()] = true
	}
	return served
}

func TestFindings(t *testing.T) {
	east, west := *config(t, "east"), *config(t, "west")
	older := healthy(t, "west")
	older.Stored["virtualmachines"] = "v1alpha3"
	lost := Sight{Cluster: "east", Connection: plan.Connection{Refused: plan.SecretNotFound, Message: "no Secret"}}
	elsewhere := *config(t, "east")
	elsewhere.SetNamespace("elsewhere")
	cases := map[string]struct {
		reason string
		survey Survey
		want   []string
	}{
		"all is well": {
			reason: "management cluster first, then by name",
			survey: Survey{Served: Served{Configs: []unstructured.Unstructured{west, east}}, Sights: []Sight{healthy(t, "west"), healthy(t, "east")}},
			want: []string{
				"resources  ok Served", "configs  ok Found", "schemas  ok VersionsMatch",
				"connection east ok Connected", "kubevirt east ok KubeVirtAvailable", "versions east ok VersionsMatch",
				"connection west ok Connected", "kubevirt west ok KubeVirtAvailable", "versions west ok VersionsMatch",
			},
		},
		"one is lost": {
			reason: "what follows from it is skipped, and the next is the yardstick",
			survey: Survey{Served: Served{Configs: []unstructured.Unstructured{east, west}}, Sights: []Sight{lost, older}},
			want: []string{
				"resources  ok Served", "configs  ok Found", "schemas  ok VersionsMatch",
				"connection east failed SecretNotFound", "kubevirt east skipped Waiting", "versions east skipped SecretNotFound",
				"connection west ok Connected", "kubevirt west ok KubeVirtAvailable", "versions west ok VersionsMatch",
			},
		},
		"versions differ, and one is asked for": {
			reason: "the yardstick is looked at, and not told of",
			survey: Survey{Served: Served{Configs: []unstructured.Unstructured{east, west}}, Sights: []Sight{healthy(t, "east"), older}, Only: []string{"west"}},
			want: []string{
				"resources  ok Served", "configs  ok Found", "schemas  ok VersionsMatch",
				"connection west ok Connected", "kubevirt west ok KubeVirtAvailable", "versions west warning VersionsDiffer",
			},
		},
		"no config": {
			reason: "there is nothing to run on", survey: Survey{},
			want: []string{"resources  ok Served", "configs  failed KubevirtConfigNotFound", "schemas  ok VersionsMatch"},
		},
		"configs of another namespace": {
			reason: "they do not count", survey: Survey{Served: Served{Configs: []unstructured.Unstructured{elsewhere}}},
			want: []string{"resources  ok Served", "configs  failed KubevirtConfigNotFound", "schemas  ok VersionsMatch"},
		},
		"configs may not be listed": {
			reason: "nobody can tell", survey: Survey{Served: Served{ConfigsRefused: &fault.Fault{Class: fault.Refused, Code: 403, Call: "list kubevirtconfigs.vitistack.io"}}},
			want: []string{"resources  ok Served", "configs  failed Unauthorized", "schemas  ok VersionsMatch"},
		},
		"single cluster": {
			reason: "the management cluster is the target",
			survey: Survey{Single: true, Sights: []Sight{{Cluster: Management, Stored: map[string]string{}}}},
			want: []string{
				"resources  ok Served", "configs  ok SingleCluster", "schemas  ok VersionsMatch",
				"connection  ok Connected", "kubevirt  failed KubeVirtMissing", "versions  skipped KubeVirtMissing",
			},
		},
		"nothing is installed": {
			reason: "a failure, and a warning for what the definitions lack",
			survey: Survey{Served: Served{Resources: map[string]bool{}}, Definitions: Definitions{Found: map[string]*unstructured.Unstructured{}}},
			want:   []string{"resources  failed NotServed", "configs  failed KubevirtConfigNotFound", "schemas  warning SchemaIncomplete"},
		},
		"definitions may not be read": {
			reason: "a warning that names the right",
			survey: Survey{Definitions: Definitions{Refused: &fault.Fault{Class: fault.Refused, Code: 403, Call: "get customresourcedefinitions.apiextensions.k8s.io"}}},
			want:   []string{"resources  ok Served", "configs  failed KubevirtConfigNotFound", "schemas  warning Unauthorized"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.survey
			s.Settings = DefaultSettings()
			if s.Resources == nil {
				s.Resources = allServed()
			}
			if s.Definitions.Found == nil && s.Definitions.Refused == nil {
				s.Definitions = definitions(t)
			}
			var got []string
			for _, f := range s.Findings() {
				got = append(got, f.Check+" "+f.Cluster+" "+string(f.Result)+" "+f.Reason)
				if f.Detail == "" {
					t.Errorf("%s %s says nothing", f.Check, f.Cluster)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSingle(t *testing.T) {
	one := []unstructured.Unstructured{*config(t, "east")}
	here := allServed()
	here["virtualmachines.kubevirt.io"] = true
	cases := map[string]struct {
		reason string
		mode   SingleCluster
		served Served
		want   bool
	}{
		"auto, nothing is served":     {"there can be no KubevirtConfig", SingleAuto, Served{Resources: map[string]bool{}}, true},
		"auto, KubeVirt, no configs":  {"Machines run here", SingleAuto, Served{Resources: here}, true},
		"auto, KubeVirt and a config": {"somebody wants them elsewhere", SingleAuto, Served{Resources: here, Configs: one}, false},
		"auto, neither":               {"a config is missing", SingleAuto, Served{Resources: allServed()}, false},
		"auto, nobody can tell":       {"a right is missing, which has to be said", SingleAuto, Served{Resources: here, ConfigsRefused: &fault.Fault{}}, false},
		"true":                        {"somebody says so", SingleTrue, Served{Resources: here, Configs: one}, true},
		"false":                       {"somebody says so", SingleFalse, Served{Resources: map[string]bool{}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Single(tc.mode, tc.served, DefaultSettings()); got != tc.want {
				t.Errorf("%s: %v", tc.reason, got)
			}
		})
	}
}
