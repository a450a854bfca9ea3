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
)

// LoginError says that the login program gave no credentials: nothing was sent to the server.
type LoginError struct {
	Program string
	Err     error // has the exit code, if any
}

func (e *LoginError) Error() string {
	text := strings.TrimPrefix(e.Err.Error(), "getting credentials: ")
	return fmt.Sprintf("log in by %s: %s", e.Program, strings.TrimPrefix(text, "exec: executable "+e.Program+" "))
}

func (e *LoginError) Unwrap() error { return e.Err }

// login is the outermost transport of a client with a login program. Client-go runs that for each request
// without credentials, and waits for its end even when the request is cancelled.
type login struct {
	wrapped
	*logins
}

// logins holds the login attempts that all transports of a client share.
type logins struct {
	client  *Client
	program string
	turn    chan struct{}              // holds the one request that gets credentials
	failed  atomic.Pointer[LoginError] // the last failure; nil when the program may run
}

// loginAgain is the pause before a failed program runs again, if it ever gave credentials.
const loginAgain = 10 * time.Second

// over returns a transport that logs in, or next itself without a program.
func (l *logins) over(next http.RoundTripper) http.RoundTripper {
	if l == nil {
		return next
	}
	return &login{wrapped{next}, l}
}

func (l *logins) fail(err error) *LoginError {
	failed := &LoginError{l.program, err}
	l.failed.Store(failed)
	if l.client.Answers.Load() > 0 {
		time.AfterFunc(loginAgain, func() { l.failed.CompareAndSwap(failed, nil) })
	}
	return failed
}

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

// unended says that the program still ran when a request had waited long enough.
func (l *login) unended(err error) error {
	return &LoginError{l.program, fmt.Errorf("it has not ended: %w", err)}
}

// beginsKey is the context key of a function that is called just before a request is sent.
type beginsKey struct{}

// ProxyError says that a request through a proxy failed.
type ProxyError struct {
	Proxy string // its address, without a password
	Err   error
}

func (e *ProxyError) Error() string { return fmt.Sprintf("through the proxy %s: %v", e.Proxy, e.Err) }

func (e *ProxyError) Unwrap() error { return e.Err }

// Timeout reports whether the cause was a timeout, for url.Error.
func (e *ProxyError) Timeout() bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.Err)
	return ok && timeout.Timeout()
}

// route is the innermost transport: it sends the request.
type route struct {
	wrapped
	proxy func(*http.Request) (*url.URL, error)
}

// RoundTrip implements http.RoundTripper.
func (t route) RoundTrip(r *http.Request) (*http.Response, error) {
	if begins, ok := r.Context().Value(beginsKey{}).(func()); ok {
		begins()
	}
	response, err := t.next.RoundTrip(r)
	if err == nil || r.Context().Err() != nil {
		return response, err
	}
	if proxy, _ := t.proxy(r); proxy != nil {
		err = &ProxyError{proxy.Redacted(), err}
	}
	return nil, err
}
