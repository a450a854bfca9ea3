package simnode

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// eventQueue bounds the events that wait to be written. Further events are dropped, as a kubelet does.
const eventQueue = 1 << 16

type eventSink struct {
	client  kubernetes.Interface
	log     *slog.Logger
	queue   chan podEvent
	last    atomic.Int64 // the last stamp
	dropped atomic.Uint64
}

// podEvent is an event before it is written: small, because many may wait.
type podEvent struct {
	pod                   *corev1.Pod
	container             string // "" if it is about the whole pod
	kind, reason, message string
	at                    time.Time
}

// reached publishes the events of a stage; pod is as before the stage.
func (s *eventSink) reached(pod *corev1.Pod, reached stage) {
	now := time.Now()
	switch reached {
	case initialized:
		s.containers(pod, pod.Spec.InitContainers, "spec.initContainers{%s}", now)
	case started:
		if !isTrue(pod, corev1.PodInitialized) {
			s.containers(pod, pod.Spec.InitContainers, "spec.initContainers{%s}", now)
		}
		s.containers(pod, pod.Spec.Containers, "spec.containers{%s}", now)
	}
}

func (s *eventSink) containers(pod *corev1.Pod, containers []corev1.Container, field string, now time.Time) {
	for i := range containers {
		c := &containers[i]
		for _, e := range []struct{ reason, message string }{
			{"Pulled", fmt.Sprintf("Image %q of simulated container %s is taken as present", c.Image, c.Name)},
			{"Created", "Created simulated container " + c.Name},
			{"Started", "Started simulated container " + c.Name},
		} {
			s.put(podEvent{pod, fmt.Sprintf(field, c.Name), corev1.EventTypeNormal, e.reason, e.message, now})
		}
	}
}

func (s *eventSink) put(e podEvent) {
	select {
	case s.queue <- e:
	default:
		if s.dropped.Add(1)%1000 == 1 {
			s.log.Warn("events are dropped: the API server takes them too slowly", "dropped", s.dropped.Load())
		}
	}
}

func (s *eventSink) run(ctx context.Context) {
	for {
		select {
		case e := <-s.queue:
			s.write(ctx, e)
		case <-ctx.Done():
			return
		}
	}
}

// stamp returns a unique time for an event's name, also for events of the same moment.
func (s *eventSink) stamp(at time.Time) int64 {
	for {
		last := s.last.Load()
		next := max(at.UnixNano(), last+1)
		if s.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// write publishes one event. It only logs a failure: events are best effort everywhere in Kubernetes.
func (s *eventSink) write(ctx context.Context, e podEvent) {
	at := metav1.NewTime(e.at)
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.pod.Namespace, Name: fmt.Sprintf("%s.%x", e.pod.Name, s.stamp(e.at))},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: e.pod.Namespace, Name: e.pod.Name,
			UID: e.pod.UID, ResourceVersion: e.pod.ResourceVersion, FieldPath: e.container,
		},
		Type: e.kind, Reason: e.reason, Message: e.message,
		Source:              corev1.EventSource{Component: "kubelet", Host: e.pod.Spec.NodeName},
		ReportingController: "kubelet", ReportingInstance: e.pod.Spec.NodeName, FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	if _, err := s.client.CoreV1().Events(e.pod.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
		s.log.Warn("event was not written", "namespace", e.pod.Namespace, "pod", e.pod.Name, "reason", e.reason, "error", err)
	}
}
