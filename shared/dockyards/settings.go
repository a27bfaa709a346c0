package dockyards

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Settings are those of all Dockyards functions, under the values and defaults
// of the flags of dockyards-kubevirt. An installation sets them once, in the
// ConfigMap SettingsConfigMap of the functions' namespace.
type Settings struct {
	// GatewayNamespace and GatewayName name the shared Gateway; empty for none.
	GatewayNamespace, GatewayName string
	// ConfigMapNamespace and ConfigMapName name the config map that all
	// Dockyards controllers share. The namespace is also where a default Release
	// is looked for first.
	ConfigMapNamespace, ConfigMapName string
	// StorageClass of data volumes; empty leaves the cluster's default.
	StorageClass string
	// AccessMode of data volumes.
	AccessMode corev1.PersistentVolumeAccessMode
	// BlockStorage asks for block devices instead of file systems.
	BlockStorage bool
	// ImageSize is the size of an imported Talos image.
	ImageSize resource.Quantity
	// Multus adds the networks of a pool's namespace to its machines.
	Multus bool
	// PodBridgeLiveMigration lets machines bridged to the pod network migrate.
	PodBridgeLiveMigration bool
	// NodeSubnets are those that node addresses are taken from: CIDRs, a leading
	// "!" excludes one.
	NodeSubnets []string
	// WorkloadIngress mirrors the load balancers of workload clusters.
	WorkloadIngress bool
	// TalosVersion is the version contract of generated Talos configuration.
	TalosVersion string
}

// SettingsConfigMap is the one place where an installation changes the settings
// of all Dockyards functions: its keys are the environment variables below.
const SettingsConfigMap = "slipway-dockyards"

// Variable documents one setting: an environment variable.
type Variable struct {
	// Name is the environment variable, Flag upstream's flag of the same meaning
	// (empty where upstream has none).
	Name, Flag string
	// Default is the value of a variable that is not set.
	Default string
	// Help is one line for people, Allowed says what may stand there.
	Help, Allowed string
	// EmptyMatters tells that an empty value is a value, not an absence.
	EmptyMatters bool
	parse        func(s *Settings, value string) bool
}

// Variables are all settings, in the order of their documentation.
func Variables() []Variable {
	return []Variable{
		{
			Name: "GATEWAY_NAME", Flag: "gateway-name", Help: "the shared Gateway", Allowed: "an object's name",
			parse: name(func(s *Settings) *string { return &s.GatewayName }),
		},
		{
			Name: "GATEWAY_NAMESPACE", Flag: "gateway-namespace", Help: "namespace of the shared Gateway", Allowed: "a namespace's name",
			parse: name(func(s *Settings) *string { return &s.GatewayNamespace }),
		},
		{
			Name: "CONFIG_MAP", Flag: "config-map", Default: "dockyards-system", Help: "config map that all Dockyards controllers share",
			Allowed: "an object's name", parse: name(func(s *Settings) *string { return &s.ConfigMapName }),
		},
		{
			Name: "DOCKYARDS_NAMESPACE", Flag: "dockyards-namespace", Default: "dockyards-system", Help: "namespace of that config map",
			Allowed: "a namespace's name", parse: name(func(s *Settings) *string { return &s.ConfigMapNamespace }),
		},
		{
			Name: "DATA_VOLUME_STORAGE_CLASS_NAME", Flag: "data-volume-storage-class-name", Default: "rook-ceph-block", EmptyMatters: true,
			Help: "StorageClass of machines' disks; empty for the cluster's default", Allowed: "an object's name, or nothing",
			parse: func(s *Settings, value string) bool {
				s.StorageClass = value
				return value == "" || len(validation.IsDNS1123Subdomain(value)) == 0
			},
		},
		{
			Name: "DATA_VOLUME_ACCESS_MODE", Default: string(corev1.ReadWriteMany), Help: "access mode of machines' disks",
			Allowed: "ReadWriteOnce, ReadWriteMany, ReadOnlyMany or ReadWriteOncePod",
			parse: func(s *Settings, value string) bool {
				s.AccessMode = corev1.PersistentVolumeAccessMode(value)
				return slices.Contains([]corev1.PersistentVolumeAccessMode{
					corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany, corev1.ReadWriteOncePod,
				}, s.AccessMode)
			},
		},
		{
			Name: "USE_BLOCK_STORAGE", Flag: "use-block-storage", Default: "true", Help: "disks are block devices", Allowed: trueOrFalse,
			parse: truth(func(s *Settings) *bool { return &s.BlockStorage }),
		},
		{
			Name: "RELEASE_IMAGE_SIZE", Default: "8Gi", Help: "size of an imported Talos image", Allowed: "a size above 0, like 8Gi",
			parse: func(s *Settings, value string) bool {
				size, err := resource.ParseQuantity(value)
				s.ImageSize = size
				return err == nil && size.Sign() > 0
			},
		},
		{
			Name: "ENABLE_MULTUS", Flag: "enable-multus", Default: "false", Help: "machines join every network of their namespace", Allowed: trueOrFalse,
			parse: truth(func(s *Settings) *bool { return &s.Multus }),
		},
		{
			Name: "ALLOW_POD_BRIDGE_LIVE_MIGRATION", Default: "false", Help: "machines bridged to the pod network may migrate", Allowed: trueOrFalse,
			parse: truth(func(s *Settings) *bool { return &s.PodBridgeLiveMigration }),
		},
		{
			Name: "VALID_NODE_IP_SUBNETS", Flag: "valid-node-ip-subnets", Help: "subnets of node addresses, separated by commas",
			Allowed: "CIDRs, each with or without a leading !", parse: subnets,
		},
		{
			Name: "WORKLOAD_INGRESS", Flag: "workload-ingress", Default: "true", Help: "load balancers of workload clusters are mirrored", Allowed: trueOrFalse,
			parse: truth(func(s *Settings) *bool { return &s.WorkloadIngress }),
		},
		{
			Name: "TALOS_VERSION", Default: "v1.12", Help: "version contract of generated Talos configuration", Allowed: "a version like v1.12",
			parse: func(s *Settings, value string) bool {
				s.TalosVersion = value
				return talosVersion.MatchString(value)
			},
		},
	}
}

const trueOrFalse = "true or false"

var talosVersion = regexp.MustCompile(`^v\d+\.\d+(\.\d+)?$`)

// ParseSettings reads the environment. A value that cannot be used is an error
// that says which, and what could stand there; nothing is guessed.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	var s Settings
	for _, v := range Variables() {
		value, ok := lookup(v.Name)
		if !ok || (value == "" && !v.EmptyMatters) {
			value = v.Default
		}
		if value == "" && !v.EmptyMatters {
			continue
		}
		if !v.parse(&s, value) {
			return Settings{}, fmt.Errorf("cannot use environment variable %s=%q: allowed is %s", v.Name, value, v.Allowed)
		}
	}
	return s, nil
}

// DefaultSettings are those of an empty environment.
func DefaultSettings() Settings {
	s, err := ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		panic(err) // the defaults always parse, which a test shows
	}
	return s
}

func name(field func(*Settings) *string) func(*Settings, string) bool {
	return func(s *Settings, value string) bool {
		*field(s) = value
		return len(validation.IsDNS1123Subdomain(value)) == 0
	}
}

func truth(field func(*Settings) *bool) func(*Settings, string) bool {
	return func(s *Settings, value string) bool {
		b, err := strconv.ParseBool(value)
		*field(s) = b
		return err == nil
	}
}

func subnets(s *Settings, value string) bool {
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		if _, err := netip.ParsePrefix(strings.TrimPrefix(item, "!")); err != nil {
			return false
		}
		s.NodeSubnets = append(s.NodeSubnets, item)
	}
	return true
}
