package network

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// built is a path that is taken away with the test.
func built(t *testing.T, s settings) *network {
	t.Helper()
	executable := os.Getenv("PLIMSOLL_BINARY")
	if executable == "" || os.Geteuid() != 0 {
		t.Skip("PLIMSOLL_BINARY does not name the program, or this is not root, who alone may make network namespaces")
	}
	tied := proc.NewTie()
	t.Cleanup(tied.Close)
	n, err := build(tied, system.Host{Executable: executable, Now: time.Now}, t.TempDir(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	return n
}

// What an interface that goes in the middle of a hold does to the path is told.
func TestAPathThatBreaksIsTold(t *testing.T) {
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
	rules := "add table ip loss; add chain ip loss forward { type filter hook forward priority 0; }; add rule ip loss forward numgen random mod 100 < 2 drop"
	cmd := n.hops[0].Command("nft", rules)
	p, err := n.hops[0].Start(cmd, proc.How{Name: "nft"})
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		t.Skipf("this kernel drops no packets at random: %v", err)
	}
	if after := carry(); after-before < 20 {
		t.Errorf("%g segments were sent again with 2 %% of loss, %g before", after-before, before)
	}
}

// What this kernel has not is refused by the name of its option.
func TestAKernelThatLacksALink(t *testing.T) {
	t.Parallel()
	executable := os.Getenv("PLIMSOLL_BINARY")
	if executable == "" || os.Geteuid() != 0 {
		t.Skip("PLIMSOLL_BINARY does not name the program, or this is not root")
	}
	config := string(kernelConfig())
	tied := proc.NewTie()
	t.Cleanup(tied.Close)
	for _, k := range kindsOfPath() {
		n, err := build(tied, system.Host{Executable: executable, Now: time.Now}, t.TempDir(), settings{kind: kindNamed(k.name), mtu: 1500, queues: 1})
		has := strings.Contains(config, "\n"+k.needs+"=")
		switch {
		case err == nil:
			n.close()
		case config != "" && has, !strings.Contains(err.Error(), "this kernel has no "+k.needs):
			t.Errorf("%s, which the kernel has: %v: %v", k.name, has, err)
		}
	}
}

// MTUs are what a tunnel leaves.
func TestInnerMTU(t *testing.T) {
	for name, want := range map[string]int{"direct": 1500, "vxlan": 1450, "geneve": 1450, "gre": 1476, "ipip": 1480} {
		if got := (settings{kind: kindNamed(name), mtu: 1500}).inner(); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
