package lint

import (
	"bytes"
	"errors"
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

// saidByHAProxy answers like HAProxy 2.6 to a few faults.
func saidByHAProxy(config string) (string, error) {
	said := "[NOTICE]   (20359) : haproxy version is 2.6.12-1+deb12u4\n"
	for n, line := range strings.Split(config, "\n") {
		at := fmt.Sprintf("[ALERT]    (20359) : config : parsing [/dev/stdin:%d]", n+1)
		switch strings.TrimSpace(line) {
		case "nbtread 4":
			said += at + " : unknown keyword 'nbtread' in 'global' section; did you mean 'nbthread' maybe ?\n"
		case "http-request deny iff a":
			said += at + ": 'http-request deny' expects either 'if' or 'unless' followed by a condition but found 'iff'.\n"
		case "cpu-map 1 0":
			said += at + " : a message about a line with a finding\n"
		case "":
			if n == 2 {
				said += at + " : a message about a line that was left out\n"
			}
		}
	}
	if strings.Contains(config, "timeout connect 5s\nfrontend") {
		said += "[WARNING]  (20387) : config : missing timeouts for frontend 'public'.\n   | While not properly invalid, you will certainly\n"
	}
	return said + "[ALERT]    (20359) : config : Error(s) found in configuration file : /dev/stdin\n", nil
}

// withinItself leaves nothing in a configuration that haproxy -c would read, run or look up.
func TestWithinItself(t *testing.T) {
	for _, tt := range []struct{ line, want, why string }{
		{"lua-load /x.lua", "", "Lua runs at once"},
		{`"lua-load" x.lua`, "", "quotes hide nothing"},
		{`\x6cua-load x.lua`, "", "nor does a character by its number"},
		{"ssl-engine rdrand", "", "an engine is code"},
		{"errorfile 503 a.http", "", "it reads a file"},
		{"pidfile /run/a.pid", "", "so does any directive with a path"},
		{"stats socket /run/a.sock mode 600", "", "a socket is a file"},
		{"log syslog.example:514 local0", "", "it looks up a name"},
		{"log global", "log global", "this one is missing"},
		{"setenv A $B", "", "the environment is not the configuration's"},
		{"bind :443 ssl crt /a.pem alpn h2", "bind :443", "the certificate is left out"},
		{"bind www.example:80", "bind 192.0.2.1:1", "an address stands for the name"},
		{"server a [2001:db8::1]:80 check", "server a [2001:db8::1]:80 check", "an address is not a name"},
		{"server a db.example:80 chek", "server a 192.0.2.1:1 chek", "the rest of the line is still checked"},
		{"server a 10.0.0.1:80 check addr db.example", "server a 10.0.0.1:80 check", "a name behind an option"},
		{"acl a path_beg /api", "acl a path_beg /api", "the path of a request is not a file"},
		{"acl a src -f /list", "", "this is one"},
		{"http-request set-header a %[src,map(/m)]", "", "a map is a file"},
		{"use_backend %[req.hdr(host),lower]", "use_backend %[req.hdr(host),lower]", "a function that reads nothing"},
		{"tune.bufsize 32768", "tune.bufsize 32768", "a number"},
	} {
		got, cut := withinItself("global\n" + tt.line)
		if got != "global\n"+tt.want || cut[2] != (tt.line != tt.want) || cut[1] {
			t.Errorf("%q became %q, want %q: %s", tt.line, got, tt.want, tt.why)
		}
	}
}

// An HAProxy that does not answer, or a piece, is said.
func TestHAProxyIsNotAsked(t *testing.T) {
	for _, tt := range []struct{ config, want string }{
		{"global\n maxconn 5\n", "not checked by haproxy -c: haproxy is not installed"},
		{"frontend a\n bind :80\n", "not checked by haproxy -c: without a section global it may be a piece of a configuration"},
		{"global\n maxconn {{.N}}\n", "not checked by haproxy -c: it is a template"},
	} {
		r := Lint([]reading.Input{{Name: "haproxy.cfg", Data: []byte(tt.config), Asked: true}}, Options{HAProxy: func(string) (string, error) {
			return "", errors.New("haproxy is not installed")
		}})
		if len(r.Notes) != 1 || r.Notes[0].Text != tt.want || len(r.Findings) > 0 || r.Recognised != 1 {
			t.Errorf("%q: %+v", tt.config, r)
		}
	}
}

// Every rule finds what it is for, in the form that it has in the documents or
// in people's files, and nothing in what looks like it.
func TestRules(t *testing.T) {
	found := make(map[string]bool)
	for _, a := range archives(t) {
		t.Run(a.name, func(t *testing.T) {
			faulty := a.parts["faulty"]
			r := Lint(faulty, Options{HAProxy: saidByHAProxy})
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
					r := Lint(group, Options{HAProxy: saidByHAProxy})
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
