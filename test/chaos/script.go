package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/test/subjects"
)

// act is what a person does to a subject.
type act string

const (
	create act = "create"
	change act = "change"
	remove act = "delete"
)

// step is one act at its time.
type step struct {
	act act
	at  time.Duration
}

// life is one subject and what happens to it, in order.
type life struct {
	subject *subjects.Subject
	name    string
	steps   []step
}

// script is what is done to all.
type script struct{ lives []*life }

// left out are subjects that would change what the others mean: a KubevirtConfig decides
// where Machines go that name none.
var leftOut = []string{"cluster-check"}

// newScript decides what happens.
func newScript(seed uint64, duration time.Duration, objects int, only string) (*script, error) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it has to be the same again
	var several, single []*subjects.Subject
	for _, name := range subjects.Functions() {
		if slices.Contains(leftOut, name) || (only != "" && name != only) {
			continue
		}
		subject, err := subjects.Read(name)
		if err != nil {
			return nil, err
		}
		if subject.Single {
			single = append(single, subject)
		} else {
			several = append(several, subject)
		}
	}
	s := &script{}
	for _, subject := range single {
		s.lives = append(s.lives, newLife(random, subject, subject.Function, duration, 0))
	}
	for i := range objects - len(single) {
		if len(several) == 0 {
			break
		}
		subject := several[i%len(several)]
		s.lives = append(s.lives, newLife(random, subject, fmt.Sprintf("%s-%03d", short(subject.Function), i/len(several)), duration, .3))
	}
	return s, nil
}

// short is a function's name as a part of names.
func short(function string) string {
	var letters strings.Builder
	for _, part := range strings.Split(function, "-") {
		letters.WriteString(part[:2])
	}
	return letters.String()
}

func newLife(random *rand.Rand, subject *subjects.Subject, name string, duration time.Duration, dies float64) *life {
	l := &life{subject: subject, name: name}
	at := time.Duration(random.Int64N(int64(duration) * 6 / 10))
	l.steps = append(l.steps, step{create, at})
	later := func() time.Duration { return at + time.Duration(random.Int64N(int64(duration-at))) }
	changes, removes := random.Float64() < .5, random.Float64() < dies
	if changes && len(subject.Change) > 0 {
		at = later()
		l.steps = append(l.steps, step{change, at})
	}
	if removes {
		at = later()
		l.steps = append(l.steps, step{remove, at})
	}
	return l
}

func (s *script) String() string {
	count := map[act]int{}
	for _, l := range s.lives {
		for _, step := range l.steps {
			count[step.act]++
		}
	}
	return fmt.Sprintf("%d created, %d changed, %d deleted", count[create], count[change], count[remove])
}

// about is what happens to the subject that an object's name begins with.
func (s *script) about(key string) string {
	place, name, _ := strings.Cut(key, "/")
	for _, l := range s.lives {
		if !strings.HasPrefix(name, l.name) && !strings.HasSuffix(place, " "+l.name) {
			continue
		}
		var acts []string
		for _, step := range l.steps {
			acts = append(acts, fmt.Sprintf("%s at %.1f s", step.act, step.at.Seconds()))
		}
		return " (" + strings.Join(acts, ", ") + ")"
	}
	return ""
}

// play does everything at its time; what fails is tried again, as a person would.
func (s *script) play(ctx context.Context, client dynamic.Interface, kubeconfig string) error {
	began := time.Now()
	errs := make([]error, len(s.lives))
	var wait sync.WaitGroup
	for i, l := range s.lives {
		wait.Go(func() { errs[i] = l.play(ctx, client, kubeconfig, began) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (l *life) play(ctx context.Context, client dynamic.Interface, kubeconfig string, began time.Time) error {
	for _, step := range l.steps {
		if err := pause(ctx, time.Until(began.Add(step.at))); err != nil {
			return err
		}
		if err := patiently(ctx, func() error { return l.do(ctx, step.act, client, kubeconfig) }); err != nil {
			return fmt.Errorf("cannot %s %s: %w", step.act, l.name, err)
		}
	}
	return nil
}

func (l *life) do(ctx context.Context, what act, client dynamic.Interface, kubeconfig string) error {
	switch what {
	case create:
		_, err := subjects.Put(ctx, client, l.subject.Objects(l.name, kubeconfig)...)
		return err
	case change:
		return subjects.Patch(ctx, client, l.subject.Changes(l.name)...)
	}
	key := l.subject.About(l.name)
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(key.APIVersion)
	obj.SetKind(key.Kind)
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	for _, doomed := range append([]*unstructured.Unstructured{obj}, l.subject.GoneToo(l.name)...) {
		err := subjects.In(client, doomed).Delete(ctx, doomed.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) { // the try before may not have been in vain
			return err
		}
	}
	return nil
}

const (
	// patience is how long something that fails is tried again, every tryAgain.
	patience = 2 * time.Minute
	tryAgain = 500 * time.Millisecond
)

// patiently does something again while the API server may be away. What it refuses it
// would refuse again, but for what an admission that is not there yet decides.
func patiently(ctx context.Context, do func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := do()
		if err == nil || time.Now().After(deadline) || apierrors.IsInvalid(err) {
			return err
		}
		if stopped := pause(ctx, tryAgain); stopped != nil {
			return errors.Join(stopped, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
