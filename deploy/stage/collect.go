package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// platforms are those that kn func's host builder compiles for.
var platforms = [][]string{
	{"GOOS=linux", "GOARCH=amd64"},
	{"GOOS=linux", "GOARCH=arm64"},
	{"GOOS=linux", "GOARCH=arm", "GOARM=7"},
}

// listed is what go list tells about a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	IgnoredGoFiles  []string
	EmbedFiles      []string
	// What kn func cannot take along.
	CgoFiles, SFiles []string
	Module           *struct {
		Path string
		Main bool
	}
}

// collect reads the files of this module that the package is made of, by their paths
// below the root with forward slashes, and tells the module's path.
func collect(ctx context.Context, root, pattern string) (files map[string][]byte, module string, err error) {
	files = map[string][]byte{}
	for _, platform := range platforms {
		packages, err := list(ctx, root, pattern, platform)
		if err != nil {
			return nil, "", err
		}
		for _, p := range packages {
			if p.Module == nil || !p.Module.Main {
				continue
			}
			module = p.Module.Path
			if err := gather(files, root, p); err != nil {
				return nil, "", err
			}
		}
	}
	if module == "" {
		return nil, "", fmt.Errorf("no package of the repository's module belongs to %s", pattern)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		if files[name], err = os.ReadFile(filepath.Join(root, name)); err != nil {
			return nil, "", err
		}
	}
	return files, module, nil
}

// list asks go for a package and all that it imports, on one platform.
func list(ctx context.Context, root, pattern string, platform []string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps",
		"-json=ImportPath,Dir,GoFiles,IgnoredGoFiles,EmbedFiles,CgoFiles,SFiles,Module", pattern)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), append([]string{"GOWORK=off", "CGO_ENABLED=0"}, platform...)...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the packages of %s: %w\n%s", pattern, err, complaints.Bytes())
	}
	var packages []listed
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read what go list says of %s: %w", pattern, err)
		}
		packages = append(packages, p)
	}
}

// gather adds the files of a package.
func gather(files map[string][]byte, root string, p listed) error {
	if len(p.CgoFiles)+len(p.SFiles) > 0 {
		return fmt.Errorf("package %s has files that are not Go: kn func cannot build it", p.ImportPath)
	}
	dir, err := filepath.Rel(root, p.Dir)
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles, p.EmbedFiles) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		path := filepath.ToSlash(filepath.Join(dir, name))
		if _, there := files[path]; there {
			continue
		}
		content, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		files[path] = content
	}
	return nil
}
