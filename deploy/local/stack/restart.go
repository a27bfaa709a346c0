package stack

import (
	"context"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// memory lets a process keep to what its container may take, since there is none here.
func memory(container map[string]any) []any {
	limit, _, _ := unstructured.NestedString(container, "resources", "limits", "memory")
	target := serve.MemoryTarget(limit)
	if target == 0 {
		return nil
	}
	return []any{map[string]any{"name": "GOMEMLIMIT", "value": strconv.FormatInt(target, 10)}}
}
