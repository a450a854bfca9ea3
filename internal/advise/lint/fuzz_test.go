package lint

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
)

// FuzzLint asks that no text makes the linter panic, that each finding says
// where it is in the text, that edits stay inside of it, and that fixing comes
// to an end at which a second time changes nothing.
func FuzzLint(f *testing.F) {
	seeds, err := readArchives()
	if err != nil {
		f.Fatal(err)
	}
	for _, in := range seeds {
		f.Add(in.Name, string(in.Data))
	}
	for _, s := range [][2]string{
		{"a.yaml", "apiVersion: v1\nkind: List\nitems: [*a, &a {kind: List}]\n"}, {"a.yaml", "a: &a [*a]\n"}, {"a.md", "```\n"}, {"a.md", "```\n$ \n```\n````\n"},
		{"a.sh", "cat <<\n"}, {"a.sh", "cat <<E <<F\nE\nF\n"}, {"a.sh", "$ oc patch -p\n'{\n"}, {"x", "[a:vars\n[]\n[:vars]\n="}, {"sysctl.conf", "=\n-\n-=\nnet/=\n"},
		{"haproxy.cfg", "global\n\\\n cpu-map\n"}, {"a.fio", "[]\nsize=\n[a]\nsize=1e999g"}, {"a.txt", "fsd=a,depth=1e9,width=1e9,files=9,size=(,)"},
		{"a.yaml", "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nspec: {config: {ignition: {version: 3}, storage: {files: [{path: /a, contents: {source: 'data:,%'}}]}}}\n"},
		{"user-data", "#cloud-config\n- a\n"}, {"a.yaml", "\ufeffapiVersion: v1\r\nkind: Pod\r\n"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, name, data string) {
		inputs := []reading.Input{{Name: name, Data: []byte(data), Asked: true}}
		r := Lint(inputs, Options{})
		lines := len(reading.NewText(inputs[0]).Lines)
		for _, found := range r.Findings {
			if found.Line < 1 || found.Line > lines || found.Found == "" || found.Fix == "" || found.Why == "" {
				t.Errorf("%q: %+v of %d lines", data, found, lines)
			}
			for _, e := range found.Edits {
				if e.Start < 0 || e.End < e.Start || e.End > len(e.Text.Data) {
					t.Errorf("%q: %s edits %d to %d of %d", data, found.Rule, e.Start, e.End, len(e.Text.Data))
				}
			}
		}
		fixed := Fix(inputs, Options{})
		if len(fixed.Changes) == 0 {
			return
		}
		again := Fix([]reading.Input{{Name: name, Data: fixed.Changes[0].After, Asked: true}}, Options{})
		if len(again.Changes) > 0 && len(fixed.Done) < maxRounds {
			t.Errorf("%q: fixed to %q, and then to %q", data, fixed.Changes[0].After, again.Changes[0].After)
		}
	})
}
