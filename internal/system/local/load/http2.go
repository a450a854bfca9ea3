package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// framed is a connection of HTTP/2 with at most one request under way.
type framed struct {
	*http2.Framer
	wire    io.Writer
	out     bytes.Buffer // frames that are not sent yet
	encoder *hpack.Encoder
	decoder *hpack.Decoder
	block   bytes.Buffer // a request's headers
	stream  uint32
	status  int
	away    bool // it takes no more requests

	// What the other side takes: bytes of the connection and of a stream, and at
	// the begin of a stream, and of a frame.
	window, streamWindow, initial, frame int64
	taken                                uint32 // bytes of the connection that were not given back
}

const (
	// firstWindow is what a connection takes at first, RFC 9113 6.9.2.
	firstWindow = 65_535
	// wide is a window that an answer never fills.
	wide = 1<<31 - 1
	// mostStream is the last stream of a connection.
	mostStream = 1<<31 - 1
)

// newFramed begins HTTP/2 on a connection.
func newFramed(wire io.ReadWriter) *framed {
	f := &framed{wire: wire, window: firstWindow, initial: firstWindow, frame: 16 << 10, stream: ^uint32(0)}
	f.Framer = http2.NewFramer(&f.out, wire)
	f.SetReuseFrames()
	f.encoder = hpack.NewEncoder(&f.block)
	f.decoder = hpack.NewDecoder(4096, func(h hpack.HeaderField) {
		if h.Name == ":status" {
			f.status, _ = strconv.Atoi(h.Value) // 0 is no status
		}
	})
	f.out.WriteString(http2.ClientPreface)
	// A buffer does not fail.
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingEnablePush}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: wide})
	_ = f.WriteWindowUpdate(0, wide-firstWindow)
	return f
}

// flush sends what is not sent yet.
func (f *framed) flush() error {
	if f.out.Len() == 0 {
		return nil
	}
	_, err := f.wire.Write(f.out.Bytes())
	f.out.Reset()
	return err
}

// errStream is that of a stream which the other side refuses, and leaves the
// connection.
var errStream = errors.New("the stream was refused")

// exchange makes the request under way by HTTP/2, and tells of the answer as if it
// had been read.
func (c *conn) exchange() error {
	f := c.framed
	f.stream += 2
	f.status, f.streamWindow = 0, f.initial
	f.block.Reset()
	headers := []hpack.HeaderField{
		{Name: ":method", Value: c.asked.Method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: c.plan.Hosts[c.host].Name},
		{Name: ":path", Value: c.asked.Path},
	}
	for _, f := range c.asked.Fields {
		headers = append(headers, hpack.HeaderField{Name: strings.ToLower(f[0]), Value: f[1]})
	}
	if len(c.asked.Body) > 0 {
		headers = append(headers, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(c.asked.Body))})
	}
	for _, h := range headers {
		_ = f.encoder.WriteField(h)
	}
	for first := true; first || f.block.Len() > 0; first = false {
		part := f.block.Next(int(f.frame))
		if ends := f.block.Len() == 0; first {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.stream, BlockFragment: part, EndStream: len(c.asked.Body) == 0, EndHeaders: ends})
		} else {
			_ = f.WriteContinuation(f.stream, ends, part)
		}
	}
	left := int64(len(c.asked.Body))
	for c.answer.state != complete {
		if n := min(left, f.window, f.streamWindow, f.frame); n > 0 {
			left, f.window, f.streamWindow = left-n, f.window-n, f.streamWindow-n
			at := int64(len(c.asked.Body)) - left - n
			_ = f.WriteData(f.stream, left == 0, c.asked.Body[at:at+n])
			continue
		}
		if err := f.flush(); err != nil {
			return err
		}
		frame, err := f.ReadFrame()
		if err == nil {
			err = f.take(frame, &c.answer)
		}
		if err != nil {
			return err
		}
	}
	c.answer.Close = f.away || left > 0 || f.stream >= mostStream-2
	return f.flush()
}

// take takes in a frame.
func (f *framed) take(frame http2.Frame, a *Answer) error {
	h := frame.Header()
	ours := h.StreamID == f.stream
	a.started = a.started || ours
	switch frame := frame.(type) {
	case *http2.HeadersFrame:
		return f.headers(a, ours, frame.HeaderBlockFragment(), frame.HeadersEnded(), frame.StreamEnded())
	case *http2.DataFrame:
		if ours {
			a.body(frame.Data())
		}
		if f.taken += h.Length; f.taken >= wide/2 {
			_ = f.WriteWindowUpdate(0, f.taken)
			f.taken = 0
		}
		if ours && frame.StreamEnded() {
			a.state = complete
		}
	case *http2.SettingsFrame:
		if frame.IsAck() {
			return nil
		}
		_ = frame.ForeachSetting(func(s http2.Setting) error {
			switch s.ID {
			case http2.SettingInitialWindowSize:
				f.streamWindow += int64(s.Val) - f.initial
				f.initial = int64(s.Val)
			case http2.SettingMaxFrameSize:
				f.frame = int64(s.Val)
			case http2.SettingHeaderTableSize:
				f.encoder.SetMaxDynamicTableSize(min(s.Val, 4096))
			}
			return nil
		})
		return f.WriteSettingsAck()
	case *http2.PingFrame:
		if !frame.IsAck() {
			return f.WritePing(true, frame.Data)
		}
	case *http2.WindowUpdateFrame:
		switch h.StreamID {
		case 0:
			f.window += int64(frame.Increment)
		case f.stream:
			f.streamWindow += int64(frame.Increment)
		}
	case *http2.GoAwayFrame:
		if f.away = true; frame.LastStreamID < f.stream {
			return fmt.Errorf("the connection takes no more requests: %w: %w", errNotTaken, io.EOF)
		}
	case *http2.RSTStreamFrame:
		switch {
		case ours && frame.ErrCode == http2.ErrCodeRefusedStream:
			return fmt.Errorf("%w: %w", errStream, errNotTaken)
		case ours:
			return fmt.Errorf("the answer ends with %v: %w", frame.ErrCode, syscall.ECONNRESET)
		}
	}
	return nil
}

// headers takes in a block of headers, of which more frames may follow.
func (f *framed) headers(a *Answer, ours bool, part []byte, ended, last bool) error {
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
	if ours && f.status >= 200 {
		a.Status = f.status
	}
	if ours && last {
		a.state = complete
	}
	return nil
}
