package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/portforward"
	dial "k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forward reaches one port of a pod through the API server, also one that listens within the pod alone.
// Nothing listens on this machine.
type Forward struct {
	dialer httpstream.Dialer
	port   int

	mu       sync.Mutex
	conn     httpstream.Connection // nil before the first dial, and once it has ended
	requests int
}

// Forward sends no request yet.
func (c *Client) Forward(namespace, pod string, port int) (*Forward, error) {
	at := c.Base.JoinPath("api/v1/namespaces", url.PathEscape(namespace), "pods", url.PathEscape(pod), "portforward")
	overWebsocket, err := dial.NewSPDYOverWebsocketDialerForStreaming(at, c.Config)
	if err != nil {
		return nil, fmt.Errorf("forward a port of pod %s/%s: %w", namespace, pod, err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		return nil, fmt.Errorf("forward a port of pod %s/%s: %w", namespace, pod, err)
	}
	// Older servers and proxies know SPDY alone.
	dialer := dial.NewFallbackDialerForStreaming(overWebsocket, spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at), func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	return &Forward{dialer: dialer, port: port}, nil
}

// Dial connects to the port. The connections share one to the API server.
func (f *Forward) Dial(ctx context.Context) (net.Conn, error) {
	type made struct {
		conn net.Conn
		err  error
	}
	done := make(chan made, 1)
	go func() { // its library knows no context
		conn, err := f.dial()
		done <- made{conn, err}
	}()
	select {
	case m := <-done:
		return m.conn, m.err
	case <-ctx.Done():
		go func() {
			if m := <-done; m.err == nil {
				m.conn.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

func (f *Forward) dial() (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		select {
		case <-f.conn.CloseChan():
			f.conn = nil
		default:
		}
	}
	if f.conn == nil {
		conn, _, err := f.dialer.Dial(portforward.PortForwardV1Name)
		if err != nil {
			return nil, err
		}
		f.conn = conn
	}
	f.requests++
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(f.port))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(f.requests))
	problems, err := f.conn.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	problems.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := f.conn.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	s := &forwarded{Stream: data, of: f.conn, problems: problems}
	go s.hear()
	return s, nil
}

// Close ends all connections.
func (f *Forward) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		f.conn.Close()
		f.conn = nil
	}
}

// forwarded is one connection to the port.
type forwarded struct {
	httpstream.Stream
	of       httpstream.Connection
	problems httpstream.Stream

	mu  sync.Mutex
	why error // the kubelet's
}

// hear waits for an error of the kubelet, and ends the connection with it.
func (s *forwarded) hear() {
	if text, err := io.ReadAll(io.LimitReader(s.problems, 1<<10)); err == nil && len(text) > 0 {
		s.mu.Lock()
		s.why = errors.New(string(text))
		s.mu.Unlock()
		_ = s.Stream.Reset()
	}
}

func (s *forwarded) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.why != nil {
		err = s.why
	}
	return n, err
}

// Close implements net.Conn. The library's own Close ends writing only.
func (s *forwarded) Close() error {
	err := s.Stream.Reset()
	s.of.RemoveStreams(s.Stream, s.problems)
	return err
}

// forwardedAddress names both ends.
type forwardedAddress struct{}

func (forwardedAddress) Network() string { return "portforward" }
func (forwardedAddress) String() string  { return "pod" }

func (*forwarded) LocalAddr() net.Addr              { return forwardedAddress{} }
func (*forwarded) RemoteAddr() net.Addr             { return forwardedAddress{} }
func (*forwarded) SetDeadline(time.Time) error      { return nil }
func (*forwarded) SetReadDeadline(time.Time) error  { return nil }
func (*forwarded) SetWriteDeadline(time.Time) error { return nil }
