package survey

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/scheme"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/create"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/sweep"
)

// Rights lists the rights that a run needs, optional ones last, but for kinds that mapper lacks. The
// error is a mistake in the workload.
func Rights(d Demand, mapper meta.RESTMapper) ([]ceiling.Right, error) {
	r := &rights{Demand: d, mapper: mapper}
	if err := r.made(); err != nil {
		return nil, err
	}
	r.followed()
	r.changed()
	for _, right := range d.Beyond {
		r.put(right)
	}
	r.ofEveryRun()
	needed := slices.DeleteFunc(slices.Clone(r.list), func(x ceiling.Right) bool { return x.Optional })
	return append(needed, slices.DeleteFunc(r.list, func(x ceiling.Right) bool { return !x.Optional })...), nil
}

// rights collects the rights of one demand.
type rights struct {
	Demand
	mapper   meta.RESTMapper
	list     []ceiling.Right
	onlyPods bool // the load makes nothing else
}

// put adds a right once, as needed if anything needs it.
func (r *rights) put(right ceiling.Right) {
	i := slices.IndexFunc(r.list, func(x ceiling.Right) bool {
		return x.Verb == right.Verb && x.Resource == right.Resource && (x.Where == right.Where || x.Where == "")
	})
	switch {
	case i < 0:
		r.list = append(r.list, right)
	case r.list[i].Optional && !right.Optional:
		r.list[i] = right
	}
}

func (r *rights) need(what, where, resource string, verbs ...string) {
	for _, verb := range verbs {
		r.put(ceiling.Right{Verb: verb, Resource: resource, Where: where, For: what})
	}
}

func (r *rights) want(what, where, resource string, verbs ...string) {
	for _, verb := range verbs {
		r.put(ceiling.Right{Verb: verb, Resource: resource, Where: where, For: what, Optional: true})
	}
}

// of returns the resource of a kind, and the namespace where the run sees it; "" where unknown.
func (r *rights) of(apiVersion, kind string) (resource, where string) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return "", ""
	}
	mapping, err := r.mapper.RESTMapping(gv.WithKind(kind).GroupKind(), gv.Version)
	if err != nil {
		return "", ""
	}
	return resourceOf(mapping), r.within(mapping)
}

func resourceOf(m *meta.RESTMapping) string {
	return strings.TrimSuffix(m.Resource.Resource+"."+m.Resource.Group, ".")
}

// within returns the run's existing namespace, for resources in namespaces.
func (r *rights) within(m *meta.RESTMapping) string {
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return r.Namespace
	}
	return ""
}

// made adds the rights to make the load, and to remove what is outside of the run's namespaces.
func (r *rights) made() error {
	r.onlyPods = true
	if r.Variant.Config == nil {
		return nil
	}
	for _, o := range r.Beside {
		if o.Before {
			r.follows(o)
		}
	}
	for j := range r.Variant.Config.Jobs {
		job := &r.Variant.Config.Jobs[j]
		if m := r.Variant.Config.PProf(job); m != nil {
			r.profiles(m)
		}
		if r.AsItIs && r.Variant.Config.PreLoads(j, true) {
			r.want("pulls images before a job", r.Namespace, "daemonsets.apps", "create", "get", "delete")
			r.want("pulls images before a job", r.Namespace, "pods", "list")
		}
		for _, w := range job.Watchers {
			if resource, where := r.of(w.APIVersion, w.Kind); resource != "" {
				r.need("opens the watches of the configuration", where, resource, "list", "watch")
			}
		}
		for o := range job.Objects {
			if !job.Creates() {
				r.chosen(job.JobType, &job.Objects[o])
				if waits := &job.Objects[o].WaitOptions; waits.Kind != "" && job.JobType != kubeburner.Delete {
					r.waited(cmp.Or(waits.APIVersion, job.Objects[o].APIVersion), waits.Kind)
				}
				continue
			}
			if job.Objects[o].Replicas < 1 {
				continue
			}
			docs, err := create.Documents(r.Variant, j, o, prepared.Identity{UUID: r.UUID, Run: r.RunID}, r.mapper)
			if err != nil {
				return err
			}
			waits := &job.Objects[o].WaitOptions
			for _, doc := range docs {
				r.document(doc, job.NamespaceOf(0))
				elsewhere := doc.Mapping != nil && (doc.GetNamespace() != "" || doc.Mapping.Scope.Name() == meta.RESTScopeNameRoot)
				if c := &job.ChurnConfig; doc.Mapping != nil && (job.Objects[o].Group.GC || c.On() && (c.Mode == "objects" && job.Objects[o].Churn || c.Mode == "namespaces" && elsewhere)) {
					r.need("deletes what churns, and groups that are removed", r.within(doc.Mapping), resourceOf(doc.Mapping), "list", "watch", "delete")
				}
				if waits.Kind == "" && waits.Awaits(doc.GetKind()) && (waits.Asks() || r.AsItIs && job.Objects[o].Wait) {
					r.waited(doc.GetAPIVersion(), doc.GetKind())
				}
			}
			if waits.Kind != "" {
				r.waited(cmp.Or(waits.APIVersion, job.Objects[o].APIVersion), waits.Kind)
			}
		}
	}
	return nil
}

// profiles adds the rights to fetch the profiles of a measurement.
func (r *rights) profiles(m *kubeburner.Measurement) {
	const does = "fetches the profiles that the configuration asks for"
	for i := range m.PProfTargets {
		if t := &m.PProfTargets[i]; t.Nodes() {
			r.want(does, "", "nodes", "list")
			r.want(does, "", "nodes/proxy", "get")
		} else {
			r.want(does, t.Namespace, "pods", "list")
			r.want(does, t.Namespace, "pods/portforward", "get", "create")
		}
	}
}

func (r *rights) waited(apiVersion, kind string) {
	if resource, where := r.of(apiVersion, kind); resource != "" {
		r.need("waits for what the configuration waits for", where, resource, "list", "watch")
	}
}

func (r *rights) chosen(job kubeburner.JobType, o *kubeburner.Object) {
	verb := map[kubeburner.JobType]string{kubeburner.Delete: "delete", kubeburner.Read: "get", kubeburner.Patch: "patch"}[job]
	if resource, where := r.of(o.APIVersion, o.Kind); resource != "" {
		const does = "does what a job of the configuration does"
		r.need("finds the objects that a job of the configuration works on", where, resource, "list", "watch")
		switch of, sub := o.Call(); {
		case verb != "":
			r.need(does, where, resource, verb)
		case sub == "":
			r.need(does, where, of+".kubevirt.io", "create")
			r.want("removes migrations that lie outside of the run's namespaces", where, of+".kubevirt.io", "delete")
		default:
			r.need(does, where, of+"/"+sub+".subresources.kubevirt.io", "update")
		}
		if o.KubeVirtOp == "add-volume" {
			r.want("tells a disk from a claim, to add it as a volume", where, "datavolumes.cdi.kubevirt.io", "get")
		}
	}
}

func (r *rights) document(doc create.Document, namespace string) {
	r.onlyPods = r.onlyPods && doc.GetKind() == "Pod"
	if doc.Unknown != nil {
		return
	}
	for _, o := range r.Beside {
		if kind := o.Resources[0].Kind; doc.GetKind() == kind || kind == "DataVolume" && doc.GetKind() == "VirtualMachine" {
			r.follows(o)
		}
	}
	resource, where := resourceOf(doc.Mapping), r.within(doc.Mapping)
	namespaced := doc.Mapping.Scope.Name() == meta.RESTScopeNameNamespace
	elsewhere := namespaced && doc.GetNamespace() != "" && doc.GetNamespace() != namespace
	if elsewhere {
		where = doc.GetNamespace()
	}
	r.need("makes the objects of the load", where, resource, "create")
	r.want("finds out whether an object was made whose request was never answered", where, resource, "get")
	if r.Namespace != "" || !namespaced || elsewhere || namespace == "" {
		r.need("removes the objects of the load", where, resource, "delete")
		r.want("confirms that none of them is left", where, resource, "list")
	}
}

// followed adds the rights to follow objects other than pods, and to make further requests to them.
func (r *rights) followed() {
	if r.Objects == nil {
		return
	}
	drains := r.Objects.Begin != nil && r.Objects.Begin.Drain != nil
	if drains || slices.ContainsFunc(r.Objects.Resources, func(o described.Resource) bool { return o.Unlabelled }) {
		r.need("tells which objects without the run's label are in its namespaces", "", "namespaces", "list", "watch")
	}
	r.follows(r.Objects)
	self, where := r.of(r.Objects.Resources[0].APIVersion, r.Objects.Resources[0].Kind)
	ask := func(a described.Ask) {
		if a.Patch != nil {
			r.need("asks objects for what is measured", where, self, "patch")
		}
		if a.Put != "" {
			r.need("asks objects for what is measured", where, subresourceOf(a.Put), "update")
		}
	}
	if b := r.Objects.Begin; b != nil {
		ask(b.Ask)
	}
	ends := r.Open // objects are removed as they age
	for _, t := range r.Objects.Then {
		ask(t.Ask)
		ends = ends || t.Delete
	}
	if ends {
		r.need("removes objects while the load goes on", where, self, "delete")
	}
	r.want("tells how many requests each object cost", "", "/metrics", "get")
	if c := r.Objects.Concurrent; c != nil && c.Limits != nil {
		if resource, _ := r.of(c.Limits.APIVersion, c.Limits.Kind); resource != "" {
			r.want("reads the limits that the load is held against", "", resource, "list")
		}
	}
}

func (r *rights) follows(objects *described.Objects) {
	for _, o := range objects.Resources {
		if resource, where := r.of(o.APIVersion, o.Kind); resource != "" {
			r.need("follows the objects of the load", where, resource, "list", "watch")
		}
	}
	if objects.Calls((*described.Probe).OfPolicies) {
		const why = "has pods of the load try the connections that network policies allow"
		r.need(why, "", "namespaces", "list")
		r.need(why, r.Namespace, "pods", "list")
		r.need(why, r.Namespace, "pods/portforward", "get", "create")
	}
	if objects.Calls((*described.Probe).OfServices) {
		r.need("calls services from a pod of the run", r.Namespace, "pods", "get", "delete")
		r.need("calls services from a pod of the run", r.Namespace, "pods/portforward", "get", "create")
	}
}

// subresourceOf returns the resource in a path such as /apis/GROUP/VERSION/namespaces/N/RESOURCE/NAME/SUB.
func subresourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 8 {
		return ""
	}
	return parts[5] + "/" + parts[7] + "." + parts[1]
}

// changed adds the rights to change settings, and to put them back.
func (r *rights) changed() {
	for _, v := range r.Variant.Settings {
		for i, in := range v.In {
			resource, _ := r.of(in.APIVersion, in.Kind)
			if resource == "" {
				continue
			}
			r.need("finds the settings that parameters change", "", resource, "list")
			if in.NameParam != "" && v.Names[i] == "" {
				r.need("finds the default storage class", "", "storageclasses.storage.k8s.io", "list")
			}
			if in.Path == "" {
				continue
			}
			r.need("reads the settings that parameters change", "", resource, "get")
			if !strings.HasPrefix(in.Path, "status.") {
				r.need("changes settings, and puts them back", "", resource, "patch")
			}
		}
	}
}

func (r *rights) ofEveryRun() {
	in := r.Namespace
	r.need("follows the pods of the run, and counts those of others", in, "pods", "list", "watch")
	r.need("makes and changes the canary, the pod by which the watch is measured", in, "pods", "create", "patch")
	if in == "" {
		r.need("makes the namespaces of the run, signs that it is alive, and removes them", "", "namespaces", "create", "get", "patch", "delete")
		r.need("waits until a new namespace can take pods", "", "serviceaccounts", "get")
		r.want("finds what earlier runs have left, and sees namespaces go", "", "namespaces", "list", "watch")
	} else {
		r.want("looks whether the namespace is there", in, "namespaces", "get")
		r.want("finds runs that have left something elsewhere", "", "namespaces", "list", "watch")
		r.want("counts the pods of others on the nodes", "", "pods", "list")
	}
	if in != "" || r.Objects == nil && (r.onlyPods || r.Open) {
		r.need("removes the pods of the run", in, "pods", "delete")
	}
	r.want("removes pods many at once, which is faster than one by one", in, "pods", "deletecollection")
	if r.Axis.Name == observe.AxisPodsPerNode || r.Means == observe.AxisPodsPerNode {
		r.need("a level is an average over the nodes", "", "nodes", "list")
	}
	r.want("sees what becomes of nodes", "", "nodes", "list", "watch")
	r.want("shows the cluster's own warnings", in, "events", "list", "watch")
	canary := []string{"create", "patch"}
	if r.Namespace != "" {
		canary = append(canary, "delete") // else its namespace takes it along
	}
	r.want("measures how late the news of events comes", in, "events", canary...)
	r.want("tells a component that does nothing from one that has nothing to do", "", "leases.coordination.k8s.io", "get")
	r.want("names the priority level that throttles", "", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "list")
	const ranges = "computes how many addresses there are"
	r.want(ranges, "", "services", "list")
	r.want(ranges, "", "servicecidrs.networking.k8s.io", "list")
	r.want(ranges, metav1.NamespaceSystem, "configmaps", "get")
	r.want("reads the network of OpenShift", "", "networks.config.openshift.io", "get")
	r.want("finds pools of OpenShift that earlier runs have left changed", "", "machineconfigs.machineconfiguration.openshift.io", "list")
}

// conventional finds the resources of kinds without a cluster: Kubernetes' own, and others by convention.
type conventional struct{ meta.RESTMapper }

// Conventional returns a mapper that needs no cluster: foreign kinds have their lower-case plural.
func Conventional() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for gvk := range scheme.Scheme.AllKnownTypes() {
		m.Add(gvk, scopeOf(gvk.Kind))
	}
	return conventional{m}
}

func (c conventional) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := c.RESTMapper.RESTMapping(gk, versions...)
	if err == nil || len(versions) == 0 {
		return mapping, err
	}
	gvk := gk.WithVersion(versions[0])
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return &meta.RESTMapping{Resource: plural, GroupVersionKind: gvk, Scope: scopeOf(gk.Kind)}, nil
}

// scopeOf returns the scope of a kind, by a list of the cluster-scoped kinds that workloads use.
func scopeOf(kind string) meta.RESTScope {
	switch kind {
	case "Namespace", "Node", "PersistentVolume", "StorageClass", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PriorityClass", "RuntimeClass",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "IngressClass", "CSIDriver", "APIService",
		"ClusterVersion", "ClusterOperator", "MachineConfig", "MachineConfigPool", "StorageProfile":
		return meta.RESTScopeRoot
	}
	return meta.RESTScopeNamespace
}

// Health returns the condition of the cluster as surveyed: the API server's checks, its nodes and pods.
func (s *Survey) Health() ceiling.Health {
	h := ceiling.Health{
		Checks: s.checks, Code: s.checksCode, ChecksRead: s.checksRead,
		Nodes: len(s.nodes), NodesRead: s.nodesRead, Pressure: make(map[string][]string),
		Pods: s.pods, Unplaced: s.unplaced, Restarting: s.restarting, NoImage: s.noImage, PodsRead: s.podsRead,
	}
	for _, b := range s.broken {
		h.BrokenAPIs = append(h.BrokenAPIs, ceiling.BrokenAPI{Name: b.Service, Why: b.Cause})
	}
	for _, n := range s.nodes {
		if !n.ready {
			h.NotReady = append(h.NotReady, n.Name)
		}
		if n.Spec.Unschedulable {
			h.Cordoned++
		}
		for _, kind := range n.pressure {
			h.Pressure[kind] = append(h.Pressure[kind], n.Name)
		}
	}
	return h
}

// Examine adds what takes further requests: clock, rights, duration of reads, and leftovers, in an
// existing namespace if given. The error is an *UnreachableError.
func (s *Survey) Examine(ctx context.Context, h *ceiling.Health, needs []ceiling.Right, namespace string) error {
	if err := s.time(ctx, h); err != nil {
		return err
	}
	if err := s.identify(ctx, h); err != nil {
		return err
	}
	left, err := sweep.Leftovers(ctx, s.Client, s.host, true, namespace)
	if err != nil {
		why, err := s.why(err)
		if err != nil {
			return err
		}
		h.Found = append(h.Found, record.HealthFinding{Severity: record.SeverityWarning, What: "leftovers", Text: "whether an earlier run has left anything is unknown: " + why})
	}
	for _, l := range left {
		h.Leftovers = append(h.Leftovers, ceiling.Leftover{Run: l.Run, Namespaces: len(l.Namespaces), Alive: l.Alive})
	}
	return s.review(ctx, h, needs)
}

// time measures the duration of some reads, and compares the clocks.
func (s *Survey) time(ctx context.Context, h *ceiling.Health) error {
	for range 5 {
		before := s.host.Now()
		r, err := s.Call(ctx, http.MethodGet, "/api/v1/namespaces/default", nil)
		if err != nil {
			return s.Unreachable(err)
		}
		after := s.host.Now()
		h.Reads = append(h.Reads, after.Sub(before).Seconds())
		h.ClockOffset = api.ClockOffset(r.Header, before, after)
	}
	return nil
}

// identify finds the user's name, and whether priority and fairness applies.
func (s *Survey) identify(ctx context.Context, h *ceiling.Health) error {
	var groups []string
	review, err := s.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err == nil {
		h.User, groups = review.Status.UserInfo.Username, review.Status.UserInfo.Groups
	} else if _, err := s.why(err); err != nil {
		return err
	}
	if h.Exempt, err = s.Exemption(ctx); err != nil {
		return err
	}
	// Every cluster has a flow schema that exempts this group.
	if slices.Contains(groups, user.SystemPrivilegedGroup) {
		h.Exempt = new(true)
	}
	return nil
}

// review checks which of the needs the user may do. The server keeps no record of that.
func (s *Survey) review(ctx context.Context, h *ceiling.Health, needs []ceiling.Right) error {
	h.Rights = slices.Clone(needs)
	return api.InParallel(ctx, len(needs), 4, 0, func(ctx context.Context, i int) error {
		r := &h.Rights[i]
		var asked authorizationv1.SelfSubjectAccessReviewSpec
		if strings.HasPrefix(r.Resource, "/") {
			asked.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.Resource, Verb: r.Verb}
		} else {
			resource, group, _ := strings.Cut(r.Resource, ".")
			resource, part, _ := strings.Cut(resource, "/")
			asked.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: r.Where, Verb: r.Verb, Group: group, Resource: resource, Subresource: part}
		}
		review, err := s.Typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: asked}, metav1.CreateOptions{})
		if err != nil {
			r.Why, err = s.why(err)
			return err
		}
		r.Allowed = review.Status.Allowed
		return nil
	})
}
