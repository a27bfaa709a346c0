package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// inputs is a hash of everything in this repository that decides what the
// target's program is: every file of its module, the flags, and the version of Go
// and of the machine it compiles for. What lies outside of the repository is
// decided by the module's go.sum. Flags in GOFLAGS do not count: those in use are
// about how go works, not about what comes out.
func inputs(ctx context.Context, root string, t Target) (string, error) {
	dir := filepath.Join(root, filepath.FromSlash(t.Dir))
	version, err := goVersion(ctx, dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%q\n%q\n", version, t.Package, flags(t))
	// WalkDir goes in lexical order, so equal folders give equal hashes.
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".") && path != dir {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		return hashFile(sum, dir, path)
	})
	if err != nil {
		return "", fmt.Errorf("cannot read what %s is built from: %w", t.Name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func hashFile(w io.Writer, dir, path string) error {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%q %d\n", filepath.ToSlash(name), len(content))
	_, err = w.Write(content)
	return err
}

// goVersion names the Go that a build in dir uses, and what it compiles for.
func goVersion(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT")
	cmd.Dir = dir
	cmd.Env = environment()
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask go for its version in %q: %w", dir, err)
	}
	return string(out), nil
}

// stampFile is where the hash lies that the program was built from.
func stampFile(bin string, t Target) string { return filepath.Join(bin, "."+t.Name+".stamp") }

// upToDate tells whether the program is there and was built from what the hash
// stands for.
func upToDate(bin string, t Target, want string) bool {
	if _, err := os.Stat(filepath.Join(bin, t.Name)); err != nil {
		return false
	}
	have, err := os.ReadFile(stampFile(bin, t))
	return err == nil && strings.TrimSpace(string(have)) == want
}
