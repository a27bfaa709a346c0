package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/apply"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/record"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/shared/telemetry"
	"github.com/slipway-dev/slipway/shared/vault"
)

const (
	// maxRounds bounds how often one call decides: rounds are used up by
	// conflicts and by plans that ask to continue.
	maxRounds = 10
	// maxNeeds bounds how often one decision may ask for more.
	maxNeeds = 6
)

// engine reconciles one object after the other with the three steps of one
// function.
type engine[In any] struct {
	fn       Function[In]
	clusters *cluster.Set
	mode     Mode
	now      func() time.Time
	metrics  *telemetry.Metrics
	// recorder keeps reconciles; nil keeps none.
	recorder *record.Recorder
}

// result is what one reconcile came to.
type result struct {
	class           plan.Class
	reason, message string
	reads, writes   int
}

// reasonAbsent: there is no object of that name.
const reasonAbsent = "Absent"

func retry(message string) result {
	return result{class: plan.Retry, reason: "Retry", message: message}
}

// run is one reconcile under way.
type run[In any] struct {
	*engine[In]
	// clusters are those of this reconcile alone.
	clusters *cluster.Set
	key      Key
	mode     Mode
	log      *slog.Logger
	vault    *vault.Vault
	reader   *read.Reader
	writes   int
	// renders counts the needs that were no reads: renders and dry-runs.
	renders int
	started time.Time
	// session is nil where nobody looks.
	session *session
}

// now is the time that the function is told.
func (r *run[In]) now() time.Time { return r.session.time(r.engine.now) }

// reconcile brings one object to what it asks for. It never panics.
func (e *engine[In]) reconcile(ctx context.Context, key Key, log *slog.Logger) (res result) {
	ctx, span := e.metrics.Span(ctx, "reconcile "+e.fn.Spec.Name, key.String())
	s := e.session(ctx, key)
	v := s.newVault()
	view := e.clusters.View()
	r := &run[In]{engine: e, clusters: view, key: key, mode: e.mode, log: log, vault: v, reader: s.newReader(view, v), session: s}
	started := e.now()
	r.started = started
	defer func() {
		if cause := recover(); cause != nil {
			log.Error("reconcile panicked", "panic", v.Scrub(fmt.Sprint(cause)), "stack", string(debug.Stack()))
			res = retry("the function failed, see its log")
		}
		res.reads, res.writes = len(r.reader.Records())-r.renders+s.reads(), r.writes
		duration := e.now().Sub(started)
		e.metrics.Reconciled(ctx, string(res.class), res.reason, duration, res.reads)
		r.report(ctx, res, duration)
		r.keep(ctx, finished{result: res, started: started, took: duration, trace: traceOf(span)})
		span.End()
	}()
	for round := range maxRounds {
		if !s.plays() {
			pause(ctx, round)
		}
		next, done := r.round(ctx)
		if done {
			return next
		}
		if err := ctx.Err(); err != nil {
			return retry("the time of one call is used up")
		}
	}
	return retry("the object keeps changing while it is reconciled")
}

// pause lets an object that keeps changing come to rest, from the third round
// on.
func pause(ctx context.Context, round int) {
	if round < 2 {
		return
	}
	timer := time.NewTimer(time.Duration(round*round) * 10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// report writes the one line of a reconcile. Nothing happened: nothing is said
// at level info.
func (r *run[In]) report(ctx context.Context, res result, duration time.Duration) {
	level := slog.LevelDebug
	if res.writes > 0 {
		level = slog.LevelInfo
	}
	if res.class == plan.Retry {
		level = slog.LevelWarn
	}
	r.log.Log(ctx, level, "reconciled", "outcome", res.class, "reason", res.reason, "detail", res.message,
		"mode", r.mode, "reads", res.reads, "writes", res.writes, "durationMs", float64(duration.Microseconds())/1000)
}

// round gathers, decides, applies and concludes once. It is done unless the
// world moved meanwhile, or the plan asked to continue.
func (r *run[In]) round(ctx context.Context) (result, bool) {
	root, in, again, err := r.gather(ctx)
	switch {
	case err != nil:
		return r.failed(err), true
	case root == nil:
		return result{class: plan.Done, reason: reasonAbsent, message: "the object does not exist"}, true
	case r.mode == ModeUnmanaged:
		return result{class: plan.Done, reason: "Unmanaged", message: "annotation " + AnnotationMode}, true
	case again:
		return result{}, false
	}

	decision, known, err := r.decide(ctx, in)
	if err != nil {
		return r.undecided(err)
	}
	r.session.decided(decision)
	for _, reason := range decision.Reasons {
		r.log.Debug("decided", "reason", reason)
	}
	writer := r.writer(root)
	outcomes, err := writer.Run(ctx, decision.Plan)
	r.session.applied(outcomes, errors.Is(err, apply.ErrConflict))
	switch {
	case errors.Is(err, apply.ErrConflict):
		return result{}, false
	case err != nil:
		return r.failed(err), true
	}
	if f := managementOutage(outcomes); f != nil && !r.fn.Spec.ConcludesOutages {
		return retry(f.Error()), true
	}
	if decision.Plan.Continue && changed(outcomes) && len(outcomes.Faults()) == 0 {
		if r.fn.Spec.TellsEachRound {
			r.tell(ctx, writer.Latest(cluster.Management, r.fn.Spec.Reconciles, root), r.fn.Conclude(r.now(), in, known, outcomes))
		}
		return result{}, false
	}
	return r.conclude(ctx, writer, root, r.fn.Conclude(r.now(), in, known, outcomes))
}

// undecided ends a round in which no decision could be made; what a dry-run rests on
// may have moved.
func (r *run[In]) undecided(err error) (result, bool) {
	if errors.Is(err, apply.ErrConflict) {
		return result{}, false
	}
	return r.failed(err), true
}

// gather reads everything that one decision needs. again is true when the
// reconciled object changed while the rest was read.
func (r *run[In]) gather(ctx context.Context) (root *unstructured.Unstructured, in In, again bool, err error) {
	r.reader.Forget()
	root, err = r.root(ctx)
	r.session.rooted(root)
	if err != nil || root == nil {
		return nil, in, false, err
	}
	if r.mode, err = modeOf(r.engine.mode, root); err != nil {
		r.log.Warn("object is only planned", "error", err.Error())
	}
	r.mode = r.session.limit(r.mode)
	if r.mode == ModeUnmanaged {
		return root, in, false, nil
	}
	if in, err = r.input(ctx, root); err != nil {
		return nil, in, false, err
	}
	// What was read ahead and not asked for is older than what follows.
	r.reader.Forget()
	late, err := r.root(ctx)
	if err != nil {
		return nil, in, false, err
	}
	again = late == nil || late.GetResourceVersion() != root.GetResourceVersion()
	return root, in, again, nil
}

// input reads what one decision needs, about the whole or a part.
func (r *run[In]) input(ctx context.Context, root *unstructured.Unstructured) (In, error) {
	if r.key.Part != "" && r.fn.GatherPart != nil {
		return r.fn.GatherPart(ctx, r.reader, root, r.key.Part)
	}
	return r.fn.Gather(ctx, r.reader, root)
}

func (r *run[In]) root(ctx context.Context) (*unstructured.Unstructured, error) {
	return r.reader.Get(ctx, cluster.Management, r.fn.Spec.Reconciles, r.key.Namespace, r.key.Name)
}

// decide asks for a decision until it needs nothing more.
func (r *run[In]) decide(ctx context.Context, in In) (plan.Decision, plan.Answers, error) {
	known := plan.Answers{}
	for range maxNeeds {
		decision := r.fn.Decide(r.now(), in, known)
		if len(decision.Needs) == 0 {
			return decision, known, nil
		}
		r.session.decided(decision)
		r.reader.Ahead(ctx, slices.DeleteFunc(slices.Clone(decision.Needs), func(need plan.Need) bool { return need.Render != nil || need.DryRun != nil })...)
		for _, need := range decision.Needs {
			answer := r.answer(ctx, need)
			if err := refusal(need, answer.Fault); err != nil {
				return plan.Decision{}, nil, err
			}
			known[need.Key()] = answer
		}
	}
	return plan.Decision{}, nil, fmt.Errorf("cannot decide: more than %d rounds of needs", maxNeeds)
}

// refusal is why the decision cannot be made with an answer: the management cluster
// could not be asked, or what a dry-run rests on has changed since it was read.
func refusal(need plan.Need, f *fault.Fault) error {
	switch {
	case f == nil || f.Cluster != cluster.Management:
		return nil
	case need.DryRun != nil && f.Class == fault.Conflict:
		return apply.ErrConflict
	case !need.Tolerant && (f.Class == fault.Unavailable || f.Class == fault.Conflict):
		return f
	}
	return nil
}

// answer fulfils a need, by a read, a render or a dry-run.
func (r *run[In]) answer(ctx context.Context, need plan.Need) plan.Answer {
	if need.DryRun != nil {
		r.renders++
		obj, f := r.writer(nil).Try(ctx, *need.DryRun)
		answer := plan.Answer{Object: obj, Fault: f}
		r.reader.Note(need, answer)
		return answer
	}
	if need.Render == nil {
		return r.reader.Answer(ctx, need)
	}
	r.renders++
	var answer plan.Answer
	if r.session.plays() {
		answer = r.session.rendered(*need.Render)
	} else {
		answer = r.render(ctx, *need.Render)
	}
	r.reader.Note(need, answer)
	return answer
}

// render renders, and seals what is secret in the outputs. What cannot be rendered
// now is tried again later.
func (r *run[In]) render(ctx context.Context, request render.Request) plan.Answer {
	if r.fn.Render == nil {
		return plan.Answer{Fault: &fault.Fault{Class: fault.Unavailable, Call: "render", Message: "the function has no renderer"}}
	}
	rendered, err := r.fn.Render(ctx, request)
	if err != nil {
		return plan.Answer{Fault: &fault.Fault{Class: fault.Unavailable, Call: "render", Message: err.Error()}}
	}
	for _, output := range rendered.Outputs {
		if kind.Secrets.Is(output.Object.GetAPIVersion(), output.Object.GetKind()) {
			r.vault.SealObject(kind.Secrets, output.Object)
		}
	}
	return plan.Answer{Rendered: &rendered}
}

func (r *run[In]) writer(root *unstructured.Unstructured) *apply.Writer {
	// latest is the reconciled object after the last creation.
	var latest *unstructured.Unstructured
	return &apply.Writer{
		Clusters: r.clusters, Vault: r.vault, Manager: r.fn.Spec.FieldManager(), Predecessors: r.fn.Spec.Predecessors, Log: r.log,
		DryRun: r.mode != ModeApply, Tape: r.session.tape(),
		AfterCreate: func(ctx context.Context) (bool, error) {
			now, err := r.root(ctx)
			if err != nil {
				return true, err
			}
			latest = now
			going := now == nil || now.GetUID() != root.GetUID() ||
				(now.GetDeletionTimestamp() != nil && root.GetDeletionTimestamp() == nil)
			return !going, nil
		},
		Stays: func(entry plan.Entry) bool { return r.fn.Stays == nil || r.fn.Stays(latest, entry) },
		Wrote: func(entry plan.Entry, done plan.Result) {
			r.writes++
			r.metrics.Wrote(string(done), entry.Resource.String())
		},
		Tried: func(entry plan.Entry) { r.metrics.Wrote("dry-run", entry.Resource.String()) },
	}
}

// conclude writes status and Events. It is done unless the status met a newer
// object.
func (r *run[In]) conclude(ctx context.Context, writer *apply.Writer, root *unstructured.Unstructured, c plan.Conclusion) (result, bool) {
	res := result{class: c.Class, reason: c.Reason, message: c.Message}
	for _, key := range slices.Sorted(maps.Keys(c.LogFields)) {
		r.log = r.log.With(key, c.LogFields[key])
	}
	for _, line := range c.Log {
		r.log.Info(line)
	}
	r.session.concluded(c, nil)
	latest := writer.Latest(cluster.Management, r.fn.Spec.Reconciles, root)
	if latest.GetDeletionTimestamp() != nil && len(latest.GetFinalizers()) == 0 {
		return res, true // it is gone: nothing is left to write to
	}
	if c.Status != nil {
		intended := latest.DeepCopy()
		intended.Object["status"] = withoutNulls(c.Status)
		stage := plan.Plan{}
		stage.Add("status", plan.Entry{
			Verb: plan.Patch, Resource: r.fn.Spec.Reconciles, Subresource: "status",
			Object: intended, Base: latest, Reason: c.Reason,
		})
		outcomes, err := writer.Run(ctx, stage)
		r.session.concluded(c, outcomes)
		switch {
		case errors.Is(err, apply.ErrConflict):
			return result{}, false
		case err != nil:
			return r.failed(err), true
		}
		if f := statusFault(outcomes); f != nil {
			return retry(f.Error()), true
		}
	}
	if r.mode == ModeApply && !r.session.plays() {
		r.publish(ctx, latest, c.Events)
		r.observe(ctx, c.Observations, r.now().Sub(r.started))
	}
	return res, true
}

// tell publishes what a round that is not the last has to tell.
func (r *run[In]) tell(ctx context.Context, root *unstructured.Unstructured, c plan.Conclusion) {
	if r.mode != ModeApply {
		return
	}
	r.publish(ctx, root, c.Events)
	// How long it took is known at the end.
	observed := slices.DeleteFunc(slices.Clone(c.Observations), func(o plan.Observation) bool { return o.Elapsed })
	r.observe(ctx, observed, 0)
}

// withoutNulls drops null fields: a merge patch would send them for ever.
func withoutNulls(fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for key, value := range fields {
		if nested, ok := value.(map[string]any); ok {
			value = withoutNulls(nested)
		}
		if value != nil {
			out[key] = value
		}
	}
	return out
}

// statusFault is why the status could not be written; an object that went
// meanwhile has none.
func statusFault(outcomes plan.Outcomes) *fault.Fault {
	for _, failed := range outcomes.Faults() {
		if failed.Fault.Code != 404 {
			return failed.Fault
		}
	}
	return nil
}

// failed turns an error of gathering or applying into a class: whatever the
// API server of the reconciled object did not answer may work later.
func (r *run[In]) failed(err error) result {
	text := r.vault.Scrub(err.Error())
	r.log.Warn("cannot reconcile", "error", text)
	return retry(text)
}

// managementOutage is the fault that must be retried, not concluded: the
// management cluster itself did not answer a write.
func managementOutage(outcomes plan.Outcomes) *fault.Fault {
	for _, failed := range outcomes.Faults() {
		if failed.Fault.Cluster == cluster.Management && failed.Fault.Class == fault.Unavailable {
			return failed.Fault
		}
	}
	return nil
}

func changed(outcomes plan.Outcomes) bool {
	return slices.ContainsFunc(outcomes, func(o plan.Outcome) bool {
		return o.Result == plan.Created || o.Result == plan.Configured || o.Result == plan.Deleted
	})
}
