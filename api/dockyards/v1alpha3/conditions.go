package v1alpha3

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FindCondition is the first condition of a type, or nil.
func FindCondition(conds []metav1.Condition, conditionType string) *metav1.Condition {
	i := slices.IndexFunc(conds, func(c metav1.Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &conds[i]
}

// IsConditionTrue tells whether there is a condition of a type and it is True.
func IsConditionTrue(conds []metav1.Condition, conditionType string) bool {
	c := FindCondition(conds, conditionType)
	return c != nil && c.Status == metav1.ConditionTrue
}

// SetCondition is the list with one condition set. Its place in the list stays,
// or is the end; further entries of its type go, those of other types are kept
// as they are. The list that is passed in is not changed.
//
// lastTransitionTime is now if status, reason or message are others than before
// or had no time yet, and what it was otherwise: whatever c carries there is
// ignored. It is cut to seconds, as an API server stores it, so that a stored
// list and a newly made one can be compared.
func SetCondition(conds []metav1.Condition, c metav1.Condition, now metav1.Time) []metav1.Condition {
	c.LastTransitionTime = now.Rfc3339Copy()
	old := FindCondition(conds, c.Type)
	if old == nil {
		return append(slices.Clone(conds), c)
	}
	same := old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message
	if same && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	out := make([]metav1.Condition, 0, len(conds))
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
func RemoveCondition(conds []metav1.Condition, conditionType string) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conds), func(c metav1.Condition) bool { return c.Type == conditionType })
}
