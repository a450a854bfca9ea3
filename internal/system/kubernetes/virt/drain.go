package virt

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/drain"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// drain returns the workload's drain, or nil.
func (m *Machines) drain() *described.Drain {
	if m.objects == nil || m.objects.Begin == nil {
		return nil
	}
	return m.objects.Begin.Drain
}

// drainRights returns the further rights for a drain.
func drainRights(spec *described.Drain) (list []ceiling.Right) {
	need := func(what, resource string, verbs ...string) {
		for _, verb := range verbs {
			list = append(list, ceiling.Right{Verb: verb, Resource: resource, For: what})
		}
	}
	need("chooses, cordons and releases nodes", "nodes", "list", "watch", "get", "patch")
	if spec.Pools == "" {
		need("evicts the pods of machines", "pods/eviction", "create")
		return list
	}
	need("chooses pools of nodes, and waits for them", "machineconfigpools.machineconfiguration.openshift.io", "list", "get")
	need("rolls a configuration out to pools, and takes it away", "machineconfigs.machineconfiguration.openshift.io", "list", "create", "delete")
	return list
}

// Agree adds to the user's consent the nodes that the run may cordon and drain, at most.
func (m *Machines) Agree(ctx context.Context, c *api.Client, consent *system.Consent) error {
	spec := m.drain()
	if m.ToRead {
		return nil
	}
	if by := m.upgrades(); by != "" {
		nodes, err := c.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list the nodes that are rebooted: %w", err)
		}
		consent.Reboots, consent.Once = len(nodes.Items), true
		consent.Warnings = append(consent.Warnings, fmt.Sprintf("the upgrade (%s) drains and reboots all nodes of the cluster, and is not undone", by))
	}
	if spec == nil {
		return nil
	}
	nodes, text, err := drain.Agree(ctx, c, spec, int(slices.Max(append(m.Plan.Levels(), 1))))
	if err != nil {
		return err
	}
	if m.drains = nodes; spec.Pools != "" {
		consent.Reboots = len(nodes)
	}
	consent.Warnings = append(consent.Warnings, text)
	return nil
}

// Outline returns the run's further changes to the cluster.
func (m *Machines) Outline() []system.Change {
	if d := m.drain(); d != nil && d.Pools != "" {
		return []system.Change{{Action: system.Reboot, What: fmt.Sprintf("all nodes of MachineConfigPools with the label %s, as many pools as the level: drained and rebooted, and once more when the configuration is taken away", d.Pools)}}
	} else if d != nil {
		return []system.Change{{Action: system.ChangeIt, What: fmt.Sprintf("nodes with the label %s, as many as the level: cordoned, and this run's %s there evicted", d.Nodes, m.objects.Noun.Many)}}
	}
	if by := m.upgrades(); by != "" {
		return []system.Change{{Action: system.Reboot, What: fmt.Sprintf("all nodes of the cluster, once: the upgrade (%s) drains and reboots them, and is not undone", by)}}
	}
	return nil
}

// upgrades returns the parameter by which the run makes an operator reboot all nodes, "" for none.
// Upgrades that others begin are only watched.
func (m *Machines) upgrades() string {
	if m.objects == nil || m.objects.Begin == nil || !m.objects.Begin.Reboots {
		return ""
	}
	all := []map[string]string{m.Plan.Params}
	for _, a := range m.Plan.Arms {
		all = append(all, a.Params)
	}
	for _, s := range m.Workload.Settings {
		for _, params := range all {
			if to := params[s.Param]; s.Clear && to != "" {
				return s.Param + "=" + to
			}
		}
	}
	return ""
}

// Bounds adapts the bounds of a load.
func (m *Machines) Bounds(b *system.Bounds) {
	if d := m.drain(); d != nil && d.Pools != "" {
		delete(b.Guards, observe.NodesNotReady) // the roll-out reboots nodes
	}
}
