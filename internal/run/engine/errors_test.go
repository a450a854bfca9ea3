package engine

import (
	"math/rand/v2"
	"testing"
)

func TestErrorShare(t *testing.T) {
	for _, tt := range []struct {
		why  string
		add  func(*errorShare)
		want float64
	}{
		{"nothing yet says nothing", func(*errorShare) {}, 0},
		{"a failure among the first few says nothing either", func(e *errorShare) {
			for range quorum - 1 {
				e.add(true, 0)
			}
		}, 0},
		{"with the quorum it counts", func(e *errorShare) {
			for range quorum {
				e.add(true, 0)
			}
		}, 100},
		{"each attempt counts: 10 requests that succeed at their second attempt", func(e *errorShare) {
			for range 10 {
				e.add(false, 1)
			}
		}, 50},
		{"what is long past is forgotten", func(e *errorShare) {
			for range 500 {
				e.add(true, 0)
			}
			for range window {
				e.add(false, 0)
			}
		}, 0},
		{"a request with endless retries fills the window, and is counted once", func(e *errorShare) { e.add(false, 1<<40) }, 100 * float64(window-1) / window},
	} {
		var e errorShare
		tt.add(&e)
		if got := e.percent(); got != tt.want {
			t.Errorf("%s: %v %%, want %v %%", tt.why, got, tt.want)
		}
	}
}

func TestErrorShareAgreesWithASlowTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 50 {
		var e errorShare
		var attempts []bool
		for range 600 {
			failed, retries := rng.IntN(3) == 0, max(0, rng.IntN(6)-3)
			e.add(failed, retries)
			for range retries {
				attempts = append(attempts, true)
			}
			attempts = append(attempts, failed)
			latest := attempts[max(0, len(attempts)-window):]
			want := 0.0
			for _, bad := range latest {
				if bad {
					want += 100 / float64(len(latest))
				}
			}
			if len(attempts) < quorum {
				want = 0
			}
			if got := e.percent(); got < want-1e-9 || got > want+1e-9 {
				t.Fatalf("after %d attempts: %v %%, want %v %%", len(attempts), got, want)
			}
		}
	}
}
