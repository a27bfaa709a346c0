package nodepool

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

// platform is what a platform serves of the kinds whose version differs. The first
// version of each is the one that is stored.
type platform struct{ capi, bootstrap []string }

// variable names the environment variable that chooses the platform.
const variable = "SLIPWAY_TEST_PLATFORM"

// platforms are those that the tests run on; the first without being asked.
var platforms = map[string]platform{
	"today":  {capi: []string{"v1beta2", "v1beta1"}, bootstrap: []string{"v1alpha3"}},
	"before": {capi: []string{"v1beta1"}, bootstrap: []string{"v1alpha3"}},
	"soon":   {capi: []string{"v1beta2"}, bootstrap: []string{"v1beta1"}},
}

const usual = "today"

// Where the tests find the kinds whose version differs.
var (
	here            = chosen()
	capis           = narrowed(dockyards.CAPIClusters, here.capi[0])
	deployments     = narrowed(dockyards.MachineDeployments, here.capi[0])
	sets            = narrowed(dockyards.MachineSets, here.capi[0])
	configTemplates = narrowed(dockyards.TalosConfigTemplates, here.bootstrap[0])
	configs         = narrowed(dockyards.TalosConfigs, here.bootstrap[0])
	machines        = kind.Resource{Group: dockyards.CAPIClusters.Group, Versions: here.capi[:1], Kind: "Machine", Plural: "machines", Namespaced: true}
)

func chosen() platform {
	if p, ok := platforms[os.Getenv(variable)]; ok {
		return p
	}
	return platforms[usual]
}

func narrowed(res kind.Resource, version string) kind.Resource {
	res.Versions = []string{version}
	return res
}

// definitions are the real ones. Which versions are served and stored is set here:
// schemas stay as they are, and no conversion webhook is needed, since a version is
// only read as it was written. The Talos provider's next version has the same fields.
func definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	all, err := crds.Load(ctx, crds.ClusterAPI, crds.CAPK, crds.TalosBootstrap, crds.TalosControlPlane, crds.KubeVirt, crds.CDI, crds.Multus)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(d *unstructured.Unstructured) bool { return !slices.Contains(wanted, d.GetName()) })
	for _, definition := range all {
		switch name := definition.GetName(); {
		case strings.HasSuffix(name, ".bootstrap.cluster.x-k8s.io"):
			rename(definition, "v1alpha3", here.bootstrap[0])
			serve(definition, here.bootstrap)
		case groupOf(definition) == dockyards.CAPIClusters.Group:
			serve(definition, here.capi)
		}
	}
	return all, nil
}

// wanted are the definitions of kinds that the tests use.
var wanted = []string{
	"clusters.cluster.x-k8s.io", "machinedeployments.cluster.x-k8s.io", "machinesets.cluster.x-k8s.io",
	"machines.cluster.x-k8s.io", "kubevirtclusters.infrastructure.cluster.x-k8s.io",
	"kubevirtmachinetemplates.infrastructure.cluster.x-k8s.io", "kubevirtmachines.infrastructure.cluster.x-k8s.io",
	"talosconfigtemplates.bootstrap.cluster.x-k8s.io", "talosconfigs.bootstrap.cluster.x-k8s.io",
	"taloscontrolplanes.controlplane.cluster.x-k8s.io", "datavolumes.cdi.kubevirt.io", "datasources.cdi.kubevirt.io",
	"network-attachment-definitions.k8s.cni.cncf.io",
}

func groupOf(definition *unstructured.Unstructured) string {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	return group
}

func versionsOf(definition *unstructured.Unstructured, change func(version map[string]any)) {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, item := range versions {
		change(item.(map[string]any))
	}
	if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
		panic(err)
	}
}

func rename(definition *unstructured.Unstructured, from, to string) {
	versionsOf(definition, func(version map[string]any) {
		if version["name"] == from {
			version["name"] = to
		}
	})
}

func serve(definition *unstructured.Unstructured, want []string) {
	versionsOf(definition, func(version map[string]any) {
		name := version["name"].(string)
		version["served"], version["storage"] = slices.Contains(want, name), name == want[0]
	})
}

// onUsual leaves a long test to one platform: what it shows has nothing to do with
// versions.
func onUsual(t *testing.T) {
	t.Helper()
	if here.capi[0] != platforms[usual].capi[0] || here.bootstrap[0] != platforms[usual].bootstrap[0] {
		t.Skip("shown on another platform")
	}
}

// others runs the same tests on the other platforms, one after the other, once those of
// this process are through. Selected tests run on one platform only.
func others(code int) int {
	if code != 0 || os.Getenv(variable) != "" || chosenTests() {
		return code
	}
	for _, name := range []string{"before", "soon"} {
		fmt.Println("=== PLATFORM", name)
		cmd := exec.CommandContext(context.Background(), os.Args[0], os.Args[1:]...) //nolint:gosec // this very test binary
		cmd.Env = append(os.Environ(), variable+"="+name)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "--- FAIL: on platform %s: %v\n", name, err)
			return 1
		}
	}
	return 0
}

func chosenTests() bool {
	return slices.ContainsFunc([]string{"test.run", "test.skip", "test.list"}, func(name string) bool {
		f := flag.Lookup(name)
		return f != nil && f.Value.String() != ""
	})
}
