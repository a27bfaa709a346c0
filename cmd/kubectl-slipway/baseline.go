package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	baselineapplier "github.com/slipway-dev/slipway/functions/baseline-applier"
	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/kind"
)

// baselineOptions are the flags of the command.
type baselineOptions struct {
	*options
	hcoNamespace string
	files        []string
}

// baselineRow is what is told of one asset.
type baselineRow struct {
	Asset    string              `json:"asset"`
	Object   string              `json:"object"`
	Tier     string              `json:"tier"`
	Outcome  decide.Outcome      `json:"outcome"`
	Message  string              `json:"message,omitempty"`
	Patched  int                 `json:"patchOperations,omitempty"`
	Ignored  []string            `json:"ignoredFields,omitempty"`
	Problems []string            `json:"problems,omitempty"`
	LeftOut  []string            `json:"fieldsLeftOut,omitempty"`
	Paused   *time.Time          `json:"pausedSince,omitempty"`
	Opponent string              `json:"opponent,omitempty"`
	Restarts bool                `json:"restartsNodes,omitempty"`
	Hardware bool                `json:"hardwareSpecific,omitempty"`
	Exists   bool                `json:"exists"`
	Differs  []decide.Difference `json:"differs,omitempty"`
}

func baselineCommand(o *options) *cobra.Command {
	b := &baselineOptions{options: o}
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Look at the platform's baseline: what is managed, patched, ignored, paused, and why",
		Long: `Runs with your own rights the code by which baseline-applier applies, and writes nothing
(dry-runs need the right to patch). With --file, objects from files stand for the cluster:
a HyperConverged, Nodes, CustomResourceDefinitions and objects of the baseline, each of
which may be left out.`,
		Example: `  # everything, with reasons
  kubectl slipway baseline
  # what would be applied, without a cluster
  kubectl slipway baseline render --file hyperconverged.yaml
  # what differs
  kubectl slipway baseline diff`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			view, err := b.view(cmd.Context())
			if err != nil {
				return err
			}
			rows, err := rowsOf(view, nil)
			if err != nil {
				return err
			}
			return b.print(rows, func(w io.Writer) { baselineTable(w, rows) })
		},
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&b.hcoNamespace, "hco-namespace", fromEnv("BASELINE_HCO_NAMESPACE", decide.DefaultSettings().HCONamespace),
		"namespace of the HyperConverged (env BASELINE_HCO_NAMESPACE)")
	flags.StringSliceVarP(&b.files, "file", "f", nil, "files with objects that stand for the cluster; nothing is connected to")
	cmd.AddCommand(b.renderCommand(), b.diffCommand(), b.resumeCommand())
	return cmd
}

func (b *baselineOptions) renderCommand() *cobra.Command {
	return &cobra.Command{
		Use: "render [ASSET...]", Short: "Print the objects as they are applied, with patches and without ignored fields",
		ValidArgsFunction: completeAssets,
		RunE: func(cmd *cobra.Command, names []string) error {
			view, err := b.view(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := rowsOf(view, names); err != nil {
				return err
			}
			var objects []map[string]any
			for _, f := range view.Findings {
				if f.Desired != nil && (len(names) == 0 || slices.Contains(names, f.Asset.Name)) {
					objects = append(objects, f.Desired.Object)
				}
			}
			if b.output == "json" {
				return b.print(objects, nil)
			}
			for _, obj := range objects {
				text, err := yaml.Marshal(obj)
				if err != nil {
					return fmt.Errorf("cannot print: %w", err)
				}
				_, _ = fmt.Fprintf(b.out, "---\n%s", text)
			}
			return nil
		},
	}
}

func (b *baselineOptions) diffCommand() *cobra.Command {
	return &cobra.Command{
		Use: "diff [ASSET...]", Short: "Print where live objects differ from the baseline",
		ValidArgsFunction: completeAssets,
		RunE: func(cmd *cobra.Command, names []string) error {
			view, err := b.view(cmd.Context())
			if err != nil {
				return err
			}
			rows, err := rowsOf(view, names)
			if err != nil {
				return err
			}
			rows = slices.DeleteFunc(rows, func(r baselineRow) bool { return len(r.Differs) == 0 && (r.Exists || r.Outcome != decide.Drifted) })
			return b.print(rows, func(w io.Writer) { baselineDiff(w, rows) })
		},
	}
}

func (b *baselineOptions) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "resume ASSET", Short: "End the pause of an asset whose object was deleted again and again",
		Long: `Writes to the function's record that the pause is over. Where the object is there, remove its
annotation ` + decide.AnnotationPaused + ` instead.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeAssets,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := knownAssets(names); err != nil {
				return err
			}
			config, err := b.config()
			if err != nil {
				return err
			}
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("cannot connect to the cluster: %w", err)
			}
			records := client.Resource(kind.ConfigMaps.GVR()).Namespace(b.system)
			memory, err := records.Get(cmd.Context(), decide.StateName, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("cannot read the record: %w", err)
			}
			resumed, err := decide.Resume(memory, names[0])
			if err != nil {
				return err
			}
			if _, err := records.Update(cmd.Context(), resumed, metav1.UpdateOptions{FieldManager: "kubectl-slipway"}); err != nil {
				return fmt.Errorf("cannot write the record: %w", err)
			}
			_, _ = fmt.Fprintf(b.out, "%s resumes with the next event or resync: kubectl slipway resync %s\n", names[0], baselineapplier.Name)
			return nil
		},
	}
}

func completeAssets(_ *cobra.Command, names []string, _ string) ([]string, cobra.ShellCompDirective) {
	var offered []string
	for _, a := range catalog.BuiltIn().Assets {
		if !slices.Contains(names, a.Name) {
			offered = append(offered, a.Name)
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

func knownAssets(names []string) error {
	all, _ := completeAssets(nil, nil, "")
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("cannot find asset %q: there are %s", name, strings.Join(all, ", "))
		}
	}
	return nil
}

// view looks at the cluster, or at the files that stand for it.
func (b *baselineOptions) view(ctx context.Context) (decide.View, error) {
	settings, err := baselineapplier.ParseSettings(os.LookupEnv)
	if err != nil {
		return decide.View{}, err
	}
	settings.HCONamespace, settings.StateNamespace = b.hcoNamespace, b.system
	if len(b.files) > 0 {
		objects, err := readObjects(b.files)
		if err != nil {
			return decide.View{}, err
		}
		return baselineapplier.Offline(objects, settings.Settings)
	}
	config, err := b.config()
	if err != nil {
		return decide.View{}, err
	}
	client, err := cluster.New(cluster.Management, "kubectl-slipway", config)
	if err != nil {
		return decide.View{}, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	return baselineapplier.Survey(ctx, cluster.NewSet(client), settings.Settings)
}

func readObjects(files []string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, name := range files {
		file, err := os.Open(name) //nolint:gosec // the user names it
		if err != nil {
			return nil, fmt.Errorf("cannot read the objects: %w", err)
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(file, 4096)
		for {
			obj := &unstructured.Unstructured{}
			if err = decoder.Decode(&obj.Object); err != nil {
				break
			}
			if len(obj.Object) > 0 {
				out = append(out, obj)
			}
		}
		_ = file.Close()
		if err != io.EOF { //nolint:errorlint // the decoder returns it as it is
			return nil, fmt.Errorf("cannot read the objects of file %q: %w", name, err)
		}
	}
	return out, nil
}

func rowsOf(view decide.View, names []string) ([]baselineRow, error) {
	if err := knownAssets(names); err != nil {
		return nil, err
	}
	rows := []baselineRow{}
	for _, f := range view.Findings {
		if len(names) > 0 && !slices.Contains(names, f.Asset.Name) {
			continue
		}
		r := f.Record
		row := baselineRow{
			Asset: f.Asset.Name, Object: r.Object, Tier: f.Asset.Tier, Outcome: r.Outcome, Message: r.Message, Patched: r.Patched, Ignored: r.Ignored,
			Problems: r.Problems, LeftOut: r.LeftOut, Restarts: f.Asset.RestartsNodes, Hardware: f.Asset.HardwareSpecific, Exists: f.Live != nil, Differs: r.Differs,
		}
		if f.Retry != "" {
			row.Outcome, row.Message = decide.Unknown, f.Retry
		}
		if r.Pause != nil {
			row.Paused, row.Opponent = &r.Pause.At, r.Pause.Opponent
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func baselineTable(w io.Writer, rows []baselineRow) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ASSET\tOBJECT\tOUTCOME\tUSER\tDETAIL")
	for _, r := range rows {
		var user []string
		if r.Patched > 0 {
			user = append(user, fmt.Sprintf("patch(%d)", r.Patched))
		}
		if len(r.Ignored) > 0 {
			user = append(user, "ignores "+strings.Join(r.Ignored, ","))
		}
		detail := append(slices.Clone(r.Problems), r.Message)
		if len(r.LeftOut) > 0 {
			detail = append(detail, "left out: "+strings.Join(r.LeftOut, ", "))
		}
		if r.Hardware {
			detail = append(detail, "fits certain hardware only")
		}
		if r.Restarts && r.Outcome == decide.Drifted {
			detail = append(detail, "applying it restarts nodes")
		}
		detail = slices.DeleteFunc(detail, func(text string) bool { return text == "" })
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.Asset, r.Object, r.Outcome, strings.Join(user, " "), strings.Join(strings.Fields(strings.Join(detail, "; ")), " "))
	}
	_ = table.Flush()
}

func baselineDiff(w io.Writer, rows []baselineRow) {
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s (%s, %s)\n", r.Object, r.Asset, r.Outcome)
		if !r.Exists {
			_, _ = fmt.Fprintln(w, "  is not there and would be made")
		}
		for _, d := range r.Differs {
			_, _ = fmt.Fprintf(w, "  %s: %q instead of %q\n", d.Path, d.Have, d.Want)
		}
	}
}
