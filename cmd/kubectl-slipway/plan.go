package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/record"
)

const (
	// maxManifest bounds a file, maxConcerned the objects that one plan looks at.
	maxManifest  = 16 << 20
	maxConcerned = 50
	// manager is the field manager of the dry-run that completes a file's objects.
	manager = "kubectl-slipway"
)

// planned is what one function would do about one object.
type planned struct {
	Function   string             `json:"function"`
	Kind       string             `json:"kind"`
	Object     string             `json:"object"`
	Changes    bool               `json:"changes"`
	Result     record.Result      `json:"result"`
	Decisions  []record.Decision  `json:"decisions,omitempty"`
	Conclusion *record.Conclusion `json:"conclusion,omitempty"`
	recording  *record.Recording
}

type planOptions struct {
	*options
	files []string
	only  string
}

func planCommand(o *options) *cobra.Command {
	p := &planOptions{options: o}
	cmd := &cobra.Command{
		Use:   "plan (-f FILE | KIND/NAME...)",
		Short: "Show what every concerned function would do, and write nothing",
		Long: `Asks every function that the objects concern what it would do, in plan mode and with your own
rights: which objects it would create, change or delete, why, and what the status would say.
Nothing is written.

With -f, the objects of the file need not exist: the API server completes them by a dry-run of
kubectl apply, and they are read as if they had been applied.

The exit code is 0 if nothing would change, 2 if something would, 1 if that cannot be told.`,
		Example: `  # what would this Machine bring about?
  kubectl slipway plan -f machine.yaml
  # is the world as this Machine wants it?
  kubectl slipway plan machine/web -n team-a`,
		ValidArgsFunction: completeKinds,
		RunE:              func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), cmd.InOrStdin(), args) },
	}
	cmd.Flags().StringSliceVarP(&p.files, "filename", "f", nil, "files with objects; - is standard input")
	cmd.Flags().StringVar(&p.only, "function", "", "ask this function only")
	completeFunction(cmd)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	return cmd
}

func (p *planOptions) run(ctx context.Context, stdin io.Reader, args []string) error {
	if (len(p.files) == 0) == (len(args) == 0) {
		return errors.New("name objects as KIND/NAME, or files with -f")
	}
	if p.only != "" {
		if err := checkFunction(p.only); err != nil {
			return err
		}
	}
	live, err := p.live()
	if err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	var overlay read.Overlay
	for _, argument := range args {
		obj, err := live.find(ctx, argument, p.objectNamespace())
		if err != nil {
			return err
		}
		objects = append(objects, obj)
	}
	for _, file := range p.files {
		manifests, err := manifestsOf(file, stdin)
		if err != nil {
			return err
		}
		for _, manifest := range manifests {
			obj, err := live.dryRun(ctx, manifest, p.objectNamespace())
			if err != nil {
				return err
			}
			objects, overlay = append(objects, obj), append(overlay, obj)
		}
	}
	plans, err := p.plans(ctx, objects, overlay)
	if err != nil {
		return err
	}
	if err := p.print(append([]planned{}, plans...), func(w io.Writer) { planTable(w, plans) }); err != nil {
		return err
	}
	for _, plan := range plans {
		if plan.Changes {
			return exitCode(exitChanges)
		}
	}
	return nil
}

// manifestsOf reads the objects of a file.
func manifestsOf(file string, stdin io.Reader) ([]*unstructured.Unstructured, error) {
	in := stdin
	if file != "-" {
		f, err := os.Open(file) //nolint:gosec // the file that the caller named
		if err != nil {
			return nil, fmt.Errorf("cannot read objects: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", file, err)
	}
	if len(text) > maxManifest {
		return nil, fmt.Errorf("cannot read %q: it is larger than %d bytes", file, maxManifest)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4<<10)
	var objects []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", file, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" || obj.GetName() == "" {
			return nil, fmt.Errorf("cannot read %q: an object lacks apiVersion, kind or metadata.name", file)
		}
		objects = append(objects, obj)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("cannot read %q: it holds no object", file)
	}
	return objects, nil
}

// dryRun is an object as it would be if it were applied.
func (c *liveCluster) dryRun(ctx context.Context, obj *unstructured.Unstructured, namespace string) (*unstructured.Unstructured, error) {
	if obj.GetNamespace() != "" {
		namespace = obj.GetNamespace()
	}
	client, namespaced, err := c.in(obj.GroupVersionKind(), namespace)
	if err != nil {
		return nil, err
	}
	if namespaced {
		obj.SetNamespace(namespace)
	}
	body, err := obj.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot write %s %q: %w", obj.GetKind(), obj.GetName(), err)
	}
	force := true
	got, err := client.Patch(ctx, obj.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: manager, Force: &force, DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot plan for %s %q: the API server would not take it: %w", obj.GetKind(), obj.GetName(), err)
	}
	return got, nil
}

// plans asks every function that the objects concern.
func (p *planOptions) plans(ctx context.Context, objects []*unstructured.Unstructured, overlay read.Overlay) ([]planned, error) {
	config, err := p.config()
	if err != nil {
		return nil, err
	}
	var out []planned
	for _, spec := range slipway.Specs() {
		if p.only != "" && p.only != spec.Name {
			continue
		}
		host, err := hostOf(spec.Name, nil)
		if err != nil {
			return nil, err
		}
		if err := host.Connect(config); err != nil {
			return nil, err
		}
		keys, err := concerned(ctx, host, objects, overlay)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			recording, err := host.Try(ctx, key, reconcile.ModePlan, overlay, nil)
			if err != nil {
				return nil, err
			}
			if recording.Header.Result.Reason == "Absent" {
				continue // a key of what is not there is harmless
			}
			if recording.Header.Result.Class == "retry" {
				return nil, fmt.Errorf("cannot plan for %s %s: %s", spec.Reconciles.Kind, key, recording.Header.Result.Message)
			}
			out = append(out, planned{
				Function: spec.Name, Kind: spec.Reconciles.Kind, Object: key.String(), Changes: changes(recording), Result: recording.Header.Result,
				Decisions: recording.Decisions, Conclusion: recording.Conclusion, recording: recording,
			})
		}
	}
	return out, nil
}

// concerned are the objects that a function would reconcile because of others.
func concerned(ctx context.Context, host *reconcile.Host, objects []*unstructured.Unstructured, overlay read.Overlay) ([]reconcile.Key, error) {
	var keys []reconcile.Key
	seen := map[reconcile.Key]bool{}
	for _, obj := range objects {
		found, err := host.Concerned(ctx, event.Event{
			APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(),
		}, overlay)
		if err != nil {
			return nil, err
		}
		for _, key := range found {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	if len(keys) > maxConcerned {
		return nil, fmt.Errorf("cannot plan: %d objects of function %s are concerned, at most %d are looked at; name fewer", len(keys), host.Spec().Name, maxConcerned)
	}
	return keys, nil
}

func planTable(w io.Writer, plans []planned) {
	if len(plans) == 0 {
		fmt.Fprintln(w, "No function is concerned.")
	}
	changing := 0
	for i, plan := range plans {
		if i > 0 {
			fmt.Fprintln(w)
		}
		show(w, plan.recording)
		if plan.Changes {
			changing++
		}
	}
	if len(plans) > 0 {
		fmt.Fprintf(w, "\n%d of %d reconciles would change something. Nothing was written.\n", changing, len(plans))
	}
}
