package local

import (
	"context"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

// Place is a place that a load goes to.
type Place struct {
	Name string
	Look func() record.Place // Look returns its state: the zero value, or PlaceThere, while it takes load.
}

// lookInterval is the time between looks at a place.
const lookInterval = 500 * time.Millisecond

// FollowPlaces declares the places of a load, which noun names, and records their changes until stop,
// which must come before any of them is ended.
func FollowPlaces(rec system.Recorder, noun record.Noun, list []Place) (stop func()) {
	set := &record.Place{Noun: &noun}
	for _, p := range list {
		set.Set = append(set.Set, p.Name)
	}
	rec.Emit(set)
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex // stops reports at stop
	told := make(map[string]record.PlaceState)
	go func() {
		tick := time.NewTicker(lookInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			for _, p := range list {
				now := p.Look()
				if now.Place = p.Name; now.State == record.PlaceThere {
					now.State = ""
				}
				mu.Lock()
				if now.State != told[p.Name] && ctx.Err() == nil {
					told[p.Name] = now.State
					if now.State == "" {
						now.State, now.What = record.PlaceThere, "takes load again"
					}
					rec.Emit(&now)
				}
				mu.Unlock()
			}
		}
	}()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		cancel()
	}
}

// Ended returns the state of the place of a process.
func Ended(p *proc.Process) record.Place {
	if !p.Ended() {
		return record.Place{}
	}
	return record.Place{State: record.PlaceNotReady, What: "ended (" + p.State().String() + ")"}
}
