package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/shared/record"
)

const (
	// recordingsDir is the folder of recordings.
	recordingsDir = "recordings"
	// letterSuffix ends the names of dead letters' files.
	letterSuffix = ".json"
	// maxList is how many items one answer holds.
	maxList = 1000
	// maxRead bounds what is read of a file.
	maxRead = 64 << 20
	// maxLetters is how many bytes of dead letters one answer holds: a process has not
	// room for all that a store may.
	maxLetters = 8 << 20
)

// Handler adds to the handler of events what recordings need: functions put them at
// /recordings/ID, and whoever may read them finds them, and the dead letters, below
// /api. Everything else is an event.
func (a *Archive) Handler(events http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", events)
	mux.HandleFunc("PUT /recordings/{id}", a.put)
	mux.Handle("/api/", a.API())
	return mux
}

// API is what readers see.
func (a *Archive) API() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/recordings", a.guarded(a.list))
	mux.HandleFunc("GET /api/recordings/{id}", a.guarded(a.get))
	mux.HandleFunc("GET /api/deadletters", a.guarded(a.letters))
	mux.HandleFunc("GET /api/deadletters/{id}", a.guarded(a.letter))
	return mux
}

// welcome serves the API on a port of its own, which a network policy can open to
// readers without opening that of events.
func (a *Archive) welcome(ctx context.Context) error {
	if a.Readers == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.Readers)
	if err != nil {
		return fmt.Errorf("cannot listen on %q: %w", a.Readers, err)
	}
	server := &http.Server{Handler: a.API(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 60 * time.Second, MaxHeaderBytes: 64 << 10}
	a.ended.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.Log.Error("readers are not served any more", "error", err.Error())
		}
	})
	a.ended.Go(func() {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		_ = server.Shutdown(stop)
	})
	return nil
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
	f := File{Name: recordingName(id), Size: int64(len(text)), At: a.now()}
	if err := a.Store.Put(r.Context(), f.Name, text); err != nil {
		a.Log.Error("cannot keep a recording", "recording", id, "error", err.Error())
		http.Error(w, "cannot keep the recording", http.StatusServiceUnavailable)
		return
	}
	a.remember(f, h)
	a.filled(r.Context(), 0, f.Size)
	w.WriteHeader(http.StatusNoContent)
}

func recordingName(id string) string { return join(recordingsDir, id+record.Suffix) }

// list shows headers of recordings, the newest last.
func (a *Archive) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	headers, err := a.headers(r.Context(), record.Filter{
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
	a.send(w, r, recordingName(r.PathValue("id")), "text/plain; charset=utf-8")
}

// Letter is an event that no function could take.
type Letter struct {
	ID    string          `json:"id"`
	Event json.RawMessage `json:"event"`
}

// letters shows dead letters, the newest last.
func (a *Archive) letters(w http.ResponseWriter, r *http.Request) {
	files, err := a.Store.List(r.Context(), "")
	if err != nil {
		a.broken(w, err)
		return
	}
	after, most := r.URL.Query().Get("after"), limit(r.URL.Query().Get("limit"))
	var ids []string
	var size int64
	for _, f := range slices.Backward(files) {
		id, ok := strings.CutSuffix(f.Name, letterSuffix)
		if !ok || id <= after || !record.ValidID(id) {
			continue
		}
		if size += f.Size; len(ids) == most || (size > maxLetters && len(ids) > 0) {
			break
		}
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	reply(w, map[string]any{"items": a.opened(r.Context(), ids)})
}

// opened reads dead letters, a few at once, as far as they are there and can be read.
func (a *Archive) opened(ctx context.Context, ids []string) []Letter {
	items := make([]Letter, len(ids))
	slots := make(chan struct{}, ahead)
	var wg sync.WaitGroup
	for i, id := range ids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if raw, err := a.Store.Get(ctx, id+letterSuffix, 0); err == nil && json.Valid(raw) {
				items[i] = Letter{ID: id, Event: raw}
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(items, func(l Letter) bool { return l.ID == "" })
}

func (a *Archive) letter(w http.ResponseWriter, r *http.Request) {
	a.send(w, r, r.PathValue("id")+letterSuffix, "application/json")
}

func (a *Archive) send(w http.ResponseWriter, r *http.Request, name, contentType string) {
	text, err := []byte(nil), fs.ErrNotExist
	if record.ValidID(r.PathValue("id")) {
		text, err = a.Store.Get(r.Context(), name, 0)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "there is none of that name", http.StatusNotFound)
		return
	case err != nil:
		a.broken(w, err)
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
