package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Filter says which recordings a list shows.
type Filter struct {
	// Function, Kind, Namespace and Name are those of the reconciled object; empty is any.
	Function, Kind, Namespace, Name string
	// After is the id of the last recording that is known already.
	After string
	// Limit is how many of the newest are shown; 0 is all.
	Limit int
}

// Matches tells whether a recording is shown.
func (f Filter) Matches(h Header) bool {
	return (f.Function == "" || f.Function == h.Function) && (f.Kind == "" || strings.EqualFold(f.Kind, h.Kind)) &&
		(f.Namespace == "" || f.Namespace == h.Namespace) && (f.Name == "" || f.Name == h.Name) && h.ID > f.After
}

// Newest keeps the last headers that a limit allows, in the order of their ids.
func (f Filter) Newest(headers []Header) []Header {
	slices.SortFunc(headers, func(a, b Header) int { return strings.Compare(a.ID, b.ID) })
	if f.Limit > 0 && len(headers) > f.Limit {
		headers = headers[len(headers)-f.Limit:]
	}
	return headers
}

// Headers lists the recordings below a directory. Files that are none are left out.
func Headers(dir string, f Filter) ([]Header, error) {
	var headers []Header
	err := files(dir, func(path string) {
		// A name begins with the time, as an id does: most files need not be opened.
		if id := strings.TrimSuffix(filepath.Base(path), Suffix); id <= f.After {
			return
		}
		if h, err := readHeader(path); err == nil && f.Matches(h) {
			headers = append(headers, h)
		}
	})
	return f.Newest(headers), err
}

// Find is the file of a recording below a directory.
func Find(dir, id string) (string, error) {
	if !ValidID(id) {
		return "", fmt.Errorf("cannot find recording %q: that is no recording's name", id)
	}
	found := ""
	err := files(dir, func(path string) {
		if filepath.Base(path) == id+Suffix {
			found = path
		}
	})
	if err == nil && found == "" {
		err = fmt.Errorf("cannot find recording %q: %w", id, fs.ErrNotExist)
	}
	return found, err
}

func files(dir string, visit func(path string)) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it went meanwhile
		case err != nil:
			return err
		case entry.Type().IsRegular() && strings.HasSuffix(path, Suffix) && !strings.HasPrefix(entry.Name(), partialPrefix):
			visit(path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot list the recordings: %w", err)
	}
	return nil
}

func readHeader(path string) (Header, error) {
	file, err := os.Open(path) //nolint:gosec // a file below a directory that the caller chose
	if err != nil {
		return Header{}, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, headerSize))
	if err != nil {
		return Header{}, err
	}
	return ParseHeader(text)
}

// ReadFile reads a recording. edited accepts one whose checksum is wrong.
func ReadFile(path string, edited bool) (*Recording, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read recording: %w", err)
	}
	if info.Size() > MaxSize {
		return nil, fmt.Errorf("cannot read recording %q: it has %d bytes, at most %d are read", path, info.Size(), MaxSize)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the file that the caller named
	if err != nil {
		return nil, fmt.Errorf("cannot read recording: %w", err)
	}
	r, err := Parse(text)
	if errors.Is(err, ErrEdited) && edited {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read recording %q: %w", path, err)
	}
	return r, nil
}
