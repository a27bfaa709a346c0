// Package event turns a CloudEvent into what a function may believe of it: the
// name of an object that changed, or the wish for a resync.
package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

// Types of events.
const (
	// TypePing is the tick of a PingSource.
	TypePing = "dev.knative.sources.ping"
	// TypeResync asks for a resync, or for the next page of one.
	TypeResync = "dev.slipway.resync"
	// TypeConnected and TypeDisconnected are sent by sources/adapter when a
	// remote cluster comes and goes.
	TypeConnected    = "dev.slipway.cluster.connected"
	TypeDisconnected = "dev.slipway.cluster.disconnected"

	apiServerPrefix = "dev.knative.apiserver."
)

// Extensions on events.
const (
	// ExtFunction names the function that a resync is for.
	ExtFunction = "function"
	// ExtCluster names the remote cluster that an object lies on.
	ExtCluster = "cluster"
)

// Event is a decoded event.
type Event struct {
	ID, Type, Source string
	// Cluster is the remote cluster of the object; empty for the management
	// cluster.
	Cluster string
	// APIVersion, Kind, Namespace and Name are set for API server events.
	APIVersion, Kind, Namespace, Name string
	// Deleted tells that the object was seen to go.
	Deleted bool
	// Sent is when the source sent the event for the first time: a broker that tries again
	// does not change it. Received is when the function took it; in a replay, when it took
	// it then.
	Sent, Received time.Time
	// Resync is set for a resync.
	Resync *Resync
}

// At gives the event the time at which it was taken. A source that does not say when it
// sent it is taken to have sent it then.
func (e Event) At(received time.Time) Event {
	e.Received = received
	if e.Sent.IsZero() {
		e.Sent = received
	}
	return e
}

// Resync is one page of a resync.
type Resync struct {
	// Function is the name of the function that shall resync.
	Function string `json:"function"`
	// After is the namespace/name that the page before ended with.
	After string `json:"after,omitempty"`
	// Continue is the API server's token for the next page; it may have expired.
	Continue string `json:"continue,omitempty"`
	// Page counts the pages of the chain from 0.
	Page int `json:"page,omitempty"`
}

// Decode reads a CloudEvent. The error says what is missing; such an event
// can never be handled.
func Decode(ce cloudevents.Event) (Event, error) {
	e := Event{ID: ce.ID(), Type: ce.Type(), Source: ce.Source(), Cluster: text(ce, ExtCluster), Sent: ce.Time()}
	switch {
	case ce.Type() == TypePing || ce.Type() == TypeResync:
		resync := Resync{}
		if ce.Type() == TypeResync && len(ce.Data()) > 0 {
			if err := json.Unmarshal(ce.Data(), &resync); err != nil {
				return Event{}, fmt.Errorf("cannot read the data of event %q of type %s: %w", ce.ID(), ce.Type(), err)
			}
		}
		if function := text(ce, ExtFunction); function != "" {
			resync.Function = function
		}
		if resync.Function == "" {
			return Event{}, fmt.Errorf("event %q of type %s names no function: set the extension %q", ce.ID(), ce.Type(), ExtFunction)
		}
		e.Resync = &resync
		return e, nil
	case ce.Type() == TypeConnected || ce.Type() == TypeDisconnected:
		if e.Cluster == "" {
			return Event{}, fmt.Errorf("event %q of type %s names no cluster: set the extension %q", ce.ID(), ce.Type(), ExtCluster)
		}
		return e, nil
	case strings.HasPrefix(ce.Type(), apiServerPrefix):
		return decodeAPIServer(ce, e)
	}
	return Event{}, fmt.Errorf("event %q has the unknown type %q", ce.ID(), ce.Type())
}

func decodeAPIServer(ce cloudevents.Event, e Event) (Event, error) {
	e.APIVersion, e.Kind = text(ce, "apiversion"), text(ce, "kind")
	e.Namespace, e.Name = text(ce, "namespace"), text(ce, "name")
	e.Deleted = strings.HasSuffix(ce.Type(), ".delete")
	for _, attribute := range []struct{ name, value string }{
		{"apiversion", e.APIVersion}, {"kind", e.Kind}, {"name", e.Name},
	} {
		if attribute.value == "" {
			return Event{}, fmt.Errorf("event %q of type %s lacks the attribute %q", ce.ID(), ce.Type(), attribute.name)
		}
	}
	return e, nil
}

// Next is the event that asks for the next page of a resync.
func Next(r Resync, id string, at time.Time) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID(id)
	ce.SetTime(at)
	ce.SetType(TypeResync)
	ce.SetSource("/slipway/functions/" + r.Function)
	ce.SetExtension(ExtFunction, r.Function)
	// The data is a plain struct of strings: it always encodes.
	_ = ce.SetData(cloudevents.ApplicationJSON, r)
	return ce
}

func text(ce cloudevents.Event, extension string) string {
	value, ok := ce.Extensions()[extension]
	if !ok {
		return ""
	}
	return fmt.Sprint(value)
}
