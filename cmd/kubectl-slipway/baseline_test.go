package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// platform is a HyperConverged with a user's wishes, as a file.
func platform(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "platform.yaml")
	text := `apiVersion: hco.kubevirt.io/v1beta1
kind: HyperConverged
metadata:
  name: kubevirt-hyperconverged
  namespace: cnv
  annotations:
    platform.kubevirt.io/disabled-resources: "[{kind: MetalLB, name: metallb}]"
---
apiVersion: remediation.medik8s.io/v1alpha1
kind: NodeHealthCheck
metadata:
  name: virt-node-health-check
  annotations:
    platform.kubevirt.io/patch: '[{"op":"replace","path":"/kind","value":"Secret"}]'
spec: {minHealthy: 10%}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBaselineTellsWhatIsAndWhy(t *testing.T) {
	table, err := run(t, "baseline", "-f", platform(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"metallb-operator", "Excluded", "InvalidPatch", "forbidden", "it wants: annotation platform.kubevirt.io/enable-aaq", "applying it restarts nodes"} {
		if !strings.Contains(table, part) {
			t.Errorf("the table lacks %q:\n%s", part, table)
		}
	}
	text, err := run(t, "baseline", "-f", platform(t), "-o", "json")
	var rows []baselineRow
	if err != nil || json.Unmarshal([]byte(text), &rows) != nil || len(rows) != 16 {
		t.Errorf("%v, %d rows: %s", err, len(rows), text)
	}
}

func TestBaselineRendersWhatIsApplied(t *testing.T) {
	text, err := run(t, "baseline", "render", "psi-enable", "prometheus-alerts", "-f", platform(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"psi=1", "namespace: cnv", "platform.kubevirt.io/managed-by: virt-platform-autopilot", "{{ $labels.name }}"} {
		if !strings.Contains(text, part) {
			t.Errorf("what is rendered lacks %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "KubeletConfig") {
		t.Error("an asset that was not asked for is rendered")
	}
	if _, err := run(t, "baseline", "render", "psi", "-f", platform(t)); err == nil || !strings.Contains(err.Error(), `asset "psi": there are`) {
		t.Errorf("a typo: %v", err)
	}
}

func TestBaselineTellsDifferences(t *testing.T) {
	text, err := run(t, "baseline", "diff", "node-health-check", "-f", platform(t))
	if err != nil || !strings.Contains(text, `/spec/minHealthy: "10%" instead of "51%"`) {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := run(t, "baseline", "diff", "-f", "nowhere.yaml"); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("a file that is not there: %v", err)
	}
}
