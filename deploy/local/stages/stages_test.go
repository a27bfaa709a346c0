package stages

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

func TestConfig(t *testing.T) {
	t.Run("StretchesEveryDelay", func(t *testing.T) {
		normal, slow := read(t, 1), read(t, 20)
		if len(normal) == 0 || len(normal) != len(slow) {
			t.Fatalf("want the same stages at every pace, got %d and %d", len(normal), len(slow))
		}
		for i := range normal {
			short, _, _ := unstructured.NestedFloat64(normal[i].Object, "spec", "delay", "durationMilliseconds")
			long, _, _ := unstructured.NestedFloat64(slow[i].Object, "spec", "delay", "durationMilliseconds")
			if short == 0 || long != 20*short {
				t.Errorf("stage %q: want %v ms at pace 20, got %v", normal[i].GetName(), 20*short, long)
			}
		}
	})
	t.Run("HasNoJitter", func(t *testing.T) {
		for _, stage := range read(t, 1) {
			for _, field := range []string{"jitterDurationMilliseconds", "jitterDurationFrom"} {
				if _, found, _ := unstructured.NestedFieldNoCopy(stage.Object, "spec", "delay", field); found {
					t.Errorf("stage %q has %s: tests need the same timing each time", stage.GetName(), field)
				}
			}
		}
	})
	t.Run("TouchesNoKindOfOurs", func(t *testing.T) {
		got := map[string]bool{}
		for _, stage := range read(t, 1) {
			group, _, _ := unstructured.NestedString(stage.Object, "spec", "resourceRef", "apiGroup")
			kind, _, _ := unstructured.NestedString(stage.Object, "spec", "resourceRef", "kind")
			got[group+" "+kind] = true
		}
		want := map[string]bool{
			"v1 PersistentVolumeClaim": true, "cdi.kubevirt.io/v1beta1 DataVolume": true, "cdi.kubevirt.io/v1beta1 DataSource": true,
			"gateway.networking.k8s.io/v1 Gateway": true,
			// Of these, functions own one condition at most.
			"kustomize.toolkit.fluxcd.io/v1 Kustomization": true, "helm.toolkit.fluxcd.io/v2 HelmRelease": true,
			"source.toolkit.fluxcd.io/v1 GitRepository": true, "source.toolkit.fluxcd.io/v1 HelmRepository": true,
			"source.toolkit.fluxcd.io/v1 OCIRepository": true, "source.toolkit.fluxcd.io/v1 Bucket": true,
			"source.toolkit.fluxcd.io/v1 HelmChart": true, "dockyards.io/v1alpha3 Worktree": true,
			"kubevirt.io/v1 VirtualMachineInstance": true, "kubevirt.io/v1 KubeVirt": true,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a status that functions answer for must come from them alone\n-want +got:\n%s", diff)
		}
	})
	t.Run("RefusesALatePatch", func(t *testing.T) {
		for _, stage := range read(t, 1) {
			steps, _, _ := unstructured.NestedSlice(stage.Object, "spec", "steps")
			for _, step := range steps {
				template, found, _ := unstructured.NestedString(step.(map[string]any), "patch", "template")
				if found && !strings.Contains(template, "resourceVersion: {{ .metadata.resourceVersion | Quote }}") {
					t.Errorf("stage %q patches without the resourceVersion that it saw", stage.GetName())
				}
			}
		}
	})
	t.Run("LeavesOutAGroupThatIsNotNamed", func(t *testing.T) {
		config, err := Config(1)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(config, []byte(GatewayAPI)) || bytes.Contains(config, []byte(Flux)) {
			t.Error("kwok does not start where a group of its stages is not served")
		}
	})
	t.Run("RefusesANegativePace", func(t *testing.T) {
		if _, err := Config(-1); err == nil {
			t.Error("want an error")
		}
	})
}

func TestObjects(t *testing.T) {
	all, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range all {
		got = append(got, object.GetKind()+" "+object.GetName())
	}
	want := []string{"StorageClass standard", "StorageClass fast-ssd", "Namespace kubevirt", "KubeVirt kubevirt"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func read(t *testing.T, pace float64) []*unstructured.Unstructured {
	t.Helper()
	config, err := Config(pace, GatewayAPI, Flux)
	if err != nil {
		t.Fatal(err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(config), 4096)
	var all []*unstructured.Unstructured
	for {
		stage := &unstructured.Unstructured{}
		err := decoder.Decode(&stage.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if stage.Object != nil {
			all = append(all, stage)
		}
	}
}
