package dockyards

import (
	"net/netip"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/shared/setting"
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

// Variables are all settings, in the order of their documentation.
func Variables() []setting.Variable[Settings] {
	return []setting.Variable[Settings]{
		{
			EnvVar: setting.EnvVar{Name: "GATEWAY_NAME", Help: "the shared Gateway"},
			Flag:   "gateway-name", Allowed: setting.AnObject,
			Parse: setting.Name(func(s *Settings) *string { return &s.GatewayName }),
		},
		{
			EnvVar: setting.EnvVar{Name: "GATEWAY_NAMESPACE", Help: "namespace of the shared Gateway"},
			Flag:   "gateway-namespace", Allowed: setting.ANamespace,
			Parse: setting.Name(func(s *Settings) *string { return &s.GatewayNamespace }),
		},
		{
			EnvVar: setting.EnvVar{Name: "CONFIG_MAP", Default: "dockyards-system", Help: "config map that all Dockyards controllers share"},
			Flag:   "config-map", Allowed: setting.AnObject, Parse: setting.Name(func(s *Settings) *string { return &s.ConfigMapName }),
		},
		{
			EnvVar: setting.EnvVar{Name: "DOCKYARDS_NAMESPACE", Default: "dockyards-system", Help: "namespace of that config map"},
			Flag:   "dockyards-namespace", Allowed: setting.ANamespace, Parse: setting.Name(func(s *Settings) *string { return &s.ConfigMapNamespace }),
		},
		{
			EnvVar: setting.EnvVar{Name: "DATA_VOLUME_STORAGE_CLASS_NAME", Default: "rook-ceph-block", Help: "StorageClass of machines' disks; empty for the cluster's default"},
			Flag:   "data-volume-storage-class-name", EmptyMatters: true, Allowed: "an object's name, or nothing",
			Parse: func(s *Settings, value string) bool {
				s.StorageClass = value
				return value == "" || len(validation.IsDNS1123Subdomain(value)) == 0
			},
		},
		{
			EnvVar:  setting.EnvVar{Name: "DATA_VOLUME_ACCESS_MODE", Default: string(corev1.ReadWriteMany), Help: "access mode of machines' disks"},
			Allowed: "ReadWriteOnce, ReadWriteMany, ReadOnlyMany or ReadWriteOncePod",
			Parse: setting.OneOf(func(s *Settings) *corev1.PersistentVolumeAccessMode { return &s.AccessMode },
				corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany, corev1.ReadWriteOncePod),
		},
		{
			EnvVar: setting.EnvVar{Name: "USE_BLOCK_STORAGE", Default: "true", Help: "disks are block devices"},
			Flag:   "use-block-storage", Allowed: setting.TrueOrFalse,
			Parse: setting.Bool(func(s *Settings) *bool { return &s.BlockStorage }),
		},
		{
			EnvVar:  setting.EnvVar{Name: "RELEASE_IMAGE_SIZE", Default: "8Gi", Help: "size of an imported Talos image"},
			Allowed: setting.SizeAbove0,
			Parse:   setting.Size(func(s *Settings) *resource.Quantity { return &s.ImageSize }),
		},
		{
			EnvVar: setting.EnvVar{Name: "ENABLE_MULTUS", Default: "false", Help: "machines join every network of their namespace"},
			Flag:   "enable-multus", Allowed: setting.TrueOrFalse,
			Parse: setting.Bool(func(s *Settings) *bool { return &s.Multus }),
		},
		{
			EnvVar:  setting.EnvVar{Name: "ALLOW_POD_BRIDGE_LIVE_MIGRATION", Default: "false", Help: "machines bridged to the pod network may migrate"},
			Allowed: setting.TrueOrFalse,
			Parse:   setting.Bool(func(s *Settings) *bool { return &s.PodBridgeLiveMigration }),
		},
		{
			EnvVar: setting.EnvVar{Name: "VALID_NODE_IP_SUBNETS", Help: "subnets of node addresses, separated by commas"},
			Flag:   "valid-node-ip-subnets", Allowed: "CIDRs, each with or without a leading !", Parse: subnets,
		},
		{
			EnvVar: setting.EnvVar{Name: "WORKLOAD_INGRESS", Default: "true", Help: "load balancers of workload clusters are mirrored"},
			Flag:   "workload-ingress", Allowed: setting.TrueOrFalse,
			Parse: setting.Bool(func(s *Settings) *bool { return &s.WorkloadIngress }),
		},
		{
			EnvVar:  setting.EnvVar{Name: "TALOS_VERSION", Default: "v1.12", Help: "version contract of generated Talos configuration"},
			Allowed: "a version like v1.12",
			Parse: func(s *Settings, value string) bool {
				s.TalosVersion = value
				return talosVersion.MatchString(value)
			},
		},
	}
}

var talosVersion = regexp.MustCompile(`^v\d+\.\d+(\.\d+)?$`)

// ParseSettings reads the environment. A value that cannot be used is an error
// that says which, and what could stand there; nothing is guessed.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	var s Settings
	if err := setting.Parse(&s, Variables(), lookup); err != nil {
		return Settings{}, err
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
