package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// Archive stores events as files.
type Archive struct {
	// Dir is the directory; it is made when it is not there.
	Dir string
	// Keep is how many events are kept.
	Keep int
	// MaxBytes is the space that recordings may take; the oldest go first.
	MaxBytes int64
	// MaxRecording is how large one recording may be.
	MaxRecording int64
	// Auth decides who may read; nil lets everybody.
	Auth *Auth
	Log  *slog.Logger

	mu, recordings sync.Mutex
	// written is what recordings took since it was last looked how much they take.
	written int64
}

// Handle stores one event. The answer is 204 once the file is in place; 503
// makes the broker try again.
func (a *Archive) Handle(_ context.Context, event cloudevents.Event) error {
	path, err := a.store(event)
	if err != nil {
		a.Log.Error("cannot keep an event", "event_id", event.ID(), "error", err.Error())
		return cehttp.NewResult(http.StatusServiceUnavailable, "cannot keep the event")
	}
	a.Log.Warn("event kept", "event_id", event.ID(), "event_type", event.Type(), "subject", event.Subject(),
		"code", fmt.Sprint(event.Extensions()["knativeerrorcode"]), "file", filepath.Base(path))
	return cehttp.NewResult(http.StatusNoContent, "")
}

// Start checks the directory: better no archive than one that keeps nothing.
func (a *Archive) Start(context.Context, map[string]string) error {
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot use ARCHIVE_DIR: %w", err)
	}
	// What a crash left half written.
	partial, err := filepath.Glob(filepath.Join(a.Dir, partialPrefix+"*"))
	if err != nil {
		return fmt.Errorf("cannot use ARCHIVE_DIR: %w", err)
	}
	for _, path := range partial {
		_ = os.Remove(path)
	}
	return nil
}

const partialPrefix = ".partial-"

func (a *Archive) store(event cloudevents.Event) (string, error) {
	body, err := encode(event)
	if err != nil {
		return "", err
	}
	at := event.Time()
	if at.IsZero() {
		at = time.Now()
	}
	// The same event delivered twice is the same file.
	sum := sha256.Sum256([]byte(event.Source() + "\n" + event.ID()))
	name := at.UTC().Format("20060102T150405.000000000Z") + "-" + hex.EncodeToString(sum[:6]) + ".json"

	a.mu.Lock()
	defer a.mu.Unlock()
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the directory: %w", err)
	}
	temp, err := os.CreateTemp(a.Dir, partialPrefix)
	if err != nil {
		return "", fmt.Errorf("cannot write: %w", err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(append(body, '\n'))
	if closed := temp.Close(); err == nil {
		err = closed
	}
	path := filepath.Join(a.Dir, name)
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return "", fmt.Errorf("cannot write: %w", err)
	}
	return path, a.trim()
}

// encode writes an event in the structured format. Data that is not what its
// content type says is kept as it came, in base64: it may be why the event is
// here.
func encode(event cloudevents.Event) ([]byte, error) {
	body, err := json.MarshalIndent(event, "", "  ")
	if err == nil {
		return body, nil
	}
	event.DataBase64 = true
	if body, err = json.MarshalIndent(event, "", "  "); err != nil {
		return nil, fmt.Errorf("cannot encode: %w", err)
	}
	return body, nil
}

// trim removes the events that came first, beyond the number to keep.
func (a *Archive) trim() error {
	entries, err := os.ReadDir(a.Dir)
	if err != nil {
		return fmt.Errorf("cannot list: %w", err)
	}
	if len(entries) <= a.Keep {
		return nil
	}
	var kept []os.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasSuffix(entry.Name(), ".json") {
			kept = append(kept, info)
		}
	}
	slices.SortFunc(kept, func(a, b os.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for ; len(kept) > a.Keep; kept = kept[1:] {
		if err := os.Remove(filepath.Join(a.Dir, kept[0].Name())); err != nil {
			return fmt.Errorf("cannot remove the oldest event: %w", err)
		}
	}
	return nil
}
