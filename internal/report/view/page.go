package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// Page holds the content of a page, for its template.
type Page struct {
	chart.Data // that its charts are drawn from

	Title           string
	Headline        string
	Lead            []string
	Mark            string // the load line
	MarkUnit        string
	Arms            *armsPart           // nil where nothing is compared
	Recorded        bool                // it is of recorded experiments, and not of one run
	Operands        []*recorded.Operand // those experiments
	Listed          []Listed            // the records of a runs directory, on its page alone
	Grid            *judge.Grid         // nil for all but the page of a grid
	GridPage        string              // of the grid that the run is a cell of, "" for none
	BoundBy         []string            // the bounds of a stream's steps, and its slowest requests
	Facts           []fact
	Kind            record.ObjectKind
	Fidelity        []fidelityPart
	Missing         []string
	Reasons         []result.Step // with reasons, the deciding one first
	Refused         bool          // some requests failed
	HasUsage        bool          // of any process, or watch lag, or waits
	Waits           []result.Step // with the waits of their objects
	Open            bool          // requests came by a schedule
	Stream          bool          // the load was a stream of requests
	Thing, Things   string        // the names of one and of several requested objects
	Machine         []fact
	Places          *record.Places // nil for none
	Metrics, Played Table
	Published       Table
	PublishedNote   string
	Broke           *brokePart // nil where nothing broke
	PlaceParts      bool       // parts of a real place are shown
	Durations       bool       // a node has published some
	Overhead        *overheadTable
	Laws            *lawsPart // nil where there are none
	Split           string
	SplitNotes      []string
	PlanText        string
}

// Input holds the content of one run directory.
type Input struct {
	chart.Recorded
	PlanText string            // of the plan's file, "" for none
	GridPage string            // of the grid of the run, relative to its own page; "" for none
	Missing  []string          // parts of the directory that could not be shown, and why
	Against  *recorded.Against // an earlier record of the plan, nil for none
}

// RunPage returns the page of one run.
func RunPage(in Input) (Page, error) {
	data, err := chart.Of(in.Recorded)
	return pageOf(in, data), err
}

// Words returns the functions by which a template writes figures.
func Words() map[string]any {
	return map[string]any{
		"seconds": words.Seconds, "title": words.Capital, "labels": labelTables, "span": spanOf, "scaled": scaled, "placed": placed, "number": words.Number, "bytes": words.Bytes, "quantile": quantile, "rate": words.Rate,
		"count": words.Count, "verdict": verdictWord, "tone": toneOf, "level": words.Level, "lag": words.Lag, "sentence": words.Sentence, "percent": words.Percent, "missed": notReady, "refused": shareOfRequests,
		"bearing": bearingWord, "goal": GoalSentence, "required": requiredSentence, "limit": limitText, "ceiling": kindOf, "bucket": bucketText, "more": moreSteps,
		"used": usedCPUs, "latency": latencyTo, "ratio": ratioOf, "shareOf": shareOf, "moment": words.Moment,
		"cellLink": cellLink, "levelHead": levelHead, "levelRow": levelRow, "one": onePoint, "compared": comparedBy, "pairs": pairsOf,
		"curveTitle": curveTitle, "capacity": capacityTable, "capacitySays": capacitySays, "margin": percentOf, "confidence": func(alpha float64) string { return percentOf(1 - alpha) },
		"blocks": runTable, "groups": groupsOf, "series": seriesOf,
		"cells": cellsOf, "operandFacts": operandFacts, "fidelity": fidelityOf, "lawSays": lawSays,
		"nodeSource": func() string { return usage.SourcePlace }, "strip": chart.StripOf, "after": afterStart, "mark": markOf, "then": loadText,
		"minus": func(a, b int64) int64 { return a - b },
		"busy":  func(v *float64) string { return words.Known(v, words.TwoDigits) }, "change": func(v *float64) string { return words.Known(v, words.Change) }, "interval": words.ChangeInterval,
		"trendTitle": trendTitle, "changeAt": changeAt, "pointText": pointText, "bracket": bracketText, "within": lineInterval, "details": lawDetails,
		"clear": differsClearly, "median": medianOf, "runs": eachOf, "share": func(x float64) string { return words.Percent(100 * x) },
	}
}

type fact struct{ Name, Value, Note string }

type fidelityPart = record.FidelityPart

func pageOf(in Input, data chart.Data) Page {
	r := in.Result
	p := Page{
		Title: fmt.Sprintf("%s: %s", cmp.Or(r.Experiment, r.Workload), Headline(r, data.Unit)), Headline: Headline(r, data.Unit), Lead: append(summary(r), againstLines(in.Against)...),
		Data: data, Arms: armsOfPage(r, data.Unit), Kind: r.ObjectKind, Overhead: overheadOf(r.Overhead, r.ObjectKind), Laws: lawsOfPage(r),
		Missing: in.Missing, PlanText: in.PlanText, GridPage: in.GridPage, BoundBy: append(boundLines(r), recordedLines(r)...),
	}
	p.Mark, p.MarkUnit = "?", data.Unit
	if l := r.LoadLine; l != nil && l.Level != nil {
		p.Mark = words.Number(*l.Level)
	} else if s := decidingStep(r); l == nil && s != nil {
		p.Mark = words.Number(s.LevelReached)
	}
	if r.Comparison != nil {
		p.Mark, p.MarkUnit = markOfArms(r)
	}
	p.Fidelity = fidelityOf(r.Fidelity)
	p.Facts = factsOf(r, data)
	for _, s := range r.Steps {
		p.Open = p.Open || s.Arrivals != nil
		p.Stream = p.Stream || s.Streams()
		if s.Bottleneck != nil && len(s.Bottleneck.Waits) > 0 {
			p.Waits = append(p.Waits, s)
		}
		p.Durations = p.Durations || len(s.Durations) > 0
		_, whole := s.Resources[usage.SourcePlace]
		p.PlaceParts = p.PlaceParts || whole
		p.HasUsage = p.HasUsage || s.WatchLag != nil || len(s.Resources) > 0
	}
	p.HasUsage = p.HasUsage || len(p.Waits) > 0
	p.Thing, p.Things = thingsOf(r)
	p.Reasons, p.Refused = reasonsOf(r), failedRequests(r) != ""
	if p.Refused {
		p.Headline += "; requests failed"
	}
	p.Metrics, p.Played = figures(metricRows(r)), playedTable(r)
	p.Published, p.PublishedNote = publishedTable(r), publishedNote(r)
	p.Broke = brokeOf(r, data.Unit)
	p.environment(in.Environment)
	return p
}

// latencyTo returns a step's latency to a milestone, nil for none.
func latencyTo(s result.Step, milestone string) *result.Latency {
	if l, ok := s.Latency[milestone]; ok {
		return &l
	}
	return nil
}

// ratioOf writes a figure in multiples of the normal one.
func ratioOf(v, normal *float64) string {
	if v == nil || normal == nil || *normal <= 0 {
		return "-"
	}
	return number.Text(*v / *normal, 3)
}

func usedCPUs(used, seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return words.TwoDigits(used / seconds)
}

func factsOf(r result.Result, data chart.Data) []fact {
	var list []fact
	add := func(name, value, note string) { list = append(list, fact{name, value, note}) }
	if r.Comparison != nil {
		list = factsOfArms(r)
	}
	if l := r.LoadLine; l != nil {
		if l.LowestFailing != nil {
			add("Lowest failing level", words.Number(*l.LowestFailing), l.Unit)
		} else if l.Level != nil {
			add("Lowest failing level", "none", "up to the highest level tried")
		}
		if l.Sustained != nil {
			add("Sustained rate", words.Short(*l.Sustained), "a second, in the steps that held the line")
		}
		if l.ConfirmationsAsked > 0 {
			note := "full steps from empty"
			if l.Confirmations > 0 && l.PassProbability > 0 {
				note = fmt.Sprintf("a further run passes with a probability of at least %.0f%% (95%% confidence)", 100*l.PassProbability)
			}
			if at, within := estimateOf(l); at != "" {
				add("95% interval of the line", within, "half of the runs hold at "+at)
			}
			add("Confirmed", fmt.Sprintf("%d of %d", l.Confirmations, confirmationsOf(l)), note)
		}
	}
	if len(r.Steps) > 0 && r.Comparison == nil {
		held := 0
		for _, s := range r.Steps {
			if s.Verdict == slo.Pass {
				held++
			}
		}
		seconds := max(data.Times[len(data.Times)-1][1]-data.Times[0][0], 0)
		add("Steps", strconv.Itoa(len(r.Steps)), fmt.Sprintf("%d passed; %s in all", held, words.Span(seconds)))
	}
	if s := lineStep(r); s != nil && r.Comparison == nil {
		if l, ok := s.Latency[data.Arrived]; ok && l.N > 0 {
			note := fmt.Sprintf("at %s %s, p50 %s", words.Number(s.LevelReached), data.Unit, quantile(l, l.P50))
			if timeScale(r) != 1 && l.P99 != nil {
				note += fmt.Sprintf("; %s as it would be", words.Played(l.P99, timeScale(r)))
			}
			add(data.Arrived+" p99", quantile(l, l.P99), note)
		}
	}
	if r.Cost.Objects > 0 {
		_, things := thingsOf(r)
		add(words.Capital(things)+" measured", words.Count(r.Cost.Objects), fmt.Sprintf("plimsoll used %.3g ms of CPU for each", 1000*r.Cost.CPUSeconds/float64(r.Cost.Objects)))
	}
	return list
}

// lineStep returns the last step that held at the highest level that did: it shows the load line.
func lineStep(r result.Result) *result.Step {
	var best *result.Step
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Verdict != slo.Pass || r.LoadLine != nil && r.LoadLine.Level != nil && s.Level != *r.LoadLine.Level {
			continue
		}
		if best == nil || s.Level >= best.Level {
			best = s
		}
	}
	return best
}

// decidingStep returns the lowest step that failed, or the highest that held, by the verdict, or nil.
func decidingStep(r result.Result) *result.Step {
	var best *result.Step
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Verdict != r.Verdict || !r.Verdict.Decided() {
			continue
		}
		if best == nil || (s.LevelReached < best.LevelReached) == (r.Verdict == slo.Fail) {
			best = s
		}
	}
	return best
}

func notReady(o result.Objects) int { return o.NeverReady + o.CreateFailed + o.Dropped }

// reasonsOf returns the steps with reasons why objects were not ready, the last first.
func reasonsOf(r result.Result) []result.Step {
	list := slices.DeleteFunc(slices.Clone(r.Steps), func(s result.Step) bool { return len(s.Reasons) == 0 })
	slices.Reverse(list)
	return list
}

// shareOf returns the share of a reason in percent of all objects with one.
func shareOf(reason result.Reason, list []result.Reason) int {
	all := 0
	for _, other := range list {
		all += other.Count
	}
	return max(1, 100*reason.Count/max(all, 1))
}

// Headline returns the verdict in few words, for the head of a page.
func Headline(r result.Result, unit string) string {
	if r.Comparison != nil {
		return r.Workload + ": " + verdictOfArms(r)
	}
	name := r.Workload
	if l := r.LoadLine; l != nil {
		switch {
		case r.Verdict == slo.Fail && l.LowestFailing != nil:
			return fmt.Sprintf("%s fails at its first level, %s %s", name, words.Number(*l.LowestFailing), unit)
		case r.Verdict == slo.Pass && l.Level != nil && l.LowestFailing != nil:
			return fmt.Sprintf("%s holds %s %s and fails at %s", name, words.Number(*l.Level), unit, words.Number(*l.LowestFailing))
		case r.Verdict == slo.Pass && l.Level != nil:
			return fmt.Sprintf("%s holds %s %s, the highest level tried", name, words.Number(*l.Level), unit)
		}
		open := "Inconclusive"
		if r.Verdict == slo.Invalid {
			open = "Invalid"
		}
		switch {
		case l.Level != nil && l.LowestFailing != nil:
			return fmt.Sprintf("%s: the load line of %s lies from %s to below %s %s", open, name, words.Number(*l.Level), words.Number(*l.LowestFailing), unit)
		case l.Level != nil:
			return fmt.Sprintf("%s: %s held %s %s; higher levels are unknown", open, name, words.Number(*l.Level), unit)
		case l.LowestFailing != nil:
			return fmt.Sprintf("%s: %s failed at %s %s; no level is known to hold", open, name, words.Number(*l.LowestFailing), unit)
		}
		return fmt.Sprintf("%s: the limit of %s is unknown", open, name)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range r.Steps {
		if r.Verdict == slo.Fail && s.Verdict != slo.Fail {
			continue
		}
		low, high = min(low, s.LevelReached), max(high, s.LevelReached)
	}
	levels := words.Number(low)
	if low != high {
		levels += " to " + words.Number(high)
	}
	switch {
	case len(r.Steps) == 0:
		return fmt.Sprintf("%s: nothing was measured", name)
	case r.Verdict == slo.Pass:
		return fmt.Sprintf("%s holds at every level, %s %s", name, levels, unit)
	case r.Verdict == slo.Fail && !math.IsInf(low, 0):
		return fmt.Sprintf("%s fails at %s %s", name, words.Number(low), unit)
	case r.Verdict == slo.Invalid:
		return fmt.Sprintf("Invalid: %s was not the bottleneck", name)
	}
	return fmt.Sprintf("Inconclusive: whether %s holds is unknown", name)
}

func summary(r result.Result) []string {
	var list []string
	add := func(text string) {
		if text != "" {
			list = append(list, words.Sentence(text))
		}
	}
	if l := r.LoadLine; l != nil && l.Binding != "" {
		add("bound by: " + l.Binding)
	}
	if s := decidingStep(r); s != nil && r.LoadLine == nil && r.Verdict == slo.Fail && !strings.Contains(r.Why, s.VerdictWhy) {
		add(s.VerdictWhy)
	}
	add(r.Why)
	add(failedRequests(r))
	return list
}

func thingsOf(r result.Result) (one, many string) {
	if slices.ContainsFunc(r.Steps, result.Step.Streams) {
		return "request", "requests"
	}
	kind := r.ObjectKind.Object
	return cmp.Or(kind.One, "object"), cmp.Or(kind.Many, "objects")
}

func verdictWord(verdict any) string {
	v := fmt.Sprint(verdict)
	return cmp.Or(map[string]string{string(stats.NotWorse): "not worse"}[v], v)
}
