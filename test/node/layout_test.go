package node

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestTheImageOfALayoutIsThatOfThisMachine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("blobs/sha256/b", `{"config": {"digest": "sha256:c"}}`)
	write("index.json", `{"manifests": [
		{"digest": "sha256:a", "platform": {"os": "linux", "architecture": "another"}},
		{"digest": "sha256:b", "platform": {"os": "linux", "architecture": "`+runtime.GOARCH+`"}}]}`)
	if id, err := layoutID(dir); err != nil || id != "sha256:c" {
		t.Errorf("it is %q, %v", id, err)
	}
	write("index.json", `{"manifests": []}`)
	if _, err := layoutID(dir); err == nil || !strings.Contains(err.Error(), "linux/"+runtime.GOARCH) {
		t.Errorf("where it has none for this machine: %v", err)
	}
}
