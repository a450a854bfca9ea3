package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
)

type nodeGroup struct {
	Count       int
	First, Last string
	record.Node
}

// environment says what is on record of the target and of this machine.
func (p *Page) environment(e *record.Environment) {
	if e == nil {
		return
	}
	add := func(name, value, note string) {
		if value != "" {
			p.Machine = append(p.Machine, fact{name, value, note})
		}
	}
	if !e.Start.IsZero() {
		add("Start", e.Start.UTC().Format("2006-01-02 15:04:05 MST"), "")
	}
	target := e.Target.Kind
	if e.Target.Name != "" {
		target += " " + e.Target.Name
	}
	note := ""
	if e.Target.Private {
		note = "a private lab of this run"
	}
	add("Target", target, note)
	if c := e.Cluster; c != nil {
		add("API server", c.Server, "")
		note := ""
		if c.Skipped > 0 {
			note = fmt.Sprintf("%d more cannot take the workload", c.Skipped)
		}
		add("Nodes", strconv.Itoa(len(c.Nodes)), note)
		p.Nodes = groupNodes(c.Nodes)
	}
	if e.ClockOffset != nil {
		add("Clock offset", fmt.Sprintf("%+.1f s", *e.ClockOffset), "server minus plimsoll, to within 1 s; latencies do not depend on it")
	}
	if e.Host.OS != "" || e.Host.CPUs > 0 {
		add("Plimsoll ran on", strings.TrimSpace(fmt.Sprintf("%s %s", e.Host.OS, e.Host.Kernel)), "")
		add("CPUs", strconv.Itoa(e.Host.CPUs), "")
		add("Memory", words.Bytes(e.Host.MemoryBytes), "")
		add("Control groups", e.Host.CgroupVersion, "")
	}
	p.Split, p.SplitNotes = e.Isolation.Split, e.Isolation.Notes
}

// kindsOfNodes names the fact that they are.
const kindsOfNodes = "Kinds of nodes"

// groupNodes puts nodes of one shape together, in the order of their names.
func groupNodes(nodes []record.Node) []nodeGroup {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b record.Node) int { return strings.Compare(a.Name, b.Name) })
	var list []nodeGroup
	index := make(map[record.Node]int)
	for _, n := range nodes {
		shape := n
		shape.Name = ""
		i, ok := index[shape]
		if !ok {
			i = len(list)
			index[shape] = i
			list = append(list, nodeGroup{First: n.Name, Node: n})
		}
		list[i].Count++
		list[i].Last = n.Name
	}
	return list
}

// fact is the shape of the nodes of a group in a phrase.
func (g nodeGroup) fact() string {
	return fmt.Sprintf("%s of %d pods, %s CPUs, %s, %s", words.Count(g.Count), g.Pods, words.Number(float64(g.CPUMillis)/1000), words.Bytes(g.MemoryBytes),
		strings.Join(strings.Fields(strings.Join([]string{g.Kubelet, g.Runtime, g.OSImage, g.Kernel}, " ")), " "))
}

// fidelityOf are the parts that there were and of which it is known whether they were real.
func fidelityOf(f record.Fidelity) []fidelityPart {
	list := []fidelityPart{{"control plane", f.ControlPlane}, {"nodes", f.Nodes}, {"containers", f.Containers}, {"guests", f.Guests}}
	return slices.DeleteFunc(list, func(p fidelityPart) bool { return p.Is == "" || p.Is == record.None })
}
