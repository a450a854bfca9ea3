package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Text writes a result for a terminal: a table of the steps, what kept objects
// from being ready, and the verdict in a sentence. Dir is where the record
// lies. Explain adds why each level was chosen.
func Text(w io.Writer, r judge.Result, dir string, explain bool) error {
	p := newPrinter(w)
	p.steps(r)
	p.metrics(r)
	p.played(r)
	p.byLabels(r)
	for _, text := range append(boundLines(r), recordedLines(r)...) {
		p.line("%s", text)
	}
	p.backlogs(r, explain)
	p.reasons(r)
	p.broke(r)
	if explain {
		p.allBreaches(r)
		p.why(r)
	}
	if r.Comparison == nil {
		p.goals(r)
	} else {
		p.comparison(r.Comparison)
	}
	p.laws(r.Laws, explain)
	p.overhead(r.Overhead, objectKind(r))
	p.durations(r)
	p.published(r)
	for _, warning := range r.Warnings {
		p.line("warning: %s", warning)
	}
	p.line("")
	p.line("%s", Sentence(r))
	if r.Prediction != nil {
		p.line("%s", r.Prediction.Text)
	}
	if note := fidelityNote(r.Fidelity); note != "" {
		p.line("%s", note)
	}
	p.line("Record: %s", dir)
	return p.err
}

type printer struct {
	w     io.Writer
	width int // of the terminal in columns, 0 for no bound
	err   error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, printable(fmt.Sprintf(format, args...))+"\n")
	}
}

// objectKind is the kind of the objects of a result: zero where it does not say it.
func objectKind(r judge.Result) record.ObjectKind {
	if r.ObjectKind == nil {
		return record.ObjectKind{}
	}
	return *r.ObjectKind
}

// printable keeps what the cluster says from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

func (p *printer) steps(r judge.Result) {
	if len(r.Steps) == 0 {
		return
	}
	arrived := cmp.Or(r.Arrived, objectKind(r).There)
	rows := [][]string{{"step", "purpose", "level", "asked", "ready", "never", "lost", "per second", arrived + " p50", "p99", "verdict"}}
	if r.Steps[0].Requests != nil {
		copy(rows[0][3:], []string{"intended", "done", "not done"})
	}
	refused := failedRequests(r) != ""
	if refused {
		rows[0] = append(rows[0], "requests failed")
	}
	concurrent := objectKind(r).Concurrent
	if concurrent != nil {
		rows[0] = append(rows[0], concurrent.From+" at once", "of one "+objectKind(r).Place.One)
	}
	for _, s := range r.Steps {
		l, o := s.Latency[arrived], s.Account()
		rows = append(rows, []string{
			strconv.Itoa(s.ID), cmp.Or(s.Arm, string(s.Purpose)), Number(s.LevelReached), strconv.Itoa(o.Intended), strconv.Itoa(o.Ready),
			strconv.Itoa(notReady(o)), strconv.Itoa(o.Lost), atLeast(s.AtLeast) + rate(s.AchievedRate), quantile(l, l.P50), quantile(l, l.P99), string(s.Verdict),
		})
		if refused {
			rows[len(rows)-1] = append(rows[len(rows)-1], shareOfRequests(s))
		}
		if a := s.Concurrent; a != nil && concurrent != nil {
			rows[len(rows)-1] = append(rows[len(rows)-1], ofLimit(a.Most, a.Limit), ofLimit(a.PerPlace, a.PerPlaceLimit))
		}
	}
	p.columns("  ", strings.Repeat("r", len(rows[0])), rows)
}

// ofLimit is a number with its limit, where that is known.
func ofLimit(n, limit int) string {
	if limit == 0 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d of %d", n, limit)
}

// failedRequests says in a sentence that requests failed, and at which level
// most of them; "" where none did. Streams have an account of their own.
func failedRequests(r judge.Result) string {
	failed, asked, steps := 0, 0, 0
	var most *judge.Step
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Requests != nil || s.APIRequests.Failed == 0 {
			continue
		}
		failed, asked, steps = failed+s.APIRequests.Failed, asked+s.APIRequests.N, steps+1
		if most == nil || s.APIRequests.Failed > most.APIRequests.Failed {
			most = s
		}
	}
	if most == nil {
		return ""
	}
	why := judge.Refusal(most.Reasons)
	if why != "" {
		why = " (" + why + ")"
	}
	if steps == 1 {
		return fmt.Sprintf("%d of %d %s failed at %s%s", failed, asked, noun(asked, "request"), Number(most.LevelReached), why)
	}
	return fmt.Sprintf("%d of %d %s failed at %d levels, most at %s%s", failed, asked, noun(asked, "request"), steps, Number(most.LevelReached), why)
}

// shareOfRequests is how many of a step's requests failed.
func shareOfRequests(s judge.Step) string {
	return fmt.Sprintf("%d of %d", s.APIRequests.Failed, s.APIRequests.N)
}

// quantile is a quantile as it is shown. One that falls on objects that were never
// ready is never.
func quantile(l judge.Latency, v *float64) string {
	switch {
	case v != nil:
		return Seconds(*v)
	case l.N == 0:
		return "-"
	}
	return "never"
}

// played shows the times of simulated parts as they would be: those that were
// measured, times the scale at which they pass.
func (p *printer) played(r judge.Result) {
	rows := playedRows(r)
	if rows == nil {
		return
	}
	p.line("")
	p.line("As it would be, %g times as long as it was measured (our own share of it, too):", timeScale(r))
	p.columns("  ", "rrlrrr", rows)
}

func rate(v *float64) string {
	return known(v, func(x float64) string { return fmt.Sprintf("%.1f", x) })
}

// known is a figure as show writes it, "-" where it is not known.
func known(v *float64, show func(float64) string) string {
	if v == nil {
		return "-"
	}
	return show(*v)
}

// backlogs shows the backlog over the hold of each step that has one, where all
// is to be explained or some backlog was not steady.
func (p *printer) backlogs(r judge.Result, explain bool) {
	rows := [][]string{{"step", "level", "over the hold", "first", "last", "in balance", "growth/s"}}
	for _, s := range r.Steps {
		b := s.Backlog
		if b == nil || len(b.Means) == 0 {
			continue
		}
		explain = explain || b.Growing || b.Stalled
		growth := known(b.Slope.Value, twoDigits)
		if b.Slope.Lo != nil && b.Slope.Hi != nil {
			growth += fmt.Sprintf(" (%.2f to %.2f)", *b.Slope.Lo, *b.Slope.Hi)
		}
		rows = append(rows, []string{strconv.Itoa(s.ID), Number(s.LevelReached), bars(b.Means), fmt.Sprintf("%.0f", b.Means[0]), fmt.Sprintf("%.0f", b.Means[len(b.Means)-1]), known(b.Balance, func(x float64) string { return fmt.Sprintf("%.0f", x) }), growth})
	}
	if len(rows) > 1 && explain {
		p.line("")
		p.line("Backlog: arrivals that were due and not there (in balance it is the mean latency times the rate):")
		p.columns("  ", "rrlrrrr", rows)
	}
}

// bars draws figures that are not negative as a row of bars, two in each.
func bars(figures []float64) string {
	const heights = "▁▂▃▄▅▆▇█"
	most := slices.Max(figures)
	var b strings.Builder
	for pair := range slices.Chunk(figures, 2) {
		x := slices.Max(pair)
		at := 0
		if most > 0 {
			at = min(int(x/most*8), 7)
		}
		b.WriteRune([]rune(heights)[max(at, 0)])
	}
	return b.String()
}

// reasons shows what kept objects from being ready, of the last step that
// had any and was judged a breach.
func (p *printer) reasons(r judge.Result) {
	for i := len(r.Steps) - 1; i >= 0; i-- {
		s := r.Steps[i]
		if len(s.Reasons) == 0 {
			continue
		}
		p.line("")
		thing, things := thingsOf(r)
		title := things + " were not ready"
		if s.Requests != nil {
			title = things + " were not done"
		}
		if !slices.ContainsFunc(s.Reasons, func(x judge.Reason) bool { return !x.Requests }) {
			title = "requests failed"
		}
		p.line("Why %s in step %d, at %s:", title, s.ID, Number(s.LevelReached))
		for _, reason := range s.Reasons[:min(len(s.Reasons), 5)] {
			of := record.Noun{One: thing, Many: things}
			if reason.Requests {
				of = record.Noun{One: "request", Many: "requests"}
			}
			p.line("  %s: %s", of.Count(reason.Count), strings.TrimSpace(reason.Reason+" "+reason.On(objectKind(r).Place)))
			if reason.Message != "" && reason.Message != reason.Reason {
				p.line("      %s", reason.Message)
			}
		}
		if more := len(s.Reasons) - 5; more > 0 {
			p.line("  and %d more reasons, in result.json", more)
		}
		return
	}
}

func (p *printer) why(r judge.Result) {
	p.line("")
	p.line("Why each level was chosen:")
	for _, s := range r.Steps {
		hold := "short hold"
		if s.FullHold {
			hold = "full hold"
		}
		start := "raised"
		if s.FromEmpty {
			start = "from empty"
		}
		p.line("  %2d  %s (%s, %s): %s: %s", s.ID, s.Why, start, hold, s.Verdict, s.VerdictWhy)
	}
	p.line("  done: %s", r.Why)
}

// goals shows which goal is the headline, the further goals' lines, and which
// of them the exit code follows. The headline's line is the sentence.
func (p *printer) goals(r judge.Result) {
	if len(r.Goals) < 2 {
		return
	}
	p.line("")
	for i, g := range r.Goals {
		said := "the headline: " + string(g.Verdict) + ", as said at the end"
		if i > 0 {
			said = goalSentence(g)
		}
		p.line("goal %s (%s): %s", g.Name, strings.Join(g.SLO, "; "), said)
	}
	p.line("%s", requiredSentence(r))
}

// requiredSentence says which goals the exit code follows.
func requiredSentence(r judge.Result) string {
	switch {
	case r.Comparison != nil:
		return fmt.Sprintf("The exit code, %d, follows the comparison.", r.ExitCode)
	case r.Require == "":
		return fmt.Sprintf("The exit code, %d, follows the headline goal alone; --require all follows every goal.", r.ExitCode)
	case r.Require == plan.RequireAll:
		return fmt.Sprintf("The exit code, %d, follows every goal.", r.ExitCode)
	}
	return fmt.Sprintf("The exit code, %d, follows the goal %s.", r.ExitCode, r.Require)
}

func goalSentence(g judge.GoalResult) string {
	if g.LoadLine == nil {
		return string(g.Verdict) + ": " + g.Why
	}
	return lineSentence(g.LoadLine, g.Verdict, g.Why)
}

// Sentence is the verdict in a sentence.
func Sentence(r judge.Result) string {
	if failed := failedRequests(r); failed != "" {
		return verdictSentence(r) + " " + failed + "."
	}
	return verdictSentence(r)
}

func verdictSentence(r judge.Result) string {
	if r.Comparison != nil {
		return fmt.Sprintf("%s: %s: %s.", r.Workload, verdictOfArms(r), r.Why)
	}
	if r.LoadLine != nil {
		return "Load line of " + r.Workload + ": " + lineSentence(r.LoadLine, r.Verdict, r.Why) + confidenceSentence(r.LoadLine, r.Verdict)
	}
	switch r.Verdict {
	case slo.Pass:
		var not []string
		for _, g := range r.Goals {
			if g.Verdict != slo.Pass {
				not = append(not, fmt.Sprintf("%s (%s)", g.Name, g.Verdict))
			}
		}
		if len(not) > 0 {
			return fmt.Sprintf("%s held at every level by goal %s, but not by %s: %s.", r.Workload, r.Goals[0].Name, andList(not), r.Why)
		}
		return fmt.Sprintf("%s held at every level: %s.", r.Workload, r.Why)
	case slo.Breached:
		for _, s := range r.Steps {
			if s.Verdict == slo.Breached {
				return fmt.Sprintf("%s did not hold at %s: %s.", r.Workload, Number(s.LevelReached), s.VerdictWhy)
			}
		}
	}
	return fmt.Sprintf("%s: %s: %s.", r.Workload, r.Verdict, r.Why)
}

func lineSentence(l *judge.LoadLine, verdict slo.Verdict, why string) string {
	var b strings.Builder
	switch {
	case verdict == slo.Breached && l.LowestFailing != nil:
		fmt.Fprintf(&b, "below the first level: %s %s failed", Number(*l.LowestFailing), l.Unit)
	case verdict == slo.Pass && l.Level != nil:
		fmt.Fprintf(&b, "%s %s%s, confirmed %d of %d from empty", Number(*l.Level), l.Unit, askedText(l.LevelAsked), l.Confirmations, confirmationsOf(l))
		if l.LowestFailing != nil {
			fmt.Fprintf(&b, "; %s failed", Number(*l.LowestFailing))
		} else {
			b.WriteString("; nothing failed up to the highest level tried")
		}
	case l.Level != nil && l.LowestFailing != nil:
		fmt.Fprintf(&b, "%s, between %s and %s %s: %s", verdict, Number(*l.Level), Number(*l.LowestFailing), l.Unit, why)
	case l.Level != nil:
		fmt.Fprintf(&b, "%s, at least %s %s held: %s", verdict, Number(*l.Level), l.Unit, why)
	default:
		fmt.Fprintf(&b, "%s: %s", verdict, why)
	}
	if len(l.Mixed) > 0 {
		var list []string
		for _, m := range l.Mixed {
			list = append(list, fmt.Sprintf("%s held %d of %d times", Number(m.Level), m.Passed, m.Passed+m.Failed))
		}
		fmt.Fprintf(&b, "; the steps do not agree: %s", andList(list))
	}
	if l.Binding != "" {
		fmt.Fprintf(&b, ", bound by: %s", l.Binding)
	}
	b.WriteString(".")
	return b.String()
}

// askedText says that another level was asked for than was made, "" for nil.
func askedText(asked *float64) string {
	if asked == nil {
		return ""
	}
	return fmt.Sprintf(" (%s asked for)", Number(*asked))
}

// confidenceSentence says what the confirmations of a line mean, with a space
// before it; "" where they mean nothing.
func confidenceSentence(l *judge.LoadLine, verdict slo.Verdict) string {
	if verdict != slo.Pass || l.Confirmations == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d means: a further run passes with a probability of at least %.0f %%, at 95 %% confidence.)",
		l.Confirmations, confirmationsOf(l), 100*l.PassProbability)
}

// confirmationsOf is how many confirmations decided, of which some may fail
// where that is tolerated; as many as were asked for before any was made.
func confirmationsOf(l *judge.LoadLine) int {
	return cmp.Or(l.ConfirmationsMade, l.ConfirmationsAsked)
}

// fidelityNote says what was simulated, "" when nothing was.
func fidelityNote(f record.Fidelity) string {
	var simulated []string
	for _, part := range fidelityOf(f) {
		if part.Is == record.Simulated {
			simulated = append(simulated, part.Part)
		}
	}
	if len(simulated) == 0 {
		return ""
	}
	real := ""
	if f.ControlPlane == record.Real {
		real = "; the control plane was real"
	}
	return "Simulated: " + strings.Join(simulated, ", ") + real + "."
}

// Number is a level as people write it.
func Number(x float64) string { return fmt.Sprintf("%.10g", x) }

// Seconds is a duration in seconds with three significant digits and its unit.
func Seconds(x float64) string {
	switch {
	case x < 0.0005:
		return fmt.Sprintf("%.0f µs", x*1e6)
	case x < 0.01:
		return fmt.Sprintf("%.2f ms", x*1e3)
	case x < 1:
		return fmt.Sprintf("%.0f ms", x*1e3)
	case x < 10:
		return fmt.Sprintf("%.2f s", x)
	}
	return fmt.Sprintf("%.1f s", x)
}
