package lab

import (
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"syscall"

	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
)

// Doctor grades this machine for labs, programs excepted.
func (s Store) Doctor() []Requirement {
	return []Requirement{
		memory(), disk(s.Root), processors(), fileHandles(), loopback(), cgroups(),
		inotify("max_user_instances", 128, 512), inotify("max_user_watches", 8192, 65536),
		root(),
	}
}

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

func processors() Requirement {
	n := usableProcessors()
	f := Requirement{For: forLab, What: "processors", Need: "2", Value: strconv.Itoa(n)}
	return f.atLeast(int64(n), 0, 2, "", "on one processor, plimsoll mostly measures its own delays")
}

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
