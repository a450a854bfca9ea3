package virt

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// StorageClass names the class of the simulated volumes, which is the cluster's default.
const StorageClass = "simulated-block"

const (
	provisioner   = "simulated.csi.plimsoll.dev"
	unpurged      = "plimsoll.dev/unpurged" // on a volume that outlives its claim
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	cloneTypeNote = "cdi.kubevirt.io/cloneType"
)

func storageClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: StorageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: provisioner, ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete), VolumeBindingMode: new(storagev1.VolumeBindingImmediate),
		AllowVolumeExpansion: new(true),
	}
}

// syncVolume takes a data volume further; claims of the same name lead here too.
func (w *world) syncVolume(ctx context.Context, key string) (time.Duration, error) {
	dv, ok := w.volumes.get(key)
	pvc, claimed := w.claims.get(key)
	switch {
	case claimed && grows(pvc):
		return 0, w.expand(ctx, pvc)
	case claimed && !ok:
		return 0, w.provisionPlain(ctx, pvc)
	case !ok || dv.DeletionTimestamp != nil || dv.Status.Phase == cdi.Succeeded:
		return 0, nil
	}
	if claimed && !metav1.IsControlledBy(pvc, dv) {
		return 0, w.reportVolume(ctx, dv, cdi.Pending, "N/A", "the claim of this name belongs to somebody else")
	}
	source, clones, err := w.sourceOf(dv)
	if err != nil {
		return w.scaled(2 * time.Second), w.reportVolume(ctx, dv, cdi.Pending, "N/A", err.Error())
	}
	strategy := cdi.CDICloneStrategy("")
	if clones {
		strategy = w.strategy(dv)
		from, ok := w.claims.get(source)
		if !ok || from.Status.Phase != corev1.ClaimBound {
			return w.scaled(2 * time.Second), w.reportVolume(ctx, dv, cdi.Pending, "N/A", "No source PVC provided, or it is not bound: "+source)
		}
		if origin, ok := w.volumes.get(source); ok && origin.Status.Phase != cdi.Succeeded {
			return w.scaled(2 * time.Second), w.reportVolume(ctx, dv, cdi.Pending, "N/A", "the source "+source+" is not populated yet")
		}
	}
	if !claimed {
		made := newClaim(dv)
		if clones {
			metav1.SetMetaDataAnnotation(&made.ObjectMeta, cloneTypeNote, string(strategy))
		}
		if pvc, err = w.free.CoreV1().PersistentVolumeClaims(dv.Namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil {
			if apierrors.IsAlreadyExists(err) {
				err = errStale
			}
			return 0, err
		}
	}
	if clones {
		return w.syncClone(ctx, dv, pvc, source, strategy)
	}
	switch {
	case dv.Spec.Source == nil || dv.Spec.Source.Blank != nil:
		return w.finishVolume(ctx, dv, pvc, 0, "")
	case dv.Spec.Source.Upload != nil:
		return 0, w.reportVolume(ctx, dv, cdi.UploadReady, "N/A", "")
	case dv.Status.Phase != cdi.ImportScheduled && dv.Status.Phase != cdi.ImportInProgress:
		return 0, w.reportVolume(ctx, dv, cdi.ImportScheduled, "N/A", "")
	}
	left := w.left(dv.UID, "import", w.Figures.Import)
	if left > 0 {
		const quarters = 4
		quarter := max(w.Figures.Import/quarters, time.Millisecond)
		done := int((w.Figures.Import - left) / quarter)
		progress := cdi.DataVolumeProgress(fmt.Sprintf("%.2f%%", 100/float64(quarters)*float64(done)))
		return left - time.Duration(quarters-1-done)*quarter, w.reportVolume(ctx, dv, cdi.ImportInProgress, progress, "")
	}
	return w.finishVolume(ctx, dv, pvc, 0, "")
}

func (w *world) sourceOf(dv *cdi.DataVolume) (claim string, clones bool, err error) {
	if s := dv.Spec.Source; s != nil && s.PVC != nil {
		return cmp.Or(s.PVC.Namespace, dv.Namespace) + "/" + s.PVC.Name, true, nil
	}
	ref := dv.Spec.SourceRef
	if ref == nil {
		return "", false, nil
	}
	namespace := dv.Namespace
	if ref.Namespace != nil {
		namespace = *ref.Namespace
	}
	source, ok := w.sources.get(namespace + "/" + ref.Name)
	if !ok || source.Spec.Source.PVC == nil {
		return "", true, fmt.Errorf("the DataSource %s/%s is not there, or names no claim", namespace, ref.Name)
	}
	return cmp.Or(source.Spec.Source.PVC.Namespace, namespace) + "/" + source.Spec.Source.PVC.Name, true, nil
}

func (w *world) strategy(dv *cdi.DataVolume) cdi.CDICloneStrategy {
	profile, ok := w.profiles.get(*newClaim(dv).Spec.StorageClassName)
	switch {
	case ok && profile.Spec.CloneStrategy != nil:
		return *profile.Spec.CloneStrategy
	case ok && profile.Status.CloneStrategy != nil:
		return *profile.Status.CloneStrategy
	}
	return cdi.CloneStrategyCsiClone
}

func (w *world) syncClone(ctx context.Context, dv *cdi.DataVolume, pvc *corev1.PersistentVolumeClaim, source string, strategy cdi.CDICloneStrategy) (time.Duration, error) {
	if dv.Status.Phase == cdi.PhaseUnset || dv.Status.Phase == cdi.Pending {
		return 0, w.reportVolume(ctx, dv, cdi.CloneScheduled, "N/A", "")
	}
	busy := map[cdi.CDICloneStrategy]cdi.DataVolumePhase{cdi.CloneStrategyCsiClone: cdi.CSICloneInProgress,
		cdi.CloneStrategySnapshot: cdi.SnapshotForSmartCloneInProgress}[strategy]
	busy = cmp.Or(busy, cdi.CloneInProgress)
	if strategy == cdi.CloneStrategyHostAssisted && dv.Status.Phase == cdi.CloneScheduled {
		if slices.ContainsFunc(w.launchers.by(byClaim, source), alive) {
			if w.left(dv.UID, "in use", time.Hour) > time.Hour-time.Second {
				w.warn(ctx, dv, "DataVolume", "CloneSourceInUse", "pod uses the source of the clone: "+source)
			}
			return w.scaled(5 * time.Second), nil
		}
	}
	name := key(dv)
	w.mu.Lock()
	c, ok := w.cloning[name]
	if !ok {
		c = w.newClone(dv, pvc, source, strategy)
		w.cloning[name] = c
		if dv.Annotations[FaultAnnotation] == FaultStuck || w.every(w.Figures.StuckClones, "clones") {
			c.began = time.Now() // and never ends
		} else {
			w.wake(w.clones.add(time.Now(), c))
		}
	}
	began, made := c.began, c.made
	w.mu.Unlock()
	switch {
	case began.IsZero():
		return 0, nil
	case dv.Status.Phase != busy:
		progress := cdi.DataVolumeProgress("N/A")
		if strategy == cdi.CloneStrategyHostAssisted {
			progress = "0.00%"
		}
		return 0, w.reportVolume(ctx, dv, busy, progress, "")
	case made.IsZero():
		return 0, nil
	}
	left, err := w.finishVolume(ctx, dv, pvc, time.Until(made.Add(w.Figures.CloneFinish)), w.purge(dv, pvc, source, strategy))
	if left == 0 && err == nil && dv.Status.Phase == cdi.Succeeded {
		w.mu.Lock()
		delete(w.cloning, name)
		w.mu.Unlock()
	}
	return left, err
}

func (w *world) newClone(dv *cdi.DataVolume, pvc *corev1.PersistentVolumeClaim, source string, strategy cdi.CDICloneStrategy) *clone {
	size := pvc.Spec.Resources.Requests[corev1.ResourceStorage]
	c := &clone{key: key(dv), parent: source, work: w.Figures.CloneTime, locks: true, gib: float64(size.Value()) / (1 << 30)}
	switch strategy {
	case cdi.CloneStrategySnapshot:
		c.work += w.Figures.SnapshotTime
	case cdi.CloneStrategyHostAssisted:
		c.work, c.locks = time.Duration(float64(w.Figures.CopyPerGiB)*c.gib), false
	}
	return c
}

// purge returns the source of a volume that will outlive its claim, "" for others.
func (w *world) purge(dv *cdi.DataVolume, pvc *corev1.PersistentVolumeClaim, source string, strategy cdi.CDICloneStrategy) string {
	if strategy != cdi.CloneStrategyCsiClone || pvc.Spec.VolumeName != "" {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	counted := moment{dv.UID, "purge"}
	if _, again := w.moments[counted]; !again {
		w.moments[counted] = time.Time{}
		w.counted["of "+source]++
		if w.counted["of "+source] > w.Figures.PurgeLimit {
			w.moments[counted] = time.Now()
		}
	}
	if w.moments[counted].IsZero() {
		return ""
	}
	return source
}

// finishVolume binds a claim, and reports its volume as Succeeded once the time that is left has passed.
func (w *world) finishVolume(ctx context.Context, dv *cdi.DataVolume, pvc *corev1.PersistentVolumeClaim, left time.Duration, stays string) (time.Duration, error) {
	if pvc.Spec.VolumeName == "" {
		if err := w.provision(ctx, pvc, stays); err != nil {
			return 0, err
		}
	}
	if left > 0 {
		return left, nil
	}
	if pvc.Status.Phase != corev1.ClaimBound {
		return 0, nil // a change of the claim leads here again
	}
	w.forget(dv.UID, "import", "in use", "purge")
	return 0, w.reportVolume(ctx, dv, cdi.Succeeded, "100.0%", "")
}

// provision makes the volume of a claim, as a driver's provisioner does; the controller manager binds them.
func (w *world) provision(ctx context.Context, pvc *corev1.PersistentVolumeClaim, stays string) error {
	if pvc.UID == "" {
		return errStale
	}
	name := "pvc-" + string(pvc.UID)
	annotations := map[string]string{provisionedBy: provisioner}
	if stays != "" {
		annotations[unpurged] = stays
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: pvc.Spec.Resources.Requests[corev1.ResourceStorage]}, AccessModes: pvc.Spec.AccessModes,
			VolumeMode: pvc.Spec.VolumeMode, StorageClassName: StorageClass, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: provisioner, VolumeHandle: name}},
		},
	}
	if _, err := w.free.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create volume %s: %w", name, err)
	}
	return nil
}

// provisionPlain serves claims without a data volume.
func (w *world) provisionPlain(ctx context.Context, pvc *corev1.PersistentVolumeClaim) error {
	class := pvc.Spec.StorageClassName
	if pvc.Status.Phase != corev1.ClaimPending || pvc.Spec.VolumeName != "" || class == nil || *class != StorageClass || metav1.GetControllerOf(pvc) != nil {
		return nil
	}
	return w.provision(ctx, pvc, "")
}

// grows reports whether a bound claim asks for more than its volume has.
func grows(pvc *corev1.PersistentVolumeClaim) bool {
	class, asked := pvc.Spec.StorageClassName, pvc.Spec.Resources.Requests[corev1.ResourceStorage]
	return pvc.Status.Phase == corev1.ClaimBound && class != nil && *class == StorageClass && asked.Cmp(pvc.Status.Capacity[corev1.ResourceStorage]) > 0
}

// expand gives a claim and its volume the size that the claim asks for, as a driver's resizer does.
func (w *world) expand(ctx context.Context, pvc *corev1.PersistentVolumeClaim) error {
	asked := pvc.Spec.Resources.Requests[corev1.ResourceStorage]
	patch := fmt.Appendf(nil, `{"spec":{"capacity":{"storage":%q}}}`, asked.String())
	if _, err := w.free.CoreV1().PersistentVolumes().Patch(ctx, pvc.Spec.VolumeName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("expand volume %s: %w", pvc.Spec.VolumeName, err)
	}
	patch = fmt.Appendf(nil, `{"status":{"capacity":{"storage":%q}}}`, asked.String())
	if _, err := w.free.CoreV1().PersistentVolumeClaims(pvc.Namespace).Patch(ctx, pvc.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("expand claim %s: %w", key(pvc), err)
	}
	return nil
}

func newClaim(dv *cdi.DataVolume) *corev1.PersistentVolumeClaim {
	spec := corev1.PersistentVolumeClaimSpec{}
	if p := dv.Spec.PVC; p != nil {
		spec = *p.DeepCopy()
	} else if s := dv.Spec.Storage; s != nil {
		spec = corev1.PersistentVolumeClaimSpec{AccessModes: s.AccessModes, Resources: s.Resources, StorageClassName: s.StorageClassName, VolumeMode: s.VolumeMode}
		// A profile would fill these in.
		if len(spec.AccessModes) == 0 {
			spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}
		spec.VolumeMode = cmp.Or(spec.VolumeMode, new(corev1.PersistentVolumeBlock))
	}
	if spec.StorageClassName == nil || *spec.StorageClassName == "" {
		spec.StorageClassName = new(StorageClass)
	}
	if _, sized := spec.Resources.Requests[corev1.ResourceStorage]; !sized {
		spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")} // in a cluster, the source's size
	}
	labels := map[string]string{"app": "containerized-data-importer"}
	maps.Copy(labels, dv.Labels) // by which claims of machines are chosen
	made := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: dv.Namespace, Name: dv.Name, Labels: labels}, Spec: spec}
	made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Name: dv.Name, UID: dv.UID, Controller: new(true), BlockOwnerDeletion: new(true)}}
	return made
}

func (w *world) reportVolume(ctx context.Context, dv *cdi.DataVolume, phase cdi.DataVolumePhase, progress cdi.DataVolumeProgress, message string) error {
	if dv.Status.Phase == phase && dv.Status.Progress == progress {
		return nil
	}
	next := dv.DeepCopy()
	next.Status.ClaimName, next.Status.Phase, next.Status.Progress = dv.Name, phase, progress
	set := func(kind cdi.DataVolumeConditionType, is bool, reason, message string) {
		c := cdi.DataVolumeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}
		if is {
			c.Status = corev1.ConditionTrue
		}
		i := slices.IndexFunc(next.Status.Conditions, func(c cdi.DataVolumeCondition) bool { return c.Type == kind })
		if i < 0 {
			next.Status.Conditions = append(next.Status.Conditions, c)
			return
		}
		if next.Status.Conditions[i].Status == c.Status {
			c.LastTransitionTime = next.Status.Conditions[i].LastTransitionTime
		}
		next.Status.Conditions[i] = c
	}
	done := phase == cdi.Succeeded
	set(cdi.DataVolumeReady, done, "", message)
	set(cdi.DataVolumeBound, done, string(phase), message)
	set(cdi.DataVolumeRunning, !done && phase != cdi.Pending, string(phase), message)
	if _, err := w.free.volumes(dv.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report on data volume: %w", err)
	}
	return nil
}

func (w *world) wake(changed []*clone) {
	for _, c := range changed {
		w.volumeControl.queue.Add(c.key)
	}
	select {
	case w.cloned <- struct{}{}:
	default:
	}
}

func (w *world) runClones(ctx context.Context) error {
	for {
		w.mu.Lock()
		for _, c := range w.clones.advance(time.Now()) {
			w.volumeControl.queue.Add(c.key)
		}
		next, ok := w.clones.next()
		w.mu.Unlock()
		var timer <-chan time.Time
		if ok {
			timer = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.cloned:
		case <-timer:
		}
	}
}

func (w *world) syncProfile(ctx context.Context, name string) (time.Duration, error) {
	p, ok := w.profiles.get(name)
	if !ok {
		return 0, nil
	}
	next := p.DeepCopy()
	next.Status.StorageClass, next.Status.Provisioner = new(name), new(string(provisioner))
	next.Status.ClaimPropertySets = []cdi.ClaimPropertySet{{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, VolumeMode: new(corev1.PersistentVolumeBlock)}}
	next.Status.CloneStrategy = new(cdi.CloneStrategyCsiClone)
	if p.Spec.CloneStrategy != nil {
		next.Status.CloneStrategy = p.Spec.CloneStrategy
	}
	if p.Status.CloneStrategy != nil && *p.Status.CloneStrategy == *next.Status.CloneStrategy {
		return 0, nil
	}
	_, err := w.free.profiles().UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return 0, err
}

// syncPersistent removes a volume whose claim is gone, unless it cannot be purged.
func (w *world) syncPersistent(ctx context.Context, name string) (time.Duration, error) {
	pv, ok := w.persistent.get(name)
	if !ok || pv.DeletionTimestamp != nil || pv.Status.Phase != corev1.VolumeReleased || pv.Annotations[provisionedBy] != provisioner ||
		pv.Annotations[unpurged] != "" {
		return 0, nil
	}
	if err := w.free.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return 0, err
	}
	return 0, nil
}
