// Package report reads a run directory and writes its page there. Package view shapes the content; text
// and page write it.
package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/objects"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/page"
	"plimsoll.dev/plimsoll/internal/report/view"
)

// NoResultError says that a run directory holds no judgement to report.
type NoResultError struct {
	Dir string
	Err error
}

func (e *NoResultError) Error() string {
	return fmt.Sprintf("%s has no result to report: %v", e.Dir, e.Err)
}

func (e *NoResultError) Unwrap() error { return e.Err }

// WriteFile writes report.html into a run directory, from everything that is there.
func WriteFile(dir record.Dir) error {
	page, err := Page(dir)
	if err != nil {
		return err
	}
	return dir.WriteFile(record.ReportFile, page)
}

// Page returns the content of that file.
func Page(dir record.Dir) ([]byte, error) {
	in, err := Read(dir)
	if err != nil {
		return nil, err
	}
	return written(dir, func() (view.Page, error) { return view.RunPage(in) })
}

// WriteGridFile writes the page of a grid beside its result.json, also where it cannot read the plan.
func WriteGridFile(dir record.Dir, g judge.Grid) error {
	in := view.Input{Against: recorded.ReadAgainst(dir)}
	if err := readPlan(dir, &in); err != nil {
		in.Missing = append(in.Missing, fmt.Sprintf("%s could not be read, so the plan is not shown: %v", record.ExperimentFile, err))
	}
	html, err := written(dir, func() (view.Page, error) { return view.GridPage(in, g) })
	if err != nil {
		return err
	}
	return dir.WriteFile(record.ReportFile, html)
}

func written(dir record.Dir, shaped func() (view.Page, error)) ([]byte, error) {
	var html bytes.Buffer
	p, err := shaped()
	if err == nil {
		err = page.Write(&html, p)
	}
	if err != nil {
		return nil, fmt.Errorf("report %s: %w", dir, err)
	}
	return html.Bytes(), nil
}

// Read reads a report's content from a run directory; the error is a *NoResultError without a result.
func Read(dir record.Dir) (view.Input, error) {
	var in view.Input
	if err := dir.ReadJSON(record.ResultFile, &in.Result); err != nil {
		return in, &NoResultError{string(dir), err}
	}
	if in.Result.Schema != result.Schema {
		return in, &NoResultError{string(dir), fmt.Errorf("its schema is %q, this program reads %q: it needs plimsoll %s", in.Result.Schema, result.Schema, cmp.Or(in.Result.Version, "of another version"))}
	}
	missing := func(file string, what string, err error) {
		if errors.Is(err, fs.ErrNotExist) {
			in.Missing = append(in.Missing, fmt.Sprintf("there is no %s: %s", file, what))
			return
		}
		in.Missing = append(in.Missing, fmt.Sprintf("%s could not be read, so %s: %v", file, what, err))
	}
	in.Against = recorded.ReadAgainst(dir)
	err := readPlan(dir, &in)
	if err != nil {
		missing(record.ExperimentFile, "the plan is not shown", err)
	}
	if in.Environment, err = dir.Environment(); err != nil {
		missing(record.EnvironmentFile, "the environment is not shown", err)
	}
	if slices.ContainsFunc(in.Result.Steps, result.Step.Streams) {
		if in.Windows, err = objects.Windows(dir); err != nil || in.Windows == nil {
			missing(record.WindowsFile, "distributions and the course of the run are not drawn", cmp.Or(err, fs.ErrNotExist))
		}
		if in.Samples, err = samplesOf(dir, in.Result.ObjectKind.Charts); err != nil {
			missing(record.HistoryFile, "not all that parts of the target reported is drawn", err)
		}
	} else if in.Objects, err = objects.Read(dir, nil); err != nil {
		missing(record.ObjectsFile, "distributions and the course of the run are not shown", err)
	}
	return in, nil
}

func readPlan(dir record.Dir, in *view.Input) error {
	text, err := dir.ReadFile(record.ExperimentFile)
	if err != nil {
		return err
	}
	in.PlanText = string(text)
	if grid := filepath.Dir(filepath.Dir(string(dir))); record.IsGrid(grid) {
		in.GridPage = "../../" + record.ReportFile
	}
	in.Plan, err = plan.Parse(record.ExperimentFile, text)
	if err != nil {
		in.Plan = nil
	}
	return err
}

func samplesOf(dir record.Dir, charts []record.Chart) (map[int][]record.Event, error) {
	if len(charts) == 0 {
		return nil, nil
	}
	samples := make(map[int][]record.Event)
	_, err := record.ReadHistory(dir, func(e record.Event) error {
		if r, ok := e.Body.(*record.Reading); ok && slices.ContainsFunc(charts, func(c record.Chart) bool { return c.Source == r.Source }) {
			samples[e.Step] = append(samples[e.Step], e)
		}
		return nil
	})
	return samples, err
}
