package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

// TestKoBuildsForTwoPlatformsWithABillOfMaterials builds one image as deploy/deploy
// builds all of them.
func TestKoBuildsForTwoPlatformsWithABillOfMaterials(t *testing.T) {
	w := open(t)
	ko := w.program("ko")
	if _, err := os.Stat(ko); err != nil {
		t.Fatalf("ko is not there, run .ci/tools images: %v", err)
	}
	w.registry.base(t, "base")
	built := func() string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), ko, "build", "--preserve-import-paths", "./functions/"+one+"/cmd")
		cmd.Dir = w.root
		cmd.Env = append(os.Environ(), "KO_DOCKER_REPO="+string(w.registry)+"/ko", "KO_DEFAULTBASEIMAGE="+string(w.registry)+"/base:latest",
			"KO_CONFIG_PATH="+filepath.Join(w.root, ".ko.yaml"), "GOFLAGS=-buildvcs=false")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("ko build: %v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	reference := built()
	repository := "ko/github.com/slipway-dev/slipway/functions/" + one + "/cmd"
	name, digest, ok := strings.Cut(reference, "@")
	if !ok || name != string(w.registry)+"/"+repository {
		t.Fatalf("ko names the image %q", reference)
	}
	index := w.registry.index(t, repository, digest)
	if got := len(index.Manifests); got != 2 {
		t.Errorf("it is there for %d platforms, want 2", got)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		image, about := w.registry.image(t, repository, index, architecture)
		if about.Config.User != "65532" {
			t.Errorf("linux/%s runs as %q, not as a user with a number", architecture, about.Config.User)
		}
		if architecture != runtime.GOARCH {
			continue
		}
		program, _ := w.registry.unpack(t, repository, image, about.Config.Entrypoint[0], t.TempDir())
		p := start(t, program, w.kubeconfig())
		p.must(204, resync(one))
		// The own main program answers what Knative's middleware would not.
		if got, _ := p.ask("POST", "/", map[string][]string{"Content-Type": {"text/plain"}}, "no event"); got != 400 {
			t.Errorf("what is no event is answered %d", got)
		}
	}
	bill := w.registry.get(t, repository+"/manifests/"+strings.Replace(digest, ":", "-", 1)+".sbom")
	layers := decode[manifest](t, bill).Layers
	if len(layers) != 1 || !strings.Contains(layers[0].MediaType, "spdx") {
		t.Errorf("there is no bill of materials: %s", bill)
	}
	if again := built(); again != reference {
		t.Errorf("two builds differ: %s and %s", reference, again)
	}
}

// TestDeployBuildsEveryImageItInstalls runs deploy/deploy as make deploy does, but for
// the last step: the manifests that it would apply go into a file.
func TestDeployBuildsEveryImageItInstalls(t *testing.T) {
	w := open(t, "kube")
	if !*every {
		t.Skip("every image is built when asked for: make func-all")
	}
	w.registry.base(t, "base")
	file := filepath.Join(t.TempDir(), "slipway.yaml")
	cmd := exec.CommandContext(t.Context(), filepath.Join(w.root, "deploy/deploy"))
	cmd.Env = append(os.Environ(), "OVERLAY=validated", "REGISTRY="+string(w.registry)+"/deploy", "OUT="+file,
		"KO_DEFAULTBASEIMAGE="+string(w.registry)+"/base:latest", "KUBECTL="+w.program("kube")+" kubectl", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	manifests, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	images := 0
	for line := range strings.Lines(string(manifests)) {
		_, image, ok := strings.Cut(strings.TrimSpace(line), "image: ")
		if !ok {
			continue
		}
		images++
		name, found := strings.CutPrefix(image, string(w.registry)+"/")
		repository, digest, by := strings.Cut(name, "@")
		if !found || !by {
			t.Errorf("an image is not named by its digest: %s", image)
			continue
		}
		if got := len(w.registry.index(t, repository, digest).Manifests); got != 2 {
			t.Errorf("%s is there for %d platforms, want 2", repository, got)
		}
	}
	// Every function, the archive, the adapter and the webhook.
	names, err := build.Functions(w.root)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(names) + 3; images != want {
		t.Errorf("%d images are installed, want %d", images, want)
	}
}
