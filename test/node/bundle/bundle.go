package bundle

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/test/node"
)

// Tag is the tag of every image: any but "latest", so that nobody wants to pull it.
const Tag = "node"

// Part is a set of manifests that is applied at once.
type Part struct {
	// Name is what the part is called in messages.
	Name string
	// Objects are its manifests.
	Objects []*unstructured.Unstructured
}

// source is a file, a folder or a pattern below the folder of a Go module.
type source struct{ module, path string }

const (
	caching    = "knative.dev/caching"
	networking = "knative.dev/networking"
	serving    = "knative.dev/serving"
	eventing   = "knative.dev/eventing"
	imc        = "config/channels/in-memory-channel/"
	broker     = "config/brokers/mt-channel-broker/"
)

// parts are Knative's manifests in the order in which they are applied. ConfigMaps come
// before the webhooks that would check them.
var parts = []struct {
	name    string
	sources []source
}{
	{"Knative's definitions", []source{
		{caching, "config/image.yaml"},
		{networking, "config/ingress.yaml"},
		{networking, "config/serverlessservice.yaml"},
		{networking, "config/certificate.yaml"},
		{networking, "config/domain-claim.yaml"},
		{serving, "config/core/300-resources/*.yaml"},
		{eventing, "config/core/resources/*.yaml"},
		{eventing, imc + "resources/*.yaml"},
	}},
	{"Serving", []source{
		{serving, "config/core/100-namespace.yaml"},
		{serving, "config/core/200-*.yaml"},
		{serving, "config/core/200-roles/*.yaml"},
		{serving, "config/core/configmaps/*.yaml"},
		{networking, "config/config-network.yaml"},
		{serving, "config/core/webhooks/*.yaml"},
		{serving, "config/core/deployments/activator.yaml"},
		{serving, "config/core/deployments/autoscaler.yaml"},
		{serving, "config/core/deployments/controller.yaml"},
		{serving, "config/core/deployments/webhook.yaml"},
	}},
	{"Eventing", []source{
		{eventing, "config/core/100-namespace.yaml"},
		{eventing, "config/core/200-*.yaml"},
		{eventing, "config/core/roles/*.yaml"},
		{eventing, "config/core/configmaps/*.yaml"},
		// Their images never run, but the controller wants their names.
		{eventing, "third_party/eventing-integrations-latest/eventing-*-images.yaml"},
		{eventing, "config/core/webhooks/*.yaml"},
		{eventing, "config/core/deployments/controller.yaml"},
		{eventing, "config/core/deployments/webhook.yaml"},
		{eventing, "config/core/deployments/pingsource-mt-adapter.yaml"},
		{eventing, imc + "*.yaml"},
		{eventing, imc + "configmaps/*.yaml"},
		{eventing, imc + "roles/*.yaml"},
		{eventing, imc + "webhooks/*.yaml"},
		{eventing, imc + "deployments/*.yaml"},
		{eventing, broker + "roles/*.yaml"},
		{eventing, broker + "deployments/controller.yaml"},
		{eventing, broker + "deployments/broker-filter.yaml"},
		{eventing, broker + "deployments/broker-ingress.yaml"},
	}},
}

// Load reads everything: the cluster's DNS, then Knative's parts with the ingress. root
// is the root of the repository; what the module cache lacks is downloaded.
func Load(ctx context.Context, root string) ([]Part, error) {
	dirs := map[string]string{}
	for _, module := range []string{caching, networking, serving, eventing} {
		dir, err := moduleDir(ctx, root, module)
		if err != nil {
			return nil, err
		}
		dirs[module] = dir
	}
	dns, err := own("coredns.yaml")
	if err != nil {
		return nil, err
	}
	loaded := []Part{{Name: "CoreDNS", Objects: dns}}
	for _, part := range parts {
		var objects []*unstructured.Unstructured
		for _, from := range part.sources {
			read, err := readAll(dirs[from.module], from.path)
			if err != nil {
				return nil, err
			}
			objects = append(objects, read...)
		}
		loaded = append(loaded, Part{Name: part.name, Objects: objects})
	}
	ingress, err := own("ingress.yaml")
	if err != nil {
		return nil, err
	}
	loaded[2].Objects = append(loaded[2].Objects, ingress...)
	for _, part := range loaded {
		for _, obj := range part.Objects {
			if err := adapt(obj); err != nil {
				return nil, fmt.Errorf("cannot change %s %q: %w", obj.GetKind(), obj.GetName(), err)
			}
		}
	}
	return loaded, nil
}

func moduleDir(ctx context.Context, root, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module) //nolint:gosec // from the list above
	cmd.Dir = filepath.Join(root, "test/node/knative")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot find module %q: %w: %s", module, err, stderr.Bytes())
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("module %q is not in the module cache: build its programs first", module)
	}
	return dir, nil
}

// reference is how Knative's manifests name an image.
var reference = regexp.MustCompile(`ko://[A-Za-z0-9_./-]+`)

// readAll reads the files that a pattern names, in the order of their names.
func readAll(dir, pattern string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no %s in %s", pattern, dir)
	}
	slices.Sort(files)
	var objects []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		text = reference.ReplaceAllFunc(text, func(found []byte) []byte {
			return []byte(ImageName(strings.TrimPrefix(string(found), "ko://")))
		})
		read, err := kube.Decode(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", file, err)
		}
		objects = append(objects, read...)
	}
	return objects, nil
}

// ImageName is the name of the image of a main package. No registry is asked for what is
// in dev.local: Knative Serving knows that name.
func ImageName(program string) string { return "dev.local/" + program + ":" + Tag }

// Images are the images that the manifests of Load name, from the programs in bin.
func Images(bin string) []node.Image {
	images := []node.Image{
		{Name: ImageName("coredns"), Binary: filepath.Join(bin, "node-coredns")},
		{Name: ImageName("ingress"), Binary: filepath.Join(bin, "node-ingress")},
	}
	for _, program := range build.KnativePrograms {
		images = append(images, node.Image{Name: ImageName(program), Binary: filepath.Join(bin, build.KnativeTarget(program))})
	}
	return images
}
