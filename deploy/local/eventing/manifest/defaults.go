package manifest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"knative.dev/eventing/pkg/apis/config"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	eventingv1alpha1 "knative.dev/eventing/pkg/apis/eventing/v1alpha1"
	"knative.dev/eventing/pkg/apis/feature"
	pingconfig "knative.dev/eventing/pkg/apis/sources/config"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/pkg/apis"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/eventing/fixture"
)

// admitted is an object that Knative's webhooks look at.
type admitted interface {
	runtime.Object
	metav1.Object
	apis.Defaultable
	apis.Validatable
}

var kinds = map[schema.GroupVersionKind]func() admitted{
	eventingv1.SchemeGroupVersion.WithKind("Broker"):            func() admitted { return &eventingv1.Broker{} },
	eventingv1.SchemeGroupVersion.WithKind("Trigger"):           func() admitted { return &eventingv1.Trigger{} },
	eventingv1alpha1.SchemeGroupVersion.WithKind("EventPolicy"): func() admitted { return &eventingv1alpha1.EventPolicy{} },
	sourcesv1.SchemeGroupVersion.WithKind("ApiServerSource"):    func() admitted { return &sourcesv1.ApiServerSource{} },
	sourcesv1.SchemeGroupVersion.WithKind("ContainerSource"):    func() admitted { return &sourcesv1.ContainerSource{} },
	sourcesv1.SchemeGroupVersion.WithKind("PingSource"):         func() admitted { return &sourcesv1.PingSource{} },
	sourcesv1.SchemeGroupVersion.WithKind("SinkBinding"):        func() admitted { return &sourcesv1.SinkBinding{} },
}

// Defaults reads a YAML stream and writes it with Knative's defaults filled in.
// It fails on the first object that Knative would refuse. Other objects are
// written as they are. Brokers' defaults come from the config maps of Knative's
// module in moduleDir.
func Defaults(in io.Reader, out io.Writer, moduleDir string) error {
	ctx, err := withConfig(context.Background(), moduleDir)
	if err != nil {
		return err
	}
	reader := yamlstream.NewYAMLReader(bufio.NewReader(in))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the manifests: %w", err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		document, err = admit(ctx, document)
		if err != nil {
			return err
		}
		if err := writeDocument(out, document); err != nil {
			return err
		}
	}
}

// withConfig puts the defaults of an installation into ctx.
func withConfig(ctx context.Context, moduleDir string) (context.Context, error) {
	configMaps, err := fixture.ConfigMaps(moduleDir)
	if err != nil {
		return nil, err
	}
	log := zap.NewNop().Sugar()
	brokers, pings, features := config.NewStore(log), pingconfig.NewStore(log), feature.NewStore(log)
	for _, configMap := range configMaps {
		switch configMap.Name {
		case config.DefaultsConfigName:
			brokers.OnConfigChanged(configMap)
		case pingconfig.PingDefaultsConfigName:
			pings.OnConfigChanged(configMap)
		case feature.FlagsConfigName:
			features.OnConfigChanged(configMap)
		}
	}
	return features.ToContext(pings.ToContext(brokers.ToContext(ctx))), nil
}

// admit does to one document what the webhooks would do.
func admit(ctx context.Context, document []byte) ([]byte, error) {
	var meta metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(document, &meta); err != nil {
		return nil, fmt.Errorf("cannot read a manifest: %w", err)
	}
	construct, ours := kinds[meta.GroupVersionKind()]
	if !ours {
		return document, nil
	}
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", title(&meta), err)
	}
	object := construct()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(object); err != nil {
		return nil, fmt.Errorf("cannot accept %s: %w", title(&meta), err)
	}
	patch, err := complete(apis.WithinCreate(ctx), object)
	if err != nil {
		return nil, fmt.Errorf("cannot accept %s: %w", title(&meta), err)
	}
	if string(patch) == "{}" {
		return document, nil
	}
	// Only the difference is applied, so that everything else stays as written.
	text, err = jsonpatch.MergePatch(text, patch)
	if err != nil {
		return nil, fmt.Errorf("cannot fill in the defaults of %s: %w", title(&meta), err)
	}
	return yaml.JSONToYAML(text)
}

// complete fills in the defaults, checks the result, and returns what it filled
// in as a merge patch.
func complete(ctx context.Context, object admitted) ([]byte, error) {
	before, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	object.SetDefaults(ctx)
	// A nil *FieldError must not become an error that is not nil.
	if problem := object.Validate(ctx); problem != nil && problem.Filter(apis.ErrorLevel) != nil {
		return nil, problem.Filter(apis.ErrorLevel)
	}
	after, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(before, after)
}

func title(meta *metav1.PartialObjectMetadata) string {
	name := meta.Name
	if meta.Namespace != "" {
		name = meta.Namespace + "/" + meta.Name
	}
	return fmt.Sprintf("%s %q", meta.Kind, name)
}
