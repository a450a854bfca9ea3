package drain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// Paths of pools of nodes and their configurations, and the label by which a pool selects its own.
const (
	poolsPath   = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"
	ConfigsPath = "/apis/machineconfiguration.openshift.io/v1/machineconfigs"
	labelRole   = "machineconfiguration.openshift.io/role"
)

// pool holds the used parts of a MachineConfigPool, and its nodes.
type pool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Paused                bool                  `json:"paused"`
		MaxUnavailable        *intstr.IntOrString   `json:"maxUnavailable"`
		NodeSelector          *metav1.LabelSelector `json:"nodeSelector"`
		MachineConfigSelector *metav1.LabelSelector `json:"machineConfigSelector"`
	} `json:"spec"`
	Status struct {
		MachineCount        int `json:"machineCount"`
		UpdatedMachineCount int `json:"updatedMachineCount"`
		Configuration       struct {
			Source []corev1.ObjectReference `json:"source"`
		} `json:"configuration"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`

	nodes []string
	apply func() error // makes its configuration, the first time
}

func (p *pool) is(condition string) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool { return c.Type == condition && c.Status == metav1.ConditionTrue })
}

// poolsToRollOut lists the pools with a label, updated, not paused, and chosen by no run. It waits a
// while for pools that are not updated.
func poolsToRollOut(ctx context.Context, c *api.Client, selector string) (list []pool, err error) {
	for tries := 1; ; tries++ {
		list, settling, err := poolsNow(ctx, c, selector)
		if err != nil || !settling || tries == 30 || !api.Sleep(ctx, time.Second) {
			return list, err
		}
	}
}

// poolsNow lists the pools that can be rolled out now; settling says that others are being updated.
func poolsNow(ctx context.Context, c *api.Client, selector string) (list []pool, settling bool, err error) {
	var found struct {
		Items []pool `json:"items"`
	}
	if err := c.InJSON(ctx, poolsPath, map[string][]string{"labelSelector": {selector}}, nil, &found); err != nil && !apierrors.IsNotFound(err) {
		return nil, false, fmt.Errorf("list machineconfigpools: %w", c.Unreachable(err))
	}
	for _, p := range found.Items {
		takes, err := metav1.LabelSelectorAsSelector(p.Spec.MachineConfigSelector)
		if err != nil {
			return nil, false, fmt.Errorf("pool %s: %w", p.Name, err)
		}
		settling = settling || !p.Spec.Paused && !p.is("Updated")
		if p.Spec.Paused || !p.is("Updated") || !takes.Matches(labels.Set{labelRole: p.Name}) {
			continue
		}
		nodes, err := c.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(p.Spec.NodeSelector)})
		if err != nil {
			return nil, false, fmt.Errorf("list the nodes of pool %s: %w", p.Name, c.Unreachable(err))
		}
		taken := false
		for _, node := range nodes.Items {
			p.nodes = append(p.nodes, node.Name)
			taken = taken || node.Labels[api.LabelDrained] != ""
		}
		if len(p.nodes) > 0 && !taken {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b pool) int { return strings.Compare(a.Name, b.Name) })
	return list, settling, nil
}

// atOnce returns how many of the pool's nodes are drained at once.
func (p *pool) atOnce() int {
	most, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(p.Spec.MaxUnavailable, new(intstr.FromInt32(1))), len(p.nodes), false)
	if err != nil {
		return 1
	}
	return min(max(1, most), len(p.nodes))
}

// chosenPools returns the first n pools, if their roll-out leaves at least one node that takes machines.
func chosenPools(ctx context.Context, c *api.Client, pools []pool, n int, selector string) ([]pool, error) {
	if n > len(pools) {
		return nil, system.Mistakef("label the pools that may be rolled out; one that is paused, is not updated, does not select configurations by the role of its name or has nodes that a run has chosen is left alone, and plimsoll clean ends those of runs that were killed",
			"%s to roll out: of those with the label %s, %d could be", record.Noun{One: "MachineConfigPool", Many: "MachineConfigPools"}.Count(n), selector, len(pools))
	}
	nodes, err := c.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", c.Unreachable(err))
	}
	drained, can := 0, len(drainable(nodes.Items, nil))
	for i := range pools[:n] {
		drained += pools[i].atOnce()
	}
	if drained >= can {
		return nil, system.Mistakef("lower the level, or maxUnavailable of the pools, or add nodes", "a roll-out to %s drains %d nodes at once, of %d that take pods: none is left to take their machines", record.Noun{One: "pool", Many: "pools"}.Count(n), drained, can)
	}
	return pools[:n], nil
}

func (d *Drain) choosePools(ctx context.Context, n int) error {
	can, err := poolsToRollOut(ctx, d.Client, d.spec.Pools)
	if err != nil {
		return err
	}
	if d.pools, err = chosenPools(ctx, d.Client, can, n, d.spec.Pools); err != nil {
		return err
	}
	d.nodes, d.iteration = nil, nil
	for i := range d.pools {
		p := &d.pools[i]
		for _, node := range p.nodes {
			if d.agreed != nil && !slices.Contains(d.agreed, node) {
				return fmt.Errorf("roll out to pool %s: its node %s was not agreed to", p.Name, node)
			}
			d.nodes, d.iteration = append(d.nodes, node), append(d.iteration, i)
		}
		p.apply = sync.OnceValue(func() error { return makeConfig(context.WithoutCancel(ctx), d.Client, d.Load.RunID, p.Name) })
	}
	return nil
}

func configName(run, pool string) string { return "99-plimsoll-" + run + "-" + pool }

// makeConfig makes a configuration that changes an unused file: an empty one would not be rolled out.
func makeConfig(ctx context.Context, c *api.Client, run, pool string) error {
	body, err := json.Marshal(map[string]any{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{"name": configName(run, pool), "labels": map[string]string{api.LabelManagedBy: api.ManagedBy, api.LabelRun: run, labelRole: pool}},
		"spec": map[string]any{"config": map[string]any{"ignition": map[string]any{"version": "3.1.0"}, "storage": map[string]any{"files": []any{
			map[string]any{"path": "/etc/plimsoll-roll-out", "mode": 420, "overwrite": true, "contents": map[string]any{"source": "data:," + run}}}}}}})
	if err != nil {
		return fmt.Errorf("encode the configuration of pool %s: %w", pool, err)
	}
	r, err := c.Do(ctx, http.MethodPost, ConfigsPath, nil, "application/json", body, new(bytes.Buffer))
	// A conflict means that an answer was lost: the name has the run's ID.
	if err = cmp.Or(err, r.ErrBut(http.StatusConflict)); err != nil {
		return fmt.Errorf("make the configuration of pool %s: %w", pool, c.Unreachable(err))
	}
	return nil
}

// rollBack removes the level's configurations, which reboots the nodes again, and reports the duration.
func (d *Drain) rollBack(ctx context.Context) error {
	show := func(string) {}
	if d.Load.Progress != nil && len(d.pools) > 0 {
		var end func()
		show, end = d.Load.Progress()
		defer end()
	}
	var names []string
	for _, p := range d.pools {
		names = append(names, p.Name)
	}
	begin := d.Clock.Now()
	err := RollBack(ctx, d.Client, d.Load.RunID, names, func(left []string) {
		show("taking the configurations away reboots the nodes again: waiting for " + strings.Join(left, ", "))
	}, func(pool string) {
		text := fmt.Sprintf("the second roll-out, which took the configuration away, took %v", (d.Clock.Now() - begin).Duration().Round(100*time.Millisecond))
		d.Emit(&record.Note{Warning: record.WarningNote, Place: pool, Text: text})
		d.log("pool %s: %s", pool, text)
	})
	if err == nil {
		d.pools = nil
	}
	return err
}

// RollBack removes a run's configurations and waits until their pools are updated without them.
func RollBack(ctx context.Context, c *api.Client, run string, pools []string, waits func(left []string), back func(pool string)) error {
	rest, end := system.Outlive(ctx)
	defer end()
	for _, p := range pools {
		r, err := c.Call(rest, http.MethodDelete, ConfigsPath+"/"+configName(run, p), nil)
		if err = cmp.Or(err, r.ErrBut(http.StatusNotFound)); err != nil {
			return fmt.Errorf("take the configuration of pool %s away: %w", p, c.Unreachable(err))
		}
	}
	left := slices.Clone(pools)
	for {
		left = slices.DeleteFunc(left, func(name string) bool {
			var p pool
			err := c.InJSON(ctx, poolsPath+"/"+name, nil, nil, &p)
			gone := apierrors.IsNotFound(err)
			ours := slices.ContainsFunc(p.Status.Configuration.Source, func(s corev1.ObjectReference) bool { return s.Name == configName(run, name) })
			done := gone || err == nil && !ours && p.is("Updated") && p.Status.UpdatedMachineCount == p.Status.MachineCount
			if done {
				back(name)
			}
			return done
		})
		if len(left) == 0 {
			return nil
		}
		waits(left)
		if !api.Sleep(ctx, time.Second) {
			return fmt.Errorf("the second roll-out of %s goes on, and its nodes are rebooted ('plimsoll clean' waits for it): %w", strings.Join(left, ", "), context.Cause(ctx))
		}
	}
}

// RolledOut finds configurations that runs have made; none where the user may not see them.
func RolledOut(ctx context.Context, c *api.Client, tell func(run, pool string)) error {
	var found metav1.PartialObjectMetadataList
	err := c.InJSON(ctx, ConfigsPath, map[string][]string{"labelSelector": {api.LabelManagedBy + "=" + api.ManagedBy + "," + api.LabelRun}}, nil, &found)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list machineconfigs: %w", c.Unreachable(err))
	}
	for _, o := range found.Items {
		tell(o.Labels[api.LabelRun], o.Labels[labelRole])
	}
	return nil
}

// agreeToRollOut chooses at most so many pools, and describes their roll-out for the user's consent.
func agreeToRollOut(ctx context.Context, c *api.Client, selector string, most int) (nodes []string, text string, err error) {
	can, err := poolsToRollOut(ctx, c, selector)
	if err != nil {
		return nil, "", err
	}
	if can, err = chosenPools(ctx, c, can, most, selector); err != nil {
		return nil, "", err
	}
	var names []string
	for _, p := range can {
		nodes = append(nodes, p.nodes...)
		names = append(names, fmt.Sprintf("%s (%s)", p.Name, strings.Join(p.nodes, ", ")))
	}
	return nodes, fmt.Sprintf("a configuration is made for these pools and taken away again: each time their %d nodes are drained, of everybody's pods, and rebooted: %s", len(nodes), strings.Join(names, "; ")), nil
}
