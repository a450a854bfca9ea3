package metrics

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	walrecord "github.com/prometheus/prometheus/tsdb/record"
)

// many is a run directory of a lab's size: 28,000 series, of which a third change, for so
// many scrapes.
func many(b *testing.B, scrapes int) *fixture {
	f := newFixture(b, "kube-apiserver", "kube-controller-manager", "etcd")
	f.s.MaxSeries = 100_000
	for i := range scrapes {
		for job, n := range map[string]int{"kube-apiserver": 20_000, "kube-controller-manager": 6_000, "etcd": 2_000} {
			f.pages[job] = text(apiServer(n, i))
		}
		f.round(float64(i) * 5)
	}
	return f
}

// What is asked of a run of ten minutes is to take 0.1 s for a rate and 1 s and 100 MB for
// a regular expression over all series.
func BenchmarkQuery(b *testing.B) {
	f := many(b, 120)
	s, err := Open(f.dir, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	e, at := NewEngine(s), start().Add(595*time.Second)
	for _, c := range []struct{ name, query string }{
		{"rate", `rate(metric_003_bucket{job="kube-apiserver"}[30s])`},
		{"quantile", `histogram_quantile(0.99, sum by (le) (rate(metric_005_bucket[1m])))`},
		{"regexp", `{__name__=~"metric_.*"}`},
		{"regexpRate", `count by (job) (last_over_time({__name__=~"metric_.*_bucket",resource!~"resource-9"}[1m]))`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				if _, err := e.At(context.Background(), c.query, at); err != nil {
					b.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/1e6, "MB/op")
		})
	}
	b.Run("range", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.Range(context.Background(), `rate(metric_003_bucket{job="kube-apiserver"}[30s])`, start(), at, 5*time.Second); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			s, err := Open(f.dir, b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What a question about a step costs while a run is made: taking in a scrape of an API
// server of 20,000 series, a third of which changed, and asking.
func BenchmarkLive(b *testing.B) {
	const query = `sum(rate(metric_006_bucket[hold]))`
	f := asking(b, []string{query}, "kube-apiserver")
	f.s.MaxSeries = 100_000
	f.hold()
	for i := range 3 {
		f.pages["kube-apiserver"] = text(apiServer(20_000, i))
		f.round(float64(6 + 5*i))
	}
	b.Run("scrape", func(b *testing.B) {
		e := f.s.sources["kube-apiserver\xffone"]
		list := make([]walrecord.RefSample, len(e.series))
		for t := f.now.UnixMilli(); b.Loop(); {
			t++
			for i, x := range e.series {
				list[i] = walrecord.RefSample{Ref: x.ref, T: t, V: float64(i)}
			}
			f.live.take(e, nil, list, t, "")
		}
	})
	b.Run("ask", func(b *testing.B) {
		for b.Loop() {
			if got := f.below(query, 1e9, 16); got.Series != 1 || got.Why != "" {
				b.Fatal(foundText(got))
			}
		}
	})
}

// apiServer returns the page of a program with so many series at a scrape.
func apiServer(series, scrape int) string {
	var text strings.Builder
	for k := range series {
		v := k
		if k%3 == 0 {
			v += scrape * (k%17 + 1)
		}
		fmt.Fprintf(&text, "metric_%03d_bucket{verb=\"V%d\",resource=\"resource-%d\",le=\"%d\"} %d\n", k/200, k/50%4, k/10%5, k%10, v)
	}
	return text.String()
}

// What it costs to read 28,000 series, a third of which changed, and how large the scrapes
// of ten minutes are beside the blocks that are made of them.
func BenchmarkScrape(b *testing.B) {
	for b.Loop() {
		var before, after syscall.Rusage
		const scrapes = 120
		f := many(b, 1)
		pages := make([]map[string]page, scrapes)
		for i := range pages {
			pages[i] = make(map[string]page)
			for job, n := range map[string]int{"kube-apiserver": 20_000, "kube-controller-manager": 6_000, "etcd": 2_000} {
				pages[i][job] = text(apiServer(n, i+1))
			}
		}
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		for i, p := range pages {
			f.pages = p
			f.round(float64(i+1) * 5)
		}
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		if err := f.s.log.close(); err != nil {
			b.Fatal(err)
		}
		f.s.log = nil
		if _, err := Build(f.dir); err != nil {
			b.Fatal(err)
		}
		scraped, err := bytesIn(f.dir.Path(ScrapesDir))
		if err != nil {
			b.Fatal(err)
		}
		blocks, err := bytesIn(f.dir.Path(BlocksDir))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(after.Utime.Nano()+after.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano())/scrapes/1e6, "CPU-ms/scrape")
		b.ReportMetric(float64(scraped)/1e6, "scrapes-MB")
		b.ReportMetric(float64(blocks)/1e6, "blocks-MB")
	}
}
