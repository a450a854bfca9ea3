package fio

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

func binary(t *testing.T) Binary {
	t.Helper()
	b, err := Find(context.Background(), "")
	harness.Able(t, err)
	return b
}

func TestReportsAreRead(t *testing.T) {
	const side = `{"io_bytes": 8192, "lat_ns": {"N": 2, "bins": {"39680": 1, "40192": 1}}}`
	for _, c := range []struct {
		why, text string
		reports   int
		lines     []string
		reads     Bins
		errno     int
		fails     string
	}{
		{"one document", "{\n\"jobs\": [{\"jobname\": \"v\", \"job_runtime\": 785, \"read\": " + side + "}]\n}\n", 1, nil, Bins{39680: 1, 40192: 1}, 0, ""},
		{"lines about it", "fio: hello\n{\n\"jobs\": [{\"jobname\": \"v\"}]\n}\n\nfio: terminating on signal 2\n", 1, []string{"fio: hello", "fio: terminating on signal 2"}, Bins{}, 0, ""},
		{"two jobs are merged", "{\n\"jobs\": [{\"jobname\": \"a\", \"read\": " + side + "}, {\"jobname\": \"b\", \"error\": 28, \"read\": " + side + "}]\n}\n", 1, nil, Bins{39680: 2, 40192: 2}, 28, ""},
		{"what fio makes of all clients is passed over", "{\n\"client_stats\": [{\"jobname\": \"a\", \"read\": " + side + "}, {\"jobname\": \"All clients\", \"read\": " + side + "}]\n}\n", 1, nil, Bins{39680: 1, 40192: 1}, 0, ""},
		{"nothing at all", "", 0, nil, nil, 0, ""},
		{"a document without jobs", "{\n\"jobs\": []\n}\n", 0, nil, nil, 0, "no job"},
		{"a document that is cut", "{\n\"jobs\": [\n", 0, nil, nil, 0, "ends within"},
		{"a bin that is no number", "{\n\"jobs\": [{\"read\": {\"lat_ns\": {\"bins\": {\"x\": 1}}}}]\n}\n", 0, nil, nil, 0, `"x" is not a bin`},
		{"a count below 0", "{\n\"jobs\": [{\"read\": {\"lat_ns\": {\"bins\": {\"1\": -1}}}}]\n}\n", 0, nil, nil, 0, "cannot unmarshal"},
	} {
		var got []Report
		var lines []string
		err := ReadReports(strings.NewReader(c.text), func(r Report) { got = append(got, r) }, func(l string) { lines = append(lines, l) })
		if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%s: %v, want %q", c.why, err, c.fails)
		}
		if len(got) != c.reports || !slices.Equal(lines, c.lines) {
			t.Errorf("%s: %d reports and the lines %q", c.why, len(got), lines)
		}
		if len(got) > 0 && (!maps.Equal(got[0].Sides[Read].Bins, c.reads) || got[0].Errno != c.errno) {
			t.Errorf("%s: %+v", c.why, got[0])
		}
	}
}

func FuzzReadReports(f *testing.F) {
	f.Add("fio: x\n{\n\"jobs\": [{\"jobname\": \"v\", \"job_runtime\": 7, \"read\": {\"io_bytes\": 1, \"lat_ns\": {\"bins\": {\"39680\": 1}}}}]\n}\n")
	f.Add("{\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		reports := 0
		err := ReadReports(strings.NewReader(text), func(r Report) {
			reports++
			if r.Ran < 0 {
				t.Errorf("it ran for %v", r.Ran)
			}
			for _, s := range r.Sides {
				for at := range s.Bins {
					if at < 0 {
						t.Errorf("a bin at %d", at)
					}
				}
			}
		}, func(string) {})
		if reports == 0 && err == nil && strings.Contains("\n"+text, "\n{\n") {
			t.Error("a document came to nothing, without a word")
		}
	})
}

// Bins are merged as if each observation had been written out.
func TestBinsMergeAsTheirObservations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		all := Bins{}
		var slow []int64
		for range 1 + rng.IntN(5) {
			one := Bins{}
			for range rng.IntN(60) {
				at := int64(rng.ExpFloat64() * 1e6)
				one[at]++
				slow = append(slow, at)
			}
			before := maps.Clone(all)
			all.Add(one)
			if !maps.Equal(all.Since(before), one) {
				t.Fatal("what was added is not the difference")
			}
		}
		slices.Sort(slow)
		for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
			want := int64(0)
			if n := len(slow); n > 0 {
				i := 0
				for float64(i+1) < q*float64(n) {
					i++
				}
				want = slow[i]
			}
			if got := all.Quantile(q); got != want {
				t.Fatalf("q %v of %d: %d, want %d", q, len(slow), got, want)
			}
		}
		h := record.NewCounts()
		all.Count(h)
		if h.TotalCount() != int64(len(slow)) {
			t.Fatalf("%d of %d are in the histogram", h.TotalCount(), len(slow))
		}
	}
}

func TestRawJobs(t *testing.T) {
	for _, c := range []struct{ why, text, want, fails string }{
		{"a job", "; note\n[global]\nbs=4k\n[a]\nrw=read\nsize=1m\n", "[a]\nrw=read\nsize=1m\nthread=1\ndirectory=/d\n", ""},
		{"two jobs, each with what is needed at its end", "[a]\nrw=read\n[b]\nrw=write", "rw=read\nthread=1", ""},
		{"no job", "[global]\nbs=4k\n", "", "no job"},
		{"a name without an end", "[a\n", "", "line 1"},
		{"a directory of its own", "[a]\ndirectory=/etc\n", "", "line 2"},
		{"a device", "[a]\nfilename=/dev/sda\n", "", "own directory"},
		{"another program", "[a]\nexec_prerun=reboot\n", "", "no other program"},
		{"an engine that runs programs", "[a]\nioengine = exec\n", "", "no other program"},
		{"an engine from a library", "[a]\nioengine=external:/tmp/e.so\n", "", "loads no library"},
		{"an engine from a library by its name alone", "[a]\nioengine=./e.so\n", "", "must be one of libaio"},
		{"memory that is a file", "[a]\nmem=mmapshared:/etc/passwd\n", "", "must be one of malloc, mmap"},
		{"the environment", "[a]\nfilename=${HOME}\n", "", "without / and :"},
		{"the environment in a name", "[${HOME}]\n", "", "the name of a job"},
		{"a name that leads elsewhere", "[../../x]\n", "", "the name of a job"},
		{"several files, of which one is a device", "[a]\nfilename=a:/dev/sda\n", "", "without / and :"},
		{"the directory above", "[a]\nfilename=..\n", "", "without / and :"},
		{"a pattern from a file", "[a]\nbuffer_pattern='/etc/shadow'\n", "", "a number such as"},
		{"another file with options", "[a]\ninclude /etc/x.fio\n", "", "in one file"},
		{"where fio waits for a file to start a program", "[a]\ntrigger-file=/tmp/x\n", "", "may not have the option"},
		{"what is behind a comment is not an option", "[a]\nrw=read # exec_prerun=x\n", "rw=read\n", ""},
		{"a misspelling", "[a]\nbss=4k\n", "", "may not have the option"},
		{"a line within a line", "[a]\nrw=read\rexec_prerun=x\n", "", "must be a pattern"},
	} {
		got, err := Raw(c.text, "/d")
		var mistake *RawError
		switch {
		case c.fails == "" && (err != nil || !strings.Contains(got, c.want)):
			t.Errorf("%s: %q, %v", c.why, got, err)
		case c.fails != "" && (!errors.As(err, &mistake) || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, want %q", c.why, err, c.fails)
		}
	}
}

func FuzzRaw(f *testing.F) {
	f.Add("[global]\nbs=4k\n[a]\nrw=read\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Raw(text, "/d")
		if err == nil && (!strings.Contains(got, "directory=/d\n") || strings.ContainsAny(got, "$'\r") || strings.Contains(got, "\nexec_prerun")) {
			t.Errorf("%q became %q", text, got)
		}
	})
}

// run starts a job, ends it after a number of reports, and returns the last one.
func run(t *testing.T, b Binary, job string, reports int) (*Process, Report) {
	t.Helper()
	p, err := Start(exec.Command(b.Path, Args(100*time.Millisecond)...), proc.Self(), proc.Start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.KillAll)
	if err := p.Feed(job); err != nil {
		t.Fatal(err)
	}
	ended := false
	for until := time.Now().Add(20 * time.Second); !p.Ended() && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if _, n := p.Last(); n >= reports && !ended {
			ended = true
			p.Interrupt()
		}
	}
	if !p.Ended() {
		t.Fatal("fio does not end")
	}
	last, _ := p.Last()
	return p, last
}

// Quantiles of merged bins are those that fio itself tells of one client.
func TestRealFioAgrees(t *testing.T) {
	ring.Long(t, "it runs fio in depth")
	t.Parallel()
	b := binary(t)
	dir := t.TempDir()
	job := Job{Dir: dir, Pattern: "randrw", ReadPercent: 70, Block: 4096, Size: 4 << 20, Engine: "psync", Depth: 1, Rate: 2000}
	if err := b.Check(context.Background(), job.Text()); err != nil {
		t.Fatal(err)
	}
	p, last := run(t, b, job.Text(), 5)
	if kind, why := p.Failure(true); kind != "" || last.Sides[Read].Bins.N() < 100 || last.Sides[Write].Bins.N() < 30 {
		t.Errorf("%d reads and %d writes: %s %s", last.Sides[Read].Bins.N(), last.Sides[Write].Bins.N(), kind, why)
	}
	cmd := exec.Command(b.Path, "--output-format=json+", "--time_based=0", "-")
	cmd.Stdin = strings.NewReader(strings.Replace(job.Text(), "time_based=1\n"+endless, "runtime=1", 1))
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseReport(text)
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Jobs []map[string]json.RawMessage `json:"jobs"`
	}
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatal(err)
	}
	for name, side := range map[string]Side{Read: r.Sides[Read], Write: r.Sides[Write]} {
		var of struct {
			IOs uint64 `json:"total_ios"`
			Lat struct {
				Percentile map[string]int64 `json:"percentile"`
			} `json:"lat_ns"`
		}
		if err := json.Unmarshal(told.Jobs[0][name], &of); err != nil {
			t.Fatal(err)
		}
		if of.IOs != side.Bins.N() || of.IOs == 0 || len(of.Lat.Percentile) < 10 {
			t.Errorf("%s: %d of %d, %d percentiles", name, side.Bins.N(), of.IOs, len(of.Lat.Percentile))
		}
		for percent, want := range of.Lat.Percentile {
			q, err := strconv.ParseFloat(percent, 64)
			if err != nil {
				t.Fatal(err)
			}
			if got := side.Bins.Quantile(q / 100); got != want {
				t.Errorf("%s p%s: %d, and fio tells %d", name, percent, got, want)
			}
		}
	}
}

// A failure under fio has its kind.
func TestFailuresAreReported(t *testing.T) {
	ring.Long(t, "it runs fio in depth")
	t.Parallel()
	b := binary(t)
	dir := t.TempDir()
	fill := Job{Dir: dir, Pattern: "randread", Block: 4096, Size: 1 << 20, Engine: "psync", Depth: 1, Verify: true}
	fill.Fill = true
	if p, _ := run(t, b, fill.Text(), 1000); p != nil {
		if kind, why := p.Failure(false); kind != "" {
			t.Fatalf("the file was not filled: %s %s", kind, why)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	fill.Fill = false
	p, _ := run(t, b, fill.Text(), 1000)
	if kind, why := p.Failure(false); kind != FailedVerify {
		t.Errorf("zeroes instead of what was written: %q (%s)", kind, why)
	}
	p, _ = run(t, b, "[a]\nrw=read\nioengine=psync\nfilename=/nowhere/none\n", 1000)
	if kind, why := p.Failure(false); kind == "" || why == "" {
		t.Errorf("a file that is not there: %q (%s)", kind, why)
	}
}

// fio's own lines report a block that reads otherwise than it was written, as 3.33 prints
// them.
func TestAMismatchIsPlaced(t *testing.T) {
	for _, tt := range []struct{ why, lines, want string }{
		{"no such line", "fio: pid=1, err=84/file:io_u.c:1876\n", ""},
		{"a header", "verify: bad magic header 0, wanted acca at file /v/data offset 8192, length 4096 (requested block: offset=8192, length=4096)\nfio: pid=1, err=84/file:io_u.c\n",
			"1 block of 4096 bytes was not what was written, the first in /v/data at offset 8192; fio looked no further"},
		{"two blocks, one told twice", "crc32c: verify failed at file /v/data offset 4096, length 4096 (requested block: offset=4096, length=4096)\ncrc32c: verify failed at file /v/data offset 4096, length 4096\ncrc32c: verify failed at file /v/data offset 0, length 4096\n",
			"2 blocks of 4096 bytes were not what was written, the first in /v/data at offset 4096; fio looked no further"},
	} {
		if got := mismatch(strings.Split(tt.lines, "\n")); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
