package releaseimporter

import (
	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Name is the function's name.
const Name = "release-importer"

// concurrency is how many events one process takes at once.
const concurrency = 20

// DefaultSpec declares the function.
func DefaultSpec() reconcile.Spec {
	return reconcile.Spec{
		Name:        Name,
		Summary:     "imports the image of a Talos release and offers it to the machines of every tenant",
		TakesOver:   "dockyards-kubevirt",
		Reconciles:  dockyards.Releases,
		Watches:     watches(),
		Grants:      grants(),
		Env:         setting.Docs(dockyards.Variables(), used...),
		Settings:    dockyards.SettingsConfigMap,
		Concurrency: concurrency,
	}
}

// watches: CDI may be absent, so the adapter watches its kinds. Every machine has
// DataVolumes of its own, which tell of their progress by the second: only those
// that are labelled as images wake the function. Roles and RoleBindings change
// rarely, and one of another name costs one read.
func watches() []reconcile.Watch {
	return []reconcile.Watch{
		{Resource: dockyards.Releases},
		{Resource: dockyards.DataVolumes, Adapter: true, Selector: v1alpha3.LabelReleaseName, Keys: ofImage},
		{Resource: dockyards.DataSources, Adapter: true},
		{Resource: dockyards.Roles},
		{Resource: dockyards.RoleBindings},
		{Resource: dockyards.NodePools, Keys: ofNodePool},
	}
}

// imageSource is what clones are made from: a subresource that only access rights
// know of.
const imageSource = "source"

func grants() []reconcile.Grant {
	return []reconcile.Grant{
		{Resource: dockyards.Releases, Verbs: []string{"get", "list"}},
		{Resource: dockyards.NodePools, Verbs: []string{"list"}},
		{Resource: dockyards.DataVolumes, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{
			Resource: dockyards.DataVolumes, Subresource: imageSource, Verbs: []string{"create"},
			Implied: "the Role of a Release grants it, and nobody may grant what he does not have; test/dockyards/small takes it away",
		},
		// What was made for a Release that went meanwhile is deleted again. And an API
		// server may let only those add an owner who could delete the object.
		{Resource: dockyards.DataSources, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{Resource: dockyards.Roles, Verbs: []string{"get", "create", "patch", "delete"}},
		{Resource: dockyards.RoleBindings, Verbs: []string{"get", "create", "patch", "delete"}},
		{Resource: kind.Events, Verbs: []string{"create"}},
	}
}
