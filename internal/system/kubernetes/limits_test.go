package kubernetes

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
)

func TestLimitInAnObject(t *testing.T) {
	object := []byte(`{"spec":{"migrations":{"cluster":20}}}`)
	for path, want := range map[string]int{"spec.migrations.cluster": 20, "spec.migrations.node": 2, "": 2} {
		if got := limitIn(object, described.Limit{Path: path, Default: 2}); got != want {
			t.Errorf("%q: %d, want %d", path, got, want)
		}
	}
}
