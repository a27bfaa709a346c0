package slipway

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/reconcile"
)

func names(specs []reconcile.Spec) []string {
	list := make([]string, 0, len(specs))
	for _, spec := range specs {
		list = append(list, spec.Name)
	}
	return list
}

func TestEveryFunctionIsDeclaredAndHosted(t *testing.T) {
	commands, err := filepath.Glob("functions/*/cmd/main.go")
	if err != nil || len(commands) == 0 {
		t.Fatalf("no function is found: %v", err)
	}
	var folders []string
	for _, command := range commands {
		folders = append(folders, filepath.Base(filepath.Dir(filepath.Dir(command))))
	}
	slices.Sort(folders)
	if diff := gocmp.Diff(folders, names(Specs())); diff != "" {
		t.Errorf("the folders and Specs, which are sorted (-folders +specs):\n%s", diff)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	hosted := names(New().Specs())
	slices.Sort(hosted)
	if diff := gocmp.Diff(folders, hosted); diff != "" {
		t.Errorf("the folders and what New hosts (-folders +hosted):\n%s", diff)
	}
}

// TestEveryFunctionCanBeDeployedByItself: what kn func reads agrees with what
// the function declares.
func TestEveryFunctionCanBeDeployedByItself(t *testing.T) {
	for _, spec := range Specs() {
		raw, err := os.ReadFile(filepath.Join("functions", spec.Name, "func.yaml"))
		if err != nil {
			t.Error(err)
			continue
		}
		var got struct {
			Name, Invoke string
			Deploy       struct {
				ServiceAccountName string
				Options            struct {
					Resources struct {
						Limits struct {
							Concurrency int
							Memory      string
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal(raw, &got); err != nil {
			t.Error(err)
			continue
		}
		if got.Name != spec.Name || got.Invoke != "cloudevent" || got.Deploy.ServiceAccountName != spec.Name ||
			got.Deploy.Options.Resources.Limits.Concurrency != spec.Concurrency ||
			got.Deploy.Options.Resources.Limits.Memory != spec.MemoryLimit() {
			t.Errorf("functions/%s/func.yaml and the declaration differ: %+v", spec.Name, got)
		}
	}
}
