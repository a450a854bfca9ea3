package network

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
)

// gauges hold what the last readings counted: the next ones tell the difference.
type gauges struct {
	at      record.Micros
	softirq []float64 // seconds, by processor
	sent    float64   // bytes that left the link at its busier end
	// wanted is the time that client and server ran or waited to, carriers that of a carrier's threads,
	// or by its negative number of each of its processors.
	wanted   [2]float64
	carriers map[int]float64
	tcp      sending
}

// read reads what client, server and path used and carried, and how much of what they have is in use.
func (s *step) read() []record.Reading {
	next := gauges{at: s.Rec.Clock.Now(), softirq: softirqs()}
	list := []record.Reading{telemetry.Reading()}
	own, err := proc.Read(os.Getpid())
	if err == nil {
		list = append(list, record.Reading{Source: sourceClient, Values: map[string]float64{usedSeconds: own.CPUSeconds}})
	}
	next.wanted[0] = proc.Wanted(os.Getpid())
	server, _ := proc.Read(s.served) // of one that has ended there is nothing
	next.wanted[1] = proc.Wanted(s.served)
	list = append(list, reading(sourceServer, server))
	var carried proc.Usage
	next.carriers = make(map[int]float64)
	for _, c := range s.carriers {
		one, _ := proc.Read(c.pid)
		carried = carried.Plus(one)
		all := 0.0
		for _, t := range proc.Threads(c.pid) {
			next.carriers[t.ID] = t.Ran + t.Waited
			all += t.Ran + t.Waited
		}
		next.carriers[-c.pid] = all / float64(max(c.cpus, 1))
	}
	if len(s.carriers) > 0 {
		list = append(list, reading(sourceCarriers, carried))
	}
	all := own.CPUSeconds + server.CPUSeconds + carried.CPUSeconds + s.accounting.threads()
	if s.accounting.apart {
		for _, x := range next.softirq {
			all += x
		}
	}
	list = append(list, record.Reading{Source: sourceAll, Values: map[string]float64{usedSeconds: all}})
	done := float64(s.Progress().There)
	payload := float64(s.Counts().Received)
	crossed := map[string]float64{payloadBytes: payload, payloadGB: payload / 1e9, payloadGbit: 8 * payload / 1e9, thousands: done / 1000}
	if link, err := s.links[s.client].LinkByName(linkName); err == nil {
		x := link.Attrs().Statistics
		crossed[wireBytes], crossed[packets] = float64(x.RxBytes+x.TxBytes), float64(x.RxPackets+x.TxPackets)
		next.sent = float64(max(x.RxBytes, x.TxBytes))
	}
	crossed[retransmits], crossed[drops] = s.lost()
	list = append(list, record.Reading{Source: sourcePath, Values: crossed})
	next.tcp = s.sending()
	if seconds := (next.at - s.gauges.at).Seconds(); s.gauges.at > 0 && seconds > 0.1 {
		list = append(list, record.Reading{Source: sourceShares, Values: next.shares(s.gauges, s.settings, seconds)})
	}
	if s.gauges.at == 0 || (next.at-s.gauges.at).Seconds() > 0.1 {
		s.gauges = next
	}
	return list
}

// shares tells how much of what there is was in use since other gauges were read, 0 to 1.
func (g *gauges) shares(was gauges, s settings, seconds float64) map[string]float64 {
	values := map[string]float64{
		"client": min((g.wanted[0]-was.wanted[0])/seconds/float64(len(s.clientCPUs)), 1),
		"server": min((g.wanted[1]-was.wanted[1])/seconds/float64(len(s.serverCPUs)), 1),
	}
	for id, at := range g.carriers {
		values["carriers"] = max(values["carriers"], min((at-was.carriers[id])/seconds, 1))
	}
	values["window"], values["loss"] = g.tcp.shares(was.tcp, seconds)
	for n, at := range g.softirq {
		if n < len(was.softirq) {
			values["softirq"] = max(values["softirq"], min((at-was.softirq[n])/seconds, 1))
		}
	}
	if s.linkRate > 0 {
		values["link"] = 8 * (g.sent - was.sent) / seconds / s.linkRate
	}
	return values
}

// softirqs tells for how long each processor has worked in softirqs.
func softirqs() (list []float64) {
	all := telemetry.CPUs()
	for n := range int64(len(all)) {
		list = append(list, all[n].SoftIRQ)
	}
	return list
}

func reading(source string, u proc.Usage) record.Reading {
	return record.Reading{Source: source, Values: map[string]float64{record.ValueCPU: u.CPUSeconds, record.ValueMemory: float64(u.RSSBytes)}}
}

// sending adds up what the server's connections have done, in seconds and segments.
type sending struct{ connections, busy, window, buffer, segments, again float64 }

// sending asks the kernel (TCP_INFO).
func (n *network) sending() (s sending) {
	list, err := n.sockets.SocketDiagTCPInfo(unix.AF_INET)
	if err != nil {
		return s
	}
	for _, c := range list {
		if t := c.TCPInfo; t != nil && c.InetDiagMsg.ID.SourcePort == port && c.InetDiagMsg.State == netlink.TCP_ESTABLISHED {
			s.connections++
			s.busy += float64(t.Busy_time) / 1e6
			s.window += float64(t.Rwnd_limited) / 1e6
			s.buffer += float64(t.Sndbuf_limited) / 1e6
			s.segments += float64(t.Segs_out)
			s.again += float64(t.Total_retrans)
		}
	}
	return s
}

const leastLoss = 0.005 // share of resent segments from which TCP sends less because of loss

// shares tells how much of the time connections waited for the window, or sent less because of loss.
func (s sending) shares(was sending, seconds float64) (window, loss float64) {
	if s.connections == 0 || s.busy <= was.busy {
		return 0, 0
	}
	all := s.connections * seconds
	window = (s.window - was.window) / all
	if s.again-was.again >= leastLoss*(s.segments-was.segments) {
		loss = (s.busy-was.busy)/all - window - (s.buffer-was.buffer)/all
	}
	return max(min(window, 1), 0), max(min(loss, 1), 0)
}

// lost counts TCP segments that were sent again, and packets that interfaces and processors' queues dropped.
func (n *network) lost() (again, dropped float64) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, 0
	}
	for _, m := range []*machine.Machine{n.client, n.server} {
		p, err := fs.Proc(m.PID())
		if err != nil {
			continue
		}
		if s, err := p.Snmp(); err == nil && s.Tcp.RetransSegs != nil {
			again += *s.Tcp.RetransSegs
		}
	}
	if list, err := fs.NetSoftnetStat(); err == nil {
		for _, x := range list {
			dropped += float64(x.Dropped)
		}
	}
	for _, h := range n.links {
		links, err := h.LinkList()
		if err != nil {
			continue
		}
		for _, l := range links {
			if x := l.Attrs().Statistics; x != nil {
				dropped += float64(x.RxDropped + x.TxDropped)
			}
		}
	}
	return again, dropped
}

// accounting says how this kernel accounts for its work in softirqs, which carry packets.
type accounting struct {
	daemons []procfs.Proc // its threads for softirqs that nobody else has time for
	// apart says that no interrupted process has the time of softirqs (CONFIG_IRQ_TIME_ACCOUNTING).
	apart, known bool
}

func readAccounting() (a accounting) {
	config := kernelConfig()
	a.known, a.apart = len(config) > 0, bytes.Contains(config, []byte("\nCONFIG_IRQ_TIME_ACCOUNTING=y\n"))
	list, _ := procfs.AllProcs()
	for _, p := range list {
		if comm, err := p.Comm(); err == nil && strings.HasPrefix(comm, "ksoftirqd/") {
			a.daemons = append(a.daemons, p)
		}
	}
	return a
}

// kernelConfig returns the options that the kernel was built with, nil where it does not tell.
func kernelConfig() []byte {
	if text, err := os.ReadFile("/boot/config-" + telemetry.Host().Kernel); err == nil {
		return text
	}
	file, err := os.Open("/proc/config.gz")
	if err != nil {
		return nil
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(zip)
	return text
}

// threads adds up the seconds that the kernel's threads for softirqs have used.
func (a accounting) threads() (seconds float64) {
	for _, p := range a.daemons {
		if s, err := p.Stat(); err == nil {
			seconds += s.CPUTime()
		}
	}
	return seconds
}

// note says how far the figures of CPU time can be trusted.
func (a accounting) note() string {
	switch {
	case !a.known:
		return "this kernel does not tell whether it accounts for softirqs apart from processes: where it does, the CPU time of client, server and softirqs lacks the latter"
	case a.apart:
		return "this kernel accounts for softirqs apart from processes: those of other programs are in the CPU time of client, server and softirqs, too"
	}
	return "this kernel accounts for softirqs with the process that they interrupt: the CPU time of client and server has their share of them"
}
