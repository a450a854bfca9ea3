package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// LoginError says that the program by which a kubeconfig logs in gave no credentials.
// Nothing was sent to the server.
type LoginError struct {
	Program string
	Err     error // with its exit code, where it had one
}

// Error implements error.
func (e *LoginError) Error() string {
	text := strings.TrimPrefix(e.Err.Error(), "getting credentials: ")
	return fmt.Sprintf("log in by %s: %s", e.Program, strings.TrimPrefix(text, "exec: executable "+e.Program+" "))
}

// Unwrap gives the cause.
func (e *LoginError) Unwrap() error { return e.Err }

// login is the outermost transport of a client whose kubeconfig logs in by a program.
// Client-go runs that for each request without credentials, whatever it said before,
// and waits for its end whatever becomes of the request.
type login struct {
	next http.RoundTripper
	*logins
}

// logins are the attempts to log in that all transports of a client share.
type logins struct {
	client  *Client
	program string
	turn    chan struct{}              // has room for the one request that asks for credentials
	failed  atomic.Pointer[LoginError] // the last attempt; nil where it went well, or may be made again
}

// loginAgain is how long a program that once gave credentials, and then failed, is not
// run again. One that never gave any is not run again at all.
const loginAgain = 10 * time.Second

// newLogins are those of a client, nil for one that needs no such program.
func newLogins(c *Client) *logins {
	if c.Config.ExecProvider == nil {
		return nil
	}
	return &logins{client: c, program: c.Config.ExecProvider.Command, turn: make(chan struct{}, 1)}
}

// over is a transport that logs in; without a program it is next itself.
func (l *logins) over(next http.RoundTripper) http.RoundTripper {
	if l == nil {
		return next
	}
	return &login{next, l}
}

// fail remembers that the program gave nothing.
func (l *logins) fail(err error) *LoginError {
	failed := &LoginError{l.program, err}
	l.failed.Store(failed)
	if l.client.Answers.Load() > 0 {
		time.AfterFunc(loginAgain, func() { l.failed.CompareAndSwap(failed, nil) })
	}
	return failed
}

// answered is what came of a request.
type answered struct {
	response *http.Response
	err      error
}

// RoundTrip implements http.RoundTripper.
func (l *login) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	patience := time.NewTimer(cmp.Or(l.client.Patience, Patience))
	defer patience.Stop()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, l.unended(ctx.Err())
	case <-patience.C:
		return nil, l.unended(context.DeadlineExceeded)
	}
	if failed := l.failed.Load(); failed != nil {
		<-l.turn
		return nil, failed
	}
	var sent atomic.Bool
	begins := func() {
		if sent.CompareAndSwap(false, true) {
			<-l.turn
		}
	}
	done := make(chan answered, 1)
	go func() {
		response, err := l.next.RoundTrip(r.WithContext(context.WithValue(ctx, beginsKey{}, begins)))
		if err != nil && !sent.Load() {
			err = l.fail(err)
		}
		begins()
		done <- answered{response, err}
	}()
	for {
		var failed error
		select {
		case a := <-done:
			return a.response, a.err
		case <-patience.C:
			if sent.Load() {
				continue
			}
			failed = l.unended(context.DeadlineExceeded)
		case <-ctx.Done():
			if failed = ctx.Err(); !sent.Load() {
				failed = l.unended(failed)
			}
		}
		go func() {
			if a := <-done; a.err == nil {
				a.response.Body.Close()
			}
		}()
		return nil, failed
	}
}

// unended says that the program had not ended when a request had waited for it long
// enough.
func (l *login) unended(err error) error {
	return &LoginError{l.program, fmt.Errorf("it has not ended: %w", err)}
}

// WrappedRoundTripper implements net.RoundTripperWrapper, for what looks below.
func (l *login) WrappedRoundTripper() http.RoundTripper { return l.next }

// CloseIdleConnections is what http.Client asks of its transport.
func (l *login) CloseIdleConnections() { closeIdle(l.next) }

// beginsKey is that of a function that is called when a request is about to be sent.
type beginsKey struct{}

// ProxyError says that a request failed on its way through a proxy.
type ProxyError struct {
	Proxy string // its address, without a password
	Err   error
}

// Error implements error.
func (e *ProxyError) Error() string { return fmt.Sprintf("through the proxy %s: %v", e.Proxy, e.Err) }

// Unwrap gives the cause.
func (e *ProxyError) Unwrap() error { return e.Err }

// Timeout reports whether the cause was one, as url.Error asks.
func (e *ProxyError) Timeout() bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.Err)
	return ok && timeout.Timeout()
}

// route is the innermost transport: what it is given is sent.
type route struct {
	http.RoundTripper
	proxy func(*http.Request) (*url.URL, error)
}

// newRoute is the route of a configuration: by its own proxy, or else by that of the
// environment.
func newRoute(config *rest.Config, next http.RoundTripper) route {
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return route{next, proxy}
}

// RoundTrip implements http.RoundTripper.
func (t route) RoundTrip(r *http.Request) (*http.Response, error) {
	if begins, ok := r.Context().Value(beginsKey{}).(func()); ok {
		begins()
	}
	response, err := t.RoundTripper.RoundTrip(r)
	if err == nil || r.Context().Err() != nil {
		return response, err
	}
	if proxy, _ := t.proxy(r); proxy != nil {
		err = &ProxyError{proxy.Redacted(), err}
	}
	return nil, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper, for what looks below.
func (t route) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// CloseIdleConnections is what http.Client asks of its transport.
func (t route) CloseIdleConnections() { closeIdle(t.RoundTripper) }
