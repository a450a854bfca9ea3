package host

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

func TestSharedSubnetsEqualsItsSlowTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		var lines []string
		in := map[string]map[string]bool{}
		for range random.IntN(8) {
			iface := fmt.Sprintf("eth%d", random.IntN(3))
			third := random.IntN(3)
			lines = append(lines, fmt.Sprintf("%s 00%02X000A 00000000 0001 0 0 0 00FFFFFF 0 0 0", iface, third))
			subnet := fmt.Sprintf("10.0.%d.0/24", third)
			if in[subnet] == nil {
				in[subnet] = map[string]bool{}
			}
			in[subnet][iface] = true
		}
		want := 0
		for _, set := range in {
			if len(set) > 1 {
				want++
			}
		}
		got := sharedSubnets(strings.Join(lines, "\n"))
		if len(got) != want {
			t.Fatalf("%v: %v, want %d", lines, got, want)
		}
		for _, s := range got {
			if len(in[s.Range.String()]) != len(s.Interfaces) {
				t.Fatalf("%v: %v", lines, got)
			}
		}
	}
}

func FuzzReadHost(f *testing.F) {
	f.Add("300\n", "00000010 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n", "10s", "eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0", "node0 0-3", "MemTotal: 5 kB")
	f.Add("4096\t131072\t6291456", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, value, softnet, interval, route, interrupts, meminfo string) {
		files := map[string]string{
			softnetFile + ".0": softnet, softnetFile + ".1": softnet, intervalFile: interval, "proc/net/route": route, "proc/interrupts": interrupts, "proc/meminfo": meminfo,
			netDir + "/eth0/operstate": "up", netDir + "/eth0/speed": value, netDir + "/eth0/mtu": value, netDir + "/eth0/device/numa_node": value,
		}
		for _, name := range SysctlNames() {
			files[SysctlPath(name)] = value
		}
		saved := fstest.MapFS{}
		for name, text := range files {
			saved[name] = &fstest.MapFile{Data: []byte(text)}
		}
		facts, err := ReadFacts(saved, "bundle")
		if err != nil {
			return
		}
		a, err := TuneHost(Host{Facts: &facts, Pods: param.Given(int64(10), "flag"), RTT: param.Given(time.Millisecond, "flag"), Link: param.Given(param.Rate(1e9), "flag"), Formats: HostFormats()})
		if err != nil {
			return
		}
		if _, err := answer.Render(a, "table", 80); err != nil {
			t.Error(err)
		}
	})
}

func TestCPULists(t *testing.T) {
	for text, want := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "0-1,8": {0, 1, 8}, "": nil, "3,1,1": {1, 3}} {
		if got, err := cpuList(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("cpuList(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a", "3-1", "-1", "0-", "0--1", "99999"} {
		if got, err := cpuList(text); err == nil {
			t.Errorf("cpuList(%q) = %v", text, got)
		}
	}
}

func FuzzCPUList(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := cpuList(s)
		if err != nil || len(list) == 0 {
			return
		}
		again, err := cpuList(compactCPUs(list))
		if err != nil || !slices.Equal(again, list) {
			t.Errorf("%q: %v, written %q, read %v %v", s, list, compactCPUs(list), again, err)
		}
	})
}
