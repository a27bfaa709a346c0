package reconcile

import (
	"context"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/apply"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/record"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/shared/vault"
)

// session is what is kept of one reconcile while it runs, and where its answers come
// from. A nil session keeps nothing, and the answers come from the clusters. All that
// it holds is what the reconcile holds anyway: it becomes a recording only if it is
// wanted, and then after the answer.
type session struct {
	// played answers instead of the clusters; nil where they are asked.
	played *player
	// forced is the mode that is not to be exceeded; empty for none.
	forced Mode
	// overlay is read instead of what is there.
	overlay read.Overlay
	// result is where the end of the reconcile goes instead of the recorder.
	result *finished
	// wants tells whether the reconcile of an object is to be kept; nil: it is. extra is
	// how many reads that took.
	wants func(root *unstructured.Unstructured) bool
	extra int

	vault *vault.Vault
	// wanted is what wants said; asked that it was.
	wanted, asked bool

	mu         sync.Mutex
	round      int
	clock      []time.Time
	decisions  []decided
	calls      []called
	conclusion *plan.Conclusion
	status     *plan.Outcome
	uid        string
	mode       Mode
}

// decided is one decision and what became of it.
type decided struct {
	round    int
	decision plan.Decision
	outcomes plan.Outcomes
	conflict bool
}

// called is one request and its answer.
type called struct {
	apply.Request
	answer *unstructured.Unstructured
	fault  *fault.Fault
	same   bool
}

type sessionKey struct{}

// with gives a context a session for the one reconcile that follows.
func with(ctx context.Context, s *session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// woken is the event behind a call, for its recordings: what was asked to find the
// objects that it concerns, and which they are.
type woken struct {
	event   *cloudevents.Event
	mapping []mapped
	keys    []Key
}

// mapped are reads with the vault that holds what is secret in them.
type mapped struct {
	records []read.Record
	vault   *vault.Vault
}

type wokenKey struct{}

func withEvent(ctx context.Context, ce *cloudevents.Event) context.Context {
	return context.WithValue(ctx, wokenKey{}, &woken{event: ce})
}

func eventBehind(ctx context.Context) *woken {
	w, _ := ctx.Value(wokenKey{}).(*woken)
	return w
}

// session is that of the context, or a new one where reconciles may be kept.
func (e *engine[In]) session(ctx context.Context, key Key) *session {
	if s, ok := ctx.Value(sessionKey{}).(*session); ok {
		return s
	}
	if e.recorder == nil {
		return nil
	}
	id := key.String()
	if w := eventBehind(ctx); w != nil && w.event != nil {
		id += "|" + w.event.ID()
	}
	policy := e.recorder.Policy
	s := &session{}
	s.wants = func(root *unstructured.Unstructured) bool {
		annotation := ""
		if root != nil {
			annotation = root.GetAnnotations()[record.Annotation]
		}
		return policy.Wants(key.Namespace, annotation, id, func() string {
			s.extra++
			return e.ofNamespace(ctx, key.Namespace)
		})
	}
	return s
}

// ofNamespace is what a namespace says about recordings. One that cannot be read says
// nothing: a recording is not worth a reconcile.
func (e *engine[In]) ofNamespace(ctx context.Context, name string) string {
	obj, err := read.New(e.clusters.View(), vault.New()).Get(ctx, cluster.Management, kind.Namespaces, "", name)
	if err != nil || obj == nil {
		return ""
	}
	return obj.GetAnnotations()[record.Annotation]
}

// reads is how many reads the session itself took.
func (s *session) reads() int {
	if s == nil {
		return 0
	}
	return s.extra
}

func (s *session) newVault() *vault.Vault {
	if s == nil {
		return vault.New()
	}
	s.vault = vault.New()
	if s.played != nil {
		s.vault = vault.Played()
	}
	return s.vault
}

func (s *session) newReader(clusters *cluster.Set, v *vault.Vault) *read.Reader {
	if s != nil && s.played != nil {
		return read.Play(s.played, v)
	}
	reader := read.New(clusters, v)
	if s != nil {
		reader.Over(s.overlay)
	}
	return reader
}

// rooted is told the reconciled object as soon as it is read, before any write.
func (s *session) rooted(root *unstructured.Unstructured) {
	if s == nil {
		return
	}
	s.round++
	if root != nil {
		s.uid = string(root.GetUID())
	}
	if !s.asked {
		s.wanted, s.asked = s.wants == nil || s.wants(root), true
	}
}

// keeps tells whether there is anything to keep.
func (s *session) keeps() bool { return s != nil && s.wanted }

// limit is the stricter of a mode and the session's own.
func (s *session) limit(mode Mode) Mode {
	if s == nil {
		return mode
	}
	if s.forced != "" {
		mode = stricter(s.forced, mode)
	}
	s.mode = mode
	return mode
}

// time is the time that the function is told: now, or that of the recording.
func (s *session) time(now func() time.Time) time.Time {
	if s == nil {
		return now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var at time.Time
	if s.played != nil {
		at = s.played.time(len(s.clock))
	} else {
		at = now().Round(0)
	}
	s.clock = append(s.clock, at)
	return at
}

func (s *session) decided(decision plan.Decision) {
	if s.keeps() {
		s.decisions = append(s.decisions, decided{round: s.round, decision: decision})
	}
}

func (s *session) applied(outcomes plan.Outcomes, conflict bool) {
	if s.keeps() && len(s.decisions) > 0 {
		last := &s.decisions[len(s.decisions)-1]
		last.outcomes, last.conflict = outcomes, conflict
	}
}

func (s *session) concluded(c plan.Conclusion, outcomes plan.Outcomes) {
	if !s.keeps() {
		return
	}
	s.conclusion, s.status = &c, nil
	if len(outcomes) > 0 {
		s.status = &outcomes[0]
	}
}

// tape is what a Writer shows its requests; nil where nobody looks.
func (s *session) tape() apply.Tape {
	if s == nil || (s.played == nil && !s.wanted) {
		return nil
	}
	return s
}

// Plays implements apply.Tape.
func (s *session) Plays() bool { return s.played != nil }

// Request implements apply.Tape.
func (s *session) Request(r apply.Request, send func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if s.played != nil {
		answer, err := s.played.answer(r)
		s.called(r, answer, err)
		return answer, err
	}
	answer, err := send()
	if answer == nil || err != nil {
		s.called(r, nil, err)
		return answer, err
	}
	kept := answer.DeepCopy()
	s.vault.SealObject(r.Entry.Resource, kept)
	s.called(r, kept, nil)
	return answer, nil
}

func (s *session) called(r apply.Request, answer *unstructured.Unstructured, err error) {
	if r.Verb == apply.VerbConnect && err == nil {
		return
	}
	c := called{Request: r, answer: answer}
	if err != nil {
		c.fault = read.Fault(err, r.Entry.Cluster, r.Verb+" "+r.Entry.Resource.String()+" "+r.Entry.Name(), s.vault)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// verbRemembered stands for a dry-run whose answer the process knew.
const verbRemembered = "remembered"

// Remembered implements apply.Tape.
func (s *session) Remembered(entry plan.Entry, same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, called{Request: apply.Request{Verb: verbRemembered, Entry: entry}, same: same})
}

// Recall implements apply.Tape.
func (s *session) Recall(entry plan.Entry) (same, ok bool) {
	if same, ok = s.played.recall(entry); ok {
		s.Remembered(entry, same)
	}
	return same, ok
}

// plays tells whether a recording answers instead of the clusters.
func (s *session) plays() bool { return s != nil && s.played != nil }

// rendered is what a render came to in the recording.
func (s *session) rendered(request render.Request) plan.Answer {
	answer, ok := s.played.rendered(request)
	if !ok {
		return plan.Answer{Fault: playFault("render", "the recording does not hold what was rendered")}
	}
	return answer
}

// published is told a Kubernetes Event that was written.
func (s *session) published(obj *unstructured.Unstructured, err error) {
	if s.keeps() {
		entry := plan.Entry{Verb: plan.Create, Resource: kind.Events, Object: obj}
		s.called(apply.Request{Verb: apply.VerbCreate, Entry: entry, Body: obj.Object}, nil, err)
	}
}

// keep hands a reconcile over to be recorded, if it is wanted.
func (r *run[In]) keep(ctx context.Context, f finished) {
	if r.session == nil {
		return
	}
	if !r.session.asked {
		r.session.rooted(nil)
	}
	if !r.session.keeps() {
		return
	}
	f.session, f.spec, f.key, f.woken, f.records = r.session, r.fn.Spec, r.key, eventBehind(ctx), r.reader.Everything()
	if r.session.result != nil {
		*r.session.result = f
		return
	}
	r.recorder.Keep(f.recording)
}

// traceOf is the trace that a span belongs to; empty for none.
func traceOf(span trace.Span) string {
	if id := span.SpanContext().TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}
