package strictyaml

import (
	"strings"
	"testing"
)

// FuzzDecode asks that no text makes the reader panic, that every problem says
// where it is, and that what is accepted is accepted again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "name: a\n", "a: &x {b: *x}\n", "- - a\n", "? [a]\n: b\n", "a: |\n  b\n", "%TAG ! x\n---\na: !b c\n",
		"levels: [1, 2.5, x]\narms: [{step: 1}, 5]\n", "byName: {a: &a {step: 1}, b: {<<: *a}}\n",
		"hold: 10s\nmargin: 5%\nnames: [a]\ngoals: {a: [b]}\n", "a: 'x\nb: \"\\q\"\n", "\ufeff---\n...\n--- x\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p plan
		at, err := Decode("f.yaml", []byte(text), &p)
		if at == nil {
			t.Fatal("no positions")
		}
		problems := Problems(err)
		if err != nil && len(problems) == 0 {
			t.Fatalf("an error without problems: %v", err)
		}
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 1
		for _, problem := range problems {
			if problem.Message == "" || problem.Line > lines+1 {
				t.Errorf("%q: problem %+v", text, problem)
			}
		}
		var v, w any
		_, first := Decode("f.yaml", []byte(text), &v, Kubernetes())
		_, second := Decode("f.yaml", []byte(text), &w, Kubernetes())
		if (first == nil) != (second == nil) {
			t.Errorf("%q: read once as %v, once as %v", text, first, second)
		}
		for path, want := range at.known {
			if got := at.At(Key(path, "nothing")); got != want && !at.Has(Key(path, "nothing")) {
				t.Errorf("%q: what is missing in %q is at %+v, want %+v", text, path, got, want)
			}
		}
	})
}
