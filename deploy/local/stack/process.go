package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a child of the stack that dies with it.
type process struct {
	name string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
	err  error
}

// start runs a program; its standard error goes to <data>/<name>.log, and its
// standard output too unless the command says otherwise.
func start(data, name string, cmd *exec.Cmd) (*process, error) {
	log, err := os.OpenFile(filepath.Join(data, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // a path below our own directory
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	cmd.Stderr = log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	// A group of its own: Ctrl-C goes to us alone, and we stop in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// A grandchild that keeps the output open must not keep us waiting.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start %s: %w", name, err), log.Close())
	}
	p := &process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		_ = log.Close()
		close(p.done)
	}()
	return p, nil
}

// stop asks the process to end, and ends it when it takes longer than grace.
func (p *process) stop(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// await waits for a signal from the process, its end, or the context.
func (p *process) await(ctx context.Context, signal <-chan struct{}) error {
	select {
	case <-signal:
		return nil
	case <-p.done:
		return fmt.Errorf("%s ended early (%w); its log: %s", p.name, p.err, p.log.Name())
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for %s any longer: %w; its log: %s", p.name, ctx.Err(), p.log.Name())
	}
}
