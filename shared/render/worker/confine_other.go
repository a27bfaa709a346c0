//go:build !linux

package worker

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// self is this binary's file.
var self, _ = os.Executable()

// NOTE: off Linux, memory is bounded by nothing but the clock. Functions run on
// Linux; this is for the command line.
func confine(int64) error { return nil }

func usage() (cpu time.Duration, resident int64) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), 0
}

func mostResident(*os.ProcessState) int64 { return 0 }

func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
