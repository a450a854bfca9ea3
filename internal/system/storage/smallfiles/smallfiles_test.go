package smallfiles

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/system/local/fio"
)

// A latency is within 1 part in 1024 of the middle of its bin.
func TestBins(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		ns := rng.Int64N(1 << rng.IntN(40))
		if at := bin(time.Duration(ns)); at < ns-ns/1024-1 || at > ns+ns/1024+1 {
			t.Fatalf("%d ns stand in the bin of %d", ns, at)
		}
	}
}

// stopped fails once the test has seen enough.
type stopped struct {
	io.Writer
	reports, enough int
}

func (w *stopped) Write(text []byte) (int, error) {
	if w.reports++; w.reports > w.enough {
		return 0, io.ErrClosedPipe
	}
	return w.Writer.Write(text)
}

func TestOperationsAreReportedAsFioDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		rate float64
		want func(n uint64) bool
	}{
		{"as fast as it goes", 0, func(n uint64) bool { return n > 50 }},
		{"at a fixed rate, of 400 a second for 0.5 s", 400, func(n uint64) bool { return n >= 20 && n <= 60 }},
	} {
		dir := t.TempDir()
		spec, err := json.Marshal(Spec{Dir: dir, Workers: 2, Files: 10, Size: 100, Rate: c.rate, Every: 100 * time.Millisecond, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err = Run(time.Now, strings.NewReader(string(spec)), &stopped{&out, 0, 5})
		if err == nil {
			t.Error("it ended without a word")
		}
		var last fio.Report
		if err := fio.ReadReports(strings.NewReader(out.String()), func(r fio.Report) { last = r }, func(string) {}); err != nil {
			t.Fatal(err)
		}
		for _, name := range Operations() {
			if n := last.Sides[name].Bins.N(); !c.want(n) {
				t.Errorf("%s: %d of %s", c.why, n, name)
			}
		}
		if last.Ran < 300*time.Millisecond || last.Errno != 0 {
			t.Errorf("%s: it ran for %v, error %d", c.why, last.Ran, last.Errno)
		}
	}
}

func TestAFailureIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(Spec{Dir: file, Workers: 1, Files: 1, Every: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Run(time.Now, strings.NewReader(string(spec)), &out); err == nil {
		t.Error("a file is no directory")
	}
	told := 0
	if err := fio.ReadReports(strings.NewReader(out.String()), func(r fio.Report) { told = r.Errno }, func(string) {}); err != nil || told == 0 {
		t.Errorf("the error is %d, %v", told, err)
	}
	if err := Run(time.Now, strings.NewReader("{"), io.Discard); err == nil {
		t.Error("half a specification is none")
	}
}

// A step in a directory in which another has left its files works.
func TestAStepAfterAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for step := range 2 {
		spec, err := json.Marshal(Spec{Dir: dir, Workers: 2, Files: 10, Size: 100, Every: 10 * time.Millisecond, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		// It ends because its output does, not because a file is there already.
		if err := Run(time.Now, strings.NewReader(string(spec)), &stopped{&out, 0, 3}); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("step %d: %v", step+1, err)
		}
	}
}
