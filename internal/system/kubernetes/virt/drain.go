package virt

import (
	"context"
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/drain"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// drainOf is what a workload drains, nil for nothing.
func drainOf(w *workload.Workload) *described.Drain {
	if o := described.Of(w); o != nil && o.Begin != nil {
		return o.Begin.Drain
	}
	return nil
}

// drainRights is what draining takes besides.
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

// Agree implements kubernetes.Extension: it names the nodes that the run will
// cordon and drain at most; no others are.
func (m *machines) Agree(ctx context.Context, c *api.Client, consent *system.Consent) error {
	spec := drainOf(m.Workload)
	if spec == nil || m.ToRead {
		return nil
	}
	nodes, text, err := drain.Agree(ctx, c, spec, mostNodes(&m.Plan.Axis))
	if err != nil {
		return err
	}
	if m.drains = nodes; spec.Pools != "" {
		consent.Reboots = len(nodes)
	}
	consent.Warnings = append(consent.Warnings, text)
	return nil
}

// mostNodes is the highest level of a plan.
func mostNodes(axis *plan.Axis) int {
	levels := slices.Clone(axis.Levels)
	if axis.Level != nil {
		levels = append(levels, *axis.Level)
	}
	if axis.Search != nil {
		levels = append(levels, axis.Search.Max)
	}
	return int(slices.Max(append(levels, 1)))
}

// Outline implements kubernetes.Extension.
func (m *machines) Outline() []system.Change {
	if d := drainOf(m.Workload); d != nil && d.Pools != "" {
		return []system.Change{{Action: system.Reboot, What: fmt.Sprintf("all nodes of MachineConfigPools with the label %s, as many pools as the level: drained and rebooted, and once more when the configuration is taken away", d.Pools)}}
	} else if d != nil {
		return []system.Change{{Action: system.ChangeIt, What: fmt.Sprintf("nodes with the label %s, as many as the level: cordoned, and this run's %s there evicted", d.Nodes, described.Of(m.Workload).Noun.Many)}}
	}
	return nil
}

// Bounds implements kubernetes.Extension.
func (m *machines) Bounds(b *system.Bounds) {
	if d := drainOf(m.Workload); d != nil && d.Pools != "" {
		delete(b.Guards, observe.NodesNotReady) // that is what is done to them
	}
}
