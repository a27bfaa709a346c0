package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

const (
	accessKey = "archive"
	secretKey = "canary-bucket-key-3f9d1c"
)

// everyStore runs a test on a directory and on a bucket.
func everyStore(t *testing.T, test func(t *testing.T, store Store)) {
	t.Helper()
	t.Run("directory", func(t *testing.T) { test(t, Directory(filepath.Join(t.TempDir(), "events"))) })
	t.Run("bucket", func(t *testing.T) { test(t, bucket(t, "/slipway/some/prefix")) })
}

// bucket is one of an S3 server of this process, which knows one key.
func bucket(t *testing.T, path string) *Bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("slipway"); err != nil {
		t.Fatal(err)
	}
	s3 := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential="+accessKey+"/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s3.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b, err := NewBucket(server.URL+path, "us-east-1", keys(t, accessKey))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// keys is a directory as a Secret is mounted.
func keys(t *testing.T, access string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"access-key": access + "\n", "secret-key": secretKey} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func archiveOn(store Store) *Archive {
	return &Archive{Store: store, Keep: 10, MaxBytes: 1 << 20, MaxRecording: 1 << 16, Log: slog.New(slog.DiscardHandler)}
}

// kept are the names of the files of a folder.
func kept(t *testing.T, store Store, folder string) []string {
	t.Helper()
	files, err := store.List(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

func TestAStoreKeepsFiles(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		if err := store.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := kept(t, store, "recordings"); got != nil {
			t.Errorf("an empty store holds %v", got)
		}
		for name, text := range map[string]string{"b.json": "one", "a.json": "0123456789", "recordings/x.txtar": "three"} {
			if err := store.Put(t.Context(), name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"a.json", "b.json"}, kept(t, store, "")); diff != "" {
			t.Errorf("outside of folders (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"recordings/x.txtar"}, kept(t, store, "recordings")); diff != "" {
			t.Errorf("in the folder (-want +got):\n%s", diff)
		}
		for most, want := range map[int64]string{0: "0123456789", 4: "0123", 100: "0123456789"} {
			if text, err := store.Get(t.Context(), "a.json", most); err != nil || string(text) != want {
				t.Errorf("the first %d are %q, %v", most, text, err)
			}
		}
		if _, err := store.Get(t.Context(), "none.json", 0); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what is not there is %v", err)
		}
		files, err := store.List(t.Context(), "")
		if err != nil || files[0].Size != 10 || time.Since(files[0].At) > time.Minute {
			t.Errorf("%+v, %v", files, err)
		}
		for range 2 {
			if err := store.Remove(t.Context(), "a.json"); err != nil {
				t.Errorf("removed twice: %v", err)
			}
		}
		if got := kept(t, store, ""); !slices.Equal(got, []string{"b.json"}) {
			t.Errorf("left are %v", got)
		}
	})
}

func TestABucketIsListedToItsEnd(t *testing.T) {
	b := bucket(t, "/slipway")
	for i := range 1100 { // a page of S3 has 1000
		if err := b.Put(t.Context(), recordingName(time.Unix(int64(i), 0).UTC().Format("20060102T150405.000000Z")+"-demo-1"), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if got := kept(t, b, recordingsDir); len(got) != 1100 || !slices.IsSorted(got) {
		t.Errorf("%d files are listed", len(got))
	}
}

func TestCredentialsAreReadAgainAndNeverTold(t *testing.T) {
	b := bucket(t, "/slipway")
	if err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := bucket(t, "/nowhere").Check(t.Context()); err == nil || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("a bucket that is not there: %v", err)
	}
	// Somebody rotates the key: the server knows another one from now on.
	dir := keys(t, "old")
	address := b.client.EndpointURL().String() + "/slipway"
	stale, err := NewBucket(address, "us-east-1", dir)
	if err != nil {
		t.Fatal(err)
	}
	err = stale.Check(t.Context())
	if err == nil || strings.Contains(err.Error(), secretKey) {
		t.Errorf("an old key: %v", err)
	}
	m := &mounted{dir: dir}
	if value, err := m.Retrieve(); err != nil || value.AccessKeyID != "old" || m.IsExpired() {
		t.Errorf("%v, expired %v", err, m.IsExpired())
	}
	m.read = time.Now().Add(-2 * credentialsAge)
	if !m.IsExpired() {
		t.Error("the files are never read again")
	}
	if err := os.WriteFile(filepath.Join(dir, "access-key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Retrieve(); err == nil || !strings.Contains(err.Error(), "access-key") || strings.Contains(err.Error(), secretKey) {
		t.Errorf("an empty file: %v", err)
	}
}

func TestABadBucketIsRefusedByName(t *testing.T) {
	notPEM := t.TempDir()
	if err := os.WriteFile(filepath.Join(notPEM, "ca.crt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ address, keys, says string }{
		"no URL":      {"s3.example.org/slipway", "", "no URL of a bucket"},
		"no bucket":   {"https://s3.example.org/", "", "names no bucket"},
		"credentials": {"https://a:canary@s3.example.org/slipway", "", "without credentials"},
		"no PEM":      {"https://s3.example.org/slipway", notPEM, "holds none"},
	} {
		if _, err := NewBucket(c.address, "", c.keys); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsTooOldGoes(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		a := archiveOn(store)
		a.MaxAge = time.Hour
		for name, text := range map[string]string{"a.json": "{}", "recordings/x.txtar": "x", "recordings/y.txtar": "y"} {
			if err := store.Put(t.Context(), name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.sweep(t.Context()); err != nil || len(kept(t, store, recordingsDir)) != 2 {
			t.Errorf("what is new went: %v, %v", kept(t, store, recordingsDir), err)
		}
		a.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		if err := a.sweep(t.Context()); err != nil || len(kept(t, store, recordingsDir))+len(kept(t, store, "")) != 0 {
			t.Errorf("what is old stays: %v, %v", kept(t, store, recordingsDir), err)
		}
	})
}

func TestDeadLettersTakeHalfTheSpaceOfRecordings(t *testing.T) {
	everyStore(t, func(t *testing.T, store Store) {
		a := archiveOn(store)
		a.MaxBytes = 100
		for _, name := range []string{"a.json", "b.json", "c.json"} {
			if err := store.Put(t.Context(), name, []byte(strings.Repeat("x", 20))); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.sweep(t.Context()); err != nil || len(kept(t, store, "")) != 2 {
			t.Errorf("left are %v, %v", kept(t, store, ""), err)
		}
	})
}
