package decide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

const (
	recordedGone    = `status: {status: Disconnected, conditions: [{type: VersionsMatch, status: Unknown, reason: Unreachable}]}`
	recordedRefused = `status: {status: Connected, conditions: [{type: VersionsMatch, status: Unknown, reason: Unauthorized}]}`
	recordedWaiting = `status: {status: Connected, conditions: [{type: VersionsMatch, status: Unknown, reason: Waiting}]}`
	recordedDiffers = `status: {status: Connected, conditions: [{type: VersionsMatch, status: "False", reason: VersionsDiffer}]}`
)

func TestYardstick(t *testing.T) {
	list := func(configs ...*unstructured.Unstructured) []unstructured.Unstructured {
		var all []unstructured.Unstructured
		for _, c := range configs {
			all = append(all, *c)
		}
		return all
	}
	elsewhere := config(t, "aa")
	elsewhere.SetNamespace("elsewhere")
	cases := map[string]struct {
		reason  string
		configs []unstructured.Unstructured
		// of is who is compared with whom; concerned is whom a change of a concerns.
		of        map[string]string
		concerned map[string][]string
	}{
		"new ones": {
			reason: "the first by name, in whatever order they come", configs: list(config(t, "c"), config(t, "a"), config(t, "b")),
			of:        map[string]string{"a": "", "b": "a", "c": "a"},
			concerned: map[string][]string{"a": {"a", "b", "c"}, "b": {"b"}, "c": {"c"}},
		},
		"the first is gone": {
			reason: "the next takes its place, and the first wakes all when it changes", configs: list(config(t, "a", recordedGone), config(t, "b"), config(t, "c")),
			of:        map[string]string{"a": "", "b": "", "c": "b"},
			concerned: map[string][]string{"a": {"a", "b", "c"}, "b": {"b", "a", "c"}, "c": {"c"}},
		},
		"the first may not be read": {
			reason: "nobody can be compared with it", configs: list(config(t, "a", recordedRefused), config(t, "b", recordedDiffers)),
			of:        map[string]string{"a": "", "b": ""},
			concerned: map[string][]string{"a": {"a", "b"}, "b": {"b", "a"}},
		},
		"one that waits can be a yardstick": {
			reason: "its own versions were read", configs: list(config(t, "a", recordedGone), config(t, "b", recordedWaiting), config(t, "c", recordedWaiting)),
			of:        map[string]string{"b": "", "c": "b"},
			concerned: map[string][]string{"c": {"c"}},
		},
		"none can be read": {
			reason: "there is nothing to compare", configs: list(config(t, "a", recordedGone), config(t, "b", recordedGone)),
			of:        map[string]string{"a": "", "b": ""},
			concerned: map[string][]string{"a": {"a"}, "b": {"b"}},
		},
		"one that was deleted": {
			reason: "it may have been the yardstick", configs: list(config(t, "b"), config(t, "c")),
			of: map[string]string{}, concerned: map[string][]string{"a": {"a", "b", "c"}, "d": {"d"}},
		},
		"one of another namespace": {
			reason: "it does not count", configs: list(elsewhere, config(t, "b"), config(t, "c")),
			of: map[string]string{"b": "", "c": "b"}, concerned: map[string][]string{"b": {"b", "c"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for of, want := range tc.of {
				got := ""
				if c := YardstickFor(of, tc.configs, DefaultSettings()); c != nil {
					got = c.GetName()
				}
				if got != want {
					t.Errorf("%s: %s is compared with %q, want %q", tc.reason, of, got, want)
				}
			}
			for changed, want := range tc.concerned {
				if diff := cmp.Diff(want, Concerned(changed, tc.configs, DefaultSettings())); diff != "" {
					t.Errorf("%s: a change of %s (-want +got):\n%s", tc.reason, changed, diff)
				}
			}
		})
	}
}

// play is a set of clusters with their KubevirtConfigs, whose changes of status
// are events, as they are on an API server.
type play struct {
	configs map[string]*unstructured.Unstructured
	sights  map[string]Sight
	events  []string
	writes  int
	now     time.Time
}

func (p *play) list() []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, c := range p.configs {
		all = append(all, *c)
	}
	return all
}

// reconcile is what the runtime does with one key.
func (p *play) reconcile(name string, d Definitions) {
	c := p.configs[name]
	if c == nil {
		return
	}
	in := Input{Settings: DefaultSettings(), Config: c, Definitions: d, Sight: p.sights[name]}
	if with := YardstickFor(name, p.list(), in.Settings); with != nil {
		sight := p.sights[with.GetName()]
		in.Yardstick = &sight
	}
	p.now = p.now.Add(time.Minute)
	status := Conclude(p.now, in, nil, nil).Status
	if cmp.Equal(c.Object["status"], any(status)) {
		return
	}
	written := c.DeepCopy()
	written.Object["status"] = status
	p.configs[name] = written
	p.writes++
	p.events = append(p.events, name)
}

// TestTheCircleOfStatusesEnds: whatever the clusters show, and whichever event
// comes first, the statuses come to rest after few writes, and then speak of
// the first cluster by name whose versions can be read.
func TestTheCircleOfStatusesEnds(t *testing.T) {
	d := definitions(t)
	shows := map[string]func(string) Sight{
		"v1":       func(name string) Sight { return healthy(t, name) },
		"v1alpha3": func(name string) Sight { s := healthy(t, name); s.Stored["virtualmachines"] = "v1alpha3"; return s },
		"gone":     func(name string) Sight { return Sight{Cluster: name, Unreachable: gone("EOF")} },
		"refused": func(name string) Sight {
			s := healthy(t, name)
			s.Stored, s.StoredRefused = nil, forbidden("get x")
			return s
		},
		"empty": func(name string) Sight { return Sight{Cluster: name} },
	}
	kinds := []string{"empty", "gone", "refused", "v1", "v1alpha3"}
	rapid.Check(t, func(rt *rapid.T) {
		p := &play{configs: map[string]*unstructured.Unstructured{}, sights: map[string]Sight{}, now: noon}
		n := rapid.IntRange(1, 5).Draw(rt, "clusters")
		shown := map[string]string{}
		for i := range n {
			name := fmt.Sprintf("c%d", i)
			p.configs[name] = config(t, name)
		}
		for range rapid.IntRange(1, 3).Draw(rt, "upheavals") {
			for i := range n {
				name := fmt.Sprintf("c%d", i)
				shown[name] = rapid.SampledFrom(kinds).Draw(rt, name)
				p.sights[name] = shows[shown[name]](name)
				p.events = append(p.events, name) // each is looked at, as by a resync
			}
			p.writes = 0
			for steps := 0; len(p.events) > 0; steps++ {
				if steps > 20*n*n {
					rt.Fatalf("after %d events there is no rest: %v", steps, shown)
				}
				i := rapid.IntRange(0, len(p.events)-1).Draw(rt, "next")
				name := p.events[i]
				p.events = slices.Delete(p.events, i, i+1)
				for _, key := range Concerned(name, p.list(), DefaultSettings()) {
					p.reconcile(key, d)
				}
			}
			if p.writes > 4*n {
				rt.Errorf("%d statuses were written for %d clusters: %v", p.writes, n, shown)
			}
			p.judge(rt, n, shown)
		}
	})
}

// judge compares what the statuses say with what a look at all clusters at once
// finds.
func (p *play) judge(t *rapid.T, n int, shown map[string]string) {
	first := ""
	for i := range n {
		name := fmt.Sprintf("c%d", i)
		want := "Unknown"
		if versions := shown[name]; versions == "v1" || versions == "v1alpha3" {
			if first == "" {
				first = versions
			}
			want = "True"
			if versions != first {
				want = "False"
			}
		}
		if got := find(p.configs[name], "VersionsMatch").Status; got != want {
			t.Errorf("the clusters show %v, and VersionsMatch of %s is %s, want %s", shown, name, got, want)
		}
	}
}
