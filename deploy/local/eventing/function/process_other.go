//go:build unix && !linux

package function

import "syscall"

// childAttributes make a child in a process group of its own. Only Linux ends a
// child whose parent was killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
