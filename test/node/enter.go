package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Enter returns a command that runs in the node, with its mounts and its processes.
func (n *Node) Enter(ctx context.Context, program string, args ...string) *exec.Cmd {
	return n.nsenter(ctx, []string{"-m", "-p", "-n", "-u", "-i"}, program, args...)
}

// Beside returns a command that reaches the node's network and ends with the node, but
// sees the machine's files as they are.
func (n *Node) Beside(ctx context.Context, program string, args ...string) *exec.Cmd {
	return n.nsenter(ctx, []string{"-p", "-n"}, program, args...)
}

func (n *Node) nsenter(ctx context.Context, namespaces []string, program string, args ...string) *exec.Cmd {
	all := append([]string{"-t", strconv.Itoa(n.init)}, namespaces...)
	return exec.CommandContext(ctx, "nsenter", append(append(all, "--", program), args...)...) //nolint:gosec // the caller's own words
}

// KubectlCommand is what has to be typed on this machine for a kubectl that reaches the
// node as its administrator.
func (n *Node) KubectlCommand() string {
	return fmt.Sprintf("nsenter --net=/proc/%d/ns/net %s kubectl --kubeconfig %s", n.init, filepath.Join(n.opts.Bin, "kube"), n.Kubeconfig())
}

// Kubeconfig is the administrator's file; it is good in the node's network.
func (n *Node) Kubeconfig() string { return n.pki.path("admin.kubeconfig") }

// Kubectl runs kubectl as administrator and returns what it printed.
func (n *Node) Kubectl(ctx context.Context, args ...string) (string, error) {
	all := append([]string{"kubectl", "--kubeconfig", n.Kubeconfig()}, args...)
	cmd := n.Beside(ctx, filepath.Join(n.opts.Bin, "kube"), all...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// Config reaches the API server as administrator, from outside of the node's network.
func (n *Node) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", n.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("cannot reach the node: %w", err)
	}
	config.Dial = n.Dial
	config.QPS = -1
	return config, nil
}

func (n *Node) client() (*http.Client, error) {
	config, err := n.Config()
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
}

// ready asks the API server whether it is.
func ready(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, apiURL+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}

// Import loads images where the kubelet looks for them. They never exist as files.
func (n *Node) Import(ctx context.Context, images ...Image) error {
	return n.load(ctx, func(w io.Writer) error { return WriteArchive(w, images...) })
}

// load gives containerd an archive of images.
func (n *Node) load(ctx context.Context, write func(io.Writer) error, flags ...string) error {
	all := append([]string{"--namespace", "k8s.io", "images", "import"}, flags...)
	cmd := n.Enter(ctx, "ctr", append(all, "-")...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot import images: %w", err)
	}
	written := errors.Join(write(in), in.Close())
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("cannot import images: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return written
}

// childOf is the process that the given one started, 0 if there is none.
func childOf(parent int) int {
	for pid, ppid := range parents() {
		if ppid == parent {
			return pid
		}
	}
	return 0
}

// parents maps each process of the machine to its parent.
func parents() map[int]int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	all := make(map[int]int, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // of /proc
		if err != nil {
			continue
		}
		// The name in parentheses may hold anything, also a parenthesis.
		_, rest, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
		if fields := strings.Fields(rest); len(fields) > 1 {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			all[pid], _ = strconv.Atoi(fields[1])
		}
	}
	return all
}
