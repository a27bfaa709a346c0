package function

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/deploy/local/eventing/report"
)

// envFunction makes the test's binary a function that behaves as its value says.
const envFunction = "FUNCTION_TEST_BEHAVIOUR"

func TestMain(m *testing.M) {
	behaviour := os.Getenv(envFunction)
	if behaviour == "parent" {
		beParent()
	}
	if behaviour != "" {
		os.Exit(beFunction(behaviour))
	}
	os.Exit(m.Run())
}

// beFunction is a function: /pid answers with its process id, /slow takes its
// time, /crash ends it.
func beFunction(behaviour string) int {
	if behaviour == "exits" {
		fmt.Println("cannot start")
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mux := http.NewServeMux()
	started := time.Now()
	mux.HandleFunc("/health/readiness", func(w http.ResponseWriter, _ *http.Request) {
		if behaviour == "late" && time.Since(started) < 200*time.Millisecond {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/pid", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%d %s", os.Getpid(), r.Host) //nolint:gosec // no browser reads this
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(200 * time.Millisecond)
		_, _ = fmt.Fprint(w, os.Getpid())
	})
	mux.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { os.Exit(7) })
	server := &http.Server{Addr: os.Getenv("LISTEN_ADDRESS"), Handler: mux, ReadHeaderTimeout: time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.Background())
	}()
	fmt.Println(`{"level":"INFO","msg":"listening"}`)
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return 1
	}
	return 0
}

// beParent starts a function, tells its process id, and waits for its own end.
func beParent() {
	self, err := os.Executable()
	if err != nil {
		os.Exit(1)
	}
	spec := Spec{NamespacedName: testName, Binary: self}
	p, err := start(spec, []string{envFunction + "=good"}, report.New(io.Discard))
	if err != nil {
		os.Exit(1)
	}
	<-p.ready
	fmt.Println(p.cmd.Process.Pid)
	select {}
}

// lines collects what is reported.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// states are those that the function's processes were reported in.
func (l *lines) states() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, text := range strings.Split(l.text.String(), "\n") {
		var line report.Function
		if json.Unmarshal([]byte(text), &line) == nil && line.Kind == report.KindFunction {
			all = append(all, line.State)
		}
	}
	return all
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("this did not happen: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

var testName = types.NamespacedName{Namespace: "demo", Name: "fn"}

type bench struct {
	*lines
	activator *Activator
	server    *httptest.Server
}

func newBench(t *testing.T, idle time.Duration) *bench {
	t.Helper()
	b := &bench{lines: &lines{}}
	b.activator = NewActivator(Options{
		Environ: func(_ context.Context, spec Spec) ([]string, error) {
			var environ []string
			for _, variable := range spec.Env {
				environ = append(environ, variable.Name+"="+variable.Value)
			}
			return environ, nil
		},
		Idle: idle, Report: report.New(b.lines), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	b.server = httptest.NewServer(b.activator.Handler(testName))
	t.Cleanup(func() {
		b.server.Close()
		b.activator.Stop()
	})
	return b
}

func testSpec(t *testing.T, behaviour string) Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{NamespacedName: testName, Binary: self, Env: []corev1.EnvVar{{Name: envFunction, Value: behaviour}}}
}

func (b *bench) get(t *testing.T, path string) (int, string) {
	t.Helper()
	answer, err := http.Get(b.server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestTheFirstRequestStartsTheProcessAndTheNextOneUsesIt(t *testing.T) {
	b := newBench(t, time.Minute)
	b.activator.Set(testSpec(t, "late"))
	if states := b.states(); len(states) != 0 {
		t.Fatalf("a process was started before there was a request: %v", states)
	}
	code, first := b.get(t, "/pid")
	if code != http.StatusOK {
		t.Fatalf("the first request was answered %d: %s", code, first)
	}
	if _, second := b.get(t, "/pid"); second != first {
		t.Errorf("the requests were answered by %q and %q, want one process", first, second)
	}
	if states := fmt.Sprint(b.states()); states != "[started ready]" {
		t.Errorf("reported %s", states)
	}
	await(t, "its log is reported as JSON", func() bool {
		return b.has(`{"kind":"log","function":"fn","line":{"level":"INFO","msg":"listening"}}`)
	})
}

func TestRequestsThatComeDuringTheStartShareOneProcess(t *testing.T) {
	b := newBench(t, time.Minute)
	b.activator.Set(testSpec(t, "late"))
	var wait sync.WaitGroup
	pids := make([]string, 8)
	for i := range pids {
		wait.Go(func() { _, pids[i] = b.get(t, "/pid") })
	}
	wait.Wait()
	for _, pid := range pids {
		if pid != pids[0] {
			t.Fatalf("answers came from %v", pids)
		}
	}
}

func TestAnIdleProcessIsStoppedAndTheNextRequestStartsAnother(t *testing.T) {
	b := newBench(t, 50*time.Millisecond)
	b.activator.Set(testSpec(t, "good"))
	_, first := b.get(t, "/pid")
	await(t, "the process is stopped", func() bool { return fmt.Sprint(b.states()) == "[started ready stopped]" })
	if _, second := b.get(t, "/pid"); second == first {
		t.Errorf("both requests were answered by %q", first)
	}
}

func TestARequestInFlightKeepsTheProcess(t *testing.T) {
	b := newBench(t, 50*time.Millisecond)
	b.activator.Set(testSpec(t, "good"))
	if code, text := b.get(t, "/slow"); code != http.StatusOK {
		t.Errorf("a request that takes longer than the idle time was answered %d: %s", code, text)
	}
}

func TestACrashFailsItsRequestsAndTheNextOneStartsAnotherProcess(t *testing.T) {
	b := newBench(t, time.Minute)
	b.activator.Set(testSpec(t, "good"))
	if code, _ := b.get(t, "/crash"); code != http.StatusBadGateway {
		t.Errorf("a crash was answered %d, want 502", code)
	}
	if code, text := b.get(t, "/pid"); code != http.StatusOK {
		t.Errorf("the request after a crash was answered %d: %s", code, text)
	}
	await(t, "the crash is reported", func() bool { return b.has(`"state":"crashed"`) && b.has("exit status 7") })
}

func TestAProcessThatDoesNotStartIsUnavailable(t *testing.T) {
	b := newBench(t, time.Minute)
	b.activator.Set(testSpec(t, "exits"))
	if code, text := b.get(t, "/pid"); code != http.StatusServiceUnavailable || !strings.Contains(text, "did not become ready") {
		t.Errorf("answered %d: %s", code, text)
	}
	await(t, "what it said is reported as text", func() bool { return b.has(`"line":"cannot start"`) })
}

func TestConcurrencyIsLimited(t *testing.T) {
	b := newBench(t, time.Minute)
	spec := testSpec(t, "good")
	spec.Concurrency = 2
	b.activator.Set(spec)
	b.get(t, "/pid")
	start := time.Now()
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() { b.get(t, "/slow") })
	}
	wait.Wait()
	if took := time.Since(start); took < 600*time.Millisecond {
		t.Errorf("6 requests of 0.2 s took %s at 2 a time", took)
	}
	if got := b.activator.Concurrency(testName); got != 2 {
		t.Errorf("the activator says that the function takes %d requests at once, want 2", got)
	}
}

func TestAChangedFunctionIsReplacedAfterItsRequests(t *testing.T) {
	b := newBench(t, time.Minute)
	b.activator.Set(testSpec(t, "good"))
	_, first := b.get(t, "/pid")
	var code int
	var wait sync.WaitGroup
	wait.Go(func() { code, _ = b.get(t, "/slow") })
	await(t, "the slow request is in flight", func() bool {
		f := b.activator.get(testName)
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.current.inFlight == 1
	})
	b.activator.Set(testSpec(t, "better"))
	if _, second := b.get(t, "/pid"); second == first {
		t.Error("the old process answered a request that came after the change")
	}
	wait.Wait()
	if code != http.StatusOK {
		t.Errorf("the request that was in flight was answered %d", code)
	}
	await(t, "the old process is stopped", func() bool { return b.has(`"state":"stopped"`) })
}

func TestFunctionsThatCannotRunAnswerWhy(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Spec)
		code   int
		want   string
	}{
		"Disabled": {"the annotation keeps a function from being started", func(s *Spec) { s.Disabled = true }, 503, "disabled"},
		"Missing":  {"the file is named that is not there", func(s *Spec) { s.Binary = "/nowhere/fn" }, 503, `"/nowhere/fn"`},
		"Unknown":  {"there is no such function", func(s *Spec) { s.Name = "other" }, 404, "demo/fn"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, time.Minute)
			spec := testSpec(t, "good")
			tc.change(&spec)
			b.activator.Set(spec)
			if code, text := b.get(t, "/pid"); code != tc.code || !strings.Contains(text, tc.want) {
				t.Errorf("%s: answered %d: %s", tc.reason, code, text)
			}
			if states := b.states(); len(states) > 0 {
				t.Errorf("%s: processes: %v", tc.reason, states)
			}
		})
	}
}

func TestTheHostReachesTheFunction(t *testing.T) {
	b := newBench(t, time.Minute)
	b.activator.Set(testSpec(t, "good"))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+"/pid", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "fn.demo.svc.cluster.local"
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(answer.Body)
	if !strings.HasSuffix(string(text), " fn.demo.svc.cluster.local") {
		t.Errorf("the function was asked as %q", text)
	}
}

func TestStopEndsAllProcesses(t *testing.T) {
	b := newBench(t, time.Minute)
	b.activator.Set(testSpec(t, "good"))
	b.get(t, "/pid")
	b.activator.Stop()
	if states := fmt.Sprint(b.states()); states != "[started ready stopped]" {
		t.Errorf("reported %s", states)
	}
	if code, _ := b.get(t, "/pid"); code != http.StatusServiceUnavailable {
		t.Errorf("a request after the end was answered %d, want 503", code)
	}
}

func TestAFunctionDiesWithTheProcessThatStartedIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child whose parent was killed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), envFunction+"=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	await(t, "the function ends", func() bool {
		// A zombie that nobody has collected yet has ended too.
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		return err != nil || strings.Contains(string(text), ") Z ")
	})
}

func TestAProcessIsForgottenWithItsFunction(t *testing.T) {
	b := newBench(t, time.Minute)
	b.activator.Set(testSpec(t, "good"))
	b.get(t, "/pid")
	b.activator.Remove(testName)
	await(t, "the process is stopped", func() bool { return b.has(`"state":"stopped"`) })
}

func TestFilesOfCredentialsAreReplacedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	for _, content := range []string{"first", "second"} {
		if err := replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("read %q, %v, want %q", got, err, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v, want 0600", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v, want the one file", entries, err)
	}
}
