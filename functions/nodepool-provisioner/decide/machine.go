package decide

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
)

const (
	// bootDisk is the disk that holds the Talos image.
	bootDisk = "boot"
	// providerVolume is the volume that CAPK adds to every machine.
	providerVolume = "cloudinitvolume"
)

// machine is what every machine of a pool shall be.
type machine struct {
	cores, memory resource.Quantity
	disks         []disk
	nics          []nic
	// accessMode, storageClass and volumeMode are those of all disks; the last two
	// may be empty.
	accessMode, storageClass, volumeMode string
	// bridgeMigration lets a machine on the pod network migrate.
	bridgeMigration bool
}

// disk is one disk of a machine.
type disk struct {
	name string
	size resource.Quantity
	// sourceNamespace and source name the DataSource that it is filled from; both
	// empty for a blank one.
	sourceNamespace, source string
}

// wantMachine says what the pool's machines shall be, or notes why that cannot be
// said.
func (v *view) wantMachine() {
	d := v.template
	before := len(d.problems)
	m := &machine{
		accessMode: string(v.in.Settings.AccessMode), storageClass: v.in.Settings.StorageClass,
		bridgeMigration: v.in.Settings.PodBridgeLiveMigration,
	}
	if v.in.Settings.BlockStorage {
		m.volumeMode = "Block"
	}
	v.checkNames()
	v.wantSize(m)
	v.wantDisks(m)
	nics, ambiguous := v.nics()
	if ambiguous != nil {
		d.add(*ambiguous)
	}
	m.nics = nics
	v.wantImage(m)
	if v.in.Settings.Multus && v.in.NetworksNotServed {
		d.note("NetworkAttachmentDefinitions are not served: no further network is attached")
	}
	if len(d.problems) == before {
		v.machine = m
	}
}

// checkNames: what is made for the pool carries its name in labels.
func (v *view) checkNames() {
	if !labelValue(v.name) {
		v.template.add(invalid("the pool's name is no label value of at most %d characters: make a pool with a shorter name", validation.LabelValueMaxLength))
	}
	if !labelValue(v.clusterName) {
		v.template.add(invalid("the Cluster's name is no label value of at most %d characters: make one with a shorter name", validation.LabelValueMaxLength))
	}
}

func labelValue(s string) bool { return len(validation.IsValidLabelValue(s)) == 0 }

// wantSize reads spec.resources.
func (v *view) wantSize(m *machine) {
	if v.unreadable != nil {
		v.template.add(*v.unreadable)
		return
	}
	sizes := map[string]resource.Quantity{}
	for _, name := range []string{v1alpha3.ResourceCPU, v1alpha3.ResourceMemory, v1alpha3.ResourceStorage} {
		q, ok := v.pool.Spec.Resources[corev1.ResourceName(name)]
		switch {
		case !ok:
			v.template.add(invalid("spec.resources.%s is missing: set it above 0", name))
		case q.Sign() <= 0:
			v.template.add(invalid("spec.resources.%s is %s: set it above 0", name, q.String()))
		case tooMuch(q) || (name == v1alpha3.ResourceCPU && q.CmpInt64(math.MaxUint32) > 0):
			v.template.add(invalid("spec.resources.%s is %s: no machine has as much", name, q.String()))
		}
		sizes[name] = q
	}
	cpu := sizes[v1alpha3.ResourceCPU]
	m.cores, m.memory = *resource.NewQuantity(cpu.Value(), resource.DecimalSI), sizes[v1alpha3.ResourceMemory]
	m.disks = []disk{{name: bootDisk, size: sizes[v1alpha3.ResourceStorage]}}
}

// tooMuch tells whether a quantity is beyond what can be counted.
func tooMuch(q resource.Quantity) bool { return q.CmpInt64(math.MaxInt64) >= 0 }

// wantDisks reads spec.storageResources.
func (v *view) wantDisks(m *machine) {
	reserved := []string{bootDisk, providerVolume}
	var seen []string
	for i, r := range v.pool.Spec.StorageResources {
		field := "spec.storageResources[" + strconv.Itoa(i) + "]"
		switch {
		case len(validation.IsDNS1123Label(r.Name)) > 0:
			v.template.add(invalid("%s.name is no DNS label: use a-z, 0-9 and -, at most 63 characters", field))
		case slices.Contains(reserved, r.Name):
			v.template.add(invalid("%s.name is %q, which every machine has already: choose another", field, r.Name))
		case slices.Contains(seen, r.Name):
			v.template.add(invalid("%s.name is %q a second time: choose another", field, r.Name))
		case r.Quantity.Sign() <= 0:
			v.template.add(invalid("%s.quantity is %s: set it above 0", field, r.Quantity.String()))
		case tooMuch(r.Quantity):
			v.template.add(invalid("%s.quantity is %s: no disk is as large", field, r.Quantity.String()))
		}
		seen = append(seen, r.Name)
		m.disks = append(m.disks, disk{name: r.Name, size: r.Quantity})
	}
}

// wantImage finds the image that the first disk is filled from.
func (v *view) wantImage(m *machine) {
	release := v.in.Release
	if release == nil {
		v.template.add(waiting(v1alpha3.ReasonWaitingForRelease,
			"no Release of type %s is the default: annotate one with %s", v1alpha3.ReleaseTypeTalosInstaller, v1alpha3.AnnotationDefaultRelease))
		return
	}
	if v.in.Several {
		v.template.note("several default Releases: %s is used", v.releaseName())
	}
	if v.in.DataSource == nil {
		v.template.add(waiting(v1alpha3.ReasonWaitingForDataSource, "DataSource %s does not exist", v.releaseName()))
		return
	}
	if len(m.disks) == 0 {
		return
	}
	boot := &m.disks[0]
	boot.sourceNamespace, boot.source = release.GetNamespace(), release.GetName()
	if v.in.Image == nil {
		return
	}
	for _, claim := range []string{"pvc", "storage"} {
		size, ok := quantity(v.in.Image.Object, "spec", claim, "resources", "requests", v1alpha3.ResourceStorage)
		if ok && boot.size.Cmp(size) < 0 && boot.size.Sign() > 0 {
			v.template.add(invalid("spec.resources.storage is %s, and the image takes %s: set it to that at least", boot.size.String(), size.String()))
			return
		}
	}
}

func (v *view) releaseName() string {
	return fmt.Sprintf("%q", v.in.Release.GetNamespace()+"/"+v.in.Release.GetName())
}

// imageBroken tells whether no new machine could boot from the image now. One whose
// DataSource says nothing of itself counts as usable.
func (v *view) imageBroken() *problem {
	conditions, _ := at(v.in.DataSource.Object, "status", "conditions").([]any)
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if text(c, "type") == "Ready" && strings.EqualFold(text(c, "status"), "False") {
			p := waiting(v1alpha3.ReasonWaitingForDataSource, "DataSource %s is not ready", v.releaseName())
			return &p
		}
	}
	return nil
}
