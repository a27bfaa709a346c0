package baselineapplier

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// at is the object of asset psi-enable in a version.
func at(version string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetName("99-openshift-machineconfig-worker-psi-karg")
	obj.SetUID("u")
	obj.SetResourceVersion(version)
	return obj
}

func TestOnlyAVersionThatIsOrWillBeLookedAtBringsNoNews(t *testing.T) {
	psi, _ := catalog.BuiltIn().Find("psi-enable")
	in := decide.Input{Part: decide.PartAsset(psi.Name)}
	finding := func(outcome decide.Outcome, more bool) decide.View {
		return decide.View{Findings: []decide.Finding{{Asset: psi, Live: at("1"), Record: decide.Record{Outcome: outcome}, Continue: more}}, Continue: more}
	}
	write := plan.Entry{Verb: plan.Apply, Resource: psi.Resource(), Object: at("1")}
	wrote := plan.Outcomes{{Entry: write, Result: plan.Configured, Object: at("2")}}
	failed := plan.Outcomes{{Entry: write, Result: plan.Failed, Fault: &fault.Fault{}}}
	for name, tc := range map[string]struct {
		reason   string
		view     decide.View
		outcomes plan.Outcomes
		class    plan.Class
		version  string
		ended    bool
		want     bool
	}{
		"InSync":    {"there was nothing to do", finding(decide.InSync, false), nil, plan.Done, "1", true, true},
		"Newer":     {"somebody has changed it since", finding(decide.InSync, false), nil, plan.Done, "2", true, false},
		"OwnWrite":  {"the call is about to look at it", finding(decide.Drifted, true), wrote, plan.Done, "2", false, true},
		"CallEnded": {"nobody looks at what it wrote", finding(decide.Drifted, true), wrote, plan.Done, "2", true, false},
		"Failed":    {"the write has to be made", finding(decide.Drifted, true), failed, plan.Done, "1", false, false},
		"Retry":     {"the same event comes again, for more", finding(decide.InSync, false), nil, plan.Retry, "1", false, false},
		"Throttled": {"any event may be the one in time", finding(decide.Throttled, false), nil, plan.Done, "1", true, false},
	} {
		l := newLeft()
		ctx, end := context.WithCancel(t.Context())
		l.begin(ctx, in.Part)
		l.note(in, tc.view, tc.outcomes, tc.class)
		if tc.ended {
			end()
		}
		if got := l.as(psi.Name, at(tc.version)); got != tc.want {
			t.Errorf("%s: %s: %v", name, tc.reason, got)
		}
		if l.as(psi.Name, nil) || l.as("swap-enable", at(tc.version)) {
			t.Errorf("%s: an object that is not there, or another, is known", name)
		}
		end()
	}
}
