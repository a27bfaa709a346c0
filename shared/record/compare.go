package record

import "fmt"

// events are Kubernetes Events. Whether one is written depends on what the process has
// written before, so a replay does not repeat them; the conclusion tells what they say.
const events = "events.events.k8s.io"

// verdict is what a function thought and wanted, without what it was told.
type verdict struct {
	Result     Result      `json:"result"`
	Decisions  []Decision  `json:"decisions,omitempty"`
	Calls      []Call      `json:"calls,omitempty"`
	Conclusion *Conclusion `json:"conclusion,omitempty"`
}

// Verdict is what a function made of what it was told: its decisions with their plans
// and reasons, its requests and its conclusion. Two reconciles that came to the same
// have the same bytes.
func (r *Recording) Verdict() ([]byte, error) {
	v := verdict{Result: r.Header.Result, Decisions: r.Decisions, Conclusion: r.Conclusion}
	for _, c := range r.Calls {
		if c.Resource == events {
			continue
		}
		c.Answer = nil
		v.Calls = append(v.Calls, c)
	}
	text, err := YAML(v)
	if err != nil {
		return nil, fmt.Errorf("cannot write what %s came to: %w", r.Header.ID, err)
	}
	return text, nil
}
