// Package purity keeps decisions pure: what decides may not reach a client,
// the clock, the environment or chance. It also keeps the house in order: who
// may import whom, as the README's table says.
package purity

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/slipway-dev/slipway"

type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

// list runs go list over the whole module.
func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Imports,Deps", module+"/...")
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v\n%s", err, stderr.String())
	}
	packages := map[string]pkg{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// pure lists the packages that decide, or that decisions are written in.
func pure(packages map[string]pkg) []string {
	var paths []string
	for path := range packages {
		inFunction := strings.HasPrefix(path, module+"/functions/") && strings.HasSuffix(path, "/decide")
		inRuntime := slices.Contains([]string{"plan", "kind", "fault", "seal", "setting", "clip"}, strings.TrimPrefix(path, module+"/shared/"))
		if inFunction || inRuntime {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func TestDecisionsReachNoClient(t *testing.T) {
	packages := list(t)
	found := pure(packages)
	if len(found) < 5 {
		t.Fatalf("only %v are checked: the pattern no longer finds the decide packages", found)
	}
	for _, path := range found {
		for _, dep := range packages[path].Deps {
			for _, forbidden := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/cloudevents"} {
				if dep == forbidden || strings.HasPrefix(dep, forbidden+"/") {
					t.Errorf("%s reaches %s: a decision has no client", path, dep)
				}
			}
		}
	}
}

// forbiddenImports are what no package of ours on a decision's path may
// import itself. (API types reach net/http somewhere below, and never call it.)
var forbiddenImports = []string{"context", "net", "net/http", "os", "os/exec", "syscall", "math/rand", "math/rand/v2", "crypto/rand", "sync", "log", "log/slog"}

// forbiddenCalls are functions of package time that look at the clock.
var forbiddenCalls = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Sleep", "Tick"}

func TestDecisionsSeeNoClockNoEnvironmentAndNoChance(t *testing.T) {
	packages := list(t)
	checked := map[string]bool{}
	for _, path := range pure(packages) {
		for _, dep := range append(slices.Clone(packages[path].Deps), path) {
			if strings.HasPrefix(dep, module+"/") && !checked[dep] {
				checked[dep] = true
				inspect(t, packages[dep])
			}
		}
	}
}

func inspect(t *testing.T, p pkg) {
	t.Helper()
	for _, name := range p.Imports {
		if slices.Contains(forbiddenImports, name) {
			t.Errorf("%s imports %q", p.ImportPath, name)
		}
	}
	for _, name := range p.GoFiles {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := selector.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(forbiddenCalls, selector.Sel.Name) {
				t.Errorf("%s uses time.%s: the time is an argument", fset.Position(selector.Pos()), selector.Sel.Name)
			}
			return true
		})
	}
}

func TestEveryHouseImportsOnlyItsNeighbours(t *testing.T) {
	packages := list(t)
	for path, p := range packages {
		rest, ours := strings.CutPrefix(path, module+"/")
		if !ours {
			continue
		}
		for _, imported := range p.Imports {
			other, ours := strings.CutPrefix(imported, module+"/")
			if ours && !mayImport(rest, other) {
				t.Errorf("%s imports %s", rest, other)
			}
		}
	}
}

// mayImport is the table "The house" of the design.
func mayImport(from, to string) bool {
	house, _, _ := strings.Cut(from, "/")
	other, _, _ := strings.Cut(to, "/")
	switch house {
	case "api":
		return other == "api"
	case "shared":
		return other == "api" || other == "shared"
	case "functions":
		sameFunction := strings.Split(from, "/")[1] == strings.Split(to, "/")[1]
		return other == "api" || other == "shared" || (other == "functions" && sameFunction)
	case "cmd":
		return other != "test" && other != "deploy"
	}
	return true
}

// heavy must never be linked into a function: its process starts in
// milliseconds and rests in a few megabytes.
var heavy = []string{"sigs.k8s.io/controller-runtime/pkg/manager", "knative.dev/pkg", "knative.dev/eventing", "k8s.io/kubernetes", "cuelang.org/go", "k8s.io/apiextensions-apiserver/pkg/apiserver", "github.com/minio/minio-go"}

// mayLink is the one exception: workload-renderer evaluates templates, in child
// processes of its own binary.
func mayLink(main, forbidden string) bool {
	return main == module+"/functions/workload-renderer/cmd" && forbidden == "cuelang.org/go"
}

func TestFunctionsLinkNothingHeavy(t *testing.T) {
	packages := list(t)
	mains := 0
	for path, p := range packages {
		if !strings.HasPrefix(path, module+"/functions/") || !strings.HasSuffix(path, "/cmd") {
			continue
		}
		mains++
		for _, dep := range p.Deps {
			for _, forbidden := range heavy {
				if mayLink(path, forbidden) {
					continue
				}
				if dep == forbidden || strings.HasPrefix(dep, forbidden+"/") {
					t.Errorf("%s links %s", path, dep)
				}
			}
		}
	}
	if mains == 0 {
		t.Error("no function has a main package")
	}
}
