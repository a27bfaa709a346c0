package baseline

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/test/suite"
)

// fight lets an opponent edit at a pace until the object is paused, and tells at which
// edit it was, and how often it was corrected before.
func (s *scene) fight(f *suite.Copy, pace time.Duration, edits int) (pausedAt, corrected int) {
	for i := 1; i <= edits; i++ {
		s.pass(pace)
		s.edit("gitops", health, fmt.Sprintf(`{"spec":{"minHealthy":"%d%%"}}`, 1+i%40))
		// Deliveries come twice, and some tell no news.
		f.Insist(s.changed(health))
		f.Insist(s.changed(health))
		if s.value(health, "spec", "minHealthy") == "51%" {
			corrected++
		}
		if s.must(health).GetAnnotations()[decide.AnnotationPaused] == "true" {
			return i, corrected
		}
	}
	return 0, corrected
}

func TestAWarEndsInAPauseThatAPersonCanEnd(t *testing.T) {
	s := newScene(t, nil)
	f := s.run()
	f.Resync()
	for episode := 1; episode <= 2; episode++ {
		pausedAt, corrected := s.fight(f, time.Second, 30)
		if pausedAt < 6 || pausedAt > 15 || corrected < 5 {
			t.Fatalf("episode %d: paused at edit %d, corrected %d times\n%+v", episode, pausedAt, corrected, s.memory().Assets[health])
		}
		t.Logf("episode %d: corrected %d times, paused at edit %d", episode, corrected, pausedAt)
		notes := s.notes(decide.ReasonThrashingDetected)
		if len(notes) != episode || !strings.Contains(notes[0], "gitops") || !strings.Contains(notes[0], decide.AnnotationPaused) || !strings.Contains(notes[0], decide.AnnotationMode) {
			t.Errorf("the pause is told as %q", notes)
		}
		if r := s.memory().Assets[health]; r.Episodes != episode || r.Pause == nil || r.Pause.Opponent != "gitops" {
			t.Errorf("the record says %+v", r)
		}
		if got := grep(f.Metrics(), "virt_platform_thrashing_total"); !strings.Contains(got, fmt.Sprintf("} %d", episode)) {
			t.Errorf("the counter is %s", got)
		}
		// Nothing more happens, whatever wakes it, for as long as it takes.
		s.edit("gitops", health, `{"spec":{"minHealthy":"7%"}}`)
		f.Insist(s.changed(health)) // the report tells the difference
		s.pass(time.Hour)
		f.Rests(s.changed(health))
		if got := s.value(health, "spec", "minHealthy"); got != "7%" {
			t.Errorf("a paused object was written: %v", got)
		}
		s.annotate(health, decide.AnnotationPaused, "")
		f.Insist(s.changed(health))
		if got := s.value(health, "spec", "minHealthy"); got != "51%" {
			t.Fatalf("it did not resume: %v, %+v", got, s.memory().Assets[health])
		}
	}
	if n := s.told(health)[decide.ReasonThrottled]; n == 0 {
		t.Error("nobody was told that it is throttled")
	}
}

func TestThrottledWorkIsDoneLater(t *testing.T) {
	s := newScene(t, nil)
	f := s.begin(health)
	s.settings.PauseAfter = 100
	for i := range 6 {
		s.pass(time.Second)
		s.edit("gitops", health, fmt.Sprintf(`{"spec":{"minHealthy":"%d%%"}}`, 1+i))
		f.Insist(s.changed(health))
	}
	if got := s.value(health, "spec", "minHealthy"); got != "6%" || s.outcome(health) != decide.Throttled {
		t.Fatalf("it is %v, %s", got, s.outcome(health))
	}
	s.stays(f, s.changed(health)) // passes without a change count nothing
	s.pass(time.Minute)
	f.Resync()
	if got := s.value(health, "spec", "minHealthy"); got != "51%" {
		t.Errorf("it is %v: %+v", got, s.memory().Assets[health])
	}
}

func TestASlowWarIsFoundToo(t *testing.T) {
	for _, pace := range []time.Duration{5 * time.Second, 30 * time.Second, 4 * time.Minute} {
		t.Run(pace.String(), func(t *testing.T) {
			s := newScene(t, nil)
			f := s.begin(health)
			pausedAt, corrected := s.fight(f, pace, int(time.Hour/pace))
			if pausedAt == 0 || pausedAt > 13 {
				t.Errorf("an edit every %s for an hour: paused at %d, corrected %d times: %+v", pace, pausedAt, corrected, s.memory().Assets[health])
			}
			t.Logf("an edit every %s: corrected %d times, paused at edit %d", pace, corrected, pausedAt)
		})
	}
}

func TestAnEditNowAndThenIsNoWar(t *testing.T) {
	s := newScene(t, nil)
	f := s.begin(health)
	if pausedAt, corrected := s.fight(f, 10*time.Minute, 20); pausedAt != 0 || corrected != 20 {
		t.Errorf("paused at edit %d, corrected %d times", pausedAt, corrected)
	}
}

func TestAWarOfDeletionsEnds(t *testing.T) {
	s := newScene(t, nil)
	f := s.run()
	f.Resync()
	deleted := 0
	for range 30 {
		s.pass(time.Second)
		if s.live(health) == nil {
			break
		}
		s.Remove(asset(t, health).Resource(), asset(t, health).Object)
		deleted++
		f.Insist(s.event("delete", health))
		f.Insist(s.event("delete", health))
	}
	if s.live(health) != nil || deleted < 5 || deleted > 15 {
		t.Fatalf("it was deleted %d times: %+v", deleted, s.memory().Assets[health])
	}
	// It is throttled first; further looks are no oppositions, so it is made again when
	// there is room, and the war goes on until it is paused.
	for range 30 {
		s.pass(61 * time.Second)
		f.Resync()
		if s.live(health) == nil {
			break
		}
		s.Remove(asset(t, health).Resource(), asset(t, health).Object)
		f.Insist(s.event("delete", health))
	}
	r := s.memory().Assets[health]
	if r.Outcome != decide.Paused || r.Pause == nil || !r.Pause.Deleted {
		t.Fatalf("it is not paused: %+v", r)
	}
	if notes := s.notes(decide.ReasonThrashingDetected); len(notes) != 1 || !strings.Contains(notes[0], "create the object") {
		t.Errorf("how to resume is told as %q", notes)
	}
	s.pass(time.Hour)
	f.Rests(s.event("delete", health))
	// A person makes it again: that is the end of the pause.
	s.Create(`{apiVersion: remediation.medik8s.io/v1alpha1, kind: NodeHealthCheck, metadata: {name: virt-node-health-check}, spec: {selector: {}}}`)
	f.Insist(s.event("add", health))
	if got := s.value(health, "spec", "minHealthy"); got != "51%" || s.outcome(health) != decide.InSync {
		t.Errorf("it is %v, %s", got, s.outcome(health))
	}
}

// TestCopiesShareOneBudget: the same events reach four copies at once, each of which
// would have a budget of its own if it kept it to itself.
func TestCopiesShareOneBudget(t *testing.T) {
	s := newScene(t, nil)
	s.settings.SlowCount = 0
	copies := []*suite.Copy{s.run(), s.run(), s.run(), s.run()}
	copies[0].Insist(s.event("add", health))
	for _, f := range copies {
		f.Asked()
	}
	paused := 0
	for i := 1; i <= 30 && paused == 0; i++ {
		s.pass(time.Second)
		s.edit("gitops", health, fmt.Sprintf(`{"spec":{"minHealthy":"%d%%"}}`, 1+i%40))
		var wait sync.WaitGroup
		for _, f := range copies {
			wait.Go(func() { f.Insist(s.changed(health)) })
		}
		wait.Wait()
		if s.must(health).GetAnnotations()[decide.AnnotationPaused] == "true" {
			paused = i
		}
	}
	if paused < 6 || paused > 15 {
		t.Errorf("paused at edit %d: %+v", paused, s.memory().Assets[health])
	}
	applied := 0
	for _, f := range copies {
		for _, w := range writes(f) {
			if strings.HasPrefix(w, "apply nodehealthchecks") && strings.HasSuffix(w, " 200") {
				applied++
			}
		}
	}
	if applied > 5 {
		t.Errorf("%d corrections were made together", applied)
	}
	t.Logf("%d corrections of four copies, paused at edit %d", applied, paused)
	if n := len(s.notes(decide.ReasonThrashingDetected)); n != 1 {
		t.Errorf("the pause is told %d times", n)
	}
}
