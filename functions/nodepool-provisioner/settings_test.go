package nodepoolprovisioner

import (
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

func parse(pairs ...string) (Settings, error) {
	env := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return ParseSettings(func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
}

func TestDefaultsAreUpstreams(t *testing.T) {
	s, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	if s.ConfigMapNamespace != "dockyards-system" || s.ConfigMapName != "dockyards-system" || s.StorageClass != "rook-ceph-block" ||
		s.Multus || !s.BlockStorage || len(s.NodeSubnets) > 0 || s.TalosVersion != "v1.12" || s.AccessMode != "ReadWriteMany" || s.MaxConcurrentReconciles != 5 {
		t.Errorf("the defaults are %+v", s)
	}
}

func TestAValueThatCannotBeUsedIsNamed(t *testing.T) {
	for name, value := range map[string]string{
		"MAX_CONCURRENT_RECONCILES": "0", "VALID_NODE_IP_SUBNETS": "10.0.0.0", "TALOS_VERSION": "1.12", "ENABLE_MULTUS": "perhaps",
	} {
		if _, err := parse(name, value); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%q gives %v", name, value, err)
		}
	}
}

func TestAnEmptyStorageClassLeavesTheClustersDefault(t *testing.T) {
	if s, err := parse("DATA_VOLUME_STORAGE_CLASS_NAME", ""); err != nil || s.StorageClass != "" {
		t.Errorf("%q %v", s.StorageClass, err)
	}
}

func TestEverySettingIsDocumented(t *testing.T) {
	spec := DefaultSpec()
	if len(spec.Env) != len(used)+1 {
		t.Errorf("%d settings are documented, %d are used", len(spec.Env), len(used)+1)
	}
	for _, v := range spec.Env {
		if v.Help == "" {
			t.Errorf("setting %s has no help", v.Name)
		}
	}
}

// TestOptionalGroupsComeThroughTheAdapter: a source for a group that is absent would
// crash again and again.
func TestOptionalGroupsComeThroughTheAdapter(t *testing.T) {
	for _, watch := range DefaultSpec().Watches {
		own := watch.Resource.Group == dockyards.NodePools.Group
		if watch.Adapter == own {
			t.Errorf("%s comes through the adapter: %v", watch.Resource, watch.Adapter)
		}
		if watch.Resource.String() == kind.ConfigMaps.String() && (watch.Namespace == "" || !slices.Equal(watch.Names, []string{"dockyards-system"})) {
			t.Errorf("config maps are watched in namespace %q, names %v", watch.Namespace, watch.Names)
		}
	}
}
