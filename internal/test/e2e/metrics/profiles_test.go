package metrics_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// Profiles are asked of a Prometheus, or of the record of a run, with kube-burner's exit codes.
func TestProfilesOfATimeThatHasPassed(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		w.Header().Set("Content-Type", "application/json")
		kind, value := "vector", `"value":[100,"2"]`
		if r.Form.Get("start") != "" {
			kind, value = "matrix", `"values":[[100,"2"]]`
		}
		if r.Form.Get("query") == "down" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"status":"error","errorType":"execution","error":"overloaded"}`)
			return
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":[{"metric":{"job":"x"},%s}]}}`, kind, value)
	}))
	defer prometheus.Close()
	dir, run := t.TempDir(), e2e.KeptRecord(t, "pods-density")
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Chdir(dir)
	alert := func(severity, expr string) string {
		return file(severity+".yml", "[{expr: '"+expr+"', severity: "+severity+", description: 'of {{$labels.job}}: {{$value}}'}]")
	}
	file("m.yml", "[{query: a, metricName: range}, {query: plimsoll_level, metricName: level, instant: true}]")
	remote := "--prometheus-url " + prometheus.URL + " --start 90 --end 100 "
	for _, tt := range []struct {
		why, args string
		code      int
		says      []string
	}{
		{"a warning passes", "check-alerts " + remote + "-a " + alert("warning", "a"), 0, []string{"alert: warning: of x: 2 at 1970-01-01T00:01:40Z", "1 alert fired"}},
		{"an error fails", "check-alerts " + remote + "-a " + alert("error", "a"), 1, []string{"alert: error: of x: 2"}},
		{"and a critical one by its own code", "check-alerts " + remote + "-a " + alert("critical", "a"), 3, nil},
		{"what a Prometheus does not answer is no pass", "check-alerts " + remote + "-a " + alert("info", "down"), 1, []string{"warning: unknown", "overloaded"}},
		{"a record, with a query of its own figures", "check-alerts " + run + " -a " + file("own.yml", "[{expr: plimsoll_level > 0, severity: error}]"), 1, []string{"alert: error"}},
		{"a record on which nothing fires", "check-alerts " + run + " -a " + file("never.yml", "[{expr: plimsoll_level > 1e9, severity: error}]"), 0, []string{"0 alerts fired"}},
		{"a record without the metric", "check-alerts " + run + " -a " + file("etcd.yml", "[{expr: etcd_server_has_leader == 0, severity: error}]"), 1, []string{"the record has no series of etcd_server_has_leader"}},
		{"metrics as documents", "index " + remote + "-m m.yml --metrics-directory made --uuid id", 0, []string{"Documents: 2 files in made"}},
		{"a server without an index", "check-alerts " + remote + "-a " + alert("warning", "a") + " --es-server https://e", 1, []string{"--es-server and --es-index go together"}},
		{"nothing is asked", "check-alerts --prometheus-url http://x", 1, []string{"which profile?"}},
		{"nobody is asked", "check-alerts -a warning.yml", 1, []string{"name either a run directory or --prometheus-url"}},
		{"a profile that is not there", "index " + remote + "-m warnin.yml", 1, []string{"no such file: warnin.yml"}},
		{"a profile that is not valid", "check-alerts " + remote + "-a " + file("bad.yml", "[{expr: 'sum('}]"), 1, []string{"bad.yml", "unclosed left parenthesis"}},
		{"an end before the begin", "check-alerts --prometheus-url http://x --start 9 --end 8 -a warning.yml", 1, []string{"--start must lie before --end"}},
	} {
		got := e2e.Command(t, nil, append([]string{"kube-burner"}, strings.Fields(tt.args)...)...)
		for _, text := range tt.says {
			if !strings.Contains(got.Stdout+got.Stderr, text) {
				t.Errorf("%s: %q is not said\n%s%s", tt.why, text, got.Stdout, got.Stderr)
			}
		}
		if got.Code != tt.code {
			t.Errorf("%s: exit code %d, want %d\n%s%s", tt.why, got.Code, tt.code, got.Stdout, got.Stderr)
		}
	}
	var level []map[string]any
	text, err := os.ReadFile(filepath.Join(dir, "made", "level.json"))
	if err == nil {
		err = json.Unmarshal(text, &level)
	}
	if err != nil || len(level) != 1 || level[0]["value"] != 2.0 || level[0]["jobName"] != "kube-burner-indexing" || level[0]["uuid"] != "id" {
		t.Errorf("%v, %v", level, err)
	}
}
