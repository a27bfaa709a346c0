package manifest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

const knative = "knative.dev/eventing"

// ModuleDir is the folder of Go's module cache with the version of Knative
// Eventing that this program was built from.
func ModuleDir() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", fmt.Errorf("cannot find the module %s: this program was built without module information", knative)
	}
	version := ""
	for _, module := range info.Deps {
		if module.Path == knative {
			version = module.Version
		}
	}
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		out, err := exec.Command("go", "env", "GOMODCACHE").Output()
		if err != nil {
			return "", fmt.Errorf("cannot find Go's module cache: %w", err)
		}
		cache = strings.TrimSpace(string(out))
	}
	dir := filepath.Join(cache, filepath.FromSlash(knative)+"@"+version)
	if _, err := os.Stat(dir); err != nil { //nolint:gosec // the module cache is where its owner says
		return "", fmt.Errorf("cannot find the module %s %s: %w", knative, version, err)
	}
	return dir, nil
}
