package virt

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	kubevirt "kubevirt.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
)

func enter(vmi *kubevirt.VirtualMachineInstance, phase kubevirt.VirtualMachineInstancePhase) {
	vmi.Status.Phase = phase
	vmi.Status.PhaseTransitionTimestamps = append(vmi.Status.PhaseTransitionTimestamps,
		kubevirt.VirtualMachineInstancePhaseTransitionTimestamp{Phase: phase, PhaseTransitionTimestamp: metav1.Now()})
}

// note sets a condition of an instance and reports whether that changed it.
func note(vmi *kubevirt.VirtualMachineInstance, kind kubevirt.VirtualMachineInstanceConditionType, is bool, reason, message string) bool {
	c := kubevirt.VirtualMachineInstanceCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
	if is {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "", ""
	}
	i := slices.IndexFunc(vmi.Status.Conditions, func(c kubevirt.VirtualMachineInstanceCondition) bool { return c.Type == kind })
	if i < 0 {
		vmi.Status.Conditions = append(vmi.Status.Conditions, c)
		return true
	}
	was := &vmi.Status.Conditions[i]
	if was.Status == c.Status && was.Reason == c.Reason {
		return false
	}
	*was = c
	return true
}

func instanceIs(vmi *kubevirt.VirtualMachineInstance, kind kubevirt.VirtualMachineInstanceConditionType) bool {
	return slices.ContainsFunc(vmi.Status.Conditions, func(c kubevirt.VirtualMachineInstanceCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func podIs(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == status })
}

// alive reports whether a launcher will stay.
func alive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

// launcherOf returns the launcher in which an instance runs or will run, or nil.
func (w *world) launcherOf(vmi *kubevirt.VirtualMachineInstance) *corev1.Pod {
	for _, pod := range w.launchers.by(byOwner, string(vmi.UID)) {
		if vmi.Status.NodeName == "" && pod.Labels[kubevirt.MigrationJobLabel] == "" || vmi.Status.NodeName != "" && pod.Name == currentLauncher(vmi) {
			return pod
		}
	}
	return nil
}

// currentLauncher returns the pod in which an instance runs: that of its start, or of its last migration.
func currentLauncher(vmi *kubevirt.VirtualMachineInstance) string {
	if m := vmi.Status.MigrationState; m != nil && m.Completed && !m.Failed {
		return m.TargetPod
	} else if m != nil && m.SourcePod != "" {
		return m.SourcePod
	}
	return launcherName(vmi, vmi.UID)
}

// launcherName is the same for the same reason, so that no launcher is made twice.
func launcherName(vmi *kubevirt.VirtualMachineInstance, reason types.UID) string {
	h := fnv.New32a()
	h.Write([]byte(reason))
	name := vmi.Name
	if len(name) > 40 {
		name = name[:40]
	}
	suffix := rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
	return "virt-launcher-" + name + "-" + suffix[:min(5, len(suffix))]
}

func (w *world) syncInstance(ctx context.Context, key string) (time.Duration, error) {
	vmi, ok := w.instances.get(key)
	if !ok {
		return 0, nil
	}
	client := w.control.instances(vmi.Namespace)
	pod := w.launcherOf(vmi)
	if vmi.DeletionTimestamp != nil {
		return w.endInstance(ctx, vmi)
	}
	next := vmi.DeepCopy()
	switch vmi.Status.Phase {
	case kubevirt.VmPhaseUnset, kubevirt.Pending:
		if pod == nil {
			pod = w.newLauncher(vmi, vmi.UID)
			if _, err := w.control.CoreV1().Pods(vmi.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return 0, fmt.Errorf("create launcher: %w", err)
			}
		}
		if vmi.Status.Phase == kubevirt.VmPhaseUnset {
			enter(next, kubevirt.Pending)
		}
		if !slices.Contains(next.Finalizers, kubevirt.VirtualMachineInstanceFinalizer) {
			next.Finalizers = append(next.Finalizers, kubevirt.VirtualMachineInstanceFinalizer)
		}
		enter(next, kubevirt.Scheduling)
		note(next, kubevirt.VirtualMachineInstanceReady, false, "GuestNotRunning", "Guest VM is not reported as running")
	case kubevirt.Scheduling:
		switch {
		case pod == nil:
			return w.scaled(time.Second), nil // the store shows it in a moment
		case !alive(pod):
			w.fail(next)
		case podIs(pod, corev1.ContainersReady, corev1.ConditionTrue):
			next.Status.NodeName = pod.Spec.NodeName
			next.Status.ActivePods = map[types.UID]string{pod.UID: pod.Spec.NodeName}
			metav1.SetMetaDataLabel(&next.ObjectMeta, kubevirt.NodeNameLabel, pod.Spec.NodeName)
			next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c kubevirt.VirtualMachineInstanceCondition) bool {
				return string(c.Type) == string(corev1.PodScheduled)
			})
			enter(next, kubevirt.Scheduled)
		default:
			i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
			})
			if i < 0 || !note(next, kubevirt.VirtualMachineInstanceConditionType(corev1.PodScheduled), false, corev1.PodReasonUnschedulable, pod.Status.Conditions[i].Message) {
				return 0, nil
			}
		}
	case kubevirt.Scheduled:
		// From here on the node's virt-handler writes, by a limit of its own.
		client = w.free.instances(vmi.Namespace)
		if pod == nil || !alive(pod) {
			w.fail(next)
			break
		}
		if left := w.bootTurn(vmi); left > 0 {
			return left, nil
		}
		address := w.guests.address(vmi.UID)
		port, err := w.startReal(vmi, address)
		if err != nil {
			return 0, err
		}
		if port > 0 {
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, GuestAnnotation, GuestReal)
		}
		next.Status.Interfaces = []kubevirt.VirtualMachineInstanceNetworkInterface{{Name: "default", IP: address, IPs: []string{address}, InfoSource: "domain"}}
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, SSHAnnotation, address+":"+strconv.Itoa(cmp.Or(port, w.SSHPort)))
		enter(next, kubevirt.Running)
		note(next, kubevirt.VirtualMachineInstanceReady, true, "", "")
		reason := w.notMigratable(vmi)
		note(next, kubevirt.VirtualMachineInstanceIsMigratable, reason == "", "DisksNotLiveMigratable", reason)
		next.Status.MigrationMethod = kubevirt.LiveMigration
		w.forget(vmi.UID, "boot")
		w.since(vmi.UID, "running")
	case kubevirt.Running:
		client = w.free.instances(vmi.Namespace)
		if len(vmi.Status.Interfaces) > 0 {
			w.guests.keep(vmi.UID, vmi.Status.Interfaces[0].IP)
		}
		silent := instanceIs(vmi, kubevirt.VirtualMachineInstancePaused) || w.down(vmi.Status.NodeName)
		real := vmi.Annotations[GuestAnnotation] == GuestReal
		if !real {
			w.guests.answer(vmi.UID, w.since(vmi.UID, "running").Add(w.Figures.BootTime), silent)
		}
		switch {
		case real && !w.real.runsNow(vmi.UID, silent):
			w.fail(next)
		case pod == nil || !alive(pod):
			if pod == nil && len(w.launchers.by(byOwner, string(vmi.UID))) > 0 && migrating(vmi) {
				return w.scaled(time.Second), nil
			}
			w.fail(next)
		case !note(next, kubevirt.VirtualMachineInstanceReady, podIs(pod, corev1.PodReady, corev1.ConditionTrue), "PodConditionMissing", "the launcher is not ready"):
			return w.evacuate(ctx, vmi)
		}
	default: // it has ended
		w.silence(vmi.UID)
		return 0, nil
	}
	if _, err := client.Update(ctx, next, metav1.UpdateOptions{}); err != nil {
		return 0, fmt.Errorf("report on instance: %w", err)
	}
	return 0, nil
}

func (w *world) fail(vmi *kubevirt.VirtualMachineInstance) {
	enter(vmi, kubevirt.Failed)
	note(vmi, kubevirt.VirtualMachineInstanceReady, false, "PodTerminating", "virt-launcher pod is gone")
	w.silence(vmi.UID)
}

// bootTurn returns how long an instance must still wait for its turn to start.
func (w *world) bootTurn(vmi *kubevirt.VirtualMachineInstance) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	turn := moment{vmi.UID, "boot"}
	at, ok := w.moments[turn]
	if !ok {
		at = w.boots.take(time.Now())
		w.moments[turn] = at
	}
	return time.Until(at)
}

func (w *world) endInstance(ctx context.Context, vmi *kubevirt.VirtualMachineInstance) (time.Duration, error) {
	w.silence(vmi.UID)
	pods := w.launchers.by(byOwner, string(vmi.UID))
	if vmi.Status.Phase == kubevirt.Running && len(pods) > 0 {
		if left := w.left(vmi.UID, "shutdown", w.Figures.Shutdown); left > 0 {
			return left, nil
		}
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			if err := w.control.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return 0, fmt.Errorf("delete launcher: %w", err)
			}
		}
	}
	if len(pods) > 0 || !slices.Contains(vmi.Finalizers, kubevirt.VirtualMachineInstanceFinalizer) {
		return 0, nil
	}
	w.forget(vmi.UID, "shutdown", "boot", "running")
	_, err := w.control.instances(vmi.Namespace).Patch(ctx, vmi.Name, types.MergePatchType, finalizers(vmi, kubevirt.VirtualMachineInstanceFinalizer, false), metav1.PatchOptions{})
	return 0, err
}

// notMigratable says why an instance cannot be migrated live, "" if it can.
func (w *world) notMigratable(vmi *kubevirt.VirtualMachineInstance) string {
	for claim := range claimsOf(vmi) {
		pvc, ok := w.claims.get(vmi.Namespace + "/" + claim)
		if ok && !slices.Contains(pvc.Spec.AccessModes, corev1.ReadWriteMany) {
			return fmt.Sprintf("cannot migrate VMI: PVC %s is not shared, live migration requires that all PVCs must be shared (using ReadWriteMany access mode)", claim)
		}
	}
	return ""
}

func claimsOf(vmi *kubevirt.VirtualMachineInstance) map[string]string {
	claims := map[string]string{}
	for _, v := range vmi.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			claims[v.PersistentVolumeClaim.ClaimName] = v.Name
		case v.DataVolume != nil:
			claims[v.DataVolume.Name] = v.Name
		}
	}
	return claims
}

// overhead is the memory that a launcher needs besides its guest's.
const overhead = 220 << 20

// cpuRatio is the number of virtual processors that share one: KubeVirt's default.
const cpuRatio = 10

func (w *world) newLauncher(vmi *kubevirt.VirtualMachineInstance, reason types.UID) *corev1.Pod {
	requests := corev1.ResourceList{}
	maps.Copy(requests, vmi.Spec.Domain.Resources.Requests)
	memory := requests[corev1.ResourceMemory]
	if m := vmi.Spec.Domain.Memory; m != nil && m.Guest != nil && memory.IsZero() {
		memory = m.Guest.DeepCopy()
	}
	memory.Add(*resource.NewQuantity(overhead, resource.BinarySI))
	requests[corev1.ResourceMemory] = memory
	if _, given := requests[corev1.ResourceCPU]; !given {
		cpus := int64(1)
		if c := vmi.Spec.Domain.CPU; c != nil {
			cpus = int64(max(1, c.Cores)) * int64(max(1, c.Sockets)) * int64(max(1, c.Threads))
		}
		requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(cpus*1000/cpuRatio, resource.DecimalSI)
	}
	devices := corev1.ResourceList{kvm: resource.MustParse("1")}
	for _, d := range vmi.Spec.Domain.Devices.GPUs {
		devices[corev1.ResourceName(d.DeviceName)] = resource.MustParse("1")
	}
	for _, d := range vmi.Spec.Domain.Devices.HostDevices {
		devices[corev1.ResourceName(d.DeviceName)] = resource.MustParse("1")
	}
	maps.Copy(requests, devices)
	labels := map[string]string{}
	maps.Copy(labels, vmi.Labels)
	delete(labels, kubevirt.NodeNameLabel)
	labels[kubevirt.AppLabel], labels[kubevirt.CreatedByLabel], labels[kubevirt.DeprecatedVirtualMachineNameLabel] = "virt-launcher", string(vmi.UID), vmi.Name
	annotations := map[string]string{kubevirt.DomainAnnotation: vmi.Name}
	if start := vmi.Annotations[protocol.StartLatencyAnnotation]; start != "" {
		annotations[protocol.StartLatencyAnnotation] = start
	}
	selector := map[string]string{}
	maps.Copy(selector, vmi.Spec.NodeSelector)
	selector[kubevirt.NodeSchedulable], selector[protocol.FidelityLabel] = "true", protocol.FidelitySimulated
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: vmi.Namespace, Name: launcherName(vmi, reason), Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{owner(vmi, kindInstance)}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "compute", Image: "plimsoll.dev/simulated-virt-launcher",
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				Resources:       corev1.ResourceRequirements{Requests: requests, Limits: devices}}},
			RestartPolicy: corev1.RestartPolicyNever, NodeSelector: selector, Tolerations: append(slices.Clone(vmi.Spec.Tolerations), w.patience()...), Affinity: vmi.Spec.Affinity.DeepCopy(),
			TopologySpreadConstraints: vmi.Spec.TopologySpreadConstraints, PriorityClassName: vmi.Spec.PriorityClassName, SchedulerName: vmi.Spec.SchedulerName,
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(30)),
		},
	}
	for claim, name := range claimsOf(vmi) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	return pod
}

// patience lets a launcher stay on a lost node as long as a cluster's default, at the scale of time.
func (w *world) patience() (tolerations []corev1.Toleration) {
	seconds := max(1, int64(w.scaled(5*time.Minute)/time.Second))
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerations = append(tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
	}
	return tolerations
}

// migrationTime returns the time planted for a machine's system and its IO.
func (w *world) migrationTime(vmi *kubevirt.VirtualMachineInstance) time.Duration {
	system, takes := strings.ToLower(osOf(vmi)), w.Figures.MigrateOther
	switch {
	case strings.HasPrefix(system, "rhel"):
		takes = w.Figures.MigrateRHEL
	case strings.HasPrefix(system, "fedora"):
		takes = w.Figures.MigrateFedora
	case strings.HasPrefix(system, "win"):
		takes = w.Figures.MigrateWindows
	}
	if _, does := vmi.Labels[IOLabel]; does {
		takes += time.Duration(float64(takes) * w.Figures.MigrateUnderIO)
	}
	return takes
}

// osOf returns a machine's system by its label, or by its template's annotation.
func osOf(vmi *kubevirt.VirtualMachineInstance) string {
	for _, label := range []string{OSLabel, "kubevirt.io/os"} {
		if system := vmi.Labels[label]; system != "" {
			return system
		}
	}
	return vmi.Annotations["vm.kubevirt.io/os"]
}
