package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/shared/render"
)

// Errors of a render that may work later; neither is a statement about the template.
var (
	// ErrBusy: no child was free in time.
	ErrBusy = errors.New("cannot render now: all renderers are busy")
	// ErrOverloaded: the machine gives children too little time.
	ErrOverloaded = errors.New("cannot render now")
)

const (
	// waitMax is how long a job waits for a child.
	waitMax = 2 * time.Second
	// jobsMax and residentMax are when a child is replaced.
	jobsMax     = 500
	residentMax = 150 << 20
	// cacheMax bounds the remembered results, in bytes of their outputs.
	cacheMax = 32 << 20
)

// Pool renders in children. It is safe for concurrent use.
type Pool struct {
	size int
	wait time.Duration

	mu sync.Mutex
	// idle are children without a job; busy is how many have one, in all and by party.
	idle    []*child
	busy    int
	parties map[string]int
	// freed is closed and made anew whenever a job ends.
	freed   chan struct{}
	flights map[string]*flight
	cache   cache
	closed  bool
	started int
}

// flight is a render under way that others may wait for.
type flight struct {
	done   chan struct{}
	result render.Result
	err    error
}

// New makes a pool of at most size children; 0 is one per processor. There are two
// at least, so that bad templates leave a child to their neighbours: one source never
// has all of them, and neither has one namespace, which may have many bad sources.
func New(size int) *Pool {
	if size == 0 {
		size = runtime.GOMAXPROCS(0)
	}
	return &Pool{
		size: max(size, 2), wait: waitMax, parties: map[string]int{}, freed: make(chan struct{}),
		flights: map[string]*flight{}, cache: cache{max: cacheMax},
	}
}

// Render renders, or takes what an equal request gave before. The result is the
// caller's own. An error says that the same request may work later.
func (p *Pool) Render(ctx context.Context, request render.Request) (render.Result, error) {
	if failure := request.TooLarge(); failure != nil {
		return render.Result{Failure: failure}, nil //nolint:nilerr // a failure is what the render came to
	}
	hash := request.Hash()
	p.mu.Lock()
	if result, ok := p.cache.get(hash); ok {
		p.mu.Unlock()
		return clone(result), nil
	}
	if f := p.flights[hash]; f != nil {
		p.mu.Unlock()
		select {
		case <-f.done:
			return clone(f.result), f.err
		case <-ctx.Done():
			return render.Result{}, fmt.Errorf("cannot wait for a render: %w", ctx.Err())
		}
	}
	f := &flight{done: make(chan struct{})}
	p.flights[hash] = f
	p.mu.Unlock()

	f.result, f.err = p.run(ctx, request)
	p.mu.Lock()
	delete(p.flights, hash)
	// A render that was stopped is not remembered: who asks again wants it tried.
	if limited := f.result.Failure != nil && f.result.Failure.Limit; f.err == nil && !limited {
		p.cache.put(hash, f.result)
	}
	p.mu.Unlock()
	close(f.done)
	return clone(f.result), f.err
}

func (p *Pool) run(ctx context.Context, request render.Request) (render.Result, error) {
	of := parties(request)
	c, err := p.acquire(ctx, request, of)
	if err != nil {
		return render.Result{}, err
	}
	answer, err := c.do(ctx, request)
	p.release(c, request, of)
	if err != nil {
		return render.Result{}, err
	}
	return request.Decode(answer), nil
}

// acquire waits for a free child, not long.
func (p *Pool) acquire(ctx context.Context, request render.Request, of []string) (*child, error) {
	timer := time.NewTimer(p.wait)
	defer timer.Stop()
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, ErrBusy
		}
		if p.busy < p.size && p.mayTake(of) {
			return p.take(request, of)
		}
		freed := p.freed
		p.mu.Unlock()
		select {
		case <-freed:
		case <-timer.C:
			return nil, ErrBusy
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot wait for a renderer: %w", ctx.Err())
		}
	}
}

// parties are those of whom none may have all children.
func parties(request render.Request) []string {
	of := []string{"source " + request.Source}
	if namespace := request.Namespace(); namespace != "" {
		of = append(of, "namespace "+namespace)
	}
	return of
}

// mayTake tells whether a child is left to others if these get one.
func (p *Pool) mayTake(of []string) bool {
	return !slices.ContainsFunc(of, func(party string) bool { return p.parties[party] >= p.size-1 })
}

// count notes that a child was given or came back. It is called with the lock.
func (p *Pool) count(of []string, by int) {
	p.busy += by
	for _, party := range of {
		if p.parties[party] += by; p.parties[party] == 0 {
			delete(p.parties, party)
		}
	}
}

// take is entered with the lock and leaves without.
func (p *Pool) take(request render.Request, of []string) (*child, error) {
	p.count(of, 1)
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.fresh(request) {
			p.mu.Unlock()
			return c, nil
		}
		go c.end()
	}
	p.started++
	p.mu.Unlock()
	c, err := start(request.Limits.Memory)
	if err != nil {
		p.release(nil, request, of)
		return nil, fmt.Errorf("%w: %w", ErrOverloaded, err)
	}
	return c, nil
}

// fresh tells whether a child may take one more job.
func (c *child) fresh(request render.Request) bool {
	select {
	case <-c.done:
		return false
	default:
	}
	return c.memory == request.Limits.Memory && c.jobs < jobsMax && c.resident < residentMax*factor
}

func (p *Pool) release(c *child, request render.Request, of []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(of, -1)
	close(p.freed)
	p.freed = make(chan struct{})
	switch {
	case c == nil:
	case p.closed || !c.fresh(request):
		go c.end()
	default:
		p.idle = append(p.idle, c)
	}
}

// Started is how many children the pool has started so far.
func (p *Pool) Started() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started
}

// Close ends the children that have no job; the others end with theirs.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		c.end()
	}
}

func clone(result render.Result) render.Result {
	outputs := make([]render.Output, 0, len(result.Outputs))
	for _, output := range result.Outputs {
		outputs = append(outputs, output.Clone())
	}
	result.Outputs = outputs
	return result
}
