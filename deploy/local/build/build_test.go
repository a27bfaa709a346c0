package build_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

const hello = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Print(%q) }\n"

// repository makes one with a function and the module of the kube binary, small
// ones.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, "go.mod", "module github.com/slipway-dev/slipway\n\ngo 1.26.0\n")
	write(t, root, "functions/greeter/cmd/main.go", fmt.Sprintf(hello, "hello"))
	write(t, root, "functions/unfinished/doc.go", "package unfinished\n")
	write(t, root, "deploy/local/kubernetes/go.mod", "module github.com/slipway-dev/slipway/deploy/local/kubernetes\n\ngo 1.26.0\n")
	write(t, root, "deploy/local/kubernetes/main.go", fmt.Sprintf(hello, "kube"))
	return root
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func says(t *testing.T, root, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, build.DefaultBin, name)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func info(t *testing.T, root, name string) os.FileInfo {
	t.Helper()
	i, err := os.Stat(filepath.Join(root, build.DefaultBin, name))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestChangedProgramsAreBuiltAndOthersLeftAlone(t *testing.T) {
	root := repository(t)
	rebuild := func(names ...string) string {
		t.Helper()
		var out bytes.Buffer
		// No build of these takes so long that it would be said to last.
		if err := build.Binaries(t.Context(), build.Options{Root: root, Out: &out, Every: time.Hour}, names...); err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`[0-9.]+m?s\b|[0-9]+ MB`).ReplaceAllString(out.String(), "N")
	}
	want := "building kube (all of Kubernetes from source: 4 to 10 minutes the first time)\n  kube: done, N after N\n" +
		"building greeter\n  greeter: done, N after N\n"
	if diff := cmp.Diff(want, rebuild("kube", "greeter")); diff != "" {
		t.Errorf("what is said about the first build (-want +got):\n%s", diff)
	}
	if got := says(t, root, "kube") + says(t, root, "greeter"); got != "kubehello" {
		t.Errorf("the programs say %q", got)
	}
	kube, greeter := info(t, root, "kube"), info(t, root, "greeter")

	rebuild("greeter", "kube")
	if !os.SameFile(kube, info(t, root, "kube")) || !os.SameFile(greeter, info(t, root, "greeter")) {
		t.Error("a program was replaced though nothing had changed")
	}

	write(t, root, "functions/greeter/cmd/main.go", fmt.Sprintf(hello, "good day"))
	write(t, root, "deploy/local/kubernetes/main.go", fmt.Sprintf(hello, "new kube"))
	rebuild("greeter", "kube")
	if got := says(t, root, "kube") + says(t, root, "greeter"); got != "new kubegood day" {
		t.Errorf("after a change the programs say %q", got)
	}

	if err := os.Remove(filepath.Join(root, build.DefaultBin, "kube")); err != nil {
		t.Fatal(err)
	}
	rebuild("kube")
	if got := says(t, root, "kube"); got != "new kube" {
		t.Errorf("after it was removed the program says %q", got)
	}
	entries, err := os.ReadDir(filepath.Join(root, build.DefaultBin))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".next") {
			t.Errorf("%s is left behind", entry.Name())
		}
	}
}

func TestBuildsOfOneFolderDoNotMeet(t *testing.T) {
	root := repository(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := build.Binaries(t.Context(), build.Options{Root: root}, "greeter"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := says(t, root, "greeter"); got != "hello" {
		t.Errorf("the program says %q", got)
	}
}

func TestErrorsNameTheTargetAndSayWhatTheCompilerSays(t *testing.T) {
	root := repository(t)
	write(t, root, "functions/greeter/cmd/main.go", "package main\n\nfunc main() { undefinedName() }\n")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		reason, target string
		ctx            context.Context
		want           []string
	}{
		"a program that does not compile": {
			reason: "the compiler knows what is wrong", target: "greeter", ctx: t.Context(),
			want: []string{"cannot build greeter", "functions/greeter/cmd/main.go:3:15: undefined: undefinedName"},
		},
		"a name that is none": {
			reason: "a typing error is seen at once among the names", target: "greter", ctx: t.Context(),
			want: []string{`cannot build "greter"`, ", greeter, ", ", kube, "},
		},
		"a function without a command": {
			reason: "there is nothing to build", target: "unfinished", ctx: t.Context(),
			want: []string{`cannot build "unfinished"`},
		},
		"a caller that has gone": {
			reason: "nobody waits for the result", target: "kube", ctx: canceled,
			want: []string{"context canceled"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := build.Binaries(tc.ctx, build.Options{Root: root}, tc.target)
			if err == nil {
				t.Fatalf("%s: there is no error", tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q does not contain %q", tc.reason, err, want)
				}
			}
			if _, err := os.Stat(filepath.Join(root, build.DefaultBin, tc.target)); err == nil {
				t.Errorf("%s: there is a program all the same", tc.reason)
			}
		})
	}
}

func TestRootIsThatOfTheRootModule(t *testing.T) {
	root := repository(t)
	got, err := build.Root(filepath.Join(root, "deploy", "local", "kubernetes"))
	if err != nil || got != root {
		t.Errorf("from a nested module the root is %q, %v, want %q", got, err, root)
	}
	if _, err := build.Root(t.TempDir()); err == nil {
		t.Error("a folder outside of the repository has a root")
	}
}

func TestStampedVersionIsThePinnedOne(t *testing.T) {
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "deploy", "local", "kubernetes", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	targets, err := build.Targets(root)
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`k8s\.io/kubernetes (v\S+)`).FindSubmatch(mod)
	if pinned == nil {
		t.Fatal("deploy/local/kubernetes/go.mod requires no k8s.io/kubernetes")
	}
	want := "-X k8s.io/component-base/version.gitVersion=" + string(pinned[1])
	if flags := strings.Join(targets["kube"].LDFlags, "\n"); !strings.Contains(flags, want) {
		t.Errorf("the linker's flags for kube lack %q:\n%s", want, flags)
	}
}
