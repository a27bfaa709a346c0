package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/render"
)

func TestMain(m *testing.M) {
	Hook()
	os.Exit(m.Run())
}

const head = "package template\n#cluster: {...}\n#workload: {...}\n"

// object is an output.
func object(name, rest string) string {
	return fmt.Sprintf("%s: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"%s\"%s}\n", name, name, rest)
}

func request(source string) render.Request {
	return render.Request{
		Mode: render.ModeRender, Source: source, Limits: render.DefaultLimits(),
		Cluster: `{"kind":"Cluster"}`, Workload: `{"kind":"Workload"}`,
	}
}

func pool(t *testing.T, size int) *Pool {
	t.Helper()
	p := New(size)
	t.Cleanup(p.Close)
	return p
}

func TestAChildRendersAndStaysWarm(t *testing.T) {
	p := pool(t, 1)
	for i := range 20 {
		result, err := p.Render(t.Context(), request(head+object(fmt.Sprintf("a%d", i), "")))
		if err != nil || result.Failure != nil {
			t.Fatal(err, result.Failure)
		}
		if len(result.Outputs) != 1 || result.Outputs[0].Object.GetKind() != "ConfigMap" {
			t.Fatalf("it gave %v", result.Outputs)
		}
	}
	if p.Started() != 1 {
		t.Errorf("%d children were started for 20 renders one after the other, want 1", p.Started())
	}
}

func TestAnEqualRequestIsNotRenderedAgainAndTheResultIsTheCallersOwn(t *testing.T) {
	p := pool(t, 1)
	first, err := p.Render(t.Context(), request(head+object("a", "")))
	if err != nil || first.Failure != nil {
		t.Fatal(err, first.Failure)
	}
	first.Outputs[0].Object.SetName("changed")
	p.Close()
	second, err := p.Render(t.Context(), request(head+object("a", "")))
	if err != nil || second.Outputs[0].Object.GetName() != "a" {
		t.Errorf("the second answer is %v, %v; want the one that is remembered", second.Outputs, err)
	}
}

// attacks are templates that would take for ever, or everything.
var attacks = map[string]struct{ source, want string }{
	"ListDoubling":      {doubling("[1,2,3,4,5,6,7,8,9,10]", "[X,X,X,X,X,X,X,X,X,X]", 9), ""},
	"StructDoubling":    {doubling("{a:1}", "{a:X,b:X,c:X,d:X,e:X,f:X,g:X,h:X,i:X,j:X}", 9), ""},
	"StringDoubling":    {doubling(`"0123456789"`, "X + X", 30), "memory"},
	"Repeat":            {"package template\nimport \"strings\"\n#cluster: _\n#workload: _\nx: strings.Repeat(strings.Repeat(\"0123456789\", 100000), 100000)\n", "memory"},
	"Range":             {"package template\nimport \"list\"\n#cluster: _\n#workload: _\nx: list.Range(0, 100000000, 1)\n", ""},
	"Comprehension":     {"package template\nimport \"list\"\n#cluster: _\n#workload: _\nx: [for i in list.Range(0, 1000, 1) for j in list.Range(0, 1000, 1) {a: i, b: j}]\n", ""},
	"Disjunctions":      {disjunctions(18), ""},
	"Recursion":         {head + "#l: {n: int, next: #l & {n: n + 1}}\nx: #l & {n: 0}\n", ""},
	"Nesting":           {head + "x: " + strings.Repeat("{a:", 9000) + "1" + strings.Repeat("}", 9000) + "\n", ""},
	"NestedExpressions": {head + "x: " + strings.Repeat("(", 200000) + "1" + strings.Repeat(")", 200000) + "\n", ""},
	"ManyOutputs":       {"package template\nimport \"list\"\n#cluster: _\n#workload: _\nfor i in list.Range(0, 100, 1) {\"x\\(i)\": {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"x\\(i)\"}}\n", "100 objects, 64 are allowed"},
	"LargeObject":       {"package template\nimport \"strings\"\n#cluster: _\n#workload: _\n" + object("x", ", data: a: strings.Repeat(\"0123456789\", 150000)"), "output \"x\" has"},
	"LargeOutput":       {"package template\nimport \"strings\"\n#cluster: _\n#workload: _\nfor i in [1,2,3,4,5,6] {\"x\\(i)\": {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"x\\(i)\", data: a: strings.Repeat(\"0123456789\", 100000)}}\n", "the outputs have"},
}

func doubling(seed, format string, levels int) string {
	var b strings.Builder
	b.WriteString(head + "x0: " + seed + "\n")
	for i := range levels {
		b.WriteString(strings.ReplaceAll(fmt.Sprintf("x%d: %s\n", i+1, format), "X", fmt.Sprintf("x%d", i)))
	}
	return b.String()
}

// disjunctions is a product of n two-way disjunctions of structs.
func disjunctions(n int) string {
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		fmt.Fprintf(&b, "#d%d: {a%d: 1} | {b%d: 2}\n", i, i, i)
	}
	b.WriteString("x: {apiVersion: \"v1\"}")
	for i := range n {
		fmt.Fprintf(&b, " & {#d%d, ...}", i)
	}
	b.WriteString("\n")
	return b.String()
}

func TestEveryAttackEndsAndSaysWhy(t *testing.T) {
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			p := pool(t, 2)
			r := request(attack.source)
			r.Limits.CPU, r.Limits.Wall = 1500*time.Millisecond, 6*time.Second
			started := time.Now()
			result, err := p.Render(t.Context(), r)
			took := time.Since(started)
			if errors.Is(err, ErrOverloaded) {
				t.Skipf("the machine is too busy to tell: %v", err)
			}
			if err != nil || result.Failure == nil {
				t.Fatalf("it ended with %v and %d outputs", err, len(result.Outputs))
			}
			t.Logf("%s after %s: %s", result.Failure.Reason, took.Round(time.Millisecond), result.Failure.Message)
			// How late the limit strikes is the machine's; without it, it would never end.
			if took > 10*r.Limits.Wall {
				t.Errorf("it took %s, and may take %s", took, r.Limits.Wall)
			}
			// The race detector makes all slow: a limit of time comes before that of memory.
			if attack.want != "" && !raced && !strings.Contains(result.Failure.Message, attack.want) {
				t.Errorf("it said %q, want something about %q", result.Failure.Message, attack.want)
			}
			if next, err := p.Render(t.Context(), request(head+object("a", ""))); err != nil || next.Failure != nil {
				t.Errorf("the next render failed: %v %v", err, next.Failure)
			}
		})
	}
}

func TestNeighboursRenderWhileOneTemplateRunsForEver(t *testing.T) {
	p := pool(t, 2)
	var attackers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 4 {
		attackers.Go(func() {
			r := request(disjunctions(18))
			r.Workload = fmt.Sprintf(`{"kind":"Workload","metadata":{"name":"w%d"}}`, i)
			_, _ = p.Render(ctx, r)
		})
	}
	var worst time.Duration
	for i := range 40 {
		started := time.Now()
		result, err := p.Render(t.Context(), request(head+object(fmt.Sprintf("n%d", i), "")))
		// One that finds no child for two seconds is told so: that is an error here.
		if err != nil || result.Failure != nil {
			t.Fatalf("neighbour %d: %v %v", i, err, result.Failure)
		}
		worst = max(worst, time.Since(started))
	}
	cancel()
	attackers.Wait()
	t.Logf("the slowest of 40 neighbours took %s", worst.Round(time.Millisecond))
}

// TestOneNamespaceDoesNotTakeAllChildren: whoever may write templates may write many bad
// ones, each of them another source. They delay nobody but their own namespace.
func TestOneNamespaceDoesNotTakeAllChildren(t *testing.T) {
	p := pool(t, 3)
	of := func(namespace, source string) render.Request {
		r := request(source)
		r.Workload = fmt.Sprintf(`{"kind":"Workload","metadata":{"name":"w","namespace":%q}}`, namespace)
		return r
	}
	var attackers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 4 {
		attackers.Go(func() { _, _ = p.Render(ctx, of("bad", disjunctions(16+i))) })
	}
	for busy := 0; busy < 2; {
		p.mu.Lock()
		busy = p.busy
		p.mu.Unlock()
	}
	for i := range 10 {
		result, err := p.Render(t.Context(), of("good", head+object(fmt.Sprintf("n%d", i), "")))
		if err != nil || result.Failure != nil {
			t.Errorf("neighbour %d: %v %v", i, err, result.Failure)
		}
	}
	cancel()
	attackers.Wait()
	if len(p.parties) != 0 || p.busy != 0 {
		t.Errorf("%d children are said to be busy, with %v", p.busy, p.parties)
	}
}

func TestAJobThatIsGivenUpEndsItsChild(t *testing.T) {
	p := pool(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	result, err := p.Render(ctx, request(disjunctions(18)))
	if err == nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it gave %v, %v", result.Failure, err)
	}
}

func TestWhoFindsNoFreeChildIsToldToComeAgain(t *testing.T) {
	p := pool(t, 2)
	p.wait = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() { _, _ = p.Render(ctx, request(disjunctions(17+i))) })
	}
	for busy := 0; busy < 2; {
		p.mu.Lock()
		busy = p.busy
		p.mu.Unlock()
	}
	_, err := p.Render(t.Context(), request(head))
	cancel()
	all.Wait()
	if !errors.Is(err, ErrBusy) {
		t.Errorf("it ended with %v, want ErrBusy", err)
	}
}

// idle is the child that waits for a job.
func idle(t *testing.T, p *Pool) *child {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		t.Fatal("no child stays warm")
	}
	return p.idle[0]
}

func TestAKilledChildIsReplaced(t *testing.T) {
	p := pool(t, 2)
	if _, err := p.Render(t.Context(), request(head)); err != nil {
		t.Fatal(err)
	}
	c := idle(t, p)
	if err := syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.done
	if result, err := p.Render(t.Context(), request(head+object("a", ""))); err != nil || result.Failure != nil {
		t.Errorf("after the kill: %v %v", err, result.Failure)
	}
}

func TestAChildSeesNothing(t *testing.T) {
	t.Setenv("SECRET_OF_THE_PARENT", "canary")
	p := pool(t, 2)
	if _, err := p.Render(t.Context(), request(head)); err != nil {
		t.Fatal(err)
	}
	c := idle(t, p)
	proc := fmt.Sprintf("/proc/%d/", c.cmd.Process.Pid)
	environ, err := os.ReadFile(proc + "environ")
	if err != nil {
		t.Skip("there is no /proc")
	}
	if len(environ) != 0 {
		t.Errorf("a child has the environment %q", environ)
	}
	files, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	pipes := 0
	for _, file := range files {
		name, _ := os.Readlink(proc + "fd/" + file.Name())
		switch {
		case strings.HasPrefix(name, "pipe:"):
			pipes++
		case strings.HasPrefix(name, "anon_inode:"), strings.HasPrefix(name, "/sys/fs/cgroup/"): // Go's own
		default:
			t.Errorf("a child has %s open", name)
		}
	}
	if pipes != 3 {
		t.Errorf("a child has %d pipes, want three", pipes)
	}
	limits, err := os.ReadFile(proc + "limits")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Max open files            3 ", "Max file size             0 ", "Max core file size        0 ", "Max data size             268435456 "} {
		if raced && strings.HasPrefix(want, "Max data") {
			continue
		}
		if !strings.Contains(string(limits), want) {
			t.Errorf("its limits lack %q:\n%s", want, limits)
		}
	}
}

func BenchmarkWarm(b *testing.B) {
	p := New(2)
	defer p.Close()
	source := head + object("a", "")
	for i := range b.N {
		r := request(source)
		r.Workload = fmt.Sprintf(`{"kind":"Workload","metadata":{"name":"w%d"}}`, i)
		if _, err := p.Render(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSamples renders the samples warm, through a child, each time for another
// Workload.
func BenchmarkSamples(b *testing.B) {
	files, err := filepath.Glob("../../../deploy/samples/templates/*.yaml")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		template, workload := sample(b, file)
		if workload == nil {
			continue
		}
		b.Run(workload.GetName(), func(b *testing.B) {
			source, err := render.SourceOf(template)
			if err != nil {
				b.Fatal(err)
			}
			p := New(2)
			defer p.Close()
			for i := 0; b.Loop(); i++ {
				workload.SetName(fmt.Sprintf("w%d", i))
				trial := render.NewTrial(source, workload, nil, "demo", render.DefaultLimits())
				if result, err := p.Render(b.Context(), trial.Request); err != nil || result.Failure != nil {
					b.Fatal(err, result.Failure)
				}
			}
		})
	}
}

// sample are the template and the Workload of a file.
func sample(tb testing.TB, file string) (template, workload *unstructured.Unstructured) {
	tb.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
			tb.Fatal(err)
		}
		switch obj.GetKind() {
		case "WorkloadTemplate":
			template = obj
		case "Workload":
			workload = obj
			workload.SetNamespace("org")
		}
	}
	return template, workload
}
