package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// environment are the settings before a command.
var environment = regexp.MustCompile(`^((?:[A-Z][A-Z0-9_]*=(?:'[^']*'|"[^"]*"|\S*)\s+)*)(.*)$`)

// path is an argument that names a place of the repository.
var path = regexp.MustCompile(`(?:^|[ =])(?:\./)?((?:deploy|docs|functions|sources|cmd|test|shared|api)/[\w./-]+)`)

// elsewhere are programs that this repository neither has nor builds.
var elsewhere = []string{"git", "helm", "jq", "export", "ls", "tail", ".cache/bin/artifact"}

// TestEveryCommandOfTheDocumentsIsOne asks each program whether it knows what stands on
// its line, without doing it.
func TestEveryCommandOfTheDocumentsIsOne(t *testing.T) {
	h := open(t)
	seen := map[string]bool{}
	var wait sync.WaitGroup
	slots := make(chan struct{}, 4)
	for name, text := range h.documents() {
		for _, line := range commands(text) {
			for _, command := range split(line) {
				if seen[command] {
					continue
				}
				seen[command] = true
				slots <- struct{}{}
				wait.Go(func() {
					defer func() { <-slots }()
					if problem := h.check(command); problem != "" {
						t.Errorf("%s: %s\n%s", name, command, problem)
					}
				})
			}
		}
	}
	wait.Wait()
	if len(seen) < 40 {
		t.Errorf("only %d commands are found", len(seen))
	}
}

// check tells what is wrong with a command; empty if nothing is.
func (h *house) check(command string) string {
	for _, found := range path.FindAllStringSubmatch(command, -1) {
		if _, err := os.Stat(filepath.Join(h.root, found[1])); err != nil {
			return "there is no " + found[1]
		}
	}
	parts := environment.FindStringSubmatch(command)
	settings, rest := parts[1], parts[2]
	for _, word := range strings.Fields(settings + " " + rest) {
		if overlay, ok := strings.CutPrefix(word, "OVERLAY="); ok {
			if _, err := os.Stat(filepath.Join(h.root, "deploy/overlays", overlay)); err != nil {
				return "there is no overlay " + overlay
			}
		}
	}
	program, arguments, _ := strings.Cut(rest, " ")
	ask := ""
	switch {
	case rest == "" || slices.Contains(elsewhere, program):
		return ""
	case program == "make":
		ask = "make -n " + arguments
	case program == "kubectl", program == ".cache/bin/kubectl-slipway":
		ask = rest + " --help"
	case program == ".cache/bin/kube":
		ask = rest + " --help"
	case program == "go" && strings.HasPrefix(arguments, "run ./cmd/kubectl-slipway "):
		ask = "kubectl slipway " + strings.TrimPrefix(arguments, "run ./cmd/kubectl-slipway ") + " --help"
	case program == "go" && (strings.HasPrefix(arguments, "run ./") || strings.HasPrefix(arguments, "build ")):
		return "" // its folder is there
	case program == "kn" && strings.HasPrefix(arguments, "func "):
		bin := filepath.Join(h.root, ".cache/bin/func")
		if _, err := os.Stat(bin); err != nil {
			return "" // built by make func-test
		}
		// It notes things in the folder that it is called in, even when it is only asked.
		ask = "cd '" + h.scratch + "' && " + bin + " " + strings.TrimPrefix(arguments, "func ") + " --help"
	case strings.Contains(program, "/"):
		if info, err := os.Stat(filepath.Join(h.root, program)); err != nil || info.Mode()&0o111 == 0 {
			return "it is no program"
		}
		return ""
	default:
		return "nobody knows the program " + program
	}
	if settings != "" {
		ask = "export " + strings.TrimSpace(settings) + "; " + ask
	}
	if _, err := h.run(ask); err != nil {
		return err.Error()
	}
	return ""
}

// TestManifestsAreWrittenAsTheDocumentsSay runs what needs no cluster.
func TestManifestsAreWrittenAsTheDocumentsSay(t *testing.T) {
	h := open(t)
	out := filepath.Join(t.TempDir(), "slipway.yaml")
	for _, line := range commands(h.documents()["docs/install.md"]) {
		if !strings.Contains(line, "OUT=") {
			continue
		}
		if _, err := h.run(regexp.MustCompile(`OUT=\S+`).ReplaceAllString(line, "OUT="+out), "KUBECTL="+strings.Split(h.path, ":")[0]+"/kubectl"); err != nil {
			t.Fatal(err)
		}
		manifests, err := os.ReadFile(out)
		if err != nil || !strings.Contains(string(manifests), "ghcr.io/you/github.com/slipway-dev/slipway/functions/machine-vm/cmd:v1.2.3") || strings.Contains(string(manifests), "ko://") {
			t.Errorf("the manifests are not those of the images: %v", err)
		}
		return
	}
	t.Error("docs/install.md does not say how manifests are written")
}
