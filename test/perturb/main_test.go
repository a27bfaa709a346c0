package perturb

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/slipway-dev/slipway/shared/render/worker"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

var (
	seed = flag.Uint64("seed", 1, "chooses which events are lost, how they are reordered, and which calls are sampled")
	only = flag.String("only", "", "the name of the one function to perturb; empty for all")
	part = share{1, 1}
)

// pool renders the templates of all scenarios.
var pool *worker.Pool

func init() {
	flag.Var(&part, "share", "run one of so many shares of all runs, such as 3/12: each takes every twelfth, so that any of them meets every function and every fault")
}

// share is one of so many.
type share struct{ n, of int }

// String implements flag.Value.
func (s *share) String() string { return fmt.Sprintf("%d/%d", s.n, s.of) }

// Set implements flag.Value.
func (s *share) Set(text string) error {
	var next share
	if n, err := fmt.Sscanf(text, "%d/%d", &next.n, &next.of); n != 2 || err != nil || next.n < 1 || next.n > next.of || next.String() != text {
		return fmt.Errorf("%q is no share: use one such as 3/12", text)
	}
	*s = next
	return nil
}

// takes tells whether the i-th of all runs, from 0, belongs to the share.
func (s *share) takes(i int) bool { return i%s.of == s.n-1 }

func TestMain(m *testing.M) {
	worker.Hook()
	pool = worker.New(2)
	code := suites(scenarios, m).Run()
	pool.Close()
	fmt.Printf("perturb: seed %d; injected:\n%s", *seed, injected.table())
	os.Exit(code)
}

// suites has the tests run within the suites of all scenarios, which share the API
// server: each looks at what its function was refused.
func suites(of []*scenario, m kubetest.Runner) kubetest.Runner {
	for _, s := range of {
		m = within{suite: s.suite, next: m}
	}
	return m
}

type within struct {
	suite interface{ Main(kubetest.Runner) int }
	next  kubetest.Runner
}

func (w within) Run() int { return w.suite.Main(w.next) }
