package lint

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// facts are what files say, to be held against each other.
type facts struct {
	objects   []*object
	labels    []labelled
	settings  []setting
	maxPods   []podLimit
	clusters  []clusterNetwork
	cephPools []cephPool
	// clonedPieces are of pieces of objects in texts for people.
	clonedPieces []clonedPiece
}

// object is an object of Kubernetes in a document.
type object struct {
	value
	apiVersion, kind, group string
	namespace, name         string
}

// closest is the place of a value below the object, or of the nearest mapping
// that is there.
func (o *object) closest(keys ...string) place {
	v := o.value
	at := v.at()
	for _, k := range keys {
		raw, ok := v.node.Entry(k)
		if !ok {
			break
		}
		e := v.child(raw)
		v, at = e.value, e.keyAt()
		if v.node.Kind == strictyaml.Scalar && !isNull(v.node) {
			at = v.at()
		}
	}
	return at
}

func (o *object) String() string {
	if o.name == "" {
		return "the " + o.kind
	}
	return o.kind + " " + o.name
}

// article is a kind with its article.
func article(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIO") {
		return "an " + kind
	}
	return "a " + kind
}

// labelled is a label that a command gives to something.
type labelled struct {
	kind       string // MachineConfigPool or Node
	name       string
	key, value string
	at         place
	replace    func(value string) []edit
}

// setting is a sysctl key and what it is set to.
type setting struct {
	key, value     string
	atKey, atValue place
	replaceValue   func(string) []edit // nil if it cannot be
	scope          string              // settings of one scope meet on one machine
}

// podLimit is how many pods a node takes.
type podLimit struct {
	maxPods int64
	at      place
}

// clusterNetwork is what nodes get their pods' subnets from.
type clusterNetwork struct {
	prefix     netip.Prefix
	hostPrefix int
	at         place
}

// addresses is how many addresses the subnet of a node has for pods.
func (c clusterNetwork) addresses() int64 {
	return int64(min(1<<62, ceiling.Addresses(netip.PrefixFrom(c.prefix.Addr(), c.hostPrefix))))
}

// nodes is how many nodes get a subnet.
func (c clusterNetwork) nodes() int64 {
	return int64(min(1<<62, ceiling.NodeRanges(ceiling.Range{Prefix: c.prefix, PerNode: c.hostPrefix})))
}

// cephPool is what a script sets of a pool.
type cephPool struct {
	pool, key, value string
	at               place
}

// clonedPiece is a claim that is cloned.
type clonedPiece struct {
	at              place
	namespace, name string
	by              string
	spec            value // of the clone
}

// few cuts a list that is too long for a message.
func few(names []string) []string {
	const most = 8
	if len(names) > most {
		return append(slices.Clone(names[:most]), fmt.Sprintf("... (%d in all)", len(names)))
	}
	return names
}

// near is the hint for a misspelling, or "".
func near(word string, known []string, otherwise string) string {
	if w, ok := nearest.Word(word, known); ok {
		return "did you mean " + w + "?"
	}
	return otherwise
}
