package run

import (
	"errors"
	"os"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
)

// A record says what its objects are, so that it is judged without its target. A
// record of another format is refused, with the version that wrote it.
func TestARecordSaysWhatItsObjectsAre(t *testing.T) {
	levels := design.Sweep{Levels: []float64{1}}
	_, _, dir, err := trial{plan: plain(), design: levels, options: engine.Options{MaxInFlight: 1}}.run(t)
	if err != nil {
		t.Fatal(err)
	}
	judge := func(there string) (result.Result, error) {
		return Judge(dir, Experiment{Design: levels, Spec: result.Spec{Kind: record.ObjectKind{There: there}, Goals: goals(t, "there=all Ready")}})
	}
	for _, now := range []string{"", "Created"} {
		if r, err := judge(now); err != nil || r.Arrived != "Ready" || r.ExitCode != 0 {
			t.Errorf("the kind is %q now: there at %s, exit code %d (%s), %v", now, r.Arrived, r.ExitCode, r.Why, err)
		}
	}

	var e record.Environment
	if err := dir.ReadJSON(record.EnvironmentFile, &e); err != nil || e.Kind == nil {
		t.Fatal(e.Kind, err)
	}
	e.Kind = nil
	if err := errors.Join(dir.WriteJSON(record.EnvironmentFile, e), dir.WriteFile(record.ExperimentFile, []byte("asRun: {version: 0.0.9}\n"))); err != nil {
		t.Fatal(err)
	}
	_, err = judge("")
	if format, ok := errors.AsType[*record.FormatError](err); !ok || format.Version != "0.0.9" || !strings.Contains(err.Error(), "plimsoll 0.0.9 wrote it") {
		t.Errorf("a record of another format: %v", err)
	}

	// A run that ended before it was written knows nothing of its objects.
	if err := os.Remove(dir.Path(record.EnvironmentFile)); err != nil {
		t.Fatal(err)
	}
	if r, err := judge("Ready"); err != nil || r.ObjectKind.Object.Many != "objects" || r.Arrived != "Ready" {
		t.Errorf("without an environment: kind %+v, there at %q, %v", r.ObjectKind, r.Arrived, err)
	}
}
