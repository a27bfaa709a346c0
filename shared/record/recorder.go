package record

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// waiting is how many recordings may wait to be written: more are dropped.
	waiting = 64
	// stopTimeout bounds how long a stopping process goes on writing.
	stopTimeout = 5 * time.Second
)

// What becomes of recordings, for the counter.
const (
	// Kept is one that every sink took.
	Kept = "kept"
	// Cut is one that was too large: what was read is missing.
	Cut = "cut"
	// Dropped is one that is lost.
	Dropped = "dropped"
)

// Sink keeps the text of a recording under its id.
type Sink interface {
	Keep(ctx context.Context, id string, text []byte) error
}

// Recorder writes recordings in the background. A nil Recorder keeps nothing.
type Recorder struct {
	Policy
	// Count is told what became of each; may be nil.
	Count func(result string)

	sinks []Sink
	log   *slog.Logger
	queue chan func() *Recording
	done  chan struct{}

	mu      sync.Mutex
	started bool
	closed  bool
}

// New makes a recorder.
func New(policy Policy, log *slog.Logger, sinks ...Sink) *Recorder {
	return &Recorder{Policy: policy, sinks: sinks, log: log, queue: make(chan func() *Recording, waiting), done: make(chan struct{})}
}

// FromEnvironment makes a function's recorder as the settings say; nil if it is to
// keep nothing.
func FromEnvironment(function string, lookup func(string) (string, bool), log *slog.Logger) (*Recorder, error) {
	get := func(name string) string { value, _ := lookup(name); return strings.TrimSpace(value) }
	dir, archive := get("SLIPWAY_RECORD_DIR"), get("SLIPWAY_RECORD_ARCHIVE")
	policy, err := ParsePolicy(lookup)
	if err != nil {
		return nil, err
	}
	keep, err := number(get, "SLIPWAY_RECORD_KEEP", defaultKeep, 1_000_000)
	if err != nil {
		return nil, err
	}
	var sinks []Sink
	if dir != "" {
		sinks = append(sinks, &Directory{Path: dir, Function: function, Most: keep})
	}
	if archive != "" {
		u, err := url.Parse(archive)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("environment variable SLIPWAY_RECORD_ARCHIVE is no URL: write one like http://event-archive.slipway-system.svc.cluster.local/recordings")
		}
		sinks = append(sinks, NewArchive(archive))
	}
	if len(sinks) == 0 || policy.Off {
		return nil, nil
	}
	return New(policy, log, sinks...), nil
}

// Keep takes a recording, which build returns, and writes it later. It does not wait.
func (r *Recorder) Keep(build func() *Recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.count(Dropped)
		return
	}
	if !r.started {
		r.started = true
		go r.work()
	}
	select {
	case r.queue <- build:
	default:
		r.count(Dropped)
	}
}

// Close writes what waits, for a few seconds at most.
func (r *Recorder) Close(ctx context.Context) {
	if r == nil {
		return
	}
	r.mu.Lock()
	started, closed := r.started, r.closed
	r.closed = true
	if !closed {
		close(r.queue)
	}
	r.mu.Unlock()
	if !started {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	select {
	case <-r.done:
	case <-ctx.Done():
		r.log.Warn("the last recordings are lost", "error", "their sink is too slow")
	}
}

func (r *Recorder) work() {
	defer close(r.done)
	for build := range r.queue {
		r.write(build)
	}
}

// write never panics: a recording is not worth a process.
func (r *Recorder) write(build func() *Recording) {
	defer func() {
		if cause := recover(); cause != nil {
			r.lose("", fmt.Errorf("cannot write it: %v", cause))
		}
	}()
	recording := build()
	text, cut, err := r.bounded(recording)
	if err != nil {
		r.lose(recording.Header.ID, err)
		return
	}
	for _, sink := range r.sinks {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		err := sink.Keep(ctx, recording.Header.ID, text)
		cancel()
		if err != nil {
			r.lose(recording.Header.ID, err)
			return
		}
	}
	if cut {
		r.count(Cut)
		return
	}
	r.count(Kept)
}

// bounded is the text of a recording; of one that is too large, what was read and
// what was answered is left out first, then what was decided.
func (r *Recorder) bounded(recording *Recording) (text []byte, cut bool, err error) {
	if text, err = recording.Encode(); err != nil || len(text) <= r.MaxBytes {
		return text, false, err
	}
	recording.Header.Cut = fmt.Sprintf("the recording has %d bytes, %d are allowed (SLIPWAY_RECORD_MAX_BYTES): what was read is left out", len(text), r.MaxBytes)
	recording.Reads, recording.Mapping = nil, nil
	for i := range recording.Calls {
		recording.Calls[i].Answer = nil
	}
	if text, err = recording.Encode(); err != nil || len(text) <= r.MaxBytes {
		return text, true, err
	}
	recording.Header.Cut += ", and what was decided"
	recording.Decisions, recording.Calls, recording.Conclusion, recording.Event = nil, nil, nil, nil
	text, err = recording.Encode()
	return text, true, err
}

func (r *Recorder) lose(id string, err error) {
	r.count(Dropped)
	r.log.Debug("recording lost", "recording", id, "error", err.Error())
}

func (r *Recorder) count(result string) {
	if r.Count != nil {
		r.Count(result)
	}
}
