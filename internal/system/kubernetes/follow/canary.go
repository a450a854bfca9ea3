package follow

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// canary measures how late news comes: at known times it changes a pod that no scheduler places, by
// numbers, and awaits the news on the watch of the load's pods. Other runs see by it that this one lives.
type canary struct {
	*prepared.Run
	now       func() time.Time
	dead      func() // called when the watches' connection is dead
	name      string
	namespace string
	pods      string // the path of its namespace's pods
	made      bool   // the cluster may have an object of it
	path      string // of the canary

	mu      sync.Mutex
	last    int                   // the number of the last change
	open    map[int]*canaryChange // unseen changes
	service []time.Duration       // latest times of service
	failed  error                 // of the latest change
	seenAt  record.Micros         // the latest news, 0 for none
}

type canaryChange struct {
	sent, replied record.Micros
	seen          record.Micros
	version       string
	done          chan struct{} // closed when seen
}

const canaryName = "canary"

const maxOpen = 40 // bounds the unseen changes: a watch that misses so many is cut

const serviceWindow = 9 // number of latest service times that make up the API's latency

func newCanary(common *prepared.Run, now func() time.Time, dead func()) *canary {
	namespace, name := "plimsoll-"+common.Load.RunID, canaryName
	if common.Load.Namespace != "" {
		namespace, name = common.Load.Namespace, namespace // other runs may have a canary there
	}
	return &canary{
		Run: common, now: now, dead: dead, name: name,
		namespace: namespace, pods: "/api/v1/namespaces/" + namespace + "/pods", path: api.PodPath(namespace + "/" + name), open: make(map[int]*canaryChange),
	}
}

// start makes the run's own namespace and the canary in it, and awaits the first news.
func (c *canary) start(ctx context.Context, actors *Actors) error {
	typed := c.Client.Typed.CoreV1()
	pod := CanaryPod(c.Load.RunID, c.Load.Variant)
	pod.Name = c.name
	if c.Load.Namespace != "" {
		pod.Annotations = map[string]string{api.AnnotationAlive: aliveNow(c.now())}
		c.made = true
	} else if err := c.makeNamespace(ctx, actors); err != nil {
		return err
	}
	_, err := typed.Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{})
	err = api.Settle(err, c.Load.RunID, func() (metav1.Object, error) {
		return typed.Pods(c.namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	})
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return system.Mistakef(prepared.Helps(err.Error(), c.Load.Params), "the cluster refuses the canary, the pod by which the watch is measured: %w", err)
	} else if err != nil {
		return fmt.Errorf("create the canary: %w", c.Client.Unreachable(err))
	}
	// Without the right to make it, missing news of events is reported later.
	_, _ = typed.Events(c.namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: c.name, Labels: pod.Labels},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: c.namespace, Name: c.name},
		Type:           corev1.EventTypeWarning, Reason: "Canary", Message: "plimsoll changes this event to see how late the news of events comes",
	}, metav1.CreateOptions{})
	for range serviceWindow / 3 {
		if err := c.barrier(ctx); err != nil {
			return fmt.Errorf("start the canary: %w", err)
		}
	}
	return nil
}

func (c *canary) makeNamespace(ctx context.Context, actors *Actors) error {
	typed := c.Client.Typed.CoreV1()
	labels := map[string]string{api.LabelManagedBy: api.ManagedBy, api.LabelRun: c.Load.RunID}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace, Labels: labels, Annotations: map[string]string{api.AnnotationAlive: aliveNow(c.now())}}}
	_, err := typed.Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	err = api.Settle(err, c.Load.RunID, func() (metav1.Object, error) { return typed.Namespaces().Get(ctx, c.namespace, metav1.GetOptions{}) })
	c.made = !api.Refused(err) // without an answer it may exist
	if api.Refused(err) {
		return system.Mistakef("the user needs the rights of a run: plimsoll check names those that are missing", "this user may not create namespaces, and a run makes one of its own: %w", err)
	} else if err != nil {
		return fmt.Errorf("create the run's namespace %s: %w", c.namespace, c.Client.Unreachable(err))
	}
	if err := actors.AwaitServiceAccount(ctx, c.namespace); err != nil {
		return fmt.Errorf("create the run's namespace %s: %w", c.namespace, err)
	}
	return nil
}

// CanaryPod returns a run's canary, without rights but with the workload's resources, for policies.
func CanaryPod(run string, v prepared.Variant) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: canaryName, Labels: map[string]string{api.LabelManagedBy: api.ManagedBy, api.LabelRun: run, api.LabelCanary: "true"}},
		Spec: corev1.PodSpec{
			// The gate keeps schedulers away, or else the name of one that does not exist.
			SchedulingGates:              []corev1.PodSchedulingGate{{Name: api.LabelCanary}},
			SchedulerName:                api.LabelCanary,
			AutomountServiceAccountToken: new(false),
			SecurityContext:              &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "none", Image: "registry.invalid/never-pulled", Resources: v.Resources(),
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
}

func aliveNow(now time.Time) string { return now.UTC().Format(time.RFC3339) }

func (c *canary) run(ctx context.Context) {
	signed := c.now()
	for api.Sleep(ctx, c.Load.CanaryInterval) {
		if now := c.now(); c.Load.Namespace != "" && now.Sub(signed) > AliveInterval/2 {
			_, _ = c.touch(ctx, c.path, api.AnnotationAlive, aliveNow(now))
			signed = now
		}
		_, _ = c.change(ctx) // latency reports the error
	}
}

// own returns the paths of the canary's objects in a namespace that is not its own.
func (c *canary) own() []string {
	if c.Load.Namespace == "" {
		return nil
	}
	return []string{c.Load.In("events") + "/" + c.name, c.path}
}

// AliveInterval is the longest time between a run's signs of life.
const AliveInterval = 20 * time.Second

// The run's namespace and an event in it are changed as well, for how late news of their kinds is.

func (c *canary) touchNamespace(ctx context.Context) (string, error) {
	return c.touch(ctx, "/api/v1/namespaces/"+c.namespace, api.AnnotationAlive, aliveNow(c.now()))
}

func (c *canary) touchEvent(ctx context.Context) (string, error) {
	return c.touch(ctx, "/api/v1/namespaces/"+c.namespace+"/events/"+c.name, api.AnnotationCanary, strconv.FormatInt(int64(c.Clock.Now()), 10))
}

func (c *canary) touchPod(ctx context.Context) (string, error) {
	change, err := c.change(ctx)
	if err != nil {
		return "", err
	}
	return change.version, nil
}

// touch changes an annotation of an object and returns the object's new version.
func (c *canary) touch(ctx context.Context, path, key, value string) (version string, err error) {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	r, err := c.Client.Try(ctx, http.MethodPatch, path, nil, "application/merge-patch+json", patch, new(bytes.Buffer))
	if err = cmp.Or(err, r.Err()); err != nil {
		return "", err
	}
	raw, err := api.OpenEnvelope(r.Body)
	if err != nil {
		return "", err
	}
	_, version = api.DecodeMeta(raw)
	return version, nil
}

func (c *canary) change(ctx context.Context) (*canaryChange, error) {
	change := &canaryChange{sent: c.Clock.Now(), done: make(chan struct{})}
	c.mu.Lock()
	c.last++
	number := c.last
	c.open[number] = change
	if len(c.open) >= maxOpen {
		// The server answers and the watch is silent: its connection is dead, for the other watches too.
		for number, change := range c.open {
			if change.seen == 0 && change.replied != 0 {
				c.report(number, change)
			}
		}
		c.dead()
	}
	c.mu.Unlock()

	var err error
	change.version, err = c.touch(ctx, c.path, api.AnnotationCanary, strconv.Itoa(number))
	replied := c.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
	if err != nil {
		delete(c.open, number)
		return nil, fmt.Errorf("change the canary: %w", c.Client.Unreachable(err))
	}
	c.service = append(c.service, (replied - change.sent).Duration())
	if len(c.service) > serviceWindow {
		c.service = slices.Delete(c.service, 0, 1)
	}
	change.replied = replied
	if change.seen != 0 {
		c.report(number, change)
	}
	return change, nil
}

// seen takes the news of a change, and of all earlier ones, which the watch may have merged.
func (c *canary) seen(now record.Micros, number string) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return // the pod's creation
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seenAt = now
	for number, change := range c.open {
		if number > n || change.seen != 0 {
			continue
		}
		change.seen = now
		close(change.done)
		if change.replied != 0 {
			c.report(number, change)
		}
	}
}

func (c *canary) report(number int, change *canaryChange) {
	delete(c.open, number)
	c.Emit(&record.Canary{Sent: change.sent, Replied: change.replied, Seen: change.seen})
}

// unseenFor returns the time since the latest news, 0 before the first.
func (c *canary) unseenFor(now record.Micros) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seenAt == 0 {
		return 0
	}
	return (now - c.seenAt).Duration()
}

// barrier returns when all news that was published before the call was seen.
func (c *canary) barrier(ctx context.Context) error {
	for {
		change, err := c.change(ctx)
		if err == nil {
			select {
			case <-change.done:
				return nil
			case <-ctx.Done():
				return fmt.Errorf("the watch is silent: %w", context.Cause(ctx))
			}
		}
		if !api.Sleep(ctx, 200*time.Millisecond) {
			return err
		}
	}
}

// latency returns the median service time of the latest changes, in seconds.
func (c *canary) latency() (float64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return 0, c.failed
	}
	if len(c.service) == 0 {
		return 0, errors.New("the canary was never changed")
	}
	sorted := slices.Sorted(slices.Values(c.service))
	return sorted[len(sorted)/2].Seconds(), nil
}
