package survey

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resources "k8s.io/component-helpers/resource"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/create"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Demand describes a workload's demands on a cluster, before any load.
type Demand struct {
	Workload string
	// Variant is the rendered workload; without a configuration it stands for pods without requests.
	Variant prepared.Variant
	RunID   string
	UUID    string
	Axis    ceiling.Axis
	Means   string // target's name of the axis; Open says that objects are removed as they age
	Open    bool
	// Objects are the followed objects, nil for pods; Beside are followed where the load makes such objects;
	// Beyond are further rights that they need.
	Objects   *described.Objects
	Beside    []*described.Objects
	Beyond    []ceiling.Right
	Namespace string // an existing one for all objects, "" for the run's own
	ToLoad    bool   // makes an unknown kind an error instead of a finding
	AsItIs    bool   // is a configuration with its own waits
}

// Assessment holds a survey's conclusions about one workload.
type Assessment struct {
	Facts    ceiling.Facts
	Findings []record.HealthFinding // lists the workload's problems on this cluster
	Needs    []ceiling.Right        // lists the rights that a run needs, none without a workload

	survey *Survey
	toLoad bool
	// anyNode says that the pods may select different nodes, and later ones others than these.
	anyNode bool
	load    ceiling.Load
	specs   []namedSpec
	local   []string // distinct images that are in no registry
	limits  []namedLimits
	quotas  []ceiling.Quota
}

// namedSpec is a pod of the workload, with its place.
type namedSpec struct {
	spec      *corev1.PodSpec
	meta      metav1.ObjectMeta
	namespace string // in the document, "" for its iteration's
	labels    map[string]string
	entry     int
}

// namedLimits are the limits of a namespace, "" for the iterations' ones.
type namedLimits struct {
	namespace string
	items     []corev1.LimitRangeItem
}

// Assess computes the workload's demands. The error is a mistake in it, or an *UnreachableError.
func (s *Survey) Assess(ctx context.Context, d Demand) (*Assessment, error) {
	l := &Assessment{survey: s, toLoad: d.ToLoad, anyNode: d.AsItIs && d.Means != observe.AxisPodsPerNode, Facts: ceiling.Facts{
		Axis: d.Axis, AllNodes: len(s.nodes), NodesRead: s.nodesRead,
		PodsRead: s.podsRead, Pods: s.pods, Addresses: s.addressed, Containers: s.containers,
		Namespaces:       ceiling.Fact{Value: float64(len(s.namespaces)), Source: s.namespacesRead},
		Services:         ceiling.Fact{Value: float64(s.services), Source: s.servicesRead},
		ServiceAddresses: s.serviceRanges, ServicesTaken: s.servicesTaken, PodAddresses: s.podRanges, OwnAddresses: s.ownAddresses, OpenShift: s.openShift,
	}}
	if d.Variant.Config != nil {
		cluster, err := s.Mapper()
		if err != nil {
			return nil, err
		}
		mapper, err := create.MadeBy(d.Variant, prepared.Identity{UUID: d.UUID, Run: d.RunID}, cluster)
		if err != nil {
			return nil, err
		}
		if err := l.render(d, mapper); err != nil {
			return nil, err
		}
		if l.Needs, err = Rights(d, mapper); err != nil {
			return nil, err
		}
		if err := l.readLimits(ctx); err != nil {
			return nil, err
		}
		if err := l.size(ctx); err != nil {
			return nil, err
		}
		l.Facts.Load, l.Facts.Quotas = &l.load, l.quotas
		l.secure()
	}
	l.place()
	return l, nil
}

// Found adds a finding.
func (l *Assessment) Found(severity record.Severity, what, hint, format string, args ...any) {
	l.Findings = append(l.Findings, record.HealthFinding{Severity: severity, What: what, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// Mistake adds a mistake in the workload, a *system.MistakeError, with its hint.
func (l *Assessment) Mistake(err error) {
	var m *system.MistakeError
	errors.As(err, &m)
	l.Found(record.SeverityError, "workload", m.Hint, "%v", m)
}

// foundIn adds a warning about a place to the same warning about others, if there is one.
func (l *Assessment) foundIn(place, text string) {
	i := slices.IndexFunc(l.Findings, func(f record.HealthFinding) bool { return len(f.Places) > 0 && f.Text == text })
	if i < 0 {
		i = len(l.Findings)
		l.Found(record.SeverityWarning, "workload", "", "%s", text)
	}
	l.Findings[i].Places = append(l.Findings[i].Places, place)
}

// render reads the demands from the first iteration of each entry.
func (l *Assessment) render(d Demand, mapper meta.RESTMapper) error {
	jobs := d.Variant.Config.Jobs
	last := &jobs[len(jobs)-1]
	l.load.Workload = d.Workload
	if last.Namespace != "" && last.NamespacedIterations {
		l.load.PerNamespace = int64(max(1, last.IterationsPerNamespace))
	}
	for j := range jobs {
		job := &jobs[j]
		if !job.Creates() {
			continue
		}
		labels := maps.Clone(job.NamespaceLabels)
		if first := job.NamespaceOf(0); first != "" && first != d.Namespace {
			if _, there := l.survey.namespaces[first]; there {
				l.Found(record.SeverityError, "workload", "--namespace "+first+" runs in it, and leaves it", "namespace %s exists and was not made by plimsoll: it is left alone", first)
			}
		}
		for o := range job.Objects {
			if job.Objects[o].Replicas < 1 {
				continue
			}
			repeat := repetition(job, o, job == last)
			if job != last && job.NamespaceOf(0) != last.NamespaceOf(0) {
				repeat.Namespace = job.NamespaceOf(0)
			}
			if d.Namespace != "" {
				repeat.Namespace = d.Namespace
			}
			docs, err := create.Documents(d.Variant, j, o, prepared.Identity{UUID: d.UUID, Run: d.RunID}, mapper)
			if err == nil {
				err = l.renderEntry(docs, job.NamespaceOf(0), repeat, labels)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// repetition tells how often an object of a job is made: by iteration for the last job, else once.
func repetition(job *kubeburner.Job, object int, isLast bool) ceiling.Entry {
	o := job.Objects[object]
	e := ceiling.Entry{Copies: int64(o.Replicas), Every: int64(max(1, o.RepeatEveryNIterations))}
	if o.RunOnce {
		e.Every = 0
	}
	if !isLast {
		times := int64(1)
		if e.Every > 0 {
			times = (int64(job.JobIterations) + e.Every - 1) / e.Every
		}
		e.Copies, e.Every = e.Copies*times, 0
	}
	return e
}

func (l *Assessment) renderEntry(docs []create.Document, namespace string, repeat ceiling.Entry, labels map[string]string) error {
	for _, doc := range docs {
		mapping, typed := doc.Mapping, doc.Typed
		if doc.Unknown != nil {
			if l.toLoad {
				return doc.Unknown
			}
			l.Found(record.SeverityError, "workload", "", "%v", doc.Unknown)
			continue
		}
		e := repeat
		e.Resource = mapping.Resource.Resource
		if mapping.Resource.Group != "" {
			e.Resource += "." + mapping.Resource.Group
		}
		if own := doc.GetNamespace(); own != "" && own != namespace && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			e.Namespace = own
		}
		for _, name := range create.Images(doc.Object) {
			if strings.HasPrefix(name, image.Local) && !slices.Contains(l.local, name) {
				l.local = append(l.local, name)
			}
		}
		pods, _ := kubeburner.PodsOf(doc.Object)
		e.Pods = int64(pods)
		switch o := typed.(type) {
		case *corev1.Service:
			if o.Spec.ClusterIP != corev1.ClusterIPNone && o.Spec.Type != corev1.ServiceTypeExternalName {
				e.ClusterIP, e.LinkBytes = true, linkBytes(o)
			}
		case *corev1.ResourceQuota:
			l.quotas = append(l.quotas, quotaOf(o, e.Namespace, doc.From))
		case *corev1.LimitRange:
			l.limits = append(l.limits, namedLimits{e.Namespace, o.Spec.Limits})
		}
		if spec := create.PodSpecOf(typed); spec != nil && e.Pods > 0 {
			l.specs = append(l.specs, namedSpec{spec, metav1.ObjectMeta{}, e.Namespace, labels, len(l.load.Entries)})
		}
		l.load.Entries = append(l.load.Entries, e)
	}
	return nil
}

func quotaOf(q *corev1.ResourceQuota, namespace, from string) ceiling.Quota {
	hard := q.Spec.Hard
	if len(q.Status.Hard) > 0 {
		hard = q.Status.Hard
	}
	return ceiling.Quota{
		Name: q.Name, Namespace: namespace, Hard: amounts(hard), Used: amounts(q.Status.Used),
		Scoped: len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil, From: from,
	}
}

// linkBytes returns the bytes of environment that a service adds to each container with service links,
// with usual addresses and an iteration of four digits.
func linkBytes(service *corev1.Service) (n int64) {
	const address, iteration, pointer = len("172.30.225.60"), 3, 8
	name := len(service.Name) + iteration
	add := func(suffix, value int) { n += int64(name + suffix + len("=") + value + 1 + pointer) }
	port := func(p corev1.ServicePort) int { return len(strconv.Itoa(int(p.Port))) }
	add(len("_SERVICE_HOST"), address)
	for i, p := range service.Spec.Ports {
		protocol := len(p.Protocol)
		if protocol == 0 {
			protocol = len(corev1.ProtocolTCP)
		}
		url := protocol + len("://") + address + len(":") + port(p)
		if i == 0 {
			add(len("_SERVICE_PORT"), port(p))
			add(len("_PORT"), url)
		}
		if p.Name != "" {
			add(len("_SERVICE_PORT_")+len(p.Name), port(p))
		}
		prefix := len("_PORT_") + port(p) + len("_") + protocol
		add(prefix, url)
		add(prefix+len("_PROTO"), protocol)
		add(prefix+len("_PORT"), port(p))
		add(prefix+len("_ADDR"), address)
	}
	return n
}

func (l *Assessment) readLimits(ctx context.Context) error {
	names := make(map[string]bool)
	for _, e := range l.load.Entries {
		if e.Namespace != "" {
			names[e.Namespace] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, there := l.survey.namespaces[name]; l.survey.namespacesRead.Known() && !there {
			continue // the workload makes it
		}
		path := "/api/v1/namespaces/" + name
		read, err := l.survey.read(ctx, path+"/resourcequotas", "the quotas", nil, api.Decoded("quota", func(q *corev1.ResourceQuota) {
			l.quotas = append(l.quotas, quotaOf(q, name, "resourcequota "+name+"/"+q.Name))
		}))
		if err != nil {
			return err
		}
		if !read.Known() {
			l.Facts.QuotasWhy = fmt.Sprintf("those of namespace %s: %s", name, read.Why)
		}
		read, err = l.survey.read(ctx, path+"/limitranges", "the limits", nil, api.Decoded("limits", func(limits *corev1.LimitRange) {
			l.limits = append(l.limits, namedLimits{name, limits.Spec.Limits})
		}))
		if err != nil {
			return err
		}
		if !read.Known() {
			l.foundIn(name, "the limit ranges of namespaces are unknown: "+read.Why)
		}
	}
	return nil
}

// size computes the resources of the workload's pods, with the limits of namespaces and runtime classes.
func (l *Assessment) size(ctx context.Context) error {
	overheads := make(map[string]corev1.ResourceList)
	for _, p := range l.specs {
		applyDefaults(p.spec)
		for _, limits := range l.limits {
			if limits.namespace == p.namespace {
				l.applyLimits(p.spec, limits.items)
			}
		}
		applyDefaults(p.spec)
		if class := p.spec.RuntimeClassName; class != nil && *class != "" {
			if _, asked := overheads[*class]; !asked {
				overhead, err := l.overhead(ctx, *class)
				if err != nil {
					return err
				}
				overheads[*class] = overhead
			}
			if p.spec.Overhead == nil {
				p.spec.Overhead = overheads[*class]
			}
		}
		pod := &corev1.Pod{Spec: *p.spec}
		l.load.Entries[p.entry].Pod = ceiling.Pod{
			Requests:     amounts(resources.PodRequests(pod, resources.PodResourcesOptions{})),
			Limits:       amounts(resources.PodLimits(pod, resources.PodResourcesOptions{})),
			Containers:   int64(len(p.spec.Containers)),
			HostNetwork:  p.spec.HostNetwork,
			ServiceLinks: p.spec.EnableServiceLinks == nil || *p.spec.EnableServiceLinks,
		}
	}
	return nil
}

func containersOf(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range containers {
				if !yield(&containers[i]) {
					return
				}
			}
		}
	}
}

// applyDefaults makes a container with a limit request as much, as the API does.
func applyDefaults(spec *corev1.PodSpec) {
	for c := range containersOf(spec) {
		c.Resources.Requests = filledIn(c.Resources.Requests, c.Resources.Limits)
	}
}

// applyLimits applies the defaults of limit ranges, and reports what they refuse.
func (l *Assessment) applyLimits(spec *corev1.PodSpec, items []corev1.LimitRangeItem) {
	for _, item := range items {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for c := range containersOf(spec) {
			c.Resources.Limits = filledIn(c.Resources.Limits, item.Default)
			c.Resources.Requests = filledIn(c.Resources.Requests, item.DefaultRequest)
			l.refused(c, item)
		}
	}
}

func (l *Assessment) refused(c *corev1.Container, item corev1.LimitRangeItem) {
	for name, most := range item.Max {
		if limit, ok := c.Resources.Limits[name]; ok && limit.Cmp(most) > 0 {
			l.Found(record.SeverityError, "workload", "", "a limit range allows at most %s of %s for a container, and %s has a limit of %s: its pods are refused", most.String(), name, c.Name, limit.String())
		}
	}
	for name, least := range item.Min {
		if request, ok := c.Resources.Requests[name]; ok && request.Cmp(least) < 0 {
			l.Found(record.SeverityError, "workload", "", "a limit range asks for at least %s of %s for a container, and %s requests %s: its pods are refused", least.String(), name, c.Name, request.String())
		}
	}
}

// filledIn adds the missing quantities to a copy of the list, which a template may share.
func filledIn(list, others corev1.ResourceList) corev1.ResourceList {
	whole := make(corev1.ResourceList, len(list)+len(others))
	maps.Copy(whole, others)
	maps.Copy(whole, list)
	return whole
}

// overhead returns the resources that a runtime class adds to each pod.
func (l *Assessment) overhead(ctx context.Context, class string) (corev1.ResourceList, error) {
	rc, err := l.survey.Typed.NodeV1().RuntimeClasses().Get(ctx, class, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		l.Found(record.SeverityError, "workload", "see 'kubectl get runtimeclasses'", "there is no RuntimeClass %s: its pods are refused", class)
		return nil, nil
	}
	if err != nil {
		why, err := l.survey.why(err)
		if err == nil {
			l.Found(record.SeverityWarning, "workload", "", "what RuntimeClass %s adds to each pod is unknown: %s", class, why)
		}
		return nil, err
	}
	if rc.Overhead == nil {
		return nil, nil
	}
	return rc.Overhead.PodFixed, nil
}

// secure reports violations of Pod Security by namespaces' labels; the cluster's default is unknown.
func (l *Assessment) secure() {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return
	}
	told := make(map[string]bool)
	for _, p := range l.specs {
		labels, enforces := p.labels, "the workload's own namespaces enforce"
		if p.namespace != "" {
			labels, enforces = l.survey.namespaces[p.namespace], "namespace "+p.namespace+" enforces"
		}
		enforced, problems := psa.PolicyToEvaluate(labels, psa.Policy{Enforce: psa.LevelVersion{Level: psa.LevelPrivileged, Version: psa.LatestVersion()}})
		if len(problems) > 0 || enforced.Enforce.Level == psa.LevelPrivileged {
			continue
		}
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(enforced.Enforce, &p.meta, p.spec))
		text := fmt.Sprintf("%s Pod Security %s, and pods of the workload break it: %s", enforces, enforced.Enforce, result.ForbiddenDetail())
		if !result.Allowed && !told[text] {
			told[text] = true
			l.Found(record.SeverityError, "workload", "", "%s", text)
		}
	}
}

func (l *Assessment) place() {
	specs := make([]corev1.PodSpec, 0, len(l.specs)+1)
	for _, p := range l.specs {
		specs = append(specs, *p.spec)
	}
	if len(specs) == 0 {
		specs = append(specs, corev1.PodSpec{})
	}
	if l.anyNode {
		specs = nil
	}
	var nodes []*corev1.Node
	for _, n := range l.survey.nodes {
		if follow.CanLand(n.Node, specs) {
			nodes = append(nodes, n.Node)
			l.Facts.Nodes = append(l.Facts.Nodes, n.facts())
		}
	}
	if !l.survey.nodesRead.Known() {
		return
	}
	if len(nodes) == 0 {
		if len(l.survey.nodes) > 0 {
			l.Mistake(follow.NoNodes(len(l.survey.nodes)))
		}
		return
	}
	if _, err := follow.OneFidelity(nodes); err != nil {
		l.Mistake(err)
	}
	for _, w := range l.survey.waiting {
		if slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return follow.PodFits(n, &w.spec) }) {
			l.Facts.Pending += w.n
		}
	}
}

// NeedImages reports images in no registry that nodes may lack: they stop a load. remedy says what helps.
func (l *Assessment) NeedImages(remedy func(image string) string) {
	for _, name := range l.local {
		var lack, unknown []string
		for _, n := range l.Facts.Nodes {
			switch node := l.survey.byName[n.Name]; {
			case n.Simulated, slices.Contains(node.local, name), slices.Contains(node.local, name+":latest"):
			case node.moreImages:
				unknown = append(unknown, n.Name)
			default:
				lack = append(lack, n.Name)
			}
		}
		why := ""
		switch of := len(l.Facts.Nodes); {
		case !l.survey.nodesRead.Known():
			why = "whether the nodes have it is unknown: " + l.survey.nodesRead.Why
		case len(lack) > 0:
			why = fmt.Sprintf("%d of %d nodes do not have it: %s", len(lack), of, ceiling.Some(lack))
		case len(unknown) > 0:
			why = fmt.Sprintf("whether %d of %d nodes have it is unknown, since they list their %d largest images only: %s", len(unknown), of, toldImages, ceiling.Some(unknown))
		default:
			continue
		}
		l.Findings = append(l.Findings, record.HealthFinding{
			Severity: record.SeverityError, What: "images", Text: name + " is in no registry, and " + why, Hint: remedy(name), Stops: true,
		})
	}
}

// Kubelets reads the maximum number of pods of a kubelet of each kind of node but simulated ones.
func (s *Survey) Kubelets(ctx context.Context, l *Assessment) {
	const kinds = 8
	byKind := make(map[string]ceiling.Fact)
	for i := range l.Facts.Nodes {
		n := &l.Facts.Nodes[i]
		if n.Simulated {
			continue
		}
		kind := fmt.Sprint(n.Allocatable)
		fact, asked := byKind[kind]
		switch {
		case asked:
		case len(byKind) >= kinds:
			fact.Why = "there are many kinds of nodes, and not all were read"
		default:
			fact = s.kubelet(ctx, n.Name)
			byKind[kind] = fact
		}
		n.MaxPods = fact
	}
}

func (r reader) kubelet(ctx context.Context, node string) (f ceiling.Fact) {
	ctx, cancel := context.WithTimeout(ctx, kubeletPatience)
	defer cancel()
	var config struct {
		Config struct {
			MaxPods float64 `json:"maxPods"`
		} `json:"kubeletconfig"`
	}
	found, err := r.json(ctx, "/api/v1/nodes/"+node+"/proxy/configz", &config)
	switch {
	case err != nil && apierrors.IsForbidden(err):
		f.Why = "this user may not read it: " + err.Error()
	case err != nil:
		f.Why = "the kubelet of " + node + " could not be read: " + err.Error()
	case !found || config.Config.MaxPods <= 0 || math.IsInf(config.Config.MaxPods, 0):
		f.Why = "the kubelet of " + node + " could not be read"
	default:
		f.Value, f.From = config.Config.MaxPods, "configz of a kubelet of each kind of node"
	}
	return f
}

const kubeletPatience = 2 * time.Second // bounds the wait for a kubelet
