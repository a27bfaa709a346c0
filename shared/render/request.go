package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Version names the renderer and the version of CUE that it links. A change of
// either is a change of every render's hash. A test keeps it true.
const Version = "1/v0.17.1"

// File is what a template's source is called in messages.
const File = "template.cue"

// Mode says what is asked of a template.
type Mode string

const (
	// ModeRender binds #cluster and #workload and renders the objects.
	ModeRender Mode = "render"
	// ModeTemplate builds the template without binding anything.
	ModeTemplate Mode = "template"
	// ModeInput compares Input with the template's #Input.
	ModeInput Mode = "input"
)

// Limits bound one render. Sizes are in bytes.
type Limits struct {
	MaxSource  int `json:"maxSource"`
	MaxInput   int `json:"maxInput"`
	MaxObject  int `json:"maxObject"`
	MaxOutput  int `json:"maxOutput"`
	MaxObjects int `json:"maxObjects"`
	// CPU is processor time, Wall the time that passes.
	CPU  time.Duration `json:"cpu"`
	Wall time.Duration `json:"wall"`
	// Memory is what the child process may have.
	Memory int64 `json:"memory"`
}

// DefaultLimits are those of an empty environment.
func DefaultLimits() Limits {
	return Limits{
		MaxSource: 512 << 10, MaxInput: 256 << 10, MaxObject: 1 << 20, MaxOutput: 4 << 20, MaxObjects: 64,
		CPU: 5 * time.Second, Wall: 8 * time.Second, Memory: 256 << 20,
	}
}

// Request is all that one render depends on.
type Request struct {
	Mode   Mode   `json:"mode"`
	Source string `json:"source"`
	// Cluster and Workload are projections as canonical JSON; see ProjectCluster.
	Cluster  string `json:"cluster,omitempty"`
	Workload string `json:"workload,omitempty"`
	// Input is JSON; for ModeInput only.
	Input  string `json:"input,omitempty"`
	Limits Limits `json:"limits"`
}

// Hash identifies a render: equal hashes have equal answers. The limits belong to
// it, so that a render that was stopped is tried again when they are raised.
func (r Request) Hash() string {
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	sum := sha256.Sum256(append([]byte(Version+"\n"), raw...))
	return hex.EncodeToString(sum[:])
}

// Namespace is that of the Workload that is rendered; empty for none.
func (r Request) Namespace() string {
	var workload struct {
		Metadata struct {
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if json.Unmarshal([]byte(r.Workload), &workload) != nil {
		return ""
	}
	return workload.Metadata.Namespace
}

// TooLarge is why a request is refused without looking at it; nil if it is not.
func (r Request) TooLarge() *Failure {
	if len(r.Source) > r.Limits.MaxSource {
		return &Failure{Reason: ReasonBuild, Message: fmt.Sprintf("the source has %d bytes, %d are allowed", len(r.Source), r.Limits.MaxSource)}
	}
	if size := max(len(r.Workload), len(r.Cluster), len(r.Input)); size > r.Limits.MaxInput {
		return &Failure{Reason: ReasonBuild, Input: true, Message: fmt.Sprintf("the input has %d bytes, %d are allowed", size, r.Limits.MaxInput)}
	}
	return nil
}

// AnswerSize bounds the message with the answer to a request: the outputs as JSON
// inside of JSON, and what is said about them.
func (l Limits) AnswerSize() int { return 6*l.MaxOutput + 1<<20 }
