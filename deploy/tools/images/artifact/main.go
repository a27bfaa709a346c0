// Command artifact pushes manifests as an OCI artifact that Flux' source controller
// takes for an OCIRepository:
//
//	artifact REGISTRY/NAME:TAG MANIFESTS.yaml [REVISION]
//
// It logs in as docker does. The same manifests give the same artifact.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types by which Flux knows its artifacts.
const (
	configType  types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	contentType types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) < 2 {
		return fmt.Errorf("cannot push: name the artifact (REGISTRY/NAME:TAG) and the file with the manifests")
	}
	reference, err := name.ParseReference(args[0])
	if err != nil {
		return fmt.Errorf("cannot push to %q: %w", args[0], err)
	}
	manifests, err := os.ReadFile(args[1])
	if err != nil {
		return fmt.Errorf("cannot read the manifests: %w", err)
	}
	content, err := pack(manifests)
	if err != nil {
		return fmt.Errorf("cannot pack the manifests: %w", err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), configType)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(content, contentType), MediaType: contentType}); err != nil {
		return fmt.Errorf("cannot make the artifact: %w", err)
	}
	if len(args) > 2 {
		annotated, ok := mutate.Annotations(image, map[string]string{"org.opencontainers.image.revision": args[2]}).(v1.Image)
		if !ok {
			return fmt.Errorf("cannot note revision %q", args[2])
		}
		image = annotated
	}
	if err := remote.Write(reference, image, remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("cannot push to %q: %w", args[0], err)
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s@%s\n", reference.Context(), digest)
	return nil
}

// pack is an archive with the one file, the same whenever it is made.
func pack(manifests []byte) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	files := tar.NewWriter(zipped)
	if err := files.WriteHeader(&tar.Header{Name: "slipway.yaml", Mode: 0o644, Size: int64(len(manifests))}); err != nil {
		return nil, err
	}
	if _, err := files.Write(manifests); err != nil {
		return nil, err
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
