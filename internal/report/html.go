package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/objects"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/record/upgrade"
)

// templates are the page and its parts.
//
//go:embed *.html
var templates embed.FS

// The bundle is built from ui/ by `make ui`.
//
//go:embed assets/report.js
var pageScript string

//go:embed assets/report.css
var pageStyle string

// NoResultError says that a run directory holds no judgement to report.
type NoResultError struct {
	Dir string
	Err error
}

func (e *NoResultError) Error() string {
	return fmt.Sprintf("%s has no result to report: %v", e.Dir, e.Err)
}

// Unwrap is what kept the result from being read.
func (e *NoResultError) Unwrap() error { return e.Err }

// WriteFile writes report.html into a run directory, from what the directory
// holds: a result.json, and everything else as far as it is there. Before is the
// kind of the objects of a result that does not say it.
func WriteFile(dir record.Dir, before record.ObjectKind) error {
	page, err := Page(dir, before)
	if err != nil {
		return err
	}
	return dir.WriteFile(record.ReportFile, page)
}

// Page is what WriteFile writes, for those who want it elsewhere.
func Page(dir record.Dir, before record.ObjectKind) ([]byte, error) {
	in, err := Read(dir, before)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	if err := HTML(&page, in); err != nil {
		return nil, fmt.Errorf("report %s: %w", dir, err)
	}
	return page.Bytes(), nil
}

// Read reads what a report shows from a run directory. The error is a
// *NoResultError where no result.json can be read; anything else that is
// missing is said on the page. Before is as for WriteFile.
func Read(dir record.Dir, before record.ObjectKind) (Input, error) {
	var in Input
	if err := dir.ReadJSON(record.ResultFile, &in.Result); err != nil {
		return in, &NoResultError{string(dir), err}
	}
	if in.Result.Schema != judge.ResultSchema {
		return in, &NoResultError{string(dir), fmt.Errorf("its schema is %q, this program reads %q", in.Result.Schema, judge.ResultSchema)}
	}
	if in.Result.ObjectKind == nil {
		in.Result.ObjectKind = &before
	}
	missing := func(file string, what string, err error) {
		if errors.Is(err, fs.ErrNotExist) {
			in.Missing = append(in.Missing, fmt.Sprintf("there is no %s: %s", file, what))
			return
		}
		in.Missing = append(in.Missing, fmt.Sprintf("%s could not be read, so %s: %v", file, what, err))
	}
	err := in.readPlan(dir)
	if err != nil {
		missing(record.ExperimentFile, "the plan is not shown", err)
	}
	if in.Environment, err = upgrade.Environment(dir); err != nil {
		missing(record.EnvironmentFile, "the environment is not shown", err)
	}
	if slices.ContainsFunc(in.Result.Steps, func(s judge.Step) bool { return s.Requests != nil }) {
		if in.Windows, err = objects.Windows(dir); err != nil || in.Windows == nil {
			missing(record.WindowsFile, "distributions and the course of the run are not drawn", cmp.Or(err, fs.ErrNotExist))
		}
		if in.Samples, err = samplesOf(dir, objectKind(in.Result)); err != nil {
			missing(record.HistoryFile, "not all that parts of the target reported is drawn", err)
		}
	} else if in.Objects, err = objects.Read(dir, nil); err != nil {
		missing(record.ObjectsFile, "distributions and the course of the run are not shown", err)
	}
	return in, nil
}

// readPlan reads the plan as it was run.
func (in *Input) readPlan(dir record.Dir) error {
	text, err := os.ReadFile(dir.Path(record.ExperimentFile))
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

// HTML writes a report as one page that needs nothing else, and that a browser
// lets reach nothing else.
func HTML(w io.Writer, in Input) error {
	data, err := dataOf(in)
	if err != nil {
		return err
	}
	return write(w, pageOf(in, data), data)
}

// write writes a page with the data that its charts are drawn from.
func write(w io.Writer, p page, data pageData) error {
	// It has <, > and & as escapes: no text can end the element.
	encoded, err := record.Encode(data, "")
	if err != nil {
		return err
	}
	objects := ""
	if data.Objects != nil {
		objects = data.Objects.data
	}
	t, err := template.New("page.html").Funcs(template.FuncMap{
		"seconds": Seconds, "metrics": metricRows, "title": capital, "played": playedRows, "labels": labelTables, "span": spanOf, "scaled": scaled, "placed": placed, "number": Number, "bytes": byteCount, "quantile": quantile, "rate": rate,
		"count": grouped, "verdict": verdictWord, "tone": toneOf, "level": levelOf, "lag": lagOf, "sentence": asSentence, "percent": percent, "missed": notReady, "refused": shareOfRequests,
		"bearing": bearingWord, "goal": goalSentence, "required": requiredSentence, "limit": inUnit, "ceiling": kindOf, "published": publishedFigure, "found": foundFigure, "bucket": bucketText, "more": moreSteps,
		"used": usedCPUs, "latency": latencyTo, "ratio": ratioOf, "shareOf": shareOf,
		"minus":  func(a, b int64) int64 { return a - b },
		"busy":   func(v *float64) string { return known(v, hundredths) },
		"change": func(v *float64) string { return known(v, changeOnPage) }, "interval": intervalOnPage,
		"trendTitle": trendTitle, "changeAt": changeAt, "startText": startText, "pointText": pointText, "bracket": bracketText, "within": lineInterval, "details": lawDetails,
		"plusMinus": plusMinusOnPage, "latencyPlusMinus": latencyPlusMinus, "gigabits": gigabits, "gain": gainText, "clear": differsClearly, "median": medianOf, "runs": eachOf, "share": func(x float64) string { return percent(100 * x) },
	}).ParseFS(templates, "*.html")
	if err != nil {
		return err
	}
	p.Style, p.Script = template.CSS(pageStyle), template.JS(pageScript)
	p.Data, p.Packed = template.JS(encoded), template.HTML(objects)
	p.Policy = "default-src 'none'; script-src " + hashSource(pageScript) + "; style-src " + hashSource(pageStyle) + "; img-src data:; base-uri 'none'; form-action 'none'"
	return t.Execute(w, p)
}

// hashSource lets one text run as script or style, and no other.
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page is what the template writes.
type page struct {
	Title                  string
	Headline               string
	Lead                   []string
	Verdict                slo.Verdict
	Mark                   string // what stands in the mark: the load line
	MarkUnit               string
	Arms                   *armsPart     // nil where nothing is compared
	Recorded               bool          // it is of recorded experiments, and not of one run
	Operands               []operandPart // those experiments
	Trends                 []compare.Trend
	Grid                   *gridPart // nil for all but the page of a grid
	GridPage               string    // of the grid that the run is a cell of, "" for none
	BoundBy                []string  // what bound the steps of a stream, and its slowest requests
	Facts                  []fact
	Result                 judge.Result
	Kind                   record.ObjectKind
	Arrived                string
	Unit                   string
	Fidelity               []fidelityPart
	Missing                []string
	Milestones             []string
	Bounds                 []latencyBound
	Reasons                []judge.Step // that have any, the one that decided first
	Refused                bool         // some requests failed
	HasUsage               bool         // of any process, or watch lag, or waits
	Waits                  []judge.Step // that say what their objects waited for
	Open                   bool         // requests came by a schedule
	Stream                 bool         // the load was a stream of requests
	Thing, Things          string       // what one and several of what was asked for are called
	Machine                []fact
	Places                 *placesTable // nil for none
	PublishedNote          string
	Broke                  *brokePart // nil where nothing broke
	RealNode               bool       // parts of a real node are shown
	NodeSource             string
	Durations              bool // a node has published some
	Overhead               *overheadTable
	Laws                   *lawsPart // nil where there are none
	Split                  string
	SplitNotes             []string
	PlanText               string
	HasCurves, HasProgress bool
	Style                  template.CSS
	Script                 template.JS
	Data                   template.JS
	Packed                 template.HTML
	Policy                 string
}

// fact is a figure with its name and what it means.
type fact struct{ Name, Value, Note string }

type fidelityPart = record.FidelityPart

func pageOf(in Input, data pageData) page {
	r := in.Result
	p := page{
		Title: fmt.Sprintf("%s: %s", cmp.Or(r.Experiment, r.Workload), Headline(r, data.Unit)), Headline: Headline(r, data.Unit), Lead: summary(r),
		Verdict: r.Verdict, Arms: armsOfPage(r, data.Unit), Result: r, Kind: objectKind(r), Arrived: data.Arrived, Unit: data.Unit, Milestones: data.Milestones, Bounds: data.Bounds, NodeSource: judge.SourceNode, Overhead: overheadOf(r.Overhead, objectKind(r)), Laws: lawsOfPage(r),
		Missing: in.Missing, PlanText: in.PlanText, GridPage: in.GridPage, BoundBy: append(boundLines(r), recordedLines(r)...),
		HasCurves: len(data.Curves) > 0, HasProgress: len(data.Progress) > 0 || len(data.Streams) > 0,
	}
	p.Mark, p.MarkUnit = "?", data.Unit
	if l := r.LoadLine; l != nil && l.Level != nil {
		p.Mark = Number(*l.Level)
	} else if s := decidingStep(r); l == nil && s != nil {
		p.Mark = Number(s.LevelReached)
	}
	if r.Comparison != nil {
		p.Mark, p.MarkUnit = markOfArms(r)
	}
	p.Fidelity = fidelityOf(r.Fidelity)
	p.Facts = factsOf(r, data)
	for _, s := range r.Steps {
		p.Open = p.Open || s.Arrivals != nil
		p.Stream = p.Stream || s.Requests != nil
		if s.Bottleneck != nil && len(s.Bottleneck.Waits) > 0 {
			p.Waits = append(p.Waits, s)
		}
		p.Durations = p.Durations || len(s.Durations) > 0
		_, node := s.Resources[judge.SourceNode]
		p.RealNode = p.RealNode || node
		p.HasUsage = p.HasUsage || s.WatchLag != nil || len(s.Resources) > 0
	}
	p.HasUsage = p.HasUsage || len(p.Waits) > 0
	p.Thing, p.Things = thingsOf(r)
	p.Reasons, p.Refused = reasonsOf(r), failedRequests(r) != ""
	if p.Refused {
		p.Headline += "; requests failed"
	}
	p.PublishedNote = publishedNote(r)
	p.Broke = brokeOf(r, data.Unit)
	p.environment(in.Environment)
	return p
}

// latencyTo is a step's latency to a milestone, nil for one that it has none to.
func latencyTo(s judge.Step, milestone string) *judge.Latency {
	if l, ok := s.Latency[milestone]; ok {
		return &l
	}
	return nil
}

// ratioOf is how many times what is normal a figure is, as it is shown.
func ratioOf(v, normal *float64) string {
	if v == nil || normal == nil || *normal <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", *v / *normal)
}

// usedCPUs is how many CPUs were busy on average, as it is shown.
func usedCPUs(used, seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return hundredths(used / seconds)
}

func hundredths(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// factsOf are the figures beside the headline.
func factsOf(r judge.Result, data pageData) []fact {
	var list []fact
	add := func(name, value, note string) { list = append(list, fact{name, value, note}) }
	if r.Comparison != nil {
		list = factsOfArms(r)
	}
	if l := r.LoadLine; l != nil {
		if l.LowestFailing != nil {
			add("Lowest failing level", Number(*l.LowestFailing), l.Unit)
		} else if l.Level != nil {
			add("Lowest failing level", "none", "up to the highest level tried")
		}
		if l.ConfirmationsAsked > 0 {
			note := "full steps from empty"
			if l.Confirmations > 0 && l.PassProbability > 0 {
				note = fmt.Sprintf("a further run passes with a probability of at least %.0f %% (95 %% confidence)", 100*l.PassProbability)
			}
			add("Confirmed", fmt.Sprintf("%d of %d", l.Confirmations, confirmationsOf(l)), note)
		}
	}
	if len(r.Steps) > 0 && r.Comparison == nil {
		held := 0
		for _, s := range r.Steps {
			if s.Verdict == slo.Pass {
				held++
			}
		}
		seconds := max(data.Times[len(data.Times)-1][1]-data.Times[0][0], 0)
		add("Steps", strconv.Itoa(len(r.Steps)), fmt.Sprintf("%d held; %s in all", held, span(seconds)))
	}
	if s := lineStep(r); s != nil && r.Comparison == nil {
		if l, ok := s.Latency[data.Arrived]; ok && l.N > 0 {
			note := fmt.Sprintf("at %s %s, p50 %s", Number(s.LevelReached), data.Unit, quantile(l, l.P50))
			if timeScale(r) != 1 && l.P99 != nil {
				note += fmt.Sprintf("; %s as it would be", played(l.P99, timeScale(r)))
			}
			add(data.Arrived+" p99", quantile(l, l.P99), note)
		}
	}
	if r.Cost.Objects > 0 {
		_, things := thingsOf(r)
		add(capital(things)+" measured", grouped(r.Cost.Objects), fmt.Sprintf("plimsoll used %.3g ms of CPU for each", 1000*r.Cost.CPUSeconds/float64(r.Cost.Objects)))
	}
	return list
}

// lineStep is the step that tells how it is at the load line: the last that
// held at the highest level that did.
func lineStep(r judge.Result) *judge.Step {
	var best *judge.Step
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Verdict != slo.Pass || r.LoadLine != nil && r.LoadLine.Level != nil && s.Level != *r.LoadLine.Level {
			continue
		}
		if best == nil || s.Level >= best.Level {
			best = s
		}
	}
	return best
}

// decidingStep is the step of a sweep that its verdict stands on: the lowest that
// failed, or the highest that held where none did. It is nil where the verdict
// says neither.
func decidingStep(r judge.Result) *judge.Step {
	var best *judge.Step
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Verdict != r.Verdict || !r.Verdict.Decided() {
			continue
		}
		if best == nil || (s.LevelReached < best.LevelReached) == (r.Verdict == slo.Breached) {
			best = s
		}
	}
	return best
}

// notReady are those that were not ready, whatever the cause.
func notReady(o judge.Objects) int { return o.NeverReady + o.CreateFailed + o.Dropped }

// reasonsOf are the steps that have reasons, the one that decided first.
func reasonsOf(r judge.Result) []judge.Step {
	list := slices.DeleteFunc(slices.Clone(r.Steps), func(s judge.Step) bool { return len(s.Reasons) == 0 })
	slices.Reverse(list)
	return list
}

// shareOf is the share of a reason in percent of all that have one.
func shareOf(reason judge.Reason, list []judge.Reason) int {
	all := 0
	for _, other := range list {
		all += other.Count
	}
	return max(1, 100*reason.Count/max(all, 1))
}

// Headline is the verdict in few words, for the head of a page.
func Headline(r judge.Result, unit string) string {
	if r.Comparison != nil {
		return r.Workload + ": " + verdictOfArms(r)
	}
	name := r.Workload
	if l := r.LoadLine; l != nil {
		switch {
		case r.Verdict == slo.Breached && l.LowestFailing != nil:
			return fmt.Sprintf("%s fails at its first level, %s %s", name, Number(*l.LowestFailing), unit)
		case r.Verdict == slo.Pass && l.Level != nil && l.LowestFailing != nil:
			return fmt.Sprintf("%s holds %s %s and fails at %s", name, Number(*l.Level), unit, Number(*l.LowestFailing))
		case r.Verdict == slo.Pass && l.Level != nil:
			return fmt.Sprintf("%s holds %s %s, the highest level tried", name, Number(*l.Level), unit)
		}
		open := "Inconclusive"
		if r.Verdict == slo.Invalid {
			open = "Invalid"
		}
		switch {
		case l.Level != nil && l.LowestFailing != nil:
			return fmt.Sprintf("%s: the load line of %s lies from %s to below %s %s", open, name, Number(*l.Level), Number(*l.LowestFailing), unit)
		case l.Level != nil:
			return fmt.Sprintf("%s: %s held %s %s; higher levels are not known", open, name, Number(*l.Level), unit)
		case l.LowestFailing != nil:
			return fmt.Sprintf("%s: %s failed at %s %s; no level is known to hold", open, name, Number(*l.LowestFailing), unit)
		}
		return fmt.Sprintf("%s: the limit of %s is not known", open, name)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range r.Steps {
		if r.Verdict == slo.Breached && s.Verdict != slo.Breached {
			continue
		}
		low, high = min(low, s.LevelReached), max(high, s.LevelReached)
	}
	levels := Number(low)
	if low != high {
		levels += " to " + Number(high)
	}
	switch {
	case len(r.Steps) == 0:
		return fmt.Sprintf("%s: nothing was measured", name)
	case r.Verdict == slo.Pass:
		return fmt.Sprintf("%s holds at every level, %s %s", name, levels, unit)
	case r.Verdict == slo.Breached && !math.IsInf(low, 0):
		return fmt.Sprintf("%s fails at %s %s", name, Number(low), unit)
	case r.Verdict == slo.Invalid:
		return fmt.Sprintf("Invalid: plimsoll itself was the bottleneck of %s", name)
	}
	return fmt.Sprintf("Inconclusive: whether %s holds is not known", name)
}

// summary says more about the verdict than the headline, a sentence each.
func summary(r judge.Result) []string {
	var list []string
	add := func(text string) {
		if text != "" {
			list = append(list, asSentence(text))
		}
	}
	if l := r.LoadLine; l != nil && l.Binding != "" {
		add("bound by: " + l.Binding)
	}
	if s := decidingStep(r); s != nil && r.LoadLine == nil && r.Verdict == slo.Breached {
		add(s.VerdictWhy)
	}
	add(r.Why)
	add(failedRequests(r))
	return list
}

// asSentence begins a text with a capital letter and ends it with a full stop.
func asSentence(text string) string { return capital(strings.TrimSuffix(text, ".")) + "." }

func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// thingsOf is what one and several of what a run asks for are called.
func thingsOf(r judge.Result) (one, many string) {
	if slices.ContainsFunc(r.Steps, func(s judge.Step) bool { return s.Requests != nil }) {
		return "request", "requests"
	}
	kind := objectKind(r).Object
	return cmp.Or(kind.One, "object"), cmp.Or(kind.Many, "objects")
}

// verdictWord is a step's or a goal's verdict as people say it.
func verdictWord(verdict any) string {
	v := slo.Verdict(fmt.Sprint(verdict))
	switch v {
	case slo.Pass:
		return "held"
	case slo.Breached:
		return "failed"
	case slo.Inconclusive:
		return "inconclusive"
	case slo.Invalid:
		return "invalid"
	case slo.Verdict(stats.NotWorse):
		return "not worse"
	}
	return string(v)
}

func levelOf(v *float64) string { return known(v, Number) }

func lagOf(v *float64) string { return known(v, Seconds) }

// percent is a share in percent as it is shown.
func percent(x any) string {
	v, ok := x.(float64)
	if p, is := x.(*float64); is && p != nil {
		v, ok = *p, true
	}
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.3g %%", v)
}

// byteCount is a number of bytes with its unit.
func byteCount(n int64) string {
	x, unit := float64(n), 0
	names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for x >= 1024 && unit < len(names)-1 {
		x, unit = x/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return short(x) + " " + names[unit]
}

// span is a length of time as people say it.
func span(seconds float64) string {
	if seconds < 60 {
		return Seconds(seconds)
	}
	minutes := int(math.Round(seconds)) / 60
	if minutes < 60 {
		return fmt.Sprintf("%d min %d s", minutes, int(math.Round(seconds))%60)
	}
	return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
}

// grouped is a number with its thousands apart.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}
