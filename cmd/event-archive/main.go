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
// Where it keeps them, one of:
//
//	ARCHIVE_DIR                a directory
//	ARCHIVE_BUCKET             URL of a bucket of an S3-compatible server, with a prefix if
//	                           wanted: https://s3.example.org/slipway/archive
//	ARCHIVE_BUCKET_REGION      its region; empty asks the server
//	ARCHIVE_BUCKET_KEYS        directory with the files access-key and secret-key, as a
//	                           Secret is mounted (/etc/event-archive/bucket); they are read
//	                           again every minute. With ca.crt beside them its certificates
//	                           are trusted besides the system's.
//
// How long (the oldest go first):
//
//	ARCHIVE_MAX_EVENTS         how many events are kept (10000)
//	ARCHIVE_MAX_BYTES          how much space recordings may take, and events half as much
//	                           (128 MiB)
//	ARCHIVE_MAX_AGE            how long anything is kept, like 168h; empty is as long as
//	                           there is room
//
// Who may read:
//
//	ARCHIVE_AUTH               cluster (default) asks the API server (see Auth), none lets
//	                           everybody, for an archive that listens on the loopback
//	                           address alone
//	ARCHIVE_NAMESPACE          where the right to read has to hold (slipway-system)
//	ARCHIVE_READERS            address of another port, which serves /api alone: the port of
//	                           events stays closed to readers' networks
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

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
	// defaultKeys is where the Secret with the bucket's credentials is mounted.
	defaultKeys = "/etc/event-archive/bucket"
)

func fromEnvironment(getenv func(string) string) (*Archive, error) {
	a := &Archive{
		Keep: 10000, MaxBytes: defaultMaxBytes, MaxRecording: maxRecording, Readers: getenv("ARCHIVE_READERS"),
		Log: serve.Logger(os.Stderr, getenv("LOG_LEVEL")),
	}
	var err error
	if a.Store, err = storeOf(getenv); err != nil {
		return nil, fmt.Errorf("cannot start: %w", err)
	}
	if err := a.retention(getenv); err != nil {
		return nil, fmt.Errorf("cannot start: %w", err)
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

func storeOf(getenv func(string) string) (Store, error) {
	dir, bucket := getenv("ARCHIVE_DIR"), getenv("ARCHIVE_BUCKET")
	switch {
	case dir != "" && bucket != "":
		return nil, errors.New("both ARCHIVE_DIR and ARCHIVE_BUCKET are set: use one of them")
	case dir != "":
		return Directory(dir), nil
	case bucket == "":
		return nil, errors.New("set ARCHIVE_DIR to the directory that events are kept in, or ARCHIVE_BUCKET to the URL of a bucket")
	}
	store, err := NewBucket(bucket, getenv("ARCHIVE_BUCKET_REGION"), cmp.Or(getenv("ARCHIVE_BUCKET_KEYS"), defaultKeys))
	if err != nil {
		return nil, fmt.Errorf("cannot use ARCHIVE_BUCKET: %w", err)
	}
	return store, nil
}

func (a *Archive) retention(getenv func(string) string) error {
	if text := getenv("ARCHIVE_MAX_EVENTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("ARCHIVE_MAX_EVENTS is %q: use a number from 1", text)
		}
		a.Keep = n
	}
	if text := getenv("ARCHIVE_MAX_BYTES"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("ARCHIVE_MAX_BYTES is %q: use a number from 1", text)
		}
		a.MaxBytes = n
	}
	if text := getenv("ARCHIVE_MAX_AGE"); text != "" {
		age, err := time.ParseDuration(text)
		if err != nil || age <= 0 {
			return fmt.Errorf("ARCHIVE_MAX_AGE is %q: use a time like 168h", text)
		}
		a.MaxAge = age
	}
	return nil
}
