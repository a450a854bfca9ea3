package network

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(suite.Run(m, os.Stderr)) }

// program is the built program, where paths can be built.
func program(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Able(t, errors.New("root alone may make network namespaces"))
	}
	return suite.Binary(t)
}

// built is a path that is taken away with the test. Where this kernel lacks it the test
// ends, once it has seen that what is missing is named.
func built(t testing.TB, s settings) *network {
	t.Helper()
	return builtBy(t, program(t), s)
}

func builtBy(t testing.TB, executable string, s settings) *network {
	t.Helper()
	tied := proc.NewTie()
	t.Cleanup(tied.Close)
	dir, err := os.MkdirTemp("", "plimsoll-network-") // where programs without rights may go
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	n, err := build(tied, system.Host{Executable: executable, Now: time.Now}, dir, s)
	if lacks := new(system.UnableError); errors.As(err, &lacks) {
		config := string(kernelConfig())
		missing := new(proc.MissingError)
		if !errors.As(err, &missing) && (!strings.Contains(err.Error(), "this kernel has no "+s.kind.needs) || config != "" && strings.Contains(config, "\n"+s.kind.needs+"=")) {
			t.Fatalf("%s: %v", s.kind.needs, err)
		}
		harness.Able(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	return n
}

// An interface that goes in the middle of a hold breaks the path, and the result says so.
func TestAPathThatBreaksIsReported(t *testing.T) {
	t.Parallel()
	n := built(t, settings{kind: kindNamed("vxlan"), mtu: 1500, queues: 1})
	if what := n.broken(); what != "" {
		t.Fatalf("a path that is whole: %s", what)
	}
	link, err := n.links[n.server].LinkByName(tunnelName)
	if err == nil {
		err = n.links[n.server].LinkSetDown(link)
	}
	if err != nil {
		t.Fatal(err)
	}
	if what := n.broken(); what != "tunnel0 of the server is gone or down" {
		t.Errorf("a tunnel that was set down: %q", what)
	}
}

// Packets that are lost on the way are sent again by TCP, and counted.
func TestLossIsCounted(t *testing.T) {
	t.Parallel()
	n := built(t, settings{kind: kindNamed("routed"), mtu: 1500, queues: 1, offloads: map[string]bool{"gso": false, "tso": false}})
	if _, err := exec.LookPath("nft"); err != nil {
		harness.Able(t, errors.New("there is no nft (Debian package nftables)"))
	}
	carry := func() (again float64) {
		if _, err := machine.Throughput(n.server, netip.MustParseAddr("198.51.100.1"), n.client, 500*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		again, _ = n.lost()
		return again
	}
	before := carry()
	n.loss = 0.02
	if err := n.lose(); err != nil {
		t.Skipf("this kernel drops no packets at random: %v", err)
	}
	// How much is carried in that time is the machine's doing, and that of losses in a row.
	harness.Await(t, "20 segments to be sent again", func() bool { return carry()-before >= 20 })
}

// A tunnel's MTU leaves room for its headers.
func TestInnerMTU(t *testing.T) {
	for name, want := range map[string]int{"direct": 1500, "vxlan": 1450, "geneve": 1450, "gre": 1476, "ipip": 1480} {
		if got := (settings{kind: kindNamed(name), mtu: 1500}).inner(); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// What a path adds to each packet is what its headers have, to the byte. Packets are
// sent one at a time, so that none crosses with others as one. The path leaves them as
// much of a link's MTU as it says: what does not fit is refused when it is built.
func TestHeadersOfPaths(t *testing.T) {
	t.Parallel()
	const ethernet, datagram = 14, 20 + 8
	for _, tt := range []struct {
		path, cipher string
		mtu, more    int
		carried      int // more in user space
		long         bool
	}{
		{path: "direct", mtu: 1500},
		{path: "bridge", mtu: 1500},
		{path: "routed", mtu: 1500},
		{path: "vxlan", mtu: 9000, more: 14 + 8 + 8 + 20},
		{path: "geneve", mtu: 1500, more: 14 + 8 + 8 + 20},
		{path: "gre", mtu: 1500, more: 4 + 20},
		{path: "ipip", mtu: 1500, more: 20},
		{path: "wireguard", mtu: 1500, more: 16 + 16 + 8 + 20}, // 1440 is a multiple of 16: it is not filled up
		// In user space it goes in UDP, through an outer packet, and two bytes fill it up.
		{path: "ipsec", cipher: cipherGCM, mtu: 1500, more: 8 + 8 + 2 + 16, carried: 20 + 8 + 2, long: true},
		{path: "ipsec", cipher: cipherNull, mtu: 1500, more: 8 + 2},
		{path: "ovs", mtu: 1500, long: true},
	} {
		t.Run(tt.path+tt.cipher, func(t *testing.T) {
			t.Parallel()
			if tt.long {
				suite.Long(t, "programs of each side take their time to start")
			}
			s := settings{kind: kindNamed(tt.path), mtu: tt.mtu, queues: 1, cipher: tt.cipher, clientCPUs: []int{0}, serverCPUs: []int{0}}
			if tt.path == "ipsec" {
				s.kind.takes = ipsecTakes(tt.mtu, tt.cipher)
			}
			n := built(t, s)
			link := func() (bytes, count uint64) {
				l, err := n.links[n.client].LinkByName(linkName)
				if err != nil {
					t.Fatal(err)
				}
				return l.Attrs().Statistics.TxBytes, l.Attrs().Statistics.TxPackets
			}
			const times = 50
			bytes, count := link()
			if err := n.send(n.inner()-datagram, times, probeBound); err != nil {
				t.Fatal(err)
			}
			bytesAfter, countAfter := link()
			want := ethernet + tt.more + n.inner()
			if n.carried != "" {
				want += tt.carried
			}
			// Beside them cross questions for a neighbour, and messages of the programs that keep a tunnel.
			const others, largest = 2, 300
			more, sent := countAfter-count, bytesAfter-bytes
			if more < times || more > times+others || sent < uint64(times*want) || sent-uint64(times*want) > (more-times)*largest {
				t.Errorf("%d packets of %d bytes had %d bytes on the link in %d packets, want %d each", times, n.inner(), sent, more, want)
			}
		})
	}
}

// Programs without rights run wherever plimsoll lies.
func TestAProgramWhereItsUserCannotGo(t *testing.T) {
	t.Parallel()
	suite.Long(t, "the program is copied")
	file := filepath.Join(t.TempDir(), "plimsoll")
	text, err := os.ReadFile(program(t))
	if err == nil {
		err = os.WriteFile(file, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	builtBy(t, file, settings{kind: kindNamed("wireguard"), mtu: 1500, queues: 1, clientCPUs: []int{0}, serverCPUs: []int{0}})
}

// An Open vSwitch whose database ended is reported in the words of a cluster's node, which
// a signature knows.
func TestASwitchWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	suite.Long(t, "an Open vSwitch of each side takes its time to start")
	n := built(t, settings{kind: kindNamed("ovs"), mtu: 1500, queues: 1, clientCPUs: []int{0}, serverCPUs: []int{0}})
	if what := n.broken(); what != "" {
		t.Fatalf("a path that is whole: %s", what)
	}
	i := slices.IndexFunc(n.carriers, func(c carrier) bool { return c.name == "ovsdb-server" })
	if err := syscall.Kill(n.carriers[i].pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-n.carriers[i].Done()
	what := n.broken()
	if !regexp.MustCompile(`^ovs-vsctl: unix:\S+/db\.sock: database connection failed \(`).MatchString(what) {
		t.Errorf("a database that was killed: %q", what)
	}
}

// A comparison of paths warns of what hides their cost: offloads, and saturation.
func TestComparisonsThatMislead(t *testing.T) {
	arms := []plan.Arm{{Name: "direct"}, {Name: "vxlan"}}
	for _, tt := range []struct {
		why, axis string
		kind      plan.ExperimentKind
		gso       map[string]bool // by arm; none is the kernel's
		want      []string
	}{
		{"offloads as the kernel has them", axisRate, plan.AB, nil, []string{"offloads"}},
		{"they are on", axisRate, plan.AB, map[string]bool{"direct": true, "vxlan": true}, []string{"offloads"}},
		{"off in one arm, as offloads are what is compared", axisRate, plan.AB, map[string]bool{"vxlan": false}, nil},
		{"off in all", axisRate, plan.AB, map[string]bool{"direct": false, "vxlan": false}, nil},
		{"a closed loop", axisStreams, plan.AB, map[string]bool{"vxlan": false}, []string{"saturation"}},
		{"along the size, with offloads", axisSize, plan.AB, nil, []string{"offloads", "saturation"}},
		{"a sweep compares nothing", axisStreams, plan.Sweep, nil, nil},
	} {
		s := session{arms: make(map[string]settings)}
		s.Plan = &plan.Plan{Kind: tt.kind, Axis: plan.Axis{Name: tt.axis}, Arms: arms}
		for _, arm := range arms {
			one := settings{offloads: make(map[string]bool)}
			if on, said := tt.gso[arm.Name]; said {
				one.offloads["gso"] = on
			}
			s.arms[arm.Name] = one
		}
		got := s.misleads()
		if len(got) != len(tt.want) || !slices.EqualFunc(got, tt.want, func(text, part string) bool { return strings.Contains(text, part) }) {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
