package local

import (
	"context"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

// Place is one that a load goes to.
type Place struct {
	Name string
	// Look says how it is: nothing, or PlaceThere, where it takes load.
	Look func() record.Place
}

// lookInterval is how often a place is looked at.
const lookInterval = 500 * time.Millisecond

// FollowPlaces declares the places of a load, and tells of each what happens to it,
// until it is stopped: stop it before any of them is ended. Noun is what they are.
func FollowPlaces(rec system.Recorder, noun record.Noun, list []Place) (stop func()) {
	set := &record.Place{Noun: &noun}
	for _, p := range list {
		set.Set = append(set.Set, p.Name)
	}
	rec.Emit(set)
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex // so that nothing is told once it is stopped
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

// Ended is how a place is that a process stands for.
func Ended(p *proc.Process) record.Place {
	if !p.Ended() {
		return record.Place{}
	}
	return record.Place{State: record.PlaceNotReady, What: "ended (" + p.State().String() + ")"}
}
