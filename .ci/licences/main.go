// Command licences looks at the licence of everything that the shipped binaries link,
// package by package: the text that lies nearest to a package counts, as it does for a
// folder with code of somebody else inside of a module. Each has to be one of those
// that are allowed here, and has to say nothing else. The exit status is 1 if one is not.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences under which a dependency may be linked: those that ask for
// nothing but that their text is kept, and MPL-2.0, which asks for changes of its own
// files only, and there are none.
var allowed = []string{"Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD", "Unlicense", "CC0-1.0", "MPL-2.0", "Zlib"}

// names are how files with licences begin, in upper case, in the order in which they
// count.
var names = []string{"LICENSE", "LICENCE", "COPYING", "UNLICENSE"}

// enough is how much of a text has to be known, in percent.
const enough = 75

// shipped are the commands whose images and binaries are given away, by module.
var shipped = map[string][]string{
	".":               {".", "./cmd/...", "./functions/..."},
	"sources/adapter": {"./..."},
}

// dependency is what `go list` says of a package.
type dependency struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct {
		Path, Version, Dir string
		Main               bool
	}
}

func main() {
	root := "../.."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := check(root, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(root string, out io.Writer) error {
	found := map[string]verdict{}
	counts := map[string]int{}
	modules := map[string]bool{}
	var problems []string
	for _, module := range slices.Sorted(maps.Keys(shipped)) {
		packages, err := list(filepath.Join(root, filepath.FromSlash(module)), shipped[module])
		if err != nil {
			return err
		}
		for _, p := range packages {
			if p.Standard || p.Module == nil || p.Module.Main {
				continue
			}
			modules[p.Module.Path+"@"+p.Module.Version] = true
			file := nearest(p.Dir, p.Module.Dir)
			if file == "" {
				problems = append(problems, p.ImportPath+": there is no licence")
				continue
			}
			v, known := found[file]
			if !known {
				if v, err = classify(file); err != nil {
					return err
				}
				found[file] = v
				for _, id := range v.ids {
					counts[id]++
				}
			}
			if v.problem != "" {
				problems = append(problems, fmt.Sprintf("%s: %s %s", p.ImportPath, file, v.problem))
			}
		}
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return errors.New(strings.Join(slices.Compact(problems), "\n"))
	}
	var told []string
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		told = append(told, fmt.Sprintf("%s %d", id, counts[id]))
	}
	_, err := fmt.Fprintf(out, "%d modules, %d licence texts: %s\n", len(modules), len(found), strings.Join(told, ", "))
	return err
}

// list are the packages that commands link on Linux, which images are made for.
func list(dir string, commands []string) ([]dependency, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,Standard,Module"}, commands...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the dependencies of %s: %w", dir, err)
	}
	var packages []dependency
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	for {
		var p dependency
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("cannot read what go list says of %s: %w", dir, err)
		}
		packages = append(packages, p)
	}
}

// nearest is the licence that counts for a folder of a module; empty for none.
func nearest(dir, module string) string {
	for {
		entries, _ := os.ReadDir(dir) // what cannot be read has no licence
		for _, name := range names {
			for _, entry := range entries {
				if entry.Type().IsRegular() && strings.HasPrefix(strings.ToUpper(entry.Name()), name) {
					return filepath.Join(dir, entry.Name())
				}
			}
		}
		if dir == module || len(dir) <= len(module) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// verdict is what a text says.
type verdict struct {
	ids     []string
	problem string
}

func classify(file string) (verdict, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return verdict{}, fmt.Errorf("cannot read a licence: %w", err)
	}
	coverage := licensecheck.Scan(text)
	var v verdict
	for _, match := range coverage.Match {
		if match.IsURL || slices.Contains(v.ids, match.ID) {
			continue
		}
		v.ids = append(v.ids, match.ID)
		if !slices.Contains(allowed, match.ID) {
			v.problem = "is under " + match.ID + ", which is not allowed: allowed are " + strings.Join(allowed, ", ")
		}
	}
	if v.problem == "" && (len(v.ids) == 0 || coverage.Percent < enough) {
		v.problem = fmt.Sprintf("is no text of a licence that is known: %.0f %% of it are, as %v", coverage.Percent, v.ids)
	}
	return v, nil
}
