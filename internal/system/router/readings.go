package router

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"strconv"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
)

// gauges hold what the last readings counted: the next ones tell the difference.
type gauges struct {
	at       record.Micros
	threads  map[int]proc.Thread
	busy     map[int]float64 // seconds that each processor worked
	tasks    map[int]float64 // of these, those not for interrupts
	used     [2]float64      // CPU seconds of the servers, and of the generator
	wanted   [2]float64      // likewise, with those for which they waited for a processor
	counts   load.Counts
	asked    int     // how often
	received float64 // bytes, by the link
	totals   haproxy.Totals
}

// read reads what the parts of the router use now, and what it tells of itself.
func (s *step) read() []record.Reading {
	now := s.Rec.Clock.Now()
	var list []record.Reading
	add := func(source string, values map[string]float64) {
		list = append(list, record.Reading{Source: source, Values: values})
	}
	used, pids, whole := proc.Usage{}, []int(nil), true
	for _, p := range s.proxies() {
		u, err := p.Usage()
		used, pids, whole = used.Plus(u), append(pids, p.PIDs()...), whole && err == nil
	}
	if whole {
		list = append(list, used.Sample(sourceRouter))
	}
	next := gauges{at: now, threads: make(map[int]proc.Thread), busy: make(map[int]float64), tasks: make(map[int]float64), counts: s.Counts(), asked: s.gauges.asked + 1, totals: s.gauges.totals}
	figures := make(map[string]float64)
	seconds := (now - s.gauges.at).Seconds()
	known := s.gauges.at > 0 && seconds > 0.1
	busiest, ran, waited := 0.0, 0.0, 0.0 // the last two since HAProxy was started
	for _, pid := range pids {
		for n, t := range proc.Threads(pid) {
			next.threads[t.ID] = t
			add(sourceRouter+"/thread-"+strconv.Itoa(n+1), map[string]float64{"cpuSeconds": t.Ran, "waitSeconds": t.Waited})
			ran, waited = ran+t.Ran, waited+t.Waited
			if was, ok := s.gauges.threads[t.ID]; ok && known {
				busiest = max(busiest, min((t.Ran+t.Waited-was.Ran-was.Waited)/seconds, 1))
			}
		}
	}
	all := proc.Usage{}
	for _, x := range s.servers {
		if u, err := x.process.Usage(); err == nil {
			all = all.Plus(u)
		}
		next.wanted[0] += proc.Wanted(x.process.PID())
	}
	list = append(list, all.Sample(sourceServers))
	next.used[0] = all.CPUSeconds
	if own, err := proc.Read(os.Getpid()); err == nil {
		next.used[1] = own.CPUSeconds
	}
	list = append(list, telemetry.Reading())
	next.wanted[1] = proc.Wanted(os.Getpid())
	for n, c := range telemetry.CPUs() {
		next.tasks[int(n)] = c.User + c.Nice + c.System + c.Steal
		next.busy[int(n)] = next.tasks[int(n)] + c.IRQ + c.SoftIRQ
	}
	list = append(list, next.processors(s.deployment, ran, waited)...)
	if s.link != nil {
		next.received, _ = s.link.received() // without it, it has carried nothing
	}
	s.figures(figures, &next)
	if known {
		figures["busiestThread"] = busiest
		if s.link != nil {
			figures["linkBits"] = 8 * (next.received - s.gauges.received) / seconds
			figures["linkShare"] = figures["linkBits"] / s.rate
		}
		busy, demand := next.demands(s.gauges, s.deployment, seconds)
		figures["serverBusy"], figures["serverShare"] = busy, figures["serverTimeShare"]
		if busy >= 0.9 {
			figures["serverShare"] = max(figures["serverTimeShare"], min(busy, 1))
		}
		generator := next.counts.Values()
		generator["demand"] = demand
		add(sourceLoad, generator)
	}
	if s.idle > 0 {
		figures["idleHeld"] = float64(s.idlers.held.Load())
	}
	if s.churned > 0 {
		figures["routesChurned"], figures["churnRefused"] = float64(s.changes.added.Load()), float64(s.changes.refused.Load())
	}
	if len(figures) > 0 {
		add(sourceFigures, figures)
	}
	if known || s.gauges.at == 0 {
		s.gauges = next
	}
	return list
}

// processors tells who used the processors of each part, and how long it waited for them.
func (g *gauges) processors(s *deployment, ran, waited float64) (list []record.Reading) {
	add := func(part string, cpus []int, own, wanted float64) {
		if len(cpus) == 0 {
			cpus = s.allCPUs
		}
		busy := 0.0
		for _, c := range cpus {
			busy += g.tasks[c]
		}
		list = append(list, record.Reading{Source: usage.SourceProcessors + part, Values: map[string]float64{
			"cpus": float64(len(cpus)), "busySeconds": busy, "ownSeconds": own, "waitSeconds": max(wanted-own, 0),
		}})
	}
	p := s.placement
	switch {
	case len(p.router) == 0 && len(p.servers) == 0:
		add("all parts", nil, ran+g.used[0]+g.used[1], ran+waited+g.wanted[0]+g.wanted[1])
		return list
	case shared(p):
		add("the servers and the generator", p.servers, g.used[0]+g.used[1], g.wanted[0]+g.wanted[1])
	default:
		add("the servers", p.servers, g.used[0], g.wanted[0])
		add("the generator", p.generator, g.used[1], g.wanted[1])
	}
	add("HAProxy", p.router, ran, ran+waited)
	return list
}

// demands tells how much of their processors servers and generator use; shared ones go to the larger user.
func (g *gauges) demands(was gauges, s *deployment, seconds float64) (servers, generator float64) {
	usedServers, used := g.used[0]-was.used[0], g.used[1]-was.used[1]
	wantedServers, wanted := g.wanted[0]-was.wanted[0], g.wanted[1]-was.wanted[1]
	both := shared(s.placement)
	if both {
		wantedServers, wanted = wantedServers+used, wanted+usedServers
	}
	if usedServers > used || !both {
		servers = g.share(was, wantedServers, s.placement.servers, s.allCPUs, seconds)
	}
	if used >= usedServers || !both {
		generator = g.share(was, wanted, s.placement.generator, s.allCPUs, seconds)
	}
	return servers, generator
}

// shared reports whether the servers and the generator share processors.
func shared(p placement) bool {
	return len(p.generator) == 0 || len(p.servers) > 0 && p.generator[0] == p.servers[0]
}

const (
	manyRoutes = 300 // from which on HAProxy works for milliseconds to tell the figures of all parts
	seldom     = 5   // readings, then, of which one asks for them
)

func (s *step) figures(figures map[string]float64, next *gauges) {
	address := s.router.Plain
	if s.router.Termination.Secure() {
		address = s.router.Secure
	}
	// Before HAProxy is asked, which runs then and takes what waits.
	_ = s.within(func() error {
		waiting, most, err := accepting(address)
		if err == nil {
			figures["backlog"], figures["backlogMost"] = float64(waiting), float64(most)
		}
		return err
	})
	info, err := s.proxy.Stats().Info()
	if err != nil {
		return // it is being reloaded, or has ended: the requests tell
	}
	own := counted()
	own["Idle_pct"], own["SslFrontendSessionReuse_pct"] = "idlePercent", "tlsReusePercent"
	for name, key := range own {
		if x, ok := info.Values[name]; ok {
			figures[key] = x
		}
	}
	if len(s.router.Routes) < manyRoutes || next.asked%seldom == 1 {
		if t, err := s.proxy.Stats().Totals(); err == nil {
			next.totals = t
		}
	}
	t := next.totals
	maps.Copy(figures, map[string]float64{
		"queue": t.Queue, "retries": t.Retries, "moved": t.Moved, "denied": t.Denied, "badRequests": t.Refused, "serverErrors": t.Unserved, "serversDown": t.Down,
		"queueSeconds": t.QueueTime, "connectSeconds": t.ConnectTime, "serverSeconds": t.ServerTime, "allSeconds": t.AllTime,
	})
	conns := figures["currConns"]
	if s.router.Termination.Secure() && !s.passes() {
		conns /= 2 // a connection that is decrypted counts twice
	}
	if conns >= 1 {
		figures["queueShare"] = min(t.Queue/conns, 1)
	}
	// HAProxy tells times in whole milliseconds.
	const told = 0.002
	if t.AllTime >= told {
		figures["serverTimeShare"] = t.ServerTime / t.AllTime
	}
	for _, p := range s.further { // what is above is the first one's: all have the same servers
		if info, err := p.proxy.Stats().Info(); err == nil {
			for name, key := range counted() {
				figures[key] += info.Values[name]
			}
		}
	}
}

// counted returns the figures that several HAProxies have together, by HAProxy's names.
func counted() map[string]string {
	return map[string]string{
		"CurrConns": "currConns", "Maxconn": "maxconn", "SessRate": "sessRate", "ConnRate": "connRate", "SslRate": "tlsRate",
		"CumConns": "conns", "CumReq": "requests", "PoolUsed_MB": "poolMB", "MaxconnReached": "maxconnReached",
	}
}

// share tells how much of some processors, or all, was used since other gauges, by own if known.
func (g *gauges) share(was gauges, own float64, cpus, all []int, seconds float64) float64 {
	if len(cpus) == 0 {
		cpus = all
	}
	used := 0.0
	for _, c := range cpus {
		used += g.busy[c] - was.busy[c]
	}
	if own > 0 {
		used = min(used, own)
	}
	return min(used/seconds/float64(max(len(cpus), 1)), 1)
}

// accepting counts connections of a listening socket that nobody has accepted, and its limit. It asks for
// listening sockets alone: there may be tens of thousands of others.
func accepting(address string) (waiting, most int, err error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return 0, 0, fmt.Errorf("read a listener's queue: %w", err)
	}
	// struct inet_diag_req_v2, whose addresses are not looked at in a list.
	const listening = 1 << 10
	var ask [56]byte
	ask[0], ask[1] = unix.AF_INET, unix.IPPROTO_TCP
	if at.Addr().Is6() {
		ask[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(ask[4:], listening)
	binary.BigEndian.PutUint16(ask[8:], at.Port())
	request := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	request.AddRawData(ask[:])
	answers, err := request.Execute(unix.NETLINK_INET_DIAG, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("read a listener's queue: %w", err)
	}
	found := false
	for _, a := range answers {
		// struct inet_diag_msg, the address after four bytes and two ports.
		if len(a) < 64 || binary.BigEndian.Uint16(a[4:]) != at.Port() || !bytes.HasPrefix(a[8:24], at.Addr().AsSlice()) {
			continue
		}
		found = true
		waiting += int(binary.NativeEndian.Uint32(a[56:]))
		most += int(binary.NativeEndian.Uint32(a[60:]))
	}
	if !found {
		return 0, 0, fmt.Errorf("read a listener's queue: nobody listens on %s", address)
	}
	return waiting, most, nil
}
