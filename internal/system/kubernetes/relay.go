package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
)

// AgentPod returns the template of pods of the agent, which pass Pod Security "restricted". cpu is their limit,
// "" for none.
func AgentPod(labels map[string]string, image, cpu string, args ...string) corev1.PodTemplateSpec {
	yes, no, grace := true, false, int64(1)
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
	requests := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	if cpu != "" {
		limits[corev1.ResourceCPU], requests[corev1.ResourceCPU] = resource.MustParse(cpu), resource.MustParse("10m")
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "agent", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: args,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				Resources:       corev1.ResourceRequirements{Limits: limits, Requests: requests},
			}},
		},
	}
}

const (
	relayStarts = 2 * time.Minute // longest wait for the relay to run
	relayFails  = 2 * time.Second // longer than a service may take, from which on the relay has not answered
)

// relay is a pod of the run that calls services, which answer only within the cluster.
type relay struct {
	namespace, name string
	forward         *api.Forward
	client          http.Client
}

func callsServices(beside []*described.Objects) bool {
	return slices.ContainsFunc(beside, func(o *described.Objects) bool { return o.Calls((*described.Probe).OfServices) })
}

// relayImage returns the image of the relay, from the plan's registry if it has one.
func relayImage(t *Settings) string {
	if t.Images == "" {
		return image.AgentReference
	}
	reference, _ := image.At(t.Images, image.AgentReference) // the plan is valid
	return reference
}

// helper returns the labels of a pod that is not of the load: that of the canary keeps it apart.
func (t *Target) helper() map[string]string {
	return map[string]string{api.LabelManagedBy: api.ManagedBy, api.LabelRun: t.Load.RunID, api.LabelCanary: "true"}
}

// openRelay makes the relay if services are to be called, and waits until it runs.
func (t *Target) openRelay(ctx context.Context) error {
	if !callsServices(t.Load.Beside) {
		return nil
	}
	made := AgentPod(t.helper(), relayImage(settingsOf(t.session.Plan)), "", "relay", "-node", "$(NODE)")
	made.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}}}}
	if t.session.lab != nil {
		made.Spec.NodeSelector = map[string]string{protocol.FidelityLabel: protocol.FidelityReal}
	}
	r := &relay{namespace: t.watch.Own(), name: follow.Helper + "relay-" + t.Load.RunID}
	pods := t.Client.Typed.CoreV1().Pods(r.namespace)
	pod, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: r.name, Labels: made.Labels}, Spec: made.Spec}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the pod that calls services: %w", t.Client.Unreachable(err))
	}
	t.relay = r
	for began := t.Clock.Now(); len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Running == nil; {
		if !api.Sleep(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
		if pod, err = pods.Get(ctx, r.name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("wait for the pod that calls services: %w", t.Client.Unreachable(err))
		}
		reason, message := waitingFor(pod)
		if cannotPull(reason) || (t.Clock.Now()-began).Duration() > relayStarts {
			return &system.UnableError{
				Err:  fmt.Errorf("wait for pod %s/%s, which calls services: %s: %s", r.namespace, r.name, reason, message),
				Hint: "plimsoll image push REGISTRY/PATH, then the same with --images REGISTRY/PATH; or leave out serviceLatency",
			}
		}
	}
	if r.forward, err = t.Client.Forward(r.namespace, r.name, agent.RelayPort); err != nil {
		return err
	}
	r.client.Transport = &http.Transport{MaxIdleConnsPerHost: 100, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.forward.Dial(ctx) }}
	t.Load.Reach = r.reach
	return nil
}

// reach implements prepared.Workload.Reach.
func (r *relay) reach(ctx context.Context, addresses string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout+relayFails)
	defer cancel()
	query := url.Values{agent.RelayTo: strings.Fields(addresses), agent.RelayFor: {timeout.String()}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://relay"+agent.RelayPath+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	for {
		reply, err := r.client.Do(request)
		if err == nil {
			text, unread := io.ReadAll(io.LimitReader(reply.Body, 1<<10))
			reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return unread
			}
			return fmt.Errorf("no answer within %v to pod %s/%s: %s", timeout, r.namespace, r.name, strings.TrimSpace(string(text)))
		}
		if !api.Sleep(ctx, 100*time.Millisecond) { // the program may not listen yet, or the connection is lost
			return fmt.Errorf("ask pod %s/%s to call it: %w", r.namespace, r.name, err)
		}
	}
}

// close removes the relay; a nil one is none.
func (r *relay) close(ctx context.Context, c *api.Client) error {
	if r == nil {
		return nil
	}
	r.client.CloseIdleConnections()
	if r.forward != nil {
		r.forward.Close()
	}
	err := c.Typed.CoreV1().Pods(r.namespace).Delete(ctx, r.name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove pod %s/%s: %w", r.namespace, r.name, c.Unreachable(err))
	}
	return nil
}
