package kube

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// loopback is the one address that anything here listens on.
const loopback = "127.0.0.1"

// recent remembers the ports that this process has given to its children, so that
// two clusters that start at once do not get the same one between the choice and
// the child's own listening.
var recent = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// freePort returns a port that nobody listens on. Somebody else may take it before
// the child does; whoever starts the child has to try again then.
func freePort() (int, error) {
	recent.Lock()
	defer recent.Unlock()
	for range 64 {
		listener, err := net.Listen("tcp4", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return 0, fmt.Errorf("cannot find a free port on %s: %w", loopback, err)
		}
		address, ok := listener.Addr().(*net.TCPAddr)
		listener.Close()
		if ok && !recent.ports[address.Port] {
			recent.ports[address.Port] = true
			return address.Port, nil
		}
	}
	return 0, fmt.Errorf("cannot find a free port on %s: all that were offered are taken by this process", loopback)
}

// BusyPortError says that a port that somebody asked for is not to be had.
type BusyPortError struct {
	// Port is the port that was asked for.
	Port int
	// Process names who listens on it; "" when that cannot be found out.
	Process string
}

func (e *BusyPortError) Error() string {
	by := "another process"
	if e.Process != "" {
		by = e.Process
	}
	return fmt.Sprintf("port %d of %s is in use by %s: end that process, choose another port, or give none to get a free one", e.Port, loopback, by)
}

// portOr returns the given port if nobody listens on it, a free one if none is
// given.
func portOr(given int) (int, error) {
	if given == 0 {
		return freePort()
	}
	if err := CheckPort(given); err != nil {
		return 0, err
	}
	return given, nil
}

// CheckPort returns a [BusyPortError] when somebody listens on the port already,
// on 127.0.0.1 or on all addresses.
func CheckPort(port int) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("cannot listen on port %d: ports are from 1 to 65535", port)
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err == nil {
		return listener.Close()
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return &BusyPortError{Port: port, Process: listening(port)}
	}
	return fmt.Errorf("cannot listen on port %d of %s: %w", port, loopback, err)
}

// listening names the process that listens on the port, as far as /proc tells.
func listening(port int) string {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listeners(table, port, inodes)
	}
	if len(inodes) == 0 {
		return ""
	}
	// Only one's own processes show their files, unless one is root.
	descriptors, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, descriptor := range descriptors {
		target, err := os.Readlink(descriptor)
		if err != nil {
			continue
		}
		inode, ok := strings.CutPrefix(target, "socket:[")
		if ok && inodes[strings.TrimSuffix(inode, "]")] {
			return describe(strings.Split(descriptor, "/")[2])
		}
	}
	return ""
}

// listeners adds the sockets of the table that listen on the port.
func listeners(table string, port int, inodes map[string]bool) {
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer f.Close()
	const listen = "0A"
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != listen {
			continue
		}
		_, hex, ok := strings.Cut(fields[1], ":")
		if number, err := strconv.ParseInt(hex, 16, 32); ok && err == nil && int(number) == port {
			inodes[fields[9]] = true
		}
	}
}

// describe names a process by the name it was started under, which for the kube
// binary is the component's.
func describe(pid string) string {
	arguments, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
	if err != nil {
		return "process " + pid
	}
	name, _, _ := strings.Cut(string(arguments), "\x00")
	return fmt.Sprintf("process %s (%s)", pid, filepath.Base(name))
}
