package advise

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/size"
	"plimsoll.dev/plimsoll/workloads"
)

// Names in records of the workloads that the calculators read.
const (
	routerWorkload = "router"
	pathWorkload   = "network-path"
	paramPath      = "path"
	paramMTU       = "mtu"
	pathDirect     = "direct" // the path that others are compared with
)

// measuredPaths fills in what a record of network paths found an overlay to cost, and
// with it the overlay and the MTU where flags do not say them and the record has one.
func measuredPaths(params *host.Network, path string) error {
	dir, read := record.Dir(path), measuredCells
	if !record.IsGrid(path) {
		if _, err := record.OpenDir(path); err != nil {
			return process.Usagef("", "--run: %w", err)
		}
		read = measuredArms
	}
	of, err := plan.Load(dir.Path(record.ExperimentFile))
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	const hint = "for example 'plimsoll sweep network-path --vary path=direct,vxlan', or 'plimsoll ab network-path --arm direct: --arm vxlan:path=vxlan'"
	if of.Workload != pathWorkload {
		return process.Usagef(hint, "--run %s: it is of the workload %s, and not of %s", path, of.Workload, pathWorkload)
	}
	w, err := workload.Load(workloads.FS(), of.Workload, process.Targets())
	if err != nil {
		return err
	}
	all, err := read(dir, of)
	if err != nil {
		return process.Usagef("'plimsoll analyze DIR' writes it again", "--run: %w", err)
	}
	found := make(map[string]bool)
	mtus := make(map[int64]bool)
	for _, c := range all {
		one, err := c.cost(w, of, path)
		if err != nil {
			return fmt.Errorf("--run %s: %w", path, err)
		}
		if one.Path == "" {
			continue
		}
		params.Measured = append(params.Measured, one)
		if mtus[one.MTU] = true; host.IsOverlay(one.Path) {
			found[one.Path] = true
		}
	}
	if len(params.Measured) == 0 {
		return process.Usagef(hint, "--run %s: it compares no path with a direct one", path)
	}
	if overlays := slices.Collect(maps.Keys(found)); len(overlays) == 1 && !params.Overlay.Ok() {
		params.Overlay = param.Given(overlays[0], "the record "+path)
	}
	if list := slices.Collect(maps.Keys(mtus)); len(list) == 1 && !params.MTU.Ok() {
		params.MTU = param.Given(list[0], "the record "+path)
	}
	return nil
}

// comparedPaths are two sides of a record that were compared by some figures.
type comparedPaths struct {
	baseline, arm map[string]string // parameters beside the plan's own
	level         *float64
	figures       []compare.Compared
	verdicts      []stats.Verdict
}

// measuredArms returns the compared paths of an ab.
func measuredArms(dir record.Dir, of *plan.Plan) (list []comparedPaths, err error) {
	var r result.Result
	if err := dir.ReadJSON(record.ResultFile, &r); err != nil {
		return nil, err
	}
	if r.Comparison == nil {
		return nil, nil
	}
	for i := range r.Comparison.Levels {
		l := &r.Comparison.Levels[i]
		one := comparedPaths{baseline: r.Comparison.Arms[r.Comparison.Baseline], arm: r.Comparison.Arms[l.Arm], level: &l.Level}
		for _, d := range l.Decisions() {
			one.figures, one.verdicts = append(one.figures, d.Figure), append(one.verdicts, d.Verdict)
		}
		list = append(list, one)
	}
	return list, nil
}

// measuredCells returns the pairs of a grid whose path was varied.
func measuredCells(dir record.Dir, of *plan.Plan) (list []comparedPaths, err error) {
	var g judge.Grid
	if err := dir.ReadJSON(record.ResultFile, &g); err != nil {
		return nil, err
	}
	params := make(map[string]map[string]string)
	for _, c := range g.Cells {
		params[c.Name] = c.Params
	}
	for _, p := range g.Pairs {
		if p.Key == paramPath && p.Figure != nil {
			list = append(list, comparedPaths{params[p.Baseline], params[p.Arm], p.Level, []compare.Compared{*p.Figure}, []stats.Verdict{p.Verdict}})
		}
	}
	return list, nil
}

// cost returns what a path costs beside the direct one; it has no path if something else
// was compared.
func (c comparedPaths) cost(w *workload.Workload, of *plan.Plan, from string) (host.PathCost, error) {
	var sides [2]workload.Params
	for i, own := range []map[string]string{c.baseline, c.arm} {
		given := maps.Clone(of.Params)
		if given == nil {
			given = make(plan.Params)
		}
		maps.Copy(given, own)
		values, err := w.Resolve(given)
		if err != nil {
			return host.PathCost{}, err
		}
		sides[i] = values
	}
	a, b := sides[0], sides[1]
	if a.Get(paramPath) != pathDirect || b.Get(paramPath) == pathDirect || a.Int(paramMTU) != b.Int(paramMTU) {
		return host.PathCost{}, nil
	}
	cost := host.PathCost{Path: b.Get(paramPath), MTU: b.Int(paramMTU), From: from}
	if c.level != nil {
		unit := of.Axis.Name
		if of.AsRun != nil {
			unit = cmp.Or(of.AsRun.Unit, unit)
		}
		cost.At = "at " + strconv.FormatFloat(*c.level, 'f', -1, 64) + " " + unit
	}
	for i, f := range c.figures {
		cost.Figures = append(cost.Figures, host.CostFigure{Name: f.Called(), Change: f.Change, Lo: f.Lo, Hi: f.Hi, Verdict: string(c.verdicts[i])})
	}
	return cost, nil
}

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
	if of.Workload != routerWorkload || len(of.Arms) > 0 {
		return process.Usagef("for example one of 'plimsoll limit router --axis rate', or a cell of a grid", "--run %s: it is not a search or sweep of the workload %s", path, routerWorkload)
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
		if b := s.Bottleneck.Bound(); s.AchievedRate != nil && b != nil && b.Name == host.BoundProcessor && *s.AchievedRate > rate {
			rate, how = *s.AchievedRate, fmt.Sprintf("step %d, bound by %s", s.ID, b)
		}
	}
	if rate < 1 {
		return 0, "", errors.New("it has no confirmed load line on the axis rate, and no step that HAProxy's processor time bound: its rates follow the schedule, and are not a router's capacity")
	}
	return rate, how, nil
}
