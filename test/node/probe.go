package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// What the machine has to have at least.
const (
	cpus         = 2
	memoryNeeded = 4 << 30
	diskNeeded   = 5 << 30
	cniDir       = "/usr/lib/cni"
	cgroupRoot   = "/sys/fs/cgroup"
	tmpfsMagic   = 0x01021994
	packages     = "runc containernetworking-plugins nftables containerd iptables iproute2 util-linux"
)

// Probe tells whether this machine can run a node with its state in the given folder.
// The error names the first step that fails, and what was said. Nothing stays behind,
// also not of a node whose process was killed.
func Probe(ctx context.Context, state string) error {
	// Its space may be what is missing. Where it cannot be cleared a step says why.
	_ = Clear(ctx, state)
	for _, step := range []struct {
		name  string
		check func(context.Context, string) error
	}{
		{"system", system},
		{"programs", programs},
		{"resources", resources},
		{"cgroups", cgroups},
		{"namespaces, overlayfs, veth and nftables", namespaces},
	} {
		if err := step.check(ctx, filepath.Dir(state)); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func system(context.Context, string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("this is %s, and a node needs Linux", runtime.GOOS)
	}
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("running as user %d, and a node needs root", uid)
	}
	return nil
}

func programs(context.Context, string) error {
	for _, name := range []string{"unshare", "nsenter", "ip", "nft", "iptables", "runc", "containerd", "containerd-shim-runc-v2", "ctr"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w; on Debian: apt-get install %s", err, packages)
		}
	}
	for _, name := range []string{"ptp", "host-local", "portmap", "loopback"} {
		if _, err := os.Stat(filepath.Join(cniDir, name)); err != nil {
			return fmt.Errorf("%w; on Debian: apt-get install %s", err, packages)
		}
	}
	return nil
}

func resources(_ context.Context, state string) error {
	if n := runtime.NumCPU(); n < cpus {
		return fmt.Errorf("%d processors, and a node needs %d", n, cpus)
	}
	free, err := available()
	if err != nil {
		return err
	}
	if free < memoryNeeded {
		return fmt.Errorf("%d MB of memory are free, and a node needs %d", free>>20, memoryNeeded>>20)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(state, &disk); err != nil {
		return fmt.Errorf("cannot ask for the free space of %q: %w", state, err)
	}
	if have := int64(disk.Bavail) * disk.Bsize; have < diskNeeded { //nolint:gosec // far below 2^63
		return fmt.Errorf("%d MB are free for %s, and a node needs %d", have>>20, state, diskNeeded>>20)
	}
	return nil
}

// available is the memory that programs can still have, in bytes.
func available() (int64, error) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) >= 2 && fields[0] == "MemAvailable:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo does not say how much memory is available")
}

func cgroups(context.Context, string) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(cgroupRoot, &fs); err != nil {
		return fmt.Errorf("cannot look at %s: %w", cgroupRoot, err)
	}
	if fs.Type != tmpfsMagic {
		return errors.New("the machine has control groups of version 2 only, with which this was never tried")
	}
	for _, dir := range hierarchies() {
		probe := filepath.Join(dir, "slipway-probe-"+strconv.Itoa(os.Getpid()))
		if err := os.Mkdir(probe, 0o755); err != nil {
			return err
		}
		if err := os.Remove(probe); err != nil {
			return err
		}
	}
	return nil
}

// tryout does in namespaces of its own what a node needs.
const tryout = `set -e
mount -t tmpfs tmpfs /run
mkdir -p "$STATE"/lower "$STATE"/upper "$STATE"/work "$STATE"/merged
mount -t overlay overlay -o "lowerdir=$STATE/lower,upperdir=$STATE/upper,workdir=$STATE/work" "$STATE/merged"
ip link add probe0 type veth peer name probe1
nft add table ip probe
nft 'add chain ip probe nat { type nat hook postrouting priority 100; }'
`

func namespaces(ctx context.Context, state string) error {
	dir, err := os.MkdirTemp(state, "probe-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cmd := exec.CommandContext(ctx, "unshare", append(unshare(), "/bin/bash", "-c", tryout)...) //nolint:gosec // our own words
	cmd.Env = append(os.Environ(), "STATE="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// unshare are the arguments for a process tree of its own.
func unshare() []string {
	return []string{
		"--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--mount-proc", "--propagation", "private", "--kill-child=SIGKILL", "--",
	}
}
