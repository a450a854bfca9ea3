package ingress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
)

// link leads to a client, whose pod may be replaced.
type link struct {
	client    *clients.Client // nil before its first pod runs
	node      string          // of its first pod
	pod       string
	forward   *api.Forward
	since     time.Time // since when it does not answer, or has no pod; zero while it answers
	fate      string    // why its pod does not run, "" while it does or where that is unknown
	next      string    // why the latest other pod does not run
	abandoned bool      // it did not come back, and the load goes on without it
}

// close ends the connections.
func (l *link) close() {
	if l.client != nil {
		l.client.Close()
		l.forward.Close()
	}
}

// fateOf says why a pod does not run, "" where it does.
func fateOf(pod *corev1.Pod) string {
	at := "pod " + pod.Name
	if node := pod.Spec.NodeName; node != "" {
		at += " on " + node
	}
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
			return fmt.Sprintf("%s: %s: %s", at, w.Reason, w.Message)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse || c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("%s: %s: %s", at, c.Reason, c.Message)
		}
	}
	switch {
	case pod.Status.Reason != "": // such as Evicted
		return fmt.Sprintf("%s: %s: %s", at, pod.Status.Reason, pod.Status.Message)
	case pod.DeletionTimestamp != nil:
		return at + " was deleted"
	case pod.Status.Phase != corev1.PodRunning:
		return fmt.Sprintf("%s is %s", at, pod.Status.Phase)
	}
	return ""
}

// look returns the running pods of the clients, by the index of the job, and notes why others do not run.
func (i *instance) look(ctx context.Context) ([]*corev1.Pod, error) {
	list, err := i.Client().Typed.CoreV1().Pods(i.namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + i.job()})
	if err != nil {
		return nil, err
	}
	for len(i.links) < i.made {
		i.links = append(i.links, new(link))
	}
	for _, l := range i.links {
		l.next = ""
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	pods := make([]*corev1.Pod, i.made)
	for k := range list.Items {
		pod := &list.Items[k]
		n, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
		if err != nil || n < 0 || n >= i.made {
			continue
		}
		why := &i.links[n].next
		if pod.Name == i.links[n].pod {
			why = &i.links[n].fate
		}
		if *why = fateOf(pod); pod.DeletionTimestamp == nil && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil {
			pods[n] = pod
		}
	}
	return pods, nil
}

// mostNamed bounds the clients that an error names.
const mostNamed = 3

// refusal says why the cluster makes no pod of the clients' job, "" where that is unknown.
func (i *instance) refusal(ctx context.Context) string {
	list, err := i.Client().Typed.CoreV1().Events(i.namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning,involvedObject.name=" + i.job()})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	last := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return last.Reason + ": " + last.Message
}

// missing says why clients are not there.
func (i *instance) missing(ctx context.Context, pods []*corev1.Pod) string {
	var list []string
	refusal := sync.OnceValue(func() string { return i.refusal(ctx) }) // the same for all
	for n, l := range i.links {
		switch {
		case pods[n] != nil || l.abandoned:
		case l.client == nil && l.next != "":
			list = append(list, l.next)
		case l.client == nil && refusal() != "":
			list = append(list, fmt.Sprintf("client-%d has no pod: %s", n, refusal()))
		case l.client == nil:
			list = append(list, fmt.Sprintf("client-%d has no pod", n))
		default:
			gone := "pod " + cmp.Or(l.pod, "of "+l.client.Name) + " is gone"
			list = append(list, fmt.Sprintf("%s was lost (%s), and nothing replaces it: %s", l.client.Name, cmp.Or(l.fate, gone), cmp.Or(l.next, "it has no other pod")))
		}
	}
	return named(list)
}

func named(list []string) string {
	if n := len(list) - mostNamed; n > 0 {
		list = append(list[:mostNamed], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, "; ")
}

// replace removes the pods of clients that have been silent for too long, so that the job makes others. It says who
// is silent.
func (i *instance) replace(ctx context.Context, silent map[*clients.Client]error) string {
	var list []string
	now := i.Now()
	for _, l := range i.links {
		why := silent[l.client]
		if why == nil {
			l.since = time.Time{}
			continue
		}
		if l.since.IsZero() {
			l.since = now
		}
		if now.Sub(l.since) >= silentBound {
			l.since = time.Time{}
			i.Rec.Emit(&record.Note{Text: fmt.Sprintf("%s was silent: its pod %s is removed, so that another replaces it", l.client.Name, l.pod)})
			if err := i.Client().Typed.CoreV1().Pods(i.namespace).Delete(ctx, l.pod, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				why = fmt.Errorf("%w, and it is not replaced: %w", why, err)
			}
		}
		list = append(list, fmt.Sprintf("%v (pod %s)", why, l.pod))
	}
	i.fleet.Clients = slices.DeleteFunc(i.fleet.Clients, func(c *clients.Client) bool { return silent[c] != nil })
	return named(list)
}

// reach waits for the pods of the clients that are wanted, connects to them, and agrees on their clocks.
func (i *instance) reach(ctx context.Context) error {
	return i.await(ctx, "the clients", awaitBound, func() (string, bool, error) {
		pods, err := i.look(ctx)
		if err != nil {
			return "", false, err
		}
		i.fleet.Clients = nil
		for n, pod := range pods {
			if pod == nil || i.links[n].abandoned {
				continue
			}
			if err := i.connect(n, pod); err != nil {
				return "", false, err
			}
			i.fleet.Clients = append(i.fleet.Clients, i.links[n].client)
		}
		if len(i.fleet.Clients) < i.wanted {
			return i.missing(ctx, pods), false, i.renew(ctx, pods)
		}
		asking, cancel := context.WithTimeoutCause(ctx, askBound, fmt.Errorf("no answer within %v", askBound))
		defer cancel()
		silent := i.fleet.Agree(asking) // a container runs before its program listens
		return i.replace(ctx, silent), len(silent) == 0, nil
	})
}

// renew makes the clients' job again where it makes no pod for a lost client: after each pod that failed, a job waits
// twice as long for the next one, up to ten minutes.
func (i *instance) renew(ctx context.Context, pods []*corev1.Pod) error {
	now, late := i.Now(), false
	for n, l := range i.links {
		if pods[n] != nil || l.abandoned || l.client == nil || l.next != "" || l.pod == "" {
			continue
		}
		if l.since.IsZero() {
			l.since = now
		}
		late = late || now.Sub(l.since) >= silentBound
	}
	if !late {
		return nil
	}
	background := metav1.DeletePropagationBackground
	err := i.Client().Typed.BatchV1().Jobs(i.namespace).Delete(ctx, i.job(), metav1.DeleteOptions{PropagationPolicy: &background})
	if api.Refused(err) {
		return nil // its next pod may come in time
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	i.Rec.Emit(&record.Note{Text: "the clients are made again: their job holds up the next pod, because several have failed"})
	for _, l := range i.links {
		if l.client != nil {
			l.close()
			l.pod, l.since = "", time.Time{}
		}
	}
	i.jobs++
	return i.makeClients(ctx)
}

// connect makes the link to a client, or leads it to a pod that replaced the former one.
func (i *instance) connect(n int, pod *corev1.Pod) error {
	l := i.links[n]
	if l.pod == pod.Name {
		return nil
	}
	forward, err := i.Client().Forward(i.namespace, pod.Name, clients.Port)
	if err != nil {
		return err
	}
	if l.client == nil {
		l.node = pod.Spec.NodeName
		l.client = clients.NewClient(fmt.Sprintf("client-%d on %s", n, l.node), func(ctx context.Context) (net.Conn, error) { return l.forward.Dial(ctx) })
	} else if l.pod != "" {
		l.close()
		i.Rec.Emit(&record.Note{Text: fmt.Sprintf("%s was lost: a pod on %s replaces it", l.client.Name, pod.Spec.NodeName)})
	}
	l.pod, l.forward, l.fate, l.since = pod.Name, forward, "", time.Time{}
	return nil
}

// cut has an error of a run that waits in vain end it with the results so far.
func cut(err error) error {
	if errors.As(err, new(*system.UnableError)) && !errors.As(err, new(*api.UnreachableError)) {
		return &system.CutError{Err: err}
	}
	return err
}

// without gives up the clients that did not come back, if the plan allows fewer of them.
func (i *instance) without(ctx context.Context, why error) bool {
	base, there := i.arms[""], len(i.fleet.Clients)
	if _, unable := errors.AsType[*system.UnableError](why); !unable || base.least == base.most || there < base.least {
		return false
	}
	for _, l := range i.links {
		l.abandoned = !slices.Contains(i.fleet.Clients, l.client)
	}
	i.wanted = there
	i.Rec.Emit(&record.Note{Text: fmt.Sprintf("%v: the load goes on with %s", why, clientNoun().Count(there))})
	return len(i.fleet.Agree(ctx)) == 0
}
