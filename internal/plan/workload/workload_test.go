package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// small is the least that a description can say.
const small = `schema: plimsoll/workload/v1
name: small
help: a small one
config: c.yml
axes: [{name: level, unit: things, help: how many, default: {from: 1, step: 1, max: 2}}]
target: things
goals: {ready: [all Ready]}
primary: Ready p50
`

// things declares the target of the tests.
var things = TargetsOf(
	Target{Name: "things", Configured: true, Axes: map[string]TargetAxis{"level": {Loop: Closed}}, Kind: record.ObjectKind{
		Milestones: []record.Milestone{{Name: "Created"}, {Name: "Ready"}}, There: "Ready", Metrics: []record.Metric{{Name: "weight"}},
	}},
	Target{Name: "bare", Axes: map[string]TargetAxis{"level": {Loop: Closed}}, Kind: record.ObjectKind{Milestones: []record.Milestone{{Name: "Ready"}}, There: "Ready"}},
)

func tree(description string) fstest.MapFS {
	return fstest.MapFS{
		"small/workload.yaml": {Data: []byte(description)},
		"small/c.yml":         {Data: []byte("jobs: [{name: a, namespace: 'n-{{ .UUID }}', jobIterations: {{ get . \"n\" | default 3 }}}]\n")},
		"notes/readme.txt":    {Data: []byte("no workload")},
		"readme.txt":          {Data: []byte("no directory")},
	}
}

func TestLoadDefaults(t *testing.T) {
	w, err := Load(tree(small), "small", things)
	if err != nil {
		t.Fatal(err)
	}
	if w.Target.Kind.There != "Ready" || w.Hold != 10*time.Second || w.Axes[0].Loop != Closed || w.Axes[0].Default.Resolution != 1 {
		t.Errorf("got %+v", w)
	}
	axis, err := w.Axis("")
	if err != nil || axis.Name != "level" {
		t.Errorf("the first axis: %+v, %v", axis, err)
	}
	c, err := w.Config(Params{}, "u")
	if err != nil || c.Jobs[0].JobIterations != 3 || c.Jobs[0].NamespaceOf(0) != "n-u-0" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestNames(t *testing.T) {
	names, err := Names(tree(small))
	if err != nil || !slices.Equal(names, []string{"small"}) {
		t.Errorf("got %v, %v", names, err)
	}
}

func TestUnknownNames(t *testing.T) {
	w, err := Load(tree(small), "small", things)
	if err != nil {
		t.Fatal(err)
	}
	_, workload := Load(tree(small), "smal", things)
	_, other := Load(tree(small), "frobnicate", things)
	_, none := Load(fstest.MapFS{}, "small", things)
	_, axis := w.Axis("levels")
	_, param := w.Param("x")
	for _, c := range []struct {
		why  string
		err  error
		want string
	}{
		{"a misspelt workload", workload, `there is no workload "smal", did you mean "small"?`},
		{"another workload", other, `there is no workload "frobnicate", there is: small`},
		{"no workloads", none, `there is no workload "small", there is none at all`},
		{"a misspelt axis", axis, `there is no axis of small "levels", did you mean "level"?`},
		{"a parameter of none", param, `there is no parameter of small "x", there is none at all`},
	} {
		var unknown *UnknownError
		if !errors.As(c.err, &unknown) || c.err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.why, c.err, c.want)
		}
	}
}

// paramA is a parameter that may be empty, and settingOf one setting beside
// parameters.
const paramA = "params: [{name: a, type: int, optional: true, help: x}]"

func settingOf(params, setting string) string { return params + "\nsettings: [" + setting + "]\n" }

// A parameter that may be empty changes something only where it has a value.
func TestValues(t *testing.T) {
	w, err := Load(tree(small+settingOf("params: [{name: a, type: int, optional: true, help: x}, {name: b, type: string, help: x}]",
		"{param: a, in: [{apiVersion: v1, kind: A, path: spec.a, nameParam: b}, {apiVersion: v1, kind: B, path: status.a}]}")), "small", things)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why   string
		given map[string]string
		want  string
	}{
		{"left empty", nil, "[]"},
		{"empty by word", map[string]string{"a": ""}, "[]"},
		{"given", map[string]string{"a": "3", "b": "n"}, "[a 3 [n ]]"},
	} {
		p, err := w.Resolve(c.given)
		var got []string
		for _, v := range w.Values(p) {
			got = append(got, fmt.Sprint(v.Param, " ", v.To, " ", v.Names))
		}
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, %v", c.why, got, err)
		}
	}
	if _, err := w.Resolve(map[string]string{"a": "x"}); err == nil {
		t.Error("a text is a whole number")
	}
}

func TestDescriptionErrors(t *testing.T) {
	replace := func(old, with string) string {
		if !strings.Contains(small, old) {
			panic(old)
		}
		return strings.Replace(small, old, with, 1)
	}
	for _, c := range []struct{ why, text, want string }{
		{"another schema", replace("workload/v1", "workload/v2"), `workload.yaml:1:9: schema: must be "plimsoll/workload/v1", is "plimsoll/workload/v2"`},
		{"another name than its directory's", replace("name: small", "name: big"), `workload.yaml:2:7: name: must be "small", as its directory, is "big"`},
		{"a name of odd characters", replace("name: small", "name: Small"), `workload.yaml:2:7: name: "Small" must consist of lower case letters, digits and '-', begin with a letter and have at most 40 characters`},
		{"an unknown key", small + "param: []\n", `workload.yaml:9:1: unknown key "param" (did you mean "params"?)`},
		{"no help", replace("help: a small one", "help: ' '"), "workload.yaml:3:7: help: is missing"},
		{"help of two lines", replace("help: a small one", "help: \"a\\nb\""), "workload.yaml:3:7: help: must be one line"},
		{"a configuration that is not there", replace("c.yml", "d.yml"), `workload.yaml:4:9: config: file "d.yml" does not exist beside it`},
		{"no axes", replace("[{name: level, unit: things, help: how many, default: {from: 1, step: 1, max: 2}}]", "[]"),
			"workload.yaml:5:1: axes: is missing: at least one is needed"},
		{"an axis without unit", replace("unit: things, ", ""), "workload.yaml:5:8: axes[0].unit: is missing"},
		{"a loop of no kind", replace("unit: things", "unit: things, loop: round"), `workload.yaml:5:42: axes[0].loop: must be closed, is "round"`},
		{"a range that ends before it begins", replace("max: 2", "max: 0.5"), "workload.yaml:5:85: axes[0].default.max: must be at least from, which is 1, is 0.5"},
		{"a range from nothing", replace("from: 1", "from: 0"), "workload.yaml:5:68: axes[0].default.from: must be above 0, is 0"},
		{"a step between resolutions", replace("step: 1", "step: 1.5"), "workload.yaml:5:77: axes[0].default.step: must be a multiple of the resolution, which is 1, is 1.5"},
		{"no target", replace("target: things\n", ""), "workload.yaml:1:1: target: is missing: say what the workload loads (for example target: kubernetes)"},
		{"a misspelt target", replace("target: things", "target: thins"), `workload.yaml:6:9: target: there is no target "thins", did you mean "things"?`},
		{"a configuration where none is taken", replace("target: things", "target: bare"), "workload.yaml:4:9: config: the target bare takes none"},
		{"an axis that the target does not know", replace("name: level", "name: levels"), `workload.yaml:5:15: axes[0].name: the target things has no axis "levels" (did you mean "level"?)`},
		{"no goals", replace("{ready: [all Ready]}", "{}"), "workload.yaml:7:1: goals: is missing: at least one is needed, the headline first"},
		{"a goal without objectives", replace("[all Ready]", "[]"), "workload.yaml:7:9: goals.ready: has no objectives"},
		{"an objective about no milestone", replace("[all Ready]", "[all Redy]"), `workload.yaml:7:17: goals.ready[0]: "Redy" is not one of the milestones (did you mean "Ready"?)`},
		{"a primary metric of no form", replace("Ready p50", "Ready"), `workload.yaml:8:10: primary: "Ready" is not understood: want MILESTONE pNN or MILESTONE max, such as "Ready p50"`},
		{"a primary metric of no milestone", replace("Ready p50", "Redy p50"), `workload.yaml:8:10: primary: "Redy" is not one of the milestones (did you mean "Ready"?)`},
		{"no such quantile", replace("Ready p50", "Ready p0"), `workload.yaml:8:10: primary: p0 is not a quantile: want more than p0 and less than p100, or max, such as "Ready p50"`},
		{"a component of no object", small + "components: [{name: a, object: -1}]\n", "workload.yaml:9:32: components[0].object: must be at least 0, is -1"},
		{"a component twice", small + "components: [{name: a}, {name: a, object: 1}]\n", `workload.yaml:9:32: components[1].name: the name "a" is taken`},
		{"a parameter's name", small + "params: [{name: a-b, type: int, default: 1, help: x}]\n", `workload.yaml:9:17: params[0].name: "a-b" must begin with a lower case letter and consist of letters and digits`},
		{"a parameter twice", small + "params: [{name: a, type: string, help: x}, {name: a, type: string, help: x}]\n", `workload.yaml:9:51: params[1].name: the name "a" is taken`},
		{"a parameter's type", small + "params: [{name: a, type: text, help: x}]\n", `workload.yaml:9:26: params[0].type: there is no type "text", there is: string, int, number, bool, duration, dist, size, quantity`},
		{"a default that is not of its type", small + "params: [{name: a, type: int, help: x, default: b}]\n", `workload.yaml:9:49: params[0].default: "b" is not a whole number`},
		{"several numbers", small + "params: [{name: a, type: int, default: 1, help: x, several: true}]\n", `workload.yaml:9:61: params[0].several: only a parameter of type string with values has it`},
		{"a default that is not allowed", small + "params: [{name: a, type: string, help: x, values: [b, c]}]\n", `workload.yaml:9:10: params[0].default: "" is not one of b, c`},
		{"a pattern that is none", small + "params: [{name: a, type: string, help: x, pattern: '('}]\n", "workload.yaml:9:52: params[0].pattern: is not a regular expression: error parsing regexp: missing closing ): `(`"},
		{"a minimum of a text", small + "params: [{name: a, type: string, help: x, min: 1}]\n", "workload.yaml:9:48: params[0].min: only a parameter of type int, number or size has one"},
		{"a setting of no parameter", small + settingOf("params: []", "{param: a, in: [{apiVersion: v1, kind: A, path: spec.a}]}"), `workload.yaml:10:20: settings[0].param: there is no parameter of small "a", there is none at all`},
		{"a setting without a place", small + settingOf(paramA, "{param: a}"), "workload.yaml:10:12: settings[0].in: is missing: at least one place with a path is needed"},
		{"a setting that is only refused", small + settingOf(paramA, "{param: a, in: [{apiVersion: v1, kind: A, refuse: no}]}"), "workload.yaml:10:23: settings[0].in: is missing: at least one place with a path is needed"},
		{"a place with a path and without", small + settingOf(paramA, "{param: a, in: [{apiVersion: v1, kind: A, path: spec.a, refuse: no}, {apiVersion: v1, kind: A, path: spec.a}]}"),
			"workload.yaml:10:28: settings[0].in[0]: has either a path, such as spec.replicas, or refuse"},
		{"a path with a hole", small + settingOf(paramA, "{param: a, in: [{apiVersion: v1, kind: A, path: spec..a}]}"), "workload.yaml:10:28: settings[0].in[0]: has either a path, such as spec.replicas, or refuse"},
		{"a place of no kind", small + settingOf(paramA, "{param: a, in: [{apiVersion: v1, path: spec.a}]}"), "workload.yaml:10:28: settings[0].in[0]: apiVersion and kind are needed"},
		{"a name of no parameter", small + settingOf(paramA, "{param: a, in: [{apiVersion: v1, kind: A, path: spec.a, nameParam: b}]}"), `workload.yaml:10:79: settings[0].in[0].nameParam: there is no parameter of small "b", did you mean "a"?`},
		{"hold", small + "hold: -1s\n", "workload.yaml:9:7: hold: must be at least 0s, is -1s"},
	} {
		_, err := Load(tree(c.text), "small", things)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.why, err, c.want)
		}
	}
	if _, err := Load(tree(replace("[all Ready]", "[all of them]")), "small", things); err == nil || !strings.HasPrefix(err.Error(), "workload.yaml:7:17: goals.ready[0]: ") {
		t.Errorf("an objective that is none: %v", err)
	}
	if _, err := Read(fstest.MapFS{}, things); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory without description: %v", err)
	}
}

func TestResolve(t *testing.T) {
	w, err := Load(tree(small+`params:
- {name: text, type: string, help: x, default: d}
- {name: word, type: string, help: x, default: a, values: [a, b]}
- {name: words, type: string, help: x, default: a, values: [a, b], several: true}
- {name: pair, type: string, help: x, pattern: '\w+=\w+'}
- {name: n, type: int, help: x, default: 5, min: 1, max: 9}
- {name: page, type: size, help: x, default: 4KiB, min: 512, max: 1048576}
- {name: share, type: number, help: x, default: 0.5, min: 0}
- {name: on, type: bool, help: x, default: false}
- {name: wait, type: duration, help: x}
- {name: delay, type: dist, help: x}
- {name: memory, type: quantity, help: x}
`), "small", things)
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]any{"text": "d", "word": "a", "words": "a", "pair": "", "n": int64(5), "page": "4KiB", "share": 0.5, "on": false, "wait": "", "delay": "", "memory": ""}
	for _, c := range []struct {
		why        string
		name, text string
		want       any    // nil: an error
		message    string // of the error
	}{
		{"nothing given", "", "", "", ""},
		{"any text", "text", "x y", "x y", ""},
		{"an empty text", "text", "", "", ""},
		{"a word that is allowed", "word", "b", "b", ""},
		{"a word that is not", "word", "c", nil, `word: "c" is not one of a, b`},
		{"several words", "words", "b+a", "b+a", ""},
		{"several, of which one is not allowed", "words", "b+c", nil, `words: "c" is not one of a, b`},
		{"several of what takes one", "word", "a+b", nil, `word: "a+b" is not one of a, b`},
		{"of the pattern", "pair", "a=b", "a=b", ""},
		{"the pattern is for the whole", "pair", "a=b;", nil, `pair: "a=b;" does not have the form \w+=\w+`},
		{"a number", "n", "7", int64(7), ""},
		{"no number", "n", "7x", nil, `n: "7x" is not a whole number`},
		{"too small a number", "n", "0", nil, "n: must be at least 1, is 0"},
		{"too large a number", "n", "10", nil, "n: must be at most 9, is 10"},
		{"a size", "page", "1.5kB", "1.5kB", ""},
		{"no size", "page", "4 pages", nil, `page: "4 pages" is not a size: want bytes such as 4096, 512Mi or 1.5GiB (units of 1024), 500M or 4GB (of 1000)`},
		{"too small a size", "page", "100B", nil, "page: must be at least 512 B, is 100B"},
		{"too large a size", "page", "2MiB", nil, "page: must be at most 1 MiB, is 2MiB"},
		{"a fraction", "share", "0.25", 0.25, ""},
		{"no fraction", "share", "NaN", nil, `share: "NaN" is not a number`},
		{"too small a fraction", "share", "-0.1", nil, "share: must be at least 0, is -0.1"},
		{"true", "on", "true", true, ""},
		{"no truth", "on", "yes", nil, `on: "yes" is neither true nor false`},
		{"a duration", "wait", "90s", "90s", ""},
		{"no duration", "wait", "90", nil, `wait: "90" is not a duration such as 10s`},
		{"a negative duration", "wait", "-1s", nil, `wait: "-1s" is negative`},
		{"a distribution", "delay", "uniform:1s,2s", "uniform:1s,2s", ""},
		{"no distribution", "delay", "uniform:1s", nil, `delay: delay "uniform:1s" has 1 durations where uniform takes 2: want constant:D | uniform:LO,HI | lognormal:P50,P99`},
		{"a quantity", "memory", "1.5Gi", "1.5Gi", ""},
		{"a quantity in thousandths", "memory", "100m", "100m", ""},
		{"no quantity", "memory", "1GB", nil, `memory: "1GB" is not a quantity such as 100m or 2Gi`},
		{"a negative quantity", "memory", "-1", nil, `memory: "-1" is not a quantity such as 100m or 2Gi`},
		{"a misspelt parameter", "memry", "1", nil, `memry: there is no parameter of small "memry", did you mean "memory"?`},
	} {
		given := map[string]string{}
		if c.name != "" {
			given[c.name] = c.text
		}
		got, err := w.Resolve(given)
		if c.want == nil {
			if err == nil || err.Error() != c.message || strictyaml.Problems(err)[0].Path != c.name {
				t.Errorf("%s: got %v, want %s", c.why, err, c.message)
			}
			continue
		}
		want := maps.Clone(defaults)
		if c.name != "" {
			want[c.name] = c.want
		}
		if err != nil || !reflect.DeepEqual(got.Data(), want) {
			t.Errorf("%s: got %v, %v; want %v", c.why, got.Data(), err, want)
		}
		if c.name != "" && got.Get(c.name) != fmt.Sprint(c.want) {
			t.Errorf("%s: Get gives %q", c.why, got.Get(c.name))
		}
	}
	_, err = w.Resolve(map[string]string{"n": "x", "on": "y", "z": ""})
	if len(strictyaml.Problems(err)) != 3 {
		t.Errorf("three mistakes give %v", err)
	}
	got, _ := w.Resolve(map[string]string{"n": "7"})
	if all := got.All(); all["n"] != "7" || all["on"] != "false" || len(all) != len(defaults) || got.Get("nope") != "" {
		t.Errorf("got %v", all)
	}
}

func TestComponentOf(t *testing.T) {
	w := &Workload{Components: []Component{{Name: "server"}, {Name: "client", Object: 2}, {Name: "later", Job: 1, Object: 2}}}
	for _, c := range []struct {
		why         string
		job, object int
		want        string
	}{
		{"the first object, where none is said", 0, 0, "server"},
		{"another object", 0, 2, "client"},
		{"another job", 1, 2, "later"},
		{"nothing", 0, 1, ""},
	} {
		if got := w.ComponentOf(c.job, c.object); got != c.want {
			t.Errorf("%s: got %q, want %q", c.why, got, c.want)
		}
	}
}

func TestExport(t *testing.T) {
	w, err := Load(tree(small), "small", things)
	if err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "mine")
	if err := w.Export(dir); err != nil {
		t.Fatal(err)
	}
	again, err := Read(os.DirFS(dir), things)
	if err != nil || again.Name != "small" || len(again.Goals) != 1 {
		t.Errorf("what was exported reads as %+v, %v", again, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the directory is %v, %v", info, err)
	}
	for _, c := range []struct {
		why, dir string
		want     error
	}{
		{"a directory that exists stays as it is", dir, fs.ErrExist},
		{"so does a file", filepath.Join(dir, "c.yml"), fs.ErrExist},
		{"no parent directory", filepath.Join(parent, "no", "such"), fs.ErrNotExist},
	} {
		if err := w.Export(c.dir); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	// A file that cannot be read fails the export half way.
	broken := *w
	broken.files = unreadable{w.files}
	if err := broken.Export(filepath.Join(parent, "broken")); err == nil {
		t.Error("an export without all files succeeds")
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 1 || entries[0].Name() != "mine" {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// unreadable lists a description that it does not hand out.
type unreadable struct{ fs.FS }

func (u unreadable) Open(name string) (fs.File, error) {
	if name == File {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("disk error")}
	}
	return u.FS.Open(name)
}

// A shared file is as one of the workload's own, unless it has one of that name.
func TestSharedFiles(t *testing.T) {
	files := tree(strings.Replace(small, "config: c.yml\n", "config: c.yml\nshared: [a.yml, b.yml]\n", 1))
	files["shared/a.yml"], files["shared/b.yml"], files["shared/c.yml"] = &fstest.MapFile{Data: []byte("shared a")}, &fstest.MapFile{Data: []byte("shared b")}, &fstest.MapFile{Data: []byte("shared c")}
	files["small/b.yml"] = &fstest.MapFile{Data: []byte("own b")}
	w, err := Load(files, "small", things)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "mine")
	if err := w.Export(dir); err != nil {
		t.Fatal(err)
	}
	for _, from := range []fs.FS{w.Files(), os.DirFS(dir)} {
		entries, err := fs.ReadDir(from, ".")
		if err != nil || len(entries) != 4 {
			t.Errorf("files %v, %v", entries, err)
		}
		for name, want := range map[string]string{"a.yml": "shared a", "b.yml": "own b"} {
			if got, err := fs.ReadFile(from, name); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v; want %q", name, got, err, want)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small)
	f.Add(small + "params:\n- {name: text, type: string, help: x, default: d, pattern: '('}\ncomponents: [{name: a, object: 0}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Read(fstest.MapFS{File: {Data: []byte(text)}, "c.yml": {}}, things)
		if err != nil {
			if strictyaml.Problems(err) == nil {
				t.Errorf("%q: %v is no list of problems", text, err)
			}
			return
		}
		if _, err := w.Resolve(nil); err != nil {
			t.Errorf("%q: the defaults do not fit: %v", text, err)
		}
		if _, err := w.Axis(""); err != nil || len(w.Goals) == 0 {
			t.Errorf("%q: a workload without axis or goal", text)
		}
	})
}

// A level of an axis that sets a parameter is its value, whatever was given for it.
func TestLevelsThatAreValues(t *testing.T) {
	files := fstest.MapFS{"c.yml": {Data: []byte("jobs: [{name: a, jobIterations: {{ .N }}}]\n")}}
	of := Target{Name: "things", Axes: map[string]TargetAxis{AxisSettings: {}}, ConfigurationAxes: []Axis{{Name: "qps", Means: AxisSettings, Sets: "jobs.last.qps", Default: Range{From: 4}}, {Name: "plain"}}}
	w, err := OfConfiguration(files, "c.yml", of)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{"N": "3", "jobs.0.qps": "1"}
	for _, tt := range []struct {
		axis  string
		level float64
		want  string
	}{
		{"plain", 7, "map[N:3 jobs.0.qps:1]"},
		{"qps", 2.5, "map[N:3 jobs.0.qps:1 jobs.last.qps:2.5]"},
		{"qps", 0, "map[N:3 jobs.0.qps:1 jobs.last.qps:4]"}, // a search begins there
		{"set:N", 1e6, "map[N:1000000 jobs.0.qps:1]"},
		{"set:jobs.0.qps", 9, "map[N:3 jobs.0.qps:9]"},
		{"set:M", 9, "map[N:3 jobs.0.qps:1]"}, // Validate refuses the axis
	} {
		if got := fmt.Sprint(w.At(tt.axis, tt.level, given)); got != tt.want {
			t.Errorf("%s at %v: %s, want %s", tt.axis, tt.level, got, tt.want)
		}
	}
	if _, err := w.Axis("set:M"); err == nil {
		t.Error("a variable that the configuration has not")
	}
}
