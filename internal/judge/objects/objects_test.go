package objects

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

func milestones() []string { return []string{"Created", "Ready"} }

// written leaves rows in a run directory.
func written(t *testing.T, rows []record.ObjectRow, milestones ...string) record.Dir {
	t.Helper()
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := record.NewObjectWriter(dir, milestones)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		w.Add(r)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// drawn are rows of steps 1 to 4 in turns of a few, of two components, of which
// some were made by a controller and some never ready.
func drawn(rng *rand.Rand, n int) []record.ObjectRow {
	var rows []record.ObjectRow
	step := int64(1)
	for i := range n {
		if rng.IntN(max(n/10, 1)) == 0 {
			step = 1 + rng.Int64N(4)
		}
		r := record.ObjectRow{
			Slot: fmt.Sprintf("s-%d", i), Step: step, Component: []string{"app", "database"}[rng.IntN(2)], Place: fmt.Sprintf("n-%d", rng.IntN(5)), Iteration: int64(i),
			Intended: int64(100 * i), Sent: int64(100*i + rng.IntN(50)), Replied: -1, There: rng.IntN(2) == 0, Outcome: "created", Milestones: make(map[string]int64),
		}
		if rng.IntN(3) == 0 {
			r.Slot += "#1"
		}
		if rng.IntN(8) > 0 {
			r.Milestones["Created"] = r.Sent + rng.Int64N(40)
			if rng.IntN(8) > 0 {
				r.Milestones["Ready"] = r.Milestones["Created"] + rng.Int64N(400)
			}
		}
		r.Zero = r.Sent
		if created, ok := r.Milestones["Created"]; ok && strings.Contains(r.Slot, "#") {
			r.Zero = created
		}
		rows = append(rows, r)
	}
	return rows
}

// A table of another format is refused, with the version that wrote it.
func TestATableOfAnotherFormatIsRefused(t *testing.T) {
	dir := written(t, nil, milestones()...)
	if err := parquet.WriteFile(dir.Path(record.ObjectsFile), []struct{ Slot string }{{"a"}}); err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteFile(record.ExperimentFile, []byte("asRun: {version: 0.0.9}\n")); err != nil {
		t.Fatal(err)
	}
	_, err := Read(dir, nil)
	if format, ok := errors.AsType[*record.FormatError](err); !ok || format.Missing != ZeroColumn || format.Version != "0.0.9" {
		t.Errorf("%v", err)
	}
}

// A table is what an obvious reader finds row by row.
func TestRead(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 7, 3000} {
		dir := written(t, drawn(rng, n), milestones()...)
		table, err := Read(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(dir.Path(record.ObjectsFile))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		r := parquet.NewReader(file)
		names := r.Schema().Columns()
		for i := range n {
			rows := make([]parquet.Row, 1)
			if k, err := r.ReadRows(rows); k != 1 {
				t.Fatalf("row %d: %v", i, err)
			}
			for c, v := range rows[0] {
				name := strings.Join(names[c], ".")
				if slices.Contains([]string{"level", "arm", "replicate"}, name) {
					if table.column(name) != nil {
						t.Errorf("the step tells the %s too", name)
					}
					continue
				}
				got := table.column(name)
				if got == nil {
					t.Fatalf("there is no column %s", name)
				}
				switch {
				case v.IsNull():
					if got.Numbers[i] != Null {
						t.Fatalf("row %d of %s is %d, want null", i, name, got.Numbers[i])
					}
				case v.Kind() == parquet.ByteArray:
					if text := got.Words[got.Texts[i]]; text != string(v.ByteArray()) {
						t.Fatalf("row %d of %s is %q, want %q", i, name, text, v.ByteArray())
					}
				case v.Kind() == parquet.Boolean:
					if (got.Numbers[i] == 1) != v.Boolean() {
						t.Fatalf("row %d of %s is %d, want %v", i, name, got.Numbers[i], v.Boolean())
					}
				default:
					if got.Numbers[i] != v.Int64() {
						t.Fatalf("row %d of %s is %d, want %d", i, name, got.Numbers[i], v.Int64())
					}
				}
			}
		}
	}
}

// Columns that are not wanted are not read, and what is wrong with a file is
// said.
func TestReadOfColumnsAndOfWhatIsNone(t *testing.T) {
	dir := written(t, drawn(rand.New(rand.NewPCG(1, 1)), 10))
	table, err := Read(dir, func(name string) bool { return name == "step" })
	if err != nil || len(table.Columns) != 1 || len(table.Numbers("step")) != 10 || table.Micros("Ready") != nil {
		t.Errorf("%+v, %v", table, err)
	}
	text, err := os.ReadFile(dir.Path(record.ObjectsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{nil, text[:len(text)/2], []byte("no parquet at all")} {
		if err := os.WriteFile(dir.Path(record.ObjectsFile), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir, nil); err == nil || !strings.Contains(err.Error(), "read "+record.ObjectsFile) {
			t.Errorf("%d bytes that are none: %v", len(bad), err)
		}
	}
}

// slowSamples are Samples from the rows, one object at a time.
func slowSamples(rows []record.ObjectRow, s result.Step) []compare.MilestoneSample {
	var list []compare.MilestoneSample
	for _, m := range milestones() {
		l := s.Latency[m]
		of := func(component string) (came []float64, n int) {
			for _, r := range rows {
				if r.Step != int64(s.ID) || component != "" && r.Component != component {
					continue
				}
				n++
				created, made := r.Milestones["Created"]
				zero := r.Sent
				if strings.Contains(r.Slot, "#") && made {
					zero = created
				}
				at, ok := r.Milestones[m]
				if ok && (made || !strings.Contains(r.Slot, "#")) {
					came = append(came, float64(max(at-zero, 0))/1e6)
				}
			}
			slices.Sort(came)
			return came, n
		}
		all, n := of("")
		if n == 0 {
			continue
		}
		all = all[:min(len(all), l.N-l.Censored)]
		list = append(list, compare.MilestoneSample{Milestone: m, Sample: stats.NewSample(all, l.N-len(all))})
		for _, c := range []string{"app", "database"} {
			came, part := of(c)
			if part == 0 || part == n {
				continue // there is nothing to tell it from
			}
			for l.Censored > 0 && len(all) > 0 && len(came) > 0 && came[len(came)-1] > all[len(all)-1] {
				came = came[:len(came)-1]
			}
			list = append(list, compare.MilestoneSample{Milestone: m, Component: c, Sample: stats.NewSample(came, part-len(came))})
		}
	}
	return list
}

// Of several kinds of objects each reaches its own milestones: those of a component that are of another kind are not
// late.
func TestSamplesOfSeveralKinds(t *testing.T) {
	row := func(slot, component, reaches string) record.ObjectRow {
		return record.ObjectRow{Slot: slot, Step: 1, Component: component, Milestones: map[string]int64{reaches: 2e6}}
	}
	rows := []record.ObjectRow{
		row("x/1", "pods", "Ready"), row("x/2", "pods", "Ready"),
		row("DataVolume/x/3", "disks", "DVReady"), row("DataVolume/x/4", "disks", "DVReady"), row("x/5", "disks", "Ready"),
	}
	kind := record.ObjectKind{Milestones: []record.Milestone{{Name: "Ready"}, {Name: "DVReady", Of: "DataVolume"}}}
	step := result.Step{ID: 1, Latency: result.Latencies{"Ready": {N: 3}, "DVReady": {N: 2}}}
	got, err := Samples(written(t, rows, "Ready", "DVReady"), []result.Step{step}, kind, []string{"Ready", "DVReady"}, "Ready")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, s := range got[1] {
		said = append(said, fmt.Sprintf("%s %s: %d, %d late", s.Milestone, s.Component, s.Sample.N(), s.Sample.N()-len(s.Sample.Values())))
	}
	// The disks have all of DVReady: there is nothing to tell them from.
	if want := []string{"Ready : 3, 0 late", "Ready pods: 2, 0 late", "Ready disks: 1, 0 late", "DVReady : 2, 0 late"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

func TestSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		rows := drawn(rng, 400)
		var steps []result.Step
		for id := 1; id <= 4; id++ {
			n := 0
			for _, r := range rows {
				if r.Step == int64(id) {
					n++
				}
			}
			s := result.Step{ID: id, Latency: result.Latencies{}}
			for _, m := range milestones() {
				// Some are late: they came after the step had been judged.
				s.Latency[m] = result.Latency{N: n, Censored: n / 3}
			}
			steps = append(steps, s)
		}
		got, err := Samples(written(t, rows, milestones()...), steps, record.ObjectKind{}, milestones(), "Ready")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			want := slowSamples(rows, s)
			byName := func(a, b compare.MilestoneSample) int {
				return strings.Compare(a.Milestone+" "+a.Component, b.Milestone+" "+b.Component)
			}
			slices.SortFunc(want, byName)
			slices.SortFunc(got[s.ID], byName)
			if !reflect.DeepEqual(plain(got[s.ID]), plain(want)) {
				t.Fatalf("step %d:\n%v, want\n%v", s.ID, plain(got[s.ID]), plain(want))
			}
		}
	}
}

// plain returns the samples as lines.
func plain(list []compare.MilestoneSample) []string {
	var texts []string
	for _, s := range list {
		texts = append(texts, fmt.Sprintf("%s of %q: %v and %d", s.Milestone, s.Component, s.Values(), s.Censored()))
	}
	return texts
}
