package virt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

const (
	kindMachine  = "VirtualMachine"
	kindInstance = "VirtualMachineInstance"
	apiVersion   = "kubevirt.io/v1"
)

type plan struct {
	start, stop bool
	served      int // requests for a change that are done
}

// decide plans by a machine's strategy and requests, its instance or nil, and whether its volumes are ready.
func decide(vm *kubevirt.VirtualMachine, vmi *kubevirt.VirtualMachineInstance, volumes bool) (p plan) {
	strategy, err := vm.RunStrategy()
	if err != nil {
		return p
	}
	requests := vm.Status.StateChangeRequests
	if len(requests) > 0 && requests[0].Action == kubevirt.StopRequest {
		if vmi != nil && requests[0].UID != nil && *requests[0].UID == vmi.UID {
			p.stop = vmi.DeletionTimestamp == nil
			return p
		}
		p.served++
		requests = requests[1:]
	}
	asked := len(requests) > 0 && requests[0].Action == kubevirt.StartRequest
	if asked && vmi != nil && !vmi.IsFinal() && vmi.DeletionTimestamp == nil {
		p.served++ // it runs
		asked = false
	}
	if vmi != nil {
		if vmi.DeletionTimestamp != nil {
			return p
		}
		switch strategy {
		case kubevirt.RunStrategyHalted:
			p.stop = !asked
		case kubevirt.RunStrategyAlways:
			p.stop = vmi.IsFinal()
		case kubevirt.RunStrategyRerunOnFailure:
			p.stop = vmi.Status.Phase == kubevirt.Failed || vmi.IsFinal() && asked
		default:
			p.stop = vmi.IsFinal() && asked
		}
		return p
	}
	switch strategy {
	case kubevirt.RunStrategyAlways, kubevirt.RunStrategyRerunOnFailure:
		p.start = true
	case kubevirt.RunStrategyOnce:
		p.start = !vm.Status.Created
	}
	if asked {
		p.start = true
		if volumes {
			p.served++
		}
	}
	p.start = p.start && volumes
	return p
}

func (w *world) syncMachine(ctx context.Context, key string) (time.Duration, error) {
	vm, ok := w.machines.get(key)
	if !ok {
		return 0, nil
	}
	vmi, running := w.instances.get(key)
	if running && !metav1.IsControlledBy(vmi, vm) {
		return 0, nil // another owner's, of the same name
	}
	if !running {
		vmi = nil
	}
	if vm.DeletionTimestamp != nil {
		switch {
		case vmi != nil && vmi.DeletionTimestamp == nil:
			return 0, w.control.instances(vm.Namespace).Delete(ctx, vm.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &vmi.UID}})
		case vmi == nil && slices.Contains(vm.Finalizers, kubevirt.VirtualMachineControllerFinalizer):
			_, err := w.control.machines(vm.Namespace).Patch(ctx, vm.Name, types.MergePatchType, finalizers(vm, kubevirt.VirtualMachineControllerFinalizer, false), metav1.PatchOptions{})
			return 0, err
		}
		return 0, w.reportMachine(ctx, vm, vmi, false, 0)
	}
	if !slices.Contains(vm.Finalizers, kubevirt.VirtualMachineControllerFinalizer) {
		var err error
		vm, err = w.control.machines(vm.Namespace).Patch(ctx, vm.Name, types.MergePatchType, finalizers(vm, kubevirt.VirtualMachineControllerFinalizer, true), metav1.PatchOptions{})
		if err != nil {
			return 0, fmt.Errorf("add finalizer: %w", err)
		}
	}
	volumes, err := w.volumesOf(ctx, vm)
	if err != nil {
		return 0, err
	}
	p := decide(vm, vmi, volumes)
	switch {
	case p.stop:
		err := w.control.instances(vm.Namespace).Delete(ctx, vm.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &vmi.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("stop: %w", err)
		}
	case p.start:
		made, err := w.control.instances(vm.Namespace).Create(ctx, newInstance(vm, w.defaultEviction()), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return 0, errStale
		}
		if err != nil {
			return 0, fmt.Errorf("create instance: %w", err)
		}
		vmi = made
	}
	return 0, w.reportMachine(ctx, vm, vmi, volumes, p.served)
}

// volumesOf makes the data volumes of a machine's templates, and reports whether all are ready.
func (w *world) volumesOf(ctx context.Context, vm *kubevirt.VirtualMachine) (all bool, err error) {
	all = true
	for i := range vm.Spec.DataVolumeTemplates {
		t := &vm.Spec.DataVolumeTemplates[i]
		dv, ok := w.volumes.get(vm.Namespace + "/" + t.Name)
		if ok {
			all = all && dv.Status.Phase == cdi.Succeeded
			continue
		}
		all = false
		made := &cdi.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: t.Name, Labels: t.Labels, Annotations: t.Annotations,
			OwnerReferences: []metav1.OwnerReference{owner(vm, kindMachine)}}, Spec: t.Spec}
		if _, err := w.control.volumes(vm.Namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return false, fmt.Errorf("create data volume %s: %w", t.Name, err)
		}
	}
	return all, nil
}

func (w *world) defaultEviction() *kubevirt.EvictionStrategy {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.config.EvictionStrategy
}

func owner(o metav1.Object, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: new(true), BlockOwnerDeletion: new(true)}
}

func finalizers(o metav1.Object, name string, add bool) []byte {
	list := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == name })
	if add {
		list = append(list, name)
	}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": list, "resourceVersion": o.GetResourceVersion()}})
	return patch
}

func newInstance(vm *kubevirt.VirtualMachine, eviction *kubevirt.EvictionStrategy) *kubevirt.VirtualMachineInstance {
	t := vm.Spec.Template.DeepCopy()
	vmi := &kubevirt.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: vm.Name,
		Labels: t.ObjectMeta.Labels, Annotations: t.ObjectMeta.Annotations, Finalizers: []string{kubevirt.VirtualMachineInstanceFinalizer},
		OwnerReferences: []metav1.OwnerReference{owner(vm, kindMachine)}}, Spec: t.Spec}
	vmi.Spec.EvictionStrategy = cmp.Or(vmi.Spec.EvictionStrategy, eviction)
	enter(vmi, kubevirt.Pending)
	return vmi
}

func (w *world) reportMachine(ctx context.Context, vm *kubevirt.VirtualMachine, vmi *kubevirt.VirtualMachineInstance, volumes bool, served int) error {
	next := vm.DeepCopy()
	s := &next.Status
	s.StateChangeRequests = s.StateChangeRequests[min(served, len(s.StateChangeRequests)):]
	s.Created = vmi != nil
	s.Ready = vmi != nil && instanceIs(vmi, kubevirt.VirtualMachineInstanceReady)
	s.PrintableStatus = printable(vm, vmi, volumes)
	s.ObservedGeneration, s.DesiredGeneration = vm.Generation, vm.Generation
	s.RunStrategy, _ = vm.RunStrategy()
	ready := kubevirt.VirtualMachineCondition{Type: kubevirt.VirtualMachineReady, Status: corev1.ConditionFalse, Reason: "VMINotExists", Message: "VMI does not exist"}
	if s.Ready {
		ready = kubevirt.VirtualMachineCondition{Type: kubevirt.VirtualMachineReady, Status: corev1.ConditionTrue}
	} else if vmi != nil {
		ready.Reason, ready.Message = "GuestNotRunning", "Guest VM is not reported as running"
	}
	report(s, ready, true)
	report(s, kubevirt.VirtualMachineCondition{Type: kubevirt.VirtualMachinePaused, Status: corev1.ConditionTrue}, vmi != nil && instanceIs(vmi, kubevirt.VirtualMachineInstancePaused))
	report(s, kubevirt.VirtualMachineCondition{Type: kubevirt.VirtualMachineRestartRequired, Status: corev1.ConditionTrue, Reason: "RestartRequired", Message: "a non-live-updatable field was changed in the template spec"}, outgrown(vm, vmi))
	if equality.Semantic.DeepEqual(vm.Status, next.Status) {
		return nil
	}
	if _, err := w.control.machines(vm.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report on machine: %w", err)
	}
	return nil
}

// report sets a condition of a machine, or removes it.
func report(s *kubevirt.VirtualMachineStatus, c kubevirt.VirtualMachineCondition, there bool) {
	c.LastTransitionTime = metav1.Now()
	i := slices.IndexFunc(s.Conditions, func(was kubevirt.VirtualMachineCondition) bool { return was.Type == c.Type })
	switch {
	case i < 0 && there:
		s.Conditions = append(s.Conditions, c)
	case i >= 0 && !there:
		s.Conditions = slices.Delete(s.Conditions, i, i+1)
	case i >= 0:
		if was := s.Conditions[i]; was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
		s.Conditions[i] = c
	}
}

// outgrown reports whether a machine has another size than its instance: a restart applies it.
func outgrown(vm *kubevirt.VirtualMachine, vmi *kubevirt.VirtualMachineInstance) bool {
	if vmi == nil {
		return false
	}
	want, has := &vm.Spec.Template.Spec.Domain, &vmi.Spec.Domain
	return !equality.Semantic.DeepEqual(want.CPU, has.CPU) || !equality.Semantic.DeepEqual(want.Memory, has.Memory) || !equality.Semantic.DeepEqual(want.Resources, has.Resources)
}

// printable returns the status that a user sees first.
func printable(vm *kubevirt.VirtualMachine, vmi *kubevirt.VirtualMachineInstance, volumes bool) kubevirt.VirtualMachinePrintableStatus {
	strategy, _ := vm.RunStrategy()
	switch {
	case vm.DeletionTimestamp != nil:
		return kubevirt.VirtualMachineStatusTerminating
	case vmi == nil && !volumes:
		return kubevirt.VirtualMachineStatusProvisioning
	case vmi == nil && strategy == kubevirt.RunStrategyAlways:
		return kubevirt.VirtualMachineStatusStarting
	case vmi == nil:
		return kubevirt.VirtualMachineStatusStopped
	case vmi.DeletionTimestamp != nil:
		return kubevirt.VirtualMachineStatusStopping
	case vmi.IsFinal():
		return kubevirt.VirtualMachineStatusStopped
	case migrating(vmi):
		return kubevirt.VirtualMachineStatusMigrating
	case instanceIs(vmi, kubevirt.VirtualMachineInstancePaused):
		return kubevirt.VirtualMachineStatusPaused
	case vmi.Status.Phase == kubevirt.Running:
		return kubevirt.VirtualMachineStatusRunning
	case slices.ContainsFunc(vmi.Status.Conditions, func(c kubevirt.VirtualMachineInstanceCondition) bool {
		return string(c.Type) == string(corev1.PodScheduled) && c.Status == corev1.ConditionFalse
	}):
		return kubevirt.VirtualMachineStatusUnschedulable
	}
	return kubevirt.VirtualMachineStatusStarting
}
