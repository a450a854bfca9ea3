package observe

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// with changes a message.
type with func(*Pod)

// pod is a message of the pod ns/a, as it is right after its creation.
func aPod(changes ...with) *Pod {
	m := &Pod{Name: "ns/a", UID: "1", Component: "pod", Phase: PhasePending}
	m.Slot = m.Name
	for _, change := range changes {
		change(m)
	}
	return m
}

func named(name, uid string) with {
	return func(m *Pod) { m.Name, m.Slot, m.UID = name, name, uid }
}

func fills(slot string) with { return func(m *Pod) { m.Slot = slot } }

func on(node string) with {
	return func(m *Pod) {
		m.Node = node
		m.Conditions[CondScheduled] = Condition{Known: true, True: true}
	}
}

func is(conditions ...int) with {
	return func(m *Pod) {
		for _, i := range conditions {
			m.Conditions[i] = Condition{Known: true, True: true}
		}
	}
}

func isNot(condition int, reason, message string) with {
	return func(m *Pod) { m.Conditions[condition] = Condition{Known: true, Reason: reason, Message: message} }
}

func troubled(reason, message string) with {
	return func(m *Pod) { m.Trouble = Reason{reason, message} }
}

func in(phase Phase) with      { return func(m *Pod) { m.Phase = phase } }
func restarted(times int) with { return func(m *Pod) { m.Restarts = times } }
func started(m *Pod)           { m.Phase, m.Started = PhaseRunning, true }
func deleting(m *Pod)          { m.Deleting = true }

// up is a pod that is Ready on n1.
func up(m *Pod) {
	on("n1")(m)
	is(CondReadyToStart, CondInitialized, CondContainersReady, CondReady)(m)
	started(m)
}

// trial feeds a Tracker, one message each microsecond, and keeps what it emits.
type trial struct {
	*Tracker
	now    record.Micros
	events []record.Event
	have   map[string]bool // of the last list
}

func newTrial() *trial {
	tr := &trial{have: make(map[string]bool)}
	tr.Tracker = NewTracker(PodCourse(), func(at record.Micros, body record.Body) {
		tr.events = append(tr.events, record.Event{T: at, Body: body})
	})
	return tr
}

func (tr *trial) news(change Change, m *Pod) {
	tr.now++
	tr.apply(change, m)
}

func (tr *trial) apply(change Change, m *Pod) {
	tr.Apply(tr.now, change, m.News())
	if change != Gone {
		tr.have[m.Name] = true
	}
}

// beginList begins a list, and endList says what it did not have.
func (tr *trial) beginList() { tr.have = make(map[string]bool) }

func (tr *trial) endList() {
	for name, o := range maps.Clone(tr.objects) {
		if !tr.have[name] {
			tr.Missing(tr.now, name, o.uid)
		}
	}
}

func (tr *trial) changed(changes ...with) { tr.news(Changed, aPod(changes...)) }
func (tr *trial) deleted(changes ...with) { tr.news(Gone, aPod(changes...)) }

// listed hands over a whole list, made after a gap.
func (tr *trial) listed(pods ...*Pod) {
	tr.beginList()
	for _, m := range pods {
		tr.news(Listed, m)
	}
	tr.now++
	tr.endList()
}

// text returns the emitted events, a line each.
func (tr *trial) text() string {
	var lines []string
	for _, e := range tr.events {
		var words []string
		add := func(text, format string) {
			if text != "" {
				words = append(words, fmt.Sprintf(format, text))
			}
		}
		switch b := e.Body.(type) {
		case *record.Object:
			words = append(words, fmt.Sprintf("%d %s %s", e.T, strings.TrimPrefix(b.Object, "ns/"), b.Milestone))
			add(b.Place, "on %s")
			add(b.Slot, "for %s")
			if b.Stamp != 0 {
				words = append(words, fmt.Sprintf("at %d", b.Stamp))
			}
			if b.Late {
				words = append(words, "late")
			}
		case *record.State:
			words = append(words, fmt.Sprintf("%d %s", e.T, strings.TrimPrefix(b.Object, "ns/")))
			add(b.Lost, "lost %s")
			add(b.Regained, "regained %s")
			if b.Reason == "" {
				words = append(words, "no trouble")
			}
			add(b.Reason, "%s")
			add(b.Message, "(%s)")
			add(b.Slot, "for %s")
			if b.Failed {
				words = append(words, "failed")
			}
			add(b.Class, "of %s")
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return strings.Join(lines, "\n")
}

func TestTracker(t *testing.T) {
	const noPlace = "0/2 nodes are available: 2 Too many pods."
	for _, tt := range []struct {
		why    string
		do     func(tr *trial)
		want   string
		counts Counts
	}{
		{
			"the way of every pod: each milestone once, at the message that tells of it first",
			func(tr *trial) {
				tr.changed()
				tr.changed(on("n1"))
				tr.changed(on("n1"), troubled("ContainerCreating", ""))
				tr.changed(on("n1"), is(CondReadyToStart, CondInitialized), troubled("ContainerCreating", ""))
				tr.changed(on("n1"), is(CondReadyToStart, CondInitialized), started)
				tr.changed(up)
				tr.changed(up)
			},
			"1 a Created\n2 a Scheduled on n1\n4 a PodReadyToStartContainers\n4 a Initialized\n5 a ContainersStarted\n6 a ContainersReady\n6 a Ready",
			Counts{Seen: 1, Ready: 1, Moved: 6},
		},
		{
			"the server's stamps stand beside the time of receipt",
			func(tr *trial) {
				tr.changed(func(m *Pod) { m.Created = 100 })
				tr.changed(up, func(m *Pod) {
					m.Created, m.StartedStamp = 100, 104
					for i := range m.Conditions {
						m.Conditions[i].Stamp = 101 + int64(i)
					}
				})
			},
			"1 a Created at 100\n2 a Scheduled on n1 at 101\n2 a PodReadyToStartContainers at 102\n2 a Initialized at 103\n2 a ContainersStarted at 104\n2 a ContainersReady at 104\n2 a Ready at 105",
			Counts{Seen: 1, Ready: 1, Moved: 2},
		},
		{
			"the first news finds it Ready: everything at once, and not late, since the watch told of it",
			func(tr *trial) { tr.changed(up) },
			"1 a Created\n1 a Scheduled on n1\n1 a PodReadyToStartContainers\n1 a Initialized\n1 a ContainersStarted\n1 a ContainersReady\n1 a Ready",
			Counts{Seen: 1, Ready: 1, Moved: 1},
		},
		{
			"a node without the condition is a place too: pods that name their node skip the scheduler",
			func(tr *trial) { tr.changed(func(m *Pod) { m.Node = "n2" }) },
			"1 a Created\n1 a Scheduled on n2",
			Counts{Seen: 1, Moved: 1},
		},
		{
			"after a gap: what is new is late, what was known is not told again, what is missing was deleted",
			func(tr *trial) {
				tr.changed(on("n1"))
				tr.changed(named("ns/b", "2"), up)
				tr.listed(aPod(up), aPod(named("ns/c", "3")))
			},
			"1 a Created\n1 a Scheduled on n1\n2 b Created\n2 b Scheduled on n1\n2 b PodReadyToStartContainers\n2 b Initialized\n2 b ContainersStarted\n2 b ContainersReady\n2 b Ready\n" +
				"3 a PodReadyToStartContainers late\n3 a Initialized late\n3 a ContainersStarted late\n3 a ContainersReady late\n3 a Ready late\n4 c Created late\n5 b Deleted late",
			Counts{Seen: 3, Ready: 1, Gone: 1, Moved: 5},
		},
		{
			"a list that failed halfway deletes nothing: only its successor's end does",
			func(tr *trial) {
				tr.changed()
				tr.changed(named("ns/b", "2"))
				tr.beginList()
				tr.news(Listed, aPod())
				tr.listed(aPod(), aPod(named("ns/b", "2")))
			},
			"1 a Created\n2 b Created",
			Counts{Seen: 2, Moved: 2},
		},
		{
			"after a list the watch goes on: what it tells is not late, and the next list knows of it",
			func(tr *trial) {
				tr.listed()
				tr.changed()
				tr.listed(aPod())
			},
			"2 a Created",
			Counts{Seen: 1, Moved: 2},
		},
		{
			"a name that another pod has now: the first one went unseen",
			func(tr *trial) {
				tr.changed(up)
				tr.events = nil
				tr.changed(named("ns/a", "2"))
			},
			"2 a Deleted late\n2 a Created",
			Counts{Seen: 2, Gone: 1, Moved: 2},
		},
		{
			"the end of a pod whose name was given on already is no end of the other",
			func(tr *trial) {
				tr.changed()
				tr.changed(named("ns/a", "2"))
				tr.deleted()
				tr.changed(named("ns/a", "2"), on("n1"))
			},
			"1 a Created\n2 a Deleted late\n2 a Created\n4 a Scheduled on n1",
			Counts{Seen: 2, Gone: 1, Moved: 4},
		},
		{
			"news of an end without a beginning is no pod: it came and went in a gap",
			func(tr *trial) { tr.deleted(up) },
			"",
			Counts{},
		},
		{
			"deleted while Ready, and once more by a list that lacks it",
			func(tr *trial) {
				tr.changed(up)
				tr.events = nil
				tr.deleted(up, deleting)
				tr.listed()
			},
			"2 a Deleted",
			Counts{Seen: 1, Gone: 1, Moved: 2},
		},
		{
			"deleted with a grace period: it no longer serves from the moment that it is to go",
			func(tr *trial) {
				tr.changed(up)
				tr.events = nil
				tr.changed(up, deleting)
				tr.changed(up, deleting, isNot(CondReady, "ContainersNotReady", ""), in(PhaseFailed), troubled("Error", "exit code 137"))
				tr.deleted(deleting)
			},
			"2 a lost Ready Deleting\n3 a Deleting failed\n4 a Deleted",
			Counts{Seen: 1, Gone: 1, Moved: 4},
		},
		{
			"first seen when it is to go already: it was Ready and is not",
			func(tr *trial) { tr.listed(aPod(up, deleting)) },
			"1 a Created late\n1 a Scheduled on n1 late\n1 a PodReadyToStartContainers late\n1 a Initialized late\n1 a ContainersStarted late\n1 a ContainersReady late\n1 a Ready late\n1 a lost Ready Deleting",
			Counts{Seen: 1, Moved: 1},
		},
		{
			"no place, still no place, no place for another reason, a place",
			func(tr *trial) {
				tr.changed()
				tr.changed(isNot(CondScheduled, "Unschedulable", noPlace))
				tr.changed(isNot(CondScheduled, "Unschedulable", noPlace))
				tr.changed(isNot(CondScheduled, "Unschedulable", "0/2 nodes are available: 2 Insufficient cpu."))
				tr.changed(on("n2"))
			},
			"1 a Created\n2 a Unschedulable (" + noPlace + ")\n4 a Unschedulable (0/2 nodes are available: 2 Insufficient cpu.)\n5 a Scheduled on n2\n5 a no trouble",
			Counts{Seen: 1, Moved: 5},
		},
		{
			"another message about the lack of a place moves nothing: a stall is told by this",
			func(tr *trial) {
				tr.changed(isNot(CondScheduled, "Unschedulable", noPlace))
				tr.changed(isNot(CondScheduled, "Unschedulable", "0/3 nodes are available: 3 Too many pods."))
			},
			"1 a Created\n1 a Unschedulable (" + noPlace + ")\n2 a Unschedulable (0/3 nodes are available: 3 Too many pods.)",
			Counts{Seen: 1, Unschedulable: 1, Moved: 1},
		},
		{
			"held back by a gate is no lack of a place",
			func(tr *trial) { tr.changed(isNot(CondScheduled, "SchedulingGated", "")) },
			"1 a Created\n1 a SchedulingGated",
			Counts{Seen: 1, Moved: 1},
		},
		{
			"deleted for want of a place",
			func(tr *trial) {
				tr.changed(isNot(CondScheduled, "Unschedulable", noPlace))
				tr.events = nil
				tr.deleted(isNot(CondScheduled, "Unschedulable", noPlace))
			},
			"2 a Deleted",
			Counts{Seen: 1, Gone: 1, Moved: 2},
		},
		{
			"an image that cannot be pulled, at first and for good, and then is",
			func(tr *trial) {
				tr.changed(on("n1"))
				tr.events = nil
				tr.changed(on("n1"), troubled("ErrImagePull", "not found"))
				tr.changed(on("n1"), troubled("ImagePullBackOff", "back-off"))
				tr.changed(up)
			},
			"2 a ErrImagePull (not found)\n3 a ImagePullBackOff (back-off)\n4 a PodReadyToStartContainers\n4 a Initialized\n4 a ContainersStarted\n4 a ContainersReady\n4 a Ready\n4 a no trouble",
			Counts{Seen: 1, Ready: 1, Moved: 4},
		},
		{
			"a container that crashes again and again: Ready is lost and regained, in one event each",
			func(tr *trial) {
				tr.changed(up)
				tr.events = nil
				down := isNot(CondReady, "ContainersNotReady", "containers with unready status: [x]")
				tr.changed(up, down, troubled("OOMKilled", "exit code 137"))
				tr.changed(up, down, troubled("CrashLoopBackOff", "back-off 10s"))
				tr.changed(up, restarted(1))
				tr.changed(up, restarted(1))
			},
			"2 a lost Ready OOMKilled (exit code 137)\n3 a CrashLoopBackOff (back-off 10s)\n4 a regained Ready Restarted\n5 a no trouble",
			Counts{Seen: 1, Ready: 1, Moved: 4},
		},
		{
			"a probe that fails takes Ready away without any trouble of a container",
			func(tr *trial) {
				tr.changed(up)
				tr.events = nil
				tr.changed(up, isNot(CondReady, "ContainersNotReady", "containers with unready status: [x]"))
				tr.Unfinished(tr.now)
				tr.changed(up)
			},
			"2 a lost Ready ContainersNotReady (containers with unready status: [x])\n3 a regained Ready no trouble",
			Counts{Seen: 1, Ready: 1, Moved: 3},
		},
		{
			"Ready is lost without a word: a node that is out of reach",
			func(tr *trial) {
				tr.changed(up)
				tr.events = nil
				tr.changed(up, isNot(CondReady, "", ""))
			},
			"2 a lost Ready NotReady",
			Counts{Seen: 1, Moved: 2},
		},
		{
			"a restart between two messages",
			func(tr *trial) {
				tr.changed(up)
				tr.events = nil
				tr.changed(up, restarted(2))
			},
			"2 a Restarted",
			Counts{Seen: 1, Ready: 1, Moved: 1},
		},
		{
			"evicted by the node, and removed later: the reason is the eviction",
			func(tr *trial) {
				tr.changed(up)
				tr.events = nil
				tr.changed(on("n1"), in(PhaseFailed), troubled("Evicted", "low on memory"))
				tr.changed(on("n1"), in(PhaseFailed), troubled("Evicted", "low on memory"), deleting)
			},
			"2 a lost Ready Evicted (low on memory) failed",
			Counts{Seen: 1, Failed: 1, Moved: 2},
		},
		{
			"refused by the node before it started",
			func(tr *trial) {
				tr.changed(on("n1"))
				tr.changed(on("n1"), in(PhaseFailed), troubled("OutOfpods", "too many pods"))
			},
			"1 a Created\n1 a Scheduled on n1\n2 a OutOfpods (too many pods) failed",
			Counts{Seen: 1, Failed: 1, Moved: 2},
		},
		{
			"the container's trouble is told before the pod's end: the end is told all the same",
			func(tr *trial) {
				tr.changed(on("n1"), started, troubled("Error", "exit code 1"))
				tr.events = nil
				tr.changed(on("n1"), started, troubled("Error", "exit code 1"), in(PhaseFailed))
			},
			"2 a Error (exit code 1) failed",
			Counts{Seen: 1, Failed: 1, Moved: 2},
		},
		{
			"failed without a word",
			func(tr *trial) {
				tr.changed(on("n1"))
				tr.events = nil
				tr.changed(on("n1"), in(PhaseFailed))
			},
			"2 a NotReady failed",
			Counts{Seen: 1, Failed: 1, Moved: 2},
		},
		{
			"it did its work and ended well: it is not Ready and never will be again",
			func(tr *trial) {
				tr.changed(up)
				tr.events = nil
				tr.changed(up, isNot(CondReady, "PodCompleted", ""), in(PhaseSucceeded), troubled("Completed", ""))
				tr.Unfinished(tr.now)
			},
			"2 a lost Ready PodCompleted failed",
			Counts{Seen: 1, Failed: 1, Moved: 2},
		},
		{
			"a Job's pod that ended well did what it was made for: it stays Ready",
			func(tr *trial) {
				ofJob := func(m *Pod) { m.OfJob = true }
				tr.changed(up, ofJob)
				tr.events = nil
				tr.changed(up, ofJob, isNot(CondReady, "PodCompleted", ""), in(PhaseSucceeded), troubled("Completed", ""))
				tr.Unfinished(tr.now)
			},
			"",
			Counts{Seen: 1, Ready: 1, Moved: 1},
		},
		{
			"a Job's pod that ended before anybody saw it Ready is Ready from then on, and one that failed is not",
			func(tr *trial) {
				ofJob := func(m *Pod) { m.OfJob = true }
				tr.changed(on("n1"), ofJob)
				tr.events = nil
				tr.changed(on("n1"), ofJob, isNot(CondReady, "PodCompleted", ""), in(PhaseSucceeded), troubled("Completed", ""))
				tr.changed(named("ns/b", "2"), on("n1"), ofJob, in(PhaseFailed), troubled("Error", "exit code 1"))
			},
			"2 a Ready\n3 b Created\n3 b Scheduled on n1\n3 b Error (exit code 1) failed",
			Counts{Seen: 2, Ready: 1, Failed: 1, Moved: 3},
		},
		{
			"a controller's pods have names of their own and tell whose slot they fill",
			func(tr *trial) {
				tr.changed(named("ns/d-x7f", "9"), fills("ns/d"), up)
				tr.events = nil
				tr.changed(named("ns/d-x7f", "9"), fills("ns/d"), up, isNot(CondReady, "ContainersNotReady", ""))
				tr.deleted(named("ns/d-x7f", "9"), fills("ns/d"))
			},
			"2 d-x7f lost Ready ContainersNotReady for ns/d\n3 d-x7f Deleted for ns/d",
			Counts{Seen: 1, Gone: 1, Moved: 3},
		},
		{
			"what a silent pod was waiting for is told when its step ends, and once",
			func(tr *trial) {
				tr.changed(on("n1"), is(CondReadyToStart, CondInitialized))
				tr.events = nil
				tr.Unfinished(tr.now)
				tr.Unfinished(tr.now)
				tr.changed(on("n1"), is(CondReadyToStart, CondInitialized), started)
				tr.Unfinished(tr.now)
			},
			"1 a NotContainersStarted (no reason given; the last milestone was Initialized)\n2 a ContainersStarted\n2 a no trouble\n2 a NotContainersReady (no reason given; the last milestone was ContainersStarted)",
			Counts{Seen: 1, Moved: 2},
		},
		{
			"a pod that is Ready, or tells of its trouble, needs no such word",
			func(tr *trial) {
				tr.changed(named("ns/b", "2"), up)
				tr.changed(isNot(CondScheduled, "Unschedulable", noPlace))
				tr.events = nil
				tr.Unfinished(tr.now)
			},
			"",
			Counts{Seen: 2, Ready: 1, Unschedulable: 1, Moved: 2},
		},
		{
			"an emptied target is forgotten: late news of its pods begin anew, their ends are nothing",
			func(tr *trial) {
				tr.changed(up)
				tr.Forget()
				tr.events = nil
				tr.deleted(up)
			},
			"",
			Counts{Moved: 1},
		},
	} {
		tr := newTrial()
		tt.do(tr)
		if got := tr.text(); got != tt.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", tt.why, got, tt.want)
		}
		if got := tr.Counts(); got != tt.counts {
			t.Errorf("%s: counts %+v, want %+v", tt.why, got, tt.counts)
		}
	}
}

func TestWhoIsFollowed(t *testing.T) {
	tr := newTrial()
	tr.changed(on("n1"))
	tr.changed(named("ns/b", "2"), on("n1"))
	tr.changed(named("ns/c", "3"))
	tr.changed(named("ns/d", "4"), on("n2"))
	tr.deleted(named("ns/d", "4"))
	names := slices.Sorted(slices.Values(tr.Names()))
	nodes := map[string]int{"n9": 1}
	tr.PerPlace(nodes)
	if !slices.Equal(names, []string{"ns/a", "ns/b", "ns/c"}) || tr.Followed() != 3 || !maps.Equal(nodes, map[string]int{"n1": 2, "n9": 1}) {
		t.Errorf("followed %d: %v, by node %v", tr.Followed(), names, nodes)
	}
}

// operation is one thing that is done to a Tracker.
type operation struct {
	at     record.Micros
	change Change
	m      *Pod // nil: a list begins (Listed) or ends (Gone)
}

// fact is all that counts of one pod.
type fact struct {
	uid                        string
	reached                    [numConditions]bool
	started                    bool
	ready, done, unschedulable bool
}

// countSlowly is the Tracker's slow twin: it goes through everything that was
// ever done, keeps all of each pod's facts in the open, and compares them
// whole to see whether anything moved.
func countSlowly(ops []operation) Counts {
	pods := map[string]fact{}
	var c Counts
	listed := map[string]bool{}
	for _, op := range ops {
		before := maps.Clone(pods)
		switch {
		case op.m == nil && op.change == Listed:
			clear(listed)
		case op.m == nil:
			for name := range pods {
				if !listed[name] {
					delete(pods, name)
					c.Gone++
				}
			}
		default:
			old, known := pods[op.m.Name]
			stranger := known && old.uid != op.m.UID
			if op.change == Gone {
				if known && !stranger {
					delete(pods, op.m.Name)
					c.Gone++
				}
				break
			}
			if stranger {
				c.Gone++
				old, known = fact{}, false
			}
			if !known {
				c.Seen++
			}
			listed[op.m.Name] = true
			pods[op.m.Name] = old.after(op.m)
		}
		if !maps.Equal(before, pods) {
			c.Moved = op.at
		}
	}
	for _, f := range pods {
		if f.ready {
			c.Ready++
		}
		if f.done {
			c.Failed++
		}
		if f.unschedulable {
			c.Unschedulable++
		}
	}
	return c
}

func (f fact) after(m *Pod) fact {
	f.uid = m.UID
	for i, c := range m.Conditions {
		f.reached[i] = f.reached[i] || c.True
	}
	f.reached[CondScheduled] = f.reached[CondScheduled] || m.Node != ""
	f.started = f.started || m.Started
	complete := m.OfJob && m.Phase == PhaseSucceeded
	f.reached[CondReady] = f.reached[CondReady] || complete
	f.done = f.done || m.Phase == PhaseFailed || m.Phase == PhaseSucceeded && !complete
	f.ready = (complete || m.Conditions[CondReady].True) && !m.Deleting && !f.done
	told := m.Trouble.Reason != "" && m.Trouble.Reason != "ContainerCreating"
	deletedAfterReady := m.Deleting && f.reached[CondReady]
	c := m.Conditions[CondScheduled]
	f.unschedulable = c.Known && !c.True && c.Reason == "Unschedulable" && !told && !f.ready && !f.done && !deletedAfterReady
	return f
}

// randomMessage is any message at all, of one of few pods.
func randomMessage(rng *rand.Rand) *Pod {
	name := fmt.Sprintf("ns/%c", 'a'+rng.IntN(4))
	m := aPod(named(name, fmt.Sprint(rng.IntN(2))))
	if rng.IntN(3) == 0 {
		m.Slot = "ns/slot"
	}
	for i := range m.Conditions {
		switch rng.IntN(4) {
		case 0:
			is(i)(m)
		case 1:
			isNot(i, []string{"", "Unschedulable", "Other"}[rng.IntN(3)], fmt.Sprint(rng.IntN(2)))(m)
		}
	}
	if rng.IntN(2) == 0 {
		m.Node = fmt.Sprintf("n%d", rng.IntN(2))
	}
	m.Phase = Phase(rng.IntN(2)) + PhasePending
	if rng.IntN(15) == 0 {
		m.Phase = PhaseFailed
	}
	if rng.IntN(15) == 0 {
		m.Phase = PhaseSucceeded
	}
	m.OfJob = rng.IntN(4) == 0
	m.Deleting = rng.IntN(8) == 0
	m.Started = rng.IntN(2) == 0
	m.Restarts = rng.IntN(3)
	m.Trouble.Reason = []string{"", "", "ContainerCreating", "Error", "CrashLoopBackOff"}[rng.IntN(5)]
	return m
}

// Whatever comes, in whatever order and however often: the counts are those of
// the slow twin, and the events tell the same story as the counts, each thing
// once.
func TestCountsAgreeWithASlowTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		tr := newTrial()
		var ops []operation
		do := func(change Change, m *Pod) {
			tr.now++
			ops = append(ops, operation{tr.now, change, m})
			switch {
			case m != nil:
				tr.apply(change, m)
			case change == Listed:
				tr.beginList()
			default:
				tr.endList()
			}
		}
		for range rng.IntN(40) {
			switch rng.IntN(12) {
			case 0:
				do(Listed, nil)
				for range rng.IntN(4) {
					do(Listed, randomMessage(rng))
				}
				if rng.IntN(5) > 0 {
					do(Gone, nil)
				}
			case 1, 2:
				do(Gone, randomMessage(rng))
			case 3:
				if len(ops) > 0 && ops[len(ops)-1].m != nil {
					do(Changed, ops[len(ops)-1].m) // the same once more
				}
			case 4:
				tr.Unfinished(tr.now)
			default:
				do(Changed, randomMessage(rng))
			}
			if got, want := tr.Counts(), countSlowly(ops); got != want {
				t.Fatalf("counts %+v, want %+v, after\n%s", got, want, tr.text())
			}
			checkStory(t, tr)
		}
	}
}

// checkStory goes through all events as a reader of the record does.
func checkStory(t *testing.T, tr *trial) {
	t.Helper()
	type heard struct {
		milestones map[string]bool
		there      bool
		failed     bool
		last       *record.State
	}
	living := map[string]*heard{}
	seen, gone := 0, 0
	for _, e := range tr.events {
		switch b := e.Body.(type) {
		case *record.Object:
			h := living[b.Object]
			switch {
			case b.Milestone == Created && h == nil:
				living[b.Object] = &heard{milestones: map[string]bool{Created: true}}
				seen++
				continue
			case h == nil || h.milestones[b.Milestone]:
				t.Fatalf("%s of %s twice, or outside of its life, in\n%s", b.Milestone, b.Object, tr.text())
			case b.Milestone == Deleted:
				delete(living, b.Object)
				gone++
			case b.Milestone == Ready:
				h.there = true
			}
			h.milestones[b.Milestone] = true
		case *record.State:
			h := living[b.Object]
			if h == nil {
				t.Fatalf("a state of %s outside of its life, in\n%s", b.Object, tr.text())
			}
			if h.last == nil {
				h.last = &record.State{}
			}
			if b.Lost == "" && b.Regained == "" && b.Reason == h.last.Reason && b.Message == h.last.Message && b.Failed == h.last.Failed {
				t.Fatalf("%s told twice of %q, in\n%s", b.Object, b.Reason, tr.text())
			}
			if b.Lost != "" && !h.there || b.Regained != "" && h.there {
				t.Fatalf("%s lost what it had not, or regained what it had, in\n%s", b.Object, tr.text())
			}
			h.there = h.there && b.Lost == "" || b.Regained != ""
			h.failed = h.failed || b.Failed
			h.last = b
		}
	}
	var c Counts
	for name, h := range living {
		if h.there {
			c.Ready++
			if h.failed {
				t.Fatalf("%s is Ready and has failed, in\n%s", name, tr.text())
			}
		}
		if h.failed {
			c.Failed++
		}
	}
	if got := tr.Counts(); seen != got.Seen || gone != got.Gone || c.Ready != got.Ready || c.Failed != got.Failed || len(living) != tr.Followed() {
		t.Fatalf("the events tell of %d seen, %d gone and %+v, the counts are %+v, after\n%s", seen, gone, c, got, tr.text())
	}
}

// Of failing pods the first by name of each reason are chosen, the most
// frequent reasons first, whatever the order in which maps are gone through.
func TestFailing(t *testing.T) {
	tracker := NewTracker(PodCourse(), func(record.Micros, record.Body) {})
	apply := func(name string, change func(*Pod)) {
		p := &Pod{Name: "ns/" + name, Slot: "ns/" + name, UID: name, Node: "n", Phase: PhaseRunning, Started: true}
		change(p)
		tracker.Apply(1, Changed, p.News())
	}
	trouble := func(reason string) func(*Pod) { return func(p *Pod) { p.Trouble.Reason = reason } }
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(50) {
		apply(fmt.Sprintf("loop-%02d", i), trouble("CrashLoopBackOff"))
	}
	apply("oom-b", trouble("OOMKilled"))
	apply("oom-a", trouble("OOMKilled"))
	apply("quiet", func(*Pod) {})
	apply("ready", func(p *Pod) { p.Conditions[CondReady] = Condition{Known: true, True: true} })
	apply("nowhere", func(p *Pod) {
		p.Node, p.Started = "", false
		p.Conditions[CondScheduled] = Condition{Known: true, Reason: "Unschedulable"}
	})
	apply("pulling", func(p *Pod) { p.Started, p.Trouble.Reason = false, "ImagePullBackOff" })
	apply("ended", func(p *Pod) { p.Started, p.Trouble.Reason = false, "Error" })
	names := func(list []Failing) string {
		var words []string
		for _, f := range list {
			words = append(words, strings.TrimPrefix(f.Name, "ns/")+" "+f.Reason)
		}
		return strings.Join(words, ", ")
	}
	want := "loop-00 CrashLoopBackOff, loop-01 CrashLoopBackOff, loop-02 CrashLoopBackOff, oom-a OOMKilled, oom-b OOMKilled, quiet , ended Error"
	for range 10 {
		if got := names(tracker.Failing(BitStarted, 3, 12)); got != want {
			t.Fatalf("%s\nwant %s", got, want)
		}
	}
	if got := names(tracker.Failing(BitStarted, 3, 2)); got != "loop-00 CrashLoopBackOff, loop-01 CrashLoopBackOff" {
		t.Errorf("at most two: %s", got)
	}
}

// Events report images: they name a pod by name and UID and a container by its path, and
// come more than once.
func TestImagesReady(t *testing.T) {
	type event struct{ name, uid, container string }
	web, sidecar := event{"ns/a", "1", "spec.containers{web}"}, event{"ns/a", "1", "spec.containers{sidecar}"}
	for _, tt := range []struct {
		why        string
		containers int
		events     []event
		want       int // the event that makes it, counted from 1; 0: none
	}{
		{"one container", 1, []event{web}, 1},
		{"a container that is started again is told of again", 1, []event{web, web}, 1},
		{"the last of two", 2, []event{web, sidecar}, 2},
		{"one of two, twice", 2, []event{web, web}, 0},
		{"another pod of the name", 1, []event{{"ns/a", "2", web.container}}, 0},
		{"a pod that is not followed", 1, []event{{"ns/b", "1", web.container}}, 0},
		{"an unknown number of containers", 0, []event{web}, 1},
	} {
		var made []record.Micros
		tracker := NewTracker(PodCourse(), func(at record.Micros, body record.Body) {
			if o, ok := body.(*record.Object); ok && o.Milestone == ImagesReady {
				made = append(made, at)
				if o.Object != "ns/a" || o.Stamp != 7 || o.Late {
					t.Errorf("%s: %+v", tt.why, o)
				}
			}
		})
		tracker.Apply(0, Changed, aPod(func(m *Pod) { m.Containers = tt.containers }).News())
		for i, e := range tt.events {
			tracker.Pulled(record.Micros(i+1), BitImagesReady, e.name, e.uid, e.container, 7)
		}
		// It is no condition of the pod's: nothing waits for it.
		tracker.Unfinished(100)
		if want := []record.Micros{record.Micros(tt.want)}; tt.want == 0 && len(made) > 0 || tt.want > 0 && !slices.Equal(made, want) {
			t.Errorf("%s: at %v, want event %d", tt.why, made, tt.want)
		}
	}
}
