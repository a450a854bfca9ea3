package kubernetes

import (
	"slices"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
)

// Readings implements target.Session: what the processes of a lab use, and this
// machine, which they share.
func (s *session) Readings() []record.Reading {
	s.usage.Lock()
	defer s.usage.Unlock()
	if s.lab == nil {
		return nil
	}
	var samples []record.Reading
	if cpus, busy, err := telemetry.Machine(); err == nil {
		samples = append(samples, record.Reading{Source: judge.SourceMachine, Values: map[string]float64{"cpuSeconds": busy, "cpus": float64(cpus)}})
	}
	var component func(string) string
	if t := s.instance.Load(); t != nil && len(s.Workload.Components) > 0 {
		component = t.ComponentOfPod
	}
	samples = append(samples, s.usage.realNode(s.lab, s.Workload, component)...)
	return append(samples, s.usage.processes(s.lab, s.Now())...)
}

// usageReader reads what the parts of a lab use. It is locked while it reads, and
// while the lab is made anew.
type usageReader struct {
	sync.Mutex
	pids   map[string]int // of the lab's components
	pidsAt time.Time
	meter  *realnode.Meter // of the lab's real node, nil before it is first read
}

// forget forgets a lab, which is about to go, and reads nothing until the
// returned function is called.
func (r *usageReader) forget() (done func()) {
	r.Lock()
	r.pids, r.meter = nil, nil
	return r.Unlock
}

// findInterval is how often the components' processes are looked for: that
// takes longer than reading them.
const findInterval = 15 * time.Second

// processes reads what the lab's own processes use.
func (r *usageReader) processes(l *lab.Lab, now time.Time) []record.Reading {
	if len(r.pids) == 0 || now.Sub(r.pidsAt) > findInterval {
		r.pids, r.pidsAt = make(map[string]int), now
		components, err := l.Components()
		if err != nil {
			return nil
		}
		for _, c := range components {
			if c.PID != 0 && !slices.Contains(lab.RealNodeComponentNames(), c.Name) {
				r.pids[c.Name] = c.PID
			}
		}
	}
	var samples []record.Reading
	for source, pid := range r.pids {
		u, err := telemetry.ReadProcess(pid)
		if err != nil {
			delete(r.pids, source) // gone, or started anew: found again soon
			continue
		}
		samples = append(samples, u.Sample(source))
	}
	return samples
}

// realNode reads what the parts of a lab's real node use. Component names the
// component of a pod by its UID; nil is not known.
func (r *usageReader) realNode(l *lab.Lab, w *workload.Workload, component func(uid string) string) []record.Reading {
	if r.meter == nil {
		meter, err := l.RealNodeMeter()
		if err != nil || meter == nil {
			return nil // not known, and the result says null
		}
		r.meter = meter
	}
	uses, err := r.meter.Read(component)
	if err != nil {
		return nil
	}
	// What begins from nothing is told from there on.
	for _, c := range w.Components {
		part := realnode.ComponentPart(c.Name)
		if component != nil && !slices.ContainsFunc(uses, func(u realnode.Use) bool { return u.Part == part }) {
			uses = append(uses, realnode.Use{Part: part})
		}
	}
	samples := make([]record.Reading, 0, len(uses))
	for _, u := range uses {
		sample := u.Sample(u.Part)
		if u.Processes > 0 {
			sample.Values["processes"] = float64(u.Processes)
		}
		samples = append(samples, sample)
	}
	return samples
}
