package judge

import (
	"reflect"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// A result that was judged before the removal and amended by it is the one that the
// whole record gives.
func TestAnAmendedResultIsThatOfTheRecord(t *testing.T) {
	fault := record.Event{T: 1, Body: &record.Fault{What: "the watch of pods was cut", From: 1}}
	left := record.Event{T: 2, Body: &record.Note{Warning: record.WarningCleanup, Text: "2 pods are left"}}
	judged := func(events ...record.Event) result.Result {
		b := NewBuilder(result.Spec{Kind: observe.Pods()})
		for _, e := range events {
			b.Add(e)
		}
		return b.Finish(design.Sweep{Levels: []float64{1}}, record.Fidelity{}, "it was stopped")
	}
	before, whole := judged(fault), judged(fault, left)
	Amend(&before, left.Body)
	if len(whole.Warnings) < 2 || !reflect.DeepEqual(before.Warnings, whole.Warnings) {
		t.Errorf("amended %+v, of the whole record %+v", before.Warnings, whole.Warnings)
	}
}
