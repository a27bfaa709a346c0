package main

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/shared/record"
)

const (
	// listEvery is how often the store is asked anew which recordings there are. What
	// this process writes and removes it knows at once.
	listEvery = 30 * time.Second
	// headerSize is how much of a recording is read for its header.
	headerSize = 64 << 10
	// maxLooked bounds how many headers one question looks at, maxKnown how many are
	// remembered, ahead how many are read at once.
	maxLooked = 5000
	maxKnown  = 5000
	ahead     = 16
)

// known is what is remembered of the recordings in the store. Their content never
// changes.
type known struct {
	mu      sync.Mutex
	asked   time.Time
	files   []File
	headers map[string]record.Header
}

// recordings are the files of all recordings, sorted by name, which begins with the
// time.
func (a *Archive) recordings(ctx context.Context) ([]File, error) {
	k := &a.known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked.IsZero() || time.Since(k.asked) > listEvery {
		files, err := a.Store.List(ctx, recordingsDir)
		if err != nil {
			return nil, err
		}
		k.files, k.asked = files, time.Now()
	}
	return slices.Clone(k.files), nil
}

// remember adds a recording that was written.
func (a *Archive) remember(f File, h record.Header) {
	k := &a.known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(f.Name, h)
	if k.asked.IsZero() {
		return
	}
	at, there := slices.BinarySearchFunc(k.files, f.Name, func(f File, name string) int { return strings.Compare(f.Name, name) })
	if !there {
		k.files = slices.Insert(k.files, at, f)
	}
}

func (k *known) put(name string, h record.Header) {
	if k.headers == nil || len(k.headers) >= maxKnown {
		k.headers = map[string]record.Header{}
	}
	k.headers[name] = h
}

// forget drops a file that was removed.
func (a *Archive) forget(name string) {
	k := &a.known
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.headers, name)
	k.files = slices.DeleteFunc(k.files, func(f File) bool { return f.Name == name })
}

// headers lists recordings, the newest last. Files that are none are left out.
func (a *Archive) headers(ctx context.Context, f record.Filter) ([]record.Header, error) {
	files, err := a.recordings(ctx)
	if err != nil {
		return nil, err
	}
	var out []record.Header
	for looked := 0; len(files) > 0 && looked < maxLooked && (f.Limit == 0 || len(out) < f.Limit); looked += ahead {
		from := max(0, len(files)-ahead)
		for _, h := range a.look(ctx, files[from:], f.After) {
			if f.Matches(h) {
				out = append(out, h)
			}
		}
		if idOf(files[from].Name) <= f.After {
			break
		}
		files = files[:from]
	}
	return f.Newest(out), ctx.Err()
}

func idOf(name string) string { return strings.TrimSuffix(path.Base(name), record.Suffix) }

// look reads the headers of some files, as far as they are not known.
func (a *Archive) look(ctx context.Context, files []File, after string) []record.Header {
	found := map[string]record.Header{}
	var missing []string
	a.known.mu.Lock()
	for _, f := range files {
		if h, ok := a.known.headers[f.Name]; ok {
			found[f.Name] = h
		} else if idOf(f.Name) > after && strings.HasSuffix(f.Name, record.Suffix) {
			missing = append(missing, f.Name)
		}
	}
	a.known.mu.Unlock()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, name := range missing {
		wg.Go(func() {
			text, err := a.Store.Get(ctx, name, headerSize)
			if err != nil {
				return // it went meanwhile
			}
			h, err := record.ParseHeader(text)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			found[name] = h
		})
	}
	wg.Wait()
	a.known.mu.Lock()
	for _, name := range missing {
		if h, ok := found[name]; ok {
			a.known.put(name, h)
		}
	}
	a.known.mu.Unlock()
	return slices.Collect(maps.Values(found))
}
