package tune

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

func TestNetworkMTU(t *testing.T) {
	for _, tt := range []struct {
		overlay    string
		mtu        int64
		ipsec, six bool
		pod        int64
	}{
		{"geneve", 1500, false, false, 1400},
		{"geneve", 9000, false, false, 8900},
		{"geneve", 1500, true, false, 1354},
		{"vxlan", 1500, false, false, 1450},
		{"vxlan", 1500, false, true, 1430},
		{"ipip", 1500, false, false, 1480},
		{"wireguard", 1500, false, false, 1440},
		{"wireguard", 1500, false, true, 1420},
		{"none", 1500, false, false, 1500},
	} {
		p := host.Network{Overlay: param.Given(tt.overlay, "flag"), MTU: count(tt.mtu)}
		if tt.ipsec {
			p.IPsec = param.Given(true, "flag")
		}
		if tt.six {
			p.IPv6 = param.Given(true, "flag")
		}
		a, err := host.TuneNetwork(p)
		answered(t, a, err)
		wantResult(t, a, "podMTU", tt.pod)
		if tt.ipsec {
			if c := correction(t, a, "R17"); !strings.Contains(c.Right, "costs CPU") {
				t.Errorf("%+v", c)
			}
		}
		if tt.overlay == "geneve" {
			object := objectOf[struct {
				Default struct {
					Type string
					OVN  struct{ MTU int64 } `yaml:"ovnKubernetesConfig"`
				} `yaml:"defaultNetwork"`
			}](t, a, "cluster-network-03-config.yml")
			if object.Spec.Default.OVN.MTU != tt.pod {
				t.Errorf("%+v", object)
			}
		}
	}
	// Plain Ethernet carries 94.15% of TCP data at 1500 and 99.0% at 9000.
	for mtu, want := range map[int64]float64{1500: 941.5e6, 9000: 990.0e6} {
		a, err := host.TuneNetwork(host.Network{Overlay: param.Given("none", "flag"), MTU: count(mtu), Link: param.Given(param.Rate(1e9), "flag")})
		answered(t, a, err)
		if got := a.Result("goodput").(float64); got < want-0.1e6 || got > want+0.1e6 {
			t.Errorf("MTU %d: %v, want %v", mtu, got, want)
		}
	}
	a, err := host.TuneNetwork(host.Network{Link: param.Given(param.Rate(25e9), "flag")})
	answered(t, a, err)
	if f := finding(t, a, "MTU of the link"); f.Grade != answer.Change || !strings.Contains(f.Remedy, "8900 for pods") {
		t.Errorf("%+v", f)
	}
	if f := finding(t, a, "an overlay above 1 Gbit/s"); f.Grade != answer.Advice {
		t.Errorf("%+v", f)
	}
	if _, err := host.TuneNetwork(host.Network{MTU: count(600)}); err == nil {
		t.Error("an MTU that leaves nothing was taken")
	}
	// R13: 4096 networks against 2^24.
	for _, tt := range []struct {
		overlay  string
		networks int64
		grade    answer.Grade
	}{{"none", 5000, answer.Cannot}, {"vxlan", 5000, answer.OK}, {"vxlan", 1<<24 + 1, answer.Cannot}, {"none", 4094, answer.OK}} {
		a, err := host.TuneNetwork(host.Network{Overlay: param.Given(tt.overlay, "flag"), Networks: count(tt.networks)})
		answered(t, a, err)
		if f := finding(t, a, "networks"); f.Grade != tt.grade {
			t.Errorf("%+v: %+v", tt, f)
		}
	}
}

// What an overlay was measured to cost comes in the place of the advice to measure it.
func TestNetworkCostThatWasMeasured(t *testing.T) {
	x := func(v float64) *float64 { return &v }
	cost := func(path, verdict string) []host.PathCost {
		return []host.PathCost{{Path: path, MTU: 1500, At: "at 2000 requests/s", From: "record", Figures: []host.CostFigure{
			{Name: "CPU per 1000 requests", Change: x(0.321), Lo: x(0.25), Hi: x(0.4), Verdict: verdict}, {Name: "Response p50", Verdict: verdict},
		}}}
	}
	for _, tt := range []struct {
		why      string
		measured []host.PathCost
		ipsec    bool
		grade    answer.Grade
		warns    string
	}{
		{"worse", cost("vxlan", "worse"), false, answer.Advice, "over virtual links"},
		{"the same", cost("vxlan", "equivalent"), false, answer.OK, "over virtual links"},
		{"unknown", cost("vxlan", "inconclusive"), false, answer.Advice, "over virtual links"},
		{"IPsec beside the overlay", cost("ipsec", "worse"), true, answer.Advice, "over virtual links"},
		{"IPsec that is not asked for", cost("ipsec", "worse"), false, "", "no figures of VXLAN"},
		{"another overlay", cost("geneve", "worse"), false, "", "no figures of VXLAN"},
		{"nothing", nil, false, "", "to be measured"},
	} {
		p := host.Network{Overlay: param.Given("vxlan", "flag"), Measured: tt.measured}
		if tt.ipsec {
			p.IPsec = param.Given(true, "flag")
		}
		a, err := host.TuneNetwork(p)
		answered(t, a, err)
		at := slices.IndexFunc(a.Findings, func(f answer.Finding) bool { return strings.HasPrefix(f.What, "cost of ") })
		switch {
		case (at >= 0) != (tt.grade != ""):
			t.Errorf("%s: %+v", tt.why, a.Findings)
		case at >= 0 && (a.Findings[at].Grade != tt.grade || !strings.HasPrefix(a.Findings[at].Now, "CPU per 1000 requests +32.1% (+25.0 to +40.0%), ") || !strings.Contains(a.Findings[at].Now, "Response p50 is unknown")):
			t.Errorf("%s: %+v", tt.why, a.Findings[at])
		}
		if !strings.Contains(strings.Join(a.Warnings, "\n"), tt.warns) {
			t.Errorf("%s: %q", tt.why, a.Warnings)
		}
	}
}

const featuresText = `Features for eth1:
rx-checksumming: on
tx-checksumming: on
	tx-checksum-ipv4: off [fixed]
scatter-gather: on
tcp-segmentation-offload: off
generic-segmentation-offload: on
generic-receive-offload: on
large-receive-offload: on
tx-udp_tnl-segmentation: off [fixed]
rx-udp_tunnel-port-offload: on [requested off]
`

// Offloads, queues and interrupts of a node that was saved.
func TestNetworkOfANode(t *testing.T) {
	facts, err := host.ReadFacts(bundle(map[string]string{
		"proc/net/softnet_stat":                 softnetRow(0, 1, 0, 0),
		"sys/class/net/lo/operstate":            "unknown",
		"sys/class/net/eth1/operstate":          "up",
		"sys/class/net/eth1/speed":              "25000",
		"sys/class/net/eth1/mtu":                "1500",
		"sys/class/net/eth1/device/numa_node":   "1",
		"sys/class/net/eth1/queues/rx-0/x":      "",
		"sys/class/net/eth1/queues/rx-1/x":      "",
		"sys/class/net/eth1/queues/tx-0/x":      "",
		"sys/devices/system/node/node0/cpulist": "0-3\n",
		"sys/devices/system/node/node1/cpulist": "4-7\n",
		"ethtool/eth1.features":                 featuresText,
		"ethtool/eth1.channels":                 "Channel parameters for eth1:\nPre-set maximums:\nRX:\t\tn/a\nCombined:\t16\nCurrent hardware settings:\nCombined:\t63\n",
		"proc/interrupts":                       "           CPU0\n 40:  1  PCI-MSI  eth1-TxRx-0\n 41:  1  PCI-MSI  eth1-TxRx-1\n 42:  1  PCI-MSI  eth10-TxRx-1\nNMI:  0  Non-maskable interrupts\n",
	}), "bundle x")
	if err != nil {
		t.Fatal(err)
	}
	if len(facts.Interfaces) != 1 || facts.Interfaces[0].RX != 2 || facts.Interfaces[0].MaxQueues != 16 || facts.Interfaces[0].Speed != 25e9 || len(facts.Interrupts) != 2 {
		t.Fatalf("%+v", facts)
	}
	a, err := host.TuneNetwork(host.Network{Overlay: param.Given("vxlan", "flag"), Facts: &facts})
	answered(t, a, err)
	for what, grade := range map[string]answer.Grade{
		"rx-checksumming": answer.OK, "tcp-segmentation-offload": answer.Change, "tx-udp_tnl-segmentation": answer.Advice, "tx-udp_tnl-csum-segmentation": answer.NoSuch,
		"rx-udp_tunnel-port-offload": answer.OK, "large-receive-offload": answer.Change, "queues of eth1": answer.Change,
	} {
		if f := finding(t, a, what); f.Grade != grade {
			t.Errorf("%s: %+v", what, f)
		}
	}
	wantResult(t, a, "queues", int64(4)) // as many as the NUMA node has CPUs
	wantResult(t, a, "interrupts", int64(2))
	text := fileOf(t, a, "nic-tuning.sh")
	for _, part := range []string{"ethtool -K eth1 tcp-segmentation-offload on\n", "ethtool -K eth1 large-receive-offload off\n", "ethtool -L eth1 combined 4\n", "echo 4 > /proc/irq/40/smp_affinity_list\n", "echo 5 > /proc/irq/41/smp_affinity_list\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("the script lacks %q:\n%s", part, text)
		}
	}
	shellReads(t, text)
	if a.Result("podMTU") != int64(1450) {
		t.Errorf("the link's MTU was not read: %v", a.Result("podMTU"))
	}
}

func TestParseFeatures(t *testing.T) {
	f, err := host.ParseFeatures([]byte(featuresText))
	if err != nil || f["tx-udp_tnl-segmentation"] != (host.NICFeature{On: false, Fixed: true}) || f["rx-udp_tunnel-port-offload"] != (host.NICFeature{On: true, Fixed: false}) || f["tx-checksum-ipv4"] != (host.NICFeature{On: false, Fixed: true}) {
		t.Errorf("%v %+v", err, f)
	}
	for _, text := range []string{"", "hello", "Features for eth0:\n"} {
		if _, err := host.ParseFeatures([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	// What ethtool prints here is read, if there is one.
	ethtool, err := exec.LookPath("ethtool")
	if err != nil {
		t.Skip("ethtool is not here")
	}
	out, err := exec.Command(ethtool, "-k", "lo").Output()
	if err != nil {
		t.Skipf("ethtool -k lo: %v", err)
	}
	if f, err := host.ParseFeatures(out); err != nil || len(f) < 20 {
		t.Errorf("%d features, %v", len(f), err)
	}
}

func FuzzParseFeatures(f *testing.F) {
	f.Add([]byte(featuresText))
	f.Fuzz(func(t *testing.T, data []byte) {
		if features, err := host.ParseFeatures(data); err == nil && len(features) == 0 {
			t.Error("no features and no error")
		}
		if n := host.ParseChannels(data); n < 0 {
			t.Errorf("%d queues", n)
		}
	})
}
