package nodepool

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/test/providers/controller"
	"github.com/slipway-dev/slipway/test/suite"
)

// play plays Cluster API and its providers in the world until the test ends: machines
// come, go and roll.
func (w *world) play() {
	w.TB.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var log bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, w.Env.Config, w.NS, slog.New(slog.NewTextHandler(&log, nil)))
	}()
	w.TB.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.TB.Errorf("the providers: %v\n%s", err, &log)
		}
	})
}

// up waits until the providers have brought the subject to so many machines.
func (w *world) up(controlPlane bool, count int) {
	w.TB.Helper()
	w.Await(keeper(controlPlane), subject, fmt.Sprintf("has %d machines", count), func(obj *unstructured.Unstructured) bool {
		return obj != nil && suite.Text(obj, "status", "readyReplicas") == fmt.Sprint(count)
	})
}

// born are the UIDs of the machines that are not about to go.
func (w *world) born() []string {
	w.TB.Helper()
	var all []string
	for _, obj := range w.Objects() {
		if obj.GetKind() == machines.Kind && obj.GetDeletionTimestamp() == nil {
			all = append(all, string(obj.GetUID()))
		}
	}
	slices.Sort(all)
	return all
}

// TestATakeoverRollsNoMachine hands a live pool over while providers watch that replace
// machines on any change of a field that rolls them. Scaling after it shows that they
// have looked at what the takeover left; a change of size shows that they do roll.
func TestATakeoverRollsNoMachine(t *testing.T) {
	bothRoles(t, func(t *testing.T, controlPlane bool) {
		w := leftovers(t, controlPlane, nil)
		w.CreateAs(upstream, w.upstreamTemplate("4Gi", "default"))
		if controlPlane {
			w.CreateAs(upstream, w.upstreamControlPlane(controlPatch(w.host()), sharedPatch, timePatch))
		} else {
			w.CreateAs(upstream, w.upstreamConfigTemplate(sharedPatch, timePatch), w.upstreamDeployment())
		}
		w.play()
		w.up(controlPlane, 3)
		before := w.born()
		if len(before) != 3 {
			t.Fatalf("there are %d machines, want 3", len(before))
		}
		f := w.survives(t)
		w.spec("replicas: 5")
		w.converged(f)
		w.up(controlPlane, 5)
		scaled := w.born()
		if len(scaled) != 5 {
			t.Errorf("there are %d machines, want 5", len(scaled))
		}
		for _, uid := range before {
			if !slices.Contains(scaled, uid) {
				t.Errorf("machine %s was replaced", uid)
			}
		}
		w.spec("resources: {cpu: 5}")
		w.converged(f)
		for _, uid := range scaled {
			w.gone(uid)
		}
		w.is(subject, ready, "True Reconciled")
	})
}

// gone waits until a machine has been replaced.
func (w *world) gone(uid string) {
	w.TB.Helper()
	for _, obj := range w.Objects() {
		if string(obj.GetUID()) == uid {
			w.Await(machines, obj.GetName(), "is replaced", suite.Gone)
		}
	}
}
