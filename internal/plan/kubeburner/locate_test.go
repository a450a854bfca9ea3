package kubeburner

import "testing"

func TestAProblemKnowsItsLine(t *testing.T) {
	template, err := CompileTemplate("t.yml", `# {{/* nothing */}}
{{- if true }}
kind: A
{{- end }}
---
kind: B
metadata:
  name: b-{{.Iteration}}
  annotations:
    example.com/a.b: x
spec:
  {{- range until 2 }}
  list{{.}}: [1, 2]
  {{- end }}
  ports:
  - port: 1
  - port: 2
    name: two
`, TemplateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		doc  int
		path string
		line int
		why  string
	}{
		{1, "metadata.name", 8, "a line with an action"},
		{1, "spec.ports[1].port", 17, "an entry of a list"},
		{1, "spec.ports[1].name", 18, "its second key"},
		{1, "spec.ports[7].name", 15, "an entry that is not there: the list"},
		{1, "metadata.annotations[example.com/a.b]", 10, "a key with dots, as the server writes it"},
		{1, "metadata.annotations.example.com/a.b", 10, "and as others do"},
		{1, "spec.replicas", 11, "what is missing: where it would stand"},
		{1, "spec.list1", 13, "a line that is written twice"},
		{0, "", 3, "all of a document"},
		{5, "kind", 0, "a document that is not there"},
	} {
		if p := template.Problem(Vars{Replica: 1}, tt.doc, tt.path, "no"); p.Line != tt.line || p.File != "t.yml" {
			t.Errorf("%s: %s, want line %d", tt.why, p, tt.line)
		}
	}
}
