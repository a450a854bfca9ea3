package run

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
)

// A record says what its objects are, so that it is judged without its target.
// One that was made before records said so is of pods.
func TestARecordSaysWhatItsObjectsAre(t *testing.T) {
	levels := design.Sweep{Levels: []float64{1}}
	_, _, dir, err := trial{plan: plain(), design: levels, options: engine.Options{MaxInFlight: 1}}.run(t)
	if err != nil {
		t.Fatal(err)
	}
	var e record.Environment
	if err := dir.ReadJSON(record.EnvironmentFile, &e); err != nil || e.Kind == nil || e.Kind.There != "Ready" {
		t.Fatal(e.Kind, err)
	}
	kind := *e.Kind
	for name, c := range map[string]struct {
		kind  *record.ObjectKind
		by    string // the plan's milestone
		there string
	}{
		"on record":                  {&kind, "", "Ready"},
		"on record, whatever is now": {&kind, "Created", "Ready"},
		"before":                     {nil, "", "Ready"},
		"before, by its plan":        {nil, "Created", "Created"},
	} {
		e.Kind = c.kind
		if err := dir.WriteJSON(record.EnvironmentFile, e); err != nil {
			t.Fatal(err)
		}
		r, err := Judge(dir, Experiment{Design: levels, Spec: result.Spec{Kind: record.ObjectKind{There: c.by}, Goals: goals(t, "there=all "+c.there)}})
		if err != nil || r.Arrived != c.there || r.ExitCode != 0 {
			t.Errorf("%s: there at %s, exit code %d (%s), %v", name, r.Arrived, r.ExitCode, r.Why, err)
		}
	}
}
