package function

import "syscall"

// childAttributes make a child that dies with its parent, in a process group of
// its own.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
