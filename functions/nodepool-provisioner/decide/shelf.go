package decide

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// shelf is where a pool's templates of one kind stand. No template is ever changed:
// a pool that asks for something else takes another one.
type shelf struct {
	res kind.Resource
	// all are those that were read, own those that are the pool's, by name.
	all []unstructured.Unstructured
	own []*unstructured.Unstructured
	// says tells whether a template says what is wanted; nil while that is not
	// known.
	says func(*unstructured.Unstructured) bool
	// content is a hash of what is wanted.
	content string
	// make is a new template, without its name and marks.
	make func() (*unstructured.Unstructured, *problem)
	// verdict is what is said about templates of this kind.
	verdict *verdict
	// current and chosen are the template that is named now, and the one that shall
	// be.
	current, chosen string
	// clones are the resources that are made from such a template.
	clones []kind.Resource
}

// contentDigits are how many digits of its content's hash stand in a template's name.
const contentDigits = 8

// choose names the template that machines shall be made from, and plans it if it is
// not there. With move, that may be another one than now; without, the name stays
// whatever it says.
func (v *view) choose(s *shelf, move bool) string {
	if s.says == nil {
		return s.current
	}
	current := find(s.all, s.current)
	if !move {
		if current == nil && s.current != "" {
			return v.shelve(s, s.current)
		}
		return s.current
	}
	if current != nil && !dockyards.Going(current) && s.says(current) {
		return s.current
	}
	for _, obj := range s.own {
		if !dockyards.Going(obj) && s.says(obj) {
			return obj.GetName()
		}
	}
	name, there := v.freeName(s)
	if there {
		return name
	}
	return v.shelve(s, name)
}

// freeName is the name of a new template: the pool's for the first, one that is made
// of its content for every later one. Empty: it is taken, or that is not yet known.
// there tells that a template of that name says already what is wanted.
func (v *view) freeName(s *shelf) (name string, there bool) {
	plain := find(s.all, v.name)
	if len(s.own) == 0 {
		if plain == nil {
			return v.name, false
		}
		s.verdict.add(taken(s.res.Kind, v.name))
		return "", false
	}
	content := s.content
	for try := range 3 {
		name := v.name + "-" + content[:contentDigits]
		have := find(s.all, name)
		if have == nil {
			answer, ok := v.ask(s.verdict, plan.Need{Resource: s.res, Namespace: v.namespace(), Name: name})
			if !ok {
				return "", false
			}
			have = answer.Object
		}
		switch {
		case have == nil:
			return name, false
		case !v.owns(have, s.says):
			s.verdict.add(taken(s.res.Kind, name))
			return "", false
		case s.says(have) && !dockyards.Going(have):
			return name, true
		}
		content = digest(content + strconv.Itoa(try))
	}
	s.verdict.add(taken(s.res.Kind, v.name+"-"+content[:contentDigits]))
	return "", false
}

// shelve plans a new template under a name, and returns the name if that can be.
func (v *view) shelve(s *shelf, name string) string {
	if name == "" {
		return ""
	}
	obj, p := s.make()
	if p != nil {
		s.verdict.add(*p)
		return ""
	}
	obj.SetName(name)
	obj.SetNamespace(v.namespace())
	v.create(&v.templates, s.res, v.marked(obj), "no template says what the pool's machines shall be")
	return name
}

// rest is how long a template that is younger than the one in use is left: a copy
// of the function may be about to name it.
const rest = 10 * time.Minute

// spare are the templates of a shelf that nothing names any more.
func (v *view) spare(s *shelf) []*unstructured.Unstructured {
	chosen := find(s.all, s.chosen)
	if chosen == nil {
		return nil
	}
	var spare []*unstructured.Unstructured
	for _, obj := range s.own {
		name := obj.GetName()
		if name == s.chosen || name == s.current || dockyards.Going(obj) || !dockyards.OwnedBy(obj, v.in.Pool) {
			continue
		}
		created := obj.GetCreationTimestamp()
		inUse := chosen.GetCreationTimestamp()
		if inUse.Before(&created) && v.now.Sub(created.Time) < rest {
			continue
		}
		spare = append(spare, obj)
	}
	return spare
}

// clonedFrom is Cluster API's annotation on what was made from a template.
const clonedFrom = "cluster.x-k8s.io/cloned-from-name"

// objectOf is an object as an intent, without what Go types invent.
func objectOf(res kind.Resource, version string, spec any) (*unstructured.Unstructured, *problem) {
	if version != "" {
		res.Versions = []string{version}
	}
	obj, err := plan.Object(res, &struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              any `json:"spec"`
	}{Spec: spec})
	if err != nil {
		p := invalid("cannot write a %s: %v", res.Kind, err)
		return nil, &p
	}
	return obj, nil
}
