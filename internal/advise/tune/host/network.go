package host

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Network holds the parameters of the network between nodes.
type Network struct {
	Platform param.In[string]     `yaml:"platform" flag:"platform" help:"what the cluster is" words:"openshift, kubernetes" default:"openshift" why:"the documents' platform"`
	Overlay  param.In[string]     `yaml:"overlay" flag:"overlay" help:"how pods' packets go between nodes" words:"geneve, vxlan, ipip, wireguard, none" default:"geneve" why:"OVN-Kubernetes'"`
	IPsec    param.In[bool]       `yaml:"ipsec" flag:"ipsec" help:"encrypted between nodes by IPsec"`
	IPv6     param.In[bool]       `yaml:"ipv6" flag:"ipv6" help:"the nodes' own addresses are IPv6"`
	MTU      param.In[int64]      `yaml:"mtu" flag:"mtu" help:"MTU of the nodes' link" range:"576..65535" default:"1500" why:"Ethernet's" in:"B"`
	Link     param.In[param.Rate] `yaml:"link" flag:"link" help:"speed of the nodes' link" default:"10 Gbit/s" why:"10 Gbit/s"`
	Networks param.In[int64]      `yaml:"networks" flag:"networks" help:"networks that are to be kept apart" range:"1..1000000000"`
	Facts    *Facts               // were read of a node; nil without a node
	Measured []PathCost           // costs of paths from a record; nil without one
}

// PathCost says what a path cost in a record beside the direct path of the same MTU, at a level of its load.
type PathCost struct {
	Path     string // an overlay, or another path such as ipsec
	MTU      int64  // of the link
	At, From string
	Figures  []CostFigure
}

// CostFigure holds the change of a figure with its interval, each nil if unknown, and the verdict.
type CostFigure struct {
	Name           string
	Change, Lo, Hi *float64
	Verdict        string
}

// IsOverlay reports whether a path is a value of Overlay.
func IsOverlay(path string) bool {
	return slices.Contains([]string{"geneve", "vxlan", "ipip", "wireguard"}, path)
}

// NICFeatures lists the offloads of an interface, as ethtool -k does.
type NICFeatures map[string]NICFeature

// NICFeature is the state of an offload. A fixed one cannot be switched.
type NICFeature struct{ On, Fixed bool }

// ParseFeatures reads the output of ethtool -k.
func ParseFeatures(data []byte) (NICFeatures, error) {
	f := NICFeatures{}
	line := regexp.MustCompile(`^\s*([a-z][a-z0-9_-]*): (on|off)( \[fixed\]| \[requested (?:on|off)\])?\s*$`)
	s := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; s.Scan(); n++ {
		text := s.Text()
		if m := line.FindStringSubmatch(text); m != nil {
			f[m[1]] = NICFeature{m[2] == "on", m[3] == " [fixed]"}
		} else if strings.TrimSpace(text) != "" && !strings.HasPrefix(text, "Features for ") && !strings.HasPrefix(text, "Offload parameters for ") {
			return nil, fmt.Errorf("line %d: %q is not what ethtool -k prints", n, text)
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if len(f) == 0 {
		return nil, fmt.Errorf("it names no feature: want what ethtool -k prints")
	}
	return f, nil
}

// ParseChannels reads the most combined or receive queues from ethtool -l; 0 for unknown.
func ParseChannels(data []byte) int {
	most := 0
	for _, line := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(line, "Current hardware settings") {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if n, err := strconv.Atoi(strings.TrimSpace(value)); ok && err == nil && (name == "Combined" || name == "RX") && n >= 0 && n <= 65536 {
			most = max(most, n)
		}
	}
	return most
}

// cost reports the measured cost of the overlay (R13, R17).
func (t *networkTuner) cost() {
	known := false
	for _, c := range t.Measured {
		if c.Path != t.Overlay.Value && !(c.Path == "ipsec" && t.IPsec.Value) {
			continue
		}
		var now []string
		grade := answer.OK
		for _, f := range c.Figures {
			text := f.Name + " is unknown"
			if f.Change != nil {
				text = fmt.Sprintf("%s %+.1f%%", f.Name, 100**f.Change)
			}
			if f.Lo != nil && f.Hi != nil {
				text += fmt.Sprintf(" (%+.1f to %+.1f%%)", 100**f.Lo, 100**f.Hi)
			}
			now = append(now, text+", "+f.Verdict)
			if !slices.Contains([]string{"better", "equivalent", "notWorse"}, f.Verdict) {
				grade = answer.Advice // unknown never counts as pass
			}
		}
		known = true
		t.Find(answer.Finding{
			Grade: grade, What: fmt.Sprintf("cost of %s at MTU %d", c.Path, c.MTU), Now: strings.Join(now, "; "),
			Wanted: "what native routing costs, where the network can learn the pods' addresses", Cost: c.At + ", measured beside a direct path: " + c.From,
		})
	}
	switch {
	case known:
		t.Warn("the overlay's cost was measured between two namespaces of one machine, over virtual links: offloads of a NIC are not in it")
	case len(t.Measured) > 0:
		t.Warn("the record has no figures of %s: what it costs is to be measured (plimsoll sweep network-path --vary path=direct,%s)", overlayName(t.Network), t.Overlay.Value)
	default:
		t.Warn("what the overlay costs on these machines is not computed but to be measured, overlay and direct path side by side (plimsoll sweep network-path, and --run DIR); offloads lower the CPU that it costs, not its latency (R14)")
	}
}

// overhead returns the bytes of each packet that an overlay takes.
func overhead(overlay string, ipv6, ipsec bool) (n int64, parts string) {
	outer, name := int64(20), "IPv4"
	if ipv6 {
		outer, name = 40, "IPv6"
	}
	switch overlay {
	case "vxlan":
		n, parts = 14+outer+8+8, fmt.Sprintf("inner Ethernet 14 + %s %d + UDP 8 + VXLAN 8", name, outer)
	case "geneve":
		n, parts = 100, "OVN-Kubernetes keeps 100 free for Geneve with its options"
	case "ipip":
		n, parts = outer, fmt.Sprintf("%s %d", name, outer)
	case "wireguard":
		n, parts = outer+40, fmt.Sprintf("%s %d + UDP 8 + WireGuard 32", name, outer)
	default:
		parts = "none: packets go as they are"
	}
	if ipsec {
		n += 46
		parts += " + ESP 46"
	}
	return n, parts
}

// TuneNetwork computes the network between nodes (R12 to R14, R17).
func TuneNetwork(p Network) (*answer.Answer, error) {
	var nic *Interface
	var cpus []int
	if p.Facts != nil {
		if nic, cpus = nicCPUs(p.Facts); nic != nil {
			p.MTU = p.MTU.OrThat(param.ReadFrom(nic.MTU, "interface "+nic.Name))
			p.Link = p.Link.OrThat(param.ReadFrom(nic.Speed, "interface "+nic.Name))
		}
	}
	asked := p.MTU.Ok() // else the installer computes it
	b, err := answer.Begin("network", &p)
	if err != nil {
		return nil, err
	}
	b.Title = fmt.Sprintf("Network of nodes: %s over a link of %s", overlayName(p), p.Link.Value)
	t := networkTuner{b, p}
	pod := t.mtu()
	if pod < 576 {
		return nil, param.Bad("mtu", "for example 1500", "%d leaves %d bytes for pods", p.MTU.Value, pod)
	}
	t.separate()
	t.beyondOneGigabit()
	if nic != nil {
		t.offloads(nic)
		t.queues(nic, cpus)
	} else {
		t.Warn("offloads, queues and interrupts were not looked at: --live, or --bundle DIR of a node")
	}
	t.Cite("R13")
	t.cost()
	if len(t.Commands) > 0 {
		t.File("nic-tuning.sh", answer.Script("Offloads, queues and interrupts of "+nic.Name+", until the next start.", t.Commands), "sh, as root on the node")
	}
	if asked && p.Platform.Value == param.OpenShift && p.Overlay.Value == "geneve" {
		t.File("cluster-network-03-config.yml", answer.Manifest(answer.Object("operator.openshift.io/v1", "Network", answer.Mapping{{"name", "cluster"}},
			answer.Mapping{{"defaultNetwork", answer.Mapping{{"type", param.OVNKubernetes}, {"ovnKubernetesConfig", answer.Mapping{{"mtu", pod}}}}}}),
			"MTU of the pods' network: among the manifests, before the cluster is made."), "openshift-install: manifests/cluster-network-03-config.yml")
		t.Warn("the MTU of the pods' network is chosen at installation; changing it later is a migration that reboots every node twice")
	}
	return &t.Answer, nil
}

type networkTuner struct {
	*answer.Builder
	Network
}

func overlayName(p Network) string {
	name := map[string]string{"geneve": "Geneve", "vxlan": "VXLAN", "ipip": "IP in IP", "wireguard": "WireGuard", "none": "native routing"}[p.Overlay.Value]
	if p.IPsec.Value {
		name += " with IPsec"
	}
	return name
}

// mtu is R12: the length of pods' packets, and the cost of headers.
func (t *networkTuner) mtu() int64 {
	n, parts := overhead(t.Overlay.Value, t.IPv6.Value, t.IPsec.Value)
	pod := t.MTU.Value - n
	sources := []string{"R12"}
	if t.Overlay.Value == "geneve" || t.IPsec.Value {
		sources = append(sources, "openshift-mtu")
	}
	t.Step("MTU of pods = MTU of the link - overlay", fmt.Sprintf("%d - %d = %d (%s)", t.MTU.Value, n, pod, parts), sources...)
	t.Figure("podMTU", pod, "B", "longer packets are cut into two, or lost")
	t.Figure("overhead", n, "B/packet", "")
	share, packets := goodput(t.MTU.Value, pod, t.Link.Value)
	t.Step("share of the link for data = (MTU of pods - 52 of TCP and IP) / (MTU of the link + 38 of Ethernet)", fmt.Sprintf("(%d - 52) / (%d + 38) = %.1f%%", pod, t.MTU.Value, 100*share), "R12")
	t.Figure("goodput", math.Round(share*float64(t.Link.Value)), "bit/s", fmt.Sprintf("TCP data at most, %.1f%% of the link", 100*share))
	t.Figure("packetsPerSecond", math.Round(packets), "packets/s", "at full speed: what CPUs have to handle without offloads")
	const jumbo = 9000
	if t.MTU.Value < jumbo && t.Link.Value > 1e9 {
		jShare, jPackets := goodput(jumbo, jumbo-n, t.Link.Value)
		t.Find(answer.Finding{Grade: answer.Change, What: "MTU of the link", Now: fmt.Sprint(t.MTU.Value), Wanted: "9000 (jumbo frames), if every switch and node on the way has them", Cost: fmt.Sprintf("%.1f times the packets for the same data, %.1f%% of the link for data instead of %.1f%%", packets/jPackets*jShare/share, 100*share, 100*jShare),
			Remedy: fmt.Sprintf("MTU 9000 on every node, %d for pods", jumbo-n)})
	}
	if t.IPsec.Value {
		t.Cite("R17", "openshift-mtu")
		t.Correct("R17", "IPsec will lead to increased throughput and CPU usage", "it costs CPU, and throughput with it: packets are encrypted before the NIC, which cannot offload what it cannot read", "")
		t.Find(answer.Finding{Grade: answer.Advice, What: "IPsec", Wanted: "only where the network itself is not trusted", Cost: "CPU, throughput, and the NIC's offloads"})
	}
	return pod
}

// goodput returns TCP's share of a link, and packets per second. TCP and IP take 52 bytes, Ethernet 38.
func goodput(mtu, pod int64, link param.Rate) (share, packets float64) {
	wire := float64(mtu + 38)
	return float64(pod-52) / wire, float64(link) / 8 / wire
}

// separate is R13's other half: the number of networks.
func (t *networkTuner) separate() {
	if !t.Networks.Ok() {
		return
	}
	t.Cite("R13")
	const vlans, vnis = 4094, 1 << 24 // two of the 4096 VLAN numbers are reserved
	t.Step("VLAN numbers have 12 bits, VXLAN and Geneve's 24", fmt.Sprintf("2^12 = 4096, 2^24 = %s", param.Grouped(int64(vnis))), "R13")
	switch {
	case t.Networks.Value > vnis:
		t.Find(answer.Finding{Grade: answer.Cannot, What: "networks", Now: param.Grouped(t.Networks.Value), Wanted: param.Grouped(int64(vnis)), Cost: "there are no more numbers", Remedy: "fewer networks, or several clusters"})
	case t.Networks.Value > vlans && (t.Overlay.Value == "none" || t.Overlay.Value == "ipip" || t.Overlay.Value == "wireguard"):
		t.Find(answer.Finding{Grade: answer.Cannot, What: "networks by VLAN", Now: param.Grouped(t.Networks.Value), Wanted: param.Grouped(int64(vlans)), Cost: "there are no more VLAN numbers", Remedy: "VXLAN or Geneve"})
	default:
		t.Find(answer.Finding{Grade: answer.OK, What: "networks", Now: param.Grouped(t.Networks.Value), Wanted: fmt.Sprintf("at most %s by VLAN, %s by VXLAN or Geneve", param.Grouped(int64(vlans)), param.Grouped(int64(vnis)))})
	}
}

// beyondOneGigabit is R14.
func (t *networkTuner) beyondOneGigabit() {
	if t.Link.Value <= 1e9 || t.Overlay.Value == "none" {
		return
	}
	t.Cite("R14")
	t.Find(answer.Finding{Grade: answer.Advice, What: "an overlay above 1 Gbit/s", Now: overlayName(t.Network), Wanted: "a NIC that offloads it, or native routing, or BGP", Cost: "CPU for checksums and segments of every packet; throughput where a CPU is full, the more the faster the link", Remedy: "measure both paths before deciding; native routing must be known to the routers"})
}

// wantedFeatures lists offloads with the cost of their absence.
func wantedFeatures(overlay string) []struct{ name, cost string } {
	list := []struct{ name, cost string }{
		{"rx-checksumming", "CPU for the checksum of every packet received"},
		{"tx-checksumming", "CPU for the checksum of every packet sent"},
		{"scatter-gather", "packets are copied together before they are sent"},
		{"tcp-segmentation-offload", "CPU for cutting data into packets"},
		{"generic-segmentation-offload", "every layer handles each packet by itself"},
		{"generic-receive-offload", "every layer handles each packet by itself"},
	}
	if overlay == "vxlan" || overlay == "geneve" {
		list = append(list, []struct{ name, cost string }{
			{"tx-udp_tnl-segmentation", "CPU for cutting the overlay's data into packets"},
			{"tx-udp_tnl-csum-segmentation", "CPU for the overlay's outer checksums"},
			{"rx-udp_tunnel-port-offload", "the NIC does not look into the overlay's packets: one queue receives what comes from one node"},
		}...)
	}
	return list
}

func (t *networkTuner) offloads(nic *Interface) {
	if len(nic.Features) == 0 {
		t.Find(answer.Finding{Grade: answer.Unseen, What: "offloads of " + nic.Name, Remedy: "ethtool -k " + nic.Name})
		return
	}
	t.Cite("R12", "R14", "ethtool")
	for _, w := range wantedFeatures(t.Overlay.Value) {
		f, ok := nic.Features[w.name]
		what := nic.Name + " " + w.name
		switch {
		case !ok:
			t.Find(answer.Finding{Grade: answer.NoSuch, What: what, Wanted: "on", Cost: w.cost, Remedy: "this driver has no such feature"})
		case f.On:
			t.Find(answer.Finding{Grade: answer.OK, What: what, Now: "on"})
		case f.Fixed:
			t.Find(answer.Finding{Grade: answer.Advice, What: what, Now: "off, and fixed", Wanted: "on", Cost: w.cost, Remedy: "another NIC or driver"})
		default:
			t.Find(answer.Finding{Grade: answer.Change, What: what, Now: "off", Wanted: "on", Cost: w.cost, Remedy: "ethtool -K " + nic.Name + " " + w.name + " on"})
			t.Command("ethtool -K "+param.Quote(nic.Name)+" "+w.name+" on", w.cost)
		}
	}
	if f := nic.Features["large-receive-offload"]; f.On {
		t.Find(answer.Finding{Grade: answer.Change, What: nic.Name + " large-receive-offload", Now: "on", Wanted: "off", Cost: "packets that are joined for good cannot be forwarded to pods as they came", Remedy: "ethtool -K " + nic.Name + " large-receive-offload off"})
		t.Command("ethtool -K "+param.Quote(nic.Name)+" large-receive-offload off", "what is forwarded must not be joined")
	}
}

// queues wants as many queues as the NIC's NUMA node has CPUs, each with an interrupt on one of them.
func (t *networkTuner) queues(nic *Interface, cpus []int) {
	if len(cpus) == 0 {
		t.Find(answer.Finding{Grade: answer.Unseen, What: "NUMA node of " + nic.Name, Remedy: "/sys/class/net/" + nic.Name + "/device/numa_node"})
		return
	}
	t.Cite("R12", "R9")
	want, has := len(cpus), "the NIC's own number is unknown"
	if nic.MaxQueues > 0 {
		want, has = min(want, nic.MaxQueues), fmt.Sprintf("the NIC has %d", nic.MaxQueues)
	}
	t.Step("queues = CPUs of the NIC's NUMA node, at most what the NIC has", fmt.Sprintf("%d CPUs (%s), %s -> %d", len(cpus), compactCPUs(cpus), has, want), "R12")
	t.Figure("queues", int64(want), "", nic.Name)
	switch {
	case nic.RX == 0:
		t.Find(answer.Finding{Grade: answer.Unseen, What: "queues of " + nic.Name})
	case nic.RX < want:
		t.Find(answer.Finding{Grade: answer.Change, What: "queues of " + nic.Name, Now: fmt.Sprint(nic.RX), Wanted: fmt.Sprint(want), Cost: "fewer CPUs than there are handle packets", Remedy: fmt.Sprintf("ethtool -L %s combined %d", nic.Name, want)})
		t.Command(fmt.Sprintf("ethtool -L %s combined %d", param.Quote(nic.Name), want), "one queue for each CPU of the NUMA node")
	default:
		t.Find(answer.Finding{Grade: answer.OK, What: "queues of " + nic.Name, Now: fmt.Sprint(nic.RX), Wanted: fmt.Sprintf("at least %d", want)})
	}
	n := 0
	for _, irq := range t.Facts.Interrupts {
		if irq.Interface == nic.Name {
			t.Command(fmt.Sprintf("echo %d > /proc/irq/%s/smp_affinity_list", cpus[n%len(cpus)], irq.Number), "")
			n++
		}
	}
	t.Figure("interrupts", int64(n), "", "of "+nic.Name+", spread over the CPUs of its NUMA node")
	if n > 0 {
		t.Warn("irqbalance does this by itself on bare metal, and moves what was set by hand: let it, or stop it (R9)")
	}
	if others := slices.ContainsFunc(t.Facts.Interfaces, func(i Interface) bool { return i.Physical && i.Up && i.Name != nic.Name }); others {
		t.Warn("only %s, the fastest interface, was looked at", nic.Name)
	}
}
