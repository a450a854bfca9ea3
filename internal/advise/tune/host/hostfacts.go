package host

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Facts holds what was read of a host.
type Facts struct {
	From    string            // "this host", "bundle DIR"
	Sysctls map[string]string // existing ones of SysctlNames, by dotted name
	// Softnet holds up to two readings of /proc/net/softnet_stat, Interval the time between them; 0 is unknown.
	Softnet       [][]SoftnetCPU
	Interval      time.Duration
	Interfaces    []Interface    // without loopback
	SharedSubnets []SharedSubnet // lists ranges that several interfaces are in, unknown without Routes
	Routes        bool
	NUMA          map[int]string // the CPUs of each NUMA node, as the kernel lists them
	Interrupts    []Interrupt    // of interfaces
}

// Interface describes a network interface.
type Interface struct {
	Name     string
	Up       bool
	Speed    param.Rate // 0 is unknown
	MTU      int64      // 0 is unknown
	RX       int        // receive queues
	NUMANode int        // -1 is unknown
	Physical bool       // it has a device
	// Features and MaxQueues come from ethtool -k and -l, if they were saved; nil and 0 are unknown.
	Features  NICFeatures
	MaxQueues int
}

// SharedSubnet lists the interfaces in a range.
type SharedSubnet struct {
	Range      netip.Prefix
	Interfaces []string
}

// Interrupt is an interrupt of an interface.
type Interrupt struct {
	Number, Interface string
}

// Files of a host, below its root or a bundle's.
const (
	softnetFile  = "proc/net/softnet_stat"
	intervalFile = "interval"
	netDir       = "sys/class/net"
	numaDir      = "sys/devices/system/node"
	ethtoolDir   = "ethtool" // of a bundle: NAME.features and NAME.channels
)

// SysctlNames lists the settings that answers use.
func SysctlNames() []string {
	return []string{
		"net.ipv4.conf.all.arp_filter", "net.ipv4.conf.all.arp_ignore", "net.ipv4.conf.all.arp_announce",
		"net.ipv4.neigh.default.gc_thresh1", "net.ipv4.neigh.default.gc_thresh2", "net.ipv4.neigh.default.gc_thresh3",
		"net.ipv4.tcp_window_scaling", "net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default", "net.core.wmem_default",
		"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog",
		"net.core.somaxconn", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
		"net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_count", "net.netfilter.nf_conntrack_buckets",
		"fs.file-max", "fs.file-nr", "fs.nr_open", "fs.inotify.max_user_instances", "fs.inotify.max_user_watches",
		"kernel.pid_max", "kernel.threads-max", "kernel.osrelease",
	}
}

// SysctlPath returns the file of a setting, below the root.
func SysctlPath(name string) string { return "proc/sys/" + strings.ReplaceAll(name, ".", "/") }

// ReadFacts reads a host from its root, or from a bundle with the same relative paths. In a bundle, two
// readings of softnet_stat are softnet_stat.0 and softnet_stat.1 (also at the top), and the file interval or
// time at the top has the time between them, such as "10s" or seconds. Missing files are left out; a bundle
// without any is an error.
func ReadFacts(fsys fs.FS, from string) (Facts, error) {
	f := Facts{From: from, Sysctls: map[string]string{}, NUMA: map[int]string{}}
	for _, name := range SysctlNames() {
		if data, err := fs.ReadFile(fsys, SysctlPath(name)); err == nil {
			f.Sysctls[name] = strings.Join(strings.Fields(string(data)), " ")
		}
	}
	if err := f.readSoftnet(fsys); err != nil {
		return f, err
	}
	if len(f.Sysctls) == 0 && len(f.Softnet) == 0 {
		return f, fmt.Errorf("it has neither proc/sys nor %s: a bundle has the same paths as a host's root", softnetFile)
	}
	f.readInterfaces(fsys)
	f.readNUMA(fsys)
	if data, err := fs.ReadFile(fsys, "proc/net/route"); err == nil {
		f.SharedSubnets, f.Routes = sharedSubnets(string(data)), true
	}
	if data, err := fs.ReadFile(fsys, "proc/interrupts"); err == nil {
		f.Interrupts = interruptsOf(string(data), f.Interfaces)
	}
	return f, nil
}

// readSoftnet reads one or two readings. A file that it cannot parse is an error: the user saved it.
func (f *Facts) readSoftnet(fsys fs.FS) error {
	var found []string
	for _, suffix := range []string{".0", "", ".1"} {
		name := softnetFile + suffix
		data, err := fs.ReadFile(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			// A user may have saved it at the top.
			name = path.Base(name)
			data, err = fs.ReadFile(fsys, name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		reading, err := ParseSoftnet(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		// The plain name is the first reading, the second, or the only one.
		if suffix == ".1" && len(found) == 2 {
			f.Softnet, found = f.Softnet[:1], found[:1]
		}
		f.Softnet, found = append(f.Softnet, reading), append(found, name)
	}
	for _, name := range []string{"time", intervalFile} {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			continue
		}
		text := strings.TrimSpace(string(data))
		if _, rest, ok := param.Number(text); ok && rest == "" {
			text += "s"
		}
		if f.Interval, err = param.ParseDelay(text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (f *Facts) readInterfaces(fsys fs.FS) {
	entries, _ := fs.ReadDir(fsys, netDir)
	for _, e := range entries {
		name := e.Name()
		read := func(file string) string {
			data, _ := fs.ReadFile(fsys, path.Join(netDir, name, file)) // "" is unknown
			return strings.TrimSpace(string(data))
		}
		if read("type") == "772" || name == "lo" || read("operstate") == "" {
			continue // loopback, or no interface at all
		}
		i := Interface{Name: name, Up: read("operstate") == "up" || read("operstate") == "unknown", NUMANode: -1}
		if mbit, err := strconv.ParseInt(read("speed"), 10, 64); err == nil && mbit > 0 {
			i.Speed = param.Rate(float64(mbit) * 1e6)
		}
		i.MTU, _ = strconv.ParseInt(read("mtu"), 10, 64)
		if n, err := strconv.Atoi(read("device/numa_node")); err == nil {
			i.NUMANode = n
		}
		_, err := fs.Stat(fsys, path.Join(netDir, name, "device"))
		i.Physical = err == nil
		queues, _ := fs.ReadDir(fsys, path.Join(netDir, name, "queues"))
		for _, q := range queues {
			if strings.HasPrefix(q.Name(), "rx-") {
				i.RX++
			}
		}
		if data, err := fs.ReadFile(fsys, path.Join(ethtoolDir, name+".features")); err == nil {
			i.Features, _ = ParseFeatures(data)
		}
		if data, err := fs.ReadFile(fsys, path.Join(ethtoolDir, name+".channels")); err == nil {
			i.MaxQueues = ParseChannels(data)
		}
		f.Interfaces = append(f.Interfaces, i)
	}
}

func (f *Facts) readNUMA(fsys fs.FS) {
	entries, _ := fs.ReadDir(fsys, numaDir)
	for _, e := range entries {
		n, err := strconv.Atoi(strings.TrimPrefix(e.Name(), "node"))
		if err != nil {
			continue
		}
		if data, err := fs.ReadFile(fsys, path.Join(numaDir, e.Name(), "cpulist")); err == nil {
			f.NUMA[n] = strings.TrimSpace(string(data))
		}
	}
}

// sharedSubnets finds ranges with several interfaces, where ARP flux is possible, in /proc/net/route.
func sharedSubnets(text string) []SharedSubnet {
	var list []SharedSubnet
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 8 || fields[2] != "00000000" {
			continue
		}
		address, err := strconv.ParseUint(fields[1], 16, 32)
		mask, err2 := strconv.ParseUint(fields[7], 16, 32)
		if err != nil || err2 != nil || mask == 0 {
			continue
		}
		var raw [4]byte // little-endian machines write the last byte first
		binary.LittleEndian.PutUint32(raw[:], uint32(address))
		rng := netip.PrefixFrom(netip.AddrFrom4(raw), bits.OnesCount64(mask)).Masked()
		i := slices.IndexFunc(list, func(s SharedSubnet) bool { return s.Range == rng })
		if i < 0 {
			i = len(list)
			list = append(list, SharedSubnet{Range: rng})
		}
		if !slices.Contains(list[i].Interfaces, fields[0]) {
			list[i].Interfaces = append(list[i].Interfaces, fields[0])
		}
	}
	return slices.DeleteFunc(list, func(s SharedSubnet) bool { return len(s.Interfaces) < 2 })
}

// interruptsOf finds the interrupts named after an interface, such as "eth0-TxRx-3".
func interruptsOf(text string, interfaces []Interface) []Interrupt {
	var list []Interrupt
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasSuffix(fields[0], ":") {
			continue
		}
		irq := strings.TrimSuffix(fields[0], ":")
		if _, err := strconv.Atoi(irq); err != nil {
			continue
		}
		action := fields[len(fields)-1]
		for _, i := range interfaces {
			if action == i.Name || strings.HasPrefix(action, i.Name+"-") || strings.HasPrefix(action, i.Name+"@") {
				list = append(list, Interrupt{irq, i.Name})
				break
			}
		}
	}
	return list
}

func (f *Facts) whole(name string) (int64, bool) {
	if f == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(f.Sysctls[name], 10, 64)
	return n, err == nil
}

// CollectScript returns a shell script that reads a host like ReadFacts, and writes a tar archive to its
// standard output. Its argument is the number of seconds between two readings, 10 by default.
func CollectScript() string {
	var keep strings.Builder
	for _, name := range SysctlNames() {
		keep.WriteString("keep " + SysctlPath(name) + "\n")
	}
	return strings.Replace(collectScript, "# SYSCTLS\n", keep.String(), 1)
}

// collectScript has a comment for the files of proc/sys.
//
//go:embed collect.sh
var collectScript string

// nicCPUs returns the fastest physical interface whose NUMA node is known, with the CPUs of that node.
func nicCPUs(f *Facts) (*Interface, []int) {
	var best *Interface
	for i := range f.Interfaces {
		n := &f.Interfaces[i]
		if n.Physical && n.Up && (best == nil || n.Speed > best.Speed) {
			best = n
		}
	}
	if best == nil {
		return nil, nil
	}
	node := best.NUMANode
	if node < 0 && len(f.NUMA) == 1 {
		for only := range f.NUMA {
			node = only
		}
	}
	found := *best
	found.NUMANode = node
	cpus, err := cpuList(f.NUMA[node])
	if err != nil {
		return nil, nil
	}
	return &found, cpus
}

func cpuList(text string) ([]int, error) {
	var list []int
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(last)
		}
		if err != nil || a < 0 || b < a || b > 65535 {
			return nil, fmt.Errorf("%q is not a list of CPUs: want one such as 0-3,8", text)
		}
		for c := a; c <= b; c++ {
			list = append(list, c)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

func compactCPUs(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := strconv.Itoa(list[i])
		if j > i {
			part += "-" + strconv.Itoa(list[j])
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}

// SoftnetCPU counts a CPU's received packets since the host's start, or between two readings, by 32 bits.
type SoftnetCPU struct {
	CPU       int
	Processed uint32 // column 1: packets
	Dropped   uint32 // column 2: packets that found the backlog queue full
	Squeezed  uint32 // column 3: polls that ended with work left, without budget or time
}

// ParseSoftnet reads /proc/net/softnet_stat: column 13 is the CPU since Linux 5.10, rows are in order before.
func ParseSoftnet(data []byte) ([]SoftnetCPU, error) {
	var list []SoftnetCPU
	numbered := true
	seen := map[int]bool{}
	for i, line := range strings.Split(string(bytes.TrimRight(data, "\n")), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		const least, most = 9, 32
		if len(fields) < least || len(fields) > most {
			return nil, fmt.Errorf("line %d: %d columns: want %d or more of eight hexadecimal digits", i+1, len(fields), least)
		}
		var values [most]uint32
		for j, f := range fields {
			v, err := strconv.ParseUint(f, 16, 32)
			if err != nil || len(f) != 8 {
				return nil, fmt.Errorf("line %d, column %d: %q is not a number of eight hexadecimal digits", i+1, j+1, f)
			}
			values[j] = uint32(v)
		}
		row := SoftnetCPU{CPU: len(list), Processed: values[0], Dropped: values[1], Squeezed: values[2]}
		if len(fields) >= 13 && values[12] < 1<<16 && !seen[int(values[12])] {
			row.CPU = int(values[12])
			seen[row.CPU] = true
		} else {
			numbered = false
		}
		list = append(list, row)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("it is empty: want a row for each CPU")
	}
	if !numbered { // all rows or none
		for i := range list {
			list[i].CPU = i
		}
	}
	return list, nil
}

// GrowSoftnet returns the difference of two readings, or an error if counters went back.
func GrowSoftnet(before, after []SoftnetCPU) ([]SoftnetCPU, error) {
	first := map[int]SoftnetCPU{}
	for _, c := range before {
		first[c.CPU] = c
	}
	var list []SoftnetCPU
	for _, b := range after {
		a, ok := first[b.CPU]
		if !ok {
			continue // it came online in between
		}
		g := SoftnetCPU{b.CPU, b.Processed - a.Processed, b.Dropped - a.Dropped, b.Squeezed - a.Squeezed}
		// No host counts half of the range between two readings: the counter went back.
		for _, d := range []uint32{g.Processed, g.Dropped, g.Squeezed} {
			if d >= 1<<31 {
				return nil, fmt.Errorf("the counters of CPU %d went back: the host was started between the readings, or they are the wrong way round", b.CPU)
			}
		}
		list = append(list, g)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the two readings have no CPU in common")
	}
	return list, nil
}

// perSecond writes a count, with its rate if the interval is known.
func perSecond(n uint64, interval time.Duration) string {
	if interval <= 0 {
		return "+" + param.Grouped(int64(n))
	}
	return fmt.Sprintf("+%s in %v (%.3g/s)", param.Grouped(int64(n)), interval, float64(n)/interval.Seconds())
}
