package kubeburner

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// Profiles are read whole, and what is wrong in them is named by their own lines.
func TestProfiles(t *testing.T) {
	for _, tt := range []struct {
		why, alerts, metrics string
		err                  string // "" for none
	}{
		{"alerts and metrics", "- {expr: 'rate(a_total[{{ .elapsed }}]) > {{ .MOST }}', severity: error, description: 'of {{$labels.job}}: {{$value}}'}\n- {expr: up == 0}\n", "- {query: 'sum(a)', metricName: a, instant: true, captureStart: true}\n", ""},
		{"an unknown key", "- {exp: a, severity: error}\n", "[]", `a.yml:1:4: [0]: unknown key "exp" (did you mean "expr"?)`},
		{"an unknown severity", "- {expr: a, severity: eror}\n", "[]", `a.yml:1:23: [0].severity: there is no "eror" here (did you mean "error"?)`},
		{"an alert without an expression", "- {severity: error}\n", "[]", "a.yml:1:3: [0].expr: is missing"},
		{"a metric without a name", "[]", "- {query: a}\n", "m.yml:1:3: [0].metricName: is missing"},
		{"no PromQL", "- {expr: 'sum(', severity: error}\n", "[]", `a.yml: query "sum("`},
		{"a variable that is not set", "- {expr: 'a > {{ .NONE }}'}\n", "[]", `the template needs "NONE", which is not set`},
		{"a description that is not a template", "- {expr: a, description: '{{$label.x}}'}\n", "[]", "undefined variable"},
		{"a template that does not end", "[]", "- {query: '{{ range until 1000000000 }}a{{ end }}', metricName: a}\n", "m.yml:1"},
		{"a missing file", "", "[]", `file "a.yml" does not exist`},
	} {
		fsys := fstest.MapFS{"m.yml": {Data: []byte(tt.metrics)}}
		if tt.alerts != "" {
			fsys["a.yml"] = &fstest.MapFile{Data: []byte(tt.alerts)}
		}
		c, err := Parse("c.yml", []byte("metricsEndpoints: [{endpoint: 'http://x', alerts: [a.yml], metrics: [m.yml]}]\n"), Input{Env: map[string]string{"MOST": "3"}})
		if err != nil {
			t.Fatal(err)
		}
		Default(c)
		list, err := c.Profiles(fsys)
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %v", tt.why, err)
		}
		if tt.err != "" || err != nil {
			continue
		}
		if len(list) != 1 || len(list[0].Alerts) != 2 || len(list[0].Metrics) != 1 || !list[0].Alerts[0].Fails() || list[0].Alerts[1].Fails() {
			t.Fatalf("%+v", list)
		}
		a := &list[0].Alerts[0]
		if promQL, err := a.PromQL(150 * time.Second); promQL != "rate(a_total[2m]) > 3" || err != nil {
			t.Errorf("%q, %v", promQL, err)
		}
		if text, err := a.Describe(map[string]string{"job": "x"}, 1.23456); text != "of x: 1.235" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
}
