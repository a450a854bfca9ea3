package view

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// ComparisonInput holds a comparison of recorded experiments: of two, or the trends of more.
type ComparisonInput struct {
	recorded.Outcome
	Operands   []*recorded.Operand // in the order of the outcome
	Axis, Unit string              // of the levels, "" where they have none in common
}

// ComparedPage returns the page of a comparison of recorded experiments.
func ComparedPage(in ComparisonInput) (Page, error) {
	if in.Comparison == nil {
		return trendPage(in)
	}
	r := in.result()
	only := Input{Recorded: chart.Recorded{Result: r}}
	data, err := chart.Of(only.Recorded)
	data.Axis, data.Unit = in.Axis, in.Unit
	p := pageOf(only, data)
	p.compares(in.Operands)
	return p, err
}

func (p *Page) compares(operands []*recorded.Operand) {
	p.Recorded, p.Operands = true, operands
	var all [][]fidelityPart
	for _, o := range operands {
		all = append(all, fidelityOf(o.Result.Fidelity))
	}
	p.Fidelity, _ = common(all)
}

// common returns the parts that were real in all alike, or none and false.
func common(all [][]fidelityPart) (parts []fidelityPart, same bool) {
	for _, parts = range all {
		if !slices.Equal(parts, all[0]) {
			return nil, false
		}
	}
	return parts, true
}

// Against returns how a run compares with its baseline, nothing for nil. More shows the command that has
// the rest.
func Against(a *recorded.Against, more string) []Section {
	var s Section
	s.lines("", againstLines(a)...)
	if len(s.Parts) > 0 && a.Baseline != "" {
		s.linef("More: %s", more)
	}
	return said(s)
}

func againstLines(a *recorded.Against) (list []string) {
	if a == nil {
		return nil
	}
	for _, o := range a.Comparisons {
		in := ComparisonInput{Outcome: o}
		for _, e := range o.Experiments {
			in.Operands = append(in.Operands, &recorded.Operand{Result: result.Result{Workload: e.Workload}})
		}
		if text := words.Sentence(o.Why); o.Comparison == nil {
			list = append(list, "Against "+a.Baseline+": inconclusive: "+text)
		} else {
			list = append(list, Sentence(in.result()))
		}
	}
	if len(list) == 0 {
		list = []string{"Baseline: " + a.Why + "."}
	}
	return list
}

func (in ComparisonInput) result() result.Result {
	var workloads []string
	for _, o := range in.Operands {
		if !slices.Contains(workloads, o.Result.Workload) {
			workloads = append(workloads, o.Result.Workload)
		}
	}
	c := in.Comparison
	return result.Result{
		Schema: result.Schema, Kind: "compare", Verdict: in.Verdict, Why: in.Why, Command: in.Command, Version: in.Version, Comparison: c, Warnings: in.Warnings,
		Experiment: fmt.Sprintf("%s against %s", strings.Join(armsOf(c), ", "), c.Baseline), Workload: strings.Join(workloads, ", "),
	}
}

func operandFacts(o *recorded.Operand) (facts []fact) {
	add := func(name, value, note string) {
		if value != "" {
			facts = append(facts, fact{name, value, note})
		}
	}
	add("Experiment", o.Result.Experiment, "")
	add("Workload", o.Result.Workload, o.Result.Kind)
	if o.Result.Comparison == nil {
		add("Own verdict", verdictWord(o.Result.Verdict), o.Result.Why)
	}
	add("Version", o.Result.Version, "of plimsoll")
	add("Record", o.Path, "")
	var machine Page
	if machine.environment(o.Environment); o.Environment == nil && len(o.Result.Steps) > 0 {
		add("Start", words.Moment(o.Result.Steps[0].Start), "")
	}
	facts = append(facts, machine.Machine...)
	if machine.Places != nil {
		add("Kinds of "+strings.ToLower(machine.Places.Place.Many), kindsOf(machine.Places), "")
	}
	add("CPU split", machine.Split, strings.Join(machine.SplitNotes, "; "))
	return facts
}
