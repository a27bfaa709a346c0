package machinevm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// domain are the lines of the metrics that the replaced operator had, without the
// buckets, and without values where those are times.
func domain(page string) []string {
	var lines []string
	for _, line := range strings.Split(page, "\n") {
		if !strings.HasPrefix(line, "kubevirt_operator_") || strings.Contains(line, "_bucket{") {
			continue
		}
		if strings.Contains(line, "_sum{") {
			line, _, _ = strings.Cut(line, " ")
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// TestMetricsHaveTheNamesLabelsAndValuesOfTheOperatorThatIsReplaced: OB-1, from the
// first event to a resync by a copy that knows nothing.
func TestMetricsHaveTheNamesLabelsAndValuesOfTheOperatorThatIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.machine("runs", `{template: small, disks: [{name: data, size: 1Gi, storageClass: fast-ssd}]}`)
	w.machine("waits", `{template: small}`)
	w.machine("sized", `{resources: {cpu: {cores: 2}, memory: {size: 1Gi}}}`)
	w.machine("bad", `{template: unheard-of}`)
	w.machine("lost", `{template: medium, networks: [{name: eth0, networkName: nowhere}]}`)
	w.machine("theirs", `{provider: elsewhere, template: small}`)
	names := []string{"runs", "waits", "sized", "bad", "lost", "theirs"}
	f := w.copyOf()
	for _, name := range names {
		f.Insist(w.machineEvent(name))
	}
	w.Patch(kinds.VirtualMachines, "vm-runs", `{status: {printableStatus: Running, ready: true}}`, "status")
	w.Patch(kinds.VirtualMachines, "vm-waits", `{status: {printableStatus: WaitingForVolumeBinding}}`, "status")
	w.Create(`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: vm-runs}, spec: {domain: {devices: {}}}, status: {phase: Running}}`)
	for _, claim := range []string{"runs-root", "runs-data"} {
		w.Patch(kind.PersistentVolumeClaims, claim, `{status: {phase: Bound}}`, "status")
	}
	f.Insist(w.machineEvent("runs"))
	f.Insist(w.machineEvent("runs"))
	f.Resync()
	reconciles := len(names) + 2 + len(names)
	gauges := []string{
		`kubevirt_operator_machines_total{phase="Creating",template="none"} 1`,
		`kubevirt_operator_machines_total{phase="Creating",template="small"} 1`,
		`kubevirt_operator_machines_total{phase="Failed",template="medium"} 1`,
		`kubevirt_operator_machines_total{phase="Failed",template="none"} 1`,
		`kubevirt_operator_machines_total{phase="Running",template="small"} 1`,
	}
	vms := []string{
		`kubevirt_operator_virtual_machines_total{status="Running"} 1`,
		`kubevirt_operator_virtual_machines_total{status="Unknown"} 1`,
		`kubevirt_operator_virtual_machines_total{status="WaitingForVolumeBinding"} 1`,
	}
	errors := []string{
		`kubevirt_operator_network_configuration_errors_total{network_name="nowhere"} 2`,
		fmt.Sprintf(`kubevirt_operator_reconciliation_duration_seconds_count{controller="Machine"} %d`, reconciles),
		`kubevirt_operator_reconciliation_duration_seconds_sum{controller="Machine"}`,
		`kubevirt_operator_reconciliation_errors_total{controller="Machine",error_type="NetworkConfigurationNotFound"} 2`,
		`kubevirt_operator_reconciliation_errors_total{controller="Machine",error_type="TemplateNotFound"} 2`,
	}
	storage := []string{
		`kubevirt_operator_storage_provisioning_duration_seconds_count{storage_class="fast-ssd"} 1`,
		`kubevirt_operator_storage_provisioning_duration_seconds_count{storage_class="standard"} 1`,
		`kubevirt_operator_storage_provisioning_duration_seconds_sum{storage_class="fast-ssd"}`,
		`kubevirt_operator_storage_provisioning_duration_seconds_sum{storage_class="standard"}`,
	}
	same(t, "after events and a resync", slices.Concat(gauges, errors, storage, vms), domain(f.Metrics()))

	// A function at zero has no memory: the cluster has.
	fresh := w.copyOf()
	fresh.Resync()
	for i, line := range errors {
		errors[i] = strings.NewReplacer(fmt.Sprintf("} %d", reconciles), fmt.Sprintf("} %d", len(names)), "} 2", "} 1").Replace(line)
	}
	same(t, "after a resync by a new copy", slices.Concat(gauges, errors, vms), domain(fresh.Metrics()))

	w.Remove(kinds.Machines, "bad")
	fresh.Insist(w.machineEvent("bad"))
	fresh.Resync()
	for _, line := range domain(fresh.Metrics()) {
		if strings.HasPrefix(line, `kubevirt_operator_machines_total{phase="Failed",template="none"}`) {
			t.Errorf("what is gone still counts: %s", line)
		}
	}
}

func same(t *testing.T, when string, want, got []string) {
	t.Helper()
	slices.Sort(want)
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s there is no line %s", when, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s there is an unexpected line %s", when, line)
		}
	}
}

// TestMetricsAndProbesAreServedWhereTheEnvironmentSays: OB-3.
func TestMetricsAndProbesAreServedWhereTheEnvironmentSays(t *testing.T) {
	for _, name := range []string{"HEALTH_LISTEN_ADDRESS", "HEALTH_PROBE_BIND_ADDRESS", "METRICS_BIND_ADDRESS"} {
		t.Setenv(name, "127.0.0.1:0")
	}
	t.Setenv("METRICS_BIND_ADDRESS", "127.0.0.1:")
	w := newWorld(t)
	f := w.copyOf()
	if err := f.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	f.Resync()
	found := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(f.Log.String(), -1)
	if len(found) < 2 {
		t.Fatalf("it listens on %v; the log:\n%s", found, f.Log)
	}
	for _, address := range found[:2] {
		for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ok", "/metrics": "slipway_"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK || (path != "/metrics" && !strings.Contains(string(body), want)) {
				t.Errorf("%s%s answered %s, %v:\n%s", address, path, resp.Status, err, body)
			}
		}
	}
}

// line is a line of the log.
type line map[string]any

func lines(t *testing.T, f *suite.Copy) []line {
	t.Helper()
	var all []line
	for _, text := range strings.Split(strings.TrimSpace(f.Log.String()), "\n") {
		l := line{}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v in the line %s", err, text)
		}
		all = append(all, l)
	}
	return all
}

// TestTheLogHasTheFieldsOfTheOperatorThatIsReplaced: OB-4.
func TestTheLogHasTheFieldsOfTheOperatorThatIsReplaced(t *testing.T) {
	w := newSubject(t)
	w.machine("bad", `{template: unheard-of}`)
	f := w.copyOf()
	f.Insist(w.machineEvent(subject))
	f.Insist(w.machineEvent("bad"))
	ends := map[string]line{}
	for _, l := range lines(t, f) {
		at, _ := l["timestamp"].(string)
		if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
			t.Errorf("timestamp %q of %v: %v", at, l, err)
		}
		for _, field := range []string{"level", "message", "controller", "event_id"} {
			if text, _ := l[field].(string); text == "" {
				t.Errorf("there is no %s in %v", field, l)
			}
		}
		if l["controller"] != "Machine" {
			t.Errorf("the controller is %v", l["controller"])
		}
		if l["message"] == "reconciled" {
			ends[fmt.Sprint(l["machine"])] = l
		}
	}
	wants(t, ends[subject], map[string]any{
		"level": "info", "namespace": w.NS, "machine": subject, "phase": "Creating", "vm": "vm-" + subject, "reason": "Creating", "error_type": nil,
	})
	wants(t, ends["bad"], map[string]any{
		"level": "info", "namespace": w.NS, "machine": "bad", "phase": "Failed", "error_type": "TemplateNotFound", "reason": "TemplateNotFound",
	})
	// Nothing happened: nothing is said.
	before := len(lines(t, f))
	f.Insist(w.machineEvent(subject))
	f.Insist(w.machineEvent("bad"))
	f.Resync()
	for _, l := range lines(t, f)[before:] {
		if l["level"] != "debug" {
			t.Errorf("nothing has changed, and the log says %v", l)
		}
	}
}

func wants(t *testing.T, l line, want map[string]any) {
	t.Helper()
	for field, value := range want {
		if l[field] != value {
			t.Errorf("%s is %v, want %v, in %v", field, l[field], value, l)
		}
	}
}
