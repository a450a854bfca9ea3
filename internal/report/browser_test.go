package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"plimsoll.dev/plimsoll/internal/judge/objects"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/ring"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// tab is a page in a headless browser, and what went wrong with it.
type tab struct {
	t        *testing.T
	ctx      context.Context
	mu       sync.Mutex
	problems []string
}

// newBrowser skips the test where there is no Chromium.
func newBrowser(t testing.TB) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("needs a browser: apt-get install chromium")
	}
	// Chromium's sandbox wants rights that a container does not give.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Skipf("the browser does not start: %v", err)
	}
	return ctx
}

// newTab makes a tab that pages can be opened in, one after the other.
func newTab(t *testing.T, ctx context.Context) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx}
	must(t, chromedp.Listen(ctx, p.hear))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	must(t, err)
	_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	must(t, err)
	return p
}

// open opens the report of a run.
func (p *tab) open(dir record.Dir) {
	p.t.Helper()
	p.openFile(dir.Path(record.ReportFile))
}

func (p *tab) openFile(path string) {
	p.t.Helper()
	must(p.t, chromedp.Do(p.ctx, chromedp.Navigate("file://"+path)))
}

// look shows the page on a width, in light or dark colours, and waits until it
// is laid out again.
func (p *tab) look(width int64, colours string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}})
	must(p.t, err)
	must(p.t, chromedp.Do(p.ctx, chromedp.EmulateViewport(width, 900)))
	eval[bool](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hear notes every request but that for the page, and everything that the page
// says on the console.
func (p *tab) hear(event any) {
	said := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, "file:") && !strings.HasPrefix(url, "data:image/svg+xml") && !strings.HasPrefix(url, "blob:") || strings.HasPrefix(url, "file:") && !strings.Contains(url, record.ReportFile) {
			said = "request for " + url
		}
	case *runtime.EventConsoleAPICalled:
		said = fmt.Sprintf("console: %s %v", e.Type, e.Args)
	case *runtime.EventExceptionThrown:
		said = "exception: " + e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			said += " " + x.Description
		}
	case *log.EventEntryAdded:
		said = fmt.Sprintf("log: %s %s", e.Entry.Level, e.Entry.Text)
	}
	if said != "" {
		p.mu.Lock()
		p.problems = append(p.problems, said)
		p.mu.Unlock()
	}
}

// eval evaluates an expression in a page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func (p *tab) quiet(what string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.t.Errorf("%s: %s", what, problem)
	}
	p.problems = nil
}

// drawn returns how many points each chart of the page says it has drawn, without
// those that are folded away.
func (p *tab) drawn() map[string]int {
	return eval[map[string]int](p, `Object.fromEntries([...document.querySelectorAll('figure.chart')].filter(f => !f.closest('details:not([open])')).map(f => [f.id, Number(f.dataset.drawn ?? -1)]))`)
}

// wide is by how much the page is wider than its window, and what stands out.
const wide = `(() => {
	const over = document.documentElement.scrollWidth - innerWidth
	const out = [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, .tip, pre, svg, .unseen, figcaption') && e.getBoundingClientRect().right > innerWidth + 1)
	return [over > 0 ? 'page by ' + over : '', ...out.map(e => e.tagName + '.' + e.className)].filter(Boolean)
})()`

// unsaid names the tables that are wider than their place without a line above them that says so, and those
// below such a line that are not.
const unsaid = `[...document.querySelectorAll('.scroll')].filter(e => e.getClientRects().length && e.scrollWidth > e.clientWidth + 1 !== Boolean(e.previousElementSibling?.matches('.goes-on') && e.previousElementSibling.getClientRects().length)).map(e => e.ariaLabel)`

// cut finds the words of tables that go on in another line.
const cut = `(() => {
	const found = []
	for (const cell of document.querySelectorAll('th, td')) {
		if (!cell.getClientRects().length) continue
		const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
		for (let node; node = texts.nextNode();) {
			const top = i => { const r = document.createRange(); r.setStart(node, i); r.setEnd(node, i + 1); return r.getClientRects()[0]?.top }
			for (const word of node.data.matchAll(/\w{2,}/g)) {
				if (Math.abs(top(word.index) - top(word.index + word[0].length - 1)) > 4) found.push(cell.innerText.slice(0, 60))
			}
		}
	}
	return found
})()`

// tables finds every table whole, or said to go on, and every word in one line, with all that folds open.
func (p *tab) tables(what string, desk bool) {
	p.t.Helper()
	must(p.t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll('details:not([open])')) { d.open = true; d.dataset.opened = '' }`)))
	eval[bool](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	for _, name := range eval[[]string](p, unsaid) {
		p.t.Errorf("%s: nothing says rightly whether columns are out of sight: %s", what, name)
	}
	for _, text := range eval[[]string](p, cut) {
		p.t.Errorf("%s: a word is cut: %q", what, text)
	}
	if desk {
		for _, name := range eval[[]string](p, `[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel)`) {
			p.t.Errorf("%s: a desk is too narrow for a table: %s", what, name)
		}
	}
	if small := eval[int](p, `[...document.querySelectorAll('.strip text')].filter(e => e.getBoundingClientRect().height < 11).length`); small > 0 {
		p.t.Errorf("%s: %d figures of a time line are too small to be read", what, small)
	}
	must(p.t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll('[data-opened]')) { d.open = false; delete d.dataset.opened }`)))
}

// lines finds the level of a search drawn as its load line only if it was confirmed.
func (p *tab) lines(what string, confirmed bool) {
	p.t.Helper()
	want := map[string]int{"#ladder-chart .load-line": 0, "#ladder-chart .load-mark": 0, "#ladder-chart .held-line": 1, ".mark .line.unsure": 1}
	if confirmed {
		want = map[string]int{"#ladder-chart .load-line": 1, "#ladder-chart .load-mark": 1, "#ladder-chart .held-line": 0, ".mark .line.unsure": 0}
	}
	for selector, n := range want {
		if got := eval[int](p, `document.querySelectorAll('`+selector+`').length`); got != n {
			p.t.Errorf("%s: %d elements %s, want %d", what, got, selector, n)
		}
	}
	for _, part := range []string{"#ladder-chart", ".mark"} {
		if said := eval[bool](p, `document.querySelector('`+part+`').textContent.includes('not confirmed')`); said == confirmed {
			p.t.Errorf("%s: %s says that the level is not confirmed: %t", what, part, said)
		}
	}
}

// A page draws its charts in Chromium, on a desk and on a phone: the smoke test of
// that part.
func TestAPageInABrowser(t *testing.T) {
	ctx := newBrowser(t)
	all := pages(t)
	dirs := map[string]record.Dir{"goals": all["goals"], "killed": all["killed"]}
	for _, dir := range dirs {
		must(t, WriteFile(dir))
	}
	everyChartIsDrawn(newTab(t, ctx), dirs)
}

func TestInABrowser(t *testing.T) {
	ring.Long(t, "it draws and operates every kind of page")
	ctx := newBrowser(t)
	dirs := pages(t)
	for _, dir := range dirs {
		must(t, WriteFile(dir))
	}
	t.Run("every chart is drawn", func(t *testing.T) { everyChartIsDrawn(newTab(t, ctx), dirs) })
	t.Run("charts are operated by keyboard", func(t *testing.T) { chartsAreOperatedByKeyboard(newTab(t, ctx), dirs["goals"]) })
	t.Run("downloads", func(t *testing.T) { downloads(newTab(t, ctx)) })
	t.Run("accessibility", func(t *testing.T) { accessibility(newTab(t, ctx), dirs) })
	lawful := lawfulPages(t)
	t.Run("every law is drawn", func(t *testing.T) { everyLawIsDrawn(newTab(t, ctx), lawful) })
	t.Run("laws are operated by keyboard", func(t *testing.T) { lawsByKeyboard(newTab(t, ctx), lawful["rate"]) })
	t.Run("accessibility of laws", func(t *testing.T) { accessible(newTab(t, ctx), lawful["sweep"], "laws", "light", "dark") })
	compared := comparedPages(t)
	t.Run("every comparison is drawn", func(t *testing.T) { everyComparisonIsDrawn(newTab(t, ctx), compared) })
	t.Run("a comparison is operated by keyboard", func(t *testing.T) { comparisonByKeyboard(newTab(t, ctx), compared) })
	gridded := gridPages(t)
	for name, path := range gridded {
		compared["grid of "+name] = path
	}
	t.Run("comparisons are downloaded", func(t *testing.T) { comparisonDownloads(newTab(t, ctx), compared) })
	t.Run("accessibility of comparisons", func(t *testing.T) {
		accessible(newTab(t, ctx), compared["grid"], "grid", "light", "dark")
		accessible(newTab(t, ctx), compared["refused"], "refused", "dark")
		accessible(newTab(t, ctx), compared["trend nights"], "trend", "light")
		accessible(newTab(t, ctx), compared["trend runs"], "runs", "light", "dark")
	})
	t.Run("every grid is drawn", func(t *testing.T) { everyGridIsDrawn(newTab(t, ctx), gridded) })
	t.Run("a grid is operated by keyboard", func(t *testing.T) { gridByKeyboard(newTab(t, ctx), gridded) })
	t.Run("accessibility of grids", func(t *testing.T) {
		accessible(newTab(t, ctx), gridded["searches"], "searches", "light", "dark")
		accessible(newTab(t, ctx), gridded["sweeps"], "sweeps", "light", "dark")
		accessible(newTab(t, ctx), gridded["one level"], "one level", "dark")
	})
}

// Every chart of every kind of page is drawn, on a desk and on a phone, in
// light and in dark, with nothing on the console and no request.
func everyChartIsDrawn(p *tab, dirs map[string]record.Dir) {
	t := p.t
	looks := []struct {
		width   int64
		colours string
	}{{1280, "light"}, {390, "dark"}, {1280, "dark"}, {390, "light"}}
	for name, dir := range dirs {
		for i, look := range looks {
			if i >= 2 && name != "goals" || i >= 1 && strings.HasPrefix(name, "result ") {
				break // one page in every look will do
			}
			what := fmt.Sprintf("%s, %d wide, %s", name, look.width, look.colours)
			p.look(look.width, look.colours)
			if i%2 == 0 {
				p.open(dir) // and to the other width without opening it again
			} else {
				p.look(look.width, look.colours)
			}
			charts := p.drawn()
			laws := 0
			for chart, points := range charts {
				if strings.HasPrefix(chart, "law-chart-") {
					laws++
				}
				empty := chart == "lag-chart" && points < 0 // it says that there were no canaries
				if points <= 0 && !empty {
					t.Errorf("%s: %s drew %d points", what, chart, points)
				}
			}
			if slices.Contains([]string{"goals", "limit", "open loop", "killed"}, name) && len(charts)-laws != 7 {
				t.Errorf("%s: charts %v, want 7 and those of laws", what, charts)
			}
			p.sound(what, look.colours)
			p.tables(what, look.width == 1280)
			if name == "killed" || name == "limit" {
				p.lines(what, name == "limit")
			}
			if look.width == 1280 {
				p.roomy(what)
			}
			p.quiet(what)
		}
	}
}

// roomy finds a desk's window used: the navigation is one line, all of which is
// seen; text ends where the window does and not in its middle; and what is said
// of confidence is said once.
func (p *tab) roomy(what string) {
	t := p.t
	t.Helper()
	if lines := eval[int](p, `new Set([...document.querySelectorAll('header nav li, header .brand, header .theme')].map(e => Math.round((e.getBoundingClientRect().top + e.getBoundingClientRect().bottom) / 8))).size`); lines != 1 {
		t.Errorf("%s: the navigation is on %d lines", what, lines)
	}
	if hidden := eval[int](p, `(() => { const n = document.querySelector('header nav'); return n.scrollWidth - n.clientWidth })()`); hidden > 0 {
		t.Errorf("%s: %d pixels of the navigation are not seen", what, hidden)
	}
	// A paragraph of several lines that leaves a third of its card empty.
	narrow := eval[[]string](p, `[...document.querySelectorAll('.card > p')].filter(e => e.getClientRects().length && e.getBoundingClientRect().height > 2 * parseFloat(getComputedStyle(e).lineHeight || 24) * .9 && e.getBoundingClientRect().width < .67 * e.parentElement.getBoundingClientRect().width).map(e => e.innerText.slice(0, 60))`)
	for _, text := range narrow {
		t.Errorf("%s: the right half beside %q is empty", what, text)
	}
	if n := eval[int](p, `(document.querySelector('main').innerText.match(/with a probability of at least/g) ?? []).length`); n > 1 {
		t.Errorf("%s: what confirmations mean is said %d times", what, n)
	}
}

// sound finds nothing wrong with a page as it is shown: nothing sticks out,
// nothing was drawn of what is no number, and the colours are those wanted.
func (p *tab) sound(what, colours string) {
	t := p.t
	t.Helper()
	for _, over := range eval[[]string](p, wide) {
		t.Errorf("%s: wider than its window: %s", what, over)
	}
	if bad := eval[string](p, `[...document.querySelectorAll('figure.chart svg *')].flatMap(e => [...e.attributes].map(a => a.value)).find(v => /NaN|Infinity|undefined/.test(v)) ?? ''`); bad != "" {
		t.Errorf("%s: a chart holds %q", what, bad)
	}
	if bad := eval[string](p, `document.querySelector('main').innerText.match(/NaN|Infinity|undefined|null/)?.[0] ?? ''`); bad != "" {
		t.Errorf("%s: the page says %q", what, bad)
	}
	background := eval[string](p, `getComputedStyle(document.documentElement).backgroundColor`)
	if light := background == "rgb(243, 245, 247)"; light != (colours == "light") {
		t.Errorf("%s: the background is %s", what, background)
	}
}

// A chart is one stop of the Tab key; the arrows go from point to point, and
// what is shown is said as well.
func chartsAreOperatedByKeyboard(p *tab, dir record.Dir) {
	t := p.t
	p.look(1280, "light")
	p.open(dir)
	for _, chart := range []string{"ladder-chart", "cdf-chart", "progress-chart", "lag-chart", "waits-chart", "cpu-chart", "memory-chart"} {
		stage := fmt.Sprintf(`document.querySelector('#%s .stage')`, chart)
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](stage+`.focus({focusVisible: true})`)))
		before := eval[string](p, stage+`.getAttribute('aria-valuetext')`)
		must(t, chromedp.Do(p.ctx, chromedp.KeyEvent("\u0303"))) // ArrowRight
		after := eval[string](p, stage+`.getAttribute('aria-valuetext')`)
		tip := eval[string](p, `(t => t.hidden ? '' : t.innerText)(document.querySelector('#`+chart+` .tip'))`)
		outline := eval[string](p, `getComputedStyle(`+stage+`).outlineStyle`)
		if before == after || tip == "" || outline == "none" {
			t.Errorf("%s: an arrow goes from %q to %q, shows %q, the outline is %s", chart, before, after, tip, outline)
		}
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](stage+`.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))`)))
		if hidden := eval[bool](p, `document.querySelector('#`+chart+` .tip').hidden`); !hidden {
			t.Errorf("%s: Escape does not take the values away", chart)
		}
	}
	// What the pointer shows has values with units.
	box := eval[[]float64](p, `(() => { const f = document.querySelector('#cdf-chart .stage'); f.scrollIntoView({block: 'center'}); const r = f.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`)
	must(t, chromedp.Do(p.ctx, chromedp.MouseEvent("mouseMoved", box[0], box[1])))
	if tip := eval[string](p, `document.querySelector('#cdf-chart .tip').innerText`); !strings.Contains(tip, "within") || !strings.Contains(tip, " s") && !strings.Contains(tip, " ms") || !strings.Contains(tip, "%") {
		t.Errorf("the pointer shows %q", tip)
	}
	// The controls draw the charts again.
	for _, click := range []string{
		`document.querySelector('#cdf-controls input[value=log]')`, `document.querySelector('#ladder-controls input[value=log]')`,
		`document.querySelector('#cdf-controls input[value=milestones]')`, `document.querySelector('#cdf-series input')`, `document.querySelector('#theme input[value=dark]')`,
	} {
		before := eval[string](p, `document.querySelector('#cdf-chart svg').outerHTML + document.querySelector('#ladder-chart svg').outerHTML + getComputedStyle(document.body).color`)
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](click+`.click()`)))
		if eval[bool](p, `document.querySelector('#cdf-chart svg').outerHTML + document.querySelector('#ladder-chart svg').outerHTML + getComputedStyle(document.body).color === `+fmt.Sprintf("%q", before)) {
			t.Errorf("%s changes nothing", click)
		}
	}
	failing := `document.querySelectorAll('#ladder-chart use[href="#v-fail"]').length`
	before := eval[int](p, failing)
	must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`(s => { s.selectedIndex = 1; s.dispatchEvent(new Event('change')) })(document.querySelector('#ladder-controls select'))`)))
	if after := eval[int](p, failing); after <= before {
		t.Errorf("by the second goal %d steps failed, by the first %d", after, before)
	}
	for i, name := range []string{"whole", "step"} {
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(s => { s.selectedIndex = %d; s.dispatchEvent(new Event('change')) })(document.querySelector('#progress-controls select'))`, 2*i))))
		if p.drawn()["progress-chart"] <= 0 {
			t.Errorf("the course of the %s is not drawn", name)
		}
	}
	p.quiet("keyboard")
}

// What can be downloaded is what was recorded, also where it is hostile; what would
// steer a reader is visible in it.
func downloads(p *tab) {
	t := p.t
	s := scene{design: search(), limit: 25, name: "=pod" + strings.ReplaceAll(hostile, "\x00", ""), message: hostile}
	dir := s.make(t)
	must(t, WriteFile(dir))
	p.open(dir)
	to := t.TempDir()
	_, err := chromedp.CallBrowser(p.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: to})
	must(t, err)
	in := read(t, dir)
	for name, rows := range map[string]int{"objects": in.Objects.Rows, "steps": len(in.Result.Steps), "reasons": -1, "resources": -1, "distributions": -1, "progress": -1} {
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-csv=`+name+`]').click()`)))
		table := downloaded(p, filepath.Join(to, "scene-"+name+".csv"))
		if rows >= 0 && len(table) != rows+1 || len(table) < 3 {
			t.Errorf("%s.csv has %d rows, want %d", name, len(table)-1, rows)
		}
		for _, row := range table {
			for _, cell := range row {
				if cell != "" && strings.ContainsRune("=+@", rune(cell[0])) {
					t.Fatalf("%s.csv holds what a spreadsheet takes for a formula: %q", name, cell)
				}
			}
		}
		if name != "objects" {
			continue
		}
		columns := make(map[string]int)
		for i, title := range table[0] {
			columns[title] = i
		}
		for row := range in.Objects.Rows {
			for _, c := range in.Objects.Columns {
				if c.Name == objects.ZeroColumn {
					continue // the page leaves it out
				}
				got, want := table[row+1][columns[c.Name]], ""
				switch {
				case c.Texts != nil:
					want = redact.Visible(c.Words[c.Texts[row]])
					got = strings.TrimPrefix(got, "'")
					// A CSV reader takes \r\n for \n.
				case c.Numbers[row] != objects.Null && (c.Numbers[row] >= 0 || !strings.HasSuffix(c.Name, "_us")):
					want = fmt.Sprint(c.Numbers[row])
				}
				if got != want {
					t.Fatalf("objects.csv: %s of row %d is %q, want %q", c.Name, row, got, want)
				}
			}
		}
	}
	p.quiet("downloads")
}

// downloaded waits for a file that is being downloaded.
func downloaded(p *tab, path string) [][]string {
	t := p.t
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(path)
		if err == nil && len(text) > 0 { // the name is there before the content
			table, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			return table
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) || time.Now().After(deadline) {
			p.quiet("download")
			t.Fatalf("%s: %d bytes, %v", path, len(text), err)
		}
	}
}

// The rules of axe-core, where the front end's tools are installed.
func accessibility(p *tab, dirs map[string]record.Dir) {
	accessible(p, dirs["goals"].Path(record.ReportFile), "goals", "light", "dark")
	accessible(p, dirs["result only"].Path(record.ReportFile), "result only", "dark")
}

// accessible finds nothing against the rules of axe-core in a page with
// everything open, wide in light colours and narrow in dark ones.
func accessible(p *tab, path, name string, looks ...string) {
	t := p.t
	axe, err := os.ReadFile("../../ui/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Skip("needs axe-core: cd ui && npm ci")
	}
	p.openFile(path)
	must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll('details')) d.open = true`)))
	must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](string(axe))))
	for _, colours := range looks {
		p.look(map[string]int64{"light": 1280, "dark": 390}[colours], colours)
		found := eval[[]string](p, `axe.run({resultTypes: ['violations']}).then(r => r.passes.length < 20 ? ['hardly anything was looked at'] : r.violations.flatMap(v => v.nodes.slice(0, 3).map(n => v.id + ': ' + n.target.join(' ') + ': ' + (n.any[0]?.message ?? v.help))))`)
		for _, v := range found {
			t.Errorf("%s, %s: %s", name, colours, v)
		}
	}
}
