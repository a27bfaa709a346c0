package stack

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// output runs a program to its end and returns what it printed.
func output(ctx context.Context, dir string, stdin []byte, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // programs of this repository and go itself
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot run %s %v: %w\n%s", filepath.Base(program), args, err, stderr.Bytes())
	}
	return out, nil
}

// split takes the objects of some kinds out of a list.
func split(objects []*unstructured.Unstructured, kinds ...string) (taken, rest []*unstructured.Unstructured) {
	for _, obj := range objects {
		if slices.Contains(kinds, obj.GetKind()) {
			taken = append(taken, obj)
		} else {
			rest = append(rest, obj)
		}
	}
	return taken, rest
}
