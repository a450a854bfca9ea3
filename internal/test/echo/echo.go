// Package echo is the target of docs/target.md: how many connections a TCP echo server
// keeps and answers at the same time.
package echo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
)

// Kind describes what the server is asked for. The judge and the report read it instead
// of the target.
func Kind() record.ObjectKind {
	return record.ObjectKind{
		Object:     record.Noun{One: "connection", Many: "connections"},
		Milestones: []record.Milestone{{Name: "Opened", Owner: "listener"}, {Name: "Echoed", Owner: "server"}, {Name: "Closed", Owner: "server"}},
		Created:    "Opened", There: "Echoed", Gone: "Closed",
		Measures: []record.Measure{record.RequestErrors(0)},
	}
}

// Provider opens echo servers.
type Provider struct{}

// Declare implements system.Provider.
func (Provider) Declare() workload.Target {
	return workload.Target{Name: "echo", Kind: Kind(), Axes: map[string]workload.TargetAxis{"connections": {Loop: workload.Closed}}}
}

// Needs implements system.Provider: it runs no program.
func (Provider) Needs() []proc.Program { return nil }

// Outline implements system.Provider: a run makes nothing that stays.
func (Provider) Outline(context.Context, system.Request) ([]system.Change, error) { return nil, nil }

// Open implements system.Provider.
func (Provider) Open(_ context.Context, r system.Request) (system.Session, error) {
	params, err := r.Resolve(r.Plan.Params)
	return &session{Session: local.Session{Request: r}, address: params.Get("server")}, err
}

// session is one server, for one run. local.Session implements what all targets of this
// machine have in common.
type session struct {
	local.Session
	address string
}

// Consent implements system.Session: the server is not ours.
func (s *session) Consent(context.Context) (*system.Consent, error) {
	return &system.Consent{System: s.address, Why: "is not a server of plimsoll's"}, nil
}

// Prepare implements system.Session.
func (*session) Prepare(context.Context) error { return nil }

// Sweep implements system.Session: a dead run leaves no connection.
func (*session) Sweep(context.Context) error { return nil }

// Survey implements system.Session.
func (s *session) Survey(context.Context, bool) (system.Survey, error) {
	return system.Survey{Target: record.TargetNaming{Kind: "echo", Name: s.address}, Kind: Kind()}, nil
}

// Bounds implements system.Session.
func (*session) Bounds() system.Bounds {
	return system.Bounds{Pace: plan.Pace{Max: true}, MaxInFlight: 16, Stall: time.Second}
}

// Target implements system.Session.
func (s *session) Target(_ context.Context, rec system.Recorder) (system.Instance, error) {
	return &Target{Address: s.address, Now: s.Now, Rec: rec}, nil
}

// Target keeps connections to a server, each of which has been answered once.
type Target struct {
	Address string
	Now     func() time.Time
	Rec     system.Recorder

	mu       sync.Mutex
	open     map[string]*net.TCPConn
	asked    int
	progress system.Progress
}

// emit puts on record what was seen.
func (t *Target) emit(body record.Body) {
	t.Rec.Sink.Append(record.Event{T: t.Rec.Clock.Now(), Step: t.Rec.Step(), Body: body})
}

// Describe implements system.Target.
func (t *Target) Describe(context.Context) (record.Environment, error) {
	return record.Environment{Start: t.Rec.Clock.Start(), Target: record.TargetNaming{Kind: "echo", Name: t.Address}}, nil
}

// Raise implements system.Target: a level is what is in place, so that the difference is
// asked for.
func (t *Target) Raise(_ context.Context, level system.Level) (system.Batch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.asked
	t.asked = int(level.Value)
	return system.Batch{
		Requests: t.asked - first, Units: t.asked - first, Reached: float64(t.asked),
		Send: func(ctx context.Context, i int) record.Slot { return t.connect(ctx, fmt.Sprintf("echo/%d", first+i)) },
	}, nil
}

// connect opens a connection and has one byte echoed.
func (t *Target) connect(ctx context.Context, name string) record.Slot {
	slot := record.Slot{Slot: name, Component: "connection", Units: 1, Outcome: record.SlotCreated}
	dialled, err := new(net.Dialer).DialContext(ctx, "tcp", t.Address)
	if err != nil {
		slot.Outcome, slot.Error = record.SlotFailed, err.Error()
		return slot
	}
	conn := dialled.(*net.TCPConn)
	t.emit(&record.Object{Object: name, Milestone: "Opened", Component: "connection"})
	err = errors.Join(conn.SetDeadline(t.Now().Add(5*time.Second)), echoed(conn))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[string]*net.TCPConn)
	}
	t.open[name], t.progress.Moved = conn, t.Rec.Clock.Now()
	if err != nil {
		t.progress.Failed++
		t.emit(&record.State{Object: name, Reason: "NoEcho", Message: "the server closed the connection", Failed: true})
		return slot
	}
	t.progress.There, t.progress.Arrived = t.progress.There+1, t.progress.Arrived+1
	t.emit(&record.Object{Object: name, Milestone: "Echoed"})
	return slot
}

// echoed sends a byte and waits for it.
func echoed(conn net.Conn) error {
	_, err := conn.Write([]byte{1})
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	return err
}

// Progress implements system.Target.
func (t *Target) Progress() system.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.progress
}

// Settle implements system.Target: what was seen is on record at once.
func (*Target) Settle(context.Context) error { return nil }

// Account implements system.Target: connections have no places.
func (*Target) Account(context.Context) (system.Spread, error) { return system.Spread{}, nil }

// Health implements system.Target: no guard needs a measure of the server.
func (*Target) Health(context.Context) (map[string]float64, error) { return map[string]float64{}, nil }

// Reset implements system.Target: it closes all connections, and waits until the server
// has closed them too.
func (t *Target) Reset(context.Context) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, conn := range t.open {
		err = errors.Join(err, conn.SetDeadline(t.Now().Add(5*time.Second)))
		_ = conn.CloseWrite()            // the server may have closed it before
		_, _ = io.Copy(io.Discard, conn) // until the server's end, or the deadline
		err = errors.Join(err, conn.Close())
		t.emit(&record.Object{Object: name, Milestone: "Closed"})
	}
	t.open, t.asked, t.progress = nil, 0, system.Progress{}
	return err
}

// Close implements system.Instance.
func (t *Target) Close(ctx context.Context) error { return t.Reset(ctx) }
