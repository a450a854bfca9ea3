package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// Run returns a result for a terminal: the verdict in a sentence, the steps, the goals, what broke, and the rest.
// Dir is the run directory. Explain adds why each level was chosen, what broke in the other steps, and histograms
// of the components.
func Run(r result.Result, dir string, explain bool) []Section {
	first := Section{Title: Sentence(r)}
	if r.Prediction != nil {
		first.linef("%s", r.Prediction.Text)
	}
	if note := fidelityNote(r.Fidelity); note != "" {
		first.linef("%s", note)
	}
	list := []Section{first, steps(r)}
	if r.Comparison == nil {
		list = append(list, goals(r))
	} else {
		list = append(list, comparison(r.Comparison)...)
	}
	var bounds, end Section
	bounds.lines("", append(boundLines(r), recordedLines(r)...)...)
	list = append(list, broke(r), diagnosis(r), reasons(r), metricsSection(r), playedSection(r), labelSection(r), bounds, backlogs(r, explain))
	if explain {
		list = append(list, otherBreaches(r), why(r), durations(r))
	}
	end.linef("Record: %s", dir)
	return said(append(list, lawSection(r.Laws, explain), overheadSection(r), requests(r), published(r), warned(r.Warnings), end)...)
}

func steps(r result.Result) (s Section) {
	if len(r.Steps) == 0 {
		return s
	}
	kind := r.ObjectKind
	arrived := cmp.Or(r.Arrived, kind.There)
	head := []string{"step", "purpose", "level", "asked", "ready", "never", "lost", "per second", arrived + " p50", "p99", "verdict"}
	if r.Steps[0].Streams() {
		copy(head[3:], []string{"intended", "done", "not done"})
	}
	refused := failedRequests(r) != ""
	if refused {
		head = append(head, "requests failed")
	}
	if kind.Concurrent != nil {
		head = append(head, kind.Concurrent.From+" at once", "of one "+kind.Place.One)
	}
	rows := [][]string{head}
	for _, s := range r.Steps {
		l, o := s.Latency[arrived], s.Account()
		row := []string{
			strconv.Itoa(s.ID), cmp.Or(s.Arm, string(s.Purpose)), words.Number(s.LevelReached), strconv.Itoa(o.Intended), strconv.Itoa(o.Ready),
			strconv.Itoa(notReady(o)), strconv.Itoa(o.Lost), atLeast(s.AtLeast) + words.Rate(s.AchievedRate), quantile(l, l.P50), quantile(l, l.P99), string(s.Verdict),
		}
		if refused {
			row = append(row, shareOfRequests(s))
		}
		if a := s.Concurrent; a != nil && kind.Concurrent != nil {
			row = append(row, ofLimit(a.Most, a.Limit), ofLimit(a.PerPlace, a.PerPlaceLimit))
		}
		rows = append(rows, row)
	}
	s.table(2, figures(rows))
	return s
}

func ofLimit(n, limit int) string {
	if limit == 0 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d of %d", n, limit)
}

// failedRequests says how many requests failed, and where most did, or "". Streams do not count.
func failedRequests(r result.Result) string {
	failed, asked, steps := 0, 0, 0
	var most *result.Step
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Streams() || s.APIRequests.Failed == 0 {
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
	why := result.Refusal(most.Reasons)
	if why != "" {
		why = " (" + why + ")"
	}
	if steps == 1 {
		return fmt.Sprintf("%d of %d %s failed at %s%s", failed, asked, words.Noun(asked, "request"), words.Number(most.LevelReached), why)
	}
	return fmt.Sprintf("%d of %d %s failed at %d levels, most at %s%s", failed, asked, words.Noun(asked, "request"), steps, words.Number(most.LevelReached), why)
}

func shareOfRequests(s result.Step) string {
	return fmt.Sprintf("%d of %d", s.APIRequests.Failed, s.APIRequests.N)
}

// quantile writes a quantile. One that falls on objects that were never ready is never.
func quantile(l result.Latency, v *float64) string {
	switch {
	case v != nil:
		return words.Seconds(*v)
	case l.N == 0:
		return "-"
	}
	return "never"
}

// backlogs shows the backlog of each step with one, to explain or if one was not steady.
func backlogs(r result.Result, explain bool) Section {
	s := Section{Title: "Backlog: arrivals that were due and not done yet (in balance it is the mean latency times the rate):"}
	whole := func(x float64) string { return fmt.Sprintf("%.0f", x) }
	t := Table{"rrlrrrr", [][]string{{"step", "level", "over the hold", "first", "last", "in balance", "growth/s"}}}
	for _, s := range r.Steps {
		b := s.Backlog
		if b == nil || len(b.Means) == 0 {
			continue
		}
		explain = explain || b.Growing || b.Stalled
		growth := words.Known(b.Slope.Value, words.TwoDigits)
		if b.Slope.Lo != nil && b.Slope.Hi != nil {
			growth += fmt.Sprintf(" (%.2f to %.2f)", *b.Slope.Lo, *b.Slope.Hi)
		}
		t.add(strconv.Itoa(s.ID), words.Number(s.LevelReached), words.Bars(b.Means), whole(b.Means[0]), whole(b.Means[len(b.Means)-1]), words.Known(b.Balance, whole), growth)
	}
	if !t.Any() || !explain {
		return Section{}
	}
	s.table(2, t)
	return s
}

// reasons says what kept objects from being ready in the last step with reasons.
func reasons(r result.Result) (out Section) {
	const shown = 5
	steps := reasonsOf(r)
	if len(steps) == 0 {
		return out
	}
	s := steps[0]
	thing, things := thingsOf(r)
	title := things + " were not ready"
	if s.Streams() {
		title = things + " were not done"
	}
	if !slices.ContainsFunc(s.Reasons, func(x result.Reason) bool { return !x.Requests }) {
		title = "requests failed"
	}
	out.Title = fmt.Sprintf("Why %s in step %d, at %s:", title, s.ID, words.Number(s.LevelReached))
	for _, reason := range s.Reasons[:min(len(s.Reasons), shown)] {
		of := record.Noun{One: thing, Many: things}
		if reason.Requests {
			of = record.Noun{One: "request", Many: "requests"}
		}
		out.linef("  %s: %s", of.Count(reason.Count), strings.TrimSpace(reason.Reason+" "+reason.On(r.ObjectKind.Place)))
		if reason.Message != "" && reason.Message != reason.Reason {
			out.linef("      %s", reason.Message)
		}
	}
	if more := len(s.Reasons) - shown; more > 0 {
		out.linef("  and %d more reasons, in result.json", more)
	}
	return out
}

func why(r result.Result) Section {
	out := Section{Title: "Why each level was chosen:"}
	for _, s := range r.Steps {
		hold, start, verdict := "short hold", "raised", string(s.Verdict)
		if s.FullHold {
			hold = "full hold"
		}
		if s.FromEmpty {
			start = "from empty"
		}
		if s.Verdict != slo.Pass && len(s.Breaches) == 0 { // breaches are shown above
			verdict += ": " + s.VerdictWhy
		}
		out.linef("  %2d  %s (%s, %s): %s", s.ID, s.Why, start, hold, verdict)
	}
	out.linef("  done: %s", r.Why)
	return out
}

// goals names the headline, the lines of the other goals, and those that the exit code follows.
func goals(r result.Result) (s Section) {
	if len(r.Goals) < 2 {
		return s
	}
	for i, g := range r.Goals {
		text := GoalSentence(g)
		if i == 0 {
			text = string(g.Verdict) + "; it is the headline, and the first sentence says more"
		}
		s.linef("goal %s (%s): %s", g.Name, strings.Join(g.SLO, "; "), text)
	}
	s.linef("%s", requiredSentence(r))
	return s.apart()
}

func requiredSentence(r result.Result) string {
	switch {
	case r.ExitCode > 128:
		return fmt.Sprintf("The exit code, %d, is that of the signal that ended the run.", r.ExitCode)
	case r.Comparison != nil:
		return fmt.Sprintf("The exit code, %d, follows the comparison.", r.ExitCode)
	case r.Require == "":
		return fmt.Sprintf("The exit code, %d, follows the headline goal alone; --require all follows every goal.", r.ExitCode)
	case r.Require == plan.RequireAll:
		return fmt.Sprintf("The exit code, %d, follows every goal.", r.ExitCode)
	}
	return fmt.Sprintf("The exit code, %d, follows the goal %s.", r.ExitCode, r.Require)
}

// GoalSentence returns the verdict of a goal, with its load line.
func GoalSentence(g result.GoalResult) string {
	if g.LoadLine == nil {
		return string(g.Verdict) + ": " + g.Why
	}
	return lineSentence(g.LoadLine, g.Verdict, g.Why)
}

// Sentence returns the verdict in a sentence.
func Sentence(r result.Result) string {
	if failed := failedRequests(r); failed != "" {
		return verdictSentence(r) + " " + failed + "."
	}
	return verdictSentence(r)
}

func verdictSentence(r result.Result) string {
	if r.Comparison != nil {
		return fmt.Sprintf("%s: %s: %s.", r.Workload, verdictOfArms(r), r.Why)
	}
	if r.LoadLine != nil {
		return "Load line of " + r.Workload + ": " + lineSentence(r.LoadLine, r.Verdict, r.Why) + confidenceSentence(r.LoadLine, r.Verdict) + triedSentence(r)
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
			return fmt.Sprintf("%s held at every level by goal %s, but not by %s: %s.", r.Workload, r.Goals[0].Name, words.And(not), r.Why)
		}
		return fmt.Sprintf("%s held at every level: %s.", r.Workload, r.Why)
	case slo.Fail:
		if lowest := decidingStep(r); lowest != nil {
			return fmt.Sprintf("%s did not hold at %s: %s.", r.Workload, words.Number(lowest.LevelReached), lowest.VerdictWhy)
		}
	}
	return fmt.Sprintf("%s: %s: %s.", r.Workload, r.Verdict, r.Why)
}

func lineSentence(l *result.LoadLine, verdict slo.Verdict, why string) string {
	var b strings.Builder
	switch {
	case verdict == slo.Fail && l.LowestFailing != nil:
		fmt.Fprintf(&b, "below the first level: %s %s failed", words.Number(*l.LowestFailing), l.Unit)
	case verdict == slo.Pass && l.Level != nil:
		fmt.Fprintf(&b, "%s %s%s%s, confirmed %d of %d from empty", words.Number(*l.Level), l.Unit, askedText(l.LevelAsked), sustainedText(l), l.Confirmations, confirmationsOf(l))
		if l.LowestFailing != nil {
			fmt.Fprintf(&b, "; %s failed", words.Number(*l.LowestFailing))
		} else {
			b.WriteString("; nothing failed up to the highest level tried")
		}
	case l.Level != nil && l.LowestFailing != nil:
		fmt.Fprintf(&b, "%s, between %s and %s %s: %s", verdict, words.Number(*l.Level), words.Number(*l.LowestFailing), l.Unit, why)
	case l.Level != nil:
		fmt.Fprintf(&b, "%s, at least %s %s held: %s", verdict, words.Number(*l.Level), l.Unit, why)
	default:
		fmt.Fprintf(&b, "%s: %s", verdict, why)
	}
	if len(l.Mixed) > 0 {
		var list []string
		for _, m := range l.Mixed {
			list = append(list, fmt.Sprintf("%s held %d of %d times", words.Number(m.Level), m.Passed, m.Passed+m.Failed))
		}
		fmt.Fprintf(&b, "; the steps do not agree: %s", words.And(list))
	}
	if l.Binding != "" {
		fmt.Fprintf(&b, ", bound by: %s", l.Binding)
	}
	b.WriteString(".")
	return b.String()
}

func sustainedText(l *result.LoadLine) string {
	if l.Sustained == nil {
		return ""
	}
	return fmt.Sprintf(" (%s/s sustained)", words.Short(*l.Sustained))
}

func askedText(asked *float64) string {
	if asked == nil {
		return ""
	}
	return fmt.Sprintf(" (%s asked for)", words.Number(*asked))
}

// confidenceSentence says what the confirmations of a line prove, with a space before it, or "".
func confidenceSentence(l *result.LoadLine, verdict slo.Verdict) string {
	if verdict != slo.Pass || l.Confirmations == 0 {
		return ""
	}
	text := fmt.Sprintf(" (A further run there passes with a probability of at least %.0f%%, at 95%% confidence.", 100*l.PassProbability)
	if at, within := estimateOf(l); at != "" {
		text += fmt.Sprintf(" Half of the runs hold at %s, 95%% interval %s.", at, within)
	}
	return text + ")"
}

// triedSentence says of a line that was not confirmed where it probably lies and which levels were tried, with a
// space before it; "" for any other.
func triedSentence(r result.Result) (text string) {
	if r.Verdict == slo.Pass || r.Verdict == slo.Fail {
		return ""
	}
	if at, within := estimateOf(r.LoadLine); at != "" {
		text = fmt.Sprintf(" Half of the steps hold at %s, 95%% interval %s.", at, within)
	}
	var tried []float64
	for _, s := range r.Steps {
		tried = append(tried, s.LevelReached)
	}
	slices.Sort(tried)
	tried = slices.Compact(tried)
	var levels []string
	for _, level := range tried {
		levels = append(levels, words.Number(level))
	}
	switch n := len(levels); {
	case n > 10:
		text += fmt.Sprintf(" %d levels tried, from %s to %s.", n, levels[0], levels[n-1])
	case n > 0:
		text += " Levels tried: " + words.And(levels) + "."
	}
	return text
}

// estimateOf returns the level at which half of the runs hold with its interval, unless it is exact.
func estimateOf(l *result.LoadLine) (at, within string) {
	x := l.Interval
	if l.Estimate == nil || x == nil || x.Lo == nil || x.Hi == nil || l.Exact {
		return "", ""
	}
	return number.Text(*l.Estimate, 4) + " " + l.Unit, number.Text(*x.Lo, 4) + " to " + number.Text(*x.Hi, 4)
}

// confirmationsOf counts the deciding confirmations, or the planned ones before any.
func confirmationsOf(l *result.LoadLine) int {
	return cmp.Or(l.ConfirmationsMade, l.ConfirmationsAsked)
}

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
