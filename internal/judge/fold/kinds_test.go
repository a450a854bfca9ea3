package fold

import (
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Objects of several kinds count by their own milestones, and a request that two of them share counts once.
func TestObjectsOfSeveralKinds(t *testing.T) {
	t.Parallel()
	kind := record.ObjectKind{Created: "Created", There: "Ready", Gone: "Deleted", Milestones: []record.Milestone{
		{Name: "Created"}, {Name: "Ready"}, {Name: "Deleted"}, {Name: "DVBound", Of: "DataVolume"}, {Name: "DVReady", Of: "DataVolume", There: true}, {Name: "VMReady", Of: "VirtualMachine", There: true}, {Name: "NodeReady", Of: "Node"},
	}}
	spec := &result.Spec{Kind: kind, Milestones: kind.Names()}
	c, err := NewCollector(spec, &Tables{})
	if err != nil {
		t.Fatal(err)
	}
	const ms = record.Micros(1000)
	slot := func(name string, shared bool) *record.Slot {
		return &record.Slot{Slot: name, Units: 1, Shared: shared, Code: 201, Outcome: record.SlotCreated, Sent: 0, Replied: ms}
	}
	c.AddStep(record.Event{Step: 1}, &record.StepEvent{Phase: record.PhaseStart, Timeout: record.MicrosOf(time.Second)})
	for _, e := range []struct {
		at   record.Micros
		body record.Body
	}{
		{1, slot("ns/a", false)}, {1, slot("VirtualMachine/ns/a", true)}, {1, slot("DataVolume/ns/a", false)}, {1, slot("DataVolume/ns/b", false)},
		{10 * ms, &record.Object{Object: "ns/a", Milestone: "Created"}}, {20 * ms, &record.Object{Object: "ns/a", Milestone: "Ready"}},
		{30 * ms, &record.Object{Object: "DataVolume/ns/a", Milestone: "Created"}}, {40 * ms, &record.Object{Object: "DataVolume/ns/a", Milestone: "DVBound"}},
		{50 * ms, &record.Object{Object: "DataVolume/ns/a", Milestone: "DVReady"}}, {60 * ms, &record.Object{Object: "DataVolume/ns/b", Milestone: "DVBound"}},
		{65 * ms, &record.Object{Object: "Node/n1", Milestone: "Created"}}, {66 * ms, &record.Object{Object: "Node/n1", Milestone: "NodeReady"}},
		{70 * ms, &record.Object{Object: "VirtualMachine/ns/a", Milestone: "VMReady"}},
		{80 * ms, &record.State{Object: "VirtualMachine/ns/a", Lost: "VMReady", Reason: "Stopped"}},
	} {
		c.Add(record.Event{T: e.at, Step: 1, Body: e.body})
	}
	c.AddStep(record.Event{}, &record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndTimeout})
	s, f := c.End(record.MicrosOf(2 * time.Second))
	if o := s.Objects; o.Intended != 4 || o.Ready != 2 || o.NeverReady != 2 || s.APIRequests.N != 3 {
		t.Errorf("%+v, %d requests", o, s.APIRequests.N)
	}
	for _, tt := range []struct {
		why, milestone string
		n, censored    int
		p50            float64
		short          int
	}{
		{"only pods", "Ready", 1, 0, 0.02, 0},
		{"one volume never got there", "DVReady", 2, 1, 0.05, 1},
		{"both are bound", "DVBound", 2, 0, 0.04, 0},
		{"the machine got there, and left again", "VMReady", 1, 0, 0.07, 1},
		{"pods alone count at a milestone that every kind has", "Created", 1, 0, 0.01, 0},
	} {
		l := s.Latency[tt.milestone]
		short, lost, _ := f.Account.Short(slo.SLO{Form: slo.All, Milestone: tt.milestone})
		if l.N != tt.n || l.Censored != tt.censored || l.P50 == nil || *l.P50 != tt.p50 || short != tt.short || lost != 0 || f.Of(tt.milestone) != tt.n {
			t.Errorf("%s: %+v, %d short, %d lost", tt.why, l, short, lost)
		}
	}
	if at, late := f.Account.QuantileAt(slo.SLO{Form: slo.Quantile, Milestone: "DVReady", Q: 1, Op: slo.LessEqual, Within: 100 * time.Millisecond}, f.Samples["DVReady"]); at != 100*ms || late != 1 {
		t.Errorf("the objective on volumes was lost at %d by %d", at, late)
	}
	// A step without pods says nothing of them.
	c.AddStep(record.Event{T: 3e6, Step: 2}, &record.StepEvent{Phase: record.PhaseStart, Timeout: record.MicrosOf(time.Second)})
	c.Add(record.Event{T: 3e6, Step: 2, Body: slot("DataVolume/ns/c", false)})
	s, f = c.End(5e6)
	if _, has := s.Latency["Ready"]; has || s.Latency["DVReady"].N != 1 || f.Asks("Ready") || !f.Asks("DVReady") || f.Of("Ready") != 1 {
		t.Errorf("%v", s.Latency)
	}
}
