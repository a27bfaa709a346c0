package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/shared/record"
)

// Store is where files are kept: a directory or a bucket. A file's name has at most one
// folder before it. What is not there is fs.ErrNotExist.
type Store interface {
	// Check tells whether files can be kept at all, and clears what a crash left.
	Check(ctx context.Context) error
	// Put writes a file that is there whole or not at all.
	Put(ctx context.Context, name string, text []byte) error
	// Get reads a file; most is how much of its beginning, 0 is all.
	Get(ctx context.Context, name string, most int64) ([]byte, error)
	// List are the files of a folder, sorted by name; "" is outside of all folders.
	List(ctx context.Context, folder string) ([]File, error)
	// Remove removes a file. One that is gone already is no error.
	Remove(ctx context.Context, name string) error
}

// File is what a list tells of a file.
type File struct {
	Name string
	Size int64
	// At is when it was written.
	At time.Time
}

// Directory keeps files in a directory.
type Directory string

// Check implements Store.
func (d Directory) Check(context.Context) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("cannot use the directory: %w", err)
	}
	partial, err := filepath.Glob(filepath.Join(string(d), partialPrefix+"*"))
	if err != nil {
		return fmt.Errorf("cannot use the directory: %w", err)
	}
	for _, path := range partial {
		_ = os.Remove(path)
	}
	return nil
}

// partialPrefix begins the names of files that are being written.
const partialPrefix = ".partial-"

func (d Directory) path(name string) string {
	return filepath.Join(string(d), filepath.FromSlash(name))
}

// Put implements Store.
func (d Directory) Put(_ context.Context, name string, text []byte) error {
	path := d.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot make the directory: %w", err)
	}
	return record.WriteFile(path, text)
}

// Get implements Store.
func (d Directory) Get(_ context.Context, name string, most int64) ([]byte, error) {
	file, err := os.Open(d.path(name))
	if err != nil {
		return nil, fmt.Errorf("cannot read: %w", err)
	}
	defer func() { _ = file.Close() }()
	return readUpTo(file, most)
}

// List implements Store.
func (d Directory) List(_ context.Context, folder string) ([]File, error) {
	entries, err := os.ReadDir(d.path(folder))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list: %w", err)
	}
	var files []File
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(entry.Name(), partialPrefix) {
			continue // it went meanwhile, or is none
		}
		files = append(files, File{Name: join(folder, entry.Name()), Size: info.Size(), At: info.ModTime()})
	}
	sortFiles(files)
	return files, nil
}

// Remove implements Store.
func (d Directory) Remove(_ context.Context, name string) error {
	if err := os.Remove(d.path(name)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("cannot remove: %w", err)
	}
	return nil
}

func join(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

func sortFiles(files []File) {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
}
