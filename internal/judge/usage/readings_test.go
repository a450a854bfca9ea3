package usage

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// Readings of a long step are thinned out, and what is computed from them
// stays what it was.
func TestReadingsAreBounded(t *testing.T) {
	s := NewReadings(nil)
	for i := range 5 * maxPoints {
		s.Add(record.Micros(i)*1e6, &record.Reading{Source: "p", Values: map[string]float64{"cpuSeconds": float64(i) / 4}})
	}
	points := s.CPU["p"]
	if len(points) > maxPoints {
		t.Errorf("%d readings are kept", len(points))
	}
	if used, ok := CPUIn(points, record.Micros(maxPoints)*1e6, record.Micros(2*maxPoints)*1e6); !ok || used != 25 {
		t.Errorf("%v%% (%v), want 25%%", used, ok)
	}
	if peak, ok := PeakCPU(points); !ok || peak != 25 {
		t.Errorf("the peak is %v%% (%v), want 25%%", peak, ok)
	}
}

// Seldom as readings are, those about a moment tell of it.
func TestCPUAboutAMoment(t *testing.T) {
	points := []CPUPoint{{T: 0}, {T: 2e6, Used: 1}, {T: 4e6, Used: 3}, {T: 6e6, Used: 3.5}}
	for _, tt := range []struct {
		why      string
		from, to record.Micros
		want     float64
	}{
		{"between readings: those outside of it", 3e6, 5e6, 62.5},
		{"on readings", 2e6, 4e6, 100},
		{"one moment", 3e6, 3e6, 100},
		{"after the last", 7e6, 9e6, 25},
		{"all of it", 0, 6e6, 58.3},
	} {
		if got, ok := CPUIn(points, tt.from, tt.to); !ok || got != tt.want {
			t.Errorf("%s: %v%% (%v), want %v%%", tt.why, got, ok, tt.want)
		}
	}
	if _, ok := CPUIn(points[:1], 0, 1); ok {
		t.Error("one reading tells of no use")
	}
}
