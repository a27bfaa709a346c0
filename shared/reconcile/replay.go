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
		out.Unmapped = !h.concerns(ctx, *ce, recording, key)
	}
	f := finished{}
	ctx = context.WithValue(ctx, wokenKey{}, w)
	h.one(with(ctx, &session{played: p, forced: mode, result: &f}), key, slog.New(slog.DiscardHandler))
	f.started, f.took = recording.Header.Time, time.Duration(recording.Header.DurationMs*float64(time.Millisecond))
	out.Recording, out.Unknown = f.recording(), p.unknown
	return out, nil
}

// concerns tells whether an event still leads to the object. What the recording of a
// mapping does not hold is no reason to say no.
func (h *Host) concerns(ctx context.Context, ce cloudevents.Event, recording *record.Recording, key Key) bool {
	e, err := event.Decode(ce)
	if err != nil || e.Resync != nil {
		return err == nil
	}
	p := &player{recording: recording, reads: map[string][]record.Read{}}
	p.load(recording.Mapping)
	asked := func(*read.Reader) ([]Key, error) { return []Key{{Namespace: e.Namespace, Name: e.Name}}, nil }
	known := false
	if h.spec.Connected != nil && (e.Type == event.TypeConnected || e.Type == event.TypeDisconnected) {
		known, asked = true, func(r *read.Reader) ([]Key, error) { return h.spec.Connected(ctx, r, e.Cluster) }
		if keys, err := asked(read.Play(p, vault.Played())); err != nil || slices.Contains(keys, key) {
			return true
		}
	}
	for _, watch := range h.spec.Watches {
		if !watch.Resource.Is(e.APIVersion, e.Kind) {
			continue
		}
		known = true
		ask := asked
		if watch.Keys != nil {
			ask = func(r *read.Reader) ([]Key, error) { return watch.Keys(ctx, r, e) }
		}
		if keys, err := ask(read.Play(p, vault.Played())); err != nil || slices.Contains(keys, key) {
			return true
		}
	}
	return !known
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
	var keys []Key
	for _, watch := range h.spec.Watches {
		if !watch.Resource.Is(e.APIVersion, e.Kind) {
			continue
		}
		mapped := []Key{{Namespace: e.Namespace, Name: e.Name}}
		if watch.Keys != nil {
			reader := read.New(h.clusters.View(), vault.New())
			reader.Over(overlay)
			var err error
			if mapped, err = watch.Keys(ctx, reader, e); err != nil {
				return nil, fmt.Errorf("cannot tell which objects %s %s/%s concerns: %w", e.Kind, e.Namespace, e.Name, err)
			}
		}
		for _, key := range mapped {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys, nil
}
