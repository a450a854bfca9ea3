package clients

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"plimsoll.dev/plimsoll/internal/record"
)

// teller tells what work emits.
type teller struct {
	mu   sync.Mutex
	say  func(told)       // nil before the stream
	open []*record.Window // of the latest time that windows are of
}

// emit tells windows once all components have theirs for a time.
func (t *teller) emit(body record.Body) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch body := body.(type) {
	case *record.Window:
		if len(t.open) > 0 && t.open[0].From != body.From {
			t.flush()
		}
		t.open = append(t.open, body)
	case *record.Reading:
		t.tell(told{Readings: []record.Reading{*body}})
	case *record.Note:
		t.tell(told{Notes: []string{body.Text}})
	}
}

func (t *teller) tell(what told) {
	if t.say != nil {
		t.say(what)
	}
}

// flush tells the latest windows. The caller holds the lock.
func (t *teller) flush() {
	if len(t.open) > 0 {
		t.tell(told{Windows: t.open})
	}
	t.open = nil
}

// prepare prepares the work of an order, once an earlier one has ended.
func (c *client) prepare(w http.ResponseWriter, r *http.Request, o Order) {
	if !c.take(w) {
		return
	}
	defer c.busy.Unlock()
	err := c.endWork()
	if err == nil && c.worker == nil {
		err = errors.New("this program sends requests, and does no other work")
	}
	if err == nil {
		c.teller = new(teller)
		c.work, err = c.worker(r.Context(), o, c.clock, c.teller.emit)
	}
	var t told
	if err != nil {
		t.Failed = err.Error()
	}
	c.tell(w, t)
}

func (c *client) endWork() error {
	work := c.work
	c.work = nil
	if work == nil {
		return nil
	}
	return work.End()
}

// carryOut does the work that was prepared, while who gave the order listens.
func (c *client) carryOut(ctx context.Context, o Order, say func(told)) {
	last := &over{}
	if work := c.work; work == nil {
		last.Error = "no work was prepared"
	} else if err := errors.Join(c.stream(ctx, work, o, say), c.endWork()); err != nil {
		last.Error = err.Error()
	}
	say(told{Use: use(), Over: last})
}

func (c *client) stream(ctx context.Context, work Work, o Order, say func(told)) error {
	c.teller.mu.Lock()
	c.teller.say = say
	c.teller.mu.Unlock()
	sign := func() {
		progress := work.Progress()
		say(told{Progress: &progress, Use: use(), Readings: work.Readings()})
	}
	end := signs(ctx, sign)
	defer end()
	if err := work.Start(ctx, o.Schedule); err != nil {
		return err
	}
	c.await(ctx, o.Schedule.Begin)
	began := c.now()
	say(told{Began: &began, Use: use()})
	err := work.Stream(ctx, o.Schedule)
	c.teller.mu.Lock()
	c.teller.flush()
	c.teller.mu.Unlock()
	sign()
	return err
}
