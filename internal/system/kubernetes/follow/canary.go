package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// canary measures how late the news of a change comes: it changes a pod that
// no scheduler will place, at known times, and awaits the news on the same
// watch that tells of the load's pods. Its changes are numbered. The pod stands
// in the run's own namespace, which also tells other runs that this one is
// alive.
type canary struct {
	*prepared.Run
	now       func() time.Time
	dead      func() // is told when the watches' connection is
	namespace string
	pods      string // the path of its namespace's pods
	path      string // its own

	mu      sync.Mutex
	last    int                   // the number of the last change
	open    map[int]*canaryChange // changes that were not seen yet
	service []time.Duration       // service times of the latest changes
	failed  error                 // of the latest change
}

type canaryChange struct {
	sent, replied record.Micros
	seen          record.Micros
	done          chan struct{} // closed once it was seen
}

const canaryName = "canary"

// maxOpen bounds the changes whose news is awaited: a watch that is silent for
// so many is cut.
const maxOpen = 40

// serviceWindow is how many of the latest service times tell the API's latency.
const serviceWindow = 9

func newCanary(common *prepared.Run, now func() time.Time, dead func()) *canary {
	namespace := "plimsoll-" + common.Load.RunID
	return &canary{
		Run: common, now: now, dead: dead,
		namespace: namespace, pods: "/api/v1/namespaces/" + namespace + "/pods", path: api.PodPath(namespace + "/" + canaryName), open: make(map[int]*canaryChange),
	}
}

// start makes the run's own namespace and the canary in it, and awaits the
// first news.
func (c *canary) start(ctx context.Context) error {
	typed := c.Client.Typed.CoreV1()
	labels := map[string]string{api.LabelManagedBy: api.ManagedBy, api.LabelRun: c.Load.RunID}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace, Labels: labels, Annotations: map[string]string{api.AnnotationAlive: aliveNow(c.now())}}}
	if _, err := typed.Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the run's namespace %s: %w", c.namespace, c.Client.Unreachable(err))
	}
	if err := AwaitServiceAccount(ctx, c.Client, c.namespace); err != nil {
		return fmt.Errorf("create the run's namespace %s: %w", c.namespace, err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: canaryName, Labels: map[string]string{api.LabelManagedBy: api.ManagedBy, api.LabelRun: c.Load.RunID, api.LabelCanary: "true"}},
		Spec: corev1.PodSpec{
			// The gate keeps schedulers from looking at it, and the name of a
			// scheduler that nobody runs does where gates are not known.
			SchedulingGates:              []corev1.PodSchedulingGate{{Name: api.LabelCanary}},
			SchedulerName:                api.LabelCanary,
			AutomountServiceAccountToken: new(false),
			Containers:                   []corev1.Container{{Name: "none", Image: "registry.invalid/never-pulled"}},
		},
	}
	if _, err := typed.Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the canary: %w", c.Client.Unreachable(err))
	}
	for range serviceWindow / 3 {
		if err := c.barrier(ctx); err != nil {
			return fmt.Errorf("start the canary: %w", err)
		}
	}
	return nil
}

func aliveNow(now time.Time) string { return now.UTC().Format(time.RFC3339) }

// run changes the canary until ctx ends.
func (c *canary) run(ctx context.Context) {
	tick := time.NewTicker(c.Load.CanaryInterval)
	defer tick.Stop()
	alive := time.NewTicker(AliveInterval)
	defer alive.Stop()
	for {
		select {
		case <-tick.C:
			_, _ = c.change(ctx) // what fails is kept for latency
		case now := <-alive.C:
			c.tellAlive(ctx, now)
		case <-ctx.Done():
			return
		}
	}
}

// AliveInterval is how often a run gives a sign of life.
const AliveInterval = 20 * time.Second

func (c *canary) tellAlive(ctx context.Context, now time.Time) {
	// The next sign follows soon: one that fails is no matter.
	_, _ = c.annotate(ctx, "/api/v1/namespaces/"+c.namespace, api.AnnotationAlive, aliveNow(now))
}

// annotate changes an annotation of the object at a path.
func (c *canary) annotate(ctx context.Context, path, key, value string) (api.Reply, error) {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	return c.Client.Do(ctx, http.MethodPatch, path, nil, "application/merge-patch+json", patch, new(bytes.Buffer))
}

func (c *canary) change(ctx context.Context) (*canaryChange, error) {
	change := &canaryChange{sent: c.Clock.Now(), done: make(chan struct{})}
	c.mu.Lock()
	c.last++
	number := c.last
	c.open[number] = change
	if len(c.open) >= maxOpen {
		// The server answers and the watch is silent: its connection is dead,
		// for the other watches too.
		c.lose()
		c.dead()
	}
	c.mu.Unlock()

	r, err := c.annotate(ctx, c.path, api.AnnotationCanary, strconv.Itoa(number))
	if err == nil {
		err = r.Err()
	}
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
		c.report(change)
		delete(c.open, number)
	}
	return change, nil
}

// seen takes in the news of the canary: of the change with that number, and so
// of all before it, which the watch may have told together.
func (c *canary) seen(now record.Micros, number string) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return // the news of its creation
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, change := range c.open {
		if number > n || change.seen != 0 {
			continue
		}
		change.seen = now
		close(change.done)
		if change.replied != 0 {
			c.report(change)
			delete(c.open, number)
		}
	}
}

// lose gives up on all changes that were not seen. It is called with the lock
// held.
func (c *canary) lose() {
	for number, change := range c.open {
		if change.seen == 0 && change.replied != 0 {
			c.report(change)
			delete(c.open, number)
		}
	}
}

func (c *canary) report(change *canaryChange) {
	c.Emit(&record.Canary{Sent: change.sent, Replied: change.replied, Seen: change.seen})
}

// barrier returns once everything that was published before the call was seen.
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

// latency is the median service time of the latest changes, in seconds.
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
