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
	"github.com/slipway-dev/slipway/cmd/kubectl-slipway/render"
)

// options are the flags that all commands share.
type options struct {
	kubeconfig, context, namespace string
	// system is the namespace that Slipway is installed in.
	system string
	output string
	out    io.Writer
}

func newCommand(out io.Writer) *cobra.Command {
	o := &options{out: out}
	root := &cobra.Command{
		Use:           "kubectl-slipway",
		Short:         "Look into and drive the functions of Slipway",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains([]string{"", "json", "yaml", "wide"}, o.output) {
				return fmt.Errorf("cannot print as %q: use -o json or -o yaml, or -o wide", o.output)
			}
			return nil
		},
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl slipway"},
	}
	root.SetOut(out)
	flags := root.PersistentFlags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of the kubeconfig file")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig to use")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the object; default is that of the context")
	flags.StringVar(&o.system, "system-namespace", "slipway-system", "namespace that Slipway is installed in")
	flags.StringVarP(&o.output, "output", "o", "", "output format: json, yaml or wide; default is for people")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml", "wide"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(resyncCommand(o), functionsCommand(o), checkCommand(o), render.Command(),
		recordCommand(o), eventsCommand(o), replayCommand(o), planCommand(o), explainCommand(o), consoleCommand(o), baselineCommand(o))
	return root
}

// config finds the cluster as kubectl does.
func (o *options) config() (*rest.Config, error) {
	config, err := o.loader().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cluster: %w", err)
	}
	config.QPS = -1
	return config, nil
}

func (o *options) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
}

// objectNamespace is the namespace that an object lies in if nothing else says so.
func (o *options) objectNamespace() string {
	if o.namespace != "" {
		return o.namespace
	}
	namespace, _, err := o.loader().Namespace()
	if err != nil || namespace == "" {
		return "default"
	}
	return namespace
}

// print writes a value as the output format asks; table writes it for people.
func (o *options) print(value any, table func(io.Writer)) error {
	switch o.output {
	case "", "wide":
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
