package faults

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// events passes a watch on, event by event, as the rules say.
func (p *Proxy) events(r *http.Response, of subject) io.ReadCloser {
	reader, writer := io.Pipe()
	w := &stream{
		proxy: p, of: of, upstream: r.Body, down: writer, more: make(chan struct{}, 1), closed: r.Request.Context().Done(),
		protobuf: strings.HasPrefix(r.Header.Get("Content-Type"), api.ProtobufType),
	}
	go w.read()
	go w.write()
	return &body{reader, r.Body}
}

// body ends both sides of a watch.
type body struct {
	*io.PipeReader
	upstream io.Closer
}

func (b *body) Close() error {
	b.PipeReader.Close()
	return b.upstream.Close()
}

// stream is one watch that passes. Read takes its messages from the API server
// and says what comes of them and when; write sends that.
type stream struct {
	proxy    *Proxy
	of       subject
	upstream io.Reader
	down     *io.PipeWriter
	protobuf bool
	closed   <-chan struct{}

	mu    sync.Mutex
	queue []message
	held  []byte // swapped with the next one
	more  chan struct{}
}

// message is a message with its time of sending.
type message struct {
	bytes []byte
	due   time.Time
	last  error // ends the watch, behind the bytes
}

// frame reads one message as it is on the wire.
func (w *stream) frame(r *bufio.Reader) ([]byte, error) {
	if !w.protobuf {
		return r.ReadBytes('\n')
	}
	head, err := r.Peek(4)
	if err != nil {
		return nil, err
	}
	whole := make([]byte, 4+int(binary.BigEndian.Uint32(head)))
	_, err = io.ReadFull(r, whole)
	return whole, err
}

// eventType returns the type of the event in a message.
func (w *stream) eventType(frame []byte) string {
	if !w.protobuf {
		return gjson.GetBytes(frame, "type").Str
	}
	var e metav1.WatchEvent
	if err := e.Unmarshal(frame[4:]); err != nil {
		return ""
	}
	return e.Type
}

func (w *stream) read() {
	r := bufio.NewReader(w.upstream)
	for {
		frame, err := w.frame(r)
		if err != nil {
			w.send(message{last: err})
			return
		}
		of := w.of
		of.event = w.eventType(frame)
		fault, _ := w.proxy.draw(atEvent, of)
		now := time.Now()
		switch fault.Kind {
		case drop:
		case cut:
			w.send(message{last: io.ErrUnexpectedEOF})
		case duplicate:
			w.send(message{bytes: frame}, message{bytes: frame})
		case late:
			w.send(message{bytes: frame, due: now.Add(fault.For)})
		case swap:
			if !w.hold(frame) {
				w.send(message{bytes: frame})
			}
		case oversized:
			w.send(message{bytes: w.oversized()})
		case garbage:
			for i := range frame[4:] {
				frame[4+i] ^= 0x5a
			}
			if !w.protobuf {
				frame = append(bytes.ReplaceAll(frame, []byte("\n"), []byte(" ")), '\n')
			}
			w.send(message{bytes: frame})
		case gone:
			w.send(message{bytes: w.gone(), last: io.EOF})
		case hang:
			w.send(message{due: now.Add(24 * time.Hour)})
		default:
			w.send(message{bytes: frame})
		}
	}
}

// hold keeps a message until the next one was sent, or a second has passed. It
// reports false where one is held already.
func (w *stream) hold(frame []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		return false
	}
	w.held = frame
	time.AfterFunc(time.Second, func() { w.send() })
	return true
}

// send puts messages into the queue, and what is held behind them.
func (w *stream) send(messages ...message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, messages...)
	if w.held != nil {
		w.queue = append(w.queue, message{bytes: w.held})
		w.held = nil
	}
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *stream) write() {
	for {
		w.mu.Lock()
		queue := w.queue
		w.queue = nil
		w.mu.Unlock()
		for _, m := range queue {
			if late := time.Until(m.due); late > 0 {
				select {
				case <-time.After(late):
				case <-w.closed:
					w.down.CloseWithError(io.ErrUnexpectedEOF)
					return
				}
			}
			_, err := w.down.Write(m.bytes)
			if err != nil || m.last != nil {
				w.down.CloseWithError(m.last)
				return
			}
		}
		if len(queue) == 0 {
			select {
			case <-w.more:
			case <-w.closed:
				w.down.CloseWithError(io.ErrUnexpectedEOF)
				return
			}
		}
	}
}

// oversized returns a message of more bytes than any object has.
func (w *stream) oversized() []byte {
	const size = 65 << 20
	if w.protobuf {
		return append(binary.BigEndian.AppendUint32(nil, size), make([]byte, size)...)
	}
	return append(append([]byte(`{"type":"MODIFIED","object":{"kind":"`), bytes.Repeat([]byte("x"), size)...), "\"}}\n"...)
}

// gone returns the event by which the API server ends a watch whose version is too
// old.
func (w *stream) gone() []byte {
	object := statusOf(http.StatusGone, "")
	// Neither encoding of a status can fail.
	if !w.protobuf {
		status, _ := json.Marshal(object)
		return append(append([]byte(`{"type":"ERROR","object":`), status...), "}\n"...)
	}
	status, _ := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), object)
	event := metav1.WatchEvent{Type: "ERROR", Object: runtime.RawExtension{Raw: status}}
	raw, _ := event.Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
}
