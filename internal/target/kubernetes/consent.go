package kubernetes

import (
	"context"
	"slices"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/drain"
)

// drainOf is what a workload drains, nil for nothing.
func drainOf(w *workload.Workload) *described.Drain {
	if o := described.Of(w); o != nil && o.Begin != nil {
		return o.Begin.Drain
	}
	return nil
}

// drainRights is what draining takes besides.
func drainRights(spec *described.Drain) []ceiling.Right {
	if spec.Pools != "" {
		const pools, configs = "machineconfigpools.machineconfiguration.openshift.io", "machineconfigs.machineconfiguration.openshift.io"
		return []ceiling.Right{{Verb: "get", Resource: "nodes"}, {Verb: "patch", Resource: "nodes"}, {Verb: "list", Resource: pools}, {Verb: "get", Resource: pools}, {Verb: "create", Resource: configs}, {Verb: "delete", Resource: configs}}
	}
	return []ceiling.Right{{Verb: "get", Resource: "nodes"}, {Verb: "patch", Resource: "nodes"}, {Verb: "create", Resource: "pods/eviction"}}
}

// agreeToDrain names the nodes that the run will cordon and drain at most; no
// others are.
func (s *session) agreeToDrain(ctx context.Context, consent *target.Consent) error {
	spec := drainOf(s.Workload)
	if spec == nil || s.ToRead {
		return nil
	}
	nodes, text, err := drain.Agree(ctx, s.cluster.client, spec, mostNodes(&s.Plan.Axis))
	if err != nil {
		return err
	}
	if s.drains = nodes; spec.Pools != "" {
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
