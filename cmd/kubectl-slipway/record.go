package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/shared/record"
)

// recordOptions are the flags of the command.
type recordOptions struct {
	eventsOptions
	dir      string
	duration time.Duration
	stop     bool
	keep     bool
}

func recordCommand(o *options) *cobra.Command {
	r := &recordOptions{eventsOptions: eventsOptions{options: o, follow: true}}
	cmd := &cobra.Command{
		Use:   "record (KIND/NAME | KIND | --function FUNCTION)",
		Short: "Tap the reconciles of one object, kind or function",
		Long: `Shows reconciles as they are recorded, until Ctrl-C, and with --save keeps each as a file.

For one object (KIND/NAME) the annotation slipway.dev/record=true is set on it first, which
makes every function record it, and taken away again at the end unless --keep is given. For a
kind or a function, what the function's settings ask for is shown: with SLIPWAY_RECORD=all
that is everything, with SLIPWAY_RECORD_NAMESPACES what lies in those namespaces, with
SLIPWAY_RECORD=namespaces what lies in a namespace that carries the annotation, and
SLIPWAY_RECORD_SAMPLE keeps a share of all that. Recordings hold no secrets.`,
		Example: `  # what happens to this Machine in the next minute?
  kubectl slipway record machine/web -n team-a --for 1m --save ./recordings
  # everything that one function does
  kubectl slipway record --function machine-vm`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, args []string) error { return r.tap(cmd.Context(), args) },
	}
	historyFlag(cmd, &r.from)
	flags := cmd.Flags()
	flags.StringVar(&r.function, "function", "", "reconciles of this function only")
	completeFunction(cmd)
	flags.BoolVarP(&r.all, "all-namespaces", "A", false, "of objects in all namespaces")
	flags.StringVar(&r.dir, "save", "", "directory that each recording is written to")
	flags.DurationVar(&r.duration, "for", 0, "end after this time; 0 goes on until Ctrl-C")
	flags.BoolVar(&r.keep, "keep", false, "leave the annotation on the object at the end")
	flags.BoolVar(&r.stop, "stop", false, "take the annotation off the object, and end")
	return cmd
}

func (r *recordOptions) tap(ctx context.Context, args []string) error {
	if len(args) == 0 && r.function == "" {
		return errors.New("name an object as KIND/NAME, a kind, or a function with --function")
	}
	f, err := r.filter(args)
	if err != nil {
		return err
	}
	if r.stop && f.Name == "" {
		return errors.New("cannot use --stop without KIND/NAME")
	}
	if f.Name != "" {
		obj, err := r.annotate(ctx, args[0], !r.stop)
		if err != nil || r.stop {
			return err
		}
		f.Namespace = obj.GetNamespace()
		if !r.keep {
			defer func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
				defer cancel()
				if _, err := r.annotate(ctx, args[0], false); err != nil {
					fmt.Fprintf(r.out, "the annotation %s is left on the object: %v\n", record.Annotation, err)
				}
			}()
		}
	}
	if r.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.duration)
		defer cancel()
	}
	h, err := r.history(r.from)
	if err != nil {
		return err
	}
	// Only what comes from now on.
	f.After = time.Now().UTC().Format("20060102T150405.000000Z")
	if r.dir != "" {
		if err := os.MkdirAll(r.dir, 0o700); err != nil {
			return fmt.Errorf("cannot save recordings: %w", err)
		}
		h = saving{history: h, dir: r.dir}
	}
	return r.stream(ctx, h, f, nil)
}

// annotate sets or removes the annotation that asks for recordings.
func (r *recordOptions) annotate(ctx context.Context, argument string, on bool) (*unstructured.Unstructured, error) {
	live, err := r.live()
	if err != nil {
		return nil, err
	}
	obj, err := live.find(ctx, argument, r.objectNamespace())
	if err != nil {
		return nil, err
	}
	client, _, err := live.in(obj.GroupVersionKind(), obj.GetNamespace())
	if err != nil {
		return nil, err
	}
	value := "null"
	if on {
		value = `"true"`
	}
	patch := `{"metadata":{"annotations":{"` + record.Annotation + `":` + value + `}}}`
	if _, err := client.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}); err != nil {
		return nil, fmt.Errorf("cannot annotate %s: %w", argument, err)
	}
	return obj, nil
}

// saving is a history that writes down what it lists.
type saving struct {
	history
	dir string
}

func (s saving) headers(ctx context.Context, f record.Filter) ([]record.Header, error) {
	list, err := s.history.headers(ctx, f)
	if err != nil {
		return nil, err
	}
	for _, h := range list {
		recording, err := s.recording(ctx, h.ID, true)
		if err != nil {
			return nil, err
		}
		text, err := recording.Encode()
		if err != nil {
			return nil, fmt.Errorf("cannot save %s: %w", h.ID, err)
		}
		if strings.ContainsRune(h.ID, filepath.Separator) {
			return nil, fmt.Errorf("cannot save %q: that is no recording's name", h.ID)
		}
		if err := record.WriteFile(filepath.Join(s.dir, h.ID+record.Suffix), text); err != nil {
			return nil, err
		}
	}
	return list, nil
}
