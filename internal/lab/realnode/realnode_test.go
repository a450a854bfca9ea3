package realnode

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/prometheus/procfs"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

func spec(change ...func(*Spec)) Spec {
	s := Spec{
		Dir: "/state/labs/a", MaxPods: 250, PodCIDR: netip.MustParsePrefix("10.244.0.0/23"), ServiceCIDR: "10.96.0.0/12", ClusterDNS: "10.96.0.10",
		Link:     Link{Host: netip.MustParseAddr("192.0.2.1"), Node: netip.MustParseAddr("192.0.2.2")},
		Programs: Programs{Runc: "/usr/sbin/runc", Crun: "/usr/bin/crun", CNI: "/usr/lib/cni"},
		Labels:   "k=v", SandboxImage: "localhost/agent:latest",
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

// mountsOf reads a mountinfo as that of this process is read.
func mountsOf(t *testing.T, mountinfo string) ([]*procfs.MountInfo, error) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/self", 0o700), os.WriteFile(dir+"/self/mountinfo", []byte(mountinfo), 0o600)); err != nil {
		t.Fatal(err)
	}
	fs, err := procfs.NewFS(dir)
	if err != nil {
		t.Fatal(err)
	}
	return fs.GetMounts()
}

func TestHierarchies(t *testing.T) {
	v1 := func(controllers ...string) string {
		var b strings.Builder
		b.WriteString("31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n")
		for _, c := range controllers {
			where := strings.TrimPrefix(c, "name=")
			b.WriteString("32 31 0:29 / /sys/fs/cgroup/" + where + " rw - cgroup cgroup rw," + c + "\n")
		}
		return b.String()
	}
	whole := []string{"cpu,cpuacct", "cpuset", "memory", "pids", "devices", "freezer", "name=systemd"}
	for _, c := range []struct {
		mountinfo string
		roots     string
		fails     string
		why       string
	}{
		{"31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup", "", "version 2"},
		{v1(whole...), "/sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/cpuset /sys/fs/cgroup/devices /sys/fs/cgroup/freezer /sys/fs/cgroup/memory /sys/fs/cgroup/pids /sys/fs/cgroup/systemd", "", "version 1, with two controllers in one and a named one"},
		{v1(whole...) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/cpuset /sys/fs/cgroup/devices /sys/fs/cgroup/freezer /sys/fs/cgroup/memory /sys/fs/cgroup/pids /sys/fs/cgroup/systemd", "", "hybrid: version 2 is there for no controller"},
		{v1("cpu,cpuacct", "cpuset", "pids", "devices", "freezer"), "", "without: memory", "a controller is missing"},
		{"", "", "without: cpu, cpuacct", "there is nothing"},
		{"a line that is none\n- -\n", "", "mount", "what is no mountinfo"},
	} {
		mounts, err := mountsOf(t, c.mountinfo)
		var h hierarchy
		if err == nil {
			h, err = hierarchyOf(mounts)
		}
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", c.why, err, c.fails)
			}
			continue
		}
		if err != nil || strings.Join(h.roots(), " ") != c.roots {
			t.Errorf("%s: %q, %v; want %q", c.why, h.roots(), err, c.roots)
		}
	}
}

func TestPodRanges(t *testing.T) {
	for _, c := range []struct {
		bits, maxPods int
		want          string
		why           string
	}{
		{0, 110, "10.244.0.0/24", "the kubelet's own number of pods"},
		{0, 250, "10.244.0.0/23", "twice 250 do not fit into 256"},
		{0, 1000, "10.244.0.0/21", "a thousand"},
		{0, 100_000, "10.244.0.0/16", "no range is larger"},
		{26, 110, "10.244.0.0/26", "too small a range on purpose"},
		{30, 10, "", "no room for a pod"},
		{8, 10, "", "more than the range that there is"},
	} {
		got, err := PodRange(c.bits, c.maxPods)
		if (err == nil) != (c.want != "") || err == nil && got.String() != c.want {
			t.Errorf("%s: %v, %v; want %q", c.why, got, err, c.want)
		}
		if err == nil && c.bits == 0 && c.maxPods < 30_000 && podAddresses(got) < 2*c.maxPods {
			t.Errorf("%s: %v has %d addresses for %d pods", c.why, got, podAddresses(got), c.maxPods)
		}
	}
}

func TestLinksAvoidWhatIsInUse(t *testing.T) {
	used := func(ranges ...string) (p []netip.Prefix) {
		for _, r := range ranges {
			p = append(p, netip.MustParsePrefix(r))
		}
		return p
	}
	for _, c := range []struct {
		used []netip.Prefix
		host string
		why  string
	}{
		{nil, "192.0.2.1", "an empty machine"},
		{used("192.0.2.1/30", "192.0.2.5/30"), "192.0.2.9", "two labs"},
		{used("192.0.2.0/24"), "198.51.100.1", "a network that uses the range"},
		{used("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"), "", "nothing is free"},
	} {
		link, err := chooseLink(c.used)
		if (err == nil) != (c.host != "") || err == nil && (link.Host.String() != c.host || link.Node != link.Host.Next()) {
			t.Errorf("%s: %v, %v; want %q", c.why, link, err, c.host)
		}
	}
}

func TestContainerdVersions(t *testing.T) {
	for version, ok := range map[string]bool{
		"1.6.20": true, "1.7.0": true, "2.1.3": true, "1.5.9": false, "0.9": false, "": false, "x.y": false,
	} {
		if err := CheckContainerd(version); (err == nil) != ok {
			t.Errorf("containerd %q: %v", version, err)
		}
	}
}

// Two labs share nothing that has a name outside of their namespaces.
func TestNamesFollowFromTheDirectory(t *testing.T) {
	a, b := "/state/labs/a", "/state/labs/b"
	for _, f := range []func(string) string{group, hostEnd, nodeEnd} {
		if f(a) == f(b) || f(a) != f(a+"/") {
			t.Errorf("%s, %s, %s", f(a), f(b), f(a+"/"))
		}
	}
	const longest = 15 // of an interface's name
	for _, name := range []string{hostEnd(a), nodeEnd(a), "plm-" + tag(a)} {
		if len(name) > longest {
			t.Errorf("interface %s has %d characters", name, len(name))
		}
	}
}

func TestConfigurations(t *testing.T) {
	m := Machine{MemoryBytes: 16 << 30}
	for _, c := range []struct {
		text   string
		has    []string
		hasNot []string
		why    string
	}{
		{spec().kubeletConfiguration(m), []string{"maxPods: 250", "clusterDNS: [10.96.0.10]", "cgroupRoot: /plimsoll-", "address: 192.0.2.2"}, []string{"systemReserved"}, "a node of all that there is"},
		{spec(func(s *Spec) { s.CPUs, s.Processors, s.MemoryBytes = 0.5, []int{3}, 2<<30 }).kubeletConfiguration(m), []string{`systemReserved: {"cpu":"500m","memory":"15032385536"}`}, nil, "half a processor of one, and an eighth of the memory"},
		{spec(func(s *Spec) { s.CPUs, s.Processors = 2, []int{2, 3} }).kubeletConfiguration(m), nil, []string{"systemReserved"}, "whole processors: it is shown no others"},
		{spec().proxyConfiguration(), []string{"mode: nftables", "clusterCIDR: 10.244.0.0/23", "maxPerCore: 0"}, nil, "the proxy"},
		{spec().containerdConfig(m), []string{`runtimes.runc]`, `runtimes.crun]`, `BinaryName = "/usr/bin/crun"`, "restrict_oom_score_adj = true"}, nil, "both runtimes, without the right to lower scores"},
		{spec(func(s *Spec) { s.Programs.Crun = "" }).containerdConfig(Machine{MayLowerOOMScore: true}), []string{"restrict_oom_score_adj = false"}, []string{"crun"}, "one runtime, with that right"},
	} {
		for _, part := range c.has {
			if !strings.Contains(c.text, part) {
				t.Errorf("%s: it lacks %q:\n%s", c.why, part, c.text)
			}
		}
		for _, part := range c.hasNot {
			if strings.Contains(c.text, part) {
				t.Errorf("%s: it has %q:\n%s", c.why, part, c.text)
			}
		}
	}
	for _, text := range []string{spec().kubeletConfiguration(m), spec().proxyConfiguration()} {
		var v map[string]any
		if _, err := strictyaml.Decode("f.yaml", []byte(text), &v); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
	}
	if !json.Valid([]byte(spec().cniConfig())) {
		t.Errorf("no JSON: %s", spec().cniConfig())
	}
}

func TestSpecsAreReadAsWritten(t *testing.T) {
	s := spec(func(s *Spec) { s.Dir = t.TempDir(); s.CPUs, s.Processors = 1, []int{1} })
	if err := s.Write(Machine{MemoryBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	got, err := Read(SpecFile(s.Dir))
	a, _ := json.Marshal(s)
	b, _ := json.Marshal(got)
	if err != nil || string(a) != string(b) {
		t.Errorf("read %s, %v\nwant %s", b, err, a)
	}
}

func TestRunRefusesToBeAnOrdinaryProcess(t *testing.T) {
	if err := Run("/nowhere", nil); err == nil || !strings.Contains(err.Error(), "lab up --real-node") {
		t.Errorf("outside of a process namespace: %v", err)
	}
}

// podAddresses returns how many pods a range has addresses for.
func podAddresses(r netip.Prefix) int { return 1<<(32-r.Bits()) - 3 }

// A group is removed only where nothing else of its lab is left.
func TestStrayGroups(t *testing.T) {
	root := t.TempDir()
	add := func(name, procs string) {
		for dir, text := range map[string]string{name: "", name + "/system": procs} {
			err := os.MkdirAll(filepath.Join(root, dir), 0o700)
			if err == nil {
				err = os.WriteFile(filepath.Join(root, dir, "cgroup.procs"), []byte(text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	add(group("/a/labs/dead"), "")
	add(controlPlaneGroup("/a/labs/dead"), "")
	add(group("/a/labs/known"), "")
	add(controlPlaneGroup("/a/labs/known"), "")
	add(group("/a/labs/running"), "12\n")
	add("another", "")
	cgroups.TestMode = true // it is no file system of groups
	defer func() { cgroups.TestMode = false }()
	got := hierarchy{unified: root}.strays([]string{"/a/labs/known"})
	want := []string{filepath.Join(root, group("/a/labs/dead")), filepath.Join(root, controlPlaneGroup("/a/labs/dead"))}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, c := range []struct{ arg, want, why string }{
		{"--data-dir=/s/plimsoll/labs/x/etcd", "/s/plimsoll/labs/x", "a flag"},
		{"/s/labs/y", "/s/labs/y", "the directory itself"},
		{"/home/labs/s/plimsoll/labs/x/etcd", "/home/labs/s/plimsoll/labs/x", "a directory of that name above"},
		{"labs", "", "no path"},
	} {
		if got := labIn.FindString(c.arg); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
}
