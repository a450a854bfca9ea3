package view

import (
	"fmt"
	"net/url"
	"path/filepath"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// Listed sums up a run in its directory: a row of 'plimsoll runs', and the last line of a run.
type Listed struct {
	Name     string      `json:"name"` // of the directory
	Record   string      `json:"record"`
	Plan     string      `json:"plan"`
	Workload string      `json:"workload"`
	Kind     string      `json:"kind"` // limit, sweep, ab or run
	Started  string      `json:"started"`
	Verdict  slo.Verdict `json:"verdict"` // "" without one, and Note says why
	ExitCode *int        `json:"exitCode,omitempty"`
	Result   string      `json:"result,omitempty"` // in few words
	Note     string      `json:"note,omitempty"`
	Report   string      `json:"report,omitempty"` // its page, "" for none

	// The load line: the highest level that held and the lowest that failed, its estimate and the
	// interval of that; nil where they are unknown.
	Level         *float64      `json:"level,omitempty"`
	LowestFailing *float64      `json:"lowestFailing,omitempty"`
	Estimate      *float64      `json:"estimate,omitempty"`
	Interval      *result.Range `json:"interval,omitempty"`
	Unit          string        `json:"unit,omitempty"`
}

// ListedOf sums up a result with its plan as it was run; r is nil for a run without one.
func ListedOf(path string, p *plan.Plan, r *result.Result) Listed {
	l := Listed{Name: filepath.Base(path), Record: path}
	if p != nil && p.AsRun != nil {
		l.Plan, l.Workload, l.Kind, l.Started, l.Unit = p.Name, p.Workload, string(p.AsRun.Kind), p.AsRun.Started, p.AsRun.Unit
	}
	if r == nil {
		return l
	}
	l.Verdict, l.ExitCode, l.Result = r.Verdict, &r.ExitCode, r.Why
	if p == nil || len(p.Vary) == 0 { // a grid has a line for each cell
		l.Result = Headline(*r, l.Unit)
	}
	if line := r.LoadLine; line != nil {
		l.Level, l.LowestFailing, l.Estimate, l.Interval = line.Level, line.LowestFailing, line.Estimate, line.Interval
	}
	return l
}

// Link returns the address of the run's page from the page of the directory, "" for none.
func (l Listed) Link() string {
	if l.Report == "" {
		return ""
	}
	return "./" + url.PathEscape(l.Name) + "/" + url.PathEscape(filepath.Base(l.Report))
}

// RunsPage returns the page of a runs directory: the trends of its plans, and its records.
func RunsPage(in ComparisonInput, dir string, list []Listed) (Page, error) {
	p, err := trendPage(in)
	plans := make(map[string]bool)
	for _, l := range list {
		plans[l.Plan] = true
	}
	delete(plans, "") // of a record that cannot be read
	p.Headline = fmt.Sprintf("%s of %s in %s", words.Counted(len(list), "record"), words.Counted(len(plans), "plan"), dir)
	p.Title, p.Listed, p.Result.Kind, p.Result.Experiment = p.Headline, list, "runs", filepath.Base(dir)
	return p, err
}
