package machinevm

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/functions/machine-vm/decide"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Settings are the whole environment of the function.
type Settings struct {
	// Settings are those that decisions depend on.
	decide.Settings
	// Namespace is the function's own.
	Namespace string
	// ReconcileInterval is the period of the resync in the always-on mode.
	ReconcileInterval time.Duration
	// MaxConcurrentReconciles bounds the reconciles at once within a resync.
	MaxConcurrentReconciles int
	// RemoteTimeout bounds a request to a target cluster.
	RemoteTimeout time.Duration
}

// variables are all that the function reads, in the order of its documentation.
var variables = []setting.Variable[Settings]{
	{
		EnvVar:  setting.EnvVar{Name: "NAMESPACE", Default: "default", Help: "the function's own namespace"},
		Allowed: setting.ANamespace,
		Parse:   setting.Label(func(s *Settings) *string { return &s.Namespace }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RECONCILE_INTERVAL", Default: "30s", Help: "period of the resync in the always-on mode"},
		Allowed: setting.TimeAbove0,
		Parse:   setting.Duration(func(s *Settings) *time.Duration { return &s.ReconcileInterval }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "MAX_CONCURRENT_RECONCILES", Default: "5", Help: "reconciles at once within a resync"},
		Allowed: setting.OneTo1000,
		Parse:   setting.Whole(func(s *Settings) *int { return &s.MaxConcurrentReconciles }, 1, 1000),
	},
	{
		EnvVar:  setting.EnvVar{Name: "LEADER_ELECTION", Default: "true", Help: "accepted; optimistic writes take its place"},
		Allowed: setting.TrueOrFalse,
		Parse: func(_ *Settings, value string) bool {
			_, err := strconv.ParseBool(value)
			return err == nil
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "KUBEVIRT_CONFIGS_NAMESPACE", Default: "default", Help: "namespace of KubevirtConfigs, where they have one, and of their Secrets"},
		Allowed: setting.ANamespace,
		Parse:   setting.Label(func(s *Settings) *string { return &s.ConfigsNamespace }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "DEFAULT_KUBEVIRT_CONFIG", Help: "KubevirtConfig of Machines that name none"},
		Allowed: setting.AnObject,
		Parse:   setting.Name(func(s *Settings) *string { return &s.DefaultConfig }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "SINGLE_CLUSTER", Default: "auto", Help: "whether Machines run on the management cluster itself"},
		Allowed: "auto, true or false",
		Parse: setting.OneOf(func(s *Settings) *decide.SingleCluster { return &s.SingleCluster },
			decide.SingleAuto, decide.SingleTrue, decide.SingleFalse),
	},
	{
		EnvVar:       setting.EnvVar{Name: "VM_NAME_PREFIX", Default: "vm-", Help: "what goes before a Machine's name in that of its virtual machine; empty for nothing"},
		Allowed:      "the beginning of an object's name, 63 characters at most, or nothing",
		EmptyMatters: true,
		Parse: func(s *Settings, value string) bool {
			s.VMNamePrefix = value
			return value == "" || (len(value) <= validation.DNS1123LabelMaxLength && len(validation.IsDNS1123Subdomain(value+"x")) == 0)
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "MANAGED_BY", Default: "kubevirt-operator", Help: "value of the label vitistack.io/managed-by"},
		Allowed: "a label's value",
		Parse: func(s *Settings, value string) bool {
			s.ManagedBy = value
			return len(validation.IsValidLabelValue(value)) == 0
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "STORAGE_CLASS_NAME", Help: "StorageClass of disks that state none"},
		Allowed: setting.AnObject,
		Parse:   setting.Name(func(s *Settings) *string { return &s.StorageClass }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "PVC_ACCESS_MODE", Help: "access mode of disks that state none and whose class has no StorageProfile"},
		Allowed: "ReadWriteOnce, ReadWriteMany, ReadOnlyMany or ReadWriteOncePod",
		Parse: setting.OneOf(func(s *Settings) *string { return &s.AccessMode }, string(corev1.ReadWriteOnce), string(corev1.ReadWriteMany),
			string(corev1.ReadOnlyMany), string(corev1.ReadWriteOncePod)),
	},
	{
		EnvVar:  setting.EnvVar{Name: "PVC_VOLUME_MODE", Help: "volume mode of disks that state none"},
		Allowed: "Filesystem or Block",
		Parse: setting.OneOf(func(s *Settings) *string { return &s.VolumeMode },
			string(corev1.PersistentVolumeFilesystem), string(corev1.PersistentVolumeBlock)),
	},
	{
		EnvVar:  setting.EnvVar{Name: "CPU_MODEL", Help: "CPU model of new virtual machines"},
		Allowed: "a name without spaces",
		Parse: func(s *Settings, value string) bool {
			s.CPUModel = value
			return !strings.ContainsAny(value, " \t\r\n")
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "DEFAULT_FIRMWARE", Default: "bios", Help: "firmware of new virtual machines whose Machine states none"},
		Allowed: "bios or efi",
		Parse: func(s *Settings, value string) bool {
			s.EFI = value == "efi"
			return value == "bios" || value == "efi"
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "MAC_SET", Default: "12", Help: "second octet of generated MAC addresses"},
		Allowed: "two hexadecimal digits, with or without 0x",
		Parse: func(s *Settings, value string) bool {
			s.MACSet = strings.ToLower(strings.TrimPrefix(strings.ToLower(value), "0x"))
			return twoHexDigits.MatchString(s.MACSet)
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "NETWORK_ATTACHMENT_DEFINITION_CNI_VERSION", Default: "1.0.0", Help: "CNI version of network definitions"},
		Allowed: "a version like 1.0.0",
		Parse: func(s *Settings, value string) bool {
			s.CNIVersion = value
			return threeNumbers.MatchString(value)
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "DEFAULT_BRIDGE", Default: "br0", Help: "bridge of networks that give a VLAN and no bridge"},
		Allowed: "a network device's name, 15 characters at most",
		Parse: func(s *Settings, value string) bool {
			s.DefaultBridge = value
			return bridgeName.MatchString(value)
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "IP_SOURCE", Default: "vmi", Help: "where public addresses come from"},
		Allowed: "vmi or networkconfiguration",
		Parse: func(s *Settings, value string) bool {
			s.AddressesFromRecord = value == "networkconfiguration"
			return s.AddressesFromRecord || value == "vmi"
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "ISO_STORAGE_SIZE", Default: "8Gi", Help: "size of the volume for a boot image"},
		Allowed: setting.SizeAbove0,
		Parse:   setting.Size(func(s *Settings) *resource.Quantity { return &s.ISOSize }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "REMOTE_TIMEOUT", Default: "10s", Help: "bound of a request to a target cluster"},
		Allowed: setting.TimeAbove0,
		Parse:   setting.Duration(func(s *Settings) *time.Duration { return &s.RemoteTimeout }),
	},
}

var (
	twoHexDigits = regexp.MustCompile(`^[0-9a-f]{2}$`)
	threeNumbers = regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	bridgeName   = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`)
)

// ParseSettings reads the environment. A value that cannot be used is an
// error that says which, and what could stand there; nothing is guessed.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	s := Settings{Settings: decide.DefaultSettings()}
	if err := setting.Parse(&s, variables, lookup); err != nil {
		return Settings{}, err
	}
	return s, nil
}
