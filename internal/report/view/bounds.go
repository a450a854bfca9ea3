package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/text/number"
)

func boundLines(r result.Result) []string {
	type group struct {
		what     string
		steps    []int
		lo, hi   float64 // Gbit/s
		measured bool
	}
	var groups []*group
	for _, s := range r.Steps {
		if s.Bottleneck == nil {
			continue
		}
		held := slices.IndexFunc(s.Bottleneck.Bounds, func(b result.BoundShare) bool { return b.Held })
		if held < 0 {
			continue
		}
		what := s.Bottleneck.Bounds[held].What
		i := slices.IndexFunc(groups, func(g *group) bool { return g.what == what })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{what: what, lo: math.Inf(1)})
		}
		g := groups[i]
		g.steps = append(g.steps, s.ID)
		if s.Streams() && s.Requests.BitsPerSecond != nil {
			bits := s.Requests.BitsPerSecond
			g.measured, g.lo, g.hi = true, min(g.lo, *bits/1e9), max(g.hi, *bits/1e9)
		}
	}
	var list []string
	for _, g := range groups {
		text := fmt.Sprintf("Bound in %s: %s", record.StepsText(g.steps), g.what)
		lo, hi := number.Text(g.lo, 3), number.Text(g.hi, 3)
		switch {
		case g.measured && lo == hi:
			text += fmt.Sprintf("; answers came to %s Gbit/s", hi)
		case g.measured:
			text += fmt.Sprintf("; answers came to %s to %s Gbit/s", lo, hi)
		}
		list = append(list, text)
	}
	var most result.Step
	for _, s := range r.Steps {
		if s.APIRequests.Sending > most.APIRequests.Sending {
			most = s
		}
	}
	if took := most.APIRequests.Sending; took > 0 {
		list = append(list, fmt.Sprintf("Sending took up to %s (step %d): times count from the one moment at which all requests of a step were due", words.Seconds(took), most.ID))
	}
	for _, s := range r.Steps {
		if s.Bottleneck != nil && s.Bottleneck.Slowdown != nil {
			list = append(list, fmt.Sprintf("Slowed down in step %d: %s", s.ID, s.Bottleneck.Slowdown))
		}
	}
	return list
}

// recordedLines lists retries, and the slowest and the failed single requests on record.
func recordedLines(r result.Result) []string {
	const few = 5
	type one struct {
		result.RecordedRequest
		step int
	}
	var done, failed []one
	var lines []string
	for _, s := range r.Steps {
		if !s.Streams() {
			continue
		}
		if n := s.Requests.Retried; n > 0 {
			lines = append(lines, fmt.Sprintf("Retried in step %d: %s of %d", s.ID, words.Counted(n, "request"), s.Requests.Sent))
		}
		for _, x := range s.Requests.Recorded {
			if x.Failed == "" {
				done = append(done, one{x, s.ID})
			} else {
				failed = append(failed, one{x, s.ID})
			}
		}
	}
	for _, list := range [][]one{done, failed} {
		slices.SortStableFunc(list, func(a, b one) int { return cmp.Compare(b.Seconds, a.Seconds) })
		for _, x := range list[:min(len(list), few)] {
			text := fmt.Sprintf("Slow request in step %d: %s", x.step, words.Seconds(x.Seconds))
			if x.Failed != "" {
				text = fmt.Sprintf("Failed request in step %d: %s after %s", x.step, x.Failed, words.Seconds(x.Seconds))
			}
			text += fmt.Sprintf(", due at %s, sent %s later", words.Moment(x.Due), words.Seconds(x.Late))
			if x.Retried {
				text += " and once more"
			}
			lines = append(lines, text+", to "+x.Place)
		}
	}
	return lines
}
