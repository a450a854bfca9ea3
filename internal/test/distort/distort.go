// Package distort changes the times of recorded events, to what a clock, a watch
// or a machine could make of them and to what none would: a record must be judged
// whatever it holds. Only tests import it.
package distort

import (
	"math/rand/v2"
	"reflect"

	"plimsoll.dev/plimsoll/internal/record"
)

// Way is one way to change events. Apply makes others and leaves its own alone.
type Way struct {
	Why   string
	Apply func([]record.Event) []record.Event
}

// Ways returns all of them. What is random follows from the seed.
func Ways(seed uint64) []Way {
	draw := rand.New(rand.NewPCG(seed, seed))
	return []Way{
		{"as it was", times(func(t, _ record.Micros) record.Micros { return t })},
		{"all at once, at the start", times(func(record.Micros, record.Micros) record.Micros { return 0 })},
		{"all at once, at the end", times(func(_, last record.Micros) record.Micros { return last })},
		{"backwards", times(func(t, last record.Micros) record.Micros { return last - t })},
		{"a million times as fast", times(func(t, _ record.Micros) record.Micros { return t / 1e6 })},
		{"in whole seconds", times(func(t, _ record.Micros) record.Micros { return t / 1e6 * 1e6 })},
		{"in halves", times(func(t, last record.Micros) record.Micros { return t / max(last/2, 1) * (last / 2) })},
		{"in no order", times(func(_, last record.Micros) record.Micros { return record.Micros(draw.Int64N(int64(last) + 1)) })},
		{"news of objects in bursts, as after a watch was cut", func(events []record.Event) []record.Event {
			return each(events, func(e record.Event) record.Event {
				const apart = 10e6
				if e.Body.Kind() == record.KindObject {
					e.T = (e.T + apart - 1) / apart * apart
				}
				return e
			})
		}},
		{"no news of objects", without(record.KindObject)},
		{"no requests", without(record.KindSlot)},
		{"steps in which nothing was", without(record.KindObject, record.KindSlot, record.KindState, record.KindWindow, record.KindSample)},
	}
}

// times changes every time and span of events. Last is the last time.
func times(change func(t, last record.Micros) record.Micros) func([]record.Event) []record.Event {
	return func(events []record.Event) []record.Event {
		last := record.Micros(0)
		for _, e := range events {
			last = max(last, e.T)
		}
		return each(events, func(e record.Event) record.Event {
			body := reflect.New(reflect.TypeOf(e.Body).Elem())
			body.Elem().Set(reflect.ValueOf(e.Body).Elem())
			for i := range body.Elem().NumField() {
				if field := body.Elem().Field(i); field.Type() == reflect.TypeFor[record.Micros]() {
					field.SetInt(int64(change(record.Micros(field.Int()), last)))
				}
			}
			return record.Event{T: change(e.T, last), Step: e.Step, Body: body.Interface().(record.Body)}
		})
	}
}

func each(events []record.Event, change func(record.Event) record.Event) []record.Event {
	list := make([]record.Event, len(events))
	for i, e := range events {
		list[i] = change(e)
	}
	return list
}

// without leaves out events of some kinds.
func without(kinds ...record.EventKind) func([]record.Event) []record.Event {
	left := make(map[record.EventKind]bool)
	for _, k := range kinds {
		left[k] = true
	}
	return func(events []record.Event) (list []record.Event) {
		for _, e := range events {
			if !left[e.Body.Kind()] {
				list = append(list, e)
			}
		}
		return list
	}
}
