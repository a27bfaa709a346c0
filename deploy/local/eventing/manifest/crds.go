package manifest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/eventing/crds"
)

// definitions are the files of Knative's module with the definitions that the
// reconcilers of this stack watch.
var definitions = []string{
	"config/core/resources/apiserversource.yaml",
	"config/core/resources/broker.yaml",
	"config/core/resources/eventpolicy.yaml",
	"config/core/resources/pingsource.yaml",
	"config/core/resources/subscription.yaml",
	"config/core/resources/trigger.yaml",
	"config/channels/in-memory-channel/resources/in-memory-channel.yaml",
}

// Definitions writes the CustomResourceDefinitions of this stack as one YAML
// stream. Those of Knative are read from its module in moduleDir.
func Definitions(out io.Writer, moduleDir string) error {
	for _, name := range definitions {
		path := filepath.Join(moduleDir, filepath.FromSlash(name))
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read a CustomResourceDefinition: %w: --module-dir must be a folder of the module knative.dev/eventing", err)
		}
		text, err = withoutWebhook(text)
		if err != nil {
			return fmt.Errorf("cannot read the CustomResourceDefinition in %q: %w", path, err)
		}
		if err := writeDocument(out, text); err != nil {
			return err
		}
	}
	return writeDocument(out, crds.Services)
}

// withoutWebhook takes the conversion by a webhook out of a definition: nobody
// would answer it, and the API server could not even list the objects.
func withoutWebhook(text []byte) ([]byte, error) {
	var definition map[string]any
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	strategy, _, err := unstructured.NestedString(definition, "spec", "conversion", "strategy")
	if err != nil {
		return nil, err
	}
	if strategy != "Webhook" {
		return text, nil
	}
	unstructured.RemoveNestedField(definition, "spec", "conversion")
	return yaml.Marshal(definition)
}

func writeDocument(out io.Writer, text []byte) error {
	text = append([]byte("---\n"), text...)
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("cannot write a document: %w", err)
	}
	return nil
}
