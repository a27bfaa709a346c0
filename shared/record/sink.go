package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Suffix ends the names of recordings' files.
const Suffix = ".txtar"

// partialPrefix begins the names of files that are being written.
const partialPrefix = ".partial-"

// idPattern is what an id looks like: it is a file's name, and a part of a URL.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,180}$`)

// ValidID tells whether a text can be the id of a recording.
func ValidID(id string) bool { return idPattern.MatchString(id) && !strings.Contains(id, "..") }

// Directory keeps recordings as files, those of each function in a folder of its own.
type Directory struct {
	// Path is made when it is not there.
	Path string
	// Function is the name of the folder; empty for none.
	Function string
	// Most is how many files are kept, the oldest go first; 0 keeps all.
	Most int

	mu    sync.Mutex
	since int
}

// Keep writes a file.
func (d *Directory) Keep(_ context.Context, id string, text []byte) error {
	if !ValidID(id) {
		return fmt.Errorf("cannot use %q as a file's name", id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	dir := filepath.Join(d.Path, d.Function)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the directory for recordings: %w", err)
	}
	if err := WriteFile(filepath.Join(dir, id+Suffix), text); err != nil {
		return err
	}
	d.since++
	if d.Most == 0 || d.since < d.Most/10+1 {
		return nil
	}
	d.since = 0
	return Trim(dir, Suffix, d.Most)
}

// WriteFile writes a file that is there whole or not at all.
func WriteFile(path string, text []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), partialPrefix)
	if err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	return nil
}

// Trim removes the first files of a directory by name, which begins with a time,
// beyond the number to keep.
func Trim(dir, suffix string, most int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot list %q: %w", dir, err)
	}
	var names []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), suffix) && !strings.HasPrefix(entry.Name(), partialPrefix) {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	for ; len(names) > most; names = names[1:] {
		if err := os.Remove(filepath.Join(dir, names[0])); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot remove the oldest file: %w", err)
		}
	}
	return nil
}

// Archive sends recordings to an event-archive.
type Archive struct {
	url    string
	client *http.Client
}

// NewArchive makes a sink of the URL that takes recordings.
func NewArchive(url string) *Archive { return &Archive{url: url, client: &http.Client{}} }

// Keep sends one.
func (a *Archive) Keep(ctx context.Context, id string, text []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, strings.TrimSuffix(a.url, "/")+"/"+id, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("cannot reach the archive: %w", err)
	}
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	resp, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the archive: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("cannot keep the recording: the archive answered %s", resp.Status)
	}
	return nil
}
