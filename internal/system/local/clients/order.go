// Package clients makes one load by many clients elsewhere, such as pods. Each sends its part of a schedule
// with the generator of package load, and reports its windows as they end. A Fleet gives the orders, and merges
// the windows of all clients.
//
// A client uses its own clock, which nobody sets. The fleet measures by round trips how far it is
// from its own, so that all begin at one moment.
package clients

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// Order says what a client sends, or what it works on instead. It must not change while in use.
type Order struct {
	Work      json.RawMessage `json:",omitempty"` // for a Worker, nil for requests
	Component string          // of windows to which the work of a client counts that is lost before its first one

	Server string // name or address, with a port; the client looks the name up
	Trust  *Trust // nil for plain text
	Plan   load.Plan
	Seed   uint64 // is that of all parts of a schedule

	Schedule streams.Schedule // by the client's clock
}

// Trust says which certificates a client takes.
type Trust struct {
	Any         bool   // without a check
	Authorities []byte // in PEM, instead of the system's; none keeps those
	Resumption  bool   // lets connections resume TLS sessions
}

// config returns the configuration of TLS, for so many hosts.
func (t *Trust) config(hosts int) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	c := &tls.Config{InsecureSkipVerify: t.Any} //nolint:gosec // the user says so
	if len(t.Authorities) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(t.Authorities) {
			return nil, errors.New("the authorities hold no certificate")
		}
	}
	if t.Resumption {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(2 * hosts)
	}
	return c, nil
}

// Work is a load of another kind than requests.
type Work interface {
	Start(ctx context.Context, s streams.Schedule) error // so that the stream can begin at once
	Stream(ctx context.Context, s streams.Schedule) error
	Progress() streams.Progress
	Readings() []record.Reading // of its use so far
	End() error                 // also of one that has not begun
}

// Worker prepares the work of an order, which may take long. Of what work emits its windows, readings and notes get to
// the fleet.
type Worker func(ctx context.Context, o Order, clock *record.Clock, emit func(record.Body)) (Work, error)

// Paths of a client's server.
const (
	pathClock = "/clock" // answers with a told
	pathAsk   = "/ask"   // takes an order, makes one request of it or prepares its work, and answers with a told
	pathLook  = "/look"  // takes an order, connects to its server, and answers with a told
	pathOrder = "/order" // takes an order, and answers with lines of JSON, one told each, until Over
)

// told is one message of a client.
type told struct {
	Clock    record.Micros     // now, since the client began
	Began    *record.Micros    // when it could begin, once
	Windows  []*record.Window  // of all components, for a time that is over
	Progress *streams.Progress // so far
	Use      *Use
	Readings []record.Reading
	Notes    []string
	Over     *over // ends an order
	Failed   string
	Path     *Path
}

// Path holds the sizes of packets between a client and a server, in bytes.
type Path struct {
	MTU     int // of the client's interface
	Segment int // of TCP, at most
}

// over says how an order ended.
type over struct {
	Error    string // why it could not be carried out, "" where it was
	Counts   load.Counts
	Recorded []record.Request
}

// Use holds the processor time of a client since it started.
type Use struct {
	Wanted    float64 // seconds in which its threads ran or waited for a processor
	Throttled float64 // seconds in which its CPU limit stopped it
	Limit     float64 // CPU limit in processors, 0 for none
}

const (
	tellInterval = 200 * time.Millisecond // between two signs of life
	silentFor    = 3 * time.Second        // after which a client counts as lost
)
