package machinevm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/functions/machine-vm/decide"
	"github.com/slipway-dev/slipway/shared/reconcile"
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
	// LogLevel is debug, info, warn or error.
	LogLevel string
}

// variable is one environment variable: how it is documented and parsed. An
// empty value counts as unset, unless empty has a meaning of its own.
type variable struct {
	reconcile.EnvVar
	allowed      string
	emptyMatters bool
	parse        func(s *Settings, value string) bool
}

// variables are all that the function reads, in the order of its documentation.
var variables = []variable{
	{
		EnvVar:  reconcile.EnvVar{Name: "NAMESPACE", Default: "default", Help: "the function's own namespace"},
		allowed: "a namespace's name",
		parse:   label(func(s *Settings) *string { return &s.Namespace }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RECONCILE_INTERVAL", Default: "30s", Help: "period of the resync in the always-on mode"},
		allowed: "a duration above 0, like 30s",
		parse:   duration(func(s *Settings) *time.Duration { return &s.ReconcileInterval }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "MAX_CONCURRENT_RECONCILES", Default: "5", Help: "reconciles at once within a resync"},
		allowed: "a whole number from 1 to 1000",
		parse: func(s *Settings, value string) bool {
			n, err := strconv.Atoi(value)
			s.MaxConcurrentReconciles = n
			return err == nil && n >= 1 && n <= 1000
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "LEADER_ELECTION", Default: "true", Help: "accepted; optimistic writes take its place"},
		allowed: "true or false",
		parse: func(_ *Settings, value string) bool {
			_, err := strconv.ParseBool(value)
			return err == nil
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "KUBEVIRT_CONFIGS_NAMESPACE", Default: "default", Help: "namespace of KubevirtConfigs, where they have one, and of their Secrets"},
		allowed: "a namespace's name",
		parse:   label(func(s *Settings) *string { return &s.ConfigsNamespace }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "DEFAULT_KUBEVIRT_CONFIG", Help: "KubevirtConfig of Machines that name none"},
		allowed: "an object's name",
		parse: func(s *Settings, value string) bool {
			s.DefaultConfig = value
			return len(validation.IsDNS1123Subdomain(value)) == 0
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "SINGLE_CLUSTER", Default: "auto", Help: "whether Machines run on the management cluster itself"},
		allowed: "auto, true or false",
		parse: func(s *Settings, value string) bool {
			s.SingleCluster = decide.SingleCluster(value)
			return slices.Contains([]decide.SingleCluster{decide.SingleAuto, decide.SingleTrue, decide.SingleFalse}, s.SingleCluster)
		},
	},
	{
		EnvVar:       reconcile.EnvVar{Name: "VM_NAME_PREFIX", Default: "vm-", Help: "what goes before a Machine's name in that of its virtual machine; empty for nothing"},
		allowed:      "the beginning of an object's name, 63 characters at most, or nothing",
		emptyMatters: true,
		parse: func(s *Settings, value string) bool {
			s.VMNamePrefix = value
			return value == "" || (len(value) <= validation.DNS1123LabelMaxLength && len(validation.IsDNS1123Subdomain(value+"x")) == 0)
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "MANAGED_BY", Default: "kubevirt-operator", Help: "value of the label vitistack.io/managed-by"},
		allowed: "a label's value",
		parse: func(s *Settings, value string) bool {
			s.ManagedBy = value
			return len(validation.IsValidLabelValue(value)) == 0
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "STORAGE_CLASS_NAME", Help: "StorageClass of disks that state none"},
		allowed: "an object's name",
		parse: func(s *Settings, value string) bool {
			s.StorageClass = value
			return len(validation.IsDNS1123Subdomain(value)) == 0
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "PVC_ACCESS_MODE", Help: "access mode of disks that state none and whose class has no StorageProfile"},
		allowed: "ReadWriteOnce, ReadWriteMany, ReadOnlyMany or ReadWriteOncePod",
		parse: oneOf(func(s *Settings) *string { return &s.AccessMode }, string(corev1.ReadWriteOnce), string(corev1.ReadWriteMany),
			string(corev1.ReadOnlyMany), string(corev1.ReadWriteOncePod)),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "PVC_VOLUME_MODE", Help: "volume mode of disks that state none"},
		allowed: "Filesystem or Block",
		parse: oneOf(func(s *Settings) *string { return &s.VolumeMode },
			string(corev1.PersistentVolumeFilesystem), string(corev1.PersistentVolumeBlock)),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "CPU_MODEL", Help: "CPU model of new virtual machines"},
		allowed: "a name without spaces",
		parse: func(s *Settings, value string) bool {
			s.CPUModel = value
			return !strings.ContainsAny(value, " \t\r\n")
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "DEFAULT_FIRMWARE", Default: "bios", Help: "firmware of new virtual machines whose Machine states none"},
		allowed: "bios or efi",
		parse: func(s *Settings, value string) bool {
			s.EFI = value == "efi"
			return value == "bios" || value == "efi"
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "MAC_SET", Default: "12", Help: "second octet of generated MAC addresses"},
		allowed: "two hexadecimal digits, with or without 0x",
		parse: func(s *Settings, value string) bool {
			s.MACSet = strings.ToLower(strings.TrimPrefix(strings.ToLower(value), "0x"))
			return twoHexDigits.MatchString(s.MACSet)
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "NETWORK_ATTACHMENT_DEFINITION_CNI_VERSION", Default: "1.0.0", Help: "CNI version of network definitions"},
		allowed: "a version like 1.0.0",
		parse: func(s *Settings, value string) bool {
			s.CNIVersion = value
			return threeNumbers.MatchString(value)
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "DEFAULT_BRIDGE", Default: "br0", Help: "bridge of networks that give a VLAN and no bridge"},
		allowed: "a network device's name, 15 characters at most",
		parse: func(s *Settings, value string) bool {
			s.DefaultBridge = value
			return bridgeName.MatchString(value)
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "IP_SOURCE", Default: "vmi", Help: "where public addresses come from"},
		allowed: "vmi or networkconfiguration",
		parse: func(s *Settings, value string) bool {
			s.AddressesFromRecord = value == "networkconfiguration"
			return s.AddressesFromRecord || value == "vmi"
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "ISO_STORAGE_SIZE", Default: "8Gi", Help: "size of the volume for a boot image"},
		allowed: "a size above 0, like 8Gi",
		parse: func(s *Settings, value string) bool {
			size, err := resource.ParseQuantity(value)
			s.ISOSize = size
			return err == nil && size.Sign() > 0
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "REMOTE_TIMEOUT", Default: "10s", Help: "bound of a request to a target cluster"},
		allowed: "a duration above 0, like 10s",
		parse:   duration(func(s *Settings) *time.Duration { return &s.RemoteTimeout }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "LOG_LEVEL", Default: "info", Help: "what is logged"},
		allowed: "debug, info, warn or error",
		parse:   oneOf(func(s *Settings) *string { return &s.LogLevel }, "debug", "info", "warn", "error"),
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
	for _, v := range variables {
		value, ok := lookup(v.Name)
		if !ok || (value == "" && !v.emptyMatters) {
			value = v.Default
		}
		if value == "" && !v.emptyMatters {
			continue
		}
		if !v.parse(&s, value) {
			return Settings{}, fmt.Errorf("cannot use environment variable %s=%q: allowed is %s", v.Name, value, v.allowed)
		}
	}
	return s, nil
}

func label(field func(*Settings) *string) func(*Settings, string) bool {
	return func(s *Settings, value string) bool {
		*field(s) = value
		return len(validation.IsDNS1123Label(value)) == 0
	}
}

func duration(field func(*Settings) *time.Duration) func(*Settings, string) bool {
	return func(s *Settings, value string) bool {
		d, err := time.ParseDuration(value)
		*field(s) = d
		return err == nil && d > 0
	}
}

func oneOf(field func(*Settings) *string, words ...string) func(*Settings, string) bool {
	return func(s *Settings, value string) bool {
		*field(s) = value
		return slices.Contains(words, value)
	}
}
