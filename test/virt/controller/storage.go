package controller

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

const (
	// selectedNode is how the scheduler tells a provisioner where a claim is needed.
	selectedNode = "volume.kubernetes.io/selected-node"
	// protection keeps a claim while somebody uses it.
	protection = "kubernetes.io/pvc-protection"
)

// storage is what is known of the claims and data volumes behind volumes, by name; one
// that does not exist is nil.
type storage struct {
	claims  map[string]*corev1.PersistentVolumeClaim
	volumes map[string]*cdiv1.DataVolume
}

// claimName is the claim behind a volume; a data volume has the name of its claim.
func claimName(volume kubevirtv1.Volume) string {
	switch {
	case volume.DataVolume != nil:
		return volume.DataVolume.Name
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	}
	return ""
}

// readStorage reads the claims and data volumes of the machine and of its instance.
func (p *player) readStorage(ctx context.Context, s *state) error {
	s.store = storage{claims: map[string]*corev1.PersistentVolumeClaim{}, volumes: map[string]*cdiv1.DataVolume{}}
	namespace := ""
	var volumes []kubevirtv1.Volume
	if s.vm != nil && s.vm.Spec.Template != nil {
		namespace = s.vm.Namespace
		volumes = append(volumes, s.vm.Spec.Template.Spec.Volumes...)
	}
	if s.vmi != nil {
		namespace = s.vmi.Namespace
		volumes = append(volumes, s.vmi.Spec.Volumes...)
	}
	for _, volume := range volumes {
		name := claimName(volume)
		if _, known := s.store.claims[name]; known || name == "" {
			continue
		}
		claim, err := p.getClaim(ctx, namespace, name)
		if err != nil {
			return err
		}
		s.store.claims[name] = claim
	}
	return p.readDataVolumes(ctx, s, namespace, volumes)
}

func (p *player) readDataVolumes(ctx context.Context, s *state, namespace string, volumes []kubevirtv1.Volume) error {
	var names []string
	for _, volume := range volumes {
		if volume.DataVolume != nil {
			names = append(names, volume.DataVolume.Name)
		}
	}
	if s.vm != nil {
		for _, template := range s.vm.Spec.DataVolumeTemplates {
			names = append(names, template.Name)
		}
	}
	for _, name := range names {
		if _, known := s.store.volumes[name]; known {
			continue
		}
		volume, err := p.getDataVolume(ctx, namespace, name)
		if err != nil {
			return err
		}
		s.store.volumes[name] = volume
	}
	return nil
}

// makeDataVolumes makes the data volumes that a machine has templates of.
func (p *player) makeDataVolumes(ctx context.Context, s *state) error {
	if s.vm == nil || s.vm.DeletionTimestamp != nil || !p.hasDataVolumes {
		return nil
	}
	for _, template := range s.vm.Spec.DataVolumeTemplates {
		if s.store.volumes[template.Name] != nil {
			continue
		}
		volume := &cdiv1.DataVolume{
			TypeMeta:   metav1.TypeMeta{APIVersion: dataVolumes.GroupVersion().String(), Kind: "DataVolume"},
			ObjectMeta: *template.ObjectMeta.DeepCopy(),
			Spec:       *template.Spec.DeepCopy(),
		}
		volume.Namespace = s.vm.Namespace
		volume.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.vm, kubevirtv1.VirtualMachineGroupVersionKind)}
		raw, err := content(volume)
		if err != nil {
			return err
		}
		created, err := p.client.Resource(dataVolumes).Namespace(s.vm.Namespace).Create(ctx, object(raw), metav1.CreateOptions{FieldManager: FieldManager})
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			s.failure = &failure{"FailedCreate", "Error encountered while creating DataVolumes: " + err.Error()}
			return nil
		}
		if err != nil {
			return err
		}
		if s.store.volumes[template.Name], err = as[cdiv1.DataVolume](created); err != nil {
			return err
		}
		p.Log.Info("data volume made", "namespace", s.vm.Namespace, "machine", s.vm.Name, "dataVolume", template.Name)
	}
	return nil
}

// done tells whether a data volume no longer stands in the way of a start.
func done(volume *cdiv1.DataVolume) bool {
	switch volume.Status.Phase {
	case cdiv1.Succeeded, cdiv1.WaitForFirstConsumer, cdiv1.PendingPopulation:
		return true
	}
	return false
}

// templatesReady tells whether all data volumes of the machine's templates are done.
func (s storage) templatesReady(vm *kubevirtv1.VirtualMachine) bool {
	for _, template := range vm.Spec.DataVolumeTemplates {
		if volume := s.volumes[template.Name]; volume == nil || !done(volume) {
			return false
		}
	}
	return true
}

// imported tells whether the data volumes among the volumes are done. Without data
// volume a claim of the name will do.
func (s storage) imported(volumes []kubevirtv1.Volume) bool {
	for _, volume := range volumes {
		if volume.DataVolume == nil {
			continue
		}
		if v := s.volumes[volume.DataVolume.Name]; v != nil && !done(v) {
			return false
		}
	}
	return true
}

// missing returns the first claim that does not exist.
func (s storage) missing(volumes []kubevirtv1.Volume) string {
	for _, volume := range volumes {
		if name := claimName(volume); name != "" && s.claims[name] == nil {
			return name
		}
	}
	return ""
}

// bound tells whether all claims are bound.
func (s storage) bound(volumes []kubevirtv1.Volume) bool {
	for _, volume := range volumes {
		if name := claimName(volume); name != "" && (s.claims[name] == nil || s.claims[name].Status.Phase != corev1.ClaimBound) {
			return false
		}
	}
	return true
}

// unbound tells whether a claim exists that is not bound.
func (s storage) unbound(volumes []kubevirtv1.Volume) bool {
	for _, volume := range volumes {
		if claim := s.claims[claimName(volume)]; claim != nil && claim.Status.Phase != corev1.ClaimBound {
			return true
		}
	}
	return false
}

// provisioning tells whether a data volume is being imported.
func (s storage) provisioning(volumes []kubevirtv1.Volume) bool {
	for _, volume := range volumes {
		if volume.DataVolume == nil {
			continue
		}
		if v := s.volumes[volume.DataVolume.Name]; v != nil && !done(v) {
			return true
		}
	}
	return false
}

// importFailed tells whether an import has failed.
func (s storage) importFailed(volumes []kubevirtv1.Volume) bool {
	for _, volume := range volumes {
		if volume.DataVolume == nil {
			continue
		}
		if v := s.volumes[volume.DataVolume.Name]; v != nil && v.Status.Phase == cdiv1.Failed {
			return true
		}
	}
	return false
}

// selectNode tells the provisioners of claims that wait for their first consumer
// which node it is on.
func (p *player) selectNode(ctx context.Context, s *state, volumes []kubevirtv1.Volume) error {
	for _, volume := range volumes {
		claim := s.store.claims[claimName(volume)]
		if claim == nil || claim.Status.Phase == corev1.ClaimBound || claim.Annotations[selectedNode] != "" || claim.Spec.StorageClassName == nil {
			continue
		}
		class, err := p.getStorageClass(ctx, *claim.Spec.StorageClassName)
		if err != nil {
			return err
		}
		if class == nil || class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
			continue
		}
		fields := map[string]any{"metadata": map[string]any{"annotations": map[string]any{selectedNode: p.Node}}}
		if _, err := p.patch(ctx, claims, claim, fields); err != nil {
			return err
		}
	}
	return nil
}

// protectClaim lets a claim go that is being deleted and that no instance uses.
func (p *player) protectClaim(ctx context.Context, k key) error {
	claim, err := p.getClaim(ctx, k.namespace, k.name)
	if err != nil || claim == nil || claim.DeletionTimestamp == nil || !slices.Contains(claim.Finalizers, protection) {
		return err
	}
	users, err := p.instances.ByIndex(byClaim, k.namespace+"/"+k.name)
	if err != nil {
		return err
	}
	for _, user := range users {
		raw, ok := user.(interface{ GetName() string })
		if !ok {
			continue
		}
		vmi, err := p.getInstance(ctx, k.namespace, raw.GetName())
		if err != nil {
			return err
		}
		if vmi != nil && !vmi.IsFinal() {
			return nil
		}
	}
	_, err = p.patch(ctx, claims, claim, map[string]any{"metadata": map[string]any{"finalizers": without(claim.Finalizers, protection)}})
	return err
}
