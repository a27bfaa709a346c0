// Package anchor shows cluster-anchor at work on a real API server, with the real
// definitions of Cluster API, its provider for KubeVirt and Gateway API, under its own
// ServiceAccount with the rights that its declaration generates.
//
// Which versions a platform serves differs, so the tests run several times, each time
// in a process of its own: see versions_test.go.
package anchor

import (
	"context"
	"fmt"
	"os"
	"testing"

	clusteranchor "github.com/slipway-dev/slipway/functions/cluster-anchor"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

// suit is the package's API server.
var suit *suite.Suite

func TestMain(m *testing.M) {
	definitions, err := definitions(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	suit = suite.New(suite.Options{
		Specs:   []reconcile.Spec{clusteranchor.DefaultSpec()},
		Files:   []string{"api/dockyards/crds"},
		Objects: definitions,
		Kinds:   []kind.Resource{dockyards.Clusters, dockyards.Workloads, routes, inState(capis), dockyards.KubevirtClusters},
		Others:  []kind.Resource{dockyards.Gateways},
	})
	code := suit.Main(m)
	os.Exit(max(code, others(code)))
}

// inState gives Cluster API's Clusters a name of their own among the objects of a
// world, which are told apart by kind and name.
func inState(res kind.Resource) kind.Resource {
	res.Kind = "CAPICluster"
	return res
}

func TestTheGeneratedRolesGrantWhatIsDeclaredAndNothingElse(t *testing.T) { suit.CheckManifest(t) }
