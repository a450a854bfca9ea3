// Package backend serves pages of one size, with a planted service time, in a process of its own.
package backend

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/text/dist"
)

// Component is the name of the server among the program's hidden commands.
const Component = "backend"

// Spec says what a server serves, and where.
type Spec struct {
	Plain       string `json:"plain"`       // host and port
	Secure      string `json:"secure"`      // likewise, by TLS; "" for none
	Certificate string `json:"certificate"` // and Key are files
	Key         string `json:"key"`
	Mark        string `json:"mark,omitempty"` // begins each page, "" for Mark
	PageSize    int    `json:"pageSize"`
	Header      int    `json:"header,omitempty"` // number of further bytes in the headers of answers
	// Service is the distribution of answer times, as in dist, or ""; Workers bounds those at once, 0 is any.
	Service string `json:"service,omitempty"`
	Workers int    `json:"workers,omitempty"`
	HTTP2   bool   `json:"http2,omitempty"` // also serves HTTP/2
}

// Mark begins a page, as far as the page is that long.
const Mark = "plimsoll page\n"

// OtherMark begins the pages of another server: the two differ after CommonMark bytes.
const (
	OtherMark  = "plimsoll part\n"
	CommonMark = len("plimsoll pa")
)

// Begin returns the beginning of a page of a size.
func Begin(size int) []byte { return []byte(Mark[:min(len(Mark), size)]) }

// Run serves the Spec in a file until it is killed. The file is the only argument.
func Run(args []string) error {
	if len(args) != 1 {
		return errors.New("the server's command line has the name of a file")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("read what is to be served: %w", err)
	}
	var spec Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("read %s: %w", args[0], err)
	}
	plain, err := net.Listen("tcp4", spec.Plain)
	if err != nil {
		return fmt.Errorf("serve pages: %w", err)
	}
	s, err := New(spec)
	if err != nil {
		return err
	}
	if spec.Secure == "" {
		return s.Serve(plain)
	}
	pair, err := tls.LoadX509KeyPair(spec.Certificate, spec.Key)
	if err != nil {
		return fmt.Errorf("serve pages: %w", err)
	}
	raw, err := net.Listen("tcp4", spec.Secure)
	if err != nil {
		return fmt.Errorf("serve pages: %w", err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		// The hybrid curve is left out: it costs much more for each handshake.
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256},
	}
	if spec.HTTP2 {
		return s.serveHTTP2(plain, raw, config)
	}
	failed := make(chan error, 2)
	go func() { failed <- s.Serve(plain) }()
	go func() { failed <- s.Serve(tls.NewListener(raw, config)) }()
	return <-failed
}

// Server serves pages.
type Server struct {
	answer, last []byte // last ends a connection
	size         int
	header       string
	service      dist.Dist
	waits        bool
	workers      chan struct{} // nil for any number
}

// New makes a server of a Spec, whose files and addresses it does not use.
func New(spec Spec) (*Server, error) {
	s := &Server{size: spec.PageSize, header: strings.Repeat("h", spec.Header)}
	if spec.Service != "" {
		var err error
		if s.service, err = dist.Parse(spec.Service); err != nil {
			return nil, fmt.Errorf("the time of an answer: %w", err)
		}
		s.waits = true
	}
	if spec.Workers > 0 {
		s.workers = make(chan struct{}, spec.Workers)
	}
	text := func(more string) []byte {
		head := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: " + strconv.Itoa(spec.PageSize) + "\r\n" + more
		if s.header != "" {
			head += "X-Load: " + s.header + "\r\n"
		}
		return append([]byte(head+"\r\n"), page(cmp.Or(spec.Mark, Mark), spec.PageSize)...)
	}
	s.answer, s.last = text(""), text("Connection: close\r\n")
	return s, nil
}

func page(mark string, size int) []byte {
	b := append([]byte(mark[:min(len(mark), size)]), bytes.Repeat([]byte{'p'}, max(size-len(mark), 0))...)
	if size > len(mark) {
		b[size-1] = '\n'
	}
	return b
}

// Serve serves connections until the listener fails.
func (s *Server) Serve(l net.Listener) error {
	for n := uint64(0); ; n++ {
		conn, err := l.Accept()
		if err != nil {
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() {
				continue
			}
			return fmt.Errorf("serve pages: %w", err)
		}
		go s.talk(conn, rand.New(rand.NewPCG(n, 1)))
	}
}

const requestBytes = 256 << 10 // bounds a request's head

func (s *Server) talk(conn net.Conn, rng *rand.Rand) {
	defer conn.Close()
	buf := make([]byte, 4<<10)
	filled := 0
	for {
		end := bytes.Index(buf[:filled], []byte("\r\n\r\n"))
		if end < 0 {
			if filled == len(buf) {
				if filled >= requestBytes {
					return
				}
				buf = append(buf, make([]byte, len(buf))...)
			}
			n, err := conn.Read(buf[filled:])
			if filled += n; n == 0 && err != nil {
				return
			}
			continue
		}
		body, last, ok := parse(buf[:end])
		if !ok {
			return
		}
		head := end + 4
		if rest := int64(filled - head); rest > body {
			copy(buf, buf[head+int(body):filled])
			filled = int(rest - body)
		} else {
			if _, err := io.CopyN(io.Discard, conn, body-rest); err != nil {
				return
			}
			filled = 0
		}
		s.work(rng)
		answer := s.answer
		if last {
			answer = s.last
		}
		if _, err := conn.Write(answer); err != nil || last {
			return
		}
	}
}

func (s *Server) work(rng *rand.Rand) {
	if !s.waits {
		return
	}
	if s.workers != nil {
		s.workers <- struct{}{}
		defer func() { <-s.workers }()
	}
	time.Sleep(s.service.At(rng.Float64()))
}

// parse reads from a request's head the length of its body, and whether the connection ends after it.
func parse(head []byte) (body int64, last, ok bool) {
	first, rest, _ := bytes.Cut(head, []byte("\r\n"))
	last, ok = bytes.HasSuffix(first, []byte("HTTP/1.0")), bytes.Count(first, []byte(" ")) == 2
	for line := range bytes.SplitSeq(rest, []byte("\r\n")) {
		// Routers write names in lower case, other clients with capitals.
		switch {
		case len(line) > 15 && (line[0] == 'c' || line[0] == 'C') && bytes.EqualFold(line[:15], []byte("content-length:")):
			n, err := strconv.ParseInt(string(bytes.TrimSpace(line[15:])), 10, 64)
			if err != nil || n < 0 {
				return 0, false, false
			}
			body = n
		case len(line) > 11 && (line[0] == 'c' || line[0] == 'C') && bytes.EqualFold(line[:11], []byte("connection:")):
			last = bytes.EqualFold(bytes.TrimSpace(line[11:]), []byte("close"))
		case len(line) > 18 && (line[0] == 't' || line[0] == 'T') && bytes.EqualFold(line[:18], []byte("transfer-encoding:")):
			return 0, false, false // our requests have a length
		}
	}
	return body, last, ok
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.work(rand.New(rand.NewPCG(uint64(len(r.RemoteAddr)), 1)))
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Content-Length", strconv.Itoa(s.size))
	if s.header != "" {
		w.Header().Set("X-Load", s.header)
	}
	_, _ = w.Write(s.answer[len(s.answer)-s.size:])
}

// serveHTTP2 uses the standard library's server, which supports HTTP/2.
func (s *Server) serveHTTP2(plain, raw net.Listener, config *tls.Config) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: s, Protocols: &protocols, TLSConfig: config, ReadHeaderTimeout: time.Minute}
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(plain) }()
	go func() { failed <- server.ServeTLS(raw, "", "") }()
	return <-failed
}
