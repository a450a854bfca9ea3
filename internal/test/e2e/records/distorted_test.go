package records_test

import (
	"os"
	"path/filepath"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/distort"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// A record is judged whatever its times are: the result is written with its
// page, can be read, and all of its figures are finite.
func TestKeptRecordsWithOtherTimesAreJudged(t *testing.T) {
	t.Parallel()
	const records = "testdata/records"
	histories, err := filepath.Glob(filepath.Join(records, "*", record.HistoryFile))
	if err != nil || len(histories) < 18 { // grids have theirs further down
		t.Fatal(histories, err)
	}
	every := suite.Size(4, 1) // each record in a quarter of the ways, where time is short
	for i, history := range histories {
		kept := filepath.Dir(history)
		var events []record.Event
		if _, err := record.ReadHistory(record.Dir(kept), func(e record.Event) error {
			events = append(events, e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for j, way := range distort.Ways(1) {
			if (i+j)%every != 0 {
				continue
			}
			t.Run(filepath.Base(kept)+", "+way.Why, func(t *testing.T) {
				t.Parallel()
				dir := record.Dir(t.TempDir())
				for _, name := range []string{record.ExperimentFile, record.EnvironmentFile} {
					data, err := os.ReadFile(filepath.Join(kept, name))
					if err == nil {
						err = dir.WriteFile(name, data)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				writer, err := record.NewWriter(dir, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range way.Apply(events) {
					writer.Append(e)
				}
				if err := writer.Close(); err != nil {
					t.Fatal(err)
				}
				got := e2e.Command(t, nil, "analyze", string(dir))
				var r result.Result
				if err := dir.ReadJSON(record.ResultFile, &r); err != nil || got.Code == process.ExitUsage || got.Code == process.ExitCouldNotRun || r.ExitCode != got.Code {
					t.Fatalf("exit code %d, result %d, %v:\n%s%s", got.Code, r.ExitCode, err, got.Stdout, got.Stderr)
				}
				for _, w := range r.Warnings {
					if w.Kind == record.WarningNotFinite {
						t.Error(w)
					}
				}
			})
		}
	}
}
