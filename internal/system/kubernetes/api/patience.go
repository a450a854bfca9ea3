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

// Patience bounds the retries of a request after answers and failures that may pass.
const Patience = RequestTimeout

// silentError is a network timeout: no attempt was answered until the patience was over.
type silentError struct {
	after time.Duration
	last  error
}

func (e *silentError) Error() string {
	return fmt.Sprintf("no answer for %v (%v)", e.after.Round(100*time.Millisecond), e.last)
}

func (e *silentError) Timeout() bool { return true }

func (e *silentError) Temporary() bool { return false }

// Patiently repeats attempts at a request until one is answered, fails for good, or the patience is over.
// The load's requests do not use it. The others are safe to repeat: a second creation is refused because
// of its name, and the caller looks whose object that is.
func (c *Client) Patiently(ctx context.Context, patience time.Duration, attempt func(context.Context) (Reply, error)) (Reply, error) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pause := FirstPause
	var last error // not just the end of the patience
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
		if ctx.Value(onceKey{}) != nil {
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

// onceKey marks contexts whose requests are not repeated.
type onceKey struct{}

func once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

const longestPause = 30 * time.Second // bounds the server's Retry-After

// hopeless reports whether the next attempt would fail as well: by a wrong certificate, a too large
// answer, or no answer ever, unless by an accident of the network.
func (c *Client) hopeless(err error) bool {
	return isA[*tls.CertificateVerificationError](err) || isA[*LargeError](err) || c.Answers.Load() == 0 && !accident(err)
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// accident reports whether networks fail so now and then: connections break, or answers are late. Refused
// connections, unknown names, proxies, failed logins and foreign protocols are no accidents.
func accident(err error) bool {
	op, is := errors.AsType[*net.OpError](err)
	if is && (op.Op == "dial" || op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks")) || isA[*LoginError](err) || isA[*net.DNSError](err) {
		return false
	}
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return true
	}
	broken := []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed, context.DeadlineExceeded, context.Canceled}
	return slices.ContainsFunc(broken, func(a error) bool { return errors.Is(err, a) })
}

// patient is the transport of client-go's typed client.
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
	// client-go would repeat the request as well, if this header said when.
	response.Header.Del("Retry-After")
	response.Body = io.NopCloser(bytes.NewReader(r.Body))
	return response, nil
}

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

// Send sends a request and reads its answer into buf, again after passing errors and answers.
func (c *Client) Send(request *http.Request, buf *bytes.Buffer) (Reply, error) {
	return c.SendFor(cmp.Or(c.Patience, Patience), request, buf, 0)
}

// SendFor calls Send with its own patience, and reads at most one byte beyond most, unless that is 0.
func (c *Client) SendFor(patience time.Duration, request *http.Request, buf *bytes.Buffer, most int64) (Reply, error) {
	return c.Patiently(request.Context(), patience, func(ctx context.Context) (Reply, error) {
		again, err := clone(ctx, request)
		if err != nil {
			return Reply{}, err
		}
		return c.attempt(again, buf, most)
	})
}
