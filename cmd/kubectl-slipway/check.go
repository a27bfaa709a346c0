package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	clustercheck "github.com/slipway-dev/slipway/functions/cluster-check"
	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/vault"
)

// management is what the table calls the management cluster: no KubevirtConfig
// can have that name.
const management = "(management)"

// completionTimeout bounds a look at the cluster while somebody types.
const completionTimeout = 2 * time.Second

// report is what all checks came to.
type report struct {
	Passed   bool             `json:"passed"`
	Failed   int              `json:"failed"`
	Warnings int              `json:"warnings"`
	Checks   []decide.Finding `json:"checks"`
}

// checkOptions are the flags of the command.
type checkOptions struct {
	*options
	timeout          time.Duration
	configsNamespace string
	single           string
}

func checkCommand(o *options) *cobra.Command {
	c := &checkOptions{options: o}
	cmd := &cobra.Command{
		Use:   "check [KUBEVIRTCONFIG...]",
		Short: "Check whether Machines can run on the clusters that the KubevirtConfigs name",
		Long: `Checks with your own rights what the function cluster-check checks:

  resources   the management cluster serves Machines, NetworkConfigurations and KubevirtConfigs
  configs     there is a KubevirtConfig
  schemas     the management cluster's definitions have every property that is needed (a warning)
  connection  the cluster of each KubevirtConfig answers to its kubeconfig
  kubevirt    KubeVirt is installed there, in any namespace, and available
  versions    it stores virtual machines in the same versions as the first cluster by name (a warning)

Nothing is written anywhere. The exit code is 1 if a check failed; a warning, and what was
skipped because of something else that failed, do not count. Reading the kubeconfigs takes the
right to get their Secrets; what they hold is not shown.`,
		Example: `  # all clusters
  kubectl slipway check
  # one of them, for a script
  kubectl slipway check east -o json`,
		ValidArgsFunction: c.complete,
		RunE:              func(cmd *cobra.Command, names []string) error { return c.run(cmd.Context(), cmd.ErrOrStderr(), names) },
	}
	flags := cmd.Flags()
	flags.DurationVar(&c.timeout, "timeout", cluster.Timeout, "how long one cluster may take to answer")
	flags.StringVar(&c.configsNamespace, "configs-namespace", fromEnv("KUBEVIRT_CONFIGS_NAMESPACE", decide.DefaultSettings().ConfigsNamespace),
		"namespace of KubevirtConfigs, where they have one, and of their Secrets (env KUBEVIRT_CONFIGS_NAMESPACE)")
	flags.StringVar(&c.single, "single-cluster", fromEnv("SINGLE_CLUSTER", string(decide.SingleAuto)),
		"whether Machines run on the management cluster itself: auto, true or false (env SINGLE_CLUSTER)")
	_ = cmd.RegisterFlagCompletionFunc("single-cluster", cobra.FixedCompletions(singles(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("timeout", cobra.NoFileCompletions)
	return cmd
}

func fromEnv(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func singles() []string {
	return []string{string(decide.SingleAuto), string(decide.SingleTrue), string(decide.SingleFalse)}
}

func (c *checkOptions) run(ctx context.Context, stderr io.Writer, names []string) error {
	if c.timeout <= 0 {
		return fmt.Errorf("cannot use --timeout %s: give a duration above 0, like 10s", c.timeout)
	}
	if !slices.Contains(singles(), c.single) {
		return fmt.Errorf("cannot use --single-cluster %q: use %s", c.single, strings.Join(singles(), ", "))
	}
	clusters, err := c.clusters(c.timeout)
	if err != nil {
		return err
	}
	waiting := newProgress(stderr)
	survey, err := clustercheck.Survey(ctx, clusters, decide.Settings{ConfigsNamespace: c.configsNamespace}, clustercheck.SurveyOptions{
		Single: decide.SingleCluster(c.single), Only: names, Timeout: c.timeout, Progress: waiting.update,
	})
	waiting.end()
	if err != nil {
		return fmt.Errorf("cannot check: %w", err)
	}
	result := judge(survey.Findings())
	if err := c.print(result, result.table); err != nil {
		return err
	}
	if !result.Passed {
		return fmt.Errorf("%d of %d checks failed", result.Failed, len(result.Checks))
	}
	return nil
}

// clusters is the management cluster, as kubectl finds it; the targets are
// connected to by what it holds.
func (c *checkOptions) clusters(timeout time.Duration) (*cluster.Set, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	config.Timeout = timeout
	client, err := cluster.New(cluster.Management, "kubectl-slipway", config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	set := cluster.NewSet(client)
	set.RemoteTimeout = timeout
	return set, nil
}

func judge(findings []decide.Finding) report {
	r := report{Checks: findings}
	for _, f := range findings {
		switch f.Result {
		case decide.Failed:
			r.Failed++
		case decide.Warning:
			r.Warnings++
		case decide.OK, decide.Skipped:
		}
	}
	r.Passed = r.Failed == 0
	return r
}

func (r report) table(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "CHECK\tCLUSTER\tRESULT\tDETAIL")
	for _, f := range r.Checks {
		name := f.Cluster
		if name == decide.Management {
			name = management
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Check, name, f.Result, strings.Join(strings.Fields(f.Detail), " "))
	}
	_ = table.Flush() // an error of the output is that of its next user
}

// complete offers the KubevirtConfigs that are not named yet.
func (c *checkOptions) complete(cmd *cobra.Command, names []string, _ string) ([]string, cobra.ShellCompDirective) {
	clusters, err := c.clusters(completionTimeout)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	configs, err := read.New(clusters, vault.New()).List(ctx, decide.Management, kinds.KubevirtConfigs, "", "")
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offered []string
	for _, config := range decide.Counted(configs, decide.Settings{ConfigsNamespace: c.configsNamespace}) {
		if !slices.Contains(names, config.GetName()) {
			offered = append(offered, config.GetName())
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
