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
)

// pool renders the templates of all scenarios.
var pool *worker.Pool

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
