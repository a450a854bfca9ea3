package follow

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

const simulatedAnnotation = "kwok.x-k8s.io/node" // marks KWOK's nodes, which run nothing

const reasonMeant = "NodesAreUpdated" // reason of events of intended changes to nodes

// annotationUpdate has the progress of OpenShift's operator of nodes.
const annotationUpdate = "machineconfiguration.openshift.io/state"

type nodeView struct {
	node     *corev1.Node // with the used parts of its status
	ready    bool
	troubles []nodeTrouble
}

// rebooting reports whether a node's operator drains and reboots it: its troubles are then no failure.
func (v nodeView) rebooting() bool { return v.node.Annotations[annotationUpdate] == "Working" }

// meant reports whether an event is only about intended changes: reboots of nodes, or a drain.
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

type nodeTrouble struct{ reason, message string }

// NodeConditions returns the events' reasons for bad conditions: Ready if not true, others if true.
func NodeConditions() map[corev1.NodeConditionType]string {
	return map[corev1.NodeConditionType]string{
		corev1.NodeReady: "NodeNotReady", corev1.NodeMemoryPressure: "NodeHasInsufficientMemory", corev1.NodeDiskPressure: "NodeHasDiskPressure",
		corev1.NodePIDPressure: "NodeHasInsufficientPID", corev1.NodeNetworkUnavailable: "NodeNetworkUnavailable",
	}
}

// NodeSet follows the cluster's nodes, as the handler of their watch.
type NodeSet struct {
	mu       sync.Mutex
	nodes    map[string]nodeView
	notReady int
	// tell takes news of nodes and places, or is nil: the cluster's own events of nodes are not reliable.
	tell    func(now record.Micros, body record.Body)
	run     string // that has these places
	reboots bool   // says that the nodes' operator reboots them on purpose
	// pods are the pods that a place must take, places the last news of each place; nil before Declare.
	pods   []corev1.PodSpec
	places map[string]*record.Place
	unseen atomic.Bool     // this user may not list or watch nodes
	fell   map[string]bool // places that were deleted while not ready
}

// Seen reports whether the user may see nodes.
func (s *NodeSet) Seen() bool { return !s.unseen.Load() }

func (s *NodeSet) hide() { s.unseen.Store(true) }

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

// Declare makes the nodes that can take all of the pods the places of the load, and reports them.
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

// tellPlace reports a change of a node as a place of the load.
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
		return // the taint goes after the cordon
	}
	if p.State == record.PlaceThere {
		delete(s.fell, name)
	}
	s.places[name] = &p
	if s.tell != nil {
		s.tell(now, &p)
	}
}

func isCordon(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }

func withoutCordon(node *corev1.Node) *corev1.Node {
	if !slices.ContainsFunc(node.Spec.Taints, isCordon) {
		return node
	}
	rest := *node
	rest.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), isCordon)
	return &rest
}

// placeOf returns the state of a node as a place of the load. Drains and updates by this run are meant.
func (s *NodeSet) placeOf(v nodeView) record.Place {
	p := record.Place{Place: v.node.Name, State: record.PlaceThere, What: "takes load again"}
	node := withoutCordon(v.node) // the taint goes after the cordon
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

// down reports whether a node is not ready for no intended reason.
func (s *NodeSet) down(v nodeView) bool { return !v.ready && !(s.reboots && v.rebooting()) }

// untolerated returns the first taint that keeps one of the load's pods off a node, or nil.
func (s *NodeSet) untolerated(node *corev1.Node) *corev1.Taint {
	for i := range s.pods {
		if t := untolerated(node, &s.pods[i]); t != nil {
			return t
		}
	}
	return nil
}

// compare reports troubles of a node that begin or end.
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
	view, names := nodeView{node: node}, NodeConditions()
	for _, c := range node.Status.Conditions {
		isTrue := c.Status == corev1.ConditionTrue
		if c.Type == corev1.NodeReady {
			view.ready = isTrue
		}
		if reason, known := names[c.Type]; known && isTrue != (c.Type == corev1.NodeReady) {
			view.troubles = append(view.troubles, nodeTrouble{reason, c.Message})
		}
	}
	if s.down(view) {
		s.notReady++
	}
	// Thousands of nodes are kept, so unused parts are dropped.
	node.ManagedFields, node.Status.Images, node.Status.Conditions = nil, nil, nil
	s.nodes[node.Name] = view
}

// CountNotReady counts nodes that are not ready, or were deleted so, but for intended reboots.
func (s *NodeSet) CountNotReady() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notReady + len(s.fell)
}

// Names lists all nodes.
func (s *NodeSet) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.nodes))
}

// Eligible returns the schedulable nodes that can take every one of the pods; skipped counts the others.
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

// CanLand reports whether a node can take every one of the pods.
func CanLand(node *corev1.Node, pods []corev1.PodSpec) bool {
	return !node.Spec.Unschedulable && !slices.ContainsFunc(pods, func(spec corev1.PodSpec) bool { return !PodFits(node, &spec) })
}

// PodFits reports whether the scheduler would consider the node for the pod, resources aside.
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

// untolerated returns the first of a node's taints that keeps a pod away, or nil.
func untolerated(node *corev1.Node, spec *corev1.PodSpec) *corev1.Taint {
	taint, found := helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
	if !found {
		return nil
	}
	return &taint
}

// FidelityOf reports whether a node is real or simulated.
func FidelityOf(node *corev1.Node) record.Realness {
	if node.Annotations[simulatedAnnotation] == "fake" {
		return record.Simulated
	}
	return record.Real
}

// NoNodes returns the error of a workload whose pods fit on none of so many nodes.
func NoNodes(skipped int) error {
	return system.Mistakef("choose nodes with --set nodeSelector=k=v", "no node takes the workload's pods: all %d are unschedulable, tainted or not selected", skipped)
}

// OneFidelity returns the fidelity of all nodes. Mixed ones are a mistake: a level would mean nothing.
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

// OtherPods counts others' pods on each node, and those without a node that fit on one.
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

// NamespaceNoun returns the noun of namespaces.
func NamespaceNoun() record.Noun { return record.Noun{One: "namespace", Many: "namespaces"} }

// NamespaceSet follows the namespaces of a run, as the handler of their watch.
type NamespaceSet struct {
	mu      sync.Mutex
	names   map[string]bool
	changes chan struct{} // with room for one notice of a change
	leaving atomic.Int64  // callers that await the end of some
	unseen  atomic.Bool   // this user may not list or watch them
}

// Seen reports whether the user may see namespaces.
func (s *NamespaceSet) Seen() bool { return !s.unseen.Load() }

func (s *NamespaceSet) hide() {
	s.unseen.Store(true)
	s.notify()
}

func (s *NamespaceSet) doubt() bool { return s.leaving.Load() > 0 }

func newNamespaceSet() *NamespaceSet {
	return &NamespaceSet{names: make(map[string]bool), changes: make(chan struct{}, 1)}
}

// Has reports whether the run has a namespace of this name.
func (s *NamespaceSet) Has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[name]
}

// Changed implements api.Handler.
func (s *NamespaceSet) Changed(_ record.Micros, kind string, object []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	return api.Decoded("namespace", func(ns *corev1.Namespace) { s.names[ns.Name] = kind != api.EventDeleted })(object)
}

// Missing implements api.Handler.
func (s *NamespaceSet) Missing(_ record.Micros, gone []api.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	for _, o := range gone {
		delete(s.names, o.Name)
	}
}

func (s *NamespaceSet) notify() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// Left counts the existing ones of some namespaces, 0 where the user does not see them.
func (s *NamespaceSet) Left(names []string) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.names[name] && s.Seen() {
			left++
		}
	}
	return left
}

// AwaitGone waits until the namespaces are gone, as far as the user sees them.
func (s *NamespaceSet) AwaitGone(ctx context.Context, names []string) error {
	s.leaving.Add(1)
	defer s.leaving.Add(-1)
	for {
		left := s.Left(names)
		if left == 0 {
			return nil
		}
		select {
		case <-s.changes:
		case <-ctx.Done():
			return fmt.Errorf("still there: %s: %w", NamespaceNoun().Count(left), context.Cause(ctx))
		}
	}
}

// AwaitServiceAccount waits for the namespace's default service account: until then pods are refused.
func (a *Actors) AwaitServiceAccount(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ctx, done := a.Wait(ctx, observe.ControllerManager, NamespaceNoun(), func() int { return 1 })
	defer done()
	pause := 5 * time.Millisecond
	for {
		_, err := a.Client.Typed.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("get service account default: %w", err)
		}
		if !api.Sleep(ctx, pause) {
			return fmt.Errorf("its default service account was never made: %w", context.Cause(ctx))
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}
