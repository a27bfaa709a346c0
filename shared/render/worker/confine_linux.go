package worker

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// self is this very binary, whatever has become of its file.
const self = "/proc/self/exe"

// descriptorsMax is how many descriptors of a careless parent are looked for.
const descriptorsMax = 4096

// confine closes what was inherited and lowers the limits of this process for good.
func confine(memory int64) error {
	for fd := uintptr(3); fd < descriptorsMax; fd++ {
		// Go's own, and those of a Go parent, are closed at the start of a process.
		if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(int(fd)) //nolint:gosec // a small number
		}
	}
	for _, limit := range []struct {
		what string
		id   int
		max  uint64
	}{
		{"memory", unix.RLIMIT_DATA, dataLimit(memory)},
		{"core dumps", unix.RLIMIT_CORE, 0},
		{"files", unix.RLIMIT_FSIZE, 0},
		{"descriptors", unix.RLIMIT_NOFILE, 3},
	} {
		if err := unix.Setrlimit(limit.id, &unix.Rlimit{Cur: limit.max, Max: limit.max}); err != nil {
			return fmt.Errorf("cannot limit %s: %w", limit.what, err)
		}
	}
	return nil
}

// dataLimit is what the kernel counts of a process that may use so much memory.
func dataLimit(memory int64) uint64 {
	limit := uint64(max(memory, 0)) //nolint:gosec // never negative
	if !raced {
		return limit
	}
	var all, resident, shared, text, lib, data uint64
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil {
		_, _ = fmt.Sscan(string(raw), &all, &resident, &shared, &text, &lib, &data)
	}
	return factor*limit + data*uint64(os.Getpagesize()) //nolint:gosec // never negative
}

// usage is the processor time that this process has used, and the most memory that
// it ever had resident, in bytes.
func usage() (cpu time.Duration, resident int64) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), int64(r.Maxrss) << 10 //nolint:unconvert // 32 bits where a machine word has
}

// mostResident is the most memory that an ended process ever had, in bytes.
func mostResident(state *os.ProcessState) int64 {
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		return int64(r.Maxrss) << 10 //nolint:unconvert // 32 bits where a machine word has
	}
	return 0
}

// detach gives a child a process group of its own, and lets it die with its parent.
// That is bound to the thread that starts it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
