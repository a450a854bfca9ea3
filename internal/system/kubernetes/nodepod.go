package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
)

// NodeScript holds a shell script for a node: a pod of ours starts the node's shell in its root directory.
type NodeScript struct {
	Node      string
	Namespace string // of the pod
	Image     string // may be any image that the node has or can pull: nothing in it is used
	Script    string
	Args      []string
	// Timeout bounds the wait for the pod to begin, Runs the time that it may run then.
	Timeout, Runs time.Duration
}

// NodeScriptError says why a node could not run a script.
type NodeScriptError struct {
	Node, Reason, Message string
	Log                   string // end of the pod's output
}

func (e *NodeScriptError) Error() string {
	s := "node " + e.Node + ": " + e.Reason
	for _, more := range []string{e.Message, e.Log} {
		if more = strings.TrimSpace(more); more != "" {
			s += ": " + more
		}
	}
	return s
}

// nodeLogBytes bounds a script's output: by default the kubelet rotates container logs at 10 MiB.
const nodeLogBytes = 16 << 20

// RunOnNode runs a script on a node in a privileged pod with the node's files and network, which it
// always removes. The error is a *NodeScriptError when the node is the cause.
func (c *Cluster) RunOnNode(ctx context.Context, s NodeScript) (out []byte, err error) {
	node, err := c.client.Typed.CoreV1().Nodes().Get(ctx, s.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, &NodeScriptError{Node: s.Node, Reason: "there is no such node"}
	}
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", s.Node, c.client.Unreachable(err))
	}
	if follow.FidelityOf(node) == record.Simulated {
		return nil, &NodeScriptError{Node: s.Node, Reason: "it is simulated", Message: "there is no host to read"}
	}
	pods := c.client.Typed.CoreV1().Pods(s.Namespace)
	pod, err := pods.Create(ctx, nodePod(node, s), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create the pod that reads node %s: %w", s.Node, c.client.Unreachable(err))
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if gone := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); gone != nil && !apierrors.IsNotFound(gone) {
			err = errors.Join(err, fmt.Errorf("remove pod %s/%s: %w", s.Namespace, pod.Name, gone))
		}
	}()
	began := c.host.Now()
	for wait := s.Timeout; ; {
		if pod, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("wait for pod %s/%s: %w", s.Namespace, pod.Name, c.client.Unreachable(err))
		}
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			break
		}
		if pod.Status.Phase == corev1.PodRunning {
			wait = s.Timeout + s.Runs
		}
		reason, message := waitingFor(pod)
		if cannotPull(reason) || c.host.Now().Sub(began) > wait {
			return nil, &NodeScriptError{Node: s.Node, Reason: reason, Message: message}
		}
		if !api.Sleep(ctx, 200*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
	}
	out, err = pods.GetLogs(pod.Name, &corev1.PodLogOptions{LimitBytes: new(int64(nodeLogBytes))}).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what pod %s/%s printed: %w", s.Namespace, pod.Name, c.client.Unreachable(err))
	}
	if pod.Status.Phase == corev1.PodFailed {
		reason, message := waitingFor(pod)
		const end = 400
		return nil, &NodeScriptError{Node: s.Node, Reason: reason, Message: message, Log: string(out[max(0, len(out)-end):])}
	}
	return out, nil
}

// cannotPull reports whether a pod waits for an image that would not be pulled by trying again.
func cannotPull(reason string) bool {
	return strings.HasSuffix(reason, "ImagePullBackOff") || strings.HasSuffix(reason, "InvalidImageName") || strings.HasSuffix(reason, "ErrImageNeverPull")
}

// waitingFor says what a pod with one container waits for, or why it ended.
func waitingFor(pod *corev1.Pod) (reason, message string) {
	for _, s := range pod.Status.ContainerStatuses {
		switch {
		case s.State.Waiting != nil:
			return "its pod does not start: " + s.State.Waiting.Reason, s.State.Waiting.Message
		case s.State.Terminated != nil:
			return fmt.Sprintf("its pod ended with %d (%s)", s.State.Terminated.ExitCode, s.State.Terminated.Reason), s.State.Terminated.Message
		case s.State.Running != nil:
			return "its pod does not end", ""
		}
	}
	if pod.Status.Reason != "" {
		return "its pod does not run: " + pod.Status.Reason, pod.Status.Message
	}
	return "its pod does not start", "the kubelet says nothing of it"
}

// nodePod returns a pod that runs a script by the node's own chroot and loader: its image needs no
// content. Where /lib links to /usr/lib absolutely, both are mounted at the node's paths.
func nodePod(node *corev1.Node, s NodeScript) *corev1.Pod {
	yes, no, grace := true, false, int64(0)
	deadline := int64((s.Timeout + s.Runs).Seconds()) + 30
	const root = "/node"
	loader, triple := "/usr/lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu"
	switch node.Status.NodeInfo.Architecture {
	case "arm64":
		loader, triple = "/usr/lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu"
	case "ppc64le":
		loader, triple = "/usr/lib64/ld64.so.2", "powerpc64le-linux-gnu"
	case "s390x":
		loader, triple = "/usr/lib/ld64.so.1", "s390x-linux-gnu"
	}
	libraries := "/usr/lib64:/usr/lib/" + triple + ":/lib/" + triple + ":/usr/lib"
	container := corev1.Container{
		Name: "read", Image: s.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: append([]string{loader, "--library-path", libraries, "/usr/sbin/chroot", root, "/bin/sh", "-c", s.Script, "plimsoll"}, s.Args...),
		// Reading all of /proc and changing the root directory need privileges, whatever user the image names.
		SecurityContext: &corev1.SecurityContext{Privileged: &yes, RunAsUser: new(int64(0))},
	}
	var volumes []corev1.Volume
	for _, v := range []struct{ name, path, at string }{{"node", "/", root}, {"usr", "/usr", "/usr"}, {"lib", "/lib", "/lib"}} {
		volumes = append(volumes, corev1.Volume{Name: v.name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: v.path}}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: v.name, MountPath: v.at, ReadOnly: v.at != root})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "plimsoll-node-", Labels: map[string]string{api.LabelManagedBy: api.ManagedBy, api.LabelRun: "node-" + string(node.UID)}},
		Spec: corev1.PodSpec{
			NodeName: node.Name, HostNetwork: true, HostPID: true, RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &deadline,
			TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Volumes:     volumes, Containers: []corev1.Container{container},
		},
	}
}
