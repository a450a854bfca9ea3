package judge

import (
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
)

// A record whose texts all differ is judged in time and memory that grow with it at
// most, and its result stays small: what nobody reads is counted.
func TestRecordsWhoseTextsAllDiffer(t *testing.T) {
	const n = 50_000
	for _, tt := range []struct {
		why  string
		body func(i int, text string) record.Body
	}{
		{"notes", func(_ int, text string) record.Body { return &record.Note{Text: text} }},
		{"kinds of notes", func(_ int, text string) record.Body {
			return &record.Note{Warning: record.WarningKind(text), Text: text}
		}},
		{"places of a note", func(_ int, text string) record.Body { return &record.Note{Text: "alike", Place: text} }},
		{"steps of a note", func(i int, text string) record.Body { return &record.Note{Text: "alike", About: n - i} }},
		{"messages of events", func(i int, text string) record.Body {
			return &record.TargetEvent{Object: "ns/pod-" + strconv.Itoa(i), Type: "Warning", Reason: "Failed", Message: text}
		}},
		{"reasons of events", func(i int, text string) record.Body {
			return &record.TargetEvent{Object: "ns/pod-1", Type: "Warning", Reason: text, Message: "m"}
		}},
		{"reasons of states", func(i int, text string) record.Body {
			return &record.State{Object: "ns/pod-" + strconv.Itoa(i%10), Reason: text, Message: text}
		}},
		{"objects that no slot asked for", func(i int, text string) record.Body { return &record.Object{Object: text, Milestone: "Created"} }},
		{"milestones", func(i int, text string) record.Body { return &record.Object{Object: "ns/pod-1", Milestone: text} }},
		{"nodes", func(i int, text string) record.Body {
			return &record.Object{Object: "ns/pod-1", Milestone: "Scheduled", Place: text}
		}},
		{"slots and their components", func(i int, text string) record.Body {
			return &record.Slot{Slot: text, Component: text, Units: 1, Outcome: record.SlotFailed, Code: 400 + i, Error: text}
		}},
		{"kinds of what is asked for", func(i int, text string) record.Body {
			return &record.Slot{Slot: text, Resource: text, Outcome: record.SlotFailed, Error: text}
		}},
		{"sources of readings", func(i int, text string) record.Body {
			return &record.Reading{Source: text, Values: map[string]float64{"cpuSeconds": float64(i), "rssBytes": 1}}
		}},
		{"values of a reading", func(i int, text string) record.Body {
			return &record.Reading{Source: "x", Values: map[string]float64{text: float64(i)}}
		}},
		{"histograms", func(i int, text string) record.Body {
			return &record.ComponentHistogram{Source: text, Name: text, Count: 1, Sum: 1, Bounds: []float64{1}, Counts: []uint64{1}}
		}},
		{"guards", func(i int, text string) record.Body { return &record.Guard{Name: text, Message: text} }},
		{"faults", func(i int, text string) record.Body { return &record.Fault{What: text, From: 1, Message: text} }},
		{"faults that are over", func(i int, text string) record.Body {
			return &record.Fault{What: text, From: 1, To: 2, Message: text}
		}},
		{"canaries", func(i int, text string) record.Body { return &record.Canary{Sent: record.Micros(i)} }},
		{"logs", func(i int, text string) record.Body {
			return &record.Log{Object: "ns/pod-" + strconv.Itoa(i), Reason: text, Lines: []string{text}}
		}},
		{"components of windows", func(i int, text string) record.Body {
			return &record.Window{Component: text, From: record.Micros(i), To: record.Micros(i + 1), Intended: 1, Sent: 1, Failed: map[string]int{text: 1}, ByPlace: map[string]int{text: 1}, FailedByPlace: map[string]int{text: 1}}
		}},
		{"places", func(i int, text string) record.Body {
			return &record.Place{Place: text, State: record.PlaceGone, What: text}
		}},
		{"actors", func(i int, text string) record.Body {
			return &record.Actor{Actor: text, Says: text, Since: 1, Waiting: 1}
		}},
		{"requests", func(i int, text string) record.Body {
			return &record.Request{Component: text, Place: text, Failed: text}
		}},
	} {
		t.Run(tt.why, func(t *testing.T) {
			s := oneOfMany(t)
			s.Rows = nil
			s.events = nil
			begin := used(t)
			add := func(body record.Body) {
				s.now += 10
				s.Add(record.Event{T: s.now, Step: 1, Body: body})
			}
			add(&record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 10, Purpose: record.PurposeSweep, FromEmpty: true, FullHold: true}, Timeout: 1e6, Hold: 1e6, Units: 10, Places: 1})
			for i := range 10 {
				add(&record.Slot{Slot: fmt.Sprint("ns/pod-", i), Units: 1, Outcome: record.SlotCreated, Code: 201})
			}
			for i := range n {
				add(tt.body(i, fmt.Sprintf("something %c%x", 'g'+i%20, i)))
			}
			add(&record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndTimeout, Places: 1})
			r := s.Finish(design.Sweep{Levels: []float64{10}}, record.Fidelity{}, "")
			took := used(t) - begin
			data, err := record.Encode(&r, "  ")
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			t.Logf("%v, result %d kB, heap %d MB", took.Round(time.Millisecond), len(data)>>10, m.HeapAlloc>>20)
			if err != nil || len(data) > 1<<20 {
				t.Errorf("a result of %d bytes, %v", len(data), err)
			}
			if took > time.Minute {
				t.Errorf("it took %v of CPU time", took)
			}
		})
	}
}

// used is the CPU time that the test's process has used.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
