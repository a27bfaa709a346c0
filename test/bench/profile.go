package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync/atomic"
)

var profiles atomic.Int64

// profiled does something and keeps the CPU profile of it below the directory that
// PROFILE names: `go tool pprof -top BINARY DIR/machine-vm.ours.*` adds up the turns.
func profiled(name string, do func() error) error {
	dir := os.Getenv("PROFILE")
	if dir == "" {
		return do()
	}
	file, err := os.Create(filepath.Join(filepath.Clean(dir), fmt.Sprintf("%s.%d.pprof", name, profiles.Add(1)))) //nolint:gosec // the person who runs it names the folder
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return do()
}
