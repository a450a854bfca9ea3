package lint

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

func update(t *testing.T) bool {
	t.Helper()
	return flag.Lookup("update").Value.String() == "true"
}

// TestMain makes the flag that writes golden texts again.
func TestMain(m *testing.M) {
	flag.Bool("update", false, "write what is found into testdata")
	os.Exit(m.Run())
}

// archive is one file of testdata: what a rule finds, what it does not, and
// why. Its comment begins with the rules that it is about.
//
//	faulty/NAME   together give the findings of want, and all of the rules
//	fixed/NAME    what --fix makes of faulty/NAME; without it, nothing
//	good/NAME   nothing is found in these: a person has fixed what is faulty
//	near/NAME     nothing is found in these either: they look like a fault, and
//	              their name says why they are none
type archive struct {
	name  string
	rules []string
	parts map[string][]reading.Input
	want  []byte
	whole *txtar.Archive
}

func archives(t *testing.T) (all []archive) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, file := range files {
		whole, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		a := archive{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), parts: make(map[string][]reading.Input), whole: whole}
		first, why, _ := strings.Cut(string(whole.Comment), "\n")
		a.rules = strings.Fields(strings.TrimPrefix(first, "rules:"))
		if !strings.HasPrefix(first, "rules:") || len(a.rules) == 0 || strings.TrimSpace(why) == "" {
			t.Fatalf("%s: the comment must begin with the rules, and say why", file)
		}
		for _, f := range whole.Files {
			if f.Name == "want" {
				a.want = f.Data
				continue
			}
			kind, name, _ := strings.Cut(f.Name, "/")
			if !slices.Contains([]string{"faulty", "fixed", "good", "near"}, kind) || name == "" {
				t.Fatalf("%s: %s: want faulty/, fixed/, good/, near/ or want", file, f.Name)
			}
			a.parts[kind] = append(a.parts[kind], reading.Input{Name: name, Data: f.Data, Asked: true})
		}
		all = append(all, a)
	}
	return all
}

// readArchives are the faulty files of all archives.
func readArchives() (inputs []reading.Input, err error) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		whole, err := txtar.ParseFile(file)
		if err != nil {
			return nil, err
		}
		for _, f := range whole.Files {
			if name, ok := strings.CutPrefix(f.Name, "faulty/"); ok {
				inputs = append(inputs, reading.Input{Name: name, Data: f.Data})
			}
		}
	}
	return inputs, nil
}

func shown(t *testing.T, r *Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every rule finds what it is for, in the form that it has in the documents or
// in people's files, and nothing in what looks like it.
func TestRules(t *testing.T) {
	found := make(map[string]bool)
	for _, a := range archives(t) {
		t.Run(a.name, func(t *testing.T) {
			faulty := a.parts["faulty"]
			r := Lint(faulty, Options{})
			got := shown(t, r)
			var ids []string
			for _, f := range r.Findings {
				ids = append(ids, f.Rule)
				found[f.Rule] = true
			}
			for _, rule := range a.rules {
				if !slices.Contains(ids, rule) {
					t.Errorf("%s was not found", rule)
				}
			}
			if update(t) {
				a.write(t, got)
			} else if got != string(a.want) {
				t.Errorf("found:\n%s\nwant:\n%s", got, a.want)
			}
			for _, kind := range []string{"good", "near"} {
				for _, group := range groups(a.parts[kind]) {
					r := Lint(group, Options{})
					if len(r.Findings)+len(r.Problems) > 0 {
						t.Errorf("%s: %s:\n%s", kind, group[0].Name, shown(t, r))
					}
					if r.Recognised == 0 {
						t.Errorf("%s: %s was not looked at", kind, group[0].Name)
					}
				}
			}
			a.checkFix(t, faulty)
		})
	}
	for _, r := range Rules() {
		if !found[r.ID] && r.ID != RuleOwnFile { // whose files the caller reads
			t.Errorf("no file of testdata has what the rule %s finds", r.ID)
		}
	}
}

// A kind whose fields are unknown is not checked, and says so; one of Kubernetes' own is.
func TestUnknownKindsAreNotChecked(t *testing.T) {
	for _, tt := range []struct {
		text       string
		recognised int
		want, why  string
	}{
		{"apiVersion: example.com/v7\nkind: Thing\nmetadata: {name: Any_Name}\nspec: {replicas: \"3\"}\n", 0, "not checked: lint does not know the fields of a Thing in example.com/v7", "nobody's kind"},
		{"apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: a}\nspec: {tow: {kind: Service}}\n", 0, "not checked: lint does not know the fields of a Route", "a kind of OpenShift without a table"},
		{"apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata: {name: a}\n", 0, "not checked: lint does not know the fields of a PerformanceProfile", "likewise"},
		{"apiVersion: example.com/v1\nkind: Template\nobjects: []\n", 0, "not checked", "a Template of another group"},
		{"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replica: 3}\n", 1, "did you mean replicas?", "a misspelt field of a Deployment"},
		{"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 3}\n", 1, "", "a Deployment whose rest the API server checks"},
		{"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {port: []}}\n", 1, "did you mean ports?", "a misspelt field of a Service in a list"},
	} {
		r := Lint([]reading.Input{{Name: "a.yaml", Data: []byte(tt.text), Asked: true}}, Options{})
		if got := shown(t, r); r.Recognised != tt.recognised || !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %d recognised, want %d:\n%s\nwant: %s", tt.why, r.Recognised, tt.recognised, got, tt.want)
		}
	}
}

// The kubelet's own validation has the last word: its faults stand at the key that they name, and once.
func TestTheKubeletIsAsked(t *testing.T) {
	asked := ""
	refused := func(config []byte) []string {
		asked = string(config)
		return []string{"containerLogMaxFiles must be greater than 1", "maxPods must not be a negative number", "unsupported eviction signal memory.avail", "the rest is wrong"}
	}
	const text = "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: a}\nspec:\n  machineConfigPoolSelector: {matchLabels: {a: b}}\n  kubeletConfig:\n    containerLogMaxFiles: 1\n    maxPods: -1\n    evictionHard: {memory.avail: 1Mi}\n"
	r := Lint([]reading.Input{{Name: "a.yaml", Data: []byte(text)}}, Options{Kubelet: refused, Ignore: []string{"kubelet-eviction"}})
	var got []string
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%d: %s", f.Line, f.Found))
	}
	want := []string{"7: containerLogMaxFiles must be greater than 1", "8: maxPods is -1"}
	if !strings.HasPrefix(strings.Join(got, "\n"), strings.Join(want, "\n")) || !strings.Contains(asked, `"maxPods":-1`) || strings.Contains(strings.Join(got, "\n"), "maxPods must") {
		t.Errorf("found %q, want %q and what follows; asked %s", got, want, asked)
	}
}

// groups are files that are looked at together: those of one directory, and
// each that is in none.
func groups(inputs []reading.Input) (out [][]reading.Input) {
	byDir := make(map[string]int)
	for _, in := range inputs {
		dir, _, inDir := strings.Cut(in.Name, "/")
		if !inDir {
			out = append(out, []reading.Input{in})
			continue
		}
		i, ok := byDir[dir]
		if !ok {
			i = len(out)
			byDir[dir] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], in)
	}
	return out
}

func (a archive) write(t *testing.T, got string) {
	t.Helper()
	i := slices.IndexFunc(a.whole.Files, func(f txtar.File) bool { return f.Name == "want" })
	if i < 0 {
		i = len(a.whole.Files)
		a.whole.Files = append(a.whole.Files, txtar.File{Name: "want"})
	}
	a.whole.Files[i].Data = []byte(got)
	if err := os.WriteFile(filepath.Join("testdata", a.name+".txtar"), txtar.Format(a.whole), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkFix makes the fixes: they are what the archive says, they leave nothing
// that could be fixed, and a second time changes nothing.
func (a archive) checkFix(t *testing.T, faulty []reading.Input) {
	t.Helper()
	fixed := Fix(faulty, Options{})
	got := make(map[string]string)
	for _, c := range fixed.Changes {
		got[c.Name] = string(c.After)
	}
	want := make(map[string]string)
	for _, f := range a.parts["fixed"] {
		want[f.Name] = string(f.Data)
	}
	if update(t) && len(want) == 0 {
		for _, c := range fixed.Changes {
			a.whole.Files = slices.Insert(a.whole.Files, len(a.whole.Files)-1, txtar.File{Name: "fixed/" + c.Name, Data: c.After})
		}
		if err := os.WriteFile(filepath.Join("testdata", a.name+".txtar"), txtar.Format(a.whole), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("--fix makes of %s:\n%s\nwant:\n%s", name, got[name], text)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("--fix changes %s:\n%s", name, got[name])
		}
	}
	for _, f := range fixed.Left.Findings {
		if f.Fixable {
			t.Errorf("--fix left %s:%d %s", f.File, f.Line, f.Rule)
		}
	}
	again := slices.Clone(faulty)
	for i := range again {
		if text, ok := got[again[i].Name]; ok {
			again[i].Data = []byte(text)
		}
	}
	if second := Fix(again, Options{}); len(second.Changes) > 0 || len(second.Done) > 0 {
		t.Errorf("a second --fix changes %d files", len(second.Changes))
	}
}

// Every rule says what it costs and where that is known from, once.
func TestRulesAreDescribed(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range Rules() {
		if seen[r.ID] {
			t.Errorf("%s stands twice", r.ID)
		}
		seen[r.ID] = true
		if r.Title == "" || r.Why == "" || r.Source == "" || r.Severity != report.Error && r.Severity != report.Warning {
			t.Errorf("%s: %+v", r.ID, r)
		}
		if strings.HasSuffix(r.Why, ".") || strings.HasSuffix(r.Title, ".") {
			t.Errorf("%s ends with a full stop", r.ID)
		}
	}
}

func ExampleResult_Summary() {
	r := Lint([]reading.Input{{Name: "pool.sh", Data: []byte("ceph osd pool set rbd pg_autoscaler_mode off\n")}}, Options{})
	fmt.Println(r.Summary())
	// Output: 1 error, 0 warnings in 1 file; --fix can fix 1
}
