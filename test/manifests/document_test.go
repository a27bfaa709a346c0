package manifests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

// TestTheGuideNamesWhatThereIs: each overlay, component, path and make target of
// docs/install.md exists, and each overlay is told of.
func TestTheGuideNamesWhatThereIs(t *testing.T) {
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "docs/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	guide := string(raw)
	overlays, err := filepath.Glob(filepath.Join(root, "deploy/overlays/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, overlay := range overlays {
		if !strings.Contains(guide, "| `"+filepath.Base(overlay)+"` |") {
			t.Errorf("the guide does not tell of overlay %s", filepath.Base(overlay))
		}
	}
	for _, match := range regexp.MustCompile(`OVERLAY=([a-z-]+)`).FindAllStringSubmatch(guide, -1) {
		if _, err := os.Stat(filepath.Join(root, "deploy/overlays", match[1])); err != nil { //nolint:gosec // the repository's own guide
			t.Errorf("the guide names overlay %s: %v", match[1], err)
		}
	}
	for _, match := range regexp.MustCompile("(?:^|[ `])((?:deploy|sources|functions|test|api)/[a-z/.-]*[a-z])[` ]").FindAllStringSubmatch(guide, -1) {
		if _, err := os.Stat(filepath.Join(root, match[1])); err != nil { //nolint:gosec // the repository's own guide
			t.Errorf("the guide names %s: %v", match[1], err)
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(guide, -1) {
		target := match[1]
		for _, prefix := range []string{"deploy-", "logs-"} {
			if strings.HasPrefix(target, prefix) {
				target = prefix + "%"
			}
		}
		if !strings.Contains("\n"+string(makefile), "\n"+target+":") {
			t.Errorf("the guide names make %s, which is no target", match[1])
		}
	}
}
