package node

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ImportLayout loads the image that lies in a folder as an OCI layout, which is how kn
// func's host builder leaves it, and returns the ID that a container of it reports. Of
// an image for several platforms this machine's is unpacked.
func (n *Node) ImportLayout(ctx context.Context, name, dir string) (string, error) {
	id, err := layoutID(dir)
	if err != nil {
		return "", fmt.Errorf("cannot import %q as image %q: %w", dir, name, err)
	}
	write := func(w io.Writer) error {
		archive := tar.NewWriter(w)
		return errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close())
	}
	return id, n.load(ctx, write, "--index-name", name)
}

// layoutID is the digest of the configuration of the layout's image for this machine.
func layoutID(dir string) (string, error) {
	var index struct {
		Manifests []struct {
			Digest   string
			Platform struct{ Architecture, OS string }
		}
	}
	if err := readJSON(filepath.Join(dir, "index.json"), &index); err != nil {
		return "", err
	}
	for _, one := range index.Manifests {
		if one.Platform.OS != "linux" || one.Platform.Architecture != runtime.GOARCH {
			continue
		}
		var manifest struct{ Config struct{ Digest string } }
		err := readJSON(filepath.Join(dir, "blobs", strings.Replace(one.Digest, ":", "/", 1)), &manifest)
		return manifest.Config.Digest, err
	}
	return "", fmt.Errorf("it has no image for linux/%s", runtime.GOARCH)
}

func readJSON(file string, into any) error {
	raw, err := os.ReadFile(file) //nolint:gosec // of a folder that the caller names
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
