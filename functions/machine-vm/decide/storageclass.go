package decide

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

func (v *view) storageClasses() plan.Need {
	return plan.Need{Cluster: v.in.Target.Cluster, Resource: kind.StorageClasses}
}

// storageClass is the StorageClass of a new claim, which must exist. Not ok:
// there is none, or it is not known yet.
func (v *view) storageClass(d disk) (string, bool) {
	wanted := d.class
	if wanted == "" {
		wanted = v.in.Settings.StorageClass
	}
	classes, ok := v.ask(v.storageClasses())
	if !ok {
		return "", false
	}
	class := pickClass(classes.Items, wanted)
	if class != nil {
		return class.GetName(), true
	}
	message := fmt.Sprintf("disk %q needs StorageClass %q, which does not exist: create it, or set storageClass", d.name, wanted)
	if wanted == "" || wanted == defaultClass {
		message = fmt.Sprintf("disk %q needs the default StorageClass, and there is none: mark one by annotation %s, or set storageClass", d.name, defaultClassAnnotation)
	}
	v.problem(Problem{Part: PartStorage, Reason: v1alpha1.ReasonStorageClassNotFound, Message: message})
	return "", false
}

// pickClass is the StorageClass of a name. No name, and the word default
// unless a class is called so, mean the cluster's default.
func pickClass(classes []unstructured.Unstructured, wanted string) *unstructured.Unstructured {
	if wanted != "" {
		if class := find(classes, wanted); class != nil || wanted != defaultClass {
			return class
		}
	}
	var found *unstructured.Unstructured
	for i := range classes {
		if classes[i].GetAnnotations()[defaultClassAnnotation] == v1alpha1.True && (found == nil || newer(&classes[i], found)) {
			found = &classes[i]
		}
	}
	return found
}

// newer tells whether a default class goes before another: the one made last,
// then the first by name.
func newer(a, b *unstructured.Unstructured) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if at.Equal(&bt) {
		return a.GetName() < b.GetName()
	}
	return bt.Before(&at)
}

// accessMode is the access mode of a new claim: as stated, else what CDI knows
// of the class, else the environment's, else ReadWriteOnce.
func (v *view) accessMode(stated, class, volumeMode string) (string, bool) {
	if stated != "" {
		return stated, true
	}
	if class != "" {
		profile, ok := v.ask(plan.Need{Cluster: v.in.Target.Cluster, Resource: kinds.StorageProfiles, Name: class})
		if !ok {
			return "", false
		}
		if mode := profileMode(profile.Object, volumeMode); mode != "" {
			return mode, true
		}
	}
	if v.in.Settings.AccessMode != "" {
		return v.in.Settings.AccessMode, true
	}
	return string(corev1.ReadWriteOnce), true
}

// profileMode is the best access mode that a StorageProfile offers for a
// volume mode. A claim without one has the mode Filesystem.
func profileMode(profile *unstructured.Unstructured, volumeMode string) string {
	if profile == nil {
		return ""
	}
	if volumeMode == "" {
		volumeMode = string(corev1.PersistentVolumeFilesystem)
	}
	sets := entries(profile.Object, "status", "claimPropertySets")
	if len(sets) == 0 {
		return ""
	}
	chosen := sets[0]
	for _, set := range sets {
		if text(set, "volumeMode") == volumeMode {
			chosen = set
			break
		}
	}
	best := ""
	for _, mode := range texts(chosen, "accessModes") {
		if best == "" || mode == string(corev1.ReadWriteMany) {
			best = mode
		}
	}
	return best
}
