// Package survey reads a cluster's condition, and how far a workload can be raised on it.
package survey

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resources "k8s.io/component-helpers/resource"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
)

// Survey holds the result of one look. What the user may not read is unknown, which is no error.
type Survey struct {
	reader
	host system.Host

	Version string // of the API server

	checks     map[string]bool // of the API server
	checksCode int
	checksRead ceiling.Source

	nodes     []*surveyedNode
	byName    map[string]*surveyedNode
	nodesRead ceiling.Source

	pods, addressed, containers      int
	unplaced, restarting, noImage    []string
	waiting                          map[string]*waitingPods // Pending without a node, by their demands on one
	podsRead                         ceiling.Source
	controllerManager, apiServerArgs []string // command lines, where they are pods

	namespaces     map[string]map[string]string // their labels, by name
	namespacesRead ceiling.Source

	services, servicesTaken int
	servicesRead            ceiling.Source
	servicesV6              bool // the default family

	broken []api.BrokenAPI // by the server's discovery

	serviceRanges, podRanges ceiling.Ranges
	openShift                bool
	ownAddresses             string // the plug-in with its own ranges
}

// Labels returns the values of labels by node.
func (s *Survey) Labels(names []string) map[string][]string {
	of := make(map[string][]string, len(s.nodes))
	for _, node := range s.nodes {
		for _, label := range names {
			of[node.Name] = append(of[node.Name], node.Labels[label])
		}
	}
	return of
}

type surveyedNode struct {
	*corev1.Node
	ready     bool
	pressure  []string
	requested ceiling.Amounts
	// local lists images in no registry; moreImages says that there may be images that it does not list.
	local      []string
	moreImages bool

	standing, hostNetwork, static, daemons int
}

// waitingPods are pods without a node and with equal demands.
type waitingPods struct {
	spec corev1.PodSpec // of one of them
	n    int
}

// readyPatience bounds the wait for an API server that may just have started.
const readyPatience = 3 * time.Second

// Of surveys the cluster. The error is an *UnreachableError, or the end of ctx.
func Of(ctx context.Context, c *api.Client, host system.Host) (*Survey, error) {
	s := &Survey{
		reader: reader{c}, host: host, byName: make(map[string]*surveyedNode), waiting: make(map[string]*waitingPods),
		namespaces: make(map[string]map[string]string),
	}
	// Nodes come first: pods are added up by node.
	if err := s.readNodes(ctx); err != nil {
		return nil, err
	}
	reads := []func(context.Context) error{s.readVersion, s.readChecks, s.readPods, s.readNamespaces, s.readServices, s.readServiceRanges, s.readOpenShift, s.readBroken}
	failed := make([]error, len(reads))
	var wg sync.WaitGroup
	for i, read := range reads {
		wg.Go(func() { failed[i] = read(ctx) })
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	s.completeRanges()
	return s, nil
}

// reader reads from a cluster as far as the user may.
type reader struct{ *api.Client }

// why returns the reason why something could not be read, or the error if the cluster is out of reach.
func (r reader) why(err error) (string, error) {
	var unreachable *api.UnreachableError
	if errors.Is(err, context.Canceled) || errors.As(r.Unreachable(err), &unreachable) {
		return "", r.Unreachable(err)
	}
	var refused *api.RefusedError
	if errors.As(err, &refused) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return "this user may not read it: " + err.Error(), nil
	}
	return "it could not be read: " + err.Error(), nil
}

// read lists a resource and returns its source, or why it could not be read.
func (r reader) read(ctx context.Context, path, from string, selectors url.Values, each func([]byte) error) (ceiling.Source, error) {
	if _, err := r.List(ctx, path, selectors, each); err != nil {
		why, err := r.why(err)
		return ceiling.Source{Why: why}, err
	}
	return ceiling.Source{From: from}, nil
}

// json reads one object as JSON. found is false for one that does not exist.
func (r reader) json(ctx context.Context, path string, into any) (found bool, err error) {
	request, err := r.Request(ctx, http.MethodGet, path, nil, "", nil)
	if err != nil {
		return false, err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := r.Send(request, new(bytes.Buffer))
	switch {
	case err != nil:
		return false, err
	case answer.Code == http.StatusNotFound:
		return false, nil
	case answer.Code >= 400:
		return false, answer.Err()
	}
	return true, json.Unmarshal(answer.Body, into)
}

func (s *Survey) readVersion(ctx context.Context) error {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if _, err := s.json(ctx, "/version", &version); err != nil {
		_, err := s.why(err)
		return err
	}
	s.Version = version.GitVersion
	return nil
}

// readChecks reads the API server's health checks. A server that is not ready gets a little time.
func (s *Survey) readChecks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, api.RequestTimeout)
	defer cancel()
	patience := time.NewTimer(readyPatience)
	defer patience.Stop()
	for {
		var r api.Reply
		// Any answer counts; the loop repeats the request.
		_, err := s.Patiently(ctx, api.Patience, func(ctx context.Context) (_ api.Reply, err error) {
			r, err = s.Try(ctx, http.MethodGet, "/readyz", url.Values{"verbose": {"1"}}, "", nil, new(bytes.Buffer))
			return api.Reply{}, err
		})
		if err != nil {
			_, err := s.why(err)
			return err
		}
		if r.Code == http.StatusForbidden || r.Code == http.StatusUnauthorized {
			s.checksRead.Why = "this user may not ask for /readyz"
			return nil
		}
		s.checks, s.checksCode, s.checksRead.From = parseChecks(string(r.Body)), r.Code, "/readyz"
		if r.Code == http.StatusOK {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-patience.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// parseChecks reads the answer of /readyz, with lines such as "[+]ping ok" or "[-]etcd failed: …".
func parseChecks(text string) map[string]bool {
	checks := make(map[string]bool)
	for line := range strings.Lines(text) {
		mark, rest, ok := strings.Cut(line, "]")
		name, _, isCheck := strings.Cut(rest, " ")
		if !ok || !isCheck || name == "" || mark != "[+" && mark != "[-" {
			continue
		}
		checks[name] = mark == "[+"
	}
	return checks
}

func (s *Survey) readNodes(ctx context.Context) (err error) {
	conditions := follow.NodeConditions()
	s.nodesRead, err = s.read(ctx, "/api/v1/nodes", "the nodes", nil, api.Decoded("node", func(node *corev1.Node) {
		n := &surveyedNode{Node: node, requested: make(ceiling.Amounts)}
		for _, c := range n.Status.Conditions {
			_, known := conditions[c.Type]
			switch holds := c.Status == corev1.ConditionTrue; {
			case c.Type == corev1.NodeReady:
				n.ready = holds
			case holds && known:
				n.pressure = append(n.pressure, string(c.Type))
			}
		}
		for _, i := range n.Status.Images {
			n.local = append(n.local, slices.DeleteFunc(i.Names, func(name string) bool { return !strings.HasPrefix(name, image.Local) })...)
		}
		n.moreImages = len(n.Status.Images) >= toldImages
		// Thousands of nodes are kept, so unused parts are dropped.
		n.ManagedFields, n.Status.Images, n.Status.Conditions = nil, nil, nil
		s.nodes = append(s.nodes, n)
		s.byName[n.Name] = n
	}))
	slices.SortFunc(s.nodes, func(a, b *surveyedNode) int { return cmp.Compare(a.Name, b.Name) })
	return err
}

const toldImages = 50 // number of images that a kubelet lists by default, the largest ones

const longPending = time.Minute // time after which a pod without a node is reported

func (s *Survey) readPods(ctx context.Context) (err error) {
	now := s.host.Now()
	s.podsRead, err = s.read(ctx, "/api/v1/pods", "the pods", url.Values{"fieldSelector": {api.NotTerminal}}, api.Decoded("pod", func(pod *corev1.Pod) {
		if _, canary := pod.Labels[api.LabelCanary]; !canary {
			s.addPod(pod, now)
		}
	}))
	return err
}

func (s *Survey) addPod(pod *corev1.Pod, now time.Time) {
	s.pods++
	s.containers += len(pod.Spec.Containers)
	if !pod.Spec.HostNetwork {
		s.addressed++
	}
	name := pod.Namespace + "/" + pod.Name
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		if waiting.Reason == "CrashLoopBackOff" {
			s.restarting = append(s.restarting, name)
			break
		}
		if waiting.Reason == "ImagePullBackOff" || waiting.Reason == "ErrImagePull" {
			s.noImage = append(s.noImage, name)
			break
		}
	}
	// Network plug-ins that ignore the nodes' ranges.
	if app := pod.Labels["k8s-app"]; slices.Contains([]string{"calico-node", "cilium", "aws-node"}, app) {
		s.ownAddresses = app
	}
	if pod.Namespace == metav1.NamespaceSystem && len(pod.Spec.Containers) == 1 {
		// If the control plane runs in pods, its command lines are readable.
		line := slices.Concat(pod.Spec.Containers[0].Command, pod.Spec.Containers[0].Args)
		switch pod.Labels["component"] {
		case "kube-controller-manager":
			s.controllerManager = line
		case "kube-apiserver":
			s.apiServerArgs = line
		}
	}
	if pod.Spec.NodeName == "" {
		if now.Sub(pod.CreationTimestamp.Time) > longPending && len(pod.Spec.SchedulingGates) == 0 {
			s.unplaced = append(s.unplaced, name)
		}
		s.addWaiting(pod)
		return
	}
	n, ok := s.byName[pod.Spec.NodeName]
	if !ok {
		return
	}
	n.standing++
	if pod.Spec.HostNetwork {
		n.hostNetwork++
	}
	switch {
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
		n.static++
	case slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" }):
		n.daemons++
	}
	for resource, amount := range amounts(resources.PodRequests(pod, resources.PodResourcesOptions{})) {
		n.requested[resource] += amount
	}
}

const maxWaiting = 1000 // bounds the distinct demands of waiting pods

// addWaiting adds a pod without a node. Pods with equal demands are counted together.
func (s *Survey) addWaiting(pod *corev1.Pod) {
	spec := corev1.PodSpec{NodeSelector: pod.Spec.NodeSelector, Affinity: pod.Spec.Affinity, Tolerations: pod.Spec.Tolerations}
	key := ""
	if raw, err := spec.Marshal(); err == nil {
		key = string(raw)
	}
	if _, ok := s.waiting[key]; !ok && len(s.waiting) >= maxWaiting {
		key, spec = "", corev1.PodSpec{}
	}
	w, ok := s.waiting[key]
	if !ok {
		w = &waitingPods{spec: spec}
		s.waiting[key] = w
	}
	w.n++
}

// amounts converts quantities to the ceilings' units: CPUs, also those of quotas, become thousandths.
func amounts(list corev1.ResourceList) ceiling.Amounts {
	a := make(ceiling.Amounts, len(list))
	for name, quantity := range list {
		if name == corev1.ResourceCPU || strings.HasSuffix(string(name), "."+ceiling.CPU) {
			a[string(name)] = quantity.MilliValue()
		} else {
			a[string(name)] = quantity.Value()
		}
	}
	return a
}

func (s *Survey) readNamespaces(ctx context.Context) (err error) {
	s.namespacesRead, err = s.read(ctx, "/api/v1/namespaces", "the namespaces", nil, api.Decoded("namespace", func(ns *metav1.PartialObjectMetadata) {
		s.namespaces[ns.Name] = ns.Labels
	}))
	return err
}

func (s *Survey) readServices(ctx context.Context) (err error) {
	var v4, v6 int
	s.servicesRead, err = s.read(ctx, "/api/v1/services", "the services", nil, api.Decoded("service", func(service *corev1.Service) {
		s.services++
		for i, ip := range service.Spec.ClusterIPs {
			addr, err := netip.ParseAddr(ip)
			if err != nil {
				continue // "None"
			}
			if addr.Is4() {
				v4++
			} else {
				v6++
			}
			if i == 0 && service.Namespace == metav1.NamespaceDefault && service.Name == "kubernetes" {
				s.servicesV6 = addr.Is6()
			}
		}
	}))
	if s.servicesTaken = v4; s.servicesV6 {
		s.servicesTaken = v6
	}
	return err
}

// readServiceRanges reads the address ranges of services, which the API shows since Kubernetes 1.33.
func (s *Survey) readServiceRanges(ctx context.Context) error {
	var list networkingv1.ServiceCIDRList
	found, err := s.json(ctx, "/apis/networking.k8s.io/v1/servicecidrs", &list)
	if err != nil {
		s.serviceRanges.Why, err = s.why(err)
		return err
	}
	if !found {
		s.serviceRanges.Why = "the API shows the range since Kubernetes 1.33 only"
		return nil
	}
	for _, item := range list.Items {
		for _, text := range item.Spec.CIDRs {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				s.serviceRanges.List = append(s.serviceRanges.List, ceiling.Range{Prefix: prefix})
				s.serviceRanges.From = "servicecidrs.networking.k8s.io"
			}
		}
	}
	return nil
}

func (s *Survey) readOpenShift(ctx context.Context) error {
	var network struct {
		Status struct {
			ClusterNetwork []struct {
				CIDR       string `json:"cidr"`
				HostPrefix int    `json:"hostPrefix"`
			} `json:"clusterNetwork"`
		} `json:"status"`
	}
	found, err := s.json(ctx, "/apis/config.openshift.io/v1/networks/cluster", &network)
	if err != nil {
		_, err = s.why(err)
		return err
	}
	s.openShift = found
	for _, n := range network.Status.ClusterNetwork {
		if prefix, err := netip.ParsePrefix(n.CIDR); err == nil {
			s.podRanges.List = append(s.podRanges.List, ceiling.Range{Prefix: prefix, PerNode: n.HostPrefix})
			s.podRanges.From = "networks.config.openshift.io cluster"
		}
	}
	return nil
}

func (s *Survey) readBroken(ctx context.Context) (err error) {
	if s.broken, err = s.BrokenAPIs(ctx); err != nil {
		_, err = s.why(err)
	}
	return err
}

// completeRanges fills gaps from command lines, and keeps service ranges of the default family.
func (s *Survey) completeRanges() {
	if !s.serviceRanges.Known() {
		if list := prefixes(flagOf(s.apiServerArgs, "--service-cluster-ip-range"), 0, 0); len(list) > 0 {
			s.serviceRanges = ceiling.Ranges{List: list, Source: ceiling.Source{From: "the API server's --service-cluster-ip-range"}}
		}
	}
	if !s.podRanges.Known() {
		line := s.controllerManager
		v4, v6 := 24, 64 // the controller manager's defaults
		both := numberOf(flagOf(line, "--node-cidr-mask-size"))
		v4 = cmp.Or(numberOf(flagOf(line, "--node-cidr-mask-size-ipv4")), both, v4)
		v6 = cmp.Or(numberOf(flagOf(line, "--node-cidr-mask-size-ipv6")), both, v6)
		if flagOf(line, "--allocate-node-cidrs") != "true" {
			v4, v6 = 0, 0
		}
		if list := prefixes(flagOf(line, "--cluster-cidr"), v4, v6); len(list) > 0 {
			s.podRanges = ceiling.Ranges{List: list, Source: ceiling.Source{From: "the controller manager's --cluster-cidr"}}
		} else {
			s.podRanges.Why = "no network object and no readable command line has it"
		}
	}
	s.serviceRanges.List = slices.DeleteFunc(s.serviceRanges.List, func(r ceiling.Range) bool { return r.Prefix.Addr().Is6() != s.servicesV6 })
}

// prefixes reads a list of ranges separated by commas; v4 and v6 are the prefix lengths of nodes.
func prefixes(list string, v4, v6 int) (ranges []ceiling.Range) {
	for text := range strings.SplitSeq(list, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			continue
		}
		part := v4
		if prefix.Addr().Is6() {
			part = v6
		}
		ranges = append(ranges, ceiling.Range{Prefix: prefix, PerNode: part})
	}
	return ranges
}

// flagOf returns the value of a flag on a command line, or "".
func flagOf(line []string, name string) string {
	for i, word := range line {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
		if word == name && i+1 < len(line) {
			return line[i+1]
		}
	}
	return ""
}

// numberOf returns 0 for a text that is not a number.
func numberOf(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

const ovnSubnets = "k8s.ovn.org/node-subnets" // OVN-Kubernetes' annotation of a node's ranges

// rangesOf returns a node's parts of the pod network, and their source.
func rangesOf(n *corev1.Node) (list []ceiling.Range, from string) {
	from = ceiling.PodCIDRs
	texts := n.Spec.PodCIDRs
	if len(texts) == 0 && n.Spec.PodCIDR != "" {
		texts = []string{n.Spec.PodCIDR}
	}
	if len(texts) == 0 {
		texts, from = ovnRanges(n.Annotations[ovnSubnets]), "annotation "+ovnSubnets+" of the nodes"
	}
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			list = append(list, ceiling.Range{Prefix: prefix})
		}
	}
	return list, from
}

// ovnRanges reads OVN-Kubernetes' annotation: the ranges of the default network.
func ovnRanges(annotation string) []string {
	var several struct {
		Default []string `json:"default"`
	}
	if json.Unmarshal([]byte(annotation), &several) == nil {
		return several.Default
	}
	var one struct {
		Default string `json:"default"`
	}
	if json.Unmarshal([]byte(annotation), &one) == nil && one.Default != "" {
		return []string{one.Default}
	}
	return nil
}

// Annotations of nodes whose pods are on a Linux bridge: flannel's, and a lab's real node.
const (
	flannelBackend = "flannel.alpha.coreos.com/backend-type"
	labBridge      = "plimsoll.dev/pod-bridge"
)

func (n *surveyedNode) facts() ceiling.Node {
	ranges, from := rangesOf(n.Node)
	return ceiling.Node{
		Name: n.Name, Simulated: follow.FidelityOf(n.Node) == record.Simulated,
		Allocatable: amounts(n.Status.Allocatable), Requested: n.requested,
		Standing: n.standing, HostNetwork: n.hostNetwork, Static: n.static, Daemons: n.daemons,
		Ranges: ranges, RangesFrom: from, Bridge: n.Annotations[flannelBackend] != "" || n.Annotations[labBridge] != "",
	}
}
