package router

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/text/dist"
	"plimsoll.dev/plimsoll/internal/text/size"
)

type settings struct {
	router      haproxy.Config // but for addresses and files
	binary      haproxy.Binary
	certificate []byte // that was given, nil for one of ours
	byNginx     bool   // serves the pages
	template    string // the file of the template, "" for ours
	placement   placement
	allCPUs     []int // that this program may use

	terminations []haproxy.Termination // of the routes, in turn
	each         bool                  // has a certificate of its own
	hosts        []load.Host           // that requests go to

	pageSize    int
	answerHead  int // bytes of header of an answer, besides the usual ones
	requestHead int // likewise of a request
	method      string
	body        int
	close       bool
	ipv6        bool // between clients and the router
	retry       bool // as browsers do
	connections int  // at most, of an open loop
	random      bool
	work        time.Duration
	streams     int // requests at once on each connection of HTTP/2
	recorded    int // requests of a step, of the slowest and of those that failed

	shards  int           // HAProxies that share the routes
	servers int           // of each route
	nginx   backend.Nginx // that serves the pages, zero for servers of ours
	service string
	workers int
	rate    float64 // bits a second of the link to the router, 0 for none

	event     event
	churned   int  // routes added and removed each second
	reloads   bool // it is by reloads
	idle      int  // connections beside the load
	idleAfter string
	clients   int // on the axes idle and routes
}

const (
	afterHalf = "half-header"          // what an idle connection has sent
	domain    = "router.plimsoll.test" // of the routes' hosts where no names are given
)

type limits struct {
	handles int64 // open files of a process
	cpus    []int // that this process may use
}

func readLimits() (limits, error) {
	var l limits
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return l, fmt.Errorf("read the limit of open files: %w", err)
	}
	l.handles = int64(min(files.Max, 1<<40))
	var err error
	l.cpus, err = proc.Processors(0)
	return l, err
}

const (
	openShiftMaxconn = 50_000 // of OpenShift's router
	ownHandles       = 200    // that this program has open besides connections
	mostWeight       = 256    // of a service, as of OpenShift's
)

// settingsOf checks parameters against what this machine allows. It reads files, and starts nothing.
func settingsOf(p workload.Params, l limits) (s settings, err error) {
	s = settings{
		router: haproxy.Config{
			ServerMaxconn: int(p.Int("serverMaxconn")), Maxconn: int(p.Int("maxconn")),
			Threads: int(p.Int("threads")), Bufsize: int(p.Int("bufsize")), Maxrewrite: int(p.Int("maxrewrite")), TLSVersion: "TLSv" + p.Get("tlsVersion"),
			Resumption: p.Flag("resumption"), Cookies: p.Flag("cookies"), ServerHTTP2: p.Get("serverHTTP") == "2", Exact: p.Get("lookup") == "exact", HTTP2: p.Get("http") == "2",
			OfferHTTP2: p.Get("serverHTTP") == "auto" && p.Get("backend") == "ours", Heavy: p.Get("openshift") == "4.11", Redirects: p.Get("insecure") == "redirect",
		},
		pageSize: int(p.Bytes("pageSize")), answerHead: int(p.Bytes("answerHeader")), requestHead: int(p.Bytes("requestHeader")), body: int(p.Bytes("bodySize")),
		method: p.Get("method"), close: !p.Flag("keepAlive"), ipv6: p.Get("ip") == "6", retry: p.Get("retry") == "browser", connections: int(p.Int("connections")), random: p.Get("arrivals") == "random",
		work: p.Duration("generatorWork"), recorded: int(p.Int("recordRequests")), churned: int(p.Int("churn")), idle: int(p.Int("idle")), workers: int(p.Int("workers")),
		reloads: p.Get("churnBy") == "reload", idleAfter: p.Get("idleAfter"), clients: int(p.Int("clients")), streams: int(p.Int("streams")), shards: int(p.Int("shards")),
	}
	if text := p.Get("link"); text != "" {
		r, rateErr := param.ParseRate(text)
		switch {
		case rateErr != nil:
			return s, system.ParamMistake("link", "", "%w", rateErr)
		case r < 1e6 || r > 30e9:
			return s, system.ParamMistake("link", "", "a link of 1 Mbit/s to 30 Gbit/s can be made, not one of %s", r)
		}
		s.rate = float64(r)
	}
	if d, parseErr := dist.Parse(p.Get("service")); parseErr == nil && !d.IsZero() {
		s.service = p.Get("service")
	}
	for weight := range strings.SplitSeq(p.Get("weights"), "+") {
		n, _ := strconv.Atoi(weight) // digits, by the parameter's pattern
		if n < 1 || n > mostWeight {
			return s, system.ParamMistake("weights", "for example 3+1", "the weight of a service is 1 to %d, not %s", mostWeight, weight)
		}
		s.router.Services = append(s.router.Services, n)
	}
	for one := range strings.SplitSeq(p.Get("termination"), "+") {
		s.terminations = append(s.terminations, haproxy.Termination(one))
	}
	s.router.Termination = s.terminations[0]
	s.servers = int(p.Int("servers")) * len(s.router.Services)
	if s.router.HTTP2 && !s.router.Termination.Secure() {
		return s, system.ParamMistake("http", "termination=edge, passthrough or reencrypt", "clients speak HTTP/2 by TLS alone, and the router has no termination")
	}
	if s.router.HTTP2 && s.passes() {
		s.router.ServerHTTP2 = true // the servers speak with the clients
	}
	s.allCPUs = l.cpus
	s.event = event(p.Get("event"))
	if all := []string{string(noEvent), string(evReload), string(evKill), string(evRoute), string(evRouteAPI), string(evChange)}; !slices.Contains(all, string(s.event)) {
		return s, system.ParamMistake("event", "", "%q is not one of %s", s.event, strings.Join(all, ", "))
	}
	hosts, err := hostsOf(p.Get("hosts"), int(p.Int("routes")))
	if err != nil {
		return s, err
	}
	s.each = p.Get("certificates") == "each"
	s.lead(hosts)
	if s.event == evRoute || s.event == evRouteAPI {
		s.router.Spares = 1
	}
	if s.churned > 0 && !s.reloads {
		s.router.Spares++ // the last one
	}
	if err := s.fit(); err != nil {
		return s, err
	}
	if err := s.place(p.Get("pinning"), l.cpus); err != nil {
		return s, err
	}
	if s.ipv6 {
		l, err := net.Listen("tcp", net.JoinHostPort(net.IPv6loopback.String(), "0"))
		if err != nil {
			return s, system.ParamMistake("ip", "ip=4, or switch IPv6 on (sysctl net.ipv6.conf.lo.disable_ipv6=0)", "this machine has no IPv6: %w", err)
		}
		l.Close()
	}
	if file := p.Get("template"); file != "" {
		if s.shards > 1 {
			return s, system.ParamMistake("shards", "leave the template out", "a template is for one HAProxy")
		}
		text, err := size.ReadFile(file)
		if err != nil {
			return s, system.ParamMistake("template", "give the file of an HAProxy configuration as a template", "%w", err)
		}
		s.router.Template, s.template = string(text), file
	}
	if file := p.Get("certificate"); file != "" {
		if s.certificate, err = size.ReadFile(file); err != nil {
			return s, system.ParamMistake("certificate", "give a file with the certificate and its key in PEM", "%w", err)
		}
	}
	return s, s.files(l.handles)
}

// lead makes a route to each host. Requests go to those of the first termination.
func (s *settings) lead(hosts []load.Host) {
	s.hosts, s.router.Routes = nil, nil
	for i, h := range hosts {
		r := haproxy.Route{Host: h.Name, Termination: s.terminations[i%len(s.terminations)]}
		if s.each && (r.Termination == haproxy.Edge || r.Termination == haproxy.Reencrypt) {
			r.Certificate = fmt.Sprintf("route-%d.pem", i)
		}
		s.router.Routes = append(s.router.Routes, r)
		if r.Termination == s.router.Termination {
			s.hosts = append(s.hosts, h)
		}
	}
}

// passes reports whether the TLS of the routes under load passes through.
func (s settings) passes() bool { return s.router.Termination == haproxy.Passthrough }

// fit checks that what parameters say goes together.
func (s settings) fit() error {
	switch {
	case s.streams > 1 && (!s.router.HTTP2 || s.close):
		return system.ParamMistake("streams", "http=2 and keepAlive=true", "only connections of HTTP/2 that are kept take %d requests at once", s.streams)
	case s.shards > len(s.hosts):
		return system.ParamMistake("shards", "more routes, or fewer shards", "%d HAProxies share %d routes under load", s.shards, len(s.hosts))
	case s.churned > 0 && s.reloads && s.event == evRouteAPI:
		return system.ParamMistake("churnBy", "event=route-reload", "a reload takes back the route that the runtime API adds")
	case s.event == evChange && (s.pageSize <= backend.CommonMark || s.method == "HEAD"):
		return system.ParamMistake("event", fmt.Sprintf("method=GET and pageSize=%dB or more", backend.CommonMark+1), "servers are told apart by their pages, and there is none, or too short a one")
	case s.idle > 0 && s.passes() && s.idleAfter == afterHalf:
		return system.ParamMistake("idle", "termination=none, edge or reencrypt, or idleAfter=request", "HAProxy reads no header of what passes through")
	case s.event == evKill && s.servers < 2:
		return system.ParamMistake("event", "servers=2 or more", "each route has one server: without it, nothing can be served")
	}
	return nil
}

// plainPages refuses what an nginx does not serve here.
func (s *settings) plainPages() error {
	if s.service != "" || s.workers > 0 || s.answerHead > 0 || s.router.ServerHTTP2 || s.method != "GET" && s.method != "HEAD" {
		return system.ParamMistake("backend", "backend=ours", "nginx serves pages as they are, by HTTP/1.1: service, workers, answerHeader, serverHTTP=2 and other methods than GET and HEAD are not for it")
	}
	return nil
}

// files checks the open files of router and clients, and fills in the router's connections.
func (s *settings) files(handles int64) error {
	// Listeners, sockets, an allowance, and the checks of servers.
	besides := int64(64)
	if s.servers > 1 {
		besides += int64(s.servers * len(s.router.Routes))
	}
	threads := int64(s.router.Threads)
	most := (handles - host.HAProxyFiles(0, threads, besides)) / 2
	switch {
	case most < 1:
		return system.ParamMistake("routes", "fewer routes, or a higher limit (ulimit -Hn)", "the checks of %d servers want more open files than the %d that a process may have here", s.servers*len(s.router.Routes), handles)
	case s.router.Maxconn == 0:
		s.router.Maxconn = int(min(openShiftMaxconn, most))
	case int64(s.router.Maxconn) > most:
		return system.ParamMistake("maxconn", fmt.Sprintf("at most %d, or a higher limit (ulimit -Hn)", most), "HAProxy wants %d open files for %d connections, and a process may have %d here", host.HAProxyFiles(int64(s.router.Maxconn), threads, besides), s.router.Maxconn, handles)
	}
	if s.router.Bufsize < 1024 || s.router.Maxrewrite >= s.router.Bufsize {
		return system.ParamMistake("bufsize", "", "a buffer of %d bytes, of which %d are kept free for rewriting, holds no request", s.router.Bufsize, s.router.Maxrewrite)
	}
	if err := checkConnections("idle", s.idle, handles); err != nil {
		return err
	}
	if s.connections == 0 {
		s.connections = int(max(min(load.MostConnections, handles-ownHandles-int64(s.idle)), 1))
	}
	return checkConnections("connections", s.connections+s.idle, handles)
}

// checkConnections checks that this program can have so many connections.
func checkConnections(what string, n int, handles int64) error {
	if most := handles - ownHandles; int64(n) > most {
		return system.ParamMistake(what, fmt.Sprintf("at most %d, or a higher limit (ulimit -Hn)", most), "%d connections want more open files than the %d that a process may have here", n, handles)
	}
	return nil
}

const (
	mostRoutes = 20_000
	hostForm   = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
)

func made(n int) []load.Host {
	hosts := make([]load.Host, n)
	for i := range hosts {
		hosts[i] = load.Host{Name: fmt.Sprintf("route-%d.%s", i, domain), Weight: 1}
	}
	return hosts
}

// hostsOf returns the hosts of routes: n of ours, or those of a file, with one name a line and a weight.
func hostsOf(file string, n int) ([]load.Host, error) {
	if file == "" {
		if n < 1 || n > mostRoutes {
			return nil, system.ParamMistake("routes", "", "there must be 1 to %d routes, not %d", mostRoutes, n)
		}
		return made(n), nil
	}
	text, err := size.ReadFile(file)
	if err != nil {
		return nil, system.ParamMistake("hosts", "give a file with one name a line", "%w", err)
	}
	return parseHosts(file, text)
}

func parseHosts(file string, text []byte) ([]load.Host, error) {
	form := regexp.MustCompile(hostForm)
	var hosts []load.Host
	known := make(map[string]int)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		at := fmt.Sprintf("%s:%d", file, n)
		const hint = "a line is a name and, if it is not 1, a weight: www.example.com 2.5"
		h := load.Host{Name: fields[0], Weight: 1}
		if !form.MatchString(h.Name) || len(h.Name) > 253 {
			return nil, system.ParamMistake("hosts", hint, "%s: %q is not the name of a host in lower case with a domain", at, h.Name)
		}
		if was := known[h.Name]; was > 0 {
			return nil, system.ParamMistake("hosts", hint, "%s: %s stands in line %d already", at, h.Name, was)
		}
		if len(fields) > 1 {
			w, err := strconv.ParseFloat(fields[1], 64)
			if err != nil || !(w > 0) || w > 1e9 {
				return nil, system.ParamMistake("hosts", hint, "%s: the weight %q is not a number above 0", at, fields[1])
			}
			h.Weight = w
		}
		if len(fields) > 2 {
			return nil, system.ParamMistake("hosts", hint, "%s: %q follows the weight", at, fields[2])
		}
		known[h.Name] = n
		if hosts = append(hosts, h); len(hosts) > mostRoutes {
			return nil, system.ParamMistake("hosts", hint, "%s has more than %d names", file, mostRoutes)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, system.ParamMistake("hosts", "give a file with one name a line", "read %s: %w", file, err)
	}
	if len(hosts) == 0 {
		return nil, system.ParamMistake("hosts", "give a file with one name a line", "%s has no names", file)
	}
	return hosts, nil
}

// placement says who runs on which processors, none for any.
type placement struct{ router, servers, generator []int }

// place decides who gets which processors, and fills in the router's threads.
func (s *settings) place(pinning string, cpus []int) error {
	want := s.router.Threads
	switch pinning {
	case "none":
	case "auto":
		if len(cpus) < 2 {
			break
		}
		// The router gets the half of them, or one for each of its threads.
		n := max(1, len(cpus)/2)
		if want > 0 {
			n = min(want, len(cpus)-1)
		}
		s.placement.router = cpus[len(cpus)-n:]
		rest := cpus[:len(cpus)-n]
		s.placement.servers, s.placement.generator = rest, rest
		if half := len(rest) / 2; half > 0 {
			s.placement.servers, s.placement.generator = rest[:half], rest[half:]
		}
	default:
		for _, part := range strings.Split(pinning, "+") {
			cpu, err := strconv.Atoi(part)
			if err != nil || !slices.Contains(cpus, cpu) || slices.Contains(s.placement.router, cpu) {
				return system.ParamMistake("pinning", fmt.Sprintf("auto, none, or processors out of %s, such as %d", list(cpus), cpus[0]), "%q is not one of this machine's processors, or stands there twice", part)
			}
			s.placement.router = append(s.placement.router, cpu)
		}
		rest := slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool { return slices.Contains(s.placement.router, cpu) })
		s.placement.servers, s.placement.generator = rest, rest
	}
	if want == 0 {
		s.router.Threads = max(1, len(s.placement.router))
	}
	s.router.CPUs = s.placement.router
	return nil
}

func list(cpus []int) string {
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(cpus), "[]")), "+")
}
