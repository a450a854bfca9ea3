package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
)

const (
	preloadPoll = 200 * time.Millisecond
	preloadGone = time.Minute // longest wait for the end of its pods
)

// preload pulls the images of a job on each of its nodes, by a DaemonSet that it removes. Pods that come later are
// measured without pulls. What is not pulled in time is a note, as the load can begin without it.
func (t *Target) preload(ctx context.Context, j *kubeburner.Job, images []string) error {
	show := func(string) {}
	if t.Load.Progress != nil {
		var end func()
		show, end = t.Load.Progress()
		defer end()
	}
	sets := t.Client.Typed.AppsV1().DaemonSets(t.watch.Own())
	name := follow.Helper + "preload-" + t.Load.RunID
	_, err := sets.Create(ctx, t.puller(name, images, j.PreLoadNodeLabels), metav1.CreateOptions{})
	refused := api.Refused(err)
	if err == nil {
		err = t.awaitPulled(ctx, j, name, len(images), show)
	}
	if err != nil && ctx.Err() == nil {
		t.Emit(&record.Note{Warning: record.WarningNotKnown, Text: fmt.Sprintf("images of job %s were not all pulled before it: %v", j.Name, t.Client.Unreachable(err))})
	}
	if refused {
		return nil
	}
	// It is removed whatever becomes of the run.
	going, cancel := context.WithTimeout(context.WithoutCancel(ctx), preloadGone)
	defer cancel()
	err = sets.Delete(going, name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})
	for left := 1; left > 0 && !apierrors.IsNotFound(err); {
		if !api.Sleep(going, preloadPoll) {
			return fmt.Errorf("remove DaemonSet %s/%s, which pulled images: %w", t.watch.Own(), name, context.Cause(going))
		}
		_, err = sets.Get(going, name, metav1.GetOptions{})
		if pods, listErr := t.pullers(going, name); listErr == nil {
			left = len(pods)
		}
	}
	return context.Cause(ctx)
}

// puller returns a DaemonSet with a container for each image. Their command does not exist: a node that tries to
// start it has pulled the image.
func (t *Target) puller(name string, images []string, nodes map[string]string) *appsv1.DaemonSet {
	labels := map[string]string{labelPreload: name}
	maps.Copy(labels, t.helper())
	pod := AgentPod(labels, "", "")
	pod.Spec.NodeSelector, pod.Spec.TerminationGracePeriodSeconds = nodes, new(int64(0))
	one := pod.Spec.Containers[0]
	one.Resources, one.Command = corev1.ResourceRequirements{}, []string{"/plimsoll-pulls-only"}
	pod.Spec.Containers = nil
	for i, image := range images {
		one.Name, one.Image = fmt.Sprintf("pull-%d", i), image
		pod.Spec.Containers = append(pod.Spec.Containers, one)
	}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{labelPreload: name}}, Template: pod},
	}
}

const labelPreload = "plimsoll.dev/preload" // names the DaemonSet of pods that pull images

func (t *Target) pullers(ctx context.Context, name string) ([]corev1.Pod, error) {
	list, err := t.Client.Typed.CoreV1().Pods(t.watch.Own()).List(ctx, metav1.ListOptions{LabelSelector: labelPreload + "=" + name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// awaitPulled waits until each node has pulled each image, for at most the job's preLoadPeriod.
func (t *Target) awaitPulled(ctx context.Context, job *kubeburner.Job, name string, images int, show func(string)) error {
	for began := t.Clock.Now(); ; {
		set, err := t.Client.Typed.AppsV1().DaemonSets(t.watch.Own()).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods, err := t.pullers(ctx, name)
		if err != nil {
			return err
		}
		done, why := 0, ""
		for i := range pods {
			for _, c := range pods[i].Status.ContainerStatuses {
				if pulled(c) {
					done++
				} else if w := c.State.Waiting; w != nil && w.Message != "" {
					why = fmt.Sprintf(": %s on %s: %s: %s", c.Image, pods[i].Spec.NodeName, w.Reason, w.Message)
				}
			}
		}
		want := int(set.Status.DesiredNumberScheduled) * images
		show(fmt.Sprintf("pulling the images of job %s: %d of %d", job.Name, done, want))
		if set.Status.ObservedGeneration > 0 && done >= want {
			return nil
		}
		if (t.Clock.Now() - began).Duration() > job.PreLoadPeriod {
			return fmt.Errorf("%d of %d within %v%s", done, want, job.PreLoadPeriod, why)
		}
		if !api.Sleep(ctx, preloadPoll) {
			return context.Cause(ctx)
		}
	}
}

// pulled reports whether the image of a container is on its node, which has tried to start it or has refused to.
func pulled(c corev1.ContainerStatus) bool {
	if c.State.Waiting == nil || c.RestartCount > 0 {
		return c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0
	}
	switch c.State.Waiting.Reason {
	case "", "ContainerCreating", "PodInitializing", "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable":
		return false
	}
	return true
}
