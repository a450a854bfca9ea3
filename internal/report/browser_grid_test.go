package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// gridPages are pages of grids, as files.
func gridPages(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	list := make(map[string]string)
	all := grids()
	unconfirmed := grids()["searches"]
	unconfirmed.Cells[0].Verdict = slo.Inconclusive
	all["unconfirmed"] = unconfirmed
	for name, g := range all {
		list[name] = filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+"-"+record.ReportFile)
		must(t, os.WriteFile(list[name], []byte(gridPage(t, g)), 0o644))
	}
	return list
}

// Every chart of every grid is drawn, on a desk and on a phone, in light and in
// dark, with nothing on the console and no request.
func everyGridIsDrawn(p *tab, pages map[string]string) {
	t := p.t
	numbered := func(of string, n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("%s-chart-%d", of, i)
		}
		return list
	}
	want := map[string][]string{
		"searches":      slices.Concat(numbered("capacity", 5), numbered("cell", 6), numbered("pairs", 2)),
		"unconfirmed":   slices.Concat(numbered("capacity", 5), numbered("cell", 6), numbered("pairs", 2)),
		"sweeps":        slices.Concat(numbered("cell", 3), numbered("pairs", 2)),
		"one level":     {"cells-chart", "pairs-chart-0"},
		"one level p99": {"cells-chart", "pairs-chart-0"},
		"hostile":       {"cell-chart-0", "pairs-chart-0"},
	}
	for name, path := range pages {
		for i, look := range []struct {
			width   int64
			colours string
		}{{1280, "light"}, {390, "dark"}, {1280, "dark"}, {390, "light"}} {
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
			if !slices.Equal(charts, want[name]) {
				t.Errorf("%s: charts %v, want %v", what, charts, want[name])
			}
			// An unconfirmed level is not a load line: not in its cell's chart, and not against what was varied.
			if lines := eval[[]int](p, `['#cell-chart-0 .bracket-held', '#cell-chart-0 .held-line', '#capacity-chart-0 .step-unsure'].map(s => document.querySelectorAll(s).length)`); name == "unconfirmed" && !slices.Equal(lines, []int{0, 1, 1}) || name == "searches" && !slices.Equal(lines, []int{1, 0, 0}) {
				t.Errorf("%s: load lines, lines of unconfirmed levels and such levels: %v", what, lines)
			}
			p.textsAreWithin(what)
			p.sound(what, look.colours)
			p.tables(what, look.width == 1280 && name != "hostile")
			p.quiet(what)
		}
	}
}

func gridByKeyboard(p *tab, pages map[string]string) {
	t := p.t
	p.look(1280, "light")
	for _, tt := range []struct{ page, chart, key, says string }{
		{"searches", "cell-chart-0", "ArrowRight", "Step 2, 21 objects/place: fail"},
		{"searches", "pairs-chart-1", "ArrowDown", "places 4 against 2, limit=40: equivalent: change +0.0%"},
		{"searches", "capacity-chart-0", "ArrowRight", "limit=40: held 40 objects/place"},
		{"sweeps", "cell-chart-0", "ArrowRight", "round 2: pass: p99 20 ms, mean 20 ms"},
		{"sweeps", "pairs-chart-0", "ArrowDown", "latency lognormal:3ms,30ms against lognormal:2ms,20ms, capacity=1500 at 1000"},
		{"one level", "cells-chart", "ArrowDown", "image=b, round 1: pass"},
	} {
		p.openFile(pages[tt.page])
		stage := `document.querySelector('#` + tt.chart + ` .stage')`
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](stage+`.focus({focusVisible: true})`)))
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](stage+`.dispatchEvent(new KeyboardEvent('keydown', {key: '`+tt.key+`', bubbles: true}))`)))
		says := eval[string](p, stage+`.getAttribute('aria-valuetext')`)
		tip := eval[string](p, `(t => t.hidden ? '' : t.innerText)(document.querySelector('#`+tt.chart+` .tip'))`)
		if !strings.Contains(says, tt.says) || tip == "" {
			t.Errorf("%s of %s: %s says %q, shows %q; want %q", tt.chart, tt.page, tt.key, says, tip, tt.says)
		}
	}
	// A level is chosen, and the chart of changes has it alone.
	p.openFile(pages["sweeps"])
	must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`(s => { s.value = '500'; s.dispatchEvent(new Event('change')) })(document.querySelector('#pairs-controls-0 select'))`)))
	all, one := len(grids()["sweeps"].Pairs), p.drawn()["pairs-chart-0"]
	if one == 0 || one >= all {
		t.Errorf("at level 500 there are %d changes, of all %d", one, all)
	}
	// The axes of small charts are the same, and colour is not all that tells
	// what held.
	p.openFile(pages["searches"])
	axes := eval[[]string](p, `[...document.querySelectorAll('[id^=cell-chart-]')].map(f => [...f.querySelectorAll('.axis text')].map(e => e.textContent).join(' '))`)
	if len(slices.Compact(axes)) != 1 {
		t.Errorf("the axes of the cells: %q", axes)
	}
	fills := eval[[]string](p, `['step-held', 'step-failed'].map(c => getComputedStyle(document.querySelector('#cell-chart-0 .' + c)).fill)`)
	card := eval[string](p, `getComputedStyle(document.querySelector('.card')).backgroundColor`)
	if fills[0] == card || fills[1] != card {
		t.Errorf("held is filled with %s, failed with %s, on %s", fills[0], fills[1], strconv.Quote(card))
	}
	p.quiet("keyboard")
}
