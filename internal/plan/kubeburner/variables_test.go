package kubeburner

import (
	"slices"
	"strings"
	"testing"
	"time"
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
		{"of the environment, in a text and behind a pipe", `{{ expandenv "$A/${B}" }}{{ "C" | env | upper }}`, []string{"A", "B", "C"}},
		{"as arguments", "{{ mul (add .A 1) (atoi .B) }}{{ $x := .C }}{{ $x.d }}", []string{"A", "B", "C"}},
		{"none", "jobs: []", nil},
	} {
		got, err := Variables("c.yml", []byte(tt.text))
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.why, got, err, tt.want)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{"a: {{ env `A` }}{{ env \"B\" }}{{ .C }}{{ if env `D` }}{{ end }}", "A B D"},
		{"{{ define `f` }}{{ with .X }}{{ env `A` }}{{ end }}{{ end }}", "A"},
		{"a: env \"A\" # {{/* env `B` */}}", ""},
		{"{{ range $i := until .n }}{{ $i }}{{ end }}{{ get . `E` }}", ""},
		{"{{ if }", ""},
	} {
		if got := strings.Join(EnvironmentOf([]byte(tt.text)), " "); got != tt.want {
			t.Errorf("%q reads %q of the environment, want %q", tt.text, got, tt.want)
		}
	}
	if got := TemplateNames([]byte("global:\n  functionTemplates:\n  - a.tpl\n  - \"b-c.tpl\"\n  gc: true\n")); !slices.Equal(got, []string{"a.tpl", "b-c.tpl"}) {
		t.Errorf("files of functions %v", got)
	}
	if got := TemplateNames([]byte("global: {functionTemplates: [a.tpl, 'd/b.tpl']}\n")); !slices.Equal(got, []string{"a.tpl", "d/b.tpl"}) {
		t.Errorf("files of functions %v", got)
	}
	if got := TemplateNames([]byte("- objectTemplate: a/b.yml # as it is\n- {objectTemplate: 'c.yml', replicas: 1}\n- objectTemplate: {{ .T }}\n")); !slices.Equal(got, []string{"a/b.yml", "c.yml"}) {
		t.Errorf("templates %v", got)
	}
	if _, err := Variables("c.yml", []byte("{{ if }")); err == nil {
		t.Error("a template that is none has variables")
	}
}

// Settings among user data replace what the file states, and defaults; what they cannot name is a mistake.
func TestSettings(t *testing.T) {
	const text = "jobs:\n- name: a\n  jobIterations: 1\n  objects: [{objectTemplate: t.yml}]\n"
	parse := func(name string, value any) (*Config, error) {
		c, err := Parse("c.yml", []byte(text), Input{UserData: map[string]any{name: value}})
		if err == nil {
			Default(c)
		}
		return c, err
	}
	for _, tt := range []struct {
		name  string
		value any
		got   func(*Config) any
		want  any
	}{
		{"jobs.0.jobIterations", int64(2), func(c *Config) any { return c.Jobs[0].JobIterations }, 2},
		{"jobs.0.waitWhenFinished", false, func(c *Config) any { return c.Jobs[0].WaitWhenFinished }, false},
		{"jobs.0.jobPause", "3s", func(c *Config) any { return c.Jobs[0].JobPause }, 3 * time.Second},
		{"jobs.0.churnConfig.cycles", int64(4), func(c *Config) any { return c.Jobs[0].ChurnConfig.Cycles }, 4},
		{"jobs.0.objects.0.inputVars.n", int64(5), func(c *Config) any { return c.Jobs[0].Objects[0].InputVars["n"] }, 5},
		{"jobs.0.namespaceLabels.a.b/c", "d", func(c *Config) any { return c.Jobs[0].NamespaceLabels["a.b/c"] }, "d"},
		{"jobs.last.objects.all.replicas", int64(7), func(c *Config) any { return c.Jobs[0].Objects[0].Replicas }, 7},
		{"global.gc", true, func(c *Config) any { return c.Global.GC }, true},
	} {
		c, err := parse(tt.name, tt.value)
		if err != nil || tt.got(c) != tt.want {
			t.Errorf("%s=%v: %v", tt.name, tt.value, err)
		}
	}
	for name, want := range map[string]string{"jobs.0.jobIteration": `did you mean "jobIterations"?`, "jobs.1.name": "has 1 of jobs, counted from 0", "jobs.x.name": `and not "x"`, "jobs.0.name.x": "jobs.0.name is a value", "jobs.0.qps": ""} {
		if _, err := parse(name, "few"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if IsSetting("QPS") || IsSetting("jobs") || IsSetting("JOBS.x") {
		t.Error("a variable is a setting")
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
