package decide

import (
	"testing"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
)

func TestPlacement(t *testing.T) {
	config := func(name, metadata string) string {
		return `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: ` + name + metadata + `}, spec: {kubeconfigSecretRef: s}}`
	}
	for name, c := range map[string]struct {
		reason   string
		metadata string
		rest     string
		objects  []string
		settings func(*Settings)
		noVMs    bool
		ready    string
		says     string
	}{
		"PL-8 no KubevirtConfig":               {reason: "the cluster itself", ready: "False Creating"},
		"PL-8 true":                            {reason: "also where KubevirtConfigs exist", objects: []string{config("a", "")}, settings: func(s *Settings) { s.SingleCluster = SingleTrue }, ready: "False Creating"},
		"PL-8 false":                           {reason: "never here", settings: func(s *Settings) { s.SingleCluster = SingleFalse }, ready: "False KubevirtConfigNotFound", says: "no KubevirtConfigs are available"},
		"PL-8 a Machine that is here already":  {reason: "a placed Machine never moves by itself", rest: ", status: {vmName: vm-web}", objects: []string{config("a", ""), config("b", ""), `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm-web, annotations: {vitistack.io/machine-uid: uid-web, vitistack.io/machine-name: web}}}`}, ready: "False Creating"},
		"PL-5 a named one that does not exist": {reason: "no fallback", rest: ", spec: {kubevirtConfigRef: gone}", ready: "False KubevirtConfigNotFound", says: `"gone"`},
		"PL-1 the annotation":                  {reason: "counts as named", metadata: ", annotations: {vitistack.io/kubevirt-config: gone}", ready: "False KubevirtConfigNotFound", says: `"gone"`},
		"PL-1 the status":                      {reason: "counts as named", rest: ", status: {kubevirtConfigRef: gone}", ready: "False KubevirtConfigNotFound", says: `"gone"`},
		"PL-1 the environment":                 {reason: "counts as named", settings: func(s *Settings) { s.DefaultConfig = "gone" }, ready: "False KubevirtConfigNotFound", says: `"gone"`},
		"PL-1 one that goes does not count":    {reason: "its cluster is given up", objects: []string{config("a", `, deletionTimestamp: "2026-11-21T00:00:00Z", finalizers: [x]`)}, ready: "False Creating"},
		"PL-7 a namespaced one elsewhere":      {reason: "it does not count", objects: []string{config("a", ", namespace: other")}, ready: "False Creating"},
		"one other cluster":                    {reason: "without its Secret", objects: []string{config("a", "")}, ready: "False KubevirtConfigInvalid", says: `"a"`},
		"section 16 KubeVirt is missing":       {reason: "the cluster itself has none", settings: func(s *Settings) { s.SingleCluster = SingleTrue }, noVMs: true, ready: "False KubeVirtApiError", says: "install KubeVirt"},
		"PL-5 nothing anywhere":                {reason: "neither KubevirtConfigs nor KubeVirt", noVMs: true, ready: "False KubevirtConfigNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			if c.settings != nil {
				c.settings(&w.settings)
			}
			w.unserved[kinds.VirtualMachines.String()] = c.noVMs
			w.add(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-web` + c.metadata + `}` + c.rest + `}`)
			w.settle("web")
			sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
			holdsText(t, "the message", w.message("web", "Ready"), c.says)
			if c.ready != "False Creating" {
				sees(t, "phase", w.status("web").Phase, "Failed")
				if w.status("web").FailureReason == nil {
					t.Error("ER-1: failureReason is not set")
				}
			}
			if ref := w.status("web").KubevirtConfigRef; ref != "" && name != "PL-1 the status" {
				t.Errorf("PL-8: kubevirtConfigRef is %q", ref)
			}
		})
	}
}

func TestProvider(t *testing.T) {
	for name, c := range map[string]struct {
		reason, spec string
		ours         bool
	}{
		"none":            {reason: "RC-7: the default", ours: true},
		"kubevirt":        {reason: "in any case", spec: `provider: KubeVirt`, ours: true},
		"another":         {reason: "not ours", spec: `provider: proxmox`},
		"by config":       {reason: "where provider is empty", spec: `providerConfig: {name: aws}`},
		"provider counts": {reason: "before the config", spec: `provider: kubevirt, providerConfig: {name: aws}`, ours: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.machine(c.spec)
			o := w.reconcile("web")
			if got := o.writes > 0; got != c.ours {
				t.Errorf("%s: writes happened: %t", c.reason, got)
			}
			if !c.ours && o.conclusion.Status != nil {
				t.Errorf("%s: it has a status: %v", c.reason, o.conclusion.Status)
			}
		})
	}
}
