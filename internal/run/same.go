package run

import (
	"fmt"

	"plimsoll.dev/plimsoll/internal/record"
)

// sameTarget refuses a target that is not the one that a run has loaded.
func sameTarget(was, is record.Environment) error {
	switch {
	case was.Target != is.Target && !(was.Target.Private && is.Target.Private):
		return &ContradictionError{fmt.Sprintf("the run loaded %s, this is %s", targetName(was.Target), targetName(is.Target))}
	case was.Fidelity.Nodes != is.Fidelity.Nodes:
		return &ContradictionError{fmt.Sprintf("the run loaded nodes that are %s, these are %s", was.Fidelity.Nodes, is.Fidelity.Nodes)}
	}
	return nil
}

func targetName(t record.TargetNaming) string {
	if t.Private {
		return "a private lab"
	}
	return fmt.Sprintf("%s %q", t.Kind, t.Name)
}

// changes lists what bears on the measurements and is no longer as it was.
func changes(was, is record.Environment) []string {
	var list []string
	changed := func(what string, was, is any) {
		if was != is {
			list = append(list, fmt.Sprintf("%s was %v and is %v", what, was, is))
		}
	}
	changed("this machine's number of CPUs", was.Host.CPUs, is.Host.CPUs)
	changed("this machine's kernel", was.Host.Kernel, is.Host.Kernel)
	if was.Cluster == nil || is.Cluster == nil {
		return list
	}
	pods := func(c *record.Cluster) (n int64) {
		for _, node := range c.Nodes {
			n += node.Pods
		}
		return n
	}
	changed("the server's version", was.Cluster.Server, is.Cluster.Server)
	changed("the number of nodes that take the workload", len(was.Cluster.Nodes), len(is.Cluster.Nodes))
	changed("the number of pods that these can hold", pods(was.Cluster), pods(is.Cluster))
	return list
}
