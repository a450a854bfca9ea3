package simnode

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stage is the next report of a kubelet about a pod. It follows from the pod, also after a restart.
type stage int

const (
	nothing     stage = iota // it runs, has ended, or waits for others
	sandbox                  // its network is there, its containers are being made
	initialized              // its init containers have completed, its sidecars run
	started                  // its containers run and are ready
	gated                    // others have opened its readiness gates
	completed                // a job's containers have succeeded
	killed                   // its containers have been stopped on deletion
	deleted                  // it may vanish
)

// nextStage returns the next stage of a bound pod. With a latency of 0, started follows bound.
func nextStage(pod *corev1.Pod, latency time.Duration) stage {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.DeletionTimestamp != nil {
		held := len(pod.Finalizers) > 0
		switch {
		case held && !ended:
			// A holder, such as a Job, reads how it ended.
			return killed
		case held && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0:
			return nothing // it vanishes with its last finalizer
		}
		return deleted
	}
	if ended {
		return nothing
	}
	immediate := latency < shortestStaged
	switch {
	case !isTrue(pod, corev1.PodReadyToStartContainers) && !immediate:
		return sandbox
	case !isTrue(pod, corev1.PodInitialized) && !immediate:
		return initialized
	case !isTrue(pod, corev1.ContainersReady):
		return started
	case !isTrue(pod, corev1.PodReady):
		if gatesOpen(pod) {
			return gated
		}
		return nothing
	case ownedByJob(pod):
		return completed
	}
	return nothing
}

// shortestStaged is the start latency below which the steps in between are left out.
const shortestStaged = 20 * time.Millisecond

// share returns the part of the latency before a stage: half for the network, half of the rest for init.
func (s stage) share(latency time.Duration) time.Duration {
	switch s {
	case sandbox:
		return latency / 2
	case initialized:
		return latency * 3 / 4
	case started:
		return latency
	default:
		return 0
	}
}

func ownedByJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job"
}

func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := condition(pod, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

func gatesOpen(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool { return !isTrue(pod, gate.ConditionType) })
}

// place holds the addresses that a pod's status reports, and since when its node knows of it; zero is now.
type place struct {
	host, pod string
	since     metav1.Time
}

func reach(pod *corev1.Pod, s stage, where place, now metav1.Time) {
	status := &pod.Status
	status.ObservedGeneration = pod.Generation
	if c := condition(pod, corev1.PodScheduled); c != nil {
		c.ObservedGeneration = pod.Generation
	}
	if where.since.IsZero() {
		where.since = now
	}
	unready := "containers with unready status: [" + names(pod.Spec.Containers) + "]"
	switch s {
	case sandbox:
		setPlace(status, where)
		status.Phase = corev1.PodPending
		setCondition(pod, corev1.PodReadyToStartContainers, true, "", "", now)
		setCondition(pod, corev1.PodInitialized, len(pod.Spec.InitContainers) == 0, "ContainersNotInitialized",
			"containers with incomplete status: ["+names(pod.Spec.InitContainers)+"]", now)
		setCondition(pod, corev1.ContainersReady, false, "ContainersNotReady", unready, now)
		setCondition(pod, corev1.PodReady, false, "ContainersNotReady", unready, now)
		status.InitContainerStatuses = statuses(pod.Spec.InitContainers, pod, waiting("PodInitializing"))
		reason := "ContainerCreating"
		if len(pod.Spec.InitContainers) > 0 {
			reason = "PodInitializing"
		}
		status.ContainerStatuses = statuses(pod.Spec.Containers, pod, waiting(reason))
	case initialized:
		setCondition(pod, corev1.PodInitialized, true, "", "", now)
		status.InitContainerStatuses = statuses(pod.Spec.InitContainers, pod, initDone(now))
	case started:
		setPlace(status, where)
		status.Phase = corev1.PodRunning
		setCondition(pod, corev1.PodReadyToStartContainers, true, "", "", now)
		setCondition(pod, corev1.PodInitialized, true, "", "", now)
		setCondition(pod, corev1.ContainersReady, true, "", "", now)
		setCondition(pod, corev1.PodReady, gatesOpen(pod), "ReadinessGatesNotReady", "", now)
		status.InitContainerStatuses = statuses(pod.Spec.InitContainers, pod, initDone(now))
		status.ContainerStatuses = statuses(pod.Spec.Containers, pod, running(now))
	case gated:
		setCondition(pod, corev1.PodReady, true, "", "", now)
	case completed:
		status.Phase = corev1.PodSucceeded
		if c := condition(pod, corev1.PodInitialized); c != nil {
			c.Reason = "PodCompleted" // though it is true
		}
		endAll(pod, 0, "Completed", "PodCompleted", now)
	case killed:
		status.Phase = corev1.PodFailed
		const terminated = 128 + 15 // what a shell reports for SIGTERM
		endAll(pod, terminated, "Error", "PodFailed", now)
	}
}

// setPlace sets a pod's start and addresses, once.
func setPlace(status *corev1.PodStatus, where place) {
	status.StartTime = cmp.Or(status.StartTime, &where.since)
	status.HostIP = where.host
	status.HostIPs = []corev1.HostIP{{IP: where.host}}
	if status.PodIP == "" {
		status.PodIP = where.pod
		status.PodIPs = []corev1.PodIP{{IP: where.pod}}
	}
}

func names(containers []corev1.Container) string {
	result := make([]string, len(containers))
	for i := range containers {
		result[i] = containers[i].Name
	}
	return strings.Join(result, " ")
}

// setCondition sets a condition. Reason and message apply if it is not true.
func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, isTrue bool, reason, message string, now metav1.Time) {
	want := corev1.ConditionFalse
	if isTrue {
		want, reason, message = corev1.ConditionTrue, "", ""
	}
	c := condition(pod, kind)
	if c == nil {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind})
		c = &pod.Status.Conditions[len(pod.Status.Conditions)-1]
	}
	if c.Status != want {
		c.LastTransitionTime = now
	}
	c.Status, c.Reason, c.Message, c.ObservedGeneration = want, reason, message, pod.Generation
}

func endAll(pod *corev1.Pod, exitCode int32, reason, podReason string, now metav1.Time) {
	setCondition(pod, corev1.PodReadyToStartContainers, false, "", "", now)
	setCondition(pod, corev1.ContainersReady, false, podReason, "", now)
	setCondition(pod, corev1.PodReady, false, podReason, "", now)
	ended := func(c *corev1.Container, before *corev1.ContainerStatus, after *corev1.ContainerStatus) {
		terminated := &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason, FinishedAt: now}
		if before != nil {
			if before.State.Terminated != nil {
				*after = *before
				return
			}
			if before.State.Running != nil {
				terminated.StartedAt = before.State.Running.StartedAt
			}
		}
		after.State.Terminated = terminated
		after.Started = new(false)
	}
	pod.Status.InitContainerStatuses = statuses(pod.Spec.InitContainers, pod, ended)
	pod.Status.ContainerStatuses = statuses(pod.Spec.Containers, pod, ended)
}

// fill completes a container's status; before is the last reported status, or nil.
type fill func(c *corev1.Container, before, after *corev1.ContainerStatus)

func statuses(containers []corev1.Container, pod *corev1.Pod, f fill) []corev1.ContainerStatus {
	if len(containers) == 0 {
		return nil
	}
	result := make([]corev1.ContainerStatus, len(containers))
	for i := range containers {
		c := &containers[i]
		after := &result[i]
		after.Name, after.Image = c.Name, c.Image
		f(c, statusOf(pod, c.Name), after)
		if after.State.Waiting == nil {
			after.ImageID = "simulated://" + c.Image
			after.ContainerID = "simulated://" + string(pod.UID) + "/" + c.Name
			if after.State.Terminated != nil {
				after.State.Terminated.ContainerID = after.ContainerID
			}
		}
	}
	return result
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

func waiting(reason string) fill {
	return func(_ *corev1.Container, _, after *corev1.ContainerStatus) {
		after.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
		after.Started = new(false)
	}
}

func running(now metav1.Time) fill {
	return func(_ *corev1.Container, _, after *corev1.ContainerStatus) {
		after.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		after.Started, after.Ready = new(true), true
	}
}

// initDone is for an init container, which has completed, or runs on as a sidecar.
func initDone(now metav1.Time) fill {
	return func(c *corev1.Container, before, after *corev1.ContainerStatus) {
		if before != nil && before.State.Waiting == nil {
			*after = *before
			return
		}
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running(now)(c, before, after)
			return
		}
		after.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}
		after.Started, after.Ready = new(false), true
	}
}
