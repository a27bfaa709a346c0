package worker

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/shared/render/evaluate"
)

// argument is what makes a start of the binary a child's; the memory limit in
// bytes follows.
const argument = "slipway-render-child"

// Exit codes of a child that was stopped by itself.
const (
	exitCPU  = 81
	exitOdd  = 82
	maxStack = 64 << 20
)

// requestMax bounds a message to a child: source and input are bounded long before.
const requestMax = 64 << 20

// Hook turns this start of the binary into a child's life, if it is one, and does
// not return then. It has to run before anything else does.
func Hook() {
	if len(os.Args) != 3 || os.Args[1] != argument {
		return
	}
	memory, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		os.Exit(exitOdd)
	}
	os.Exit(live(memory))
}

// live answers one request after the other until the parent goes.
func live(memory int64) int {
	debug.SetMaxStack(maxStack)
	if err := confine(memory); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitOdd
	}
	// A signal for the parent's terminal is the parent's business.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	in := bufio.NewReader(os.Stdin)
	evaluator := &evaluate.Evaluator{}
	for {
		var request render.Request
		if err := receive(in, requestMax, &request); err != nil {
			return 0 // the parent is gone, or has no more work
		}
		stop := watch(request.Limits.CPU)
		answer := answerTo(evaluator, request)
		stop()
		used, resident := usage()
		if err := send(os.Stdout, report{Answer: answer, CPU: used, Resident: resident}); err != nil {
			return 0
		}
	}
}

// answerTo evaluates a request. A panic of the evaluator is an answer: it comes
// again with the same request.
func answerTo(evaluator *evaluate.Evaluator, request render.Request) (answer render.Answer) {
	defer func() {
		if cause := recover(); cause != nil {
			answer = render.Answer{Failure: render.Exceeded("the evaluator failed at this template: %v", cause)}
		}
	}()
	answer = evaluator.Evaluate(request)
	total := 0
	for _, output := range answer.Outputs {
		total += len(output.JSON)
	}
	if l := request.Limits; total > l.MaxOutput {
		return render.Answer{Facts: answer.Facts, Failure: render.Exceeded("the outputs have %d bytes together, %d are allowed", total, l.MaxOutput)}
	}
	return answer
}

// tick is how often a child looks at its processor time.
const tick = 20 * time.Millisecond

// watch ends the process when it has used more processor time than a budget.
func watch(budget time.Duration) (stop func()) {
	before, _ := usage()
	done := make(chan struct{})
	ticker := time.NewTicker(tick)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if used, _ := usage(); used-before > budget {
					os.Exit(exitCPU)
				}
			}
		}
	}()
	return func() { close(done) }
}
