package run

import (
	"context"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

// wakes measures how late this program gets a processor: it asks to be woken at known times.
type wakes struct {
	mu         sync.Mutex
	made, late int
	most       time.Duration
}

const wakeInterval = 10 * time.Millisecond

// count asks to be woken until ctx ends.
func (w *wakes) count(ctx context.Context, clock *record.Clock) {
	timer := time.NewTimer(wakeInterval)
	defer timer.Stop()
	for due := clock.Now() + record.MicrosOf(wakeInterval); ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		now := clock.Now()
		delay := (now - due).Duration()
		w.mu.Lock()
		w.made++
		if delay > result.OwnDelayBound {
			w.late++
		}
		w.most = max(w.most, delay)
		w.mu.Unlock()
		due = now + record.MicrosOf(wakeInterval)
		timer.Reset(wakeInterval)
	}
}

// take returns the measurements since the last call, nil without any.
func (w *wakes) take() *record.Reading {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made == 0 {
		return nil
	}
	s := &record.Reading{Source: usage.SourceWakes, Values: map[string]float64{
		"wakes": float64(w.made), "late": float64(w.late), "mostSeconds": w.most.Seconds(),
	}}
	w.made, w.late, w.most = 0, 0, 0
	return s
}
