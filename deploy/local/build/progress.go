package build

import (
	"fmt"
	"time"
)

// patience is how long a build may take before a word is said about it: what go
// finds in its cache is not worth a line.
const patience = 2 * time.Second

// progress tells the reader of opts.Out that the target is being built, and how
// long it has been. The returned function ends that, with a last line unless its
// outcome is "" and nothing was said before.
func progress(opts Options, t Target, first bool) func(outcome string) {
	start := time.Now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	said := false
	say := func() {
		said = true
		if t.Hint == "" || !first {
			fmt.Fprintf(opts.Out, "building %s\n", t.Name)
			return
		}
		fmt.Fprintf(opts.Out, "building %s (%s)\n", t.Name, t.Hint)
	}
	if first {
		say()
	}
	go func() {
		defer close(stopped)
		next := time.NewTimer(min(patience, opts.Every))
		defer next.Stop()
		for {
			select {
			case <-stop:
				return
			case <-next.C:
			}
			if said {
				fmt.Fprintf(opts.Out, "  %s: still building after %s\n", t.Name, time.Since(start).Round(time.Second))
			} else {
				say()
			}
			next.Reset(opts.Every)
		}
	}()
	return func(outcome string) {
		close(stop)
		<-stopped
		if outcome == "" && !said {
			return
		}
		if outcome == "" {
			outcome = "up to date"
		}
		fmt.Fprintf(opts.Out, "  %s: %s after %s\n", t.Name, outcome, time.Since(start).Round(100*time.Millisecond))
	}
}
