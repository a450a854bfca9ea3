package lab

import (
	"strings"
	"testing"
)

// What was measured on a machine of 24 GiB is what the estimate says, within a
// tenth.
func TestMemoryIsWhatWasMeasured(t *testing.T) {
	for _, c := range []struct {
		why         string
		nodes, pods int
		gib         float64
	}{
		{"without a load", 10, 0, 0.9},
		{"many nodes", 3000, 0, 1.75},
		{"ten thousand pods", 500, 10_000, 2.3},
		{"Kubernetes' tested maximum", 5000, 150_000, 20.6},
	} {
		if got := float64(Memory(c.nodes, c.pods)) / gib; got < 0.9*c.gib || got > 1.1*c.gib {
			t.Errorf("%s: %.2f GiB, measured %.2f", c.why, got, c.gib)
		}
	}
}

// The same of labs with virtual machines on 10 nodes.
func TestMachinesMemoryIsWhatWasMeasured(t *testing.T) {
	for machines, measured := range map[int]float64{40: 1.38, 300: 1.98, 1000: 2.89} {
		if got := float64(Memory(10, 0)+MachinesMemory(machines)) / gib; got < 0.9*measured || got > 1.1*measured {
			t.Errorf("%d machines: %.2f GiB, measured %.2f", machines, got, measured)
		}
	}
	err := Spec{Name: "a", Shape: Shape{Nodes: 10, TimeScale: 1}, Machines: 1_000_000}.fitsMemory()
	if err == nil || !strings.Contains(err.Error(), "with 1000000 virtual machines take about 1601") || !strings.Contains(err.Error(), "machines would fit") {
		t.Errorf("%v", err)
	}
}

// A lab that does not fit is refused with what would.
func TestALabThatDoesNotFitIsRefused(t *testing.T) {
	err := Spec{Name: "a", Shape: Shape{Nodes: 100_000}, Pods: 11_000_000}.fitsMemory()
	if err == nil || !strings.Contains(err.Error(), "100000 simulated nodes with 11000000 pods take about 1") || !strings.Contains(err.Error(), "pods would fit") {
		t.Errorf("%v", err)
	}
	if err := (Spec{Name: "a", Shape: Shape{Nodes: 10}}).fitsMemory(); err != nil {
		t.Errorf("a small one is refused: %v", err)
	}
}
