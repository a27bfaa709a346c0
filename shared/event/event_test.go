package event

import (
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
)

func cloudEvent(eventType string, extensions map[string]string) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID("1")
	ce.SetSource("https://10.0.0.1")
	ce.SetType(eventType)
	for name, value := range extensions {
		ce.SetExtension(name, value)
	}
	return ce
}

func TestDecode(t *testing.T) {
	object := map[string]string{"apiversion": "vitistack.io/v1alpha1", "kind": "Machine", "namespace": "team-a", "name": "web"}
	without := func(name string) map[string]string {
		rest := map[string]string{}
		for k, v := range object {
			if k != name {
				rest[k] = v
			}
		}
		return rest
	}
	cases := map[string]struct {
		reason  string
		event   cloudevents.Event
		want    Event
		problem string
	}{
		"Update": {
			reason: "an event of the API server is the key of an object and nothing more",
			event:  cloudEvent("dev.knative.apiserver.ref.update", object),
			want: Event{
				ID: "1", Type: "dev.knative.apiserver.ref.update", Source: "https://10.0.0.1",
				APIVersion: "vitistack.io/v1alpha1", Kind: "Machine", Namespace: "team-a", Name: "web",
			},
		},
		"Delete": {
			reason: "both modes of the source tell a deletion by the type's last part",
			event:  cloudEvent("dev.knative.apiserver.resource.delete", without("namespace")),
			want: Event{
				ID: "1", Type: "dev.knative.apiserver.resource.delete", Source: "https://10.0.0.1",
				APIVersion: "vitistack.io/v1alpha1", Kind: "Machine", Name: "web", Deleted: true,
			},
		},
		"Ping": {
			reason: "a tick of a PingSource is a resync of the function it names",
			event:  cloudEvent(TypePing, map[string]string{"function": "machine-vm"}),
			want:   Event{ID: "1", Type: TypePing, Source: "https://10.0.0.1", Resync: &Resync{Function: "machine-vm"}},
		},
		"NextPage": {
			reason: "the event for the next page comes back as it was sent",
			event:  Next(Resync{Function: "machine-vm", After: "team-a/web", Continue: "token", Page: 3}, "1", time.Unix(0, 0)),
			want: Event{
				ID: "1", Type: TypeResync, Source: "/slipway/functions/machine-vm", Sent: time.Unix(0, 0),
				Resync: &Resync{Function: "machine-vm", After: "team-a/web", Continue: "token", Page: 3},
			},
		},
		"Connected": {
			reason: "the adapter names the cluster",
			event:  cloudEvent(TypeConnected, map[string]string{"cluster": "west"}),
			want:   Event{ID: "1", Type: TypeConnected, Source: "https://10.0.0.1", Cluster: "west"},
		},
		"NoKind":          {reason: "without a kind there is no key", event: cloudEvent("dev.knative.apiserver.ref.add", without("kind")), problem: `lacks the attribute "kind"`},
		"NoName":          {reason: "without a name there is no key", event: cloudEvent("dev.knative.apiserver.ref.add", without("name")), problem: `lacks the attribute "name"`},
		"NoFunction":      {reason: "a resync must say whose", event: cloudEvent(TypePing, nil), problem: "names no function"},
		"NoCluster":       {reason: "a connection must say whose", event: cloudEvent(TypeConnected, nil), problem: "names no cluster"},
		"UnknownType":     {reason: "what is not known is refused, not guessed", event: cloudEvent("com.example.hello", object), problem: `unknown type "com.example.hello"`},
		"UndecodableData": {reason: "a resync with broken data must not start from the beginning for ever", event: broken(), problem: "cannot read the data"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(tc.event)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Fatalf("%s: want an error with %q, got %v", tc.reason, tc.problem, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnEventWithoutATimeWasSentWhenItWasTaken(t *testing.T) {
	sent, taken := time.Unix(1, 0), time.Unix(9, 0)
	if got := (Event{}).At(taken); !got.Sent.Equal(taken) || !got.Received.Equal(taken) {
		t.Errorf("it was sent at %s and taken at %s", got.Sent, got.Received)
	}
	if got := (Event{Sent: sent}).At(taken); !got.Sent.Equal(sent) || !got.Received.Equal(taken) {
		t.Errorf("one that says when it was sent: %s, taken at %s", got.Sent, got.Received)
	}
}

func broken() cloudevents.Event {
	ce := cloudEvent(TypeResync, map[string]string{"function": "machine-vm"})
	_ = ce.SetData("application/json", []byte(`{"page":`))
	return ce
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add("dev.knative.apiserver.ref.add", "v1", "Secret", "n", []byte("{}"))
	f.Add(TypeResync, "", "", "", []byte(`{"function":"x"}`))
	f.Fuzz(func(t *testing.T, eventType, apiVersion, kind, name string, data []byte) {
		ce := cloudevents.NewEvent()
		ce.SetType(eventType)
		ce.SetExtension("apiversion", apiVersion)
		ce.SetExtension("kind", kind)
		ce.SetExtension("name", name)
		_ = ce.SetData("application/json", data)
		e, err := Decode(ce)
		if err == nil && e.Resync == nil && e.Cluster == "" && (e.Name == "" || e.Kind == "") {
			t.Errorf("an event without a key was accepted: %+v", e)
		}
	})
}
