package e2e

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

// TestMakeRunWithTemplates runs the command that the README names.
func TestMakeRunWithTemplates(t *testing.T) {
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "run", "SAMPLE=templates", "ONCE=1")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"workload.dockyards.io/demo-podinfo", "worktree.dockyards.io/demo-redis", "helmrelease.helm.toolkit.fluxcd.io/demo-podinfo",
		"kustomization.kustomize.toolkit.fluxcd.io/demo-redis", "gitrepository.source.toolkit.fluxcd.io/demo-redis",
		"workloadinventory.dockyards.io/demo-podinfo-lpfhh",
	} {
		found := false
		for line := range bytes.Lines(out) {
			fields := strings.Fields(string(line))
			found = found || len(fields) > 1 && fields[1] == want
		}
		if !found {
			t.Errorf("the table does not show %s:\n%s", want, out)
		}
	}
}
