package slipway

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// amounts are what a container asks for and may take.
type amounts struct {
	Requests, Limits struct{ CPU, Memory string }
}

// TestEveryFunctionCanBeDeployedByItself: what kn func reads agrees with the Service
// that is generated from the declaration.
func TestEveryFunctionCanBeDeployedByItself(t *testing.T) {
	folders := map[string]string{"func.yaml": "deploy/root/service.yaml"}
	for _, spec := range Specs() {
		folders["functions/"+spec.Name+"/func.yaml"] = "deploy/base/functions/" + spec.Name + ".yaml"
	}
	for source, manifest := range folders {
		var got struct {
			Name, Invoke string
			Deploy       struct {
				ServiceAccountName string
				Options            struct {
					Resources struct {
						Requests struct{ CPU, Memory string }
						Limits   struct {
							CPU, Memory string
							Concurrency int
						}
					}
				}
			}
		}
		raw, err := os.ReadFile(source)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := yaml.Unmarshal(raw, &got); err != nil {
			t.Error(err)
			continue
		}
		type summary struct {
			name, invoke, account string
			concurrency           int
			amounts               amounts
		}
		have := summary{name: got.Name, invoke: got.Invoke, account: got.Deploy.ServiceAccountName, concurrency: got.Deploy.Options.Resources.Limits.Concurrency}
		have.amounts.Requests = got.Deploy.Options.Resources.Requests
		have.amounts.Limits.CPU, have.amounts.Limits.Memory = got.Deploy.Options.Resources.Limits.CPU, got.Deploy.Options.Resources.Limits.Memory
		service := generated(t, manifest)
		pod := service.Spec.Template.Spec
		want := summary{
			name: service.Metadata.Name, invoke: "cloudevent", account: pod.ServiceAccountName,
			concurrency: pod.ContainerConcurrency, amounts: pod.Containers[0].Resources,
		}
		if diff := gocmp.Diff(want, have, gocmp.AllowUnexported(summary{})); diff != "" {
			t.Errorf("%s and the declaration differ (-%s +%s):\n%s", source, manifest, source, diff)
		}
	}
}

// service is what is looked at of a Knative Service.
type service struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template struct {
			Spec struct {
				ServiceAccountName   string
				ContainerConcurrency int
				Containers           []struct{ Resources amounts }
			}
		}
	}
}

// generated is the Service among generated manifests.
func generated(t *testing.T, path string) service {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var found service
		if err := yaml.Unmarshal([]byte(document), &found); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if found.Kind == "Service" && len(found.Spec.Template.Spec.Containers) == 1 {
			return found
		}
	}
	t.Fatalf("%s has no Service", path)
	return service{}
}
