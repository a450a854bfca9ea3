package schema

import (
	"strings"
	"testing"
)

// Each line of the table of kernel keys is read whole: a key, or a key with how
// many numbers it takes and their bounds.
func TestKernelKeysAreReadWhole(t *testing.T) {
	bounded := 0
	for key, r := range NewKernel().Known {
		if strings.ContainsAny(key, " :") || r.Numbers < 0 || r.Numbers > 4 || r.Low > r.High || r.Numbers == 0 && r.High != 0 {
			t.Errorf("%q takes %d numbers from %d to %d", key, r.Numbers, r.Low, r.High)
		}
		if r.Numbers > 0 {
			bounded++
		}
	}
	if n := len(NewKernel().Removed); bounded < 80 || n < 10 {
		t.Errorf("%d keys have bounds, and %d went", bounded, n)
	}
}
