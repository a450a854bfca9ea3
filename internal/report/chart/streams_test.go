package chart

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// Figures that were always 0, sources that are not drawn, and samples outside of
// the step's windows have no line.
func TestSampledCourses(t *testing.T) {
	kind := record.ObjectKind{Charts: []record.Chart{
		{Title: "queues", Source: "server", Values: []record.Value{{Key: "a", Name: "first"}, {Key: "b", Name: "second"}, {Key: "c", Name: "third"}}},
		{Title: "nothing", Source: "server", Values: []record.Value{{Key: "b", Name: "second"}}},
	}}
	var samples []record.Event
	for i, values := range []map[string]float64{{"a": 9}, {"a": 1, "b": 0}, {"a": 0.123456, "c": 4}, {"a": 9}} {
		samples = append(samples,
			record.Event{T: record.Micros(i * 1e6), Body: &record.Reading{Source: "server", Values: values}},
			record.Event{T: record.Micros(i * 1e6), Body: &record.Reading{Source: "other", Values: values}})
	}
	list := sampledOf(kind, samples, 0.5, 2.5)
	if len(list) != 1 || len(list[0].At) != 2 || len(list[0].Lines) != 2 {
		t.Fatalf("%+v", list)
	}
	first, third := list[0].Lines[0], list[0].Lines[1]
	if first.Name != "first" || *first.Values[0] != 1 || *first.Values[1] != 0.1235 || third.Name != "third" || third.Values[0] != nil || *third.Values[1] != 4 {
		t.Errorf("%+v", list)
	}
}
