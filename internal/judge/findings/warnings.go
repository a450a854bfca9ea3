package findings

import (
	"fmt"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/record"
)

// WarningsOf are what the reader must know of how the steps were judged.
func WarningsOf(steps []*verdict.Judged, there string) record.Warnings {
	var warnings record.Warnings
	most := 0.0
	var disturbed []int
	for _, s := range steps {
		if s.Others > 0 {
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
	for _, s := range steps {
		if text := s.Concurrent.Breach(); text != "" {
			warnings.Add(record.Warning{Kind: record.WarningLimit, Steps: []int{s.ID}, Count: 1, Text: text})
		}
		if s.Stood > 0 {
			warnings.Add(record.Warning{
				Kind: record.WarningStandstill, Steps: []int{s.ID}, Count: 1, Seconds: s.Stood,
				Text: "all writes to the API stood still: what was slow then tells of that, and not of a limit of the load",
			})
		}
		for _, text := range s.Silent {
			warnings.Add(record.Warning{Kind: record.WarningStandstill, Steps: []int{s.ID}, Count: 1, Text: text})
		}
		if text := fold.StallOf(s.Backlog); text != "" {
			warnings.Add(record.Warning{Kind: record.WarningStandstill, Steps: []int{s.ID}, Count: 1, Text: text})
		}
		if text := fold.StallsOf(s.Requests, there, s.Latency); text != "" {
			warnings.Add(record.Warning{Kind: record.WarningStandstill, Steps: []int{s.ID}, Count: 1, Text: text})
		}
		for _, what := range s.Largest {
			warnings.Add(record.Warning{Kind: record.WarningFewObjects, Text: what, Steps: []int{s.ID}})
		}
	}
	return warnings
}
