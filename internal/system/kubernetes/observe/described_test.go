package observe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
)

// machines is a description like that of virtual machines: the machine, what
// runs it, and its disk, whose maker hands no labels on.
func machines() *described.Objects {
	return &described.Objects{
		Noun: record.Noun{One: "machine", Many: "machines"},
		Resources: []described.Resource{
			{Name: "machine", Kind: "Machine"}, {Name: "instance", Kind: "Instance"},
			{Name: "disk", Kind: "Disk", Of: "owner", Unlabelled: true}, {Name: "pod", Kind: "Pod", Of: "metadata.labels.of"},
		},
		Milestones: []described.ObjectMilestone{
			{Name: "Cloned", When: described.When{Resource: "disk", Path: "status.phase", Values: []string{"Succeeded"}}},
			{Name: "Scheduled", When: described.When{Resource: "instance", Path: "status.phase", Values: []string{"Scheduled", "Running"}}, Place: "status.nodeName",
				Stamp: `status.times.#(phase=="Scheduled").at`},
			{Name: "Running", When: described.When{Resource: "instance", Path: "status.phase", Values: []string{"Running"}}},
			{Name: "Agent", When: described.When{Resource: "instance", Condition: "AgentConnected"}},
			{Name: "SSHAnswered", When: described.When{Resource: "instance", Path: "status.address"}, Probe: &described.Probe{Addresses: []string{"metadata.annotations.at", "status.address"}, Port: 22, Banner: "SSH-"}},
		},
		There: "Running",
		Troubles: []described.ObjectTrouble{
			{When: described.When{Resource: "pod", Condition: "PodScheduled", Values: []string{"False"}}, Unplaced: true},
			{When: described.When{Resource: "disk", Path: "status.phase", Values: []string{"Failed"}}, Final: true, Message: "status.message", Class: "disks", What: "disks were not made"},
			{When: described.When{Path: "status.printable", Values: []string{"Crash"}}, Reason: "status.why"},
		},
	}
}

// describedTrial feeds a Described, one message each microsecond.
type describedTrial struct {
	*trial
	t         *testing.T
	described *Described
	probes    []Probe
}

func newDescribedTrial(t *testing.T, spec *described.Objects) *describedTrial {
	tr := &describedTrial{trial: &trial{}, t: t}
	tr.described = NewDescribed(spec, Created, func(at record.Micros, body record.Body) {
		tr.events = append(tr.events, record.Event{T: at, Body: body})
	})
	return tr
}

// tell gives a message of a resource: metadata beyond the namespace, and a status.
func (tr *describedTrial) tell(change Change, resource int, metadata, status string) {
	tr.t.Helper()
	tr.now++
	raw := fmt.Sprintf(`{"metadata":{"namespace":"ns",%s},"status":{%s}}`, metadata, status)
	probes, err := tr.described.Apply(tr.now, change, resource, []byte(raw), func(namespace string) bool { return namespace == "ns" })
	if err != nil {
		tr.t.Error(err)
	}
	tr.probes = append(tr.probes, probes...)
}

const (
	machineA  = `"name":"a","uid":"m1","creationTimestamp":"1970-01-01T00:00:07Z"`
	instanceA = `"name":"a","uid":"i1"`
	diskA     = `"name":"disk-of-a","uid":"d1","ownerReferences":[{"name":"a"}]`
	podA      = `"name":"launcher","uid":"p1","labels":{"of":"a"}`
	running   = `"phase":"Running","nodeName":"n1","times":[{"phase":"Scheduling","at":"1970-01-01T00:00:08Z"},{"phase":"Scheduled","at":"1970-01-01T00:00:09Z"}]`
)

func TestDescribed(t *testing.T) {
	tests := []struct {
		why  string
		do   func(tr *describedTrial)
		want string
	}{
		{"each resource tells its milestones, with the server's times where a path has them", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, "")
			tr.tell(Changed, 2, diskA, `"phase":"Succeeded"`)
			tr.tell(Changed, 1, instanceA, running)
		}, "1 a Created at 7\n2 a Cloned\n3 a Scheduled on n1 at 9\n3 a Running"},
		{"a resource's news may come before the object's own", func(tr *describedTrial) {
			tr.tell(Changed, 1, instanceA, `"phase":"Scheduled","nodeName":"n1"`)
			tr.tell(Changed, 0, machineA, "")
		}, "1 a Scheduled on n1\n2 a Created at 7"},
		{"a milestone is told once", func(tr *describedTrial) {
			for range 3 {
				tr.tell(Changed, 2, diskA, `"phase":"Succeeded"`)
			}
		}, "1 a Cloned"},
		{"what follows the milestone that counts is told too", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, "")
			tr.tell(Changed, 1, instanceA, running+`,"conditions":[{"type":"Ready","status":"True"},{"type":"AgentConnected","status":"True"}]`)
		}, "1 a Created at 7\n2 a Scheduled on n1 at 9\n2 a Running\n2 a Agent"},
		{"a condition that is not True is none", func(tr *describedTrial) {
			tr.tell(Changed, 1, instanceA, `"conditions":[{"type":"AgentConnected","status":"False"}]`)
		}, ""},
		{"an object that stops running is no longer there, and comes back", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, "")
			tr.tell(Changed, 1, instanceA, running)
			tr.tell(Gone, 1, instanceA, running)
			tr.tell(Changed, 1, `"name":"a","uid":"i2"`, running)
		}, "1 a Created at 7\n2 a Scheduled on n1 at 9\n2 a Running\n3 a lost Running NotRunning\n4 a regained Running no trouble"},
		{"no place is one reason for all kinds", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, "")
			tr.tell(Changed, 3, podA, `"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no room"}]`)
			tr.tell(Changed, 3, podA, `"conditions":[{"type":"PodScheduled","status":"True"}]`)
		}, "1 a Created at 7\n2 a Unschedulable (no room)\n3 a no trouble"},
		{"a final trouble is one for good", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, "")
			tr.tell(Changed, 2, diskA, `"phase":"Failed","message":"no space"`)
		}, "1 a Created at 7\n2 a Failed (no space) failed of disks"},
		{"a trouble names its reason by a path, and goes with its resource", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, `"printable":"Crash","why":"OOM"`)
			tr.tell(Changed, 0, machineA, `"printable":"Starting"`)
		}, "1 a Created at 7\n1 a OOM\n2 a no trouble"},
		{"without a reason there it is the value", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, `"printable":"Crash"`)
		}, "1 a Created at 7\n1 a Crash"},
		{"what no label tells apart is told apart by its namespace", func(tr *describedTrial) {
			tr.now++
			_, _ = tr.described.Apply(tr.now, Changed, 2, []byte(`{"metadata":{"namespace":"other","name":"x","ownerReferences":[{"name":"a"}]},"status":{"phase":"Succeeded"}}`), func(string) bool { return false })
		}, ""},
		{"what is nobody's is passed over", func(tr *describedTrial) { tr.tell(Changed, 3, `"name":"launcher","uid":"p1"`, "") }, ""},
		{"an object that is gone ends, and one of the same name is another", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, "")
			tr.tell(Changed, 1, instanceA, running)
			tr.tell(Gone, 0, machineA, "")
			tr.tell(Changed, 0, `"name":"a","uid":"m2"`, "")
		}, "1 a Created at 7\n2 a Scheduled on n1 at 9\n2 a Running\n3 a Deleted\n4 a Created"},
		{"one whose end was missed has ended once its name is another's", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, "")
			tr.tell(Changed, 2, diskA, `"phase":"Succeeded"`)
			tr.tell(Changed, 0, `"name":"a","uid":"m2"`, "")
		}, "1 a Created at 7\n2 a Cloned\n3 a Deleted late\n3 a Created"},
		{"a list that lacks an object, or what tells of it, tells of its end", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, "")
			tr.tell(Changed, 1, instanceA, running)
			tr.now++
			tr.described.Missing(tr.now, 1, map[string]bool{"i1": true})
			tr.now++
			tr.described.Missing(tr.now, 0, map[string]bool{"m1": true})
		}, "1 a Created at 7\n2 a Scheduled on n1 at 9\n2 a Running\n3 a lost Running NotRunning\n4 a Deleted late"},
		{"why one is not there is said at the end", func(tr *describedTrial) {
			tr.tell(Changed, 0, machineA, "")
			tr.tell(Changed, 2, diskA, `"phase":"Succeeded"`)
			tr.described.Unfinished(9)
		}, "1 a Created at 7\n2 a Cloned\n9 a NotScheduled (no reason given; the last milestone was Cloned)"},
	}
	for _, tt := range tests {
		tr := newDescribedTrial(t, machines())
		if tt.do(tr); tr.text() != tt.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", tt.why, tr.text(), tt.want)
		}
	}
}

// A server is called for once its address is known, and its answer is a
// milestone of the life that asked for it alone.
func TestProbes(t *testing.T) {
	tr := newDescribedTrial(t, machines())
	tr.tell(Changed, 0, machineA, "")
	tr.tell(Changed, 1, instanceA, `"address":"10.0.0.1"`)
	tr.tell(Changed, 1, instanceA, `"address":"10.0.0.1"`)
	if len(tr.probes) != 1 || tr.probes[0].Address != "10.0.0.1:22" || !tr.described.Awaits(tr.probes[0]) {
		t.Fatalf("%+v", tr.probes)
	}
	tr.described.Answered(8, tr.probes[0])
	tr.described.Answered(9, tr.probes[0])
	if want := "1 a Created at 7\n8 a SSHAnswered"; tr.text() != want {
		t.Errorf("got\n%s\nwant\n%s", tr.text(), want)
	}
	tr.tell(Gone, 1, instanceA, "")
	if tr.described.Awaits(tr.probes[0]) {
		t.Error("the answer of what is gone is awaited")
	}
}

// A thing of the set-up is ready once its server has answered, where it has one.
func TestProbesOfSetUp(t *testing.T) {
	spec := machines()
	spec.SetUp = []described.SetUp{{Job: "machines", Until: described.When{Resource: "instance", Path: "status.phase", Values: []string{"Running"}},
		Probe: &described.Probe{Addresses: []string{"status.address"}, Port: 22, FIO: "cat", Where: "metadata.labels.io"}}}
	tr := newDescribedTrial(t, spec)
	tr.tell(Changed, 1, instanceA, `"phase":"Running","address":""`)
	if tr.described.SetUp(0) != 1 || len(tr.probes) != 0 {
		t.Errorf("one without a server: %d are ready, %+v called", tr.described.SetUp(0), tr.probes)
	}
	const other = `"name":"b","uid":"ub","labels":{"io":"100"}`
	tr.tell(Changed, 1, other, `"phase":"Running"`)
	tr.tell(Changed, 1, other, `"phase":"Running","address":"10.0.0.2"`)
	tr.tell(Changed, 1, other, `"phase":"Running","address":"10.0.0.2"`)
	calls := slices.DeleteFunc(slices.Clone(tr.probes), func(p Probe) bool { return p.Milestone >= 0 })
	if tr.described.SetUp(0) != 1 || len(calls) != 1 || calls[0].Server != "ns/b" || calls[0].Address != "10.0.0.2:22" || !tr.described.Awaits(calls[0]) {
		t.Fatalf("one with a server: %d are ready, %+v called", tr.described.SetUp(0), calls)
	}
	tr.described.Answered(9, calls[0])
	if tr.described.SetUp(0) != 2 || tr.described.Awaits(calls[0]) {
		t.Errorf("once it has answered, %d are ready", tr.described.SetUp(0))
	}
}

// Why a machine did not answer is reported at the end of the step, once it is known,
// and not for one that has answered.
func TestUnanswered(t *testing.T) {
	for _, answers := range []bool{false, true} {
		spec := machines()
		spec.There = "SSHAnswered"
		tr := newDescribedTrial(t, spec)
		tr.tell(Changed, 0, machineA, "")
		tr.tell(Changed, 1, instanceA, `"address":"10.0.0.1"`)
		tr.described.Unheard(tr.probes[0], "connection refused")
		if answers {
			tr.described.Answered(8, tr.probes[0])
		}
		before := len(tr.events)
		tr.described.Unanswered(9)
		told := tr.events[before:]
		state := &record.State{}
		if len(told) == 1 {
			state, _ = told[0].Body.(*record.State)
		}
		if answers && len(told) > 0 || !answers && (len(told) != 1 || state == nil || state.Reason != "NoAnswer" || state.Message != "connection refused") {
			t.Errorf("answers %v: told %+v %+v", answers, told, state)
		}
	}
}

// What is set up is silent until it begins; then only a new life counts.
func TestBegin(t *testing.T) {
	spec := machines()
	spec.SetUp = []described.SetUp{{Until: described.When{Resource: "instance", Path: "status.phase", Values: []string{"Running"}}}}
	spec.Begin = &described.Begin{Ask: described.Ask{Put: "restart"}}
	tr := newDescribedTrial(t, spec)
	tr.tell(Changed, 0, machineA, "")
	tr.tell(Changed, 1, instanceA, running)
	if tr.text() != "" || tr.described.SetUp(0) != 1 {
		t.Errorf("set up %d, told\n%s", tr.described.SetUp(0), tr.text())
	}
	tr.described.Begin(3, "ns/a")
	tr.tell(Changed, 1, instanceA, running)                           // the old life
	tr.tell(Gone, 1, instanceA, running)                              // ends
	tr.tell(Changed, 1, `"name":"a","uid":"i2"`, `"phase":"Pending"`) // and the new one begins
	tr.tell(Changed, 1, `"name":"a","uid":"i2"`, running)
	if want := "6 a Scheduled on n1 at 9\n6 a Running"; tr.text() != want {
		t.Errorf("got\n%s\nwant\n%s", tr.text(), want)
	}
	if c := tr.described.Counts(); c.Ready != 1 || c.Seen != 1 {
		t.Errorf("%+v", c)
	}
}

// No message makes it fail, and reports concern objects that existed.
func FuzzDescribed(f *testing.F) {
	f.Add(0, []byte(`{"metadata":{"namespace":"ns",`+machineA+`},"status":{}}`))
	f.Add(1, []byte(`{"metadata":{"namespace":"ns",`+instanceA+`},"status":{`+running+`,"address":"1"}}`))
	f.Add(2, []byte(`{"metadata":{"namespace":"ns",`+diskA+`},"status":{"phase":"Failed"}}`))
	f.Add(3, []byte(`{"status":{"conditions":[{"type":3},{}]}}`))
	f.Fuzz(func(t *testing.T, resource int, raw []byte) {
		d := NewDescribed(machines(), Created, func(record.Micros, record.Body) {})
		at := ((resource % 4) + 4) % 4
		for i, change := range []Change{Changed, Listed, Gone, Changed} {
			_, _ = d.Apply(record.Micros(i), change, at, raw, func(string) bool { return true })
		}
		if c := d.Counts(); c.Ready < 0 || c.Failed < 0 || c.Unschedulable < 0 || c.Ready+c.Failed+c.Unschedulable > d.Followed() {
			t.Errorf("%+v of %d", c, d.Followed())
		}
	})
}

// What is read of a message is what decoding all of it gives.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"metadata":{"namespace":"ns",` + machineA + `,"deletionTimestamp":null},"status":{` + running + `}}`))
	f.Add([]byte(`{"kind":"A","metadata":{"managedFields":[{"f:status":{".":{},"k:{\"uid\":\"x\"}":{}}}],` + diskA + `},"status":{"phase":"\u003ca\"}"}}`))
	f.Add([]byte(`{"status":[{"phase":"a"}],"metadata":"name"}`))
	var m message
	f.Fuzz(func(t *testing.T, raw []byte) {
		var whole map[string]any
		if json.Unmarshal(raw, &whole) != nil || whole == nil {
			return
		}
		raw, err := json.Marshal(whole) // as an API writes it: no key twice
		if err != nil {
			t.Fatal(err)
		}
		at := func(key, within string) any {
			part, _ := whole[key].(map[string]any)
			return part[within]
		}
		m.read(raw)
		for got, want := range map[*string]any{&m.name: at("metadata", "name"), &m.namespace: at("metadata", "namespace"), &m.uid: at("metadata", "uid")} {
			if text, _ := want.(string); *got != text {
				t.Errorf("got %q, want %q", *got, text)
			}
		}
		if m.deleting != (at("metadata", "deletionTimestamp") != nil) {
			t.Errorf("deleting is %v", m.deleting)
		}
		want, is := at("status", "phase").(string)
		if got := m.get("status.phase"); is != (got.Type == gjson.String) || got.Str != want {
			t.Errorf("phase is %v, want %q", got, want)
		}
		if phase, is := whole["phase"].(string); is && m.get("phase").String() != phase {
			t.Errorf("a field at the top is %v, want %q", m.get("phase"), phase)
		}
	})
}

func BenchmarkDescribed(b *testing.B) {
	// As large as a machine's instance is, most of it of no account.
	filler := strings.Repeat(`{"name":"x","value":"0123456789"},`, 400)
	raw := []byte(`{"metadata":{"namespace":"ns",` + instanceA + `},"spec":{"domain":[` + filler + `{}]},"status":{` + running + `}}`)
	d := NewDescribed(machines(), Created, func(record.Micros, record.Body) {})
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Apply(1, Changed, 1, raw, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// An object that is drained goes on with what it had, and a migration that has
// failed has not moved it.
func TestDescribedDrain(t *testing.T) {
	spec := &described.Objects{
		Resources: []described.Resource{{Name: "machine", Kind: "Machine"}, {Name: "instance", Kind: "Instance"}},
		Milestones: []described.ObjectMilestone{
			{Name: "Evacuating", When: described.When{Resource: "instance", Path: "status.evacuate"}},
			{Name: "Migrated", When: described.When{Resource: "instance", Path: "status.[move.completed,move.failed]", Values: []string{"[true]", "[true,false]"}}},
		},
		There: "Migrated",
		SetUp: []described.SetUp{{Job: "machines", Until: described.When{Resource: "instance", Path: "status.phase", Values: []string{"Running"}}}},
		Begin: &described.Begin{Drain: &described.Drain{Nodes: "a", Pods: "b"}},
	}
	tr := newDescribedTrial(t, spec)
	tr.tell(Changed, 0, machineA, "")
	tr.tell(Changed, 1, instanceA, running)
	if n := tr.described.SetUp(0); n != 1 || len(tr.events) > 0 {
		t.Fatalf("%d set up, told %v", n, tr.events)
	}
	tr.described.Begin(tr.now, "ns/a")
	tr.tell(Changed, 1, instanceA, `"evacuate":"n1"`)
	tr.tell(Changed, 1, instanceA, `"evacuate":"n1","move":{"completed":true,"failed":true}`)
	tr.tell(Changed, 1, instanceA, `"evacuate":"n1","move":{"start":"now"}`)
	tr.tell(Changed, 1, instanceA, `"move":{"completed":true}`)
	if got := tr.text(); got != "3 a Evacuating\n6 a Migrated" {
		t.Errorf("told\n%s", got)
	}
}

// What is asked once a milestone is reached opens those behind it; a resource
// that it renews counts from its next object on, and an object that was to go
// stays counted as there.
func TestThen(t *testing.T) {
	spec := &described.Objects{
		Resources: []described.Resource{{Name: "machine", Kind: "Machine"}, {Name: "instance", Kind: "Instance"}},
		Milestones: []described.ObjectMilestone{
			{Name: "Running", When: described.When{Resource: "instance", Path: "status.phase", Values: []string{"Running"}}},
			{Name: "Restarted", When: described.When{Resource: "instance", Path: "status.phase", Values: []string{"Running"}}},
			{Name: "Removed", Gone: true},
		},
		There: "Removed",
		Then:  []described.Then{{After: "Running", Renews: "instance"}, {After: "Restarted", Delete: true}},
	}
	tr := newDescribedTrial(t, spec)
	var asked []string
	tr.described.Ask = func(object string, then *described.Then) { asked = append(asked, object+" "+then.After) }
	tr.tell(Changed, 0, machineA, "")
	tr.tell(Changed, 1, instanceA, running)
	tr.tell(Changed, 1, instanceA, running) // the old life
	tr.tell(Gone, 1, instanceA, running)
	tr.tell(Changed, 1, `"name":"a","uid":"i2"`, running)
	tr.tell(Gone, 1, `"name":"a","uid":"i2"`, running)
	tr.tell(Gone, 0, machineA, "")
	tr.tell(Changed, 1, `"name":"a","uid":"i2"`, `"phase":"Failed"`) // late news
	if want := "1 a Created at 7\n2 a Running\n5 a Restarted\n7 a Removed"; tr.text() != want {
		t.Errorf("got\n%s\nwant\n%s", tr.text(), want)
	}
	if strings.Join(asked, ", ") != "ns/a Running, ns/a Restarted" {
		t.Errorf("asked %v", asked)
	}
	if c := tr.described.Counts(); c.Ready != 1 || tr.described.Followed() != 0 || len(tr.described.Names()) != 0 {
		t.Errorf("%+v, followed %d", c, tr.described.Followed())
	}

	tr = newDescribedTrial(t, spec)
	tr.described.Ask = func(string, *described.Then) {}
	tr.tell(Changed, 0, machineA, "")
	tr.tell(Changed, 1, instanceA, running)
	tr.described.Refused(3, "ns/a", "RefusedAfterRunning", "no room")
	tr.tell(Changed, 0, machineA, "") // it stays so
	if want := "1 a Created at 7\n2 a Running\n3 a RefusedAfterRunning (no room) failed"; tr.text() != want || tr.described.Counts().Failed != 1 {
		t.Errorf("got\n%s\nwant\n%s", tr.text(), want)
	}
}

// A place tells of all that were there, wherever they go, and a milestone is not
// looked for before another that it comes after.
func TestPlaces(t *testing.T) {
	spec := &described.Objects{
		Resources: []described.Resource{{Name: "machine", Kind: "Machine"}, {Name: "node", Kind: "Node", Of: "place", Unlabelled: true}},
		Milestones: []described.ObjectMilestone{
			{Name: "Down", When: described.When{Resource: "node", Path: "status.ready", Values: []string{"false"}}},
			{Name: "Up", After: "Down", When: described.When{Resource: "node", Path: "status.ready", Values: []string{"true"}}},
		},
		There: "Up",
	}
	var told []string
	d := NewDescribed(spec, Created, func(_ record.Micros, body record.Body) {
		if o, ok := body.(*record.Object); ok {
			told = append(told, o.Object+" "+o.Milestone)
		}
	})
	tell := func(resource int, text string) {
		t.Helper()
		if _, err := d.Apply(1, Changed, resource, []byte(text), func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		tell(0, `{"metadata":{"namespace":"ns","name":"`+name+`","uid":"`+name+`"}}`)
	}
	d.Live("ns/a", "n1")
	d.Live("ns/b", "n1")
	d.Live("ns/c", "n2")
	for _, ready := range []string{"true", "false", "true"} {
		tell(1, `{"metadata":{"name":"n1","uid":"n"},"status":{"ready":`+ready+`}}`)
	}
	if got := strings.Join(told, ", "); got != "ns/a Created, ns/b Created, ns/c Created, ns/a Down, ns/b Down, ns/a Up, ns/b Up" {
		t.Error(got)
	}
	if d.Counts().Ready != 2 {
		t.Errorf("%+v", d.Counts())
	}
}

// A state's duration is reported when it ends, and a text when it changes. What concerns
// all objects is a milestone of each.
func TestBesides(t *testing.T) {
	spec := &described.Objects{
		Resources:  []described.Resource{{Name: "machine", Kind: "Machine"}, {Name: "version", Kind: "Version", Of: "all", Unlabelled: true, Says: "status.text"}},
		Milestones: []described.ObjectMilestone{{Name: "Upgraded", When: described.When{Resource: "version", Path: "status.state", Values: []string{"done"}}}},
		There:      "Upgraded",
		Held:       []described.Held{{Name: "upgrade", When: described.When{Resource: "version", Path: "status.state", Values: []string{"going"}}}},
	}
	var told []string
	tell := func(text string, args ...any) { told = append(told, fmt.Sprintf(text, args...)) }
	d := NewDescribed(spec, Created, func(at record.Micros, body record.Body) {
		if o, ok := body.(*record.Object); ok {
			tell("%d %s %s", at, o.Object, o.Milestone)
		}
	})
	d.Says = func(kind, name, text string) { tell("%s %s: %s", kind, name, text) }
	d.Held = func(what *described.Held, name string, since, until record.Micros) {
		tell("%s of %s %d to %d", what.Name, name, since, until)
	}
	for i, m := range []struct {
		resource int
		text     string
	}{
		{0, `{"metadata":{"namespace":"ns","name":"a","uid":"a"}}`},
		{1, `{"metadata":{"name":"v","uid":"v"},"status":{"state":"idle","text":"one"}}`},
		{1, `{"metadata":{"name":"v","uid":"v"},"status":{"state":"going","text":"two"}}`},
		{1, `{"metadata":{"name":"v","uid":"v"},"status":{"state":"going","text":"two"}}`},
		{1, `{"metadata":{"name":"v","uid":"v"},"status":{"state":"done","text":"two"}}`},
	} {
		if _, err := d.Apply(record.Micros(i), Changed, m.resource, []byte(m.text), func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	want := "0 ns/a Created, Version v: one, upgrade of v 0 to 0, Version v: two, upgrade of v 2 to 4, 4 ns/a Upgraded"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A claim whose size is changed is on its way from then on, until it has the size. Another one is not on record.
func TestChanges(t *testing.T) {
	spec := described.Measured("pvcLatency")[1].(*described.Objects)
	var got []string
	d := NewDescribed(spec, Created, func(at record.Micros, body record.Body) {
		if o, ok := body.(*record.Object); ok {
			got = append(got, fmt.Sprintf("%d %s %s %s", at, o.Object, o.Milestone, strings.Join(o.Labels, ",")))
		}
	})
	d.Asked = func(name string) bool { return name != "ns/stranger" }
	for i, m := range []struct{ why, name, asked, has string }{
		{"it is made", "a", "1Gi", ""},
		{"it is bound, with the size that it wants", "a", "1Gi", "1Gi"},
		{"one that keeps its size", "b", "1Gi", "1Gi"},
		{"its size is changed", "a", "2Gi", "1Gi"},
		{"it has the size", "a", "2Gi", "2Gi"},
		{"it is changed again, which is not measured", "a", "3Gi", "2Gi"},
		{"a claim of somebody else", "stranger", "1Gi", ""},
		{"whose size is changed", "stranger", "2Gi", ""},
	} {
		raw := fmt.Sprintf(`{"kind":"PersistentVolumeClaim","metadata":{"name":%q,"namespace":"ns","uid":%[1]q},"spec":{"resources":{"requests":{"storage":%q}}},"status":{"phase":"Bound","capacity":{"storage":%q}}}`, m.name, m.asked, m.has)
		if _, err := d.Apply(record.Micros(i), Changed, 0, []byte(raw), nil); err != nil {
			t.Fatalf("%s: %v", m.why, err)
		}
	}
	if want := []string{"3 ns/a PVCResizing 2Gi", "4 ns/a PVCResized "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A service is called once one of its endpoints is ready, whichever news comes first, at all of its addresses.
func TestServices(t *testing.T) {
	t.Parallel()
	const ready, waits = `"endpoints":[{"addresses":["10.0.0.9"],"conditions":{"ready":true}}]`, `"endpoints":[{"addresses":["10.0.0.9"],"conditions":{"ready":false}}]`
	for _, tt := range []struct{ why, spec, status, address, milestones string }{
		{"each address of the cluster and TCP port", `"type":"ClusterIP","clusterIPs":["10.1.0.1","fd00::1"],"ports":[{"port":80,"protocol":"TCP"},{"port":53,"protocol":"UDP"},{"port":81}]`, `{}`, "10.1.0.1:80 10.1.0.1:81 [fd00::1]:80 [fd00::1]:81", "Created ServiceEndpoints ServiceReady"},
		{"a port of each node", `"type":"NodePort","clusterIPs":["10.1.0.1"],"ports":[{"port":80,"nodePort":30080}]`, `{}`, ":30080", "Created ServiceEndpoints ServiceReady"},
		{"a load balancer's address or name", `"type":"LoadBalancer","ports":[{"port":80}]`, `{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"hostname":"b.example"}]}}`, "192.0.2.1:80 b.example:80", "Created ServiceBalanced ServiceIPAssigned ServiceEndpoints ServiceReady"},
		{"a load balancer that gives none", `"type":"LoadBalancer","clusterIPs":["10.1.0.1"],"ports":[{"port":80}]`, `{"loadBalancer":{}}`, "", "Created ServiceBalanced ServiceEndpoints"},
	} {
		for _, first := range []string{"service", "slice"} {
			spec := described.Measured("serviceLatency")[0].(*described.Objects)
			var events []string
			d := NewDescribed(spec, Created, func(_ record.Micros, body record.Body) {
				if o, is := body.(*record.Object); is {
					events = append(events, o.Milestone)
				}
			})
			var probes []Probe
			tell := func(resource int, raw string) {
				t.Helper()
				more, err := d.Apply(record.Micros(len(events)+1), Changed, resource, []byte(raw), func(string) bool { return true })
				if err != nil {
					t.Error(err)
				}
				probes = append(probes, more...)
			}
			service := func() {
				tell(0, `{"metadata":{"namespace":"ns","name":"s","uid":"1"},"spec":{`+tt.spec+`},"status":`+tt.status+`}`)
			}
			slice := func(endpoints string) {
				tell(1, `{"metadata":{"namespace":"ns","name":"s-x","uid":"2","labels":{"kubernetes.io/service-name":"s"}},`+endpoints+`}`)
			}
			if first == "service" {
				service()
				slice(waits)
				if len(probes) > 0 {
					t.Errorf("%s: it is called before an endpoint is ready", tt.why)
				}
				slice(ready)
			} else {
				slice(ready)
				service()
			}
			slice(ready) // again
			for _, p := range probes {
				d.Answered(9, p)
			}
			got := ""
			for _, p := range probes {
				got += p.Address
			}
			slices.Sort(events)
			want := strings.Fields(tt.milestones)
			slices.Sort(want)
			if got != tt.address || !slices.Equal(events, want) {
				t.Errorf("%s, %s first: called at %q, %q", tt.why, first, got, events)
			}
		}
	}
}
