package stages

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// objects is the one file that holds no stages.
const objects = "objects.yaml"

// optional are the files for API groups that not every cluster serves.
var optional = map[string]string{"gateway.yaml": GatewayAPI, "flux.yaml": Flux}

// GatewayAPI is the API group of Gateways; Flux stands for all groups of Flux, and that
// of Worktrees.
const (
	GatewayAPI = "gateway.networking.k8s.io"
	Flux       = "toolkit.fluxcd.io"
)

// noNode is the node that kwok is told to manage.
const noNode = "no-node-of-kwok"

// delays are the fields of a stage that say how long it waits.
var delays = []string{"durationMilliseconds", "jitterDurationMilliseconds"}

// Config returns kwok's configuration: the stages for KubeVirt, CDI and the further
// API groups, with each delay multiplied by pace. A pace of 1 is for tests and every
// day, 20 is slow enough to watch.
func Config(pace float64, groups ...string) ([]byte, error) {
	if pace < 0 {
		return nil, fmt.Errorf("cannot use pace %v: it has to be 0 or more", pace)
	}
	names, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var config bytes.Buffer
	for _, name := range names {
		group, extra := optional[name.Name()]
		if name.Name() == objects || (extra && !slices.Contains(groups, group)) {
			continue
		}
		stages, err := decode(name.Name())
		if err != nil {
			return nil, err
		}
		for _, stage := range stages {
			if err := stretch(stage, pace); err != nil {
				return nil, err
			}
			text, err := yaml.Marshal(stage.Object)
			if err != nil {
				return nil, fmt.Errorf("cannot write stage %q: %w", stage.GetName(), err)
			}
			config.WriteString("---\n")
			config.Write(text)
		}
	}
	return config.Bytes(), nil
}

// Objects returns what a platform brings along besides definitions, in the order in
// which it has to be created: storage classes, the namespace of KubeVirt and the
// KubeVirt object.
func Objects() ([]*unstructured.Unstructured, error) {
	return decode(objects)
}

// Command prepares kwok: it writes the configuration below dir and returns the
// command, which plays the stages for the API server of the kubeconfig. That API
// server has to serve the kinds of KubeVirt, CDI and the further groups already.
//
// kwok gets no port, no node and no pod to manage; the configuration in a user's home
// stays out of it. Since it refuses to run without nodes of its own it gets the name of
// one that does not exist.
func Command(ctx context.Context, binary, kubeconfig, dir string, pace float64, groups ...string) (*exec.Cmd, error) {
	config, err := Config(pace, groups...)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make folder %q for kwok: %w", dir, err)
	}
	// The name of the file that kwok looks for by itself in its work directory, so
	// that it is read once.
	file := filepath.Join(dir, "kwok.yaml")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return nil, fmt.Errorf("cannot write kwok's configuration: %w", err)
	}
	cmd := exec.CommandContext(ctx, binary, "--kubeconfig", kubeconfig, "--config", file, "--manage-single-node", noNode)
	cmd.Env = append(os.Environ(), "KWOK_WORKDIR="+dir)
	return cmd, nil
}

// decode reads the documents of one file.
func decode(file string) ([]*unstructured.Unstructured, error) {
	content, err := files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var documents []*unstructured.Unstructured
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", file, err)
		}
		fields := map[string]any{}
		if err := utilyaml.Unmarshal(document, &fields); err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", file, err)
		}
		if len(fields) > 0 {
			documents = append(documents, &unstructured.Unstructured{Object: fields})
		}
	}
}

// stretch multiplies the delays of a stage.
func stretch(stage *unstructured.Unstructured, pace float64) error {
	for _, field := range delays {
		wait, found, err := unstructured.NestedInt64(stage.Object, "spec", "delay", field)
		if err != nil {
			return fmt.Errorf("cannot read stage %q: %w", stage.GetName(), err)
		}
		if !found {
			continue
		}
		if err := unstructured.SetNestedField(stage.Object, int64(float64(wait)*pace), "spec", "delay", field); err != nil {
			return fmt.Errorf("cannot change stage %q: %w", stage.GetName(), err)
		}
	}
	return nil
}
