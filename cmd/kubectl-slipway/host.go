package main

import (
	"fmt"
	"os"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// exitChanges is how the command ends when something would change, as kubectl diff's
// own 1 would say that it failed.
const exitChanges = 2

// exitCode is an error that only says how to end.
type exitCode int

// Error implements error.
func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// hostOf makes a function under the settings of a recording, or under those of the
// environment if settings is nil. It records nothing, and writes only what somebody
// asks of it.
func hostOf(name string, settings map[string]string) (*reconcile.Host, error) {
	if err := checkFunction(name); err != nil {
		return nil, err
	}
	for _, variable := range []string{"SLIPWAY_RECORD", "SLIPWAY_RECORD_DIR", "SLIPWAY_RECORD_ARCHIVE", "SLIPWAY_MODE", "K_SINK"} {
		if err := os.Unsetenv(variable); err != nil {
			return nil, fmt.Errorf("cannot set up function %s: %w", name, err)
		}
	}
	if _, set := os.LookupEnv("LOG_LEVEL"); !set {
		if err := os.Setenv("LOG_LEVEL", "error"); err != nil {
			return nil, fmt.Errorf("cannot set up function %s: %w", name, err)
		}
	}
	if settings != nil {
		if err := setSettings(name, settings); err != nil {
			return nil, err
		}
	}
	return slipway.Host(name), nil
}

// setSettings sets those of a function that a recording names, and no others.
func setSettings(name string, settings map[string]string) error {
	for _, spec := range slipway.Specs() {
		if spec.Name != name {
			continue
		}
		for _, v := range spec.Env {
			value, set := settings[v.Name]
			err := os.Unsetenv(v.Name)
			if set {
				err = os.Setenv(v.Name, value)
			}
			if err != nil {
				return fmt.Errorf("cannot set up function %s: %w", name, err)
			}
		}
	}
	return nil
}
