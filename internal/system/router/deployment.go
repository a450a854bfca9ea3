package router

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
)

type deployment struct {
	settings
	dir  string // that HAProxy and the servers work in
	host system.Host
	tied *proc.Tie

	pair    haproxy.Pair   // that the router has for all hosts
	trusted *x509.CertPool // by clients
	network [3]byte        // how its addresses begin
	link    *link          // nil where clients reach it by the loopback interface
	servers []*server
	proxy   *haproxy.Process
	further []*shard
}

// shard is a further HAProxy, which has a part of the routes.
type shard struct {
	dir    string
	router haproxy.Config
	proxy  *haproxy.Process // nil until it is started
}

// proxies returns the HAProxies that were started.
func (s *deployment) proxies() (list []*haproxy.Process) {
	for _, p := range append([]*shard{{proxy: s.proxy}}, s.further...) {
		if p.proxy != nil {
			list = append(list, p.proxy)
		}
	}
	return list
}

// divide gives each HAProxy its share of the routes, the threads and the processors.
func (s *deployment) divide() (err error) {
	all, at := s.router, make(map[string]string) // addresses by host
	all.Threads = max(all.Threads/s.shards, 1)
	for n := range s.shards {
		c, above := all, ""
		if n > 0 {
			if c.Plain, c.Secure, err = s.free(s.address(routerHost)); err != nil {
				return err
			}
			above = "../"
			c.Spares, c.Moved, c.Publishes, c.Certificate, c.ServerCA = 0, 0, false, above+c.Certificate, above+c.ServerCA
		}
		if len(c.CPUs) >= s.shards {
			c.CPUs = c.CPUs[n*len(c.CPUs)/s.shards : (n+1)*len(c.CPUs)/s.shards]
		}
		c.Routes = nil
		for i, r := range all.Routes {
			if i/len(s.terminations)%s.shards != n { // those under load are shared evenly
				continue
			}
			if r.Certificate != "" {
				r.Certificate = above + r.Certificate
			}
			c.Routes = append(c.Routes, r)
			at[r.Host] = map[bool]string{true: c.Secure, false: c.Plain}[c.Termination.Secure()]
		}
		if n == 0 {
			s.router = c
		} else {
			s.further = append(s.further, &shard{dir: filepath.Join(s.dir, fmt.Sprint("shard-", n)), router: c})
		}
	}
	s.hosts = slices.Clone(s.hosts)
	for i := range s.hosts {
		s.hosts[i].Address = at[s.hosts[i].Name]
	}
	return nil
}

// start starts the HAProxy in a directory of its own.
func (p *shard) start(ctx context.Context, b haproxy.Binary, how proc.How) (err error) {
	user := proc.Least()
	if err := os.Mkdir(p.dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := errors.Join(os.Chown(p.dir, -1, user.Group), os.Chmod(p.dir, 0o750), haproxy.Prepare(p.dir, user)); err != nil {
		return err
	}
	p.proxy, err = haproxy.Start(ctx, b, p.dir, p.router, how)
	return err
}

type server struct {
	spec    backend.Spec
	file    string
	process *proc.Process // nil until it is started
	meant   atomic.Bool   // it is killed by an event of the step
}

// places returns the servers that take the load.
func (s *deployment) places() (list []local.Place) {
	for _, x := range s.servers {
		list = append(list, local.Place{Name: strings.TrimSuffix(x.file, ".json"), Look: func() record.Place {
			p := local.Ended(x.process)
			p.Meant = x.meant.Load()
			return p
		}})
	}
	return list
}

// Names of files in a room.
const (
	certificateFile = "router.pem"
	innerFile       = "servers.pem" // of the servers behind a router that encrypts again
)

// address returns one of the system's own addresses: of the loopback interface, or of its link.
func (s *deployment) address(n int) string {
	switch {
	case s.ipv6 && s.rate > 0:
		return fmt.Sprintf("2001:2:0:%x%02x::%x", s.network[1], s.network[2], n)
	case s.ipv6:
		return net.IPv6loopback.String()
	}
	return fmt.Sprintf("%d.%d.%d.%d", s.network[0], s.network[1], s.network[2], n)
}

// local returns an address of the loopback interface, on either side of a link.
func (s *deployment) local(n int) string {
	return fmt.Sprintf("127.%d.%d.%d", 64+s.network[1]%128, s.network[2], n)
}

const (
	routerHost  = 1
	firstServer = 10
	firstSource = 100
	sources     = 32
)

// draw draws the network of a system, of the loopback interface. Others use 127.0 and 127.1.
func (s *deployment) draw() error {
	if _, err := io.ReadFull(s.host.Random, s.network[:]); err != nil {
		return fmt.Errorf("draw addresses: %w", err)
	}
	s.network[0], s.network[1] = 127, 64+s.network[1]%128
	return nil
}

// connect makes the link, if any, of addresses for measurements (RFC 2544, RFC 5180 for IPv6).
func (s *deployment) connect() error {
	if s.rate == 0 {
		return nil
	}
	s.network[0], s.network[1] = 198, 18+s.network[1]%2
	ends := make([]string, sources)
	for n := range ends {
		ends[n] = s.address(firstSource + n)
	}
	var err error
	s.link, err = makeLink(s.tied, s.rate, fmt.Sprintf("plr%d-%x", os.Getpid(), s.network[2]), s.address(routerHost), ends)
	return err
}

// within calls a function in the system's network, on a thread with which what it starts dies.
func (s *deployment) within(call func() error) error {
	if s.link != nil {
		return s.link.within(call)
	}
	return s.tied.Do(call)
}

// free finds two free ports of an address: on one, HAProxy would mix the two frontends.
func (s *deployment) free(address string) (plain, secure string, err error) {
	err = s.within(func() error {
		for _, found := range []*string{&plain, &secure} {
			l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
			if err != nil {
				return fmt.Errorf("find a free port: %w", err)
			}
			defer l.Close() // until both are found
			*found = l.Addr().String()
		}
		return nil
	})
	return plain, secure, err
}

// write chooses ports and writes the certificates.
func (s *deployment) write() error {
	var err error
	if s.router.Plain, s.router.Secure, err = s.free(s.address(routerHost)); err != nil {
		return err
	}
	var hosts []string
	for _, r := range s.router.Routes {
		hosts = append(hosts, r.Host)
	}
	inner, err := haproxy.MakeCertificate(hosts, s.host.Random, s.host.Now())
	if err != nil {
		return system.ParamMistake("hosts", "names of fewer domains, or a certificate of your own", "%w", err)
	}
	s.pair = inner
	if s.certificate != nil {
		if s.pair, err = haproxy.ReadCertificate(s.certificate, hosts, s.host.Now()); err != nil {
			return system.ParamMistake("certificate", "give one that is for all hosts, with its own key", "%w", err)
		}
	}
	files := map[string][]byte{certificateFile: s.pair.PEM, innerFile: inner.PEM}
	s.trusted = haproxy.Roots(s.pair, inner)
	for i, r := range s.router.Routes {
		if r.Certificate != "" {
			if files[r.Certificate], err = inner.Issue(int64(i+1), r.Host, s.host.Random); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := proc.Least().Write(filepath.Join(s.dir, name), text); err != nil {
			return fmt.Errorf("write a certificate: %w", err)
		}
	}
	s.router.Certificate, s.router.ServerCA = certificateFile, innerFile
	presented := innerFile
	if s.passes() {
		presented = certificateFile
	}
	s.servers = nil
	s.router.Servers, s.router.Secured, s.router.Others, s.router.OthersSecured = nil, nil, nil, nil
	all := s.settings.servers
	if s.event == evChange {
		all *= 2 // the second half is there for the route that is changed
	}
	for n := range all {
		x := &server{file: "server-" + strconv.Itoa(n) + ".json", spec: backend.Spec{
			Certificate: presented, Key: presented, PageSize: s.pageSize, Header: s.answerHead, Service: s.service, Workers: s.workers, HTTP2: s.router.ServerHTTP2 || s.router.OfferHTTP2 && s.router.Termination == haproxy.Reencrypt,
		}}
		if x.spec.Plain, x.spec.Secure, err = s.free(s.local(firstServer + n)); err != nil {
			return err
		}
		if n < s.settings.servers {
			s.router.Servers, s.router.Secured = append(s.router.Servers, x.spec.Plain), append(s.router.Secured, x.spec.Secure)
		} else {
			s.router.Others, s.router.OthersSecured = append(s.router.Others, x.spec.Plain), append(s.router.OthersSecured, x.spec.Secure)
			x.spec.Mark = backend.OtherMark
		}
		s.servers = append(s.servers, x)
	}
	return nil
}

func (s *deployment) start(ctx context.Context) error {
	if err := errors.Join(s.draw(), s.connect()); err != nil {
		return err
	}
	if err := s.write(); err != nil {
		return err
	}
	for _, x := range s.servers {
		if err := s.serve(ctx, x); err != nil {
			return err
		}
	}
	if s.shards > 1 {
		if err := s.divide(); err != nil {
			return err
		}
	}
	var err error
	s.proxy, err = haproxy.Start(ctx, s.binary, s.dir, s.router, s.how("HAProxy", nil))
	for _, p := range s.further {
		if err == nil {
			err = p.start(ctx, s.binary, s.how("HAProxy", nil))
		}
	}
	return err
}

// how starts processes in the system's network, on some processors or all that are allowed.
func (s *deployment) how(name string, cpus []int) proc.How {
	if len(cpus) == 0 {
		cpus = s.allCPUs
	}
	user := proc.Least()
	return proc.How{Name: name, As: &user, On: s.within, CPUs: cpus}
}

const serverBound = 10 * time.Second // until a server serves
func (s *deployment) serve(ctx context.Context, x *server) error {
	text, err := json.Marshal(x.spec)
	if err == nil {
		err = proc.Least().Write(filepath.Join(s.dir, x.file), text)
	}
	if err != nil {
		return fmt.Errorf("write what a server serves: %w", err)
	}
	cmd := exec.Command(s.host.Executable, "component", backend.Component, x.file)
	if s.nginx.Path != "" {
		if cmd, err = s.nginx.Command(s.dir, strings.TrimSuffix(x.file, ".json"), x.spec); err != nil {
			return err
		}
	}
	cmd.Dir, cmd.Env = s.dir, append(proc.Environment(), "GOGC=400")
	if x.process, err = proc.Start(cmd, s.how("a server", s.placement.servers)); err != nil {
		return err
	}
	return x.process.Await(ctx, serverBound, func() error {
		return s.within(func() error { return local.Answers("tcp4", x.spec.Secure) })
	})
}

// load plans what the generator sends.
func (s *deployment) load() load.Plan {
	p := load.Plan{
		Address: s.router.Plain, Hosts: s.hosts, Method: s.method, Path: "/", Header: s.requestHead, Body: s.body,
		Size: int64(s.pageSize), Want: backend.Begin(s.pageSize), Close: s.close, Retry: s.retry, Random: s.random, Work: s.work, HTTP2: s.router.HTTP2, Streams: s.streams,
		Threads: cmp.Or(len(s.placement.generator), len(s.allCPUs)), Record: s.recorded,
	}
	if s.event == evChange {
		p.Want = p.Want[:backend.CommonMark] // from either server
	}
	if s.close {
		for n := range sources {
			p.Sources = append(p.Sources, net.ParseIP(s.address(firstSource+n)))
		}
	}
	if s.router.Termination.Secure() {
		version := map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}[s.router.TLSVersion]
		p.Address = s.router.Secure
		p.TLS = &tls.Config{
			RootCAs: s.trusted, MinVersion: version, MaxVersion: version,
			// Alone: else each handshake makes a second share, for a hybrid that HAProxy does not know.
			CurvePreferences: []tls.CurveID{tls.X25519},
			Time:             s.host.Now,
		}
		if version == tls.VersionTLS12 {
			// Where the certificate's own curve must be among those of the client.
			p.TLS.CurvePreferences = append(p.TLS.CurvePreferences, tls.CurveP256)
		}
		if s.router.Resumption {
			p.TLS.ClientSessionCache = tls.NewLRUClientSessionCache(2 * len(s.hosts))
		}
	}
	return p
}

func (s *deployment) stop() error {
	var err error
	for _, p := range s.proxies() {
		err = errors.Join(err, p.Stop())
	}
	for _, x := range s.servers {
		if x.process != nil {
			err = errors.Join(err, x.process.Stop())
		}
	}
	if s.link != nil {
		err = errors.Join(err, s.link.remove())
	}
	return err
}
