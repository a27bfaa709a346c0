package function

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/eventing/report"
)

const (
	// readyWithin is how long a process may take to become ready.
	readyWithin = 20 * time.Second
	// killAfter is how long a process may take to stop.
	killAfter = 10 * time.Second
	// Readiness is asked for often at first: functions start in milliseconds.
	firstProbe, lastProbe = time.Millisecond, 50 * time.Millisecond
	// settleWithin is how long the end of a process is waited for that broke off
	// a connection. On a busy machine an end takes its time; one that did not end
	// has failed a request all the same, and that is rare.
	settleWithin = 2 * time.Second
)

// process is one running process of a function.
type process struct {
	name   string
	report *report.Reporter

	cmd     *exec.Cmd
	address string
	started time.Time
	// ready is closed when the process answered that it is ready, exited when it
	// is gone.
	ready, exited chan struct{}
	// stopping is closed when the process was asked to stop.
	stopping chan struct{}
	stopOnce sync.Once
}

// launches start processes, all from one thread: a child is to die with its
// parent, which Linux takes to be the thread that started it, and Go may end
// any thread but one that is locked to a goroutine that goes on.
var launches = make(chan launch)

type launch struct {
	cmd  *exec.Cmd
	done chan error
}

func init() {
	go func() {
		runtime.LockOSThread()
		for l := range launches {
			l.done <- l.cmd.Start()
		}
	}()
}

// start starts the process. It returns when the process runs, before it is ready.
func start(spec Spec, environ []string, reporter *report.Reporter) (*process, error) {
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	p := &process{
		name: spec.Name, report: reporter, address: addresses[0], started: time.Now(),
		ready: make(chan struct{}), exited: make(chan struct{}), stopping: make(chan struct{}),
	}
	_, port, _ := net.SplitHostPort(p.address)
	// The binary is named by who runs this stack, the arguments by its manifests.
	p.cmd = exec.Command(spec.Binary, spec.Args...)
	p.cmd.Env = append(environ,
		"LISTEN_ADDRESS="+p.address,
		"PORT="+port,
		"HEALTH_LISTEN_ADDRESS="+addresses[1])
	// A process group of its own: Ctrl-C is for this process, which stops its
	// children in order.
	p.cmd.SysProcAttr = childAttributes()
	output, writer := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = writer, writer
	// A grandchild that keeps the output open must not keep the process alive.
	p.cmd.WaitDelay = time.Second

	l := launch{cmd: p.cmd, done: make(chan error, 1)}
	launches <- l
	if err := <-l.done; err != nil {
		return nil, fmt.Errorf("cannot start %q: %w", spec.Binary, err)
	}
	reporter.Write(report.Function{Kind: report.KindFunction, Name: p.name, State: report.Started, PID: p.cmd.Process.Pid})
	go p.copyOutput(output)
	go p.wait(writer)
	go p.probe()
	return p, nil
}

// copyOutput reports every line that the process writes.
func (p *process) copyOutput(output io.Reader) {
	reader := bufio.NewReader(output)
	for {
		line, err := reader.ReadBytes('\n')
		if line = trimEnd(line); len(line) > 0 {
			p.report.Write(report.FunctionLine(p.name, line))
		}
		if err != nil {
			return
		}
	}
}

func trimEnd(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}

// wait reports the end of the process.
func (p *process) wait(output io.Closer) {
	err := p.cmd.Wait()
	_ = output.Close()
	line := report.Function{
		Kind: report.KindFunction, Name: p.name, PID: p.cmd.Process.Pid,
		State: report.Stopped, DurationMs: milliseconds(time.Since(p.started)),
	}
	select {
	case <-p.stopping:
		if err != nil {
			line.Error = err.Error()
		}
	default:
		line.State = report.Crashed
		line.Error = "exit status 0"
		if err != nil {
			line.Error = err.Error()
		}
	}
	// Told first: whoever acts on the end finds it reported.
	p.report.Write(line)
	close(p.exited)
}

// probe waits until the process is ready.
func (p *process) probe() {
	client := &http.Client{
		Timeout:   time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	pause := firstProbe
	deadline := time.After(readyWithin)
	for {
		if ready(client, p.address) {
			p.report.Write(report.Function{
				Kind: report.KindFunction, Name: p.name, State: report.Ready,
				PID: p.cmd.Process.Pid, DurationMs: milliseconds(time.Since(p.started)),
			})
			close(p.ready)
			return
		}
		select {
		case <-p.exited:
			return
		case <-deadline:
			p.stop()
			return
		case <-time.After(pause):
		}
		pause = min(pause*5/4, lastProbe)
	}
}

func ready(client *http.Client, address string) bool {
	answer, err := client.Get("http://" + address + "/health/readiness")
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// errNotReady says why a process takes no requests.
var errNotReady = errors.New("the function did not become ready")

// await waits until the process is ready.
func (p *process) await(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	default:
	}
	select {
	case <-p.ready:
		return nil
	case <-p.exited:
		return fmt.Errorf("%w: the process ended", errNotReady)
	case <-time.After(readyWithin - time.Since(p.started)):
		return fmt.Errorf("%w within %s", errNotReady, readyWithin)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle waits a moment for the end of a process that broke off a connection, so
// that nobody who hears of that sends the next request to the same process.
func (p *process) settle() {
	select {
	case <-p.exited:
	case <-time.After(settleWithin):
	}
}

// gone tells whether the process has ended or is about to.
func (p *process) gone() bool {
	select {
	case <-p.exited:
		return true
	case <-p.stopping:
		return true
	default:
		return false
	}
}

// stop asks the process to stop, with everything it has started, and returns
// when it has.
func (p *process) stop() {
	p.stopOnce.Do(func() {
		close(p.stopping)
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.exited:
			return
		case <-time.After(killAfter):
		}
		// Setpgid made the process the leader of its group.
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	})
	<-p.exited
}

// freeAddresses are loopback addresses that nobody listens on.
func freeAddresses(count int) ([]string, error) {
	var addresses []string
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("cannot find a free port: %w", err)
		}
		// Closed at the end only, so that they differ.
		defer func() { _ = listener.Close() }()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}
