package report

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// decades is a sweep over three decades, whose 99th percentile bends where both
// axes are logarithmic.
func decades() result.Result {
	r := lawful(1, 3, 10, 20, 30, 50, 100, 300, 1000)
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range r.Steps {
		l := r.Steps[i].Latency["Ready"]
		l.P99 = figure(math.Pow(max(r.Steps[i].Level, 30)/30, 1.7) * math.Exp(0.03*rng.NormFloat64()))
		r.Steps[i].Latency["Ready"] = l
	}
	r.Laws = findings.LawsOf(result.Spec{Axis: "pods-per-node", Unit: "pods/node", Kind: observe.Pods()}, r.Steps)
	return r
}

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
		"sweep": lawful(5, 10, 20, 30, 40, 50, 60), "rate": rated(), "few": lawful(10, 20, 40), "decades": decades(), "hostile": hostileRun,
	} {
		list[name] = filepath.Join(dir, name+"-"+record.ReportFile)
		must(t, os.WriteFile(list[name], []byte(pageIn(t, view.Input{Recorded: chart.Recorded{Result: r}})), 0o644))
	}
	return list
}

// Every law that there is has a chart with its curve, on a desk and on a phone,
// in light and in dark; what is refused has none and says why.
func everyLawIsDrawn(p *tab, pages map[string]string) {
	t := p.t
	want := map[string][]string{
		"sweep":   {"Ready p99", "kube-apiserver memory", "plimsoll memory"},
		"rate":    {"throughput"},
		"few":     {},
		"decades": {"Ready p99", "kube-apiserver memory", "plimsoll memory", "kube-apiserver CPU", "plimsoll CPU"},
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
			p.quiet(what)
		}
		marks := eval[[]int](p, `['.law-knee-mark', '.law-peak', '.law-limit'].map(s => document.querySelectorAll('#laws figure ' + s).length)`)
		wantMarks := map[string][]int{"sweep": {1, 0, 2}, "rate": {0, 1, 1}, "few": {0, 0, 0}}[name]
		if wantMarks != nil && !slices.Equal(marks, wantMarks) {
			t.Errorf("%s: %v knees, peaks and limits, want %v", name, marks, wantMarks)
		}
	}
	p.openFile(pages["few"])
	if text := eval[string](p, `document.querySelector('#laws').innerText`); !strings.Contains(text, "No law of 10 curves: too few levels") || strings.Contains(text, "a fit needs 6") {
		t.Errorf("what is refused says %q", text)
	}
	if text := eval[string](p, `document.querySelector('#laws details').textContent`); !strings.Contains(text, "a fit needs 6") {
		t.Errorf("behind the fold it says %q", text)
	}
}

// The arrows go from measurement to measurement, and then along the law, up to
// twice the highest level and no further.
func lawsByKeyboard(p *tab, path string) {
	t := p.t
	p.look(1280, "light")
	p.openFile(path)
	stage := `document.querySelector('#law-chart-0 .stage')`
	says := stage + `.getAttribute('aria-valuetext')`
	press := func(key string) {
		must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](stage+`.dispatchEvent(new KeyboardEvent('keydown', {key: '`+key+`', bubbles: true}))`)))
	}
	must(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](stage+`.focus({focusVisible: true})`)))
	if first := eval[string](p, says); !strings.HasPrefix(first, "Step 1, 20 pods/s: measured ") {
		t.Errorf("the first measurement says %q", first)
	}
	press("ArrowDown")
	press("End")
	if last := eval[string](p, says); !strings.HasPrefix(last, "640 pods/s, extrapolated: fit ") || !strings.Contains(last, "95 % ") {
		t.Errorf("the end of the law says %q", last)
	}
	p.quiet("keyboard")
}
