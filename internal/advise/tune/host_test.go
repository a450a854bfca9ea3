package tune

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

func rttAndLink(rtt time.Duration, link param.Rate) host.Host {
	return host.Host{RTT: param.Given(rtt, "flag"), Link: param.Given(link, "flag")}
}

func TestHostBuffers(t *testing.T) {
	// V7, V8: 0.208 ms and 50000 Mbit/s give 10905190 and 4362076 by the
	// document; the bandwidth-delay product is 1300000 bytes.
	a, err := host.TuneHost(rttAndLink(208*time.Microsecond, 50e9))
	answered(t, a, err)
	for name, want := range map[string]int64{
		"bufferBytes": 1300000, "bufferBytesDocument": 10905190, "defaultBytes": 520000, "defaultBytesDocument": 4362076,
		"gcThresh1": 4096, "gcThresh2": 16384, "gcThresh3": 32768,
	} {
		wantResult(t, a, name, want)
	}
	if c := correction(t, a, "V7"); !strings.Contains(c.Effect, "10905190 instead of 1300000") || !strings.Contains(c.Effect, "8.39") {
		t.Errorf("%+v", c)
	}
	correction(t, a, "V8")
	correction(t, a, "V4")
	text := fileOf(t, a, "etc/sysctl.d/99.9-buffers.conf")
	for _, part := range []string{"\nnet.core.rmem_max = 4194304\n", "\nnet.core.wmem_max = 4194304\n", "\nnet.core.wmem_default = 520000\n", "net.ipv4.tcp_window_scaling = 1\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("the file lacks %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "10905190") {
		t.Error("the file has the source's mistake")
	}
	// A long fat network: 0.4 of 1.25 GB is for programs that ask for it, and not
	// for every socket.
	a, err = host.TuneHost(rttAndLink(100*time.Millisecond, 100e9))
	answered(t, a, err)
	wantResult(t, a, "defaultBytes", int64(500_000_000))
	if text := fileOf(t, a, "etc/sysctl.d/99.9-buffers.conf"); !strings.Contains(text, "wmem_default = 16777216\n") || !strings.Contains(text, "wmem_max = 1250000000\n") {
		t.Errorf("on a long fat network:\n%s", text)
	}
	if !strings.Contains(strings.Join(a.Warnings, " "), "wmem_default is written as 16 MiB and not as 476.84 MiB") {
		t.Errorf("the bound is not told of: %q", a.Warnings)
	}
	// V9: packets of 512 KiB.
	a, err = host.TuneHost(host.Host{Packet: param.Given(param.Bytes(512<<10), "flag")})
	answered(t, a, err)
	for name, want := range map[string]int64{"packetMinimumBytes": 1048576, "packetDefaultBytes": 2097152, "packetMaximumBytes": 5242880} {
		wantResult(t, a, name, want)
	}
	correction(t, a, "V9")
	if text := fileOf(t, a, "etc/sysctl.d/99.9-buffers.conf"); !strings.Contains(text, "rmem_max = 5242880") || !strings.Contains(text, "wmem_default = 2097152") {
		t.Errorf("%s", text)
	}
	// Decimal kilobytes differ from binary ones.
	a, err = host.TuneHost(host.Host{Packet: param.Given(param.Bytes(512_000), "flag")})
	answered(t, a, err)
	if !strings.Contains(strings.Join(a.Warnings, " "), "512Ki") {
		t.Errorf("%q", a.Warnings)
	}
	// What is more than an int of the kernel holds is clamped.
	a, err = host.TuneHost(rttAndLink(100*time.Millisecond, 100e9))
	answered(t, a, err)
	if text := fileOf(t, a, "etc/sysctl.d/99.9-buffers.conf"); !strings.Contains(text, "tcp_rmem = 4096 131072 2147483647") {
		t.Errorf("%s", text)
	}
	// Small products do not lower what any kernel has by default.
	a, err = host.TuneHost(rttAndLink(50*time.Microsecond, 1e9))
	answered(t, a, err)
	if text := fileOf(t, a, "etc/sysctl.d/99.9-buffers.conf"); !strings.Contains(text, "rmem_max = 4194304") || !strings.Contains(text, "131072 33554432") {
		t.Errorf("%s", text)
	}
	for why, p := range map[string]host.Host{
		"nothing":                {},
		"a packet of nothing":    {Packet: param.Given(param.Bytes(0), "flag")},
		"a round trip, no link":  {RTT: param.Given(time.Millisecond, "flag")},
		"a link, no round trip":  {Link: param.Given(param.Rate(1e9), "flag")},
		"a form of files":        {Neighbours: count(5), Formats: []string{"puppet"}},
		"a pool that is no word": {Neighbours: count(5), Pool: param.Given("a b", "flag")},
	} {
		if _, err := host.TuneHost(p); err == nil {
			t.Errorf("%s was taken", why)
		}
	}
}

// The document's samples, as it prints them: 13 columns, the last the CPU.
const (
	documentSqueezed = `01877e29 00000000 00000022 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 0000005d
0c4a6107 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 0000005e
01d05820 00000000 00000012 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 0000005f
092b933a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000060
`
	documentDropped = `04f88d2c 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
023a354d 00000000 00000018 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001
10df99e1 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000002
01ba2dec 00000000 00000011 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000003
`
)

func TestParseSoftnet(t *testing.T) {
	got, err := host.ParseSoftnet([]byte(documentSqueezed))
	want := []host.SoftnetCPU{{CPU: 93, Processed: 0x01877e29, Dropped: 0, Squeezed: 0x22}, {CPU: 94, Processed: 0x0c4a6107, Dropped: 0, Squeezed: 0}, {CPU: 95, Processed: 0x01d05820, Dropped: 0, Squeezed: 0x12}, {CPU: 96, Processed: 0x092b933a, Dropped: 0, Squeezed: 0}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
	// What the document takes for dropped packets is time_squeeze.
	got, err = host.ParseSoftnet([]byte(documentDropped))
	if err != nil || got[1] != (host.SoftnetCPU{CPU: 1, Processed: 0x023a354d, Dropped: 0, Squeezed: 0x18}) {
		t.Errorf("%v %v", got, err)
	}
	row := func(n int) string { return strings.TrimSpace(strings.Repeat("00000007 ", n)) }
	for _, n := range []int{9, 10, 11, 12} {
		got, err := host.ParseSoftnet([]byte(row(n) + "\n" + row(n) + "\n"))
		if err != nil || len(got) != 2 || got[0].CPU != 0 || got[1].CPU != 1 {
			t.Errorf("%d columns: %v %v", n, got, err)
		}
	}
	// Twice the same CPU: the column is not the CPU on that kernel.
	if got, err := host.ParseSoftnet([]byte(row(15) + "\n" + row(15))); err != nil || got[0].CPU != 0 || got[1].CPU != 1 {
		t.Errorf("15 columns: %v %v", got, err)
	}
	for why, text := range map[string]string{"empty": "", "few columns": "00000000 00000000", "not hexadecimal": strings.Replace(row(9), "7", "g", 1), "decimal": strings.Replace(row(9), "00000007", "7", 1), "another file": "eth0: 12 34"} {
		if got, err := host.ParseSoftnet([]byte(text)); err == nil {
			t.Errorf("%s was read as %v", why, got)
		}
	}
}

func FuzzParseSoftnet(f *testing.F) {
	f.Add([]byte(documentSqueezed), []byte(documentDropped))
	f.Add([]byte("ffffffff 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n"), []byte(""))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		a, err := host.ParseSoftnet(one)
		if err != nil {
			return
		}
		cpus := map[int]bool{}
		for _, c := range a {
			if cpus[c.CPU] {
				t.Errorf("CPU %d twice", c.CPU)
			}
			cpus[c.CPU] = true
		}
		if same, err := host.GrowSoftnet(a, a); err != nil || slices.ContainsFunc(same, func(g host.SoftnetCPU) bool { return g.Processed+g.Dropped+g.Squeezed != 0 }) {
			t.Errorf("a reading differs from itself: %v %v", same, err)
		}
		if b, err := host.ParseSoftnet(two); err == nil {
			_, _ = host.GrowSoftnet(a, b)
		}
	})
}

func TestGrowSoftnet(t *testing.T) {
	// 32 bits wrap around.
	got, err := host.GrowSoftnet([]host.SoftnetCPU{{CPU: 0, Processed: 0xfffffff0, Dropped: 5, Squeezed: 0xffffffff}}, []host.SoftnetCPU{{CPU: 0, Processed: 0x10, Dropped: 5, Squeezed: 1}, {CPU: 1, Processed: 7, Dropped: 7, Squeezed: 7}})
	if err != nil || len(got) != 1 || got[0] != (host.SoftnetCPU{CPU: 0, Processed: 0x20, Dropped: 0, Squeezed: 2}) {
		t.Errorf("%v %v", got, err)
	}
	if _, err := host.GrowSoftnet([]host.SoftnetCPU{{CPU: 0, Processed: 100, Dropped: 0, Squeezed: 50}}, []host.SoftnetCPU{{CPU: 0, Processed: 90, Dropped: 0, Squeezed: 0}}); err == nil || !strings.Contains(err.Error(), "went back") {
		t.Errorf("counters that went back: %v", err)
	}
	if _, err := host.GrowSoftnet([]host.SoftnetCPU{{CPU: 0, Processed: 1, Dropped: 0, Squeezed: 0}}, []host.SoftnetCPU{{CPU: 1, Processed: 1, Dropped: 0, Squeezed: 0}}); err == nil {
		t.Error("no CPU in common")
	}
}

// softnetRow is one row of softnet_stat as Linux 5.10 writes it.
func softnetRow(cpu, processed, dropped, squeezed int) string {
	fields := make([]string, 13)
	for i := range fields {
		fields[i] = "00000000"
	}
	for i, v := range map[int]int{0: processed, 1: dropped, 2: squeezed, 12: cpu} {
		fields[i] = fmt.Sprintf("%08x", v)
	}
	return strings.Join(fields, " ") + "\n"
}

func bundle(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// Two readings name the CPU that squeezed and the setting to raise.
func TestHostFromABundle(t *testing.T) {
	before, after := "", ""
	for cpu := range 4 {
		before += softnetRow(cpu, 1000, 0, 3)
		squeezed, dropped := 3, 0
		if cpu == 2 {
			squeezed, dropped = 3+57, 9
		}
		after += softnetRow(cpu, 2000+cpu, dropped, squeezed)
	}
	files := map[string]string{
		"proc/net/softnet_stat.0": before, "proc/net/softnet_stat.1": after, "interval": "10s\n",
		"proc/sys/net/core/netdev_budget": "300\n", "proc/sys/net/core/netdev_budget_usecs": "8000\n", "proc/sys/net/core/netdev_max_backlog": "1000\n",
		"proc/sys/net/ipv4/neigh/default/gc_thresh1": "8192\n", "proc/sys/net/ipv4/neigh/default/gc_thresh2": "512\n", "proc/sys/net/ipv4/neigh/default/gc_thresh3": "1024\n",
		"proc/sys/net/ipv4/tcp_window_scaling": "0\n", "proc/sys/fs/file-nr": "900\t0\t1000\n",
		"proc/sys/net/ipv4/conf/all/arp_filter": "0\n", "proc/sys/net/ipv4/conf/all/arp_ignore": "0\n", "proc/sys/net/ipv4/conf/all/arp_announce": "2\n",
		"proc/net/route": "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\neth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\neth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\neth1 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n",
	}
	facts, err := host.ReadFacts(bundle(files), "bundle x")
	if err != nil {
		t.Fatal(err)
	}
	if facts.Interval != 10*time.Second || len(facts.Softnet) != 2 || len(facts.SharedSubnets) != 1 || facts.SharedSubnets[0].Range != netip.MustParsePrefix("192.0.2.0/24") {
		t.Fatalf("%+v", facts)
	}
	a, err := host.TuneHost(host.Host{Facts: &facts})
	answered(t, a, err)
	f := finding(t, a, "CPU 2: time_squeeze")
	if f.Grade != answer.Change || !strings.Contains(f.Now, "+57 in 10s (5.7/s)") || !strings.Contains(f.Remedy, "net.core.netdev_budget to 450") {
		t.Errorf("%+v", f)
	}
	if f := finding(t, a, "CPU 2: dropped"); f.Grade != answer.Change || !strings.Contains(f.Remedy, "netdev_max_backlog to 1500") {
		t.Errorf("%+v", f)
	}
	for _, f := range a.Findings {
		if strings.HasPrefix(f.What, "CPU ") && !strings.HasPrefix(f.What, "CPU 2") {
			t.Errorf("a CPU that did nothing wrong: %+v", f)
		}
	}
	wantResult(t, a, "netdevBudget", int64(450))
	wantResult(t, a, "netdevBudgetUsecs", int64(12000))
	wantResult(t, a, "netdevMaxBacklog", int64(1500))
	text := fileOf(t, a, "etc/sysctl.d/"+"99.9-receive.conf")
	if !strings.Contains(text, "net.core.netdev_budget = 450\n") || !strings.Contains(text, "net.core.netdev_max_backlog = 1500\n") {
		t.Errorf("%s", text)
	}
	correction(t, a, "V11")
	// What is larger already stays.
	if text := fileOf(t, a, "etc/sysctl.d/"+"99.7-arpcachesize.conf"); !strings.Contains(text, "gc_thresh1 = 8192\n") || !strings.Contains(text, "gc_thresh2 = 16384\n") {
		t.Errorf("%s", text)
	}
	// ARP flux is read from the routes, and a stricter arp_announce stays.
	if text := fileOf(t, a, "etc/sysctl.d/"+"99.8-arp.conf"); !strings.Contains(text, "arp_filter = 1\n") || !strings.Contains(text, "arp_announce = 2\n") {
		t.Errorf("%s", text)
	}
	if f := finding(t, a, "eth0 and eth1"); f.Grade != answer.Change {
		t.Errorf("%+v", f)
	}
	if f := finding(t, a, "tcp_window_scaling"); f.Grade != answer.Change || !strings.Contains(f.Cost, "524 Mbit/s") {
		t.Errorf("%+v", f)
	}
	if f := finding(t, a, "open files of the host"); f.Grade != answer.Change || !strings.Contains(f.Now, "90%") {
		t.Errorf("%+v", f)
	}
}

func TestHostReadings(t *testing.T) {
	quiet := softnetRow(0, 5, 0, 0) + softnetRow(1, 5, 0, 0)
	for _, tt := range []struct {
		why   string
		files map[string]string
		what  string
		grade answer.Grade
		read  string // part of the error of reading
		err   string // part of the error of answering
	}{
		{"no growth", map[string]string{"proc/net/softnet_stat.0": quiet, "proc/net/softnet_stat.1": quiet}, "ran out of its budget", answer.OK, "", ""},
		{"the plain name is the first of two", map[string]string{"proc/net/softnet_stat": quiet, "proc/net/softnet_stat.1": quiet}, "ran out of its budget", answer.OK, "", ""},
		{"saved by hand at the top", map[string]string{"softnet_stat.0": quiet, "softnet_stat.1": quiet, "time": "60"}, "ran out of its budget", answer.OK, "", ""},
		{"one reading tells of the past only", map[string]string{"proc/net/softnet_stat": softnetRow(7, 5, 1, 0)}, "dropped since the host was started, on CPU 7", answer.Unseen, "", ""},
		{"one quiet reading", map[string]string{"proc/net/softnet_stat": quiet}, "no CPU squeezed", answer.OK, "", ""},
		{"the wrong way round", map[string]string{"proc/net/softnet_stat.0": softnetRow(0, 50, 0, 9), "proc/net/softnet_stat.1": softnetRow(0, 5, 0, 0)}, "", "", "", "went back"},
		{"not such a file", map[string]string{"proc/net/softnet_stat": "hello\n"}, "", "", "softnet_stat: line 1", ""},
		{"no such interval", map[string]string{"proc/net/softnet_stat": quiet, "interval": "soon"}, "", "", "interval", ""},
		{"seconds without a unit", map[string]string{"proc/net/softnet_stat": quiet, "interval": "10\n"}, "no CPU squeezed", answer.OK, "", ""},
		{"an empty directory", map[string]string{"hello": ""}, "", "", "neither", ""},
		{"a setting that does not exist there", map[string]string{"proc/sys/net/core/rmem_max": "1", "proc/sys/kernel/osrelease": "6.1"}, "tcp_window_scaling", answer.NoSuch, "", ""},
		{"a setting that was not saved", map[string]string{"proc/sys/net/core/rmem_max": "1"}, "tcp_window_scaling", answer.Unseen, "", ""},
		{"routes that were not saved", map[string]string{"softnet_stat.0": quiet, "softnet_stat.1": quiet}, "interfaces on one subnet", answer.Unseen, "", ""},
		{"a value that is not a number", map[string]string{"proc/sys/net/ipv4/tcp_window_scaling": "yes"}, "tcp_window_scaling", answer.Unseen, "", ""},
		{"one CPU takes nearly everything", map[string]string{
			"proc/net/softnet_stat.0": softnetRow(0, 0, 0, 0) + softnetRow(1, 0, 0, 0) + softnetRow(2, 0, 0, 0) + softnetRow(3, 0, 0, 0),
			"proc/net/softnet_stat.1": softnetRow(0, 9, 0, 0) + softnetRow(1, 9, 0, 0) + softnetRow(2, 9999, 0, 0) + softnetRow(3, 9, 0, 0),
		}, "CPU 2: share of all packets", answer.Advice, "", ""},
	} {
		facts, err := host.ReadFacts(bundle(tt.files), "bundle x")
		if tt.read != "" || err != nil {
			if err == nil || tt.read == "" || !strings.Contains(err.Error(), tt.read) {
				t.Errorf("%s: %v", tt.why, err)
			}
			continue
		}
		a, err := host.TuneHost(host.Host{Facts: &facts})
		if tt.err != "" || err != nil {
			if err == nil || tt.err == "" || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", tt.why, err)
			}
			continue
		}
		if f := finding(t, answered(t, a, nil), tt.what); f.Grade != tt.grade {
			t.Errorf("%s: %+v", tt.why, f)
		}
	}
}

// Two readings alone name the CPU and the setting, and the setting is written:
// that nothing else was saved is not that there is nothing else. The readings
// are the document's sample (V10), and what it was a while later.
func TestHostFromTwoReadingsAlone(t *testing.T) {
	row := func(head, cpu string) string { return head + strings.Repeat(" 00000000", 9) + " " + cpu + "\n" }
	facts, err := host.ReadFacts(bundle(map[string]string{
		"softnet_stat.0": row("01877e29 00000000 00000022", "0000005d") + row("0c4a6107 00000000 00000000", "0000005e") + row("01d05820 00000000 00000012", "0000005f") + row("092b933a 00000000 00000000", "00000060"),
		"softnet_stat.1": row("01877f29 00000000 00000022", "0000005d") + row("0c4a6207 00000000 00000000", "0000005e") + row("01d05920 00000003 00000412", "0000005f") + row("092b943a 00000000 00000000", "00000060"),
		"interval":       "60",
	}), "bundle x")
	if err != nil {
		t.Fatal(err)
	}
	a, err := host.TuneHost(host.Host{Facts: &facts})
	answered(t, a, err)
	for what, want := range map[string]string{"CPU 95: time_squeeze": "raise net.core.netdev_budget to 450", "CPU 95: dropped": "raise net.core.netdev_max_backlog to 1500"} {
		if f := finding(t, a, what); f.Grade != answer.Change || f.Remedy != want {
			t.Errorf("%+v", f)
		}
	}
	for _, f := range a.Findings {
		if f.Grade == answer.NoSuch || strings.Contains(f.What, "no ARP flux") {
			t.Errorf("nothing was read of it: %+v", f)
		}
	}
	if text := fileOf(t, a, "etc/sysctl.d/"+"99.9-receive.conf"); !strings.Contains(text, "net.core.netdev_budget = 450\n") || !strings.Contains(text, "net.core.netdev_max_backlog = 1500\n") {
		t.Errorf("%s", text)
	}
}

func TestHostOfPods(t *testing.T) {
	a, err := host.TuneHost(host.Host{Pods: count(500), Connections: count(600_000), Outgoing: count(40_000)})
	answered(t, a, err)
	text := fileOf(t, a, "etc/sysctl.d/"+"99.9-node.conf")
	for _, part := range []string{"net.netfilter.nf_conntrack_max = 1048576\n", "net.netfilter.nf_conntrack_buckets = 1048576\n", "net.ipv4.ip_local_reserved_ports = 30000-32767\n", "kernel.pid_max = 4194304\n", "fs.inotify.max_user_instances = 8192\n", "ip_local_port_range = 1024 65535\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("the file lacks %q:\n%s", part, text)
		}
	}
	// Without the host's own values, what it has by its memory stays.
	for _, name := range []string{"fs.file-max", "kernel.threads-max", "fs.nr_open"} {
		if strings.Contains(text, name) {
			t.Errorf("%s is written:\n%s", name, text)
		}
	}
	if a.Impossible() {
		t.Errorf("%+v", a.Findings)
	}
	a, err = host.TuneHost(host.Host{Pods: count(2500), Outgoing: count(65_000)})
	answered(t, a, err)
	if f := finding(t, a, "outgoing connections"); f.Grade != answer.Cannot {
		t.Errorf("%+v", f)
	}
	if f := finding(t, a, "PIDs of all pods"); !strings.Contains(f.Remedy, "podPidsLimit 1664") {
		t.Errorf("%+v", f)
	}
}

func TestARPCacheForNeighbours(t *testing.T) {
	for neighbours, want := range map[int64]int64{1: 4096, 4096: 4096, 4097: 8192, 100_000: 131072} {
		a, err := host.TuneHost(host.Host{Neighbours: count(neighbours)})
		answered(t, a, err)
		wantResult(t, a, "gcThresh1", want)
		wantResult(t, a, "gcThresh3", 8*want)
	}
}

// The forms say the same, and their consumers can read them.
func TestHostFiles(t *testing.T) {
	p := rttAndLink(208*time.Microsecond, 50e9)
	p.ARPFlux = param.Given(true, "flag")
	p.Pods = count(500)
	p.Formats = host.HostFormats()
	a, err := host.TuneHost(p)
	answered(t, a, err)
	values := map[string]string{}
	plain := map[string]string{}
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Path, "etc/sysctl.d/"); ok {
			plain["/etc/sysctl.d/"+name] = f.Content
			for _, line := range strings.Split(f.Content, "\n") {
				if key, value, ok := strings.Cut(line, " = "); ok && !strings.HasPrefix(line, "#") {
					values[key] = value
				} else if line != "" && !strings.HasPrefix(line, "#") {
					t.Errorf("%s: a line that sysctl does not understand: %q", f.Path, line)
				}
			}
		}
	}
	if len(values) < 15 || len(plain) != 4 {
		t.Errorf("%d values in %d files", len(values), len(plain))
	}
	// V33: version 3, and none of version 2's fields.
	config := objectOf[struct {
		Config struct {
			Ignition struct{ Version string }
			Storage  struct {
				Files []struct {
					Path      string
					Mode      int
					Overwrite bool
					Contents  struct{ Source string }
				}
			}
		}
	}](t, a, "machineconfig-worker-sysctl.yaml")
	text := fileOf(t, a, "machineconfig-worker-sysctl.yaml")
	if config.Spec.Config.Ignition.Version[:2] != "3." || strings.Contains(text, "filesystem") || strings.Contains(text, "networkd") {
		t.Errorf("%s", text)
	}
	if config.Metadata.Labels["machineconfiguration.openshift.io/role"] != "worker" {
		t.Errorf("%+v", config.Metadata)
	}
	for _, f := range config.Spec.Config.Storage.Files {
		data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(f.Contents.Source, "data:text/plain;charset=utf-8;base64,"))
		if err != nil || string(data) != plain[f.Path] || f.Mode != 420 {
			t.Errorf("%s: %v, mode %d", f.Path, err, f.Mode)
		}
		delete(plain, f.Path)
	}
	if len(plain) > 0 {
		t.Errorf("not in the MachineConfig: %v", plain)
	}
	tuned := objectOf[struct {
		Profile   []struct{ Name, Data string }
		Recommend []struct {
			Match    []struct{ Label string }
			Priority int
			Profile  string
		}
	}](t, a, "tuned-worker.yaml")
	var plays []struct {
		Name, Hosts string
		Become      bool
		Tasks       []struct {
			Name   string
			Sysctl struct {
				Name, Value, State string
				File               string `yaml:"sysctl_file"`
				Reload             bool
			} `yaml:"ansible.posix.sysctl"`
		}
	}
	if err := yaml.UnmarshalWithOptions([]byte(fileOf(t, a, "ansible-sysctl.yaml")), &plays, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	tasks := map[string]string{}
	for _, task := range plays[0].Tasks {
		tasks[task.Sysctl.Name] = task.Sysctl.Value
	}
	for key, value := range values {
		// With > tuned only ever raises a number.
		if data := tuned.Spec.Profile[0].Data; !strings.Contains(data, "\n"+key+"="+value+"\n") && !strings.Contains(data, "\n"+key+"=>"+value+"\n") {
			t.Errorf("the Tuned object lacks %s=%s", key, value)
		}
		if tasks[key] != value {
			t.Errorf("the Ansible play sets %s to %q, want %q", key, tasks[key], value)
		}
	}
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import yaml").Run() != nil {
		t.Log("PyYAML is not here: another reader of YAML is left out")
		return
	}
	for _, f := range a.Files {
		if strings.HasSuffix(f.Path, ".yaml") {
			cmd := exec.Command(python, "-c", "import sys, yaml; assert yaml.safe_load(sys.stdin)")
			cmd.Stdin = strings.NewReader(f.Content)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v %s", f.Path, err, out)
			}
		}
	}
}

// Every name that is ever written exists on the kernel that runs the tests, or
// it is known why not; and sysctl reads the files.
func TestSysctlsExistHere(t *testing.T) {
	const first = "/proc/sys/net/core/netdev_budget" // only the first network namespace has it
	if _, err := os.Stat(first); err != nil {
		t.Skipf("this is not the network namespace of a Linux host: %v", err)
	}
	for _, name := range host.SysctlNames() {
		if _, err := os.Stat("/" + host.SysctlPath(name)); err != nil {
			switch {
			case strings.HasPrefix(name, "net.netfilter."):
				t.Logf("%s: nf_conntrack is not loaded here", name)
			default:
				t.Errorf("%s does not exist on this kernel: %v", name, err)
			}
		}
	}
	sysctl, err := exec.LookPath("sysctl")
	if err != nil {
		if sysctl, err = exec.LookPath("/usr/sbin/sysctl"); err != nil {
			t.Skip("there is no sysctl here")
		}
	}
	if exec.Command(sysctl, "--dry-run", "-p", "/dev/null").Run() != nil {
		t.Skip("this sysctl has no --dry-run")
	}
	p := rttAndLink(208*time.Microsecond, 50e9)
	p.ARPFlux, p.Pods, p.Outgoing = param.Given(true, "flag"), count(500), count(40_000)
	a, err := host.TuneHost(p)
	answered(t, a, err)
	for _, f := range a.Files {
		path := filepath.Join(t.TempDir(), "x.conf")
		if err := os.WriteFile(path, []byte(f.Content), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(sysctl, "--dry-run", "-p", path).CombinedOutput()
		if err != nil || strings.Contains(string(out), "cannot stat") || strings.Contains(string(out), "#") {
			t.Errorf("sysctl --dry-run -p %s: %v\n%s", f.Path, err, out)
		}
	}
}

// The kernel takes the values: those that belong to a network namespace are
// written in one of their own, so that nothing of this host is changed.
func TestTheKernelTakesTheValues(t *testing.T) {
	if err := exec.Command("unshare", "-n", "true").Run(); err != nil {
		t.Skipf("no network namespace can be made here: %v", err)
	}
	p := rttAndLink(20*time.Millisecond, 50e9)
	p.ARPFlux, p.Outgoing = param.Given(true, "flag"), count(40_000)
	a, err := host.TuneHost(p)
	answered(t, a, err)
	written := 0
	for _, f := range a.Files {
		for _, line := range strings.Split(f.Content, "\n") {
			name, value, ok := strings.Cut(line, " = ")
			if !ok || strings.HasPrefix(line, "#") || !strings.HasPrefix(name, "net.ipv4.conf.") && !strings.HasPrefix(name, "net.ipv4.tcp_") && name != "net.ipv4.ip_local_port_range" {
				continue
			}
			out, err := exec.Command("unshare", "-n", "sh", "-c", `echo "$1" > "/$0" && cat "/$0"`, host.SysctlPath(name), value).CombinedOutput()
			if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != value {
				t.Errorf("%s = %s: %v, the kernel has %q", name, value, err, got)
			}
			written++
		}
	}
	if written < 7 {
		t.Errorf("only %d values were tried", written)
	}
}

// A shell on a node writes the bundle that is read.
func TestCollectScript(t *testing.T) {
	shellReads(t, host.CollectScript())
	tar, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("there is no tar here")
	}
	if _, err := os.Stat("/" + "proc/net/softnet_stat"); err != nil {
		t.Skip("there is no /" + "proc/net/softnet_stat" + " here")
	}
	collect := exec.Command("sh", "-s", "0.1")
	collect.Stdin = strings.NewReader(host.CollectScript())
	var archive, stderr bytes.Buffer
	collect.Stdout, collect.Stderr = &archive, &stderr
	if err := collect.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v %s", err, stderr.String())
	}
	// As one file, compressed or not, and unpacked it is the same host.
	whole := archive.Bytes()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(whole); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	var packed []host.Facts
	for _, data := range [][]byte{whole, zipped.Bytes()} {
		root, err := host.OpenBundle(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		facts, err := host.ReadFacts(root, "bundle")
		if err != nil {
			t.Fatal(err)
		}
		packed = append(packed, facts)
		if _, err := host.OpenBundle(bytes.NewReader(data[:len(data)/2])); err == nil {
			t.Error("half an archive was read")
		}
	}
	dir := t.TempDir()
	unpack := exec.Command(tar, "-C", dir, "-xf", "-")
	unpack.Stdin = &archive
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	saved, err := host.ReadFacts(os.DirFS(dir), "bundle")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packed {
		if !reflect.DeepEqual(p, saved) {
			t.Errorf("packed %+v\nunpacked %+v", p, saved)
		}
	}
	live, err := host.ReadFacts(os.DirFS("/"), "this host")
	if err != nil {
		t.Fatal(err)
	}
	if len(saved.Softnet) != 2 || saved.Interval != 100*time.Millisecond {
		t.Errorf("%d readings, %v apart", len(saved.Softnet), saved.Interval)
	}
	// Counts of use change while one looks.
	for _, name := range []string{"fs.file-nr", "net.netfilter.nf_conntrack_count"} {
		delete(saved.Sysctls, name)
		delete(live.Sysctls, name)
	}
	for name, want := range live.Sysctls {
		if saved.Sysctls[name] != want {
			t.Errorf("%s: %q was saved, want %q", name, saved.Sysctls[name], want)
		}
	}
	for i := range saved.Interfaces { // which are read live by running ethtool
		if _, err := exec.LookPath("ethtool"); err == nil && saved.Interfaces[i].Physical && len(saved.Interfaces[i].Features) == 0 {
			t.Errorf("no features of %s were saved", saved.Interfaces[i].Name)
		}
		saved.Interfaces[i].Features, saved.Interfaces[i].MaxQueues = nil, 0
	}
	if !reflect.DeepEqual(saved.Interfaces, live.Interfaces) || len(saved.NUMA) != len(live.NUMA) {
		t.Errorf("saved %+v, live %+v", saved, live)
	}
}

func FuzzOpenBundle(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range map[string]string{"./proc/net/softnet_stat.0": strings.Repeat("00000001 ", 13) + "\n", "../../etc/passwd": "x", "interval": "10s\n"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			f.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := host.OpenBundle(bytes.NewReader(data))
		if err != nil {
			return
		}
		_, _ = host.ReadFacts(root, "bundle")
	})
}
