package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/shared/record"
)

const (
	// recordingsDir is where recordings lie below the archive's directory.
	recordingsDir = "recordings"
	// maxList is how many items one answer holds.
	maxList = 1000
	// unnamed is the folder of recordings whose function has no name for a folder.
	unnamed = "unnamed"
)

// Handler adds to the handler of events what recordings need: functions put them at
// /recordings/ID, and whoever may read them finds them, and the dead letters, below
// /api. Everything else is an event.
func (a *Archive) Handler(events http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", events)
	mux.HandleFunc("PUT /recordings/{id}", a.put)
	mux.HandleFunc("GET /api/recordings", a.guarded(a.list))
	mux.HandleFunc("GET /api/recordings/{id}", a.guarded(a.get))
	mux.HandleFunc("GET /api/deadletters", a.guarded(a.letters))
	mux.HandleFunc("GET /api/deadletters/{id}", a.guarded(a.letter))
	return mux
}

// guarded lets those through who may read.
func (a *Archive) guarded(do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if a.Auth != nil {
			if code, err := a.Auth.Check(r); err != nil {
				a.Log.Warn("reader refused", "path", r.URL.Path, "error", err.Error())
				http.Error(w, err.Error(), code)
				return
			}
		}
		do(w, r)
	}
}

// put keeps a recording. It is looked at before: what lies here is read by people.
func (a *Archive) put(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !record.ValidID(id) {
		http.Error(w, "the recording's name cannot be a file's", http.StatusBadRequest)
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.MaxRecording))
	if err != nil {
		http.Error(w, fmt.Sprintf("the recording is larger than %d bytes", a.MaxRecording), http.StatusRequestEntityTooLarge)
		return
	}
	h, err := record.ParseHeader(text)
	if err != nil || h.ID != id {
		http.Error(w, "that is no recording of this name", http.StatusBadRequest)
		return
	}
	if err := a.keep(h, text); err != nil {
		a.Log.Error("cannot keep a recording", "recording", id, "error", err.Error())
		http.Error(w, "cannot keep the recording", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *Archive) keep(h record.Header, text []byte) error {
	folder := h.Function
	if !record.ValidID(folder) {
		folder = unnamed
	}
	a.recordings.Lock()
	defer a.recordings.Unlock()
	dir := filepath.Join(a.Dir, recordingsDir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the directory: %w", err)
	}
	if err := record.WriteFile(filepath.Join(dir, h.ID+record.Suffix), text); err != nil {
		return err
	}
	a.written += int64(len(text))
	if a.written < a.MaxBytes/20 {
		return nil
	}
	a.written = 0
	return a.shrink()
}

// shrink removes the oldest recordings beyond the space that they may take.
func (a *Archive) shrink() error {
	type file struct {
		path string
		size int64
	}
	var files []file
	var total int64
	root := filepath.Join(a.Dir, recordingsDir)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return ignoreMissing(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		files, total = append(files, file{path, info.Size()}), total+info.Size()
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot list: %w", err)
	}
	// A name begins with the time.
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(filepath.Base(a.path), filepath.Base(b.path)) })
	for _, f := range files {
		if total <= a.MaxBytes {
			return nil
		}
		if err := ignoreMissing(os.Remove(f.path)); err != nil {
			return fmt.Errorf("cannot remove the oldest recording: %w", err)
		}
		total -= f.size
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// list shows headers of recordings, the newest last.
func (a *Archive) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	headers, err := record.Headers(filepath.Join(a.Dir, recordingsDir), record.Filter{
		Function: q.Get("function"), Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name"),
		After: q.Get("after"), Limit: limit(q.Get("limit")),
	})
	if err != nil {
		a.broken(w, err)
		return
	}
	reply(w, map[string]any{"items": append([]record.Header{}, headers...)})
}

func (a *Archive) get(w http.ResponseWriter, r *http.Request) {
	path, err := record.Find(filepath.Join(a.Dir, recordingsDir), r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	a.send(w, path, "text/plain; charset=utf-8")
}

// Letter is an event that no function could take.
type Letter struct {
	ID    string          `json:"id"`
	Event json.RawMessage `json:"event"`
}

const letterSuffix = ".json"

// letters shows dead letters, the newest last.
func (a *Archive) letters(w http.ResponseWriter, r *http.Request) {
	entries, err := os.ReadDir(a.Dir)
	if err != nil {
		a.broken(w, err)
		return
	}
	after, most := r.URL.Query().Get("after"), limit(r.URL.Query().Get("limit"))
	var ids []string
	for _, entry := range entries {
		if id, ok := strings.CutSuffix(entry.Name(), letterSuffix); ok && id > after && record.ValidID(id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > most {
		ids = ids[len(ids)-most:]
	}
	items := []Letter{}
	for _, id := range ids {
		raw, err := os.ReadFile(filepath.Join(a.Dir, id+letterSuffix))
		if err == nil && json.Valid(raw) {
			items = append(items, Letter{ID: id, Event: raw})
		}
	}
	reply(w, map[string]any{"items": items})
}

func (a *Archive) letter(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !record.ValidID(id) {
		http.Error(w, "that is no dead letter's name", http.StatusNotFound)
		return
	}
	a.send(w, filepath.Join(a.Dir, id+letterSuffix), "application/json")
}

func (a *Archive) send(w http.ResponseWriter, path, contentType string) {
	text, err := os.ReadFile(path) //nolint:gosec // the name was checked, and has no separators
	if err != nil {
		http.Error(w, "there is none of that name", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(text)
}

func (a *Archive) broken(w http.ResponseWriter, err error) {
	a.Log.Error("cannot read the archive", "error", err.Error())
	http.Error(w, "cannot read the archive", http.StatusInternalServerError)
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func limit(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxList {
		return maxList
	}
	return n
}
