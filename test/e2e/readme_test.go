package e2e

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

// commands are the lines of the README's shell blocks.
func commands(t *testing.T, root string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(text, -1) {
		scanner := bufio.NewScanner(bytes.NewReader(block[1]))
		for scanner.Scan() {
			if line := strings.TrimSpace(scanner.Text()); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// TestEveryCommandOfTheREADMEWorks runs them in their order, against the stack
// that the first of them brings up. `make test` alone is not run, since it is
// what runs this: that its target exists is all that is checked.
func TestEveryCommandOfTheREADMEWorks(t *testing.T) {
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	lines := commands(t, root)
	if len(lines) < 6 || lines[0] != "make run" || lines[1] != "make test" {
		t.Fatalf("the README no longer opens with its two commands: %q", lines)
	}
	data := t.TempDir()
	out := &transcript{}
	run := exec.CommandContext(t.Context(), "make", "run", "RECORD=1", "DATA="+data)
	run.Dir, run.Stdout, run.Stderr = root, out, out
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The whole group gets the signal, as on Ctrl-C at a terminal.
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) }
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	await(t, out, ended, "Ctrl-C stops everything.")
	await(t, out, ended, "default/basic-vm done (Running)")
	await(t, out, ended, "default/cloud-init-vm done (Running)")
	broker := regexp.MustCompile(`SLIPWAY_BROKER=(\S+)`).FindStringSubmatch(out.String())

	script := []string{"set -e", "export SLIPWAY_BROKER=" + broker[1]}
	for _, line := range lines[2:] {
		script = append(script, strings.ReplaceAll(line, ".local/default", data))
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", strings.Join(script, "\n"))
	shell.Dir = root
	if said, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	} else if !bytes.Contains(said, []byte("resync of machine-vm asked for")) || !bytes.Contains(said, []byte("virtualmachine.kubevirt.io/vm-basic-vm")) {
		t.Errorf("the commands did not show what the README says:\n%s", said)
	} else if !bytes.Contains(said, []byte("byte for byte")) || !bytes.Contains(said, []byte("Who owns which field")) {
		t.Errorf("the commands on recordings did not show what the README says:\n%s", said)
	}
	dry := exec.CommandContext(t.Context(), "make", "-n", "test")
	dry.Dir = root
	if said, err := dry.CombinedOutput(); err != nil || !bytes.Contains(said, []byte("go test -race -shuffle=on")) {
		t.Errorf("make test is not what it says: %v\n%s", err, said)
	}

	if err := syscall.Kill(-run.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Logf("make run ended: %v", err)
	case <-time.After(patience):
		t.Fatal("Ctrl-C did not end it")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, broker[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Errorf("the broker still answers %s after Ctrl-C", resp.Status)
	}
}

// await waits until the output holds a text, or the program ends.
func await(t *testing.T, out *transcript, ended <-chan error, text string) {
	t.Helper()
	tick, deadline := time.NewTicker(50*time.Millisecond), time.NewTimer(4*patience)
	defer tick.Stop()
	defer deadline.Stop()
	for !strings.Contains(out.String(), text) {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("it ended (%v) before it said %q:\n%s", err, text, out)
		case <-deadline.C:
			t.Fatalf("it never said %q:\n%s", text, out)
		}
	}
}

// TestMakeHelpNamesEveryTarget keeps the help complete.
func TestMakeHelpNamesEveryTarget(t *testing.T) {
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "help")
	cmd.Dir = root
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, target := range []string{"run", "test", "check", "generate", "build", "bench", "help"} {
		if !slices.Contains(strings.Fields(string(said)), target) {
			t.Errorf("make help does not name %q:\n%s", target, said)
		}
	}
}
