package adapter

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// patience is how many answers in a row must fail before a cluster counts as gone.
const patience = 3

// keeper looks after one remote cluster, apart from all others: it asks it now and
// then whether it is there, watches it while it is, and tells the sink when that
// begins and ends.
//
//	unknown ──answer──► watching ──begun──► connected ──3 failures──► disconnected
//	                        ▲                                              │
//	                        └───────────────────answer─────────────────────┘
//
// The cluster counts as connected only once it is watched: whoever reads an object
// because of that event learns of every later change by an event. When a watch had
// to start over, what changed in its gap gave none; then the event is sent once more.
type keeper struct {
	settings Remote
	log      *slog.Logger
	// probe asks the cluster whether it is there.
	probe func(ctx context.Context) error
	// watch watches the cluster until ctx is done; it closes begun when that has
	// begun and calls lost when something may have been missed.
	watch func(ctx context.Context, begun chan<- struct{}, lost func())
	// send tells the sink of an event of the given type.
	send func(ctx context.Context, eventType string) error
	// begun is closed when the cluster is watched for the first time.
	begun chan struct{}

	state presence
	// stop ends what watches; nil if nothing does.
	stop func()
	// watching is closed when a watch that was started has begun; nil afterwards.
	watching <-chan struct{}
	// told is the type of the event that the sink got last, owed the one that it
	// should get.
	told, owed string
	missed     atomic.Bool
	failing    bool
}

// run looks after the cluster until ctx is done.
func (k *keeper) run(ctx context.Context) {
	defer k.leave(ctx)
	ticker := time.NewTicker(k.settings.Heartbeat.Duration)
	defer ticker.Stop()
	for ctx.Err() == nil {
		k.beat(ctx)
		if !k.rest(ctx, ticker.C) {
			return
		}
	}
}

// beat asks once and acts on the answer.
func (k *keeper) beat(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, k.settings.Timeout.Duration)
	err := k.probe(bounded)
	cancel()
	if ctx.Err() != nil {
		return
	}
	k.complain(err)
	switch k.state.observe(err == nil) {
	case TypeConnected:
		k.start(ctx)
	case TypeDisconnected:
		k.end()
		k.owed = TypeDisconnected
	case "":
		if k.missed.Swap(false) && k.told == TypeConnected {
			k.owed = TypeConnected
		}
	}
}

// rest waits for the next beat; false: there is none.
func (k *keeper) rest(ctx context.Context, next <-chan time.Time) bool {
	for {
		k.tell(ctx)
		select {
		case <-ctx.Done():
			return false
		case <-next:
			return true
		case <-k.watching:
			k.watching, k.owed = nil, TypeConnected
			select {
			case <-k.begun:
			default:
				close(k.begun)
			}
		}
	}
}

func (k *keeper) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	watching, ended := make(chan struct{}), make(chan struct{})
	k.missed.Store(false)
	go func() {
		defer close(ended)
		k.watch(ctx, watching, func() { k.missed.Store(true) })
	}()
	k.watching = watching
	k.stop = func() {
		cancel()
		<-ended
	}
}

// end stops watching.
func (k *keeper) end() {
	if k.stop == nil {
		return
	}
	k.stop()
	k.stop, k.watching = nil, nil
}

// tell sends the event that is owed. What cannot be sent now is tried again at the
// next beat.
func (k *keeper) tell(ctx context.Context) {
	if k.owed == "" || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.settings.Timeout.Duration)
	defer cancel()
	k.log.Info("a remote cluster came or went", "type", k.owed)
	if err := k.send(ctx, k.owed); err != nil {
		k.log.Warn("cannot announce a remote cluster", "error", err)
		return
	}
	k.told, k.owed = k.owed, ""
}

// leave ends everything. Of a cluster that was taken away, not replaced, the sink
// learns so: its kubeconfig may be gone while what stands for it is still there.
func (k *keeper) leave(ctx context.Context) {
	k.end()
	if k.told != TypeConnected || !errors.Is(context.Cause(ctx), errRemoved) {
		return
	}
	k.owed = TypeDisconnected
	k.tell(context.WithoutCancel(ctx))
}

// complain logs the first failure of a row.
func (k *keeper) complain(err error) {
	if err == nil {
		k.failing = false
		return
	}
	level := slog.LevelDebug
	if !k.failing {
		level = slog.LevelWarn
	}
	k.failing = true
	k.log.Log(context.Background(), level, "cannot reach a remote cluster", "error", short(err))
}

// presence is what is known of a remote cluster's being there.
type presence struct {
	connected bool
	failures  int
}

// observe takes one observation and returns the type of the event that it is
// worth, if any.
func (p *presence) observe(reached bool) string {
	if reached {
		p.failures = 0
		if p.connected {
			return ""
		}
		p.connected = true
		return TypeConnected
	}
	p.failures++
	if !p.connected || p.failures < patience {
		return ""
	}
	p.connected = false
	return TypeDisconnected
}
