package screen

import (
	"bytes"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func seconds(x float64) *float64 { return &x }

// stepMade returns a step that has ended.
func stepMade(id int, arm string, level float64, verdict slo.Verdict, why string) result.Step {
	return result.Step{
		ID: id, StepPlan: record.StepPlan{Arm: arm, Level: level, Purpose: record.PurposeRamp}, LevelReached: level, Verdict: verdict, VerdictWhy: why,
		Latency: result.Latencies{"Ready": {P50: seconds(0.1), P99: seconds(1.25)}},
	}
}

// pictures are runs of every kind at one moment.
func pictures() map[string]picture {
	pods := record.ObjectKind{Object: record.Noun{One: "pod", Many: "pods"}, There: "Ready"}
	search := []result.Step{
		stepMade(1, "", 50, slo.Pass, ""), stepMade(2, "", 100, slo.Pass, ""), stepMade(3, "", 150, slo.Fail, "all Ready: 800 of 3000 did not get there"),
		stepMade(4, "", 110, slo.Inconclusive, "the state of 7 objects is unknown"), stepMade(5, "", 110, slo.Pass, ""), stepMade(6, "", 110, slo.Pass, ""),
	}
	status := func(stage engine.Stage, purpose record.Purpose, level float64) engine.Status {
		return engine.Status{
			Step: 7, Stage: stage, StepPlan: record.StepPlan{Level: level, Purpose: purpose}, Requests: 2200, Sent: 1700, Replied: 1650, InFlight: 50, Bound: 64,
			Units: 2200, Unasked: 550, Progress: system.Progress{There: 1100, Arrived: 1100},
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
	live := fold.Live{There: 1100, P50: seconds(0.089), P99: seconds(0.288)}
	of := func(steps []result.Step, d *doing) picture {
		return picture{title: "limit node-density", unit: "pods/node", kind: pods, elapsed: 83 * time.Second, steps: steps, doing: d, left: "2 to 5 steps left with this one, about 25s to 1m10s"}
	}
	stopped := of(search, nil)
	stopped.stopping, stopped.left = true, ""
	first := of(nil, &doing{Status: status(engine.StageEmptying, record.PurposeRamp, 50), elapsed: 3 * time.Second})
	first.left = ""
	hostile := of([]result.Step{stepMade(1, "", 50, slo.Fail, "\x1b[2J\x1b]0;owned\a日本語の長い説明がここに続いて行の終わりを越えていく、越えていく、越えていく\n\r\tend")}, nil)
	return map[string]picture{
		"raising":     of(search, &doing{Status: raising, elapsed: 5 * time.Second, rate: seconds(212.4), live: live}),
		"waiting":     of(search, &doing{Status: waiting, elapsed: 28 * time.Second, rate: seconds(0), live: live}),
		"holding":     of(search, &doing{Status: holding, elapsed: 4 * time.Second, live: live}),
		"arriving":    of(search[:2], &doing{Status: arriving, elapsed: 15 * time.Second, rate: seconds(148.9), live: live}),
		"arms":        of([]result.Step{stepMade(1, "runc", 60, slo.Pass, ""), stepMade(2, "crun", 60, slo.Pass, ""), stepMade(3, "runc", 60, slo.Invalid, "this program was short of CPU")}, &doing{Status: arm, elapsed: 400 * time.Millisecond}),
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
