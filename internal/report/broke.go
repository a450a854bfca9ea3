package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
)

// brokePart is what broke first, as the page shows it.
type brokePart struct {
	Lead      string // in a sentence; "" where nothing decided
	Says      string
	Steps     []brokeStep // the one that decided first, then the others in order
	Diagnosis []judge.Diagnosis
	Logs      []logRow
	Normal    string // what the conditions are compared with
	Figures   []figureRow
}

// brokeStep is one step's breaches.
type brokeStep struct {
	judge.Step
	Open  bool
	Strip strip
	Rows  []brokeRow
}

// brokeRow is a breach with its number in the strip.
type brokeRow struct {
	judge.Breach
	N     int
	After string // the moment, from the start of the step
	Mark  string // what it is: first, decided, usual, seen
	Then  string // the load at that moment
}

// logRow is a sample of a log with its step.
type logRow struct {
	judge.LogTail
	Step int
}

// figureRow is one of the conditions as it is shown.
type figureRow struct{ Name, Value, Normal, Ratio string }

// brokeOf is nil where nothing broke and nothing was recognised.
func brokeOf(r judge.Result, unit string) *brokePart {
	p := &brokePart{Diagnosis: r.Diagnosis}
	first := r.BrokeFirst
	if first != nil {
		if first.Says != "" {
			p.Says = asSentence(first.Says)
		}
		if s := stepOf(r, first.Step); s != nil {
			p.Lead = fmt.Sprintf("In step %d, at %s %s, the first breach came after %s: %s.",
				s.ID, Number(s.LevelReached), unit, afterStart(*s, first.Breach), first.Breach.What)
		}
		p.Normal, p.Figures = conditionsOf(r)
	}
	for _, s := range r.Steps {
		for _, l := range s.Logs {
			p.Logs = append(p.Logs, logRow{l, s.ID})
		}
		if len(s.Breaches) == 0 {
			continue
		}
		step := brokeStep{Step: s, Open: first != nil && s.ID == first.Step, Strip: stripOf(s)}
		for i, b := range s.Breaches {
			step.Rows = append(step.Rows, brokeRow{b, i + 1, afterStart(s, b), markOf(first, b), loadText(b.Load, unit)})
		}
		if step.Open {
			p.Steps = slices.Insert(p.Steps, 0, step)
		} else {
			p.Steps = append(p.Steps, step)
		}
	}
	if len(p.Steps) == 0 && len(p.Diagnosis) == 0 && len(p.Logs) == 0 {
		return nil
	}
	return p
}

func stepOf(r judge.Result, id int) *judge.Step {
	if i := slices.IndexFunc(r.Steps, func(s judge.Step) bool { return s.ID == id }); i >= 0 {
		return &r.Steps[i]
	}
	return nil
}

// markOf is what a breach is among those of its step.
func markOf(first *judge.BrokeFirst, b judge.Breach) string {
	switch {
	case first != nil && b.Step == first.Step && b.Kind == first.Breach.Kind && b.What == first.Breach.What:
		return "first"
	case b.Decided:
		return "decided"
	case b.Usual:
		return "usual"
	}
	return "seen"
}

// secondsInto is how far a moment lies behind another, both as result.json
// writes times; NaN where one cannot be read.
func secondsInto(start, moment string) float64 {
	from, err := time.Parse(time.RFC3339Nano, start)
	to, toErr := time.Parse(time.RFC3339Nano, moment)
	if err != nil || toErr != nil {
		return math.NaN()
	}
	return to.Sub(from).Seconds()
}

func afterStart(s judge.Step, b judge.Breach) string {
	x := secondsInto(s.Start, b.Time)
	if math.IsNaN(x) {
		return "-"
	}
	return Seconds(max(x, 0))
}

func loadText(l judge.StepProgress, unit string) string {
	if l.Backlog > 0 {
		return fmt.Sprintf("%s behind, %s %s", counted(l.Backlog, "request"), Number(l.Level), unit)
	}
	if l.Asked == 0 {
		return "no request yet"
	}
	return fmt.Sprintf("%d of %d ready, %s %s", l.There, l.Asked, Number(l.Level), unit)
}

// conditionsOf are the conditions as they are shown, and what they are compared
// with.
func conditionsOf(r judge.Result) (normal string, rows []figureRow) {
	c := r.BrokeFirst.Conditions
	if c == nil {
		return "", nil
	}
	switch {
	case c.NormalStep > 0:
		normal = fmt.Sprintf("normal is step %d while it was loaded", c.NormalStep)
	case r.BrokeFirst.Step == r.Steps[0].ID:
		normal = "there is no baseline: this is the first step"
	default:
		normal = "there is no baseline: the first step did not hold"
	}
	for _, f := range c.Figures {
		ratio := known(f.Ratio, func(x float64) string { return fmt.Sprintf("%.3g", x) })
		rows = append(rows, figureRow{f.Name, figureText(f.Value, f.Unit), figureText(f.Normal, f.Unit), ratio})
	}
	return normal, rows
}

func figureText(v *float64, unit string) string {
	switch {
	case v == nil:
		return "-"
	case unit == "s":
		return Seconds(*v)
	case unit == "":
		return strconv.FormatFloat(*v, 'f', -1, 64)
	}
	return fmt.Sprintf("%.3g %s", *v, unit)
}

// strip is a step's time from left to right, with a mark for each breach.
type strip struct {
	Marks      []stripMark
	Hold       float64 // where the hold begins, 0 if it never did
	HoldWidth  float64
	Begin, End string
	Height     float64
}

// stripMark is one breach in a strip: its lane keeps numbers from lying on each
// other.
type stripMark struct {
	N       int
	X, Y    float64
	Decided bool
}

// Left and Top are the corner of the mark's square, TextY is where its number
// stands.
func (m stripMark) Left() float64  { return m.X - 10 }
func (m stripMark) Top() float64   { return m.Y - 10 }
func (m stripMark) TextY() float64 { return m.Y + 4.5 }

// The strip's measures, in units of its picture.
const (
	stripLeft  = 14.0
	stripWidth = 972.0
	stripLane  = 24.0
	stripLanes = 5
)

func stripOf(s judge.Step) strip {
	took := secondsInto(s.Start, s.End)
	if !(took > 0) {
		took = 1
	}
	x := func(seconds float64) float64 { return stripLeft + stripWidth*min(max(seconds/took, 0), 1) }
	p := strip{Begin: "0 s", End: Seconds(took)}
	if s.ReachSeconds != nil {
		p.Hold = math.Round(x(*s.ReachSeconds))
		p.HoldWidth = stripLeft + stripWidth - p.Hold
	}
	var free [stripLanes]float64 // from where on a lane is free
	lanes := 1
	for i, b := range s.Breaches {
		m := stripMark{N: i + 1, Decided: b.Decided, X: math.Round(10*x(secondsInto(s.Start, b.Time))) / 10}
		if math.IsNaN(m.X) {
			m.X = stripLeft
		}
		lane := 0
		for l := range free {
			if free[l] <= m.X {
				lane = l
				break
			}
			if free[l] < free[lane] {
				lane = l
			}
		}
		free[lane] = m.X + 26
		lanes = max(lanes, lane+1)
		m.Y = float64(lane)
		p.Marks = append(p.Marks, m)
	}
	for i := range p.Marks {
		p.Marks[i].Y = stripLane*(float64(lanes-1)-p.Marks[i].Y) + 14
	}
	p.Height = stripLane*float64(lanes) + 30
	return p
}

// Base is where the line of time lies.
func (s strip) Base() float64 { return s.Height - 24 }

// HoldText is where the word over the hold stands.
func (s strip) HoldText() float64 { return min(max(s.Hold, 110), 890) }

// Foot is where its figures stand.
func (s strip) Foot() float64 { return s.Height - 6 }

// broke shows what broke first, and what that looks like.
func (p *printer) broke(r judge.Result) {
	if first := r.BrokeFirst; first != nil {
		if s := stepOf(r, first.Step); s != nil {
			p.line("")
			p.line("What broke first, in step %d at %s:", s.ID, Number(s.LevelReached))
			p.breaches(first, *s, brokeShown)
			p.conditions(r)
		}
	}
	p.diagnosis(r)
}

// diagnosisShown is how many signatures are shown with what to do.
const diagnosisShown = 5

// diagnosis shows the failures that were recognised.
func (p *printer) diagnosis(r judge.Result) {
	var held []string
	shown := 0
	for _, d := range r.Diagnosis {
		if !d.Failing {
			held = append(held, fmt.Sprintf("%s (%s, step %d)", d.Title, d.Signature, d.Step))
			continue
		}
		if shown++; shown > diagnosisShown {
			continue
		}
		if shown == 1 {
			p.line("")
			p.line("Known failures that match:")
		}
		p.line("  %s (%s, step %d%s)", d.Title, d.Signature, d.Step, andMore(d.Steps))
		p.line("    %s", d.Evidence)
		p.line("    %s", d.Explanation)
		p.line("    To do: %s", d.Remedy)
	}
	if shown > diagnosisShown {
		p.line("  and %d more, in result.json", shown-diagnosisShown)
	}
	if len(held) > 0 {
		p.line("")
		p.line("Seen in steps that did not fail: %s", strings.Join(held, "; "))
	}
}

func andMore(steps []int) string {
	if len(steps) < 2 {
		return ""
	}
	return " and " + moreSteps(steps)
}

// moreSteps is how many steps there are besides one.
func moreSteps(steps []int) string {
	return fmt.Sprintf("%d more", len(steps)-1)
}

// brokeShown is how many breaches of a step are shown.
const brokeShown = 8

func (p *printer) breaches(first *judge.BrokeFirst, s judge.Step, most int) {
	for i, b := range s.Breaches {
		if i == most {
			p.line("  and %d more, in result.json", len(s.Breaches)-most)
			return
		}
		what := b.What
		if !b.Decided {
			what += fmt.Sprintf(" (%d)", b.Count)
		}
		with := fmt.Sprintf("%d of %d ready", b.Load.There, b.Load.Asked)
		if s.Requests != nil {
			with = counted(b.Load.Backlog, "request") + " behind"
		}
		p.line("  %-7s  after %s, with %s: %s", markOf(first, b), afterStart(s, b), with, what)
		if b.Message != "" {
			p.line("           %s", breachText(b))
		}
	}
}

func breachText(b judge.Breach) string {
	if b.Object == "" {
		return b.Message
	}
	return b.Object + ": " + b.Message
}

func (p *printer) conditions(r judge.Result) {
	normal, rows := conditionsOf(r)
	if len(rows) == 0 {
		return
	}
	p.line("  Conditions then (%s):", normal)
	table := [][]string{{"", "then", "normal", "ratio"}}
	for _, row := range rows {
		table = append(table, []string{row.Name, row.Value, row.Normal, row.Ratio})
	}
	p.columns("      ", "rrrr", table)
	if says := r.BrokeFirst.Says; says != "" {
		p.line("  %s", asSentence(says))
	}
}

// allBreaches shows what broke in every step, in order of time.
func (p *printer) allBreaches(r judge.Result) {
	told := false
	for _, s := range r.Steps {
		if len(s.Breaches) == 0 || r.BrokeFirst != nil && s.ID == r.BrokeFirst.Step {
			continue
		}
		if !told {
			p.line("")
			p.line("Breaches and troubles in the other steps:")
			told = true
		}
		p.line("  step %d at %s, %s:", s.ID, Number(s.LevelReached), s.Verdict)
		p.breaches(r.BrokeFirst, s, len(s.Breaches))
	}
}
