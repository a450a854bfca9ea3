package recorded

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/planted"
	"plimsoll.dev/plimsoll/internal/record"
)

// pair is two operands whose differences are looked for.
type pair struct {
	a, b *Operand
	// lines says that load lines decide, and not levels.
	lines bool
	// defaults are the values of parameters that were not given; nil is not known.
	defaults map[string]string
}

// aspect is one thing that two experiments may not have in common.
type aspect struct {
	name string
	help string // what is compared, in a line of --help
	// bearing is what a difference means while --arm-is does not name it.
	bearing func(pair) string
	// value is how an operand has it, "" where that is not on record.
	value func(*Operand) string
	// same says which texts that differ are the same too; nil is none.
	same func(a, b *Operand) bool
}

func refuses(pair) string { return compare.BearingRefuses }
func noted(pair) string   { return compare.BearingNoted }

// inLab refuses what ran on the machine of a lab, where everything
// shares it; beside any other cluster the machine only sends requests, and a
// run in which that was too slow is invalid.
func inLab(p pair) string {
	if p.a.inLab() || p.b.inLab() {
		return compare.BearingRefuses
	}
	return compare.BearingNoted
}

// Names that are told apart by what comes after a colon, and names of what is
// found in the runs themselves.
const (
	paramPrefix    = "param:"
	fidelityPrefix = "fidelity:"
	axisName       = "axis"
	noEnvironment  = "environment"
	loadName       = "load"
	offeredName    = "offered-rate"
	othersName     = "others"
)

// aspects are what is compared, besides the parameters and what is found in
// the runs. What may be the cause of a change refuses a verdict:
//
//   - what was asked for and how (workload and its files, axis, milestones, pace, hold,
//     timeout, life, fresh, normal-events, lab-start-latency), since other work
//     takes other time;
//   - what it was asked of (target, pod-range, kubernetes, kubelet, nodes,
//     node-shape, kernel, os, runtime, cgroup, fidelity), which is what people
//     change, and state with --arm-is;
//   - what was in the way (health, load, others, and host and isolation beside a
//     lab).
//
// What only bears on what is told is noted: where a search looked, which kind
// of experiment it was, when it was made, the clock's offset (latencies are of
// one clock), which of several alike targets it was, and the ceiling that binds
// first, which follows from what is compared already. Not compared is what is
// drawn for each run (its ID and its seed), its name and its budget.
func aspects() []aspect {
	list := []aspect{
		{"workload", "the workload's name", refuses, func(o *Operand) string { return o.plan.Workload }, nil},
		{"workload-files", "the fingerprint of the workload's files", refuses, func(o *Operand) string { return o.files }, nil},
		{axisName, "the axis; levels on different axes are never compared", refuses, func(o *Operand) string {
			return fmt.Sprintf("%s (%s)", o.plan.Axis.Name, o.plan.AsRun.Unit)
		}, nil},
		{"milestones", "the milestones, and the one at which an object is ready", refuses, func(o *Operand) string {
			return fmt.Sprintf("%s; ready at %s", strings.Join(o.plan.AsRun.Milestones, " "), o.plan.AsRun.Arrived)
		}, nil},
		{"goals", "the objectives; load lines of a goal are compared only where these are equal", noted, ofPlan(goals), nil},
		{"kind", "limit, sweep, ab or run", noted, func(o *Operand) string { return string(o.plan.AsRun.Kind) }, nil},
		{"search", "the range and the resolution of the search", noted, ofPlan(search), oneWithoutSearch},
		// A line that must hold more often lies lower.
		{"confirm", "confirmations of a load line", func(p pair) string {
			if p.lines {
				return compare.BearingRefuses
			}
			return compare.BearingNoted
		}, ofPlan(confirm), oneWithoutSearch},
		{"pace", "creations per second", refuses, func(o *Operand) string { return text(o.plan.Pace) }, nil},
		{"hold", "how long a level was held", refuses, func(o *Operand) string { return text(o.plan.Hold) }, nil},
		{"timeout", "how long objects were followed", refuses, func(o *Operand) string { return text(o.plan.StepTimeout) }, nil},
		{"life", "how long an object of an axis of arrivals lives", refuses, func(o *Operand) string { return text(o.plan.Axis.Life) }, nil},
		// A guard is in the way only where it struck.
		{"guards", "bounds that stop the load", func(p pair) string {
			if p.a.guarded() || p.b.guarded() {
				return compare.BearingRefuses
			}
			return compare.BearingNoted
		}, ofPlan(guards), nil},
		{"fresh", "what a step from empty begins with: no objects, or a new lab", refuses, func(o *Operand) string { return cmp.Or(o.plan.Fresh, plan.FreshObjects) }, nil},
		{"normal-events", "whether events of type Normal were watched", refuses, func(o *Operand) string { return yes(o.plan.NormalEvents) }, nil},
		{"target", "a lab, a cluster or a simulated target", refuses, ofEnvironment(func(e *record.Environment) string { return e.Target.Kind }), nil},
		{"target-name", "which lab or cluster", noted, ofEnvironment(targetName), nil},
		{"lab-start-latency", "start latency of all pods of a private lab", refuses, ofPlan(labLatency), oneWithoutLab},
		{"lab-virt", "what is planted in a private lab's virtual machines, and their scale of time", refuses, ofPlan(labVirt), oneWithoutLab},
		{"pod-range", "prefix length of the pod addresses of a private lab's real node", refuses, ofPlan(podRange), oneWithoutLab},
		{"health", "problems of the target before any load", refuses, ofEnvironment(health), nil},
		{"ceilings", "the ceiling known before any load that binds first", noted, ofEnvironment(binding), nil},
		{"kubernetes", "the API server's version", refuses, ofCluster(func(c *record.Cluster) string { return c.Server }), nil},
		{"kubelet", "the nodes' kubelet", refuses, ofNodes(func(n record.Node) string { return n.Kubelet }), nil},
		{"nodes", "number of nodes that take the workload", refuses, ofCluster(func(c *record.Cluster) string { return fmt.Sprint(len(c.Nodes)) }), nil},
		{"node-shape", "the nodes' allocatable pods, CPU and memory", refuses, ofCluster(shape), sameShape},
		{"nodes-skipped", "number of nodes that do not take the workload", noted, ofCluster(func(c *record.Cluster) string { return fmt.Sprint(c.Skipped) }), nil},
		{"kernel", "the nodes' kernel; in a lab this machine's", refuses, func(o *Operand) string {
			if o.inLab() {
				return o.Environment.Host.Kernel
			}
			return ofNodes(func(n record.Node) string { return n.Kernel })(o)
		}, nil},
		{"os", "the nodes' operating system", refuses, ofNodes(func(n record.Node) string { return n.OSImage }), nil},
		{"runtime", "the nodes' container runtime", refuses, (*Operand).runtimes, nil},
		{"cgroup", "the cgroup version in a lab; a cluster's is not on record", refuses, func(o *Operand) string {
			if o.inLab() {
				return o.Environment.Host.CgroupVersion
			}
			return ""
		}, nil},
		{"host", "CPUs and memory of the machine that plimsoll ran on", inLab, ofEnvironment(host), sameHost},
		{"isolation", "how that machine's CPUs were shared", inLab, ofEnvironment(func(e *record.Environment) string { return e.Isolation.Split }), nil},
	}
	for _, part := range []struct {
		name string
		is   func(record.Fidelity) record.Realness
	}{
		{"control-plane", func(f record.Fidelity) record.Realness { return f.ControlPlane }},
		{"nodes", func(f record.Fidelity) record.Realness { return f.Nodes }},
		{"containers", func(f record.Fidelity) record.Realness { return f.Containers }},
		{"guests", func(f record.Fidelity) record.Realness { return f.Guests }},
	} {
		list = append(list, aspect{fidelityPrefix + part.name, "real or simulated", refuses, ofEnvironment(func(e *record.Environment) string { return string(part.is(e.Fidelity)) }), nil})
	}
	return append(list,
		aspect{"program", "plimsoll's version; a change beyond the patch number may change what is measured", func(p pair) string {
			if release(p.a.Result.Version) == release(p.b.Result.Version) {
				return compare.BearingNoted
			}
			return compare.BearingRefuses
		}, func(o *Operand) string { return o.Result.Version }, nil},
		aspect{"clock", "offset of the server's clock", noted, ofEnvironment(clock), sameClock},
		aspect{"time", "when it was run", noted, func(o *Operand) string {
			if o.start().IsZero() {
				return ""
			}
			return o.start().UTC().Format("2006-01-02 15:04:05")
		}, nil},
	)
}

// Kept is how far apart what is measured of machines and of runs may lie and
// still be the same.
const (
	sameMemory = 0.02 // of a node's or a host's memory: what firmware and kernel keep varies
	sameLoad   = 0.01 // of a level that was reached, and of objects asked for
	sameRate   = 0.10 // of the offered rate
	sameOthers = 15.0 // percent of the CPUs, as much as is tolerated in a step
	sameOffset = 1.0  // seconds: the clock's offset is known to within one
)

// Name of what --arm-is takes, and what it stands for.
type NameHelp struct{ Name, Help string }

// Names are what --arm-is takes: a part of what two experiments may not have
// in common.
func Names() []NameHelp {
	list := []NameHelp{{paramPrefix + "NAME", "a parameter of the workload; param stands for all"}}
	fidelity := false
	for _, x := range aspects() {
		switch {
		case x.name == axisName: // never an arm
		case strings.HasPrefix(x.name, fidelityPrefix):
			if !fidelity {
				list = append(list, NameHelp{fidelityPrefix + "PART", "control-plane, nodes, containers or guests: real or simulated; fidelity stands for all"})
			}
			fidelity = true
		default:
			list = append(list, NameHelp{x.name, x.help})
		}
	}
	return append(list,
		NameHelp{noEnvironment, "the whole target, where it is not on record"},
		NameHelp{loadName, "the load at a level: level reached and objects asked for"},
		NameHelp{othersName, "CPU of this machine that other programs used"},
		NameHelp{offeredName, "requests per second that were offered"},
	)
}

// UnknownNameError says that something of that name cannot be the arm.
type UnknownNameError struct {
	Name  string
	Known []string
}

func (e *UnknownNameError) Error() string {
	if e.Name == axisName {
		return "levels on different axes cannot be compared, whatever --arm-is says"
	}
	return fmt.Sprintf("unknown difference %q", e.Name)
}

// CheckArm reports whether each name is one that --arm-is takes. A parameter
// must be one that an operand has or that the workload knows.
func CheckArm(names []string, params []string) error {
	var known []string
	for _, x := range Names() {
		switch x.Name {
		case paramPrefix + "NAME":
			known = append(known, strings.TrimSuffix(paramPrefix, ":"))
			for _, p := range params {
				known = append(known, paramPrefix+p)
			}
		case fidelityPrefix + "PART":
			known = append(known, strings.TrimSuffix(fidelityPrefix, ":"), fidelityPrefix+"control-plane", fidelityPrefix+"nodes", fidelityPrefix+"containers", fidelityPrefix+"guests")
		default:
			known = append(known, x.Name)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return &UnknownNameError{n, known}
		}
	}
	return nil
}

// nameMatches reports whether a name that was given stands for one of a difference:
// itself, or all that begin with it and a colon.
func nameMatches(given, what string) bool {
	return given == what || strings.HasPrefix(what, given+":")
}

const unknown = "not on record"

// differences are what the two do not have in common, the parameters first.
func (p pair) differences() []compare.Difference {
	list := p.paramDifferences()
	if p.a.Environment == nil && p.b.Environment == nil {
		list = append(list, compare.Difference{
			What: noEnvironment, Baseline: unknown, Arm: unknown, Bearing: compare.BearingRefuses,
			Detail: "neither record names its target",
		})
	}
	for _, x := range aspects() {
		a, b := x.value(p.a), x.value(p.b)
		if a == b || x.same != nil && x.same(p.a, p.b) {
			continue
		}
		list = append(list, compare.Difference{What: x.name, Baseline: cmp.Or(a, unknown), Arm: cmp.Or(b, unknown), Bearing: x.bearing(p)})
	}
	return list
}

func (p pair) paramDifferences() []compare.Difference {
	a, b := p.a.params(), p.b.params()
	var list []compare.Difference
	shown := func(given map[string]string, name string) string {
		value, ok := given[name]
		if !ok {
			value, ok = p.defaults[name]
		}
		if !ok {
			return "not given"
		}
		return cmp.Or(value, "not set")
	}
	for _, name := range p.paramNames() {
		if x, y := shown(a, name), shown(b, name); x != y {
			list = append(list, compare.Difference{What: paramPrefix + name, Baseline: x, Arm: y, Bearing: compare.BearingArm})
		}
	}
	return list
}

// atLevel are the differences of the load that the runs of one level met.
func (p pair) atLevel(level float64, a, b []replicate) []compare.Difference {
	var list []compare.Difference
	add := func(name, what, bearing string, x, y float64, show func(float64) string) {
		list = append(list, compare.Difference{What: name, Detail: fmt.Sprintf("%s at level %s", what, number(level)), Baseline: show(x), Arm: show(y), Bearing: bearing})
	}
	median := func(list []replicate, of func(replicate) (float64, bool)) (float64, bool) {
		var values []float64
		for _, r := range list {
			if v, ok := of(r); ok {
				values = append(values, v)
			}
		}
		if len(values) == 0 {
			return 0, false
		}
		slices.Sort(values)
		return values[len(values)/2], true
	}
	both := func(of func(replicate) (float64, bool)) (x, y float64, ok bool) {
		x, okA := median(a, of)
		y, okB := median(b, of)
		return x, y, okA && okB
	}
	apart := func(x, y float64) float64 {
		return math.Abs(x-y) / max(math.Abs(x), math.Abs(y), math.SmallestNonzeroFloat64)
	}
	plain := func(x float64) string { return fmt.Sprintf("%.4g", x) }
	if x, y, ok := both(func(r replicate) (float64, bool) { return r.step.LevelReached, true }); ok && apart(x, y) > sameLoad {
		add(loadName, "level reached", compare.BearingRefuses, x, y, plain)
	} else if x, y, ok := both(func(r replicate) (float64, bool) { return float64(r.step.Objects.Intended), true }); ok && apart(x, y) > sameLoad && x != y {
		add(loadName, "objects asked for", compare.BearingRefuses, x, y, plain)
	}
	// Without a schedule or a pace the rate follows from how fast requests were
	// answered: nothing was offered.
	offered := func(r replicate) (float64, bool) {
		if r.step.OfferedRate == nil || !r.step.Open && r.step.Pace == "max" {
			return 0, false
		}
		return *r.step.OfferedRate, true
	}
	if x, y, ok := both(offered); ok && apart(x, y) > sameRate {
		add(offeredName, "requests per second", compare.BearingNoted, x, y, plain)
	}
	others := func(r replicate) (float64, bool) {
		if r.step.Bottleneck == nil || r.step.Bottleneck.CPUs == 0 {
			return 0, false
		}
		for _, by := range r.step.Bottleneck.CPUBy {
			if by.Source == "others" {
				return by.Percent, true
			}
		}
		return 0, true
	}
	if x, y, ok := both(others); ok && math.Abs(x-y) > sameOthers {
		add(othersName, "CPU that other programs used", compare.BearingRefuses, x, y, func(x float64) string { return fmt.Sprintf("%.0f%%", x) })
	}
	return list
}

func (o *Operand) inLab() bool { return o.Environment != nil && o.Environment.Target.Kind == "lab" }

// oneWithoutSearch and oneWithoutLab take for the same what only one of the two
// plans can say.
func oneWithoutSearch(a, b *Operand) bool {
	return a.plan.Axis.Search == nil || b.plan.Axis.Search == nil
}

func oneWithoutLab(a, b *Operand) bool { return !a.plan.Target.Has("lab") || !b.plan.Target.Has("lab") }

func ofPlan(value func(*plan.Plan) string) func(*Operand) string {
	return func(o *Operand) string { return value(o.plan) }
}

func ofEnvironment(value func(*record.Environment) string) func(*Operand) string {
	return func(o *Operand) string {
		if o.Environment == nil {
			return ""
		}
		return value(o.Environment)
	}
}

func ofCluster(value func(*record.Cluster) string) func(*Operand) string {
	return ofEnvironment(func(e *record.Environment) string {
		if e.Cluster == nil {
			return ""
		}
		return value(e.Cluster)
	})
}

// ofNodes are the nodes' values with their shares, the most frequent first.
func ofNodes(value func(record.Node) string) func(*Operand) string {
	return ofCluster(func(c *record.Cluster) string { return shares(c.Nodes, value) })
}

func shares(nodes []record.Node, value func(record.Node) string) string {
	count := make(map[string]int)
	for _, n := range nodes {
		count[value(n)]++
	}
	values := slices.Sorted(maps.Keys(count))
	slices.SortStableFunc(values, func(x, y string) int { return cmp.Compare(count[y], count[x]) })
	if len(values) == 1 {
		return values[0]
	}
	const most = 4
	var parts []string
	for i, v := range values {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(values)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%s on %.0f%%", cmp.Or(v, unknown), 100*float64(count[v])/float64(len(nodes))))
	}
	return strings.Join(parts, ", ")
}

func shape(c *record.Cluster) string {
	return shares(c.Nodes, func(n record.Node) string {
		return fmt.Sprintf("%d pods, %s CPUs, %s", n.Pods, number(float64(n.CPUMillis)/1000), gibibytes(n.MemoryBytes))
	})
}

// sameShape compares the nodes in the order of their size, at as many places as
// the smaller cluster has nodes.
func sameShape(a, b *Operand) bool {
	sorted := func(o *Operand) []record.Node {
		if o.Environment == nil || o.Environment.Cluster == nil {
			return nil
		}
		nodes := slices.Clone(o.Environment.Cluster.Nodes)
		slices.SortFunc(nodes, func(x, y record.Node) int {
			return cmp.Or(cmp.Compare(x.Pods, y.Pods), cmp.Compare(x.CPUMillis, y.CPUMillis), cmp.Compare(x.MemoryBytes, y.MemoryBytes))
		})
		return nodes
	}
	x, y := sorted(a), sorted(b)
	n := min(len(x), len(y))
	if n == 0 {
		return len(x) == len(y)
	}
	for i := range n {
		p, q := x[i*len(x)/n], y[i*len(y)/n]
		if p.Pods != q.Pods || p.CPUMillis != q.CPUMillis || !near(p.MemoryBytes, q.MemoryBytes) {
			return false
		}
	}
	return true
}

func host(e *record.Environment) string {
	if e.Host.CPUs == 0 && e.Host.MemoryBytes == 0 {
		return ""
	}
	return fmt.Sprintf("%d CPUs, %s", e.Host.CPUs, gibibytes(e.Host.MemoryBytes))
}

func sameHost(a, b *Operand) bool {
	x, y := a.Environment, b.Environment
	return x != nil && y != nil && x.Host.CPUs == y.Host.CPUs && near(x.Host.MemoryBytes, y.Host.MemoryBytes)
}

func near(x, y int64) bool {
	return math.Abs(float64(x-y)) <= sameMemory*float64(max(x, y))
}

func clock(e *record.Environment) string {
	if e.ClockOffset == nil {
		return ""
	}
	return fmt.Sprintf("%+.1f s", *e.ClockOffset)
}

func sameClock(a, b *Operand) bool {
	x, y := a.Environment, b.Environment
	return x != nil && y != nil && x.ClockOffset != nil && y.ClockOffset != nil && math.Abs(*x.ClockOffset-*y.ClockOffset) <= sameOffset
}

// targetName tells private labs, which live as long as a run, from
// others, but not from each other.
func targetName(e *record.Environment) string {
	if e.Target.Private {
		return "private"
	}
	return e.Target.Name
}

func goals(p *plan.Plan) string {
	var parts []string
	for _, g := range p.Goals {
		parts = append(parts, fmt.Sprintf("%s: %s", g.Key, strings.Join(g.Value, "; ")))
	}
	return strings.Join(parts, " | ")
}

func search(p *plan.Plan) string {
	s := p.Axis.Search
	if s == nil {
		return ""
	}
	return fmt.Sprintf("from %s by %s up to %s, resolution %s", number(s.From), number(s.Step), number(s.Max), number(s.Resolution))
}

func confirm(p *plan.Plan) string {
	if p.Axis.Search == nil {
		return ""
	}
	return text(p.Axis.Search.Confirm)
}

func guards(p *plan.Plan) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Guards)) {
		parts = append(parts, fmt.Sprintf("%s %s", name, text(p.Guards[name])))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// guarded reports whether a guard ended a step.
func (o *Operand) guarded() bool {
	return slices.ContainsFunc(o.Result.Steps, func(s judge.Step) bool {
		return s.Ending == record.EndGuard && (o.Arm == "" || s.Arm == o.Arm)
	})
}

func labLatency(p *plan.Plan) string {
	if !p.Target.Has("lab") {
		return ""
	}
	return cmp.Or(p.Target.At("lab.startLatency").String(), "none")
}

func labVirt(p *plan.Plan) string {
	scale, err := strconv.ParseFloat(p.Target.At("lab.timeScale").String(), 64)
	if err != nil || scale == 0 {
		return ""
	}
	var figures map[string]string
	if err := p.Target.At("lab.virt").Decode("", &figures, nil); err != nil {
		return ""
	}
	said := strings.TrimSuffix(fmt.Sprintf("scale %g, %s", scale, planted.List(figures)), ", ")
	if guests := p.Target.At("lab.realGuests").String(); guests != "" && guests != "0" {
		said += ", " + guests + " real guests"
	}
	return said
}

func podRange(p *plan.Plan) string {
	if prefix := p.Target.At("lab.podCIDRPrefix").String(); prefix != "" && prefix != "0" {
		return "/" + prefix
	}
	return "default"
}

// runtimes are what the nodes tell of their runtimes, and with a real node of
// a lab the versions of what it runs.
func (o *Operand) runtimes() string {
	value := ofNodes(func(n record.Node) string { return n.Runtime })(o)
	if o.Environment == nil || len(o.Environment.Host.Runtimes) == 0 {
		return value
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(o.Environment.Host.Runtimes)) {
		parts = append(parts, name+" "+o.Environment.Host.Runtimes[name])
	}
	return strings.TrimSpace(value + " (" + strings.Join(parts, ", ") + ")")
}

// health is what was found wrong before any load, without how much of it. What
// only bears on what can be told or done is left out.
func health(e *record.Environment) string {
	if e.Findings == nil {
		return ""
	}
	var list []string
	for _, f := range e.Findings {
		if f.Severity == record.SeverityOK || f.What == "clock" || f.What == "rights" {
			continue
		}
		if text := fmt.Sprintf("%s: %s", f.What, f.Severity); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	slices.Sort(list)
	return cmp.Or(strings.Join(list, ", "), "nothing wrong")
}

// binding is the ceiling that binds first.
func binding(e *record.Environment) string {
	if e.Ceilings == nil {
		return ""
	}
	b := e.Ceilings.Binding()
	if b == nil || b.Level == nil {
		return "none known"
	}
	return fmt.Sprintf("%s at %s", b.Name, number(*b.Level))
}

// release is a version without its last number: 0.1 of 0.1.3.
func release(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

func gibibytes(n int64) string { return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30)) }

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// text is how a part of a plan is written in its file.
func text(v interface{ MarshalText() ([]byte, error) }) string {
	b, err := v.MarshalText()
	if err != nil {
		return ""
	}
	return string(b)
}
