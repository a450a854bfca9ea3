package http

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/text/size"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

type entry struct {
	Method  string            `yaml:"method"`
	Path    string            `yaml:"path"`
	Host    string            `yaml:"host"`
	Headers map[string]string `yaml:"headers"`
	Body    string            `yaml:"body"`
	Weight  *float64          `yaml:"weight"`
	Status  int               `yaml:"status"`
}

type list struct {
	Requests []entry `yaml:"requests"`
}

// methods lists those that a request may have.
func methods() []string { return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} }

const (
	mostEntries = 10_000
	mostBody    = 16 << 20
	listHint    = "a file has 'requests:' and a list of path, method, host, headers, body, weight and status"
)

// readList reads the requests of a file, by host in its order; the server's own name is the default host.
func readList(file, server string) ([]load.Host, error) {
	if file == "" {
		return []load.Host{{Name: server, Weight: 1, Requests: []load.Request{{Method: "GET", Path: "/", Weight: 1}}}}, nil
	}
	text, err := size.ReadFile(file)
	if err != nil {
		return nil, system.ParamMistake("urls", listHint, "%w", err)
	}
	var l list
	positions, err := strictyaml.Decode(file, text, &l)
	if err != nil {
		return nil, system.ParamMistake("urls", listHint, "%w", err)
	}
	var problems []strictyaml.Problem
	wrong := func(path, format string, args ...any) {
		problems = append(problems, positions.Problem(path, format, args...))
	}
	if n := len(l.Requests); n == 0 || n > mostEntries {
		wrong("requests", "a list has 1 to %d requests, this one has %d", mostEntries, n)
	}
	var hosts []load.Host
	for i, e := range l.Requests {
		at := strictyaml.Index("requests", i)
		r, host := e.check(server, func(key, format string, args ...any) { wrong(at+"."+key, format, args...) })
		n := slices.IndexFunc(hosts, func(h load.Host) bool { return h.Name == host })
		if n < 0 {
			n, hosts = len(hosts), append(hosts, load.Host{Name: host})
		}
		hosts[n].Weight += r.Weight
		hosts[n].Requests = append(hosts[n].Requests, r)
	}
	if err := strictyaml.Join(problems); err != nil {
		return nil, system.ParamMistake("urls", listHint, "%w", err)
	}
	return hosts, nil
}

// check makes a request of an entry, and says what is wrong with it.
func (e entry) check(server string, wrong func(key, format string, args ...any)) (r load.Request, host string) {
	r, host = load.Request{Method: cmp.Or(e.Method, "GET"), Path: e.Path, Body: []byte(e.Body), Weight: 1, Status: e.Status}, cmp.Or(e.Host, server)
	if !slices.Contains(methods(), r.Method) {
		wrong("method", "the method %q is not one of %s", r.Method, strings.Join(methods(), ", "))
	}
	if u, err := url.ParseRequestURI(r.Path); err != nil || !strings.HasPrefix(r.Path, "/") || u.Host != "" || strings.ContainsAny(r.Path, " \r\n#") {
		wrong("path", "the path %q is not as a request has it: want / and what follows, escaped, such as /search?q=a%%20b", r.Path)
	}
	if !httpguts.ValidHostHeader(host) || strings.ContainsAny(host, "/@ ") {
		wrong("host", "%q is not the name of a host", host)
	}
	if e.Weight != nil {
		if r.Weight = *e.Weight; !(r.Weight > 0 && r.Weight <= 1e9) {
			wrong("weight", "the weight %g is not a number above 0", r.Weight)
		}
	}
	if r.Status != 0 && (r.Status < 200 || r.Status > 599) {
		wrong("status", "the status %d does not end an answer: want 200 to 599", r.Status)
	}
	if len(r.Body) > mostBody {
		wrong("body", "the body has %d bytes, more than %d", len(r.Body), mostBody)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		switch value := e.Headers[name]; {
		case slices.ContainsFunc([]string{"host", "content-length", "connection", "transfer-encoding"}, func(x string) bool { return strings.EqualFold(x, name) }):
			wrong("headers", "the header %s is made by the load itself", name)
		case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
			wrong("headers", "the header %q, or its value, has characters that none may have", name) // the value may be secret
		default:
			r.Fields = append(r.Fields, [2]string{name, value})
		}
	}
	return r, host
}

// digest tells lists apart without telling what is in them: headers may be secret and do not count.
func digest(hosts []load.Host) string {
	h := sha256.New()
	for _, host := range hosts {
		for _, r := range host.Requests {
			fmt.Fprintf(h, "%q %q %q %d %g %d\n", host.Name, r.Method, r.Path, len(r.Body), r.Weight, r.Status)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// server describes what is loaded.
type server struct {
	secure  bool
	name    string // as requests name it, with the port where it is not the usual one
	host    string // without it
	port    string
	address string // IP address and port, once it is looked up
	here    bool   // that is one of this machine's
}

func (s server) String() string {
	if s.secure {
		return "https://" + s.name
	}
	return "http://" + s.name
}

func parseServer(text string) (s server, err error) {
	const hint = "name the server that is to be loaded: --set server=http://192.0.2.1:8080 or https://www.example.com"
	u, err := url.Parse(text)
	switch {
	case text == "":
		return s, system.ParamMistake("server", hint, "no server is named")
	case !strings.Contains(text, "://"):
		return s, system.ParamMistake("server", "write --set server=http://"+text+", or https://", "%q has no scheme", text)
	case err != nil:
		return s, system.ParamMistake("server", hint, "%q is not an address: %w", text, errors.Unwrap(err))
	case u.User != nil:
		return s, system.ParamMistake("server", "give credentials as a header in the file of urls", "an address with a password would be on record")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return s, system.ParamMistake("server", hint, "%q is not http or https, a host and a port", text)
	}
	s = server{secure: u.Scheme == "https", name: u.Host, host: u.Hostname(), port: u.Port()}
	if usual := map[bool]string{false: "80", true: "443"}[s.secure]; s.port == "" || s.port == usual {
		s.port = usual
		if s.name = s.host; strings.Contains(s.host, ":") {
			s.name = "[" + s.host + "]"
		}
	}
	return s, nil
}

func (s *server) find(ctx context.Context) error {
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", s.host)
	if err != nil {
		return system.ParamMistake("server", "", "look up %s: %w", s.host, err)
	}
	at := addresses[0].Unmap()
	s.address, s.here = net.JoinHostPort(at.String(), s.port), at.IsLoopback()
	own, _ := net.InterfaceAddrs() // without them it is one of another machine
	for _, a := range own {
		if n, is := a.(*net.IPNet); is && n.IP.Equal(at.AsSlice()) {
			s.here = true
		}
	}
	return nil
}
