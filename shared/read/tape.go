package read

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/vault"
)

// Question is a kind of question that a Reader asks.
type Question string

// Questions.
const (
	AskGet     Question = "get"
	AskList    Question = "list"
	AskScan    Question = "scan"
	AskConnect Question = "connect"
	AskVersion Question = "discover"
)

// Asked is the question behind a record.
func (r Record) Asked() Question {
	switch {
	case r.Connection != nil:
		return AskConnect
	case r.Discovered != nil:
		return AskVersion
	case r.Scanned:
		return AskScan
	case r.Need.Name != "":
		return AskGet
	}
	return AskList
}

// Tape answers from what was recorded.
type Tape interface {
	// Play returns the answer to a question; ok is false when it was never asked.
	Play(question Question, need plan.Need) (record Record, ok bool)
}

// Play makes a reader that asks no cluster: it takes all answers from a tape.
func Play(tape Tape, v *vault.Vault) *Reader {
	return &Reader{clusters: &cluster.Set{}, vault: v, tape: tape}
}

// missing is the answer to a question that the tape does not know: another version of
// the function asks it, or the recording is of something else.
func missing(verb string, need plan.Need) *fault.Fault {
	name := need.Name
	if need.Namespace != "" {
		name = need.Namespace + "/" + name
	}
	return &fault.Fault{
		Class: fault.Unavailable, Cluster: need.Cluster, Call: fmt.Sprintf("%s %s %s", verb, need.Resource, name),
		Message: "the recording does not hold the answer",
	}
}

func (r *Reader) play(need plan.Need) plan.Answer {
	question := AskList
	if need.Name != "" {
		question = AskGet
	}
	record, ok := r.tape.Play(question, need)
	if !ok {
		return plan.Answer{Fault: missing(string(question), need)}
	}
	answer := record.Answer
	if need.Only != nil {
		answer.Items = slices.DeleteFunc(slices.Clone(answer.Items), func(item unstructured.Unstructured) bool { return !need.Only(&item) })
	}
	return answer
}

func (r *Reader) playVersion(need plan.Need) (string, error) {
	record, ok := r.tape.Play(AskVersion, need)
	if !ok || record.Discovered == nil {
		record = Record{Need: need, Discovered: new(string), Answer: plan.Answer{Fault: missing("discover", need)}}
	}
	r.note(record)
	if record.Answer.Fault != nil {
		return "", record.Answer.Fault
	}
	return *record.Discovered, nil
}

func (r *Reader) playScan(need plan.Need, b Bounds) (kept []unstructured.Unstructured, complete bool, err error) {
	need.Limit = int64(b.Objects)
	record, ok := r.tape.Play(AskScan, need)
	if !ok {
		record = Record{Need: need, Scanned: true, Answer: plan.Answer{Fault: missing("list", need)}}
	}
	r.note(record)
	if record.Answer.Fault != nil {
		return nil, record.Complete, record.Answer.Fault
	}
	return record.Answer.Items, record.Complete, nil
}

// playConnection asks for the Secret as a live reader does, so that its answer is
// used up, and takes what came of it from the tape.
func (r *Reader) playConnection(ctx context.Context, name, secretNamespace, secretName string) (plan.Connection, error) {
	need := plan.Need{Cluster: name}
	if secretName != "" {
		answer := r.Answer(ctx, plan.Need{Resource: kind.Secrets, Namespace: secretNamespace, Name: secretName})
		if f := answer.Fault; f != nil && f.Class != fault.Refused {
			return plan.Connection{}, f
		}
	}
	record, ok := r.tape.Play(AskConnect, need)
	if !ok || record.Connection == nil {
		return plan.Connection{}, missing("connect to cluster", need)
	}
	r.note(record)
	return *record.Connection, nil
}
