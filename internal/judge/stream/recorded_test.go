package stream

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// Of the single requests on record a result has those that took longest, first
// of those that were done.
func TestRecordedRequests(t *testing.T) {
	s := New(1e6, nil)
	for i := range 3 * recordedShown {
		x := &record.Request{Intended: 1e6, Sent: 1e6 + 200, Ended: record.Micros(2e6 + 1000*i), Place: "a.test"}
		if i%2 > 0 {
			x.Failed = "reset"
		}
		s.Recorded = append(s.Recorded, x)
	}
	got := s.Shown(&result.Spec{})
	if len(got) != 2*recordedShown {
		t.Fatalf("%d are shown", len(got))
	}
	for i, x := range got {
		if (x.Failed != "") != (i >= recordedShown) || i%recordedShown > 0 && x.Seconds >= got[i-1].Seconds || x.Late != 0.0002 || x.Due != "0001-01-01T00:00:01.000000Z" {
			t.Errorf("%d: %+v", i, x)
		}
	}
}
