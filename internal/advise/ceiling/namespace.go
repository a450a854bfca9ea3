package ceiling

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// Quota describes a ResourceQuota that applies to the workload.
type Quota struct {
	Name      string
	Namespace string  // "" for those that the workload makes
	Hard      Amounts // by the quota's own names, such as requests.cpu
	Used      Amounts
	Scoped    bool // its scopes select pods
	From      string
}

func (c *computation) namespaces() {
	c.environment()
	for _, q := range c.f.Quotas {
		c.quota(q)
	}
	if c.f.QuotasWhy != "" {
		c.unknown(record.Ceiling{Name: "quotas", What: "quotas of the namespaces", Unit: "objects"}, c.f.QuotasWhy)
	}
}

// scarcest returns the fewest iterations that a limit per namespace allows, and the namespace full first.
func (c *computation) scarcest(limit int64, each func(Entry) int64) (allowed int64, where string) {
	allowed = unbounded
	for _, ns := range c.load.namespaces() {
		if n := most(limit, c.load.within(ns, each)); n < allowed {
			allowed, where = n, ns
		}
	}
	return allowed, where
}

// maxEnvironment bounds arguments and environment: a quarter of the usual stack of 8 MiB (execve(2)).
const maxEnvironment = 2 << 20

const ownEnvironment = 4 << 10 // for a container's variables other than service links

// environment is about services that make a container's environment too large to start.
func (c *computation) environment() {
	linked := func(e Entry) bool { return e.Pods > 0 && e.Pod.ServiceLinks }
	row := record.Ceiling{
		Name: "serviceLinks", What: "environment of a container, by the services of its namespace", Class: record.CeilingAdvisory, Unit: "bytes",
		Reason: "Error: exec: argument list too long", Sign: "argument list too long",
		From:  "execve(2): a quarter of a stack of 8 MiB, which the runtime may have set otherwise",
		Limit: figure(maxEnvironment - ownEnvironment),
	}
	per := func(e Entry) int64 { return e.LinkBytes }
	if !c.load.makes(per) || !slices.ContainsFunc(c.load.Entries, linked) {
		return
	}
	row.Note = "enableServiceLinks: false lifts it"
	if c.f.simulated() {
		row.Class, row.Reason, row.Sign = record.CeilingNotEnforced, "", ""
		row.Note = "no container is started"
	}
	n, _ := c.scarcest(maxEnvironment-ownEnvironment, per)
	c.add(row, n, true)
}

func (c *computation) quota(q Quota) {
	for _, name := range slices.Sorted(maps.Keys(q.Hard)) {
		row := record.Ceiling{
			Name: "quota:" + q.Name + ":" + name, What: fmt.Sprintf("quota %s on %s", q.Name, name), Class: record.CeilingHard, Unit: name, From: q.From,
			Reason: "HTTP 403: exceeded quota: " + q.Name, Sign: "exceeded quota",
		}
		if q.Namespace != "" {
			row.What += " of namespace " + q.Namespace
		} else {
			row.Note = "the workload makes it: what is made at the same time may slip past it"
		}
		unit := 1.0
		if strings.HasSuffix(name, CPU) {
			row.Unit, unit = "cores", 1000
		} else if strings.HasSuffix(name, Memory) {
			row.Unit = "bytes"
		}
		row.Limit, row.Used = figure(float64(q.Hard[name])/unit), figure(float64(q.Used[name])/unit)
		each, resource, of, known := counted(name)
		standing := resource != "" || name == Pods || name == "count/pods" // other objects outlive pods
		switch {
		case q.Scoped:
			c.unknown(row, "it counts the pods of its scopes only")
			continue
		case !known:
			c.unknown(row, "what the workload asks for of it is not looked at")
			continue
		}
		if resource != "" && slices.ContainsFunc(c.load.Entries, func(e Entry) bool {
			return e.Namespace == q.Namespace && e.Pods > 0 && of(e.Pod)[resource] == 0
		}) {
			row.Reason, row.Sign = fmt.Sprintf("HTTP 403: failed quota: %s: must specify %s", q.Name, name), "must specify"
			c.add(row, 0, false)
			continue
		}
		left := max(0, q.Hard[name]-q.Used[name])
		c.add(row, most(left, c.load.within(q.Namespace, each)), !standing)
	}
}

// counted returns what a quota's name counts, and which resource each container must then specify.
func counted(name string) (each func(Entry) int64, resource string, of func(Pod) Amounts, known bool) {
	requests := func(p Pod) Amounts { return p.Requests }
	limits := func(p Pod) Amounts { return p.Limits }
	switch name {
	case "pods", "count/pods":
		return func(e Entry) int64 { return e.Pods }, "", nil, true
	case CPU, Memory:
		resource, of = name, requests
	case "requests." + CPU, "requests." + Memory:
		resource, of = strings.TrimPrefix(name, "requests."), requests
	case "limits." + CPU, "limits." + Memory:
		resource, of = strings.TrimPrefix(name, "limits."), limits
	}
	if resource != "" {
		return func(e Entry) int64 { return e.Pods * of(e.Pod)[resource] }, resource, of, true
	}
	object, isCount := strings.CutPrefix(name, "count/")
	if !isCount && !slices.Contains([]string{"services", "configmaps", "secrets", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas"}, name) {
		return nil, "", nil, false
	}
	return objects(object), "", nil, true
}

// objects counts the objects of one resource that the workload makes itself.
func objects(resource string) func(Entry) int64 {
	return func(e Entry) int64 {
		if e.Resource != resource {
			return 0
		}
		return 1
	}
}

// Publishers of tested limits.
const (
	byKubernetes = "Kubernetes scalability thresholds"
	byDocs       = "Kubernetes, considerations for large clusters"
	byOpenShift  = "OpenShift tested cluster maximums"
	byArticle    = "2500 pods per node on OpenShift 4.13, 26 workers of 56 cores and 512 GB"
)

// tested adds the limits that were published as tested: beyond them nobody vouches for anything.
func (c *computation) tested() {
	c.testedPerNode()
	f := c.f
	count := func(name, what string, limit float64, used Fact, unit, from string, made bool, each func(int64) int64) {
		row := record.Ceiling{Name: name, What: what, Class: record.CeilingAdvisory, Unit: unit, From: from, Limit: figure(limit)}
		if !used.Known() {
			c.unknown(row, used.Why)
			return
		}
		row.Used = figure(used.Value)
		c.add(row, most(int64(max(0, limit-used.Value)), each), made)
	}
	pods, containers := Fact{float64(f.Pods), f.PodsRead}, Fact{float64(f.Containers), f.PodsRead}
	count("testedPods", "pods of a cluster, as tested", TestedPods, pods, "pods", byKubernetes, false, c.load.pods)
	count("testedContainers", "containers of a cluster, as tested", TestedContainers, containers, "containers", byDocs, false, func(i int64) int64 {
		return c.load.sum(i, func(e Entry) int64 { return e.Pods * e.Pod.Containers })
	})
	count("testedNamespaces", "namespaces of a cluster, as tested", TestedNamespaces, f.Namespaces, "namespaces", byKubernetes, true, c.load.spaces)
	count("testedServices", "services of a cluster, as tested", TestedServices, f.Services, "services", byKubernetes, true, func(i int64) int64 {
		return c.load.sum(i, objects("services"))
	})
	for _, limit := range []struct {
		name, what, unit, from string
		limit                  int64
		made                   bool
		each                   func(Entry) int64
	}{
		{"testedPodsPerNamespace", "pods of a namespace, as tested", "pods", byKubernetes, NamespacePods, false, func(e Entry) int64 { return e.Pods }},
		{"testedServicesPerNamespace", "services of a namespace, as tested", "services", byKubernetes + "; " + byOpenShift, NamespaceServices, true, objects("services")},
		{"testedDeploymentsPerNamespace", "deployments of a namespace, as tested", "deployments", byKubernetes, NamespaceDeploys, true, objects("deployments.apps")},
	} {
		if !c.load.makes(limit.each) {
			continue
		}
		row := record.Ceiling{Name: limit.name, What: limit.what, Class: record.CeilingAdvisory, Unit: limit.unit, From: limit.from, Limit: figure(float64(limit.limit))}
		allowed, where := c.scarcest(limit.limit, limit.each)
		if where != "" {
			row.Note = "in namespace " + where
		}
		if allowed >= unbounded && c.load.PerNamespace > 0 {
			row.Note = fmt.Sprintf("%d iterations share a namespace", c.load.PerNamespace)
		}
		c.add(row, allowed, limit.made)
	}
	if f.NodesRead.Known() {
		nodes, by := float64(TestedNodes), byKubernetes
		if f.OpenShift {
			nodes, by = OpenShiftNodes, byOpenShift
		}
		c.add(record.Ceiling{
			Name: "testedNodes", What: "nodes of a cluster, as tested", Class: record.CeilingUnbound, Unit: "nodes", From: by,
			Limit: figure(nodes), Used: figure(float64(f.AllNodes)),
		}, unbounded, false)
	}
	if f.Axis.Life > 0 {
		// Kubernetes tests its objectives up to this churn.
		c.rows = append(c.rows, record.Ceiling{
			Name: "testedChurn", What: "pods created per second, as tested", Class: record.CeilingAdvisory, Unit: "pods/s", From: "Kubernetes scalability SLOs",
			Limit: figure(20), Level: figure(20), Total: figure(float64(c.others) + 20*f.Axis.Life.Seconds()),
		})
	}
}

// testedPerNode adds the published numbers of pods per node.
func (c *computation) testedPerNode() {
	f := c.f
	if !f.NodesRead.Known() || len(f.Nodes) == 0 {
		return
	}
	perNode := func(name, what, from string, of func(Node) float64) {
		var limit float64
		for _, n := range f.Nodes {
			limit += of(n)
		}
		row := record.Ceiling{Name: name, What: what, Class: record.CeilingAdvisory, Unit: Pods, From: from, Limit: figure(limit)}
		if f.PodsRead.Known() {
			row.Used = figure(float64(c.others))
		}
		c.add(row, most(int64(max(0, math.Floor(limit)-float64(c.others))), c.load.pods), false)
	}
	flat := func(n float64) func(Node) float64 { return func(Node) float64 { return n } }
	perNode("testedPodsPerNode", "110 pods of a node, or 10 for each core, as tested", byKubernetes, func(n Node) float64 {
		return min(DefaultMaxPods, float64(n.Allocatable[CPU])/100)
	})
	if f.OpenShift {
		perNode("defaultPodsPerNode", "250 pods of a node, OpenShift's default", byOpenShift, flat(OpenShiftMaxPods))
	}
	perNode("testedPodsPerNodeOpenShift", "500 pods of a node, as tested on OpenShift", byOpenShift, flat(TestedMaxPods))
	perNode("shownPodsPerNode", "2500 pods of a node, as shown once", byArticle, flat(ShownMaxPods))
}
