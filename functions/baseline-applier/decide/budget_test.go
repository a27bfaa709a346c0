package decide

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

// war plays an opponent against a record, without a server: it edits at a pace, and
// every edit is looked at.
func war(t *testing.T, r *Record, s Settings, pace time.Duration, edits int) (pausedAt, corrected int) {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	version := 1
	live := func(value int) *unstructured.Unstructured {
		version++
		return object(t, fmt.Sprintf(`{metadata: {uid: u, resourceVersion: "%d"}, spec: {a: %d}}`, version, value))
	}
	r.UID, r.Desired = "u", "d"
	for i := 1; i <= edits; i++ {
		now = now.Add(pace)
		obj := live(i)
		differs := []Difference{{Path: "/spec/a", Have: fmt.Sprint(i)}}
		for range 3 { // deliveries come more than once
			r.settle(obj, now)
			ruling := r.gate(now, s, change{live: obj, paths: differs, opposed: true})
			if ruling.paused != "" {
				return i, corrected
			}
			if ruling.write {
				corrected++
				r.settle(live(0), now)
				break
			}
		}
	}
	return 0, corrected
}

func TestWars(t *testing.T) {
	cases := map[string]struct {
		reason              string
		pace                time.Duration
		paused, corrections int
	}{
		"EverySecond":    {"five corrections, three that are throttled", time.Second, 8, 5},
		"EveryFive":      {"the same", 5 * time.Second, 8, 5},
		"EveryThirteen":  {"slower than the budget: the hour finds it", 13 * time.Second, 12, 11},
		"EveryFour":      {"a GitOps tool that syncs every few minutes", 4 * time.Minute, 12, 11},
		"EveryTenthMinu": {"now and then is no war", 10 * time.Minute, 0, 60},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Record{}
			paused, corrected := war(t, r, DefaultSettings(), tc.pace, 60)
			if paused != tc.paused || corrected != tc.corrections {
				t.Errorf("%s: paused at edit %d, corrected %d times", tc.reason, paused, corrected)
			}
			if paused == 0 {
				return
			}
			r.resume()
			if again, corrected := war(t, r, DefaultSettings(), tc.pace, 60); again != tc.paused || corrected != tc.corrections {
				t.Errorf("after a resume: paused at edit %d, corrected %d times", again, corrected)
			}
		})
	}
}

func TestAWriteThatWasNotMadeCostsNothing(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &Record{UID: "u", Desired: "d"}
	live := object(t, `{metadata: {uid: u, resourceVersion: "1"}}`)
	for range 50 {
		r.settle(live, now)
		if !r.gate(now, DefaultSettings(), change{live: live, opposed: true}).write {
			t.Fatal("a write that fails again and again is throttled")
		}
		now = now.Add(time.Second)
	}
	if len(r.Writes) != 1 || len(r.Oppositions) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestAChangeOfTheBaselineIsNoOpposition(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &Record{UID: "u", Desired: "d"}
	throttled := 0
	for i := range 100 {
		live := object(t, fmt.Sprintf(`{metadata: {uid: u, resourceVersion: "%d"}}`, i))
		r.settle(live, now)
		ruling := r.gate(now, DefaultSettings(), change{live: live})
		if ruling.paused != "" {
			t.Fatal("a HyperConverged that changes often pauses what depends on it")
		}
		if ruling.throttled {
			throttled++
		}
		now = now.Add(time.Second)
	}
	if throttled == 0 {
		t.Error("nothing limits the writes")
	}
}

func TestTheRecordSurvivesBeingWrittenDown(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 123456789, time.UTC)
	next := stamp(now)
	s := State{Assets: map[string]Record{"a": {
		Object: "X a", Outcome: Throttled, Writes: []Write{{At: stamp(now), Base: "u/1", Done: true}}, Oppositions: []Opposition{{At: stamp(now), Seen: "x"}},
		Pause: &Pause{At: stamp(now)}, Next: &next, Patch: `[{"op":"test"}]`,
	}}, Tombstones: map[string]Tombstone{}, Platform: Platform{Hardware: map[string]string{}}}
	first := s.configMap("ns", nil)
	again := ReadState(first)
	if again.Lost != "" || !again.Assets["a"].equal(s.Assets["a"]) {
		t.Fatalf("lost: %q, %+v", again.Lost, again.Assets)
	}
	if a, b := encode(first.Object), encode(again.configMap("ns", nil).Object); a != b {
		t.Errorf("it is another text:\n%s\n%s", a, b)
	}
	if hardware := again.Platform.Hardware; hardware == nil {
		t.Error("no hardware is not told from unknown hardware")
	}
}

func TestResumeByHand(t *testing.T) {
	s := State{Assets: map[string]Record{"a": {Outcome: Paused, Pause: &Pause{Deleted: true}, UID: "u", Desired: "d"}}}
	memory := s.configMap("ns", nil)
	resumed, err := Resume(memory, "a")
	if err != nil {
		t.Fatal(err)
	}
	if r := ReadState(resumed).Assets["a"]; r.Pause != nil || r.UID != "" || r.Desired != "" {
		t.Errorf("%+v", r)
	}
	if _, err := Resume(memory, "b"); err == nil {
		t.Error("what is not paused is resumed")
	}
}

func TestOnlyOnesOwnFreshWriteIsLeftToTheCallThatMadeIt(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	live := func(ours, theirs string) *unstructured.Unstructured {
		return object(t, `{metadata: {uid: u, resourceVersion: "2", managedFields: [
			{manager: virt-platform-autopilot, operation: Apply, time: "2026-01-01T00:00:`+ours+`Z"}, {manager: argo, operation: Update, time: "2026-01-01T00:00:`+theirs+`Z"}]}}`)
	}
	pending := Record{Writes: []Write{{At: now.Add(-time.Second), Base: "u/1"}}}
	done, tried := pending, pending
	done.Writes = []Write{{At: now.Add(-time.Second), Base: "u/1", Done: true}}
	tried.Writes = []Write{{At: now.Add(-time.Second), Base: "u/2"}}
	for name, tc := range map[string]struct {
		record         Record
		live           *unstructured.Unstructured
		sent, received time.Time
		want           bool
	}{
		"Fresh": {pending, live("09", "08"), now, now, true}, "SomebodySince": {pending, live("08", "09"), now, now, false}, "SameSecond": {pending, live("09", "09"), now, now, false},
		"LongAgo": {pending, live("09", "08"), now, now.Add(time.Minute), false}, "SeenAlready": {done, live("09", "08"), now, now, false},
		"NotMadeYet": {tried, live("09", "08"), now, now, false}, "Gone": {pending, nil, now, now, false},
		"SentAgain": {pending, live("09", "08"), now.Add(-2 * time.Second), now, false},
	} {
		if got := tc.record.Settling(tc.live, tc.sent, tc.received); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAWriteWithoutEffectIsNotRepeatedForEver(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := &looker{now: now, in: Input{Settings: DefaultSettings()}}
	live := object(t, `{metadata: {uid: u, resourceVersion: "1", managedFields: [
		{manager: virt-platform-autopilot, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:a": {}}}}]}, spec: {a: 2}}`)
	desired := object(t, `{spec: {a: 1}}`)
	differs := Differences(desired, live, catalog.Asset{})
	f := Finding{Live: live, Desired: desired, Record: Record{UID: "u", Desired: hash(desired.Object)}}
	look := func() Outcome {
		f.Record.settle(live, l.now)
		f.Entries, f.Continue = nil, false
		f = l.differing(f, differs)
		return f.Record.Outcome
	}
	for i := range maxVain {
		if got := look(); got != Drifted || len(f.Entries) != 1 {
			t.Fatalf("look %d: %s", i, got)
		}
	}
	for range 3 {
		if got := look(); got != Rewritten || len(f.Entries) != 0 || len(f.Record.Oppositions) > 0 || !f.Record.Writes[0].Done {
			t.Fatalf("%s: %+v", got, f.Record)
		}
	}
	l.now = now.Add(2 * time.Hour)
	if got := look(); got != Drifted {
		t.Errorf("it is never tried again: %s", got)
	}
	if got := look(); got != Rewritten {
		t.Errorf("it is tried more than once: %s", got)
	}
	live.SetManagedFields(nil)
	if got := look(); got != Drifted || f.Record.Vain != 0 {
		t.Errorf("somebody else has changed it: %s", got)
	}
}
