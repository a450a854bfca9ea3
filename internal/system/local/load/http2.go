package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// framed is an HTTP/2 connection.
type framed struct {
	*http2.Framer
	wire    io.Writer
	out     bytes.Buffer // unsent frames
	encoder *hpack.Encoder
	decoder *hpack.Decoder
	block   bytes.Buffer // a request's headers
	last    uint32       // the last stream
	streams []*exchange  // in flight
	status  int          // of the present block of headers
	away    bool         // no more requests are accepted
	within  int64        // bytes of an incomplete frame

	// The other side's bounds: streams at once, bytes of the connection, of a new stream, and of a frame.
	most                   uint32
	window, initial, frame int64
	taken                  uint32 // received bytes without a window update
}

// exchange is a request on a stream, with its answer.
type exchange struct {
	stream uint32
	body   []byte // unsent
	window int64  // bytes that may be sent
	answer *Answer
	err    error // of the stream, not of the connection
}

func (x *exchange) over() bool { return x.err != nil || x.answer.state == complete }

const (
	firstWindow = 65_535    // a connection's first window, RFC 9113 6.9.2
	wide        = 1<<31 - 1 // a window that an answer never fills
	mostStream  = 1<<31 - 1 // last possible stream of a connection
)

func newFramed(wire io.ReadWriter) *framed {
	f := &framed{wire: wire, window: firstWindow, initial: firstWindow, frame: 16 << 10, last: ^uint32(0), most: ^uint32(0)}
	f.Framer = http2.NewFramer(&f.out, counted{wire, &f.within})
	f.SetReuseFrames()
	f.encoder = hpack.NewEncoder(&f.block)
	f.decoder = hpack.NewDecoder(4096, func(h hpack.HeaderField) {
		if h.Name == ":status" {
			f.status, _ = strconv.Atoi(h.Value) // 0 is not a status
		}
	})
	f.out.WriteString(http2.ClientPreface)
	// Writes to a buffer do not fail.
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingEnablePush}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: wide})
	_ = f.WriteWindowUpdate(0, wide-firstWindow)
	return f
}

// counted counts the bytes read.
type counted struct {
	io.Reader
	n *int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += int64(n)
	return n, err
}

func (f *framed) flush() error {
	if f.out.Len() == 0 {
		return nil
	}
	_, err := f.wire.Write(f.out.Bytes())
	f.out.Reset()
	return err
}

// errStream says that the other side refuses a stream, but keeps the connection.
var errStream = errors.New("the stream was refused")

// begin sends the client's request on a new stream.
func (f *framed) begin(c *conn) *exchange {
	f.last += 2
	x := &exchange{stream: f.last, body: c.asked.Body, window: f.initial, answer: &c.answer}
	f.streams = append(f.streams, x)
	f.block.Reset()
	headers := []hpack.HeaderField{
		{Name: ":method", Value: c.asked.Method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: c.plan.Hosts[c.host].Name},
		{Name: ":path", Value: c.asked.Path},
	}
	for _, f := range c.asked.Fields {
		headers = append(headers, hpack.HeaderField{Name: strings.ToLower(f[0]), Value: f[1]})
	}
	if len(x.body) > 0 {
		headers = append(headers, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(x.body))})
	}
	for _, h := range headers {
		_ = f.encoder.WriteField(h)
	}
	for first := true; first || f.block.Len() > 0; first = false {
		part := f.block.Next(int(f.frame))
		if ends := f.block.Len() == 0; first {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: x.stream, BlockFragment: part, EndStream: len(x.body) == 0, EndHeaders: ends})
		} else {
			_ = f.WriteContinuation(x.stream, ends, part)
		}
	}
	return x
}

func (f *framed) used() bool { return f.away || f.last >= mostStream-2 && f.last != ^uint32(0) }

// end forgets an exchange. It does not send the rest of a body that is no longer wanted.
func (f *framed) end(x *exchange) {
	if len(x.body) > 0 || !x.over() {
		_ = f.WriteRSTStream(x.stream, http2.ErrCodeCancel)
	}
	f.streams = slices.DeleteFunc(f.streams, func(y *exchange) bool { return y == x })
}

// advance sends pending frames, and reads the next one.
func (f *framed) advance() error {
	for _, x := range f.streams {
		for !x.over() {
			n := min(int64(len(x.body)), f.window, x.window, f.frame)
			if n <= 0 {
				break
			}
			f.window, x.window = f.window-n, x.window-n
			_ = f.WriteData(x.stream, n == int64(len(x.body)), x.body[:n])
			x.body = x.body[n:]
		}
	}
	if err := f.flush(); err != nil {
		return err
	}
	f.within = 0
	frame, err := f.ReadFrame()
	if err != nil {
		return err
	}
	return f.take(frame)
}

// exchange makes the present request by HTTP/2, and sets the answer as if it had been read.
func (c *conn) exchange() error {
	f := c.framed
	x := f.begin(c)
	for !x.over() {
		if err := f.advance(); err != nil {
			return err
		}
	}
	c.answer.Close = len(x.body) > 0 || f.used()
	f.end(x)
	if x.err != nil {
		return x.err
	}
	return f.flush()
}

// take handles a frame. An error is one of the connection.
func (f *framed) take(frame http2.Frame) error {
	h := frame.Header()
	var x *exchange // nil for other streams
	if i := slices.IndexFunc(f.streams, func(x *exchange) bool { return x.stream == h.StreamID }); i >= 0 {
		x = f.streams[i]
		x.answer.started = true
	}
	switch frame := frame.(type) {
	case *http2.HeadersFrame:
		return f.headers(x, frame.HeaderBlockFragment(), frame.HeadersEnded(), frame.StreamEnded())
	case *http2.DataFrame:
		if x != nil {
			x.answer.body(frame.Data())
		}
		if f.taken += h.Length; f.taken >= wide/2 {
			_ = f.WriteWindowUpdate(0, f.taken)
			f.taken = 0
		}
		if x != nil && frame.StreamEnded() {
			x.answer.state = complete
		}
	case *http2.SettingsFrame:
		return f.settings(frame)
	case *http2.PingFrame:
		if !frame.IsAck() {
			return f.WritePing(true, frame.Data)
		}
	case *http2.WindowUpdateFrame:
		if h.StreamID == 0 {
			f.window += int64(frame.Increment)
		} else if x != nil {
			x.window += int64(frame.Increment)
		}
	case *http2.GoAwayFrame:
		f.away = true
		for _, x := range f.streams {
			if frame.LastStreamID < x.stream && !x.over() {
				x.err = fmt.Errorf("the connection takes no more requests: %w: %w", errNotTaken, io.EOF)
			}
		}
	case *http2.RSTStreamFrame:
		switch {
		case x == nil || x.over():
		case frame.ErrCode == http2.ErrCodeRefusedStream:
			x.err = fmt.Errorf("%w: %w", errStream, errNotTaken)
		default:
			x.err = fmt.Errorf("the answer ends with %v: %w", frame.ErrCode, syscall.ECONNRESET)
		}
	}
	return nil
}

// settings applies the other side's bounds.
func (f *framed) settings(frame *http2.SettingsFrame) error {
	if frame.IsAck() {
		return nil
	}
	_ = frame.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingInitialWindowSize:
			for _, x := range f.streams {
				x.window += int64(s.Val) - f.initial
			}
			f.initial = int64(s.Val)
		case http2.SettingMaxFrameSize:
			f.frame = int64(s.Val)
		case http2.SettingHeaderTableSize:
			f.encoder.SetMaxDynamicTableSize(min(s.Val, 4096))
		case http2.SettingMaxConcurrentStreams:
			f.most = max(s.Val, 1)
		}
		return nil
	})
	return f.WriteSettingsAck()
}

// headers reads a block of headers, which may continue in further frames.
func (f *framed) headers(x *exchange, part []byte, ended, last bool) error {
	f.status = 0
	for {
		if _, err := f.decoder.Write(part); err != nil {
			return fmt.Errorf("%w: %w", errAnswer, err)
		}
		if ended {
			break
		}
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		more, ok := frame.(*http2.ContinuationFrame)
		if !ok {
			return errAnswer
		}
		part, ended = more.HeaderBlockFragment(), more.HeadersEnded()
	}
	if err := f.decoder.Close(); err != nil {
		return fmt.Errorf("%w: %w", errAnswer, err)
	}
	if x != nil && f.status >= 200 {
		x.answer.Status = f.status
	}
	if x != nil && last {
		x.answer.state = complete
	}
	return nil
}

// manyStreams is a closed loop of several requests on an HTTP/2 connection, as many as the server accepts.
func (c *conn) manyStreams() {
	slots := make([]*slot, c.plan.Streams)
	for i := range slots {
		slots[i] = &slot{conn: &conn{loop: c.loop, fd: -1, rng: c.rng, times: make(map[string]record.Micros, 3)}}
	}
	for {
		pending := slices.ContainsFunc(slots, func(s *slot) bool { return s.pending })
		active := c.framed != nil && len(c.framed.streams) > 0
		switch {
		case !active && (c.cut.Load() || !pending && c.last >= c.End()):
			for _, s := range slots {
				if s.pending {
					s.bound = 0
					s.end(streams.Outcome{Lost: true}) // cut off
				}
			}
			c.bound = 0
			c.live--
			return
		case c.framed == nil:
			if !c.openFor(slots) && c.fruitless > 1 {
				c.pause(record.MicrosOf(fruitlessPause))
			}
		default:
			if c.send(slots); len(c.framed.streams) == 0 {
				c.close() // it accepts no more requests
			} else {
				c.advance(slots)
			}
		}
	}
}

// slot is a place for a request on a connection.
type slot struct {
	*conn
	exchange *exchange // nil without one
	pending  bool      // has an unsent request
}

// openFor opens a connection for the first pending request, or a new one.
func (c *conn) openFor(slots []*slot) (ok bool) {
	first := slots[0]
	for _, s := range slots {
		if s.pending {
			first = s
			break
		}
	}
	if !first.pending {
		first.begin(c.tick())
		first.sent(first.intended, false, 0)
		first.pending = true
	}
	c.begin(first.intended)
	c.bound, c.host = first.bound, first.host
	x, ok := c.open()
	if !ok {
		first.pending, first.bound = false, 0
		first.end(x)
		return false
	}
	first.times[Connected], first.times[Secured] = c.times[Connected], c.times[Secured]
	return true
}

// send sends requests in all free places, first those that were not taken in before.
func (c *conn) send(slots []*slot) {
	for i := range 2 * len(slots) {
		s, first := slots[i%len(slots)], i < len(slots)
		over := c.cut.Load() || c.last >= c.End()
		if s.exchange != nil || uint32(len(c.framed.streams)) >= c.framed.most || c.framed.used() || first && !s.pending || !s.pending && over {
			continue
		}
		if !s.pending {
			s.begin(c.tick())
			s.sent(s.intended, false, 0)
		}
		s.pending = false
		if s.host != c.host {
			// A TLS connection is for one host.
			s.host = c.host
			s.asked = &c.requests[s.host][c.choosers[s.host].draw(c.rng)]
			s.answer.Reset(s.asked.want, s.asked.Method == "HEAD")
		}
		s.exchange = c.framed.begin(s.conn)
	}
}

// advance reads a frame, and ends the requests that it completes.
func (c *conn) advance(slots []*slot) {
	c.bound = never
	for _, s := range slots {
		if s.exchange != nil {
			c.bound = min(c.bound, s.bound)
		}
	}
	c.nextBound = min(c.nextBound, c.bound)
	c.aborted = false
	f := c.framed
	err := f.advance()
	c.tick()
	if errors.Is(err, os.ErrDeadlineExceeded) && f.within == 0 && c.abortAt.Load() == 0 {
		// Between two frames the connection can go on for the others.
		for _, s := range slots {
			if s.exchange != nil && s.bound <= c.last {
				s.over(c, os.ErrDeadlineExceeded)
			}
		}
		return
	}
	for _, s := range slots {
		switch {
		case s.exchange == nil:
		case s.exchange.over():
			s.over(c, s.exchange.err)
		case err != nil:
			s.over(c, err)
		}
	}
	if err != nil {
		c.close()
	}
}

// over ends the request of a place, or makes it pending again.
func (s *slot) over(c *conn, err error) {
	c.framed.end(s.exchange)
	s.exchange, s.answered = nil, c.answered
	x, again := s.outcome(err)
	if s.pending = again; again {
		return
	}
	if err == nil {
		c.answered++
	}
	s.end(x)
}
