package signature

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

func builtinSignatures(t testing.TB) []Signature {
	t.Helper()
	list, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// What the program knows by itself is complete: every signature says what to
// do, where it is from, and what it must match, real or as it was published.
func TestBuiltin(t *testing.T) {
	list := builtinSignatures(t)
	names := make(map[string]bool)
	for _, s := range list {
		names[s.Name] = true
		if s.Evidence == "" || s.Source == "" || len(s.Examples) == 0 {
			t.Errorf("%s lacks evidence, source or examples", s.Name)
		}
		if s.Tested != Real && s.Tested != Quoted {
			t.Errorf("%s does not say whether it is tested by a real failure or by a quoted message", s.Name)
		}
		if !slices.ContainsFunc(s.Examples, func(e Example) bool { return e.From != "" || e.With }) {
			t.Errorf("no example of %s says where it is from", s.Name)
		}
		for _, text := range []string{s.Title, s.Explain, s.Evidence, s.Remedy} {
			if strings.Contains(text, "\n") || text != strings.TrimSpace(text) {
				t.Errorf("%s: %q is not on one line", s.Name, text)
			}
		}
	}
	// What the source documents and their users ask for by name.
	for _, want := range []string{
		"readiness-503", "service-dial-timeout", "pending-pods-busy-kubelets", "openvswitch-overloaded", "too-many-pods", "node-addresses-exhausted",
		"too-many-services", "image-pull-failed", "image-pull-throttled", "sandbox-failed", "oom-killed", "evicted", "quota-exceeded",
		"priority-and-fairness", "etcd-slow", "etcd-full", "webhook-timeout", "insufficient-cpu", "insufficient-memory", "untolerated-taints",
		"pod-affinity", "no-nodes", "host-ports", "volume-limits", "claims-unbound", "attach-timeout", "mount-timeout",
	} {
		if !names[want] {
			t.Errorf("there is no signature %s", want)
		}
	}
}

// An example is recognised as what it is, and as nothing else, by all the
// signatures together.
func TestExamplesAreRecognisedAsWhatTheyAre(t *testing.T) {
	list := builtinSignatures(t)
	m, err := NewMatcher(list)
	if err != nil {
		t.Fatal(err)
	}
	also := map[string][]string{
		"pending-pods-busy-kubelets": {"too-many-pods"}, // which pods are pending for
	}
	for _, s := range list {
		for i := 0; i < len(s.Examples); {
			last := i
			for last+1 < len(s.Examples) && s.Examples[last+1].With {
				last++
			}
			var got []string
			for _, hit := range m.try(s.Examples[i : last+1]) {
				got = append(got, hit.Signature.Name)
			}
			want := append([]string{s.Name}, also[s.Name]...)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("example %d of %s is recognised as %q, want %q", i, s.Name, got, want)
			}
			i = last + 1
		}
	}
}

const aFile = `schema: plimsoll/signatures/v1
signatures:
- name: mine
  title: My own failure
  detect:
    all:
    - event: {reason: Unhealthy, message: 'code 7[0-9]'}
      atLeast: 2
  explain: It does so.
  remedy: Ask me.
  examples:
  - {reason: Unhealthy, message: code 77, times: 2}
`

func TestLoad(t *testing.T) {
	dir := fstest.MapFS{"b.yaml": {Data: []byte(aFile)}, "a.yml": {Data: []byte(strings.ReplaceAll(aFile, "name: mine", "name: other"))}, "notes.txt": {Data: []byte("x")}, "sub.yaml/x": {}}
	list, err := Load(dir, "dir")
	if err != nil || len(list) != 2 || list[0].Name != "other" || list[1].Name != "mine" || list[1].Detect.All[0].AtLeast != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	merged := Merge(builtinSignatures(t), append(list, Signature{Name: "oom-killed", Title: "Mine"}))
	if i := slices.IndexFunc(merged, func(s Signature) bool { return s.Name == "oom-killed" }); merged[i].Title != "Mine" || len(merged) != len(builtinSignatures(t))+2 {
		t.Errorf("%d signatures, one of which is %q", len(merged), merged[i].Title)
	}
	if _, err := Load(fstest.MapFS{"notes.txt": {}}, "dir"); err == nil || !strings.Contains(err.Error(), "dir has no file of signatures") {
		t.Errorf("a directory without files: %v", err)
	}
	if _, err := Load(noDir{}, "dir"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

type noDir struct{}

func (noDir) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// An error has every mistake of a file, with its place.
func TestWhatIsWrongWithAFile(t *testing.T) {
	for _, tt := range []struct {
		why, from, to string // in aFile
		want          string
	}{
		{"another schema", "signatures/v1", "signatures/v2", "d/f.yaml:1:9: schema: the schema is \"plimsoll/signatures/v2\""},
		{"no schema", "schema: plimsoll/signatures/v1\n", "", "the file has no schema (begin it with: schema: plimsoll/signatures/v1)"},
		{"a misspelt key", "remedy", "remdy", "d/f.yaml:10:3: signatures[0]: unknown key \"remdy\" (did you mean \"remedy\"?)"},
		{"no name", "name: mine", "name: ''", "signatures[0].name: the signature has no name"},
		{"a name that is none", "name: mine", "name: My Own", "the name \"My Own\" must consist of"},
		{"a broken expression", "code 7[0-9]", "code 7[0-9", "d/f.yaml:7:43: signatures[0].detect.all[0].event.message: error parsing regexp: missing closing ]"},
		{"an example that is another", "message: code 77", "message: code 87", "d/f.yaml:12:5: signatures[0].examples[0]: the signature does not match its own example"},
		{"an example that is too few", "times: 2", "times: 1", "does not match its own example"},
		{"nothing to look for", "- event: {reason: Unhealthy, message: 'code 7[0-9]'}\n      atLeast: 2", "- atLeast: 2", "the clause has nothing to look for"},
		{"two things in one", "atLeast: 2", "log: {message: x}", "the clause looks for more than one thing (make a clause of each)"},
		{"any event", "{reason: Unhealthy, message: 'code 7[0-9]'}", "{about: Pod}", "the clause matches any event"},
		{"no detector", "all:\n    - event: {reason: Unhealthy, message: 'code 7[0-9]'}\n      atLeast: 2", "none: []", "the signature does not say what to look for"},
		{"a negative number", "atLeast: 2", "atLeast: -2", "-2 is not a number of matches"},
		{"a figure that is none", "event: {reason: Unhealthy, message: 'code 7[0-9]'}\n      atLeast: 2", "condition: {figure: pending object, above: 1}", "there is no figure \"pending object\" (did you mean \"pending objects\"?)"},
		{"a condition without a bound", "event: {reason: Unhealthy, message: 'code 7[0-9]'}\n      atLeast: 2", "condition: {figure: CPU of kubelet}", "the condition wants one of above and below"},
		{"a condition with two", "event: {reason: Unhealthy, message: 'code 7[0-9]'}\n      atLeast: 2", "condition: {figure: CPU of kubelet, above: 1, below: 2}", "the condition wants one of above and below"},
		{"a counted condition", "event: {reason: Unhealthy, message: 'code 7[0-9]'}", "condition: {figure: CPU of kubelet, above: 1}", "a condition is not counted (leave it out)"},
		{"a code that is none", "event: {reason: Unhealthy, message: 'code 7[0-9]'}", "request: {code: [200, 4290]}", "4290 is not an HTTP code"},
		{"a code that is a word", "event: {reason: Unhealthy, message: 'code 7[0-9]'}", "request: {code: many}", "wants a list, found the text \"many\""},
		{"a test that is none", "remedy:", "tested: quotet\n  remedy:", "\"quotet\" is not a sort of test: want real or quoted (did you mean \"quoted\"?)"},
		{"the same name twice", "- name: mine\n", "- {name: mine, title: a, explain: b, remedy: c, detect: {any: [{log: {message: x}}]}}\n- name: mine\n", "there are two signatures \"mine\""},
		{"an empty list", "signatures:\n", "signatures: []\nx:\n", "unknown key \"x\""},
		{"no YAML at all", "schema", "\tschema", "d/f.yaml:1"},
	} {
		text := strings.Replace(aFile, tt.from, tt.to, 1)
		if text == aFile {
			t.Fatalf("%s: %q is not in the file", tt.why, tt.from)
		}
		_, err := Load(fstest.MapFS{"f.yaml": {Data: []byte(text)}}, "d")
		if err == nil || len(strictyaml.Problems(err)) == 0 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\n%v\nwant %s", tt.why, err, tt.want)
		}
	}
	// The problems of all files come together, and a name is one signature's.
	_, err := Load(fstest.MapFS{"a.yaml": {Data: []byte(aFile)}, "b.yaml": {Data: []byte(aFile)}, "c.yaml": {Data: []byte("x")}}, "d")
	if problems := strictyaml.Problems(err); len(problems) != 2 || !strings.Contains(err.Error(), "d/b.yaml:3:9: signatures[0].name: the name \"mine\" is taken by a signature of d/a.yaml") {
		t.Errorf("%v", err)
	}
}

// A signature is written as it can be read.
func TestMarshal(t *testing.T) {
	list := builtinSignatures(t)
	text, err := Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Load(fstest.MapFS{"f.yaml": {Data: text}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if a, b := list[i], back[i]; !reflect.DeepEqual(a, b) {
			t.Errorf("%s came back as\n%+v\nwant\n%+v", a.Name, b, a)
		}
	}
}

// Whatever a file says, it is read without a panic, and what was read is
// written so that it comes back.
func FuzzLoad(f *testing.F) {
	f.Add(aFile)
	f.Add(strings.ReplaceAll(aFile, "event:", "state:"))
	f.Add("schema: plimsoll/signatures/v1\nsignatures:\n- {name: a, title: a, explain: b, remedy: c, detect: {any: [{log: {message: x}}, {request: {code: 0}}, {condition: {figure: CPU of *, below: .5}}], none: []}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Load(fstest.MapFS{"f.yaml": {Data: []byte(text)}}, "")
		if err != nil {
			return
		}
		if _, err := NewMatcher(list); err != nil {
			t.Fatalf("what is valid cannot be used: %v", err)
		}
		written, err := Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Load(fstest.MapFS{"f.yaml": {Data: written}}, ""); err != nil && strings.ToValidUTF8(text, "") == text {
			t.Skipf("written so that it is not read: %v\n%s", err, written) // what YAML cannot hold; the plan says so when it is written
		}
	})
}
