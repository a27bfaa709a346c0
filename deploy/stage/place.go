package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const (
	// state is kn func's own folder.
	state = ".func"
	// configFile is what kn func reads, and writes its state into.
	configFile = "func.yaml"
	// sourceCopy is the source that the staged configuration was made from.
	sourceCopy = state + "/func.yaml.src"
)

// place makes the folder hold the files and no others, and leaves alone what is
// right already.
func place(target string, files map[string][]byte) error {
	for name, content := range files {
		if err := write(filepath.Join(target, filepath.FromSlash(name)), content); err != nil {
			return err
		}
	}
	return sweep(target, files)
}

// write writes a file whose bytes differ.
func write(path string, content []byte) error {
	have, err := os.ReadFile(path)
	if err == nil && bytes.Equal(have, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a copy of what everybody can read
		return err
	}
	return os.WriteFile(path, content, 0o644) //nolint:gosec // a copy of what everybody can read
}

// sweep removes files that are no longer wanted, and the folders that are empty
// then. kn func's are not among them.
func sweep(target string, files map[string][]byte) error {
	var folders []string
	err := filepath.WalkDir(target, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == target {
			return err
		}
		name, err := filepath.Rel(target, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case name == state && entry.IsDir():
			return fs.SkipDir
		case entry.IsDir():
			folders = append(folders, path)
			return nil
		case name == configFile || files[name] != nil:
			return nil
		}
		return os.Remove(path) //nolint:gosec // the folder is this program's own
	})
	if err != nil {
		return fmt.Errorf("cannot tidy %q: %w", target, err)
	}
	for _, folder := range slices.Backward(folders) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			continue
		}
		if err := os.Remove(folder); err != nil {
			return err
		}
	}
	return nil
}

// configure writes func.yaml if it is not there, or if its source is another than
// the one that it was made from. The copy of the source comes last: whatever
// interrupts this is repeated.
func configure(target string, source []byte) error {
	config, noted := filepath.Join(target, configFile), filepath.Join(target, filepath.FromSlash(sourceCopy))
	before, err := os.ReadFile(noted)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, missing := os.Stat(config)
	if missing == nil && bytes.Equal(before, source) {
		return nil
	}
	if err := write(config, source); err != nil {
		return err
	}
	return write(noted, source)
}
