package worker

import (
	"flag"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/shared/render"
)

// FuzzTemplate: whatever a template says, rendering it ends within its limits, with
// objects or with a reason.
func FuzzTemplate(f *testing.F) {
	// Where nothing is fuzzed, TestEveryAttackEndsAndSaysWhy has played these already.
	if fuzzing := flag.Lookup("test.fuzz"); fuzzing != nil && fuzzing.Value.String() != "" {
		for _, attack := range attacks {
			if len(attack.source) < 4096 {
				f.Add(attack.source, false)
			}
		}
	}
	f.Add(head+object("a", ", data: x: #workload.metadata.name"), true)
	f.Add("package template\nimport \"tool/exec\"\nx: exec.Run & {cmd: \"id\"}\n", false)
	f.Add("package template\n@embed(file=/etc/passwd)\nx: _ @embed(file=/etc/passwd)\n", false)
	p := New(1)
	f.Cleanup(p.Close)
	f.Fuzz(func(t *testing.T, source string, template bool) {
		r := request(source)
		if template {
			r.Mode, r.Cluster, r.Workload = render.ModeTemplate, "", ""
		}
		r.Limits.CPU, r.Limits.Wall, r.Limits.Memory = time.Second, 3*time.Second, 256<<20
		started := time.Now()
		result, err := p.Render(t.Context(), r)
		if took := time.Since(started); took > 20*r.Limits.Wall {
			t.Errorf("it took %s", took)
		}
		if err != nil {
			t.Skip(err) // the machine is too busy to tell
		}
		if result.Failure != nil {
			if result.Failure.Reason == "" || result.Failure.Message == "" || len(result.Outputs) > 0 {
				t.Errorf("it fails with %+v and gives %d outputs", result.Failure, len(result.Outputs))
			}
			return
		}
		for _, output := range result.Outputs {
			if output.Object.GetName() == "" || output.Object.GetKind() == "" {
				t.Errorf("it gives %v", output.Object)
			}
		}
	})
}
