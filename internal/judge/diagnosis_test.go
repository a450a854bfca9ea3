package judge

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

func newDiagnosed(t testing.TB, signatures ...signature.Signature) *script {
	t.Helper()
	s := newScript(t)
	spec := s.spec
	spec.Signatures = signatures
	if signatures == nil {
		var err error
		if spec.Signatures, err = signature.Builtin(); err != nil {
			t.Fatal(err)
		}
	}
	s.Builder = NewBuilder(spec)
	return s
}

func shown(list []result.Diagnosis) string {
	var words []string
	for _, d := range list {
		text := fmt.Sprintf("%s %d in %v", d.Signature, d.Count, d.Steps)
		if d.Failing {
			text += fmt.Sprintf(", failing %d", d.Step)
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

// Steps that failed come first, with the evidence of the first of them; what
// was seen in steps that held comes after.
func TestDiagnosis(t *testing.T) {
	s := newDiagnosed(t)
	probe := func(name string) {
		s.put(&record.TargetEvent{Object: "ns/" + name, About: "Pod", Type: "Warning", Reason: "Unhealthy", Message: "Readiness probe failed: HTTP probe failed with statuscode: 503"})
	}
	noPlace := func(name string) {
		s.asked(name)
		s.news(name + " Created")
		s.state(name, "Unschedulable", "0/1 nodes are available: 1 Too many pods.")
	}
	s.at(1).begin(1)
	s.made("a", 1)
	probe("a")
	s.asked("b", func(r *record.Slot) {
		r.Throttled, r.ThrottledAt, r.TroubleCode, r.Trouble = 1, s.now, 429, "Too many requests (priority level narrow)"
	})
	s.news("b Created Ready")
	s.at(10).end(record.EndHeld)
	s.at(20).begin(2)
	noPlace("c")
	s.at(21)
	probe("b")
	s.at(22)
	probe("a")
	s.at(30).end(record.EndStalled)
	s.at(40).begin(3)
	noPlace("d")
	s.at(50).end(record.EndStalled)
	r := s.finish(design.Sweep{Levels: []float64{1, 2, 3}})
	if got, want := shown(r.Diagnosis), "too-many-pods 2 in [2 3], failing 2; readiness-503 3 in [1 2], failing 2; priority-and-fairness 1 in [1]"; got != want {
		t.Fatalf("%s\nwant %s", got, want)
	}
	d := r.Diagnosis[1]
	if d.First != "2030-01-02T03:04:26.000000Z" || len(d.Matches) != 2 || d.Matches[0].Object != "ns/b" || !strings.Contains(d.Evidence, "3 times, first ns/b: Unhealthy: Readiness probe failed") ||
		d.Title == "" || d.Explanation == "" || d.Remedy == "" || d.Source == "" {
		t.Errorf("%+v", d)
	}
	// Judged again it comes to the same.
	again := NewBuilder(s.spec)
	for _, e := range s.events {
		again.Add(e)
	}
	if got := again.Finish(design.Sweep{Levels: []float64{1, 2, 3}}, record.Fidelity{}, "").Diagnosis; !reflect.DeepEqual(got, r.Diagnosis) {
		t.Errorf("judged again: %s", shown(got))
	}
}

// Many pods without a node and a busy kubelet are seen together only.
func TestDiagnosisByConditions(t *testing.T) {
	for _, tt := range []struct {
		why     string
		pending int
		cpu     float64 // seconds of CPU in each second
		want    string
	}{
		{"both", 20, 0.95, "too-many-pods 20 in [1], failing 1; pending-pods-busy-kubelets 20 in [1], failing 1"},
		{"a kubelet with time", 20, 0.5, "too-many-pods 20 in [1], failing 1"},
		{"few pods", 19, 0.95, "too-many-pods 19 in [1], failing 1"},
	} {
		s := newDiagnosed(t)
		s.begin(1)
		for i := range 20 {
			s.at(float64(i)).put(&record.Reading{Source: "kubelet", Values: map[string]float64{"cpuSeconds": 100 + float64(i)*tt.cpu}})
			if i < tt.pending {
				name := fmt.Sprint("p", i)
				s.asked(name)
				s.news(name + " Created")
				s.state(name, "Unschedulable", "0/1 nodes are available: 1 Too many pods.")
			}
		}
		s.at(30).end(record.EndStalled)
		if got := shown(s.finish(design.Sweep{Levels: []float64{1}}).Diagnosis); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
		}
	}
}

// The services that stand in one namespace are counted as long as they stand.
func TestDiagnosisOfServices(t *testing.T) {
	service := func(s *record.Slot) { s.Units, s.Resource = 0, "Service" }
	s := newDiagnosed(t)
	s.begin(1)
	for i := range 5000 {
		s.asked(fmt.Sprint("s", i), service)
	}
	s.asked("refused", service, outcome(record.SlotFailed, 500, "no"))
	s.put(&record.Slot{Slot: "other/s", Resource: "Service", Outcome: record.SlotCreated})
	s.made("a", 1)
	s.at(10).end(record.EndHeld)
	s.at(20).begin(2)
	s.asked("one-more", service)
	s.made("b", 1)
	s.at(30).end(record.EndHeld)
	s.put(&record.StepEvent{Phase: record.PhaseReset})
	s.at(40).begin(3, func(b *record.StepEvent) { b.FromEmpty = true })
	s.made("c", 1)
	s.at(50).end(record.EndHeld)
	if got := shown(s.finish(design.Sweep{Levels: []float64{1, 2, 3}}).Diagnosis); got != "too-many-services 0 in [2]" {
		t.Errorf("%s, want it in the step with 5001 services alone", got)
	}
}

// A step that was cut and is made again has shown nothing.
func TestDiagnosisOfAStepThatWasCut(t *testing.T) {
	s := newDiagnosed(t)
	s.begin(1)
	s.asked("a", outcome(record.SlotFailed, 403, "exceeded quota: q"))
	s.at(5).put(&record.RunEvent{Phase: record.PhaseResume})
	s.put(&record.StepEvent{Phase: record.PhaseReset})
	s.at(6).begin(1, func(b *record.StepEvent) { b.FromEmpty = true })
	s.made("a", 1)
	s.at(10).end(record.EndHeld)
	if got := shown(s.finish(design.Sweep{Levels: []float64{1}}).Diagnosis); got != "" {
		t.Errorf("%s", got)
	}
}

// Logs are matched as they were sampled, and the result has their ends.
func TestLogs(t *testing.T) {
	s := newDiagnosed(t)
	s.put(&record.Log{Object: "ns/x", Lines: []string{"before any step"}})
	s.begin(1)
	s.made("a", 1)
	s.asked("b")
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	lines[0] = "dial tcp 172.30.225.6:5432: i/o timeout"
	for i := range 20 {
		s.put(&record.Log{Object: fmt.Sprintf("ns/b%d", i), Container: "app", Reason: "ContainersNotReady", Lines: lines, Masked: 1})
	}
	c := s.at(30).end(record.EndTimeout)
	if len(c.Logs) != 12 || !slices.Equal(c.Logs[0].Lines, lines[12:]) || c.Logs[0].Object != "ns/b0" || c.Logs[0].Masked != 1 {
		t.Errorf("%d logs, the first %+v", len(c.Logs), c.Logs[0])
	}
	r := s.finish(design.Sweep{Levels: []float64{1}})
	if got := shown(r.Diagnosis); got != "service-dial-timeout 20 in [1], failing 1" {
		t.Errorf("%s", got)
	}
	if text := r.Diagnosis[0].Evidence; text != "pods could not open a connection in time: 20 times, first ns/b0: dial tcp 172.30.225.6:5432: i/o timeout" {
		t.Errorf("evidence %q", text)
	}
}
