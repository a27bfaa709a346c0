package decide

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

func isoMachine(annotations, os string) string {
	return `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-web, annotations: {kubevirt.io/boot-source: datavolume` + annotations + `}}, spec: {os: {imageID: "https://images.example/os.iso"` + os + `}}}`
}

func TestISO(t *testing.T) {
	for name, c := range map[string]struct {
		reason, machine, want, ready string
		settings                     func(*Settings)
	}{
		"BO-3 http":                     {reason: "the default type", machine: isoMachine("", ""), want: "http https://images.example/os.iso 8Gi ReadWriteOnce Filesystem <nil> sata"},
		"BO-3 https":                    {reason: "an http source too", machine: isoMachine(", kubevirt.io/boot-source-type: https", ""), want: "http https://images.example/os.iso 8Gi ReadWriteOnce Filesystem <nil> sata"},
		"BO-3 registry":                 {reason: "as it is", machine: isoMachine(", kubevirt.io/boot-source-type: registry", ""), want: "registry https://images.example/os.iso 8Gi ReadWriteOnce Filesystem <nil> sata"},
		"BO-3 another word":             {reason: "KubeVirt would refuse it", machine: isoMachine(", kubevirt.io/boot-source-type: ftp", ""), ready: "False InvalidSpec"},
		"BO-3 arm64":                    {reason: "there is no sata", machine: isoMachine("", ", architecture: arm64"), want: "http https://images.example/os.iso 8Gi ReadWriteOnce Filesystem <nil> scsi"},
		"BO-3 class of the environment": {reason: "its own", machine: isoMachine("", ""), settings: func(s *Settings) { s.StorageClass = "standard" }, want: "http https://images.example/os.iso 8Gi ReadWriteOnce Filesystem standard sata"},
		"BO-4 size stated":              {reason: "over the environment", machine: isoMachine(`, vitistack.io/iso-size: "3Gi"`, ""), want: "http https://images.example/os.iso 3Gi ReadWriteOnce Filesystem <nil> sata"},
		"BO-4 a size that is none":      {reason: "nothing is guessed", machine: isoMachine(`, vitistack.io/iso-size: big`, ""), ready: "False InvalidSpec"},
		"BO-4 less than one byte":       {reason: "a quantity may be smaller", machine: isoMachine(`, vitistack.io/iso-size: 1n`, ""), ready: "False InvalidSpec"},
		"BO-3 ejected":                  {reason: "no use for it", machine: isoMachine(`, vitistack.io/cdrom-ejected: "true"`, ""), want: "none"},
		"BO-3 installed":                {reason: "no use for it", machine: isoMachine(`, vitistack.io/os-installed: "true"`, ""), want: "none"},
		"TK-6 cleaned up before":        {reason: "it does not come back", machine: isoMachine(`, vitistack.io/iso-cleaned-up: "true"`, ""), want: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.settings != nil {
				c.settings(&w.settings)
			}
			w.add(c.machine)
			w.settle("web")
			if c.ready != "" {
				sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
				return
			}
			vm := w.must(kinds.VirtualMachines, "vm-web")
			got := "none"
			if templates := entries(vm.Object, "spec", "dataVolumeTemplates"); len(templates) > 0 {
				dv := templates[0]
				source := "http"
				if at(dv, "spec", "source", "registry") != nil {
					source = "registry"
				}
				cdrom := named(entries(vm.Object, "spec", "template", "spec", "domain", "devices", "disks"), v1alpha1.ISODiskName)
				got = fmt.Sprint(source, " ", text(dv, "spec", "source", source, "url"), " ", at(dv, "spec", "storage", "resources", "requests", "storage"), " ",
					strings.Join(texts(dv, "spec", "storage", "accessModes"), "+"), " ", text(dv, "spec", "storage", "volumeMode"), " ",
					at(dv, "spec", "storage", "storageClassName"), " ", text(cdrom, "cdrom", "bus"))
				sees(t, "the template's name", text(dv, "metadata", "name"), "web-iso")
				sees(t, "the volume", volumeClaim(named(volumes(vm), v1alpha1.ISODiskName)), "web-iso")
			}
			sees(t, "the image ("+c.reason+")", got, c.want)
		})
	}
}

func TestEjection(t *testing.T) {
	w := newWorld(t)
	w.add(isoMachine("", ""))
	w.settle("web")
	marks := `metadata: {name: web-iso, labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/machine: web, vitistack.io/source-machine: web}, annotations: {vitistack.io/machine-uid: uid-web}}`
	w.add(`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, ` + marks + `}`)
	w.add(`{apiVersion: v1, kind: PersistentVolumeClaim, ` + marks + `}`)
	w.kubevirt("vm-web")
	w.settle("web")
	w.edit(kinds.Machines, "web", func(obj *unstructured.Unstructured) {
		obj.SetAnnotations(with(obj.GetAnnotations(), map[string]string{v1alpha1.AnnotationOSInstalled: "true"}))
	})
	w.settle("web")
	vm := w.must(kinds.VirtualMachines, "vm-web")
	if named(volumes(vm), v1alpha1.ISODiskName) != nil || at(vm.Object, "spec", "dataVolumeTemplates") != nil ||
		named(entries(vm.Object, "spec", "template", "spec", "domain", "devices", "disks"), v1alpha1.ISODiskName) != nil {
		t.Errorf("BO-5: the virtual machine still shows the image: %v", vm.Object["spec"])
	}
	if w.get(kinds.DataVolumes, "web-iso") != nil || w.get(kind.PersistentVolumeClaims, "web-iso") != nil {
		t.Error("BO-5: the image's DataVolume or claim is still there")
	}
	sees(t, "BO-5: the note", w.must(kinds.Machines, "web").GetAnnotations()[v1alpha1.AnnotationISOCleanedUp], "true")
	w.must(kind.PersistentVolumeClaims, "web-root")
	if w.get(kinds.VirtualMachineInstances, "vm-web") == nil {
		t.Error("PW-3: the instance was restarted")
	}
}
