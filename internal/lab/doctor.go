package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/proc"
)

// Grade says how well one thing that a lab needs is met.
type Grade string

// The grades of a requirement.
const (
	Good    Grade = "ok"
	Scarce  Grade = "scarce"  // a lab works, a large one may not
	Missing Grade = "missing" // "lab" or "real node" does not work
)

// Requirement grades one thing that this machine needs for a lab.
type Requirement struct {
	For    string `json:"for"` // "lab", "real node" or what else needs it
	What   string `json:"what"`
	Grade  Grade  `json:"grade"`
	Value  string `json:"value"` // says what this machine has, Need what it should have
	Need   string `json:"need"`
	Remedy string `json:"remedy"` // says what to do about it; empty if nothing is wrong
}

const (
	forLab      = "lab"
	forRealNode = "real node"
)

// Healthy reports whether this machine has all that every lab needs.
func Healthy(findings []Requirement) bool {
	return !slices.ContainsFunc(findings, func(f Requirement) bool { return f.For == forLab && f.Grade == Missing })
}

func (f Requirement) failed(found, remedy string) Requirement {
	f.Grade, f.Value, f.Remedy = Missing, found, remedy
	return f
}

// atLeast grades a finding: below least is missing, below enough is scarce, each with its remedy.
func (f Requirement) atLeast(n, least, enough int64, missing, scarce string) Requirement {
	switch {
	case n < least:
		f.Grade, f.Remedy = Missing, missing
	case n < enough:
		f.Grade, f.Remedy = Scarce, scarce
	default:
		f.Grade = Good
	}
	return f
}

// Doctor grades this machine for labs, programs excepted.
func (s Store) Doctor() []Requirement {
	return []Requirement{
		memory(), disk(s.Root), processors(), fileHandles(), loopback(), cgroups(),
		inotify("max_user_instances", 128, 512), inotify("max_user_watches", 8192, 65536),
		root(),
	}
}

const gib = 1 << 30

// memory compares the available memory with measured needs: 0.7 GiB idle, 2 GiB with ten thousand pods.
func memory() Requirement {
	f := Requirement{For: forLab, What: "memory", Need: "1 GiB available, 4 GiB for 10,000 pods"}
	available, err := telemetry.AvailableMemory()
	if err != nil {
		return f.failed(err.Error(), "mount /proc")
	}
	f.Value = fmt.Sprintf("%.1f GiB available", float64(available)/gib)
	return f.atLeast(available, gib, 4*gib, "stop other programs, or give the machine more memory", "keep labs small: fewer nodes and pods")
}

// Measured memory: 3000 nodes took 0.9 GiB more than 10, 10,000 pods 1.3 GiB, 150,000 pods 20.6 GiB in all.
const (
	baseMemory     = gib * 9 / 10
	memoryPerNode  = 3 * gib / 10_000
	memoryPerPod   = 13 * gib / 100_000
	memoryPerGuest = protocol.GuestMemory + 192<<20 // A real guest, with all of its own memory in use
	// With virtual machines: 40, 300 and 1000 on 10 nodes took 1.4, 2.0 and 2.9 GiB in all.
	memoryOfVirt     = gib * 5 / 10
	memoryPerMachine = 16 * gib / 10_000
)

// Memory estimates the bytes that a lab of so many simulated nodes and pods takes.
func Memory(nodes, pods int) int64 {
	return baseMemory + int64(nodes)*memoryPerNode + int64(pods)*memoryPerPod
}

// MachinesMemory estimates the bytes that so many simulated virtual machines add.
func MachinesMemory(machines int) int64 { return memoryOfVirt + int64(machines)*memoryPerMachine }

// Check refuses a lab that cannot be made, or for which this machine has too little memory, with a *SpecError.
func (s Spec) Check() error {
	s.Name = cmp.Or(s.Name, "private")
	s = s.withDefaults()
	if err := s.validate(); err != nil {
		return err
	}
	return s.fitsMemory()
}

func (s Spec) fitsMemory() error {
	available, err := telemetry.AvailableMemory()
	available -= int64(s.RealGuests) * memoryPerGuest
	need := Memory(s.Nodes, s.Pods)
	if s.HasVirt() {
		need += MachinesMemory(s.Machines)
	}
	if err != nil || need <= available {
		return nil // unknown memory is not refused
	}
	what := fmt.Sprintf("%d simulated nodes", s.Nodes)
	fit := int((available - baseMemory) / memoryPerNode)
	fits := fmt.Sprintf("%d nodes would fit", max(fit, 0))
	if s.Pods > 0 {
		what += fmt.Sprintf(" with %d pods", s.Pods)
		fits = fmt.Sprintf("%d pods would fit on as many nodes", max(0, (available-Memory(s.Nodes, 0))/memoryPerPod))
	}
	if s.Machines > 0 {
		what += fmt.Sprintf(" with %d virtual machines", s.Machines)
		fits = fmt.Sprintf("%d machines would fit on as many nodes", max(0, (available-need)/memoryPerMachine+int64(s.Machines)))
	}
	return &SpecError{"memory", fmt.Sprintf("%s take about %.1f GiB, and %.1f GiB are available: %s", what, float64(need)/gib, float64(available)/gib, fits)}
}

func disk(root string) Requirement {
	f := Requirement{For: forLab, What: "disk", Need: "1 GiB free, 8 GiB for etcd's whole quota"}
	dir := existingParent(root)
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return f.failed(err.Error(), "set XDG_STATE_HOME to a directory of yours")
	}
	const writable = 2 // W_OK
	if err := syscall.Access(dir, writable); err != nil {
		return f.failed(fmt.Sprintf("%s cannot be written: %v", dir, err), "set XDG_STATE_HOME to a directory of yours")
	}
	free := int64(stat.Bavail) * stat.Bsize
	f.Value = fmt.Sprintf("%.0f GiB free in %s", float64(free)/gib, dir)
	return f.atLeast(free, gib, 8*gib, "free some, or set XDG_STATE_HOME to another disk", "set XDG_STATE_HOME to another disk for long experiments")
}

func existingParent(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return dir
		}
		dir = parent
	}
}

func processors() Requirement {
	n := usableProcessors()
	f := Requirement{For: forLab, What: "processors", Need: "2", Value: strconv.Itoa(n)}
	return f.atLeast(int64(n), 0, 2, "", "on one processor, plimsoll mostly measures its own delays")
}

// usableProcessors counts the processors that a component may keep busy: a container may have fewer.
func usableProcessors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

func fileHandles() Requirement {
	f := Requirement{For: forLab, What: "file handles", Need: "4096 for a process"}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return f.failed(err.Error(), "see ulimit -n")
	}
	// The components raise the soft limit themselves.
	f.Value = fmt.Sprintf("hard limit %d", limit.Max)
	return f.atLeast(int64(min(limit.Max, math.MaxInt64)), 0, 4096, "", "raise it: ulimit -Hn 65536 as root, or nofile in /etc/security/limits.conf")
}

func loopback() Requirement {
	f := Requirement{For: forLab, What: "loopback", Need: "127.0.0.1 can be listened on", Value: "127.0.0.1", Grade: Good}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return f.failed(err.Error(), "ip link set lo up")
	}
	l.Close()
	return f
}

func cgroups() Requirement {
	f := Requirement{For: forRealNode, What: "cgroups", Need: "v1, hybrid or v2", Grade: Good}
	const v2 = 0x63677270 // the file system's magic number
	var stat syscall.Statfs_t
	if err := syscall.Statfs("/sys/fs/cgroup", &stat); err != nil {
		return f.failed(err.Error(), "mount -t cgroup2 none /sys/fs/cgroup")
	}
	if stat.Type == v2 {
		f.Value = "v2"
		return f
	}
	if f.Value = telemetry.CgroupVersion(); f.Value == "1" {
		f.Value = "v1"
	}
	if err := realnode.CheckControlGroups(); err != nil {
		return f.failed(err.Error(), "mount these controllers under /sys/fs/cgroup")
	}
	return f
}

func inotify(name string, least, enough int64) Requirement {
	f := Requirement{For: forLab, What: "inotify " + name, Need: fmt.Sprintf("%d, %d for a real node", least, enough)}
	path := "/proc/sys/fs/inotify/" + name
	value, ok := telemetry.ReadInt(path)
	if !ok {
		f.Grade, f.Value, f.Remedy = Scarce, "unknown", "cat "+path
		return f
	}
	f.Value = strconv.FormatInt(value, 10)
	remedy := fmt.Sprintf("sysctl fs.inotify.%s=%d", name, enough)
	return f.atLeast(value, least, enough, remedy, remedy)
}

func root() Requirement {
	f := Requirement{For: forRealNode, What: "root", Need: "user 0", Value: fmt.Sprintf("user %d", os.Geteuid()), Grade: Good}
	if os.Geteuid() != 0 {
		f.Grade, f.Remedy = Missing, "run as root; "+realnode.Rootless
	}
	return f
}

// ProgramRequirement grades a program that this machine has or lacks.
func ProgramRequirement(ctx context.Context, p proc.Program) Requirement {
	f := Requirement{For: p.For, What: p.Name, Need: "installed", Grade: Good}
	if p.Optional != "" {
		f.Need += ", " + p.Optional
	}
	found, err := p.Find(ctx, "")
	f.Value = found.String()
	if missing, ok := errors.AsType[*proc.MissingError](err); ok {
		f = f.failed("not found", missing.Remedy())
	} else if err != nil {
		f = f.failed(f.Value, err.Error())
	}
	if err != nil && p.Optional != "" {
		f.Grade = Scarce
	}
	return f
}
