package realnode

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
)

// Parts of a node that have no control group of their own. "pods/x" is a part of "pods".
const (
	PartRuntime = "runtime"           // names the container runtime's own, short-lived processes: see Meter
	PartWhole   = "node"              // names the whole node: its programs and its pods
	partOther   = partPods + "/other" // pods of an unknown component
)

// Use says what a part of the node has used.
type Use struct {
	Part string
	proc.Usage
	Processes int // counts pods of a component, shims, or runtime processes alive at the reading; else 0
}

// ComponentPart returns the name of the part for a component's pods.
func ComponentPart(component string) string { return partPods + "/" + component }

// Meter reads repeatedly what the parts of a node have used: its programs with all their processes, the pods
// together and by component, and the whole node. Memory leaves out files and the kernel's own. A Meter is not
// safe for concurrent use.
//
// A runtime's processes (runc, crun) live too shortly to be seen. They share a control group with the shims
// that start them, and the kernel knows a shim's own use: the runtime's CPU time is the group's minus the
// shims'. It includes shims unseen so far, so only the difference of two readings counts. A runtime process
// in a container's group counts for the pod.
type Meter struct {
	dir       string
	h         hierarchy
	processes procfs.FS

	shims   map[int]*shim
	ended   float64 // CPU seconds of shims that have ended
	runtime float64 // CPU seconds in the last reading
	queue   []int   // shims, longest unread first

	pods     map[string]*pod
	parts    map[string]*part
	memories int // left to read
	turn     int
}

type shim struct {
	cpu      float64
	readings int
	seen     bool
}

type pod struct {
	part     string // "" until its component is known or knownWithin readings have passed
	readings int
	cpu      float64
	memory   int64
	stale    bool // it has run since memory was read
	seen     bool
}

type part struct {
	cpu    float64
	memory int64
	pods   int
}

const (
	// A shim uses little once it has started its pod: later readings take some of them in turn.
	firstReadings      = 5
	shimsPerReading    = 16
	knownWithin        = 5   // the number of readings after which a pod without a component counts as another's
	memoriesPerReading = 100 // bounds the pods, besides new ones, whose memory one reading reads, which is slow
)

// NewMeter makes a meter of the node of the lab in dir.
func NewMeter(dir string) (*Meter, error) {
	h, err := findHierarchy()
	if err != nil {
		return nil, err
	}
	processes, err := procfs.NewDefaultFS()
	return newMeter(dir, h, processes), err
}

func newMeter(dir string, h hierarchy, processes procfs.FS) *Meter {
	return &Meter{dir: dir, h: h, processes: processes, shims: make(map[int]*shim), pods: make(map[string]*pod), parts: make(map[string]*part)}
}

// Read reads what has been used so far, by component if component finds those of pods' UIDs; "" is unknown.
func (m *Meter) Read(component func(uid string) string) ([]Use, error) {
	var uses []Use
	for _, part := range append(systemParts(), partPods, PartWhole) {
		g := systemGroup(m.dir, part)
		switch part {
		case partPods:
			g = group(m.dir) + "/kubepods"
		case PartWhole:
			g = group(m.dir)
		}
		u, err := m.h.usage(g)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read usage of %s: %w", part, err)
		}
		if part != partShims {
			uses = append(uses, Use{Part: part, Usage: u})
			continue
		}
		uses = append(uses, m.apart(g, u)...)
	}
	if component != nil {
		uses = append(uses, m.byComponent(component)...)
	}
	return uses, nil
}

// apart separates the shims from the runtime that they start.
func (m *Meter) apart(g string, both proc.Usage) []Use {
	list, err := os.ReadFile(filepath.Join(m.h.counting(), g, "cgroup.procs"))
	if err != nil {
		return []Use{{Part: partShims, Usage: both}}
	}
	runtime := Use{Part: PartRuntime}
	for _, s := range m.shims {
		s.seen = false
	}
	for line := range strings.FieldsSeq(string(list)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			continue
		}
		if s := m.shims[pid]; s != nil {
			s.seen = true
			continue
		}
		p, err := m.processes.Proc(pid)
		if err != nil {
			continue // the process has ended
		}
		switch command, err := p.Comm(); {
		case err != nil:
		case strings.HasPrefix(command, "containerd-shim"):
			m.shims[pid] = &shim{seen: true}
			m.queue = append(m.queue, pid)
		default:
			runtime.Processes++
			memory, _ := p.Statm() // zero if it has ended
			runtime.RSSBytes += int64(memory.ResidentBytes())
		}
	}
	m.queue = slices.DeleteFunc(m.queue, func(pid int) bool {
		s := m.shims[pid]
		if s.seen {
			return false
		}
		m.ended += s.cpu
		delete(m.shims, pid)
		return true
	})
	due := min(len(m.queue), shimsPerReading)
	for i, pid := range m.queue {
		s := m.shims[pid]
		if i >= due && s.readings >= firstReadings {
			continue
		}
		s.readings++
		if cpu, ok := m.ownCPU(pid); ok {
			s.cpu = max(s.cpu, cpu)
		}
	}
	m.queue = append(m.queue[due:], m.queue[:due]...)
	own := m.ended
	for _, s := range m.shims {
		own += s.cpu
	}
	// CPU time that was counted for the runtime stays there when a shim is read later.
	m.runtime = min(max(m.runtime, both.CPUSeconds-own), both.CPUSeconds)
	runtime.CPUSeconds = m.runtime
	shims := Use{Part: partShims, Processes: len(m.shims)}
	shims.CPUSeconds = both.CPUSeconds - m.runtime
	shims.RSSBytes = max(both.RSSBytes-runtime.RSSBytes, 0)
	return []Use{shims, runtime}
}

// ownCPU returns the CPU seconds of a process's threads, finer than its account's steps of 10 ms.
func (m *Meter) ownCPU(pid int) (float64, bool) {
	threads, err := m.processes.AllThreads(pid)
	if err != nil {
		return 0, false
	}
	total := 0.0
	for _, t := range threads {
		used, err := t.Schedstat()
		if err != nil {
			continue // the thread has ended
		}
		total += float64(used.RunningNanoseconds) / 1e9
	}
	return total, true
}

func (m *Meter) byComponent(component func(uid string) string) []Use {
	top := filepath.Join(group(m.dir), "kubepods")
	for _, p := range m.pods {
		p.seen = false
	}
	m.memories = memoriesPerReading
	first := m.turn // so that each gets its turn if there are too many
	m.turn++
	var groups []string
	for _, class := range []string{"", "burstable", "besteffort"} {
		entries, err := os.ReadDir(filepath.Join(m.h.counting(), top, class))
		if err != nil {
			continue // no pod of that class
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "pod") && e.IsDir() {
				groups = append(groups, filepath.Join(top, class, e.Name()))
			}
		}
	}
	for i := range groups {
		g := groups[(i+first*memoriesPerReading)%len(groups)]
		m.readPod(g, strings.TrimPrefix(filepath.Base(g), "pod"), component)
	}
	for _, p := range m.parts {
		p.memory, p.pods = 0, 0
	}
	for uid, p := range m.pods {
		if !p.seen {
			delete(m.pods, uid) // its use stays in the sum
			continue
		}
		if p.part != "" {
			m.parts[p.part].memory += p.memory
			m.parts[p.part].pods++
		}
	}
	var uses []Use
	for name, p := range m.parts {
		uses = append(uses, Use{Part: name, Usage: proc.Usage{CPUSeconds: p.cpu, RSSBytes: p.memory, IOBytes: -1}, Processes: p.pods})
	}
	slices.SortFunc(uses, func(a, b Use) int { return strings.Compare(a.Part, b.Part) })
	return uses
}

func (m *Meter) readPod(g, uid string, component func(string) string) {
	cpu, err := m.h.cpu(g)
	if err != nil {
		return // the group is being made or removed
	}
	p := m.pods[uid]
	isNew := p == nil
	if isNew {
		p = &pod{}
		m.pods[uid] = p
	}
	if p.stale = p.stale || cpu != p.cpu || isNew; p.stale && (isNew || m.memories > 0) {
		if memory, err := m.h.memory(g); err == nil {
			p.memory, p.stale = memory, false
		}
		m.memories--
	}
	p.seen = true
	p.readings++
	if p.part == "" {
		if name := component(uid); name != "" {
			p.part = ComponentPart(name)
		} else if p.readings >= knownWithin {
			p.part = partOther
		}
		if p.part != "" {
			if m.parts[p.part] == nil {
				m.parts[p.part] = &part{}
			}
			m.parts[p.part].cpu += p.cpu // from before
		}
	}
	if more := cpu - p.cpu; more > 0 {
		p.cpu = cpu
		if p.part != "" {
			m.parts[p.part].cpu += more
		}
	}
}

// counting returns the root of the groups that count CPU time.
func (h hierarchy) counting() string { return cmp.Or(h.unified, h.mounts["cpuacct"]) }

func (h hierarchy) usage(g string) (proc.Usage, error) {
	cpu, err1 := h.cpu(g)
	memory, err2 := h.memory(g)
	return proc.Usage{CPUSeconds: cpu, RSSBytes: memory, IOBytes: -1}, errors.Join(err1, err2)
}

func (h hierarchy) cpu(g string) (float64, error) {
	if h.unified != "" {
		micros, err := statValues(filepath.Join(h.unified, g, "cpu.stat"), "usage_usec")
		return float64(micros) / 1e6, err
	}
	text, err := os.ReadFile(filepath.Join(h.mounts["cpuacct"], g, "cpuacct.usage"))
	if err != nil {
		return 0, err
	}
	nanos, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return float64(nanos) / 1e9, err
}

// memory returns the bytes that a group and those below it hold and share, without files.
func (h hierarchy) memory(g string) (int64, error) {
	if h.unified != "" {
		return statValues(filepath.Join(h.unified, g, "memory.stat"), "anon", "shmem")
	}
	return statValues(filepath.Join(h.mounts["memory"], g, "memory.stat"), "total_rss", "total_shmem")
}

// statValues adds up values of a file of lines "name value".
func statValues(file string, names ...string) (int64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	sum, found := int64(0), 0
	for line := range bytes.Lines(data) {
		key, value, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if !ok || !slices.Contains(names, string(key)) {
			continue
		}
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %s is %q: %w", file, key, value, err)
		}
		sum += n
		if found++; found == len(names) {
			return sum, nil
		}
	}
	return 0, fmt.Errorf("%s lacks one of %s", file, strings.Join(names, ", "))
}

// Histogram says how long something took that a program of the node publishes, since the program's start.
type Histogram struct {
	Name   string // the program's own label, or words if it has none
	Count  uint64
	Sum    float64   // seconds
	Bounds []float64 // Counts says how many took at most so many seconds, by rising Bounds; Count has all
	Counts []uint64
}

// A histogram is one of the kubelet's about a pod's start or end, with a label and its values, nil for all.
// The kubelet counts each pod twice in kubelet_pod_start_duration_seconds, which is not among them.
type histogram struct {
	metric, name, label string
	values              []string
}

func kubeletHistograms() []histogram {
	return []histogram{
		{"kubelet_pod_start_sli_duration_seconds", "pod start since its creation, without pulling images", "", nil},
		{"kubelet_pod_worker_start_duration_seconds", "wait for a worker", "", nil},
		{"kubelet_pod_worker_duration_seconds", "worker: ", "operation_type", []string{"create"}},
		{"kubelet_run_podsandbox_duration_seconds", "sandbox of runtime ", "runtime_handler", nil},
		{"kubelet_runtime_operations_duration_seconds", "", "operation_type", []string{
			"run_podsandbox", "pull_image", "create_container", "start_container", "stop_container", "stop_podsandbox", "remove_container", "remove_podsandbox"}},
		{"kubelet_pleg_relist_duration_seconds", "relist of all pods", "", nil},
	}
}

// KubeletHistograms reads from a kubelet's metrics how long its work and the runtime's took.
func KubeletHistograms(metrics io.Reader) ([]Histogram, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("read the kubelet's metrics: %w", err)
	}
	var list []Histogram
	for _, h := range kubeletHistograms() {
		for _, m := range families[h.metric].GetMetric() {
			value := labelValue(m, h.label)
			if m.GetHistogram() == nil || len(h.values) > 0 && !slices.Contains(h.values, value) {
				continue
			}
			if h.label == "runtime_handler" && value == "" {
				value = "(default)"
			}
			list = append(list, histogramOf(h.name+value, m.Histogram))
		}
	}
	return list, nil
}

// Collections reads from a Go program's metrics the pauses and CPU time of its garbage collection.
func Collections(metrics []byte) ([]Histogram, error) {
	families, err := familiesIn(metrics, "go_gc_", "go_cpu_classes_gc_")
	if err != nil {
		return nil, err
	}
	counter := func(name string) float64 {
		if m := families[name].GetMetric(); len(m) > 0 {
			return m[0].GetCounter().GetValue()
		}
		return 0
	}
	var list []Histogram
	for _, m := range families["go_gc_pauses_seconds"].GetMetric() {
		list = append(list, histogramOf(record.CollectionPauses, m.GetHistogram()))
	}
	if cycles := counter("go_gc_cycles_total_gc_cycles_total"); cycles > 0 {
		took := counter("go_cpu_classes_gc_total_cpu_seconds_total") - counter("go_cpu_classes_gc_mark_idle_cpu_seconds_total")
		list = append(list, Histogram{Name: record.CollectionCPU, Count: uint64(cycles), Sum: max(took, 0)})
	}
	return list, nil
}

// ClientWaits reads from a client-go program's metrics how long requests waited for its limit.
func ClientWaits(metrics []byte) ([]Histogram, error) {
	const name = "rest_client_rate_limiter_duration_seconds"
	families, err := familiesIn(metrics, name)
	if err != nil {
		return nil, err
	}
	all := Histogram{Name: record.ClientWaits}
	for _, m := range families[name].GetMetric() {
		all.Count, all.Sum = all.Count+m.GetHistogram().GetSampleCount(), all.Sum+m.GetHistogram().GetSampleSum()
	}
	if all.Count == 0 {
		return nil, nil
	}
	return []Histogram{all}, nil
}

// familiesIn parses only the metrics with a prefix: a program publishes megabytes.
func familiesIn(metrics []byte, prefixes ...string) (map[string]*dto.MetricFamily, error) {
	var own []byte
	for line := range bytes.Lines(metrics) {
		name := bytes.TrimPrefix(line, []byte("# TYPE "))
		if slices.ContainsFunc(prefixes, func(p string) bool { return bytes.HasPrefix(name, []byte(p)) }) {
			own = append(own, line...)
		}
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(own))
	if err != nil {
		return nil, fmt.Errorf("read a program's metrics: %w", err)
	}
	return families, nil
}

func histogramOf(name string, h *dto.Histogram) Histogram {
	d := Histogram{Name: name, Count: h.GetSampleCount(), Sum: h.GetSampleSum()}
	for _, b := range h.GetBucket() {
		if bound := b.GetUpperBound(); bound < 1e300 {
			d.Bounds, d.Counts = append(d.Bounds, bound), append(d.Counts, b.GetCumulativeCount())
		}
	}
	return d
}

func labelValue(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
