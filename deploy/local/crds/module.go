package crds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// download brings the modules, each given as path@version, into the module cache
// and returns the folder of each. The go command checks every module against the
// checksum database before it unpacks it.
func download(ctx context.Context, modules []string) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"mod", "download", "-json"}, modules...)...)
	// Outside of any module, so that neither a go.mod nor a go.sum is read or
	// written, and no -mod=vendor of the caller is in the way.
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GO111MODULE=on")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// The go command reports a module that it could not get both by its exit code
	// and in the JSON, where the reason stands.
	runErr := cmd.Run()
	dirs, err := readDownloads(&stdout)
	if err != nil {
		return nil, err
	}
	if runErr != nil {
		return nil, fmt.Errorf("cannot download modules %s: %w: %s", strings.Join(modules, " "), runErr, strings.TrimSpace(stderr.String()))
	}
	return dirs, nil
}

// readDownloads reads what "go mod download -json" prints: one object per module.
func readDownloads(r io.Reader) (map[string]string, error) {
	dirs := map[string]string{}
	decoder := json.NewDecoder(r)
	for {
		var module struct{ Path, Version, Dir, Error string }
		err := decoder.Decode(&module)
		if errors.Is(err, io.EOF) {
			return dirs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the output of go mod download: %w", err)
		}
		key := module.Path + "@" + module.Version
		if module.Error != "" {
			return nil, fmt.Errorf("cannot download module %q: %s", key, module.Error)
		}
		dirs[key] = module.Dir
	}
}
