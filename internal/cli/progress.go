package cli

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report"
	"plimsoll.dev/plimsoll/internal/run/engine"
)

// How often progress is shown: on a terminal one line is written over, else
// lines follow one another.
const (
	liveInterval  = 500 * time.Millisecond
	plainInterval = 10 * time.Second
)

// progress shows how a run proceeds, on standard error.
type progress struct {
	p     *Process
	quiet bool
	kind  record.ObjectKind

	mu    sync.Mutex
	shown time.Time
	live  bool // a line on the terminal is to be written over
	step  int
	stage engine.Stage
	since time.Time // start of the stage
}

// Status implements experiment.Observer.
func (g *progress) Status(s engine.Status, live func() judge.Live) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.p.Now()
	if s.Step != g.step || s.Stage != g.stage {
		g.step, g.stage, g.since = s.Step, s.Stage, now
		if !g.p.StderrTerminal {
			return
		}
	}
	interval := plainInterval
	if g.p.StderrTerminal {
		interval = liveInterval
	}
	if g.quiet || now.Sub(g.shown) < interval {
		return
	}
	g.shown = now
	line := statusLine(s, g.there(), live(), now.Sub(g.since))
	if !g.p.StderrTerminal {
		g.p.logf("%s\n", line)
		return
	}
	if width := g.p.Width(); width > 0 {
		line = truncate(line, width-1)
	}
	g.p.logf("\r\x1b[K%s", line)
	g.live = true
}

// truncate cuts a line to so many characters.
func truncate(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width || width < 1 {
		return line
	}
	return string(runes[:width-1]) + "…"
}

// there is what objects are that count as there.
func (g *progress) there() string { return strings.ToLower(g.kind.There) }

// statusLine is a step's status in one line.
func statusLine(s engine.Status, there string, live judge.Live, elapsed time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "step %d %s %s: ", s.Step, cmp.Or(s.Arm, string(s.Purpose)), report.Number(s.Level))
	switch s.Stage {
	case engine.StageEmptying:
		fmt.Fprintf(&b, "emptying, %s so far", elapsed.Round(time.Second))
		return b.String()
	case engine.StageRaising:
		fmt.Fprintf(&b, "created %d of %d", s.Replied, s.Requests)
	case engine.StageWarming, engine.StageArriving:
		fmt.Fprintf(&b, "%s, sent %d of %d, %d were %s, %d in flight", s.Stage, s.Sent, s.Requests, s.Progress.Arrived, there, s.InFlight)
		if s.Late > 0 {
			fmt.Fprintf(&b, ", %d late, %d dropped", s.Late, s.Dropped)
		}
	default:
		b.WriteString(string(s.Stage))
	}
	if s.Stage != engine.StageWarming && s.Stage != engine.StageArriving {
		fmt.Fprintf(&b, ", %s %d of %d", there, s.Progress.There, s.Units)
	}
	if rate := float64(s.Replied) / elapsed.Seconds(); s.Stage == engine.StageRaising && elapsed > time.Second {
		fmt.Fprintf(&b, ", %.0f/s", rate)
	}
	if live.P50 != nil && live.P99 != nil {
		fmt.Fprintf(&b, ", p50 %s p99 %s", report.Seconds(*live.P50), report.Seconds(*live.P99))
	}
	if s.Stage == engine.StageRaising {
		fmt.Fprintf(&b, ", %d of %d in flight", s.InFlight, s.Bound)
	}
	if n := s.Progress.Unschedulable; n > 0 {
		fmt.Fprintf(&b, ", %d find no place", n)
	}
	left := s.Left
	if s.Stage == engine.StageRaising && elapsed > time.Second && s.Replied > 0 {
		left = time.Duration(float64(elapsed) / float64(s.Replied) * float64(s.Requests-s.Replied))
	}
	if left > 0 {
		atMost := ""
		if s.Stage == engine.StageWaiting {
			atMost = "at most "
		}
		fmt.Fprintf(&b, ", %s%s left", atMost, left.Round(time.Second))
	}
	return b.String()
}

// Chose implements experiment.Observer.
func (g *progress) Chose(n design.Next) {
	if g.quiet {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
	if !g.p.StderrTerminal {
		g.p.logf("%s %s\n", cmp.Or(n.Arm, string(n.Purpose)), report.Number(n.Level))
	}
}

// Stepped implements experiment.Observer.
func (g *progress) Stepped(s judge.Step) {
	if g.quiet {
		return
	}
	text := fmt.Sprintf("step %d %s %s: %s", s.ID, cmp.Or(s.Arm, string(s.Purpose)), report.Number(s.LevelReached), s.Verdict)
	if s.Verdict != slo.Pass {
		text += ": " + s.VerdictWhy
	} else if l, ok := s.Latency[g.kind.There]; ok && l.P50 != nil && l.P99 != nil {
		text += fmt.Sprintf(", %d %s, p50 %s, p99 %s", s.Objects.Ready, g.there(), report.Seconds(*l.P50), report.Seconds(*l.P99))
	}
	g.say("%s", text)
}

// Event implements experiment.Observer. What a user must know at once is
// shown; the rest is for the record.
func (g *progress) Event(e record.Event) {
	if g.quiet {
		return
	}
	switch b := e.Body.(type) {
	case *record.Guard:
		g.say("%s", b.Message)
	case *record.Fault:
		if b.To == 0 {
			g.say("%s: %s", b.What, b.Message)
		} else {
			g.say("%s is over after %s", b.What, (b.To - b.From).Duration().Round(time.Millisecond))
		}
	}
}

func (g *progress) say(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
	g.p.logf(format+"\n", args...)
}

// clear takes the live line away. It is called with the lock held.
func (g *progress) clear() {
	if g.live {
		g.p.logf("\r\x1b[K")
		g.live = false
	}
}

// end takes the last live line away.
func (g *progress) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
}
