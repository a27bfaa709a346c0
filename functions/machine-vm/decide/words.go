package decide

import (
	"maps"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
)

// words are what the function has written of a Machine's statements into its
// virtual machine: "cores", "disk/root", "cloud-init=1f3a…". What is here and
// not stated any more was removed from the Machine; what never was here was
// never stated, and is none of the function's business.
type words map[string]string

// Words that are no names of devices.
const (
	wordCores       = "cores"
	wordThreads     = "threads"
	wordSockets     = "sockets"
	wordMemory      = "memory"
	wordMachineType = "machine-type"
	wordACPI        = "acpi"
	wordAPIC        = "apic"
	wordHyperV      = "hyperv"
	wordFirmware    = "firmware"
	wordSMM         = "smm"
	wordBootOrder   = "boot-order"
	wordCloudInit   = "cloud-init"
)

func parseWords(s string) words {
	w := words{}
	for word := range strings.SplitSeq(s, ",") {
		if name, value, _ := strings.Cut(word, "="); name != "" {
			w[name] = value
		}
	}
	return w
}

// String is the sorted list, as it stands in the annotation.
func (w words) String() string {
	list := make([]string, 0, len(w))
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if w[name] != "" {
			name += "=" + w[name]
		}
		list = append(list, name)
	}
	return strings.Join(list, ",")
}

func (w words) has(name string) bool {
	_, ok := w[name]
	return ok
}

// statements are the words of what the Machine states now, with the devices
// that it gets by default.
func (v *view) statements() words {
	w := words{}
	spec := v.machine.Spec
	firmware, firmwareStated := v.firmwareStated()
	for name, stated := range map[string]bool{
		wordCores: v.size.cores.stated, wordThreads: v.size.threads.stated, wordSockets: v.size.sockets.stated,
		wordMemory:      v.size.memoryStated,
		wordMachineType: spec.Domain.Machine.Type != "",
		wordACPI:        spec.Domain.Features.ACPI != nil,
		wordAPIC:        spec.Domain.Features.APIC != nil,
		wordHyperV:      spec.Domain.Features.HyperV != nil && *spec.Domain.Features.HyperV,
		wordFirmware:    firmwareStated,
		wordSMM:         firmware == firmwareSecure,
		wordBootOrder:   len(spec.BootOrder) > 0,
	} {
		if stated {
			w[name] = ""
		}
	}
	for _, d := range v.disks {
		w[diskWord(d.name)] = ""
	}
	for _, n := range v.nics {
		w[nicWord(n.name)] = ""
	}
	if v.cloudInit != nil {
		w[wordCloudInit] = plainHash(v.cloudInit.fields)
	}
	return w
}

// cloudInitDisk is the disk with cloud-init's data.
const cloudInitDisk = v1alpha1.CloudInitDiskName
