package view

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// ComparisonInput is what is shown of a comparison of recorded experiments.
type ComparisonInput struct {
	Comparison compare.Comparison
	// Operands are the experiments that were compared, the baseline first.
	Operands []Operand
	// Axis and Unit are those of the levels, "" where they have none in common.
	Axis, Unit string
	// Command and Version are those of the comparison, not of the runs.
	Command, Version string
	Warnings         record.Warnings
	// Verdict and Why are those of the whole where they are not the
	// comparison's own: runs that were invalid. "" is the comparison's own.
	Verdict slo.Verdict
	Why     string
}

// Operand is one of the experiments that were compared.
type Operand struct {
	Arm string // what the comparison calls it
	Dir string // where its record lies
	// Result tells its name, command, version, fidelity and verdict; what its
	// steps were is not shown.
	Result result.Result
	// Environment is nil where there is none that could be read.
	Environment *record.Environment
}

// ComparedPage is the page of a comparison of recorded experiments.
func ComparedPage(in ComparisonInput) (Page, error) {
	r := in.result()
	only := Input{Recorded: chart.Recorded{Result: r}}
	data, err := chart.Of(only.Recorded)
	data.Axis, data.Unit = in.Axis, in.Unit
	p := pageOf(only, data)
	p.compares(in.Operands)
	return p, err
}

// compares makes a page one of recorded experiments.
func (p *Page) compares(operands []Operand) {
	p.Recorded, p.Operands = true, operandsOf(operands)
	var all [][]fidelityPart
	for _, o := range p.Operands {
		all = append(all, o.Fidelity)
	}
	p.Fidelity, _ = common(all)
}

// common is what was real in all alike, none and false where they differ.
func common(all [][]fidelityPart) (parts []fidelityPart, same bool) {
	for _, parts = range all {
		if !slices.Equal(parts, all[0]) {
			return nil, false
		}
	}
	return parts, true
}

func (in ComparisonInput) result() result.Result {
	c := in.Comparison
	verdict, why := c.Verdict()
	r := result.Result{
		Schema: result.Schema, Kind: "compare", Verdict: slo.Verdict(verdict), Why: why,
		Command: in.Command, Version: in.Version, Comparison: &c, Warnings: in.Warnings,
	}
	if in.Verdict != "" {
		r.Verdict, r.Why = in.Verdict, in.Why
	}
	r.Experiment = fmt.Sprintf("%s against %s", strings.Join(armsOf(&c), ", "), c.Baseline)
	var workloads []string
	for _, o := range in.Operands {
		if !slices.Contains(workloads, o.Result.Workload) {
			workloads = append(workloads, o.Result.Workload)
		}
	}
	r.Workload = strings.Join(workloads, ", ")
	return r
}

// operandPart is what the page says of one operand.
type operandPart struct {
	Operand
	Index    int
	Baseline bool
	Facts    []fact
	Fidelity []fidelityPart
}

func operandsOf(operands []Operand) []operandPart {
	var list []operandPart
	for i, o := range operands {
		part := operandPart{Operand: o, Index: i, Baseline: i == 0}
		add := func(name, value, note string) {
			if value != "" {
				part.Facts = append(part.Facts, fact{name, value, note})
			}
		}
		add("Experiment", o.Result.Experiment, "")
		add("Workload", o.Result.Workload, o.Result.Kind)
		if o.Result.Comparison == nil {
			add("Own verdict", verdictWord(o.Result.Verdict), o.Result.Why)
		}
		add("Version", o.Result.Version, "of plimsoll")
		add("Record", o.Dir, "")
		var machine Page
		if machine.environment(o.Environment); o.Environment == nil && len(o.Result.Steps) > 0 {
			add("Start", words.Moment(o.Result.Steps[0].Start), "")
		}
		part.Facts = append(part.Facts, machine.Machine...)
		if machine.Places != nil {
			var kinds []string
			for _, r := range machine.Places.Rows {
				kinds = append(kinds, r.fact())
			}
			add("Kinds of "+strings.ToLower(machine.Places.Title), strings.Join(kinds, "; "), "")
		}
		add("CPU split", machine.Split, strings.Join(machine.SplitNotes, "; "))
		part.Fidelity = fidelityOf(o.Result.Fidelity)
		list = append(list, part)
	}
	return list
}
