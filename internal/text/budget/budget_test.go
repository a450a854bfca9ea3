package budget

import (
	"errors"
	"strings"
	"testing"
	"text/template"
)

// Templates without functions of their own have the same budget, and one execution after
// the other has all of it.
func TestABudgetIsOfOneExecution(t *testing.T) {
	t.Parallel()
	b := &Budget{Most: 1000, Work: 100_000}
	compiled := func(text string) *template.Template {
		of, err := template.New("t").Funcs(b.Functions(nil, nil)).Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		Compile(of)
		return of
	}
	rounds := compiled(`{{ range . }}{{ if . }}{{ printf "%d" . }},{{ else }}{{ continue }}{{ end }}{{ end }}{{ with 1 }}{{ . }}{{ end }}`)
	for range 3 {
		if out, err := b.Execute(rounds, []int{1, 0, 2}); err != nil || string(out) != "1,2,1" {
			t.Errorf("%s, %v", out, err)
		}
	}
	for why, text := range map[string]string{
		"rounds":            `{{ range 1000000 }}{{ end }}`,
		"a text of doubles": `{{ $x := "a" }}{{ range 40 }}{{ $x = print $x $x }}{{ end }}`,
		"widths":            `{{ printf "%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d" 1 }}`,
		"output":            `{{ range 1000 }}ab{{ end }}`,
		"calls":             `{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`,
	} {
		if out, err := b.Execute(compiled(text), nil); !errors.As(err, new(*Error)) {
			t.Errorf("%s: %d bytes, %v", why, len(out), err)
		}
	}
	called := strings.Repeat(`{{ template "b" . }}`, 200) // one after the other
	if out, err := b.Execute(compiled(`{{ define "b" }}{{ . }}{{ end }}`+called), 1); err != nil || len(out) != 200 {
		t.Errorf("%s, %v", out, err)
	}
}
