package recorded

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/number"
)

type pair struct {
	a, b *Operand

	lines    bool              // load lines decide, and not levels
	defaults map[string]string // of parameters; nil is unknown
}

type aspect struct {
	name    string
	help    string                   // a line of --help
	bearing func(pair) string        // the meaning of a difference that --arm-is does not name
	value   func(*Operand) string    // of an operand, "" where that is not on record
	same    func(a, b *Operand) bool // treats different texts as equal, may be nil
}

func refuses(pair) string { return compare.BearingRefuses }
func noted(pair) string   { return compare.BearingNoted }

// Names of differences: the prefix is followed by a parameter, the last three are found in the runs.
const (
	paramPrefix   = "param:"
	axisName      = "axis"
	noEnvironment = "environment"
	machineName   = "machine"
	loadName      = "load"
	offeredName   = "offered-rate"
	othersName    = "others"
)

// aspects returns the compared parts of plans, besides parameters and findings in the runs; the facts of
// environments compare the places. Other work takes other time, so most refuse a verdict, and parts that
// only bear on the presentation are noted. ID and seed of a run, its name and budget are not compared.
func aspects() []aspect {
	return []aspect{
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
		// What is read costs who publishes it some processor time.
		{"scrape", "how often metrics were read", noted, ofPlan(scrape), nil},
		{"fresh", "what a step from empty begins with: no objects, or a new lab", refuses, func(o *Operand) string { return cmp.Or(o.plan.Fresh, plan.FreshObjects) }, nil},
		{"normal-events", "whether events of type Normal were watched", refuses, func(o *Operand) string { return yes(o.plan.NormalEvents) }, nil},
		{"program", "plimsoll's version; a change beyond the patch number may change what is measured", func(p pair) string {
			if release(p.a.Result.Version) == release(p.b.Result.Version) {
				return compare.BearingNoted
			}
			return compare.BearingRefuses
		}, func(o *Operand) string { return o.Result.Version }, nil},
		{"time", "when it was run", noted, func(o *Operand) string {
			if o.start().IsZero() {
				return ""
			}
			return o.start().UTC().Format("2006-01-02 15:04:05")
		}, nil},
	}
}

// The largest differences at which measurements of runs count as equal.
const (
	sameLoad   = 0.01 // of a level that was reached, and of objects asked for
	sameRate   = 0.10 // of the offered rate
	sameOthers = 15.0 // percent of the CPUs, as much as is tolerated in a step
)

// NameHelp holds a name for --arm-is, and a line of help.
type NameHelp struct{ Name, Help string }

// Names returns the names for --arm-is: possible differences, also by facts from targets or records.
func Names(facts []record.Fact) []NameHelp {
	list := []NameHelp{{paramPrefix + "NAME", "a parameter of the workload"}}
	for _, x := range aspects() {
		if x.name != axisName { // never an arm
			list = append(list, NameHelp{x.name, x.help})
		}
	}
	for _, f := range slices.Concat(record.Declared(), facts, record.Host{}.Facts(false), record.Host{}.Facts(true)) {
		i := slices.IndexFunc(list, func(n NameHelp) bool { return n.Name == f.Name })
		switch {
		case i < 0:
			list = append(list, NameHelp{f.Name, f.What})
		case !strings.Contains(list[i].Help, f.What):
			list[i].Help += ", or " + f.What
		}
	}
	return append(list,
		NameHelp{machineName, "the machine: all facts of host, kernel, cgroup, isolation, os, filesystem and shapes"},
		NameHelp{noEnvironment, "the whole target, where it is not on record"},
		NameHelp{loadName, "the load at a level: level reached and objects asked for"},
		NameHelp{othersName, "CPU of this machine that other programs used"},
		NameHelp{offeredName, "requests per second that were offered"},
	)
}

// UnknownNameError says that nothing of that name can be the arm.
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

// CheckArm checks names for --arm-is, whole or before a colon; parameters must be among params.
func CheckArm(names, params []string, facts []record.Fact) error {
	var known []string
	for _, p := range params {
		known = append(known, paramPrefix+p)
	}
	for _, x := range Names(facts)[1:] {
		known = append(known, x.Name)
	}
	for _, name := range append([]string{paramPrefix}, known...) {
		if group, _, several := strings.Cut(name, ":"); several && !slices.Contains(known, group) {
			known = append(known, group)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return &UnknownNameError{n, known}
		}
	}
	return nil
}

// nameMatches reports whether a name, a part before its colon, or "machine" stands for a difference.
func nameMatches(given, what string) bool {
	return given == machineName && record.MachineFact(what) || given == what || strings.HasPrefix(what, given+":")
}

const unknown = "not on record"

func (p pair) differences() []compare.Difference {
	list := p.paramDifferences()
	if p.a.Environment == nil && p.b.Environment == nil {
		list = append(list, compare.Difference{
			What: noEnvironment, Baseline: unknown, Arm: unknown, Bearing: compare.BearingRefuses,
			Detail: "neither record names its target",
		})
	}
	list = append(list, p.factDifferences()...)
	for _, x := range aspects() {
		a, b := x.value(p.a), x.value(p.b)
		if a == b || x.same != nil && x.same(p.a, p.b) {
			continue
		}
		list = append(list, compare.Difference{What: x.name, Baseline: cmp.Or(a, unknown), Arm: cmp.Or(b, unknown), Bearing: x.bearing(p)})
	}
	return list
}

func (p pair) factDifferences() []compare.Difference {
	var list []compare.Difference
	a, b := p.a.Environment.Known(), p.b.Environment.Known()
	seen := make(map[string]bool)
	for _, k := range slices.Concat(a, b) {
		if seen[k.Name] {
			continue
		}
		seen[k.Name] = true
		d := compare.Difference{What: k.Name, Baseline: unknown, Arm: unknown, Bearing: string(k.Bearing)}
		named := func(other record.Known) bool { return other.Name == k.Name }
		i, j := slices.IndexFunc(a, named), slices.IndexFunc(b, named)
		switch {
		case i >= 0 && j >= 0 && a[i].Same(b[j]):
			continue
		case i >= 0 && j >= 0 && b[j].Bearing == record.Refuses:
			d.Bearing = compare.BearingRefuses
		}
		if i >= 0 {
			d.Baseline = a[i].Text()
		}
		if j >= 0 {
			d.Arm = b[j].Text()
		}
		list = append(list, d)
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

func (p pair) atLevel(level float64, a, b []replicate) []compare.Difference {
	var list []compare.Difference
	add := func(name, what, bearing string, x, y float64, show func(float64) string) {
		list = append(list, compare.Difference{What: name, Detail: fmt.Sprintf("%s at level %s", what, levelText(level)), Baseline: show(x), Arm: show(y), Bearing: bearing})
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
	plain := func(x float64) string { return number.Text(x, 4) }
	if x, y, ok := both(func(r replicate) (float64, bool) { return r.step.LevelReached, true }); ok && apart(x, y) > sameLoad {
		add(loadName, "level reached", compare.BearingRefuses, x, y, plain)
	} else if x, y, ok := both(func(r replicate) (float64, bool) { return float64(r.step.Objects.Intended), true }); ok && apart(x, y) > sameLoad && x != y {
		add(loadName, "objects asked for", compare.BearingRefuses, x, y, plain)
	}
	offered := func(r replicate) (float64, bool) {
		if r.step.OfferedRate == nil || !r.step.Open && r.step.Pace == "max" { // the rate follows from the answers
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

// oneWithoutSearch ignores a difference that only one of the two plans can have.
func oneWithoutSearch(a, b *Operand) bool {
	return a.plan.Axis.Search == nil || b.plan.Axis.Search == nil
}

func ofPlan(value func(*plan.Plan) string) func(*Operand) string {
	return func(o *Operand) string { return value(o.plan) }
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
	return fmt.Sprintf("from %s by %s up to %s, resolution %s", levelText(s.From), levelText(s.Step), levelText(s.Max), levelText(s.Resolution))
}

func confirm(p *plan.Plan) string {
	if p.Axis.Search == nil {
		return ""
	}
	return text(p.Axis.Search.Confirm)
}

// scrape returns "" for a record of an old version that read none.
func scrape(p *plan.Plan) string {
	switch {
	case p.Scrape.IsZero():
		return ""
	case p.Scrape.Every == 0:
		return "never"
	}
	return text(p.Scrape)
}

func guards(p *plan.Plan) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Guards)) {
		parts = append(parts, fmt.Sprintf("%s %s", name, text(p.Guards[name])))
	}
	parts = append(parts, p.GuardQueries...)
	return cmp.Or(strings.Join(parts, ", "), "none")
}

func (o *Operand) guarded() bool {
	return slices.ContainsFunc(o.Result.Steps, func(s result.Step) bool {
		return s.Ending == record.EndGuard && (o.Arm == "" || s.Arm == o.Arm)
	})
}

// release returns a version without its last number: 0.1 of 0.1.3.
func release(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func text(v interface{ MarshalText() ([]byte, error) }) string {
	b, err := v.MarshalText()
	if err != nil {
		return ""
	}
	return string(b)
}
