package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"plimsoll.dev/plimsoll/internal/judge/findings"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// lawfulPages are pages with laws, as files.
func lawfulPages(t *testing.T) map[string]string {
	t.Helper()
	hostileRun := lawful(5, 10, 20, 30, 40, 50, 60)
	for i := range hostileRun.Steps {
		u := hostileRun.Steps[i].Resources
		u[hostile] = u["kube-apiserver"]
	}
	hostileRun.Laws = findings.LawsOf(result.Spec{Axis: hostile, Unit: hostile, Kind: observe.Pods()}, hostileRun.Steps)
	list := make(map[string]string)
	dir := t.TempDir()
	for name, r := range map[string]result.Result{
		"sweep": lawful(5, 10, 20, 30, 40, 50, 60), "rate": rated(), "few": lawful(10, 20, 40), "hostile": hostileRun,
	} {
		list[name] = filepath.Join(dir, name+"-"+record.ReportFile)
		must(t, os.WriteFile(list[name], []byte(pageIn(t, view.Input{Recorded: chart.Recorded{Result: r}})), 0o644))
	}
	return list
}

// Throughput, latency and every law have a chart, on a desk and on a phone, in light
// and in dark; what is refused has none and says why.
func everyLawIsDrawn(p *tab, pages map[string]string) {
	t := p.t
	want := map[string][]string{
		"sweep": {"Throughput", "Latency to Ready", "kube-apiserver memory", "plimsoll memory"},
		"rate":  {"Throughput", "Latency to Ready"},
		"few":   {"Throughput", "Latency to Ready"},
	}
	for name, path := range pages {
		for _, look := range []struct {
			width   int64
			colours string
		}{{1280, "light"}, {390, "dark"}} {
			what := fmt.Sprintf("%s, %d wide, %s", name, look.width, look.colours)
			p.look(look.width, look.colours)
			p.openFile(path)
			must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`document.querySelectorAll('#laws details').forEach(d => d.open = true)`)))
			p.look(look.width, look.colours) // until they are laid out
			var drawn []string
			for chart, points := range p.drawn() {
				if !strings.HasPrefix(chart, "law-chart-") {
					continue
				}
				drawn = append(drawn, chart)
				if points <= 0 {
					t.Errorf("%s: %s drew %d points", what, chart, points)
				}
			}
			names := eval[[]string](p, `[...document.querySelectorAll('#laws figure.chart')].map(f => f.querySelector('figcaption').textContent)`)
			if w, ok := want[name]; ok && !slices.Equal(names, w) || len(names) != len(drawn) {
				t.Errorf("%s: charts of %q, want %q", what, names, w)
			}
			for _, text := range eval[[]string](p, `[...document.querySelectorAll('#laws svg text')].filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && (r.left < -1 || r.right > innerWidth + 1) }).map(e => e.textContent)`) {
				if name != "hostile" {
					t.Errorf("%s: a text sticks out: %q", what, text)
				}
			}
			p.sound(what, look.colours)
			p.tables(what, look.width == 1280 && name != "hostile")
			p.quiet(what)
		}
		lines := eval[int](p, `document.querySelectorAll('#laws figure .law-line').length`)
		if want, ok := map[string]int{"sweep": 2, "rate": 0, "few": 0}[name]; ok && lines != want {
			t.Errorf("%s: %d lines, want %d", name, lines, want)
		}
	}
	p.openFile(pages["few"])
	if text := eval[string](p, `document.querySelector('#laws').innerText`); !strings.Contains(text, "No cost per object found (6 figures tried): too few levels") || strings.Contains(text, "a fit needs 6") {
		t.Errorf("what is refused says %q", text)
	}
	if text := eval[string](p, `document.querySelector('#laws details').textContent`); !strings.Contains(text, "a fit needs 6") {
		t.Errorf("behind the fold it says %q", text)
	}
}

// The arrows go from measurement to measurement.
func lawsByKeyboard(p *tab, path string) {
	t := p.t
	p.look(1280, "light")
	p.openFile(path)
	stage := `document.querySelector('#law-chart-throughput .stage')`
	says := stage + `.getAttribute('aria-valuetext')`
	press := func(key string) {
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](stage+`.dispatchEvent(new KeyboardEvent('keydown', {key: '`+key+`', bubbles: true}))`)))
	}
	must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](stage+`.focus({focusVisible: true})`)))
	if first := eval[string](p, says); !strings.HasPrefix(first, "Step 1, 20 pods/s: ") {
		t.Errorf("the first measurement says %q", first)
	}
	press("End")
	if last := eval[string](p, says); !strings.HasPrefix(last, "Step 7, 320 pods/s: ") {
		t.Errorf("the last measurement says %q", last)
	}
	p.quiet("keyboard")
}
