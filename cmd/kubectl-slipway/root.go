package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway"
)

// options are the flags that all commands share.
type options struct {
	kubeconfig, context, namespace string
	output                         string
	out                            io.Writer
}

func newCommand(out io.Writer) *cobra.Command {
	o := &options{out: out}
	root := &cobra.Command{
		Use:           "kubectl-slipway",
		Short:         "Look into and drive the functions of Slipway",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains([]string{"", "json", "yaml"}, o.output) {
				return fmt.Errorf("cannot print as %q: use -o json or -o yaml", o.output)
			}
			return nil
		},
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl slipway"},
	}
	root.SetOut(out)
	flags := root.PersistentFlags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of the kubeconfig file")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig to use")
	flags.StringVarP(&o.namespace, "namespace", "n", "slipway-system", "namespace that Slipway is installed in")
	flags.StringVarP(&o.output, "output", "o", "", "output format: json or yaml; default is a table")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(resyncCommand(o), functionsCommand(o), checkCommand(o), baselineCommand(o))
	return root
}

// config finds the cluster as kubectl does.
func (o *options) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cluster: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// print writes a value as the output format asks; table writes it for people.
func (o *options) print(value any, table func(io.Writer)) error {
	switch o.output {
	case "":
		table(o.out)
		return nil
	case "json":
		encoder := json.NewEncoder(o.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}
	_, err = o.out.Write(text)
	return err
}

// functionNames are the names of all functions, sorted.
func functionNames() []string {
	var names []string
	for _, spec := range slipway.Specs() {
		names = append(names, spec.Name)
	}
	slices.Sort(names)
	return names
}

func checkFunction(name string) error {
	if !slices.Contains(functionNames(), name) {
		return fmt.Errorf("cannot find function %q: there are %s", name, strings.Join(functionNames(), ", "))
	}
	return nil
}
