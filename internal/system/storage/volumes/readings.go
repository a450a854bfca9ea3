package volumes

import (
	"sync"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

// meter reads the usage of GlusterFS's processes. It is safe for concurrent use.
type meter struct {
	mu     sync.Mutex
	shares map[process]int64 // last proportional share of memory
	cpu    map[process]float64
	ended  map[string]float64 // CPU seconds of processes that have ended, by source
	memory float64            // last bytes of all processes
	turn   int
}

// process identifies a process.
type process struct {
	server, pid int
	part        gluster.Part
}

const rereadShares = 100 // number of known processes whose share of memory is read in one reading

// forget begins again, for another GlusterFS.
func (m *meter) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares, m.cpu, m.ended, m.memory = make(map[process]int64), make(map[process]float64), make(map[string]float64), 0
}

func (m *meter) allMemory() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory
}

// bricks returns the processes that served bricks at the last reading.
func (m *meter) bricks() map[process]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make(map[process]bool)
	for p := range m.cpu {
		if p.part == gluster.Bricks {
			list[p] = true
		}
	}
	return list
}

type sum struct {
	proc.Usage
	processes int
}

func (m *meter) read(sys *gluster.System) (map[string]sum, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen, n := 0, len(m.shares)
	m.turn++
	again := func(server, pid int) bool {
		seen++
		// In turns, so that each is read again after a while.
		if n <= rereadShares || (seen+m.turn*rereadShares)%n < rereadShares {
			return true
		}
		for _, part := range gluster.Parts() {
			if _, ok := m.shares[process{server, pid, part}]; ok {
				return false
			}
		}
		return true
	}
	list, err := sys.Processes(again)
	if err != nil {
		return nil, err
	}
	// The usage of a part without processes is 0, and not unknown.
	sums := map[string]sum{sourceServers: {}}
	for _, part := range gluster.Parts() {
		sums[string(part)] = sum{}
	}
	add := func(source string, u proc.Usage) {
		s := sums[source]
		s.processes++
		s.Usage = s.Usage.Plus(u)
		sums[source] = s
	}
	shares, cpu := make(map[process]int64, len(list)), make(map[process]float64, len(list))
	for _, p := range list {
		key := process{p.Server, p.PID, p.Part}
		if p.ShareBytes == 0 {
			p.ShareBytes = m.shares[key]
		}
		shares[key], cpu[key] = p.ShareBytes, p.CPUSeconds
		for _, source := range sourcesOf(p.Part) {
			add(source, p.Usage)
		}
	}
	// The CPU time of ended processes stays.
	for key, used := range m.cpu {
		if _, runs := cpu[key]; !runs {
			for _, source := range sourcesOf(key.part) {
				m.ended[source] += used
			}
		}
	}
	m.shares, m.cpu = shares, cpu
	for source, used := range m.ended {
		s := sums[source]
		s.CPUSeconds += used
		sums[source] = s
	}
	m.memory = float64(sums[sourceServers].ShareBytes + sums[string(gluster.Mounts)].ShareBytes)
	return sums, nil
}

// sourcesOf returns the sources in which a part's usage counts.
func sourcesOf(part gluster.Part) []string {
	if part == gluster.Mounts {
		return []string{string(part)}
	}
	return []string{string(part), sourceServers}
}

// Readings returns the present usage of GlusterFS's parts.
func (i *instance) Readings() []record.Reading {
	list := []record.Reading{telemetry.Reading()}
	i.readers.RLock()
	defer i.readers.RUnlock()
	sys := i.used.Load()
	if sys == nil {
		return list
	}
	sums, err := i.meter.read(sys.System)
	if err != nil {
		return list
	}
	list = append(list, record.Reading{Source: sourceCommands, Values: map[string]float64{"cpuSeconds": sys.Commands()}})
	for source, s := range sums {
		values := map[string]float64{
			"cpuSeconds": s.CPUSeconds, "pssBytes": float64(s.ShareBytes), "residentBytes": float64(s.RSSBytes),
			"processes": float64(s.processes), "threads": float64(s.Threads), "handles": float64(s.Handles),
		}
		if s.IOBytes >= 0 {
			values["ioBytes"] = float64(s.IOBytes)
		}
		if source == string(gluster.Bricks) {
			ports := 0
			for n := range sys.Replica {
				if listening, err := sys.Server(n).Ports(); err == nil {
					ports += listening
				}
			}
			values["ports"] = float64(ports)
		}
		list = append(list, record.Reading{Source: source, Values: values})
	}
	return list
}
