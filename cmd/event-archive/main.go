// Command event-archive keeps events: it is the dead-letter sink of every
// Trigger. Each event becomes one JSON file, in CloudEvents' own structured
// format with all attributes and extensions, so that it can be read, and sent
// again, as it was.
//
// Settings: ARCHIVE_DIR is the directory (required); ARCHIVE_MAX_EVENTS is how
// many events are kept, the oldest go first (10000).
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/slipway-dev/slipway/shared/serve"
)

func main() {
	archive, err := fromEnvironment(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	serve.Main(archive)
}

func fromEnvironment(getenv func(string) string) (*Archive, error) {
	dir := getenv("ARCHIVE_DIR")
	if dir == "" {
		return nil, fmt.Errorf("cannot start: set ARCHIVE_DIR to the directory that events are kept in")
	}
	keep := 10000
	if text := getenv("ARCHIVE_MAX_EVENTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("cannot start: ARCHIVE_MAX_EVENTS is %q: use a number from 1", text)
		}
		keep = n
	}
	return &Archive{Dir: dir, Keep: keep, Log: serve.Logger(os.Stderr, getenv("LOG_LEVEL"))}, nil
}
