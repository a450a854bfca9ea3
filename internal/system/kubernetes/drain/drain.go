// Package drain drains nodes for a run, or has their pools rolled out, and releases them. A drain labels its
// nodes before it makes machines, which prefer them by that label. It cordons them with a label of the run,
// in one patch that holds only for the node that was read: one list finds the nodes of a dead run, and a node
// that somebody else cordoned is never uncordoned. A refused eviction is an answer, not a throttled request.
// A roll-out is a drain by OpenShift, which begins with a MachineConfig. Its end shows in the pool's list of
// sources, since the configuration in force may have another name afterwards.
package drain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// evictAgain is the pause before a refused eviction is repeated, as in kubectl, unless the server says.
const evictAgain = 5 * time.Second

const (
	nodeWorkers  = 8                // parallel changes of nodes
	releaseBound = 10 * time.Second // bound on the release of nodes
)

// Drain drains nodes as kubectl does, but evicts only pods of this run's objects.
type Drain struct {
	*prepared.Run
	spec   *described.Drain
	ours   func(namespace string) bool
	log    func(format string, args ...any)
	agreed []string // nodes that may be drained, nil for any

	nodes     []string           // the chosen ones
	iteration []int              // of each node
	pools     []pool             // the chosen ones by iteration, for roll-outs
	pods      map[string]evictee // of the objects on the nodes, by the object's name
	asked     sync.WaitGroup     // repeated evictions
	stop      context.CancelFunc // ends the repetition
	again     context.Context    // ends with stop
}

// New makes a Drain of the agreed nodes, or of any for nil. ours says which namespaces are the run's.
func New(common *prepared.Run, spec *described.Drain, agreed []string, ours func(namespace string) bool, log func(format string, args ...any)) *Drain {
	return &Drain{Run: common, spec: spec, ours: ours, log: log, agreed: agreed}
}

type evictee struct{ namespace, name, node string }

// nodesToDrain lists ready, schedulable nodes that no other run has chosen, without others' pods of the kind.
func nodesToDrain(ctx context.Context, c *api.Client, spec *described.Drain, ours func(namespace string) bool) ([]string, error) {
	nodes, err := c.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: spec.Nodes})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", c.Unreachable(err))
	}
	pods, err := c.Typed.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: spec.Pods, FieldSelector: api.NotTerminal})
	if err != nil {
		return nil, fmt.Errorf("list pods that would be evicted: %w", c.Unreachable(err))
	}
	busy := make(map[string]bool)
	for _, pod := range pods.Items {
		busy[pod.Spec.NodeName] = busy[pod.Spec.NodeName] || !ours(pod.Namespace)
	}
	return drainable(nodes.Items, busy), nil
}

// drainable lists the nodes that can be drained; busy ones have pods of others.
func drainable(nodes []corev1.Node, busy map[string]bool) (list []string) {
	for _, node := range nodes {
		ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
		if ready && !tainted && !node.Spec.Unschedulable && !busy[node.Name] && node.Labels[api.LabelDrained] == "" {
			list = append(list, node.Name)
		}
	}
	slices.Sort(list)
	return list
}

// chosen returns the first n nodes, if at least one more can take their pods.
func chosen(nodes []string, n int, selector string) ([]string, error) {
	if n >= len(nodes) {
		return nil, system.Mistakef("lower the level; nodes that are cordoned, tainted, not ready or have others' machines are left alone, and plimsoll clean uncordons those of runs that were killed",
			"%s to drain, and one that is left to take what is on them: of the nodes with the label %s, %d could be drained", record.Noun{One: "node", Many: "nodes"}.Count(n), selector, len(nodes))
	}
	return nodes[:n], nil
}

// Mark chooses and labels the nodes to drain, one for each iteration, so that objects can prefer them.
func (d *Drain) Mark(ctx context.Context, n int) error {
	if d == nil {
		return nil
	}
	if d.spec.Pools != "" {
		if err := d.choosePools(ctx, n); err != nil {
			return err
		}
		return d.label(ctx)
	}
	can, err := nodesToDrain(ctx, d.Client, d.spec, d.ours)
	if err != nil {
		return err
	}
	if d.agreed == nil {
		can, err = chosen(can, n, d.spec.Nodes)
	} else if left := slices.DeleteFunc(slices.Clone(d.agreed), func(node string) bool { return slices.Contains(can, node) }); len(left) > 0 || n > len(d.agreed) {
		err = fmt.Errorf("drain %d of the nodes that were agreed to: %s cannot be drained any more", n, strings.Join(left, ", "))
	} else {
		can = d.agreed[:n]
	}
	if err != nil {
		return err
	}
	d.nodes, d.iteration = can, nil
	for i := range can {
		d.iteration = append(d.iteration, i)
	}
	return d.label(ctx)
}

func (d *Drain) label(ctx context.Context) error {
	return d.each(ctx, func(ctx context.Context, i int) error {
		return changeNode(ctx, d.Client, d.nodes[i], func(node *corev1.Node) (map[string]any, error) {
			if by := node.Labels[api.LabelDrained]; by != "" && by != d.Load.RunID {
				return nil, fmt.Errorf("run %s drains it", by)
			}
			return map[string]any{"metadata": map[string]any{"labels": map[string]any{api.LabelDrained: d.Load.RunID, api.LabelDrain: strconv.Itoa(d.iteration[i])}}}, nil
		})
	})
}

func (d *Drain) each(ctx context.Context, do func(ctx context.Context, i int) error) error {
	return api.InParallel(ctx, len(d.nodes), nodeWorkers, 0, do)
}

// Cordon cordons the chosen nodes and finds the pods of this run's objects there.
func (d *Drain) Cordon(ctx context.Context) error {
	if d == nil {
		return nil
	}
	pods, err := d.Client.Typed.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: d.spec.Pods, FieldSelector: api.NotTerminal})
	if err != nil {
		return fmt.Errorf("list the pods to evict: %w", d.Client.Unreachable(err))
	}
	d.pods = make(map[string]evictee)
	perNode := make(map[string]int)
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && d.ours(pod.Namespace) {
			d.pods[pod.Namespace+"/"+owner.Name] = evictee{pod.Namespace, pod.Name, pod.Spec.NodeName}
			perNode[pod.Spec.NodeName]++
		}
	}
	if d.spec.Pools != "" {
		return nil // the roll-out cordons
	}
	for _, node := range d.nodes {
		if even := len(d.pods) / len(d.nodes); perNode[node] != even {
			d.Emit(&record.Note{Warning: record.WarningNote, Place: node, Text: "the objects do not lie evenly on the nodes that are drained"})
		}
	}
	d.again, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	return d.each(ctx, func(ctx context.Context, i int) error {
		if err := d.tellOthers(ctx, d.nodes[i]); err != nil {
			return err
		}
		return changeNode(ctx, d.Client, d.nodes[i], func(node *corev1.Node) (map[string]any, error) {
			if node.Spec.Unschedulable {
				return nil, errors.New("somebody else has cordoned it")
			}
			return map[string]any{
				"metadata": map[string]any{"labels": map[string]any{api.LabelCordoned: d.Load.RunID}}, "spec": map[string]any{"unschedulable": true},
			}, nil
		})
	})
}

func (d *Drain) tellOthers(ctx context.Context, node string) error {
	pods, err := d.Client.Typed.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: api.NotTerminal + ",spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list the pods of node %s: %w", node, d.Client.Unreachable(err))
	}
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); !d.ours(pod.Namespace) && (owner == nil || owner.Kind != "DaemonSet" && owner.Kind != "Node") {
			d.Emit(&record.Note{Warning: record.WarningNote, Place: node, Text: "pods of others stay on nodes that are drained: only this run's are evicted"})
			return nil
		}
	}
	return nil
}

// Evict requests the eviction of an object's pod, again after refusals, which are answers, until it is gone.
func (d *Drain) Evict(ctx context.Context, object string, slot record.Slot) record.Slot {
	pod, there := d.pods[object]
	if !there || !slices.Contains(d.nodes, pod.node) {
		slot.Outcome, slot.Error = record.SlotFailed, "it is on none of the nodes that are drained, but on "+strconv.Quote(pod.node)
		return slot
	}
	if d.spec.Pools != "" {
		slot.Outcome = record.SlotCreated
		if err := d.pools[d.iteration[slices.Index(d.nodes, pod.node)]].apply(); err != nil {
			slot.Outcome, slot.Error = record.SlotFailed, err.Error()
		}
		return slot
	}
	rest, end := system.Outlive(ctx)
	defer end()
	var last api.Reply
	_, err := d.Client.Patiently(rest, d.Load.RetryFor(), func(ctx context.Context) (r api.Reply, err error) {
		if last, err = d.ask(ctx, pod); last.Code == http.StatusTooManyRequests {
			return api.Reply{}, err // a disruption budget's refusal, which is recorded
		}
		return last, err
	})
	slot.Code = last.Code
	if err = cmp.Or(err, last.ErrBut(http.StatusTooManyRequests)); err != nil {
		slot.Outcome, slot.Error = record.SlotFailed, err.Error()
		return slot
	}
	slot.Outcome = record.SlotCreated
	if last.Code == http.StatusTooManyRequests {
		d.asked.Go(func() { d.askAgain(pod, last.RetryAfter()) })
	}
	return slot
}

// askAgain repeats an eviction until it is granted, or the pod is gone.
func (d *Drain) askAgain(pod evictee, after time.Duration) {
	for api.Sleep(d.again, max(evictAgain, after)) {
		r, err := d.ask(d.again, pod)
		if err == nil && r.Code != http.StatusTooManyRequests && !r.Transient() {
			return
		}
		after = r.RetryAfter()
	}
}

func (d *Drain) ask(ctx context.Context, pod evictee) (api.Reply, error) {
	body, err := json.Marshal(policyv1.Eviction{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Namespace: pod.namespace, Name: pod.name},
	})
	if err != nil {
		return api.Reply{}, fmt.Errorf("encode the eviction of %s: %w", pod.name, err)
	}
	return d.Client.Try(ctx, http.MethodPost, api.PodPath(pod.namespace+"/"+pod.name)+"/eviction", nil, "application/json", body, new(bytes.Buffer))
}

// Release ends the drains and uncordons their nodes, unless the cluster is about to go.
func (d *Drain) Release(ctx context.Context, leaving bool) error {
	if d == nil || len(d.nodes) == 0 {
		return nil
	}
	if d.stop != nil {
		d.stop()
		d.asked.Wait()
	}
	if d.Load.Abandon && leaving {
		return nil
	}
	if d.spec.Pools != "" {
		if err := d.rollBack(ctx); err != nil {
			return err
		}
	}
	rest, end := system.Outlive(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(rest, releaseBound)
	defer cancel()
	err := ReleaseNodes(ctx, d.Client, d.Load.RunID, d.nodes)
	if err == nil {
		d.nodes, d.pods = nil, nil
	}
	return err
}

// ReleaseNodes removes a run's labels from nodes, and uncordons those that it has cordoned.
func ReleaseNodes(ctx context.Context, c *api.Client, run string, nodes []string) error {
	return api.InParallel(ctx, len(nodes), nodeWorkers, 0, func(ctx context.Context, i int) error {
		err := changeNode(ctx, c, nodes[i], func(node *corev1.Node) (map[string]any, error) { return releaseOf(node, run), nil })
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// releaseOf returns the patch that removes a run's labels and cordon from a node, nil for none.
func releaseOf(node *corev1.Node, run string) map[string]any {
	if node.Labels[api.LabelDrained] != run {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"labels": map[string]any{api.LabelDrained: nil, api.LabelDrain: nil, api.LabelCordoned: nil}}}
	if node.Labels[api.LabelCordoned] == run {
		patch["spec"] = map[string]any{"unschedulable": nil}
	}
	return patch
}

// changeNode patches a node, only the one that change has seen, unless change returns nil.
func changeNode(ctx context.Context, c *api.Client, name string, change func(*corev1.Node) (map[string]any, error)) error {
	for {
		node, err := c.Typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("get node %s: %w", name, c.Unreachable(err))
		}
		patch, err := change(node)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		if patch == nil {
			return nil
		}
		patch["metadata"].(map[string]any)["resourceVersion"] = node.ResourceVersion
		body, err := json.Marshal(patch)
		if err != nil {
			return fmt.Errorf("encode the patch of node %s: %w", name, err)
		}
		_, err = c.Typed.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
		switch {
		case apierrors.IsConflict(err):
			continue
		case err != nil:
			return fmt.Errorf("patch node %s: %w", name, c.Unreachable(err))
		}
		return nil
	}
}

// Drained finds the nodes that runs have chosen to drain. A user who may not see nodes has cordoned none.
func Drained(ctx context.Context, c *api.Client, found func(run, node string)) error {
	nodes, err := c.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: api.LabelDrained})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list nodes that are drained: %w", c.Unreachable(err))
	}
	for _, node := range nodes.Items {
		found(node.Labels[api.LabelDrained], node.Name)
	}
	return nil
}

// Agree chooses at most so many nodes, and describes their drain for the user's consent.
func Agree(ctx context.Context, c *api.Client, spec *described.Drain, most int) (nodes []string, text string, err error) {
	if spec.Pools != "" {
		return agreeToRollOut(ctx, c, spec.Pools, most)
	}
	can, err := nodesToDrain(ctx, c, spec, func(string) bool { return false })
	if err == nil {
		nodes, err = chosen(can, most, spec.Nodes)
	}
	return nodes, fmt.Sprintf("these nodes will be cordoned, and this run's machines on them evicted; they are uncordoned at the end: %s", strings.Join(nodes, ", ")), err
}

// On returns the nodes of the drained objects, by object; nil without a drain.
func (d *Drain) On() map[string]string {
	if d == nil {
		return nil
	}
	list := make(map[string]string, len(d.pods))
	for name, pod := range d.pods {
		list[name] = pod.node
	}
	return list
}
