package result

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// A reason names its places as far as they are known.
func TestPlacesOfAReason(t *testing.T) {
	node := record.Noun{One: "node", Many: "nodes"}
	for _, tt := range []struct {
		why  string
		r    Reason
		want string
	}{
		{"of as many as were asked", Reason{Places: 2, PlacesOf: 3}, "on 2 of 3 nodes"},
		{"a level that does not count nodes", Reason{Places: 1}, "on 1 node"},
		{"no place is known", Reason{PlacesOf: 3}, ""},
	} {
		if got := tt.r.On(node); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
