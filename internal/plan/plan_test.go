package plan

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
	"plimsoll.dev/plimsoll/workloads"
)

// head begins the files of the tables below: a case starts on line 3.
// targets holds the targets of the tests' workloads.
var targets = workload.TargetsOf(withSettings(observe.Declare()))

// own are settings of a target's own, as a plan reads, completes, judges and
// writes them.
type own struct {
	Lab  *shape `yaml:"lab" flag:"lab-"`
	Name string `yaml:"labName" flag:"lab"`
}

type shape struct {
	Nodes    int               `yaml:"nodes" flag:"nodes" default:"10" range:"0..100" unit:"number of nodes"`
	MaxPods  int               `yaml:"maxPods" flag:"max-pods" default:"110" range:"1.." unit:"number of pods"`
	RealNode bool              `yaml:"realNode" flag:"real-node"`
	Figures  map[string]string `yaml:"figures" flag:"figures"`
}

func (o *own) Complete(func(string) bool) {
	if o.Lab == nil && o.Name == "" {
		o.Lab = new(shape)
	}
}

func (o *own) Check(c *settings.Check) {
	if o.Lab != nil && o.Name != "" {
		c.Problem("", "keep one of "+c.Key("lab")+" and "+c.Key("labName"), "more than one target is named")
	}
}

func (o *own) System() string { return "a lab" }

func (o *own) Named() []string {
	if o.Name == "" {
		return nil
	}
	return []string{"--lab", o.Name}
}

func withSettings(t workload.Target) workload.Target {
	t.Settings = func() settings.Own { return new(own) }
	return t
}

// raw returns the value of target: in a plan.
func raw(t testing.TB, text string) strictyaml.Raw {
	t.Helper()
	var r strictyaml.Raw
	if _, err := strictyaml.Decode("", []byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

const head = "schema: plimsoll/experiment/v1\nworkload: node-density\n"

func nodeDensity(t testing.TB) *workload.Workload {
	t.Helper()
	w, err := workload.Load(workloads.FS(), "node-density", targets)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func parsed(t testing.TB, text string) *Plan {
	t.Helper()
	p, err := Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	return p
}

func TestParse(t *testing.T) {
	level := 60.0
	base := func(change func(*Plan)) Plan {
		p := Plan{Schema: Schema, Workload: "node-density"}
		change(&p)
		return p
	}
	for _, c := range []struct {
		why, text string
		want      Plan
	}{
		{"nothing but what is needed", "", base(func(*Plan) {})},
		{"keys without a value say nothing", "name:\naxis: {search: ~}\nprimary:\nguards: {pending: }\nparams: {image: }\nhold: null\n", base(func(*Plan) {})},
		{"an empty text is a value", "params: {image: \"\"}\n", base(func(p *Plan) { p.Params = Params{"image": ""} })},
		{"parameters are kept as they are written", "params: {a: 1.10, b: yes, c: 0x10, d: \"5\"}\n",
			base(func(p *Plan) { p.Params = Params{"a": "1.10", "b": "yes", "c": "0x10", "d": "5"} })},
		{"what a target is, as it is written", "target: {lab: {size: 1.10, real: yes}}\n", base(func(p *Plan) { p.Target = raw(t, "lab: {real: yes, size: 1.1}") })},
		{"a target of the usual shape", "target: {lab: {}}\n", base(func(p *Plan) { p.Target = raw(t, "lab: {}") })},
		{"a target of which nothing is said", "target: {}\n", base(func(*Plan) {})},
		{"an object's life", "axis: {life: 5s}\n", base(func(p *Plan) { p.Axis.Life = Duration(5 * time.Second) })},
		{"a search", "axis: {name: a, search: {from: 1, step: 0.5, max: 1e3, resolution: 0.25, confirm: 3}}\n",
			base(func(p *Plan) { p.Axis = Axis{Name: "a", Search: &Search{1, 0.5, 1000, 0.25, Confirm{3, 3}}} })},
		{"one confirmation of several may fail", "axis: {search: {confirm: 4/5}}\n",
			base(func(p *Plan) { p.Axis.Search = &Search{Confirm: Confirm{4, 5}} })},
		{"confirmations with spaces", "axis: {search: {confirm: \" 4 / 5 \"}}\n",
			base(func(p *Plan) { p.Axis.Search = &Search{Confirm: Confirm{4, 5}} })},
		{"levels", "axis: {levels: [5, 30, 10]}\n", base(func(p *Plan) { p.Axis.Levels = []float64{5, 30, 10} })},
		{"one level", "axis: {level: 60}\n", base(func(p *Plan) { p.Axis.Level = &level })},
		{"arms, in their order", "arms: [{name: b, params: {x: 1}}, {name: a}]\n",
			base(func(p *Plan) { p.Arms = []Arm{{"b", Params{"x": "1"}}, {Name: "a"}} })},
		{"goals, in their order: the first is the headline", "goals: {z: [all Ready], a: [errors < 1%, all Created]}\n",
			base(func(p *Plan) {
				p.Goals = strictyaml.Ordered[[]string]{{Key: "z", Value: []string{"all Ready"}}, {Key: "a", Value: []string{"errors < 1%", "all Created"}}}
			})},
		{"the largest seed", "seed: 18446744073709551615\n", base(func(p *Plan) { p.Seed = math.MaxUint64 })},
		{"no bound on the pace", "pace: max\n", base(func(p *Plan) { p.Pace = Pace{Max: true} })},
		{"a pace", "pace: 2.5\n", base(func(p *Plan) { p.Pace = Pace{PerSecond: 2.5} })},
		{"a pace with its unit", "pace: 20/s\n", base(func(p *Plan) { p.Pace = Pace{PerSecond: 20} })},
		{"durations", "hold: 1m30s\nstepTimeout: 500ms\nbudget: 1h\n",
			base(func(p *Plan) {
				p.Hold, p.StepTimeout, p.Budget = Duration(90*time.Second), Duration(500*time.Millisecond), Duration(time.Hour)
			})},
		{"a duration of nothing needs no unit", "hold: 0\n", base(func(*Plan) {})},
		{"guards", "guards: {nodesNotReady: 1, apiErrors: 5%, pending: 30}\n",
			base(func(p *Plan) {
				p.Guards = Guards{"nodesNotReady": {Value: 1}, "apiErrors": {Value: 5, Percent: true}, "pending": {Value: 30}}
			})},
		{"a percentage without its sign", "guards: {apiErrors: 0.5}\n", base(func(p *Plan) { p.Guards = Guards{"apiErrors": {Value: 0.5}} })},
		{"a percentage with a space", "guards: {apiErrors: 2%}\n", base(func(p *Plan) { p.Guards = Guards{"apiErrors": {Value: 2, Percent: true}} })},
		{"no guards at all are the target's own", "guards: {}\n", base(func(*Plan) {})},
		{"a metric that decides", "primary: {metric: Ready p50, margin: 5%, alpha: 0.01}\n",
			base(func(p *Plan) { p.Primary = &Primary{Metric: "Ready p50", Margin: "5%", Alpha: 0.01} })},
		{"several that decide", "primary: {metric: Ready p50, further: [Ready p99]}\n",
			base(func(p *Plan) { p.Primary = &Primary{Metric: "Ready p50", Further: []string{"Ready p99"}} })},
	} {
		p := parsed(t, head+c.text)
		if got := p.normalised(); !reflect.DeepEqual(got, c.want.normalised()) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.why, got, c.want)
		}
	}
}

// Every mistake comes with its place, the value found, the values allowed and,
// where there is one, the key that was meant.
func TestParseProblems(t *testing.T) {
	for _, c := range []struct{ why, text, want string }{
		{"nothing", "", "f.yaml: the file is empty"},
		{"no YAML", head + "name: [\n", "f.yaml:3:7: not valid YAML: sequence end token ']' not found"},
		{"two documents", head + "---\nname: b\n", "f.yaml:4:1: the file holds 2 documents, one is wanted (remove what follows the line ---)"},
		{"no mapping", "- a\n", "f.yaml:1:1: wants a mapping, found a list"},
		{"no schema", "# comment\nworkload: a\n", "f.yaml:2:1: the file has no schema (begin it with: schema: plimsoll/experiment/v1)"},
		{"another schema", "schema: plimsoll/workload/v1\nworkload: a\n", `f.yaml:1:9: schema: the schema is "plimsoll/workload/v1", not "plimsoll/experiment/v1"`},
		{"a later schema", "workload: a\nschema: plimsoll/experiment/v2\n", `f.yaml:2:9: schema: the schema is "plimsoll/experiment/v2", not "plimsoll/experiment/v1" (it needs a later version of plimsoll)`},
		{"a later schema with other keys, as it was run", "schema: plimsoll/experiment/v12\nfurther: 1\nasRun:\n  id: a\n  version: 0.9.1\n", `f.yaml:1:9: schema: the schema is "plimsoll/experiment/v12", not "plimsoll/experiment/v1" (it needs plimsoll 0.9.1, which ran it)`},
		{"no workload", "schema: plimsoll/experiment/v1\n", "f.yaml:1:1: workload: the experiment names no workload (for example workload: node-density)"},
		{"a workload without a name", "schema: plimsoll/experiment/v1\nworkload: \"\"\n", "f.yaml:2:11: workload: the experiment names no workload (for example workload: node-density)"},
		{"a key twice", head + "workload: b\n", `f.yaml:3:1: the key "workload" stands here a second time, first on line 2`},
		{"a goal twice", head + "goals:\n  a: [b]\n  a: [c]\n", `f.yaml:5:3: the key "a" stands here a second time, first on line 4`},

		{"a key misspelled", head + "axsi: {}\n", `f.yaml:3:1: unknown key "axsi" (did you mean "axis"?)`},
		{"a key in the wrong case", head + "steptimeout: 5m\n", `f.yaml:3:1: unknown key "steptimeout" (did you mean "stepTimeout"?)`},
		{"a key that is like none", head + "colour: red\n", `f.yaml:3:1: unknown key "colour" (allowed: schema, name, workload, params, target, axis, arms, vary, repeat, until, seed, pace, hold, holdMax, stepTimeout, budget, goals, require, primary, guards, guardQueries, fresh, normalEvents, scrape, maxSeries, prometheus, published, signatures, asRun)`},
		{"a key of a search misspelled", head + "axis:\n  search:\n    frm: 5\n", `f.yaml:5:5: axis.search: unknown key "frm" (did you mean "from"?)`},
		{"a key of an arm misspelled", head + "arms:\n- name: a\n- nme: b\n", `f.yaml:5:3: arms[1]: unknown key "nme" (did you mean "name"?)`},
		{"a key of the primary metric misspelled", head + "primary: {metrics: Ready p50}\n", `f.yaml:3:11: primary: unknown key "metrics" (did you mean "metric"?)`},

		{"a number for a mapping", head + "axis: 5\n", "f.yaml:3:7: axis: wants a mapping, found the number 5"},
		{"a number for a list", head + "axis: {levels: 5}\n", "f.yaml:3:16: axis.levels: wants a list, found the number 5"},
		{"a list for a text", head + "name: [a]\n", "f.yaml:3:7: name: wants text, found a list"},
		{"a word for a number", head + "axis: {level: ten}\n", `f.yaml:3:15: axis.level: wants a number, found the text "ten"`},
		{"a number in quotes", head + "axis: {level: \"10\"}\n", `f.yaml:3:15: axis.level: wants a number, found the text "10" (remove the quotes)`},
		{"an infinite level", head + "axis: {search: {from: .inf}}\n", "f.yaml:3:23: axis.search.from: wants a number, found the number .inf"},
		{"half a repetition", head + "repeat: 1.5\n", `f.yaml:3:9: repeat: "1.5" is not a number of repetitions: want N, or a range such as 4..30`},
		{"more repetitions than any memory holds", head + "repeat: 2000000000\n", "f.yaml:3:9: repeat: levels, arms and repetitions come to more than 10000 runs (repeat less, or split it)"},
		{"more confirmations than that", head + "axis: {search: {confirm: 1/2000000000}}\n", `f.yaml:3:26: axis.search.confirm: "1/2000000000" is not a number of confirmations: want N, or N/M with 1 <= N <= M <= 10000`},
		{"more combinations than that", head + "vary: {a: [1, 2, 3, 4, 5, 6, 7, 8, 9], b: [1, 2, 3, 4, 5, 6, 7, 8, 9], c: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n", "f.yaml:3:1: vary: there are more than 500 combinations (vary less at once)"},
		{"a range that ends before it begins", head + "repeat: 30..4\n", `f.yaml:3:9: repeat: "30..4" is not a number of repetitions: want N, or a range such as 4..30`},
		{"a negative seed", head + "seed: -1\n", "f.yaml:3:7: seed: wants a whole number that is not negative, found the number -1"},
		{"goals as a list", head + "goals: [all Ready]\n", "f.yaml:3:8: goals: wants a mapping, found a list"},
		{"a goal's objective not in a list", head + "goals: {ready: all Ready}\n", `f.yaml:3:16: goals.ready: wants a list, found the text "all Ready"`},
		{"a parameter that is a list", head + "params: {image: [a]}\n", "f.yaml:3:17: params.image: wants text, found a list"},
		{"guards as a number", head + "guards: 5\n", "f.yaml:3:9: guards: wants a mapping, found the number 5"},

		{"a duration without its unit", head + "hold: 10\n", `f.yaml:3:7: hold: "10" is not a duration: want one such as 10s or 5m`},
		{"a word for a duration", head + "budget: long\n", `f.yaml:3:9: budget: "long" is not a duration: want one such as 10s or 5m`},
		{"a negative duration", head + "stepTimeout: -1s\n", `f.yaml:3:14: stepTimeout: "-1s" is negative`},
		{"a list for a duration", head + "hold: [1s]\n", "f.yaml:3:7: hold: wants a single value, found a list"},
		{"a word for a pace", head + "pace: fast\n", `f.yaml:3:7: pace: "fast" is not a pace: want requests per second, at least 0.001, or max`},
		{"no pace", head + "pace: 0\n", `f.yaml:3:7: pace: "0" is not a pace: want requests per second, at least 0.001, or max`},
		{"a pace that is no number", head + "pace: NaN\n", `f.yaml:3:7: pace: "NaN" is not a pace: want requests per second, at least 0.001, or max`},
		{"an infinite pace: that is max", head + "pace: Inf\n", `f.yaml:3:7: pace: "Inf" is not a pace: want requests per second, at least 0.001, or max`},
		{"more confirmations than steps", head + "axis: {search: {confirm: 3/2}}\n", `f.yaml:3:26: axis.search.confirm: "3/2" is not a number of confirmations: want N, or N/M with 1 <= N <= M <= 10000`},
		{"no confirmation", head + "axis: {search: {confirm: 0}}\n", `f.yaml:3:26: axis.search.confirm: "0" is not a number of confirmations: want N, or N/M with 1 <= N <= M <= 10000`},
		{"half a fraction", head + "axis: {search: {confirm: 3/}}\n", `f.yaml:3:26: axis.search.confirm: "3/" is not a number of confirmations: want N, or N/M with 1 <= N <= M <= 10000`},
		{"a guard without a bound", head + "guards: {pending: 0}\n", `f.yaml:3:19: guards.pending: "0" is not a bound: want a number above 0, or a percentage`},
		{"a word for a bound", head + "guards: {apiErrors: few}\n", `f.yaml:3:21: guards.apiErrors: "few" is not a bound: want a number above 0, or a percentage`},
		{"two mistakes, by their lines", head + "guards:\n  pending: y\n  apiErrors: x\nhold: z\n",
			"f.yaml:4:12: guards.pending: \"y\" is not a bound: want a number above 0, or a percentage\n" +
				"f.yaml:5:14: guards.apiErrors: \"x\" is not a bound: want a number above 0, or a percentage\n" +
				"f.yaml:6:7: hold: \"z\" is not a duration: want one such as 10s or 5m"},
	} {
		_, err := Parse("f.yaml", []byte(c.text))
		if len(strictyaml.Problems(err)) == 0 || err.Error() != c.want {
			t.Errorf("%s: %q\n got %v\nwant %s", c.why, c.text, err, c.want)
		}
	}
}

func TestLoad(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte(head+"hold: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.HasPrefix(err.Error(), file+":3:7: hold: ") {
		t.Errorf("a mistake is told without the file's name: %v", err)
	}
}

func TestGuardsKeepTheirUnits(t *testing.T) {
	if p := parsed(t, head+"guards: {pending: 3, apiErrors: 5%}\n"); !maps.Equal(p.Guards, Guards{"pending": {Value: 3}, "apiErrors": {Value: 5, Percent: true}}) {
		t.Errorf("read as %v", p.Guards)
	}
	// A target's own guards replace nil.
	for _, none := range []string{"guards: {}\n", "guards:\n", "guards: {pending: }\n"} {
		if p := parsed(t, head+none); p.Guards != nil {
			t.Errorf("%q is read as %#v", none, p.Guards)
		}
	}
}

// A flag's guard is read by the same rule as a file's.
func TestGuardsAreSetAsTheyAreRead(t *testing.T) {
	w := nodeDensity(t)
	for _, c := range []struct{ name, text, want string }{
		{"nodesNotReady", "5%", "this guard counts"},
		{"pending", "10%", "this guard counts"},
		{"pending", "0", "want a number above 0"},
		{"apiErrors", "none", "or a percentage"},
		{"nodesNotReady", "2", ""},
		{"apiErrors", "5%", ""},
		{"apiErrors", "5", "has no unit"},
		{"apiErrors", "0.05", "has no unit"},
		{"apiErrors", "101%", "at most 100%"},
		{"nodsNotReady", "5%", `did you mean "nodesNotReady"?`},
	} {
		var set Guards
		err := set.Set(c.name, c.text)
		read, parseErr := Parse("f.yaml", []byte(head+"guards: {"+c.name+": "+c.text+"}\n"))
		if (parseErr == nil) != (err == nil) || err == nil && !maps.Equal(read.Guards, set) {
			t.Errorf("%s=%s is set to %v (%v), and read from a file: %v", c.name, c.text, set, err, parseErr)
		}
		if err == nil {
			read.Default(w)
			err = read.Validate(w)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s=%s: %v, guards %v", c.name, c.text, err, set)
		}
	}
}

func TestDefault(t *testing.T) {
	w := nodeDensity(t)
	want := func(change func(*Plan)) Plan {
		p := Plan{
			Schema: Schema, Name: "node-density", Workload: "node-density", Kind: Limit, Scrape: Scrape{Every: Duration(DefaultScrape)},
			Target:      raw(t, "lab: {nodes: 10, maxPods: 110}"),
			Axis:        Axis{Name: "pods-per-node", Search: &Search{From: 50, Step: 50, Max: 500, Resolution: 1, Confirm: Confirm{3, 3}}},
			StepTimeout: Duration(5 * time.Minute), Hold: Duration(10 * time.Second), Repeat: Times(1), Fresh: FreshObjects, Goals: w.Goals,
		}
		change(&p)
		return p
	}
	search := func(change func(*Search)) func(*Plan) { return func(p *Plan) { change(p.Axis.Search) } }
	level := 60.0
	for _, c := range []struct {
		why, text string
		want      Plan
	}{
		{"nothing is said", "", want(func(*Plan) {})},
		{"what is said stays", "name: n\nhold: 1s\nstepTimeout: 2s\ngoals: {a: [all Created]}\naxis: {search: {confirm: 1/2}}\n", want(func(p *Plan) {
			p.Name, p.Hold, p.StepTimeout, p.Axis.Search.Confirm = "n", Duration(time.Second), Duration(2*time.Second), Confirm{1, 2}
			p.Goals = strictyaml.Ordered[[]string]{{Key: "a", Value: []string{"all Created"}}}
		})},
		{"levels are no search", "axis: {levels: [1]}\n", want(func(p *Plan) { p.Kind, p.Axis.Search, p.Axis.Levels = Sweep, nil, []float64{1} })},
		{"one level is no search", "axis: {level: 60}\n", want(func(p *Plan) { p.Kind, p.Axis.Search, p.Axis.Level = Run, nil, &level })},
		{"arms without a level are run where a search begins", "arms: [{name: a}]\n", want(func(p *Plan) {
			start := 50.0
			p.Kind, p.Axis.Search, p.Axis.Level, p.Arms, p.Repeat, p.Until, p.Primary = AB, nil, &start, []Arm{{Name: "a"}}, Repeat{4, 30}, UntilDecided, &Primary{Metric: "ContainersStarted p50", Margin: "5%", Alpha: 0.05}
		})},
		{"arms may be searched, and the search is filled in", "arms: [{name: a}]\naxis: {search: {from: 20}}\n", want(func(p *Plan) {
			p.Kind, p.Arms, p.Axis.Search.From, p.Repeat, p.Until, p.Primary = AB, []Arm{{Name: "a"}}, 20, Repeat{4, 30}, UntilDecided, &Primary{Metric: "ContainersStarted p50", Margin: "5%", Alpha: 0.05}
		})},
		{"the axis that is named has its own range", "axis: {name: rate}\n", want(func(p *Plan) {
			p.Axis.Name, p.Axis.Life, p.Hold = "rate", Duration(30*time.Second), Duration(time.Minute)
			*p.Axis.Search = Search{From: 20, Step: 20, Max: 1000, Resolution: 5, Confirm: Confirm{3, 3}}
			p.Goals = strictyaml.Ordered[[]string]{{Key: "startup", Value: []string{"ContainersStarted p99 <= 5s", "achieved >= 95%"}}}
		})},
		{"an axis that is not there fills in nothing", "axis: {name: none}\n", want(func(p *Plan) { p.Axis = Axis{Name: "none"} })},
		{"an end below the default start", "axis: {search: {max: 20}}\n", want(search(func(s *Search) { s.From, s.Max = 20, 20 }))},
		{"a start above the default end", "axis: {search: {from: 900}}\n", want(search(func(s *Search) { s.From, s.Max = 900, 900 }))},
		{"a resolution above the default step", "axis: {search: {resolution: 80}}\n", want(search(func(s *Search) { s.Step, s.Resolution = 80, 80 }))},
		{"the rest of a target", "target: {lab: {figures: {a: 1}}}\n", want(func(p *Plan) { p.Target = raw(t, "lab: {nodes: 10, maxPods: 110, figures: {a: \"1\"}}") })},
		{"another target", "target: {labName: 7}\n", want(func(p *Plan) { p.Target = raw(t, "labName: \"7\"") })},
		{"a target that cannot be read is left to be judged", "target: {labs: 7}\n", want(func(p *Plan) { p.Target = raw(t, "labs: 7") })},
		{"a zero that is said is not filled in", "repeat: 0\nstepTimeout: 0s\ntarget: {lab: {nodes: 0, maxPods: 0}}\naxis: {search: {from: 0, step: 0, max: 0, resolution: 0}}\n",
			want(func(p *Plan) {
				p.Repeat, p.StepTimeout, p.Target, p.Axis.Search = Repeat{}, 0, raw(t, "lab: {nodes: 0, maxPods: 0}"), &Search{Confirm: Confirm{3, 3}}
			})},
		{"a hold of nothing is the workload's own", "hold: 0s\n", want(func(*Plan) {})},
		{"pace, seed, budget and guards are the target's or the run's to choose", "seed: 0\nbudget: 0s\n", want(func(*Plan) {})},
	} {
		p := parsed(t, head+c.text)
		p.Default(w)
		got, kind := p.normalised(), p.Kind
		got.Kind = kind
		wanted := c.want.normalised()
		if wanted.Kind = c.want.Kind; !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s:\n got %+v %+v\nwant %+v %+v", c.why, got, got.Axis.Search, c.want, c.want.Axis.Search)
		}
		p.Default(w)
		if again := p.normalised(); p.Kind != kind || !reflect.DeepEqual(again, c.want.normalised()) {
			t.Errorf("%s: filled in a second time, it is %+v", c.why, again)
		}
	}
	p := &Plan{Schema: Schema, Workload: "node-density", Kind: Sweep}
	if p.Default(w); p.Kind != Sweep || p.Axis.Search != nil {
		t.Errorf("the kind that the command gave became %s, %+v", p.Kind, p.Axis)
	}
	before := slices.Clone(w.Goals)
	if p.Goals[0].Key = "mine"; !reflect.DeepEqual(w.Goals, before) {
		t.Error("the plan shares its goals with the workload")
	}
}

// ok is the problem that valid plans have.
const ok = "<nil>"

func TestValidate(t *testing.T) {
	w := nodeDensity(t)
	grammar := " (" + slo.Grammar + ")"
	for _, c := range []struct{ why, text, want string }{
		{"nothing is said", "", ok},
		{"everything that a limit can say", "name: n\nparams: {image: a}\ntarget: {lab: {nodes: 1, figures: {a: b}}}\naxis: {name: pods-per-node, search: {from: 1, step: 1, max: 1, resolution: 1, confirm: 1/9}}\n" +
			"repeat: 1\nseed: 1\npace: max\nhold: 1s\nstepTimeout: 1s\nbudget: 1s\ngoals: {a: [all Ready within 5s, errors <= 1%, achieved >= 99%, Created p99.9 < 5s]}\nguards: {apiErrors: 100%, nodesNotReady: 0.5}\n", ok},

		{"an axis misspelled", "axis: {name: pods-per-nod}\n", `f.yaml:3:14: axis.name: there is no axis of node-density "pods-per-nod" (did you mean "pods-per-node"?)`},
		{"an axis that is like none", "axis: {name: colour}\n", `f.yaml:3:14: axis.name: there is no axis of node-density "colour" (there is: pods-per-node, rate)`},
		{"an axis whose pods stay", "axis: {life: 10s}\n", "f.yaml:3:14: axis.life: the axis pods-per-node removes nothing as it ages (leave it out)"},
		{"a search and levels", "axis: {search: {}, levels: [1]}\n", "f.yaml:3:1: axis: the axis has both a search and given levels (keep one of search, levels and level)"},
		{"levels and a level", "axis: {level: 1, levels: [1]}\n", "f.yaml:3:1: axis: the axis has both a search and given levels (keep one of search, levels and level)"},
		{"a level of nothing", "axis: {level: 0}\n", "f.yaml:3:15: axis.level: 0 is not a level: want a number above 0"},
		{"a negative level among others", "axis:\n  levels:\n  - 5\n  - -1\n", "f.yaml:6:5: axis.levels[1]: -1 is not a level: want a number above 0"},
		{"the same level twice is a repetition", "axis: {levels: [5, 5]}\n", ok},

		{"a search that begins at nothing", "axis: {search: {from: 0}}\n", "f.yaml:3:23: axis.search.from: 0 is not a level: want a number above 0"},
		{"a search that goes backwards", "axis: {search: {step: -5}}\n", "f.yaml:3:23: axis.search.step: -5 is not a level: want a number above 0"},
		{"a search that ends at nothing", "axis: {search: {max: 0}}\n", "f.yaml:3:22: axis.search.max: 0 is not a level: want a number above 0"},
		{"no resolution", "axis: {search: {resolution: 0}}\n", "f.yaml:3:29: axis.search.resolution: 0 is not a level: want a number above 0"},
		{"a search that ends before it begins", "axis: {search: {from: 5, max: 3}}\n", "f.yaml:3:31: axis.search.max: max 3 is below from 5"},
		{"steps finer than the answer", "axis: {search: {step: 0.5}}\n", "f.yaml:3:23: axis.search.step: step 0.5 is below the resolution 1"},
		{"an answer finer than numbers are", "axis: {search: {resolution: 1e-9}}\n", "f.yaml:3:29: axis.search.resolution: the resolution 1e-09 leaves more levels between 50 and 500 than can be told apart"},

		{"no objective", "goals: {ready: []}\n", "f.yaml:3:9: goals.ready: the goal has no objective" + grammar},
		{"a goal without a name", "goals: {\"\": [all Ready]}\n", `f.yaml:3:9: goals[""]: the goal has no name (for example ready)`},
		{"an objective that is none", "goals:\n  ready:\n  - all Ready\n  - soon\n", `f.yaml:6:5: goals.ready[1]: objective "soon" is not understood: want ` + slo.Grammar},
		{"no unit", "goals: {a: [Ready p99 < 5]}\n", `f.yaml:3:13: goals.a[0]: objective "Ready p99 < 5": "5" is not a duration such as 500ms or 5s`},
		{"the maximum is no quantile", "goals: {a: [Ready p100 < 5s]}\n", `f.yaml:3:13: goals.a[0]: objective "Ready p100 < 5s": p100 is not a quantile: want more than p0 and less than p100, or max`},
		{"a milestone misspelled", "goals: {a: [Redy p99 < 5s]}\n", `f.yaml:3:13: goals.a[0]: objective "Redy p99 < 5s": node-density has no milestone "Redy" (did you mean "Ready"?)`},
		{"a milestone in the wrong case", "goals: {a: [all ready]}\n", `f.yaml:3:13: goals.a[0]: objective "all ready": node-density has no milestone "ready" (did you mean "Ready"?)`},
		{"a query with a mistake", "goals: {a: [\"query 'rate(x)' > 1\"]}\n", `f.yaml:3:13: goals.a[0]: objective: query "rate(x)", column 6: expected type range vector in call to function "rate", got instant vector`},
		{"a guard on a query with a mistake", "guardQueries: [\"query 'x'\"]\n", `f.yaml:3:16: guardQueries[0]: "query 'x'" is not understood: want query 'PROMQL' OP VALUE, where OP is <, <=, > or >= (for example query 'max(process_resident_memory_bytes)' < 4e9)`},
		{"a guard on a hold", "guardQueries: [\"query 'rate(x[hold])' < 1\"]\n", `f.yaml:3:16: guardQueries[0]: objective: query "rate(x[hold])": a guard has no [hold]: it is asked while the load is raised, too; want [step] or a range such as [30s] (for example query 'max(process_resident_memory_bytes)' < 4e9)`},

		{"a guard misspelled", "guards:\n  apiErrors: 5%\n  nodsNotReady: 2\n", `f.yaml:5:17: guards.nodsNotReady: there is no guard "nodsNotReady" (did you mean "nodesNotReady"?)`},
		{"a guard that is like none", "guards: {memory: 2}\n", `f.yaml:3:18: guards.memory: there is no guard "memory" (there is: apiErrors, nodesNotReady, pending)`},
		{"a percentage of what is counted, at its own line", "guards:\n  apiErrors: 5%\n  nodesNotReady: 5%\n", "f.yaml:5:18: guards.nodesNotReady: 5% is not a bound: this guard counts, want a number above 0 (leave out the percent sign)"},
		{"more errors than requests", "guards: {apiErrors: 150%}\n", "f.yaml:3:21: guards.apiErrors: at most 100% of the requests can fail, not 150%"},
		{"many nodes are no percentage", "guards: {nodesNotReady: 150}\n", ok},

		{"no time to arrive in", "stepTimeout: 0s\n", "f.yaml:3:14: stepTimeout: must be above 0, is 0s"},
		{"two targets", "target: {labName: a, lab: {}}\n", "f.yaml:3:1: target: more than one target is named (keep one of lab and labName)"},
		{"a named lab", "target: {labName: l}\n", ok},
		{"figures of others", "published: [{what: a, metric: load line, value: 2500, source: s}, {what: b, value: 183s, source: s}]\n", ok},
		{"a figure without a source", "published: [{what: a, value: 1}]\n", `f.yaml:3:13: published[0]: the published figure "a" has no source`},
		{"a figure of what?", "published: [{value: 1, source: s}]\n", "f.yaml:3:13: published[0]: the published figure does not say what it is of"},
		{"a figure twice", "published: [{what: a, value: 1, change: 5%, source: s}]\n", `f.yaml:3:13: published[0]: the published figure "a" needs one of value and change (give one of value and change)`},
		{"a figure that is none", "published: [{what: a, value: many, source: s}]\n", `f.yaml:3:13: published[0]: "many" is not a figure: want a number, or a time such as 183s`},
		{"a figure of an arm that is not there", "published: [{what: a, arm: x, value: 1, source: s}]\n", `f.yaml:3:28: published[0].arm: there is no arm "x" (there is none)`},
		{"a change of what?", "published: [{what: a, change: 5%, source: s}]\n", "f.yaml:3:13: published[0].arm: a change is one of an arm against the baseline (name an arm that is not the first)"},
		{"a lab made anew for each step", "fresh: lab\n", ok},
		{"somebody's lab is not made anew", "target: {labName: l}\nfresh: lab\n", "f.yaml:4:8: fresh: only a private lab can be recreated for each step (leave out the target, or say fresh: objects)"},
		{"a start that is none", "fresh: labs\n", "f.yaml:3:8: fresh: the target kubernetes has no fresh start \"labs\" (did you mean \"lab\"?)"},
		{"what a target has a default for is none", "target: {lab: {maxPods: 0}}\n", "f.yaml:3:25: target.lab.maxPods: 0 is not a number of pods: want at least 1 (for example maxPods: 110)"},
		{"a key of a target that is like none", "target: {cluster: x}\n", `f.yaml:3:10: target: unknown key "cluster" (allowed: lab, labName)`},
		{"another type in a target", "target: {lab: {nodes: 1.5}}\n", "f.yaml:3:23: target.lab.nodes: wants a whole number, found the number 1.5"},
		{"a target that is no mapping", "target: 5\n", "f.yaml:3:9: target: wants a mapping, found the number 5"},

		{"a parameter misspelled", "params: {imag: x}\n", `f.yaml:3:16: params.imag: there is no parameter of node-density "imag", did you mean "image"?`},
		{"parameters that do not fit", "params:\n  image: a b\n  namespacesPer: 0\n", "f.yaml:4:10: params.image: \"a b\" does not have the form \\S+\nf.yaml:5:18: params.namespacesPer: must be at least 1, is 0"},

		{"arms", "arms: [{name: a}, {name: b}]\naxis: {level: 10}\n", ok},
		{"arms without a level", "arms: [{name: a}, {name: b}]\n", ok},
		{"one arm", "arms: [{name: a}]\naxis: {level: 10}\n", "f.yaml:3:1: arms: a comparison needs two arms at least (for example arms: [{name: a, params: {image: x}}, {name: b, params: {image: y}}])"},
		{"arms whose limits are to be compared", "arms: [{name: a}, {name: b}]\naxis: {search: {from: 10}}\n", "f.yaml:4:8: axis.search: the arms of a comparison are run at given levels (give level or levels)"},
		{"arms with mistakes of their own", "arms:\n- {params: {imag: x}}\n- {name: a}\n- {name: a}\naxis: {level: 10}\n",
			"f.yaml:4:3: arms[0].name: the arm has no name\n" +
				"f.yaml:4:19: arms[0].params.imag: there is no parameter of node-density \"imag\", did you mean \"image\"?\n" +
				"f.yaml:6:10: arms[2].name: there are two arms \"a\" (give one of them another name)"},
		{"repetitions of nothing compared", "repeat: 5\n", "f.yaml:3:9: repeat: only a sweep and a comparison of arms are repeated (leave it out)"},
		{"no repetition", "repeat: 0\n", "f.yaml:3:9: repeat: 0 is not a number of repetitions: want at least 1"},
		{"a sweep that goes on", "axis: {levels: [5]}\nrepeat: 4..30\nuntil: decided\n", "f.yaml:4:9: repeat: only a comparison of arms goes on until it is decided (give one number)\nf.yaml:5:8: until: only a comparison of arms goes on until it is decided (leave it out)"},
		{"a number of blocks has no other end", "axis: {level: 5}\narms: [{name: a}, {name: b}]\nrepeat: 5\nuntil: decided\n", "f.yaml:6:8: until: repeat: 5 is how many blocks there are, whatever they show (give a range, such as repeat: 4..30)"},
		{"another end", "axis: {level: 5}\narms: [{name: a}, {name: b}]\nuntil: bored\n", `f.yaml:5:8: until: unknown end "bored" (allowed: decided, notWorse)`},
		{"one block tells nothing", "axis: {level: 5}\narms: [{name: a}, {name: b}]\nrepeat: 1..4\n", "f.yaml:5:9: repeat: 1..4 is not a range of blocks: want 2 at least and 1000 at most (for example repeat: 4..30)"},
		{"several metrics where no arms are compared", "axis: {levels: [5]}\nprimary: {metric: Ready p50, further: [Ready p99]}\n", "f.yaml:4:30: primary.further: only a comparison of arms is decided by several metrics (leave it out)"},
		{"a metric where nothing is compared", "primary: {metric: Ready p50, margin: 5%, alpha: 0.05}\n", "f.yaml:3:1: primary: only a sweep and a comparison of arms have a primary metric (leave it out)"},
	} {
		p := parsed(t, head+c.text)
		p.Default(w)
		err := p.Validate(w)
		if got := text(err); got != c.want {
			t.Errorf("%s: %q\n got %s\nwant %s", c.why, c.text, got, c.want)
		}
		if err == nil {
			if _, err := p.GoalsOf(); err != nil {
				t.Errorf("%s: valid goals are refused: %v", c.why, err)
			}
			if next := p.Design().Next(nil, ""); next.Done || !(next.Level > 0) {
				t.Errorf("%s: a valid plan begins with %+v", c.why, next)
			}
		}
	}
}

func text(err error) string {
	if err == nil {
		return ok
	}
	return err.Error()
}

func TestValidatePrimary(t *testing.T) {
	w := nodeDensity(t)
	for _, c := range []struct{ why, primary, want string }{
		{"a metric", "{metric: Ready p50}", ""},
		{"all of it", "{metric: ContainersStarted p99, margin: 0.5%, alpha: 0.05}", ""},
		{"no metric: the workload's", "{margin: 5%}", ""},
		{"no metric, said", "{metric: \"\"}", "f.yaml:4:19: primary.metric: the primary metric has no name (for example ContainersStarted p50)"},
		{"not a quantile", "{metric: Ready}", `f.yaml:4:19: primary.metric: "Ready" is not a metric: want MILESTONE pNN or MILESTONE max, or one that 'plimsoll workloads show node-density' lists (for example ContainersStarted p50)`},
		{"an objective", "{metric: all Ready within}", `f.yaml:4:19: primary.metric: "all Ready within" is not a metric: want MILESTONE pNN or MILESTONE max, or one that 'plimsoll workloads show node-density' lists (for example ContainersStarted p50)`},
		{"a quantile that runs have no figure of", "{metric: Ready p75}", `f.yaml:4:19: primary.metric: "Ready p75" is not a figure that a run has (p50, p90, p95, p99 or max)`},
		{"errors are no latency", "{metric: errors p50 <}", `f.yaml:4:19: primary.metric: "errors p50 <" is not a metric: want MILESTONE pNN or MILESTONE max, or one that 'plimsoll workloads show node-density' lists (for example ContainersStarted p50)`},
		{"a milestone misspelled", "{metric: Redy p50}", `f.yaml:4:19: primary.metric: node-density has no milestone "Redy" (did you mean "Ready"?)`},
		{"a further metric misspelled", "{metric: Ready p50, further: [Redy p99]}", `f.yaml:4:40: primary.further[0]: node-density has no milestone "Redy" (did you mean "Ready"?)`},
		{"a metric twice", "{metric: Ready p50, further: [Ready p99, Ready p50]}", `f.yaml:4:51: primary.further[1]: the metric "Ready p50" is declared twice (leave it out)`},
		{"a margin without a sign", "{metric: Ready p50, margin: 5}", `f.yaml:4:38: primary.margin: "5" is not a margin: want a percentage above 0 and below 100, such as 5%`},
		{"no margin", "{metric: Ready p50, margin: 0%}", `f.yaml:4:38: primary.margin: "0%" is not a margin: want a percentage above 0 and below 100, such as 5%`},
		{"no error is allowed", "{metric: Ready p50, alpha: 0}", "f.yaml:4:37: primary.alpha: 0 is not an error rate: want a number between 0 and 1, such as 0.05"},
		{"every error is allowed", "{metric: Ready p50, alpha: 1}", "f.yaml:4:37: primary.alpha: 1 is not an error rate: want a number between 0 and 1, such as 0.05"},
	} {
		p := parsed(t, head+"arms: [{name: a}, {name: b}]\nprimary: "+c.primary+"\naxis: {level: 10}\n")
		p.Default(w)
		want := c.want
		if want == "" {
			want = ok
		}
		if got := text(p.Validate(w)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.why, got, want)
		}
	}
}

// A plan that flags filled in has no file, and mistakes that no file can have.
func TestValidatePlanOfFlags(t *testing.T) {
	w := nodeDensity(t)
	nan := math.NaN()
	for _, c := range []struct {
		why    string
		change func(*Plan)
		want   string
	}{
		{"nothing is said", func(*Plan) {}, ok},
		{"a sweep without levels", func(p *Plan) { p.Kind = Sweep }, "axis.levels: a sweep needs levels (for example levels: [50, 100])"},
		{"a run without a level", func(p *Plan) { p.Kind = Run }, "axis.level: a run of one level needs it"},
		{"a level that is no number", func(p *Plan) { p.Axis.Level = &nan }, "axis.level: NaN is not a level: want a number above 0"},
		{"a search without an end", func(p *Plan) { p.Axis.Search = &Search{Max: math.Inf(1)} },
			"axis.search.max: +Inf is not a level: want a number above 0\naxis.search.resolution: the resolution 1 leaves more levels between 50 and +Inf than can be told apart"},
		{"a longest hold below the hold", func(p *Plan) { p.Hold, p.HoldMax = Duration(2*time.Second), Duration(time.Second) }, "holdMax: the longest hold, 1s, is shorter than the hold, 2s (leave it out for five holds)"},
		{"a negative budget", func(p *Plan) { p.Budget = Duration(-time.Second) }, "budget: must be at least 0s, is -1s"},
		{"a negative timeout", func(p *Plan) { p.StepTimeout = Duration(-time.Second) }, "stepTimeout: must be above 0, is -1s"},
		{"a guard misspelled", func(p *Plan) { p.Guards = Guards{"nodsNotReady": {Value: 1}} }, `guards.nodsNotReady: there is no guard "nodsNotReady" (did you mean "nodesNotReady"?)`},
		{"a goal twice", func(p *Plan) {
			p.Goals = strictyaml.Ordered[[]string]{{Key: "a", Value: []string{"all Ready"}}, {Key: "a", Value: []string{"all Ready"}}}
		}, `goals.a: there are two goals "a" (give one of them another name)`},
		{"text that a file cannot hold", func(p *Plan) { p.Name = "a\xff" }, "the experiment cannot be written: it holds text that is not UTF-8"},
		{"text that a file holds only in quotes", func(p *Plan) { p.Name = "? a: #b" }, ok},
		{"a name in two lines", func(p *Plan) { p.Name = "a\nb" }, `name: "a\nb" has a character that cannot be printed (leave it out)`},
		{"a name that ends a text of C", func(p *Plan) { p.Name = "a\x00b" }, `name: "a\x00b" has a character that cannot be printed (leave it out)`},
		{"a name that turns the direction of text", func(p *Plan) { p.Name = "a\u202eb" }, `name: "a\u202eb" has a character that cannot be printed (leave it out)`},
		{"an arm that steers the terminal", func(p *Plan) {
			p.Axis = Axis{Level: new(1.0)}
			p.Arms = []Arm{{Name: "a\x1b[31m"}, {Name: "b"}}
		}, `arms[0].name: "a\x1b[31m" has a character that cannot be printed (leave it out)`},
	} {
		p := &Plan{Schema: Schema, Workload: "node-density"}
		c.change(p)
		p.Default(w)
		if got := text(p.Validate(w)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.why, got, c.want)
		}
	}
}

func TestDesign(t *testing.T) {
	w := nodeDensity(t)
	for _, c := range []struct {
		why, text string
		want      design.Design
	}{
		{"a search", "axis: {search: {from: 5, step: 10, max: 60, resolution: 2, confirm: 4/5}}\n", design.Search{From: 5, Step: 10, Max: 60, Resolution: 2, Need: 4, Of: 5}},
		{"levels, in their order", "axis: {levels: [5, 30, 10]}\n", design.Sweep{Levels: []float64{5, 30, 10}, Repeat: 1}},
		{"one level", "axis: {level: 60}\n", design.Sweep{Levels: []float64{60}, Repeat: 1}},
	} {
		p := parsed(t, head+c.text)
		p.Default(w)
		if got := p.Design(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.why, got, c.want)
		}
	}
}

func TestGoalsOf(t *testing.T) {
	p := parsed(t, head+"goals: {z: [all Ready, errors < 1%], a: [Ready p99 <= 5s]}\n")
	goals, err := p.GoalsOf()
	var got []string
	for _, g := range goals {
		got = append(got, g.Name+": "+strings.Join(g.Texts(), "; "))
	}
	if want := []string{"z: all Ready; errors < 1%", "a: Ready p99 <= 5s"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the goals are %q, %v, want %q", got, err, want)
	}
	p = parsed(t, head+"goals: {z: [soon]}\n")
	if _, err := p.GoalsOf(); err == nil || !strings.HasPrefix(err.Error(), `goal z: objective "soon" is not understood`) {
		t.Errorf("an objective that is none: %v", err)
	}
}

// fullExample is the example of the plan's format that shows every key.
const fullExample = `schema: plimsoll/experiment/v1
name: crun-vs-runc
workload: node-density
params: {image: "", namespacesPer: 1000}
target: {lab: {nodes: 0, realNode: true, maxPods: 250}}   # or {kubeconfig: F, context: C} or {labName: N}
axis: {name: pods-per-node, search: {from: 20, step: 20, max: 250, resolution: 1, confirm: 3}}   # or levels: [..] or level: 60
arms: [{name: runc, params: {runtimeClass: runc}}, {name: crun, params: {runtimeClass: crun}}]
repeat: 4..30
until: notWorse
seed: 1
pace: max
hold: 10s
stepTimeout: 5m
budget: 1h
goals: {ready: ["all Ready"], startup: ["ContainersStarted p99 <= 5s"]}
primary: {metric: ContainersStarted p50, margin: 5%, alpha: 0.05}
guards: {nodesNotReady: 1, apiErrors: 5%}
`

// Everything in the example is read, and what does not work yet is said: all
// of it, and nothing else.
func TestFullExample(t *testing.T) {
	p := parsed(t, fullExample)
	want := Plan{
		Schema: Schema, Name: "crun-vs-runc", Workload: "node-density", Params: Params{"image": "", "namespacesPer": "1000"},
		Target: raw(t, "lab: {nodes: 0, realNode: true, maxPods: 250}"),
		Axis:   Axis{Name: "pods-per-node", Search: &Search{20, 20, 250, 1, Confirm{3, 3}}},
		Arms:   []Arm{{"runc", Params{"runtimeClass": "runc"}}, {"crun", Params{"runtimeClass": "crun"}}},
		Repeat: Repeat{4, 30}, Until: UntilNotWorse, Seed: 1, Pace: Pace{Max: true}, Hold: Duration(10 * time.Second), StepTimeout: Duration(5 * time.Minute), Budget: Duration(time.Hour),
		Goals:   strictyaml.Ordered[[]string]{{Key: "ready", Value: []string{"all Ready"}}, {Key: "startup", Value: []string{"ContainersStarted p99 <= 5s"}}},
		Primary: &Primary{Metric: "ContainersStarted p50", Margin: "5%", Alpha: 0.05}, Guards: Guards{"nodesNotReady": {Value: 1}, "apiErrors": {Value: 5, Percent: true}},
	}
	if got := p.normalised(); !reflect.DeepEqual(got, want.normalised()) {
		t.Errorf("it is read as\n%+v\nwant\n%+v", got, want)
	}
	w := nodeDensity(t)
	p.Default(w)
	want.Fresh, want.Scrape.Every = FreshObjects, Duration(DefaultScrape) // the contract's example is silent on it
	if got := p.normalised(); !reflect.DeepEqual(got, want.normalised()) {
		t.Errorf("it says everything, and defaults make it\n%+v\nwant\n%+v", got, want)
	}
	unsupported := "f.yaml:6:29: axis.search: the arms of a comparison are run at given levels (give level or levels)"
	if got := text(p.Validate(w)); got != unsupported {
		t.Errorf("got %s\nwant %s", got, unsupported)
	}
	// Following that advice leads to what belongs to the arms, then to a plan.
	advised := strings.NewReplacer("arms:", "# arms:").Replace(fullExample)
	p = parsed(t, advised)
	p.Default(w)
	unsupported = "f.yaml:8:9: repeat: only a sweep and a comparison of arms are repeated (leave it out)\n" +
		"f.yaml:9:8: until: only a comparison of arms goes on until it is decided (leave it out)\n" +
		"f.yaml:16:1: primary: only a sweep and a comparison of arms have a primary metric (leave it out)"
	if got := text(p.Validate(w)); got != unsupported {
		t.Errorf("got %s\nwant %s", got, unsupported)
	}
	p = parsed(t, strings.NewReplacer("repeat:", "# repeat:", "until:", "# until:", "primary:", "# primary:").Replace(advised))
	if p.Default(w); p.Validate(w) != nil {
		t.Errorf("without what is not supported: %v", p.Validate(w))
	}
}

// Signatures in a plan are judged like everything else, survive the copy that a
// run keeps, and have no part in the conditions that a run is resumed by.
func TestSignatures(t *testing.T) {
	const text = `schema: plimsoll/experiment/v1
workload: pods
signatures:
- name: mine
  title: Mine
  detect:
    any:
    - event: {reason: Broken, message: 'a "b" \d+	c'}
    - condition: {figure: CPU of kubelet, above: 90.5}
  explain: >-
    So
    it is.
  remedy: Ask me.
`
	p, err := Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	before, err := (&Plan{Schema: Schema, Workload: "pods"}).Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	if after, err := p.Fingerprint(); err != nil || after != before {
		t.Errorf("signatures are part of the fingerprint: %v", err)
	}
	written, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse("p.yaml", written)
	if err != nil || len(back.Signatures) != 1 || back.Signatures[0].Detect.Any[0].Event.Message != "a \"b\" \\d+\tc" || back.Signatures[0].Explain != "So it is." {
		t.Errorf("%+v, %v", back, err)
	}
	p, err = Parse("p.yaml", []byte(strings.Replace(text, `\d+`, `\d+(`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	v := p.validator()
	v.signatures()
	if len(v.Problems) != 1 || v.Problems[0].Line != 8 || !strings.Contains(v.Problems[0].Message, "missing closing )") {
		t.Errorf("a broken expression: %v", v.Problems)
	}
}
