package analyze

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// eventKey groups the cluster's own warnings.
type eventKey struct{ reason, message string }

type eventGroup struct {
	count   int
	objects map[string]bool
}

// maxEventObjects bounds what is remembered of one group of warnings.
const maxEventObjects = 100_000

func (c *building) addEvent(e *record.KubeEvent) {
	if e.Type != "Warning" {
		return
	}
	key := eventKey{e.Reason, normalise(e.Message, e.Object)}
	g, ok := c.events[key]
	if !ok {
		g = &eventGroup{objects: make(map[string]bool)}
		c.events[key] = g
	}
	g.count++
	if len(g.objects) < maxEventObjects {
		g.objects[e.Object] = true
	}
}

// reasons groups the objects that did not get there by what kept them.
type reasons struct {
	b      *Builder
	groups map[eventKey]*reasonGroup
	// byObject finds the warning that names an object, built when first needed.
	byObject map[string]eventKey
}

type reasonGroup struct {
	count int
	nodes map[int32]bool
	// told is how many nodes the reason itself counts, and of how many.
	told, of int
}

func newReasons(b *Builder) *reasons {
	return &reasons{b: b, groups: make(map[eventKey]*reasonGroup)}
}

// add takes in one object that did not get there.
func (r *reasons) add(s *slot, o *object, c *building) {
	key := eventKey{"NoNews", "no news of the object ever came"}
	node := int32(-1)
	if o != nil {
		node = o.node
		switch {
		case o.reason != "":
			key = eventKey{o.reason, o.message}
		case o.gone:
			key = eventKey{"Deleted", "the object was deleted, and not by this run"}
		case o.there:
			key = eventKey{"TooLate", "the object got there, but after the step timeout"}
		default:
			key = eventKey{"NotReady", "no reason was told"}
		}
		// A container that says nothing of itself may have a warning about it.
		if o.reason == "" || strings.HasPrefix(o.reason, "Not") {
			if event, ok := r.eventOf(s.name, c); ok {
				key = event
			}
		}
	}
	if key.reason == reasonUnschedulable {
		if counts, of := parseUnschedulable(key.message); len(counts) > 0 {
			// The reason that holds for the most nodes is the one that binds.
			top := counts[0]
			g := r.group(eventKey{top.reason, key.message})
			g.count++
			g.told, g.of = max(g.told, top.nodes), max(g.of, of)
			return
		}
	}
	key.message = normalise(key.message, s.name)
	g := r.group(key)
	g.count++
	if node >= 0 {
		g.nodes[node] = true
	}
}

// addRequest takes in one request that failed.
func (r *reasons) addRequest(s *slot) {
	reason := "RequestFailed"
	if s.code != 0 {
		reason = "HTTP " + strconv.Itoa(s.code)
	}
	r.group(eventKey{reason, normalise(s.err, s.name)}).count += max(s.units, 1)
}

func (r *reasons) group(key eventKey) *reasonGroup {
	g, ok := r.groups[key]
	if !ok {
		g = &reasonGroup{nodes: make(map[int32]bool)}
		r.groups[key] = g
	}
	return g
}

// eventOf is the most frequent warning that names an object.
func (r *reasons) eventOf(name string, c *building) (eventKey, bool) {
	if r.byObject == nil {
		r.byObject = make(map[string]eventKey)
		best := make(map[string]int)
		for key, g := range c.events {
			for object := range g.objects {
				if n := best[object]; g.count > n || g.count == n && key.reason < r.byObject[object].reason {
					best[object], r.byObject[object] = g.count, key
				}
			}
		}
	}
	key, ok := r.byObject[name]
	return key, ok
}

// grouped is the groups, the most frequent first.
func (r *reasons) grouped(places int) []Reason {
	list := make([]Reason, 0, len(r.groups))
	for key, g := range r.groups {
		reason := Reason{Reason: key.reason, Message: key.message, Count: g.count, Nodes: len(g.nodes), NodesOf: places}
		if g.of > 0 {
			reason.Nodes, reason.NodesOf = g.told, g.of
		}
		list = append(list, reason)
	}
	slices.SortFunc(list, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return list
}

// binding says in a few words what kept most objects from getting there.
func binding(list []Reason) string {
	if len(list) == 0 {
		return ""
	}
	top := list[0]
	if top.NodesOf > 0 && top.Nodes > 0 {
		return fmt.Sprintf("%s on %d of %d nodes", top.Reason, top.Nodes, top.NodesOf)
	}
	if top.Message != "" {
		return top.Reason + ": " + top.Message
	}
	return top.Reason
}

// nodeCount is one reason of the scheduler's and for how many nodes it holds.
type nodeCount struct {
	reason string
	nodes  int
}

var available = regexp.MustCompile(`^(\d+)/(\d+) nodes are available: (.*)$`)

// parseUnschedulable reads the scheduler's message, "0/20 nodes are available:
// 3 Insufficient cpu, 17 Too many pods. preemption: ...", into its reasons,
// that for the most nodes first, and the number of nodes in all. It returns
// nothing for a message of another form.
func parseUnschedulable(message string) (counts []nodeCount, of int) {
	m := available.FindStringSubmatch(message)
	if m == nil {
		return nil, 0
	}
	of, err := strconv.Atoi(m[2])
	if err != nil {
		return nil, 0
	}
	rest := m[3]
	for _, end := range []string{". preemption:", ". no new claims"} {
		if i := strings.Index(rest, end); i >= 0 {
			rest = rest[:i]
		}
	}
	rest = strings.TrimSuffix(rest, ".")
	for part := range strings.SplitSeq(rest, ", ") {
		number, reason, ok := strings.Cut(part, " ")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			// A comma within the reason before.
			if len(counts) > 0 {
				counts[len(counts)-1].reason += ", " + part
			}
			continue
		}
		counts = append(counts, nodeCount{reason, n})
	}
	slices.SortStableFunc(counts, func(a, b nodeCount) int { return cmp.Compare(b.nodes, a.nodes) })
	return counts, of
}

var variable = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|\b[0-9a-f]{32,}\b`)

// normalise takes out of a message what differs from object to object, so that
// equal causes fall into one group.
func normalise(message, object string) string {
	namespace, name, ok := strings.Cut(object, "/")
	if ok && name != "" {
		message = strings.ReplaceAll(message, name, "NAME")
		if namespace != "" {
			message = strings.ReplaceAll(message, namespace, "NAMESPACE")
		}
	}
	message = variable.ReplaceAllString(message, "*")
	return strings.TrimSpace(message)
}
