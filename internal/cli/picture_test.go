package cli

import (
	"bytes"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func seconds(x float64) *float64 { return &x }

// stepMade is a step that has ended.
func stepMade(id int, arm string, level float64, verdict slo.Verdict, why string) judge.Step {
	return judge.Step{
		ID: id, Arm: arm, Level: level, LevelReached: level, Purpose: record.PurposeRamp, Verdict: verdict, VerdictWhy: why,
		Latency: judge.Latencies{"Ready": {P50: seconds(0.1), P99: seconds(1.25)}},
	}
}

// pictures are runs of every kind at one moment.
func pictures() map[string]picture {
	pods := record.ObjectKind{Object: record.Noun{One: "pod", Many: "pods"}, There: "Ready"}
	search := []judge.Step{
		stepMade(1, "", 50, slo.Pass, ""), stepMade(2, "", 100, slo.Pass, ""), stepMade(3, "", 150, slo.Breached, "all Ready: 800 of 3000 did not get there"),
		stepMade(4, "", 110, slo.Inconclusive, "the state of 7 objects is not known"), stepMade(5, "", 110, slo.Pass, ""), stepMade(6, "", 110, slo.Pass, ""),
	}
	status := func(stage engine.Stage, purpose record.Purpose, level float64) engine.Status {
		return engine.Status{
			Step: 7, Stage: stage, Level: level, Purpose: purpose, Requests: 2200, Sent: 1700, Replied: 1650, InFlight: 50, Bound: 64,
			Units: 2200, Unasked: 550, Progress: target.Progress{There: 1100, Arrived: 1100},
		}
	}
	raising := status(engine.StageRaising, record.PurposeConfirm, 110)
	raising.Progress.Unschedulable, raising.Progress.Failed = 20, 3
	waiting := status(engine.StageWaiting, record.PurposeConfirm, 110)
	waiting.Unasked, waiting.Left = 0, 272*time.Second
	holding := status(engine.StageHolding, record.PurposeConfirm, 110)
	holding.Unasked, holding.Progress.There, holding.Left = 0, 2200, 6*time.Second
	arriving := status(engine.StageArriving, record.PurposeRamp, 150)
	arriving.Left, arriving.Late, arriving.Dropped = 45*time.Second, 12, 3
	arm := status(engine.StageRaising, record.PurposeAB, 60)
	arm.Arm = "crun"
	live := judge.Live{There: 1100, P50: seconds(0.089), P99: seconds(0.288)}
	of := func(steps []judge.Step, d *doing) picture {
		return picture{title: "limit node-density", unit: "pods/node", kind: pods, elapsed: 83 * time.Second, steps: steps, doing: d, left: "2 to 5 steps left with this one, about 25s to 1m10s"}
	}
	stopped := of(search, nil)
	stopped.stopping, stopped.left = true, ""
	first := of(nil, &doing{Status: status(engine.StageEmptying, record.PurposeRamp, 50), elapsed: 3 * time.Second})
	first.left = ""
	hostile := of([]judge.Step{stepMade(1, "", 50, slo.Breached, "\x1b[2J\x1b]0;owned\a日本語の長い説明がここに続いて行の終わりを越えていく、越えていく、越えていく\n\r\tend")}, nil)
	return map[string]picture{
		"raising":     of(search, &doing{Status: raising, elapsed: 5 * time.Second, rate: seconds(212.4), live: live}),
		"waiting":     of(search, &doing{Status: waiting, elapsed: 28 * time.Second, rate: seconds(0), live: live}),
		"holding":     of(search, &doing{Status: holding, elapsed: 4 * time.Second, live: live}),
		"arriving":    of(search[:2], &doing{Status: arriving, elapsed: 15 * time.Second, rate: seconds(148.9), live: live}),
		"arms":        of([]judge.Step{stepMade(1, "runc", 60, slo.Pass, ""), stepMade(2, "crun", 60, slo.Pass, ""), stepMade(3, "runc", 60, slo.Invalid, "this program was short of CPU")}, &doing{Status: arm, elapsed: 400 * time.Millisecond}),
		"first":       first,
		"interrupted": stopped,
		"hostile":     hostile,
	}
}

// The picture fits the terminal, whatever its size, and says in a narrow one
// that a line was cut.
func TestThePictureOfARun(t *testing.T) {
	for name, p := range pictures() {
		var text bytes.Buffer
		for _, size := range []struct{ width, height int }{{80, 24}, {40, 10}, {20, 3}} {
			fmt.Fprintf(&text, "--- %d columns, %d lines\n", size.width, size.height)
			lines := p.draw(size.width, size.height)
			for _, l := range lines {
				shown := l.fit(size.width - 1).render(false)
				if n := columns(shown); n >= size.width {
					t.Errorf("%s: %d columns in a terminal of %d: %q", name, n, size.width, shown)
				}
				fmt.Fprintln(&text, shown)
			}
			if len(lines) > max(size.height-2, 1) {
				t.Errorf("%s: %d lines in a terminal of %d", name, len(lines), size.height)
			}
		}
		golden.Check(t, *update, "picture-"+name+".txt", text.Bytes())
	}
}

// A search of many levels shows those around the level under way.
func TestTheLadderShowsWhatIsNear(t *testing.T) {
	p := pictures()["holding"]
	p.steps = nil
	for i := range 60 {
		p.steps = append(p.steps, stepMade(i+1, "", float64(10*(i+1)), slo.Pass, ""))
	}
	var names []string
	for _, r := range p.near(p.ladder(), 5) {
		names = append(names, r.name)
	}
	if got := strings.Join(names, " "); got != "130 120 110 100 90" {
		t.Errorf("rungs %s", got)
	}
}

// terminal is as much of a terminal as the display needs: what is on it after
// what was written.
type terminal struct {
	lines    []string
	row      int
	escapes  int
	hasColor bool
}

func (e *terminal) Write(text []byte) (int, error) {
	if e.lines == nil {
		e.lines = []string{""}
	}
	rest := string(text)
	for rest != "" {
		var n int
		switch {
		case strings.HasPrefix(rest, "\x1b["):
			end := strings.IndexAny(rest, "ABCDHJKhlm")
			e.escapes++
			switch code := rest[2:end]; rest[end] {
			case 'A':
				fmt.Sscan(code, &n)
				if e.row -= n; e.row < 0 {
					return 0, fmt.Errorf("moved above the first line")
				}
			case 'J':
				e.lines = e.lines[:e.row+1]
				e.lines[e.row] = ""
			case 'm':
				e.hasColor = true
			default:
				return 0, fmt.Errorf("unknown escape %q", rest[:end+1])
			}
			rest = rest[end+1:]
		case rest[0] == '\r':
			rest = rest[1:]
		case rest[0] == '\n':
			if e.row++; e.row == len(e.lines) {
				e.lines = append(e.lines, "")
			}
			rest = rest[1:]
		default:
			end := strings.IndexAny(rest, "\x1b\r\n")
			if end < 0 {
				end = len(rest)
			}
			e.lines[e.row] += rest[:end]
			rest = rest[end:]
		}
	}
	return len(text), nil
}

func (e *terminal) String() string { return strings.Join(e.lines, "\n") }

// Text goes above the picture, which is drawn in place, and nothing of it is
// left once it is taken away.
func TestTheScreenIsDrawnInPlace(t *testing.T) {
	out := &terminal{}
	s := &screen{w: out, width: func() int { return 12 }}
	is := func(want string) {
		t.Helper()
		if out.String() != want {
			t.Fatalf("on the terminal is\n%s\nwant\n%s", out, want)
		}
	}
	s.draw([]line{{{"one", red}}, {{"a line too long", plain}}})
	is("one\na line too…\n")
	fmt.Fprintf(s, "above\n")
	is("above\none\na line too…\n")
	s.wait("emptying")
	is("above\none\na line too…\nemptying\n")
	s.draw([]line{{{"two", plain}}})
	is("above\ntwo\nemptying\n")
	s.wait("")
	s.draw(nil)
	is("above\n")
	fmt.Fprintf(s, "continue? [y/N] ")
	is("above\ncontinue? [y/N] ")
	if out.hasColor {
		t.Error("a colour was shown that was not allowed")
	}
}

// What is waited for is said at once on a terminal, and in a line elsewhere
// once it has lasted.
func TestWaitsAreNamed(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(0, 0)
	p := &Process{Stderr: &log, Now: func() time.Time { return now }}
	l := progressLine{p: p}
	l.show("starting")
	defer l.end()
	said := func(after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		l.last(l.stop)
		if log.String() != want {
			t.Errorf("said %q, want %q", &log, want)
		}
	}
	said(time.Second, "")
	want := "starting ...\n"
	said(time.Second, want)
	said(time.Second, want)
	l.show("waiting for the nodes")
	said(time.Second, want)
	want += "waiting for the nodes ...\n"
	said(time.Second, want)
	// A count that changes all the time is said as well, but not each time.
	for i := range 60 {
		l.show(fmt.Sprintf("%d nodes", i))
		if i%10 == 9 {
			want += fmt.Sprintf("%d nodes ...\n", i)
		}
		said(time.Second, want)
	}
}

// A stage that lasts is told in a line where there is no terminal.
func TestStagesThatLastAreTold(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(0, 0)
	g := &progress{p: &Process{Stderr: &log, Now: func() time.Time { return now }}, kind: record.ObjectKind{There: "Ready"}, plan: &plan.Plan{}}
	g.Chose(design.Next{Level: 10, Purpose: record.PurposeRamp}, nil)
	g.Status(engine.Status{Step: 1, Stage: engine.StageEmptying, Level: 10, Purpose: record.PurposeRamp}, func() judge.Live { return judge.Live{} })
	for range 25 {
		now = now.Add(time.Second)
		g.tick()
	}
	want := "ramp 10\nstep 1 ramp 10: emptying, 2s so far\nstep 1 ramp 10: emptying, 12s so far\nstep 1 ramp 10: emptying, 22s so far\n"
	if log.String() != want {
		t.Errorf("told\n%s\nwant\n%s", &log, want)
	}
}

// The time that is left follows from what steps have taken: their holds, and as
// long for a level as it took so far.
func TestTheRestOfARunIsEstimated(t *testing.T) {
	next := func(level float64, whole bool) design.Next {
		return design.Next{Level: level, FromEmpty: whole, Full: whole}
	}
	f := forecast{hold: 10 * time.Second, short: 2 * time.Second}
	start := time.Unix(0, 0)
	f.chose(start, next(10, true), [][]design.Next{{next(10, true), next(20, false)}})
	if got := f.left(start); got != "" {
		t.Errorf("%q before anything is known", got)
	}
	f.stepped(start.Add(15 * time.Second)) // 5 s for 10 levels
	f.chose(start.Add(15*time.Second), next(20, false), [][]design.Next{
		{next(20, false), next(20, true)},                   // 2 + 5, 10 + 10
		{next(20, false), next(20, true), next(21, true)},   // and 10 + 10.5
		{next(20, false), next(30, false), next(30, true)}}) // 2 + 5, 2 + 5, 10 + 15
	if got, want := f.left(start.Add(18*time.Second)), "2 to 3 steps left with this one, about 24s to 45s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.chose(start, next(20, true), [][]design.Next{{next(20, true)}})
	if got, want := f.left(start.Add(time.Hour)), "1 step left with this one, about 1s"; got != want {
		t.Errorf("a step that takes longer than was thought: %q, want %q", got, want)
	}
}

func TestTheRateIsThatOfTheLastSeconds(t *testing.T) {
	var r rates
	at := time.Unix(0, 0)
	if r.now() != nil {
		t.Error("a rate of nothing")
	}
	for i := range 200 { // 10/s for 10 s, then 100/s
		at = at.Add(100 * time.Millisecond)
		r.add(at, min(i, 100)+10*max(i-100, 0))
	}
	if got := r.now(); got == nil || *got < 99 || *got > 101 {
		t.Errorf("%v", got)
	}
}
