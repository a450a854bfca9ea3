package stream

import (
	"fmt"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// A place has failed where it fails at the end, whatever the others do.
func TestPlacesThatFailed(t *testing.T) {
	type window struct{ done, failed map[string]int }
	for _, tt := range []struct {
		why     string
		windows []window
		want    string
	}{
		{"none", []window{{done: map[string]int{"a": 9}}}, "[]"},
		{"dead from the start beside a quick one", []window{{map[string]int{"a": 1e6}, map[string]int{"b": 5}}, {map[string]int{"a": 1e6}, map[string]int{"b": 5}}}, "[b]"},
		{"dead from the middle on", []window{{done: map[string]int{"a": 9, "b": 9}}, {map[string]int{"a": 9}, map[string]int{"b": 5}}}, "[b]"},
		{"it came back", []window{{map[string]int{"a": 9}, map[string]int{"b": 5}}, {done: map[string]int{"a": 9, "b": 9}}}, "[]"},
		{"some of its requests fail", []window{{map[string]int{"a": 9, "b": 2}, map[string]int{"b": 5}}}, "[]"},
		{"all", []window{{failed: map[string]int{"b": 5, "a": 5}}}, "[a b]"},
	} {
		s := New(1e6, nil)
		for i, w := range tt.windows {
			// One of two components reports its failures.
			s.Add(&record.Window{Component: "read", From: record.Micros(i), To: record.Micros(i + 1), FailedByPlace: w.failed})
			s.Add(&record.Window{Component: "write", From: record.Micros(i), To: record.Micros(i + 1), ByPlace: w.done})
		}
		if got := fmt.Sprint(s.PlacesFailed()); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
		}
	}
}
