//go:build unix && !linux

package kube

import "syscall"

// attributes keep a terminal's Ctrl-C from the child, which this process stops in
// order. Only Linux lets a child die with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
