package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/streaming/pkg/httpstream"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/target/local/fio"
)

// How servers are called: how often, and how long a call may take.
const (
	probeInterval = 250 * time.Millisecond
	probePatience = time.Second
	// Through the API server a call passes three further connections, each with a
	// handshake. It does not bound such calls itself, as long-running ones.
	forwardPatience   = 3 * time.Second
	forwardsPerSecond = 100
	forwardsAtOnce    = 200
)

// What is told of calls, besides what came of them.
const (
	silence  = "time without an answer"
	answered = "call that was answered"
	lateness = "answer seen late by at most"
)

// told are the names of the times that calls of a probe tell of.
func told(p *described.Probe) []string {
	switch {
	case p == nil || p.FIO != "":
		return nil
	case p.Keep:
		return []string{answered, lateness, silence}
	}
	return []string{answered, lateness}
}

// calls reach the servers of objects, from this machine or through the API server.
type calls struct {
	client  *api.Client
	clock   *record.Clock
	probing context.Context // ends with the watches
	forward atomic.Bool     // through the API server
	rate    flowcontrol.RateLimiter
	room    chan struct{}
}

func newCalls(common *prepared.Run) *calls {
	return &calls{client: common.Client, clock: common.Clock, rate: flowcontrol.NewTokenBucketRateLimiter(forwardsPerSecond, forwardsPerSecond), room: make(chan struct{}, forwardsAtOnce)}
}

// open connects to the server of a probe, for as long as patience lasts, and says
// when it began to.
func (c *calls) open(p observe.Probe, address string, patience time.Duration) (conn net.Conn, began record.Micros, err error) {
	through := c.forward.Load()
	if through {
		if err := c.rate.Wait(c.probing); err != nil {
			return nil, c.clock.Now(), err
		}
		select {
		case c.room <- struct{}{}:
		case <-c.probing.Done():
			return nil, c.clock.Now(), context.Cause(c.probing)
		}
		defer func() { <-c.room }()
		patience = max(patience, forwardPatience)
	}
	began = c.clock.Now()
	ctx, cancel := context.WithTimeout(c.probing, patience)
	defer cancel()
	if through {
		conn, err = forward(ctx, c.client, p.Server, p.Port)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, began, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(deadline)
	}
	return conn, began, err
}

// Subresources is the group in which KubeVirt serves what is done with machines.
const Subresources = "subresources.kubevirt.io"

// forward connects to a port of a virtual machine, "namespace/name", through the
// API server, as virtctl does. An answer other than a connection is an APIStatus.
func forward(ctx context.Context, c *api.Client, machine string, port int) (net.Conn, error) {
	namespace, name, _ := strings.Cut(machine, "/")
	request, err := c.Request(ctx, http.MethodGet, fmt.Sprintf("/apis/%s/v1/namespaces/%s/virtualmachineinstances/%s/portforward/%d/tcp", Subresources, namespace, name, port), nil, "", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json") // what a refusal is to be told in
	transport, made, err := websocket.RoundTripperFor(c.Config)
	if err != nil {
		return nil, err
	}
	conn, err := websocket.Negotiate(transport, made, request, "plain.kubevirt.io")
	if refused, is := errors.AsType[*httpstream.UpgradeFailureError](err); is {
		return nil, refused.Cause
	} else if err != nil {
		return nil, err
	}
	return portforward.NewTunnelingConnection("client", conn), nil
}

// hears calls a server: nil is that it took the connection and began with the
// banner. It says when the call began.
func (c *calls) hears(p observe.Probe, address string) (began record.Micros, err error) {
	got := make([]byte, len(p.Banner))
	if to, notIP := netip.ParseAddrPort(address); notIP == nil && to.Addr().Is4() && p.Banner != "" && !c.forward.Load() {
		began = c.clock.Now()
		err = c.greeting(to, got, probePatience)
	} else {
		var conn net.Conn
		if conn, began, err = c.open(p, address, probePatience); err != nil {
			return began, err
		}
		defer conn.Close()
		_, err = io.ReadFull(conn, got)
	}
	if err == nil && string(got) != p.Banner {
		err = fmt.Errorf("it begins with %q", got)
	}
	return began, err
}

// greeting fills got with what a server begins with. Machines that boot are
// called thousands of times a second and mostly refuse at once: a bare socket
// that is looked at after a moment takes half the CPU of net's, which asks the
// system thrice as much and waits twice. Where nothing has come by then, it waits
// as any file does.
func (c *calls) greeting(from netip.AddrPort, got []byte, patience time.Duration) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(from.Port()), Addr: from.Addr().As4()}); err != nil && err != syscall.EINPROGRESS {
		return errors.Join(os.NewSyscallError("connect", err), syscall.Close(fd))
	}
	time.Sleep(time.Millisecond)
	n, err := syscall.Read(fd, got)
	if n = max(n, 0); n == len(got) || err != nil && err != syscall.EAGAIN {
		return errors.Join(os.NewSyscallError("read", err), syscall.Close(fd))
	}
	f := os.NewFile(uintptr(fd), from.String())
	defer f.Close()
	ctx, cancel := context.WithTimeout(c.probing, patience)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		if err := f.SetReadDeadline(deadline); err != nil {
			return err
		}
	}
	_, err = io.ReadFull(f, got[n:])
	return err
}

// forbidden is an error that no further call changes: the user may not do it.
func forbidden(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return err
	}
	return nil
}

// silentFor says why a call had no answer, alike for all servers.
func (c *calls) silentFor(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:] // what is before names the server
	}
	var network net.Error
	late := errors.As(err, &network) && network.Timeout()
	switch {
	case late:
		text = "nothing came in time"
	case strings.HasSuffix(text, "EOF"):
		text = "closed without a greeting"
	}
	if c.forward.Load() {
		return "no answer through the API server: " + text
	}
	if late || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) {
		text += "; if its address cannot be reached from here, " + described.ParamSSHFrom + "=" + described.SSHFromForward + " goes through the API server"
	}
	return "no answer to this machine: " + text
}

// keep calls a server that has answered until its object is gone, and tells of
// the times without an answer.
func (s *ObjectSet) keep(p observe.Probe) {
	last, silent := s.clock.Now(), false
	for api.Sleep(s.probing, probeInterval) {
		s.mu.Lock()
		wanted, address := s.described.Awaits(p), s.described.Address(p)
		s.mu.Unlock()
		if !wanted {
			return
		}
		if _, err := s.hears(p, address); err != nil {
			silent = true
			continue
		}
		now := s.clock.Now()
		// Calls that wait for their turn do not make a silence.
		if gap := (now - last).Duration(); silent && gap > 3*probeInterval {
			s.mu.Lock()
			s.spell(s.noun.Many, silence, gap)
			s.mu.Unlock()
		}
		last, silent = now, false
	}
}

// gaveUp notes that a server will never answer: its object is never there, unless
// it was before. It is called with mu held.
func (s *ObjectSet) gaveUp(now record.Micros, p observe.Probe, reason, message string) {
	s.heard = reason + ": " + message
	if p.Milestone >= 0 && p.Milestone <= s.described.Course().There {
		s.described.Refused(now, p.Object, reason, message)
	} else {
		s.EmitAt(now, &record.Note{Text: p.Server + ": " + s.heard})
	}
}

// AwaitFigures waits for what is still being read at the end of a step.
func (s *ObjectSet) AwaitFigures(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	for s.reading.Load() > 0 && api.Sleep(ctx, 50*time.Millisecond) {
	}
}

// probe calls a server until it answers as it should, its object is gone, or
// the watches end.
func (s *ObjectSet) probe(p observe.Probe) {
	interval := probeInterval
	if p.FIO != "" {
		interval = loginInterval
	}
	// A step that has ended waits for figures of what is past what counts.
	if p.FIO != "" && p.Milestone > s.described.Course().There {
		s.reading.Add(1)
		defer s.reading.Add(-1)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var before record.Micros // when the call before this one began, 0 for none
	for {
		var did fio.Report
		var ok bool
		var failed, unheard error
		var began record.Micros
		if p.FIO == "" {
			began, unheard = s.hears(p, p.Address)
			ok, failed = unheard == nil, forbidden(unheard)
		} else {
			did, ok, failed = s.readFIO(p)
		}
		now := s.clock.Now()
		s.mu.Lock()
		wanted := s.described.Awaits(p)
		switch {
		case wanted && failed != nil:
			reason := "FioFailed"
			if forbidden(failed) != nil {
				reason = "CallForbidden"
			}
			s.gaveUp(now, p, reason, failed.Error())
			wanted = false
		case wanted && ok:
			s.described.Answered(now, p)
			if p.FIO != "" && p.Milestone >= 0 {
				if s.done[p.Phase] == nil {
					s.done[p.Phase] = make(map[string]fio.Report)
				}
				s.done[p.Phase][p.Object] = did
			}
			if p.FIO != "" {
				break
			}
			s.spell(s.noun.Many, answered, (now - began).Duration())
			if before > 0 {
				s.spell(s.noun.Many, lateness, (now - before).Duration())
			}
		case wanted && unheard != nil:
			s.described.Unheard(p, s.silentFor(unheard))
		}
		s.mu.Unlock()
		before = began
		if ok && wanted && p.Keep {
			s.keep(p)
			return
		}
		if ok || !wanted {
			return
		}
		select {
		case <-tick.C:
		case <-s.probing.Done():
			return
		}
	}
}
