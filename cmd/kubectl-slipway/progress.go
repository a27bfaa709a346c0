package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// progressDelay is how long nothing is shown: what is quick needs no word.
	progressDelay = 300 * time.Millisecond
	// progressPeriod is how often the line is drawn again, for its seconds.
	progressPeriod = time.Second
	// progressNames is how many clusters the line names.
	progressNames = 3
	// eraseLine goes to the start of the line and clears it.
	eraseLine = "\r\x1b[K"
)

// progress shows on a terminal what is waited for, on one line that goes when it
// ends. On anything else it shows nothing.
type progress struct {
	out     io.Writer
	started time.Time
	delay   time.Duration
	stop    chan struct{}
	stopped sync.WaitGroup

	mu    sync.Mutex
	line  string
	drawn bool
}

// newProgress starts to show what is waited for.
func newProgress(stderr io.Writer) *progress {
	file, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) { //nolint:gosec // a file descriptor is a small number
		return nil
	}
	return startProgress(stderr, progressDelay, progressPeriod)
}

func startProgress(out io.Writer, delay, period time.Duration) *progress {
	p := &progress{out: out, started: time.Now(), delay: delay, stop: make(chan struct{})}
	p.stopped.Go(func() {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-timer.C:
				timer.Reset(period)
				p.draw()
			}
		}
	})
	return p
}

// update tells how many clusters are done, and which are waited for.
func (p *progress) update(done, total int, waiting []string) {
	if p == nil {
		return
	}
	names := waiting
	more := ""
	if len(names) > progressNames {
		names, more = names[:progressNames], fmt.Sprintf(" and %d more", len(waiting)-progressNames)
	}
	p.mu.Lock()
	p.line = fmt.Sprintf("%d of %d clusters checked", done, total)
	if len(names) > 0 {
		p.line += ", waiting for " + strings.Join(names, ", ") + more
	}
	p.mu.Unlock()
	if time.Since(p.started) >= p.delay {
		p.draw()
	}
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line == "" {
		return
	}
	p.drawn = true
	fmt.Fprintf(p.out, "%s%s (%ds)", eraseLine, p.line, int(time.Since(p.started).Seconds()))
}

// end takes the line away.
func (p *progress) end() {
	if p == nil {
		return
	}
	close(p.stop)
	p.stopped.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprint(p.out, eraseLine)
	}
}
