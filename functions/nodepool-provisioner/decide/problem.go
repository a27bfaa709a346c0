package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/fault"
)

// messageMax is the length of the longest message of a condition.
const messageMax = 256

// problem is why a part of a pool is not as it shall be.
type problem struct {
	reason, message string
	// terminal: somebody has to change something. retry: the same call may work
	// later. Neither: something else is awaited, and wakes us.
	terminal, retry bool
}

// verdict is what there is to say about one part of a pool: the first problem, or
// else that all is well, with notes.
type verdict struct {
	problems []problem
	notes    []string
}

func (d *verdict) add(p problem) { d.problems = append(d.problems, p) }

func (d *verdict) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

func (d *verdict) bad() bool { return len(d.problems) > 0 }

// waiting is the problem that something else is awaited.
func waiting(reason, format string, args ...any) problem {
	return problem{reason: reason, message: fmt.Sprintf(format, args...)}
}

// invalid is the problem of a spec that can never work.
func invalid(format string, args ...any) problem {
	return problem{reason: v1alpha3.ReasonInvalidSpec, message: fmt.Sprintf(format, args...), terminal: true}
}

// taken is the problem that somebody else has an object of the wanted name.
func taken(kindName, name string) problem {
	return problem{
		reason: v1alpha3.ReasonNameConflict, terminal: true,
		message: fmt.Sprintf("%s %q belongs to somebody else: rename the pool, or remove the other", kindName, name),
	}
}

// failed is the problem of a call that a server did not carry out. Its text is the
// same at every attempt: what a broken connection says is not.
func failed(f fault.Fault) problem {
	if f.Class == fault.Unavailable {
		f.Message = "the API server did not answer"
	}
	return problem{reason: v1alpha3.ReasonErrorReconciling, message: f.Error(), retry: f.Class != fault.NotServed}
}

// quoted lists names for a message, sorted, the first few of them.
func quoted(names []string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	const shown = 3
	rest := ""
	if len(sorted) > shown {
		sorted, rest = sorted[:shown], " and others"
	}
	return `"` + strings.Join(sorted, `", "`) + `"` + rest
}
