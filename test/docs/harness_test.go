package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/deploy/local/build"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// house is the repository with its programs.
type house struct {
	t    *testing.T
	root string
	// path has kubectl, with the plug-in slipway, before what the machine has.
	path string
	// scratch is a folder that programs may write to.
	scratch string
}

func open(t *testing.T) *house {
	t.Helper()
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := build.Binaries(t.Context(), build.Options{Root: root, Out: os.Stderr}, "kube", "kubectl-slipway"); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(root, filepath.FromSlash(build.DefaultBin))
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = slipway ]; then shift; exec %[1]s/kubectl-slipway \"$@\"; fi\nexec %[1]s/kube kubectl \"$@\"\n", bin)
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return &house{t: t, root: root, path: dir + ":" + os.Getenv("PATH"), scratch: t.TempDir()}
}

// run runs a shell line at the root of the repository.
func (h *house) run(line string, env ...string) (string, error) {
	h.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(h.t.Context()), "bash", "-c", "set -o pipefail\n"+line) //nolint:gosec // a line of a document
	cmd.Dir = h.root
	cmd.Env = append(append(os.Environ(), "PATH="+h.path, "GOFLAGS=-buildvcs=false"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", line, err, out)
	}
	return string(out), nil
}

// documents are the Markdown files that git knows or would take up, and their text.
func (h *house) documents() map[string]string {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "git", "-C", h.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md")
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatal(err)
	}
	texts := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(h.root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			h.t.Fatal(err)
		}
		texts[name] = string(text)
	}
	if len(texts) < 5 {
		h.t.Fatalf("only these documents are found: %v", texts)
	}
	return texts
}

var block = regexp.MustCompile("(?s)```(?:sh|shell)\n(.*?)```")

// commands are the lines of a document's shell blocks, without comments.
func commands(text string) []string {
	var lines []string
	for _, found := range block.FindAllStringSubmatch(text, -1) {
		joined := strings.ReplaceAll(found[1], "\\\n", " ")
		for line := range strings.Lines(joined) {
			line = strings.TrimSpace(line)
			if at := strings.Index(line, " # "); at >= 0 {
				line = strings.TrimSpace(line[:at])
			}
			if line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// split cuts a line at the pipes and other joints that stand outside of quotes and
// parentheses.
func split(line string) []string {
	var parts []string
	var part bytes.Buffer
	var quote rune
	depth := 0
	for _, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth == 0 && (r == '|' || r == ';' || r == '&'):
			if text := strings.TrimSpace(part.String()); text != "" {
				parts = append(parts, text)
			}
			part.Reset()
			continue
		}
		part.WriteRune(r)
	}
	if text := strings.TrimSpace(part.String()); text != "" {
		parts = append(parts, text)
	}
	return parts
}
