package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// hierarchies are the folders of the machine's control groups, without the links that
// give some of them a second name.
func hierarchies() []string {
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, entry := range entries {
		if entry.IsDir() {
			dirs = append(dirs, filepath.Join(cgroupRoot, entry.Name()))
		}
	}
	return dirs
}

// removeCgroups removes the groups of the given name. They stay busy for a moment
// after their processes were killed.
func removeCgroups(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var errs []error
		for _, dir := range hierarchies() {
			errs = append(errs, removeTree(filepath.Join(dir, name)))
		}
		err := errors.Join(errs...)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("cannot remove the node's control groups: %w", err)
		}
	}
}

// removeTree removes a control group with all below it: folders only, the deepest
// first.
func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
