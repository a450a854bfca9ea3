package virt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
)

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
