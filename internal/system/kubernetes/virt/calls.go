package virt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/streaming/pkg/httpstream"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
)

// Bounds of calls.
const (
	probeInterval = 250 * time.Millisecond
	probePatience = time.Second
	// A call through the API server has three more connections, each with a handshake.
	forwardPatience   = 3 * time.Second
	forwardsPerSecond = 100
	forwardsAtOnce    = 200
)

// Names of the reported times of calls.
const (
	silence  = "time without an answer"
	answered = "call that was answered"
	lateness = "answer seen late by at most"
)

// Times implements follow.Caller.
func (c *calls) Times(p *described.Probe) []string {
	switch {
	case p.FIO != "", p.FromPods():
		return nil
	case p.Keep:
		return []string{answered, lateness, silence}
	}
	return []string{answered, lateness}
}

// calls calls the servers of machines, from this machine or through the API server.
type calls struct {
	*prepared.Run
	keys    keys        // for logins
	forward atomic.Bool // through the API server
	rate    flowcontrol.RateLimiter
	room    chan struct{}
	// done holds the machines' reports of IO, by phase and name, as the objects; see follow.ObjectSet.Look.
	done    map[string]map[string]fio.Report
	reading atomic.Int32 // readings after the milestone that counts
}

func newCalls(common *prepared.Run, made keys) *calls {
	return &calls{
		Run: common, keys: made, rate: flowcontrol.NewTokenBucketRateLimiter(forwardsPerSecond, forwardsPerSecond),
		room: make(chan struct{}, forwardsAtOnce), done: make(map[string]map[string]fio.Report),
	}
}

// Begin implements follow.Caller.
func (c *calls) Begin(params workload.Params) { c.forward.Store(throughForward(params)) }

func throughForward(params workload.Params) bool {
	return params.Get(described.ParamSSHFrom) == described.SSHFromForward
}

// Forget implements follow.Caller.
func (c *calls) Forget() { clear(c.done) }

// open connects to the server of a probe within patience, and returns when it began.
func (c *calls) open(ctx context.Context, p observe.Probe, address string, patience time.Duration) (conn net.Conn, began record.Micros, err error) {
	through := c.forward.Load()
	if through {
		if err := c.rate.Wait(ctx); err != nil {
			return nil, c.Clock.Now(), err
		}
		select {
		case c.room <- struct{}{}:
		case <-ctx.Done():
			return nil, c.Clock.Now(), context.Cause(ctx)
		}
		defer func() { <-c.room }()
		patience = max(patience, forwardPatience)
	}
	began = c.Clock.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if through {
		conn, err = forward(ctx, c.Client, p.Server, p.Port)
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

const subresources = "subresources.kubevirt.io" // group of KubeVirt's subresources of machines

// forward connects to a machine's port through the API server, as virtctl does. A refusal is an APIStatus.
func forward(ctx context.Context, c *api.Client, machine string, port int) (net.Conn, error) {
	namespace, name, _ := strings.Cut(machine, "/")
	request, err := c.Request(ctx, http.MethodGet, fmt.Sprintf("/apis/%s/v1/namespaces/%s/virtualmachineinstances/%s/portforward/%d/tcp", subresources, namespace, name, port), nil, "", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json") // for refusals
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

// hears calls a server, and returns nil if it accepts and begins with the banner.
func (c *calls) hears(ctx context.Context, p observe.Probe, address string) (began record.Micros, err error) {
	got := make([]byte, len(p.Banner))
	if to, notIP := netip.ParseAddrPort(address); notIP == nil && to.Addr().Is4() && p.Banner != "" && !c.forward.Load() {
		began = c.Clock.Now()
		err = greeting(ctx, to, got, probePatience)
	} else {
		var conn net.Conn
		if conn, began, err = c.open(ctx, p, address, probePatience); err != nil {
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

// forbidden returns an error if the user may not call: a repetition would not help.
func forbidden(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return err
	}
	return nil
}

// silentFor says why a call had no answer, in the same words for all servers.
func (c *calls) silentFor(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:] // cuts the server's name
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

// keep calls a server that has answered until its object is gone, and reports times without an answer.
func (c *calls) keep(ctx context.Context, to *follow.ObjectSet, p observe.Probe) {
	last, silent := c.Clock.Now(), false
	for api.Sleep(ctx, probeInterval) {
		var wanted bool
		var address string
		to.Look(func(d *observe.Described) { wanted, address = d.Awaits(p), d.Address(p) })
		if !wanted {
			return
		}
		if _, err := c.hears(ctx, p, address); err != nil {
			silent = true
			continue
		}
		now := c.Clock.Now()
		// A wait for a turn does not count as silence.
		if gap := (now - last).Duration(); silent && gap > 3*probeInterval {
			to.Look(func(*observe.Described) { to.Spell(silence, gap) })
		}
		last, silent = now, false
	}
}

// Await implements follow.Caller.
func (c *calls) Await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	for c.reading.Load() > 0 && api.Sleep(ctx, 50*time.Millisecond) {
	}
}

// within calls a service from a pod until it answers, for at most the configuration's svcTimeout.
func (c *calls) within(ctx context.Context, to *follow.ObjectSet, p observe.Probe) {
	err := c.Load.Reach(ctx, p.Address, c.Load.Config.SvcTimeout())
	now := c.Clock.Now()
	to.Look(func(d *observe.Described) {
		switch {
		case !d.Awaits(p) || ctx.Err() != nil:
		case err != nil:
			to.GaveUp(now, p, "NoAnswer", err.Error())
		default:
			d.Answered(now, p)
		}
	})
}

// between waits until pods have made the connections that a network policy allows.
func (c *calls) between(ctx context.Context, to *follow.ObjectSet, p observe.Probe) {
	seen := c.Clock.Now()
	made, err := c.Load.Connections(ctx, p.Object, p.Between == described.AllConnections)
	to.Look(func(d *observe.Described) {
		switch {
		case !d.Awaits(p) || ctx.Err() != nil:
		case err != nil:
			to.GaveUp(c.Clock.Now(), p, "NotMeasured", err.Error())
		default:
			d.Answered(max(made, seen), p)
		}
	})
}

// Call implements follow.Caller: it calls a server until its answer is right.
func (c *calls) Call(ctx context.Context, to *follow.ObjectSet, p observe.Probe) {
	switch {
	case p.Within:
		c.within(ctx, to, p)
		return
	case p.Between != "":
		c.between(ctx, to, p)
		return
	}
	interval := probeInterval
	if p.FIO != "" {
		interval = loginInterval
	}
	// The end of a step waits for figures after the milestone that counts.
	if p.FIO != "" && to.Behind(p) {
		c.reading.Add(1)
		defer c.reading.Add(-1)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var before record.Micros // start of the previous call, 0 for none
	for {
		var did fio.Report
		var ok, wanted bool
		var failed, unheard error
		var began record.Micros
		if p.FIO == "" {
			began, unheard = c.hears(ctx, p, p.Address)
			ok, failed = unheard == nil, forbidden(unheard)
		} else {
			did, ok, failed = c.readFIO(ctx, to, p)
		}
		now := c.Clock.Now()
		to.Look(func(d *observe.Described) {
			wanted = d.Awaits(p)
			switch {
			case wanted && failed != nil:
				to.GaveUp(now, p, reasonFor(failed), failed.Error())
				wanted = false
			case wanted && ok:
				d.Answered(now, p)
				c.answered(to, p, did, now, began, before)
			case wanted && unheard != nil:
				d.Unheard(p, c.silentFor(unheard))
			}
		})
		before = began
		if ok && wanted && p.Keep {
			c.keep(ctx, to, p)
			return
		}
		if ok || !wanted {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// reasonFor returns the reason for the end of calls.
func reasonFor(err error) string {
	if _, is := errors.AsType[*strangerError](err); is {
		return "HostKeyRefused"
	} else if forbidden(err) != nil {
		return "CallForbidden"
	}
	return "FioFailed"
}

// answered notes an answer at now, to a call begun at began, after a previous one at before, or 0.
func (c *calls) answered(to *follow.ObjectSet, p observe.Probe, did fio.Report, now, began, before record.Micros) {
	if p.FIO == "" {
		to.Spell(answered, (now - began).Duration())
		if before > 0 {
			to.Spell(lateness, (now - before).Duration())
		}
	} else if p.Milestone >= 0 {
		if c.done[p.Phase] == nil {
			c.done[p.Phase] = make(map[string]fio.Report)
		}
		c.done[p.Phase][p.Object] = did
	}
}

// Pace and bound of logins, which cost the machine something.
const (
	loginInterval = 2 * time.Second
	loginPatience = 30 * time.Second
)

// readFIO runs a probe's command, which prints fio's report; false for a machine without login yet, or lost.
func (c *calls) readFIO(ctx context.Context, to *follow.ObjectSet, p observe.Probe) (did fio.Report, ok bool, failed error) {
	conn, _, err := c.open(ctx, p, p.Address, loginPatience)
	if err != nil {
		to.Look(func(d *observe.Described) {
			to.Heard(p.Server + ": " + c.silentFor(err))
			d.Unheard(p, c.silentFor(err))
		})
		return did, false, forbidden(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	opened, channels, requests, err := ssh.NewClientConn(conn, p.Address, &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(c.keys.login)}, HostKeyAlgorithms: []string{c.keys.host.Type()}, HostKeyCallback: c.knows,
	})
	if stranger := c.strangerOf(err); stranger != nil {
		return did, false, stranger
	}
	if err != nil || conn.SetDeadline(time.Time{}) != nil {
		return did, false, nil
	}
	client := ssh.NewClient(opened, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return did, false, nil
	}
	text, err := session.Output(p.FIO)
	if ended, is := errors.AsType[*ssh.ExitError](err); is {
		return did, false, fmt.Errorf("%q ended with code %d", p.FIO, ended.ExitStatus())
	} else if err != nil {
		return did, false, nil
	}
	did, err = fio.ParseReport(text)
	if err == nil && did.Errno != 0 {
		err = fmt.Errorf("fio failed with error %d", did.Errno)
	}
	return did, err == nil, err
}

// strangerError says that a server lacks the run's host key: no further call helps.
type strangerError struct{ shows, want string }

func (e *strangerError) Error() string {
	return fmt.Sprintf("it shows %s, and the run gave its machines the host key %s by cloud-init: something else answers at its address, or its image does not take ssh_keys", e.shows, e.want)
}

// knows accepts a server with the run's host key.
func (c *calls) knows(_ string, _ net.Addr, shown ssh.PublicKey) error {
	if bytes.Equal(shown.Marshal(), c.keys.host.Marshal()) {
		return nil
	}
	return &strangerError{"the host key " + ssh.FingerprintSHA256(shown), ssh.FingerprintSHA256(c.keys.host)}
}

// strangerOf returns the error of a login if the server is not one of the run's machines.
func (c *calls) strangerOf(err error) error {
	if stranger, is := errors.AsType[*strangerError](err); is {
		return stranger
	}
	if none, is := errors.AsType[*ssh.AlgorithmNegotiationError](err); is && none.What == "host key" {
		return &strangerError{"host keys of the types " + strings.Join(none.RequestedAlgorithms, ", "), ssh.FingerprintSHA256(c.keys.host)}
	}
	return nil
}

// Figures implements follow.Caller: it returns the machines' IO.
func (c *calls) Figures(objects int) []record.Body {
	// The IO of only some machines would be that of the fast ones.
	values := make(map[string]float64)
	for phase, done := range c.done {
		if objects > 0 && objects == len(done) {
			sumOf(done, phase, values)
		}
	}
	if len(values) == 0 {
		return nil
	}
	return []record.Body{&record.Reading{Source: described.SourceFIO, Values: values}}
}

// sumOf adds the IO of all machines in a phase: the sum of their rates, and their merged latencies.
func sumOf(done map[string]fio.Report, phase string, values map[string]float64) {
	if phase != "" {
		phase = " " + phase
	}
	for _, side := range []string{fio.Read, fio.Write} {
		all := make(fio.Bins)
		for _, r := range done {
			all.Add(r.Sides[side].Bins)
			if n := r.Sides[side].Bins.N(); n > 0 && r.Ran > 0 {
				values[side+"Rate"+phase] += float64(n) / r.Ran.Seconds()
			}
		}
		if all.N() > 0 {
			values[side+" p50"+phase], values[side+" p99"+phase] = float64(all.Quantile(0.5))/1e9, float64(all.Quantile(0.99))/1e9
		}
	}
}
