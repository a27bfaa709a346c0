package decide

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// pendingCreation is how long a creation that was not seen yet may still be under way.
const pendingCreation = 2 * time.Second

// change is a drift as the gate looks at it.
type change struct {
	// live is nil for an object that is not there.
	live  *unstructured.Unstructured
	paths []Difference
	// opposed tells that somebody undid a write of ours.
	opposed bool
}

// ruling is what the gate says.
type ruling struct {
	// write tells that the object may be written now.
	write bool
	// throttled, or paused for a reason.
	throttled bool
	paused    string
}

// settle looks at what became of the last write: one whose object has moved on since
// was made, whoever moved it.
func (r *Record) settle(live *unstructured.Unstructured, now time.Time) {
	n := len(r.Writes)
	if n == 0 || r.Writes[n-1].Done {
		return
	}
	last := &r.Writes[n-1]
	switch {
	case last.Base != baseOf(live):
		last.Done = true
	case last.Base == absent && now.Sub(last.At) > pendingCreation:
		// Made and deleted again, or never made: so that deletions cannot go on for
		// ever it counts.
		last.Done = true
	}
}

// pending tells that the write which is about to be made was recorded before, by a
// call that did not get further, or by another copy.
func (r *Record) pending(live *unstructured.Unstructured) bool {
	n := len(r.Writes)
	return n > 0 && !r.Writes[n-1].Done && r.Writes[n-1].Base == baseOf(live)
}

// gate decides whether a drift may be written now, and records what it decides: a
// write, an opposition, or a pause.
func (r *Record) gate(now time.Time, s Settings, c change) ruling {
	if r.pending(c.live) {
		return ruling{write: true}
	}
	r.forget(now, s)
	fresh := false
	if c.opposed {
		fresh = r.oppose(now, s, c)
	}
	if c.opposed && s.SlowCount > 0 && len(r.Oppositions) >= s.SlowCount {
		reason := fmt.Sprintf("it was changed back %d times within %s", len(r.Oppositions), s.SlowWindow)
		r.pause(now, c, reason)
		return ruling{paused: reason}
	}
	if next, ok := r.room(now, s); !ok {
		r.Next = &next
		if fresh {
			r.Throttles++
		}
		if r.Throttles >= s.PauseAfter {
			reason := fmt.Sprintf("it was changed back %d times more than %d writes within %s can answer", r.Throttles, s.Capacity, s.Window)
			r.pause(now, c, reason)
			return ruling{paused: reason}
		}
		return ruling{throttled: true}
	}
	r.Next, r.Throttles = nil, 0
	r.Writes = append(r.Writes, Write{At: stamp(now), Base: baseOf(c.live), First: r.Desired == "", Paths: pathsOf(c.paths)})
	return ruling{write: true}
}

// room reports whether the budget allows a write, and else when it will.
func (r *Record) room(now time.Time, s Settings) (time.Time, bool) {
	var counted []time.Time
	for _, write := range r.Writes {
		if !write.First && write.At.After(now.Add(-s.Window)) {
			counted = append(counted, write.At)
		}
	}
	if len(counted) < s.Capacity {
		return time.Time{}, true
	}
	return counted[len(counted)-s.Capacity].Add(s.Window), false
}

// oppose records an opposition, unless it is the one that was recorded last: the same
// event may come again, and a throttled object is looked at often.
func (r *Record) oppose(now time.Time, _ Settings, c change) bool {
	seen := absent + "/" + r.UID
	if c.live != nil {
		values := map[string]any{}
		for _, d := range c.paths {
			values[d.Path] = d.Have
		}
		seen = string(c.live.GetUID()) + "/" + hash(values)
	}
	if n := len(r.Writes); n > 0 {
		seen += "@" + r.Writes[n-1].At.Format(time.RFC3339Nano)
	}
	if n := len(r.Oppositions); n > 0 && r.Oppositions[n-1].Seen == seen {
		return false
	}
	r.Oppositions = append(r.Oppositions, Opposition{At: stamp(now), Seen: seen, Manager: c.opponent()})
	return true
}

func (c change) opponent() string {
	if c.live == nil {
		return ""
	}
	paths := make([]fieldpath.Path, 0, len(c.paths))
	for _, d := range c.paths {
		paths = append(paths, d.owner)
	}
	return opponent(c.live, paths)
}

// pause stops enforcement until somebody resumes it.
func (r *Record) pause(now time.Time, c change, reason string) {
	r.Pause = &Pause{At: stamp(now), Reason: reason, Opponent: c.opponent(), Deleted: c.live == nil}
	if c.live != nil {
		r.Pause.UID = string(c.live.GetUID())
	}
	r.Next = nil
	r.Episodes++
}

// resume begins anew: a fresh budget, and nobody has opposed yet.
func (r *Record) resume() {
	r.Pause, r.Writes, r.Oppositions, r.Throttles, r.Next, r.Desired = nil, nil, nil, 0, nil, ""
}

// resumed reports whether a recorded pause is over, as far as the live object tells.
func (r *Record) resumed(live *unstructured.Unstructured) bool {
	switch {
	case r.Pause == nil || live == nil || isPaused(live):
		return false
	case r.Pause.Deleted || r.Pause.ByHand:
		return true
	}
	return r.Pause.Annotated && r.Pause.UID == string(live.GetUID())
}

func isPaused(live *unstructured.Unstructured) bool {
	return live != nil && live.GetAnnotations()[AnnotationPaused] == "true"
}

// forget drops what is too old to matter.
func (r *Record) forget(now time.Time, s Settings) {
	oldest := now.Add(-max(s.SlowWindow, s.Window))
	r.Oppositions = slices.DeleteFunc(slices.Clone(r.Oppositions), func(o Opposition) bool { return !o.At.After(oldest) })
	writes := slices.DeleteFunc(slices.Clone(r.Writes), func(w Write) bool { return w.Done && !w.At.After(now.Add(-s.Window)) })
	r.Writes = writes[max(0, len(writes)-2*s.Capacity-1):]
}

// stamp is a time as it survives being written down.
func stamp(now time.Time) time.Time { return now.UTC().Truncate(time.Millisecond) }

func pathsOf(differences []Difference) []string {
	var out []string
	for i, d := range differences {
		if i == 5 {
			return append(out, fmt.Sprintf("and %d more", len(differences)-i))
		}
		out = append(out, d.Path)
	}
	return out
}
