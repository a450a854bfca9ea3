package tune

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// OpenShift3 and HAProxyAlone are further platforms of a router.
const (
	OpenShift3   = "openshift3"
	HAProxyAlone = "haproxy"
)

// Router are the parameters of an HAProxy router.
type Router struct {
	Platform   In[string] // openshift, openshift3 or haproxy
	Rate       In[int64]  // requests per second, keep-alive
	Encryption In[string] // of Encryptions
	Page       In[Bytes]
	Metal      In[bool] // physical machines instead of cloud ones
	// Measured is what one router was seen to do, in place of the document's
	// table.
	Measured    In[int64]
	Use         In[float64] // share of a router's requests that it is planned for
	Routes      In[int64]
	Static      In[int64] // applications
	Dynamic     In[int64]
	Connections In[int64] // clients at a time, over all routers
	Header      In[Bytes] // largest request or response header
	Memory      In[Bytes] // that a router may use
	NoFile      In[int64] // open files that it may have
	Threads     In[int64]
	Link        In[Rate]
	CPUs        In[string] // to pin HAProxy to, such as 0 or 0-3
	Domain      In[string] // of shards
	Facts       *HostFacts
}

// Encryptions are how a route is encrypted.
func Encryptions() []string { return []string{"none", "edge", "passthrough", "reencrypt"} }

// routerTable is R2: requests per second at pages of 1 kB and 4 kB on 4 vCPU
// and 16 GB in a public cloud, 100 routes, keep-alive.
func routerTable(encryption string) (at1k, at4k float64) {
	switch encryption {
	case "edge":
		return 7467, 7678
	case "passthrough":
		return 25789, 17876
	case "reencrypt":
		return 7611, 7395
	}
	return 15435, 11947
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
	mostThreads        = 64
	filesBesides       = 10 // beside connections, listeners and threads
	filesPerThread     = 3
	filesPerConnection = 2
)

// HAProxyFiles is how many open files HAProxy wants for maxconn connections
// with so many threads and listeners: two for each connection, one for each
// listener, three for each thread and ten more, as HAProxy 2.6 asks for.
func HAProxyFiles(maxconn, threads, listeners int64) int64 {
	return filesPerConnection*maxconn + listeners + filesPerThread*threads + filesBesides
}

// TuneRouter reckons HAProxy routers (R1 to R11).
func TuneRouter(p Router) (*Answer, error) {
	p.Platform = p.Platform.or(OpenShift, "the documents' platform")
	p.Encryption = p.Encryption.or("none", "no encryption")
	p.Page = p.Page.or(1000, "R2's smallest page")
	p.Use = p.Use.or(0.7, "this program's own allowance for bursts and for a router that is down")
	p.Link = p.Link.or(1e9, "R3: 1 Gbit/s")
	if err := fit(
		within("rate", p.Rate, 1, 100_000_000), within("routes", p.Routes, 1, 1_000_000), within("connections", p.Connections, 1, 1_000_000_000),
		within("measured", p.Measured, 1, 100_000_000), within("use", p.Use, 0.01, 1), within("nofile", p.NoFile, 64, 1_000_000_000), within("threads", p.Threads, 1, mostThreads),
		within("static", p.Static, 1, 1_000_000), within("dynamic", p.Dynamic, 1, 1_000_000), checkWord("domain", p.Domain.Value), checkCPUs(p.CPUs.Value),
	); err != nil {
		return nil, err
	}
	if p.Page.Value < 1 || p.Page.Value > 1<<30 {
		return nil, badParam("page", "for example 1k", "%s is no page", p.Page.Value)
	}
	if p.Header.Value > 128<<20 {
		return nil, badParam("header", "for example 64Ki", "%s: HAProxy's buffer must be below 256 MB", p.Header.Value)
	}
	a := newAnswer("router", "HAProxy routers")
	input(a, "platform", p.Platform, "")
	r := routerFields{threads: p.Threads.or(openShiftThreads, "OpenShift's").Value}
	if p.Platform.Value != OpenShift {
		r.threads = p.Threads.or(1, "as the document's router").Value
	}
	r.replicas = 1
	a.capacity(p, &r)
	a.applications(p, &r)
	a.buffers(p, &r)
	a.connections(p, &r)
	a.pinning(p, &r)
	a.routerFiles(p, r)
	a.cite("R8")
	a.find(Finding{Grade: Advice, What: "processors of a router", Wanted: "few and fast", Cost: "many slow cores are slower than few fast ones (R8)"})
	return a, nil
}

// routerFields are the settings that are written.
type routerFields struct {
	threads, replicas, shards int64
	maxconn                   int64 // 0 leaves it alone
	buffer, rewrite           int64 // 0 leaves them alone
	cpus                      string
}

// capacity is R1 to R4 and R6: how many routers a rate needs.
func (a *Answer) capacity(p Router, r *routerFields) {
	input(a, "encryption", p.Encryption, "")
	input(a, "page", p.Page, "B")
	input(a, "link", p.Link, "bit/s")
	fills := float64(p.Link.Value) / 8 / float64(p.Page.Value)
	a.step("requests/s that fill the link = speed / 8 / page", fmt.Sprintf("%s / 8 / %d = %s", trim(float64(p.Link.Value)), p.Page.Value, grouped(int64(math.Round(fills)))), "R3")
	a.result("requestsFillingLink", int64(math.Round(fills)), "requests/s", "without headers, answers only")
	var one float64
	switch {
	case p.Measured.Ok():
		one = float64(p.Measured.Value)
		input(a, "measured", p.Measured, "requests/s")
	default:
		at1k, at4k := routerTable(p.Encryption.Value)
		page := float64(p.Page.Value)
		share := min(max((page-1000)/3000, 0), 1)
		one = at1k + (at4k-at1k)*share
		a.step("one router by the document's table, between 1 kB and 4 kB in proportion", fmt.Sprintf("%s, %s: %.0f requests/s", p.Encryption.Value, p.Page.Value, one), "R2")
		if p.Metal.Value {
			input(a, "metal", p.Metal, "")
			a.step("bare metal is about twice as fast", fmt.Sprintf("2 x %.0f = %.0f", one, 2*one), "R4")
			one *= 2
		}
		if page > 4096 {
			a.warn("the table ends at pages of 4 kB: larger ones are slower")
		}
		a.cite("R1", "R3")
		a.find(Finding{Grade: Advice, What: "a router at pages of 8 kB", Now: "R3 says that it fills 1 Gbit/s, 15,259 requests/s", Wanted: "R2 has 11,947 at 4 kB already", Cost: "the two disagree", Remedy: "measure your router (--measured)"})
	}
	bound := "HAProxy"
	if fills < one {
		one, bound = fills, "the link"
	}
	a.result("requestsPerRouter", int64(math.Round(one)), "requests/s", "bound by "+bound)
	if !p.Rate.Ok() {
		return
	}
	input(a, "rate", p.Rate, "requests/s")
	input(a, "use", p.Use, "")
	need := int64(math.Ceil(float64(p.Rate.Value)/(one*p.Use.Value) - 1e-9))
	r.replicas = max(need, 1)
	a.step("routers = requests/s / (one router's x share in use), rounded up", fmt.Sprintf("%s / (%.0f x %s) = %d", grouped(p.Rate.Value), one, trim(p.Use.Value), need), "R2", "R6")
	a.result("routers", need, "", "")
}

// applications is R5, and the tested number of routes.
func (a *Answer) applications(p Router, r *routerFields) {
	for _, x := range []struct {
		in   In[int64]
		name string
		of   string
		few  int64
		many int64
	}{{p.Static, "static", "static files or caching", 5, 10}, {p.Dynamic, "dynamic", "dynamic content", 100, 1000}} {
		if !x.in.Ok() {
			continue
		}
		input(a, x.name, x.in, "applications")
		least, most := ceilDiv(x.in.Value, x.many), ceilDiv(x.in.Value, x.few)
		a.step("routers = applications / those of one router", fmt.Sprintf("%s of %s: %s / %d to %s / %d = %d to %d", grouped(x.in.Value), x.of, grouped(x.in.Value), x.many, grouped(x.in.Value), x.few, least, most), "R5")
		a.result("routersFor"+strings.ToUpper(x.name[:1])+x.name[1:], fmt.Sprintf("%d to %d", least, most), "", "a guide: "+x.of)
	}
	if !p.Routes.Ok() {
		return
	}
	input(a, "routes", p.Routes, "")
	a.cite("R6", "openshift-500")
	r.shards = ceilDiv(p.Routes.Value, routesPerRouter)
	a.step("shards = routes / 2000 of one router, rounded up", fmt.Sprintf("%s / %d = %d", grouped(p.Routes.Value), routesPerRouter, r.shards), "openshift-500", "R6")
	a.result("shards", r.shards, "", "each router of a shard serves all routes of the shard")
	if r.shards > 1 && !p.Domain.Ok() {
		a.warn("shards need a domain of their own: --domain apps.example.com writes them")
	}
}

// buffers is R11: the header that fits into tune.bufsize.
func (a *Answer) buffers(p Router, r *routerFields) {
	usual, rewrite := int64(haproxyBuffer), int64(haproxyRewrite)
	if p.Platform.Value != HAProxyAlone {
		usual, rewrite = openShiftBuffer, openShiftRewrite
	}
	r.rewrite = rewrite
	a.cite("haproxy")
	if !p.Header.Ok() {
		a.result("largestHeader", usual-rewrite, "B", fmt.Sprintf("with the default buffer of %d less %d for rewriting", usual, rewrite))
		return
	}
	input(a, "header", p.Header, "B")
	need := roundUp(int64(p.Header.Value)+rewrite, 1024)
	a.step("tune.bufsize >= header + tune.maxrewrite, in whole KiB", fmt.Sprintf("%d + %d -> %d", p.Header.Value, rewrite, need), "R11", "haproxy")
	use := max(need, usual)
	a.result("bufsize", use, "B", fmt.Sprintf("%d by default", usual))
	if need > usual {
		r.buffer = use
		a.find(Finding{Change, "largest header", fmt.Sprintf("%d B by default", usual-rewrite), fmt.Sprintf("%d B", p.Header.Value), "requests with a larger one are refused (400), answers too (502)", fmt.Sprintf("a buffer of %d bytes: memory of busy connections grows in proportion, %.1f times", use, float64(use)/float64(usual))})
	} else {
		a.find(Finding{Grade: OK, What: "largest header", Now: fmt.Sprintf("%d B by default", usual-rewrite), Wanted: fmt.Sprintf("%d B", p.Header.Value)})
	}
	if p.Platform.Value == OpenShift {
		a.cite("openshift-ingress")
	}
}

// connections is R7, with what each connection costs of files and memory.
func (a *Answer) connections(p Router, r *routerFields) {
	usual := int64(openShiftConns)
	switch p.Platform.Value {
	case OpenShift3:
		usual = openShift3Conns
	case HAProxyAlone:
		usual = 0
	}
	a.cite("R7")
	if p.Platform.Value == OpenShift {
		a.cite("openshift-ingress")
		a.correct("R7", "edit the environment variable ROUTER_MAX_CONNECTIONS of the router's deployment", "on OpenShift 4 it is spec.tuningOptions.maxConnections of the IngressController", "the ingress operator takes the edit of the deployment back")
	}
	conns := usual
	if p.Connections.Ok() {
		input(a, "connections", p.Connections, "")
		each := ceilDiv(p.Connections.Value, r.replicas)
		conns = roundUp(int64(math.Ceil(float64(each)/p.Use.Value)), 1000)
		a.step("maxconn = clients / routers / share in use, in whole thousands", fmt.Sprintf("%s / %d / %s -> %d", grouped(p.Connections.Value), r.replicas, trim(p.Use.Value), conns), "R7")
		if p.Platform.Value == OpenShift {
			conns = max(conns, leastConns)
			if conns > mostConns {
				a.find(Finding{Cannot, "maxConnections", grouped(conns), fmt.Sprintf("%d to %d", leastConns, mostConns), "the IngressController is refused", "more routers"})
			}
		}
		if conns > usual {
			r.maxconn = conns
			a.find(Finding{Change, "maxconn", orNone(usual), grouped(conns), "clients beyond it wait in the kernel's queue", ""})
		} else {
			a.find(Finding{Grade: OK, What: "maxconn", Now: orNone(usual), Wanted: grouped(conns)})
			conns = usual
		}
	}
	if conns == 0 {
		return
	}
	a.result("maxconn", conns, "", "")
	const listeners = 2 // HTTP and HTTPS
	files := HAProxyFiles(conns, r.threads, listeners)
	a.step("open files = 2 x maxconn + 3 x threads + listeners + 10", fmt.Sprintf("2 x %d + 3 x %d + %d + 10 = %d", conns, r.threads, listeners, files), "haproxy")
	a.result("openFiles", files, "", "that HAProxy asks for when it starts; health checks of servers come on top")
	if p.NoFile.Ok() {
		input(a, "nofile", p.NoFile, "")
		most := (p.NoFile.Value - HAProxyFiles(0, r.threads, listeners)) / filesPerConnection
		a.result("maxconnForNofile", max(most, 0), "", "the most that this many open files allow")
		if files > p.NoFile.Value {
			a.find(Finding{Cannot, "open files", grouped(p.NoFile.Value), grouped(files), "HAProxy refuses to start, or lowers maxconn by itself", fmt.Sprintf("maxconn %d at most, or a higher limit (ulimit -Hn)", max(most, 0))})
		} else {
			a.find(Finding{Grade: OK, What: "open files", Now: grouped(p.NoFile.Value), Wanted: grouped(files)})
		}
	}
	buffer := r.buffer
	if buffer == 0 {
		buffer = haproxyBuffer
		if p.Platform.Value != HAProxyAlone {
			buffer = openShiftBuffer
		}
	}
	memory := conns * 2 * buffer
	a.step("memory for buffers <= maxconn x 2 x tune.bufsize", fmt.Sprintf("%d x 2 x %d = %s", conns, buffer, Bytes(memory)), "R11", "haproxy")
	a.result("bufferMemory", memory, "B", "when every connection has both buffers in use; idle ones have none")
	if p.Memory.Ok() {
		input(a, "memory", p.Memory, "B")
		if memory > int64(p.Memory.Value) {
			a.find(Finding{Change, "memory for buffers", Bytes(memory).String(), "at most " + p.Memory.Value.String(), "a router that is killed for its memory drops all of its connections", "fewer connections, a smaller buffer, or more memory"})
		} else {
			a.find(Finding{Grade: OK, What: "memory for buffers", Now: Bytes(memory).String(), Wanted: "at most " + p.Memory.Value.String()})
		}
	}
}

func orNone(n int64) string {
	if n == 0 {
		return "not set"
	}
	return grouped(n) + " by default"
}

// pinning is R9 and R10.
func (a *Answer) pinning(p Router, r *routerFields) {
	a.cite("R9", "R10", "haproxy")
	a.correct("R10", "cpu-map takes a process ID and a CPU: cpu-map 1 0", "the first number is HAProxy's own, counted from 1, not a PID; with threads it is cpu-map auto:1/1-N and as many CPUs", "with threads, all of them share the one CPU")
	cpus := p.CPUs
	if !cpus.Ok() && p.Facts != nil {
		cpus = a.placeByNUMA(p, r)
	}
	if !cpus.Ok() {
		a.warn("pinning pays where nothing else runs on those CPUs: on bare metal irqbalance minds NUMA nodes, in a public cloud they are not shown (R9)")
		return
	}
	input(a, "cpus", cpus, "")
	list, err := cpuList(cpus.Value)
	if err != nil || len(list) == 0 {
		return
	}
	r.cpus = cpus.Value
	if int64(len(list)) != r.threads {
		a.warn("%d CPUs for %d threads: one of each is what cpu-map auto makes", len(list), r.threads)
	}
}

// placeByNUMA takes CPUs of the NIC's NUMA node: the first for its interrupts,
// the next for HAProxy.
func (a *Answer) placeByNUMA(p Router, r *routerFields) (in In[string]) {
	nic, cpus := nicCPUs(p.Facts)
	if nic == nil || int64(len(cpus)) < r.threads+1 {
		a.warn("no NUMA node of %s has CPUs for the interrupts and for %d threads: nothing is pinned", p.Facts.From, r.threads)
		return in
	}
	a.result("interruptCPU", int64(cpus[0]), "", "for the interrupts of "+nic.Name)
	for _, irq := range p.Facts.Interrupts {
		if irq.Interface == nic.Name {
			a.command(fmt.Sprintf("echo %d > /proc/irq/%s/smp_affinity_list", cpus[0], irq.Number), "an interrupt of "+nic.Name)
		}
	}
	a.warn("irqbalance moves interrupts back: stop it, or name them in its --banirq")
	return Given(compactCPUs(cpus[1:1+r.threads]), fmt.Sprintf("NUMA node %d, which %s is at", nic.NUMANode, nic.Name))
}

// nicCPUs is the fastest physical interface whose NUMA node is known, with the
// CPUs of that node. A host of one node needs no interface to name it.
func nicCPUs(f *HostFacts) (*HostInterface, []int) {
	var best *HostInterface
	for i := range f.Interfaces {
		n := &f.Interfaces[i]
		if n.Physical && n.Up && (best == nil || n.Speed > best.Speed) {
			best = n
		}
	}
	if best == nil {
		return nil, nil
	}
	node := best.NUMANode
	if node < 0 && len(f.NUMA) == 1 {
		for only := range f.NUMA {
			node = only
		}
	}
	found := *best
	found.NUMANode = node
	cpus, err := cpuList(f.NUMA[node])
	if err != nil {
		return nil, nil
	}
	return &found, cpus
}

// cpuList reads CPUs as the kernel lists them, such as 0-3,8.
func cpuList(text string) ([]int, error) {
	var list []int
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(last)
		}
		if err != nil || a < 0 || b < a || b > 65535 {
			return nil, fmt.Errorf("%q is no list of CPUs: want one such as 0-3,8", text)
		}
		for c := a; c <= b; c++ {
			list = append(list, c)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

func checkCPUs(text string) error {
	if _, err := cpuList(text); err != nil {
		return badParam("cpus", "", "%v", err)
	}
	return nil
}

// compactCPUs writes CPUs as the kernel does.
func compactCPUs(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(list[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

type ingressController struct {
	APIVersion string      `yaml:"apiVersion"`
	Kind       string      `yaml:"kind"`
	Metadata   meta        `yaml:"metadata"`
	Spec       ingressSpec `yaml:"spec"`
}

type ingressSpec struct {
	Domain   string         `yaml:"domain,omitempty"`
	Replicas int64          `yaml:"replicas,omitempty"`
	Routes   *labelSelector `yaml:"routeSelector,omitempty"`
	Tuning   ingressTuning  `yaml:"tuningOptions,omitempty"`
}

type ingressTuning struct {
	MaxConnections int64 `yaml:"maxConnections,omitempty"`
	Threads        int64 `yaml:"threadCount,omitempty"`
	Buffer         int64 `yaml:"headerBufferBytes,omitempty"`
	Rewrite        int64 `yaml:"headerBufferMaxRewriteBytes,omitempty"`
}

func (a *Answer) routerFiles(p Router, r routerFields) {
	switch p.Platform.Value {
	case OpenShift:
		tuning := ingressTuning{MaxConnections: r.maxconn}
		if p.Threads.Ok() {
			tuning.Threads = r.threads
		}
		if r.buffer > 0 {
			tuning.Buffer, tuning.Rewrite = r.buffer, r.rewrite
		}
		spec := ingressSpec{Tuning: tuning}
		if p.Rate.Ok() {
			spec.Replicas = max(r.replicas, 2)
		}
		a.cite("openshift-ingress")
		object := ingressController{"operator.openshift.io/v1", "IngressController", meta{Name: "default", Namespace: "openshift-ingress-operator"}, spec}
		if spec != (ingressSpec{}) {
			a.file("ingresscontroller-default.yaml", manifest(object, "The default router: what differs from its defaults."), "the ingress operator of OpenShift: oc apply --server-side -f")
		}
		if r.shards > 1 && p.Domain.Ok() {
			for i := range r.shards - 1 {
				name := fmt.Sprintf("shard-%d", i+1)
				shard := object
				shard.Metadata.Name = name
				shard.Spec.Domain = name + "." + p.Domain.Value
				shard.Spec.Routes = &labelSelector{MatchLabels: map[string]string{"router": name}}
				a.file("ingresscontroller-"+name+".yaml", manifest(shard, "Serves the routes with the label router="+name+"."), "the ingress operator of OpenShift: oc apply -f")
			}
			a.warn("the default router serves the routes of the shards as well, unless its routeSelector leaves them out: matchExpressions with key router, operator DoesNotExist")
		}
	case OpenShift3:
		var env []string
		if r.maxconn > 0 {
			env = append(env, fmt.Sprintf("ROUTER_MAX_CONNECTIONS=%d", r.maxconn))
		}
		if r.buffer > 0 {
			env = append(env, fmt.Sprintf("ROUTER_BUF_SIZE=%d", r.buffer))
		}
		if len(env) > 0 {
			a.command("oc set env dc/router -n default "+strings.Join(env, " "), "the router starts anew")
		}
		fallthrough
	default:
		a.file("haproxy-global.cfg", haproxyGlobal(r), "haproxy: in front of its own configuration, haproxy -c -f haproxy-global.cfg -f REST")
	}
}

// haproxyGlobal is the global section with what was reckoned.
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
		if r.threads == 1 {
			fmt.Fprintf(&b, "    cpu-map 1/1 %s\n", strings.ReplaceAll(r.cpus, ",", " "))
		} else {
			fmt.Fprintf(&b, "    cpu-map auto:1/1-%d %s\n", r.threads, strings.ReplaceAll(r.cpus, ",", " "))
		}
	}
	return b.String()
}
