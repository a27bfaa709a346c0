package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// poll is the time between two questions whether a program is ready.
	poll = 50 * time.Millisecond
	// shown is how much of a program's log an error carries.
	shown = 4 << 10
)

// errPortTaken says that a program ended because somebody took its port between
// the choice and its own listening. Another port will do.
var errPortTaken = errors.New("a port was taken")

// process is a child process that writes into a log of its own.
type process struct {
	name string
	log  string
	pid  string
	cmd  *exec.Cmd
	done chan struct{}
	// err is what the process ended with; it may be read once done is closed.
	err error
}

// launch starts a component of the kube binary. Its files in dir are <name>.log and
// <name>.pid.
func launch(binary, dir, name string, args ...string) (*process, error) {
	p := &process{
		name: name,
		log:  filepath.Join(dir, name+".log"),
		pid:  filepath.Join(dir, name+".pid"),
		// The name as the first argument is what picks the component.
		cmd:  &exec.Cmd{Path: binary, Args: append([]string{name}, args...)},
		done: make(chan struct{}),
	}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = attributes()
	started := make(chan error)
	go p.run(log, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	return p, nil
}

// run starts the process and waits for its end.
func (p *process) run(log *os.File, started chan<- error) {
	// On Linux the child is told to die when the thread that started it does, so
	// the thread must stay for as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	log.Close()
	if err != nil {
		started <- err
		return
	}
	// Only the next run wants to know, and it gets by without.
	_ = os.WriteFile(p.pid, []byte(strconv.Itoa(p.cmd.Process.Pid)+"\n"), 0o644)
	started <- nil
	p.err = p.cmd.Wait()
	_ = os.Remove(p.pid)
	close(p.done)
}

// stop asks the process to end, and makes it after the grace. It returns when the
// process is gone.
func (p *process) stop(grace time.Duration) {
	if grace > 0 && p.cmd.Process.Signal(syscall.SIGTERM) == nil {
		select {
		case <-p.done:
			return
		case <-time.After(grace):
		}
	}
	// The only failure is that it has ended already.
	_ = p.cmd.Process.Kill()
	<-p.done
}

// failure is the error about a process that has ended although nobody stopped it.
// It must not be called before done is closed.
func (p *process) failure() error {
	end := tail(p.log)
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	err := fmt.Errorf("%s ended by itself (%s); the end of %s:\n%s", p.name, how, p.log, end)
	if strings.Contains(end, "address already in use") {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

// await polls the probe until it succeeds, the process ends or ctx does.
func (p *process) await(ctx context.Context, probe func(context.Context) error) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		err := probe(ctx)
		select {
		case <-p.done:
			// Also when the probe succeeded: somebody else may have answered it.
			return p.failure()
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.failure()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last answer: %w); the end of %s:\n%s", p.name, context.Cause(ctx), err, p.log, tail(p.log))
		case <-ticker.C:
		}
	}
}

// tail returns the last lines of a file.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	content = bytes.TrimSpace(content)
	if len(content) > shown {
		content = content[len(content)-shown:]
		if _, rest, ok := bytes.Cut(content, []byte("\n")); ok {
			content = rest
		}
	}
	if len(content) == 0 {
		return "(empty)"
	}
	return string(content)
}

// endLeftover ends the component that a run in the same directory has left behind
// when it died. A process counts as such only if the directory is among its
// arguments: its id may belong to somebody else by now.
func endLeftover(dir, name string) {
	file := filepath.Join(dir, name+".pid")
	content, err := os.ReadFile(file)
	if err != nil {
		return
	}
	defer func() { _ = os.Remove(file) }()
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid <= 1 {
		return
	}
	arguments, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || !bytes.HasPrefix(arguments, []byte(name+"\x00")) || !bytes.Contains(arguments, []byte(dir+string(filepath.Separator))) {
		return
	}
	if syscall.Kill(pid, syscall.SIGKILL) != nil {
		return
	}
	for range int(10 * time.Second / poll) {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(poll)
	}
}
