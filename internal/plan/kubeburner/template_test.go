package kubeburner

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"plimsoll.dev/plimsoll/internal/text/budget"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

func compile(t *testing.T, text string, o TemplateOptions) *Template {
	t.Helper()
	compiled, err := CompileTemplate("t.yml", text, o)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestRender(t *testing.T) {
	vars := Vars{Iteration: 3, Replica: 2, JobName: "job", UUID: "uuid", RunID: "run",
		Input: map[string]any{"image": "pause", "port": int64(80), "list": []any{"a", "b"}}}
	functionFile := Source{Name: "envs.tpl", Text: `{{- define "envs" -}}{{- range .list }}
- name: {{ . }}
{{- end }}{{- end }}`}
	type docs = []map[string]any
	for _, c := range []struct {
		why, text string
		options   TemplateOptions
		vars      Vars
		want      docs
	}{
		{"the names that are always there", "a: [{{.Iteration}}, {{.Replica}}, {{.JobName}}, {{.UUID}}, {{.RunID}}]", TemplateOptions{}, vars,
			docs{{"a": []any{int64(3), int64(2), "job", "uuid", "run"}}}},
		{"input variables", "a: {{.image}}:{{.port}}", TemplateOptions{}, vars, docs{{"a": "pause:80"}}},
		{"input variables lie over the names that are always there", "a: {{.JobName}}", TemplateOptions{},
			Vars{JobName: "job", Input: map[string]any{"JobName": "mine"}}, docs{{"a": "mine"}}},
		{"several documents, empty ones left out", "---\n---\na: 1\n---\n{{ if false }}b: 1{{ end }}\n---\nc: yes\n", TemplateOptions{}, vars,
			docs{{"a": int64(1)}, {"c": true}}},
		{"nothing", "{{ if false }}a: 1{{ end }}", TemplateOptions{}, vars, docs{}},
		{"JSON is YAML", `{"a": "{{.image}}", "n": 1.0}`, TemplateOptions{}, vars, docs{{"a": "pause", "n": int64(1)}}},
		{"function templates", `e:{{ template "envs" (dict "list" .list) }}`, TemplateOptions{Functions: []Source{functionFile}}, vars,
			docs{{"e": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}}}},
		{"missing keys as nothing", "a: x{{ if .nope }}y{{ end }}", TemplateOptions{MissingKeysAsZero: true}, vars, docs{{"a": "x"}}},
		{"a file", `a: {{ ReadFile "f" | quote }}`, TemplateOptions{FS: fstest.MapFS{"f": {Data: []byte("x")}}}, vars, docs{{"a": "x"}}},
	} {
		got, err := compile(t, c.text, c.options).Render(c.vars)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
		} else if len(got)+len(c.want) > 0 && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.why, got, c.want)
		}
	}
}

func TestRenderErrors(t *testing.T) {
	vars := Vars{Iteration: 1, Replica: 1, Input: map[string]any{"image": "pause"}}
	for _, c := range []struct {
		why, text string
		functions []Source
		want      string
	}{
		{"a missing variable and the nearest", "a: 1\nb: {{ .imag }}\n", nil, `t.yml:2:7: the template needs "imag", which is not set (did you mean "image"?)`},
		{"broken YAML, on the template's line", "{{ if true }}\n{{ end }}\na: b\nc: d: {{ .image }}\n", nil,
			"t.yml:4: not valid YAML: mapping value is not allowed in this context in the rendered line: c: d: pause"},
		{"a list is no manifest", "{{/* c\n */}}\n- a\n", nil, "t.yml:3:1: wants a mapping, found a list"},
		{"a template that cannot be read", "a: {{ .x", nil, "t.yml:1: the template is not valid: unclosed action"},
		{"a function template that cannot be read", "a: 1", []Source{{"f.tpl", "\n{{ foo }}"}}, `f.tpl:2: the template calls "foo", which is not a function here`},
		{"the environment is not read behind our back", "a: {{ env \"HOME\" }}", nil,
			`t.yml:1: the template calls "env", which is not a function here (object templates do not read the environment: pass the value in inputVars)`},
		{"a template that calls itself", `{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, nil, ""},
		{"function templates that call each other", `a: {{ template "x" }}`, []Source{{"f.tpl", `{{ define "x" }}{{ template "y" }}{{ end }}`}, {"g.tpl", `{{ define "y" }}{{ template "x" }}{{ end }}`}}, ""},
		{"a template that writes without end", `{{ range until 4000 }}{{ range until 4000 }}abcdefghij{{ end }}{{ end }}`, nil, ""},
	} {
		compiled, err := CompileTemplate("t.yml", c.text, TemplateOptions{Functions: c.functions})
		if err == nil {
			_, err = compiled.Render(vars)
		}
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.why)
		case c.want != "" && err.Error() != c.want:
			t.Errorf("%s:\n got %s\nwant %s", c.why, err, c.want)
		case strictyaml.Problems(err) == nil:
			t.Errorf("%s: %v is no list of problems", c.why, err)
		}
	}
}

func TestTemplatesOfAConfig(t *testing.T) {
	fsys := fstest.MapFS{
		"envs.tpl":      {Data: []byte(`{{ define "env" }}x{{ end }}`)},
		"templates/pod": {Data: []byte(`a: {{ template "env" }}`)},
	}
	c := &Config{Global: Global{FunctionTemplates: []string{"./envs.tpl"}}, Jobs: []Job{
		{Name: "a", Objects: []Object{{ObjectTemplate: "templates/pod"}, {Kind: "Pod"}}}, {Name: "b"},
	}}
	got, err := c.Templates(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || len(got[0]) != 2 || got[0][0] == nil || got[0][1] != nil || len(got[1]) != 0 {
		t.Fatalf("got %v", got)
	}
	if docs, err := got[0][0].Render(Vars{}); err != nil || docs[0]["a"] != "x" {
		t.Errorf("rendered %v, %v", docs, err)
	}
	for _, c := range []struct{ why, function, object, want string }{
		{"a misspelt file", "envs.tpl", "templates/pot", `jobs[0].objects[0].objectTemplate: file "templates/pot" does not exist, did you mean "templates/pod"?`},
		{"a URL", "envs.tpl", "https://x/y.yml", `jobs[0].objects[0].objectTemplate: https://x/y.yml is a URL, and URLs are not supported yet: save the file beside the configuration`},
		{"an absolute path", "envs.tpl", "/etc/passwd", `jobs[0].objects[0].objectTemplate: "/etc/passwd" lies outside the configuration's directory; --allow names a file or directory that may be read`},
		{"a function template that is missing", "env.tpl", "templates/pod", `global.functionTemplates[0]: file "env.tpl" does not exist, did you mean "envs.tpl"?`},
	} {
		config := &Config{Global: Global{FunctionTemplates: []string{c.function}}, Jobs: []Job{{Objects: []Object{{ObjectTemplate: c.object}}}}}
		if _, err := config.Templates(fsys); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.why, err, c.want)
		}
	}
}

func TestSpecialise(t *testing.T) {
	functions := []Source{{"f.tpl", `{{ define "plain" }}x{{ . }}{{ end }}{{ define "chance" }}{{ randAlpha 3 }}{{ end }}`}}
	input := map[string]any{"image": "pause", "list": []any{"a", "b"}, "m": map[string]any{"Iteration": "inner", "k": "v"}, "n": int64(2)}
	for _, c := range []struct {
		why, text string
		ok        bool
	}{
		{"amid text", "metadata: {name: 'pod-{{.Iteration}}-{{ .Replica }}', labels: {app: x}}", true},
		{"no slot at all", "a: {{.image}}", true},
		{"several documents", "a: x{{.Iteration}}\n---\nb: y{{.Replica}}\n", true},
		{"in quotes it stays text", "a: \"{{.Iteration}}\"", true},
		{"as a number it changes type", "a: {{.Iteration}}", false},
		{"part of a number", "a: 80{{.Replica}}", false},
		{"a number for binary digits only", "a: 0b{{.Iteration}}", false},
		{"a number for octal digits only", "a: 0o{{.Iteration}}", false},
		{"hexadecimal", "a: 0x{{.Iteration}}", false},
		{"two numbers side by side", "a: {{.Iteration}}{{.Replica}}", false},
		{"binary only together", "a: 0b{{.Iteration}}{{.Replica}}", false},
		{"digits with a dash are text", "a: {{.Iteration}}-{{.Replica}}", true},
		{"an exponent", "a: 1e{{.Replica}}", false},
		{"in a key", "a: {'k{{.Iteration}}': v, other: w}", true},
		{"keys that could meet", "a: {'k{{.Iteration}}': v, 'k{{.Replica}}': w}", false},
		{"a key that could meet one without a slot", "a: {'k{{.Iteration}}': v, k7654321: w}", false},
		{"in a comment", "a: b # {{.Iteration}}", true},
		{"in a block scalar", "a: |\n  x {{.Iteration}}\n  y {{.Replica}}\n", true},
		{"as an indentation indicator", "a: |{{.Replica}}\n          x\n", false},
		{"through a pipeline", "a: {{ .Iteration | printf \"%03d\" }}", false},
		{"through a function", "a: x{{ add .Iteration 1 }}", false},
		{"in a condition", "a: x{{ if eq .Replica 1 }}y{{ end }}", false},
		{"inside a condition about something else", "{{ if .image }}a: x{{.Iteration}}{{ end }}", true},
		{"in a variable", "{{ $i := .Iteration }}a: x{{ $i }}", false},
		{"by way of $", "a: x{{ $.Iteration }}", true},
		{"by way of $ in a loop", "a: [{{ range .list }}x{{ . }}{{ $.Replica }},{{ end }}]", true},
		{"dot in a loop is no slot", "a: [{{ range $i, $v := .list }}{{ $v }}{{ . }}{{ $i }},{{ end }}]", true},
		{"a field of the same name elsewhere", "a: {{ with .m }}{{ .Iteration }}{{ end }}", true},
		{"the whole data, printed", "a: \"{{ . }}\"", false},
		{"the whole data, passed on", "a: {{ template \"plain\" . }}", false},
		{"by $ as a whole", "a: {{ range .list }}{{ len $ }}{{ end }}", false},
		{"a part passed on", "a: {{ template \"plain\" .image }}", true},
		{"a slot passed on", "a: {{ template \"plain\" .Iteration }}", false},
		{"looked up by name", `a: {{ get . "image" }}{{ index . "image" }}{{ hasKey . "nope" }}{{ get $ "image" | default "x" }}`, true},
		{"a slot looked up by name", `a: x{{ get . "Iteration" }}`, false},
		{"looked up by a computed name", `a: x{{ get . (print "Iter" "ation") }}`, false},
		{"looked up by a name from a pipe", `a: x{{ "Iteration" | get . }}`, false},
		{"chance", "a: x{{.Iteration}}{{ randAlpha 3 }}", false},
		{"chance in a function template", "a: x{{ template \"chance\" }}", false},
		{"the clock", "a: '{{ now | date \"2006\" }}'", false},
		{"the order of a map", "a: {{ keys .m | first }}", false},
		{"an inner map changed", "{{ $_ := set .m \"k\" \"w\" }}a: {{ .m.k }}{{.Iteration}}", true},
		{"the data changed", "{{ $_ := set . \"k\" \"w\" }}a: x{{.Iteration}}", false},
		{"a template that fails", "a: {{ .nope }}", false},
		{"the mark in the text", "a: " + iterationMark, false},
	} {
		compiled, err := CompileTemplate("t.yml", c.text, TemplateOptions{Functions: functions, MissingKeysAsZero: false})
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		pattern, ok := compiled.Specialise(Vars{JobName: "j", UUID: "u", RunID: "r", Input: input})
		if ok != c.ok {
			t.Errorf("%s: %q gives ok = %v", c.why, c.text, ok)
		}
		if ok {
			agree(t, compiled, pattern, Vars{JobName: "j", UUID: "u", RunID: "r", Input: input})
		}
	}
}

// agree compares a pattern with its slow twin on slots that Specialise does
// not look at.
func agree(t *testing.T, compiled *Template, pattern *Pattern, v Vars) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		v.Iteration, v.Replica = random.IntN(1<<random.IntN(24)), 1+random.IntN(1<<random.IntN(12))
		slow, err := compiled.Render(v)
		if err != nil {
			t.Fatalf("%q, slot %d/%d: %v", compiled.text, v.Iteration, v.Replica, err)
		}
		if fast := pattern.Fill(v.Iteration, v.Replica); !reflect.DeepEqual(fast, slow) {
			t.Fatalf("%q, slot %d/%d:\nfast %v\nslow %v", compiled.text, v.Iteration, v.Replica, fast, slow)
		}
	}
}

func TestSpecialiseOverlaidSlot(t *testing.T) {
	v := Vars{Input: map[string]any{"Iteration": "fixed"}}
	compiled := compile(t, "a: {{.Iteration}}-{{.Replica}}", TemplateOptions{})
	pattern, ok := compiled.Specialise(v)
	if !ok || pattern.Fill(5, 6)[0]["a"] != "fixed-6" {
		t.Errorf("got %+v, %v", pattern, ok)
	}
}

// TestFastEqualsSlow makes templates at random and asks every pattern that is
// offered to agree with its slow twin.
func TestFastEqualsSlow(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"{{.Iteration}}", "{{ .Replica }}", "{{ $.Iteration }}", "{{- .Replica -}}", "x", "0", "1", "0b", "0o", "0x", "-", ".", "e", "_", "+",
		"{{.image}}", "\"", "'", " ", ": ", "\n", "\n  ", "- ", "a", "b: ", "|", ">", "#", "{{ if .image }}", "{{ end }}", "{{ range .list }}", "{{ . }}",
		"{{ add .Iteration 1 }}", "{{ if eq .Iteration 1 }}", "[", "]", "{", "}", ",", "~", "true", "---\n", "&a ", "*a", "!!str ", "<<: "}
	offered := 0
	for range 10_000 {
		text := "k: " // most texts are no YAML at all otherwise
		for range 1 + random.IntN(7) {
			text += pieces[random.IntN(len(pieces))]
		}
		compiled, err := CompileTemplate("t.yml", text, TemplateOptions{})
		if err != nil {
			continue
		}
		v := Vars{Input: map[string]any{"image": "i", "list": []any{"p", "q"}}}
		pattern, ok := compiled.Specialise(v)
		if !ok {
			continue
		}
		offered++
		for _, slot := range [][2]int{{3, 4}, {11, 1}, {20, 30}, {100, 101}, {random.IntN(1e6), 1 + random.IntN(1e4)}} {
			v.Iteration, v.Replica = slot[0], slot[1]
			slow, err := compiled.Render(v)
			if err != nil || !reflect.DeepEqual(slow, pattern.Fill(slot[0], slot[1])) {
				t.Fatalf("%q, slot %v: slow %v, %v; fast %v", text, slot, slow, err, pattern.Fill(slot[0], slot[1]))
			}
		}
	}
	if offered < 250 {
		t.Errorf("only %d patterns were compared", offered)
	}
}

func TestTemplateIsUsedByManyAtOnce(t *testing.T) {
	compiled := compile(t, "{{ $_ := set .m \"k\" .Iteration }}a: x{{ .m.k }}", TemplateOptions{})
	m := map[string]any{"k": "v"}
	var all sync.WaitGroup
	for i := range 20 {
		all.Add(1)
		go func() {
			defer all.Done()
			docs, err := compiled.Render(Vars{Iteration: i, Input: map[string]any{"m": m}})
			if want := fmt.Sprintf("x%d", i); err != nil || docs[0]["a"] != want {
				t.Errorf("got %v, %v, want %s", docs, err, want)
			}
		}()
	}
	all.Wait()
	if m["k"] != "v" {
		t.Errorf("rendering changed the input variables to %v", m)
	}
}

// FuzzTemplate asks that no template makes the package panic, that marking
// lines changes nothing in what is rendered, and that fast equals slow.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		"a: {{.Iteration}}", "a: x{{.Iteration}}-{{.Replica}}", "{{ range .list }}\n- {{ . }}\n{{ end }}", "{{ define \"x\" }}y{{ end }}a: {{ template \"x\" }}",
		"{{- if .image -}}\na: b\n{{- else }}\nc: d\n{{ end }}", "a: {{ index .list 1 }}\n---\nb: {{ with .image }}{{ . }}{{ $.Replica }}{{ end }}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Sprig's functions can be asked for any amount of memory.
		for _, greedy := range []string{"repeat", "until", "seq", "indent", "rand", "gen", "bcrypt", "htpasswd", "derive", "printf", "wrap", "chunk"} {
			if strings.Contains(text, greedy) {
				return
			}
		}
		compiled, err := CompileTemplate("t.yml", text, TemplateOptions{})
		if err != nil {
			return
		}
		v := Vars{Iteration: 5, Replica: 3, Input: map[string]any{"image": "i", "list": []any{"p", "q"}}}
		checkLines(t, compiled, text, v)
		pattern, ok := compiled.Specialise(v)
		if !ok {
			return
		}
		v.Iteration, v.Replica = 4321, 17
		slow, err := compiled.Render(v)
		if err != nil || !reflect.DeepEqual(slow, pattern.Fill(4321, 17)) {
			t.Fatalf("%q: slow %v, %v; fast %v", text, slow, err, pattern.Fill(4321, 17))
		}
	})
}

// checkLines renders with and without marks. Without actions every line comes
// from itself.
func checkLines(t *testing.T, compiled *Template, text string, v Vars) {
	for _, chance := range []string{"now", "uuid", "shuffle", "keys", "values", "ago", "date", "encrypt", "Date"} {
		if strings.Contains(text, chance) {
			return
		}
	}
	plain, err := execute(compiled.compiled, v.data(), compiled.funcs)
	if err != nil || bytes.ContainsRune(plain, 0) {
		return
	}
	marked, origin, err := executeWithLines(compiled.compiled, text, v.data(), compiled.funcs)
	if err != nil || !bytes.Equal(marked, plain) {
		t.Fatalf("%q: with lines %q, %v; without %q", text, marked, err, plain)
	}
	last := 1 + strings.Count(text, "\n")
	for i, line := range strings.Split(string(plain), "\n") {
		from := origin(i + 1)
		if from.Line < 1 || from.Line > last || !strings.Contains(text, "{{") && (from.Line != i+1 || from.Text != "") {
			t.Fatalf("%q: line %d (%q) comes from %+v", text, i+1, line, from)
		}
	}
}

// TestLinesComeFromWhereTheyAreWritten renders templates whose every line of
// text names its own line.
func TestLinesComeFromWhereTheyAreWritten(t *testing.T) {
	text := strings.Join([]string{
		"line: 1",
		"{{- range $i := until 3 }}",
		"line: 3 {{ $i }}",
		"{{- if eq $i 1 }}",
		"line: 5",
		"  {{- else -}}",
		"  {{ $i }} line: 7",
		"{{ end }}",
		"line: 9",
		"{{ end -}}",
		"",
		"{{ define \"d\" -}}",
		"line: 13",
		"line: 14",
		"{{ end }}",
		"{{ template \"d\" }}",
		"line: 17",
		"{{ \"line: 18\\nline: 18\" }}",
		"line: 19",
		"",
	}, "\n")
	funcs := functions(nil)
	compiled, err := newTemplate("t.yml", text, funcs, false)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := execute(compiled, nil, funcs)
	if err != nil {
		t.Fatal(err)
	}
	out, origin, err := executeWithLines(compiled, text, nil, funcs)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out, plain) {
		t.Errorf("marks are left:\n%q\n%q", out, plain)
	}
	compared := 0
	for i, line := range strings.Split(string(out), "\n") {
		var want int
		if at := strings.LastIndex(line, "line: "); at < 0 {
			continue
		} else if _, err := fmt.Sscanf(line[at:], "line: %d", &want); err != nil {
			t.Fatal(err)
		}
		// Text that follows an action on the same rendered line began earlier.
		if strings.Count(line, "line: ") > 1 || want == 7 {
			continue
		}
		compared++
		if got := origin(i + 1).Line; got != want {
			t.Errorf("rendered line %d (%q) is said to come from line %d", i+1, line, got)
		}
	}
	if compared < 10 {
		t.Errorf("only %d lines were compared:\n%s", compared, out)
	}
}

func TestFunctions(t *testing.T) {
	for _, c := range []struct{ why, text, want string }{
		{"ways to choose", "{{ Binomial 10 4 }}", "210"},
		{"the first choice", "{{ IndexToCombination nil 0 4 2 }}", "[0 1]"},
		{"the last choice", "{{ IndexToCombination nil 5 4 2 }}", "[2 3]"},
		{"no choice has that index", "{{ IndexToCombination nil 6 4 2 }}", "error: there are 6 choices of 2 of 4, none has the index 6"},
		{"more than a number holds", "{{ Binomial 200 100 }}", "error: choosing 100 of 200 gives a number above 2^63"},
		{"more than a number holds, long before the end", "{{ Binomial 1000000000 500000000 }}", "error: choosing 500000000 of 1000000000 gives a number above 2^63"},
		{"the most that a number holds", "{{ Binomial 66 33 }}", "7219428434016265740"},
		{"numbers that fill the memory", "{{ range until 300000000 }}{{ end }}", "error: it would make 300000000 bytes or items, and at most 1000000 are made"},
		{"numbers backwards", "{{ untilStep 0 -300000000 -1 }}", "error: it would make 300000000 bytes or items, and at most 1000000 are made"},
		{"numbers as text", "{{ seq 1 1000000000 }}", "error: it would make 999999999 bytes or items, and at most 16777216 are made"},
		{"few of many numbers", "{{ seq 0 500000000 1000000000 }}", "0 500000000 1000000000"},
		{"a text that fills the memory", `{{ "abc" | repeat 2000000000 }}`, "error: it would make 6000000000 bytes or items, and at most 16777216 are made"},
		{"chance that fills the memory", "{{ randAlphaNum 1000000000 }}", "error: it would make 1000000000 bytes or items, and at most 16777216 are made"},
		{"spaces that fill the memory", `{{ "a" | indent 1000000000 }}`, "error: it would make 1000000000 bytes or items, and at most 16777216 are made"},
		{"a text that doubles", `{{ $x := "a" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}`, "error: values have more than 16777216 bytes"},
		{"a list that doubles", `{{ $x := until 2 }}{{ range until 40 }}{{ $x = concat $x $x }}{{ end }}`, "error: it would make 1048576 bytes or items, and at most 1000000 are made"},
		{"as they always were", `{{ until 3 }}{{ seq 2 }}{{ untilStep 0 5 2 }}{{ repeat 2 "ab" }}{{ indent 1 "c" }}{{ printf "%d%s" 1 "x" }}{{ list 1 nil | len }}{{ dict "a" 1 }}{{ empty nil }}`, "[0 1 2]1 2[0 2 4]abab c1x2map[a:1]true"},
		{"the first subnet", "{{ GetSubnet24 0 }}", "1.0.0.0/24"},
		{"a larger one", "{{ GetSubnet16 258 }} {{ GetSubnet16 65279 }}", "2.2.0.0/16 255.255.0.0/16"},
		{"one within it", "{{ GetSubnet24In16 258 7 }}", "2.2.7.0/24"},
		{"none within it", "{{ GetSubnet24In16 258 256 }}", "error: there is no /24 subnet with the index 258 and the offset 256"},
		{"no such larger one", "{{ GetSubnet16 65280 }}", "error: there is no /16 subnet with the index 65280 and the offset 0"},
		{"a later subnet", "{{ GetSubnet24 66051 }}", "2.2.3.0/24"},
		{"the last subnet", "{{ GetSubnet24 16711679 }}", "255.255.255.0/24"},
		{"no such subnet", "{{ GetSubnet24 16711680 }}", "error: there is no /24 subnet with the index 16711680"},
		{"an iteration's addresses", `{{ GetIPAddress "a b c d e f" 1 2 }}`, "c d"},
		{"too few addresses", `{{ GetIPAddress "a b c" 1 2 }}`, "error: 3 addresses do not reach iteration 1 with 2 each"},
		{"no address each", `{{ GetIPAddress "a b" 5 0 }}`, ""},
	} {
		funcs := functions(nil)
		compiled, err := newTemplate("t", c.text, funcs, false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := execute(compiled, nil, funcs)
		if message, failed := strings.CutPrefix(c.want, "error: "); failed {
			if err == nil || !strings.HasSuffix(err.Error(), message) {
				t.Errorf("%s: got %q, %v; want the error %s", c.why, got, err, message)
			}
		} else if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.why, got, err, c.want)
		}
	}
}

// A template of somebody else's ends, and holds no more than it may, whatever it does. Each
// is refused, and none takes long: the text of the error says why.
func TestTemplatesHaveABudget(t *testing.T) {
	t.Parallel()
	const (
		large = `{{ $x := repeat 1000000 "a" }}`
		many  = `{{ $l := until 1000000 }}`
		work  = "about 5 s of work"
		bytes = "bytes or items, and at most"
		size  = "values have more than"
	)
	for _, c := range []struct{ why, text, says string }{
		{"each letter becomes a text", large + `{{ $x | replace "a" $x }}`, bytes},
		{"a text between items", large + many + `{{ join $x $l }}`, bytes},
		{"a text for each match", large + `{{ regexReplaceAll "a" $x $x }}`, bytes},
		{"a text for each match, as it stands", large + `{{ mustRegexReplaceAllLiteral "a" $x $x }}`, bytes},
		{"a text for each line", large + `{{ wrapWith 1 $x $x }}`, bytes},
		{"what a match refers to, often", large + `{{ regexReplaceAll "(a+)" $x (repeat 100 "$1") }}`, bytes},
		{"widths of numbers", `{{ printf (repeat 1000 "%1000000d") 1 }}`, bytes},
		{"a width among the arguments", `{{ printf (repeat 100 "%*d") 1000000 1 }}`, bytes},
		{"an argument that is written often", large + `{{ printf (repeat 100 "%[1]s") $x }}`, bytes},
		{"parts of a text", large + `{{ split "" (repeat 2 $x) }}`, bytes},
		{"lists in a text", `{{ fromJson (repeat 1000000 "[],") }}`, bytes},
		{"rounds in rounds", many + `{{ range $l }}{{ range $l }}{{ end }}{{ end }}`, work},
		{"rounds over a number", `{{ range 1000000000000 }}{{ end }}`, work},
		{"templates that call themselves", `{{ define "a" }}{{ range 10 }}{{ template "a" }}{{ end }}{{ end }}{{ template "a" }}`, "call each other more than 100 deep"},
		{"hashes that take long", `{{ range until 1000000 }}{{ $y := bcrypt "a" }}{{ end }}`, work},
		{"keys that take long", `{{ range until 1000 }}{{ $y := genPrivateKey "rsa" }}{{ end }}`, work},
		{"a regular expression as large as its text", large + `{{ regexMatch (repeat 1000 "a?") $x }}`, work},
		{"a regular expression that is repeated", large + `{{ regexMatch "(a{100}){10}b" $x }}`, work},
		{"each item with each other", many + `{{ uniq $l }}`, work},
		{"choices of many", `{{ IndexToCombination nil 500000000000000000 1000000000000000000 1 }}`, work},
		{"texts that are kept", large + `{{ range until 10000 }}{{ $y := cat $x "b" }}{{ end }}`, "bytes of values"},
		{"lists that hold each other", `{{ $x := list "lol" }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`, size},
		{"the same as JSON", `{{ $x := list "lol" }}{{ range until 17 }}{{ $x = list $x $x }}{{ end }}{{ $x | toPrettyJson }}`, bytes},
		{"a map that holds itself", `{{ $x := dict }}{{ $y := set $x "x" $x }}{{ $x }}`, "nested more than 1000 deep"},
		{"a map that holds itself, given to a function", `{{ $x := dict }}{{ $y := set $x "x" $x }}{{ toJson $x }}`, "nested more than 1000 deep"},
		{"data that holds itself", `{{ $y := set . "x" . }}{{ . }}`, "nested more than 1000 deep"},
		{"deep lists", `{{ $x := list }}{{ range until 2000 }}{{ $x = list $x }}{{ end }}{{ $x }}`, "nested more than 1000 deep"},
		{"output without an end", large + `{{ range until 1000 }}{{ $x }}{{ end }}`, "writes more than"},
	} {
		funcs := functions(nil)
		compiled, err := newTemplate("t", c.text, funcs, false)
		if err != nil {
			t.Fatal(c.why, err)
		}
		if c.says == work {
			funcs.budget.Work = budget.MostWork / 40 // by the same rules, in a short test
		}
		got, err := execute(compiled, map[string]any{"Iteration": 1}, funcs)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "budget") {
			t.Errorf("%s: %d bytes, %v; want %q", c.why, len(got), err, c.says)
		}
	}
	// What an honest template does is far from it.
	for _, text := range []string{
		large + `{{ range until 100 }}{{ regexReplaceAll "[a-z]{3}" "some-text" "x" }}{{ end }}`,
		`{{ range $i := until 20000 }}- name: port-{{ $i }}{{ "\n" }}{{ end }}`,
		`{{ $l := list }}{{ range $i := until 3000 }}{{ $l = append $l (printf "10.0.%d.%d" (div $i 250) (mod $i 250)) }}{{ end }}{{ join "," $l }}`,
		`{{ $d := dict }}{{ range $i := until 2000 }}{{ $_ := set $d (toString $i) $i }}{{ end }}{{ toPrettyJson $d }}`,
		`{{ $ca := genCA "ca" 365 }}{{ (genSignedCert "a" nil nil 365 $ca).Cert }}`,
		`{{ htpasswd "a" "b" }}{{ bcrypt "a" }}`,
	} {
		funcs := functions(nil)
		compiled, err := newTemplate("t", text, funcs, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := execute(compiled, nil, funcs); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCombinationsEqualTheirEnumeration(t *testing.T) {
	for n := range 8 {
		for k := range n + 1 {
			// The slow twin counts k nested loops through.
			var all [][]int
			var choose func(from int, chosen []int)
			choose = func(from int, chosen []int) {
				if len(chosen) == k {
					all = append(all, append([]int{}, chosen...))
					return
				}
				for i := from; i < n; i++ {
					choose(i+1, append(chosen, i))
				}
			}
			choose(0, nil)
			for i, want := range all {
				got, err := indexToCombination(nil, i, n, k)
				if err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
					t.Fatalf("choice %d of %d of %d: got %v, %v; want %v", i, k, n, got, err, want)
				}
			}
			if _, err := indexToCombination(nil, len(all), n, k); err == nil {
				t.Errorf("there is a choice %d of %d of %d", len(all), k, n)
			}
		}
	}
}

func TestRepeatableFunctionsExist(t *testing.T) {
	funcs := functions(nil)
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		if funcs.FuncMap[name] != nil {
			t.Errorf("%s can be called", name)
		}
	}
	for name := range repeatable() {
		if name == "randAlpha" || name == "now" || name == "uuidv4" || name == "keys" {
			t.Errorf("%s is taken for repeatable", name)
		}
	}
}

func TestErrorsAreProblems(t *testing.T) {
	var e *strictyaml.Error
	if _, err := CompileTemplate("t", "{{", TemplateOptions{}); !errors.As(err, &e) {
		t.Errorf("%v is no list of problems", err)
	}
}
