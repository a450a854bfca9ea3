package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// varied is a run directory whose scrapes hold values of every kind, gaps, and series
// that come and go.
func varied(t *testing.T) *fixture {
	f := newFixture(t, "a", "b")
	for i := range 300 {
		for k, job := range []string{"a", "b"} {
			var b strings.Builder
			fmt.Fprintf(&b, "requests_total{code=\"200\"} %d\nrequests_total{code=\"500\"} %d\n", 7*i%1000, i/9)
			fmt.Fprintf(&b, "size %g\nnan NaN\ninf +Inf\nnegative -0\n", 1.5/float64(i+1+k))
			for le, n := range map[string]int{"0.1": i, "1": 3 * i, "+Inf": 4 * i} {
				fmt.Fprintf(&b, "took_bucket{le=\"%s\"} %d\n", le, n)
			}
			fmt.Fprintf(&b, "took_sum %g\ntook_count %d\n", 0.7*float64(i), 4*i)
			if i%10 < 7 {
				fmt.Fprintf(&b, "sometimes{n=\"%d\"} %d\n", i%3, i)
			}
			f.pages[job] = text(b.String())
			if i%50 == 49 {
				f.pages[job] = page{code: 500}
			}
		}
		f.round(float64(i) * 5)
	}
	return f
}

// program is one of Debian's package prometheus.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s: apt-get install prometheus", name)
	}
	return path
}

// Another reader of the same blocks, which was written by others, sees the same samples.
func TestPromtoolSeesTheSameSamples(t *testing.T) {
	promtool := program(t, "promtool")
	f := varied(t)
	s := f.open()
	cmd := exec.Command(promtool, "tsdb", "dump", f.dir.Path(BlocksDir))
	var says strings.Builder
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, says.String())
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	want := dump(t, s)
	for i, line := range got { // older ones write braces without the name's
		got[i] = strings.TrimSpace(line)
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(got) != len(want) || len(want) < 5000 {
		t.Fatalf("promtool sees %d samples, we %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("promtool sees %s, we %s", got[i], want[i])
		}
	}
}

// A Prometheus that opens the blocks answers as we do. What its version 3 changed is
// left out: a range does not hold a sample at its very begin any more, and a regular
// expression's dot matches a line break.
func TestPrometheusAnswersTheSame(t *testing.T) {
	ring.Long(t, "it runs a Prometheus")
	prometheus := program(t, "prometheus")
	f := varied(t)
	s := f.open()
	dir := t.TempDir()
	data, config := filepath.Join(dir, "data"), filepath.Join(dir, "prometheus.yml")
	if err := os.CopyFS(data, os.DirFS(f.dir.Path(BlocksDir))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	cmd := exec.CommandContext(t.Context(), prometheus, "--config.file="+config, "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=100y", "--web.listen-address="+address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended it
	base := "http://" + address
	for range 300 {
		if a, err := http.Get(base + "/-/ready"); err == nil {
			a.Body.Close()
			if a.StatusCode == http.StatusOK {
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	engine := NewEngine(s)
	at := start().Add(1003*time.Second + 500*time.Millisecond) // so that no range begins at a sample
	for _, query := range []string{
		"up", "requests_total", "sum by (job) (rate(requests_total[57s]))", "increase(requests_total[3m7s])", "histogram_quantile(0.9, sum by (le) (rate(took_bucket[1m3s])))",
		"rate(took_sum[33s]) / rate(took_count[33s])", "sometimes", "count_over_time(sometimes[2m3s])", "size > bool 0.005", "max_over_time(size[10m1s])", "nan", "inf", "negative",
		`{__name__=~"took.*",le!="1"}`, `requests_total{code!~"5.."}`, "absent(nothing)", "topk(1, requests_total)", "changes(up[20m1s])", "resets(requests_total[20m1s])",
		"deriv(size[5m3s])", "quantile_over_time(0.5, size[4m2s])", "plimsoll_level", "requests_total * on (job) group_left () up", "1 + 1", "requests_total offset 2m1s",
		"max_over_time(rate(requests_total[57s])[10m2s:13s])",
	} {
		ours, err := engine.At(t.Context(), query, at)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		compareAnswers(t, query, ours, asked(t, base+"/api/v1/query", url.Values{"query": {query}, "time": {seconds(at)}}))
		ours, err = engine.Range(t.Context(), query, at.Add(-10*time.Minute), at, 17*time.Second)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		compareAnswers(t, query+" over a range", ours, asked(t, base+"/api/v1/query_range", url.Values{
			"query": {query}, "start": {seconds(at.Add(-10 * time.Minute))}, "end": {seconds(at)}, "step": {"17"},
		}))
	}

	// What it is asked for, step by step, is what it has, to the last sample.
	r := remotely(t, base, []string{"up", `{__name__=~"requests_total|size|sometimes"}`, `{le!=""}`}, []string{"rate(requests_total[1m])", "size + 0 * up"})
	for _, until := range []float64{30, 31, 400.5, 999, 1003.5} {
		r.fetch(until)
	}
	want := make(map[string]bool)
	for _, line := range dump(t, s) {
		var at int64
		if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &at); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(line, ",")
		asked := strings.Contains(line, `le="`) || strings.Contains(name, `"up"`) || strings.Contains(name, `"requests_total"`) || strings.Contains(name, `"size"`) || strings.Contains(name, `"sometimes"`)
		// Marks that a series has ended are not told; those of ours stand elsewhere.
		if asked && at <= start().UnixMilli()+1_003_500 && !strings.Contains(line, " NaN ") {
			want[line] = true
		}
	}
	n := 0
	for _, line := range dump(t, r.open()) {
		if strings.Contains(line, `job="plimsoll"`) || strings.Contains(line, remoteJob) || strings.Contains(line, " NaN ") {
			continue
		}
		if n++; !want[line] {
			t.Fatalf("it never had %s", line)
		}
	}
	if n != len(want) || n < 3000 {
		t.Errorf("it has %d samples, and %d came", len(want), n)
	}
	// Its target a was down from 995 s until 1000 s.
	for query, want := range map[string]string{"rate(requests_total[1m])": "the metrics of a of one could not be read at 03:20:40: its up is 0", "size + 0 * up": ""} {
		if got := r.below(query, 1e9, 1003.5); got.Why != want {
			t.Errorf("%s is unknown since %q, want %q", query, got.Why, want)
		}
	}
}

func seconds(t time.Time) string { return fmt.Sprintf("%.3f", float64(t.UnixMilli())/1000) }

// asked asks a Prometheus.
func asked(t *testing.T, address string, query url.Values) any {
	t.Helper()
	a, err := http.PostForm(address, query)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Data any }
	if err := json.Unmarshal(body, &answer); err != nil || answer.Data == nil {
		t.Fatalf("%s: %v: %s", query.Get("query"), err, body)
	}
	return answer.Data
}

func compareAnswers(t *testing.T, query string, ours Answer, theirs any) {
	t.Helper()
	text, err := json.Marshal(ours)
	var mine any
	if err == nil {
		err = json.Unmarshal(text, &mine)
	}
	if err != nil {
		t.Fatal(err)
	}
	if a, b := canonical(t, mine), canonical(t, theirs); a != b {
		t.Errorf("%s: we answer\n%.800s\nPrometheus\n%.800s", query, a, b)
	}
}

// canonical is an answer with its series in order, and numbers as far as both versions
// add up alike.
func canonical(t *testing.T, answer any) string {
	t.Helper()
	of, ok := answer.(map[string]any)
	list, isList := of["result"].([]any)
	if !ok || !isList {
		text, _ := json.Marshal(answer)
		return string(text)
	}
	lines := []string{fmt.Sprint(of["resultType"])}
	for _, one := range list {
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, regexp.MustCompile(`"-?[0-9][-+.0-9e]*"`).ReplaceAllStringFunc(string(text), func(number string) string {
			v, err := strconv.ParseFloat(strings.Trim(number, `"`), 64)
			if err != nil {
				return number
			}
			return fmt.Sprintf("%.10g", v)
		}))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
