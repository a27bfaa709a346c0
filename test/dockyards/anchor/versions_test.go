package anchor

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

// platform is what a platform serves of the kinds whose version differs. The first
// version of each is the one that is stored.
type platform struct{ capi, route []string }

// variable names the environment variable that chooses the platform.
const variable = "SLIPWAY_TEST_PLATFORM"

// platforms are those that the tests run on; the first without being asked.
var platforms = map[string]platform{
	"today":  {capi: []string{"v1beta2", "v1beta1"}, route: []string{"v1"}},
	"before": {capi: []string{"v1beta1"}, route: []string{"v1alpha2"}},
	"soon":   {capi: []string{"v1beta2"}, route: []string{"v1alpha3", "v1alpha2"}},
}

const usual = "today"

// Where the tests find the kinds whose version differs.
var (
	here   = chosen()
	routes = narrowed(dockyards.TLSRoutes, here.route[0])
	capis  = narrowed(dockyards.CAPIClusters, here.capi[0])
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
// only read as it was written.
func definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	all, err := crds.Load(ctx, crds.ClusterAPI, crds.CAPK, crds.GatewayAPI)
	if err != nil {
		return nil, err
	}
	served := map[string][]string{
		"clusters.cluster.x-k8s.io": here.capi, "tlsroutes.gateway.networking.k8s.io": here.route,
		"kubevirtclusters.infrastructure.cluster.x-k8s.io": nil, "gateways.gateway.networking.k8s.io": nil,
	}
	all = slices.DeleteFunc(all, func(d *unstructured.Unstructured) bool {
		_, wanted := served[d.GetName()]
		return !wanted
	})
	for _, definition := range all {
		if want := served[definition.GetName()]; want != nil {
			serve(definition, want)
		}
	}
	return all, nil
}

func serve(definition *unstructured.Unstructured, want []string) {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, item := range versions {
		version := item.(map[string]any)
		name := version["name"].(string)
		version["served"], version["storage"] = slices.Contains(want, name), name == want[0]
	}
	if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
		panic(err)
	}
}

// onceIsEnough are the tests that play one story at every single call: which call it is
// does not depend on versions.
const onceIsEnough = "TestAnyCallMayFail|TestACopyOnAStaleReadUndoesNothing|TestAPartThatCannotBeReadOrWrittenFailsAlone"

// others runs the same tests on the other platforms, one after the other, once those of
// this process are through. Selected tests run on one platform only.
func others(code int) int {
	if code != 0 || os.Getenv(variable) != "" || chosenTests() {
		return code
	}
	for _, name := range []string{"before", "soon"} {
		fmt.Println("=== PLATFORM", name)
		args := append(slices.Clone(os.Args[1:]), "-test.skip="+onceIsEnough)
		cmd := exec.CommandContext(context.Background(), os.Args[0], args...) //nolint:gosec // this very test binary
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
