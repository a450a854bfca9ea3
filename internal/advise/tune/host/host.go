// Package host computes the settings of a host, its network card and a router on it. It reads hosts.
package host

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Host holds the parameters of a host's settings.
type Host struct {
	// Platform says what the host is a node of. The settings of OpenShift's nodes are not lowered.
	Platform param.In[string] `yaml:"platform" flag:"platform" help:"what the host is a node of, if anything" words:"openshift, kubernetes"`
	// RTT and Link give socket buffers by latency (V7), Packet by packet size (V9); else there are none.
	RTT        param.In[time.Duration] `yaml:"rtt" flag:"rtt" help:"round trip between the hosts, as ping measures it" range:"1ns..1m"`
	Link       param.In[param.Rate]    `yaml:"link" flag:"link" help:"speed of the link, such as 50Gbit or 2x25GbE"`
	Packet     param.In[param.Bytes]   `yaml:"packet" flag:"packet" help:"packet size that buffers are to hold 10 of, such as 512Ki" range:"1..1Ti"`
	Neighbours param.In[int64]         `yaml:"neighbours" flag:"neighbours" help:"addresses on its links that the host talks to" range:"1..10000000"`
	ARPFlux    param.In[bool]          `yaml:"arpFlux" flag:"arp-flux" help:"several interfaces are on one subnet (default: by the routes of the host that is read)"`
	// Settings that follow from these are computed only with them.
	Pods        param.In[int64] `yaml:"pods" flag:"pods" help:"pods on the host" range:"1..100000"`
	PIDsPerPod  param.In[int64] `yaml:"pidsPerPod" flag:"pids-per-pod" help:"PIDs that a pod may have" range:"1..4194304" default:"4096" why:"OpenShift's podPidsLimit" when:"pods"`
	Connections param.In[int64] `yaml:"connections" flag:"connections" help:"connections that are tracked at a time" range:"1..1000000000"`
	Outgoing    param.In[int64] `yaml:"outgoing" flag:"outgoing" help:"outgoing connections to one address and port" range:"1..1000000"`
	// Formats are words of HostFormats.
	Formats []string         `yaml:"format" flag:"format" takes:"word" help:"kind of files: sysctl, tuned, machineconfig, ansible (default sysctl)"`
	Pool    param.In[string] `yaml:"pool" flag:"pool" takes:"name" help:"pool of a MachineConfig or Tuned object" default:"worker" why:"the pool of ordinary nodes" object:"true"`
	Facts   *Facts           // were read of the host; nil without a host
}

// HostFormats lists the kinds of files that settings can be written as.
func HostFormats() []string { return []string{"sysctl", "tuned", "machineconfig", "ansible"} }

type setting struct {
	name    string
	want    []int64 // as many numbers as the sysctl has
	atLeast bool    // means that more is as good: the larger of the present and the wanted value is written
	text    string  // wanted in place of numbers
	// byMemory marks settings that the system sizes by memory: they are written only beside the host's value.
	byMemory bool
	file     string // of /etc/sysctl.d
	why      string // one line above it in the file
	cost     string // of a value that is too small
	rows     []string
}

// ArpCacheFile, ArpFile and others are files of /etc/sysctl.d; the document names these two.
const (
	ArpCacheFile = "99.7-arpcachesize.conf"
	ArpFile      = "99.8-arp.conf"
	bufferFile   = "99.9-buffers.conf"
	receiveFile  = "99.9-receive.conf"
	nodeFile     = "99.9-node.conf"
)

// Cases returns the cases in which defaults matter.
func (p *Host) Cases() map[string]bool { return map[string]bool{"pods": p.Pods.Ok()} }

// TuneHost computes a host's kernel settings (V3 to V11), and the changes if a host was read.
func TuneHost(p Host) (*answer.Answer, error) {
	if p.Facts != nil && !p.Link.Ok() && p.RTT.Ok() {
		p.Link = fastest(p.Facts)
	}
	if p.RTT.Ok() != p.Link.Ok() && p.RTT.Ok() {
		return nil, param.Needs("link", "the buffers for a round trip of "+p.RTT.Value.String()+" follow from the link's speed", "--link 50Gbit")
	}
	if p.Facts == nil && !p.RTT.Ok() && !p.Packet.Ok() && !p.Neighbours.Ok() && !p.ARPFlux.Ok() && !p.Pods.Ok() && !p.Connections.Ok() && !p.Outgoing.Ok() {
		if p.Link.Ok() {
			return nil, param.Needs("rtt", "the buffers for a link follow from the time of a round trip", "--rtt 0.208ms, as ping measures it")
		}
		return nil, param.Bad("live", "for example --live, --bundle DIR, or --rtt 0.208ms --link 50Gbit", "nothing was said of the host")
	}
	b, err := answer.Begin("host", &p, func() error {
		for _, f := range p.Formats {
			if !slices.Contains(HostFormats(), f) {
				return param.Bad("format", "", "%q: want %s", f, strings.Join(HostFormats(), ", "))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.Title = "Kernel settings of a host"
	if p.Facts != nil {
		b.Title += ", against " + p.Facts.From
	}
	t := hostTuner{b, p}
	list := slices.Concat(t.arp(), t.neighbours(), t.windows())
	received, err := t.receive()
	if err != nil {
		return nil, err
	}
	list = slices.Concat(list, received, t.node(), t.ports())
	t.usage()
	t.files(t.settle(list))
	return &t.Answer, nil
}

type hostTuner struct {
	*answer.Builder
	Host
}

// openShiftNode reports whether the settings are for a node of OpenShift, whose own profile bounds them below.
func (p *Host) openShiftNode() bool {
	return p.Platform.Value == param.OpenShift || slices.Contains(p.Formats, "tuned") || slices.Contains(p.Formats, "machineconfig")
}

// fastest returns the speed of the host's fastest interface, by its driver.
func fastest(f *Facts) (in param.In[param.Rate]) {
	for _, i := range f.Interfaces {
		if i.Up && i.Speed > in.Value {
			in = param.Given(i.Speed, "read from interface "+i.Name)
		}
	}
	return in
}

// arp is V3: one answer to each question, if several interfaces could answer.
func (t *hostTuner) arp() []setting {
	flux := t.ARPFlux
	if !flux.Ok() && t.Facts != nil && !t.Facts.Routes {
		t.Find(answer.Finding{Grade: answer.Unseen, What: "interfaces on one subnet (ARP flux)", Remedy: "proc/net/route was not saved"})
	}
	if !flux.Ok() && t.Facts != nil && t.Facts.Routes {
		flux = param.Given(len(t.Facts.SharedSubnets) > 0, "read from the routes of "+t.Facts.From)
	}
	if !flux.Ok() {
		return nil
	}
	t.Put("arpFlux", flux, "")
	t.Cite("V3", "kernel-ip")
	if t.Facts != nil {
		for _, s := range t.Facts.SharedSubnets {
			t.Find(answer.Finding{Grade: answer.Change, What: "interfaces " + strings.Join(s.Interfaces, " and ") + " on " + s.Range.String(), Now: "several on one subnet", Wanted: "one answer to each ARP question",
				Cost: "hosts learn the hardware address of whichever interface answers last", Remedy: "the settings of " + ArpFile})
		}
		if t.Facts.Routes && len(t.Facts.SharedSubnets) == 0 && !t.ARPFlux.Ok() {
			t.Find(answer.Finding{Grade: answer.OK, What: "no two interfaces are on one subnet: no ARP flux"})
		}
	}
	if !flux.Value {
		return nil
	}
	t.Warn("arp_filter answers by the interface that the kernel would route the reply through: it needs source-based routing, a routing table for each interface (V3)")
	const cost = "wrong pairs of IP and hardware address"
	one := func(name, why string, atLeast bool) setting {
		return setting{name: "net.ipv4.conf.all." + name, want: []int64{1}, atLeast: atLeast, file: ArpFile, why: why, cost: cost, rows: []string{"V3", "kernel-ip"}}
	}
	announce := one("arp_announce", "do not ask with an address of another subnet (0 by default; 2 is stricter and stays)", true)
	if t.openShiftNode() {
		announce.want = []int64{2}
	}
	return []setting{
		one("arp_filter", "answer on the interface that the reply would be routed through (0 by default)", false),
		one("arp_ignore", "answer for addresses of the incoming interface only (0 by default)", true),
		// 2 is stricter, and OpenShift's nodes have it.
		announce,
	}
}

// neighbours is V4.
func (t *hostTuner) neighbours() []setting {
	first := int64(4096)
	note := "the document's values"
	if t.openShiftNode() {
		t.Cite("openshift-tuned")
		first, note = 8192, "as OpenShift's own profile has them, twice the document's"
	}
	if t.Neighbours.Ok() {
		least := first
		// Without collection the cache holds all neighbours, in the document's proportions of 1 : 4 : 8.
		first = max(first, param.Power(bits.Len64(uint64(t.Neighbours.Value-1))))
		t.Step(fmt.Sprintf("gc_thresh1 = neighbours, rounded up to a power of two, at least %d", least), fmt.Sprintf("%s -> %d", param.Grouped(t.Neighbours.Value), first), "V4")
		note = "for " + param.Grouped(t.Neighbours.Value) + " neighbours"
	}
	t.Step("gc_thresh1 : gc_thresh2 : gc_thresh3 = 1 : 4 : 8", fmt.Sprintf("%d : %d : %d", first, 4*first, 8*first), "V4", "kernel-ip")
	t.Figure("gcThresh1", first, "entries", "no entry is collected below; "+note)
	t.Figure("gcThresh2", 4*first, "entries", "above it entries older than 5 s are collected")
	t.Figure("gcThresh3", 8*first, "entries", "no more than these")
	t.Correct("V4", "garbage is collected from the threshold on, and at twice this value new entries are refused",
		"there are three thresholds: none is collected below gc_thresh1, entries older than 5 s above gc_thresh2, none is added above gc_thresh3", "the text is that of another sysctl: the limit is gc_thresh3, not twice gc_thresh1")
	var list []setting
	for i, share := range []int64{1, 4, 8} {
		why := []string{"no entry is collected below (128 by default)", "entries older than 5 s are collected above (512 by default)", "no entry is added above (1024 by default)"}[i]
		list = append(list, setting{name: fmt.Sprintf("net.ipv4.neigh.default.gc_thresh%d", i+1), want: []int64{share * first}, atLeast: true, file: ArpCacheFile, why: why,
			cost: "neighbour table overflow: packets to hosts that are not in the table are lost", rows: []string{"V4", "kernel-ip"}})
	}
	if t.Facts == nil && !t.openShiftNode() {
		t.Cite("openshift-tuned")
		t.Warn("OpenShift's own profile already sets gc_thresh 8192, 32768, 65536 and arp_announce 2 on its nodes: these settings are for other hosts, such as those of Ceph")
	}
	return list
}

// windows is V5 to V9: window scaling and socket buffers.
func (t *hostTuner) windows() []setting {
	list := []setting{{name: "net.ipv4.tcp_window_scaling", want: []int64{1}, atLeast: true, file: bufferFile, why: "windows above 64 KiB (1 by default)", cost: "64 KiB in flight at most: " + windowLimit(t.RTT), rows: []string{"V5"}}}
	t.Cite("V5")
	var largest, standard float64
	if t.RTT.Ok() && t.Link.Ok() {
		seconds, link := t.RTT.Value.Seconds(), float64(t.Link.Value)
		product := link * seconds / 8
		document := seconds * (link / 1e6) * 1024 * 1024
		t.Step("bandwidth-delay product = speed x round trip / 8", fmt.Sprintf("%s x %s s / 8 = %s bytes", param.Trim(link), param.Trim(seconds), param.Grouped(int64(math.Round(product)))), "V7")
		t.Step("the document: ping average in ms / 1000 x speed in Mbit/s x 1024^2", fmt.Sprintf("%s / 1000 x %s x 1048576 = %d", param.Trim(seconds*1000), param.Trim(link/1e6), int64(document)), "V7")
		t.Figure("bufferBytes", int64(math.Round(product)), "B", "bandwidth-delay product: what one connection has in flight at full speed")
		t.Figure("bufferBytesDocument", int64(document), "B", fmt.Sprintf("by the document's formula, %.2f times as much", document/product))
		t.Figure("defaultBytes", int64(math.Round(0.4*product)), "B", "4 of 10 packets")
		t.Figure("defaultBytesDocument", int64(0.4*document), "B", "by the document's formula")
		t.Correct("V7", "optimal size = round trip in microseconds x speed in Mbit/s x 1024^2",
			"ping reports milliseconds, /1000 makes seconds of them, and the product is in mebibits: bytes are speed in bit/s x seconds / 8",
			fmt.Sprintf("%d instead of %d bytes, 8.39 times as much", int64(document), int64(math.Round(product))))
		t.Step("default buffer = 4 of 10 packets", fmt.Sprintf("0.4 x %d = %d", int64(math.Round(product)), int64(math.Round(0.4*product))), "V8", "V6")
		t.Correct("V8", "wmem_default is a quarter of the maximum", "4 of 10 packets are 0.4 of it, as the document's own figure 4362076 is", fmt.Sprintf("a quarter would be %d", int64(document/4)))
		largest, standard = product, 0.4*product
	}
	if t.Packet.Ok() {
		packet := float64(t.Packet.Value)
		t.Step("buffer by packet size: at least 2, by default 4, at most 10 packets", fmt.Sprintf("%d x 2 = %d, x 4 = %d, x 10 = %d", t.Packet.Value, 2*t.Packet.Value, 4*t.Packet.Value, 10*t.Packet.Value), "V6", "V9")
		t.Figure("packetMinimumBytes", 2*t.Packet.Value, "B", "2 packets")
		t.Figure("packetDefaultBytes", 4*t.Packet.Value, "B", "4 packets")
		t.Figure("packetMaximumBytes", 10*t.Packet.Value, "B", "10 packets")
		t.Correct("V9", "max size = size of the packet x 1024^2", "it is 10 packets: 10 x 512 KiB = 5242880, and 4 of them are 2097152", fmt.Sprintf("without the 10: %d", t.Packet.Value))
		if t.Packet.Value%1000 == 0 {
			t.Warn("%d bytes are decimal kilobytes: the document's 512 KB are 512Ki", t.Packet.Value)
		}
		largest, standard = max(largest, 10*packet), max(standard, 4*packet)
	}
	if largest == 0 {
		return list
	}
	// The largest defaults of any kernel: no host's values are lowered.
	const usual, usualMax, usualRead, usualWrite = 212992, 4 << 20, 32 << 20, 4 << 20
	// The kernel keeps each value in an int.
	kept := func(bytes float64, least int64) int64 {
		return int64(min(max(math.Round(bytes), float64(least)), math.MaxInt32))
	}
	t.Cite("kernel-ip", "kernel-net")
	rows := []string{"V7", "V8"}
	if t.Packet.Ok() {
		rows = append(rows, "V9")
	}
	const cost = "a connection fills its buffer and waits for the other side"
	// TCP sizes its buffers up to the third number of tcp_rmem and tcp_wmem, and uses half of a buffer itself.
	tcp := kept(2*largest, 0)
	t.Step("TCP's own limit = 2 x bytes in flight, since half of a buffer is taken for packets' own memory, at most 2^31 - 1", fmt.Sprintf("2 x %.0f -> %d", largest, tcp), "kernel-ip")
	t.Figure("tcpBufferBytes", tcp, "B", "third number of tcp_rmem and tcp_wmem, at least")
	if 2*largest > math.MaxInt32 {
		t.Find(answer.Finding{Grade: answer.Advice, What: "largest buffer of a connection", Now: param.Bytes(tcp).String(), Wanted: param.Bytes(2 * largest).String(), Cost: "one connection cannot fill the link", Remedy: "several connections side by side"})
	}
	t.Warn("TCP ignores rmem_max, wmem_max and wmem_default unless a program asks for a buffer of a size: it follows tcp_rmem and tcp_wmem (kernel-ip)")
	// Every socket may take it, and a host has thousands.
	const largestDefault = 16 << 20
	if standard > largestDefault {
		t.Warn("wmem_default is written as 16 MiB and not as %s: every socket that asks for no size may take it, and a program that needs more asks for it, up to wmem_max", param.Bytes(standard))
		standard = largestDefault
	}
	t.Warn("no buffer is written below the largest default that a kernel has had: 4 MiB for rmem_max and wmem_max, 32 MiB for tcp_rmem, 4 MiB for tcp_wmem")
	buffer := func(name, why string, want ...int64) setting {
		return setting{name: name, want: want, atLeast: true, file: bufferFile, why: why, cost: cost, rows: rows}
	}
	return append(list,
		buffer("net.core.rmem_max", "largest receive buffer that a program may ask for (212992 by default, 4194304 with newer kernels)", kept(largest, usualMax)),
		buffer("net.core.wmem_max", "largest send buffer that a program may ask for (212992 by default, 4194304 with newer kernels)", kept(largest, usualMax)),
		buffer("net.core.wmem_default", "send buffer of sockets that ask for none, other than TCP's (212992 by default)", kept(standard, usual)),
		buffer("net.ipv4.tcp_rmem", "least, first and largest receive buffer of TCP (the third is 6291456 by default, 33554432 with newer kernels)", 4096, 131072, max(tcp, usualRead)),
		buffer("net.ipv4.tcp_wmem", "least, first and largest send buffer of TCP (the third is 4194304 by default)", 4096, 16384, max(tcp, usualWrite)),
	)
}

func windowLimit(rtt param.In[time.Duration]) string {
	if !rtt.Ok() {
		return "on a round trip of 1 ms 524 Mbit/s a connection"
	}
	return fmt.Sprintf("%s a connection", param.Rate(65536*8/rtt.Value.Seconds()))
}

// receive is V10 and V11: each CPU's received packets between two readings, and the setting to raise.
func (t *hostTuner) receive() ([]setting, error) {
	f := t.Facts
	if f == nil || len(f.Softnet) == 0 {
		return nil, nil
	}
	t.Cite("V10", "V11", "kernel-net")
	t.Correct("V11", "the sample for a full backlog queue shows column 3 growing", "dropped packets are column 2, column 3 is time_squeeze", "reading the sample, one would raise netdev_max_backlog for what netdev_budget fixes")
	if len(f.Softnet) == 1 {
		t.softnetOnce(f.Softnet[0])
		return nil, nil
	}
	grown, err := GrowSoftnet(f.Softnet[0], f.Softnet[1])
	if err != nil {
		return nil, param.Bad("bundle", "the older reading is softnet_stat.0", "%v", err)
	}
	var packets, dropped, squeezed uint64
	for _, g := range grown {
		packets += uint64(g.Processed)
		dropped += uint64(g.Dropped)
		squeezed += uint64(g.Squeezed)
	}
	if f.Interval > 0 {
		t.Inputs = append(t.Inputs, answer.Input{Name: "interval", Value: f.Interval.String(), Unit: "", From: "between the two readings"})
	} else {
		t.Warn("the time between the two readings is unknown: no rates (--interval, or a file named interval in the bundle)")
	}
	t.Figure("packets", int64(packets), "", "received by "+fmt.Sprint(len(grown))+" CPUs between the readings")
	t.Figure("dropped", int64(dropped), "", "column 2: the backlog queue was full")
	t.Figure("squeezed", int64(squeezed), "", "column 3: polls that ended with work left")
	var list []setting
	for _, what := range []struct {
		of                    func(SoftnetCPU) uint32
		total                 uint64
		head, cost, none, row string
		settings              []softnetSetting
	}{
		{func(g SoftnetCPU) uint32 { return g.Squeezed }, squeezed, "time_squeeze", "packets wait in the NIC's ring, and are lost when it is full", "no CPU ran out of its budget (time_squeeze)", "V10",
			[]softnetSetting{{"net.core.netdev_budget", 300, "; the document went from 300 to 1000"}, {"net.core.netdev_budget_usecs", 2000, ""}}},
		{func(g SoftnetCPU) uint32 { return g.Dropped }, dropped, "dropped", "packets are lost", "no packet found the backlog queue full (dropped)", "V11",
			[]softnetSetting{{"net.core.netdev_max_backlog", 1000, "; the document went from 1000 to 5000"}}},
	} {
		if what.total == 0 {
			t.Find(answer.Finding{Grade: answer.OK, What: what.none})
			continue
		}
		raise := ""
		for _, s := range what.settings {
			now, ok := f.whole(s.name)
			from := "as read"
			if !ok {
				now, from = s.usual, "the default, since it was not read"
			}
			next := param.RoundUp(now+now/2, 50)
			t.Figure(shortName(s.name), next, "", fmt.Sprintf("from %d (%s): half as much again, and look again", now, from))
			list = append(list, setting{name: s.name, want: []int64{next}, atLeast: true, file: receiveFile, why: "raise in small steps while " + what.head + " grows" + s.reached, cost: what.cost, rows: []string{what.row}})
			raise = cmp.Or(raise, fmt.Sprintf("raise %s to %d", s.name, next))
		}
		sorted := slices.DeleteFunc(slices.Clone(grown), func(g SoftnetCPU) bool { return what.of(g) == 0 })
		slices.SortStableFunc(sorted, func(x, y SoftnetCPU) int { return cmp.Compare(what.of(y), what.of(x)) })
		const shownCPUs = 8
		for _, g := range sorted[:min(shownCPUs, len(sorted))] {
			t.Find(answer.Finding{Grade: answer.Change, What: fmt.Sprintf("CPU %d: %s", g.CPU, what.head), Now: perSecond(uint64(what.of(g)), f.Interval), Wanted: "no growth", Cost: what.cost, Remedy: raise})
		}
		t.Step(what.head+" between the readings", fmt.Sprintf("%s on %d of %d CPUs, most on CPU %d", param.Grouped(int64(what.total)), len(sorted), len(grown), sorted[0].CPU), what.row)
	}
	t.skew(grown, packets)
	return list, nil
}

type softnetSetting struct {
	name    string
	usual   int64
	reached string
}

// softnetOnce evaluates one reading: it shows what happened since the host was started, not whether it goes on.
func (t *hostTuner) softnetOnce(reading []SoftnetCPU) {
	var dropped, squeezed []string
	for _, c := range reading {
		if c.Dropped > 0 {
			dropped = append(dropped, fmt.Sprint(c.CPU))
		}
		if c.Squeezed > 0 {
			squeezed = append(squeezed, fmt.Sprint(c.CPU))
		}
	}
	since := func(what string, cpus []string) {
		if len(cpus) > 0 {
			t.Find(answer.Finding{Grade: answer.Unseen, What: what + " since the host was started, on CPU " + abridged(cpus), Now: "above zero", Wanted: "no growth", Cost: "", Remedy: "a second reading later: what counts is growth"})
		}
	}
	since("time_squeeze", squeezed)
	since("dropped", dropped)
	if len(dropped)+len(squeezed) == 0 {
		t.Find(answer.Finding{Grade: answer.OK, What: "no CPU squeezed or dropped since the host was started"})
	}
}

// abridged joins words, and counts those beyond the first eight.
func abridged(list []string) string {
	if len(list) > 8 {
		return strings.Join(list[:8], ", ") + fmt.Sprintf(" and %d more", len(list)-8)
	}
	return strings.Join(list, ", ")
}

// skew finds a CPU that takes most of the packets: spreading them helps it more than a larger budget.
func (t *hostTuner) skew(grown []SoftnetCPU, packets uint64) {
	if len(grown) < 4 || packets < 1000 {
		return
	}
	most := slices.MaxFunc(grown, func(x, y SoftnetCPU) int { return cmp.Compare(x.Processed, y.Processed) })
	if share := float64(most.Processed) / float64(packets); share > 0.5 {
		t.Find(answer.Finding{Grade: answer.Advice, What: fmt.Sprintf("CPU %d: share of all packets", most.CPU), Now: fmt.Sprintf("%.0f%% of %d CPUs", 100*share, len(grown)), Wanted: "spread",
			Cost: "one CPU receives for the host while others idle", Remedy: "more queues, and interrupts spread over CPUs of the NIC's NUMA node: plimsoll tune network"})
	}
}

// node returns settings of hosts that run pods.
func (t *hostTuner) node() []setting {
	var list []setting
	node := func(name string, want int64, why, cost, row string) setting {
		return setting{name: name, want: []int64{want}, atLeast: true, file: nodeFile, why: why, cost: cost, rows: []string{row}}
	}
	if t.Connections.Ok() {
		// Three quarters full at most, to leave room for a burst, and not below OpenShift's profile.
		want := min(max((t.Connections.Value*4+2)/3, 1048576), math.MaxInt32)
		t.Step("nf_conntrack_max = connections / 0.75, at least 1048576", fmt.Sprintf("%s / 0.75 -> %s", param.Grouped(t.Connections.Value), param.Grouped(want)), "kernel-conntrack")
		t.Figure("nfConntrackMax", want, "connections", "OpenShift's profile has 1048576")
		t.Cite("openshift-tuned")
		list = append(list,
			node("net.netfilter.nf_conntrack_buckets", want, "buckets of the table: one for each connection, as kernels have them since 5.15", "lookups in a bucket take longer the more connections share it", "kernel-conntrack"),
			node("net.netfilter.nf_conntrack_max", want, "tracked connections (by the number of the table's buckets)", "new connections are dropped: nf_conntrack: table full, dropping packet", "kernel-conntrack"))
	}
	if t.Pods.Ok() {
		pids := t.PIDsPerPod
		const most = 4194304 // PID_MAX_LIMIT of 64-bit kernels
		need := t.Pods.Value * pids.Value
		t.Step("kernel.pid_max >= pods x PIDs of each, at most 4194304", fmt.Sprintf("%s x %s = %s", param.Grouped(t.Pods.Value), param.Grouped(pids.Value), param.Grouped(need)), "openshift-tuned")
		if need > most {
			t.Find(answer.Finding{Grade: answer.Advice, What: "PIDs of all pods at their limit", Now: param.Grouped(need), Wanted: fmt.Sprintf("at most %s", param.Grouped(int64(most))), Cost: "pods that all use up their limit leave the node without PIDs", Remedy: fmt.Sprintf("podPidsLimit %d: plimsoll tune kubelet", (most-32768)/t.Pods.Value)})
		}
		t.Cite("openshift-inotify")
		// The kernel's own default ends at 1048576 watches.
		instances, watches := max(8192, 16*t.Pods.Value), max(1048576, 128*t.Pods.Value)
		threads := node("kernel.threads-max", min(need, most), "threads of the host (by its memory)", "fork: Resource temporarily unavailable", "openshift-tuned")
		files := node("fs.file-max", t.Pods.Value*4096, "open files of the host (by its memory; systemd lifts it)", "Too many open files in system", "kernel-fs")
		open := node("fs.nr_open", 1048576, "open files of one process (1048576 by default; systemd lifts it)", "Too many open files", "kernel-fs")
		threads.byMemory, files.byMemory, open.byMemory = true, true, true
		list = append(list,
			node("kernel.pid_max", most, "PIDs of the host (32768 by default)", "fork: Resource temporarily unavailable", "openshift-tuned"),
			node("fs.inotify.max_user_instances", instances, "inotify instances of a user, who is root for most pods (128 by default)", "inotify_init: Too many open files", "openshift-inotify"),
			node("fs.inotify.max_user_watches", watches, "inotify watches of a user (by the memory, 1048576 at most)", "inotify_add_watch: No space left on device", "openshift-inotify"),
			threads, files, open)
		t.Step("inotify instances = 16, watches = 128, open files = 4096 for each pod, at least OpenShift's 8192 instances and the kernel's 1048576 watches", fmt.Sprintf("%d, %d, %d", instances, watches, t.Pods.Value*4096), "openshift-inotify")
		t.Warn("inotify and file handles for each pod are this program's own allowance: watch fs.file-nr, and errors of inotify")
	}
	return list
}

// ports is about outgoing connections to one address and port.
func (t *hostTuner) ports() []setting {
	if !t.Outgoing.Ok() {
		return nil
	}
	t.Cite("kernel-ip")
	const first, last, usual = 1024, 65535, 60999 - 32768 + 1
	room := int64(last - first + 1)
	t.Step("connections to one address and port <= ports of ip_local_port_range", fmt.Sprintf("60999 - 32768 + 1 = %d by default, %d - %d + 1 = %d at most", usual, last, first, room), "kernel-ip")
	t.Figure("localPorts", room, "", "for each local address, at most")
	if t.Outgoing.Value <= usual {
		t.Find(answer.Finding{Grade: answer.OK, What: "outgoing connections to one address and port", Now: param.Grouped(t.Outgoing.Value), Wanted: fmt.Sprintf("at most %d", usual)})
		return nil
	}
	if t.Outgoing.Value > room {
		t.Find(answer.Finding{Grade: answer.Cannot, What: "outgoing connections to one address and port", Now: param.Grouped(t.Outgoing.Value), Wanted: fmt.Sprintf("at most %d from one local address", room), Cost: "connect: Cannot assign requested address", Remedy: "more local addresses, or more addresses of the service"})
	}
	const nodePorts = "30000-32767"
	reserved := nodePorts
	if t.Facts != nil {
		if now := t.Facts.Sysctls["net.ipv4.ip_local_reserved_ports"]; now != "" && now != nodePorts && !strings.HasSuffix(now, ","+nodePorts) {
			reserved = now + "," + nodePorts
		} else if now != "" {
			reserved = now
		}
	}
	t.Warn("a range from 1024 on meets ports that services listen on: NodePorts (%s) are reserved here, name the others too in net.ipv4.ip_local_reserved_ports", nodePorts)
	const cost = "connect: Cannot assign requested address"
	return []setting{
		{name: "net.ipv4.ip_local_reserved_ports", text: reserved, file: nodeFile, why: "ports that no outgoing connection takes: those of NodePort services", cost: "a service's port is taken by a client", rows: []string{"kernel-ip"}},
		{name: "net.ipv4.ip_local_port_range", want: []int64{first, last}, file: nodeFile, why: "local ports of outgoing connections (32768 60999 by default)", cost: cost, rows: []string{"kernel-ip"}},
	}
}

// usage finds what is nearly used up on the host.
func (t *hostTuner) usage() {
	f := t.Facts
	if f == nil {
		return
	}
	const full = 0.75
	say := func(what string, used, limit int64, cost, remedy string) {
		share := float64(used) / float64(limit)
		finding := answer.Finding{Grade: answer.OK, What: what, Now: fmt.Sprintf("%s of %s, %.0f%%", param.Grouped(used), param.Grouped(limit), 100*share)}
		if share > full {
			finding.Grade, finding.Wanted, finding.Cost, finding.Remedy = answer.Change, "at most 75%", cost, remedy
		}
		t.Find(finding)
	}
	if used, ok := f.whole("net.netfilter.nf_conntrack_count"); ok {
		if limit, ok := f.whole("net.netfilter.nf_conntrack_max"); ok && limit > 0 {
			t.Cite("kernel-conntrack")
			say("tracked connections", used, limit, "new connections are dropped: nf_conntrack: table full, dropping packet", "--connections "+fmt.Sprint(2*used))
		}
	}
	if n, ok := wholeNumbers(f.Sysctls["fs.file-nr"], 3); ok && n[2] > 0 {
		say("open files of the host", n[0], n[2], "Too many open files in system", "raise fs.file-max")
	}
}

// settle returns the settings to write, never lower than the host's.
func (t *hostTuner) settle(list []setting) []setting {
	if t.Facts == nil {
		left := slices.DeleteFunc(list, func(s setting) bool { return s.byMemory })
		if len(left) < len(list) {
			t.Cite("kernel-fs")
			t.Warn("kernel.threads-max, fs.file-max and fs.nr_open are not written: their defaults are larger on most hosts; --live, --bundle or --node compares them")
		}
		return left
	}
	var out []setting
	for _, s := range list {
		found, write := t.compare(&s)
		if t.Find(found); write {
			out = append(out, s)
		}
	}
	return out
}

// compare compares a setting with the host's value, raises it to that, and reports whether to write it.
func (t *hostTuner) compare(s *setting) (found answer.Finding, write bool) {
	text, exists := t.Facts.Sysctls[s.name]
	found = answer.Finding{Grade: answer.Change, What: s.name, Now: text, Wanted: s.value(), Cost: s.cost, Remedy: s.file}
	now, ok := wholeNumbers(text, len(s.want))
	enough := slices.Equal(now, s.want)
	switch {
	case s.text != "":
		if text == s.text {
			found.Grade, found.Cost, found.Remedy = answer.OK, "", ""
		}
		return found, true
	case !exists && t.Facts.Sysctls["kernel.osrelease"] == "":
		// A bundle without the kernel's release was made by hand, and the host may have what it lacks.
		found.Grade, found.Cost, found.Remedy = answer.Unseen, "", "it was not saved: do not lower it, sysctl "+s.name+" tells what it is"
		return found, !s.byMemory
	case !exists:
		found.Grade, found.Cost, found.Remedy = answer.NoSuch, "", whyNoSuch(s.name)
		return found, false
	case !ok:
		found.Grade, found.Cost, found.Remedy = answer.Unseen, "", ""
	case s.atLeast:
		enough = true
		s.want = slices.Clone(s.want)
		for i := range now {
			enough = enough && now[i] >= s.want[i]
			s.want[i] = max(now[i], s.want[i])
		}
		found.Wanted = s.value()
	}
	if enough {
		found = answer.Finding{Grade: answer.OK, What: s.name, Now: text}
	}
	return found, true
}

func whyNoSuch(name string) string {
	switch {
	case strings.HasPrefix(name, "net.netfilter."):
		return "this host has no such setting: the module nf_conntrack is not loaded"
	case strings.HasPrefix(name, "net.core."), strings.HasPrefix(name, "net.ipv4.neigh.default.gc_thresh"):
		return "this host has no such setting: read in a network namespace other than the host's"
	}
	return "this host has no such setting"
}

func wholeNumbers(text string, n int) ([]int64, bool) {
	fields := strings.Fields(text)
	if len(fields) != n {
		return nil, false
	}
	out := make([]int64, n)
	for i, s := range fields {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

// value returns the text to write.
func (s setting) value() string { return cmp.Or(s.text, strings.Trim(fmt.Sprint(s.want), "[]")) }

// shortName returns a sysctl's name in a result: netdevBudgetUsecs for net.core.netdev_budget_usecs.
func shortName(name string) string {
	parts := strings.Split(name[strings.LastIndexByte(name, '.')+1:], "_")
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
	}
	return strings.Join(parts, "")
}
