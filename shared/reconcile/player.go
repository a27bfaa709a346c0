package reconcile

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/apply"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/record"
	"github.com/slipway-dev/slipway/shared/render"
)

// player answers from a recording: each question that was asked several times gets its
// answers in the order in which they were given, and the last one ever after.
type player struct {
	recording *record.Recording
	// mu guards what follows: a function may read several things at once.
	mu    sync.Mutex
	reads map[string][]record.Read
	calls map[string][]playedCall
	// unknown are the questions and requests that the recording does not hold.
	unknown []string
	invent  int
}

// playedCall is a request of a recording, and which one it was.
type playedCall struct {
	record.Call
	at int
}

func newPlayer(recording *record.Recording) *player {
	p := &player{recording: recording, reads: map[string][]record.Read{}, calls: map[string][]playedCall{}}
	p.load(recording.Reads)
	for i, c := range recording.Calls {
		p.calls[c.Key()] = append(p.calls[c.Key()], playedCall{c, i})
	}
	return p
}

func (p *player) load(reads []record.Read) {
	for _, r := range reads {
		p.reads[r.Key()] = append(p.reads[r.Key()], r)
	}
}

// time is the n-th time that the function was told.
func (p *player) time(n int) time.Time {
	clock := p.recording.Header.Clock
	switch {
	case n < len(clock):
		return clock[n]
	case len(clock) > 0:
		return clock[len(clock)-1]
	}
	return p.recording.Header.Time
}

// Play implements read.Tape.
func (p *player) Play(question read.Question, need plan.Need) (read.Record, bool) {
	asked := readOf(question, need)
	p.mu.Lock()
	defer p.mu.Unlock()
	queue := p.reads[asked.Key()]
	if len(queue) == 0 {
		p.unknown = append(p.unknown, asked.String())
		return read.Record{}, false
	}
	answer := queue[0]
	if len(queue) > 1 {
		p.reads[asked.Key()] = queue[1:]
	}
	return recordOf(need, answer), true
}

// rendered is what a render came to.
func (p *player) rendered(request render.Request) (plan.Answer, bool) {
	record, ok := p.Play("render", plan.Need{Render: &request})
	return record.Answer, ok
}

// recordOf is a read as a Reader remembers it.
func recordOf(need plan.Need, r record.Read) read.Record {
	out := read.Record{
		Need: need, Connection: r.Connection, Scanned: r.Question == string(read.AskScan), Complete: r.Complete,
		Answer: plan.Answer{Fault: r.Fault},
	}
	if r.Question == string(read.AskVersion) {
		out.Discovered = &r.Version
	}
	if r.Object != nil {
		out.Answer.Object = (&unstructured.Unstructured{Object: r.Object}).DeepCopy()
	}
	for _, item := range r.Items {
		out.Answer.Items = append(out.Answer.Items, *(&unstructured.Unstructured{Object: item}).DeepCopy())
	}
	if r.Rendered != nil {
		result := &render.Result{}
		raw, err := json.Marshal(r.Rendered)
		if err == nil {
			err = json.Unmarshal(raw, result)
		}
		if err != nil {
			out.Answer.Fault = playFault("render", fmt.Sprintf("what was rendered cannot be read: %v", err))
		} else {
			out.Answer.Rendered = result
		}
	}
	return out
}

// answer answers a request: as the server did, or, if it was never made, as a server
// would that has nothing against it.
func (p *player) answer(r apply.Request) (*unstructured.Unstructured, error) {
	asked := callOf(called{Request: r}, nil)
	queue := p.calls[asked.Key()]
	if len(queue) > 0 {
		p.calls[asked.Key()] = queue[1:]
		if queue[0].Fault != nil {
			return nil, read.Cause(queue[0].Fault, r.Entry.Resource)
		}
		if queue[0].Answer == nil {
			return nil, nil
		}
		return (&unstructured.Unstructured{Object: queue[0].Answer}).DeepCopy(), nil
	}
	if r.Verb == apply.VerbConnect {
		return nil, nil
	}
	p.unknown = append(p.unknown, asked.String())
	return p.imagine(r)
}

// imagine is an answer to a request that was never made. What is made up is the same
// each time.
func (p *player) imagine(r apply.Request) (*unstructured.Unstructured, error) {
	if r.Verb == apply.VerbDelete {
		return nil, nil
	}
	p.invent++
	base := map[string]any{}
	if r.Entry.Base != nil {
		base = r.Entry.Base.DeepCopy().Object
	}
	if body, ok := r.Body.(map[string]any); ok {
		from, err := json.Marshal(base)
		if err != nil {
			return nil, fmt.Errorf("cannot imagine an answer: %w", err)
		}
		patch, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("cannot imagine an answer: %w", err)
		}
		merged, err := jsonpatch.MergePatch(from, patch)
		if err != nil {
			return nil, fmt.Errorf("cannot imagine an answer: %w", err)
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(merged); err != nil {
			return nil, fmt.Errorf("cannot imagine an answer: %w", err)
		}
		base = obj.Object
	}
	obj := &unstructured.Unstructured{Object: base}
	if obj.GetUID() == "" {
		obj.SetUID(fakeUID(p.invent))
	}
	obj.SetResourceVersion(fmt.Sprintf("replayed-%d", p.invent))
	return obj, nil
}

// recall is the verdict of a dry-run that was not needed. A reconcile that had to begin
// anew may have sent the dry-run first and have remembered it later: each in its turn.
func (p *player) recall(entry plan.Entry) (same, ok bool) {
	key := callOf(called{Request: apply.Request{Verb: verbRemembered, Entry: entry}}, nil).Key()
	queue := p.calls[key]
	if len(queue) == 0 {
		return false, false
	}
	sent := p.calls[callOf(called{Request: apply.Request{Verb: apply.VerbDryRun, Entry: entry}}, nil).Key()]
	if len(sent) > 0 && sent[0].at < queue[0].at {
		return false, false
	}
	p.calls[key] = queue[1:]
	return queue[0].Same, true
}
