package report

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/page"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

// lot makes runs of arms that were never made, and compares them as those of a
// real comparison are.
type lot struct {
	rng  *rand.Rand
	runs []compare.Run
}

func newLot() *lot { return &lot{rng: rand.New(rand.NewPCG(11, 13))} }

// arm holds an arm's behaviour.
type arm struct {
	name    string
	slower  float64 // times the baseline's latency
	tail    float64 // how many times slower still its slowest twentieth is
	never   float64 // share of its objects that never be ready
	objects int     // 200 where it is 0
	parts   bool    // it has two components, of which one has two forms
	memory  float64 // MiB at the start
}

// run adds one run of an arm.
func (l *lot) run(a arm, level float64, block int, leftOut string) {
	if a.objects == 0 {
		a.objects = 200
	}
	noise := math.Exp(0.03 * l.rng.NormFloat64())
	var all, parts [2][]float64
	missing := 0
	for i := range a.objects {
		if l.rng.Float64() < a.never {
			missing++
			continue
		}
		started := 0.8 * noise * a.slower * math.Exp(0.3*l.rng.NormFloat64()) * (1 + level/100)
		part := 0
		if a.parts && i%2 == 1 {
			part = 1
			if i%4 == 1 {
				started *= 3 // those that find no room in a cache
			}
		}
		if i%20 == 0 && a.tail > 0 {
			started *= a.tail
		}
		started = math.Round(started*1e6) / 1e6
		ready := math.Round((started+0.01+0.2*l.rng.Float64())*1e6) / 1e6
		all[0], all[1] = append(all[0], started), append(all[1], ready)
		parts[part] = append(parts[part], ready)
	}
	r := compare.Run{Arm: a.name, Level: level, Block: block, Name: fmt.Sprintf("step %d (%s, block %d)", len(l.runs)+1, a.name, block), LeftOut: leftOut, Asked: a.objects, Missing: missing}
	value := func(x float64) *float64 {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return nil
		}
		return &x
	}
	for i, milestone := range []string{"ContainersStarted", "Ready"} {
		s := stats.NewSample(all[i], missing)
		r.Samples = append(r.Samples, compare.MilestoneSample{Milestone: milestone, Sample: s})
		for _, q := range []float64{0.5, 0.9, 0.99, 1} {
			name := milestone + " " + stats.QuantileName(q)
			if q == 1 {
				name = milestone + " max"
			}
			r.Figures = append(r.Figures, compare.Figure{Metric: name, Unit: "s", Kind: compare.KindLatency, Value: value(s.Quantile(q))})
		}
	}
	// On simulated nodes containers are ready when they have started.
	for _, f := range r.Figures[:4] {
		f.Metric = strings.Replace(f.Metric, "Started", "Ready", 1)
		r.Figures = append(r.Figures, f)
	}
	r.Samples = append(r.Samples, compare.MilestoneSample{Milestone: "ContainersReady", Sample: r.Samples[0].Sample})
	if a.parts {
		for i, component := range []string{"application", "database"} {
			r.Samples = append(r.Samples, compare.MilestoneSample{Milestone: "Ready", Component: component, Sample: stats.NewSample(parts[i], 0)})
		}
	}
	rate, cpu := 50/a.slower*noise, 12*noise
	start := a.memory * (1 << 20)
	most := start * 1.3 * noise
	growth := most - start
	r.Figures = append(r.Figures,
		compare.Figure{Metric: "request p50", Unit: "s", Kind: compare.KindRequest, Value: value(0.004 * noise)},
		compare.Figure{Metric: "achieved rate", Unit: "/s", Kind: compare.KindRate, LessIsWorse: true, Value: &rate},
		compare.Figure{Metric: "kube-apiserver CPU", Unit: "s", Kind: compare.KindCPU, Value: &cpu})
	if a.memory > 0 {
		r.Figures = append(r.Figures,
			compare.Figure{Metric: "kube-apiserver memory, most", Unit: "B", Kind: compare.KindMemory, Value: &most, Start: &start},
			compare.Figure{Metric: "kube-apiserver memory, growth", Unit: "B", Kind: compare.KindGrowth, Value: &growth, Start: &start})
		drift := start * (1 + 0.1*float64(block))
		r.Figures = append(r.Figures, compare.Figure{Metric: "etcd memory, most", Unit: "B", Kind: compare.KindMemory, Value: &most, Start: &drift})
	}
	l.runs = append(l.runs, r)
}

func spec(baseline string, arms ...string) compare.Spec {
	s := compare.Spec{Baseline: baseline, Arms: arms, Params: map[string]map[string]string{baseline: {"runtimeClass": baseline}}, Metric: "Ready p50", Margin: 0.05, Alpha: 0.05, Paired: true}
	for _, a := range arms {
		s.Params[a] = map[string]string{"runtimeClass": a, "image": "registry/" + a}
	}
	return s
}

// comparisons are comparisons of every kind.
func comparisons() map[string]compare.Comparison {
	list := make(map[string]compare.Comparison)
	blocks := func(s compare.Spec, levels []float64, n int, arms ...arm) compare.Comparison {
		l := newLot()
		for _, level := range levels {
			for block := 1; block <= n; block++ {
				for i, a := range arms {
					leftOut := ""
					if block == 4 && i == 1 && len(levels) > 1 {
						leftOut = "is invalid: plimsoll was the bottleneck"
					}
					l.run(a, level, block, leftOut)
				}
			}
		}
		return compare.Runs(s, l.runs)
	}
	list["worse"] = blocks(spec("runc", "crun"), []float64{60}, 5, arm{name: "runc", slower: 1, memory: 400}, arm{name: "crun", slower: 1.4, memory: 400})
	list["better"] = blocks(spec("runc", "crun"), []float64{60}, 5, arm{name: "runc", slower: 1}, arm{name: "crun", slower: 0.7})
	list["equivalent"] = blocks(spec("runc", "crun"), []float64{60}, 10, arm{name: "runc", slower: 1}, arm{name: "crun", slower: 1})
	list["two ways"] = blocks(spec("runc", "crun"), []float64{60}, 5, arm{name: "runc", slower: 1, tail: 1, parts: true}, arm{name: "crun", slower: 0.8, tail: 6, parts: true})
	list["grid"] = blocks(spec("runc", "crun", "youki"), []float64{20, 60, 100}, 5, arm{name: "runc", slower: 1, parts: true, memory: 400}, arm{name: "crun", slower: 0.8, parts: true, memory: 410}, arm{name: "youki", slower: 1.02, never: 0.08, memory: 405})
	list["never"] = blocks(spec("runc", "crun"), []float64{60}, 3, arm{name: "runc", slower: 1}, arm{name: "crun", slower: 1, never: 1})
	list["few objects"] = blocks(spec("runc", "crun"), []float64{60}, 3, arm{name: "runc", slower: 1, objects: 3}, arm{name: "crun", slower: 1, objects: 3})
	apart := func(n, m int, objects int) compare.Comparison {
		l := newLot()
		for i := range n {
			l.run(arm{name: "A", slower: 1, objects: objects}, 60, i+1, "")
		}
		for i := range m {
			l.run(arm{name: "B", slower: 1.06, objects: objects, never: 0.01}, 60, 100+i, "")
		}
		s := spec("A", "B")
		s.Paired, s.Params = false, nil
		return compare.Runs(s, l.runs)
	}
	list["apart"] = apart(4, 6, 2000)
	list["one run"] = apart(1, 1, 500)
	c := apart(3, 3, 300)
	c.ArmIs = []string{"runtime", "cgroup"}
	c.Differences = []compare.Difference{
		{What: "runtime", Baseline: "runc 1.1", Arm: "crun 1.8", Bearing: compare.BearingArm},
		{What: "cgroup", Baseline: "1", Arm: "2", Bearing: compare.BearingArm},
		{What: "version", Detail: "of the API server", Baseline: "v1.35.0", Arm: "v1.36.3", Bearing: compare.BearingRefuses},
		{What: "kernel", Arm: "6.1", Bearing: compare.BearingNoted},
	}
	c.Refused = "the version of the API server differs: v1.35.0 and v1.36.3; --arm-is version says that it is the arm"
	list["refused"] = c
	list["lines"] = compare.Comparison{
		Baseline: "A", Metric: "Ready p50", Margin: 0.05, Alpha: 0.05, Arms: map[string]map[string]string{"A": nil, "B": nil}, Levels: []compare.LevelComparison{},
		Lines: []compare.LineComparison{
			{
				Goal: "ready", Axis: "pods-per-node", Unit: "pods/node", Verdict: stats.Better, Why: "the load line of B is at least 9.5% higher, whatever the brackets leave open",
				Baseline: compare.Bracket{Level: figure(200), LowestFailing: figure(210), Verdict: "pass", Confirmations: "3 of 3", Binding: "Too many pods on 3 of 3 nodes"},
				Arm:      compare.Bracket{Level: figure(230), LowestFailing: figure(231), Verdict: "pass", Confirmations: "3 of 3", Binding: "no address left"},
				Change:   figure(0.15), Lo: figure(0.095), Hi: figure(0.155),
			},
			{
				Goal: "startup", Axis: "pods-per-node", Unit: "pods/node", Verdict: stats.Undecided, Why: "where B fails was unknown",
				Baseline: compare.Bracket{LowestFailing: figure(20), Verdict: "fail"}, Arm: compare.Bracket{Level: figure(250), Verdict: "pass", Confirmations: "3 of 3"}, Lo: figure(11.5),
			},
		},
	}
	list["nothing"] = compare.Runs(spec("A", "B"), nil)
	return list
}

// operands are two experiments that a comparison could be of.
func operands() []*recorded.Operand {
	r := result.Result{
		Experiment: "density", Workload: "node-density", Kind: "sweep", Command: "plimsoll sweep node-density --levels 60", Version: "v0.1.0", Verdict: slo.Pass, Why: "every level held",
		Fidelity: record.Fidelity{ControlPlane: record.Real, Nodes: record.Simulated, Containers: record.Simulated, Guests: record.None},
		Steps:    []result.Step{{Start: "2030-01-02T03:04:05.000000Z"}},
	}
	e := &record.Environment{
		Start: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Target: record.TargetNaming{Kind: "lab", Name: "private-1a2b3c4d"},
		Facts: facts(), Places: places(12, 110),
	}
	return []*recorded.Operand{{Name: "A", Path: "runs/a", Result: r, Environment: e}, {Name: "B", Path: "runs/b", Result: r}}
}

func comparisonInput(c compare.Comparison) view.ComparisonInput {
	verdict, why := c.Verdict()
	return view.ComparisonInput{Operands: operands(), Axis: "pods-per-node", Unit: "pods/node", Outcome: recorded.Outcome{
		Comparison: &c, Verdict: slo.Verdict(verdict), Why: why, Command: "plimsoll compare runs/a runs/b", Version: "v0.1.0", Warnings: record.Warnings{{Text: "runs/b was cut"}},
	}}
}

func comparisonPage(t testing.TB, in view.ComparisonInput) string {
	t.Helper()
	var out bytes.Buffer
	p, err := view.ComparedPage(in)
	if err == nil {
		err = page.Write(&out, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTextOfComparisons(t *testing.T) {
	for name, c := range comparisons() {
		var out bytes.Buffer
		if err := text.Write(&out, view.Compared(comparisonInput(c))); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, *update, "text-arms-"+strings.ReplaceAll(name, " ", "-")+".txt", out.Bytes())
		if bad := regexp.MustCompile(`%!|nil|NaN|Inf| \n`).FindString(out.String()); bad != "" {
			t.Errorf("%s: the text holds %q", name, bad)
		}
	}
}

// What people read of a comparison's page.
func TestPagesOfComparisons(t *testing.T) {
	says := map[string][]string{
		"worse":       {"crun is worse than runc", "the same: ContainersReady", "memory at the start of the runs differs", "decides"},
		"better":      {"crun is better than runc"},
		"equivalent":  {"crun is equivalent to runc"},
		"two ways":    {"slower at", "faster at", "more than one peak", "Ready of database"},
		"grid":        {"at 20 pods/node", "youki against runc at 100 pods/node", "Left out: step", "Never reached: "},
		"never":       {"never", "crun is worse than runc"},
		"few objects": {"too small for any quantile"},
		"apart":       {"Runs were not made side by side", "4 + 6"},
		"one run":     {"at least two runs"},
		"refused":     {"No verdict: these are not comparable", "A and B are not comparable", "prevents a verdict", "The arm, as stated: runtime, cgroup"},
		"lines":       {"200 pods/node, fails at 210", "at least 250 pods/node", "B against A is inconclusive", "bound by", "+15.0%", "at least +1150%"},
		"nothing":     {"inconclusive"},
	}
	for name, c := range comparisons() {
		page := comparisonPage(t, comparisonInput(c))
		read := page[:strings.Index(page, `<script type="application/json"`)]
		read = strings.ReplaceAll(html.UnescapeString(strings.Replace(read, pageStyle, "", 1)), "\u00a0", " ")
		for _, want := range append(says[name], "plimsoll sweep node-density --levels 60", "12 of 110 pods", "plimsoll compare runs/a runs/b", "Runs/b was cut") {
			if !strings.Contains(strings.ToLower(read), strings.ToLower(want)) {
				t.Errorf("%s: the page does not say %q", name, want)
			}
		}
		if bad := regexp.MustCompile(`%!|<nil>|NaN|\+Inf|0x[0-9a-f]{8}|\d\.\d{12}`).FindString(read); bad != "" {
			t.Errorf("%s: the page holds %q", name, bad)
		}
		for _, id := range []string{"levels", "progress", "environment"} {
			if strings.Contains(page, `id="`+id+`"`) {
				t.Errorf("%s: the page has the section %s of a run", name, id)
			}
		}
		if name == "two ways" {
			for _, part := range []string{pageScript, pageStyle, page[strings.Index(page, `id="run">`)+9 : strings.Index(page, `</script>`)]} {
				page = strings.Replace(page, part, "...", 1)
			}
			page = regexp.MustCompile(`sha256-[A-Za-z0-9+/=&#;]*&#39;`).ReplaceAllString(page, "sha256-...")
			golden.Check(t, *update, "compared.html", []byte(page))
		}
	}
}

func TestHostileNamesOfArmsStayText(t *testing.T) {
	c := comparisons()["two ways"]
	plain, _, _ := elements(t, comparisonPage(t, comparisonInput(c)))
	c.Baseline, c.Metric, c.Refused = hostile, hostile, hostile
	c.Arms = map[string]map[string]string{hostile: {hostile: hostile}}
	c.ArmIs = []string{hostile}
	c.Differences = []compare.Difference{{What: hostile, Detail: hostile, Baseline: hostile, Arm: hostile, Bearing: hostile}}
	c.Lines = []compare.LineComparison{{Goal: hostile, Axis: hostile, Unit: hostile, Verdict: hostile, Why: hostile, Baseline: compare.Bracket{Level: figure(1), Binding: hostile}}}
	l := &c.Levels[0]
	l.Arm, l.Verdict, l.Why, l.Excluded, l.Warnings = hostile, hostile, hostile, []string{hostile}, record.Warnings{{Text: hostile, Places: []string{hostile}}}
	l.Primary.Metric, l.Primary.Unit, l.Others[0].Metric, l.Others[0].Kind, l.Others[1].Note = hostile, hostile, hostile, hostile, hostile
	l.Series[0].Milestone, l.Series[0].Component = hostile, hostile
	in := comparisonInput(c)
	in.Axis, in.Unit, in.Command, in.Version, in.Warnings = hostile, hostile, hostile, hostile, record.Warnings{{Text: hostile, Places: []string{hostile}}}
	in.Operands[0].Name, in.Operands[0].Path, in.Operands[0].Result.Command, in.Operands[0].Result.Workload = hostile, hostile, hostile, hostile
	page := comparisonPage(t, in)
	names, attributes, scripts := elements(t, page)
	for _, name := range []string{"script", "style", "img", "iframe", "object", "meta", "link"} {
		if names[name] != plain[name] {
			t.Errorf("%d elements <%s>, want %d", names[name], name, plain[name])
		}
	}
	for _, a := range attributes {
		if strings.HasPrefix(strings.ToLower(a.Key), "on") || a.Key == "style" || strings.Contains(strings.ToLower(a.Val), "javascript:") {
			t.Errorf("attribute %s=%q", a.Key, a.Val)
		}
	}
	if len(scripts) != 2 || strings.Contains(scripts[0], "<") || !strings.Contains(page, "&lt;img src=x onerror=alert(1)&gt;") {
		t.Errorf("%d scripts, or the names are not told", len(scripts))
	}
}
