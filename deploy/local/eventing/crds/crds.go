// Package crds holds the CustomResourceDefinitions that this stack needs and no
// module provides.
package crds

import _ "embed"

// Services is the definition of Services of serving.knative.dev, reduced to what
// is needed to run functions as processes.
//
//go:embed services.serving.knative.dev.yaml
var Services []byte
