// Command event-archive keeps what is looked at later: dead letters and recordings.
//
// It is the dead-letter sink of every Trigger. Each event becomes one JSON file, in
// CloudEvents' own structured format with all attributes and extensions, so that it can
// be read, and sent again, as it was.
//
// Functions put recordings of reconciles at /recordings/ID (package record). They hold
// no secrets.
//
// Readers find both below /api: /api/recordings and /api/deadletters list (parameters
// function, kind, namespace, name, after, limit), with an id behind it comes one.
//
// Settings: ARCHIVE_DIR is the directory (required); ARCHIVE_MAX_EVENTS is how many
// events are kept (10000), ARCHIVE_MAX_BYTES how much space recordings may take
// (128 MiB); the oldest go first. ARCHIVE_AUTH says who may read: cluster (default)
// asks the API server (see Auth), none lets everybody, for an archive that listens on
// the loopback address alone. ARCHIVE_NAMESPACE is where the right to read has to hold
// (slipway-system).
package main

import (
	"cmp"
	"fmt"
	"os"
	"strconv"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() {
	archive, err := fromEnvironment(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	serve.MainWith(archive, archive.Handler)
}

const (
	defaultMaxBytes = 128 << 20
	// maxRecording bounds one recording: functions send 4 MiB by default.
	maxRecording = 4 << 20
)

func fromEnvironment(getenv func(string) string) (*Archive, error) {
	dir := getenv("ARCHIVE_DIR")
	if dir == "" {
		return nil, fmt.Errorf("cannot start: set ARCHIVE_DIR to the directory that events are kept in")
	}
	a := &Archive{Dir: dir, Keep: 10000, MaxBytes: defaultMaxBytes, MaxRecording: maxRecording, Log: serve.Logger(os.Stderr, getenv("LOG_LEVEL"))}
	if text := getenv("ARCHIVE_MAX_EVENTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("cannot start: ARCHIVE_MAX_EVENTS is %q: use a number from 1", text)
		}
		a.Keep = n
	}
	if text := getenv("ARCHIVE_MAX_BYTES"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("cannot start: ARCHIVE_MAX_BYTES is %q: use a number from 1", text)
		}
		a.MaxBytes = n
	}
	switch mode := getenv("ARCHIVE_AUTH"); mode {
	case "none":
	case "", "cluster":
		config, err := cluster.Config()
		if err != nil {
			return nil, fmt.Errorf("cannot start: %w (ARCHIVE_AUTH=none lets everybody read)", err)
		}
		if a.Auth, err = NewAuth(config, cmp.Or(getenv("ARCHIVE_NAMESPACE"), "slipway-system")); err != nil {
			return nil, fmt.Errorf("cannot start: %w", err)
		}
	default:
		return nil, fmt.Errorf("cannot start: ARCHIVE_AUTH is %q: use cluster or none", mode)
	}
	return a, nil
}
