package host

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// OpenShift3 and HAProxyAlone name further platforms of a router.
const (
	OpenShift3   = "openshift3"
	HAProxyAlone = "haproxy"
)

// Router holds the parameters of an HAProxy router.
type Router struct {
	Platform   param.In[string]      `yaml:"platform" flag:"platform" help:"what the router is part of" words:"openshift, openshift3, haproxy" default:"openshift" why:"the documents' platform"`
	Encryption param.In[string]      `yaml:"encryption" flag:"encryption" help:"of the routes" words:"none, edge, passthrough, reencrypt" default:"none" why:"no encryption"`
	Page       param.In[param.Bytes] `yaml:"page" flag:"page" help:"size of an answer, such as 4k" range:"1..1Gi" default:"1000 B" why:"R2's smallest page"`
	Link       param.In[param.Rate]  `yaml:"link" flag:"link" help:"speed of a router's NIC" default:"1 Gbit/s" why:"R3: 1 Gbit/s"`
	// Measured replaces the document's table by the rate of a measured router.
	Measured    param.In[int64]       `yaml:"measured" flag:"measured" help:"requests per second that one router was measured to do" range:"1..100000000" in:"requests/s"`
	Metal       param.In[bool]        `yaml:"metal" flag:"metal" help:"bare metal: twice the document's table"`
	Rate        param.In[int64]       `yaml:"rate" flag:"rate" help:"requests per second, over all routers" range:"1..100000000" in:"requests/s"`
	Use         param.In[param.Share] `yaml:"use" flag:"use" help:"of what a router can do that is planned for" range:"0.01..1" default:"70%" why:"this program's own allowance for bursts and for a router that is down"`
	Routes      param.In[int64]       `yaml:"routes" flag:"routes" help:"number of routes" range:"1..1000000"`
	Static      param.In[int64]       `yaml:"static" flag:"static" help:"applications that serve files or cache" range:"1..1000000" in:"applications"`
	Dynamic     param.In[int64]       `yaml:"dynamic" flag:"dynamic" help:"applications that compute their answers" range:"1..1000000" in:"applications"`
	Connections param.In[int64]       `yaml:"connections" flag:"connections" help:"clients at a time, over all routers" range:"1..1000000000"`
	Header      param.In[param.Bytes] `yaml:"header" flag:"header" help:"largest header of a request or an answer" range:"1..128Mi"`
	Memory      param.In[param.Bytes] `yaml:"memory" flag:"memory" help:"memory that a router may use"`
	NoFile      param.In[int64]       `yaml:"nofile" flag:"nofile" help:"open files that a router may have (ulimit -Hn)" range:"64..1000000000"`
	Threads     param.In[int64]       `yaml:"threads" flag:"threads" help:"threads of HAProxy (default 4, otherwise than on OpenShift 1)" range:"1..64"`
	CPUs        param.In[string]      `yaml:"cpus" flag:"cpus" takes:"list" help:"CPUs to pin HAProxy to, such as 0-3"`
	Domain      param.In[string]      `yaml:"domain" flag:"domain" takes:"name" help:"domain of the shards" object:"true"`
	Facts       *Facts
}

// Figures of HAProxy and of OpenShift's router.
const (
	haproxyBuffer      = 16384 // tune.bufsize
	haproxyRewrite     = 1024  // tune.maxrewrite
	openShiftBuffer    = 32768 // headerBufferBytes
	openShiftRewrite   = 8192  // headerBufferMaxRewriteBytes
	openShiftConns     = 50000 // maxConnections
	openShift3Conns    = 20000 // ROUTER_MAX_CONNECTIONS
	leastConns         = 2000
	mostConns          = 2_000_000
	routesPerRouter    = 2000
	openShiftThreads   = 4
	filesBesides       = 10 // beside connections, listeners and threads
	filesPerThread     = 3
	filesPerConnection = 2
)

// BoundProcessor names HAProxy's own processor among the bounds of a router's record.
const BoundProcessor = "HAProxy"

// HAProxyFiles returns the open files that HAProxy 2.6 asks for.
func HAProxyFiles(maxconn, threads, listeners int64) int64 {
	return filesPerConnection*maxconn + listeners + filesPerThread*threads + filesBesides
}

// TuneRouter computes HAProxy routers (R1 to R11).
func TuneRouter(p Router) (*answer.Answer, error) {
	b, err := answer.Begin("router", &p, func() error {
		if _, err := cpuList(p.CPUs.Value); err != nil {
			return param.Bad("cpus", "", "%v", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.Title = "HAProxy routers"
	t := routerTuner{Builder: b, Router: p, routerFields: routerFields{replicas: 1, threads: 1, rewrite: openShiftRewrite}, usualBuffer: openShiftBuffer}
	switch p.Platform.Value {
	case param.OpenShift:
		t.usualConns, t.threads = openShiftConns, openShiftThreads
	case OpenShift3:
		t.usualConns = openShift3Conns
	case HAProxyAlone:
		t.usualBuffer, t.rewrite = haproxyBuffer, haproxyRewrite
	}
	t.threads = cmp.Or(p.Threads.Value, t.threads)
	t.capacity()
	t.applications()
	t.buffers()
	t.connections()
	t.pinning()
	t.files()
	t.Cite("R8")
	t.Find(answer.Finding{Grade: answer.Advice, What: "processors of a router", Wanted: "few and fast", Cost: "many slow cores are slower than few fast ones (R8)"})
	return &t.Answer, nil
}

type routerTuner struct {
	*answer.Builder
	Router
	routerFields
	// The platform's defaults; 0 connections means that it has none.
	usualConns, usualBuffer int64
}

type routerFields struct {
	threads, replicas, shards int64
	maxconn                   int64 // 0 leaves it alone
	buffer                    int64 // 0 leaves it and rewrite alone
	rewrite                   int64
	cpus                      string
	each                      bool // one CPU for each thread
}

// capacity is R1 to R4 and R6: the number of routers for a rate.
func (t *routerTuner) capacity() {
	fills := float64(t.Link.Value) / 8 / float64(t.Page.Value)
	t.Step("requests/s that fill the link = speed / 8 / page", fmt.Sprintf("%s / 8 / %d = %s", param.Trim(float64(t.Link.Value)), t.Page.Value, param.Grouped(int64(math.Round(fills)))), "R3")
	t.Figure("requestsFillingLink", int64(math.Round(fills)), "requests/s", "without headers, answers only")
	one := float64(t.Measured.Value)
	if !t.Measured.Ok() {
		// R2: requests per second at 1 kB and 4 kB, on 4 vCPU and 16 GB, 100 routes, keep-alive.
		at := map[string][2]float64{"none": {15435, 11947}, "edge": {7467, 7678}, "passthrough": {25789, 17876}, "reencrypt": {7611, 7395}}[t.Encryption.Value]
		page := float64(t.Page.Value)
		share := min(max((page-1000)/3000, 0), 1)
		one = at[0] + (at[1]-at[0])*share
		t.Step("one router by the document's table, between 1 kB and 4 kB in proportion", fmt.Sprintf("%s, %s: %.0f requests/s", t.Encryption.Value, t.Page.Value, one), "R2")
		if t.Metal.Value {
			t.Step("bare metal is about twice as fast", fmt.Sprintf("2 x %.0f = %.0f", one, 2*one), "R4")
			one *= 2
		}
		if page > 4096 {
			t.Warn("the table ends at pages of 4 kB: larger ones are slower")
		}
		t.Cite("R1", "R3")
		t.Find(answer.Finding{Grade: answer.Advice, What: "a router at pages of 8 kB", Now: "R3 says that it fills 1 Gbit/s, 15,259 requests/s", Wanted: "R2 has 11,947 at 4 kB already", Cost: "the two disagree", Remedy: "measure your router (--measured)"})
	}
	// Headers and the network's own bytes come on top of the pages.
	const nearlyFull = 0.9
	filled := t.Measured.Ok() && one >= nearlyFull*fills
	if t.Measured.Ok() && !filled {
		full := int64(math.Ceil(float64(t.Link.Value) / 8 / one))
		t.Step("page that fills the link = speed / 8 / requests/s of one router", fmt.Sprintf("%s / 8 / %.0f = %s", param.Trim(float64(t.Link.Value)), one, param.Grouped(full)), "R3")
		t.Figure("pageFillingLink", full, "B", "computed: larger pages are bound by the link, if the rate stays what it is at this page")
	}
	bound := "HAProxy"
	if fills < one || filled {
		one, bound = min(fills, one), "the link"
	}
	t.Figure("requestsPerRouter", int64(math.Round(one)), "requests/s", "bound by "+bound)
	if !t.Rate.Ok() {
		return
	}
	need := int64(math.Ceil(float64(t.Rate.Value)/(one*float64(t.Use.Value)) - 1e-9))
	t.replicas = max(need, 1)
	t.Step("routers = requests/s / (one router's x share in use), rounded up", fmt.Sprintf("%s / (%.0f x %s) = %d", param.Grouped(t.Rate.Value), one, param.Trim(float64(t.Use.Value)), need), "R2", "R6")
	t.Figure("routers", need, "", "")
}

// applications is R5, and the tested number of routes.
func (t *routerTuner) applications() {
	for _, x := range []struct {
		in        param.In[int64]
		name, of  string
		few, many int64
	}{{t.Static, "static", "static files or caching", 5, 10}, {t.Dynamic, "dynamic", "dynamic content", 100, 1000}} {
		if !x.in.Ok() {
			continue
		}
		least, most := param.CeilDiv(x.in.Value, x.many), param.CeilDiv(x.in.Value, x.few)
		t.Step("routers = applications / those of one router", fmt.Sprintf("%s of %s: %s / %d to %s / %d = %d to %d", param.Grouped(x.in.Value), x.of, param.Grouped(x.in.Value), x.many, param.Grouped(x.in.Value), x.few, least, most), "R5")
		t.Figure("routersFor"+strings.ToUpper(x.name[:1])+x.name[1:], fmt.Sprintf("%d to %d", least, most), "", "a guide: "+x.of)
	}
	if !t.Routes.Ok() {
		return
	}
	t.Cite("R6", "openshift-500")
	t.shards = param.CeilDiv(t.Routes.Value, routesPerRouter)
	t.Step("shards = routes / 2000 of one router, rounded up", fmt.Sprintf("%s / %d = %d", param.Grouped(t.Routes.Value), routesPerRouter, t.shards), "openshift-500", "R6")
	t.Figure("shards", t.shards, "", "each router of a shard serves all routes of the shard")
	if t.shards > 1 && !t.Domain.Ok() {
		t.Warn("shards need a domain of their own: --domain apps.example.com writes them")
	}
}

// buffers is R11: the header that fits into tune.bufsize.
func (t *routerTuner) buffers() {
	usual, rewrite := t.usualBuffer, t.rewrite
	t.Cite("haproxy")
	if !t.Header.Ok() {
		t.Figure("largestHeader", usual-rewrite, "B", fmt.Sprintf("with the default buffer of %d less %d for rewriting", usual, rewrite))
		return
	}
	need := param.RoundUp(int64(t.Header.Value)+rewrite, 1024)
	t.Step("tune.bufsize >= header + tune.maxrewrite, in whole KiB", fmt.Sprintf("%d + %d -> %d", t.Header.Value, rewrite, need), "R11", "haproxy")
	use := max(need, usual)
	t.Figure("bufsize", use, "B", fmt.Sprintf("%d by default", usual))
	if need > usual {
		t.buffer = use
	}
	t.Check(need <= usual, answer.Finding{Grade: answer.Change, What: "largest header", Now: fmt.Sprintf("%d B by default", usual-rewrite), Wanted: fmt.Sprintf("%d B", t.Header.Value), Cost: "requests with a larger one are refused (400), answers too (502)", Remedy: fmt.Sprintf("a buffer of %d bytes: memory of busy connections grows in proportion, %.1f times", use, float64(use)/float64(usual))})
	if t.Platform.Value == param.OpenShift {
		t.Cite("openshift-ingress")
	}
}

// connections is R7, with the files and memory of each connection.
func (t *routerTuner) connections() {
	t.Cite("R7")
	if t.Platform.Value == param.OpenShift {
		t.Cite("openshift-ingress")
		t.Correct("R7", "edit the environment variable ROUTER_MAX_CONNECTIONS of the router's deployment", "on OpenShift 4 it is spec.tuningOptions.maxConnections of the IngressController", "the ingress operator takes the edit of the deployment back")
	}
	conns := t.usualConns
	if t.Connections.Ok() {
		each := param.CeilDiv(t.Connections.Value, t.replicas)
		conns = param.RoundUp(int64(math.Ceil(float64(each)/float64(t.Use.Value))), 1000)
		t.Step("maxconn = clients / routers / share in use, in whole thousands", fmt.Sprintf("%s / %d / %s -> %d", param.Grouped(t.Connections.Value), t.replicas, param.Trim(float64(t.Use.Value)), conns), "R7")
		if t.Platform.Value == param.OpenShift {
			conns = max(conns, leastConns)
		}
		if t.Platform.Value == param.OpenShift && conns > mostConns {
			t.Find(answer.Finding{Grade: answer.Cannot, What: "maxConnections", Now: param.Grouped(conns), Wanted: fmt.Sprintf("%d to %d", leastConns, mostConns), Cost: "the IngressController is refused, so that none is written", Remedy: "more routers"})
		} else {
			t.Check(conns <= t.usualConns, answer.Finding{Grade: answer.Change, What: "maxconn", Now: orNone(t.usualConns), Wanted: param.Grouped(conns), Cost: "clients beyond it wait in the kernel's queue", Remedy: ""})
			if conns > t.usualConns {
				t.maxconn = conns
			}
		}
		conns = max(conns, t.usualConns)
	}
	if conns == 0 {
		return
	}
	t.Figure("maxconn", conns, "", "")
	const listeners = 2 // HTTP and HTTPS
	files := HAProxyFiles(conns, t.threads, listeners)
	t.Step("open files = 2 x maxconn + 3 x threads + listeners + 10", fmt.Sprintf("2 x %d + 3 x %d + %d + 10 = %d", conns, t.threads, listeners, files), "haproxy")
	t.Figure("openFiles", files, "", "that HAProxy asks for when it starts; health checks of servers come on top")
	if t.NoFile.Ok() {
		most := (t.NoFile.Value - HAProxyFiles(0, t.threads, listeners)) / filesPerConnection
		t.Figure("maxconnForNofile", max(most, 0), "", "the most that this many open files allow")
		t.Check(files <= t.NoFile.Value, answer.Finding{Grade: answer.Cannot, What: "open files", Now: param.Grouped(t.NoFile.Value), Wanted: param.Grouped(files), Cost: "HAProxy refuses to start, or lowers maxconn by itself", Remedy: fmt.Sprintf("maxconn %d at most, or a higher limit (ulimit -Hn)", max(most, 0))})
	}
	buffer := cmp.Or(t.buffer, t.usualBuffer)
	memory := conns * 2 * buffer
	t.Step("memory for buffers <= maxconn x 2 x tune.bufsize", fmt.Sprintf("%d x 2 x %d = %s", conns, buffer, param.Bytes(memory)), "R11", "haproxy")
	t.Figure("bufferMemory", memory, "B", "when every connection has both buffers in use; idle ones have none")
	if t.Memory.Ok() {
		t.Check(memory <= int64(t.Memory.Value), answer.Finding{Grade: answer.Change, What: "memory for buffers", Now: param.Bytes(memory).String(), Wanted: "at most " + t.Memory.Value.String(), Cost: "a router that is killed for its memory drops all of its connections", Remedy: "fewer connections, a smaller buffer, or more memory"})
	}
}

func orNone(n int64) string {
	if n == 0 {
		return "not set"
	}
	return param.Grouped(n) + " by default"
}

// pinning is R9 and R10.
func (t *routerTuner) pinning() {
	t.Cite("R9", "R10", "haproxy")
	t.Correct("R10", "cpu-map takes a process ID and a CPU: cpu-map 1 0", "the first number is HAProxy's own, counted from 1, not a PID; with threads it is cpu-map auto:1/1-N and as many CPUs", "with threads, all of them share the one CPU")
	cpus := t.CPUs
	if !cpus.Ok() && t.Facts != nil {
		cpus = t.placeByNUMA()
	}
	if !cpus.Ok() {
		t.Warn("pinning pays where nothing else runs on those CPUs: on bare metal irqbalance minds NUMA nodes, in a public cloud they are not shown (R9)")
		return
	}
	t.Put("cpus", cpus, "")
	list, err := cpuList(cpus.Value)
	if err != nil || len(list) == 0 {
		return
	}
	t.cpus, t.each = cpus.Value, int64(len(list)) == t.threads
	if int64(len(list)) != t.threads {
		t.Warn("%d CPUs for %d threads: every thread may run on any of them; cpu-map auto wants one CPU for each thread", len(list), t.threads)
	}
}

// placeByNUMA takes CPUs of the NIC's NUMA node: the first for its interrupts, the next for HAProxy.
func (t *routerTuner) placeByNUMA() (in param.In[string]) {
	nic, cpus := nicCPUs(t.Facts)
	if nic == nil || int64(len(cpus)) < t.threads+1 {
		t.Warn("no NUMA node of %s has CPUs for the interrupts and for %d threads: nothing is pinned", t.Facts.From, t.threads)
		return in
	}
	t.Figure("interruptCPU", int64(cpus[0]), "", "for the interrupts of "+nic.Name)
	for _, irq := range t.Facts.Interrupts {
		if irq.Interface == nic.Name {
			t.Command(fmt.Sprintf("echo %d > /proc/irq/%s/smp_affinity_list", cpus[0], irq.Number), "an interrupt of "+nic.Name)
		}
	}
	t.Warn("irqbalance moves interrupts back: stop it, or name them in its --banirq")
	return param.Given(compactCPUs(cpus[1:1+t.threads]), fmt.Sprintf("NUMA node %d, which %s is at", nic.NUMANode, nic.Name))
}

func (t *routerTuner) files() {
	switch t.Platform.Value {
	case param.OpenShift:
		tuning := answer.Mapping{{"maxConnections", t.maxconn}}
		if t.Threads.Ok() {
			tuning = append(tuning, [2]any{"threadCount", t.threads})
		}
		if t.buffer > 0 {
			tuning = append(tuning, [2]any{"headerBufferBytes", t.buffer}, [2]any{"headerBufferMaxRewriteBytes", t.rewrite})
		}
		tuning = tuning.Compact()
		var replicas int64
		if t.Rate.Ok() {
			replicas = max(t.replicas, 2)
		}
		ingressController := func(name, comment string, spec answer.Mapping) string {
			return answer.Manifest(answer.Object("operator.openshift.io/v1", "IngressController", answer.Mapping{{"name", name}, {"namespace", "openshift-ingress-operator"}}, spec), comment)
		}
		t.Cite("openshift-ingress")
		if spec := (answer.Mapping{{"replicas", replicas}, {"tuningOptions", tuning}}).Compact(); spec != nil {
			t.File("ingresscontroller-default.yaml", ingressController("default", "The default router: what differs from its defaults.", spec), "the ingress operator of OpenShift: oc apply --server-side -f")
		}
		if t.shards > 1 && t.Domain.Ok() {
			for i := range t.shards - 1 {
				name := fmt.Sprintf("shard-%d", i+1)
				shard := answer.Mapping{{"domain", name + "." + t.Domain.Value}, {"replicas", replicas}, {"routeSelector", answer.MatchLabels("router", name)}, {"tuningOptions", tuning}}
				t.File("ingresscontroller-"+name+".yaml", ingressController(name, "Serves the routes with the label router="+name+".", shard), "the ingress operator of OpenShift: oc apply -f")
			}
			t.Warn("the default router serves the routes of the shards as well, unless its routeSelector leaves them out: matchExpressions with key router, operator DoesNotExist")
		}
	case OpenShift3:
		env := ""
		if t.maxconn > 0 {
			env += fmt.Sprintf(" ROUTER_MAX_CONNECTIONS=%d", t.maxconn)
		}
		if t.buffer > 0 {
			env += fmt.Sprintf(" ROUTER_BUF_SIZE=%d", t.buffer)
		}
		if env != "" {
			t.Command("oc set env dc/router -n default"+env, "the router starts again")
		}
		fallthrough
	default:
		t.File("haproxy-global.cfg", haproxyGlobal(t.routerFields), "haproxy: in front of its own configuration, haproxy -c -f haproxy-global.cfg -f REST")
	}
}

func haproxyGlobal(r routerFields) string {
	var b strings.Builder
	b.WriteString("# HAProxy 2.5 or later, where one process runs all threads.\nglobal\n")
	if r.maxconn > 0 {
		fmt.Fprintf(&b, "    maxconn %d\n", r.maxconn)
	}
	fmt.Fprintf(&b, "    nbthread %d\n", r.threads)
	if r.buffer > 0 {
		fmt.Fprintf(&b, "    tune.bufsize %d\n    tune.maxrewrite %d\n", r.buffer, r.rewrite)
	}
	if r.cpus != "" {
		threads := "1/1"
		if r.threads != 1 {
			threads = fmt.Sprintf("1/1-%d", r.threads)
		}
		if r.each && r.threads != 1 {
			threads = "auto:" + threads // sets of one size only
		}
		fmt.Fprintf(&b, "    cpu-map %s %s\n", threads, strings.ReplaceAll(r.cpus, ",", " "))
	}
	return b.String()
}
