package recorded

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// fixture is a run that was never made, as it lies in its directory.
type fixture struct {
	name        string
	plan        plan.Plan
	environment *record.Environment
	result      result.Result
	rows        []record.ObjectRow
	files       string // fingerprint of the workload's
}

const objectsOfRun = 40

// start returns the time at which the fixtures ran.
func start() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

// sweep is a run of five steps from empty at level 10, whose objects took
// seconds, give or take from run to run.
func sweep(name string, seconds float64) *fixture {
	f := &fixture{
		name: name, files: "12",
		plan: plan.Plan{
			Schema: plan.Schema, Name: "x", Workload: "node-density", Kind: plan.Sweep, Pace: plan.Pace{Max: true},
			Target: strictyaml.Raw{}.With("lab.nodes", strictyaml.Word("4")),
			Axis:   plan.Axis{Name: "pods-per-node", Levels: []float64{10, 10, 10, 10, 10}},
			Hold:   plan.Duration(10 * time.Second), StepTimeout: plan.Duration(time.Minute), Seed: 1,
			Goals: strictyaml.Ordered[[]string]{{Key: "ready", Value: []string{"all Ready"}}},
			AsRun: &plan.AsRun{
				ID: name, Kind: plan.Sweep, Command: "plimsoll sweep", Version: "0.1.0", Started: start().Format(time.RFC3339), Unit: "pods/node",
				Milestones: []string{"Created", "Ready"}, Arrived: "Ready",
			},
		},
		environment: &record.Environment{
			Start:    start(),
			Target:   record.TargetNaming{Kind: "lab", Name: "private-" + name, Private: true},
			Kind:     &record.ObjectKind{There: "Ready"},
			Fidelity: record.Fidelity{ControlPlane: record.Real, Nodes: record.Simulated, Containers: record.Simulated, Guests: record.None, Notes: []string{}},
			Facts: slices.Concat(machine().Facts(false), []record.Fact{
				{Name: "kubernetes", Value: "v1.36.3", Bearing: record.Refuses},
				{Name: "nodes-skipped", Value: "0", Bearing: record.Noted},
				{Name: "clock", Value: "+0.2", Unit: "s", Within: "1", Bearing: record.Noted},
			}),
			Places: &record.Places{Facts: []record.Fact{
				{Name: "node-shape:pods", Unit: "pods", Bearing: record.Refuses}, {Name: "node-shape:memory", Unit: "B", Within: "2%", Bearing: record.Refuses},
				{Name: "kubelet", Bearing: record.Refuses},
			}},
		},
		result: result.Result{Schema: result.Schema, Experiment: "x", Workload: "node-density", Kind: "sweep", Verdict: slo.Pass, Version: "0.1.0", Arrived: "Ready"},
	}
	f.nodes([]string{"110", "17179869184", "v1.36.3"}, []string{"110", "17179869184", "v1.36.3"}, []string{"110", "17179869184", "v1.36.3"}, []string{"110", "17179869184", "v1.36.3"})
	most := 110.0
	f.environment.Findings = []record.HealthFinding{{Severity: record.SeverityOK, What: "nodes"}}
	f.environment.Ceilings = &record.CeilingTable{Ceilings: []record.Ceiling{{Name: "allocatablePods", Level: &most, Binds: true}}}
	f.result.Fidelity = f.environment.Fidelity
	rng := rand.New(rand.NewPCG(uint64(len(name)), uint64(1000*seconds)))
	for range 5 {
		f.step(10, seconds*math.Exp(0.01*rng.NormFloat64()))
	}
	return f
}

// machine returns the host on which the fixtures ran.
func machine() record.Host {
	return record.Host{CPUs: 2, MemoryBytes: 8 << 30, Kernel: "6.1", Cgroup: "2", Sharing: "priority", Priority: "nice -10", Placement: "all share all"}
}

// set gives a fact another value; "" takes it off the record.
func (f *fixture) set(name, value string) {
	for i := range f.environment.Facts {
		if x := &f.environment.Facts[i]; x.Name == name {
			x.Value = value
			return
		}
	}
	f.environment.Facts = append(f.environment.Facts, record.Fact{Name: name, Value: value, Bearing: record.Refuses})
}

// nodes makes the places those of these values.
func (f *fixture) nodes(values ...[]string) {
	f.environment.Places.Rows = nil
	for i, v := range values {
		f.environment.Places.Add(fmt.Sprintf("node-%d", i), record.Simulated, v...)
	}
}

// step adds a step from empty.
func (f *fixture) step(level, seconds float64) *result.Step {
	id := len(f.result.Steps) + 1
	var times []float64
	for i := range objectsOfRun {
		took := seconds * (0.5 + float64(i)/objectsOfRun)
		times = append(times, took)
		sent := int64(id) * 1e8
		f.rows = append(f.rows, record.ObjectRow{
			Slot: fmt.Sprintf("s-%d-%d", id, i), Step: int64(id), Level: level, Intended: sent, Sent: sent, Zero: sent, Replied: sent, Outcome: "created", There: true,
			Milestones: map[string]int64{"Created": sent, "Ready": sent + int64(1e6*took)},
		})
	}
	s := stats.NewSample(times, 0)
	at := func(q float64) *float64 { v := s.Quantile(q); return &v }
	rate := 100.0
	f.result.Steps = append(f.result.Steps, result.Step{
		ID: id, StepPlan: record.StepPlan{Level: level, Purpose: record.PurposeSweep, FromEmpty: true, FullHold: true}, LevelReached: level, Verdict: slo.Pass, Pace: "max", OfferedRate: &rate, AchievedRate: &rate,
		Objects:    result.Objects{Intended: objectsOfRun, Created: objectsOfRun, Ready: objectsOfRun},
		Latency:    result.Latencies{"Ready": {N: objectsOfRun, P50: at(.5), P90: at(.9), P95: at(.95), P99: at(.99), Max: at(1), Mean: at(.5)}},
		Bottleneck: &result.Bottleneck{CPUs: 2, CPUBy: []result.CPUShare{{Source: "others", Percent: 3}}},
	})
	return &f.result.Steps[id-1]
}

// arms makes a comparison of two arms of a fixture, in blocks.
func (f *fixture) arms(one, other string) *fixture {
	f.plan.Kind, f.plan.AsRun.Kind = plan.AB, plan.AB
	f.plan.Arms = []plan.Arm{{Name: one}, {Name: other, Params: plan.Params{"image": "other"}}}
	f.plan.Primary = &plan.Primary{Metric: "Ready p90", Margin: "10%", Alpha: 0.1}
	for i := range f.result.Steps {
		s := &f.result.Steps[i]
		s.Purpose, s.Arm, s.Replicate = record.PurposeAB, []string{one, other}[i%2], i/2+1
	}
	return f
}

// limit makes a search of a fixture that found a line.
func (f *fixture) limit(level, failing float64) *fixture {
	f.plan.Kind, f.plan.AsRun.Kind = plan.Limit, plan.Limit
	f.plan.Axis.Levels = nil
	f.plan.Axis.Search = &plan.Search{From: 10, Step: 10, Max: 200, Resolution: 1, Confirm: plan.Confirm{Need: 3, Of: 3}}
	f.result.Goals = []result.GoalResult{{
		Name: "ready", SLO: []string{"all Ready"}, Verdict: slo.Pass,
		LoadLine: &result.LoadLine{Axis: "pods-per-node", Unit: "pods/node", Level: &level, LowestFailing: &failing, Resolution: 1, Confirmations: 3, ConfirmationsAsked: 3, ConfirmationsMade: 3, Binding: "Too many pods"},
	}}
	for i := range f.result.Steps {
		f.result.Steps[i].Purpose = record.PurposeConfirm
	}
	return f
}

// write leaves the fixture in a directory, and reads it as an operand.
func (f *fixture) write(t *testing.T, arm string) *Operand {
	t.Helper()
	return load(t, f.dir(t), arm)
}

func (f *fixture) dir(t *testing.T) record.Dir {
	t.Helper()
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), f.name))
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.plan.Marshal()
	if err == nil {
		err = dir.WriteFile(record.ExperimentFile, text)
	}
	if err == nil && f.environment != nil {
		err = dir.WriteJSON(record.EnvironmentFile, f.environment)
	}
	if err == nil {
		err = dir.WriteResult(f.result, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	history, err := record.NewWriter(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	history.Append(record.Event{Body: &record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion, ID: f.name, Plan: "aa-" + f.files}})
	if err := history.Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := record.NewObjectWriter(dir, f.plan.AsRun.Milestones)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range f.rows {
		rows.Add(r)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func load(t *testing.T, dir record.Dir, arm string) *Operand {
	t.Helper()
	p, err := plan.Load(dir.Path(record.ExperimentFile))
	if err != nil {
		t.Fatal(err)
	}
	o, err := Load(dir, dir, p, arm)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// known is node-density as far as a comparison looks at it.
func known(string) (*workload.Workload, error) {
	return &workload.Workload{Primary: "Ready p50", Params: []workload.Param{{Name: "image", Default: "pause"}, {Name: "runtimeClass"}}}, nil
}

// of compares two fixtures.
func of(t *testing.T, a, b *Operand, o Options) Outcome {
	t.Helper()
	if err := NameOperands([]*Operand{a, b}); err != nil {
		t.Fatal(err)
	}
	if o.Workload == nil {
		o.Workload = known
	}
	out, err := Compare(a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		why     string
		b       *fixture
		change  func(*fixture)
		options Options
		want    string // verdict and exit code
		says    []string
	}{
		{"the same", sweep("bb", 1), nil, Options{}, "equivalent 0", []string{"Ready p50 changed by", "5 runs each"}},
		{"a parameter is the arm", sweep("bb", 2), func(f *fixture) { f.plan.Params = plan.Params{"image": "other"} }, Options{}, "worse 1", nil},
		{"faster", sweep("bb", 0.5), nil, Options{}, "better 0", nil},
		{"a wider margin", sweep("bb", 1.2), nil, Options{Margin: 0.5}, "equivalent 0", nil},
		{"another kernel may be the cause", sweep("bb", 2), func(f *fixture) { f.set("kernel", "6.2") }, Options{}, "inconclusive 3", []string{"kernel (6.1 against 6.2) differs and may cause any other difference", "say --arm-is kernel"}},
		{"unless it is the arm", sweep("bb", 2), func(f *fixture) { f.set("kernel", "6.2") }, Options{ArmIs: []string{"kernel"}}, "worse 1", nil},
		{"of two one is left", sweep("bb", 2), func(f *fixture) { f.set("kernel", "6.2"); f.set("cgroup", "1") }, Options{ArmIs: []string{"kernel"}}, "inconclusive 3", []string{"cgroup (2 against 1) differs", "say --arm-is kernel,cgroup"}},
		{"one run of a side has no interval", sweep("bb", 2), func(f *fixture) { f.result.Steps = f.result.Steps[:1] }, Options{}, "inconclusive 3", []string{"Ready p50 changed by +", "one run of bb counts", "sweep --levels 10,10,10,10,10"}},
		{"nor has none", sweep("bb", 2), func(f *fixture) {
			for i := range f.result.Steps {
				f.result.Steps[i].Verdict, f.result.Steps[i].VerdictWhy = slo.Inconclusive, "objects were lost"
			}
		}, Options{}, "inconclusive 3", []string{"bb has no valid run"}},
		{"invalid runs do not count", sweep("bb", 2), func(f *fixture) {
			for i := range f.result.Steps {
				f.result.Steps[i].Verdict = slo.Invalid
			}
		}, Options{}, "invalid 4", []string{"5 of 5 runs of bb are invalid"}},
		{"no level in common", sweep("bb", 2), func(f *fixture) {
			for i := range f.result.Steps {
				f.result.Steps[i].Level = 20
			}
		}, Options{}, "inconclusive 3", []string{"no level in common"}},
		{"other axes have no level in common", sweep("bb", 1), func(f *fixture) { f.plan.Axis.Name = "rate" }, Options{}, "inconclusive 3", []string{"the axes differ"}},
		{"what is not on record is not the same", sweep("bb", 1), func(f *fixture) { f.environment = nil }, Options{}, "inconclusive 3", []string{"kubernetes (v1.36.3 against not on record)"}},
		{"steps that stand on others do not count", sweep("bb", 1), func(f *fixture) {
			for i := range f.result.Steps {
				f.result.Steps[i].FromEmpty = i == 0
			}
		}, Options{}, "inconclusive 3", []string{"one run of bb counts"}},
	} {
		if tt.change != nil {
			tt.change(tt.b)
		}
		out := of(t, sweep("a", 1).write(t, ""), tt.b.write(t, ""), tt.options)
		if got := fmt.Sprintf("%s %d", out.Verdict, out.ExitCode); got != tt.want {
			t.Errorf("%s: %s, want %s: %s", tt.why, got, tt.want, out.Why)
		}
		for _, part := range tt.says {
			if !strings.Contains(out.Why, part) {
				t.Errorf("%s: %q lacks %q", tt.why, out.Why, part)
			}
		}
		for _, l := range out.Comparison.Levels {
			if l.Verdict != stats.Undecided && out.Comparison.Refused != "" {
				t.Errorf("%s: a level of what is not comparable is %s", tt.why, l.Verdict)
			}
			if len(l.Primary.Baseline) == 0 && l.Runs[0] > 0 && l.Runs[1] > 0 {
				t.Errorf("%s: the figures are not there", tt.why)
			}
		}
	}
}

// Each thing in which experiments can differ is found, and found once.
func TestDifferences(t *testing.T) {
	// nodes are of 110 pods, 16 GiB and this version, but for the last ones.
	nodes := func(same int, others ...[]string) func(*fixture) {
		usual := []string{"110", "17179869184", "v1.36.3"}
		return func(f *fixture) { f.nodes(append(slices.Repeat([][]string{usual}, same), others...)...) }
	}
	onCluster := func(f *fixture) {
		f.environment.Target, f.environment.Elsewhere = record.TargetNaming{Kind: "cluster", Name: "prod"}, true
		f.environment.Facts = machine().Facts(true)
		f.plan.Target = strictyaml.Raw{}.With("kubeconfig", strictyaml.Text("k"))
	}
	steps := func(change func(*result.Step)) func(*fixture) {
		return func(f *fixture) {
			for i := range f.result.Steps {
				change(&f.result.Steps[i])
			}
		}
	}
	const arm, refuses, noted = compare.BearingArm, compare.BearingRefuses, compare.BearingNoted
	for _, tt := range []struct {
		why  string
		both func(*fixture)
		b    func(*fixture)
		want string // name, bearing, and the values; "" is no difference
	}{
		{"nothing", nil, func(*fixture) {}, ""},
		{"the workload", nil, func(f *fixture) { f.plan.Workload = "other" }, "workload " + refuses + " node-density|other"},
		{"a parameter that one was given", nil, func(f *fixture) { f.plan.Params = plan.Params{"image": "x"} }, "param:image " + arm + " pause|x"},
		{"the default, said", nil, func(f *fixture) { f.plan.Params = plan.Params{"image": "pause"} }, ""},
		{"a parameter that is empty by default", nil, func(f *fixture) { f.plan.Params = plan.Params{"runtimeClass": "crun"} }, "param:runtimeClass " + arm + " not set|crun"},
		{"a parameter that the workload has no more", nil, func(f *fixture) { f.plan.Params = plan.Params{"old": "1"} }, "param:old " + arm + " not given|1"},
		{"the workload's files", nil, func(f *fixture) { f.files = "77" }, "workload-files " + refuses + " 12|77"},
		{"what a lab was made with", nil, func(f *fixture) { f.set("pod-range", "/24") }, "pod-range " + refuses + " not on record|/24"},
		{"a cluster that was ill", nil, func(f *fixture) {
			f.environment.Findings = []record.HealthFinding{{Severity: record.SeverityWarning, What: "pods"}, {Severity: record.SeverityWarning, What: "pods"}, {Severity: record.SeverityWarning, What: "clock"}, {Severity: record.SeverityOK, What: "etcd"}}
		}, "health " + refuses + " nothing wrong|pods: warning"},
		{"a lower ceiling", nil, func(f *fixture) {
			level := 50.0
			f.environment.Ceilings = &record.CeilingTable{Ceilings: []record.Ceiling{{Name: "podAddresses", Level: &level, Binds: true}}}
		}, "ceilings " + noted + " allocatablePods at 110|podAddresses at 50"},
		{"a program that one did not use", nil, func(f *fixture) {
			f.environment.Facts = append(f.environment.Facts, record.Version("router TLS", "3.0"))
		}, "runtime:router-TLS " + refuses + " not on record|3.0"},
		{"the axis", nil, func(f *fixture) { f.plan.Axis.Name = "rate" }, "axis " + refuses + " pods-per-node (pods/node)|rate (pods/node)"},
		{"the milestones", nil, func(f *fixture) { f.plan.AsRun.Milestones = []string{"Created", "Bound", "Ready"} }, "milestones " + refuses + " Created Ready; ready at Ready|Created Bound Ready; ready at Ready"},
		{"the goals", nil, func(f *fixture) { f.plan.Goals[0].Value = []string{"all Ready within 5s"} }, "goals " + noted + " ready: all Ready|ready: all Ready within 5s"},
		{"the pace", nil, func(f *fixture) { f.plan.Pace = plan.Pace{PerSecond: 20} }, "pace " + refuses + " max|20"},
		{"the hold", nil, func(f *fixture) { f.plan.Hold = plan.Duration(time.Second) }, "hold " + refuses + " 10s|1s"},
		{"the step timeout", nil, func(f *fixture) { f.plan.StepTimeout = plan.Duration(time.Second) }, "timeout " + refuses + " 1m0s|1s"},
		{"the pods' life", nil, func(f *fixture) { f.plan.Axis.Life = plan.Duration(time.Second) }, "life " + refuses + " 0s|1s"},
		{"a guard that never struck", nil, func(f *fixture) { f.plan.Guards = plan.Guards{"pending": {Value: 5}} }, "guards " + noted + " none|pending 5"},
		{"a guard that struck", nil, func(f *fixture) {
			f.plan.Guards = plan.Guards{"pending": {Value: 5}}
			f.result.Steps[0].Ending = record.EndGuard
		}, "guards " + refuses + " none|pending 5"},
		{"guards on queries", nil, func(f *fixture) { f.plan.GuardQueries = []string{"query 'x' < 1"} }, "guards " + noted + " none|query 'x' < 1"},
		{"metrics that were read", nil, func(f *fixture) { f.plan.Scrape = plan.Scrape{Every: plan.Duration(5 * time.Second)} }, "scrape " + noted + " not on record|5s"},
		{"metrics that were not to be read", nil, func(f *fixture) { f.plan.Scrape = plan.Scrape{Never: true} }, "scrape " + noted + " not on record|never"},
		{"Normal events", nil, func(f *fixture) { f.plan.NormalEvents = true }, "normal-events " + refuses + " no|yes"},
		{"what a run begins with", nil, func(f *fixture) { f.plan.Fresh = "lab" }, "fresh " + refuses + " objects|lab"},
		{"the default of it, said", nil, func(f *fixture) { f.plan.Fresh = plan.FreshObjects }, ""},
		{"a number that is unknown to be one", nil, func(f *fixture) { f.set("host:memory", "some") }, "host:memory " + refuses + " 8 GiB|some"},
		{"a lab of one's own", nil, func(f *fixture) { f.environment.Target = record.TargetNaming{Kind: "lab", Name: "l"} }, "target-name " + noted + " private|l"},
		{"two private labs", nil, func(f *fixture) { f.environment.Target.Name = "private-2" }, ""},
		{"a version", nil, func(f *fixture) { f.set("kubernetes", "v1.36.4") }, "kubernetes " + refuses + " v1.36.3|v1.36.4"},
		{"a version that one does not know", nil, func(f *fixture) { f.set("kubernetes", "") }, "kubernetes " + refuses + " v1.36.3|not on record"},
		{"the kubelets", nil, nodes(0, slices.Repeat([][]string{{"110", "17179869184", "v1.35.0"}}, 4)...), "kubelet " + refuses + " v1.36.3|v1.35.0"},
		{"one kubelet of four", nil, nodes(3, []string{"110", "17179869184", "v1.35.0"}), "kubelet " + refuses + " v1.36.3|v1.36.3 on 75%, v1.35.0 on 25%"},
		{"fewer places that are alike: a target says their number too", nil, nodes(2), ""},
		{"the nodes' pods", nil, nodes(0, slices.Repeat([][]string{{"250", "17179869184", "v1.36.3"}}, 4)...), "node-shape:pods " + refuses + " 110 pods|250 pods"},
		{"one node's memory", nil, nodes(3, []string{"110", "8589934592", "v1.36.3"}), "node-shape:memory " + refuses + " 16 GiB|16 GiB on 75%, 8 GiB on 25%"},
		{"what a kernel keeps of it", nil, nodes(3, []string{"110", "17079869184", "v1.36.3"}), ""},
		{"nodes that are not loaded", nil, func(f *fixture) { f.set("nodes-skipped", "1") }, "nodes-skipped " + noted + " 0|1"},
		{"this machine's kernel", nil, func(f *fixture) { f.set("kernel", "6.2") }, "kernel " + refuses + " 6.1|6.2"},
		{"which beside a target that is elsewhere is noted", onCluster, func(f *fixture) { f.set("host:kernel", "6.2"); f.set("host:cgroup", "1") }, "host:kernel " + noted + " 6.1|6.2; host:cgroup " + noted + " 2|1"},
		{"the priority of this program may explain something", nil, func(f *fixture) { f.set("isolation:priority", "nice 0") }, "isolation:priority " + compare.BearingMayExplain + " nice -10|nice 0"},
		{"who had which processors", nil, func(f *fixture) { f.set("isolation:placement", "each its own") }, "isolation:placement " + refuses + " all share all|each its own"},
		{"the cgroup version", nil, func(f *fixture) { f.set("cgroup", "1") }, "cgroup " + refuses + " 2|1"},
		{"this machine's CPUs, with the target on it", nil, func(f *fixture) { f.set("host:cpus", "4") }, "host:cpus " + refuses + " 2|4"},
		{"and without", onCluster, func(f *fixture) { f.set("host:cpus", "4") }, "host:cpus " + noted + " 2|4"},
		{"how the CPUs were shared", nil, func(f *fixture) { f.set("isolation", "none") }, "isolation " + refuses + " priority|none"},
		{"what was real", nil, func(f *fixture) { f.environment.Fidelity.Containers = record.Real }, "fidelity:containers " + refuses + " simulated|real"},
		{"a last number of the version", nil, func(f *fixture) { f.result.Version = "0.1.7" }, "program " + noted + " 0.1.0|0.1.7"},
		{"another release", nil, func(f *fixture) { f.result.Version = "0.2.0" }, "program " + refuses + " 0.1.0|0.2.0"},
		{"a clock that was off", nil, func(f *fixture) { f.set("clock", "+3.0") }, "clock " + noted + " +0.2 s|+3.0 s"},
		{"a clock as good as the other", nil, func(f *fixture) { f.set("clock", "+1.0") }, ""},
		{"the time of day", nil, func(f *fixture) { f.environment.Start = start().Add(time.Hour) }, "time " + noted + " 2030-01-02 03:04:05|2030-01-02 04:04:05"},
		{"a level that was not reached", nil, steps(func(s *result.Step) { s.LevelReached = 9 }), "load " + refuses + " 10|9"},
		{"what stood there before", nil, steps(func(s *result.Step) { s.Objects.Intended = 30 }), "load " + refuses + " 40|30"},
		{"another program on the machine", nil, steps(func(s *result.Step) {
			s.Bottleneck = &result.Bottleneck{CPUs: 2, CPUBy: []result.CPUShare{{Source: "others", Percent: 50}}}
		}), "others " + refuses + " 3%|50%"},
		{"how fast a closed loop went", nil, steps(func(s *result.Step) { rate := 50.0; s.OfferedRate = &rate }), ""},
		{"how fast an open one was to go", func(f *fixture) {
			for i := range f.result.Steps {
				f.result.Steps[i].Open = true
			}
		}, steps(func(s *result.Step) { rate := 50.0; s.OfferedRate = &rate }), "offered-rate " + noted + " 100|50"},
		{"what is drawn", nil, func(f *fixture) { f.plan.Seed, f.plan.Name, f.plan.Budget = 9, "y", plan.Duration(time.Hour) }, ""},
	} {
		a, b := sweep("a", 1), sweep("b", 1)
		if tt.both != nil {
			tt.both(a)
			tt.both(b)
		}
		tt.b(b)
		out := of(t, a.write(t, ""), b.write(t, ""), Options{})
		var got []string
		for _, d := range out.Comparison.Differences {
			got = append(got, fmt.Sprintf("%s %s %s|%s", d.What, d.Bearing, d.Baseline, d.Arm))
		}
		if text := strings.Join(got, "; "); text != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, text, tt.want)
		}
		if refused := strings.Contains(tt.want, " "+refuses+" "); refused != (out.Comparison.Refused != "") {
			t.Errorf("%s: refused %q", tt.why, out.Comparison.Refused)
		}
	}
	a, b := sweep("a", 1), sweep("b", 1)
	a.environment, b.environment = nil, nil
	if out := of(t, a.write(t, ""), b.write(t, ""), Options{}); !strings.HasPrefix(out.Comparison.Refused, "environment (not on record") {
		t.Errorf("two runs of which nobody knows where they ran: %q", out.Comparison.Refused)
	}
}

// Every name of a difference is one that --arm-is takes, but for the axis.
func TestNamesAreThoseOfTheDifferences(t *testing.T) {
	for _, x := range aspects() {
		err := CheckArm([]string{x.name}, nil, nil)
		if (err != nil) != (x.name == axisName) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	for _, n := range Names(nil) {
		if n.Help == "" {
			t.Errorf("%s says nothing of itself", n.Name)
		}
	}
	var unknown *UnknownNameError
	facts := []record.Fact{{Name: "drive"}, {Name: "shape:weight"}}
	if err := CheckArm([]string{"param:x", "param", "fidelity", "fidelity:guests", "load", "host", "host:cpus", "isolation", "drive", "shape"}, []string{"x"}, facts); err != nil {
		t.Error(err)
	}
	if err := CheckArm([]string{"weight"}, nil, facts); err == nil {
		t.Error("a part of a name after its colon stands for it")
	}
	if err := CheckArm([]string{"param:y"}, []string{"x"}, nil); !errors.As(err, &unknown) || !slices.Contains(unknown.Known, "param:x") {
		t.Errorf("a parameter that nobody knows: %v", err)
	}
}

func TestTheArmIsWhatIsSaid(t *testing.T) {
	change := func() *fixture {
		b := sweep("b", 2)
		b.environment.Fidelity.Containers, b.environment.Fidelity.Nodes = record.Real, record.Real
		return b
	}
	out := of(t, sweep("a", 1).write(t, ""), change().write(t, ""), Options{ArmIs: []string{"fidelity", "kubelet"}})
	if out.Verdict != "worse" || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0].String(), "--arm-is kubelet: the records do not differ in it") {
		t.Errorf("%s, warnings %q", out.Verdict, out.Warnings)
	}
	for _, d := range out.Comparison.Differences {
		if d.Bearing != compare.BearingArm {
			t.Errorf("%+v", d)
		}
	}
	a, b := sweep("a", 1), sweep("b", 2)
	for _, f := range []*fixture{a, b} {
		f.environment.Target, f.plan.Target = record.TargetNaming{Kind: "cluster", Name: "c"}, strictyaml.Raw{}.With("kubeconfig", strictyaml.Text("k"))
		f.set("cgroup", "")
	}
	out = of(t, a.write(t, ""), b.write(t, ""), Options{ArmIs: []string{"cgroup"}})
	if out.Verdict != "worse" || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0].String(), "neither record holds it") {
		t.Errorf("what nobody can know: %s, warnings %q", out.Verdict, out.Warnings)
	}
}

func TestArmsOfOneRunAreCompared(t *testing.T) {
	f := sweep("ab", 1)
	f.step(10, 1)
	dir := f.arms("base", "other").dir(t)
	out := of(t, load(t, dir, "base"), load(t, dir, "other"), Options{})
	c := out.Comparison
	if !c.Paired || c.Baseline != "base" || c.Metric != "Ready p90" || c.Margin != 0.1 || c.Alpha != 0.1 || out.Verdict != "equivalent" || len(out.Warnings) != 0 {
		t.Errorf("%+v: %s, %q", c, out.Verdict, out.Warnings)
	}
	if l := c.Levels[0]; l.Runs != [2]int{3, 3} || l.Arm != "other" {
		t.Errorf("%+v", l)
	}
	if d := c.Differences; len(d) != 1 || d[0].What != "param:image" || d[0].Baseline != "pause" || d[0].Arm != "other" {
		t.Errorf("differences %+v", d)
	}
	// An arm beside a run of its own is as any other run.
	out = of(t, load(t, dir, "base"), sweep("s", 1).write(t, ""), Options{})
	if c := out.Comparison; c.Paired || c.Baseline != "ab:base" || c.Metric != "Ready p50" || c.Levels[0].Runs != [2]int{3, 5} {
		t.Errorf("%+v", c)
	}
	var wrong *ArmError
	p, err := plan.Load(dir.Path(record.ExperimentFile))
	if err != nil {
		t.Fatal(err)
	}
	for arm, want := range map[string]string{"": "name one of them", "bse": `has no arm "bse"`} {
		if _, err := Load(dir, dir, p, arm); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(wrong.Arms, []string{"base", "other"}) {
			t.Errorf("arm %q: %v", arm, err)
		}
	}
	same := load(t, dir, "base")
	if err := NameOperands([]*Operand{load(t, dir, "base"), same}); err == nil {
		t.Error("a run is compared with itself")
	}
}

func TestNames(t *testing.T) {
	at := func(path, arm, id string) *Operand {
		return &Operand{Path: path, Arm: arm, plan: &plan.Plan{AsRun: &plan.AsRun{ID: id}}}
	}
	for _, tt := range []struct {
		operands []*Operand
		want     string
		why      string
	}{
		{[]*Operand{at("x/a", "", "1"), at("x/b/", "", "2")}, "a b", "directories by their names"},
		{[]*Operand{at("x/a", "", "1"), at("y/a", "", "2")}, "x/a y/a", "alike ones by their paths"},
		{[]*Operand{at("r", "p", "1"), at("r", "q", "1")}, "p q", "arms of one run"},
		{[]*Operand{at("r", "p", "1"), at("s", "p", "2")}, "r:p s:p", "arms of two runs"},
		{[]*Operand{at("r", "p", "1"), at("s", "", "2")}, "r:p s", "an arm and a run"},
	} {
		if err := NameOperands(tt.operands); err != nil {
			t.Errorf("%s: %v", tt.why, err)
		}
		if got := tt.operands[0].Name + " " + tt.operands[1].Name; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
		}
	}
	// A copy of a run is the run.
	if NameOperands([]*Operand{at("x", "", "1"), at("copy", "", "1")}) == nil {
		t.Error("a run and its copy are two")
	}
}

func TestTheMetricThatDecides(t *testing.T) {
	declare := func(f *fixture, metric string) *Operand {
		f.step(10, 1)
		f.arms("p", "q")
		f.plan.Primary.Metric = metric
		return f.write(t, "p")
	}
	none := func(string) (*workload.Workload, error) { return nil, errors.New("there is none") }
	for _, tt := range []struct {
		why     string
		a, b    *Operand
		options Options
		want    string
		warns   []string
	}{
		{"the workload's", sweep("a", 1).write(t, ""), sweep("b", 1).write(t, ""), Options{}, "Ready p50", nil},
		{"what both declared", declare(sweep("a", 1), "Ready p90"), declare(sweep("b", 1), "Ready p90"), Options{}, "Ready p90", nil},
		{"what one declared is the other's no more", declare(sweep("a", 1), "Ready p90"), declare(sweep("b", 1), "Ready p99"), Options{}, "Ready p50", []string{"declare different metrics, so the workload's is used: it is Ready p50 (a:p: Ready p90; b:p: Ready p99)"}},
		{"no workload", sweep("a", 1).write(t, ""), sweep("b", 1).write(t, ""), Options{Workload: none}, "Ready p50", []string{"was not found"}},
		{"chosen after the runs", sweep("a", 1).write(t, ""), sweep("b", 1).write(t, ""), Options{Metric: "Ready p99"}, "Ready p99", []string{"Ready p99 was chosen after the runs"}},
		{"chosen as declared", declare(sweep("a", 1), "Ready p90"), declare(sweep("b", 1), "Ready p90"), Options{Metric: "Ready p90"}, "Ready p90", nil},
		{"a margin after the runs", declare(sweep("a", 1), "Ready p90"), declare(sweep("b", 1), "Ready p90"), Options{Margin: 0.2}, "Ready p90", []string{"the margin of 0.2 was chosen after the runs"}},
	} {
		out := of(t, tt.a, tt.b, tt.options)
		if out.Comparison.Metric != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, out.Comparison.Metric, tt.want)
		}
		if len(out.Warnings) != len(tt.warns) {
			t.Errorf("%s: warnings %q", tt.why, out.Warnings)
			continue
		}
		for i, part := range tt.warns {
			if !strings.Contains(out.Warnings[i].String(), part) {
				t.Errorf("%s: %q lacks %q", tt.why, out.Warnings[i].String(), part)
			}
		}
	}
	a, b := sweep("a", 1).write(t, ""), sweep("b", 1).write(t, "")
	if err := NameOperands([]*Operand{a, b}); err != nil {
		t.Fatal(err)
	}
	var unknown *UnknownMetricError
	if _, err := Compare(a, b, Options{Metric: "Redy p50", Workload: known}); !errors.As(err, &unknown) || !slices.Contains(unknown.Known, "Ready p50") {
		t.Errorf("a figure that there is not: %v", err)
	}
}

// Steps of a sweep that stand on the same levels are alike.
func TestStepsThatStandOnOthers(t *testing.T) {
	raised := func(name string, levels ...float64) *fixture {
		f := sweep(name, 1)
		f.result.Steps, f.rows = nil, nil
		last := math.Inf(1)
		for _, l := range levels {
			f.step(l, 1).FromEmpty = l <= last
			last = l
		}
		return f
	}
	for _, tt := range []struct {
		why  string
		a, b *fixture
		runs string
	}{
		{"the same levels in the same order", raised("a", 10, 20, 10, 20), raised("b", 10, 20, 10, 20), "10:[2 2] 20:[2 2]"},
		{"another level below", raised("a", 10, 20, 10, 20), raised("b", 15, 20, 15, 20), "20:[0 0]"},
		{"from empty, where both have that too", raised("a", 10, 20, 20), raised("b", 20, 20, 10, 20), "10:[1 1] 20:[1 2]"},
	} {
		out := of(t, tt.a.write(t, ""), tt.b.write(t, ""), Options{})
		var got []string
		for _, l := range out.Comparison.Levels {
			got = append(got, fmt.Sprintf("%g:%v", l.Level, l.Runs))
			if l.Level == 20 && l.Runs[0] == 0 && len(l.Excluded) == 0 {
				t.Errorf("%s: it is not said why", tt.why)
			}
		}
		if text := strings.Join(got, " "); text != tt.runs {
			t.Errorf("%s: %s, want %s", tt.why, text, tt.runs)
		}
	}
	out := of(t, raised("a", 10, 30).write(t, ""), raised("b", 10, 40).write(t, ""), Options{})
	if c := out.Comparison; !reflect.DeepEqual(c.OnlyBaseline, []float64{30}) || !reflect.DeepEqual(c.OnlyArm, []float64{40}) {
		t.Errorf("only in one: %v %v", c.OnlyBaseline, c.OnlyArm)
	}
	// What a search raises to is a proposal.
	f := raised("a", 10, 20)
	f.result.Steps[1].Purpose = record.PurposeRamp
	if list, err := f.write(t, "").runs(true); err != nil || len(list) != 1 {
		t.Errorf("%d runs, %v", len(list), err)
	}
}

func TestLoadLinesAreCompared(t *testing.T) {
	for _, tt := range []struct {
		why     string
		b       *fixture
		change  func(*fixture)
		options Options
		want    string
		says    []string
	}{
		{"the same line", sweep("b", 1).limit(100, 101), nil, Options{}, "equivalent 0", []string{"100 pods/node"}},
		{"a lower one", sweep("b", 1).limit(80, 81), nil, Options{}, "worse 1", []string{"-20.0%", "within the brackets the change"}},
		{"a higher one", sweep("b", 1).limit(120, 121), nil, Options{}, "better 0", nil},
		{"an unconfirmed one", sweep("b", 1).limit(80, 81), func(f *fixture) { f.result.Goals[0].Verdict = slo.Inconclusive }, Options{}, "inconclusive 3", []string{"the load line of b is inconclusive"}},
		{"one of an invalid run", sweep("b", 1).limit(80, 81), func(f *fixture) { f.result.Goals[0].Verdict = slo.Invalid }, Options{}, "invalid 4", nil},
		{"other objectives", sweep("b", 1).limit(80, 81), func(f *fixture) { f.result.Goals[0].SLO = []string{"all Ready within 1s"} }, Options{}, "inconclusive 3", []string{"its objectives differ"}},
		{"fewer confirmations", sweep("b", 1).limit(120, 121), func(f *fixture) { f.plan.Axis.Search.Confirm = plan.Confirm{Need: 1, Of: 1} }, Options{}, "inconclusive 3", []string{"confirm (3 against 1)"}},
		{"another range", sweep("b", 1).limit(120, 121), func(f *fixture) { f.plan.Axis.Search.Max = 500 }, Options{}, "better 0", nil},
		{"the levels, if they are asked for", sweep("b", 2).limit(100, 101), nil, Options{Metric: "Ready p50"}, "worse 1", []string{"Ready p50 changed"}},
		{"goals of other names leave the levels", sweep("b", 2).limit(100, 101), func(f *fixture) { f.result.Goals[0].Name = "other" }, Options{}, "worse 1", []string{"Ready p50 changed"}},
	} {
		if tt.change != nil {
			tt.change(tt.b)
		}
		out := of(t, sweep("a", 1).limit(100, 101).write(t, ""), tt.b.write(t, ""), tt.options)
		if got := fmt.Sprintf("%s %d", out.Verdict, out.ExitCode); got != tt.want {
			t.Errorf("%s: %s, want %s: %s", tt.why, got, tt.want, out.Why)
		}
		for _, part := range tt.says {
			if !strings.Contains(out.Why, part) {
				t.Errorf("%s: %q lacks %q", tt.why, out.Why, part)
			}
		}
		if len(out.Comparison.Levels) != 1 {
			t.Errorf("%s: the levels that both held are not there", tt.why)
		}
	}
}
