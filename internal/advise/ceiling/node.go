package ceiling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
)

func (c *computation) nodes() {
	f := c.f
	if !f.NodesRead.Known() {
		for _, name := range []string{Pods, CPU, Memory} {
			row, _ := allocatable(name)
			c.unknown(row, f.NodesRead.Why)
		}
		return
	}
	allowed := make(map[string]int64)
	known := []string{Pods, CPU, Memory}
	further := slices.DeleteFunc(c.load.requests(), func(name string) bool { return slices.Contains(known, name) })
	for _, name := range slices.Concat(known, further) {
		if n, ok := c.resource(name); ok {
			allowed[name] = n
		}
	}
	c.together(allowed)
	c.maxPods()
}

// allocatable returns the row of a resource of the nodes, and how many of its amounts make one of its units.
func allocatable(name string) (row record.Ceiling, unit float64) {
	switch name {
	case Pods:
		return record.Ceiling{Name: "allocatablePods", What: "allocatable pods of the nodes", Unit: Pods}, 1
	case CPU:
		return record.Ceiling{Name: "allocatableCPU", What: "CPU for requests on the nodes", Unit: "cores"}, 1000
	case Memory:
		return record.Ceiling{Name: "allocatableMemory", What: "memory for requests on the nodes", Unit: "bytes"}, 1
	}
	return record.Ceiling{Name: "allocatable:" + name, What: name + " for requests on the nodes", Unit: name}, 1
}

func (c *computation) resource(name string) (allowed int64, ok bool) {
	f := c.f
	row, unit := allocatable(name)
	row.Class, row.From = record.CeilingHard, "status.allocatable of the nodes"
	row.Sign = refusal(name)
	row.Reason = onNodes(row.Sign, len(f.Nodes), f.AllNodes)
	var limit, used int64
	least, largest := int64(-1), int64(0)
	for _, n := range f.Nodes {
		can := n.Allocatable[name]
		limit += can
		used += n.used(name)
		if least < 0 || can < least {
			least = can
		}
		largest = max(largest, can)
	}
	row.Limit = figure(float64(limit) / unit)
	if f.PodsRead.Known() {
		row.Used = figure(float64(used) / unit)
	}
	if least >= 0 && least != largest {
		row.Note = fmt.Sprintf("%s to %s on a node", amount(name, least), amount(name, largest))
	}
	if name == Pods {
		row.Note = sentences(row.Note, f.standing())
	}
	request := func(e Entry) int64 {
		if name == Pods {
			return e.Pods
		}
		return e.Pods * e.Pod.Requests[name]
	}
	if !c.load.makes(request) {
		row.Class, row.Reason, row.Sign = record.CeilingUnbound, "", ""
		row.Note = sentences(row.Note, "the workload's pods request none")
		if c.f.Load == nil {
			row.Note = "depends on what a workload's pods request"
		}
		c.add(row, unbounded, false)
		return 0, false
	}
	if !f.PodsRead.Known() {
		if name != Pods {
			c.unknown(row, "what is requested already is unknown: "+f.PodsRead.Why)
			return 0, false
		}
		row.Note = sentences(row.Note, "what stands there is unknown: "+f.PodsRead.Why)
	}
	allowed, whole := c.fits(name, max(0, limit-used), request)
	if !whole {
		row.Note = sentences(row.Note, "an upper bound: pods of several sizes may not fill a node")
	}
	c.add(row, allowed, false)
	return allowed, true
}

// fits returns how many iterations fit by one resource, and whether it counted node by node.
func (c *computation) fits(name string, left int64, request func(Entry) int64) (iterations int64, whole bool) {
	size, same := c.load.uniform(name)
	if !same {
		return most(left, func(i int64) int64 { return c.load.sum(i, request) }), false
	}
	// The rest of a node that is too small for another pod is lost.
	var room int64
	for _, n := range c.f.Nodes {
		room += max(0, n.Allocatable[name]-n.used(name)) / size
	}
	if name == Pods {
		room = max(0, room-int64(c.f.Pending))
	}
	return most(room, func(i int64) int64 {
		return c.load.sum(i, func(e Entry) int64 {
			if request(e) == 0 {
				return 0
			}
			return e.Pods
		})
	}), true
}

func (n Node) used(name string) int64 {
	if name == Pods {
		return int64(n.Standing)
	}
	return n.Requested[name]
}

// uniform returns what every pod that requests a resource requests of it.
func (l Load) uniform(name string) (size int64, same bool) {
	if name == Pods {
		return 1, true
	}
	for _, p := range l.shapes() {
		switch one := p.Requests[name]; {
		case one == 0 || one == size:
		case size != 0:
			return 0, false
		default:
			size = one
		}
	}
	return size, true
}

// together is about nodes that different resources fill: fewer pods fit than any resource alone allows.
func (c *computation) together(allowed map[string]int64) {
	if len(allowed) < 2 || len(c.load.shapes()) != 1 {
		return
	}
	pod := c.load.shapes()[0]
	names := slices.Sorted(maps.Keys(allowed))
	full := make(map[string]int) // nodes by the resource that fills them
	var room int64
	for _, n := range c.f.Nodes {
		fits := int64(-1)
		by := make(map[string]int64)
		for _, name := range names {
			size := max(1, pod.Requests[name])
			by[name] = max(0, n.Allocatable[name]-n.used(name)) / size
			if fits < 0 || by[name] < fits {
				fits = by[name]
			}
		}
		room += fits
		for _, name := range names {
			if by[name] == fits {
				full[name]++
			}
		}
	}
	n := most(max(0, room-int64(c.f.Pending)), c.load.pods)
	if n >= slices.Min(slices.Collect(maps.Values(allowed))) {
		return // that resource's row suffices
	}
	top := slices.MinFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(full[b], full[a]), cmp.Compare(refusal(a), refusal(b)))
	})
	note := ""
	for _, name := range names {
		if full[name] > 0 {
			note = sentences(note, fmt.Sprintf("%d nodes are full by %s", full[name], name))
		}
	}
	c.add(record.Ceiling{
		Name: "nodeResources", What: "all resources of each node together", Class: record.CeilingHard, Unit: Pods,
		Limit: figure(float64(c.others + room)), Used: figure(float64(c.others)),
		Reason: onNodes(refusal(top), full[top], c.f.AllNodes), Sign: refusal(top),
		From: "status.allocatable of the nodes", Note: note,
	}, n, false)
}

// refusal returns the scheduler's words for a node that lacks a resource.
func refusal(name string) string {
	if name == Pods {
		return "Too many pods"
	}
	return "Insufficient " + name
}

// onNodes returns a reason of the scheduler as results show it.
func onNodes(reason string, nodes, of int) string {
	return fmt.Sprintf("%s on %d of %d nodes", reason, nodes, of)
}

// standing says which pods are on the nodes before any load.
func (f *Facts) standing() string {
	if !f.PodsRead.Known() {
		return ""
	}
	var pods, static, daemons int
	for _, n := range f.Nodes {
		pods, static, daemons = pods+n.Standing, static+n.Static, daemons+n.Daemons
	}
	text := ""
	if pods > 0 {
		text = fmt.Sprintf("%d pods stand there, %d of them static and %d of DaemonSets", pods, static, daemons)
	}
	if f.Pending > 0 {
		text = sentences(text, fmt.Sprintf("%d more wait for a place that could be there", f.Pending))
	}
	return text
}

// maxPods is about the kubelets' setting, which with the pods per core decides their allocatable pods.
func (c *computation) maxPods() {
	row := record.Ceiling{Name: "kubeletMaxPods", What: "maxPods of the kubelets", Unit: Pods}
	if len(c.f.Nodes) == 0 || c.f.simulated() {
		return // no kubelets
	}
	var known int
	var sum, beside float64
	why := ""
	for _, n := range c.f.Nodes {
		if n.MaxPods.Known() {
			known++
			sum += n.MaxPods.Value
			beside += max(0, n.MaxPods.Value-float64(n.Allocatable[Pods]))
			row.From = n.MaxPods.From
		} else {
			why = cmp.Or(why, n.MaxPods.Why)
		}
	}
	if known == 0 && why == "" {
		return // nobody read it
	}
	if known == 0 {
		c.unknown(row, sentences(why, "allocatable pods follow from it"))
		return
	}
	row.Class, row.Sign = record.CeilingHard, refusal(Pods)
	row.Reason = onNodes(row.Sign, len(c.f.Nodes), c.f.AllNodes)
	// One node of each kind was read.
	limit := sum / float64(known) * float64(len(c.f.Nodes))
	row.Limit, row.Used = figure(limit), figure(float64(c.others))
	if known < len(c.f.Nodes) {
		row.Note = fmt.Sprintf("read from %d of %d nodes", known, len(c.f.Nodes))
	}
	if beside > 0 {
		row.Note = sentences(row.Note, "nodes offer less: podsPerCore, or a change that has not been taken up")
	}
	c.add(row, most(max(0, int64(limit)-c.others), c.load.pods), false)
}

// amount returns a quantity as people write it.
func amount(name string, n int64) string {
	switch name {
	case CPU:
		return fmt.Sprintf("%.4g cores", float64(n)/1000)
	case Memory:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	}
	return fmt.Sprint(n)
}
