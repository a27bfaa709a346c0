// Package baseline shows what baseline-applier promises, on a real API server, under
// the function's own account: that every asset is accepted with strict validation,
// what users can and cannot do, wars, and what one event costs.
//
// Definitions come from the projects' Go modules where they have one; crds has reduced
// ones of HyperConverged, KubeDescheduler, NodeHealthCheck and ForkliftController.
package baseline
