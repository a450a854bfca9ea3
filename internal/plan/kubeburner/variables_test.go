package kubeburner

import (
	"slices"
	"testing"
)

func TestVariables(t *testing.T) {
	for _, tt := range []struct {
		why, text string
		want      []string
	}{
		{"fields", "a: {{ .A }} {{ .B.c | default 1 }} {{ .UUID }}", []string{"A", "B"}},
		{"in conditions, and in what they hold", "{{ if .A }}{{ .B }}{{ else if eq .C 1 }}{{ .D }}{{ end }}", []string{"A", "B", "C", "D"}},
		{"the dot is another one within", "{{ range .A }}{{ .b }}{{ $.C }}{{ else }}{{ .D }}{{ end }}{{ with .E }}{{ .f }}{{ end }}", []string{"A", "C", "D", "E"}},
		{"looked up by name", `{{ get . "A" | default 3 }}{{ hasKey $ "B" }}{{ index . "C" }}{{ get .D "e" }}`, []string{"A", "B", "C", "D"}},
		{"of the environment", `{{ env "A" }}{{ if eq (env "B") "x" }}{{ end }}`, []string{"A", "B"}},
		{"as arguments", "{{ mul (add .A 1) (atoi .B) }}{{ $x := .C }}{{ $x.d }}", []string{"A", "B", "C"}},
		{"none", "jobs: []", nil},
	} {
		got, err := Variables("c.yml", []byte(tt.text))
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.why, got, err, tt.want)
		}
	}
	if got := TemplateNames([]byte("- objectTemplate: a/b.yml # as it is\n- {objectTemplate: 'c.yml', replicas: 1}\n- objectTemplate: {{ .T }}\n")); !slices.Equal(got, []string{"a/b.yml", "c.yml"}) {
		t.Errorf("templates %v", got)
	}
	if _, err := Variables("c.yml", []byte("{{ if }")); err == nil {
		t.Error("a template that is none has variables")
	}
}

// Whole numbers reach object templates as the numbers that functions take, and the
// environment that was passed in is the one that they read.
func TestWhatObjectTemplatesGet(t *testing.T) {
	c, err := Parse("c.yml", []byte("jobs:\n- name: a\n  objects: [{objectTemplate: t.yml, inputVars: {n: 2, l: [3]}}]\n"), Input{Env: map[string]string{"TEAM": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	vars := c.Jobs[0].Objects[0].InputVars
	compiled, err := CompileTemplate("t.yml", `a: "{{ range $i := until .n }}{{ $i }}{{ end }}{{ untilStep 0 (index .l 0) 1 }}{{ env "TEAM" }}"`, TemplateOptions{Env: c.env})
	if err != nil {
		t.Fatal(err)
	}
	docs, err := compiled.Render(Vars{Input: vars})
	if err != nil || docs[0]["a"] != "01[0 1 2]x" {
		t.Errorf("%v, %v", docs, err)
	}
}
