package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FindCondition is the first condition of a type, or nil.
func FindCondition(conds []MachineCondition, conditionType string) *MachineCondition {
	i := slices.IndexFunc(conds, func(c MachineCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &conds[i]
}

// SetCondition is the list with one condition set. Its place in the list stays,
// or is the end; further entries of its type go, those of other types are kept
// as they are. The list that is passed in is not changed.
//
// lastTransitionTime is now if the status is another than before or had no time
// yet, and what it was otherwise: whatever c carries there is ignored. It is cut
// to seconds, as an API server stores it, so that a stored list and a newly made
// one can be compared.
func SetCondition(conds []MachineCondition, c MachineCondition, now metav1.Time) []MachineCondition {
	c.LastTransitionTime = now.Rfc3339Copy()
	old := FindCondition(conds, c.Type)
	if old == nil {
		return append(slices.Clone(conds), c)
	}
	if old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	out := make([]MachineCondition, 0, len(conds))
	placed := false
	for _, have := range conds {
		switch {
		case have.Type != c.Type:
			out = append(out, have)
		case !placed:
			out = append(out, c)
			placed = true
		}
	}
	return out
}

// RemoveCondition is the list without the conditions of a type. The list that is
// passed in is not changed.
func RemoveCondition(conds []MachineCondition, conditionType string) []MachineCondition {
	return slices.DeleteFunc(slices.Clone(conds), func(c MachineCondition) bool { return c.Type == conditionType })
}

// DropUpstreamUnknown is the list without the conditions of the type Unknown,
// which upstream wrote and nobody reads. The list that is passed in is not
// changed.
func DropUpstreamUnknown(conds []MachineCondition) []MachineCondition {
	return RemoveCondition(conds, ConditionTypeUpstreamUnknown)
}
