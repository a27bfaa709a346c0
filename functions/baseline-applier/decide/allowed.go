package decide

import (
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

// allowed are the assets that the HyperConverged's user lets the function look after:
// all of them, none, or those that a list names.
type allowed struct {
	// idle: nothing at all is done.
	idle bool
	// names are of assets or groups; nil for all assets.
	names []string
}

// allowedBy reads the annotation: absent or "true" is all, empty or "false" is none, else
// it is a list. unknown are names that no asset or group has.
func allowedBy(annotations map[string]string, c catalog.Catalog) (a allowed, unknown []string) {
	text, present := annotations[AnnotationAutopilot]
	text = strings.TrimSpace(text)
	if !present || text == "true" {
		return allowed{}, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" && text != "false" {
			a.names = append(a.names, name)
		}
	}
	for _, name := range a.names {
		if !slices.ContainsFunc(c.Assets, func(asset catalog.Asset) bool { return asset.Name == name || asset.Group == name }) {
			unknown = append(unknown, name)
		}
	}
	a.idle = len(a.names) == 0
	return a, unknown
}

func (a allowed) allows(asset catalog.Asset) bool {
	return a.names == nil || slices.Contains(a.names, asset.Name) || asset.Group != "" && slices.Contains(a.names, asset.Group)
}
