package kind

import (
	"slices"
	"testing"
)

func TestWithoutLeavesTheResourceItCameFrom(t *testing.T) {
	base := Resource{Kind: "Gadget", Dropped: append(make([]string, 0, 8), "metadata.managedFields")}
	one, other := base.Without("spec"), base.Without("status", "metadata.annotations")
	for name, c := range map[string]struct {
		reason    string
		got, want []string
	}{
		"base":  {"the resource itself goes on keeping its fields", base.Dropped, []string{"metadata.managedFields"}},
		"one":   {"what was let go of before stays so", one.Dropped, []string{"metadata.managedFields", "spec"}},
		"other": {"two from one resource share no memory", other.Dropped, []string{"metadata.managedFields", "status", "metadata.annotations"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %s: got %v, expected %v", name, c.reason, c.got, c.want)
		}
	}
}
