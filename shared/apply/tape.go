package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/plan"
)

// Verbs of requests.
const (
	VerbCreate = "create"
	VerbPatch  = "patch"
	VerbApply  = "apply"
	// VerbFold turns fields that were owned by update into such owned by apply.
	VerbFold   = "fold"
	VerbDelete = "delete"
	VerbDryRun = "dry-run"
	// VerbConnect finds the server and the version that it serves.
	VerbConnect = "connect"
)

// Request is one request of a Writer.
type Request struct {
	Verb  string
	Entry plan.Entry
	// Body is what is sent, sealed: the content of an object or of a merge patch, or
	// the bytes of a JSON patch.
	Body any
}

// Tape sees the requests of a Writer. One that records lets each be sent; one that
// plays answers in the place of the servers.
type Tape interface {
	// Request has a request sent, or answers it. The answer is as servers send it, or
	// sealed.
	Request(r Request, send func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error)
	// Remembered is told the verdict of a dry-run that was not needed, since the
	// process knew its answer.
	Remembered(entry plan.Entry, same bool)
	// Recall tells the verdict of such a dry-run; asked only if the tape plays.
	Recall(entry plan.Entry) (same, ok bool)
	// Plays tells whether the tape answers in the place of the servers.
	Plays() bool
}

func (w *Writer) request(entry plan.Entry, verb string, body any, send func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if w.Tape == nil {
		return send()
	}
	return w.Tape.Request(Request{Verb: verb, Entry: entry, Body: body}, send)
}

// remembered is the verdict of an earlier dry-run of the process.
func (w *Writer) remembered(entry plan.Entry, key string) (verdict, bool) {
	if w.Tape != nil && w.Tape.Plays() {
		same, ok := w.Tape.Recall(entry)
		if same {
			return equal, ok
		}
		return different, ok
	}
	seen.Lock()
	known, ok := seen.verdicts[key]
	seen.Unlock()
	if ok && w.Tape != nil {
		w.Tape.Remembered(entry, known == equal)
	}
	return known, ok
}
