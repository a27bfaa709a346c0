package dockyards

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestTheDefaultsAreUpstreams(t *testing.T) {
	want := Settings{
		ConfigMapNamespace: "dockyards-system", ConfigMapName: "dockyards-system", StorageClass: "rook-ceph-block",
		AccessMode: corev1.ReadWriteMany, BlockStorage: true, ImageSize: resource.MustParse("8Gi"), WorkloadIngress: true, TalosVersion: "v1.12",
	}
	if diff := cmp.Diff(want, DefaultSettings()); diff != "" {
		t.Errorf("section 5 (-want +got):\n%s", diff)
	}
}

// TestEachVariableIsUpstreamsFlag: whoever takes over carries the flags over by name.
func TestEachVariableIsUpstreamsFlag(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Variables() {
		if v.Flag != "" && strings.ToUpper(strings.ReplaceAll(v.Flag, "-", "_")) != v.Name {
			t.Errorf("flag %s is variable %s", v.Flag, v.Name)
		}
		if v.Help == "" || v.Allowed == "" || seen[v.Name] {
			t.Errorf("variable %s is not documented, or twice", v.Name)
		}
		seen[v.Name] = true
	}
	for _, flag := range []string{
		"gateway-name", "gateway-namespace", "config-map", "dockyards-namespace", "data-volume-storage-class-name", "enable-multus",
		"use-block-storage", "valid-node-ip-subnets", "workload-ingress",
	} {
		if !seen[strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))] {
			t.Errorf("flag %s has no variable", flag)
		}
	}
}

func TestParseSettings(t *testing.T) {
	for name, c := range map[string]struct {
		reason, variable, value string
		// want is whether the settings are as wanted; nil for a value that is refused.
		want func(Settings) bool
	}{
		"gateway":             {"a name", "GATEWAY_NAME", "public", func(s Settings) bool { return s.GatewayName == "public" }},
		"gateway's namespace": {"a name", "GATEWAY_NAMESPACE", "gw", func(s Settings) bool { return s.GatewayNamespace == "gw" }},
		"config map":          {"a name", "CONFIG_MAP", "x", func(s Settings) bool { return s.ConfigMapName == "x" }},
		"empty config map":    {"an empty value is none", "CONFIG_MAP", "", func(s Settings) bool { return s.ConfigMapName == "dockyards-system" }},
		"namespace":           {"a name", "DOCKYARDS_NAMESPACE", "x", func(s Settings) bool { return s.ConfigMapNamespace == "x" }},
		"no name":             {"capitals are in no name", "GATEWAY_NAME", "Public", nil},
		"storage class":       {"a name", "DATA_VOLUME_STORAGE_CLASS_NAME", "fast", func(s Settings) bool { return s.StorageClass == "fast" }},
		"cluster's class":     {"an empty one is the cluster's default", "DATA_VOLUME_STORAGE_CLASS_NAME", "", func(s Settings) bool { return s.StorageClass == "" }},
		"no class":            {"it is no name", "DATA_VOLUME_STORAGE_CLASS_NAME", "a b", nil},
		"access mode":         {"one of Kubernetes'", "DATA_VOLUME_ACCESS_MODE", "ReadWriteOnce", func(s Settings) bool { return s.AccessMode == corev1.ReadWriteOnce }},
		"short access mode":   {"kubectl's short form is none", "DATA_VOLUME_ACCESS_MODE", "RWO", nil},
		"file systems":        {"true or false", "USE_BLOCK_STORAGE", "false", func(s Settings) bool { return !s.BlockStorage }},
		"perhaps":             {"true or false", "USE_BLOCK_STORAGE", "perhaps", nil},
		"image size":          {"a quantity", "RELEASE_IMAGE_SIZE", "16Gi", func(s Settings) bool { return s.ImageSize.String() == "16Gi" }},
		"no image":            {"nothing fits into it", "RELEASE_IMAGE_SIZE", "0", nil},
		"negative image":      {"nothing fits into it", "RELEASE_IMAGE_SIZE", "-1Gi", nil},
		"image size in words": {"it is no quantity", "RELEASE_IMAGE_SIZE", "big", nil},
		"multus":              {"true or false", "ENABLE_MULTUS", "true", func(s Settings) bool { return s.Multus }},
		"migration":           {"true or false", "ALLOW_POD_BRIDGE_LIVE_MIGRATION", "true", func(s Settings) bool { return s.PodBridgeLiveMigration }},
		"no ingress":          {"true or false", "WORKLOAD_INGRESS", "false", func(s Settings) bool { return !s.WorkloadIngress }},
		"subnets": {"a ! excludes, items are trimmed, empty ones dropped", "VALID_NODE_IP_SUBNETS", "10.0.0.0/8, !10.1.0.0/16,,2001:db8::/32", func(s Settings) bool {
			return cmp.Equal(s.NodeSubnets, []string{"10.0.0.0/8", "!10.1.0.0/16", "2001:db8::/32"})
		}},
		"no subnets":         {"an empty list is none", "VALID_NODE_IP_SUBNETS", "", func(s Settings) bool { return s.NodeSubnets == nil }},
		"an address":         {"it is no CIDR", "VALID_NODE_IP_SUBNETS", "10.0.0.1", nil},
		"twice excluded":     {"one ! is allowed", "VALID_NODE_IP_SUBNETS", "!!10.0.0.0/8", nil},
		"Talos":              {"a version", "TALOS_VERSION", "v1.13.1", func(s Settings) bool { return s.TalosVersion == "v1.13.1" }},
		"Talos without v":    {"versions begin with v", "TALOS_VERSION", "1.13", nil},
		"a foreign variable": {"others' variables are not looked at", "HOME", "x", func(s Settings) bool { return cmp.Equal(s, DefaultSettings()) }},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ParseSettings(environment(c.variable, c.value))
			if c.want != nil {
				if err != nil || !c.want(s) {
					t.Errorf("%s: %s=%q gives %+v, %v", c.reason, c.variable, c.value, s, err)
				}
				return
			}
			if err == nil {
				t.Fatalf("%s: %s=%q is accepted", c.reason, c.variable, c.value)
			}
			for _, part := range []string{c.variable, c.value, "allowed is"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %q", err, part)
				}
			}
		})
	}
}
