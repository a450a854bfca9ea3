package metrics_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

func TestQueryOfARecord(t *testing.T) {
	t.Parallel()
	pods, requests := e2e.KeptRecord(t, "pods-density"), e2e.KeptRecord(t, "router-rate")
	if got := e2e.Command(t, nil, "analyze", pods); got.Code == process.ExitCouldNotRun {
		t.Fatal(got.Stderr)
	}
	for _, c := range []struct {
		why    string
		args   []string
		code   int
		stdout string // a regular expression
		stderr string
	}{
		{"the end of the last step", []string{pods, "plimsoll_level"}, 0, `^step \d+, at \d+, at [\d.]+ s since the start\nVALUE +SERIES\n\d+ +\{__name__="plimsoll_level", job="plimsoll"\}\n$`, ""},
		{"a step, with how it was judged", []string{pods, "plimsoll_step", "--step", "1"}, 0, `step="1", verdict="pass"`, ""},
		{"all of a step", []string{pods, "sum(plimsoll_objects_total)", "--step", "1", "--range", "--every", "1s"}, 0, `LEAST +MEAN +MOST +LAST +VALUES +SERIES\n0 `, ""},
		{"the whole run", []string{pods, "plimsoll_level", "--range", "-o", "csv"}, 0, `^time,value,__name__,job\n\d{4}-\d\d-\d\dT[\d:.]+Z,\d+,plimsoll_level,plimsoll\n`, ""},
		{"as Prometheus answers", []string{pods, "count(plimsoll_reading_cpu_seconds)", "-o", "json"}, 0, `^\{"status":"success","data":\{"resultType":"vector","result":\[\{"metric":\{\},"value":\[[\d.]+,"\d+"\]\}\]\}\}\n$`, ""},
		{"a range vector has all its samples", []string{pods, "plimsoll_level[3s]"}, 0, `AT +VALUE +SERIES\n[\d.]+ s +\d+ +\{__name__="plimsoll_level", job="plimsoll"\}\n[\d.]+ s +\d+ `, ""},
		{"what is ready at the very end of a step", []string{pods, `sum(plimsoll_objects_total{milestone="Ready"}) > 0`, "--step", "1"}, 0, `VALUE`, ""},
		{"a time since the start", []string{pods, "1 + 1", "--at", "2s"}, 0, `at 2.0 s since the start`, ""},
		{"requests of a stream", []string{requests, "sum(plimsoll_requests_total) > 0"}, 0, `VALUE`, ""},
		{"no data is no answer", []string{pods, "etcd_server_has_leader"}, 3, `^No data: no series on record matches`, ""},
		{"a metric with a typo", []string{pods, "sum(plimsoll_levl)"}, 3, `Did you mean plimsoll_level\?`, ""},
		{"no data as JSON", []string{pods, "nothing", "-o", "json"}, 3, `"result":\[\]`, ""},
		{"a mistake has its column", []string{pods, "sum(rate(x))"}, 2, `^$`, `query "sum\(rate\(x\)\)", column 10: expected type range vector`},
		{"a step that is not there", []string{pods, "x", "--step", "99"}, 2, `^$`, `there is no step 99`},
		{"a time that is none", []string{pods, "x", "--at", "noon"}, 2, `^$`, `--at "noon" is not a time`},
		{"two times", []string{pods, "x", "--at", "1s", "--range"}, 2, `^$`, `--at is one time`},
		{"steps of no range", []string{pods, "x", "--every", "1s"}, 2, `^$`, `between the values of a --range`},
		{"too many values", []string{pods, "plimsoll_level", "--range", "--every", "1us"}, 2, `^$`, `more than 11000 points`},
		{"no question", []string{pods}, 2, `^$`, `what is asked`},
		{"no record", []string{pods + "/metrics", "x"}, 2, `^$`, `is not a run directory`},
		{"a format that is none", []string{pods, "x", "-o", "xml"}, 2, `^$`, `want`},
		{"an address that others reach", []string{pods, "--serve", "--listen", "0.0.0.0:9090"}, 2, `^$`, `an address of this machine alone`},
		{"a question twice", []string{pods, "x", "--serve"}, 2, `^$`, `questions come by HTTP`},
	} {
		got := e2e.Command(t, nil, append([]string{"query"}, c.args...)...)
		if got.Code != c.code || !regexp.MustCompile(c.stdout).MatchString(got.Stdout) || !regexp.MustCompile(c.stderr).MatchString(got.Stderr) {
			t.Errorf("%s: %v: exit code %d, want %d\n%s%s", c.why, c.args, got.Code, c.code, got.Stdout, got.Stderr)
		}
	}
}

// A record of a lab has the metrics of all its parts, also where the run was killed.
func TestMetricsOfALab(t *testing.T) {
	t.Parallel()
	suite.Long(t, "it reads a lab's metrics for some seconds, twice")
	p := suite.Lab(t, e2e.SmallLab()...)
	p.RunTo(t, "run", "sweep", "node-density", "--levels", "3", "--hold", "4s", "--scrape", "1s", "--lab", p.Lab)
	ask := func(dir, query string) string {
		t.Helper()
		got := p.Run(t, "query", dir, query, "-o", "csv")
		if got.Code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", query, got.Code, got.Stdout, got.Stderr)
		}
		return got.Stdout
	}
	parts := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	up := ask("run", "up == 1")
	for _, part := range parts {
		if !strings.Contains(up, ",lab,"+part+"\n") {
			t.Errorf("%s is not up: %s", part, up)
		}
	}
	ask("run", "histogram_quantile(0.99, sum by (le) (rate(apiserver_request_duration_seconds_bucket[5s]))) >= 0")
	ask("run", `rate(process_cpu_seconds_total{job="kube-apiserver"}[5s]) > 0 and on() plimsoll_hold`)
	if r := p.Result(t, "run"); len(r.Warnings) > 0 {
		for _, w := range r.Warnings {
			if strings.Contains(w.Text, "metrics") {
				t.Errorf("warned: %s", w)
			}
		}
	}

	s := p.Start(t, "sweep", "node-density", "--levels", "3", "--hold", "60s", "--scrape", "1s", "--lab", p.Lab, "--out", "killed")
	harness.Await(t, "the first scrapes", func() bool {
		list, err := filepath.Glob(filepath.Join(p.Dir, "killed", metrics.ScrapesDir, "*", "*"))
		if err != nil || len(list) == 0 {
			return false
		}
		info, err := os.Stat(list[0])
		return err == nil && info.Size() > 0
	})
	time.Sleep(3 * time.Second)
	s.Kill()
	ask("killed", `count_over_time(up{job="etcd"}[1m]) >= 2`)
	p.Run(t, "clean", "--lab", p.Lab, "--force")
}

func TestMetricsOfARouter(t *testing.T) {
	t.Parallel()
	suite.Long(t, "it reads HAProxy's metrics for some seconds")
	p := e2e.RouterProgram(t, suite)
	p.RunTo(t, "run", "sweep", "router", "--levels", "4", "--hold", "3s", "--scrape", "1s")
	got := p.Run(t, "query", "run", "rate(haproxy_process_requests_total[10s]) > 0")
	if got.Code != 0 || !strings.Contains(got.Stdout, `job="haproxy"`) {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}

func TestQueryServes(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	dir := e2e.KeptRecord(t, "router-rate")
	s := p.Start(t, "query", dir, "--serve")
	var address string
	harness.Await(t, "an address", func() bool {
		address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(s.Stdout())
		return address != ""
	})
	answer, err := http.Get(address + "/api/v1/label/__name__/values")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	var names struct{ Data []string }
	if err != nil || json.Unmarshal(body, &names) != nil || !strings.Contains(strings.Join(names.Data, " "), "plimsoll_requests_total") {
		t.Errorf("%v: %s", err, body)
	}
}
