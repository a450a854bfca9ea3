package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"

	"plimsoll.dev/plimsoll/internal/record"
)

// start is T = 0 of the records of these tests.
func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// page holds the answer of a test's endpoint.
type page struct {
	code   int
	header map[string]string
	body   string
	write  func(w io.Writer)
}

func text(body string) page {
	return page{header: map[string]string{"Content-Type": "text/plain; version=0.0.4"}, body: body}
}

// fixture is a run directory, and a Scraper whose rounds a test makes.
type fixture struct {
	t         testing.TB
	dir       record.Dir
	s         *Scraper
	now       time.Time
	pages     map[string]page // by job
	endpoints []Endpoint
	says      []string
	live      *Live // takes in what is scraped, nil for nothing
}

// newFixture makes a run directory of a run with one step at 7, from 1 s to 61 s.
func newFixture(t testing.TB, jobs ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: record.Dir(t.TempDir()), now: start(), pages: make(map[string]page)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := f.pages[strings.TrimPrefix(r.URL.Path, "/")]
		for k, v := range p.header {
			w.Header().Set(k, v)
		}
		if p.code != 0 {
			w.WriteHeader(p.code)
		}
		if p.write != nil {
			p.write(w)
		}
		_, _ = io.WriteString(w, p.body)
	}))
	t.Cleanup(server.Close)
	for _, job := range jobs {
		f.endpoints = append(f.endpoints, Endpoint{Job: job, Instance: "one", URL: server.URL + "/" + job + "?token=abcdef0123456789", Transport: server.Client().Transport})
	}
	f.part()
	if err := f.dir.WriteJSON(record.EnvironmentFile, record.Environment{Start: start(), Kind: &record.ObjectKind{There: "Ready"}}); err != nil {
		t.Fatal(err)
	}
	w, err := record.NewWriter(f.dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := func(seconds float64, body record.Body) {
		w.Append(record.Event{T: record.Micros(seconds * 1e6), Step: 1, Body: body})
	}
	at(0, &record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion})
	at(1, &record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 7, Purpose: record.PurposeSweep}})
	for i := range 10 {
		t := 1.5 + float64(i)/10
		at(t, &record.Slot{Sent: record.Micros(t*1e6 - 4e5), Replied: record.Micros(t * 1e6), Outcome: record.SlotCreated})
		at(t+2, &record.Object{Object: fmt.Sprint("ns/p", i), Milestone: "Ready"})
	}
	at(4, &record.Slot{Sent: 3e6, Replied: 4e6, Outcome: record.SlotFailed})
	at(5, &record.StepEvent{Phase: record.PhaseReached})
	at(6, &record.Reading{Source: "etcd", Values: map[string]float64{"cpuSeconds": 2, "rssBytes": 100}})
	at(16, &record.Reading{Source: "etcd", Values: map[string]float64{"cpuSeconds": 7, "rssBytes": 200}})
	at(61, &record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndHeld})
	at(62, &record.RunEvent{Phase: record.PhaseEnd})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

// part begins a part of the run, as one that is resumed does.
func (f *fixture) part() {
	if f.s != nil && f.s.log != nil {
		if err := f.s.log.close(); err != nil {
			f.t.Fatal(err)
		}
	}
	f.s = newScraper(f.dir, Options{
		Every: 5 * time.Second, MaxSeries: 1000, Now: func() time.Time { return f.now }, Tell: func(text string) { f.says = append(f.says, text) },
		Endpoints: func(context.Context) ([]Endpoint, error) { return f.endpoints, nil }, Live: f.live,
	})
}

// round reads all endpoints at so many seconds since the start.
func (f *fixture) round(seconds float64) {
	f.now = start().Add(time.Duration(seconds * float64(time.Second)))
	f.s.Round(context.Background())
}

func (f *fixture) open() *Store {
	f.t.Helper()
	s, err := Open(f.dir, f.t.TempDir())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.t.Error(err)
		}
	})
	return s
}

// ask is an answer at a time, as text: "value {labels}", in order.
func ask(t testing.TB, s *Store, seconds float64, query string) string {
	t.Helper()
	a, err := NewEngine(s).At(t.Context(), query, start().Add(time.Duration(seconds*float64(time.Second))))
	if err != nil {
		t.Fatal(err)
	}
	switch r := a.Result.(type) {
	case promql.Scalar:
		return fmt.Sprint(r.V)
	case promql.Vector:
		var list []string
		for _, x := range r {
			list = append(list, fmt.Sprint(x.F, " ", x.Metric))
		}
		slices.Sort(list)
		return strings.Join(list, "; ")
	}
	return a.Result.String()
}

// dump are all samples of a store, a line each.
func dump(t testing.TB, s *Store) (list []string) {
	t.Helper()
	q, err := s.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, nameLabel, ".*"))
	for set.Next() {
		name := set.At().Labels().String()
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			at, v := it.At()
			list = append(list, sampleLine(name, at, v))
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
	}
	if set.Err() != nil {
		t.Fatal(set.Err())
	}
	return list
}

// sampleLine is a sample as promtool prints it.
func sampleLine(name string, at int64, v float64) string {
	text := fmt.Sprintf("%g", v)
	if value.IsStaleNaN(v) {
		text = "NaN"
	}
	return fmt.Sprintf("%s %s %d", name, text, at)
}

func TestTheRecordsOwnFiguresAreSeries(t *testing.T) {
	f := newFixture(t)
	if err := f.dir.WriteResult(map[string]any{"steps": []any{map[string]any{"id": 1, "verdict": "pass"}}}, nil); err != nil {
		t.Fatal(err)
	}
	s := f.open()
	for _, c := range []struct {
		at          float64
		query, want string
		why         string
	}{
		{30, "plimsoll_level", `7 {__name__="plimsoll_level", job="plimsoll"}`, "while the step is made"},
		{0.9, "plimsoll_level", "", "no step is made yet"},
		{61, "plimsoll_level", `7 {__name__="plimsoll_level", job="plimsoll"}`, "until its very end"},
		{61.5, "plimsoll_level", "", "a step that ended goes stale at once"},
		{30, "plimsoll_step", `1 {__name__="plimsoll_step", job="plimsoll", purpose="sweep", step="1", verdict="pass"}`, "which step, and how it was judged"},
		{4.9, "plimsoll_hold", "", "the level is not reached yet"},
		{5, "plimsoll_hold", `1 {__name__="plimsoll_hold", job="plimsoll", step="1"}`, "from when on it was held"},
		{0, "plimsoll_objects_total", `0 {__name__="plimsoll_objects_total", job="plimsoll", milestone="Ready"}`, "counters begin at 0, so that a rate sees the first"},
		{4, "plimsoll_objects_total", `6 {__name__="plimsoll_objects_total", job="plimsoll", milestone="Ready"}`, "3.5 to 4.0 s, both counted"},
		{3.5, "plimsoll_objects_total", `1 {__name__="plimsoll_objects_total", job="plimsoll", milestone="Ready"}`, "counted at once, not at the next second"},
		{10, "plimsoll_objects_total", `10 {__name__="plimsoll_objects_total", job="plimsoll", milestone="Ready"}`, "all"},
		{2, "plimsoll_in_flight", `4 {__name__="plimsoll_in_flight", job="plimsoll"}`, "sent by 2.0 s and not replied to"},
		{10, "plimsoll_in_flight", `0 {__name__="plimsoll_in_flight", job="plimsoll"}`, "none is left"},
		{10, "sum(plimsoll_errors_total)", `1 {}`, "one was refused"},
		{16, `rate(plimsoll_reading_cpu_seconds{source="etcd"}[20s]) * 20`, `5 {job="plimsoll", source="etcd"}`, "readings are series, at their own time"},
		{16, "plimsoll_reading_rss_bytes / scalar(plimsoll_level)", `28.571428571428573 {job="plimsoll", source="etcd"}`, "one query joins load and use"},
	} {
		got := ask(t, s, c.at, c.query)
		if c.query[:4] == "rate" { // extrapolated: the two readings are 10 s apart
			if !strings.HasSuffix(got, `{job="plimsoll", source="etcd"}`) || got == "" {
				t.Errorf("%s at %g: %s", c.query, c.at, got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s at %g s (%s): %q, want %q", c.query, c.at, c.why, got, c.want)
		}
	}
	if b := s.Built; len(b.Steps) != 1 || b.Steps[0].Level != 7 || !b.To.Equal(start().Add(62*time.Second)) {
		t.Errorf("the time on record is %+v", b)
	}
}

func TestNamesOfReadings(t *testing.T) {
	for name, want := range map[string]string{"cpuSeconds": "cpu_seconds", "poolMB": "pool_mb", "p99": "p99", "a b-c": "a_b_c", "größe": "gr__e"} {
		if got := snake(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Scraped samples come back as they were: against a slow and plain account of them.
func TestScrapesComeBackAsTheyWere(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	f := newFixture(t, "a", "b")
	want := make(map[string][]string) // lines by series
	add := func(name string, at int64, v float64) { want[name] = append(want[name], sampleLine(name, at, v)) }
	live := make(map[string]map[string]bool)
	stale := func(job string, at int64, except map[string]bool) {
		for name := range live[job] {
			if !except[name] {
				add(name, at, math.Float64frombits(value.StaleNaN))
			}
		}
		live[job] = except
	}
	values := []func() float64{
		func() float64 { return float64(rng.IntN(5)) }, func() float64 { return rng.NormFloat64() }, math.NaN, func() float64 { return math.Inf(-1) },
		func() float64 { return math.Copysign(0, -1) }, func() float64 { return float64(rng.Uint64()) }, func() float64 { return -float64(rng.IntN(1 << 40)) },
	}
	full := func(name, job string) string {
		return fmt.Sprintf(`{__name__="%s", instance="one", job="%s"}`, name, job)
	}
	for i := range 400 {
		at := start().Add(time.Duration(i) * 5 * time.Second).UnixMilli()
		for _, job := range []string{"a", "b"} {
			add(full("scrape_duration_seconds", job), at, 0)
			if rng.IntN(20) == 0 {
				f.pages[job] = page{code: 500}
				add(full("up", job), at, 0)
				stale(job, at, map[string]bool{})
				continue
			}
			var body strings.Builder
			told := make(map[string]bool)
			n := 0
			for k := range 12 {
				if rng.IntN(6) == 0 {
					continue
				}
				v := values[rng.IntN(1+rng.IntN(len(values)))]()
				fmt.Fprintf(&body, "m%d{l=\"x y\",le=\"+Inf\"} %g\n", k, v)
				name := fmt.Sprintf(`{__name__="m%d", instance="one", job="%s", l="x y", le="+Inf"}`, k, job)
				told[name] = true
				n++
				add(name, at, parsed(t, v))
			}
			f.pages[job] = text(body.String())
			add(full("up", job), at, 1)
			add(full("scrape_samples_scraped", job), at, float64(n))
			stale(job, at, told)
		}
		if i == 200 { // another part: counted from nothing, and all that was is stale before it
			for _, job := range []string{"a", "b"} {
				for name := range live[job] {
					last := at - 5000
					add(name, last+1, math.Float64frombits(value.StaleNaN))
				}
				add(full("up", job), at-4999, math.Float64frombits(value.StaleNaN))
			}
			f.part()
		}
		f.round(float64(i) * 5)
	}
	s := f.open()
	var got []string
	for _, line := range dump(t, s) {
		if !strings.Contains(line, "plimsoll_") {
			got = append(got, line)
		}
	}
	compared(t, got, want)
}

// parsed is a value as it is read from %g.
func parsed(t testing.TB, v float64) float64 {
	var back float64
	if _, err := fmt.Sscanf(fmt.Sprintf("%g", v), "%g", &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// compared compares the series that exist. Of the marks of series that ended it compares
// only whether they exist, not their times.
func compared(t *testing.T, got []string, want map[string][]string) {
	t.Helper()
	seen := make(map[string]bool)
	for _, line := range got {
		seen[line] = true
	}
	missing, n := 0, 0
	for _, lines := range want {
		for _, line := range lines {
			n++
			if strings.Contains(line, " NaN ") {
				continue
			}
			if !seen[line] {
				if missing++; missing < 5 {
					t.Errorf("missing: %s", line)
				}
			}
		}
	}
	if n < 5000 || len(got) < n*9/10 || len(got) > n {
		t.Errorf("%d samples, want up to %d", len(got), n)
	}
}

func TestStalenessGapsAndTimes(t *testing.T) {
	f := newFixture(t, "a")
	rounds := []string{
		"x 1\ny 5\nz 3 1767323050000\n", // z at 03:04:10
		"x 2\nz 3 1767323050000\n",      // y is gone; z has its old value and time
		"",                              // a gap
		"x 2\ny 5\nz 4 1767323060000\n", // x restarted, y is back
		"x 1\nx 9\n",                    // told twice
	}
	for i, body := range rounds {
		f.pages["a"] = text(body)
		if body == "" {
			f.pages["a"] = page{code: 503}
		}
		f.round(float64(10 * (i + 1)))
	}
	f.endpoints = nil
	f.round(60)
	s := f.open()
	for _, c := range []struct {
		at          float64
		query, want string
	}{
		{10, "x", `1 {__name__="x", instance="one", job="a"}`},
		{9, "x", ``},
		{19, "y", `5 {__name__="y", instance="one", job="a"}`},
		{20, "y", ``},
		{30, "x", ``},
		{30, "up", `0 {__name__="up", instance="one", job="a"}`},
		{40, "x", `2 {__name__="x", instance="one", job="a"}`},
		{40, "y", `5 {__name__="y", instance="one", job="a"}`},
		{50, "x", `1 {__name__="x", instance="one", job="a"}`},
		{50, "count_over_time(z[60s])", `2 {instance="one", job="a"}`},
		{50, "timestamp(z)", `1.76732306e+09 {instance="one", job="a"}`},
		{50, "resets(x[60s])", `1 {instance="one", job="a"}`},
		{59, "up", `1 {__name__="up", instance="one", job="a"}`},
		{60, "up", ``},
	} {
		if got := ask(t, s, c.at, c.query); got != c.want {
			t.Errorf("%s at %g s: %q, want %q", c.query, c.at, got, c.want)
		}
	}
	if len(f.says) != 1 || !strings.Contains(f.says[0], "tells the series x twice") {
		t.Errorf("said: %q", f.says)
	}
}

func TestBadAnswersAreGaps(t *testing.T) {
	zeros := func(n int) func(io.Writer) {
		return func(w io.Writer) {
			chunk := []byte(strings.Repeat("x 1\n", 1<<18))
			for range n {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	for _, c := range []struct {
		name string
		page page
		says string
	}{
		{"a page for people", page{header: map[string]string{"Content-Type": "text/html"}, body: "<html>"}, `not a format of metrics: "<html>"`},
		{"nothing that says what it is", page{header: map[string]string{"Content-Type": ""}, body: "x 1\n"}, "not a format of metrics"},
		{"no metrics", text("this is { not\n"), "cannot be read"},
		{"no protobuf", page{header: map[string]string{"Content-Type": "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"}, body: "\xff\xff\xff\xff\xff\xff"}, "cannot be read"},
		{"two gigabytes", page{header: map[string]string{"Content-Type": "text/plain"}, write: zeros(2000)}, "answered more than 2 MiB"},
		{"not gzip", page{header: map[string]string{"Content-Type": "text/plain", "Content-Encoding": "gzip"}, body: "x 1\n"}, "decompress"},
		{"an encoding nobody asked for", page{header: map[string]string{"Content-Encoding": "br"}}, `encoding "br"`},
		{"elsewhere", page{code: 302, header: map[string]string{"Location": "https://example.com/"}}, "answered 302"},
		{"a gzip bomb", gzipBomb(t), "answered more than 2 MiB"},
	} {
		f := newFixture(t, "a")
		f.s.most = 2 << 20
		f.pages["a"] = text("x 1\n")
		f.round(5)
		f.pages["a"] = c.page
		f.round(10)
		f.round(15)
		if len(f.says) != 1 || !strings.Contains(f.says[0], c.says) || !strings.Contains(f.says[0], "metrics of a of one could not be read") || strings.Contains(f.says[0], "abcdef") {
			t.Errorf("%s: said %q, want %q", c.name, f.says, c.says)
		}
		s := f.open()
		if got := ask(t, s, 12, "x or up"); got != `0 {__name__="up", instance="one", job="a"}` {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestAnEndpointThatMayNotBeReadIsReportedOnce(t *testing.T) {
	f := newFixture(t, "a", "b", "c")
	f.pages["a"], f.pages["b"], f.pages["c"] = page{code: 403}, page{code: 401}, text("x 1\n")
	asked := 0
	f.pages["a"] = page{code: 403, write: func(io.Writer) { asked++ }}
	for i := range 5 {
		f.round(float64(5 * i))
	}
	if len(f.says) != 1 || !strings.Contains(f.says[0], "this user may not read the metrics of a of one, b of one") || asked != 1 {
		t.Errorf("said %q, asked %d times", f.says, asked)
	}
	if got := ask(t, f.open(), 20, "up"); got != `1 {__name__="up", instance="one", job="c"}` {
		t.Error(got)
	}
}

func TestMoreSeriesThanTheBoundAreNotKept(t *testing.T) {
	f := newFixture(t, "a")
	f.pages["a"] = page{header: map[string]string{"Content-Type": "text/plain"}, write: func(w io.Writer) {
		for i := range 100_000 {
			fmt.Fprintf(w, "x{i=\"%d\"} 1\n", i)
		}
	}}
	f.round(5)
	f.round(10)
	if len(f.says) != 1 || !strings.Contains(f.says[0], "more than 1000 series") {
		t.Errorf("said %q", f.says)
	}
	if got := ask(t, f.open(), 10, "count(x)"); got != "1000 {}" {
		t.Error(got)
	}
}

func TestLabelsOfTheEndpointCount(t *testing.T) {
	f := newFixture(t, "a")
	f.endpoints[0].Labels = []string{"zone", "north"}
	f.pages["a"] = text("x{job=\"theirs\",instance=\"\",zone=\"south\"} 1\n")
	f.round(5)
	if got := ask(t, f.open(), 5, "x"); got != `1 {__name__="x", exported_job="theirs", exported_zone="south", instance="one", job="a", zone="north"}` {
		t.Error(got)
	}
}

// every returns the distance between places in so many bytes of which a test tries at
// most so many, or all with PLIMSOLL_LONG.
func every(bytes, most int) int {
	if os.Getenv("PLIMSOLL_LONG") != "" {
		return 1
	}
	return 1 + bytes/most
}

// whole is a fixture with a few scrapes, whose samples are few.
func whole(t testing.TB) *fixture {
	f := newFixture(t, "a")
	for i := range 6 {
		f.pages["a"] = text(fmt.Sprintf("x %d\ny{l=\"%d\"} 0.5\n", i, i/3))
		f.round(float64(5 * i))
	}
	return f
}

// segment is the one file of a fixture's scrapes.
func (f *fixture) segment(part int) string {
	list, err := filepath.Glob(filepath.Join(f.dir.Path(ScrapesDir), fmt.Sprintf("%08d", part), "*"))
	if err != nil || len(list) != 1 {
		f.t.Fatal(list, err)
	}
	return list[0]
}

// A log is read as far as it is whole, while it is written and once it is compressed.
func TestScrapesAreReadAsFarAsTheyGo(t *testing.T) {
	for _, ended := range []bool{false, true} {
		f := whole(t)
		if ended {
			f.part()
		}
		path := f.segment(0)
		if zipped := strings.HasSuffix(path, compressed); zipped != ended {
			t.Fatalf("compressed %v, ended %v", zipped, ended)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		count := func(data []byte) (samples int, cut bool) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "0"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "0", filepath.Base(path)), data, 0o600); err != nil {
				t.Fatal(err)
			}
			b := &builder{dir: t.TempDir(), heads: make(map[string]*head)}
			cut, err := readScrapes(dir, b)
			if err != nil {
				t.Fatal(err)
			}
			return b.built.Samples, cut
		}
		all, cut := count(data)
		if cut || all < 30 {
			t.Fatalf("%d samples, cut %v", all, cut)
		}
		before := 0
		for n := 1; n < len(data); n += every(len(data), 150) {
			samples, cut := count(data[:n])
			if samples < before || samples > all || samples == all && n < len(data)/2 || samples < all && !cut && ended {
				t.Fatalf("cut at %d: %d samples after %d, said %v", n, samples, before, cut)
			}
			before = samples
			flipped := slices.Clone(data)
			flipped[n] ^= 0x10
			if got, cut := count(flipped); got > all || got < all && !cut {
				t.Fatalf("flipped at %d: %d samples, said %v", n, got, cut)
			}
		}
	}
	// A run that goes on leaves out what was cut.
	f := whole(t)
	first := f.segment(0)
	info, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(first, info.Size()-12); err != nil {
		t.Fatal(err)
	}
	f.s.log = nil // killed
	f.part()
	f.round(50)
	s := f.open()
	if !s.Built.Cut {
		t.Error("it is not said that a part ends within a scrape")
	}
	if got := ask(t, s, 50, "x"); got != `5 {__name__="x", instance="one", job="a"}` {
		t.Error(got)
	}
	if got := ask(t, s, 40, "x"); got != "" {
		t.Errorf("between the parts: %s", got)
	}
}

// A segment that is full is compressed, and what others left is no segment.
func TestSegmentsAreCompressed(t *testing.T) {
	f := newFixture(t, "a")
	f.s.MaxSeries = 100_000
	for i := range 40 {
		f.pages["a"] = text(apiServer(20_000, i))
		f.round(float64(5 * i))
	}
	part := filepath.Join(f.dir.Path(ScrapesDir), "00000000")
	zipped, err := filepath.Glob(filepath.Join(part, "*"+compressed))
	all, more := filepath.Glob(filepath.Join(part, "*"))
	if err != nil || more != nil || len(zipped) < 2 || len(all) != len(zipped)+1 {
		t.Fatal(all, err, more)
	}
	if s := f.open(); s.Built.Cut || s.Built.Samples < 40*20_000 {
		t.Errorf("%+v", s.Built)
	}
	if err := os.Remove(zipped[1]); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", zipped[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(f.dir); err == nil || !strings.Contains(err.Error(), "is not a file that can be read whole") {
		t.Errorf("a link to what has no end: %v", err)
	}
}

// What an earlier version has scraped is refused.
func TestScrapesOfAnEarlierVersion(t *testing.T) {
	f := newFixture(t)
	if err := os.WriteFile(f.dir.Path(beforeScrapes), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f.dir, t.TempDir()); err == nil || !strings.Contains(err.Error(), "scrapes.zst has the metrics in the format of an earlier version") {
		t.Error(err)
	}
}

func TestABlockThatIsCutIsMadeAgainOrAnError(t *testing.T) {
	f := whole(t)
	f.open()
	blocks, err := filepath.Glob(filepath.Join(f.dir.Path(BlocksDir), "*", "*"))
	chunks, more := filepath.Glob(filepath.Join(f.dir.Path(BlocksDir), "*", "chunks", "*"))
	if err != nil || more != nil || len(blocks) != 3 || len(chunks) != 1 {
		t.Fatalf("%v, %v, %v, %v", blocks, chunks, err, more)
	}
	for _, path := range append(slices.DeleteFunc(blocks, func(p string) bool { return filepath.Base(p) == "chunks" }), chunks...) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(data); n += every(len(data), 60) {
			if err := os.WriteFile(path, data[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := openBlocks(f.dir.Path(BlocksDir), Built{}) // as if its size told nothing
			if err != nil {
				continue
			}
			_, err = NewEngine(s).At(t.Context(), `{__name__=~".+"}`, start().Add(25*time.Second))
			if err == nil && filepath.Base(filepath.Dir(path)) == "chunks" && n < len(data)/2 {
				t.Fatalf("%s cut at %d: it is read as if it were whole", path, n)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, data[:len(data)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		s := f.open() // of the scrapes
		if got := ask(t, s, 25, "x"); got != `5 {__name__="x", instance="one", job="a"}` {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestMistakesHaveTheirColumn(t *testing.T) {
	for query, want := range map[string]string{
		"foo(":            `query "foo(", column 5: `,
		"sum by (x) fo o": `query "sum by (x) fo o", column 12: `,
		"{l=\"größe\"} +": "column 14: ",
		"a\n + b c":       "line 2, column 6: ",
		"":                "no expression found",
		"rate(x)":         "column 6: expected type range vector",
	} {
		err := Check(query)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", query, err, want)
		}
	}
	if err := Check("1+1"); err != nil {
		t.Error(err)
	}
}

func TestAnswersByHTTP(t *testing.T) {
	f := whole(t)
	s := f.open()
	server := httptest.NewServer(API(NewEngine(s), s.Built.From, s.Built.To))
	defer server.Close()
	get := func(path, host string) (int, string) {
		r, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			r.Host = host
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(body)
	}
	for _, c := range []struct {
		path string
		code int
		want string
	}{
		{"/api/v1/query?query=x&time=1767323065", 200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"x","instance":"one","job":"a"},"value":[1767323065,"4"]}]}}`},
		{"/api/v1/query?query=1%2B1&time=1767323065", 200, `{"status":"success","data":{"resultType":"scalar","result":[1767323065,"2"]}}`},
		{"/api/v1/query?query=nothing", 200, `{"status":"success","data":{"resultType":"vector","result":[]}}`},
		{"/api/v1/query_range?query=x&start=1767323045&end=2026-01-02T03:04:15Z&step=5s", 200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"x","instance":"one","job":"a"},"values":[[1767323045,"0"],[1767323050,"1"],[1767323055,"2"]]}]}}`},
		{"/api/v1/series?match[]=y", 200, `{"status":"success","data":[{"__name__":"y","instance":"one","job":"a","l":"0"},{"__name__":"y","instance":"one","job":"a","l":"1"}]}`},
		{"/api/v1/labels?match[]=y", 200, `{"status":"success","data":["__name__","instance","job","l"]}`},
		{"/api/v1/label/l/values", 200, `{"status":"success","data":["0","1"]}`},
		{"/api/v1/label/l/values?match[]=x", 200, `{"status":"success","data":[]}`},
		{"/api/v1/query?query=foo(", 400, `"errorType":"bad_data"`},
		{"/api/v1/query_range?query=x&step=0", 400, "not positive"},
		{"/api/v1/query_range?query=x&step=1ms", 400, "more than 11000 points"},
		{"/api/v1/query?query=x&time=tomorrow", 400, `time \"tomorrow\" is not a time`},
		{"/api/v1/series", 400, "there is no match[]"},
		{"/api/v1/admin/tsdb/snapshot", 404, "not found"},
	} {
		code, body := get(c.path, "")
		if code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.path, code, body, c.code, c.want)
		}
		if code == 200 && !json.Valid([]byte(body)) {
			t.Errorf("%s: %s", c.path, body)
		}
	}
	if code, _ := get("/api/v1/labels", "evil.example"); code != http.StatusForbidden {
		t.Errorf("a page of another's is answered with %d", code)
	}
}

// Whoever asks by HTTP may be a page that a browser shows, or gone before the answer:
// neither costs more than its question.
func TestQuestionsByHTTPAreBounded(t *testing.T) {
	t.Parallel()
	f := whole(t)
	s := f.open()
	handler := API(NewEngine(s), s.Built.From, s.Built.To)
	ask := func(ctx context.Context, path string, form url.Values, header ...string) (int, string) {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost:9090/api/v1/"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	ctx := context.Background()
	one := url.Values{"query": {"x"}}
	for _, tt := range []struct {
		why    string
		header []string
		code   int
	}{
		{"no browser", nil, http.StatusOK},
		{"a page of the server's own", []string{"Origin", "http://localhost:9090", "Sec-Fetch-Site", "same-origin"}, http.StatusOK},
		{"an address that its user typed", []string{"Sec-Fetch-Site", "none"}, http.StatusOK},
		{"a page of another server", []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{"a page of another port", []string{"Origin", "http://localhost:3000"}, http.StatusForbidden},
		{"a page without an origin", []string{"Origin", "null"}, http.StatusForbidden},
		{"a picture in a page of another server", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
	} {
		if code, body := ask(ctx, "query", one, tt.header...); code != tt.code {
			t.Errorf("%s: %d %s", tt.why, code, body)
		}
	}
	long := "x" + strings.Repeat(" or x", mostQuery/5+1)
	for path, form := range map[string]url.Values{
		"query": {"query": {long}}, "query_range": {"query": {long}, "step": {"5"}}, "series": {"match[]": {`{a="` + long + `"}`}},
		"labels": {"match[]": {`{a="` + long + `"}`}}, "label/l/values": {"match[]": slices.Repeat([]string{"x"}, mostSelectors+1)},
	} {
		if code, body := ask(ctx, path, form); code != http.StatusBadRequest || !strings.Contains(body, "are answered") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, check := range []func(string) error{Check, CheckSelector, func(q string) error { return CheckObjective(q, false) }} {
		if check(long) == nil {
			t.Error("a plan may have a query of any length")
		}
	}
	for _, query := range []string{strings.Repeat("-", mostQuery-1) + "1", strings.Repeat("(", mostQuery/2-1) + "1" + strings.Repeat(")", mostQuery/2-1)} {
		if code, body := ask(ctx, "query", url.Values{"query": {query}}); code != http.StatusOK {
			t.Errorf("%d %s", code, body)
		}
	}
	gone, leave := context.WithCancel(ctx)
	leave()
	late, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	for want, ctx := range map[string]context.Context{"canceled": gone, "timeout": late} {
		if code, body := ask(ctx, "query", one); code != http.StatusServiceUnavailable || !strings.Contains(body, `"errorType":"`+want+`"`) {
			t.Errorf("%s: %d %s", want, code, body)
		}
	}
}

func FuzzScrapes(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 'a', 1, 'b'})
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, rec []byte) {
		d := decoder{b: &builder{dir: t.TempDir(), heads: make(map[string]*head)}, heads: make(map[chunks.HeadSeriesRef]*head)}
		_, _ = d.record(rec), d.record(rec)
	})
}
