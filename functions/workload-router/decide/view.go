package decide

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// view is one decision under way.
type view struct {
	in Input
	// name and namespace are the Workload's, clusterName the Cluster's.
	name, namespace, clusterName string
	// cluster is the Dockyards Cluster, address that of the Gateway.
	cluster *unstructured.Unstructured
	address dockyards.Address
	// ended is what a check came to that ended the pass.
	ended *verdict
	// zones are the Cluster's hostnames.
	zones zones
	// ways are the Services that are mirrored.
	ways []*way
	// wanted are the names of what shall be there, by kind.
	wanted map[string]map[string]bool
	// said is what has to be told of the pass.
	said findings
	// revocations come first, then writes, both in one stage; removals follow once
	// everything else went through.
	revocations, writes, status, removals []plan.Entry
	reasons                               []string
}

// way is one Service of the workload cluster on its way to the Gateway.
type way struct {
	service *unstructured.Unstructured
	// name is that of the mirror and of its first routes.
	name  string
	ports []port
}

func newView(in Input) *view {
	return &view{
		in: in, name: in.Workload.GetName(), namespace: in.Workload.GetNamespace(), clusterName: clusterOf(in.Workload),
		wanted: map[string]map[string]bool{},
	}
}

// Decide is what shall be written for a Workload.
func Decide(_ time.Time, in Input, _ plan.Answers) plan.Decision {
	v := look(in)
	d := plan.Decision{Reasons: v.reasons}
	// One stage: a write that is refused holds up no other. Hostnames are given up
	// before any are taken.
	var ways []plan.Entry
	ways = append(append(append(ways, v.revocations...), v.writes...), v.status...)
	d.Plan.Add("ways", ways...)
	d.Plan.Add("removal", v.removals...)
	// A run deletes only so many; the next round goes on.
	d.Plan.Continue = len(v.revocations)+len(v.removals) > continueAbove
	return d
}

// continueAbove is below the number of objects that one run deletes.
const continueAbove = 50

// look makes one decision from beginning to end.
func look(in Input) *view {
	v := newView(in)
	switch {
	case !Concerned(in.Settings, in.Workload):
		v.reason("the Workload is not this function's, or is being deleted")
		return v
	case len(in.Faults) > 0:
		v.unread()
		return v
	}
	v.cluster = find(in.Clusters, v.namespace, v.owner())
	v.zones = v.findZones()
	if !v.check(local) || !v.check(remote) {
		v.reason(v.ended.message)
		v.giveUpOthers()
		return v
	}
	v.choose()
	v.nameWays()
	v.mirror()
	v.route()
	v.report()
	v.prune()
	return v
}

func (v *view) reason(text string) { v.reasons = append(v.reasons, text) }

func (v *view) want(res kind.Resource, name string) {
	if v.wanted[res.Kind] == nil {
		v.wanted[res.Kind] = map[string]bool{}
	}
	v.wanted[res.Kind][name] = true
}

// owner is the name of the Cluster that owns the Workload.
func (v *view) owner() string { return v1alpha3.OwnerCluster(v.in.Workload) }

// clusterOf is the name that the Workload's label has for its Cluster.
func clusterOf(workload *unstructured.Unstructured) string {
	return workload.GetLabels()[v1alpha3.LabelClusterName]
}

// find is an object of a list, or nil.
func find(objects []unstructured.Unstructured, namespace, name string) *unstructured.Unstructured {
	for i := range objects {
		if objects[i].GetName() == name && objects[i].GetNamespace() == namespace {
			return &objects[i]
		}
	}
	return nil
}

func quote(text string) string { return strconv.Quote(text) }
