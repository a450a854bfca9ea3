package signature

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

func matcherOf(t testing.TB, list ...Signature) *Matcher {
	t.Helper()
	m, err := NewMatcher(list)
	if err != nil {
		t.Fatal(err)
	}
	m.Begin(1)
	return m
}

func eventOf(object, reason, message string) *record.TargetEvent {
	return &record.TargetEvent{Object: object, About: "Pod", Type: "Warning", Reason: reason, Message: message, Source: "kubelet"}
}

func above(x float64) *float64 { return &x }

func TestDetectors(t *testing.T) {
	unhealthy := Clause{Event: &EventPattern{Reason: Words{"Unhealthy"}, Message: "statuscode: 503"}}
	evicted := Clause{State: &StatePattern{Reason: Words{"Evicted", "OOMKilled"}}}
	busy := Clause{Condition: &ConditionPattern{Figure: "CPU of kubelet*", Above: above(90)}}
	put := func(m *Matcher, what string) {
		switch what {
		case "503":
			m.Event(5, eventOf("ns/a", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503"))
		case "500":
			m.Event(5, eventOf("ns/a", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500"))
		case "evicted":
			m.State(7, &record.State{Object: "ns/a", Reason: "Evicted", Message: "low on memory"}, "")
		case "evicted again":
			m.State(8, &record.State{Object: "ns/a", Reason: "Evicted", Message: "low on disk"}, "Evicted")
		}
	}
	for _, tt := range []struct {
		why     string
		detect  Detector
		came    string
		figures map[string]float64
		fires   bool
	}{
		{"all of one", Detector{All: []Clause{unhealthy}}, "503", nil, true},
		{"another message", Detector{All: []Clause{unhealthy}}, "500", nil, false},
		{"nothing", Detector{All: []Clause{unhealthy}}, "", nil, false},
		{"all of two, one came", Detector{All: []Clause{unhealthy, evicted}}, "503", nil, false},
		{"all of two, both came", Detector{All: []Clause{unhealthy, evicted}}, "503,evicted", nil, true},
		{"any of two", Detector{Any: []Clause{unhealthy, evicted}}, "evicted", nil, true},
		{"any of two, none came", Detector{Any: []Clause{unhealthy, evicted}}, "500", nil, false},
		{"all and any", Detector{All: []Clause{unhealthy}, Any: []Clause{evicted, busy}}, "503", nil, false},
		{"all and any, by a condition", Detector{All: []Clause{unhealthy}, Any: []Clause{evicted, busy}}, "503", map[string]float64{"CPU of kubelet": 91}, true},
		{"none", Detector{All: []Clause{unhealthy}, None: []Clause{evicted}}, "503", nil, true},
		{"none, and it came", Detector{All: []Clause{unhealthy}, None: []Clause{evicted}}, "503,evicted", nil, false},
		{"none, by a condition", Detector{All: []Clause{unhealthy}, None: []Clause{busy}}, "503", map[string]float64{"CPU of kubelet": 91}, false},
		{"a condition at its bound", Detector{All: []Clause{busy}}, "", map[string]float64{"CPU of kubelet": 90}, false},
		{"a condition of any process of that name", Detector{All: []Clause{busy}}, "", map[string]float64{"CPU of kubelet node-3": 99}, true},
		{"a condition of another process", Detector{All: []Clause{busy}}, "", map[string]float64{"CPU of kube-proxy": 99}, false},
		{"below", Detector{All: []Clause{{Condition: &ConditionPattern{Figure: "CPU of the machine", Below: above(10)}}}}, "", map[string]float64{"CPU of the machine": 9}, true},
		{"enough", Detector{All: []Clause{{Event: unhealthy.Event, AtLeast: 2}}}, "503,503", nil, true},
		{"too few", Detector{All: []Clause{{Event: unhealthy.Event, AtLeast: 3}}}, "503,503", nil, false},
		{"the same state in other words is no further one", Detector{All: []Clause{{State: evicted.State, AtLeast: 2}}}, "evicted,evicted again", nil, false},
		{"another component's event", Detector{All: []Clause{{Event: &EventPattern{Reason: Words{"Unhealthy"}, Source: "me"}}}}, "503", nil, false},
		{"an event about something else", Detector{All: []Clause{{Event: &EventPattern{Reason: Words{"Unhealthy"}, About: "Node"}}}}, "503", nil, false},
		{"an event of any reason", Detector{All: []Clause{{Event: &EventPattern{Message: "statuscode: 50[03]"}}}}, "500", nil, true},
	} {
		m := matcherOf(t, Signature{Name: "x", Detect: tt.detect})
		for what := range strings.SplitSeq(tt.came, ",") {
			put(m, what)
		}
		hits := m.End(9, tt.figures)
		if fires := len(hits) == 1; fires != tt.fires {
			t.Errorf("%s: it fires: %v", tt.why, fires)
		}
		if again := m.End(9, nil); len(again) > 0 && tt.came != "" {
			t.Errorf("%s: it fires in the next step, too", tt.why)
		}
	}
}

// Answers of the server count whatever became of the request in the end.
func TestRequests(t *testing.T) {
	throttled := Signature{Name: "throttled", Detect: Detector{All: []Clause{{Request: &RequestPattern{Code: Codes{429}, Error: "priority level"}}}}}
	refused := Signature{Name: "refused", Detect: Detector{All: []Clause{{Request: &RequestPattern{Code: Codes{403, 500}}}}}}
	silent := Signature{Name: "silent", Detect: Detector{All: []Clause{{Request: &RequestPattern{Code: Codes{0}, Error: "refused"}}}}}
	for _, tt := range []struct {
		why   string
		slot  record.Slot
		want  string
		first record.Micros
	}{
		{"success", record.Slot{Code: 201, Outcome: record.SlotCreated}, "", 0},
		{"success after a 429", record.Slot{Code: 201, Outcome: record.SlotCreated, Throttled: 3, ThrottledAt: 40, Replied: 90, TroubleCode: 429, Trouble: "Too many requests (priority level a)"}, "throttled 1", 40},
		{"a 429 of somebody else", record.Slot{Code: 201, Outcome: record.SlotCreated, Throttled: 1, TroubleCode: 429, Trouble: "Too many requests"}, "", 0},
		{"an older record of a 429", record.Slot{Code: 201, Outcome: record.SlotCreated, Throttled: 1, Sent: 7}, "", 0},
		{"success after the server's own trouble", record.Slot{Code: 201, Outcome: record.SlotCreated, Replied: 90, TroubleCode: 500, Trouble: "etcdserver"}, "refused 1", 90},
		{"refused", record.Slot{Code: 403, Outcome: record.SlotFailed, Replied: 90, Error: "exceeded quota"}, "refused 1", 90},
		{"refused after a trouble of the same kind: one request", record.Slot{Code: 500, Outcome: record.SlotFailed, Replied: 90, TroubleCode: 500, Trouble: "x", Error: "y"}, "refused 1", 90},
		{"no answer", record.Slot{Outcome: record.SlotUnknown, Replied: 90, Error: "connection refused"}, "silent 1", 90},
		{"dropped: it was never sent", record.Slot{Outcome: record.SlotDropped}, "", 0},
	} {
		m := matcherOf(t, throttled, refused, silent)
		m.Request(&tt.slot)
		got, first := "", record.Micros(0)
		for _, h := range m.End(100, nil) {
			got += fmt.Sprintf("%s %d", h.Signature.Name, h.Count)
			first = h.First
		}
		if got != tt.want || first != tt.first {
			t.Errorf("%s: %q at %d, want %q at %d", tt.why, got, first, tt.want, tt.first)
		}
	}
}

func TestWhatAHitTells(t *testing.T) {
	s := Signature{Name: "x", Evidence: "pods were\n  not ready", Detect: Detector{All: []Clause{
		{Event: &EventPattern{Reason: Words{"Unhealthy"}}}, {Log: &LogPattern{Message: "i/o timeout"}}, {Condition: &ConditionPattern{Figure: FigurePending, Above: above(10)}},
	}}}
	m := matcherOf(t, s)
	for i := range 100 {
		m.Event(record.Micros(100-i), eventOf(fmt.Sprintf("ns/pod-%d", i), "Unhealthy", "no "+strings.Repeat("é", 500)))
	}
	m.Log(200, &record.Log{Object: "ns/pod-7", Lines: []string{"fine", "dial tcp 10.0.0.1:5432: i/o timeout"}})
	hits := m.End(300, map[string]float64{FigurePending: 12, FigureInFlight: 99})
	if len(hits) != 1 {
		t.Fatalf("%d hits", len(hits))
	}
	h := hits[0]
	if h.Step != 1 || h.Count != 100 || h.First != 1 || len(h.Matches) != maxSamples || len(h.Figures) != 1 {
		t.Errorf("%+v", h)
	}
	for _, sample := range h.Matches {
		if len(sample.Text) > maxText+len(" ...") || !strings.Contains(sample.Text, "é") || strings.Contains(sample.Text, "\ufffd") {
			t.Errorf("a sample of %d bytes: %q", len(sample.Text), sample.Text)
		}
	}
	if text := h.Text(); !strings.HasPrefix(text, "pods were not ready: pending objects was 12; 100 times, first ns/pod-2: Unhealthy: no é") {
		t.Errorf("it tells %q", text)
	}
	// One that follows from conditions alone came when the step ended.
	m = matcherOf(t, Signature{Name: "x", Detect: Detector{All: []Clause{{Condition: &ConditionPattern{Figure: FigurePending, Above: above(10)}}}}})
	if hits := m.End(300, map[string]float64{FigurePending: 12}); len(hits) != 1 || hits[0].First != 300 || hits[0].Count != 0 || hits[0].Text() != "pending objects was 12" {
		t.Errorf("%+v", hits)
	}
}

// Which rules an event matches is found by its reason and remembered by its
// shape, and is the same as by trying every expression on it.
func TestMatchingAgreesWithASlowTwin(t *testing.T) {
	list := builtinSignatures(t)
	rng := rand.New(rand.NewPCG(21, 22))
	var messages []Example
	for _, s := range list {
		for _, e := range s.Examples {
			if e.Reason != "" {
				messages = append(messages, e)
			}
		}
	}
	m := matcherOf(t, list...)
	want := make(map[string]int)
	for range 3000 {
		e := messages[rng.IntN(len(messages))]
		object := fmt.Sprintf("ns-%d/pod-%d", rng.IntN(3), rng.IntN(5000))
		_, name, _ := strings.Cut(object, "/")
		message := strings.ReplaceAll(e.Message, "web", name)
		if rng.IntN(4) == 0 {
			message += fmt.Sprintf(" (%016x)", rng.Uint64())
		}
		if rng.IntN(10) == 0 {
			message = message[:rng.IntN(len(message)+1)]
		}
		shape := Shape(message, object)
		for _, s := range list {
			for _, clauses := range [][]Clause{s.Detect.All, s.Detect.Any, s.Detect.None} {
				for i, c := range clauses {
					key := fmt.Sprintf("%s %p %d", s.Name, clauses, i)
					switch p := c.Event; {
					case e.State && c.State != nil && (len(c.State.Reason) == 0 || slices.Contains(c.State.Reason, e.Reason)) && regexp.MustCompile(c.State.Message).MatchString(shape):
						want[key]++
					case !e.State && p != nil && (len(p.Reason) == 0 || slices.Contains(p.Reason, e.Reason)) && (p.About == "" || p.About == orPod(e.About)) && p.Source == "" && regexp.MustCompile(p.Message).MatchString(shape):
						want[key]++
					}
				}
			}
		}
		if e.State {
			m.State(1, &record.State{Object: object, Reason: e.Reason, Message: message}, "")
		} else {
			m.Event(1, &record.TargetEvent{Object: object, About: orPod(e.About), Reason: e.Reason, Message: message})
		}
	}
	n, total := 0, 0
	for _, s := range list {
		for _, clauses := range [][]Clause{s.Detect.All, s.Detect.Any, s.Detect.None} {
			for i := range clauses {
				if key := fmt.Sprintf("%s %p %d", s.Name, clauses, i); m.seen[n].count != want[key] {
					t.Errorf("clause %d of %s has matched %d, want %d", i, s.Name, m.seen[n].count, want[key])
				}
				total += m.seen[n].count
				n++
			}
		}
	}
	if n != len(m.rules) || total < 2000 || len(m.shapes) > maxShapes {
		t.Errorf("%d rules of %d, %d matches, %d shapes", n, len(m.rules), total, len(m.shapes))
	}
}

func orPod(about string) string {
	if about == "" {
		return "Pod"
	}
	return about
}

// What every match of an expression holds is looked for first.
func TestLiteralOf(t *testing.T) {
	for expression, want := range map[string]string{
		"Too many pods":                  "Too many pods",
		`^0/\d+ nodes: \d+ Too many`:     " Too many",
		"(?i)too many":                   "",
		"a|b":                            "",
		"(abc)+d":                        "abc",
		"x*":                             "",
		"dial tcp [^ ]+: i/o timeout":    ": i/o timeout",
		`failed calling webhook .*(a|b)`: "failed calling webhook ",
		"(":                              "",
	} {
		if got := literalOf(expression); got != want {
			t.Errorf("%q holds %q, want %q", expression, got, want)
		}
	}
}

func FuzzLiteralOf(f *testing.F) {
	f.Add("a(b|c)+d?e{2}", "abde")
	f.Add(`(?i)x\Qa.b\E[0-9]+`, "Xa.b7")
	f.Fuzz(func(t *testing.T, expression, text string) {
		e, err := regexp.Compile(expression)
		if err != nil {
			return
		}
		if literal := literalOf(expression); e.MatchString(text) && !strings.Contains(text, literal) {
			t.Errorf("%q matches %q, which does not hold %q", expression, text, literal)
		}
	})
}

func TestShape(t *testing.T) {
	for _, tt := range []struct{ why, message, object, want string }{
		{"names", "pod web-1 of ns-3", "ns-3/web-1", "pod NAME of NAMESPACE"},
		{"a name without a namespace", "start volume volume-7: not volume-71", "volume-7", "start volume NAME: not volume-71"},
		{"a namespace that is a word", "exceeded quota: few, by web-1", "quota/web-1", "exceeded quota: few, by NAME"},
		{"a UID", "pod web_ns(5b6c7e22-3c63-4a53-9d4b-0a3b3f9be6bb) failed", "ns/web", "pod NAME_NAMESPACE(*) failed"},
		{"a sandbox", `sandbox "42bf93c90d996c112f711d9bddbd40fbb03e0a5a8eeccee5f38a98c4a494ca90": no`, "", `sandbox "*": no`},
		{"numbers that tell something stay", "HTTP probe failed with statuscode: 503", "", "HTTP probe failed with statuscode: 503"},
		{"addresses stay", "dial tcp 172.30.225.6:5432: i/o timeout", "", "dial tcp 172.30.225.6:5432: i/o timeout"},
		{"a word of letters that could be digits", "deadbeefdeadbeefdead facade", "", "deadbeefdeadbeefdead facade"},
		{"the scheduler's reason that binds comes first", "0/20 nodes are available: 3 node(s) had untolerated taint(s), 17 Too many pods. preemption: 0/20 nodes", "", "0/20 nodes are available: 17 Too many pods, 3 node(s) had untolerated taint(s)."},
		{"a reason of the pod stays", "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: no", "", "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: no"},
	} {
		if got := Shape(tt.message, tt.object); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}

// A million events of few shapes.
func BenchmarkEvents(b *testing.B) {
	m := matcherOf(b, builtinSignatures(b)...)
	messages := []string{
		"0/20 nodes are available: 20 Too many pods. no new claims to deallocate, preemption: 0/20 nodes are available: 20 No preemption victims found for incoming pod.",
		`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "%064x": plugin type="bridge" failed (add): no`,
		"Readiness probe failed: HTTP probe failed with statuscode: 503",
	}
	reasons := []string{"FailedScheduling", "FailedCreatePodSandBox", "Unhealthy"}
	events := make([]*record.TargetEvent, 3000)
	for i := range events {
		message := messages[i%3]
		if strings.Contains(message, "%") {
			message = fmt.Sprintf(message, i)
		}
		events[i] = eventOf(fmt.Sprintf("ns/pod-%d", i), reasons[i%3], message)
	}
	b.ReportAllocs()
	for i := range b.N {
		m.Event(record.Micros(i), events[i%len(events)])
	}
}
