package decide

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
)

// The checks, in their order.
const (
	CheckResources = "resources"
	CheckConfigs   = "configs"
	CheckConnected = "connection"
	CheckKubeVirt  = "kubevirt"
	CheckSchemas   = "schemas"
	CheckVersions  = "versions"
)

// SingleCluster says whether Machines run on the management cluster itself.
type SingleCluster string

// The ways to choose the single-cluster mode.
const (
	// SingleAuto: if no KubevirtConfig exists and the cluster serves KubeVirt, or
	// if it does not serve KubevirtConfigs.
	SingleAuto SingleCluster = "auto"
	// SingleTrue: always.
	SingleTrue SingleCluster = "true"
	// SingleFalse: never.
	SingleFalse SingleCluster = "false"
)

// Finding is what one check of one cluster came to.
type Finding struct {
	Check string `json:"check"`
	// Cluster is the name of the KubevirtConfig; empty for the management cluster.
	Cluster string `json:"cluster,omitempty"`
	Result  Result `json:"result"`
	// Reason is one word, Detail what is seen and the way out.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail"`
}

// Served is what the management cluster serves and holds.
type Served struct {
	// Resources tells which resources are served, by name.
	Resources map[string]bool
	// Configs are all KubevirtConfigs.
	Configs        []unstructured.Unstructured
	ConfigsRefused *fault.Fault
}

// Single tells whether Machines run on the management cluster itself.
func Single(mode SingleCluster, served Served, settings Settings) bool {
	switch mode {
	case SingleTrue:
		return true
	case SingleFalse:
		return false
	case SingleAuto:
	}
	if !served.Resources[kinds.KubevirtConfigs.String()] {
		return true
	}
	return served.ConfigsRefused == nil && len(Counted(served.Configs, settings)) == 0 && served.Resources[kinds.VirtualMachines.String()]
}

// Survey is what was seen of all clusters.
type Survey struct {
	Settings Settings
	// Single tells that Machines run on the management cluster itself.
	Single bool
	Served
	Definitions Definitions
	// Sights are the clusters that were looked at.
	Sights []Sight
	// Only are the KubevirtConfigs that somebody asked for; empty for all.
	Only []string
}

// Findings are all checks: those of the management cluster first, then cluster
// by cluster.
func (s Survey) Findings() []Finding {
	findings := []Finding{s.resources(), s.configs(), finding(CheckSchemas, Management, s.Definitions.Schemas(s.left()...))}
	sights := slices.Clone(s.Sights)
	slices.SortFunc(sights, func(a, b Sight) int { return strings.Compare(a.Cluster, b.Cluster) })
	yardstick := firstReadable(sights)
	for i := range sights {
		sight := &sights[i]
		if len(s.Only) > 0 && !slices.Contains(s.Only, sight.Cluster) {
			continue
		}
		with := yardstick
		if with == sight || with == nil {
			with = nil
		}
		findings = append(findings,
			finding(CheckConnected, sight.Cluster, sight.Connected()),
			finding(CheckKubeVirt, sight.Cluster, sight.KubeVirt()),
			finding(CheckVersions, sight.Cluster, sight.Versions(with)))
	}
	return findings
}

// firstReadable is the yardstick among clusters in the order of their names.
func firstReadable(sights []Sight) *Sight {
	for i := range sights {
		if _, blind := sights[i].versionsUnread(); !blind {
			return &sights[i]
		}
	}
	return nil
}

func finding(check, cluster string, v Verdict) Finding {
	return Finding{Check: check, Cluster: cluster, Result: v.Result, Reason: v.Reason, Detail: v.Message}
}

// left are the resources that are not needed.
func (s Survey) left() []kind.Resource {
	if s.Single {
		return []kind.Resource{kinds.KubevirtConfigs}
	}
	return nil
}

func (s Survey) resources() Finding {
	var missing, there []string
	for _, res := range Expected() {
		switch {
		case s.Single && res.String() == kinds.KubevirtConfigs.String():
		case s.Resources[res.String()]:
			there = append(there, res.Plural)
		default:
			missing = append(missing, res.String())
		}
	}
	if len(missing) > 0 {
		return Finding{
			Check: CheckResources, Result: Failed, Reason: "NotServed",
			Detail: "not served: " + strings.Join(missing, ", ") + ": apply the definitions of api/vitistack/crds",
		}
	}
	return Finding{Check: CheckResources, Result: OK, Reason: "Served", Detail: "served: " + strings.Join(there, ", ")}
}

// namesShown is how many names a detail holds.
const namesShown = 8

func (s Survey) configs() Finding {
	f := Finding{Check: CheckConfigs}
	counted := Counted(s.Configs, s.Settings)
	switch {
	case s.Single:
		f.Result, f.Reason, f.Detail = OK, "SingleCluster", "none is needed: Machines run on the management cluster itself"
	case s.ConfigsRefused != nil:
		f.Result, f.Reason, f.Detail = Failed, "Unauthorized", lacking(s.ConfigsRefused)
	case len(counted) == 0 && len(s.Configs) > 0:
		f.Result, f.Reason = Failed, "KubevirtConfigNotFound"
		f.Detail = fmt.Sprintf("no KubevirtConfig is in namespace %q, %d elsewhere: create one there, or name another namespace", s.Settings.ConfigsNamespace, len(s.Configs))
	case len(counted) == 0:
		f.Result, f.Reason, f.Detail = Failed, "KubevirtConfigNotFound", "there is no KubevirtConfig: create one for each cluster that Machines shall run on"
	default:
		f.Result, f.Reason, f.Detail = OK, "Found", fmt.Sprintf("%d: %s", len(counted), listed(counted))
	}
	return f
}

func listed(configs []*unstructured.Unstructured) string {
	var names []string
	for i, config := range configs {
		if i == namesShown {
			names = append(names, "...")
			break
		}
		names = append(names, config.GetName())
	}
	return strings.Join(names, ", ")
}
