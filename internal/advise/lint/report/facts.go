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

// facts holds what files say, for comparison with each other.
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

// Closest returns the place of a value below the object, or of the nearest existing mapping.
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

// Article returns a kind with its article.
func Article(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIO") {
		return "an " + kind
	}
	return "a " + kind
}

// Labelled is a label that a command sets.
type Labelled struct {
	Kind       string // MachineConfigPool or Node
	Name       string // "" for all of its kind that the command selects
	Key, Value string
	At         reading.Place
	Replace    func(value string) []reading.Edit
}

// Setting is a sysctl key with its value.
type Setting struct {
	Key, Value     string
	AtKey, AtValue reading.Place
	ReplaceValue   func(string) []reading.Edit // nil if it cannot be replaced
	Scope          string                      // settings of one scope meet on one machine
}

// PodLimit is the number of pods that a node takes.
type PodLimit struct {
	MaxPods int64
	At      reading.Place
}

// ClusterNetwork is a range from which nodes get their pods' subnets.
type ClusterNetwork struct {
	Prefix     netip.Prefix
	HostPrefix int
	At         reading.Place
}

// Addresses returns the number of addresses for pods in a node's subnet.
func (c ClusterNetwork) Addresses() int64 {
	return int64(min(1<<62, ceiling.Addresses(netip.PrefixFrom(c.Prefix.Addr(), c.HostPrefix))))
}

// Nodes returns the number of nodes that get a subnet.
func (c ClusterNetwork) Nodes() int64 {
	return int64(min(1<<62, ceiling.NodeRanges(ceiling.Range{Prefix: c.Prefix, PerNode: c.HostPrefix})))
}

// CephPool is a script's setting of a pool.
type CephPool struct {
	Pool, Key, Value string
	At               reading.Place
}

// Few shortens a list that is too long for a message.
func Few(names []string) []string {
	const most = 8
	if len(names) > most {
		return append(slices.Clone(names[:most]), fmt.Sprintf("... (%d in all)", len(names)))
	}
	return names
}

// Near returns a hint for a misspelling, or otherwise.
func Near(word string, known []string, otherwise string) string {
	if w, ok := nearest.Word(word, known); ok {
		return "did you mean " + w + "?"
	}
	return otherwise
}
