package screen

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/run/engine"
)

// picture is all that the live display shows of a run at one moment.
type picture struct {
	title    string // such as "limit simulated"
	unit     string // of levels
	kind     record.ObjectKind
	elapsed  time.Duration // since the run began to load
	stopping bool          // it was interrupted
	steps    []result.Step // that have ended
	doing    *doing        // nil between steps
	left     string        // of the whole run, "" where it is unknown
}

// doing is the step under way.
type doing struct {
	engine.Status
	elapsed time.Duration // of its stage
	rate    *float64      // objects that become ready per second now, nil: unknown
	live    fold.Live
}

// draw returns the picture in lines that fit so many columns and rows, 0 for no
// bound.
func (p *picture) draw(width, height int) []line {
	const around = 8 // the lines besides the ladder, with one of what is waited for, and one for the cursor
	rows := p.ladder()
	if height > 0 {
		rows = p.near(rows, max(height-around, 1))
	}
	head := line{{p.title, bold}, {"   " + clock(p.elapsed), faint}}
	if p.stopping {
		head = append(head, span{"   interrupted, ending", yellow})
	}
	lines := []line{head}
	unit := 0
	for _, r := range rows {
		unit = max(unit, columns(r.name))
	}
	for _, r := range rows {
		lines = append(lines, r.line(unit))
	}
	if p.doing != nil {
		lines = append(lines, line{}, p.step(), p.bar(width), p.figures())
	}
	if p.left != "" {
		lines = append(lines, line{{"  " + p.left, faint}})
	}
	if most := max(height-2, 1); height > 0 && len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return lines
}

// rung is a level of the ladder, or an arm at one.
type rung struct {
	name    string
	current bool
	pass    int
	fail    int
	unknown int // inconclusive or invalid
	detail  string
}

// ladder returns the outcome of each level, the highest first; of arms at one level, in the
// order of their first runs.
func (p *picture) ladder() []*rung {
	type key struct {
		arm   string
		level float64
	}
	rungs := make(map[key]*rung)
	var order []key
	at := func(arm string, level float64) *rung {
		k := key{arm, level}
		if rungs[k] == nil {
			rungs[k] = &rung{name: strings.TrimSpace(arm + " " + words.Number(level))}
			order = append(order, k)
		}
		return rungs[k]
	}
	for _, s := range p.steps {
		r := at(s.Arm, s.Level)
		switch s.Verdict {
		case slo.Pass:
			r.pass++
		case slo.Fail:
			r.fail++
		default:
			r.unknown++
		}
		if r.detail = s.VerdictWhy; s.Verdict == slo.Pass {
			l := s.Latency[p.kind.There]
			r.detail = quantiles(l.P50, l.P99)
		}
	}
	if p.doing != nil {
		at(p.doing.Arm, p.doing.Level).current = true
	}
	slices.SortStableFunc(order, func(a, b key) int { return cmp.Compare(b.level, a.level) })
	list := make([]*rung, len(order))
	for i, k := range order {
		list[i] = rungs[k]
	}
	return list
}

// near returns the rungs next to the current one, so many at most.
func (p *picture) near(rows []*rung, most int) []*rung {
	if len(rows) <= most {
		return rows
	}
	i := max(slices.IndexFunc(rows, func(r *rung) bool { return r.current }), 0)
	from := min(max(i-most/2, 0), len(rows)-most)
	return rows[from : from+most]
}

func (r *rung) line(unit int) line {
	mark := "  "
	if r.current {
		mark = "▶ "
	}
	l := line{{mark, bold}, {fmt.Sprintf("%*s  ", unit, r.name), plain}}
	used := 0
	for _, v := range []struct {
		n     int
		word  string
		style style
	}{{r.pass, "pass", green}, {r.fail, "fail", red}, {r.unknown, "inconclusive", yellow}} {
		if v.n == 0 {
			continue
		}
		text := v.word
		if v.n > 1 {
			text += " " + strconv.Itoa(v.n) + "x"
		}
		if used > 0 {
			text = ", " + text
		}
		l = append(l, span{text, v.style})
		used += len(text)
	}
	if r.detail != "" {
		const column = 10 // where details begin, if the verdict leaves room
		l = append(l, span{strings.Repeat(" ", max(column-used, 2)) + r.detail, faint})
	}
	return l
}

// step names the step under way.
func (p *picture) step() line {
	d := p.doing
	return line{{fmt.Sprintf("step %d, %s at %s %s: ", d.Step, cmp.Or(d.Arm, string(d.Purpose)), words.Number(d.Level), p.unit), plain}, {string(d.Stage), bold}}
}

// bar returns how far the stage is. Where objects are waited for it has two parts:
// those there, and those only asked for.
func (p *picture) bar(width int) line {
	d := p.doing
	var there, asked float64
	text := ""
	switch {
	case d.Stage == engine.StageEmptying:
		return line{{"  " + clock(d.elapsed) + " so far", plain}}
	case d.Stage == engine.StageRaising || d.Stage == engine.StageWaiting && d.Units > 0:
		there, asked = share(d.Progress.There, d.Units), share(d.Units-d.Unasked, d.Units)
		text = fmt.Sprintf("%d of %d %s", d.Progress.There, d.Units, strings.ToLower(p.kind.There))
	default:
		there = share(int(d.elapsed.Milliseconds()), int((d.elapsed + d.Left).Milliseconds()))
		text = fmt.Sprintf("%d of %d %s", d.Progress.There, d.Units, strings.ToLower(p.kind.There))
		if d.Stage != engine.StageHolding {
			text = fmt.Sprintf("%s, %d in flight", sentOf(d.Status), d.InFlight)
		}
	}
	if left := leftOf(d.Status, d.rate); left != "" {
		text += ", " + left
	}
	const most = 30
	cells := most
	if width > 0 {
		cells = min(most, max(width-columns(text)-6, 8))
	}
	full := int(there * float64(cells))
	half := max(int(asked*float64(cells))-full, 0)
	return line{{"  ", plain}, {strings.Repeat("█", full), green}, {strings.Repeat("▒", half), plain}, {strings.Repeat("░", cells-full-half), faint}, {"  " + text, plain}}
}

// figures returns the rate and the latencies now.
func (p *picture) figures() line {
	d := p.doing
	var parts []string
	if d.Stage == engine.StageRaising {
		parts = append(parts, fmt.Sprintf("%d asked", d.Units-d.Unasked))
	}
	if d.rate != nil && d.Stage != engine.StageHolding {
		parts = append(parts, fmt.Sprintf("%.0f %s/s", *d.rate, p.kind.Object.Many))
	}
	if q := quantiles(d.live.P50, d.live.P99); q != "" {
		parts = append(parts, q)
	}
	if d.Stage == engine.StageRaising {
		parts = append(parts, fmt.Sprintf("%d of %d in flight", d.InFlight, d.Bound))
	}
	if d.Late > 0 {
		parts = append(parts, fmt.Sprintf("%d late, %d dropped", d.Late, d.Dropped))
	}
	if n := d.Progress.Unschedulable; n > 0 {
		parts = append(parts, fmt.Sprintf("%d without a place", n))
	}
	if n := d.Progress.Failed; n > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", n))
	}
	return line{{"  " + strings.Join(parts, ", "), plain}}
}

// leftOf returns how long the stage still lasts, "" where it is unknown.
func leftOf(s engine.Status, rate *float64) string {
	switch {
	case s.Stage == engine.StageWaiting && s.Left > 0:
		return "at most " + clock(s.Left) + " left"
	case s.Stage == engine.StageRaising && rate != nil && *rate > 0:
		return "about " + clock(time.Duration(float64(s.Units-s.Progress.There) / *rate * float64(time.Second))) + " left"
	case s.Left > 0:
		return clock(s.Left) + " left"
	}
	return ""
}

// quantiles returns two latencies in words, "" where they are unknown.
func quantiles(p50, p99 *float64) string {
	if p50 == nil || p99 == nil {
		return ""
	}
	return fmt.Sprintf("p50 %s, p99 %s", words.Seconds(*p50), words.Seconds(*p99))
}

func share(part, of int) float64 {
	if of <= 0 {
		return 0
	}
	return math.Min(math.Max(float64(part)/float64(of), 0), 1)
}

// clock returns a duration in whole seconds, minutes and hours.
func clock(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}
