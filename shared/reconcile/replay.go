package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/record"
	"github.com/slipway-dev/slipway/shared/vault"
)

// Replayed is what came of playing a recording.
type Replayed struct {
	// Recording is the reconcile anew, in the form of the one that was played.
	Recording *record.Recording
	// Unknown are the questions and requests that the recording has no answer to.
	Unknown []string
	// Settings are those that differ from the recording's.
	Settings []string
	// Unmapped says that the event no longer concerns the object.
	Unmapped bool
	// Concerns are the objects that the event concerns now ("+") and was found to concern
	// when it was recorded ("-"), where these are not the same.
	Concerns []string
}

// Replay plays a recording to the function: the same handler, with every answer from
// the recording and nothing from anywhere else. No cluster is needed, and none is asked.
func (h *Host) Replay(ctx context.Context, recording *record.Recording) (*Replayed, error) {
	switch {
	case h.broken != nil:
		return nil, fmt.Errorf("cannot replay with function %s: %w", h.spec.Name, h.broken)
	case recording.Header.Function != h.spec.Name:
		return nil, fmt.Errorf("cannot replay with function %s: the recording is of %s", h.spec.Name, recording.Header.Function)
	case recording.Header.Cut != "":
		return nil, fmt.Errorf("cannot replay %s: %s", recording.Header.ID, recording.Header.Cut)
	case recording.Header.Kind != h.spec.Reconciles.Kind:
		return nil, fmt.Errorf("cannot replay %s: function %s reconciles %s, the recording is of a %s",
			recording.Header.ID, h.spec.Name, h.spec.Reconciles.Kind, recording.Header.Kind)
	}
	mode, err := ParseMode(recording.Header.Mode)
	if err != nil {
		return nil, fmt.Errorf("cannot replay %s: %w", recording.Header.ID, err)
	}
	p := newPlayer(recording)
	out := &Replayed{Settings: sameSettings(h.spec, recording.Header.Settings)}
	key := Key{Namespace: recording.Header.Namespace, Name: recording.Header.Name, Part: recording.Header.Part}
	w := &woken{}
	if ce := Event(recording); ce != nil {
		w.event = ce
		if keys, told := h.remap(ctx, *ce, recording); told {
			out.Unmapped = !slices.Contains(keys, key)
			out.Concerns = mapDiff(recording.Event.Concerns, names(keys))
		}
	}
	f := finished{}
	ctx = context.WithValue(ctx, wokenKey{}, w)
	h.one(with(ctx, &session{played: p, forced: mode, result: &f}), key, slog.New(slog.DiscardHandler))
	f.started, f.took = recording.Header.Time, time.Duration(recording.Header.DurationMs*float64(time.Millisecond))
	out.Recording, out.Unknown = f.recording(), p.unknown
	return out, nil
}

// remap maps an event to objects anew, by what was read when it was recorded. told is
// false where that does not tell.
func (h *Host) remap(ctx context.Context, ce cloudevents.Event, recording *record.Recording) (keys []Key, told bool) {
	e, err := event.Decode(ce)
	if err != nil || e.Resync != nil {
		return nil, err != nil
	}
	e = e.At(recording.Header.Time)
	p := &player{recording: recording, reads: map[string][]record.Read{}}
	p.load(recording.Mapping)
	keys, told, err = h.concerned(ctx, e, func(ask mapping) ([]Key, error) { return ask(read.Play(p, vault.Played())) })
	return keys, told && err == nil
}

// mapDiff lists what only one of two sorted lists holds. A recording that does not say
// what an event concerned is not compared.
func mapDiff(recorded, now []string) []string {
	if len(recorded) == 0 {
		return nil
	}
	var out []string
	for _, name := range now {
		if !slices.Contains(recorded, name) {
			out = append(out, "+ "+name)
		}
	}
	for _, name := range recorded {
		if !slices.Contains(now, name) {
			out = append(out, "- "+name)
		}
	}
	return out
}

// Event is the CloudEvent of a recording, with all of its attributes; nil for none.
func Event(recording *record.Recording) *cloudevents.Event {
	if recording.Event == nil {
		return nil
	}
	ce := cloudevents.NewEvent()
	for name, value := range recording.Event.Attributes {
		switch name {
		case "specversion":
			ce.SetSpecVersion(value)
		case "id":
			ce.SetID(value)
		case "type":
			ce.SetType(value)
		case "source":
			ce.SetSource(value)
		case "subject":
			ce.SetSubject(value)
		case "datacontenttype":
			ce.SetDataContentType(value)
		case "dataschema":
			ce.SetDataSchema(value)
		case "time":
			if at, err := time.Parse(time.RFC3339Nano, value); err == nil {
				ce.SetTime(at)
			}
		default:
			ce.SetExtension(name, value)
		}
	}
	if recording.Event.Body != "" {
		_ = ce.SetData(ce.DataContentType(), []byte(recording.Event.Body))
		ce.DataBase64 = false
	}
	return &ce
}

// Try runs the function on one object of the live cluster, in a mode that is not
// exceeded; ModePlan writes nothing. The overlay is read instead of what is there.
func (h *Host) Try(ctx context.Context, key Key, mode Mode, overlay read.Overlay, ce *cloudevents.Event) (*record.Recording, error) {
	if err := h.problem(); err != nil {
		return nil, fmt.Errorf("cannot run function %s: %w", h.spec.Name, err)
	}
	if len(overlay) > 0 && mode == ModeApply {
		return nil, fmt.Errorf("cannot run function %s: what is not there cannot be applied to", h.spec.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	f := finished{}
	ctx = context.WithValue(cluster.WithMemory(ctx), wokenKey{}, &woken{event: ce})
	h.one(with(ctx, &session{forced: mode, overlay: overlay, result: &f}), key, h.log)
	if f.session == nil {
		return nil, fmt.Errorf("cannot run function %s on %s", h.spec.Name, key)
	}
	return f.recording(), nil
}

// Concerned are the objects that an event of an object would lead to, read live.
func (h *Host) Concerned(ctx context.Context, e event.Event, overlay read.Overlay) ([]Key, error) {
	if err := h.problem(); err != nil {
		return nil, fmt.Errorf("cannot run function %s: %w", h.spec.Name, err)
	}
	e = e.At(h.now())
	keys, _, err := h.concerned(ctx, e, func(ask mapping) ([]Key, error) {
		reader := read.New(h.clusters.View(), vault.New())
		reader.Over(overlay)
		return ask(reader)
	})
	return keys, err
}
