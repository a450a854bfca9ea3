package report

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// facts are what files say, to be held against each other.
type facts struct {
	Objects   []*Object
	Labels    []Labelled
	Settings  []Setting
	MaxPods   []PodLimit
	Clusters  []ClusterNetwork
	CephPools []CephPool
}

// Object is an object of Kubernetes in a document.
type Object struct {
	reading.Value
	APIVersion, Kind, Group string
	Namespace, Name         string
}

// Closest is the place of a value below the object, or of the nearest mapping
// that is there.
func (o *Object) Closest(keys ...string) reading.Place {
	v := o.Value
	at := v.At()
	for _, k := range keys {
		raw, ok := v.Node.Entry(k)
		if !ok {
			break
		}
		e := v.Child(raw)
		v, at = e.Value, e.KeyAt()
		if v.Node.Kind == strictyaml.Scalar && !reading.IsNull(v.Node) {
			at = v.At()
		}
	}
	return at
}

func (o *Object) String() string {
	if o.Name == "" {
		return "the " + o.Kind
	}
	return o.Kind + " " + o.Name
}

// Article is a kind with its article.
func Article(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIO") {
		return "an " + kind
	}
	return "a " + kind
}

// Labelled is a label that a command gives to something.
type Labelled struct {
	Kind       string // MachineConfigPool or Node
	Name       string // "" for all of its kind that the command selects
	Key, Value string
	At         reading.Place
	Replace    func(value string) []reading.Edit
}

// Setting is a sysctl key and what it is set to.
type Setting struct {
	Key, Value     string
	AtKey, AtValue reading.Place
	ReplaceValue   func(string) []reading.Edit // nil if it cannot be
	Scope          string                      // settings of one scope meet on one machine
}

// PodLimit is how many pods a node takes.
type PodLimit struct {
	MaxPods int64
	At      reading.Place
}

// ClusterNetwork is what nodes get their pods' subnets from.
type ClusterNetwork struct {
	Prefix     netip.Prefix
	HostPrefix int
	At         reading.Place
}

// Addresses is how many addresses the subnet of a node has for pods.
func (c ClusterNetwork) Addresses() int64 {
	return int64(min(1<<62, ceiling.Addresses(netip.PrefixFrom(c.Prefix.Addr(), c.HostPrefix))))
}

// Nodes is how many nodes get a subnet.
func (c ClusterNetwork) Nodes() int64 {
	return int64(min(1<<62, ceiling.NodeRanges(ceiling.Range{Prefix: c.Prefix, PerNode: c.HostPrefix})))
}

// CephPool is what a script sets of a pool.
type CephPool struct {
	Pool, Key, Value string
	At               reading.Place
}

// Few cuts a list that is too long for a message.
func Few(names []string) []string {
	const most = 8
	if len(names) > most {
		return append(slices.Clone(names[:most]), fmt.Sprintf("... (%d in all)", len(names)))
	}
	return names
}

// Near is the hint for a misspelling, or "".
func Near(word string, known []string, otherwise string) string {
	if w, ok := nearest.Word(word, known); ok {
		return "did you mean " + w + "?"
	}
	return otherwise
}
