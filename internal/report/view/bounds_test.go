package view

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// Steps with the same bound share a line, with the counts of the answers.
func TestBoundLines(t *testing.T) {
	step := func(id int, what string, bits float64) result.Step {
		bound := []result.BoundShare{{What: "what is not used up"}, {What: what, Held: true}, {What: "what comes later", Held: true}}
		return result.Step{ID: id, Requests: &result.StreamRequests{BitsPerSecond: &bits}, Bottleneck: &result.Bottleneck{Bounds: bound}}
	}
	got := boundLines(result.Result{Steps: []result.Step{step(1, "the link", 1e9), step(2, "the link", 1.5e9), step(3, "a queue", 2e9), {ID: 4}}})
	want := "Bound in steps 1, 2: the link; answers came to 1 to 1.5 Gbit/s|Bound in step 3: a queue; answers came to 2 Gbit/s"
	if strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The slowest requests of all steps come first, then those that failed.
func TestRecordedLines(t *testing.T) {
	one := func(seconds float64, failed string) result.RecordedRequest {
		return result.RecordedRequest{Due: "2026-01-02T03:04:05.000006Z", Late: 0.0002, Seconds: seconds, Place: "a.test", Failed: failed, Retried: failed != ""}
	}
	step := func(id int, list ...result.RecordedRequest) result.Step {
		return result.Step{ID: id, Requests: &result.StreamRequests{Recorded: list}}
	}
	got := recordedLines(result.Result{Steps: []result.Step{
		step(1, one(0.5, ""), one(0.004, ""), one(0.003, ""), one(0.002, ""), one(2, "reset")), step(2, one(1, ""), one(0.001, "")), {ID: 3},
	}})
	want := []string{"step 2: 1.00 s", "step 1: 500 ms", "step 1: 4.00 ms", "step 1: 3.00 ms", "step 1: 2.00 ms"}
	if len(got) != 6 || got[5] != "Failed request in step 1: reset after 2.00 s, due at 2026-01-02 03:04:05.000006 UTC, sent 200 µs later and once more, to a.test" {
		t.Fatalf("%q", got)
	}
	for i, w := range want {
		if got[i] != "Slow request in "+w+", due at 2026-01-02 03:04:05.000006 UTC, sent 200 µs later, to a.test" {
			t.Errorf("%q, want %q", got[i], w)
		}
	}
}

// Warnings of cells that differ in their figures alone are one.
func TestGridWarningsOfOneKind(t *testing.T) {
	cell := func(texts ...string) judge.Cell {
		var c judge.Cell
		for _, text := range texts {
			c.Warnings = append(c.Warnings, record.Warning{Kind: record.WarningCPU, Text: text})
		}
		return c
	}
	list := gridWarnings(judge.Grid{Cells: []judge.Cell{cell("others used 18% of the CPUs", "others used 19% of the CPUs"), cell("others used 9.5% of the CPUs"), cell("a note")}})
	if len(list) != 2 || list[0].Text != "others used 18% of the CPUs (in 2 of 3 cells, with other figures in some)" || list[1].Text != "a note (in 1 of 3 cells)" {
		t.Errorf("%+v", list)
	}
}
