package judge

import (
	"encoding/json"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/distort"
)

// distorted holds, of every script that a test has made, that it is judged
// whatever its times are: the result can be written and read, and all of its
// figures are finite.
func distorted(t *testing.T, s *script) {
	for _, way := range distort.Ways(1) {
		b := NewBuilder(s.spec)
		for _, e := range way.Apply(s.events) {
			b.Add(e)
		}
		writable(t, way.Why, b.Finish(design.Sweep{Levels: []float64{1}}, record.Fidelity{}, ""))
	}
}

func writable(t *testing.T, why string, r result.Result) {
	t.Helper()
	data, err := record.Encode(&r, "")
	var read result.Result
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if err != nil {
		t.Errorf("%s: %v", why, err)
	}
	for _, w := range r.Warnings {
		if w.Kind == record.WarningNotFinite {
			t.Errorf("%s: %v", why, w)
		}
	}
}
