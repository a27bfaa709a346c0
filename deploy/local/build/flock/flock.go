// Package flock locks files between processes.
//
// A lock belongs to the process that took it and ends with it, however the
// process ends: none is ever left behind, and a lock file without a process means
// nothing. The file names its holder for those who wait; the lock itself does not
// depend on what the file says.
package flock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// pause is the time between two attempts: the kernel has no lock that also heeds
// a context.
const pause = 20 * time.Millisecond

// HeldError says that somebody else holds the lock.
type HeldError struct {
	// Path is the lock file.
	Path string
	// Holder names the process that holds it.
	Holder string
}

func (e *HeldError) Error() string { return fmt.Sprintf("%q is locked by %s", e.Path, e.Holder) }

// Lock is a lock that is held.
type Lock struct{ file *os.File }

// Unlock lets go of the lock.
func (l *Lock) Unlock() { l.file.Close() }

// Try takes the lock if nobody has it, and returns a [HeldError] otherwise.
func Try(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open lock file %q: %w", path, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		f.Close()
		return nil, &HeldError{Path: path, Holder: holder(path)}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		// A courtesy to those who wait, and worth no failure.
		_, _ = fmt.Fprintf(f, "process %d\n", os.Getpid())
	}
	return &Lock{file: f}, nil
}

// Wait takes the first of the locks that is to be had, waiting for one if it must;
// waiting is called once if so, with the error of the last one tried.
func Wait(ctx context.Context, waiting func(error), paths ...string) (*Lock, error) {
	for told := false; ; told = true {
		var last error
		for _, path := range paths {
			lock, err := Try(path)
			if err == nil {
				return lock, nil
			}
			if held := (*HeldError)(nil); !errors.As(err, &held) {
				return nil, err
			}
			last = err
		}
		if !told && waiting != nil {
			waiting(last)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", last, ctx.Err())
		case <-time.After(pause):
		}
	}
}

func holder(path string) string {
	content, err := os.ReadFile(path)
	if err != nil || len(content) == 0 {
		return "another process"
	}
	return strings.TrimSpace(string(content))
}
