package ceiling

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// Source says where facts were read, or why they are unknown. The zero Source is unknown.
type Source struct {
	From, Why string
}

// Known reports whether the facts are known.
func (s Source) Known() bool { return s.From != "" }

// Fact holds a figure with its source. The zero Fact is unknown.
type Fact struct {
	Value float64
	Source
}

// Amounts maps Kubernetes' resources to thousandths of a core, bytes of memory, or pieces.
type Amounts map[string]int64

// Names of resources with rules of their own here.
const (
	Pods   = "pods"
	CPU    = "cpu"
	Memory = "memory"
)

// Axis describes what is raised.
type Axis struct {
	Name, Unit string
	Life       time.Duration // A pod of an arrival stays for Life, 0 for pods in place; the load makes pods for Span
	Span       time.Duration
	Foreign    bool // means any other axis: no level follows from a number of pods
}

// Facts holds what was read of a cluster.
type Facts struct {
	Axis             Axis
	Load             *Load  // the workload; nil stands for one pod per iteration that requests nothing
	Nodes            []Node // lists those of AllNodes that the workload can land on
	AllNodes         int
	NodesRead        Source
	PodsRead         Source // the source of everything that is counted from the cluster's pods
	Pending          int    // pods that could land on Nodes
	Pods             int    // in the whole cluster, not ended
	Addresses        int    // of Pods, with an address of the pod network
	Containers       int
	OwnAddresses     string // names a network plug-in that ignores the nodes' ranges, "" if none is known
	Namespaces       Fact   // their number
	Services         Fact   // their number
	ServiceAddresses Ranges // lists the ranges of services' addresses, all of the default family
	ServicesTaken    int    // addresses
	PodAddresses     Ranges // of the pod network
	Quotas           []Quota
	QuotasWhy        string // says which namespace's quotas are unknown, and why
	OpenShift        bool
}

// Node describes a node that a workload can land on.
type Node struct {
	Name        string
	Simulated   bool
	Allocatable Amounts // for pods
	Requested   Amounts // by the pods on the node
	Standing    int     // pods on the node
	HostNetwork int     // of those, without an address of their own
	Static      int     // of those, made by the kubelet
	Daemons     int     // of those, of DaemonSets
	Ranges      []Range // lists the node's parts of the pod network, one per family; RangesFrom is their source
	RangesFrom  string
	MaxPods     Fact // the kubelet's setting
	Bridge      bool // one Linux bridge is known to join its pods
}

// round cuts a level to two digits, so that it promises no more than there is.
func round(x float64) float64 { return math.Floor(x*100+1e-6) / 100 }

const unbounded = int64(1) << 40 // iterations: more than anybody asks for

// most returns the largest number of iterations whose count does not exceed limit. count must not fall.
func most(limit int64, count func(iterations int64) int64) int64 {
	if count(unbounded) <= limit {
		return unbounded
	}
	lo, hi := int64(0), unbounded // count(hi) exceeds limit; if count(0) does too, nothing fits
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

type computation struct {
	f      Facts
	load   Load
	others int64
	rows   []record.Ceiling
}

// Compute works out the ceilings that follow from the facts.
func Compute(f Facts) record.CeilingTable {
	c := &computation{f: f, load: Load{Entries: []Entry{{Resource: Pods, Copies: 1, Every: 1, Pods: 1, Pod: Pod{Containers: 1}}}}}
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

// sorted returns the rows by level, and marks the one that binds first.
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
	// Of two resources that bind at one level, the scheduler names the first by alphabet.
	slices.SortStableFunc(c.rows, func(a, b record.Ceiling) int {
		return cmp.Or(cmp.Compare(level(a), level(b)), cmp.Compare(class(a), class(b)), strings.Compare(a.Reason, b.Reason))
	})
	if i := slices.IndexFunc(c.rows, func(r record.Ceiling) bool { return r.Class == record.CeilingHard && r.Level != nil }); i >= 0 {
		c.rows[i].Binds = true
	}
	return c.rows
}

// add appends a row of an allowance of iterations. made marks what counts over a step with pods that age.
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

// unknown appends a row of something that could not be read.
func (c *computation) unknown(row record.Ceiling, why string) {
	row.Class, row.Note = record.CeilingUnknown, sentences(row.Note, why)
	c.rows = append(c.rows, row)
}

func figure(x float64) *float64 { return &x }

func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// notes returns what the reader of the table must know.
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

// CheckSchema names the format of `plimsoll check -o json`.
const CheckSchema = "plimsoll/check/v1"

// Check is the document of `plimsoll check -o json`: what is known of a cluster without a load.
type Check struct {
	Schema   string                 `json:"schema"`
	Version  string                 `json:"version"` // of this program
	Target   CheckTarget            `json:"target"`
	Severity record.Severity        `json:"severity"` // of the worst finding
	ExitCode int                    `json:"exitCode"` // 1 for an error
	Findings []record.HealthFinding `json:"findings"`
	Table    record.CeilingTable    `json:"table"`
	Kind     record.ObjectKind      `json:"-"`       // of the objects that the ceilings count
	Binding  *string                `json:"binding"` // names the ceiling that binds first, null without a hard one
}

// CheckTarget names a lab or cluster, with the address and version of its API server, "" if unknown.
type CheckTarget struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Private bool   `json:"private,omitempty"`
	Server  string `json:"server"`
	Version string `json:"version"`
}

// Limits that are published as tested or as defaults: by Kubernetes (scalability thresholds, considerations
// for large clusters), by OpenShift (tested cluster maximums), and by the source documents (D2, D16, V2).
const (
	TestedPods        = 150_000 // of a cluster
	TestedContainers  = 300_000
	TestedNamespaces  = 10_000
	TestedServices    = 10_000
	TestedNodes       = 5_000
	OpenShiftNodes    = 2_000
	ShownVMs          = 3_000 // on 100 nodes
	NamespacePods     = 3_000 // of a namespace
	NamespaceServices = 5_000
	NamespaceDeploys  = 2_000
	DefaultMaxPods    = 110 // of a node
	OpenShiftMaxPods  = 250
	TestedMaxPods     = 500  // on OpenShift
	ShownMaxPods      = 2500 // on 26 nodes
	// ReservedAddresses of a node's subnet belong to DaemonSets, the gateway and the management port (D3).
	ReservedAddresses = 16
)

// Addresses returns how many addresses of a range can be assigned.
func Addresses(p netip.Prefix) float64 {
	if !p.IsValid() {
		return 0
	}
	all := math.Exp2(float64(p.Addr().BitLen() - p.Bits()))
	if p.Addr().Is4() {
		return max(0, all-2)
	}
	return max(0, all-1)
}

// NodeRanges returns how many nodes get a part of a range: 2^(perNode - bits), or 0 if none fits.
func NodeRanges(r Range) float64 {
	if r.PerNode < r.Prefix.Bits() || r.PerNode > r.Prefix.Addr().BitLen() {
		return 0
	}
	return math.Exp2(float64(r.PerNode - r.Prefix.Bits()))
}

// HostPrefix returns the longest prefix length of a family whose ranges have so many addresses.
func HostPrefix(family netip.Addr, addresses int64) int {
	bits := family.BitLen()
	for bits > 0 && Addresses(netip.PrefixFrom(family, bits)) < float64(addresses) {
		bits--
	}
	return bits
}
