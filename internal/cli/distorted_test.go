package cli

import (
	"os"
	"path/filepath"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/distort"
)

// A record is judged whatever its times are: the result is written with its
// page, can be read, and all of its figures are finite.
func TestKeptRecordsWithOtherTimesAreJudged(t *testing.T) {
	dirs, err := filepath.Glob("testdata/records/*")
	if err != nil || len(dirs) < 5 {
		t.Fatal(dirs, err)
	}
	for _, kept := range dirs {
		var events []record.Event
		if _, err := record.ReadHistory(record.Dir(kept), func(e record.Event) error {
			events = append(events, e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, way := range distort.Ways(1) {
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
				writer, err := record.NewWriter(dir, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range way.Apply(events) {
					writer.Append(e)
				}
				if err := writer.Close(); err != nil {
					t.Fatal(err)
				}
				got := command(t, nil, "analyze", string(dir))
				var r judge.Result
				if err := dir.ReadJSON(record.ResultFile, &r); err != nil || got.code == exitUsage || got.code == exitCouldNotRun || r.ExitCode != got.code {
					t.Fatalf("exit code %d, result %d, %v:\n%s%s", got.code, r.ExitCode, err, got.stdout, got.stderr)
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
