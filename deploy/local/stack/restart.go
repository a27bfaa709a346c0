package stack

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/shared/serve"
)

// RestartEventing kills sources, broker and the functions' processes as a crash of the
// machine they run on does, with all events that are on their way, and starts them again.
// It must not run beside Stop.
func (s *Stack) RestartEventing(ctx context.Context) error {
	at := slices.IndexFunc(s.processes, func(p *process) bool { return p.name == "eventing" })
	_ = s.processes[at].cmd.Process.Kill() // the functions die with it
	<-s.processes[at].done
	s.processes = slices.Delete(s.processes, at, at+1)
	return s.eventing(ctx, s.installed)
}

// RestartAPIServer kills the supervisor's API server, and starts it again after a while.
func (s *Stack) RestartAPIServer(ctx context.Context, away time.Duration) error {
	return s.Cluster.RestartAPIServer(ctx, away)
}

// absence is how long the API server of a remote cluster stays away that somebody has
// ended: long enough to look at what its Machines say, and to delete one.
const absence = time.Minute

// outlive lets the stack go on when the API server of a remote cluster ends. That is how a
// person looks at an outage, and it is that cluster's alone.
func (s *Stack) outlive() {
	var ctx context.Context
	ctx, s.forsake = context.WithCancel(context.Background())
	s.broken = make(chan error, len(s.others()))
	for _, remote := range s.others() {
		name, cluster := remote.Name, remote.Cluster
		lost := make(chan error, 1)
		cluster.Outlive(func(err error) { lost <- err })
		remote.called = make(chan struct{}, 1)
		s.returns.Go(func() {
			for {
				select {
				case err := <-lost:
					s.bringBack(ctx, name, cluster, remote.called, err)
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// CallBack ends the absence of a remote cluster whose API server was ended.
func (s *Stack) CallBack(remote *Remote) { remote.called <- struct{}{} }

// bringBack starts an API server again after its absence, or when it is called.
func (s *Stack) bringBack(ctx context.Context, name string, cluster *kube.Cluster, called <-chan struct{}, why error) {
	what, _, _ := strings.Cut(why.Error(), ";")
	s.printer.Say("remote cluster %s is down, %s: it comes back in %s", name, what, absence)
	timer := time.NewTimer(absence)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-called:
	case <-ctx.Done():
		return
	}
	if err := cluster.StartAPIServer(ctx); err != nil {
		s.broken <- err
		return
	}
	s.printer.Say("remote cluster %s is back", name)
}

// memory lets a process keep to what its container may take, since there is none here.
func memory(container map[string]any) []any {
	limit, _, _ := unstructured.NestedString(container, "resources", "limits", "memory")
	target := serve.MemoryTarget(limit)
	if target == 0 {
		return nil
	}
	return []any{map[string]any{"name": "GOMEMLIMIT", "value": strconv.FormatInt(target, 10)}}
}
