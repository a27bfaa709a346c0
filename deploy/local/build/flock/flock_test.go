package flock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/build/flock"
)

func TestHeldLockIsRefusedWithItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := flock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = flock.Try(path)
	held := (*flock.HeldError)(nil)
	if want := fmt.Sprintf("process %d", os.Getpid()); !errors.As(err, &held) || held.Holder != want {
		t.Errorf("a second lock gives %v, want that %s holds it", err, want)
	}
	lock.Unlock()
	again, err := flock.Try(path)
	if err != nil {
		t.Fatalf("a lock that was let go of gives %v", err)
	}
	again.Unlock()
}

func TestWaitTakesWhateverComesFree(t *testing.T) {
	paths := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	var locks []*flock.Lock
	for range paths {
		lock, err := flock.Wait(t.Context(), nil, paths...)
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, lock)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := flock.Wait(ctx, nil, paths...); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with all locks taken Wait gives %v, want the context's end", err)
	}
	// The one who waits says so, and that lets go of a lock.
	third, err := flock.Wait(t.Context(), func(error) { locks[1].Unlock() }, paths...)
	if err != nil {
		t.Fatal(err)
	}
	third.Unlock()
	locks[0].Unlock()
}
