package findings

import (
	"fmt"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// WarningsOf returns the warnings about the verdicts of the steps.
func WarningsOf(steps []*verdict.Judged, there string) record.Warnings {
	var warnings record.Warnings
	most := 0.0
	var disturbed []int
	for _, s := range steps {
		if s.Others > 0 && len(s.Neighbours) == 0 {
			disturbed = append(disturbed, s.ID)
			most = max(most, s.Others)
		}
	}
	if len(disturbed) > 0 {
		warnings.Add(record.Warning{
			Kind: record.WarningCPU, Steps: disturbed, Count: len(disturbed),
			Text: fmt.Sprintf("other programs used up to %.0f%% of this machine's CPUs: the results include their load", most),
		})
	}
	addNeighbours(&warnings, steps)
	for _, s := range steps {
		if text := s.Concurrent.Breach(); text != "" {
			warnings.Add(record.Warning{Kind: record.WarningLimit, Steps: []int{s.ID}, Count: 1, Text: text})
		}
		if text := sendingOf(s, there); text != "" {
			warnings.Add(record.Warning{Kind: record.WarningSending, Steps: []int{s.ID}, Count: 1, Seconds: s.APIRequests.Sending, Text: text})
		}
		if s.Stood > 0 {
			warnings.Add(record.Warning{
				Kind: record.WarningStandstill, Steps: []int{s.ID}, Count: 1, Seconds: s.Stood,
				Text: "all writes to the API stood still: slow results in that time come from the standstill, not from a limit of the load",
			})
		}
		for _, text := range s.Silent {
			warnings.Add(record.Warning{Kind: record.WarningStandstill, Steps: []int{s.ID}, Count: 1, Text: text})
		}
		if text := stream.StallOf(s.Backlog); text != "" {
			warnings.Add(record.Warning{Kind: record.WarningStandstill, Steps: []int{s.ID}, Count: 1, Text: text})
		}
		if text := stream.StallsOf(s.Requests, there, s.Latency); text != "" {
			warnings.Add(record.Warning{Kind: record.WarningStandstill, Steps: []int{s.ID}, Count: 1, Text: text})
		}
		for _, what := range s.Largest {
			warnings.Add(record.Warning{Kind: record.WarningFewObjects, Text: what, Steps: []int{s.ID}})
		}
	}
	return warnings
}

const sendingMost = 0.1 // largest share of the median that sending a load for one moment may take

// sendingOf says that sending such a load took long in comparison.
func sendingOf(s *verdict.Judged, there string) string {
	p50 := s.Latency[there].P50
	if p50 == nil || s.APIRequests.Sending <= sendingMost**p50 {
		return ""
	}
	return fmt.Sprintf("sending took %s, more than a tenth of the median to %s (%s): the load came over that time instead of at one moment, and all times include it", result.DurationText(s.APIRequests.Sending, 0), there, result.DurationText(*p50, 0))
}

// addNeighbours warns of the resource that others took most of, by steps that held and others.
func addNeighbours(warnings *record.Warnings, steps []*verdict.Judged) {
	type group struct {
		what, of string
		held     bool
	}
	var order []group
	most, in := make(map[group]result.Neighbour), make(map[group][]int)
	for _, s := range steps {
		if len(s.Neighbours) == 0 {
			continue
		}
		n := s.Neighbours[0]
		g := group{n.What, n.Of, true}
		for _, v := range s.Goals {
			g.held = g.held && v == slo.Pass
		}
		if len(in[g]) == 0 {
			order = append(order, g)
		}
		if n.Others >= most[g].Others {
			most[g] = n
		}
		in[g] = append(in[g], s.ID)
	}
	for _, g := range order {
		text, these := most[g].String(), "this step"
		if len(in[g]) > 1 {
			text, these = strings.Replace(text, "used ", "used up to ", 1), "these steps"
		}
		if g.held {
			text += ": " + these + " passed anyway"
		} else {
			text += ": slow results in " + these + " come from the busy machine, not from the target"
		}
		warnings.Add(record.Warning{Kind: record.WarningCPU, Steps: in[g], Count: len(in[g]), Text: text})
	}
}
