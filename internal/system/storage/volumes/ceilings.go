package volumes

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

// facts holds the limits of a machine; 0 is unknown.
type facts struct {
	memory  int64 // bytes
	files   int64 // open files of a process
	allOpen int64 // open files of all processes
	threads int64
	ports   int64
}

func readFacts(one settings) facts {
	f := facts{memory: one.memory, ports: gluster.LastPort - gluster.FirstPort + 1}
	if f.memory == 0 {
		f.memory, _ = telemetry.AvailableMemory()
	}
	f.files = openFiles()
	f.allOpen, _ = telemetry.ReadInt("/proc/sys/fs/file-max")
	threads, ok := telemetry.ReadInt("/proc/sys/kernel/threads-max")
	pids, okPIDs := telemetry.ReadInt("/proc/sys/kernel/pid_max")
	if ok && okPIDs {
		f.threads = min(threads, pids)
	}
	return f
}

const mostFiles = 1 << 20 // limit of open files that GlusterFS sets for its processes, where it may

func openFiles() int64 {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &own) != nil {
		return 0
	}
	// An attempt shows whether the limit may be raised.
	more := unix.Rlimit{Cur: own.Cur, Max: own.Max + 1}
	if own.Max < mostFiles && unix.Setrlimit(unix.RLIMIT_NOFILE, &more) == nil {
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &own) // back; lowering is always allowed
		return mostFiles
	}
	return int64(min(own.Max, mostFiles))
}

// Measured needs of GlusterFS 10.3 (docs/volumes.md): of processes, and of bricks and volumes in them.
const (
	mib           = 1 << 20
	processMemory = 7 * mib
	brickMemory   = mib * 8 / 10
	managerMemory = 15 * mib
	volumeMemory  = mib / 8
	mountMemory   = 8 * mib

	processFiles = 10
	brickFiles   = 258
	mountFiles   = 10

	processThreads = 10
	brickThreads   = 5
	mountThreads   = 13
)

// needs holds the needs of volumes, of each server and the client.
type needs struct{ processes, bricksOfOne, memory, files, threads float64 }

// needsOf returns the needs of n volumes in all.
func (s settings) needsOf(n int) needs {
	bricks, servers := float64(n), float64(s.gluster.Replica)
	x := needs{processes: bricks, bricksOfOne: min(bricks, 1)}
	if s.gluster.Multiplex {
		most := float64(cmp.Or(s.gluster.MaxBricks, gluster.DefaultMaxBricks))
		kinds := float64(min(max(s.distinct, 1), n))
		x.processes = kinds * math.Ceil(bricks/max(kinds, 1)/most)
		x.bricksOfOne = math.Ceil(bricks / max(x.processes, 1))
	}
	x.memory = servers * (managerMemory + volumeMemory*bricks + processMemory*x.processes + brickMemory*bricks)
	x.files = servers * (processFiles*x.processes + brickFiles*bricks)
	x.threads = servers * (processThreads*x.processes + brickThreads*bricks)
	if s.mount {
		x.memory, x.files, x.threads = x.memory+mountMemory*bricks, x.files+mountFiles*bricks, x.threads+mountThreads*bricks
	}
	return x
}

const (
	mostCounted = 1_000_000
	published   = 1000 // largest number of volumes in published measurements
)

// ceilingsOf computes how many volumes are possible by the machine's limits and the measured needs.
func ceilingsOf(s settings, f facts, table record.CeilingTable) record.CeilingTable {
	add := func(name, what, unit string, class record.CeilingClass, limit int64, reason, sign, from, note string, used func(needs) float64) {
		row := record.Ceiling{Name: name, What: what, Class: class, Unit: unit, Reason: reason, Sign: sign, From: from, Note: note}
		if limit <= 0 {
			row.Class = record.CeilingUnknown
		} else {
			level := float64(sort.Search(mostCounted, func(n int) bool { return used(s.needsOf(n+1)) > float64(limit) }))
			row.Limit, row.Level = new(float64(limit)), &level
			if level >= mostCounted {
				row.Class, row.Level = record.CeilingUnbound, nil
			}
		}
		table.Ceilings = append(table.Ceilings, row)
	}
	add("memory", "memory", "bytes", record.CeilingHard, f.memory*mostMemory/100, fmt.Sprintf("guard %s: GlusterFS uses %d%% of the memory", measureMemory, mostMemory), measureMemory, "available memory, or the parameter memory",
		"", func(n needs) float64 { return n.memory })
	add("ports", "ports for bricks of a server", "ports", record.CeilingHard, f.ports, startFailed+": every port for bricks is in use", startFailed, "GlusterFS, base-port and max-port", "",
		func(n needs) float64 { return n.processes })
	add("openFiles", "open files of a process", "files", record.CeilingHard, f.files, startFailed+": no process serves a brick, for it has too many open files", "files open", "limit of open files (ulimit -n)", "",
		func(n needs) float64 { return processFiles + brickFiles*n.bricksOfOne })
	add("allOpenFiles", "open files of the machine", "files", record.CeilingHard, f.allOpen, startFailed+": too many open files in system", startFailed, "fs.file-max", "",
		func(n needs) float64 { return n.files })
	add("threads", "threads of the machine", "threads", record.CeilingHard, f.threads, startFailed+": no thread can be started", startFailed, "kernel.threads-max, kernel.pid_max", "",
		func(n needs) float64 { return n.threads })
	supported := float64(published)
	table.Ceilings = append(table.Ceilings, record.Ceiling{
		Name: "published", What: "volumes that were published as tested", Class: record.CeilingAdvisory, Level: &supported, Limit: &supported, Unit: "volumes",
		From: "Container-native GlusterFS and brick multiplexing", Note: "stay inside the number that your release supports",
	})
	if s.gluster.Multiplex {
		most := float64(cmp.Or(s.gluster.MaxBricks, gluster.DefaultMaxBricks))
		table.Ceilings = append(table.Ceilings, record.Ceiling{
			Name: "maxBricksPerProcess", What: "bricks that a process serves", Class: record.CeilingUnbound, Limit: &most, Unit: "bricks", From: "cluster.max-bricks-per-process",
			Note: fmt.Sprintf("further bricks start further processes: %d volumes take %g on each server", published, s.needsOf(published).processes),
		})
	}
	level := func(c record.Ceiling) float64 {
		if c.Level == nil {
			return math.Inf(1)
		}
		return *c.Level
	}
	slices.SortStableFunc(table.Ceilings, func(a, b record.Ceiling) int { return cmp.Compare(level(a), level(b)) })
	for k := range table.Ceilings {
		if c := &table.Ceilings[k]; c.Class == record.CeilingHard {
			c.Binds = true
			break
		}
	}
	table.Notes = append(table.Notes, "what volumes need is an estimate, by what GlusterFS 10.3 was measured to take")
	return table
}
