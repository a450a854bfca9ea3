package advise

import (
	"errors"
	"fmt"

	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/router"
	"plimsoll.dev/plimsoll/internal/text/size"
	"plimsoll.dev/plimsoll/workloads"
)

// measuredRouter fills in what a recorded run of the workload router found, as far
// as flags do not say otherwise: the rate of one router, its encryption and the
// size of a page.
func measuredRouter(params *host.Router, path string) error {
	dir, err := record.OpenDir(path)
	if err != nil {
		return process.Usagef("", "--run: %w", err)
	}
	of, err := plan.Load(dir.Path(record.ExperimentFile))
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	var result result.Result
	if err := dir.ReadJSON(record.ResultFile, &result); err != nil {
		return process.Usagef("'plimsoll analyze DIR' writes it again", "--run: %w", err)
	}
	if of.Workload != router.Name || len(of.Arms) > 0 {
		return process.Usagef("for example one of 'plimsoll limit router --axis rate', or a cell of a grid", "--run %s: it is not a search or sweep of the workload %s", path, router.Name)
	}
	rate, how, err := measuredRate(result)
	if err != nil {
		return process.Usagef("", "--run %s: %w", path, err)
	}
	from := fmt.Sprintf("%s of %s", how, path)
	if !params.Measured.Ok() {
		params.Measured = param.Given(int64(rate), from)
	}
	w, err := workload.Load(workloads.FS(), of.Workload, process.Targets())
	if err != nil {
		return err
	}
	values, err := w.Resolve(of.Params)
	if err != nil {
		return fmt.Errorf("--run %s: %w", path, err)
	}
	if !params.Encryption.Ok() {
		params.Encryption = param.Given(values.Get("termination"), from)
	}
	if !params.Page.Ok() {
		page, err := size.Parse(values.Get("pageSize"), 1<<30)
		if err != nil {
			return fmt.Errorf("--run %s: %w", path, err)
		}
		params.Page = param.Given(param.Bytes(page), from)
	}
	if text := values.Get("link"); text != "" && !params.Link.Ok() {
		speed, err := param.ParseRate(text)
		if err != nil {
			return fmt.Errorf("--run %s: %w", path, err)
		}
		params.Link = param.Given(speed, from)
	}
	return nil
}

// measuredRate returns the requests per second of one router: its load line, or the highest
// rate of a step that its processor time bound. Other rates follow from the schedule or from
// other limits.
func measuredRate(r result.Result) (rate float64, how string, err error) {
	if l := r.LoadLine; l != nil && l.Axis == "rate" {
		if l.Level == nil || l.LowestFailing == nil || r.Verdict != slo.Pass {
			return 0, "", fmt.Errorf("its load line is not confirmed (%s), or nothing failed above it", r.Verdict)
		}
		return *l.Level, "the load line", nil
	}
	for _, s := range r.Steps {
		if b := s.Bottleneck.Bound(); s.AchievedRate != nil && b != nil && b.Name == router.BoundProcessor && *s.AchievedRate > rate {
			rate, how = *s.AchievedRate, fmt.Sprintf("step %d, bound by %s", s.ID, b)
		}
	}
	if rate < 1 {
		return 0, "", errors.New("it has no confirmed load line on the axis rate, and no step that HAProxy's processor time bound: its rates are what was asked for, and not what a router can do")
	}
	return rate, how, nil
}
