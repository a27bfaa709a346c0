package decide

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/fault"
)

// Place is where a Machine's objects lie, from what was seen of the clusters
// that the wish asked for.
func Place(machine *unstructured.Unstructured, settings Settings, wish Wish, sights []Sight) Target {
	p := placing{machine: machine, settings: settings, wish: wish, sights: sights}
	if machine.GetDeletionTimestamp() != nil {
		return p.deletion()
	}
	if wish.Moved {
		if target, stays := p.stays(); stays {
			return target
		}
	}
	switch {
	case wish.Problem != nil:
		return Target{Problem: wish.Problem}
	case wish.Config != "":
		return p.at(wish.Config)
	case len(wish.Search) > 0:
		return p.search()
	}
	return p.here()
}

// placing is one placement while it is made.
type placing struct {
	machine  *unstructured.Unstructured
	settings Settings
	wish     Wish
	sights   []Sight
}

func (p *placing) sight(name string) Sight {
	for _, s := range p.sights {
		if s.Cluster == name {
			return s
		}
	}
	return Sight{Cluster: name}
}

func (p *placing) here() Target { return Target{Same: true, KubeVirtMissing: p.wish.missing} }

// at is a cluster, as it was seen.
func (p *placing) at(name string) Target {
	if name == Management {
		return p.here()
	}
	s := p.sight(name)
	target := Target{Cluster: name, Config: name, Automatic: p.wish.Automatic}
	switch {
	case s.Connection.Refused != "":
		target.Problem = connectionProblem(s)
		if p.machine.GetDeletionTimestamp() != nil {
			target.Problem.Message = clip.Line(target.Problem.Message, failureMax/2) + wayOut
		}
	case s.Unreachable != nil:
		target.Unreachable = s.Unreachable
	default:
		target.Same, target.KubeVirtMissing = s.Same, !s.KubeVirt
	}
	return target
}

func connectionProblem(s Sight) *Problem {
	return placementProblem(v1alpha1.ReasonKubevirtConfigInvalid, fmt.Sprintf("KubevirtConfig %q: %s", s.Cluster, s.Connection.Message))
}

// undecided: a cluster that may hold the Machine's objects did not answer.
func undecided(f *fault.Fault) Target { return Target{Unreachable: f, Undecided: true} }

// blocked is why a cluster could not be searched; nil if it was.
func blocked(s Sight) *Target {
	switch {
	case s.Connection.Refused != "":
		problem := connectionProblem(s)
		problem.Message = fmt.Sprintf("nobody can tell whether the Machine has a virtual machine on KubevirtConfig %q: %s", s.Cluster, s.Connection.Message)
		return &Target{Problem: problem}
	case s.Unreachable != nil:
		target := undecided(s.Unreachable)
		return &target
	}
	return nil
}

// refusedSearch is a read that hides whether a cluster holds anything. On the
// management cluster the function then never made anything.
func refusedSearch(s Sight) *Target {
	if len(s.Faults) == 0 || s.Cluster == Management {
		return nil
	}
	return &Target{Problem: placementProblem(v1alpha1.ReasonKubeVirtAPIError,
		fmt.Sprintf("nobody can tell whether the Machine has a virtual machine on KubevirtConfig %q: %s", s.Cluster, s.Faults[0].Error()))}
}

// stays: a Machine never moves by itself. As long as its old cluster holds
// something of it, it is there, whatever is wished for.
func (p *placing) stays() (Target, bool) {
	old := p.sight(p.wish.Old)
	t := blocked(old)
	if t == nil {
		t = refusedSearch(old)
	}
	if t != nil && holds(p.machine) {
		return *t, true
	}
	if !p.holds(old) {
		return Target{}, false
	}
	wished := p.sight(p.wish.Config)
	if p.wish.Config != "" && old.UID != "" && old.UID == wished.UID {
		return Target{}, false // another name of the same cluster
	}
	if name := p.alias(old); name != "" {
		return p.at(name), true
	}
	target := p.at(p.wish.Old)
	target.Automatic = false
	if p.wish.Config == "" || p.wish.Automatic {
		return target, true // nobody has asked for another
	}
	if target.Conflict = p.wish.Problem; target.Conflict != nil {
		return target, true
	}
	target.Conflict = placementProblem(v1alpha1.ReasonPlacementConflict, fmt.Sprintf(
		"the Machine is to run on %s, and its virtual machine or claims are on %s: take the new placement back, or delete the Machine and create it anew",
		describeCluster(p.wish.Config), describeCluster(p.wish.Old)))
	return target, true
}

// alias is the name under which a search finds the management cluster, where the
// Machine was placed before there were names. Empty: it has none, or nobody
// searches.
func (p *placing) alias(old Sight) string {
	if p.wish.Config != "" || p.wish.Old != Management || old.UID == "" {
		return ""
	}
	for _, name := range p.wish.Search {
		if p.sight(name).UID == old.UID {
			return name
		}
	}
	return ""
}

func describeCluster(cluster string) string {
	if cluster == Management {
		return "the management cluster"
	}
	return fmt.Sprintf("KubevirtConfig %q", cluster)
}

// holds tells whether a cluster has something of the Machine that nobody is
// deleting yet.
func (p *placing) holds(s Sight) bool {
	id := identify(p.machine, p.settings)
	for i := range s.VMs {
		if id.relate(&s.VMs[i]) == own {
			return true
		}
	}
	for i := range s.Claims {
		if id.relate(&s.Claims[i]) == own && s.Claims[i].GetDeletionTimestamp() == nil {
			return true
		}
	}
	return false
}

// search finds the one cluster with the Machine's virtual machine: own ones
// count before one that could be adopted.
func (p *placing) search() Target {
	if t := p.unsearched(); t != nil {
		return *t
	}
	owned, adoptable := []Sight{}, []Sight{}
	for _, name := range p.wish.Search {
		s := p.sight(name)
		switch c := choose(p.machine, p.settings, s.VMs); {
		case p.holdsVM(s):
			owned = append(owned, s)
		case c.vm != nil:
			adoptable = append(adoptable, s)
		}
	}
	found := owned
	if len(found) == 0 {
		found = adoptable
	}
	switch {
	case len(found) == 0:
		return Target{Problem: placementProblem(v1alpha1.ReasonPlacementAmbiguous, fmt.Sprintf(
			"Machine has no KubevirtConfig reference and %d configs are available - cannot determine placement: set spec.kubevirtConfigRef to one of %s",
			len(p.wish.found), quoted(p.wish.found)))}
	case len(found) > 1 && !sameCluster(found):
		var names []string
		for _, s := range found {
			names = append(names, s.Cluster)
		}
		return Target{Problem: placementProblem(v1alpha1.ReasonPlacementAmbiguous, fmt.Sprintf(
			"Machine has no KubevirtConfig reference and a virtual machine on each of %s: set spec.kubevirtConfigRef to the right one", quoted(names)))}
	}
	return p.at(found[0].Cluster)
}

// unsearched is the first reason why a search cannot say anything: a cluster
// that could not be asked may hold the Machine's objects. What a person has to
// mend counts before what is awaited.
func (p *placing) unsearched() *Target {
	var waiting *Target
	for _, name := range p.wish.Search {
		s := p.sight(name)
		t := blocked(s)
		if t == nil && p.machine.GetDeletionTimestamp() == nil {
			t = refusedSearch(s)
		}
		if t != nil && t.Problem != nil {
			return t
		}
		if waiting == nil {
			waiting = t
		}
	}
	return waiting
}

func (p *placing) holdsVM(s Sight) bool {
	s.Claims = nil
	return p.holds(s)
}

// sameCluster tells that all are names of one cluster.
func sameCluster(sights []Sight) bool {
	for _, s := range sights {
		if s.UID == "" || s.UID != sights[0].UID {
			return false
		}
	}
	return true
}

// deletion is where the objects of a Machine that goes are. Several clusters
// are cleaned up one after the other.
func (p *placing) deletion() Target {
	switch {
	case p.wish.Problem != nil:
		return Target{Problem: p.wish.Problem}
	case p.wish.Config != "":
		return p.at(p.wish.Config)
	case !p.wish.Automatic:
		return p.here()
	}
	var holding []string
	for _, name := range p.wish.Search {
		if s := p.sight(name); p.holds(s) {
			holding = append(holding, name)
		}
	}
	rest := p.unsearched()
	switch {
	case len(holding) > 0:
		target := p.at(holding[0])
		target.More = len(holding) > 1 || rest != nil
		return target
	case rest != nil:
		if rest.Problem != nil {
			rest.Problem.Message = clip.Line(rest.Problem.Message, failureMax/2) + wayOut
		}
		return *rest
	}
	return Target{Nothing: true}
}
