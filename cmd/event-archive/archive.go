package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/slipway-dev/slipway/shared/record"
)

// Archive keeps events and recordings.
type Archive struct {
	// Store is where they are kept.
	Store Store
	// Keep is how many events are kept.
	Keep int
	// MaxBytes is the space that recordings may take, and events half as much; the
	// oldest go first.
	MaxBytes int64
	// MaxAge is how long anything is kept; 0 is as long as there is room.
	MaxAge time.Duration
	// MaxRecording is how large one recording may be.
	MaxRecording int64
	// Auth decides who may read; nil lets everybody.
	Auth *Auth
	// Readers is the address that the API is served on beside the port of events, for
	// readers that come from elsewhere; empty for none.
	Readers string
	Log     *slog.Logger
	// Now is the clock; nil is the real one.
	Now func() time.Time

	// mu guards what was written since room was made; sweeps lets one at a time make it.
	mu, sweeps  sync.Mutex
	written     int64
	letterCount int

	known known
	stop  context.CancelFunc
	ended sync.WaitGroup
}

func (a *Archive) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}

// Handle stores one event. The answer is 204 once the file is in place; 503
// makes the broker try again.
func (a *Archive) Handle(ctx context.Context, event cloudevents.Event) error {
	name, err := a.store(ctx, event)
	if err != nil {
		a.Log.Error("cannot keep an event", "event_id", event.ID(), "error", err.Error())
		return cehttp.NewResult(http.StatusServiceUnavailable, "cannot keep the event")
	}
	a.Log.Warn("event kept", "event_id", event.ID(), "event_type", event.Type(), "subject", event.Subject(),
		"code", fmt.Sprint(event.Extensions()["knativeerrorcode"]), "file", name)
	return cehttp.NewResult(http.StatusNoContent, "")
}

// Start checks the store: better no archive than one that keeps nothing.
func (a *Archive) Start(ctx context.Context, _ map[string]string) error {
	if err := a.Store.Check(ctx); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	if err := a.welcome(running); err != nil {
		stop()
		return err
	}
	a.ended.Go(func() { a.sweeping(running) })
	return nil
}

// Stop ends what runs beside requests.
func (a *Archive) Stop(context.Context) error { //nolint:unparam // the signature that kn func asks for
	if a.stop != nil {
		a.stop()
		a.ended.Wait()
	}
	return nil
}

func (a *Archive) store(ctx context.Context, event cloudevents.Event) (string, error) {
	body, err := encode(event)
	if err != nil {
		return "", err
	}
	at := event.Time()
	if at.IsZero() {
		at = a.now()
	}
	// The same event delivered twice is the same file.
	sum := sha256.Sum256([]byte(event.Source() + "\n" + event.ID()))
	id := at.UTC().Format("20060102T150405.000000000Z") + "-" + hex.EncodeToString(sum[:6])
	if !record.ValidID(id) {
		return "", fmt.Errorf("cannot name the event's file by its time %s", at)
	}
	body = append(body, '\n')
	if err := a.Store.Put(ctx, id+letterSuffix, body); err != nil {
		return "", err
	}
	a.filled(ctx, 1, int64(len(body)))
	return id + letterSuffix, nil
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
