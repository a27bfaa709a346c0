// Package kinds names the resources that workload-renderer reads, besides those
// that templates give (package shared/render) and those of all Dockyards functions
// (package shared/dockyards): plain data for the decision, the wiring and the
// generated manifests alike.
package kinds

import "github.com/slipway-dev/slipway/shared/kind"

// WorkloadTemplates are what Workloads are rendered by.
var WorkloadTemplates = kind.Resource{
	Group: "dockyards.io", Versions: []string{"v1alpha3"}, Kind: "WorkloadTemplate", Plural: "workloadtemplates", Namespaced: true,
}
