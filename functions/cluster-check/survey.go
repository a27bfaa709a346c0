package clustercheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/vault"
)

// surveyed is how many clusters a survey looks at at once.
const surveyed = 16

// SurveyOptions say what a person wants to know.
type SurveyOptions struct {
	// Single says whether Machines run on the management cluster itself.
	Single decide.SingleCluster
	// Only are the KubevirtConfigs to check; empty for all.
	Only []string
	// Timeout bounds the checks of one cluster; 0 is ten seconds.
	Timeout time.Duration
	// Progress is told how many clusters are done and which are waited for,
	// whenever that changes; it may be nil. It is never called twice at once.
	Progress func(done, total int, waiting []string)
}

// Survey looks at the management cluster and, side by side, at the target
// clusters: what the function looks at, on demand. A target that cannot be
// looked at is part of what was seen; an error says that the management cluster
// does not answer, or that it has no KubevirtConfig of a name.
func Survey(ctx context.Context, clusters *cluster.Set, settings decide.Settings, opts SurveyOptions) (decide.Survey, error) {
	ctx = cluster.WithMemory(ctx)
	if opts.Timeout <= 0 {
		opts.Timeout = cluster.Timeout
	}
	r := read.New(clusters.View(), vault.New())
	s := decide.Survey{Settings: settings, Only: opts.Only}
	var err error
	if s.Served, err = serves(ctx, r); err != nil {
		return s, err
	}
	if s.Single = decide.Single(opts.Single, s.Served, settings); s.Single || s.ConfigsRefused != nil {
		s.Only = nil // there are no names to choose from
	}
	if s.Definitions, err = define(ctx, r); err != nil {
		return s, err
	}
	targets, err := targets(s)
	if err != nil {
		return s, err
	}
	s.Sights, err = (&survey{clusters: clusters, gatherer: gatherer{settings: settings}, opts: opts}).look(ctx, targets)
	return s, err
}

// serves reads what the management cluster serves and holds.
func serves(ctx context.Context, r *read.Reader) (decide.Served, error) {
	served := decide.Served{Resources: map[string]bool{}}
	for _, res := range append(decide.Expected(), kinds.VirtualMachines) {
		is, err := r.Serves(ctx, decide.Management, res)
		if err != nil {
			return served, err
		}
		served.Resources[res.String()] = is
	}
	if !served.Resources[kinds.KubevirtConfigs.String()] {
		return served, nil
	}
	configs, err := r.List(ctx, decide.Management, kinds.KubevirtConfigs, "", "")
	var f *fault.Fault
	if errors.As(err, &f) && f.Class == fault.Refused {
		served.ConfigsRefused = f
		return served, nil
	}
	served.Configs = configs
	return served, err
}

// targets are the KubevirtConfigs whose clusters are to be looked at; a nil one
// stands for the management cluster.
func targets(s decide.Survey) ([]*unstructured.Unstructured, error) {
	if s.Single {
		return []*unstructured.Unstructured{nil}, nil
	}
	all := decide.Counted(s.Configs, s.Settings)
	if len(s.Only) == 0 {
		return all, nil
	}
	var names []string
	for _, config := range all {
		names = append(names, config.GetName())
	}
	for _, name := range s.Only {
		if !slices.Contains(names, name) {
			if len(names) == 0 {
				return nil, fmt.Errorf("cannot find KubevirtConfig %q: there is none at all", name)
			}
			return nil, fmt.Errorf("cannot find KubevirtConfig %q: there are %s", name, strings.Join(names, ", "))
		}
	}
	// The versions are compared with those of the first by name.
	yardstick := decide.Yardstick(s.Configs, s.Settings)
	return slices.DeleteFunc(all, func(config *unstructured.Unstructured) bool {
		return !slices.Contains(s.Only, config.GetName()) && (yardstick == nil || config.GetName() != yardstick.GetName())
	}), nil
}

// survey is a look at several clusters under way.
type survey struct {
	gatherer
	clusters *cluster.Set
	opts     SurveyOptions

	mu      sync.Mutex
	done    int
	waiting []string
}

func (s *survey) look(ctx context.Context, targets []*unstructured.Unstructured) ([]decide.Sight, error) {
	sights := make([]decide.Sight, len(targets))
	errs := make([]error, len(targets))
	slots := make(chan struct{}, surveyed)
	var wg sync.WaitGroup
	for i, config := range targets {
		slots <- struct{}{}
		name := called(config)
		s.tell(len(targets), func() { s.waiting = append(s.waiting, name) })
		wg.Go(func() {
			defer func() { <-slots }()
			sights[i], errs[i] = s.one(ctx, config)
			s.tell(len(targets), func() {
				s.done++
				s.waiting = slices.DeleteFunc(s.waiting, func(other string) bool { return other == name })
			})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return sights, nil
}

func called(config *unstructured.Unstructured) string {
	if config == nil {
		return "the management cluster"
	}
	return config.GetName()
}

// one looks at a cluster with a reader of its own.
func (s *survey) one(ctx context.Context, config *unstructured.Unstructured) (decide.Sight, error) {
	r := read.New(s.clusters.View(), vault.New())
	sight := &decide.Sight{Cluster: decide.Management}
	if config != nil {
		var err error
		if sight, err = s.connect(ctx, r, config); err != nil {
			return decide.Sight{Cluster: config.GetName()}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	aheadSight(ctx, r, sight)
	err := see(ctx, r, sight)
	return *sight, err
}

func (s *survey) tell(total int, change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	if s.opts.Progress != nil {
		s.opts.Progress(s.done, total, slices.Clone(s.waiting))
	}
}
