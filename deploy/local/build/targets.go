package build

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Target is one program and how it is built.
type Target struct {
	// Name is the program's file name in the bin folder.
	Name string
	// Dir is the folder of the Go module it is built in, relative to the
	// repository's root; "." is the root module.
	Dir string
	// Package is the main package, as "go build" in Dir takes it.
	Package string
	// LDFlags are flags for the linker, beyond those that every target gets.
	LDFlags []string
	// Heavy says that linking takes so long that the program is kept as long as
	// no file of Dir changes. It holds only for a module that imports no other
	// module of this repository.
	Heavy bool
	// Hint tells a waiting person how long the first build takes, and why.
	Hint string
}

// kubernetesVersion is what the Kubernetes programs say they are. A test holds
// it to the version that deploy/local/kubernetes/go.mod pins.
const kubernetesVersion = "v1.36.3"

// known are the targets besides the functions.
var known = []Target{
	{
		Name:    "kube",
		Dir:     "deploy/local/kubernetes",
		Package: ".",
		LDFlags: versionFlags(kubernetesVersion),
		Heavy:   true,
		Hint:    "all of Kubernetes from source: 4 to 10 minutes the first time",
	},
	{
		Name:    "kwok",
		Dir:     "deploy/local/kubernetes",
		Package: "sigs.k8s.io/kwok/cmd/kwok",
		Heavy:   true,
		Hint:    "about a minute the first time",
	},
	{Name: "eventing", Dir: "deploy/local/eventing", Package: ".", Hint: "about a minute the first time"},
	{Name: "source-adapter", Dir: "sources/adapter", Package: "./cmd", Hint: "about a minute the first time"},
	// What tests of images and charts run besides.
	{
		Name: "func", Dir: "deploy/tools/images", Package: "knative.dev/func/cmd/func", Heavy: true,
		Hint: "kn func from source: 3 to 8 minutes the first time",
	},
	{Name: "registry", Dir: "deploy/tools/images", Package: "./registry", Heavy: true},
	{Name: "artifact", Dir: "deploy/tools/images", Package: "./artifact", Heavy: true},
	{Name: "chart", Dir: "deploy/tools/chart", Package: ".", Heavy: true, Hint: "Helm's engine: about a minute the first time"},
	{Name: "virt", Dir: ".", Package: "./test/virt"},
	{Name: "providers", Dir: ".", Package: "./test/providers"},
	{Name: "event-archive", Dir: ".", Package: "./cmd/event-archive"},
	{Name: "kubectl-slipway", Dir: ".", Package: "./cmd/kubectl-slipway"},
	{Name: "template-validator", Dir: ".", Package: "./cmd/template-validator"},
}

// versionFlags stamps the version into Kubernetes' programs. Unstamped they call
// themselves v0.0.0-master, which Knative takes for too old.
func versionFlags(version string) []string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return []string{
		"-X k8s.io/component-base/version.gitVersion=" + version,
		"-X k8s.io/component-base/version.gitMajor=" + major,
		"-X k8s.io/component-base/version.gitMinor=" + minor,
		"-X k8s.io/component-base/version.gitCommit=none",
		"-X k8s.io/component-base/version.gitTreeState=clean",
		"-X k8s.io/client-go/pkg/version.gitVersion=" + version,
		"-X k8s.io/client-go/pkg/version.gitMajor=" + major,
		"-X k8s.io/client-go/pkg/version.gitMinor=" + minor,
	}
}

// Targets returns every target of the repository at root, by name: the known
// ones and each function that has a command (functions/<name>/cmd).
func Targets(root string) (map[string]Target, error) {
	targets := make(map[string]Target, len(known)+len(cluster))
	for _, t := range slices.Concat(known, cluster) {
		targets[t.Name] = t
	}
	functions, err := Functions(root)
	if err != nil {
		return nil, err
	}
	for _, name := range functions {
		if _, taken := targets[name]; taken {
			return nil, fmt.Errorf("cannot build function %q: another program of the local stack has that name", name)
		}
		targets[name] = Target{Name: name, Dir: ".", Package: "./functions/" + name + "/cmd"}
	}
	return targets, nil
}

// Functions returns the names of the functions that have a command, sorted.
func Functions(root string) ([]string, error) {
	commands, err := filepath.Glob(filepath.Join(root, "functions", "*", "cmd"))
	if err != nil {
		return nil, fmt.Errorf("cannot look for functions below %q: %w", root, err)
	}
	var names []string
	for _, command := range commands {
		if mains, err := filepath.Glob(filepath.Join(command, "*.go")); err == nil && len(mains) > 0 {
			names = append(names, filepath.Base(filepath.Dir(command)))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Root returns the repository's root: the nearest folder at or above dir whose
// go.mod is that of the root module.
func Root(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the root of the repository from %q: %w", dir, err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && isRootModule(string(mod)) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("cannot find the root of the repository: no folder at or above %q has a go.mod of module %s", start, module)
		}
	}
}

// module is the path of the root module.
const module = "github.com/slipway-dev/slipway"

func isRootModule(mod string) bool {
	for line := range strings.Lines(mod) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "module" {
			return fields[1] == module
		}
	}
	return false
}

// pick returns the named targets in the order in which they were named.
func pick(root string, names []string) ([]Target, error) {
	all, err := Targets(root)
	if err != nil {
		return nil, err
	}
	picked := make([]Target, 0, len(names))
	for _, name := range names {
		t, ok := all[name]
		if !ok {
			return nil, fmt.Errorf("cannot build %q: there is no such program; there are %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
		picked = append(picked, t)
	}
	return picked, nil
}
