package render

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/shared/render/worker"
)

func TestMain(m *testing.M) {
	worker.Hook()
	os.Exit(m.Run())
}

const samples = "../../../deploy/samples/templates/"

// run is the command with its two outputs and its error.
func run(t *testing.T, args ...string) (out, notes string, err error) {
	t.Helper()
	cmd := Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.Flags().StringP("output", "o", "", "")
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestEverySampleRenders(t *testing.T) {
	for name, objects := range map[string]int{
		"cert-manager": 2, "container-image": 2, "git-repository": 4, "helm-chart": 4, "ingress-nginx": 2, "podinfo": 2, "rbac": 2,
	} {
		file := samples + name + ".yaml"
		out, notes, err := run(t, file, "--workload", file, "--cluster", samples+"cluster.yaml")
		if err != nil || notes != "" {
			t.Errorf("%s: %v %s", name, err, notes)
		}
		if got := strings.Count(out, "apiVersion: ") - strings.Count(out, "  apiVersion: "); !strings.Contains(out, "demo") || got < objects {
			t.Errorf("%s gave\n%s", name, out)
		}
	}
}

func TestObjectsComeInTheOrderInWhichTheyAreApplied(t *testing.T) {
	file := samples + "helm-chart.yaml"
	out, _, err := run(t, file, "--workload", file, "--cluster", samples+"cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, kindName := range []string{"\nkind: Worktree", "\nkind: HelmRepository", "\nkind: Kustomization", "\nkind: HelmRelease"} {
		at := strings.Index(out, kindName)
		if at <= last {
			t.Errorf("%q is out of order in\n%s", kindName, out)
		}
		last = at
	}
}

func TestWithoutAClusterAStandInIsUsedAndANoteSaysSo(t *testing.T) {
	file := samples + "podinfo.yaml"
	out, notes, err := run(t, file, "--workload", file, "-o", "json")
	if err != nil || !strings.Contains(notes, `nothing but the name "demo" is known`) || !strings.Contains(out, `"name": "demo-kubeconfig"`) {
		t.Errorf("%v %s %s", err, notes, out)
	}
}

func TestInputReplacesThatOfTheWorkload(t *testing.T) {
	input := filepath.Join(t.TempDir(), "input.yaml")
	if err := os.WriteFile(input, []byte("values: {replicaCount: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := samples + "podinfo.yaml"
	out, _, err := run(t, file, "--workload", file, "--input", input)
	if err != nil || !strings.Contains(out, "replicaCount: 7") {
		t.Errorf("%v %s", err, out)
	}
}

func TestErrorsTellFileLineAndPath(t *testing.T) {
	template := filepath.Join(t.TempDir(), "broken.cue")
	if err := os.WriteFile(template, []byte("package template\n#cluster: _\n#workload: _\na: b: 1\na: b: 2\na: c: 1 & 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := run(t, template, "--workload", samples+"podinfo.yaml")
	if err == nil {
		t.Fatal("it rendered")
	}
	for _, want := range []string{"ValidateFailed", template + ":5:7: a.b: conflicting values 2 and 1", "a.c: conflicting values 3 and 1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

func TestWhatTheFunctionWouldRefuseIsRefused(t *testing.T) {
	template := filepath.Join(t.TempDir(), "foreign.cue")
	if err := os.WriteFile(template, []byte("package template\n#cluster: _\n#workload: _\na: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: {name: \"x\", namespace: \"kube-system\"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := run(t, template, "--workload", samples+"podinfo.yaml")
	if err == nil || !strings.Contains(err.Error(), `ObjectNotAllowed: output "a", ConfigMap kube-system/x: namespace "kube-system" is not the Workload's`) {
		t.Errorf("%v", err)
	}
}
