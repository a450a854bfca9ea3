// Package faults is a proxy between the program and a real API server that makes
// faults on purpose, from a seed, and counts what it did: it is an independent
// witness of what a run has asked for. Only tests import it.
//
//	proxy := faults.Start(t, p.Kubeconfig, faults.Plan{Seed: 1, Rules: []faults.Rule{
//		{On: faults.Creates("pods"), Do: faults.Status(503), Share: 0.05},
//		{On: faults.Watches("nodes"), Do: faults.Late(8 * time.Second), From: 2 * time.Second},
//	}})
//	got := p.RunTo(t, "r", "sweep", "node-density", "--kubeconfig", proxy.Kubeconfig, ...)
//	counts := proxy.Counts() // counts.Created["pods"], counts.Faults["503"] ...
//
// The kubeconfig that it writes has the same context and lab marker as the lab's
// own, so that no --yes is needed; the user in it is a token, which is the proxy's
// own and in no artefact of a run may be found (Proxy.Secret). Towards the API
// server the proxy is the user of the kubeconfig that it was given. It takes
// HTTP/1.1 and HTTP/2. A plan without rules lets everything pass: the unfaulted
// twin of a run goes the same way. Proxy.Use changes the rules while a run is
// going on, and Proxy.Cut and Proxy.Restore stop and start all bytes at any time.
package faults

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// Proxy is a fault proxy that runs until its test ends.
type Proxy struct {
	// Kubeconfig is the path of the kubeconfig that leads to it.
	Kubeconfig string
	// Secret is the token that the kubeconfig has.
	Secret string

	kinds    request.RequestInfoFactory
	valid    tls.Certificate
	outdated tls.Certificate
	ended    chan struct{} // closed at the end of the test

	mu     sync.Mutex
	rules  []*drawn
	counts Counts
	open   chan struct{} // closed while bytes pass
	conns  []net.Conn    // of clients, also those that have ended
}

// Counts counts the requests and faults of a proxy so far.
type Counts struct {
	// Created are the objects that the API server has made at requests that passed,
	// by resource, as namespace/name. Those of dry runs are not among them.
	Created map[string][]string
	// Paths has the API paths of these objects.
	Paths []string
	// Answers counts the answers by request and code, without watches; 0 is no answer.
	Answers map[Answer]int
	// Faults counts the faults by name: "503", "429 with Retry-After", "504 after",
	// "reset before", "late event" ...
	Faults map[string]int
	// Asked are the rights that the requests took: a verb and a resource with its
	// subresource and group, such as "create pods/eviction", or the path of what is no
	// resource.
	Asked map[string]bool
}

// Answer identifies a kind of request and the code of its answer.
type Answer struct {
	Verb, Resource string
	Code           int
}

// Answered counts the answers with a code; an empty verb or resource stands for all.
func (c Counts) Answered(verb, resource string, code int) (n int) {
	for a, times := range c.Answers {
		if (verb == "" || a.Verb == verb) && (resource == "" || a.Resource == resource) && a.Code == code {
			n += times
		}
	}
	return n
}

// secret is planted: it must be in no artefact of a run.
const secret = "faults-planted-secret-8b1f6d2c"

// Start starts a proxy in front of the API server that a kubeconfig leads to. It
// ends with the test.
func Start(t testing.TB, kubeconfig string, plan Plan) *Proxy {
	t.Helper()
	p, err := start(kubeconfig, t.TempDir(), t.Cleanup)
	if err != nil {
		t.Fatalf("start the fault proxy: %v", err)
	}
	p.Use(plan)
	return p
}

func start(kubeconfig, dir string, cleanup func(func())) (*Proxy, error) {
	file, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	upstream, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	config.Timeout = 0
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		Kubeconfig: filepath.Join(dir, "kubeconfig"), Secret: secret,
		kinds: request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
		ended: make(chan struct{}), open: make(chan struct{}),
		counts: Counts{Created: make(map[string][]string), Answers: make(map[Answer]int), Faults: make(map[string]int), Asked: make(map[string]bool)},
	}
	close(p.open)
	now := time.Now()
	authority, err := p.certify(now)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler:     p.handler(upstream, transport),
		TLSConfig:   &tls.Config{GetCertificate: p.certificate},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	served := make(chan struct{})
	go func() { defer close(served); server.ServeTLS(&gated{listener, p}, "", "") }()
	cleanup(func() { close(p.ended); server.Close(); <-served })
	return p, p.write(file, "https://"+listener.Addr().String(), authority)
}

// write writes the kubeconfig: the given one, with the proxy's address.
func (p *Proxy) write(file *clientcmdapi.Config, server string, authority []byte) error {
	at := file.Contexts[file.CurrentContext]
	file.Clusters = map[string]*clientcmdapi.Cluster{at.Cluster: {Server: server, CertificateAuthorityData: authority}}
	file.AuthInfos = map[string]*clientcmdapi.AuthInfo{at.AuthInfo: {Token: p.Secret}}
	return clientcmd.WriteToFile(*file, p.Kubeconfig)
}

// certify makes the proxy's certificates, and returns what vouches for them.
func (p *Proxy) certify(now time.Time) (authority []byte, err error) {
	const validity = 24 * time.Hour
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fault proxy"}, NotBefore: now.Add(-2 * validity), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	sign := func(c *x509.Certificate) []byte {
		der, signed := x509.CreateCertificate(nil, c, root, key.Public(), key)
		err = errors.Join(err, signed)
		return der
	}
	leaf := func(serial int64, from, until time.Time) tls.Certificate {
		return tls.Certificate{PrivateKey: key, Certificate: [][]byte{sign(&x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			NotBefore: from, NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})}}
	}
	p.valid = leaf(2, now.Add(-validity), now.Add(validity))
	p.outdated = leaf(3, now.Add(-validity), now.Add(-time.Hour))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sign(root)}), err
}

func (p *Proxy) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if _, hit := p.draw(atConnection, subject{}); hit {
		return &p.outdated, nil
	}
	return &p.valid, nil
}

// Use makes a plan that of the proxy, from now on; what the former has drawn is
// forgotten. Counts go on.
func (p *Proxy) Use(plan Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
	for i, r := range plan.Rules {
		p.rules = append(p.rules, &drawn{Rule: r, seed: plan.Seed<<8 | uint64(i)})
	}
}

// Cut stops all bytes on all connections, and on those that are made until
// Restore.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		p.open = make(chan struct{})
	default:
	}
}

// Restore lets bytes pass again, those that came meanwhile as well.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// Sever ends all connections; those that are made after it pass.
func (p *Proxy) Sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// Counts returns the counts so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := Counts{Created: make(map[string][]string), Paths: slices.Clone(p.counts.Paths), Answers: maps.Clone(p.counts.Answers), Faults: maps.Clone(p.counts.Faults), Asked: maps.Clone(p.counts.Asked)}
	for resource, names := range p.counts.Created {
		c.Created[resource] = slices.Clone(names)
	}
	return c
}

// draw finds the fault for what passes at a point, and counts it.
func (p *Proxy) draw(at point, s subject) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, r := range p.rules {
		if r.Do.point() == at && r.On.matches(s) && r.hits(now) {
			p.counts.Faults[r.Do.name()]++
			return r.Do, true
		}
	}
	return Fault{}, false
}

// about reports whether a rule may act on the events of a watch.
func (p *Proxy) about(s subject) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.rules, func(r *drawn) bool {
		s := s
		s.event = r.On.Event
		return r.Do.point() == atEvent && r.On.matches(s)
	})
}

func (p *Proxy) answered(s subject, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.verb != "watch" {
		p.counts.Answers[Answer{s.verb, s.resource, code}]++
	}
}

// takes notes a right that a request takes.
func (p *Proxy) takes(right string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Asked[right] = true
}

// asked is one request and the fault that was drawn for it.
type asked struct {
	subject
	fault  Fault
	client context.Context // ends when the client goes
}

type askedKey struct{}
type connKey struct{}

var errReset = errors.New("the connection is to be reset")

func (p *Proxy) handler(upstream *url.URL, transport http.RoundTripper) http.Handler {
	pass := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(upstream); r.Out.Header.Del("Authorization") },
		Transport:      transport,
		FlushInterval:  -1,
		ErrorLog:       log.New(io.Discard, "", 0),
		ModifyResponse: p.answer,
		// An API server that is not there resets connections; so does this.
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, _ error) {
			p.reset(r, r.Context().Value(askedKey{}).(*asked).subject)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &asked{client: r.Context()}
		if info, err := p.kinds.NewRequestInfo(r); err == nil && info.IsResourceRequest {
			a.subject = subject{verb: info.Verb, resource: strings.TrimSuffix(info.Resource+"/"+info.Subresource, "/")}
			p.takes(strings.TrimSuffix(info.Verb+" "+a.resource+"."+info.APIGroup, "."))
		} else if err == nil {
			p.takes(info.Verb + " " + info.Path)
		}
		if r.Header.Get("Authorization") != "Bearer "+p.Secret {
			p.tell(w, a.subject, Status(http.StatusUnauthorized))
			return
		}
		a.fault, _ = p.draw(atRequest, a.subject)
		switch a.fault.Kind {
		case status:
			p.tell(w, a.subject, a.fault)
			return
		case resetBefore:
			p.reset(r, a.subject)
		case blackHole:
			io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-p.ended:
			}
			p.reset(r, a.subject)
		case networkCut:
			p.Cut()
			time.AfterFunc(a.fault.For, p.Restore)
		}
		ctx := context.WithValue(r.Context(), askedKey{}, a)
		if a.verb != "watch" {
			// What has passed is awaited whether or not the client is still there:
			// else nobody knows whether it was carried out.
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), api.RequestTimeout)
			defer cancel()
		}
		pass.ServeHTTP(w, r.WithContext(ctx))
	})
}

// tell answers by a status in the API server's form.
func (p *Proxy) tell(w http.ResponseWriter, s subject, f Fault) {
	p.answered(s, f.Code)
	w.Header().Set("Content-Type", "application/json")
	if f.For > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.For.Seconds())))
	}
	w.WriteHeader(f.Code)
	json.NewEncoder(w).Encode(statusOf(f.Code, s.resource))
}

// statusOf returns how the API server words a code.
func statusOf(code int, resource string) *metav1.Status {
	said := map[int]struct {
		reason  metav1.StatusReason
		message string
	}{
		http.StatusUnauthorized:        {metav1.StatusReasonUnauthorized, "Unauthorized"},
		http.StatusConflict:            {metav1.StatusReasonConflict, fmt.Sprintf("Operation cannot be fulfilled on %s: the object has been modified; please apply your changes to the latest version and try again", resource)},
		http.StatusGone:                {metav1.StatusReasonExpired, "The resourceVersion for the provided watch is too old."},
		http.StatusTooManyRequests:     {metav1.StatusReasonTooManyRequests, "The server has received too many requests and has asked us to try again later"},
		http.StatusInternalServerError: {metav1.StatusReasonInternalError, "Internal error occurred: a planted fault: password=" + secret},
		http.StatusServiceUnavailable:  {metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request"},
		http.StatusGatewayTimeout:      {metav1.StatusReasonTimeout, "Timeout: request did not complete within the allotted timeout"},
	}[code]
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: said.reason, Message: said.message,
	}
}

// reset resets the client's connection and ends the handler.
func (p *Proxy) reset(r *http.Request, s subject) {
	p.answered(s, 0)
	if c, ok := r.Context().Value(connKey{}).(*tls.Conn); ok {
		if tcp, ok := c.NetConn().(*conn).Conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
			tcp.Close()
		}
	}
	panic(http.ErrAbortHandler)
}

// answer does to the API server's answer what was drawn for it.
func (p *Proxy) answer(r *http.Response) error {
	a := r.Request.Context().Value(askedKey{}).(*asked)
	if r.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	if a.verb == "watch" && r.StatusCode == http.StatusOK {
		if a.fault.Kind == resetAfter {
			return errReset
		}
		if p.about(a.subject) {
			r.Body = p.events(r, a.subject)
		}
		return nil
	}
	if a.verb == "create" && r.StatusCode == http.StatusCreated && r.Request.URL.Query().Get("dryRun") == "" {
		if err := p.created(r, a.resource); err != nil {
			return err
		}
	}
	switch a.fault.Kind {
	case resetAfter:
		return errReset
	case statusAfter:
		r.Body.Close()
		body, err := json.Marshal(statusOf(a.fault.Code, a.resource))
		if err != nil {
			return err
		}
		r.StatusCode, r.Header = a.fault.Code, http.Header{"Content-Type": {"application/json"}}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	case slowBody, stalledBody:
		whole, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return err
		}
		r.Body = &slow{ctx: a.client, rest: whole, whole: len(whole), fault: a.fault}
	}
	p.answered(a.subject, r.StatusCode)
	return nil
}

// created remembers the object that the API server has made.
func (p *Proxy) created(r *http.Response, resource string) error {
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var object metav1.PartialObjectMetadata
	if strings.HasPrefix(r.Header.Get("Content-Type"), api.ProtobufType) {
		raw, err := api.OpenEnvelope(body)
		if err != nil {
			return err
		}
		// All kinds have their metadata in the same place.
		err = object.Unmarshal(raw)
		if err != nil {
			return err
		}
	} else if err := json.Unmarshal(body, &object); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Created[resource] = append(p.counts.Created[resource], api.ObjectName(object.Namespace, object.Name))
	if !strings.Contains(resource, "/") {
		p.counts.Paths = append(p.counts.Paths, r.Request.URL.Path+"/"+object.Name)
	}
	return nil
}

// pieces is the number of pieces of a slow body.
const pieces = 20

// slow is a body that is slow or stalls.
type slow struct {
	ctx   context.Context
	rest  []byte
	whole int
	fault Fault
}

func (s *slow) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	wait := time.After(s.fault.For / pieces)
	if s.fault.Kind == stalledBody {
		if wait = nil; len(s.rest) > s.whole/2 {
			n := copy(b, s.rest[:len(s.rest)-s.whole/2])
			s.rest = s.rest[n:]
			return n, nil
		}
	}
	select {
	case <-wait:
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	n := copy(b, s.rest[:min(len(s.rest), s.whole/pieces+1)])
	s.rest = s.rest[n:]
	return n, nil
}

func (s *slow) Close() error { return nil }

// gated is a listener of connections on which bytes can be stopped.
type gated struct {
	net.Listener
	proxy *Proxy
}

func (g *gated) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g.proxy.mu.Lock()
	defer g.proxy.mu.Unlock()
	g.proxy.conns = append(g.proxy.conns, c)
	return &conn{c, g.proxy}, nil
}

type conn struct {
	net.Conn
	proxy *Proxy
}

// pass waits until bytes may pass.
func (c *conn) pass() {
	c.proxy.mu.Lock()
	open := c.proxy.open
	c.proxy.mu.Unlock()
	select {
	case <-open:
	case <-c.proxy.ended:
	}
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.pass()
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.pass()
	return c.Conn.Write(b)
}
