package machinevm

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/machine-vm/decide"
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
	want := Settings{
		Settings: decide.DefaultSettings(), Namespace: "default", ReconcileInterval: 30 * time.Second,
		MaxConcurrentReconciles: 5, RemoteTimeout: 10 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("section 21 (-want +got):\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		reason, variable, value string
		check                   func(Settings) bool
	}{
		"an empty prefix is a prefix":    {reason: "no prefix at all", variable: "VM_NAME_PREFIX", value: "", check: func(s Settings) bool { return s.VMNamePrefix == "" }},
		"any other empty value is unset": {reason: "manifests often write them", variable: "MANAGED_BY", value: "", check: func(s Settings) bool { return s.ManagedBy == "kubevirt-operator" }},
		"MAC_SET with 0x":                {reason: "upstream's spelling", variable: "MAC_SET", value: "0xAF", check: func(s Settings) bool { return s.MACSet == "af" }},
		"DEFAULT_FIRMWARE":               {reason: "efi", variable: "DEFAULT_FIRMWARE", value: "efi", check: func(s Settings) bool { return s.EFI }},
		"IP_SOURCE":                      {reason: "the record", variable: "IP_SOURCE", value: "networkconfiguration", check: func(s Settings) bool { return s.AddressesFromRecord }},
		"SINGLE_CLUSTER":                 {reason: "three words", variable: "SINGLE_CLUSTER", value: "false", check: func(s Settings) bool { return s.SingleCluster == decide.SingleFalse }},
		"ISO_STORAGE_SIZE":               {reason: "a quantity", variable: "ISO_STORAGE_SIZE", value: "3Gi", check: func(s Settings) bool { return s.ISOSize.String() == "3Gi" }},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ParseSettings(environment(map[string]string{c.variable: c.value}))
			if err != nil || !c.check(s) {
				t.Errorf("%s=%q gives %+v, %v: %s", c.variable, c.value, s, err, c.reason)
			}
		})
	}
}

func TestSettingsThatCannotBeUsedStopTheStart(t *testing.T) {
	for variable, value := range map[string]string{
		"NAMESPACE": "Not A Name", "RECONCILE_INTERVAL": "often", "MAX_CONCURRENT_RECONCILES": "0", "LEADER_ELECTION": "maybe",
		"KUBEVIRT_CONFIGS_NAMESPACE": "a/b", "DEFAULT_KUBEVIRT_CONFIG": "A", "SINGLE_CLUSTER": "yes", "VM_NAME_PREFIX": "VM_",
		"MANAGED_BY": "a b", "STORAGE_CLASS_NAME": "_", "PVC_ACCESS_MODE": "RWO", "PVC_VOLUME_MODE": "block", "CPU_MODEL": "a b",
		"DEFAULT_FIRMWARE": "uefi", "MAC_SET": "123", "NETWORK_ATTACHMENT_DEFINITION_CNI_VERSION": "1", "DEFAULT_BRIDGE": "a-bridge-too-long",
		"IP_SOURCE": "dns", "ISO_STORAGE_SIZE": "-1Gi", "REMOTE_TIMEOUT": "0s",
	} {
		_, err := ParseSettings(environment(map[string]string{variable: value}))
		if err == nil {
			t.Errorf("%s=%q is accepted", variable, value)
			continue
		}
		for _, part := range []string{variable, value, "allowed is"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the message %q does not hold %q", err, part)
			}
		}
	}
}

func TestUpstreamsOtherVariablesHaveNoEffect(t *testing.T) {
	if _, err := ParseSettings(environment(map[string]string{"LOG_JSON": "?", "DEVELOPMENT": "?", "VITISTACK_NAME": "?"})); err != nil {
		t.Error(err)
	}
}
