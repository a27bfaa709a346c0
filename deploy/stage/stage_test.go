package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

// tree is every file below a folder, by path, with its content and when it was
// changed.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content := []byte("folder")
		if !info.IsDir() {
			if content, err = os.ReadFile(path); err != nil { //nolint:gosec // a folder of the test
				return err
			}
		}
		out[filepath.ToSlash(name)] = info.ModTime().Format(time.RFC3339Nano) + "\n" + string(content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func age(t *testing.T, dir string) {
	t.Helper()
	long := time.Now().Add(-time.Hour)
	for name := range tree(t, dir) {
		if err := os.Chtimes(filepath.Join(dir, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestEveryFunctionIsStagedWholeAndAlone(t *testing.T) {
	out := t.TempDir()
	var said bytes.Buffer
	if err := run(t.Context(), []string{"-all", "-out", out}, &said); err != nil {
		t.Fatal(err)
	}
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	names, err := build.Functions(root)
	if err != nil {
		t.Fatal(err)
	}
	names = append(names, wholeSet)
	if got := len(strings.Split(strings.TrimSpace(said.String()), "\n")); got != len(names) {
		t.Errorf("%d folders are named for %d functions:\n%s", got, len(names), &said)
	}
	for _, name := range names {
		files := tree(t, filepath.Join(out, name))
		for _, want := range []string{"func.yaml", "function.go", "go.mod", "go.sum", ".gitignore"} {
			if files[want] == "" {
				t.Errorf("%s has no %s", name, want)
			}
		}
		for file := range files {
			other := strings.HasPrefix(file, "functions/") && strings.Count(file, "/") == 1 && file != "functions/"+name
			if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata") || strings.HasSuffix(file, "/cmd") ||
				other && name != wholeSet || strings.HasPrefix(file, "test") || strings.HasPrefix(file, "deploy") {
				t.Errorf("%s has %s", name, file)
			}
		}
	}
	// go finds all it needs in the folder: with the whole set nothing can be missing
	// in one of its parts that is not missing there.
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Dir, list.Env = filepath.Join(out, wholeSet), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if text, err := list.CombinedOutput(); err != nil {
		t.Errorf("the staged set is not complete: %v\n%s", err, text)
	}
}

func TestStagingAgainChangesNothing(t *testing.T) {
	out := t.TempDir()
	again := func() map[string]string {
		t.Helper()
		if err := run(t.Context(), []string{"-out", out, "node-capacity"}, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		return tree(t, out)
	}
	again()
	age(t, out)
	before := tree(t, out)
	if diff := cmp.Diff(before, again()); diff != "" {
		t.Errorf("kn func tells what is up to date by modification times:\n%s", diff)
	}
}

func TestWhatKnFuncWroteIsKept(t *testing.T) {
	target := t.TempDir()
	stage := func(source string, files map[string][]byte) {
		t.Helper()
		if err := place(target, files); err != nil {
			t.Fatal(err)
		}
		if err := configure(target, []byte(source)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(target, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	stage("name: a\n", map[string][]byte{"shared/a.go": []byte("package a"), "b.go": []byte("package b")})
	put(t, filepath.Join(target, "func.yaml"), "name: a\ndeploy: {namespace: there}\n")
	put(t, filepath.Join(target, ".func", "built", "stamp"), "yes")

	stage("name: a\n", map[string][]byte{"b.go": []byte("package b")})
	if got := read("func.yaml"); !strings.Contains(got, "there") {
		t.Errorf("where it was deployed to is lost: %s", got)
	}
	if got := read(".func/built/stamp"); got != "yes" {
		t.Errorf("kn func's own folder was touched: %s", got)
	}
	var left []string
	for name := range tree(t, target) {
		left = append(left, name)
	}
	slices.Sort(left)
	want := []string{".", ".func", ".func/built", ".func/built/stamp", ".func/func.yaml.src", "b.go", "func.yaml"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("what is no longer wanted goes, its folder too (-want +got):\n%s", diff)
	}

	stage("name: a\ndeploy: {}\n", map[string][]byte{"b.go": []byte("package b")})
	if got := read("func.yaml"); got != "name: a\ndeploy: {}\n" {
		t.Errorf("a changed source is not taken over: %s", got)
	}
	if err := os.Remove(filepath.Join(target, "func.yaml")); err != nil {
		t.Fatal(err)
	}
	stage("name: a\ndeploy: {}\n", nil)
	if got := read("func.yaml"); got != "name: a\ndeploy: {}\n" {
		t.Errorf("a missing configuration is not written anew: %s", got)
	}
}

func TestAWrongNameIsAnsweredWithTheRightOnes(t *testing.T) {
	for _, args := range [][]string{nil, {"machine"}} {
		err := run(t.Context(), args, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "machine-vm") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
