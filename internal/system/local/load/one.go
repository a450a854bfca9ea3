package load

import (
	"math/rand/v2"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

// One makes single requests outside of a stream, each on a new connection.
type One struct{ conn *conn }

// NewOne makes a One for a plan's requests.
func NewOne(p Plan, now func() record.Micros) *One {
	l := newLoop(&stream{Generator: New(p, now, 0)}, 0)
	return &One{&conn{loop: l, fd: -1, rng: rand.New(rand.NewPCG(0, 0)), times: make(map[string]record.Micros, 3)}}
}

// Ask makes a request and returns the kind of its failure, "" for none. To exceed the bound is a failure.
func (o *One) Ask(bound time.Duration) (failed string) {
	o.conn.Schedule = system.Schedule{Timeout: bound}
	o.conn.begin(o.conn.now())
	defer o.conn.close()
	x := o.conn.transact()
	if x.Lost {
		return "lost"
	}
	return x.Failed
}
