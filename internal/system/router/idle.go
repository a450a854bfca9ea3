package router

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	opening     = 16              // idle connections that are opened at a time
	askedWithin = 5 * time.Second // for the opening of one
	againAfter  = 100 * time.Millisecond
	headBesides = 1 << 10 // bytes of a buffer that a half-sent head leaves free
	leastHead   = 64
)

// idlers are connections that are held beside the load.
type idlers struct {
	*deployment
	held atomic.Int64
}

// halfHead begins the head of a request, as long as a buffer of HAProxy takes.
func (s *idlers) halfHead(host string) string {
	head := fmt.Sprintf("%s / HTTP/1.1\r\nHost: %s\r\nX-Half: ", s.method, host)
	return head + strings.Repeat("h", max(s.router.Bufsize-s.router.Maxrewrite-headBesides-len(head), leastHead))
}

// hold keeps idle connections open, after half a request or a whole one, until ctx ends, and opens those
// again that HAProxy ends (timeout http-request).
func (s *idlers) hold(ctx context.Context) {
	if s.idle == 0 {
		return
	}
	places := make(chan struct{}, opening)
	secure, address := s.load().TLS, s.router.Plain
	if secure != nil {
		address = s.router.Secure
	}
	var all sync.WaitGroup
	for n := range s.idle {
		host := s.hosts[n%len(s.hosts)].Name
		all.Go(func() {
			for ctx.Err() == nil {
				places <- struct{}{}
				conn, err := s.open(ctx, address, secure, host)
				<-places
				if err == nil {
					s.held.Add(1)
					stop := context.AfterFunc(ctx, func() { conn.Close() })
					_, _ = io.Copy(io.Discard, conn) // until it is ended from either side
					stop()
					conn.Close()
					s.held.Add(-1)
					continue
				}
				select {
				case <-time.After(againAfter):
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
}

func (s *idlers) open(ctx context.Context, address string, secure *tls.Config, host string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, askedWithin)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("hold an idle connection: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	whole := conn
	if secure != nil {
		own := secure.Clone()
		own.ServerName, own.ClientSessionCache = host, nil
		whole = tls.Client(conn, own)
	}
	head := fmt.Sprintf("GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
	if s.idleAfter == afterHalf {
		head = s.halfHead(host)
	}
	if _, err := io.WriteString(whole, head); err != nil {
		conn.Close()
		return nil, fmt.Errorf("hold an idle connection: %w", err)
	}
	return whole, nil
}
