package kubeburner

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll.dev/plimsoll/internal/test/golden"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// load parses and defaults a file of testdata.
func load(t *testing.T, file string) *Config {
	t.Helper()
	c, err := Parse(file, mustRead(t, file), Input{Env: map[string]string{"SIZE": "100"}, UUID: "abcd"})
	if err != nil {
		t.Fatal(err)
	}
	Default(c)
	return c
}

func TestLoadGolden(t *testing.T) {
	for _, file := range []string{"small.yml", "full.yml"} {
		text, err := json.MarshalIndent(load(t, file), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, *update, file+".golden", append(text, '\n'))
	}
	if err := Validate(load(t, "small.yml")); err != nil {
		t.Error(err)
	}
	// The one pair of settings that excludes each other.
	err := Validate(load(t, "full.yml"))
	if problems := strictyaml.Problems(err); len(problems) != 1 || problems[0].Path != "jobs[0].gc" {
		t.Errorf("full.yml: %v", err)
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestFullFileStatesEverything keeps the golden test honest: a setting that the
// file does not state would not be tested.
func TestFullFileStatesEverything(t *testing.T) {
	c, err := Parse("full.yml", mustRead(t, "full.yml"), Input{Env: map[string]string{"SIZE": "100"}, UUID: "abcd"})
	if err != nil {
		t.Fatal(err)
	}
	stated := map[reflect.Type]map[string]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			if stated[v.Type()] == nil {
				stated[v.Type()] = map[string]bool{}
			}
			for i := range v.NumField() {
				f := v.Type().Field(i)
				if tag := f.Tag.Get("yaml"); tag == "" || tag == "-" {
					continue
				}
				// False is a value that is stated where true is the default.
				if !v.Field(i).IsZero() || v.Field(i).Kind() == reflect.Bool {
					stated[v.Type()][f.Name] = true
				}
				walk(v.Field(i))
			}
		}
	}
	walk(reflect.ValueOf(c))
	for typ, names := range stated {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if tag := f.Tag.Get("yaml"); tag != "" && tag != "-" && !names[f.Name] {
				t.Errorf("testdata/full.yml does not state %s.%s", typ.Name(), tag)
			}
		}
	}
}

func TestParseRendersFirst(t *testing.T) {
	fsys := fstest.MapFS{"note.txt": {Data: []byte("read\n")}}
	for _, c := range []struct {
		why, text string
		in        Input
		want      string // the job's name
	}{
		{"the environment is data", "jobs: [{name: {{ .A }}}]", Input{Env: map[string]string{"A": "env"}}, "env"},
		{"user data lies over the environment", "jobs: [{name: {{ .A }}}]",
			Input{Env: map[string]string{"A": "env"}, UserData: map[string]any{"A": "user"}}, "user"},
		{"the UUID lies over both", "jobs: [{name: {{ .UUID }}}]",
			Input{Env: map[string]string{"UUID": "env"}, UserData: map[string]any{"UUID": "user"}, UUID: "run"}, "run"},
		{"the environment by sprig's functions is the one passed in", `jobs: [{name: {{ env "A" }}{{ env "HOME" }}{{ expandenv "-$A-${B}" }}}]`,
			Input{Env: map[string]string{"A": "env"}}, "env-env-"},
		{"sprig's functions", "jobs: [{name: {{ .UUID | trunc 3 | upper }}}]", Input{UUID: "abcdef"}, "ABC"},
		{"a default for what may be missing", `jobs: [{name: {{ get . "A" | default "none" }}}]`, Input{}, "none"},
		{"missing data can be allowed", "jobs: [{name: x{{ if .A }}y{{ end }}}]", Input{AllowMissing: true}, "x"},
		{"a file beside the configuration", `jobs: [{name: {{ ReadFile "./note.txt" | trim }}}]`, Input{FS: fsys}, "read"},
		{"user data is not changed by the template", `{{ $_ := set .M "a" 2 }}jobs: [{name: x{{ .M.a }}}]`,
			Input{UserData: map[string]any{"M": map[string]any{"a": 1}}}, "x2"},
	} {
		got, err := Parse("c.yml", []byte(c.text), c.in)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
		} else if got.Jobs[0].Name != c.want {
			t.Errorf("%s: got the name %q, want %q", c.why, got.Jobs[0].Name, c.want)
		}
		if m, ok := c.in.UserData["M"].(map[string]any); ok && m["a"] != 1 {
			t.Errorf("%s: the user data became %v", c.why, m)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	fsys := fstest.MapFS{"note.txt": {Data: []byte("read\n")}}
	for _, c := range []struct {
		why, text string
		want      []string
	}{
		{"an unknown key and its nearest", "jobs:\n- name: a\n  jobIteratons: 5\n",
			[]string{`c.yml:3:3: jobs[0]: unknown key "jobIteratons" (did you mean "jobIterations"?)`}},
		{"lines are those of the file, not of the rendered text",
			"{{ range $i := until 3 }}\n{{ end }}\njobs:\n{{- range $i := until 2 }}\n- name: a{{ $i }}\n  qbs: {{ $i }}\n{{- end }}\n",
			[]string{
				`c.yml:6: jobs[0]: unknown key "qbs" (did you mean "qps"?) in the rendered line: qbs: 0`,
				`c.yml:6: jobs[1]: unknown key "qbs" (did you mean "qps"?) in the rendered line: qbs: 1`,
			}},
		{"a line that the template did not touch keeps its column", "{{ if true }}\n{{ end }}\njobs:\n- nam: a\n",
			[]string{`c.yml:4:3: jobs[0]: unknown key "nam" (did you mean "name"?)`}},
		{"a secret is not shown", "metricsEndpoints:\n- passwort: {{ .UUID }}\n",
			[]string{`c.yml:2: metricsEndpoints[0]: unknown key "passwort" (did you mean "password"?) in the rendered line: - passwort: {{ .UUID }}`}},
		{"missing template data", "jobs:\n- name: {{ .UUIDD }}\n",
			[]string{`c.yml:2:12: the template needs "UUIDD", which is not set (did you mean "UUID"?)`}},
		{"missing template data, nothing near", "jobs:\n- name: {{ .Fnord }}\n",
			[]string{`c.yml:2:12: the template needs "Fnord", which is not set (give it a value: --set Fnord=VALUE, --user-data FILE or the environment; in an object template, inputVars)`}},
		{"an unknown function", "jobs:\n- name: {{ truncate 3 .UUID }}\n",
			[]string{`c.yml:2: the template calls "truncate", which is not a function here`}},
		{"a misspelt function", "jobs:\n- name: {{ tunc 3 .UUID }}\n",
			[]string{`c.yml:2: the template calls "tunc", which is not a function here (did you mean "trunc"?)`}},
		{"the network is not asked", "jobs:\n- name: {{ getHostByName \"localhost\" }}\n",
			[]string{`c.yml:2: the template calls "getHostByName", which is not a function here`}},
		{"a template that does not end", "jobs:\n{{ if true }}\n", []string{`c.yml:3: the template is not valid: unexpected EOF`}},
		{"a function's own error", "jobs:\n- name: {{ Binomial 3 5 }}\n", []string{`c.yml:2:12: the template's call of Binomial fails: cannot choose 5 of 3`}},
		{"a file outside", "jobs:\n- name: {{ ReadFile \"../note.txt\" }}\n",
			[]string{`c.yml:2:12: the template's call of ReadFile fails: "../note.txt" lies outside the configuration's directory; --allow names a file or directory that may be read`}},
		{"a file that is not there", "jobs:\n- name: {{ ReadFile \"nota.txt\" }}\n",
			[]string{`c.yml:2:12: the template's call of ReadFile fails: file "nota.txt" does not exist, did you mean "note.txt"?`}},
		{"an empty file", "", []string{"c.yml: the file is empty"}},
		{"nothing asked for", "global: {}\n", []string{"c.yml:1:1: jobs: the configuration asks for nothing (list at least one job)"}},
		{"values", `jobs:
- name: Bad_Name
  jobType: crate
  jobIterations: 0
  iterationsPerNamespace: -1
  qps: 0
  burst: 0
  executionMode: both
  metricsClosing: never
  maxWaitTimeout: 0
  jobPause: -1s
  namespace: A
  objects:
  - replicas: -1
    repeatEveryNIterations: 0
`, []string{
			`c.yml:2:9: jobs[0].name: the job name "Bad_Name" must consist of lower case letters, digits and '-', and begin and end with a letter or digit`,
			`c.yml:3:12: jobs[0].jobType: there is no "crate" here (did you mean "create"?)`,
			`c.yml:4:18: jobs[0].jobIterations: must be at least 1, is 0`,
			`c.yml:5:27: jobs[0].iterationsPerNamespace: must be at least 1, is -1`,
			`c.yml:6:8: jobs[0].qps: must be above 0, is 0`,
			`c.yml:7:10: jobs[0].burst: must be at least 1, is 0`,
			`c.yml:8:18: jobs[0].executionMode: there is no "both" here (allowed: parallel, sequential)`,
			`c.yml:9:19: jobs[0].metricsClosing: there is no "never" here (allowed: afterJob, afterJobPause, afterMeasurements)`,
			`c.yml:10:19: jobs[0].maxWaitTimeout: must be above 0, is 0s`,
			`c.yml:11:13: jobs[0].jobPause: must be at least 0s, is -1s`,
			`c.yml:12:14: jobs[0].namespace: the namespace "A" must consist of lower case letters, digits and '-', and begin and end with a letter or digit`,
			`c.yml:14:5: jobs[0].objects[0].labelSelector: is missing: without it the job would take every object of the kind (for example {kube-burner.io/job: NAME})`,
			`c.yml:14:15: jobs[0].objects[0].replicas: must be at least 0, is -1`,
			`c.yml:15:29: jobs[0].objects[0].repeatEveryNIterations: must be at least 1, is 0`,
		}},
		{"names twice and names missing", "jobs:\n- name: a\n- name: a\n- qps: 1\n", []string{
			`c.yml:3:9: jobs[1].name: the name "a" is taken by jobs[0]`,
			`c.yml:4:3: jobs[2].name: is missing`,
		}},
		{"the namespace of the last iteration is too long", "jobs:\n- name: a\n  jobIterations: 1000\n  namespace: " + strings.Repeat("n", 60) + "\n",
			[]string{`c.yml:4:14: jobs[0].namespace: the namespace "` + strings.Repeat("n", 60) + `-999" has 64 characters, at most 63 are allowed`}},
		{"job types want different things", `jobs:
- name: a
  objects: [{}]
- name: b
  jobType: patch
  objects: [{labelSelector: {a: b}, patchType: jason}]
- name: c
  jobType: kubevirt
  objects: [{labelSelector: {a: b}, kubeVirtOp: add-volume}]
- name: d
  jobType: read
  churnConfig: {cycles: 1, percent: 101}
  incrementalLoad: {pattern: {}}
  objects: [{kind: Pod}]
`, []string{
			`c.yml:3:13: jobs[0].objects[0].objectTemplate: is missing`,
			`c.yml:6:13: jobs[1].objects[0].objectTemplate: is missing`,
			`c.yml:6:13: jobs[1].objects[0].kind: is missing`,
			`c.yml:6:48: jobs[1].objects[0].patchType: there is no "jason" here (did you mean "json"?)`,
			`c.yml:9:13: jobs[2].objects[0].inputVars.volumeName: is missing: add-volume needs it`,
			`c.yml:12:3: jobs[3].churnConfig: only a create job can churn, this one is a read job`,
			`c.yml:12:37: jobs[3].churnConfig.percent: must be between 0 and 100, is 101`,
			`c.yml:13:3: jobs[3].incrementalLoad.startIterations: is missing`,
			`c.yml:13:3: jobs[3].incrementalLoad: only a create job can be loaded in steps, this one is a read job`,
			`c.yml:13:21: jobs[3].incrementalLoad.pattern.type: is missing (allowed: linear, exponential)`,
			`c.yml:14:13: jobs[3].objects[0].labelSelector: is missing: without it the job would take every object of the kind (for example {kube-burner.io/job: NAME})`,
		}},
		{"a threshold that would never fire", `global:
  measurements:
  - name: podLatency
    thresholds: [{conditionType: Redy, metric: p99, threshold: 0}]
  - name: podLatenci
`, []string{
			`c.yml:4:34: global.measurements[0].thresholds[0].conditionType: there is no "Redy" here (did you mean "Ready"?)`,
			`c.yml:4:48: global.measurements[0].thresholds[0].metric: there is no "p99" here (did you mean "P99"?)`,
			`c.yml:4:64: global.measurements[0].thresholds[0].threshold: must be above 0, is 0s`,
			`c.yml:5:11: global.measurements[1].name: there is no "podLatenci" here (did you mean "podLatency"?)`,
		}},
		{"hooks, watchers, waits", `jobs:
- name: a
  hooks: [{when: before}]
  watchers: [{replicas: -1}]
  objects: [{objectTemplate: p, waitOptions: {customStatusPaths: [{key: .x}]}}]
`, []string{
			`c.yml:3:11: jobs[0].hooks[0].cmd: is missing`,
			`c.yml:3:18: jobs[0].hooks[0].when: there is no "before" here (did you mean "beforeGC"?)`,
			`c.yml:4:14: jobs[0].watchers[0].kind: is missing`,
			`c.yml:4:14: jobs[0].watchers[0].apiVersion: is missing`,
			`c.yml:4:25: jobs[0].watchers[0].replicas: must be at least 0, is -1`,
			`c.yml:5:67: jobs[0].objects[0].waitOptions.customStatusPaths[0].value: is missing`,
		}},
		{"endpoints", `global: {waitWhenFinished: true}
jobs: [{name: a, gc: true}]
metricsEndpoints:
- {metrics: [m.yml], step: 0s, token: t, username: u, alias: x}
- {alias: x, indexer: {type: elastic}}
- {indexer: {esServers: [a]}}
`, []string{
			`c.yml:2:22: jobs[0].gc: a job cannot remove its objects (gc) while global.waitWhenFinished waits for them after all jobs`,
			`c.yml:4:28: metricsEndpoints[0].step: must be above 0, is 0s`,
			`c.yml:4:39: metricsEndpoints[0].token: a token and a user name exclude each other`,
			`c.yml:5:11: metricsEndpoints[1].alias: the alias "x" is taken by metricsEndpoints[0]`,
			`c.yml:5:14: metricsEndpoints[1].indexer.esServers: is missing`,
			`c.yml:5:14: metricsEndpoints[1].indexer.defaultIndex: is missing`,
			`c.yml:6:4: metricsEndpoints[2].indexer.type: is missing (allowed: elastic, opensearch, local, tsdb)`,
		}},
	} {
		fsys["c.yml"] = &fstest.MapFile{Data: []byte(c.text)}
		_, err := Load(fsys, "c.yml", Input{UUID: "u"})
		if err == nil {
			t.Errorf("%s: no error", c.why)
		} else if want := strings.Join(c.want, "\n"); err.Error() != want {
			t.Errorf("%s:\n got %s\nwant %s", c.why, err, want)
		}
	}
	if _, err := Load(fsys, "none.yml", Input{}); err == nil || strictyaml.Problems(err) != nil {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestDefaultOfAConfigMadeInCode(t *testing.T) {
	c := &Config{Global: Global{Timeout: time.Hour}, Jobs: []Job{{Name: "a", QPS: 50, Objects: []Object{{ObjectTemplate: "p"}}}}}
	Default(c)
	if err := Validate(c); err != nil {
		t.Error(err)
	}
	j := c.Jobs[0]
	if j.QPS != 50 || j.Burst != 10 || !j.WaitWhenFinished || j.MaxWaitTimeout != time.Hour || j.Objects[0].Replicas != 1 {
		t.Errorf("got %+v", j)
	}
	if refused, noted := Served(c); len(refused)+len(noted) != 0 {
		t.Errorf("defaults are refused (%v) or noted (%v)", refused, noted)
	}
}

func TestDefaultsAreDefaultsOnce(t *testing.T) {
	for _, file := range []string{"small.yml", "full.yml"} {
		c := load(t, file)
		before, _ := json.Marshal(c)
		Default(c)
		if after, _ := json.Marshal(c); !bytes.Equal(before, after) {
			t.Errorf("%s: Default twice is not Default once:\n%s\n%s", file, before, after)
		}
	}
}

func TestServedGolden(t *testing.T) {
	var lines []string
	refused, noted := Served(load(t, "full.yml"))
	for _, p := range refused {
		lines = append(lines, "refused: "+p.String())
	}
	for _, p := range noted {
		lines = append(lines, "noted: "+p.String())
	}
	golden.Check(t, *update, "full.served.golden", []byte(strings.Join(lines, "\n")+"\n"))
	if refused, noted := Served(load(t, "supported.yml")); len(refused)+len(noted) != 0 {
		t.Errorf("what the engine does is refused (%v) or noted (%v)", refused, noted)
	}
}

// TestNothingIsIgnoredInSilence goes through every setting of a create job, its
// objects and the global section: each is acted on, or told of by Served.
func TestNothingIsIgnoredInSilence(t *testing.T) {
	actedOn := []string{
		"global.functionTemplates",
		"jobs[0].name", "jobs[0].jobType", "jobs[0].jobIterations", "jobs[0].qps", "jobs[0].burst", "jobs[0].namespace",
		"jobs[0].namespacedIterations", "jobs[0].iterationsPerNamespace", "jobs[0].preCreateNamespaces",
		"jobs[0].namespaceLabels", "jobs[0].namespaceAnnotations", "jobs[0].podWait", "jobs[0].waitWhenFinished",
		"jobs[0].jobIterationDelay", "jobs[0].jobPause", "jobs[0].objectDelay", "jobs[0].maxWaitTimeout", "jobs[0].cleanup", "jobs[0].defaultMissingKeysWithZero", "jobs[0].objects",
		"jobs[0].objects[0].objectTemplate", "jobs[0].objects[0].replicas", "jobs[0].objects[0].inputVars",
		"jobs[0].churnConfig", "jobs[0].watchers", "jobs[0].hooks", "jobs[0].incrementalLoad", "jobs[0].metricsClosing", "jobs[0].objects[0].churn", "jobs[0].objects[0].wait", "jobs[0].objects[0].runOnce", "jobs[0].objects[0].repeatEveryNIterations", "jobs[0].objects[0].group",
		// Without indexing there is nothing to skip.
		"jobs[0].skipIndexing", "jobs[0].preLoadImages", "jobs[0].preLoadPeriod", "jobs[0].preLoadNodeLabels",
		// Named by what they are of.
		"global.measurements", "jobs[0].measurements", "jobs[0].objects[0].waitOptions",
		// What a create job does not have in the file.
		"jobs[0].objects[0].kind", "jobs[0].objects[0].labelSelector", "jobs[0].objects[0].patchType", "jobs[0].objects[0].kubeVirtOp",
	}
	c := load(t, "full.yml")
	named := map[string]bool{}
	refused, noted := Served(c)
	for _, p := range slices.Concat(refused, noted) {
		named[p.Path] = true
	}
	check := func(prefix string, typ reflect.Type) {
		for i := range typ.NumField() {
			tag := typ.Field(i).Tag.Get("yaml")
			if path := prefix + tag; tag != "" && tag != "-" && !named[path] && !slices.Contains(actedOn, path) {
				t.Errorf("%s is neither acted on nor named", path)
			}
		}
	}
	check("global.", reflect.TypeFor[Global]())
	check("jobs[0].", reflect.TypeFor[Job]())
	check("jobs[0].objects[0].", reflect.TypeFor[Object]())
}

// Real nodes pull a job's images first unless it says otherwise; others only if it says so.
func TestPreLoads(t *testing.T) {
	t.Parallel()
	c, err := Parse("c.yml", []byte("jobs:\n- {name: a}\n- {name: b, preLoadImages: true}\n- {name: c, preLoadImages: false}\n- {name: d, jobType: delete}\n"), Input{UUID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	Default(c)
	got := ""
	for job := range c.Jobs {
		for _, real := range []bool{true, false} {
			if c.PreLoads(job, real) {
				got += fmt.Sprint(c.Jobs[job].Name, real, " ")
			}
		}
	}
	if got != "atrue btrue bfalse " {
		t.Error(got)
	}
}
