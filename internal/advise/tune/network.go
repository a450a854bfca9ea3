package tune

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// overlays are the ways in which packets of pods go from node to node.
func overlays() []string { return []string{"geneve", "vxlan", "ipip", "wireguard", "none"} }

// Network are the parameters of the network between nodes.
type Network struct {
	Platform In[string]
	Overlay  In[string] // of overlays; geneve, as OVN-Kubernetes has it
	IPsec    In[bool]
	IPv6     In[bool] // the nodes' own addresses
	MTU      In[int64]
	Link     In[Rate]
	Networks In[int64] // that are to be kept apart
	// Facts are what was read of a node; nil where nothing was.
	Facts *HostFacts
}

// NICFeatures are the offloads of an interface as ethtool -k lists them.
type NICFeatures map[string]NICFeature

// NICFeature is one offload. Fixed ones cannot be switched.
type NICFeature struct{ On, Fixed bool }

// ParseFeatures reads what ethtool -k prints.
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

// ParseChannels reads the largest number of combined queues, or of receive
// queues, from what ethtool -l prints; 0 is not known.
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

// overhead is how many bytes of each packet an overlay takes.
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

// Params are the parameters as flags.
func (p *Network) Params() []Param {
	return []Param{
		platformParam(&p.Platform, In[string]{}),
		wordParam(&p.Overlay, "overlay", "how pods' packets go between nodes", overlays()...).by("geneve", "OVN-Kubernetes'"),
		boolParam(&p.IPsec, "ipsec", "encrypted between nodes by IPsec"),
		boolParam(&p.IPv6, "ipv6", "the nodes' own addresses are IPv6"),
		intParam(&p.MTU, "mtu", "MTU of the nodes' link").within(576, 65535).by(1500, "Ethernet's").per("B"),
		rateParam(&p.Link, "link", "speed of the nodes' link").by(10e9, "10 Gbit/s"),
		intParam(&p.Networks, "networks", "networks that are to be kept apart").within(1, 1<<40),
	}
}

// TuneNetwork computes the network between nodes (R12 to R14, R17).
func TuneNetwork(p Network) (*Answer, error) {
	var nic *HostInterface
	var cpus []int
	if p.Facts != nil {
		if nic, cpus = nicCPUs(p.Facts); nic != nil {
			p.MTU = p.MTU.orThat(readFrom(nic.MTU, "interface "+nic.Name))
			p.Link = p.Link.orThat(readFrom(nic.Speed, "interface "+nic.Name))
		}
	}
	asked := p.MTU.Ok() // else the installer computes it
	b, err := begin("network", p.Params())
	if err != nil {
		return nil, err
	}
	b.Title = fmt.Sprintf("Network of nodes: %s over a link of %s", overlayName(p), p.Link.Value)
	t := networkTuner{b, p}
	pod := t.mtu()
	if pod < 576 {
		return nil, badParam("mtu", "for example 1500", "%d leaves %d bytes for pods", p.MTU.Value, pod)
	}
	t.separate()
	t.beyondOneGigabit()
	if nic != nil {
		t.offloads(nic)
		t.queues(nic, cpus)
	} else {
		t.warn("offloads, queues and interrupts were not looked at: --live, or --bundle DIR of a node")
	}
	t.cite("R13")
	t.warn("what the overlay costs on these machines is not computed but to be measured, overlay and direct path side by side; offloads lower the CPU that it costs, not its latency (R14)")
	if len(t.Commands) > 0 {
		t.file("nic-tuning.sh", script("Offloads, queues and interrupts of "+nic.Name+", until the next start.", t.Commands), "sh, as root on the node")
	}
	if asked && p.Platform.Value == OpenShift && p.Overlay.Value == "geneve" {
		t.file("cluster-network-03-config.yml", manifest(object("operator.openshift.io/v1", "Network", mapping{{"name", "cluster"}},
			mapping{{"defaultNetwork", mapping{{"type", OVNKubernetes}, {"ovnKubernetesConfig", mapping{{"mtu", pod}}}}}}),
			"MTU of the pods' network: among the manifests, before the cluster is made."), "openshift-install: manifests/cluster-network-03-config.yml")
		t.warn("the MTU of the pods' network is chosen at installation; changing it later is a migration that reboots every node twice")
	}
	return &t.Answer, nil
}

// networkTuner makes the answer about the network between nodes.
type networkTuner struct {
	*builder
	Network
}

func overlayName(p Network) string {
	name := map[string]string{"geneve": "Geneve", "vxlan": "VXLAN", "ipip": "IP in IP", "wireguard": "WireGuard", "none": "native routing"}[p.Overlay.Value]
	if p.IPsec.Value {
		name += " with IPsec"
	}
	return name
}

// mtu is R12: what pods' packets may be long, and what headers cost.
func (t *networkTuner) mtu() int64 {
	n, parts := overhead(t.Overlay.Value, t.IPv6.Value, t.IPsec.Value)
	pod := t.MTU.Value - n
	sources := []string{"R12"}
	if t.Overlay.Value == "geneve" || t.IPsec.Value {
		sources = append(sources, "openshift-mtu")
	}
	t.step("MTU of pods = MTU of the link - overlay", fmt.Sprintf("%d - %d = %d (%s)", t.MTU.Value, n, pod, parts), sources...)
	t.result("podMTU", pod, "B", "longer packets are cut into two, or lost")
	t.result("overhead", n, "B/packet", "")
	share, packets := goodput(t.MTU.Value, pod, t.Link.Value)
	t.step("share of the link for data = (MTU of pods - 52 of TCP and IP) / (MTU of the link + 38 of Ethernet)", fmt.Sprintf("(%d - 52) / (%d + 38) = %.1f %%", pod, t.MTU.Value, 100*share), "R12")
	t.result("goodput", math.Round(share*float64(t.Link.Value)), "bit/s", fmt.Sprintf("TCP data at most, %.1f %% of the link", 100*share))
	t.result("packetsPerSecond", math.Round(packets), "packets/s", "at full speed: what CPUs have to handle without offloads")
	const jumbo = 9000
	if t.MTU.Value < jumbo && t.Link.Value > 1e9 {
		jShare, jPackets := goodput(jumbo, jumbo-n, t.Link.Value)
		t.find(Finding{Change, "MTU of the link", fmt.Sprint(t.MTU.Value), "9000 (jumbo frames), if every switch and node on the way has them", fmt.Sprintf("%.1f times the packets for the same data, %.1f %% of the link for data instead of %.1f %%", packets/jPackets*jShare/share, 100*share, 100*jShare),
			fmt.Sprintf("MTU 9000 on every node, %d for pods", jumbo-n)})
	}
	if t.IPsec.Value {
		t.cite("R17", "openshift-mtu")
		t.correct("R17", "IPsec will lead to increased throughput and CPU usage", "it costs CPU, and throughput with it: packets are encrypted before the NIC, which cannot offload what it cannot read", "")
		t.find(Finding{Grade: Advice, What: "IPsec", Wanted: "only where the network itself is not trusted", Cost: "CPU, throughput, and the NIC's offloads"})
	}
	return pod
}

// goodput is the share of a link that TCP's data has, and packets per second,
// at full speed. TCP and IP take 52 bytes with timestamps; Ethernet takes 38
// with preamble, checksum and gap.
func goodput(mtu, pod int64, link Rate) (share, packets float64) {
	wire := float64(mtu + 38)
	return float64(pod-52) / wire, float64(link) / 8 / wire
}

// separate is R13's other half: how many networks there can be.
func (t *networkTuner) separate() {
	if !t.Networks.Ok() {
		return
	}
	t.cite("R13")
	const vlans, vnis = 4094, 1 << 24 // two of the 4096 VLAN numbers are reserved
	t.step("VLAN numbers have 12 bits, VXLAN and Geneve's 24", fmt.Sprintf("2^12 = 4096, 2^24 = %s", grouped(int64(vnis))), "R13")
	switch {
	case t.Networks.Value > vnis:
		t.find(Finding{Cannot, "networks", grouped(t.Networks.Value), grouped(int64(vnis)), "there are no more numbers", "fewer networks, or several clusters"})
	case t.Networks.Value > vlans && (t.Overlay.Value == "none" || t.Overlay.Value == "ipip" || t.Overlay.Value == "wireguard"):
		t.find(Finding{Cannot, "networks by VLAN", grouped(t.Networks.Value), grouped(int64(vlans)), "there are no more VLAN numbers", "VXLAN or Geneve"})
	default:
		t.find(Finding{Grade: OK, What: "networks", Now: grouped(t.Networks.Value), Wanted: fmt.Sprintf("at most %s by VLAN, %s by VXLAN or Geneve", grouped(int64(vlans)), grouped(int64(vnis)))})
	}
}

// beyondOneGigabit is R14.
func (t *networkTuner) beyondOneGigabit() {
	if t.Link.Value <= 1e9 || t.Overlay.Value == "none" {
		return
	}
	t.cite("R14")
	t.find(Finding{Grade: Advice, What: "an overlay above 1 Gbit/s", Now: overlayName(t.Network), Wanted: "a NIC that offloads it, or native routing, or BGP", Cost: "CPU for checksums and segments of every packet; throughput where a CPU is full, the more the faster the link", Remedy: "measure both paths before deciding; native routing must be known to the routers"})
}

// wantedFeatures are offloads with what is lost without.
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

// offloads looks at a NIC's features.
func (t *networkTuner) offloads(nic *HostInterface) {
	if len(nic.Features) == 0 {
		t.find(Finding{Grade: Unseen, What: "offloads of " + nic.Name, Remedy: "ethtool -k " + nic.Name})
		return
	}
	t.cite("R12", "R14", "ethtool")
	for _, w := range wantedFeatures(t.Overlay.Value) {
		f, ok := nic.Features[w.name]
		what := nic.Name + " " + w.name
		switch {
		case !ok:
			t.find(Finding{Grade: NoSuch, What: what, Wanted: "on", Cost: w.cost, Remedy: "this driver has no such feature"})
		case f.On:
			t.find(Finding{Grade: OK, What: what, Now: "on"})
		case f.Fixed:
			t.find(Finding{Advice, what, "off, and fixed", "on", w.cost, "another NIC or driver"})
		default:
			t.find(Finding{Change, what, "off", "on", w.cost, "ethtool -K " + nic.Name + " " + w.name + " on"})
			t.command("ethtool -K "+word(nic.Name)+" "+w.name+" on", w.cost)
		}
	}
	if f := nic.Features["large-receive-offload"]; f.On {
		t.find(Finding{Change, nic.Name + " large-receive-offload", "on", "off", "packets that are joined for good cannot be forwarded to pods as they came", "ethtool -K " + nic.Name + " large-receive-offload off"})
		t.command("ethtool -K "+word(nic.Name)+" large-receive-offload off", "what is forwarded must not be joined")
	}
}

// queues are as many as CPUs of the NIC's NUMA node, each with an interrupt on
// one of them.
func (t *networkTuner) queues(nic *HostInterface, cpus []int) {
	if len(cpus) == 0 {
		t.find(Finding{Grade: Unseen, What: "NUMA node of " + nic.Name, Remedy: "/sys/class/net/" + nic.Name + "/device/numa_node"})
		return
	}
	t.cite("R12", "R9")
	want := len(cpus)
	if nic.MaxQueues > 0 {
		want = min(want, nic.MaxQueues)
	}
	t.step("queues = CPUs of the NIC's NUMA node, at most what the NIC has", fmt.Sprintf("%d CPUs (%s), %s -> %d", len(cpus), compactCPUs(cpus), orUnknownQueues(nic.MaxQueues), want), "R12")
	t.result("queues", int64(want), "", nic.Name)
	switch {
	case nic.RX == 0:
		t.find(Finding{Grade: Unseen, What: "queues of " + nic.Name})
	case nic.RX < want:
		t.find(Finding{Change, "queues of " + nic.Name, fmt.Sprint(nic.RX), fmt.Sprint(want), "fewer CPUs than there are handle packets", fmt.Sprintf("ethtool -L %s combined %d", nic.Name, want)})
		t.command(fmt.Sprintf("ethtool -L %s combined %d", word(nic.Name), want), "one queue for each CPU of the NUMA node")
	default:
		t.find(Finding{Grade: OK, What: "queues of " + nic.Name, Now: fmt.Sprint(nic.RX), Wanted: fmt.Sprintf("at least %d", want)})
	}
	n := 0
	for _, irq := range t.Facts.Interrupts {
		if irq.Interface == nic.Name {
			t.command(fmt.Sprintf("echo %d > /proc/irq/%s/smp_affinity_list", cpus[n%len(cpus)], irq.Number), "")
			n++
		}
	}
	t.result("interrupts", int64(n), "", "of "+nic.Name+", spread over the CPUs of its NUMA node")
	if n > 0 {
		t.warn("irqbalance does this by itself on bare metal, and moves what was set by hand: let it, or stop it (R9)")
	}
	if others := slices.ContainsFunc(t.Facts.Interfaces, func(i HostInterface) bool { return i.Physical && i.Up && i.Name != nic.Name }); others {
		t.warn("only %s, the fastest interface, was looked at", nic.Name)
	}
}

func orUnknownQueues(n int) string {
	if n == 0 {
		return "the NIC's own number is not known"
	}
	return fmt.Sprintf("the NIC has %d", n)
}
