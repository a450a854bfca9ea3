package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/page"
	"plimsoll.dev/plimsoll/internal/report/view"
)

// comparedPages are pages of comparisons, as files: each as that of recorded
// experiments, and one as that of a run.
func comparedPages(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	list := make(map[string]string)
	write := func(name, page string) {
		list[name] = filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+"-"+record.ReportFile)
		must(t, os.WriteFile(list[name], []byte(page), 0o644))
	}
	for name, c := range comparisons() {
		write(name, comparisonPage(t, comparisonInput(c)))
	}
	write("unconfirmed", comparisonPage(t, comparisonInput(unconfirmedLines())))
	c := comparisons()["two ways"]
	c.Baseline, c.Levels[0].Arm = hostile, "=arm"+hostile
	c.Levels[0].Series[0].Component = hostile
	write("hostile", comparisonPage(t, comparisonInput(c)))
	for name, in := range trendInputs() {
		var out bytes.Buffer
		p, err := view.ComparedPage(in)
		must(t, err)
		must(t, page.Write(&out, p))
		write("trend "+name, out.String())
	}
	var out bytes.Buffer
	p, err := view.RunsPage(listedRuns())
	must(t, err)
	must(t, page.Write(&out, p))
	write("trend runs", out.String())
	run := comparisons()["grid"]
	verdict, why := run.Verdict()
	write("run", pageIn(t, view.Input{Recorded: chart.Recorded{Result: result.Result{Schema: result.Schema, ObjectKind: pods(), Experiment: "arms", Workload: "node-density", Kind: "ab", Verdict: slo.Verdict(verdict), Why: why, Comparison: &run}}}))
	return list
}

// unconfirmedLines is a comparison of load lines, of which one was not confirmed.
func unconfirmedLines() compare.Comparison {
	c := comparisons()["lines"]
	c.Lines[0].Arm.Verdict = string(slo.Inconclusive)
	return c
}

// chartsOf are the charts that a comparison's page must have.
func chartsOf(c compare.Comparison) []string {
	var list []string
	if len(c.Lines) > 0 {
		list = append(list, "lines-chart")
	}
	if len(c.Levels) > 0 {
		list = append(list, "blocks-chart", "forest-chart", "shapes-chart", "shift-chart")
	}
	slices.Sort(list)
	return list
}

// Every chart of every comparison is drawn, on a desk and on a phone, in light
// and in dark, with nothing on the console and no request.
func everyComparisonIsDrawn(p *tab, pages map[string]string) {
	t := p.t
	all := comparisons()
	all["hostile"], all["run"], all["unconfirmed"] = all["two ways"], all["grid"], unconfirmedLines()
	for name, path := range pages {
		for i, look := range []struct {
			width   int64
			colours string
		}{{1280, "light"}, {390, "dark"}, {1280, "dark"}, {390, "light"}} {
			if i >= 2 && name != "grid" {
				break // one page in every look will do
			}
			what := fmt.Sprintf("%s, %d wide, %s", name, look.width, look.colours)
			p.look(look.width, look.colours)
			if i%2 == 0 {
				p.openFile(path) // and to the other width without opening it again
			} else {
				p.look(look.width, look.colours)
			}
			var charts []string
			for chart, points := range p.drawn() {
				charts = append(charts, chart)
				if points <= 0 {
					t.Errorf("%s: %s drew %d points", what, chart, points)
				}
			}
			slices.Sort(charts)
			want := chartsOf(all[name])
			if trend, ok := strings.CutPrefix(name, "trend "); ok {
				want = map[string][]string{"nights": {"trend-chart-0", "trend-chart-1"}, "few": {"trend-chart-0"}, "lines": {"trend-chart-0"}, "runs": {"trend-chart-0"}}[trend]
			}
			if !slices.Equal(charts, want) {
				t.Errorf("%s: charts %v, want %v", what, charts, want)
			}
			if name == "unconfirmed" {
				if said := eval[string](p, `document.querySelector('#lines-chart svg').textContent`); strings.Count(said, "not confirmed") != 1 {
					t.Errorf("%s: the chart does not say once that a line is not confirmed: %s", what, said)
				}
			}
			p.textsAreWithin(what)
			p.sound(what, look.colours)
			p.tables(what, look.width == 1280 && name != "hostile")
			p.quiet(what)
		}
	}
}

// A chart's texts are within it, but for what its overflow may show.
func (p *tab) textsAreWithin(what string) {
	p.t.Helper()
	for _, text := range eval[[]string](p, `[...document.querySelectorAll('figure.chart svg text')].filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && (r.left < -1 || r.right > innerWidth + 1) }).map(e => e.textContent)`) {
		p.t.Errorf("%s: a text sticks out: %q", what, text)
	}
}

func comparisonByKeyboard(p *tab, pages map[string]string) {
	t := p.t
	p.look(1280, "light")
	p.openFile(pages["grid"])
	for _, chart := range []string{"forest-chart", "blocks-chart", "shapes-chart", "shift-chart"} {
		stage := fmt.Sprintf(`document.querySelector('#%s .stage')`, chart)
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](stage+`.focus({focusVisible: true})`)))
		before := eval[string](p, stage+`.getAttribute('aria-valuetext')`)
		key := "ArrowRight"
		if chart == "forest-chart" {
			key = "ArrowDown"
		}
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](stage+`.dispatchEvent(new KeyboardEvent('keydown', {key: '`+key+`', bubbles: true}))`)))
		after := eval[string](p, stage+`.getAttribute('aria-valuetext')`)
		tip := eval[string](p, `(t => t.hidden ? '' : t.innerText)(document.querySelector('#`+chart+` .tip'))`)
		if before == after || tip == "" || !strings.Contains(after, "%") && !strings.Contains(after, " s") && !strings.Contains(after, " ms") {
			t.Errorf("%s: an arrow goes from %q to %q, shows %q", chart, before, after, tip)
		}
	}
	// What the pointer shows has values with units.
	box := eval[[]float64](p, `(() => { const f = document.querySelector('#shapes-chart .stage'); f.scrollIntoView({block: 'center'}); const r = f.getBoundingClientRect(); return [r.x + r.width / 4, r.y + r.height / 2] })()`)
	must(t, chromedp.Do(p.ctx, chromedp.MouseEvent("mouseMoved", box[0], box[1])))
	if tip := eval[string](p, `document.querySelector('#shapes-chart .tip').innerText`); !strings.Contains(tip, "within") || !strings.Contains(tip, " s") || !strings.Contains(tip, "%") {
		t.Errorf("the pointer shows %q", tip)
	}
	// A choice is made in every part, and the tables follow.
	charts := `['blocks', 'shapes', 'shift'].map(c => document.querySelector('#' + c + '-chart svg').outerHTML).join()`
	choose := func(select_, value string) {
		t.Helper()
		before := eval[string](p, charts)
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`(s => { s.value = `+strconv.Quote(value)+`; s.dispatchEvent(new Event('change')) })(`+select_+`)`)))
		if eval[string](p, charts) == before {
			t.Errorf("choosing %s changes nothing", value)
		}
	}
	choose(`document.querySelector('#runs [data-pick] select')`, "4")
	if got := eval[[]string](p, `[...document.querySelectorAll('[data-pick] select')].map(s => s.value).filter((v, i, a) => i === 0 || v !== a[i - 1])`); got[0] != "4" {
		t.Errorf("the choosers say %v", got)
	}
	if open := eval[[]string](p, `[...document.querySelectorAll('#metrics [data-level]')].filter(e => !e.hidden).map(e => e.dataset.level)`); !slices.Equal(open, []string{"4"}) {
		t.Errorf("the tables of %v are shown", open)
	}
	components := `[...document.querySelectorAll('#shapes-picked select')].at(-1)`
	choose(components, "database")
	choose(components, "")
	choose(`document.querySelector('#shapes-picked select')`, "ContainersStarted, ContainersReady")
	if shown := eval[[]string](p, `[...document.querySelectorAll('#shapes [data-series]')].filter(e => e.offsetParent).map(e => e.dataset.series + '/' + e.dataset.component)`); !slices.Equal(shown, []string{"ContainersStarted, ContainersReady/"}) {
		t.Errorf("the quantiles of %v are shown", shown)
	}
	before := eval[string](p, charts)
	must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector('#shapes-controls input[value=log]').click()`)))
	if eval[string](p, charts) == before {
		t.Error("a logarithmic axis changes nothing")
	}
	p.quiet("keyboard")

	// Both workloads of a trend are on one axis, so that they can be compared
	// by eye.
	p.openFile(pages["trend nights"])
	if got := eval[[]string](p, `[...document.querySelectorAll('#trend-chart-0 .axis text, #trend-chart-1 .axis text')].map(e => e.textContent)`); len(got) < 6 || !slices.Equal(got[:len(got)/2], got[len(got)/2:]) {
		t.Errorf("the axes of two workloads: %v", got)
	}
	axis := `document.querySelector('#trend-chart-0 .axis').textContent`
	before = eval[string](p, axis)
	must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector('#trend-controls-0 input[value=own]').click()`)))
	if after := eval[string](p, axis); after == before || !strings.HasPrefix(after, "1.8 s2 s") {
		t.Errorf("an axis of its own goes from %q to %q", before, after)
	}
	value := eval[string](p, `(s => { s.focus(); s.dispatchEvent(new KeyboardEvent('keydown', {key: 'End', bubbles: true})); return s.getAttribute('aria-valuetext') })(document.querySelector('#trend-chart-0 .stage'))`)
	if !strings.HasPrefix(value, "night-13: mean of the runs 3.18 s, runs 5") || !strings.Contains(value, "Kubernetes v1.37.0") {
		t.Errorf("the last point of the trend says %q", value)
	}
	p.quiet("trend")
}

// What is downloaded of a comparison is what it holds, also where it is hostile.
func comparisonDownloads(p *tab, pages map[string]string) {
	t := p.t
	to := t.TempDir()
	_, err := chromedp.CallBrowser(p.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: to})
	must(t, err)
	get := func(name string) [][]string {
		t.Helper()
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-csv=`+name+`]').click()`)))
		var table [][]string
		files, err := filepath.Glob(filepath.Join(to, "*-"+name+".csv"))
		must(t, err)
		for n := 0; len(files) == 0 && n < 250; n++ {
			eval[bool](p, `new Promise(done => setTimeout(() => done(true), 20))`)
			files, err = filepath.Glob(filepath.Join(to, "*-"+name+".csv"))
			must(t, err)
		}
		if len(files) != 1 {
			all, _ := os.ReadDir(to)
			t.Fatalf("%s.csv: files %v of %v", name, files, all)
		}
		table = downloaded(p, files[0])
		for _, row := range table {
			for _, cell := range row {
				if _, err := strconv.ParseFloat(cell, 64); err != nil && cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
					t.Fatalf("%s.csv holds what a spreadsheet takes for a formula: %q", name, cell)
				}
			}
		}
		must(t, os.Remove(files[0]))
		return table
	}
	p.openFile(pages["hostile"])
	c := comparisons()["two ways"]
	l := c.Levels[0]
	table := get("comparison")
	if len(table) != 2+len(l.Others) || table[1][3] != "Ready p50" || table[1][6] != "true" || table[1][7] != "better" || table[1][8] != strconv.FormatFloat(*l.Primary.Change, 'f', -1, 64) {
		t.Errorf("comparison.csv: %d rows, first %q", len(table), table[1])
	}
	if table = get("comparison-runs"); len(table) != 1+(1+len(l.Others))*2*len(l.Primary.Arm) || table[1][6] != strconv.FormatFloat(*l.Primary.Baseline[0], 'f', -1, 64) {
		t.Errorf("comparison-runs.csv: %d rows, first %q", len(table), table[1])
	}
	rows, points := 1, 1
	for _, s := range l.Series {
		rows += len(s.Shifts)
		points += len(s.Baseline.Curve) + len(s.Arm.Curve)
	}
	if table = get("comparison-shifts"); len(table) != rows {
		t.Errorf("comparison-shifts.csv has %d rows, want %d", len(table), rows)
	}
	if table = get("comparison-distributions"); len(table) != points {
		t.Errorf("comparison-distributions.csv has %d rows, want %d", len(table), points)
	}
	p.openFile(pages["trend nights"])
	if table = get("trend"); len(table) != 1+28 || table[9][14] == "" || table[4][9] != "" {
		t.Errorf("trend.csv: %q", table)
	}
	p.openFile(pages["refused"])
	if table = get("differences"); len(table) != 5 || table[3][4] != "refuses" {
		t.Errorf("differences.csv: %q", table)
	}
	p.openFile(pages["lines"])
	if table = get("load-lines"); len(table) != 5 || table[1][4] != "200" || table[3][4] != "" {
		t.Errorf("load-lines.csv: %q", table)
	}
	g := grids()["sweeps"]
	p.openFile(pages["grid of sweeps"])
	if table = get("cells"); len(table) != 1+7 || table[1][1] != "lognormal:2ms,20ms" || table[1][4] != "500" || table[7][len(table[7])-1] != "the server did not answer" {
		t.Errorf("cells.csv: %q", table)
	}
	if table = get("cell-steps"); len(table) != 1+18 || table[6][11] != "" || table[1][10] != "0.002" {
		t.Errorf("cell-steps.csv has %d rows: %q", len(table), table[6])
	}
	if table = get("pairs"); len(table) != 1+len(g.Pairs) || table[1][5] != string(g.Pairs[0].Verdict) {
		t.Errorf("pairs.csv: %q", table)
	}
	p.openFile(pages["grid of searches"])
	if table = get("capacity"); len(table) != 1+12 || table[2][6] != "40" {
		t.Errorf("capacity.csv: %q", table)
	}
	p.quiet("downloads")
}
