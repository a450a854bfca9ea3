package load

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
)

// bufferBytes is how much is read at a time.
const bufferBytes = 16 << 10

// conn is a client: it has at most one connection and one request under way. Its
// own goroutine opens, reads and closes the connection.
type conn struct {
	*stream
	rng *rand.Rand
	buf []byte

	// The request under way. Where another goroutine begins one, the stream's
	// lock guards it.
	intended record.Micros
	bound    atomic.Int64 // when it is given up, 0 while there is none
	answer   Answer
	retried  bool
	times    map[string]record.Micros

	host     int
	answered int // requests on this connection
	// fruitless is how many requests in a row could not even connect.
	fruitless int
	slot      int // where among the idle ones, of an open loop

	// framed speaks HTTP/2 on the connection, nil for HTTP/1.1.
	framed *http2.ClientConn

	lock   sync.Mutex // of raw and wire, which others abort
	raw    net.Conn   // nil while there is none
	wire   net.Conn   // the same, or TLS over it
	failed bool       // it was aborted
}

// begin begins a request that is due at a time.
func (c *conn) begin(intended record.Micros) {
	c.intended, c.retried = intended, false
	c.bound.Store(int64(intended + record.MicrosOf(c.Timeout)))
	if c.wire == nil || c.plan.TLS == nil {
		// A connection of TLS was opened for its host.
		c.host = c.chooser.draw(c.rng)
	}
	clear(c.times)
	c.answer.Reset(c.plan.Want, c.plan.Method == "HEAD")
}

// transact makes the request under way from its beginning.
func (c *conn) transact() target.Outcome {
	for {
		if c.wire == nil {
			if x, ok := c.open(); !ok {
				return x
			}
		}
		var err error
		if c.framed != nil {
			err = c.exchange()
		} else if _, err = c.wire.Write(c.requests[c.host]); err == nil {
			err = c.read(0, nil)
		}
		if x, again := c.outcome(err); !again {
			return x
		}
	}
}

// outcome is what became of the request after err, or says that it is to be made
// again: a kept connection may be closed just as a request is on its way.
func (c *conn) outcome(err error) (x target.Outcome, again bool) {
	if err != nil {
		kept := c.answered > 0
		c.close()
		if kept && !c.retried && !c.answer.Started() && isClosed(err) && !c.isCut() {
			c.retried = true
			c.Generator.retried.Add(1)
			c.answer.Reset(c.plan.Want, c.plan.Method == "HEAD")
			return x, true
		}
		c.bound.Store(0)
		return target.Outcome{Failed: kindOf(err), BytesOut: int64(len(c.requests[c.host]))}, false
	}
	c.bound.Store(0)
	c.answered++
	a := &c.answer
	x = target.Outcome{BytesIn: a.Body + int64(a.total), BytesOut: int64(len(c.requests[c.host]))}
	switch {
	case a.Status != 200:
		x.Failed = FailedStatus + strconv.Itoa(a.Status)
	case a.Wrong || a.Body != c.plan.Size && c.plan.Method != "HEAD":
		x.Failed = FailedBody
	default:
		c.times[Response] = c.now() - c.intended
		x.Times = c.times
	}
	if a.Close || c.plan.Close {
		c.close()
	}
	return x, false
}

// read reads until the answer is whole, after n bytes that are in the buffer.
func (c *conn) read(n int, err error) error {
	for {
		if n > 0 {
			read, bad := c.answer.Feed(c.buf[:n])
			switch {
			case bad != nil:
				return bad
			case c.answer.Done() && read < n:
				return errAnswer // more than was asked for
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
		n, err = c.wire.Read(c.buf)
	}
}

// open opens a connection for the request under way.
func (c *conn) open() (x target.Outcome, ok bool) {
	left := (record.Micros(c.bound.Load()) - c.now()).Duration()
	if left <= 0 {
		c.bound.Store(0)
		return target.Outcome{Failed: record.FailedTimeout}, false
	}
	dialer := net.Dialer{Timeout: left, KeepAlive: -1}
	if n := len(c.plan.Sources); n > 0 {
		dialer.LocalAddr = &net.TCPAddr{IP: c.plan.Sources[int(c.source.Add(1))%n]}
		dialer.Control = portLate
	}
	raw, err := dialer.Dial("tcp4", c.plan.Address)
	if err != nil {
		c.close()
		c.bound.Store(0)
		c.fruitless++
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EMFILE) {
			// This machine's fault, not that of what is loaded.
			c.noPort.Add(1)
			return target.Outcome{Lost: true}, false
		}
		return target.Outcome{Failed: kindOf(err)}, false
	}
	c.opened.Add(1)
	c.answered, c.fruitless = 0, 0
	c.times[Connected] = c.now() - c.intended
	c.hold(raw, raw)
	if c.plan.TLS == nil {
		return x, true
	}
	secure := tls.Client(raw, c.configs[c.host])
	if err := secure.Handshake(); err != nil {
		c.close()
		c.bound.Store(0)
		return target.Outcome{Failed: cmp.Or(ifTimeout(err), FailedTLS)}, false
	}
	if secure.ConnectionState().DidResume {
		c.resumed.Add(1)
	}
	c.times[Secured] = c.now() - c.intended
	c.hold(raw, secure)
	if !c.plan.HTTP2 {
		return x, true
	}
	if secure.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
		c.close()
		c.bound.Store(0)
		return target.Outcome{Failed: FailedAnswer}, false
	}
	if c.framed, err = new(http2.Transport).NewClientConn(secure); err != nil {
		c.close()
		c.bound.Store(0)
		return target.Outcome{Failed: kindOf(err)}, false
	}
	return x, true
}

// hold keeps a connection, so that it can be aborted.
func (c *conn) hold(raw, wire net.Conn) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.raw, c.wire = raw, wire
	if c.failed {
		_ = raw.SetDeadline(past())
	}
}

// close closes the connection, if there is one.
func (c *conn) close() {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.raw != nil {
		// A TLS connection's farewell is not waited for, nor sent: the answer is
		// there, or nothing more will come.
		c.raw.Close()
	}
	c.raw, c.wire, c.framed, c.failed = nil, nil, nil, false
}

// abort makes whatever is done with the connection fail.
func (c *conn) abort() {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.raw != nil {
		_ = c.raw.SetDeadline(past())
	}
	c.failed = c.raw == nil
}

// past is a deadline that is over.
func past() time.Time { return time.Unix(1, 0) }

// portLate has the port chosen when the connection is made, so that one can
// serve for many destinations.
func portLate(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) // without it there are fewer ports
	})
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

// kindOf is the kind of failure that an error is.
func kindOf(err error) string {
	switch {
	case ifTimeout(err) != "":
		return record.FailedTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return FailedRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return FailedReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return FailedClosed
	}
	return FailedAnswer
}
