package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// recorded is the plan of a run, as the run's directory keeps it.
func recorded(t testing.TB, w *workload.Workload, text string) *Plan {
	t.Helper()
	p := parsed(t, text)
	p.Default(w)
	if err := p.Validate(w); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	axis, err := w.Axis(p.Axis.Name)
	if err != nil {
		t.Fatal(err)
	}
	p.Seed, p.Pace = 18446744073709551615, Pace{Max: true}
	p.AsRun = &AsRun{
		ID: "0b1c2d3e", Kind: p.Kind, Command: "plimsoll limit node-density --slo 'all Ready' --set 'image=a: b' # c", Version: "0.1.0",
		Started: "2026-01-02T03:04:05Z", Unit: axis.Unit, Milestones: w.Target.Kind.Names(), Arrived: w.Target.Kind.There,
	}
	return p
}

// The copy that a run has left is read as what was run, and can be run again.
func TestAsRun(t *testing.T) {
	w := nodeDensity(t)
	for _, c := range []struct{ why, text string }{
		{"a limit", ""},
		{"a limit of a cluster, with its guards", "target: {labName: k}\nguards: {apiErrors: 5%, nodesNotReady: 1}\nparams: {image: \"\"}\naxis: {search: {from: 0.1, max: 1e6, confirm: 4/5}}\n"},
		{"a sweep", "axis: {levels: [5, 30.5, 10]}\nbudget: 90m\n"},
		{"a run of one level", "axis: {level: 60}\n"},
	} {
		p := recorded(t, w, head+c.text)
		data, err := p.Marshal()
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		copied, err := Parse("experiment.yaml", data)
		if err != nil {
			t.Errorf("%s: %v in\n%s", c.why, err, data)
			continue
		}
		if !reflect.DeepEqual(copied.normalised(), p.normalised()) {
			t.Errorf("%s: the copy says\n%+v\nwhere the run was\n%+v", c.why, copied.normalised(), p.normalised())
		}
		if got, want := copied.Design(), p.Design(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the copy's levels are chosen by %+v, the run's were by %+v", c.why, got, want)
		}
		got, err := copied.GoalsOf()
		want, wantErr := p.GoalsOf()
		if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the copy's goals are %+v, %v, the run's were %+v, %v", c.why, got, err, want, wantErr)
		}
		// Nothing was left open.
		copied.Default(w)
		if copied.Kind != p.Kind || !reflect.DeepEqual(copied.normalised(), p.normalised()) {
			t.Errorf("%s: defaults change the copy to\n%+v", c.why, copied.normalised())
		}
		if err := copied.Validate(w); err != nil {
			t.Errorf("%s: the copy is not valid: %v", c.why, err)
		}
		// Run again, it asks the same question.
		copied.AsRun, copied.Kind = nil, ""
		if copied.Default(w); copied.Kind != p.Kind {
			t.Errorf("%s: run again, the %s is a %s", c.why, p.Kind, copied.Kind)
		}
	}
}

// A copy is judged on reading: what works on it has no workload to validate it
// with.
func TestAsRunProblems(t *testing.T) {
	const whole = head + "axis:\n  search: {from: 1, step: 1, max: 9, resolution: 1, confirm: 1}\ngoals: {ready: [all Ready]}\n" +
		"asRun:\n  kind: limit\n  milestones: [Created, Ready]\n  arrived: Ready\n"
	p := parsed(t, strings.Replace(whole, "kind: limit", "kind: ab", 1))
	if p.Default(nodeDensity(t)); p.Kind != AB {
		t.Errorf("what was run as a comparison is a %s", p.Kind)
	}
	parsed(t, whole)
	for _, c := range []struct{ why, from, to, want string }{
		{"a kind misspelled", "kind: limit", "kind: limits", `f.yaml:7:9: asRun.kind: there is no kind of experiment "limits" (did you mean "limit"?)`},
		{"no kind", "  kind: limit\n", "", `f.yaml:6:1: asRun.kind: there is no kind of experiment "" (there is: limit, sweep, ab, run)`},
		{"a limit without a search", "  search: {from: 1, step: 1, max: 9, resolution: 1, confirm: 1}\n", "  level: 5\n", "f.yaml:3:1: axis.search: a limit needs a range to be searched in"},
		{"a sweep without levels", "kind: limit", "kind: sweep", "f.yaml:3:1: axis.levels: a sweep needs levels (for example levels: [50, 100])"},
		{"a run without a level", "kind: limit", "kind: run", "f.yaml:3:1: axis.level: a run of one level needs it"},
		{"a comparison of nothing", "  search: {from: 1, step: 1, max: 9, resolution: 1, confirm: 1}\ngoals: {ready: [all Ready]}\nasRun:\n  kind: limit", "  name: a\ngoals: {ready: [all Ready]}\nasRun:\n  kind: ab",
			"f.yaml:3:1: axis.level: a comparison needs a level, or levels, to be made at (for example level: 60)"},
		{"no resolution", "resolution: 1, ", "", "f.yaml:4:3: axis.search.resolution: is missing"},
		{"no confirmations", ", confirm: 1", "", "f.yaml:4:3: axis.search.confirm: the search does not say how often its load line is confirmed (for example confirm: 3)"},
		{"no goals", "goals: {ready: [all Ready]}\n", "", "f.yaml:1:1: goals: the run has no goal to be judged by (for example ready: [all Ready])"},
		{"an objective that is none", "[all Ready]", "[soon]", `f.yaml:5:17: goals.ready[0]: objective "soon" is not understood`},
		{"an objective of another workload", "[all Ready]", "[all Deleted]", `f.yaml:5:17: goals.ready[0]: objective "all Deleted": node-density has no milestone "Deleted"`},
		{"another arrival", "arrived: Ready", "arrived: Redy", `f.yaml:9:12: asRun.arrived: node-density has no milestone "Redy" (did you mean "Ready"?)`},
	} {
		text := strings.Replace(whole, c.from, c.to, 1)
		if text == whole {
			t.Fatalf("%s: %q is not there", c.why, c.from)
		}
		_, err := Parse("f.yaml", []byte(text))
		if problems := strictyaml.Problems(err); len(problems) != 1 || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.why, err, c.want)
		}
	}
}

// nasty are texts that YAML could take for something else, or lose.
func nasty() []string {
	return []string{
		"", "a", "yes", "1.10", "0x10", "1_000", "null", "~", "# x", "a # b", "a: b", ":", " lead", "trail ", "a\nb", "a\nb\n", "\n", "\n\na", "a\n\n", " a\nb", "a \nb ", "\ta\nb",
		"tab\tx", "tab\t", "é", "'", "\"", "a'b\"c", "{{ .x }}", "- a", "-", "*a", "&a", "!x", "%x", "@x", "`x", "|", ">", "? x", "[a", "a]", "a,b", "\\", "\\n", "a\r\nb", "\r", "\u0085", "\u2028",
		"\ufeff", "a\x00b", "\x7f", "\x1b[0m", "😀", "---", "...", "<<", "=", "2001-01-01", ".inf", "a\n---\nb", "# a\nb", "k: v\nb: c", "a.b[0]", "plimsoll limit x --set 'image=a: b' # c",
	}
}

// drawer makes plans that say anything that a plan can say.
type drawer struct {
	*rand.Rand
	texts []string
}

func (d drawer) text() string {
	if d.IntN(2) == 0 {
		return d.texts[d.IntN(len(d.texts))]
	}
	from := []rune("ab :#-'\"\n\t\\{}[],&*!|>%@?é0.")
	runes := make([]rune, d.IntN(6))
	for i := range runes {
		runes[i] = from[d.IntN(len(from))]
	}
	return string(runes)
}

func (d drawer) number() float64 {
	switch d.IntN(4) {
	case 0:
		return float64(1 + d.IntN(1000))
	case 1:
		return d.Float64() + 1e-3
	case 2:
		return math.Ldexp(1+d.Float64(), d.IntN(2000)-1000)
	}
	return []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, 1e21, 1e20, 1e-7, 1 << 53, 0.1}[d.IntN(7)]
}

func (d drawer) duration() Duration {
	return Duration(d.Int64N(int64(time.Hour)) / []int64{1, 1e3, 1e9, math.MaxInt64}[d.IntN(4)])
}

func (d drawer) params() Params {
	p := make(Params)
	for range d.IntN(4) {
		p[d.text()] = d.text()
	}
	return p
}

func (d drawer) goals() strictyaml.Ordered[[]string] {
	var goals strictyaml.Ordered[[]string]
	for i := range d.IntN(4) {
		objectives := make([]string, d.IntN(3))
		for k := range objectives {
			objectives[k] = d.text()
		}
		// No key stands twice in a file.
		goals = append(goals, strictyaml.Item[[]string]{Key: fmt.Sprint(d.text(), i), Value: objectives})
	}
	return goals
}

func (d drawer) plan() *Plan {
	p := &Plan{
		Schema: Schema, Name: d.text(), Workload: d.text() + "w", Params: d.params(),
		Repeat: []Repeat{{}, Times(-1), Times(1), Times(5), {4, 30}, {1, 2}}[d.IntN(6)], Until: []Until{"", UntilDecided, UntilNotWorse, "soon"}[d.IntN(4)], Fresh: []string{"", FreshObjects, "lab"}[d.IntN(3)], NormalEvents: d.IntN(2) == 1, Scrape: []Scrape{{}, {Never: true}, {Every: Duration(time.Second)}}[d.IntN(3)], MaxSeries: d.IntN(3) * d.IntN(1000), Seed: d.Uint64() >> d.IntN(65), Hold: d.duration(), StepTimeout: d.duration(), Budget: d.duration(), Goals: d.goals(),
	}
	if d.IntN(2) == 0 {
		p.Target = strictyaml.Raw{}.With("labName", strictyaml.Text(d.text())).With("context", strictyaml.Text(d.text()))
	}
	if d.IntN(2) == 0 {
		for path, value := range map[string]string{"nodes": fmt.Sprint(d.IntN(3)), "realNode": fmt.Sprint(d.IntN(2) == 0), "nodeCPUs": fmt.Sprint(d.number())} {
			p.Target = p.Target.With("lab."+path, strictyaml.Word(value))
		}
		p.Target = p.Target.With("lab.virt", strictyaml.Map(d.params()))
	}
	p.Axis.Name = d.text()
	if d.IntN(2) == 0 {
		s := Search{From: d.number(), Step: d.number(), Max: d.number(), Resolution: d.number()}
		if d.IntN(2) == 0 {
			s.Confirm.Need = 1 + d.IntN(5)
			s.Confirm.Of = s.Confirm.Need + d.IntN(3)
		}
		if d.IntN(4) == 0 {
			s = Search{}
		}
		p.Axis.Search = &s
	}
	for range d.IntN(4) {
		p.Axis.Levels = append(p.Axis.Levels, d.number())
	}
	if d.IntN(3) == 0 {
		level := d.number() * float64(d.IntN(3)-1)
		if level == 0 {
			level = 0 // without its sign
		}
		p.Axis.Level = &level
	}
	for range d.IntN(3) {
		p.Arms = append(p.Arms, Arm{d.text(), d.params()})
	}
	switch d.IntN(3) {
	case 0:
		p.Pace = Pace{Max: true}
	case 1:
		p.Pace = Pace{PerSecond: math.Max(d.number(), slowest)}
	}
	if d.IntN(2) == 0 {
		p.Guards = Guards{}
		for _, name := range []string{"apiErrors", "nodesNotReady", "pending"} {
			if d.IntN(2) == 0 {
				p.Guards[name] = Bound{d.number(), d.IntN(2) == 0}
			}
		}
	}
	if d.IntN(3) == 0 {
		p.Primary = &Primary{Metric: d.text(), Margin: d.text(), Alpha: float64(d.IntN(2)) * d.number()}
		for range d.IntN(3) {
			p.Primary.Further = append(p.Primary.Further, d.text())
		}
	}
	if d.IntN(3) == 0 {
		d.asRun(p)
	}
	return p
}

// asRun makes a plan one that was run: then it is judged on reading.
func (d drawer) asRun(p *Plan) {
	p.AsRun = &AsRun{ID: d.text(), Kind: AB, Command: d.text(), Version: d.text(), Started: d.text(), Unit: d.text(), Milestones: []string{d.text(), d.text()}}
	p.AsRun.Arrived = p.AsRun.Milestones[1]
	p.Axis = Axis{Levels: []float64{d.number()}}
	p.Goals = strictyaml.Ordered[[]string]{{Key: d.text() + "g", Value: []string{"errors < 1%", "achieved > 1%"}}}
}

// Whatever a plan says, its file says the same, and says it the same way again.
func TestMarshalComesBack(t *testing.T) {
	d := drawer{rand.New(rand.NewPCG(1, 2)), nasty()}
	for i := range 800 {
		p := d.plan()
		comesBack(t, fmt.Sprint("plan ", i), p)
		if t.Failed() {
			return
		}
	}
	for _, s := range nasty() {
		comesBack(t, fmt.Sprintf("the text %q", s), &Plan{Schema: Schema, Workload: "w" + s, Name: s, Params: Params{s: s}})
	}
}

func comesBack(t *testing.T, which string, p *Plan) {
	t.Helper()
	data, err := p.Marshal()
	if err != nil {
		t.Errorf("%s: %v: %+v", which, err, p)
		return
	}
	back, err := Parse("f.yaml", data)
	if err != nil {
		t.Errorf("%s: %v in\n%s", which, err, data)
		return
	}
	if !reflect.DeepEqual(back.normalised(), p.normalised()) {
		t.Errorf("%s: %+v comes back as %+v from\n%s", which, p.normalised(), back.normalised(), data)
	}
	again, err := back.Marshal()
	if err != nil || !slices.Equal(again, data) {
		t.Errorf("%s: written again, %v,\n%s\nis\n%s", which, err, data, again)
	}
}

// What can be written for people to read is.
func TestMarshalReadsWell(t *testing.T) {
	p := recorded(t, nodeDensity(t), head+"name: n\naxis: {levels: [5, 30]}\nguards: {apiErrors: 5%}\n")
	p.AsRun.Milestones = []string{"Ready"}
	p.Goals = p.Goals[:1]
	const want = `schema: plimsoll/experiment/v1
name: "n"
workload: node-density
target:
  lab:
    nodes: 10
    maxPods: 110
axis:
  name: pods-per-node
  levels:
  - 5.0
  - 30.0
repeat: 1
seed: 18446744073709551615
pace: max
hold: 10s
stepTimeout: 5m0s
goals:
  ready:
  - all Ready
guards:
  apiErrors: 5%
fresh: objects
scrape: 5s
asRun:
  id: 0b1c2d3e
  kind: sweep
  command: "plimsoll limit node-density --slo 'all Ready' --set 'image=a: b' # c"
  version: 0.1.0
  started: "2026-01-02T03:04:05Z"
  unit: pods/node
  milestones:
  - Ready
  arrived: Ready
`
	if got, err := p.Marshal(); err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

func TestMarshalRefuses(t *testing.T) {
	for _, c := range []struct {
		why  string
		plan Plan
		want string
	}{
		{"text that is not UTF-8", Plan{Schema: Schema, Workload: "w", Name: "\xff"}, "cannot be written: it holds text that is not UTF-8"},
		{"a plan without a schema", Plan{Workload: "w"}, `cannot be written: 1:12: schema: the schema is "", not "plimsoll/experiment/v1"`},
		{"a duration that no file can say", Plan{Schema: Schema, Workload: "w", Hold: -1}, `cannot be written: 1:`},
	} {
		if _, err := c.plan.Marshal(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.why, err, c.want)
		}
	}
}

// FuzzParse asks that no text makes Parse, Default or Validate panic, and that
// what is read can be written and comes back the same.
func FuzzParse(f *testing.F) {
	f.Add(fullExample)
	f.Add("")
	for _, text := range []string{
		"", "axis: {search: {from: 1e3, confirm: 4/5}}\n", "axis: {levels: [1, 2.5]}\n", "axis: {level: 0x10}\n", "pace: 20/s\nguards: {apiErrors: 2%, pending: }\n",
		"params: {a: \"? b\", \"c\\td\": }\nname: \"\\x00\"\n", "goals: {a: [], \"\": [b]}\n", "primary: {}\narms: [{name: }, ~]\n", "seed: 18446744073709551615\nbudget: 1h\n",
		"axis: {level: 1}\ngoals: {g: [all R]}\nasRun: {kind: run, milestones: [R], arrived: R}\n", "target: {lab: {nodes: -1}, context: &a b, labName: *a}\n", "name: |\n  a\n  b\n",
	} {
		f.Add(head + text)
	}
	w := nodeDensity(f)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse("f.yaml", []byte(text))
		if err != nil {
			if len(strictyaml.Problems(err)) == 0 {
				t.Errorf("%q: an error without problems: %v", text, err)
			}
			return
		}
		comesBack(t, fmt.Sprintf("%q", text), p)
		p.Default(w)
		if p.Validate(w) != nil {
			return
		}
		if next := p.Design().Next(nil, ""); next.Done {
			t.Errorf("%q: a valid plan makes no step: %+v", text, next.Outcome)
		}
	})
}
