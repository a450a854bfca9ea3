package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Patience is how long a request is made again, through answers and failures that
// pass: the bound of one that is never answered, too.
const Patience = RequestTimeout

// silentError says that a request was not answered for as long as it was made
// again. It is a timeout of the network's.
type silentError struct {
	after time.Duration
	last  error
}

func (e *silentError) Error() string {
	return fmt.Sprintf("no answer for %v (%v)", e.after.Round(100*time.Millisecond), e.last)
}

// Timeout implements net.Error.
func (e *silentError) Timeout() bool { return true }

// Temporary implements net.Error.
func (e *silentError) Temporary() bool { return false }

// Patiently makes attempts at a request until one is answered for good, it fails
// for good, or the patience is over: it is what all requests share but those of the
// load, which count each attempt. Everything that is asked so is safe to repeat: a
// creation whose answer was lost is refused the second time, by its name, and who
// made it looks whose that is.
func (c *Client) Patiently(ctx context.Context, patience time.Duration, attempt func(context.Context) (Reply, error)) (Reply, error) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pause := FirstPause
	var last error // that is no mere end of the patience
	looked := false
	for {
		r, err := attempt(bounded)
		if failed := cmp.Or(err, r.Err()); last == nil || bounded.Err() == nil {
			last = failed
		}
		switch {
		case ctx.Err() != nil && err != nil:
			return Reply{}, context.Cause(ctx)
		case err == nil && !r.Transient() && !r.Overtaken():
			return r, nil
		case err != nil && c.hopeless(err):
			return Reply{}, err
		}
		if name := r.failedWebhook(); name != "" && !looked {
			looked = true
			if dead := c.deadWebhook(bounded, name, last); dead != nil {
				return r, dead
			}
		}
		switch {
		case ctx.Value(onceKey{}) != nil:
			return r, err
		}
		if err == nil {
			pause = max(pause, min(r.RetryAfter(), longestPause))
		}
		if Sleep(bounded, pause) {
			pause = min(2*pause, LastPause)
			continue
		}
		switch {
		case ctx.Err() != nil:
			return Reply{}, context.Cause(ctx)
		case err != nil:
			return Reply{}, &silentError{patience, last}
		}
		return r, nil
	}
}

// onceKey marks a context in which requests are made once.
type onceKey struct{}

// once is ctx for requests that are made once: their failure is told.
func once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

// longestPause bounds what a server may ask for with Retry-After.
const longestPause = 30 * time.Second

// hopeless reports whether an attempt failed as the next one would: the server is not
// who it should be, its answer is too large, or nothing was ever answered and what failed
// is no accident of the network.
func (c *Client) hopeless(err error) bool {
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return true
	}
	if _, is := errors.AsType[*LargeError](err); is {
		return true
	}
	return c.Answers.Load() == 0 && !accident(err)
}

// accident reports whether a network fails so now and then: a connection breaks, or an
// answer does not come in time. Nobody there, no such name, a proxy that refuses, no
// login, and whoever speaks another protocol are none.
func accident(err error) bool {
	if _, is := errors.AsType[*LoginError](err); is {
		return false
	}
	if op, is := errors.AsType[*net.OpError](err); is && (op.Op == "dial" || op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks")) {
		return false
	}
	if _, is := errors.AsType[*net.DNSError](err); is {
		return false
	}
	var network net.Error
	return errors.As(err, &network) && network.Timeout() || slices.ContainsFunc(accidents(), func(a error) bool { return errors.Is(err, a) })
}

// accidents are the ways in which a connection breaks.
func accidents() []error {
	return []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed, context.DeadlineExceeded, context.Canceled}
}

// patient is the transport of requests that the API's own types make.
type patient struct {
	client *Client
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p *patient) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasSuffix(request.URL.Path, "/log") {
		return p.next.RoundTrip(request) // a stream
	}
	var response *http.Response
	r, err := p.client.Patiently(request.Context(), cmp.Or(p.client.Patience, Patience), func(ctx context.Context) (r Reply, err error) {
		again, err := clone(ctx, request)
		if err != nil {
			return r, err
		}
		if response, err = p.next.RoundTrip(again); err != nil {
			return r, err
		}
		defer response.Body.Close()
		p.client.Answers.Add(1)
		body, err := io.ReadAll(response.Body)
		if err == nil && crowded(response.Header.Get("Content-Type"), body) {
			err = &LargeError{request.URL.Path, fmt.Sprintf("has more than %d values", maxValues)}
		}
		return Reply{response.StatusCode, body, response.Header, creates(request)}, err
	})
	if err != nil {
		return nil, err
	}
	// The Kubernetes client makes a request again, too, where it is told when.
	response.Header.Del("Retry-After")
	response.Body = io.NopCloser(bytes.NewReader(r.Body))
	return response, nil
}

// clone is a request to be sent once more.
func clone(ctx context.Context, request *http.Request) (*http.Request, error) {
	again := request.Clone(ctx)
	if request.Body != nil && request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	return again, nil
}

// Send sends a request and reads its answer into buf, patiently: an error or an
// answer that passes is waited out.
func (c *Client) Send(request *http.Request, buf *bytes.Buffer) (Reply, error) {
	return c.sendFor(cmp.Or(c.Patience, Patience), request, buf, 0)
}

// SendFor is Send with a patience of its own.
func (c *Client) SendFor(patience time.Duration, request *http.Request, buf *bytes.Buffer) (Reply, error) {
	return c.sendFor(patience, request, buf, 0)
}

// sendFor reads no more than attempt does.
func (c *Client) sendFor(patience time.Duration, request *http.Request, buf *bytes.Buffer, most int64) (Reply, error) {
	return c.Patiently(request.Context(), patience, func(ctx context.Context) (Reply, error) {
		again, err := clone(ctx, request)
		if err != nil {
			return Reply{}, err
		}
		return c.attempt(again, buf, most)
	})
}
