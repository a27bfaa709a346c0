package perturb

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/test/suite"
)

// tellEvery is how long nothing is heard of a long run.
const tellEvery = 30 * time.Second

// progress tells a person how far the runs of a test are: all of them take hours.
type progress struct {
	name string
	all  int

	mu          sync.Mutex
	done        int
	began, told time.Time
}

func newProgress(name string, all int) *progress {
	return &progress{name: name, all: all, began: time.Now(), told: time.Now()}
}

// one run has ended.
func (p *progress) one() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if !suite.Exhaustive() || (time.Since(p.told) < tellEvery && p.done < p.all) {
		return
	}
	p.told = time.Now()
	took := time.Since(p.began)
	left := took / time.Duration(p.done) * time.Duration(p.all-p.done)
	fmt.Fprintf(os.Stderr, "%s: %d of %d runs in %s, about %s left\n", p.name, p.done, p.all, took.Round(time.Second), left.Round(time.Second))
}
