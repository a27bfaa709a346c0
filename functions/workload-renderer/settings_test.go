package workloadrenderer

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/workload-renderer/decide"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render"
)

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func TestSettingsOfAnEmptyEnvironmentAreTheDefaults(t *testing.T) {
	got, err := ParseSettings(environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{Settings: decide.DefaultSettings(), ConfigMapNamespace: "dockyards-system", ConfigMapName: "dockyards-system", Workers: 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASettingThatCannotBeUsedSaysWhatCould(t *testing.T) {
	for name, value := range map[string]string{
		"RENDERER_PUBLIC_NAMESPACES": "a,B!", "RENDERER_ALLOWED_KINDS": "Pod", "RENDERER_ALLOW_LOCAL_APPLY": "maybe",
		"RENDERER_MAX_SOURCE": "-1", "RENDERER_MAX_OBJECTS": "65", "RENDERER_CPU": "0s", "RENDERER_WALL": "25s",
		"RENDERER_MEMORY": "64Mi", "RENDERER_MAX_PRUNE": "0", "RENDERER_WORKERS": "1", "RENDERER_KUBECONFIG_CONFIG_MAPS": "A!",
	} {
		_, err := ParseSettings(environment(map[string]string{name: value}))
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "allowed is") {
			t.Errorf("%s=%s: the error is %v", name, value, err)
		}
	}
}

func TestRightsAndWatchesFollowTheAllowedKinds(t *testing.T) {
	settings, err := ParseSettings(environment(map[string]string{
		"RENDERER_ALLOWED_KINDS": "Kustomization.kustomize.toolkit.fluxcd.io, Role.rbac.authorization.k8s.io",
	}))
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec(settings)
	var granted, watched []string
	for _, grant := range spec.Grants {
		granted = append(granted, grant.Resource.String())
	}
	for _, watch := range spec.Watches {
		watched = append(watched, watch.Resource.String())
	}
	for _, list := range []string{strings.Join(granted, " "), strings.Join(watched, " ")} {
		if strings.Contains(list, kind.Secrets.String()) || !strings.Contains(list, "roles.rbac.authorization.k8s.io") {
			t.Errorf("of Role allowed and Secret not, there is %s", list)
		}
	}
}

func TestTheHashNamesTheVersionOfCUEThatIsLinked(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	linked := regexp.MustCompile(`(?m)^\tcuelang\.org/go (v\S+)`).FindSubmatch(mod)
	if linked == nil {
		t.Fatal("go.mod requires no CUE")
	}
	if !strings.HasSuffix(render.Version, "/"+string(linked[1])) {
		t.Errorf("render.Version is %s, and %s is linked", render.Version, linked[1])
	}
}
