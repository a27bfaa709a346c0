package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
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

func read(t *testing.T, store Store, name string) (got cloudevents.Event) {
	t.Helper()
	raw, err := store.Get(t.Context(), name, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAnEventIsKeptWithEveryAttribute(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		a := archiveOn(store)
		want := letter("1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		for range 2 {
			if err := a.Handle(t.Context(), want); status(err) != http.StatusNoContent {
				t.Fatalf("the event was refused: %v", err)
			}
		}
		files := kept(t, store, "")
		if len(files) != 1 {
			t.Fatalf("a doubled event must be one file, found %v", files)
		}
		if diff := cmp.Diff(want.String(), read(t, store, files[0]).String()); diff != "" {
			t.Errorf("the kept event differs (-sent +kept):\n%s", diff)
		}
	})
}

func TestAnEventWithBrokenDataIsKeptToo(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		broken := letter("1", time.Unix(0, 0))
		broken.SetDataContentType("application/json")
		broken.DataEncoded = []byte(`{"page":`)
		if err := archiveOn(store).Handle(t.Context(), broken); status(err) != http.StatusNoContent {
			t.Fatalf("the very event that must be looked at was refused: %v", err)
		}
		if got := read(t, store, kept(t, store, "")[0]); string(got.Data()) != `{"page":` {
			t.Errorf("the data was kept as %q", got.Data())
		}
	})
}

func TestTheOldestEventsMakeRoom(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		a := archiveOn(store)
		a.Keep = 2
		for i, id := range []string{"a", "b", "c"} {
			if err := a.Handle(t.Context(), letter(id, time.Unix(int64(i), 0))); status(err) != http.StatusNoContent {
				t.Fatal(err)
			}
		}
		files := kept(t, store, "")
		if len(files) != 2 || read(t, store, files[0]).ID() != "b" {
			t.Errorf("want the events b and c, got %v", files)
		}
	})
}

func TestSettingsAreCheckedByName(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		env    map[string]string
		says   string
	}{
		"Nowhere":   {"an archive without a place keeps nothing and must not start", nil, "ARCHIVE_DIR"},
		"TwoPlaces": {"nobody could tell which", map[string]string{"ARCHIVE_DIR": "x", "ARCHIVE_BUCKET": "https://s3.example.org/b"}, "one of them"},
		"Bucket":    {"a bucket that is none", map[string]string{"ARCHIVE_BUCKET": "b"}, "ARCHIVE_BUCKET"},
		"Events":    {"a number of events that is none", map[string]string{"ARCHIVE_DIR": "x", "ARCHIVE_MAX_EVENTS": "none"}, "ARCHIVE_MAX_EVENTS"},
		"Bytes":     {"a size that is none", map[string]string{"ARCHIVE_DIR": "x", "ARCHIVE_MAX_BYTES": "1Mi"}, "ARCHIVE_MAX_BYTES"},
		"Age":       {"a time that is none", map[string]string{"ARCHIVE_DIR": "x", "ARCHIVE_MAX_AGE": "7d"}, "ARCHIVE_MAX_AGE"},
		"Auth":      {"who may read is no guess", map[string]string{"ARCHIVE_DIR": "x", "ARCHIVE_AUTH": "some"}, "ARCHIVE_AUTH"},
	} {
		if _, err := fromEnvironment(func(name string) string { return c.env[name] }); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %s: %v", name, c.reason, err)
		}
	}
	env := map[string]string{"ARCHIVE_BUCKET": "https://s3.example.org/b/p", "ARCHIVE_MAX_AGE": "168h", "ARCHIVE_AUTH": "none"}
	a, err := fromEnvironment(func(name string) string { return env[name] })
	if err != nil || a.MaxAge != 168*time.Hour || a.Store.(*Bucket).prefix != "p/" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAStoreThatIsNotThereIsSaidAtTheStart(t *testing.T) {
	if err := archiveOn(bucket(t, "/nowhere")).Start(t.Context(), nil); err == nil {
		t.Error("it starts without its bucket")
	}
}
