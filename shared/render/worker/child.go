package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/render"
)

// child is one child process, as its parent sees it.
type child struct {
	cmd    *exec.Cmd
	memory int64
	in     *os.File
	pipe   *os.File
	out    *bufio.Reader
	// last is the end of what it wrote to its standard error; there when done is closed.
	last string
	// done is closed when the process has ended.
	done chan struct{}

	jobs int
	// cpu is what it had used, and resident the most it ever had, after its last job.
	cpu      time.Duration
	resident int64
}

// start starts a child.
func start(memory int64) (*child, error) {
	var pipes []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(pipes...)
			return nil, fmt.Errorf("cannot start a renderer: %w", err)
		}
		pipes = append(pipes, r, w)
	}
	c := &child{memory: memory, in: pipes[1], pipe: pipes[2], out: bufio.NewReader(pipes[2]), done: make(chan struct{})}
	c.cmd = &exec.Cmd{
		Path: self, Args: []string{self, argument, strconv.FormatInt(memory, 10)}, Env: []string{},
		Stdin: pipes[0], Stdout: pipes[3], Stderr: pipes[5],
	}
	detach(c.cmd)
	started := make(chan error)
	go c.attend(started, pipes[4])
	err := <-started
	closeAll(pipes[0], pipes[3], pipes[5])
	if err != nil {
		closeAll(pipes[1], pipes[2], pipes[4])
		return nil, fmt.Errorf("cannot start a renderer: %w", err)
	}
	return c, nil
}

func closeAll(files ...*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

// attend starts the process and stays with it: the kernel kills a child when the
// thread that started it ends, so that thread belongs to it.
func (c *child) attend(started chan<- error, stderr *os.File) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	c.last = lastOf(stderr)
	_ = stderr.Close()
	_ = c.cmd.Wait()
	close(c.done)
}

// lastOf reads everything and keeps the beginning, where Go says why it ends.
func lastOf(r io.Reader) string {
	head, _ := io.ReadAll(io.LimitReader(r, 8<<10))
	_, _ = io.Copy(io.Discard, r)
	return string(head)
}

// kill ends the process. It is alone in its group: a template cannot start another.
// One that has ended already is left alone, whoever has its number now.
func (c *child) kill() { _ = c.cmd.Process.Kill() }

// end lets a child go and waits for it. It may be called again.
func (c *child) end() {
	c.kill()
	<-c.done
	closeAll(c.in, c.pipe)
}

// do gives the child one job. On a failure of the child, or an error, it has ended:
// the failure is what the render came to, the error says that it may work later.
func (c *child) do(ctx context.Context, request render.Request) (render.Answer, error) {
	var late atomic.Bool
	timer := time.AfterFunc(request.Limits.Wall, func() {
		late.Store(true)
		c.kill()
	})
	defer timer.Stop()
	defer context.AfterFunc(ctx, func() { c.kill() })()

	var answered report
	err := send(c.in, request)
	if err == nil {
		err = receive(c.out, request.Limits.AnswerSize(), &answered)
	}
	if err == nil {
		c.jobs++
		c.cpu, c.resident = answered.CPU, answered.Resident
		return answered.Answer, nil
	}
	c.end()
	if ctx.Err() != nil {
		return render.Answer{}, fmt.Errorf("cannot finish a render: %w", ctx.Err())
	}
	failure, retry := c.explain(request.Limits, err, late.Load())
	return render.Answer{Failure: failure}, retry
}

// explain tells why a child has ended in the middle of a job.
func (c *child) explain(limits render.Limits, err error, late bool) (*render.Failure, error) {
	state := c.cmd.ProcessState
	used := state.SystemTime() + state.UserTime() - c.cpu
	switch {
	case late && used < limits.CPU/2:
		return nil, fmt.Errorf("%w: a render had %s of processor time within %s", ErrOverloaded, used.Round(time.Millisecond), limits.Wall)
	case late:
		return render.Exceeded("rendering takes longer than %s", limits.Wall), nil
	case state.ExitCode() == exitCPU:
		return render.Exceeded("rendering takes more than %s of processor time", limits.CPU), nil
	case state.ExitCode() == exitOdd:
		return nil, fmt.Errorf("%w: the renderer cannot run: %s", ErrOverloaded, clip.Line(c.last, 200))
	case errors.Is(err, errMessage):
		return render.Exceeded("the outputs have more than %d bytes together", limits.MaxOutput), nil
	case strings.Contains(c.last, "stack overflow") || strings.Contains(c.last, "stack exceeds"):
		return render.Exceeded("rendering nests deeper than a stack of %d MiB allows", maxStack>>20), nil
	case outOfMemory(c.last) || state.ExitCode() < 0 || mostResident(state) > c.memory/2:
		return render.Exceeded("rendering takes more than %d MiB of memory", c.memory>>20), nil
	}
	return render.Exceeded("the evaluator failed at this template"), nil
}

func outOfMemory(text string) bool {
	for _, sign := range []string{"out of memory", "cannot allocate memory", "cannot reserve", "failed to create new OS thread", "cannot map", "failed to allocate"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
