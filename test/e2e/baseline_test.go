package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

// Objects of the baseline, as kubectl takes them, and keys of its users.
const (
	pods    = "kubeletconfigs/virt-perf-settings"
	psi     = "machineconfigs/99-openshift-machineconfig-worker-psi-karg"
	swap    = "machineconfigs/90-worker-swap-online"
	console = "uiplugins.observability.openshift.io/monitoring"
	health  = "nodehealthchecks/virt-node-health-check"

	userPrefix = "platform.kubevirt.io/"
	paused     = userPrefix + "reconcile-paused"
)

// TestMakeRunWithTheBaseline runs the command that the README names.
func TestMakeRunWithTheBaseline(t *testing.T) {
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "run", "SAMPLE=baseline", "ONCE=1")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"an admin sets maxPods", "it is 500 again", "patch(1)", "ignores /spec/minHealthy", "Excluded", "Inactive", "descheduler-loadaware",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// baselineFixture is the stack with the sample's platform.
type baselineFixture struct {
	*fixture
	cli string
}

// TestTheBaselineAsItsUsersSteerIt is one story: each step goes on from the one before.
func TestTheBaselineAsItsUsersSteerIt(t *testing.T) {
	f := &baselineFixture{fixture: begin(t)}
	if err := build.Binaries(t.Context(), build.Options{Root: f.root, Out: f.out}, "kubectl-slipway"); err != nil {
		t.Fatal(err)
	}
	f.cli = filepath.Join(f.root, build.DefaultBin, "kubectl-slipway")
	f.kubectl("apply", "-k", filepath.Join(f.root, "deploy/samples/baseline"))
	f.becomes("the alerts", "prometheusrules/virt-platform-autopilot-alerts", `.metadata.labels.platform\.kubevirt\.io/managed-by`, "virt-platform-autopilot")
	for _, step := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"a drift is repaired, by its event", f.repairs},
		{"a patch is in force, and others follow it", f.patches},
		{"ignored fields are anybody's", f.ignores},
		{"what is unmanaged or paused by hand stays as it is", f.holds},
		{"somebody who keeps changing it back is told of, and the pause ends by hand", f.fights},
		{"kubectl slipway baseline tells all that", f.tells},
	} {
		t.Run(step.name, func(t *testing.T) {
			f.t = t
			step.do(t)
		})
		if t.Failed() {
			return
		}
	}
}

func (f *baselineFixture) value(object, path string) string {
	f.t.Helper()
	return f.kubectl("get", object, "-n", "openshift-cnv", "--ignore-not-found", "-o", "jsonpath={"+path+"}")
}

func (f *baselineFixture) becomes(what, object, path, want string) {
	f.t.Helper()
	f.eventually(what, func() string { return differs(want, f.value(object, path)) })
}

func (f *baselineFixture) edit(object, patch string) {
	f.t.Helper()
	f.kubectl("patch", object, "--type", "merge", "-p", patch)
}

func (f *baselineFixture) annotate(object, key, value string) {
	f.t.Helper()
	f.kubectl("annotate", object, "--overwrite", userPrefix+key+"="+value)
}

func (f *baselineFixture) repairs(t *testing.T) {
	f.becomes("the KubeletConfig", pods, ".spec.kubeletConfig.maxPods", "500")
	before := len(f.out.String())
	f.edit(pods, `{"spec":{"kubeletConfig":{"maxPods":250}}}`)
	f.becomes("500 pods again", pods, ".spec.kubeletConfig.maxPods", "500")
	// An event is shown when it is answered, which is after the repair.
	f.eventually("the event of the change", func() string {
		since := f.out.String()[before:]
		if strings.Contains(since, "resync") || strings.Contains(since, " ping ") {
			t.Log("a resync came in between")
			return ""
		}
		if !strings.Contains(since, "KubeletConfig virt-perf-settings") {
			return "no event is shown:\n" + since
		}
		return ""
	})
	f.kubectl("delete", pods)
	f.becomes("an object that was deleted", pods, ".spec.kubeletConfig.maxPods", "500")
	f.kubectl("label", pods, userPrefix+"managed-by-")
	f.becomes("the label", pods, `.metadata.labels.platform\.kubevirt\.io/managed-by`, "virt-platform-autopilot")
}

func (f *baselineFixture) patches(*testing.T) {
	f.annotate(psi, "patch", `[{"op":"add","path":"/spec/kernelArguments/-","value":"quiet"}]`)
	f.becomes("the patched arguments", psi, ".spec.kernelArguments", `["psi=1","quiet"]`)
	f.edit(psi, `{"spec":{"kernelArguments":["psi=0"]}}`)
	f.becomes("the patched arguments again", psi, ".spec.kernelArguments", `["psi=1","quiet"]`)
	// The HyperConverged's own patch says 8.
	f.eventually("the descheduler to follow the HyperConverged", func() string {
		return differs("8", f.kubectl("get", "kubedeschedulers", "cluster", "-n", "openshift-kube-descheduler-operator", "--ignore-not-found", "-o", "jsonpath={.spec.evictionLimits.total}"))
	})
	f.annotate(swap, "patch", `[{"op":"replace","path":"/kind","value":"Secret"}]`)
	f.eventually("the problem to be told", func() string {
		if got := f.value(swap, `.metadata.annotations.platform\.kubevirt\.io/problem`); !strings.Contains(got, "forbidden") {
			return "it says " + got
		}
		return ""
	})
	f.kubectl("annotate", swap, userPrefix+"patch-")
}

func (f *baselineFixture) ignores(t *testing.T) {
	f.becomes("the check to be adopted", health, `.metadata.labels.platform\.kubevirt\.io/managed-by`, "virt-platform-autopilot")
	if got := f.value(health, ".spec.minHealthy"); got != "80%" {
		t.Errorf("what is ignored was changed to %s", got)
	}
	f.edit(health, `{"spec":{"minHealthy":"70%","unhealthyConditions":null}}`)
	f.becomes("the rest", health, ".spec.unhealthyConditions[0].duration", "5m")
	if got := f.value(health, ".spec.minHealthy"); got != "70%" {
		t.Errorf("what is ignored was changed to %s", got)
	}
}

func (f *baselineFixture) holds(t *testing.T) {
	f.annotate(swap, "mode", "unmanaged")
	f.annotate(console, "reconcile-paused", "true")
	f.reports("swap-enable", "Unmanaged")
	f.reports("observability-operator", "Paused")
	f.edit(swap, `{"spec":{"config":{"ignition":{"version":"3.4.0"}}}}`)
	f.edit(console, `{"spec":{"monitoring":{"perses":{"enabled":false}}}}`)
	// What comes after them is done, so their events were heard.
	f.edit(pods, `{"spec":{"kubeletConfig":{"maxPods":100}}}`)
	f.becomes("500 pods again", pods, ".spec.kubeletConfig.maxPods", "500")
	if got := f.value(swap, ".spec.config.ignition.version") + " " + f.value(console, ".spec.monitoring.perses.enabled"); got != "3.4.0 false" {
		t.Errorf("they were written: %s", got)
	}
}

// reports waits until the function's own report says what became of an asset.
func (f *baselineFixture) reports(asset, outcome string) {
	f.t.Helper()
	f.eventually(asset+" to be "+outcome, func() string {
		record := f.kubectl("get", "configmaps", "baseline-applier", "-n", "slipway-system", "-o", `jsonpath={.data.`+asset+`}`)
		if !strings.Contains(record, `"outcome":"`+outcome+`"`) {
			return record
		}
		return ""
	})
}

func (f *baselineFixture) fights(*testing.T) {
	edits := 0
	f.eventually("the pause", func() string {
		if f.value(pods, `.metadata.annotations.platform\.kubevirt\.io/reconcile-paused`) == "true" {
			return ""
		}
		edits++
		f.edit(pods, fmt.Sprintf(`{"spec":{"kubeletConfig":{"maxPods":%d}}}`, 100+edits))
		return fmt.Sprintf("%d edits and no pause", edits)
	})
	f.eventually("the Event", func() string {
		notes := f.kubectl("get", "events.events.k8s.io", "-n", "openshift-cnv", "-o", `jsonpath={.items[?(@.reason=="ThrashingDetected")].note}`)
		if !strings.Contains(notes, "kubectl") || !strings.Contains(notes, paused) {
			return "they say " + notes
		}
		return ""
	})
	row := f.row("kubelet-perf-settings")
	if row.Outcome != "Paused" || !strings.Contains(row.Opponent, "kubectl") {
		f.t.Errorf("the command tells %+v", row)
	}
	f.kubectl("annotate", pods, paused+"-")
	f.becomes("500 pods again", pods, ".spec.kubeletConfig.maxPods", "500")
}

// row is what kubectl slipway baseline tells of an asset.
type row struct {
	Asset, Outcome, Message, Opponent string
	Patched                           int      `json:"patchOperations"`
	Ignored                           []string `json:"ignoredFields"`
}

func (f *baselineFixture) command(args ...string) string {
	f.t.Helper()
	args = append([]string{"baseline", "--kubeconfig", f.Cluster.Kubeconfig}, args...)
	out, err := exec.CommandContext(f.t.Context(), f.cli, args...).Output() //nolint:gosec // what was just built
	if err != nil {
		f.t.Fatalf("kubectl slipway %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func (f *baselineFixture) row(asset string) row {
	f.t.Helper()
	var rows []row
	if err := json.Unmarshal([]byte(f.command("-o", "json")), &rows); err != nil {
		f.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Asset == asset {
			return r
		}
	}
	f.t.Fatalf("no asset %s in %v", asset, rows)
	return row{}
}

func (f *baselineFixture) tells(t *testing.T) {
	table := map[string][]string{}
	for line := range strings.Lines(f.command()) {
		if fields := strings.Fields(line); len(fields) > 2 {
			table[fields[0]] = fields
		}
	}
	for asset, want := range map[string]string{
		"prometheus-alerts": "InSync", "psi-enable": "patch(1)", "hco-golden-config": "patch(1)", "node-health-check": "/spec/minHealthy",
		"swap-enable": "Unmanaged", "observability-operator": "Paused", "metallb-operator": "Excluded", "mtv-operator": "Inactive", "kubelet-perf-settings": "InSync",
	} {
		if line := strings.Join(table[asset], " "); !strings.Contains(line, want) {
			t.Errorf("%s is not told to be %s: %s", asset, want, line)
		}
	}
	if diff := f.command("diff", "observability-operator"); !strings.Contains(diff, "/spec/monitoring/perses/enabled") {
		t.Errorf("the difference of what is paused is not told: %s", diff)
	}
}
