package follow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Bounds of the logs at the end of a step: they must cost a cluster in trouble almost nothing.
const (
	logsPerReason = 3
	logsPerStep   = 12
	logWorkers    = 4
	logLines      = 20
	logBytes      = 64 << 10 // of one log, as the server sends it
	logsFor       = 5 * time.Second
)

// SampleLogs records the ends of the logs of failing pods, except those that take too long.
func SampleLogs(ctx context.Context, common *prepared.Run, pods []observe.Failing) {
	ctx, cancel := context.WithTimeout(ctx, logsFor)
	defer cancel()
	logs := make([]*record.Log, len(pods))
	// An error ends the sampling if it is the same for all; each log has its own.
	_ = api.InParallel(ctx, len(pods), logWorkers, 0, func(ctx context.Context, i int) error {
		l, err := logOf(ctx, common.Client, pods[i])
		logs[i] = l
		if err != nil {
			l.Error = err.Error()
		}
		if apierrors.IsForbidden(err) {
			return err
		}
		return nil
	})
	for _, l := range logs {
		if l != nil {
			common.Emit(l)
		}
	}
}

func logOf(ctx context.Context, c *api.Client, p observe.Failing) (*record.Log, error) {
	l := &record.Log{Object: p.Name, Place: p.Place, Reason: p.Reason}
	namespace, name, _ := strings.Cut(p.Name, "/")
	pod, err := c.Typed.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return l, err
	}
	status, ok := containerToLog(pod)
	if !ok {
		return l, errors.New("no container of it has run")
	}
	l.Container = status.Name
	// After a restart, the log of the previous container shows the reason.
	l.Previous = status.RestartCount > 0 && status.State.Running != nil
	stream, err := c.Typed.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{
		Container: l.Container, Previous: l.Previous, TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes)),
	}).Stream(ctx)
	if err != nil {
		return l, err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, logBytes))
	l.Lines = linesOf(text)
	return l, err
}

func linesOf(text []byte) []string {
	text = bytes.TrimRight(text, "\n")
	if len(text) == 0 {
		return nil
	}
	lines := strings.Split(strings.ToValidUTF8(string(text), "\ufffd"), "\n")
	return lines[max(len(lines)-logLines, 0):]
}

// containerToLog chooses a container that has run and is not ready, a restarting one first.
func containerToLog(pod *corev1.Pod) (corev1.ContainerStatus, bool) {
	var best corev1.ContainerStatus
	rank := 0
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			n := 0
			switch {
			case s.Ready || s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 && s.RestartCount == 0:
			case s.State.Waiting != nil && s.RestartCount > 0, s.State.Terminated != nil:
				n = 3
			case s.State.Running != nil && s.RestartCount > 0:
				n = 2
			case s.State.Running != nil:
				n = 1
			}
			if n > rank {
				best, rank = s, n
			}
		}
	}
	return best, rank > 0
}
