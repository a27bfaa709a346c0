package baselineapplier

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/plan"
)

// left is what a process knows of the objects as it left them, so that its own writes
// cost one read when they come back as events: the version that a write of its own
// made, while the call that wrote goes on to look at it again, and the version at
// which a call found nothing to do. A version never comes back, so an event of an
// object that still has it brings no news, whatever other copies do. Nothing is decided
// by it: a process that knows nothing reads the record.
type left struct {
	mu sync.Mutex
	// calls are those under way, by part: closed at their end.
	calls map[string]<-chan struct{}
	marks map[string]mark
}

// mark is a version of an asset's object.
type mark struct {
	version string
	// call is the one that will look at the object again; nil if there is no need to.
	call <-chan struct{}
}

func newLeft() *left {
	return &left{calls: map[string]<-chan struct{}{}, marks: map[string]mark{}}
}

// begin notes which call looks at a part: there is one at a time in a process.
func (l *left) begin(ctx context.Context, part string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[part] = ctx.Done()
}

// as reports whether an asset's object is as the process left it.
func (l *left) as(asset string, live *unstructured.Unstructured) bool {
	if live == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m, known := l.marks[asset]
	if !known || m.version != version(live) {
		return false
	}
	select {
	case <-m.call:
		return false // it ended without another look
	default:
		return true
	}
}

// note keeps what a round came to.
func (l *left) note(in decide.Input, view decide.View, outcomes plan.Outcomes, class plan.Class) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range view.Findings {
		delete(l.marks, f.Asset.Name)
		wrote, tried := outcomes.Of(decide.Management, f.Asset.Resource(), f.Namespace, f.Asset.Object)
		switch {
		case len(outcomes.Faults()) > 0 || class != plan.Done:
		case tried && wrote.Object != nil && f.Continue:
			l.marks[f.Asset.Name] = mark{version: version(wrote.Object), call: l.calls[in.Part]}
		case tried && wrote.Object != nil:
			l.marks[f.Asset.Name] = mark{version: version(wrote.Object)}
		case !tried && !view.Continue && rests(f, view):
			l.marks[f.Asset.Name] = mark{version: version(f.Live)}
		}
	}
}

// rests tells that only a change of the object, or of something else that sends an
// event, can bring work.
func rests(f decide.Finding, view decide.View) bool {
	if f.Live == nil || f.Asset.Name == catalog.HCO && view.State.Platform.HCO == "" {
		return false
	}
	switch f.Record.Outcome {
	case decide.InSync, decide.Paused, decide.OptedOut, decide.Rewritten:
		return true
	default:
		return false
	}
}

func version(obj *unstructured.Unstructured) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}
