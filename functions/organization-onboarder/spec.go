package organizationonboarder

import (
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Name is the function's name.
const Name = "organization-onboarder"

// concurrency is how many events one process takes at once.
const concurrency = 20

// DefaultSpec declares the function.
func DefaultSpec() reconcile.Spec {
	return reconcile.Spec{
		Name:       Name,
		Summary:    "says of an Organization that it is ready",
		TakesOver:  "dockyards-kubevirt",
		Reconciles: dockyards.Organizations,
		Watches:    []reconcile.Watch{{Resource: dockyards.Organizations}},
		Grants: []reconcile.Grant{
			{Resource: dockyards.Organizations, Verbs: []string{"get", "list"}},
			{Resource: dockyards.Organizations, Subresource: "status", Verbs: []string{"patch"}},
		},
		Concurrency: concurrency,
	}
}
