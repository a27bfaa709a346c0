package decide

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
)

// definitions are networks of the pool's namespace; one whose name begins with ! is
// the default.
func definitions(t testing.TB, names ...string) []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, name := range names {
		plain := strings.TrimPrefix(name, "!")
		obj := object(t, `{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {namespace: team, name: "`+plain+`"}}`)
		if plain != name {
			dockyards.SetLabels(obj, map[string]string{"kubevirt.dockyards.io/network-as-default": "false"})
		}
		all = append(all, *obj)
	}
	return all
}

func TestMachinesJoinTheNetworksOfTheirNamespace(t *testing.T) {
	cases := map[string]struct {
		multus bool
		names  []string
		want   string
	}{
		"multus is off":            {false, []string{"blue"}, "default=pod"},
		"no networks":              {true, nil, "default=pod"},
		"in the order of names":    {true, []string{"red", "blue"}, "default=pod blue=team/blue red=team/red"},
		"one takes the pod's":      {true, []string{"red", "!blue"}, "blue=team/blue! red=team/red"},
		"a dot is no interface's":  {true, []string{"a.b"}, "default=pod a-b=team/a.b"},
		"two become one":           {true, []string{"a.b", "a-b"}, "default=pod a-b=team/a-b a-b-2e7336=team/a.b"},
		"one called default":       {true, []string{"default"}, "default=pod default-37a8ee=team/default"},
		"default without the pod":  {true, []string{"!default"}, "default=team/default!"},
		"two with dots become one": {true, []string{"a.b-c", "a-b.c"}, "default=pod a-b-c-fb187e=team/a-b.c a-b-c-ab8bb2=team/a.b-c"},
	}
	for name, tc := range cases {
		w := newWorld(t, true)
		w.in.Settings.Multus, w.in.Networks = tc.multus, definitions(t, tc.names...)
		v := look(now, w.in, nil)
		var got []string
		for _, n := range v.machine.nics {
			to := n.Definition
			if to == "" {
				to = "pod"
			}
			if n.Default {
				to += "!"
			}
			got = append(got, n.Name+"="+to)
		}
		if fmt.Sprint(got) != "["+tc.want+"]" {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}

func TestNetworksThatCannotBeSeenAreNoneThatWent(t *testing.T) {
	w := newWorld(t, true)
	w.in.Settings.Multus, w.in.Networks = true, definitions(t, "blue")
	w.rest()
	w.in.Networks, w.in.NetworksNotServed = nil, true
	if writes, _, _ := w.rest(); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}
	w.is("KubevirtMachineTemplateReconciled", "True Reconciled: NetworkAttachmentDefinitions are not served: no further network is attached")
	w = newWorld(t, true)
	w.in.Settings.Multus, w.in.NetworksNotServed = true, true
	if writes, _, _ := w.rest(); len(writes) != 3 {
		t.Errorf("a new pool gets its machines all the same: %v", writes)
	}
}
