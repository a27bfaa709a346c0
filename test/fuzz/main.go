// Command fuzz runs every fuzz target of the repository, one after the other, and ends
// with a table. With -keep, inputs that it found interesting go to the target's
// testdata/fuzz, where every `go test` runs them.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Which inputs are kept, per target: few and small ones, since every test run plays
// them.
const (
	keptPerTarget = 24
	keptSize      = 4 << 10
)

// modules are those with fuzz targets.
var modules = []string{".", "sources/adapter"}

// target is one fuzz function.
type target struct{ module, folder, name string }

// result is what came of one.
type result struct {
	target
	took       time.Duration
	executions string
	kept       int
	failed     bool
}

func main() {
	each := flag.Duration("time", 30*time.Second, "how long each target runs")
	only := flag.String("only", "", "a regular expression: the targets to run")
	keep := flag.Bool("keep", false, "keep interesting inputs in testdata/fuzz")
	flag.Parse()
	if err := run(*each, *only, *keep); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(each time.Duration, only string, keep bool) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("cannot use -only %q: %w", only, err)
	}
	targets, err := find()
	if err != nil {
		return err
	}
	var results []result
	failed := 0
	for _, t := range targets {
		if !wanted.MatchString(t.folder + " " + t.name) {
			continue
		}
		fmt.Printf("== %s %s\n", t.folder, t.name)
		r := t.run(each)
		if keep && !r.failed {
			if r.kept, err = t.keep(); err != nil {
				return err
			}
		}
		if r.failed {
			failed++
		}
		results = append(results, r)
	}
	table(results)
	if failed > 0 {
		return fmt.Errorf("%d of %d targets failed: the inputs lie in their testdata/fuzz", failed, len(results))
	}
	return nil
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// find goes through the modules' tests.
func find() ([]target, error) {
	var targets []target
	for _, module := range modules {
		err := filepath.WalkDir(module, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && path != module && (strings.HasPrefix(entry.Name(), ".") || another(path)) {
				return fs.SkipDir
			}
			if !strings.HasSuffix(path, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
			if err != nil {
				return err
			}
			for _, match := range declaration.FindAllSubmatch(text, -1) {
				targets = append(targets, target{module: module, folder: filepath.Dir(path), name: string(match[1])})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot look for fuzz targets: %w", err)
		}
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.folder+a.name, b.folder+b.name) })
	return targets, nil
}

// another tells whether a folder is the root of a module of its own.
func another(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

var executed = regexp.MustCompile(`execs: (\d+)`)

// run fuzzes one target.
func (t target) run(each time.Duration) result {
	within, err := filepath.Rel(t.module, t.folder)
	if err != nil {
		within = t.folder
	}
	began := time.Now()
	var out bytes.Buffer
	cmd := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(), "./"+within) //nolint:gosec // targets are the repository's own
	cmd.Dir = t.module
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &out), io.MultiWriter(os.Stderr, &out)
	err = cmd.Run()
	r := result{target: t, took: time.Since(began), executions: "0", failed: err != nil}
	if all := executed.FindAllStringSubmatch(out.String(), -1); len(all) > 0 {
		r.executions = all[len(all)-1][1]
	}
	return r
}

// keep copies what the toolchain found interesting to the target's testdata.
func (t target) keep() (int, error) {
	cache, err := output(t.module, "go", "env", "GOCACHE")
	if err != nil {
		return 0, err
	}
	within, err := filepath.Rel(t.module, t.folder)
	if err != nil {
		return 0, err
	}
	name, err := output(t.module, "go", "list", "./"+within)
	if err != nil {
		return 0, err
	}
	to := filepath.Join(t.folder, "testdata", "fuzz", t.name)
	here, err := os.ReadDir(to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	found, err := os.ReadDir(filepath.Join(cache, "fuzz", name, t.name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	kept := 0
	for _, entry := range found {
		if len(here)+kept >= keptPerTarget {
			break
		}
		text, err := os.ReadFile(filepath.Join(cache, "fuzz", name, t.name, entry.Name())) //nolint:gosec // the toolchain's cache
		if err != nil {
			return kept, err
		}
		if len(text) > keptSize {
			continue
		}
		if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // for everybody to read
			return kept, err
		}
		if err := os.WriteFile(filepath.Join(to, entry.Name()), text, 0o644); err != nil { //nolint:gosec // for everybody to read
			return kept, err
		}
		kept++
	}
	return kept, nil
}

func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...) //nolint:gosec // the go command
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot run %s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func table(results []result) {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nPACKAGE\tTARGET\tSECONDS\tEXECUTIONS\tKEPT\tRESULT")
	for _, r := range results {
		verdict := "ok"
		if r.failed {
			verdict = "FAILED"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%.0f\t%s\t%d\t%s\n", r.folder, r.name, r.took.Seconds(), r.executions, r.kept, verdict)
	}
	_ = w.Flush()
}
