package report

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/page"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// scene is a run that was never made: its events are written down as a run's
// would be, judged, and left in a run directory.
type scene struct {
	design     design.Design
	goals      []string // default all Ready
	axis, unit string   // default pods-per-node
	kind       string   // default limit
	places     int      // default 4
	limit      float64  // objects that a place takes; 0 is no limit
	killed     int      // the record ends in the middle of this step
	name       string   // of the workload, and the start of every object's name
	message    string   // of the scheduler, besides its own words
	never      bool     // nothing ever gets there
	open       bool     // requests come by a schedule
	plain      bool     // no canaries, no samples, no environment: a target of tests
}

var milestones = []string{"Created", "Scheduled", "ContainersStarted", "Ready", "Deleted"}

// make leaves the scene in a run directory.
func (s scene) make(t testing.TB) record.Dir {
	t.Helper()
	if s.goals == nil {
		s.goals = []string{"ready=all Ready"}
	}
	if s.axis == "" {
		s.axis, s.unit = "pods-per-node", "pods/node"
	}
	if s.kind == "" {
		s.kind = "limit"
	}
	if s.places == 0 {
		s.places = 4
	}
	if s.name == "" {
		s.name = "node-density"
	}
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	var goals []slo.Goal
	plan := new(strings.Builder)
	fmt.Fprintf(plan, "schema: plimsoll/experiment/v1\nname: scene\nworkload: node-density\naxis:\n  name: %s\n  levels: [1]\ngoals:\n", s.axis)
	for _, text := range s.goals {
		g, err := slo.ParseGoal(text)
		if err != nil {
			t.Fatal(err)
		}
		goals = append(goals, g)
		fmt.Fprintf(plan, "  %s: ['%s']\n", g.Name, strings.Join(g.Texts(), "', '"))
	}
	fmt.Fprintf(plan, "asRun:\n  id: 1a2b3c4d\n  kind: sweep\n  command: plimsoll\n  version: v0\n  started: '2030-01-02T03:04:05Z'\n  unit: %s\n  milestones: [%s]\n  arrived: Ready\n", s.unit, strings.Join(milestones, ", "))
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	environment := record.Environment{
		Start:    start,
		Target:   record.TargetNaming{Kind: "lab", Name: "private-1a2b3c4d", Private: true},
		Fidelity: record.Fidelity{ControlPlane: record.Real, Nodes: record.Simulated, Containers: record.Simulated, Guests: record.None, Notes: []string{"no container started"}},
		Facts:    facts(),
		Places:   places(s.places, int(s.limit)),
	}
	if s.plain {
		environment = record.Environment{}
	}
	b := judge.NewBuilder(result.Spec{
		Experiment: "scene", Workload: s.name, Kind: observe.Pods(), ExperimentKind: s.kind, Command: "plimsoll " + s.kind + " " + s.name, Version: "v0",
		Axis: s.axis, Unit: s.unit, Goals: goals, Milestones: milestones, Start: environment.Start,
	})
	rows, err := record.NewObjectWriter(dir, milestones)
	if err != nil {
		t.Fatal(err)
	}
	b.Rows = rows.Add
	p := &player{scene: s, b: b, rng: rand.New(rand.NewPCG(7, 7)), now: 1000}
	p.emit(&record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion})
	for !p.cut {
		next := b.NextStep(s.design, "")
		if next.Done {
			p.emit(&record.RunEvent{Phase: record.PhaseEnd})
			break
		}
		p.play(next)
	}
	result := b.Finish(s.design, environment.Fidelity, "")
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{record.ExperimentFile: plan.String(), record.HistoryFile: ""} {
		if err := dir.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := dir.WriteResult(result, nil); err != nil {
		t.Fatal(err)
	}
	if !s.plain {
		kind := pods()
		environment.Kind = &kind
		if err := dir.WriteJSON(record.EnvironmentFile, environment); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// facts are of a machine and of a cluster.
func facts() []record.Fact {
	h := record.Host{Kernel: "6.1", CPUs: 2, MemoryBytes: 8 << 30, Cgroup: "2", Sharing: "none", Placement: "everything shares the CPUs"}
	return append(record.OnRecord(h.Facts(false)), record.Fact{Name: "kubernetes", What: "version of the API server", Value: "v1.36.3"})
}

// places are as many nodes, each of so many pods.
func places(n, pods int) *record.Places {
	p := &record.Places{Place: record.Noun{One: "node", Many: "nodes"}, Facts: []record.Fact{{What: "allocatable pods", Unit: "pods"}, {What: "allocatable memory", Unit: "B"}, {What: "version of the kubelet"}}}
	for i := range n {
		p.Add(fmt.Sprintf("node-%04d", i), record.Simulated, fmt.Sprint(pods), "17179869184", "v1.36.3")
	}
	return p
}

// player writes down what would have happened.
type player struct {
	scene
	b     *judge.Builder
	rng   *rand.Rand
	now   record.Micros
	step  int
	fill  int
	place []string // names of what is in place
	there int
	cut   bool
	cpu   float64
}

func (p *player) emit(body record.Body) { p.at(p.now, body) }

func (p *player) at(t record.Micros, body record.Body) {
	p.b.Add(record.Event{T: t, Step: p.step, Body: body})
}

func (p *player) sample() {
	if p.plain {
		return
	}
	p.cpu += 0.25
	p.emit(&record.Reading{Source: "plimsoll", Values: map[string]float64{"cpuSeconds": p.cpu, "rssBytes": 40 << 20}})
	p.emit(&record.Reading{Source: "kube-apiserver", Values: map[string]float64{"cpuSeconds": 3 * p.cpu, "rssBytes": 400e6 + 1e6*p.cpu}})
}

// play makes one step.
func (p *player) play(next design.Next) {
	if next.FromEmpty && len(p.place) > 0 {
		p.emit(&record.StepEvent{Phase: record.PhaseReset})
		for _, name := range p.place {
			p.now += 200
			p.emit(&record.Object{Object: name, Milestone: "Deleted"})
		}
		p.place, p.there = nil, 0
		p.fill++
		p.now += 500_000
	}
	p.step++
	want := int(next.Level) * p.places
	if p.open {
		p.arrive(next, want)
		return
	}
	p.emit(&record.StepEvent{
		Phase: record.PhaseStart, StepPlan: next.StepPlan, Reached: next.Level,
		Timeout: 30_000_000, Hold: 2_000_000, Pace: "max", Units: max(want-len(p.place), 0), Places: p.places,
	})
	p.sample()
	last := p.now
	missed := 0
	for i := len(p.place); i < want; i++ {
		name := fmt.Sprintf("%s-%d-%d/%s-%d", p.name, p.fill, i/1000, p.name, i)
		p.place = append(p.place, name)
		p.now += 800 + record.Micros(p.rng.IntN(400))
		sent := p.now
		p.at(sent+4000, &record.Slot{Slot: name, Units: 1, Intended: sent, Sent: sent, Replied: sent + 4000, Code: 201, Outcome: record.SlotCreated, Iteration: i})
		p.at(sent+5000, &record.Object{Object: name, Milestone: "Created"})
		if p.never || p.limit > 0 && float64(p.there) >= p.limit*float64(p.places) {
			message := fmt.Sprintf("0/%d nodes are available: %d Too many pods. %s", p.places, p.places, p.message)
			p.at(sent+9000, &record.State{Object: name, Reason: "Unschedulable", Message: message})
			missed++
			continue
		}
		p.there++
		took := record.Micros(3e5 * math.Exp(0.6*p.rng.NormFloat64()))
		p.at(sent+8000, &record.Object{Object: name, Milestone: "Scheduled", Place: fmt.Sprintf("node-%04d", i%p.places)})
		p.at(sent+8000+took, &record.Object{Object: name, Milestone: "ContainersStarted"})
		p.at(sent+8000+took, &record.Object{Object: name, Milestone: "Ready"})
		last = max(last, sent+8000+took)
	}
	p.emit(&record.StepEvent{Phase: record.PhaseLoaded})
	if p.step == p.killed {
		p.cut = true
		return
	}
	p.now = max(p.now, last) + 1000
	ending := record.EndHeld
	if missed > 0 {
		ending = record.EndStalled
		p.now += 10_000_000
	} else {
		p.emit(&record.StepEvent{Phase: record.PhaseReached})
		p.now += 2_000_000
	}
	if !p.plain {
		for i := range record.Micros(20) {
			p.at(p.now, &record.Canary{Sent: p.now - 5000 - 100*i, Replied: p.now - 1000, Seen: p.now})
		}
	}
	p.sample()
	p.emit(&record.StepEvent{Phase: record.PhaseEnd, Ending: ending, Places: p.places, Least: next.Level, Most: next.Level})
	p.now += 100_000
}

// arrive makes a step whose requests come by a schedule, a third of them before
// the hold. Every tenth is sent late, and the last is dropped.
func (p *player) arrive(next design.Next, want int) {
	const apart = 10_000
	warm := want / 3
	p.emit(&record.StepEvent{
		Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: next.Level, Purpose: next.Purpose, FromEmpty: true, FullHold: true, Why: next.Why}, Reached: next.Level, Open: true,
		Timeout: 30_000_000, Hold: record.Micros(want-warm) * apart, Pace: "max", Units: want, Places: p.places,
	})
	p.sample()
	for i := range want {
		if i == warm {
			p.emit(&record.StepEvent{Phase: record.PhaseReached})
		}
		name := fmt.Sprintf("%s-%d/%d", p.name, p.step, i)
		intended, late := p.now, record.Micros(0)
		p.now += apart
		if i%10 == 9 {
			late = 2 * apart
		}
		slot := &record.Slot{Slot: name, Units: 1, Intended: intended, Waited: late, Sent: intended + late, Replied: intended + late + 4000, Code: 201, Outcome: record.SlotCreated, Iteration: i}
		if i == want-1 {
			slot.Sent, slot.Replied, slot.Outcome = -1, -1, record.SlotDropped
			p.emit(slot)
			continue
		}
		p.emit(slot)
		took := record.Micros(3e5 * math.Exp(0.4*p.rng.NormFloat64()))
		for m, after := range map[string]record.Micros{"Created": 5000, "Scheduled": 9000} {
			p.at(slot.Sent+after, &record.Object{Object: name, Milestone: m})
		}
		p.at(slot.Sent+took, &record.Object{Object: name, Milestone: "ContainersStarted"})
		p.at(slot.Sent+took, &record.Object{Object: name, Milestone: "Ready"})
		p.at(slot.Sent+took+1e6, &record.Object{Object: name, Milestone: "Deleted"})
	}
	p.emit(&record.StepEvent{Phase: record.PhaseLoaded})
	p.now += 5_000_000
	p.sample()
	p.emit(&record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndHeld, Places: p.places})
	p.now += 100_000
}

// search is a design that finds a limit in few steps.
func search() design.Search {
	return design.Search{From: 10, Step: 10, Max: 60, Resolution: 1, Need: 2, Of: 2}
}

func read(t testing.TB, dir record.Dir) view.Input {
	t.Helper()
	in, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func pageIn(t testing.TB, in view.Input) string {
	t.Helper()
	var out bytes.Buffer
	if err := HTML(&out, in); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// pods is the kind of the objects of the tests' results.
func pods() record.ObjectKind { return observe.Pods() }

// Text writes the text of a result, HTML its page.
func Text(w io.Writer, r result.Result, dir string, explain bool) error {
	return text.Write(w, view.Run(r, dir, explain))
}

func HTML(w io.Writer, in view.Input) error {
	p, err := view.RunPage(in)
	if err != nil {
		return err
	}
	return page.Write(w, p)
}

// The bundle that stands in each page.
var pageScript, pageStyle = asset("report.js"), asset("report.css")

func asset(name string) string {
	data, err := os.ReadFile(filepath.Join("page", "assets", name))
	if err != nil {
		panic(err)
	}
	return string(data)
}
