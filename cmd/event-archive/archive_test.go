package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/go-cmp/cmp"
)

func letter(id string, at time.Time) cloudevents.Event {
	e := cloudevents.NewEvent()
	e.SetID(id)
	e.SetType("dev.knative.apiserver.ref.update")
	e.SetSource("https://127.0.0.1:6443")
	e.SetSubject("/apis/vitistack.io/v1alpha1/namespaces/team-a/machines/web")
	e.SetTime(at)
	e.SetExtension("knativeerrorcode", "503")
	e.SetExtension("name", "web")
	return e
}

func status(err error) int {
	var result *cehttp.Result
	if !errors.As(err, &result) {
		return 0
	}
	return result.StatusCode
}

func TestAnEventIsKeptWithEveryAttribute(t *testing.T) {
	a := &Archive{Dir: filepath.Join(t.TempDir(), "events"), Keep: 10, Log: slog.New(slog.DiscardHandler)}
	want := letter("1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err := a.Handle(t.Context(), want); status(err) != http.StatusNoContent {
		t.Fatalf("the event was refused: %v", err)
	}
	if err := a.Handle(t.Context(), want); status(err) != http.StatusNoContent {
		t.Fatalf("the doubled event was refused: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(a.Dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("a doubled event must be one file, found %v, %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var got cloudevents.Event
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("the kept event differs (-sent +kept):\n%s", diff)
	}
}

func TestAnEventWithBrokenDataIsKeptToo(t *testing.T) {
	a := &Archive{Dir: t.TempDir(), Keep: 2, Log: slog.New(slog.DiscardHandler)}
	broken := letter("1", time.Unix(0, 0))
	broken.SetDataContentType("application/json")
	broken.DataEncoded = []byte(`{"page":`)
	if err := a.Handle(t.Context(), broken); status(err) != http.StatusNoContent {
		t.Fatalf("the very event that must be looked at was refused: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(a.Dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var got cloudevents.Event
	if err := json.Unmarshal(raw, &got); err != nil || string(got.Data()) != `{"page":` {
		t.Errorf("the data was kept as %q (%v)", got.Data(), err)
	}
}

func TestTheOldestEventsMakeRoom(t *testing.T) {
	a := &Archive{Dir: t.TempDir(), Keep: 2, Log: slog.New(slog.DiscardHandler)}
	for i, id := range []string{"a", "b", "c"} {
		if err := a.Handle(t.Context(), letter(id, time.Unix(int64(i), 0))); status(err) != http.StatusNoContent {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(a.Dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var first cloudevents.Event
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &first); err != nil || len(files) != 2 || first.ID() != "b" {
		t.Errorf("want the events b and c, the oldest is %q of %d (%v)", first.ID(), len(files), err)
	}
}

func TestTheDirectoryMustBeGiven(t *testing.T) {
	if _, err := fromEnvironment(func(string) string { return "" }); err == nil {
		t.Error("an archive without a directory keeps nothing and must not start")
	}
	env := map[string]string{"ARCHIVE_DIR": "x", "ARCHIVE_MAX_EVENTS": "none"}
	if _, err := fromEnvironment(func(name string) string { return env[name] }); err == nil {
		t.Error("a number of events that is none must be refused")
	}
}
