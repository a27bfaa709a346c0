package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// sweepEvery is how often what is too old is looked for, whether or not anything comes.
const sweepEvery = 10 * time.Minute

// sweeping removes what is too old until the archive stops.
func (a *Archive) sweeping(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := a.sweep(ctx); err != nil && ctx.Err() == nil {
			a.Log.Error("cannot make room", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// filled is told of each file that was written, and makes room when a twentieth of what
// may be kept has come since it last did.
func (a *Archive) filled(ctx context.Context, letters int, size int64) {
	a.mu.Lock()
	a.letterCount += letters
	a.written += size
	due := a.written >= a.MaxBytes/20 || a.letterCount > a.Keep/20
	if due {
		a.written, a.letterCount = 0, 0
	}
	a.mu.Unlock()
	if !due {
		return
	}
	// What was written stays written: the next one tries again.
	if err := a.sweep(ctx); err != nil {
		a.Log.Error("cannot make room", "error", err.Error())
	}
}

// sweep removes what is too old, and the oldest of what is too much.
func (a *Archive) sweep(ctx context.Context) error {
	a.sweeps.Lock()
	defer a.sweeps.Unlock()
	letters, err := a.Store.List(ctx, "")
	if err != nil {
		return err
	}
	letters = slices.DeleteFunc(letters, func(f File) bool { return !strings.HasSuffix(f.Name, letterSuffix) })
	// Dead letters may take half as much as recordings.
	if err := a.trim(ctx, letters, a.Keep, a.MaxBytes/2); err != nil {
		return err
	}
	recordings, err := a.Store.List(ctx, recordingsDir)
	if err != nil {
		return err
	}
	return a.trim(ctx, recordings, len(recordings), a.MaxBytes)
}

// trim removes files until at most so many, of at most so many bytes, are left, none of
// which is too old.
func (a *Archive) trim(ctx context.Context, files []File, most int, size int64) error {
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Name, b.Name)) })
	var total int64
	for _, f := range files {
		total += f.Size
	}
	removed := 0
	for i, f := range files {
		old := a.MaxAge > 0 && a.now().Sub(f.At) > a.MaxAge
		if !old && len(files)-i <= most && total <= size {
			break
		}
		if err := a.Store.Remove(ctx, f.Name); err != nil {
			return fmt.Errorf("cannot remove the oldest file: %w", err)
		}
		a.forget(f.Name)
		total -= f.Size
		removed++
	}
	if removed > 0 {
		a.Log.Info("made room", "removed", removed)
	}
	return nil
}
