// Package nodepool shows nodepool-provisioner at work on a real API server, with the
// real definitions of Cluster API, its providers, KubeVirt, CDI and Multus, under its
// own ServiceAccount with the rights that its declaration generates.
//
// Which versions of Cluster API a platform serves differs, so the tests run several
// times, each time in a process of its own: see versions_test.go.
package nodepool

import (
	"context"
	"fmt"
	"os"
	"testing"

	provisioner "github.com/slipway-dev/slipway/functions/nodepool-provisioner"
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
		Specs:   []reconcile.Spec{provisioner.DefaultSpec()},
		Files:   []string{"api/dockyards/crds"},
		Objects: definitions,
		Kinds: []kind.Resource{
			dockyards.NodePools, dockyards.Clusters, dockyards.Releases, inState(capis), dockyards.KubevirtMachineTemplates, configTemplates,
			dockyards.TalosControlPlanes, deployments, sets, machines, dockyards.KubevirtMachines, configs, dockyards.DataSources, dockyards.DataVolumes,
			dockyards.NetworkAttachmentDefinitions,
		},
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
