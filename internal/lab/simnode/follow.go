package simnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

type viewer interface {
	seeOne(*corev1.Pod)
	seeAll([]corev1.Pod)
	forget(*corev1.Pod)
}

const retryPause = 100 * time.Millisecond // after a failure, such as a restart of the API server

// follow watches all bound pods until ctx ends. It resumes a broken watch at once: the pauses of client-go's
// reflector would appear as start latency that nobody planted.
func follow(ctx context.Context, client kubernetes.Interface, v viewer, log *slog.Logger) {
	bound := metav1.ListOptions{
		FieldSelector: fields.OneTermNotEqualSelector("spec.nodeName", "").String(), AllowWatchBookmarks: true,
	}
	version := "" // where the next watch starts; "" means list first
	seen := "0"   // a list must not be older than this version
	for ctx.Err() == nil {
		var err error
		if version == "" {
			version, err = listPods(ctx, client, bound, seen, v)
		} else {
			version, err = watchPods(ctx, client, bound, version, v)
		}
		if version != "" {
			seen = version
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			version = ""
			continue
		}
		log.Warn("watch of pods broke, will try again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

func listPods(ctx context.Context, client kubernetes.Interface, bound metav1.ListOptions, notOlder string, v viewer) (string, error) {
	bound.AllowWatchBookmarks = false
	bound.ResourceVersion = notOlder
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, bound)
	if err != nil {
		return "", fmt.Errorf("list pods: %w", err)
	}
	v.seeAll(list.Items)
	return list.ResourceVersion, nil
}

// watchPods passes on changes after a version until the watch ends, and returns the last version.
func watchPods(ctx context.Context, client kubernetes.Interface, bound metav1.ListOptions, version string, v viewer) (string, error) {
	bound.ResourceVersion = version
	w, err := client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, bound)
	if err != nil {
		return version, fmt.Errorf("watch pods: %w", err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return version, fmt.Errorf("watch pods: %w", apierrors.FromObject(event.Object))
		}
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return version, errors.New("watch pods: got something else")
		}
		version = pod.ResourceVersion
		switch event.Type {
		case watch.Added, watch.Modified:
			v.seeOne(pod)
		case watch.Deleted:
			v.forget(pod)
		}
	}
	return version, nil
}
