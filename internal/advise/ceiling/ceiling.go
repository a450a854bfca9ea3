package ceiling

import (
	"cmp"
	"fmt"
	"math"
	"plimsoll.dev/plimsoll/internal/record"
	"slices"
	"strings"
	"time"
)

// Source is where facts were read, or why they are unknown. The zero Source
// is of facts that are unknown.
type Source struct {
	From string
	Why  string
}

// Known reports whether the facts are known.
func (s Source) Known() bool { return s.From != "" }

// Fact is a figure with its source. The zero Fact is unknown.
type Fact struct {
	Value float64
	Source
}

// Amounts are quantities by the name of the resource, as Kubernetes names them:
// CPU in thousandths of a core, memory in bytes, everything else in pieces.
type Amounts map[string]int64

// Names of resources that are told apart here.
const (
	Pods   = "pods"
	CPU    = "cpu"
	Memory = "memory"
)

// Axis is what is raised.
type Axis struct {
	Name string
	Unit string
	// Life is how long a pod stays, and Span how long pods are made for, where
	// the axis is of arrivals per second. Life is 0 on an axis of pods in
	// place.
	Life time.Duration
	Span time.Duration
	// Foreign says that it is of neither: then no level follows from a number
	// of pods.
	Foreign bool
}

// Facts are what was read of a cluster.
type Facts struct {
	Axis Axis
	// Load is the workload; nil stands for pods that ask for nothing, one for
	// each iteration.
	Load *Load
	// Nodes are those that the workload can land on, of AllNodes.
	Nodes     []Node
	AllNodes  int
	NodesRead Source
	// PodsRead is of everything that was counted from the cluster's pods: what
	// stands on nodes, Pending ones that could land there, and all of them.
	PodsRead   Source
	Pending    int
	Pods       int // in the whole cluster, not ended
	Addresses  int // of those, with an address of the pod network
	Containers int
	// OwnAddresses names a network plug-in that gives out addresses in its own
	// way, whatever ranges the nodes have; "" where none is known.
	OwnAddresses string
	Namespaces   Fact // how many there are
	Services     Fact // how many there are
	// ServiceAddresses are the ranges that services get addresses of, all of
	// the family that is the default, and how many are taken.
	ServiceAddresses Ranges
	ServicesTaken    int
	// PodAddresses are the ranges of the pod network.
	PodAddresses Ranges
	Quotas       []Quota
	// QuotasWhy says of which namespace quotas are unknown, and why.
	QuotasWhy string
	OpenShift bool
}

// Node is one node that a workload can land on.
type Node struct {
	Name      string
	Simulated bool
	// Allocatable is what the node has for pods, and Requested what the pods
	// that stand there have asked for.
	Allocatable Amounts
	Requested   Amounts
	Standing    int // pods
	HostNetwork int // of those, without an address of their own
	Static      int // of those, made by the kubelet itself
	Daemons     int // of those, of DaemonSets
	// Ranges are the node's parts of the pod network, one for each family, and
	// RangesFrom is where they were read.
	Ranges     []Range
	RangesFrom string
	// MaxPods is what the node's kubelet is configured to.
	MaxPods Fact
	// Bridge says that its pods are known to hang on one Linux bridge.
	Bridge bool
}

// round keeps two digits of a level, so that none is promised that is not
// there.
func round(x float64) float64 { return math.Floor(x*100+1e-6) / 100 }

// unbounded is more iterations than anybody will ask for.
const unbounded = int64(1) << 40

// most is the largest number of iterations of which count does not exceed
// limit: count must not fall.
func most(limit int64, count func(iterations int64) int64) int64 {
	if count(unbounded) <= limit {
		return unbounded
	}
	lo, hi := int64(0), unbounded // count(hi) exceeds; lo may, then nothing fits
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if count(mid) <= limit {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// computation is one table in the making.
type computation struct {
	f      Facts
	load   Load
	others int64
	rows   []record.Ceiling
}

// Compute works out the ceilings that follow from the facts.
func Compute(f Facts) record.CeilingTable {
	c := &computation{f: f, load: barePods()}
	if f.Load != nil {
		c.load = *f.Load
	}
	t := record.CeilingTable{
		Workload: c.load.Workload, Axis: f.Axis.Name, Unit: f.Axis.Unit, Notes: []string{},
	}
	for _, n := range f.Nodes {
		c.others += int64(n.Standing)
		if n.Simulated {
			t.Simulated++
		}
	}
	c.others += int64(f.Pending)
	if f.NodesRead.Known() {
		t.Places, t.AllPlaces = new(len(f.Nodes)), &f.AllNodes
		if f.PodsRead.Known() {
			t.Others = new(int(c.others))
		}
	}

	for _, part := range []func(){c.nodes, c.podRanges, c.podNetwork, c.bridges, c.services, c.namespaces, c.tested} {
		part()
	}
	t.Ceilings = c.sorted()
	t.Notes = append(t.Notes, c.notes(t)...)
	return t
}

// sorted is the rows by level, with the one that binds first marked.
func (c *computation) sorted() []record.Ceiling {
	level := func(r record.Ceiling) float64 {
		if r.Level == nil {
			return math.Inf(1)
		}
		return *r.Level
	}
	class := func(r record.Ceiling) int {
		return slices.Index([]record.CeilingClass{record.CeilingHard, record.CeilingAdvisory, record.CeilingNotEnforced, record.CeilingUnknown, record.CeilingUnbound}, r.Class)
	}
	// Of two that bind at one level the scheduler names the one first that
	// comes first by the alphabet.
	slices.SortStableFunc(c.rows, func(a, b record.Ceiling) int {
		return cmp.Or(cmp.Compare(level(a), level(b)), cmp.Compare(class(a), class(b)), strings.Compare(a.Reason, b.Reason))
	})
	if i := slices.IndexFunc(c.rows, func(r record.Ceiling) bool { return r.Class == record.CeilingHard && r.Level != nil }); i >= 0 {
		c.rows[i].Binds = true
	}
	return c.rows
}

// add takes in a row. Allowed is the number of iterations that it allows; made
// says that it counts what is made over a whole step, and not what stands at
// one time, where the axis removes pods as they age.
func (c *computation) add(row record.Ceiling, allowed int64, made bool) {
	if row.Limit != nil && row.Used != nil && row.Left == nil {
		row.Left = figure(max(0, *row.Limit-*row.Used))
	}
	switch {
	case row.Class == record.CeilingUnknown || row.Class == record.CeilingUnbound:
	case allowed >= unbounded:
		row.Class, row.Reason, row.Sign = record.CeilingUnbound, "", ""
	default:
		ours := float64(c.load.pods(allowed))
		total := float64(c.others) + ours
		axis := c.f.Axis
		switch {
		case axis.Foreign:
			row.Class, row.Note = record.CeilingUnknown, sentences(row.Note, "which level of "+axis.Name+" that is, is unknown")
		case axis.Life > 0 && made:
			level := ours / axis.Span.Seconds()
			total = float64(c.others) + level*axis.Life.Seconds()
			row.Level = figure(round(level))
		case axis.Life > 0:
			row.Level = figure(round(ours / axis.Life.Seconds()))
		case len(c.f.Nodes) > 0:
			row.Level = figure(round(total / float64(len(c.f.Nodes))))
		default:
			row.Class, row.Note = record.CeilingUnknown, sentences(row.Note, "without a node for it there is no level")
		}
		row.Total = figure(math.Floor(total + 1e-6))
	}
	c.rows = append(c.rows, row)
}

// unknown takes in a row of something that could not be read.
func (c *computation) unknown(row record.Ceiling, why string) {
	row.Class, row.Note = record.CeilingUnknown, sentences(row.Note, why)
	c.rows = append(c.rows, row)
}

func figure(x float64) *float64 { return &x }

// sentences puts remarks side by side, leaving out empty ones.
func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// notes are what the reader of the table must know.
func (c *computation) notes(t record.CeilingTable) []string {
	var list []string
	if t.Simulated > 0 {
		list = append(list, "the nodes are simulated: they take pods up to their allocatable resources, and that is kept by the real scheduler; they hand out addresses without looking at the end of a range, and have neither a kubelet's own bounds, nor bridges, nor containers that an environment could be too large for")
	}
	if c.f.Axis.Life > 0 {
		list = append(list, fmt.Sprintf("at a rate, as many pods stand as arrive in %v, and those that are still on the way beside them; how fast the cluster makes pods is unknown before it is tried", c.f.Axis.Life))
	}
	if len(c.load.shapes()) > 1 {
		list = append(list, "the workload's pods are of several sizes: how they are packed onto nodes is left out, so what nodes hold is an upper bound")
	}
	return list
}
