// Command chart renders a chart with Helm's own engine, as "helm template" does, for
// tests: definitions first, then the templates in the order of their names.
//
//	chart DIR [VALUES.yaml]
package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("cannot render: name the chart's folder, and a file of values if there is one")
	}
	chart, err := loader.Load(args[0])
	if err != nil {
		return fmt.Errorf("cannot load chart %q: %w", args[0], err)
	}
	values := map[string]any{}
	if len(args) > 1 {
		raw, err := os.ReadFile(args[1])
		if err != nil {
			return fmt.Errorf("cannot read values: %w", err)
		}
		if err := yaml.UnmarshalStrict(raw, &values); err != nil {
			return fmt.Errorf("cannot read values %q: %w", args[1], err)
		}
	}
	release := common.ReleaseOptions{Name: "slipway", Namespace: "slipway-system", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return fmt.Errorf("cannot use the values: %w", err)
	}
	rendered, err := engine.Render(chart, all)
	if err != nil {
		return fmt.Errorf("cannot render chart %q: %w", args[0], err)
	}
	for _, definition := range chart.CRDObjects() {
		fmt.Fprintf(out, "---\n%s\n", definition.File.Data)
	}
	names := make([]string, 0, len(rendered))
	for name := range rendered {
		if path.Ext(name) == ".yaml" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(out, "---\n# %s\n%s\n", name, rendered[name])
	}
	return nil
}
