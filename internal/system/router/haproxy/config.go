// Package haproxy runs an HAProxy of its own: its configuration, its
// certificates, its process and what it tells of itself.
package haproxy

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// Termination is where the TLS of a route ends.
type Termination string

// The terminations.
const (
	None        Termination = "none"        // there is no TLS
	Edge        Termination = "edge"        // at the router
	Passthrough Termination = "passthrough" // at the server behind it
	Reencrypt   Termination = "reencrypt"   // at the router, and there is another to the server
)

// Secure reports whether clients speak TLS.
func (t Termination) Secure() bool { return t != None }

// Config is what an HAProxy is configured for.
type Config struct {
	Termination Termination
	// Plain and Secure are addresses that it listens on.
	Plain, Secure string
	Routes        []string // names of hosts
	// Spares is how many backends stand ready for further routes, whose servers
	// take nothing yet.
	Spares int
	// Servers are the addresses of the servers of each route.
	Servers []string
	// Others are the servers of the first Moved routes instead.
	Others        []string
	Moved         int
	ServerMaxconn int    // requests at a time of a server, others wait in its queue; 0 is any number
	Certificate   string // file of the certificate and its key
	ServerCA      string // file of the certificate of the servers
	Threads       int
	Maxconn       int
	Bufsize       int
	Maxrewrite    int
	CPUs          []int // that its threads are pinned to, none for any
	TLSVersion    string
	Resumption    bool
	Cookies       bool
	HTTP2         bool // is offered to clients of TLS
	ServerHTTP2   bool // is spoken to servers
	// Exact looks names of hosts up as they are, instead of by the regular
	// expressions that OpenShift's router has for them.
	Exact bool
	// Template is the text of a configuration, "" for ours.
	Template string
}

//go:embed router.cfg.tmpl
var ours string

// Names of files in an HAProxy's own directory, in which it works.
const (
	configFile  = "haproxy.cfg"
	statsSocket = "stats.sock"
	sniSocket   = "sni.sock"
)

// Files are the configuration's files by name.
func (c Config) Files() (map[string][]byte, error) {
	text := ours
	if c.Template != "" {
		text = c.Template
	}
	t, err := template.New(configFile).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the template of HAProxy's configuration: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, c); err != nil {
		return nil, fmt.Errorf("fill in the template of HAProxy's configuration: %w", err)
	}
	files := map[string][]byte{configFile: b.Bytes()}
	for _, name := range []string{"http.map", "secure.map", "passthrough.map", "tcp.map"} {
		files[name] = nil
	}
	for _, name := range c.maps() {
		files[name] = c.hostMap(name)
	}
	return files, nil
}

// hostMap is a map file from names of hosts to backends.
func (c Config) hostMap(name string) []byte {
	var b bytes.Buffer
	for i, host := range c.Routes {
		value := c.Backend(i)
		if name == "passthrough.map" {
			value = "1"
		}
		b.WriteString(c.mapKey(name, host) + " " + value + "\n")
	}
	return b.Bytes()
}

// mapKey is a host's key in a map file. Of plain requests the path follows the
// host.
func (c Config) mapKey(name, host string) string {
	switch {
	case c.Exact:
		return host
	case name == "passthrough.map" || name == "tcp.map":
		return "^" + regexp.QuoteMeta(host) + "$"
	}
	return "^" + regexp.QuoteMeta(host) + `\.?(:[0-9]+)?(/.*)?$`
}

// Kind is how names are looked up in a map.
func (c Config) Kind() string {
	if c.Exact {
		return "str"
	}
	return "reg"
}

// Lookup is the expression that finds a request's backend in a map file.
func (c Config) Lookup(file string) string {
	if c.Exact {
		return "req.hdr(host),field(1,:),lower,map_str(" + file + ")"
	}
	return "base,map_reg(" + file + ")"
}

// Backends are the numbers of the backends: of each route, and the spare ones.
func (c Config) Backends() []int {
	list := make([]int, len(c.Routes)+c.Spares)
	for i := range list {
		list[i] = i
	}
	return list
}

// Backend is the name of the backend of a route.
func (c Config) Backend(route int) string {
	kind := map[Termination]string{None: "http", Edge: "edge", Passthrough: "tcp", Reencrypt: "secure"}[c.Termination]
	return fmt.Sprintf("be_%s_%d", kind, route)
}

// Passes reports whether TLS passes through.
func (c Config) Passes() bool { return c.Termination == Passthrough }

// StatsSocket and SNISocket are the sockets of the configuration.
func (Config) StatsSocket() string { return "unix@./" + statsSocket }

// SNISocket is where TLS traffic crosses to the frontend that ends it.
func (Config) SNISocket() string { return "unix@./" + sniSocket }

// ServerOptions are the options of the n-th server of a route. One alone is not
// checked: there is no other to go to.
func (c Config) ServerOptions(route, n int) string {
	var b strings.Builder
	if route >= len(c.Routes) {
		b.WriteString(" disabled")
	}
	if c.Cookies && !c.Passes() {
		fmt.Fprintf(&b, " cookie s%d", n)
	}
	if c.ServerMaxconn > 0 {
		fmt.Fprintf(&b, " maxconn %d", c.ServerMaxconn)
	}
	if c.Termination == Reencrypt {
		fmt.Fprintf(&b, " ssl verify required ca-file %s", c.ServerCA)
		if c.ServerHTTP2 {
			b.WriteString(" alpn h2")
		}
	} else if c.ServerHTTP2 && !c.Passes() {
		b.WriteString(" proto h2")
	}
	if len(c.Servers) > 1 {
		b.WriteString(" check inter 5s")
	}
	return b.String()
}

// CPUMap is the argument of cpu-map, "" for none.
func (c Config) CPUMap() string {
	if len(c.CPUs) == 0 {
		return ""
	}
	var list []string
	for _, cpu := range c.CPUs {
		list = append(list, fmt.Sprint(cpu))
	}
	threads := "1/1"
	if c.Threads > 1 {
		threads = fmt.Sprintf("1/1-%d", c.Threads)
		if c.Threads == len(c.CPUs) {
			threads = "auto:" + threads // a processor for each thread
		}
	}
	return threads + " " + strings.Join(list, " ")
}

// ServersOf are the addresses of the servers of a route.
func (c Config) ServersOf(route int) []string {
	if route < c.Moved {
		return c.Others
	}
	return c.Servers
}

// Adding are the commands of the runtime API that give a spare backend, the first
// is 0, to a host.
func (c Config) Adding(host string, spare int) []string {
	backend := c.Backend(len(c.Routes) + spare)
	list := c.setServers(backend, "ready")
	for _, file := range c.maps() {
		value := backend
		if file == "passthrough.map" {
			value = "1"
		}
		list = append(list, fmt.Sprintf("add map %s %s %s", file, c.mapKey(file, host), value))
	}
	return list
}

// Removing are the commands that take it away again.
func (c Config) Removing(host string, spare int) []string {
	var list []string
	for _, file := range c.maps() {
		list = append(list, fmt.Sprintf("del map %s %s", file, c.mapKey(file, host)))
	}
	return append(list, c.setServers(c.Backend(len(c.Routes)+spare), "maint")...)
}

// setServers are the commands that set the state of a backend's servers.
func (c Config) setServers(backend, state string) []string {
	var list []string
	for n := range c.Servers {
		list = append(list, fmt.Sprintf("set server %s/s%d state %s", backend, n, state))
	}
	return list
}

// maps are the map files in which a host's route stands.
func (c Config) maps() []string {
	switch {
	case c.Passes():
		return []string{"tcp.map", "passthrough.map"}
	case c.Termination == None:
		return []string{"http.map"}
	}
	return []string{"secure.map"}
}
