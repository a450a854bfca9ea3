package follow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// simulatedAnnotation marks nodes that KWOK keeps alive: nothing runs on them.
const simulatedAnnotation = "kwok.x-k8s.io/node"

// reasonMeant is the reason of an event of what is done to nodes on purpose.
const reasonMeant = "NodesAreUpdated"

// annotationUpdate tells how far OpenShift's operator of nodes is with one.
const annotationUpdate = "machineconfiguration.openshift.io/state"

// nodeView is a node as the level and the guards see it.
type nodeView struct {
	node     *corev1.Node // metadata, spec and the parts of status that are used
	ready    bool
	troubles []nodeTrouble
}

// rebooting reports whether a node's operator drains and reboots it: what it tells
// of itself meanwhile is no failure.
func (v nodeView) rebooting() bool { return v.node.Annotations[annotationUpdate] == "Working" }

// meant reports whether an event tells only of what is done to nodes on purpose:
// that the one it is about, or those that are not ready, are rebooted by their
// operator, or that pods find no node among those that are drained.
func (s *NodeSet) meant(e *corev1.Event) bool {
	_, reasons, _ := strings.Cut(e.Message, "nodes are available: ")
	first, _, _ := strings.Cut(reasons, ",")
	closed := e.Reason == "FailedScheduling" && strings.Contains(first, "node(s) were unschedulable")
	if !closed && e.Reason != "NodeNotReady" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := false
	for name, v := range s.nodes {
		concerns := !v.ready && (e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name == name)
		if closed {
			concerns = v.node.Spec.Unschedulable
		}
		if concerns && !v.rebooting() && v.node.Labels[api.LabelCordoned] == "" {
			return false
		}
		is = is || concerns || v.rebooting()
	}
	return is
}

// nodeTrouble is a condition that a node should not have.
type nodeTrouble struct{ reason, message string }

// NodeConditions are the conditions that a node should not have, and ready, which
// it should, by the names that a kubelet and the node controller give them in
// events.
func NodeConditions() map[corev1.NodeConditionType]string {
	return map[corev1.NodeConditionType]string{
		corev1.NodeReady: "NodeNotReady", corev1.NodeMemoryPressure: "NodeHasInsufficientMemory", corev1.NodeDiskPressure: "NodeHasDiskPressure",
		corev1.NodePIDPressure: "NodeHasInsufficientPID", corev1.NodeNetworkUnavailable: "NodeNetworkUnavailable",
	}
}

// troublesOf are a node's troubles.
func troublesOf(conditions []corev1.NodeCondition) (list []nodeTrouble) {
	names := NodeConditions()
	for _, c := range conditions {
		reason, known := names[c.Type]
		if bad := (c.Status == corev1.ConditionTrue) != (c.Type == corev1.NodeReady); known && bad {
			list = append(list, nodeTrouble{reason, c.Message})
		}
	}
	return list
}

// NodeSet follows the cluster's nodes. It handles the watch of nodes.
type NodeSet struct {
	mu       sync.Mutex
	nodes    map[string]nodeView
	notReady int
	// tell takes what a node's own conditions tell, and what happens to the places
	// of the load; it may be nil. Whoever publishes events of nodes does so as it
	// likes, and often as Normal ones.
	tell func(now record.Micros, body record.Body)
	run  string // whose places these are
	// reboots says that nodes are meant to be rebooted by their operator.
	reboots bool
	// pods are what a node must take to be a place of the load, places what was
	// last told of each that was one; nil before they are declared.
	pods   []corev1.PodSpec
	places map[string]*record.Place
	unseen bool            // this user may not list nodes, or not watch them
	fell   map[string]bool // places that were deleted when they were not ready
}

// Seen reports whether the user sees what becomes of nodes.
func (s *NodeSet) Seen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unseen
}

func (s *NodeSet) hide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unseen = true
}

func newNodeSet() *NodeSet {
	return &NodeSet{nodes: make(map[string]nodeView), fell: make(map[string]bool)}
}

// Changed implements api.Handler.
func (s *NodeSet) Changed(now record.Micros, kind string, object []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return api.Decoded("node", func(node *corev1.Node) {
		old, known := s.nodes[node.Name]
		s.put(node, kind == api.EventDeleted)
		if known && kind != api.EventDeleted {
			s.compare(now, old, s.nodes[node.Name])
		}
		s.tellPlace(now, node.Name)
	})(object)
}

// Missing implements api.Handler.
func (s *NodeSet) Missing(now record.Micros, gone []api.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range gone {
		s.put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}, true)
		s.tellPlace(now, o.Name)
	}
}

// Declare makes the nodes on which all of the pods could land the places of the
// load, and tells of them.
func (s *NodeSet) Declare(now record.Micros, pods []corev1.PodSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods, s.places = pods, make(map[string]*record.Place, len(s.nodes))
	set := &record.Place{}
	for name, view := range s.nodes {
		if p := s.placeOf(view); p.State == record.PlaceThere {
			s.places[name], set.Set = &p, append(set.Set, name)
		}
	}
	slices.Sort(set.Set)
	if s.tell != nil && len(set.Set) > 0 {
		s.tell(now, set)
	}
}

// Holds reports whether a node is a place of the load.
func (s *NodeSet) Holds(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[name]
	return p != nil && (p.State == record.PlaceThere || p.Meant)
}

// tellPlace tells what became of a node as a place of the load, where that is
// another thing than before.
func (s *NodeSet) tellPlace(now record.Micros, name string) {
	was, view := s.places[name], s.nodes[name]
	if s.places == nil {
		return
	}
	p := record.Place{Place: name, State: record.PlaceGone, What: "was deleted"}
	switch {
	case view.node != nil:
		p = s.placeOf(view)
	case was != nil && was.State == record.PlaceNotReady && !was.Meant:
		s.fell[name] = true
	}
	switch {
	case was == nil && p.State != record.PlaceThere, was != nil && was.State == p.State && was.Meant == p.Meant:
		return
	case p.State != record.PlaceThere:
	case was == nil || was.State == record.PlaceGone:
		p.What = "was added"
	case was.State == record.PlaceClosed && slices.ContainsFunc(view.node.Spec.Taints, isCordon):
		return // the taint goes after the cordon did
	}
	if p.State == record.PlaceThere {
		delete(s.fell, name)
	}
	s.places[name] = &p
	if s.tell != nil {
		s.tell(now, &p)
	}
}

// isCordon reports whether a taint is the one that comes with a cordon.
func isCordon(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }

// withoutCordon is a node without that taint.
func withoutCordon(node *corev1.Node) *corev1.Node {
	if !slices.ContainsFunc(node.Spec.Taints, isCordon) {
		return node
	}
	rest := *node
	rest.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), isCordon)
	return &rest
}

// placeOf is what a node is as a place of the load. What is done to one that this run
// drains, or has rolled out, is meant.
func (s *NodeSet) placeOf(v nodeView) record.Place {
	p := record.Place{Place: v.node.Name, State: record.PlaceThere, What: "takes load again"}
	node := withoutCordon(v.node) // whose taint goes after it
	switch taint := s.untolerated(node); {
	case !v.ready, taint != nil && strings.HasPrefix(taint.Key, "node.kubernetes.io/"):
		p.State, p.What = record.PlaceNotReady, "is not ready"
		if v.ready {
			p.What += " (" + taint.ToString() + ")"
		}
	case v.node.Spec.Unschedulable:
		p.State, p.What = record.PlaceClosed, "was cordoned"
	case taint != nil:
		p.State, p.What = record.PlaceClosed, "was tainted ("+taint.ToString()+")"
	case !CanLand(node, s.pods):
		p.State, p.What = record.PlaceClosed, "is not selected any more"
	}
	p.Meant = p.State != record.PlaceThere && (v.node.Labels[api.LabelDrained] == s.run || s.reboots && v.rebooting())
	return p
}

// down reports whether a node is not ready, and not as it is meant.
func (s *NodeSet) down(v nodeView) bool { return !v.ready && !(s.reboots && v.rebooting()) }

// untolerated is the first of a node's taints that keeps one of the load's pods
// away, nil for none.
func (s *NodeSet) untolerated(node *corev1.Node) *corev1.Taint {
	for i := range s.pods {
		if t := untolerated(node, &s.pods[i]); t != nil {
			return t
		}
	}
	return nil
}

// compare tells of the troubles that a node has and had not, and the other way
// round.
func (s *NodeSet) compare(now record.Micros, was, is nodeView) {
	if s.tell == nil {
		return
	}
	has := func(list []nodeTrouble, reason string) bool {
		return slices.ContainsFunc(list, func(t nodeTrouble) bool { return t.reason == reason })
	}
	event := func(kind, reason, message string) {
		s.tell(now, &record.TargetEvent{Object: is.node.Name, About: "Node", Type: kind, Reason: reason, Message: message, Source: "plimsoll", Count: 1})
	}
	for _, t := range is.troubles {
		switch {
		case has(was.troubles, t.reason):
		case is.rebooting():
			event(corev1.EventTypeNormal, reasonMeant, t.reason+": it is rebooted")
		default:
			event(corev1.EventTypeWarning, t.reason, t.message)
		}
	}
	for _, t := range was.troubles {
		if !has(is.troubles, t.reason) {
			event(corev1.EventTypeNormal, "NodeTroubleOver", t.reason+" is over")
		}
	}
}

func (s *NodeSet) put(node *corev1.Node, gone bool) {
	if old, ok := s.nodes[node.Name]; ok && s.down(old) {
		s.notReady--
	}
	if gone {
		delete(s.nodes, node.Name)
		return
	}
	view := nodeView{node: node, troubles: troublesOf(node.Status.Conditions)}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			view.ready = c.Status == corev1.ConditionTrue
		}
	}
	if s.down(view) {
		s.notReady++
	}
	// Thousands of nodes are kept: what nobody asks for is let go.
	node.ManagedFields, node.Status.Images, node.Status.Conditions = nil, nil, nil
	s.nodes[node.Name] = view
}

// CountNotReady is how many nodes are not ready, those included that were deleted
// when they were not, but for those that are rebooted as is meant.
func (s *NodeSet) CountNotReady() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notReady + len(s.fell)
}

// Names are those of all nodes.
func (s *NodeSet) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.nodes))
}

// Eligible are the nodes on which every one of the pods could land, by name:
// schedulable, selected and tolerated. Skipped is how many others there are.
func (s *NodeSet) Eligible(pods []corev1.PodSpec) (nodes []*corev1.Node, skipped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, view := range s.nodes {
		if CanLand(view.node, pods) {
			nodes = append(nodes, view.node)
		} else {
			skipped++
		}
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes, skipped
}

// CanLand reports whether every one of the pods could land on a node.
func CanLand(node *corev1.Node, pods []corev1.PodSpec) bool {
	return !node.Spec.Unschedulable && !slices.ContainsFunc(pods, func(spec corev1.PodSpec) bool { return !PodFits(node, &spec) })
}

// PodFits reports whether the scheduler would consider the node for the pod at
// all: by its name, selector, affinity and the node's taints. Resources are
// what a search is about, and are left out.
func PodFits(node *corev1.Node, spec *corev1.PodSpec) bool {
	if spec.NodeName != "" && spec.NodeName != node.Name {
		return false
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec})
	if fits, err := affinity.Match(node); err != nil || !fits {
		return false
	}
	return untolerated(node, spec) == nil
}

// untolerated is the first of a node's taints that keeps a pod away, nil for none.
func untolerated(node *corev1.Node, spec *corev1.PodSpec) *corev1.Taint {
	taint, found := helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
	if !found {
		return nil
	}
	return &taint
}

// FidelityOf tells whether a node is real.
func FidelityOf(node *corev1.Node) record.Realness {
	if node.Annotations[simulatedAnnotation] == "fake" {
		return record.Simulated
	}
	return record.Real
}

// NoNodes refuses a workload whose pods could land on none of so many nodes.
func NoNodes(skipped int) error {
	return system.Mistakef("choose nodes with --set nodeSelector=k=v", "no node takes the workload's pods: all %d are unschedulable, tainted or not selected", skipped)
}

// OneFidelity is that of all the nodes. The error is a mistake: where pods could
// land on real and on simulated nodes alike no level would mean anything.
func OneFidelity(nodes []*corev1.Node) (record.Realness, error) {
	simulated := 0
	for _, n := range nodes {
		if FidelityOf(n) == record.Simulated {
			simulated++
		}
	}
	switch simulated {
	case 0:
		return record.Real, nil
	case len(nodes):
		return record.Simulated, nil
	}
	return "", system.Mistakef("choose one kind with --set nodeSelector=plimsoll.dev/fidelity=simulated, or another label",
		"the workload's pods could land on %d real and %d simulated nodes: a level must not mix them", len(nodes)-simulated, simulated)
}

// OtherPods counts the pods that are not ours on each of the nodes, and those
// without a node that could land on one of them: a level is of all pods.
func OtherPods(list func(each func([]byte) error) error, nodes []*corev1.Node) (perNode map[string]int, pending int, err error) {
	perNode = make(map[string]int, len(nodes))
	for _, n := range nodes {
		perNode[n.Name] = 0
	}
	var p api.PodNews
	err = list(func(object []byte) error {
		if err := api.DecodePod(object, &p); err != nil {
			return err
		}
		if p.IsCanary {
			return nil
		}
		if p.Node != "" {
			if _, ok := perNode[p.Node]; ok {
				perNode[p.Node]++
			}
			return nil
		}
		var pod corev1.Pod
		if err := pod.Unmarshal(object); err != nil {
			return fmt.Errorf("decode pod %s: %w", p.Name, err)
		}
		if slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return PodFits(n, &pod.Spec) }) {
			pending++
		}
		return nil
	})
	return perNode, pending, err
}
