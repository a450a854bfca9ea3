package cluster

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Readings on a line give the line; fewer pods never need more.
func TestExtrapolate(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		base, slope := random.Float64()*10, random.Float64()
		var pods, values []float64
		for range 2 + random.IntN(5) {
			x := float64(1 + random.IntN(400))
			pods, values = append(pods, x), append(values, base+slope*x)
		}
		at := float64(1 + random.IntN(3000))
		got, _ := extrapolate(pods, values, at)
		if pods[0] == pods[1] && len(pods) == 2 {
			continue
		}
		if want := base + slope*at; math.Abs(got-want) > 1e-6*want {
			t.Fatalf("extrapolate(%v, %v, %v) = %v, want %v", pods, values, at, got, want)
		}
	}
	// Noise that falls with the pods is no reason to expect less.
	if got, _ := extrapolate([]float64{100, 200}, []float64{5, 4}, 500); got < 5 {
		t.Errorf("%v", got)
	}
	if got, _ := extrapolate([]float64{100}, []float64{5}, 50); got != 5 {
		t.Errorf("below what was seen: %v", got)
	}
}

// The slow twin tries every block of the pools in turn.
func TestFreeRangeEqualsItsSlowTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pools := []string{"10.16.0.0/14", "192.168.0.0/18"}
	slow := func(length int, taken []named) (netip.Prefix, bool) {
		for _, text := range pools {
			pool := netip.MustParsePrefix(text)
			if length < pool.Bits() {
				continue
			}
			for at := pool.Addr(); pool.Contains(at); {
				rng := netip.PrefixFrom(at, length)
				clear := true
				for _, x := range taken {
					clear = clear && !x.rng.Overlaps(rng)
				}
				if clear {
					return rng, true
				}
				at = last(rng).Next()
			}
		}
		return netip.Prefix{}, false
	}
	for range 400 {
		var taken []named
		for range random.IntN(12) {
			raw := [4]byte{10, byte(16 + random.IntN(4)), byte(random.IntN(256)), 0}
			taken = append(taken, named{rng: netip.PrefixFrom(netip.AddrFrom4(raw), 14+random.IntN(10)).Masked()})
		}
		length := 12 + random.IntN(10)
		got, ok := freeRange(pools, length, taken)
		want, found := slow(length, taken)
		if got != want || ok != found {
			t.Fatalf("freeRange(/%d, %v) = %v %v, want %v %v", length, taken, got, ok, want, found)
		}
	}
}

func TestReservationByTheSizeOfTheNode(t *testing.T) {
	// OpenShift's rule, with the figures of its own table.
	for _, tt := range []struct {
		gib    int64
		memory float64
	}{{4, 1}, {8, 1.8}, {16, 2.6}, {32, 3.56}, {64, 5.48}, {128, 9.32}, {256, 11.88}, {512, 17}, {1024, 27.24}} {
		tuner := kubeletTuner{Builder: answer.NewBuilder("x"), Kubelet: Kubelet{Memory: param.Given(param.Bytes(tt.gib<<30), "flag"), Cores: param.Given(8.0, "flag")}}
		got := tuner.formula()
		if math.Abs(float64(got.memory)/(1<<30)-tt.memory) > 0.005 {
			t.Errorf("%d GiB: %v, want %v GiB", tt.gib, got.memory, tt.memory)
		}
	}
	for _, tt := range []struct{ cores, want float64 }{{1, 0.5}, {16, 0.5}, {64, 0.816}, {128, 1.584}} {
		tuner := kubeletTuner{Builder: answer.NewBuilder("x"), Kubelet: Kubelet{Memory: param.Given(param.Bytes(1<<30), "flag"), Cores: param.Given(tt.cores, "flag")}}
		if got := tuner.formula(); math.Abs(got.cores-tt.want) > 1e-9 {
			t.Errorf("%v cores: %v, want %v", tt.cores, got.cores, tt.want)
		}
	}
}
