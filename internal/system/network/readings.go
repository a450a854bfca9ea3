package network

import (
	"os"

	"github.com/prometheus/procfs"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
)

// gauges are what the last readings counted, of which the next ones tell the
// difference.
type gauges struct {
	at      record.Micros
	softirq []float64 // seconds, by processor
	sent    float64   // bytes that left the link at its busier end
	wanted  [2]float64
}

// Readings are what client, server and path have used and carried, and how much of
// what they have is in use.
func (i *instance) Readings() []record.Reading {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.network
	if n == nil {
		return nil
	}
	next := gauges{at: i.rec.Clock.Now(), softirq: softirqs()}
	list := []record.Reading{telemetry.Reading()}
	own, err := proc.Read(os.Getpid())
	if err == nil {
		list = append(list, record.Reading{Source: sourceClient, Values: map[string]float64{usedSeconds: own.CPUSeconds}})
	}
	for _, t := range proc.Threads(os.Getpid()) {
		next.wanted[0] += t.Ran + t.Waited
	}
	server, memory := n.usedBy(n.server)
	next.wanted[1] = server.wanted
	list = append(list, record.Reading{Source: sourceServer, Values: map[string]float64{record.ValueCPU: server.seconds, record.ValueMemory: memory}})
	all := own.CPUSeconds + server.seconds + i.accounting.threads()
	if i.accounting.apart {
		for _, x := range next.softirq {
			all += x
		}
	}
	list = append(list, record.Reading{Source: sourceAll, Values: map[string]float64{usedSeconds: all}})
	done := float64(i.clients.Progress().There)
	payload := float64(i.clients.Counts().Received)
	carried := map[string]float64{payloadBytes: payload, payloadGB: payload / 1e9, payloadGbit: 8 * payload / 1e9, thousands: done / 1000}
	if link, err := n.links[n.client].LinkByName(linkName); err == nil {
		x := link.Attrs().Statistics
		carried[wireBytes], carried[packets] = float64(x.RxBytes+x.TxBytes), float64(x.RxPackets+x.TxPackets)
		next.sent = float64(max(x.RxBytes, x.TxBytes))
	}
	carried[retransmits], carried[drops] = n.lost()
	list = append(list, record.Reading{Source: sourcePath, Values: carried})
	if seconds := (next.at - i.gauges.at).Seconds(); i.gauges.at > 0 && seconds > 0.1 {
		list = append(list, record.Reading{Source: sourceShares, Values: next.shares(i.gauges, n.settings, seconds)})
	}
	if i.gauges.at == 0 || (next.at-i.gauges.at).Seconds() > 0.1 {
		i.gauges = next
	}
	return list
}

// shares are how much of what there is was in use since other gauges were read, 0 to 1.
func (g *gauges) shares(was gauges, s settings, seconds float64) map[string]float64 {
	values := map[string]float64{
		"client": min((g.wanted[0]-was.wanted[0])/seconds/float64(len(s.clientCPUs)), 1),
		"server": min((g.wanted[1]-was.wanted[1])/seconds/float64(len(s.serverCPUs)), 1),
	}
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

// softirqs are for how long each processor has worked in softirqs.
func softirqs() (list []float64) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil
	}
	stat, err := fs.Stat()
	if err != nil {
		return nil
	}
	for n := range int64(len(stat.CPU)) {
		list = append(list, stat.CPU[n].SoftIRQ)
	}
	return list
}

// use is what processes have used of the processors.
type use struct{ seconds, wanted float64 }

// usedBy is what the processes of a machine have used, but for its first one, and
// their memory in bytes.
func (n *network) usedBy(m *machine.Machine) (u use, memory float64) {
	fs, err := m.Proc()
	if err != nil {
		return u, 0
	}
	list, err := fs.AllProcs()
	if err != nil {
		return u, 0
	}
	for _, p := range list {
		if p.PID == 1 {
			continue
		}
		if s, err := p.Stat(); err == nil {
			u.seconds, memory = u.seconds+s.CPUTime(), memory+float64(s.ResidentMemory())
		}
		threads, err := fs.AllThreads(p.PID)
		if err != nil {
			continue
		}
		for _, t := range threads {
			if s, err := t.Schedstat(); err == nil {
				u.wanted += float64(s.RunningNanoseconds+s.WaitingNanoseconds) / 1e9
			}
		}
	}
	return u, memory
}

// lost is how many TCP segments client and server have sent again, and how many
// packets interfaces of the path, and the queues of this machine's processors, have
// dropped.
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
