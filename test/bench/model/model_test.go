package model

import (
	"testing"
	"time"
)

// local is the machine of docs/scale.md with worktree-mirror.
var local = System{
	Source: 2 * time.Millisecond, Broker: 2 * time.Millisecond, Slots: 20, Own: time.Millisecond,
	Processors: 2, Reads: 4, Writes: 2, Echoes: 2, EchoReads: 4, Read: time.Millisecond, Write: 3 * time.Millisecond, Objects: 1000,
}

func TestWhatIsFarBelowItsLimitTakesNoLongerThanItsStations(t *testing.T) {
	r := local.Run(1, 10*time.Minute, 1)
	alone := local.Source + local.Broker + local.Own + 10*time.Millisecond
	if r.P50 != alone {
		t.Errorf("half of the changes took %s at most, want %s", r.P50, alone)
	}
	if want := r.Changes * 3; r.Handled > want || r.Handled < want*98/100 {
		t.Errorf("%d changes were handled as %d events, want about %d", r.Changes, r.Handled, want)
	}
}

func TestTheLowestLimitIsWhereTheSimulationBreaks(t *testing.T) {
	limit := local.Limits()[0]
	if limit.Station != OneObject && limit.Station != "API server" {
		t.Fatalf("%s breaks first", limit.Station)
	}
	for _, l := range local.Limits() {
		if l.Station == "API server" {
			limit = l
		}
	}
	if below := local.Run(limit.Rate*.7, time.Minute, 1); below.P99 > time.Second {
		t.Errorf("at 70 %% of the limit a change takes %s", below.P99)
	}
	if beyond := local.Run(limit.Rate*1.5, time.Minute, 1); beyond.P50 < time.Second {
		t.Errorf("at 150 %% of the limit a change takes %s only", beyond.P50)
	}
}

func TestChangesOfOneObjectAreTakenTogether(t *testing.T) {
	one := local
	one.Objects, one.Echoes = 1, 0
	r := one.Run(400, 10*time.Second, 1)
	if r.P99 > 200*time.Millisecond || r.Handled > r.Changes/2 {
		t.Errorf("%d changes of one object were handled as %d events and took %s", r.Changes, r.Handled, r.P99)
	}
}

func TestASourceSendsOneAfterTheOther(t *testing.T) {
	slow := local
	slow.Source = 20 * time.Millisecond
	if got := slow.Limits()[0]; got.Station != "source, one kind" || got.Rate != 50 {
		t.Errorf("the lowest limit is %v", got)
	}
	if r := slow.Run(75, 30*time.Second, 1); r.P50 < time.Second {
		t.Errorf("a source that is asked for more than it can send delays by %s only", r.P50)
	}
}
