package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// registry is where images are pushed to: its address.
type registry string

// startRegistry runs the registry of deploy/tools/images until the test ends.
func startRegistry(t *testing.T, program string) registry {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the registry does not say where it listens: %v", err)
	}
	return registry(strings.TrimSpace(address))
}

// Media types of what a registry keeps.
const (
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	ociConfig   = "application/vnd.oci.image.config.v1+json"
	ociLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	dockerIndex = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerOne   = "application/vnd.docker.distribution.manifest.v2+json"
)

type descriptor struct {
	MediaType string    `json:"mediaType"`
	Digest    string    `json:"digest"`
	Size      int       `json:"size"`
	Platform  *platform `json:"platform,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        *descriptor  `json:"config,omitempty"`
	Layers        []descriptor `json:"layers,omitempty"`
	Manifests     []descriptor `json:"manifests,omitempty"`
}

type config struct {
	platform
	Config struct {
		User       string
		Env        []string
		Cmd        []string
		Entrypoint []string
		StopSignal string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// get reads from the registry. A digest in the path is checked.
func (r registry) get(t *testing.T, path string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+string(r)+"/v2/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", strings.Join([]string{ociIndex, ociManifest, dockerIndex, dockerOne}, ","))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v: %s", path, resp.Status, err, body)
	}
	if _, digest, ok := strings.Cut(path, "@sha256:"); ok || strings.Contains(path, "/sha256:") {
		if !ok {
			_, digest, _ = strings.Cut(path, "/sha256:")
		}
		if got := sha256.Sum256(body); hex.EncodeToString(got[:]) != digest {
			t.Fatalf("%s is not what its digest says", path)
		}
	}
	return body
}

func decode[T any](t *testing.T, raw []byte) T {
	t.Helper()
	var value T
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// index is an image for several platforms.
func (r registry) index(t *testing.T, repository, reference string) manifest {
	t.Helper()
	return decode[manifest](t, r.get(t, repository+"/manifests/"+reference))
}

// image is the image of an index for this machine's platform, with its configuration.
func (r registry) image(t *testing.T, repository string, of manifest, architecture string) (manifest, config) {
	t.Helper()
	for _, one := range of.Manifests {
		if one.Platform != nil && one.Platform.OS == "linux" && one.Platform.Architecture == architecture {
			m := decode[manifest](t, r.get(t, repository+"/manifests/"+one.Digest))
			return m, decode[config](t, r.get(t, repository+"/blobs/"+m.Config.Digest))
		}
	}
	t.Fatalf("%s has no image for linux/%s: %+v", repository, architecture, of.Manifests)
	return manifest{}, config{}
}

// unpack writes the file at path, out of the image's layers, into a folder, and tells
// the names of all files in the layers.
func (r registry) unpack(t *testing.T, repository string, m manifest, path, dir string) (program string, names []string) {
	t.Helper()
	for _, layer := range m.Layers {
		raw := r.get(t, repository+"/blobs/"+layer.Digest)
		unzipped, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		files := tar.NewReader(unzipped)
		for {
			header, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(filepath.ToSlash(filepath.Clean(header.Name)), "/")
			names = append(names, name)
			if "/"+name != path || header.Typeflag != tar.TypeReg {
				continue
			}
			program = filepath.Join(dir, "program")
			content, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(program, content, 0o755); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
	}
	if program == "" {
		t.Fatalf("the layers of %s have no %s, but %v", repository, path, names)
	}
	slices.Sort(names)
	return program, names
}

// push writes a blob or a manifest.
func (r registry) push(t *testing.T, method, path, mediaType string, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+string(r)+"/v2/"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
}

// base pushes what stands for the base image: nothing but a user with a number, for
// two platforms. The real one cannot be had without the Internet.
func (r registry) base(t *testing.T, name string) {
	t.Helper()
	var layer, unzipped bytes.Buffer
	files := tar.NewWriter(&unzipped)
	if err := files.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}); err != nil {
		t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	zipped := gzip.NewWriter(&layer)
	if _, err := zipped.Write(unzipped.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	blob := func(mediaType string, content []byte) descriptor {
		t.Helper()
		d := descriptor{MediaType: mediaType, Digest: digest(content), Size: len(content)}
		r.push(t, http.MethodPost, name+"/blobs/uploads/?digest="+d.Digest, "application/octet-stream", content)
		return d
	}
	index := manifest{SchemaVersion: 2, MediaType: ociIndex}
	for _, architecture := range []string{"amd64", "arm64"} {
		about := config{platform: platform{Architecture: architecture, OS: "linux"}}
		about.Config.User = "65532"
		about.RootFS.Type, about.RootFS.DiffIDs = "layers", []string{digest(unzipped.Bytes())}
		settings := blob(ociConfig, encode(t, about))
		one := encode(t, manifest{SchemaVersion: 2, MediaType: ociManifest, Config: &settings, Layers: []descriptor{blob(ociLayer, layer.Bytes())}})
		r.push(t, http.MethodPut, name+"/manifests/"+digest(one), ociManifest, one)
		index.Manifests = append(index.Manifests, descriptor{MediaType: ociManifest, Digest: digest(one), Size: len(one), Platform: &about.platform})
	}
	r.push(t, http.MethodPut, name+"/manifests/latest", ociIndex, encode(t, index))
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func encode(t *testing.T, value any) []byte {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
