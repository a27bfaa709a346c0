package images

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheManifestsAreAnArtifactForFlux pushes what deploy/deploy would apply.
func TestTheManifestsAreAnArtifactForFlux(t *testing.T) {
	w := open(t, "artifact")
	file := filepath.Join(t.TempDir(), "slipway.yaml")
	render := exec.CommandContext(t.Context(), filepath.Join(w.root, "deploy/deploy"))
	render.Env = append(os.Environ(), "OVERLAY=durable", "IMAGES=registry.invalid/slipway", "TAG=v1.2.3", "OUT="+file, "KUBECTL="+w.program("kube")+" kubectl")
	if out, err := render.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	manifests, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(manifests, []byte("ko://")) {
		t.Error("the manifests name what only ko understands")
	}
	push := func() string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), w.program("artifact"), string(w.registry)+"/slipway/manifests:v1.2.3", file, "v1.2.3").CombinedOutput() //nolint:gosec // a program of this repository
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	first := push()
	if again := push(); again != first {
		t.Errorf("the same manifests are another artifact: %s and %s", first, again)
	}
	m := w.registry.index(t, "slipway/manifests", "v1.2.3")
	if m.Config == nil || m.Config.MediaType != "application/vnd.cncf.flux.config.v1+json" ||
		len(m.Layers) != 1 || m.Layers[0].MediaType != "application/vnd.cncf.flux.content.v1.tar+gzip" {
		t.Fatalf("Flux would not take it: %+v", m)
	}
	path, _ := w.registry.unpack(t, "slipway/manifests", m, "/slipway.yaml", t.TempDir())
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, manifests) {
		t.Errorf("what comes out is not what went in: %v", err)
	}
}
