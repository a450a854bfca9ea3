package load

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

const fruitlessPause = 5 * time.Millisecond // pause of a client after two failed connections in a row

// conn is a client with at most one connection and one request in flight. It is a coroutine of its loop.
type conn struct {
	*loop
	id     int32
	rng    *rand.Rand
	resume func()      // runs the coroutine until it waits
	yield  func() bool // makes the coroutine wait; nil without a loop
	stop   func()

	intended record.Micros // The request in flight
	bound    record.Micros // when the request is given up, 0 without one
	began    record.Micros
	aborted  bool // given up
	answer   Answer
	retries  int
	times    map[string]record.Micros

	host      int
	asked     *request
	answered  int // requests answered on this connection
	fruitless int // counts requests in a row that could not connect

	fd     int    // of the connection, -1 without one
	opens  int32  // connections so far
	ready  uint32 // pending events
	waits  uint32 // awaited events
	got    int    // bytes read in this turn
	least  int    // bytes that make the connection readable
	put    int64  // bytes written in all
	wire   io.ReadWriter
	framed *framed // nil for HTTP/1.1
}

// begin begins a request that is due at intended.
func (c *conn) begin(intended record.Micros) {
	host, all := c.serves()
	if all {
		host = c.chooser.draw(c.rng)
	}
	c.beginAt(host, intended)
}

// beginAt begins a request to a host.
func (c *conn) beginAt(host int, intended record.Micros) {
	c.intended, c.retries, c.aborted, c.host = intended, 0, false, host
	c.bound = intended + record.MicrosOf(c.Timeout)
	c.nextBound = min(c.nextBound, c.bound)
	c.asked = &c.requests[c.host][c.choosers[c.host].draw(c.rng)]
	clear(c.times)
	c.answer.Reset(c.asked.want, c.asked.Method == "HEAD")
}

// serves returns the host of a connection for one host alone, or all for a connection to any host.
func (c *conn) serves() (host int, all bool) { return c.host, c.wire == nil || !c.apart }

const mostRetries = 5 // bounds the retries of a request that was not taken in

// errNotTaken says that the other side has certainly not begun to work on a request: a retry is safe.
var errNotTaken = errors.New("the request was not taken in")

// transact makes the present request.
func (c *conn) transact() streams.Outcome {
	c.began = c.last
	for {
		if c.wire != nil && c.ready&broken != 0 {
			c.close() // the other side closed it while idle
		}
		if c.wire == nil {
			if x, ok := c.open(); !ok {
				return x
			}
		}
		var err error
		before, kept := c.put, c.answered > 0
		if c.framed != nil {
			err = c.exchange()
		} else if _, err = c.wire.Write(c.asked.text); err == nil {
			err = c.read()
		}
		if kept && isClosed(err) && c.put == before {
			err = fmt.Errorf("%w: %w", errNotTaken, err)
		}
		if x, again := c.outcome(err); !again {
			return x
		}
	}
}

// again reports whether to retry the request after err; kept says that its connection served earlier ones.
func (c *conn) again(err error, kept bool) bool {
	switch {
	case c.cut.Load() || c.aborted || c.retries >= mostRetries:
		return false
	case errors.Is(err, errNotTaken):
		return true
	}
	return c.plan.Retry && kept && c.retries == 0 && c.asked.Method != "POST" && !c.answer.Started() && isClosed(err)
}

// outcome returns the outcome of the request after err, or that it is to be retried.
func (c *conn) outcome(err error) (x streams.Outcome, again bool) {
	if err != nil {
		kept := c.answered > 0
		if !errors.Is(err, errStream) {
			c.close() // else the connection serves other streams
		}
		if again = c.again(err, kept); again {
			c.retries++
			c.Generator.retried.Add(1)
			c.answer.Reset(c.asked.want, c.asked.Method == "HEAD")
			return x, true
		}
		c.bound = 0
		return streams.Outcome{Failed: kindOf(err), BytesOut: int64(len(c.asked.text))}, false
	}
	c.bound = 0
	c.tick()
	c.answered++
	a := &c.answer
	x = streams.Outcome{BytesIn: a.Body + int64(a.total), BytesOut: int64(len(c.asked.text))}
	switch {
	case a.Status != c.asked.Status:
		x.Failed = FailedStatus + strconv.Itoa(a.Status)
	case a.Wrong || c.asked.size >= 0 && a.Body != c.asked.size && c.asked.Method != "HEAD":
		x.Failed = FailedBody
	default:
		c.times[Response] = c.last - c.intended
		x.Times = c.times
	}
	if a.Close || c.plan.Close {
		c.close()
	}
	return x, false
}

func (c *conn) read() error {
	for {
		c.wakeAt(c.answer.Left())
		n, err := c.wire.Read(c.buf)
		if n > 0 {
			read, bad := c.answer.Feed(c.buf[:n])
			switch {
			case bad != nil:
				return bad
			case c.answer.Done() && read < n:
				return errAnswer // more than one answer
			case c.answer.Done():
				return nil
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) && c.answer.End() == nil {
				return nil
			}
			return err
		}
	}
}

func (c *conn) open() (x streams.Outcome, ok bool) {
	fail := func(x streams.Outcome) (streams.Outcome, bool) {
		c.close()
		c.bound = 0
		return x, false
	}
	if c.now() >= c.bound {
		return fail(streams.Outcome{Failed: record.FailedTimeout})
	}
	if err := c.connect(); err != nil {
		c.fruitless++
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EMFILE) {
			// This machine is the cause, not the target.
			c.noPort.Add(1)
			return fail(streams.Outcome{Lost: true})
		}
		return fail(streams.Outcome{Failed: kindOf(err)})
	}
	c.opened.Add(1)
	c.answered, c.fruitless = 0, 0
	c.times[Connected] = c.now() - c.intended
	c.wire = socket{conn: c}
	if c.plan.TLS == nil {
		return x, true
	}
	secure := tls.Client(socket{conn: c}, c.configs[c.host])
	if err := secure.Handshake(); err != nil {
		return fail(streams.Outcome{Failed: cmp.Or(ifTimeout(err), FailedTLS)})
	}
	state := secure.ConnectionState()
	if state.DidResume {
		c.resumed.Add(1)
	}
	c.times[Secured] = c.now() - c.intended
	c.wire = secure
	if !c.plan.HTTP2 {
		return x, true
	}
	if state.NegotiatedProtocol != http2.NextProtoTLS {
		return fail(streams.Outcome{Failed: FailedAnswer})
	}
	c.framed = newFramed(secure)
	return x, true
}

// close closes the connection, if any, without TLS's farewell: nothing more will come.
func (c *conn) close() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
	}
	c.fd, c.ready, c.wire, c.framed = -1, 0, nil, nil
}

// isClosed reports whether the other side has ended the connection.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func ifTimeout(err error) string {
	var timeout net.Error
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return record.FailedTimeout
	}
	return ""
}

func kindOf(err error) string {
	switch {
	case ifTimeout(err) != "":
		return record.FailedTimeout
	case errors.Is(err, errStream):
		return FailedStream
	case errors.Is(err, syscall.ECONNREFUSED):
		return FailedRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return FailedReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return FailedClosed
	}
	return FailedAnswer
}
