package virt

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirt "kubevirt.io/api/core/v1"
)

func migrating(vmi *kubevirt.VirtualMachineInstance) bool {
	m := vmi.Status.MigrationState
	return m != nil && !m.Completed && !m.Failed
}

const targetPatience = 5 * time.Minute // with an unschedulable target

// progressTimeout bounds a migration without progress, unless the resource KubeVirt sets another bound.
const progressTimeout = 150 * time.Second

func (w *world) syncMigration(ctx context.Context, key string) (time.Duration, error) {
	m, ok := w.migrations.get(key)
	if !ok {
		return 0, nil
	}
	if m.IsFinal() || m.DeletionTimestamp != nil {
		w.leave(m)
		return 0, nil
	}
	vmi, there := w.instances.get(m.Namespace + "/" + m.Spec.VMIName)
	state := (*kubevirt.VirtualMachineInstanceMigrationState)(nil)
	if there {
		if state = vmi.Status.MigrationState; state != nil && state.MigrationUID != m.UID {
			state = nil
		}
	}
	if state != nil && state.Completed {
		return 0, w.stepMigration(ctx, m, state, kubevirt.MigrationSucceeded)
	}
	if !there || vmi.IsFinal() || vmi.DeletionTimestamp != nil || vmi.Status.Phase == kubevirt.Running && !instanceIs(vmi, kubevirt.VirtualMachineInstanceIsMigratable) {
		return 0, w.failMigration(ctx, m, vmi, "the machine does not run, or cannot be migrated")
	}
	var target *corev1.Pod
	for _, pod := range w.launchers.by(byOwner, string(vmi.UID)) {
		if pod.Labels[kubevirt.MigrationJobLabel] == string(m.UID) {
			target = pod
		}
	}
	switch m.Status.Phase {
	case kubevirt.MigrationPhaseUnset:
		return 0, w.stepMigration(ctx, m, nil, kubevirt.MigrationPending)
	case kubevirt.MigrationPending:
		if vmi.Status.Phase != kubevirt.Running || migrating(vmi) {
			return w.scaled(5 * time.Second), nil
		}
		w.mu.Lock()
		begin := w.gate.ask(candidate{m.UID, key, vmi.Status.NodeName})
		w.mu.Unlock()
		if !begin {
			return 0, nil // the queue brings it back when there is room
		}
		if target == nil {
			pod := w.newLauncher(vmi, m.UID)
			pod.Labels[kubevirt.MigrationJobLabel] = string(m.UID)
			pod.Annotations[kubevirt.MigrationJobNameAnnotation] = m.Name
			avoid(pod, vmi.Status.NodeName)
			if _, err := w.control.CoreV1().Pods(m.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return 0, fmt.Errorf("create target launcher: %w", err)
			}
		}
		return 0, w.stepMigration(ctx, m, nil, kubevirt.MigrationScheduling)
	}
	// The next phases may have begun in another process.
	w.mu.Lock()
	if _, ok := w.gate.from[m.UID]; !ok {
		w.gate.from[m.UID] = vmi.Status.NodeName
	}
	w.mu.Unlock()
	switch m.Status.Phase {
	case kubevirt.MigrationScheduling:
		switch {
		case target != nil && !alive(target):
			return 0, w.failMigration(ctx, m, vmi, "the target's launcher has ended")
		case target == nil || !podIs(target, corev1.ContainersReady, corev1.ConditionTrue):
			left := w.left(m.UID, "target", w.scaled(targetPatience))
			if left <= 0 {
				return 0, w.failMigration(ctx, m, vmi, "the target's launcher was not scheduled in time")
			}
			return left, nil
		}
		w.forget(m.UID, "target")
		return 0, w.stepMigration(ctx, m, nil, kubevirt.MigrationScheduled)
	case kubevirt.MigrationScheduled:
		if target == nil {
			return 0, w.failMigration(ctx, m, vmi, "the target's launcher is gone")
		}
		if state == nil {
			next := vmi.DeepCopy()
			next.Status.MigrationState = &kubevirt.VirtualMachineInstanceMigrationState{
				MigrationUID: m.UID, SourceNode: vmi.Status.NodeName, SourcePod: currentLauncher(vmi), TargetNode: target.Spec.NodeName, TargetPod: target.Name,
				Mode: kubevirt.MigrationPreCopy,
			}
			metav1.SetMetaDataLabel(&next.ObjectMeta, kubevirt.MigrationTargetNodeNameLabel, target.Spec.NodeName)
			if _, err := w.control.instances(m.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil {
				return 0, fmt.Errorf("hand over to the target: %w", err)
			}
			return 0, nil
		}
		return 0, w.stepMigration(ctx, m, state, kubevirt.MigrationPreparingTarget)
	case kubevirt.MigrationPreparingTarget:
		if left := w.left(m.UID, "prepare", w.Figures.MigratePrepare); left > 0 {
			return left, nil
		}
		w.forget(m.UID, "prepare")
		return 0, w.stepMigration(ctx, m, state, kubevirt.MigrationTargetReady)
	case kubevirt.MigrationTargetReady:
		if state != nil && state.StartTimestamp == nil {
			next := vmi.DeepCopy()
			next.Status.MigrationState.StartTimestamp = new(metav1.Now())
			next.Status.MigrationState.TargetNodeDomainDetected = true
			_, err := w.free.instances(m.Namespace).Update(ctx, next, metav1.UpdateOptions{})
			return 0, err
		}
		w.mu.Lock()
		_, again := w.moments[moment{m.UID, "moving"}]
		stuck := !again && w.every(w.Figures.StuckMigrations, "migrations")
		w.mu.Unlock()
		if stuck || m.Annotations[FaultAnnotation] == FaultStuck || w.faultOf(vmi) == FaultStuckMigration {
			w.since(m.UID, "stuck")
		}
		w.since(m.UID, "moving")
		return 0, w.stepMigration(ctx, m, state, kubevirt.MigrationRunning)
	case kubevirt.MigrationRunning:
		w.mu.Lock()
		_, stuck := w.moments[moment{m.UID, "stuck"}]
		patience := time.Duration(progressTimeout)
		if c := w.config.MigrationConfiguration; c != nil && c.ProgressTimeout != nil {
			patience = time.Duration(*c.ProgressTimeout) * time.Second
		}
		w.mu.Unlock()
		takes := w.migrationTime(vmi)
		if stuck {
			takes = w.scaled(patience)
		}
		if left := w.left(m.UID, "moving", takes); left > 0 {
			return left, nil
		}
		switch {
		case stuck:
			return 0, w.failMigration(ctx, m, vmi, fmt.Sprintf("Live migration stuck for %d seconds and has been aborted", int(patience.Seconds())))
		case target == nil || !alive(target):
			return 0, w.failMigration(ctx, m, vmi, "the target's launcher is gone")
		case state == nil:
			return 0, errStale
		}
		next := vmi.DeepCopy()
		s := next.Status.MigrationState
		s.Completed, s.EndTimestamp = true, new(metav1.Now())
		next.Status.NodeName = s.TargetNode
		next.Labels[kubevirt.NodeNameLabel] = s.TargetNode
		next.Status.ActivePods = map[types.UID]string{target.UID: s.TargetNode}
		next.Status.EvacuationNodeName = ""
		delete(next.Labels, kubevirt.MigrationTargetNodeNameLabel)
		if _, err := w.free.instances(m.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil {
			return 0, fmt.Errorf("end migration: %w", err)
		}
		if err := w.free.CoreV1().Pods(m.Namespace).Delete(ctx, s.SourcePod, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("remove the source's launcher: %w", err)
		}
		return 0, w.stepMigration(ctx, m, s, kubevirt.MigrationSucceeded)
	}
	return 0, nil
}

func (w *world) faultOf(vmi *kubevirt.VirtualMachineInstance) string {
	if vm, ok := w.machines.get(key(vmi)); ok {
		return vm.Annotations[FaultAnnotation]
	}
	return vmi.Annotations[FaultAnnotation]
}

func (w *world) stepMigration(ctx context.Context, m *kubevirt.VirtualMachineInstanceMigration, state *kubevirt.VirtualMachineInstanceMigrationState, phase kubevirt.VirtualMachineInstanceMigrationPhase) error {
	next := m.DeepCopy()
	next.Status.Phase = phase
	next.Status.PhaseTransitionTimestamps = append(next.Status.PhaseTransitionTimestamps,
		kubevirt.VirtualMachineInstanceMigrationPhaseTransitionTimestamp{Phase: phase, PhaseTransitionTimestamp: metav1.Now()})
	if state != nil {
		next.Status.MigrationState = state
	}
	client := w.control
	if phase == kubevirt.MigrationRunning || phase == kubevirt.MigrationTargetReady {
		client = w.free // virt-handler writes these
	}
	if _, err := client.migrations(m.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("take migration to %s: %w", phase, err)
	}
	if next.IsFinal() {
		w.leave(m)
	}
	return nil
}

func (w *world) failMigration(ctx context.Context, m *kubevirt.VirtualMachineInstanceMigration, vmi *kubevirt.VirtualMachineInstance, why string) error {
	state := &kubevirt.VirtualMachineInstanceMigrationState{MigrationUID: m.UID}
	if vmi != nil {
		if s := vmi.Status.MigrationState; s != nil && s.MigrationUID == m.UID {
			next := vmi.DeepCopy()
			state = next.Status.MigrationState
			if !state.Failed {
				state.Failed, state.FailureReason, state.EndTimestamp = true, why, new(metav1.Now())
				if _, err := w.free.instances(m.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil {
					return fmt.Errorf("fail migration: %w", err)
				}
			}
		}
		for _, pod := range w.launchers.by(byOwner, string(vmi.UID)) {
			if pod.Labels[kubevirt.MigrationJobLabel] == string(m.UID) && pod.DeletionTimestamp == nil {
				if err := w.free.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					return fmt.Errorf("remove the target's launcher: %w", err)
				}
			}
		}
	}
	state.Failed, state.FailureReason = true, why
	w.warn(ctx, m, "VirtualMachineInstanceMigration", "FailedMigration", why)
	return w.stepMigration(ctx, m, state, kubevirt.MigrationFailed)
}

func (w *world) leave(m *kubevirt.VirtualMachineInstanceMigration) {
	w.mu.Lock()
	keys := w.gate.done(m.UID)
	w.mu.Unlock()
	w.forget(m.UID, "target", "prepare", "moving", "stuck")
	for _, key := range keys {
		w.migrationControl.queue.Add(key)
	}
}

func avoid(pod *corev1.Pod, node string) {
	pod.Spec.Affinity = cmp.Or(pod.Spec.Affinity, &corev1.Affinity{})
	a := pod.Spec.Affinity
	a.NodeAffinity = cmp.Or(a.NodeAffinity, &corev1.NodeAffinity{})
	elsewhere := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}}
	required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	}
	for i := range required.NodeSelectorTerms {
		required.NodeSelectorTerms[i].MatchExpressions = append(required.NodeSelectorTerms[i].MatchExpressions, elsewhere)
	}
}

// evacuate moves an instance away from a node that is drained, once the limits leave room.
func (w *world) evacuate(ctx context.Context, vmi *kubevirt.VirtualMachineInstance) (time.Duration, error) {
	node := vmi.Status.EvacuationNodeName
	if node == "" || node != vmi.Status.NodeName || migrating(vmi) {
		return 0, nil
	}
	again := w.scaled(5 * time.Second)
	n := 0
	for _, m := range w.migrations.by(byOwner, key(vmi)) {
		if !m.IsFinal() {
			return again, nil
		}
		n++
	}
	w.mu.Lock()
	room := w.gate.room(node)
	w.mu.Unlock()
	if !room {
		return again, nil
	}
	made := &kubevirt.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{Namespace: vmi.Namespace, Name: fmt.Sprintf("kubevirt-evacuation-%s-%d", launcherName(vmi, vmi.UID)[len("virt-launcher-"):], n),
			Annotations: map[string]string{kubevirt.EvacuationMigrationAnnotation: node}, Labels: map[string]string{kubevirt.MigrationSelectorLabel: vmi.Name}},
		Spec: kubevirt.VirtualMachineInstanceMigrationSpec{VMIName: vmi.Name},
	}
	if _, err := w.control.migrations(vmi.Namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, fmt.Errorf("evacuate: %w", err)
	}
	return again, nil
}

func (w *world) warn(ctx context.Context, o metav1.Object, kind, reason, message string) {
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: o.GetNamespace(), GenerateName: o.GetName() + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: "virt-controller"}, ReportingController: "virt-controller",
	}
	if _, err := w.free.CoreV1().Events(o.GetNamespace()).Create(ctx, event, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
		w.Log.Warn("event was not written", "reason", reason, "error", err)
	}
}
