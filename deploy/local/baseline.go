package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/deploy/local/stack"
	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	baseline "github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

// drifting is the asset whose object is changed before one's eyes.
const drifting = "kubelet-perf-settings"

func isHyperConverged(obj *unstructured.Unstructured) bool {
	return baseline.HyperConvergeds.Is(obj.GetAPIVersion(), obj.GetKind())
}

// awaitSample waits until the baseline of the sample is in place, changes an object as an
// admin would, waits until that is repaired, and prints the function's own report.
func awaitSample(ctx context.Context, s *stack.Stack, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	state, err := awaitBaseline(ctx, s)
	if err != nil {
		reportTable(state)
		return err
	}
	if err := repaired(ctx, s); err != nil {
		return err
	}
	if state, err = awaitBaseline(ctx, s); err != nil {
		return err
	}
	reportTable(state)
	return nil
}

// awaitBaseline waits until every asset is as it should be, or not wanted.
func awaitBaseline(ctx context.Context, s *stack.Stack) (decide.State, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		memory, err := s.Client.Resource(kind.ConfigMaps.GVR()).Namespace(stack.Namespace).Get(ctx, decide.StateName, metav1.GetOptions{})
		state := decide.State{}
		if err == nil {
			state = decide.ReadState(memory)
		}
		if settled(state) {
			return state, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return state, fmt.Errorf("the baseline is not in place: %s", strings.Join(unsettled(state), "; "))
		}
	}
}

func settled(state decide.State) bool {
	return state.Platform.HCO != "" && len(unsettled(state)) == 0
}

func unsettled(state decide.State) []string {
	if len(state.Assets) == 0 {
		return []string{"nothing is recorded yet"}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(state.Assets)) {
		r := state.Assets[name]
		if !slices.Contains([]decide.Outcome{decide.InSync, decide.Inactive, decide.Excluded, decide.NotApplicable, decide.OptedOut}, r.Outcome) {
			out = append(out, fmt.Sprintf("%s is %s (%s)", name, r.Outcome, r.Message))
		}
	}
	return out
}

// repaired changes an object and waits until it is as before.
func repaired(ctx context.Context, s *stack.Stack) error {
	a, _ := catalog.BuiltIn().Find(drifting)
	client := s.Client.Resource(a.Resource().GVR())
	fmt.Printf("\nan admin sets maxPods of %s %s to 250\n", a.Component, a.Object)
	body := []byte(`{"spec":{"kubeletConfig":{"maxPods":250}}}`)
	if _, err := client.Patch(ctx, a.Object, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "admin"}); err != nil {
		return fmt.Errorf("cannot change %s %q: %w", a.Component, a.Object, err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for {
		obj, err := client.Get(ctx, a.Object, metav1.GetOptions{})
		if err == nil {
			if pods, _, _ := unstructured.NestedInt64(obj.Object, "spec", "kubeletConfig", "maxPods"); pods == 500 {
				fmt.Printf("it is 500 again after %d ms\n\n", time.Since(began).Milliseconds())
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the change of %s %q is not repaired", a.Component, a.Object)
		}
	}
}

func reportTable(state decide.State) {
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ASSET\tOBJECT\tOUTCOME\tUSER\tDETAIL")
	for _, name := range slices.Sorted(maps.Keys(state.Assets)) {
		r := state.Assets[name]
		user := ""
		if r.Patched > 0 {
			user = fmt.Sprintf("patch(%d)", r.Patched)
		}
		if len(r.Ignored) > 0 {
			user += " ignores " + strings.Join(r.Ignored, ",")
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", name, r.Object, r.Outcome, strings.TrimSpace(user), r.Message)
	}
	_ = table.Flush()
}
