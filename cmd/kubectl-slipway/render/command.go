package render

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/shared/render/worker"
)

// options are the command's flags.
type options struct {
	cluster, workload, input string
	localApply               bool
	out, notes               io.Writer
}

// Command makes the command. The flag "output" of a parent chooses json or yaml. The
// process has to begin with worker.Hook.
func Command() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "render TEMPLATE --workload FILE [--cluster FILE] [--input FILE]",
		Short: "Render a workload template without a cluster",
		Long: `Render a workload template without a cluster.

TEMPLATE is a CUE file or the manifest of a WorkloadTemplate. What the template gives
is checked as workload-renderer checks it, but for who owns the objects, and printed
in the order in which it is applied. A file that holds several manifests may be given
more than once: the one of the right kind is taken.`,
		Example: `  kubectl slipway render template.cue --cluster cluster.yaml --workload workload.yaml
  kubectl slipway render podinfo.yaml --workload podinfo.yaml --input values.yaml -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.out, o.notes = cmd.OutOrStdout(), cmd.ErrOrStderr()
			output := ""
			if flag := cmd.Flag("output"); flag != nil {
				output = flag.Value.String()
			}
			return o.run(cmd.Context(), args[0], output)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.workload, "workload", "", "manifest of the Workload")
	flags.StringVar(&o.cluster, "cluster", "", "manifest of the Cluster; without it, nothing but its name is known of the Cluster")
	flags.StringVar(&o.input, "input", "", "YAML or JSON that replaces the Workload's spec.input")
	flags.BoolVar(&o.localApply, "allow-local-apply", false, "allow Kustomizations and HelmReleases for the management cluster itself")
	_ = cmd.MarkFlagRequired("workload")
	return cmd
}

func (o *options) run(ctx context.Context, template, output string) error {
	source, where, err := readTemplate(template)
	if err != nil {
		return err
	}
	workload, err := o.readWorkload()
	if err != nil {
		return err
	}
	var cluster *unstructured.Unstructured
	if o.cluster != "" {
		if cluster, err = readObject(o.cluster, v1alpha3.KindCluster); err != nil {
			return err
		}
	}
	trial := render.NewTrial(source, workload, cluster, dockyards.ClusterOf(workload), render.DefaultLimits())
	if trial.StandIn {
		_, _ = fmt.Fprintf(o.notes, "note: no --cluster is given, so nothing but the name %q is known of the Cluster\n", trial.Scope.Cluster)
	}
	pool := worker.New(1)
	defer pool.Close()
	result, err := pool.Render(ctx, trial.Request)
	if err != nil {
		return err
	}
	failure := result.Failure
	var objects []render.Object
	if failure == nil {
		rules := render.DefaultRules()
		rules.LocalApply = o.localApply
		objects, failure = rules.Check(trial.Scope, result.Outputs)
	}
	if failure != nil {
		return explain(where, failure)
	}
	return write(o.out, objects, output)
}

// explain is a failure as people read it, one error to a line, each with its place.
func explain(where string, failure *render.Failure) error {
	if len(failure.Causes) == 0 {
		return fmt.Errorf("cannot render %s: %s: %s", where, failure.Reason, failure.Message)
	}
	var text bytes.Buffer
	for _, cause := range failure.Causes {
		place := where
		if cause.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", where, cause.Line, cause.Column)
		}
		_, _ = fmt.Fprintf(&text, "\n  %s: %s", place, cause.Text)
	}
	return fmt.Errorf("cannot render %s: %s%s", where, failure.Reason, text.String())
}

// write prints objects in the order in which they are applied. The owner reference
// has no UID here, and is left out.
func write(out io.Writer, objects []render.Object, output string) error {
	list := make([]any, 0, len(objects))
	for _, object := range objects {
		unstructured.RemoveNestedField(object.Intent.Object, "metadata", "ownerReferences")
		unstructured.RemoveNestedField(object.Intent.Object, "metadata", "annotations", render.AnnotationOwnerUID)
		list = append(list, object.Intent.Object)
	}
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": list})
	}
	for i, object := range list {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("cannot print an object: %w", err)
		}
		if i > 0 {
			_, _ = fmt.Fprintln(out, "---")
		}
		if _, err := out.Write(text); err != nil {
			return fmt.Errorf("cannot print an object: %w", err)
		}
	}
	return nil
}
