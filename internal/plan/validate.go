package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

const defaultConfirm = 3

// Default fills in what the plan leaves open from the workload. Stated zeros stay, for Validate to find.
func (p *Plan) Default(w *workload.Workload) {
	p.Kind = cmp.Or(p.Kind, p.kind())
	p.Name = cmp.Or(p.Name, w.Name)
	_ = p.ReadTarget(w.Target) // Validate reports its error
	if p.Axis.Name == "" && len(w.Axes) > 0 {
		p.Axis.Name = w.Axes[0].Name
	}
	axis, err := w.Axis(p.Axis.Name) // Validate reports an unknown axis
	if err == nil && p.Kind == AB && p.Axis.Search == nil && len(p.Axis.Levels) == 0 && p.Axis.Level == nil {
		p.Axis.Level = new(axis.Default.From) // where a search would begin
	}
	sweepOpen := err == nil && p.Kind == Sweep && len(p.Axis.Levels) == 0
	if sweepOpen {
		p.Axis.Levels = slices.Clone(axis.Sweep.Levels)
	}
	if err == nil && (p.Kind == Limit || p.Axis.Search != nil) {
		p.defaultSearch(axis.Default)
	}
	fill(p, "stepTimeout", &p.StepTimeout, Duration(w.StepTimeout))
	p.Hold = cmp.Or(p.Hold, Duration(cmp.Or(axis.Hold, w.Hold)))
	p.Axis.Life = cmp.Or(p.Axis.Life, Duration(axis.ObjectLife))
	if _, takes := w.Target.Takes["scrape"]; takes && p.Scrape.IsZero() {
		p.Scrape.Every = Duration(DefaultScrape)
	}
	fill(p, "fresh", &p.Fresh, FreshObjects)
	if isOpen(p, "repeat", p.Repeat) {
		switch {
		case p.Kind == AB:
			p.Repeat = Repeat{4, 30}
		case p.Kind == Sweep && sweepOpen:
			p.Repeat = Times(max(axis.Sweep.Repeat, 1))
		default:
			p.Repeat = Times(1)
		}
	}
	if p.Kind == AB && !p.Repeat.Fixed() && isOpen(p, "until", p.Until) {
		p.Until = UntilDecided
	}
	if p.Kind == AB || p.Kind == Sweep && (len(p.Vary) > 0 || p.Primary != nil) {
		p.defaultPrimary(cmp.Or(axis.Primary, w.Primary))
	}
	if len(p.Goals) == 0 {
		p.Goals = slices.Clone(w.Goals)
		if len(axis.Goals) > 0 {
			p.Goals = slices.Clone(axis.Goals)
		}
	}
}

// mostBlocks bounds a comparison that goes on until it is decided.
const mostBlocks = 1000

// mostRuns bounds the runs of a plan: levels times arms times repetitions.
const mostRuns = 10_000

// counts refuses plans with more runs or combinations than memory holds, before anything else.
func (v *validator) counts() bool {
	p := v.plan
	runs := 1
	for _, n := range []int{p.Repeat.Most, len(p.Axis.Levels), len(p.Arms)} {
		if runs *= min(max(n, 1), mostRuns+1); runs > mostRuns {
			v.Add("repeat", "repeat less, or split it", "levels, arms and repetitions come to more than %d runs", mostRuns)
			return false
		}
	}
	cells := 1
	for _, item := range p.Vary {
		if cells *= max(len(item.Value), 1); cells > maxCells {
			v.Add("vary", "vary less at once", "there are more than %d combinations", maxCells)
			return false
		}
	}
	return true
}

func (v *validator) repeat() {
	p := v.plan
	switch r := p.Repeat; {
	case r.Fixed() && r.Most < 1:
		v.Add("repeat", "", "%d is not a number of repetitions: want at least 1", r.Most)
	case !r.Fixed() && (r.Least < 2 || r.Most > mostBlocks):
		v.Add("repeat", "for example "+v.Set("repeat", "4..30"), "%s is not a range of blocks: want 2 at least and %d at most", r, mostBlocks)
	}
	switch {
	case p.Until == "" || p.Kind != AB:
	case p.Until != UntilDecided && p.Until != UntilNotWorse:
		v.Add("until", "", "unknown end %q (allowed: %s, %s)", p.Until, UntilDecided, UntilNotWorse)
	case p.Repeat.Fixed():
		v.Add("until", "give a range, such as "+v.Set("repeat", "4..30"), "repeat: %s is how many blocks there are, whatever they show", p.Repeat)
	}
}

// A run reads metrics each DefaultScrape by default, and at least leastScrape apart.
const (
	DefaultScrape = 5 * time.Second
	leastScrape   = time.Second
)

// fill fills in a value that a plan leaves open.
func fill[T comparable](p *Plan, path string, value *T, byDefault T) {
	if isOpen(p, path, *value) {
		*value = byDefault
	}
}

// isOpen reports whether a plan leaves a value open: the value is zero, and the file does not say so.
func isOpen[T comparable](p *Plan, path string, value T) bool {
	var zero T
	return value == zero && !p.positions.Has(path)
}

func (p *Plan) kind() ExperimentKind {
	switch {
	case p.AsRun != nil:
		return p.AsRun.Kind
	case len(p.Arms) > 0:
		return AB
	case len(p.Axis.Levels) > 0:
		return Sweep
	case p.Axis.Level != nil:
		return Run
	}
	return Limit
}

const settingsPath = "target"

// ReadTarget reads the target's own settings into Own, with defaults. The error is a *strictyaml.Error.
func (p *Plan) ReadTarget(t workload.Target) error {
	switch {
	case p.Own != nil || t.Settings == nil && p.Target.IsZero():
		return nil
	case t.Settings == nil:
		v := p.validator()
		v.Add(settingsPath, "leave it out", "the target %s has no settings", t.Name)
		return strictyaml.Join(v.Problems)
	}
	own := t.Settings()
	if err := settings.Read(p.Target, own, settingsPath, p.positions); err != nil {
		return err
	}
	p.Own, p.Target = own, settings.Write(own, p.Target)
	return nil
}

func (p *Plan) defaultSearch(d workload.Range) {
	p.Axis.Search = cmp.Or(p.Axis.Search, &Search{})
	s := p.Axis.Search
	// The default end never makes a given range empty.
	fill(p, "axis.search.resolution", &s.Resolution, d.Resolution)
	if isOpen(p, "axis.search.from", s.From) {
		s.From = d.From
		if s.Max > 0 {
			s.From = math.Min(s.From, s.Max)
		}
	}
	fill(p, "axis.search.step", &s.Step, math.Max(d.Step, s.Resolution))
	fill(p, "axis.search.max", &s.Max, math.Max(d.Max, s.From))
	s.Confirm = cmp.Or(s.Confirm, Confirm{defaultConfirm, defaultConfirm})
}

func (p *Plan) defaultPrimary(metric string) {
	p.Primary = cmp.Or(p.Primary, &Primary{})
	fill(p, "primary.metric", &p.Primary.Metric, metric)
	p.Primary.Metric = figureName(p.Primary.Metric)
	for i, metric := range p.Primary.Further {
		p.Primary.Further[i] = figureName(metric)
	}
	settings.Default(p.Primary, func(key string) bool { return p.positions.Has("primary." + key) })
}

// figureName returns a metric in the spelling of a run's figures.
func figureName(metric string) string {
	if f, err := slo.ParseFigure(metric); err == nil {
		return f.String()
	}
	return metric
}

// ValidateTarget reads and judges only the plan's target. Its error is like that of Validate.
func (p *Plan) ValidateTarget(t workload.Target) error {
	v := p.validator()
	v.target(t)
	return strictyaml.Join(v.Problems)
}

// Validate judges a plan after Default, and returns all mistakes as a *strictyaml.Error.
func (p *Plan) Validate(w *workload.Workload) error {
	v := p.validator()
	if !v.counts() {
		return strictyaml.Join(v.Problems)
	}
	v.Problems = settings.Validate(p, "", p.positions)
	v.name("name", p.Name)
	v.target(w.Target)
	v.fresh(w.Target)
	v.params(w, "params", p.Params)
	v.axis(w)
	kind := w.KindOn(p.Axis.Name)
	v.goals(w.Name, kind.Names(), &kind.Place)
	v.require()
	v.comparison(w)
	v.vary(w)
	v.published()
	v.signatures()
	v.guards(kind)
	v.rest()
	if len(v.Problems) == 0 {
		if _, err := p.Marshal(); err != nil {
			v.Add("", "", "%v", err)
		}
	}
	return strictyaml.Join(v.Problems)
}

// name refuses what steers a terminal or breaks a line: screens and reports show names.
func (v *validator) name(path, name string) {
	if at := strings.IndexFunc(name, func(c rune) bool { return !unicode.IsPrint(c) && c != utf8.RuneError }); at >= 0 {
		v.Add(path, "leave it out", "%q has a character that cannot be printed", name)
	}
}

type validator struct {
	*settings.Check
	plan *Plan
}

func (p *Plan) validator() *validator { return &validator{settings.NewCheck(p, p.positions), p} }

func several(given ...bool) bool {
	first := slices.Index(given, true)
	return first >= 0 && slices.Contains(given[first+1:], true)
}

func (v *validator) target(t workload.Target) {
	v.Problems = append(v.Problems, strictyaml.Problems(v.plan.ReadTarget(t))...)
	if own := v.plan.Own; own != nil {
		v.Problems = append(v.Problems, settings.Validate(own, settingsPath, v.plan.positions)...)
	}
}

// fresh judges the start of steps and other keys that only some targets support.
func (v *validator) fresh(t workload.Target) {
	p := v.plan
	starts := slices.DeleteFunc([]string{FreshObjects, t.Renews}, func(word string) bool { return word == "" })
	switch {
	case !slices.Contains(starts, p.Fresh):
		v.Add("fresh", nearest.OneOf(p.Fresh, starts), "the target %s has no fresh start %q", t.Name, p.Fresh)
	case p.Renews() && p.Own != nil && p.Own.Named() != nil:
		v.Add("fresh", "leave out the target, or say "+v.Set("fresh", FreshObjects), "only a private %s can be recreated for each step", t.Renews)
	}
	if _, takes := t.Takes["normal-events"]; p.NormalEvents && !takes {
		v.Add("normalEvents", "leave it out", "the target %s does not know it", t.Name)
	}
	if _, takes := t.Takes["scrape"]; !takes {
		if !p.Scrape.IsZero() {
			v.Add("scrape", "leave it out", "the target %s publishes no metrics", t.Name)
		}
		if p.MaxSeries != 0 {
			v.Add("maxSeries", "leave it out", "the target %s publishes no metrics", t.Name)
		}
	}
}

func (v *validator) params(w *workload.Workload, path string, params map[string]string) {
	_, err := w.Resolve(params)
	for _, problem := range strictyaml.Problems(err) {
		v.Add(strictyaml.Key(path, problem.Path), problem.Hint, "%s", problem.Message)
	}
}

func (v *validator) axis(w *workload.Workload) {
	a := v.plan.Axis
	axis, err := w.Axis(a.Name)
	var unknown *workload.UnknownError
	if errors.As(err, &unknown) {
		v.Add("axis.name", nearest.OneOf(unknown.Name, unknown.Known), "there is no %s %q", unknown.What, unknown.Name)
		return
	}
	if a.Life != 0 && (axis.Loop != workload.Open || w.TargetAxis(a.Name).Streams()) {
		v.Add("axis.life", "leave it out", "the axis %s removes nothing as it ages", a.Name)
	}
	v.levels(v.plan.Kind)
}

func (v *validator) levels(kind ExperimentKind) {
	a := v.plan.Axis
	switch {
	case kind == Limit && a.Search == nil:
		v.Add("axis.search", "", "a limit needs a range to be searched in")
	case kind == Sweep && len(a.Levels) == 0:
		v.Add("axis.levels", "for example "+v.Set("axis.levels", "[50, 100]"), "a sweep needs levels")
	case kind == AB && len(a.Levels) == 0 && a.Level == nil && a.Search == nil:
		v.Add("axis.level", "for example "+v.Set("axis.level", "60"), "a comparison needs a level, or levels, to be made at")
	case kind == Run && a.Level == nil:
		v.Add("axis.level", "", "a run of one level needs it")
	}
	if several(a.Search != nil, len(a.Levels) > 0, a.Level != nil) {
		v.Add("axis", "keep one of "+v.Key("axis.search")+", "+v.Key("axis.levels")+" and "+v.Key("axis.level"), "the axis has both a search and given levels")
	}
	level := func(path string, x float64) {
		if !(x > 0) || math.IsInf(x, 0) {
			v.Add(path, "", "%g is not a level: want a number above 0", x)
		}
	}
	for i, x := range a.Levels {
		level(strictyaml.Index("axis.levels", i), x)
	}
	if a.Level != nil {
		level("axis.level", *a.Level)
	}
	if s := a.Search; s != nil {
		if s.Confirm.Need < 1 || s.Confirm.Of < s.Confirm.Need {
			v.Add("axis.search.confirm", "for example "+v.Set("axis.search.confirm", strconv.Itoa(defaultConfirm)), "the search does not say how often its load line is confirmed")
		}
		// A number that is no level at all has its problem already.
		if s.Max > 0 && s.Max < s.From {
			v.Add("axis.search.max", "", "max %g is below from %g", s.Max, s.From)
		}
		if s.Step > 0 && s.Step < s.Resolution {
			v.Add("axis.search.step", "", "step %g is below the resolution %g", s.Step, s.Resolution)
		}
		if s.Resolution > 0 && (s.Max-s.From)/s.Resolution > maxLevels {
			v.Add("axis.search.resolution", "", "the resolution %g leaves more levels between %g and %g than can be told apart", s.Resolution, s.From, s.Max)
		}
	}
}

const maxLevels = 1e9

// goals judges the goals of a plan. Places names the target's places; nil if unknown.
func (v *validator) goals(workloadName string, milestones []string, places *record.Noun) {
	seen := make(map[string]bool)
	for _, item := range v.plan.Goals {
		path := strictyaml.Key("goals", item.Key)
		if seen[item.Key] {
			v.Add(path, "give one of them another name", "there are two goals %q", item.Key)
		}
		seen[item.Key] = true
		if strings.TrimSpace(item.Key) == "" {
			v.Add(path, "for example ready", "the goal has no name")
		}
		if len(item.Value) == 0 {
			v.Add(path, slo.Grammar, "the goal has no objective")
		}
		for i, text := range item.Value {
			at := strictyaml.Index(path, i)
			s, err := slo.Parse(text)
			if err != nil {
				v.Add(at, "", "%v", err)
				continue
			}
			if s.Milestone != "" && !slices.Contains(milestones, s.Milestone) {
				v.Add(at, nearest.OneOf(s.Milestone, milestones), "objective %q: %s has no milestone %q", text, workloadName, s.Milestone)
			}
			if places != nil && s.Form == slo.Failed && s.Places != places.Many {
				v.Add(at, nearest.OneOf(s.Places, []string{places.Many}), "objective %q: %s has no %s", text, workloadName, s.Places)
			}
		}
	}
}

func (v *validator) require() {
	p := v.plan
	if p.Require == "" {
		return
	}
	names := []string{RequireAll}
	for _, item := range p.Goals {
		names = append(names, item.Key)
	}
	switch {
	case p.Kind == AB:
		v.Add("require", "leave it out", "the exit code of a comparison of arms follows the comparison")
	case !slices.Contains(names, p.Require):
		v.Add("require", nearest.OneOf(p.Require, names), "there is no goal %q", p.Require)
	case slices.Contains(names[1:], RequireAll):
		v.Add("require", "give the goal another name", "%q is the name of a goal, and means every goal", RequireAll)
	}
}

func (v *validator) comparison(w *workload.Workload) {
	p := v.plan
	if p.Kind == AB {
		switch {
		case len(p.Arms) < 2:
			hint := "for example arms: [{name: a, params: {image: x}}, {name: b, params: {image: y}}]"
			if v.FromFlags() {
				hint = "for example --arm a:image=x --arm b:image=y"
			}
			v.Add("arms", hint, "a comparison needs two arms at least")
		case p.Axis.Search != nil:
			v.Add("axis.search", "give "+v.Key("axis.level")+" or "+v.Key("axis.levels"), "the arms of a comparison are run at given levels")
		}
	} else {
		switch {
		case p.Repeat.Most > 1 && p.Kind != Sweep:
			v.Add("repeat", "leave it out", "only a sweep and a comparison of arms are repeated")
		case !p.Repeat.Fixed():
			v.Add("repeat", "give one number", "only a comparison of arms goes on until it is decided")
		}
		if p.Until != "" {
			v.Add("until", "leave it out", "only a comparison of arms goes on until it is decided")
		}
		if p.Primary != nil && p.Kind != Sweep {
			v.Add("primary", "leave it out", "only a sweep and a comparison of arms have a primary metric")
		}
	}
	v.repeat()
	seen := make(map[string]bool)
	for i, arm := range p.Arms {
		path := strictyaml.Index("arms", i)
		switch {
		case arm.Name == "":
			v.Add(path+".name", "", "the arm has no name")
		case seen[arm.Name]:
			v.Add(path+".name", "give one of them another name", "there are two arms %q", arm.Name)
		}
		seen[arm.Name] = true
		v.name(path+".name", arm.Name)
		v.params(w, path+".params", arm.Params)
	}
	if p.Primary != nil {
		v.primary(w, w.KindOn(p.Axis.Name), *p.Primary)
	}
}

func (v *validator) primary(w *workload.Workload, kind record.ObjectKind, primary Primary) {
	v.margin(primary)
	v.metric(w, kind, "primary.metric", primary.Metric)
	if v.plan.Kind != AB && len(primary.Further) > 0 {
		v.Add("primary.further", "leave it out", "only a comparison of arms is decided by several metrics")
	}
	for i, metric := range primary.Further {
		path := strictyaml.Index("primary.further", i)
		if slices.Contains(primary.Metrics()[:i+1], metric) {
			v.Add(path, "leave it out", "the metric %q is declared twice", metric)
			continue
		}
		v.metric(w, kind, path, metric)
	}
}

// metric checks a metric that decides, at a path of the plan.
func (v *validator) metric(w *workload.Workload, kind record.ObjectKind, path, metric string) {
	if kind.Metric(metric) != nil {
		return
	}
	switch f, err := slo.ParseFigure(metric); {
	case metric == "":
		v.Add(path, "for example "+w.Primary, "the primary metric has no name")
	case err != nil:
		want := "MILESTONE pNN or MILESTONE max"
		var declared []string
		for _, m := range kind.Metrics {
			declared = append(declared, m.Name)
		}
		if len(declared) > 0 {
			want += fmt.Sprintf(", or one that 'plimsoll workloads show %s' lists", w.Name)
		}
		v.Add(path, nearest.Hint(metric, declared, "for example "+w.Primary), "%q is not a metric: want %s", metric, want)
	case !slices.Contains([]float64{0.5, 0.9, 0.95, 0.99, 1}, f.Q):
		v.Add(path, "p50, p90, p95, p99 or max", "%q is not a figure that a run has", metric)
	case !slices.Contains(kind.Names(), f.Milestone):
		v.Add(path, nearest.OneOf(f.Milestone, kind.Names()), "%s has no milestone %q", w.Name, f.Milestone)
	}
}

func (v *validator) margin(primary Primary) {
	if primary.Margin != "" {
		if _, err := primary.Share(); err != nil {
			v.Add("primary.margin", "", "%v", err)
		}
	}
	if !isOpen(v.plan, "primary.alpha", primary.Alpha) && !(primary.Alpha > 0 && primary.Alpha < 1) {
		v.Add("primary.alpha", "", "%g is not an error rate: want a number between 0 and 1, such as 0.05", primary.Alpha)
	}
}

func (v *validator) signatures() {
	v.Problems = append(v.Problems, signature.Validate(v.plan.Signatures, v.plan.positions, "signatures")...)
}

func (v *validator) rest() {
	p := v.plan
	if p.HoldMax != 0 && p.HoldMax < p.Hold {
		v.Add("holdMax", "leave it out for five holds", "the longest hold, %s, is shorter than the hold, %s", time.Duration(p.HoldMax), time.Duration(p.Hold))
	}
	if every := time.Duration(p.Scrape.Every); every != 0 && every < leastScrape {
		v.Add("scrape", "for example 5s; 0 reads no metrics", "metrics cannot be read each %s: want at least %s", every, leastScrape)
	}
	v.prometheus()
}

// prometheus judges the address and the selectors. It never shows a secret in the address.
func (v *validator) prometheus() {
	p := v.plan.Prometheus
	if p == nil {
		return
	}
	const hint = "such as https://prometheus.example.com, or " + OpenShift
	u, err := url.Parse(p.URL)
	switch {
	case p.URL == OpenShift:
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		v.Add("prometheus.url", hint, "the address of the Prometheus is not valid")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		v.Add("prometheus.url", "--prometheus-user and --prometheus-token-file say who asks", "the address of the Prometheus at %s has more than scheme, host and path: it would be on record", u.Host)
	}
	for i, text := range p.Match {
		if err := metrics.CheckSelector(text); err != nil {
			v.Add(strictyaml.Index("prometheus.match", i), "for example node_memory_MemAvailable_bytes or {namespace=\"openshift-etcd\"}", "%v", err)
		}
	}
}

func (v *validator) guards(kind record.ObjectKind) {
	known := make([]string, len(kind.Measures))
	for i, m := range kind.Measures {
		known[i] = m.Name
	}
	for _, name := range slices.Sorted(maps.Keys(v.plan.Guards)) {
		path, bound := strictyaml.Key("guards", name), v.plan.Guards[name]
		switch i := slices.Index(known, name); {
		case i < 0:
			v.Add(path, nearest.OneOf(name, known), "there is no guard %q", name)
		case bound.Percent && !kind.Measures[i].Percent:
			v.Add(path, "leave out the percent sign", "%g%% is not a bound: this guard counts, want a number above 0", bound.Value)
		case !bound.Percent && kind.Measures[i].Percent:
			v.Add(path, fmt.Sprintf("write %g%%", bound.Value), "%g has no unit: this guard watches a percentage, want one such as 5%%", bound.Value)
		case kind.Measures[i].Percent && bound.Value > 100:
			v.Add(path, "", "at most 100%% of the requests can fail, not %g%%", bound.Value)
		}
	}
	for i, text := range v.plan.GuardQueries {
		if _, err := slo.ParseGuard(text); err != nil {
			v.Add(strictyaml.Index("guardQueries", i), "for example query 'max(process_resident_memory_bytes)' < 4e9", "%v", err)
		}
	}
}

// GuardsOf returns the guards on queries of a valid plan.
func (p *Plan) GuardsOf() ([]slo.SLO, error) {
	var list []slo.SLO
	for _, text := range p.GuardQueries {
		s, err := slo.ParseGuard(text)
		if err != nil {
			return nil, fmt.Errorf("guard: %w", err)
		}
		list = append(list, s)
	}
	return list, nil
}

// checkRecorded judges the copy that a run keeps, without its workload: it must hold all that the judge needs.
func (p *Plan) checkRecorded() error {
	run := p.AsRun
	if run == nil {
		return nil
	}
	v := p.validator()
	if s := p.Axis.Search; s != nil {
		v.Problems = settings.Validate(s, "axis.search", p.positions)
	}
	if kinds := []string{string(Limit), string(Sweep), string(AB), string(Run)}; !slices.Contains(kinds, string(run.Kind)) {
		v.Add("asRun.kind", nearest.OneOf(string(run.Kind), kinds), "there is no kind of experiment %q", run.Kind)
	}
	v.levels(run.Kind)
	if p.Axis.Search == nil && len(p.Axis.Levels) == 0 && p.Axis.Level == nil && len(v.Problems) == 0 {
		v.Add("axis", "it has search, levels or level", "the axis does not say which levels were made")
	}
	if len(p.Goals) == 0 {
		v.Add("goals", "for example ready: [all Ready]", "the run has no goal to be judged by")
	}
	v.goals(p.Workload, run.Milestones, nil)
	v.require()
	v.signatures()
	if !slices.Contains(run.Milestones, run.Arrived) {
		v.Add("asRun.arrived", nearest.OneOf(run.Arrived, run.Milestones), "%s has no milestone %q", p.Workload, run.Arrived)
	}
	return strictyaml.Join(v.Problems)
}

// GoalsOf returns the goals of a valid plan, the headline first.
func (p *Plan) GoalsOf() ([]slo.Goal, error) {
	goals := make([]slo.Goal, 0, len(p.Goals))
	for _, item := range p.Goals {
		g := slo.Goal{Name: item.Key}
		for _, text := range item.Value {
			s, err := slo.Parse(text)
			if err != nil {
				return nil, fmt.Errorf("goal %s: %w", item.Key, err)
			}
			g.SLOs = append(g.SLOs, s)
		}
		goals = append(goals, g)
	}
	return goals, nil
}

// Design returns what chooses the steps of a valid plan.
func (p *Plan) Design() design.Design {
	levels := p.Axis.Levels
	if p.Axis.Level != nil {
		levels = []float64{*p.Axis.Level}
	}
	switch {
	case p.Kind == AB:
		ab := design.AB{Levels: levels, Repeat: p.Repeat.Most, Seed: p.Seed}
		for _, arm := range p.Arms {
			ab.Arms = append(ab.Arms, arm.Name)
		}
		return ab
	case len(levels) > 0:
		return design.Sweep{Levels: levels, Repeat: p.Repeat.Most}
	}
	s := p.Axis.Search
	return design.Search{From: s.From, Step: s.Step, Max: s.Max, Resolution: s.Resolution, Need: s.Confirm.Need, Of: s.Confirm.Of}
}
