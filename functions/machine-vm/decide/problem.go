package decide

import (
	"cmp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
)

// Part is the part of a Machine that a problem lies in. The first part with a
// problem decides the reason of condition Ready.
type Part int

// The parts, in their order.
const (
	PartPlacement Part = iota
	PartSpec
	PartSize
	PartNetwork
	PartStorage
	PartCloudInit
	PartVM
)

// Problem is why a Machine cannot be what it asks to be.
type Problem struct {
	Part Part
	// Reason is one of the error types, and the reason of condition Ready.
	Reason string
	// Message names object, field and value, and the way out.
	Message string
	// Network is the network that the problem is about, if there is one.
	Network string
	// Waiting tells that something else is awaited: nobody has to change the
	// Machine.
	Waiting bool
}

// condition is the type of the condition that a problem turns False besides
// Ready; empty if there is none.
func (p Problem) condition() string {
	switch p.Part {
	case PartPlacement:
		return ""
	case PartNetwork:
		return v1alpha1.ConditionNetworkReady
	case PartStorage:
		return v1alpha1.ConditionStorageReady
	case PartCloudInit:
		if p.Waiting {
			return ""
		}
		return v1alpha1.ConditionVirtualMachineReady
	case PartSpec, PartSize, PartVM:
		return v1alpha1.ConditionVirtualMachineReady
	}
	return ""
}

// text is the message of the part's condition.
func (p Problem) text() string { return p.Reason + ": " + p.Message }

// inOrder sorts problems by part, those that need a person first within a part
// as they were found.
func inOrder(problems []Problem) []Problem {
	sorted := slices.Clone(problems)
	slices.SortStableFunc(sorted, func(a, b Problem) int { return cmp.Compare(a.Part, b.Part) })
	return sorted
}

// first is the problem that condition Ready speaks of: a terminal one before
// one that only waits. Nil if there is none.
func first(problems []Problem) *Problem {
	sorted := inOrder(problems)
	for i := range sorted {
		if !sorted[i].Waiting {
			return &sorted[i]
		}
	}
	if len(sorted) > 0 {
		return &sorted[0]
	}
	return nil
}

// invalid is the problem of a spec that can never work.
func invalid(part Part, message string) Problem {
	return Problem{Part: part, Reason: v1alpha1.ReasonInvalidSpec, Message: message}
}

// Limits of what people are told.
const (
	messageMax = 256
	failureMax = 1024
)

// quoted lists names for a message, sorted, the first few of them.
func quoted(names []string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	const shown = 4
	rest := ""
	if len(sorted) > shown {
		sorted, rest = sorted[:shown], " and others"
	}
	return `"` + strings.Join(sorted, `", "`) + `"` + rest
}
