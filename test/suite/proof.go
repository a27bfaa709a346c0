package suite

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/record"
)

const (
	// proofsPerCopy is how many reconciles of a copy are played again, proofsPerFunction
	// how many of a function in all: each costs as much as it took.
	proofsPerCopy     = 4
	proofsPerFunction = 160
)

// canaries is what the secrets of tests begin with.
const canaries = "canary-"

// proofs are recordings of what a copy did, which are played to it at the end of the
// test: it has to come to the same, byte for byte.
type proofs struct {
	mu    sync.Mutex
	texts [][]byte
}

// Keep implements record.Sink.
func (p *proofs) Keep(_ context.Context, _ string, text []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.texts) < proofsPerCopy {
		p.texts = append(p.texts, bytes.Clone(text))
	}
	return nil
}

// prove has some of what a copy does recorded, and played again when the test ends.
func (s *Suite) prove(tb testing.TB, function string, opts *reconcile.Options, host func() *reconcile.Host) {
	s.mu.Lock()
	s.proved[function]++
	enough := s.proved[function] > proofsPerFunction/proofsPerCopy
	s.mu.Unlock()
	if enough || opts.Recorder != nil {
		return
	}
	kept := &proofs{}
	opts.Recorder = record.New(record.Policy{All: true, Sample: 1, MaxBytes: record.MaxSize}, slog.New(slog.DiscardHandler), kept)
	tb.Cleanup(func() {
		opts.Recorder.Close(context.WithoutCancel(tb.Context()))
		kept.mu.Lock()
		defer kept.mu.Unlock()
		for _, text := range kept.texts {
			Proves(tb, host(), text)
			save(tb, text)
		}
	})
}

// Proves plays a recording to the function that made it, and wants the same decisions,
// requests and conclusion, byte for byte.
func Proves(tb testing.TB, host *reconcile.Host, text []byte) {
	tb.Helper()
	if bytes.Contains(text, []byte(canaries)) {
		tb.Errorf("a recording holds a secret:\n%.6000s", text)
	}
	recording, err := record.Parse(text)
	if err != nil {
		tb.Errorf("a recording cannot be read: %v\n%.2000s", err, text)
		return
	}
	if outOfTime(recording.Header.Result.Message) {
		return
	}
	replayed, err := host.Replay(context.WithoutCancel(tb.Context()), recording)
	if err != nil {
		tb.Errorf("recording %s cannot be replayed: %v", recording.Header.ID, err)
		return
	}
	if replayed.Unmapped || len(replayed.Concerns) > 0 {
		tb.Errorf("the event %s of %s concerns other objects when it is played again: %v", recording.Header.EventID, recording.Header.ID, replayed.Concerns)
	}
	want, err := recording.Verdict()
	got, otherwise := replayed.Recording.Verdict()
	if err = errors.Join(err, otherwise); err != nil {
		tb.Error(err)
		return
	}
	if !bytes.Equal(want, got) {
		tb.Errorf("the replay of %s (event %s) comes to something else; not in the recording: %q\n%.6000s",
			recording.Header.ID, recording.Header.EventID, replayed.Unknown, diff.Diff("recorded", want, "replayed", got))
	}
}

// outOfTime tells of a reconcile that was cut off by its time: a replay takes none, and
// goes on.
func outOfTime(message string) bool {
	return strings.Contains(message, "the time of one call is used up") || strings.Contains(message, "context deadline exceeded") ||
		strings.Contains(message, "context canceled")
}

// saveTo names a directory that proved recordings are written to: new fixtures for
// functions/*/testdata/recordings are chosen from them.
const saveTo = "SLIPWAY_SAVE_RECORDINGS"

func save(tb testing.TB, text []byte) {
	dir := os.Getenv(saveTo)
	h, err := record.ParseHeader(text)
	if dir == "" || err != nil || tb.Failed() {
		return
	}
	name := strings.ReplaceAll(tb.Name(), "/", "_") + "-" + h.ID
	if err := (&record.Directory{Path: dir, Function: h.Function}).Keep(context.Background(), name, text); err != nil {
		tb.Log(err)
	}
}
