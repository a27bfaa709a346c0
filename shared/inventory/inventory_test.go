package inventory

import (
	"strings"
	"testing"
)

func TestNamesOfInventories(t *testing.T) {
	if got := Kustomization.Name("web"); got != "web-4l8sj" {
		t.Error(got)
	}
	if got := HelmRelease.Name("web"); got != "web-lpfhh" {
		t.Error(got)
	}
	long := strings.Repeat("a", 250)
	first, second := Kustomization.Name(long+"x"), Kustomization.Name(long+"y")
	if len(first) != 253 || !strings.HasSuffix(first, "-4l8sj") || first == second {
		t.Errorf("%d bytes: %s, %s", len(first), first, second)
	}
}
