package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/build/flock"
)

// Options say where to build and whom to tell about it.
type Options struct {
	// Root is the repository's root (see [Root]).
	Root string
	// Bin is the folder of the programs; "" is .cache/bin below Root.
	Bin string
	// Out gets a line when a build starts, one now and then while it lasts, and
	// one when it is done; nil keeps quiet. Nothing is written for a program that
	// is up to date.
	Out io.Writer
	// Every is the time between two lines about a build that lasts; 0 is 15 s.
	Every time.Duration
}

// DefaultBin is the folder of the programs below the repository's root.
const DefaultBin = ".cache/bin"

// interrupted is how long a compiler that was told to stop may take to do so.
const interrupted = 10 * time.Second

func (o Options) withDefaults() Options {
	if o.Bin == "" {
		o.Bin = filepath.Join(o.Root, filepath.FromSlash(DefaultBin))
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Every <= 0 {
		o.Every = 15 * time.Second
	}
	return o
}

// Binaries builds the named programs, in that order, and returns when all of
// them are in the bin folder and up to date. It stops at the first that fails;
// the error names it and carries what the compiler said.
func Binaries(ctx context.Context, opts Options, names ...string) error {
	opts = opts.withDefaults()
	targets, err := pick(opts.Root, names)
	if err != nil {
		return err
	}
	// Nobody waits for another's build who needs nothing built.
	if targets, err = stale(ctx, opts, targets); err != nil || len(targets) == 0 {
		return err
	}
	if err := os.MkdirAll(opts.Bin, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the programs: %w", err)
	}
	waiting := func(err error) { fmt.Fprintf(opts.Out, "waiting for another build to end: %v\n", err) }
	lock, err := flock.Wait(ctx, waiting, filepath.Join(opts.Bin, ".lock"))
	if err != nil {
		return fmt.Errorf("cannot build: %w", err)
	}
	defer lock.Unlock()
	for _, t := range targets {
		if err := binary(ctx, opts, t); err != nil {
			return fmt.Errorf("cannot build %s: %w", t.Name, err)
		}
	}
	return nil
}

// stale returns the targets without those that are known to be up to date.
func stale(ctx context.Context, opts Options, targets []Target) ([]Target, error) {
	var left []Target
	for _, t := range targets {
		if t.Heavy {
			want, err := inputs(ctx, opts.Root, t)
			if err != nil {
				return nil, fmt.Errorf("cannot build %s: %w", t.Name, err)
			}
			if upToDate(opts.Bin, t, want) {
				continue
			}
		}
		left = append(left, t)
	}
	return left, nil
}

// binary brings one program up to date.
func binary(ctx context.Context, opts Options, t Target) error {
	path := filepath.Join(opts.Bin, t.Name)
	if !t.Heavy {
		return compile(ctx, opts, t, path)
	}
	// Computed anew: somebody else may have built it while this process waited.
	want, err := inputs(ctx, opts.Root, t)
	if err != nil {
		return err
	}
	if upToDate(opts.Bin, t, want) {
		return nil
	}
	if err := compile(ctx, opts, t, path); err != nil {
		return err
	}
	if err := os.WriteFile(stampFile(opts.Bin, t), []byte(want+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot note what it was built from: %w", err)
	}
	return nil
}

// compile runs the compiler and puts its result in place.
func compile(ctx context.Context, opts Options, t Target, path string) error {
	before, _ := os.Stat(path)
	// The compiler gets the present program under another name (a second link to
	// the same file): when go finds it up to date it leaves it alone, and the
	// link tells us so.
	next := filepath.Join(opts.Bin, "."+t.Name+".next")
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if before != nil {
		// Without a link, say on a file system that has none, go links anew.
		_ = os.Link(path, next)
	}
	defer func() { _ = os.Remove(next) }()

	done := progress(opts, t, before == nil)
	err := goBuild(ctx, opts.Root, t, next)
	if err != nil {
		done("failed")
		return err
	}
	after, err := os.Stat(next)
	if err != nil {
		return err
	}
	if before != nil && os.SameFile(before, after) {
		done("")
		return nil
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	done(fmt.Sprintf("done, %d MB", after.Size()>>20))
	return nil
}

// goBuild compiles and links the target into the file out.
func goBuild(ctx context.Context, root string, t Target, out string) error {
	cmd := exec.CommandContext(ctx, "go", append(flags(t), "-o", out, t.Package)...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(t.Dir))
	cmd.Env = environment()
	// An interrupt lets go clean up its work folder; a kill would leave it.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interrupted
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("there is no Go in PATH: %w", err)
	}
	if err != nil {
		return fmt.Errorf("go build %s in %s: %w\n%s", t.Package, t.Dir, err, complaints(output.String()))
	}
	return nil
}

// flags are the arguments of go that decide what comes out.
func flags(t Target) []string {
	// No version control stamp: it would make every commit a new program.
	return []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(append([]string{"-s", "-w"}, t.LDFlags...), " ")}
}

// environment is the process' own, but for what has to be the same everywhere.
func environment() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
}

// complaints is the compiler's output without its news about downloads.
func complaints(output string) string {
	var kept []string
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "go: downloading ") {
			kept = append(kept, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(kept, "\n")
}
