package kube

import "syscall"

// attributes keep a terminal's Ctrl-C from the child, which this process stops in
// order, and let the child die with this process, whatever kills it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
