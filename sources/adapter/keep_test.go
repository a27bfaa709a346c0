package adapter

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPresence(t *testing.T) {
	p := &presence{}
	var got []string
	for _, reached := range []bool{false, true, true, false, false, true, false, false, false, false, true} {
		got = append(got, p.observe(reached))
	}
	want := []string{"", TypeConnected, "", "", "", "", "", "", TypeDisconnected, "", TypeConnected}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a cluster is gone after three failures in a row and back at once (-want +got):\n%s", diff)
	}
}

// kept is a remote cluster that a keeper looks after, without the cluster.
type kept struct {
	*keeper
	mu       sync.Mutex // the detector does not know what passing time orders
	away     bool
	deaf     bool // the sink takes nothing
	running  int
	lost     func()
	started  time.Time
	said     []string
	cancel   context.CancelCauseFunc
	finished chan struct{}
}

// keep runs a keeper in a bubble of its own.
func keep(t *testing.T, away bool, test func(t *testing.T, k *kept)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{away: away, started: time.Now(), finished: make(chan struct{})}
		seconds := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }
		k.keeper = &keeper{
			settings: Remote{Heartbeat: seconds(10), Timeout: seconds(5)}, log: silentLog, begun: make(chan struct{}),
			probe: func(context.Context) error {
				defer k.lock()()
				if k.away {
					return errors.New("connection refused")
				}
				return nil
			},
			send: func(_ context.Context, eventType string) error {
				defer k.lock()()
				if k.deaf {
					return errors.New("the sink takes nothing")
				}
				k.said = append(k.said, eventType+" at "+time.Since(k.started).String())
				return nil
			},
			watch: func(ctx context.Context, begun chan<- struct{}, lost func()) {
				k.count(1, lost)
				defer k.count(-1, lost)
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Second):
				}
				close(begun)
				<-ctx.Done()
			},
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		k.cancel = cancel
		go func() { defer close(k.finished); k.run(ctx) }()
		test(t, k)
		cancel(nil)
		<-k.finished
		if k.watches() != 0 {
			t.Errorf("%d watches outlived the keeper", k.watches())
		}
	})
}

func (k *kept) lock() (unlock func()) {
	k.mu.Lock()
	return k.mu.Unlock
}

func (k *kept) count(change int, lost func()) {
	defer k.lock()()
	k.running += change
	k.lost = lost
}

// set changes the world of the keeper.
func (k *kept) set(away, deaf bool) {
	defer k.lock()()
	k.away, k.deaf = away, deaf
}

func (k *kept) watches() int {
	defer k.lock()()
	return k.running
}

// after lets time pass and compares what the sink was told.
func (k *kept) after(t *testing.T, pass time.Duration, reason string, want ...string) {
	t.Helper()
	time.Sleep(pass)
	synctest.Wait()
	defer k.lock()()
	if diff := cmp.Diff(want, k.said); diff != "" {
		t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
	k.said = nil
}

func TestAClusterIsConnectedOnceItIsWatched(t *testing.T) {
	keep(t, false, func(t *testing.T, k *kept) {
		k.after(t, 500*time.Millisecond, "its watches have not begun")
		k.after(t, time.Minute, "they have", TypeConnected+" at 1s")
	})
}

func TestAClusterThatGoesAndComesIsWatchedAgain(t *testing.T) {
	keep(t, true, func(t *testing.T, k *kept) {
		k.after(t, time.Hour, "a cluster that was never there is not gone")
		if k.watches() != 0 {
			t.Error("a cluster that is not there is watched")
		}
		k.set(false, false)
		k.after(t, 15*time.Second, "it has come", TypeConnected+" at 1h0m11s")
		k.set(true, false)
		k.after(t, 20*time.Second, "two failures are no reason")
		k.after(t, 15*time.Second, "three are", TypeDisconnected+" at 1h0m40s")
		if k.watches() != 0 {
			t.Error("a cluster that is gone is still watched")
		}
		k.set(false, false)
		k.after(t, 20*time.Second, "it is back", TypeConnected+" at 1h1m1s")
	})
}

func TestAWatchThatStartedOverIsAnnouncedOncePerHeartbeat(t *testing.T) {
	keep(t, false, func(t *testing.T, k *kept) {
		k.after(t, 5*time.Second, "it has come", TypeConnected+" at 1s")
		unlock := k.lock()
		k.lost()
		k.lost()
		unlock()
		k.after(t, time.Minute, "what changed in the gap gave no event", TypeConnected+" at 10s")
	})
}

func TestAnAnnouncementThatDoesNotArriveIsRepeated(t *testing.T) {
	keep(t, false, func(t *testing.T, k *kept) {
		k.set(false, true)
		k.after(t, 25*time.Second, "nobody listens")
		k.set(false, false)
		k.after(t, time.Minute, "somebody does again", TypeConnected+" at 30s")
	})
}

func TestOnlyAClusterThatIsTakenAwayIsDisconnected(t *testing.T) {
	for reason, tc := range map[string]struct {
		cause error
		want  []string
	}{
		"replaced or shut down": {cause: nil},
		"taken away":            {cause: errRemoved, want: []string{TypeDisconnected + " at 5s"}},
	} {
		keep(t, false, func(t *testing.T, k *kept) {
			k.after(t, 5*time.Second, "it has come", TypeConnected+" at 1s")
			k.cancel(tc.cause)
			<-k.finished
			if diff := cmp.Diff(tc.want, k.said); diff != "" {
				t.Errorf("%s (-want +got):\n%s", reason, diff)
			}
		})
	}
}
