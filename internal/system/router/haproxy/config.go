// Package haproxy runs an HAProxy: its configuration, certificates, process and figures.
package haproxy

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"plimsoll.dev/plimsoll/internal/text/budget"
)

// Termination says where the TLS of a route ends.
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

// Route leads from the name of a host to servers.
type Route struct {
	Host        string
	Termination Termination
	Certificate string // names the file of its own certificate, "" for that of the router
}

// Config says what an HAProxy is configured for.
type Config struct {
	// Routes under load, and added ones, have this Termination. HAProxy listens on Plain and Secure.
	Termination   Termination
	Plain, Secure string
	Routes        []Route
	Redirects     bool // sends clients that ask for a route with TLS without it to TLS
	Spares        int  // counts the backends that stand ready for further routes, whose servers take nothing yet
	// Servers are the addresses of each route's servers, Secured those by TLS; Services are weights.
	Servers, Secured []string
	Services         []int
	// Heavy gives the servers of a single service the weight 256, as OpenShift's router did until 4.11:
	// with balance random HAProxy keeps a node for each unit of weight.
	Heavy                 bool
	Others, OthersSecured []string // The first Moved routes have these servers instead
	Moved                 int
	ServerMaxconn         int    // requests at a time of a server, others wait in its queue; 0 is any number
	Certificate           string // file of the certificate and its key
	ServerCA              string // file of the certificate of the servers
	Threads               int
	Maxconn               int
	Bufsize               int
	Maxrewrite            int
	CPUs                  []int // that its threads are pinned to, none for any
	TLSVersion            string
	Resumption            bool
	Cookies               bool
	HTTP2                 bool   // is offered to clients of TLS
	ServerHTTP2           bool   // is spoken to servers
	OfferHTTP2            bool   // is offered to servers that are reached by TLS
	Exact                 bool   // looks names of hosts up as they are, not by OpenShift's regular expressions
	Publishes             bool   // metrics, on a socket
	Template              string // text of a configuration, "" for ours
}

//go:embed router.cfg.tmpl
var ours string

// Names of files in an HAProxy's own directory; sockets lie in a directory of its user.
const (
	configFile    = "haproxy.cfg"
	sockets       = "run/"
	statsSocket   = sockets + "stats.sock"
	metricsSocket = sockets + "metrics.sock" // where metrics are published
	httpMap       = "http.map"
	secureMap     = "secure.map"
	passesMap     = "passthrough.map"
	tcpMap        = "tcp.map"
	redirectMap   = "redirect.map"
	certificates  = "certificates.list"
)

const mostText = 256 << 20 // of the configuration that a template makes

// files returns the configuration's files by name, which a template does not reach.
func (c Config) files() (map[string][]byte, error) {
	spends := &budget.Budget{Most: mostText}
	t, err := template.New(configFile).Option("missingkey=error").Funcs(spends.Functions(nil, nil)).Parse(cmp.Or(c.Template, ours))
	if err != nil {
		return nil, fmt.Errorf("read the template of HAProxy's configuration: %w", err)
	}
	budget.Compile(t)
	filled, err := spends.Execute(t, c)
	if err != nil {
		return nil, fmt.Errorf("fill in the template of HAProxy's configuration: %w", err)
	}
	files := map[string][]byte{configFile: filled}
	lists := make(map[string]*bytes.Buffer)
	for _, name := range []string{httpMap, secureMap, passesMap, tcpMap, redirectMap, certificates} {
		lists[name] = new(bytes.Buffer)
	}
	for i, r := range c.Routes {
		for _, name := range c.maps(r.Termination) {
			fmt.Fprintf(lists[name], "%s %s\n", c.mapKey(name, r.Host), c.mapValue(name, i))
		}
		if r.Certificate != "" {
			fmt.Fprintf(lists[certificates], "%s %s\n", r.Certificate, r.Host)
		}
	}
	for name, list := range lists {
		files[name] = list.Bytes()
	}
	return files, nil
}

// mapValue returns what a map file says of a route.
func (c Config) mapValue(name string, route int) string {
	if name == passesMap || name == redirectMap {
		return "1"
	}
	return c.Backend(route)
}

// mapKey returns a host's key in a map file. Of requests that are read the path follows the host.
func (c Config) mapKey(name, host string) string {
	switch {
	case c.Exact:
		return host
	case name == passesMap || name == tcpMap:
		return "^" + regexp.QuoteMeta(host) + "$"
	}
	return "^" + regexp.QuoteMeta(host) + `\.?(:[0-9]+)?(/.*)?$`
}

// Kind tells how names are looked up in a map.
func (c Config) Kind() string {
	if c.Exact {
		return "str"
	}
	return "reg"
}

// Lookup returns the expression that finds what a map file says of a request.
func (c Config) Lookup(file string) string {
	if c.Exact {
		return "req.hdr(host),field(1,:),lower,map_str(" + file + ")"
	}
	return "base,map_reg(" + file + ")"
}

// LookupNumber returns what Lookup does, for a number.
func (c Config) LookupNumber(file string) string {
	return strings.Replace(c.Lookup(file), "("+file, "_int("+file, 1)
}

// Backends returns the numbers of the backends: of each route, and the spare ones.
func (c Config) Backends() []int {
	list := make([]int, len(c.Routes)+c.Spares)
	for i := range list {
		list[i] = i
	}
	return list
}

// of tells where the TLS of a route ends; spare ones are like those under load.
func (c Config) of(route int) Termination {
	if route < len(c.Routes) {
		return c.Routes[route].Termination
	}
	return c.Termination
}

// Backend names the backend of a route.
func (c Config) Backend(route int) string {
	kind := map[Termination]string{None: "http", Edge: "edge", Passthrough: "tcp", Reencrypt: "secure"}[c.of(route)]
	return fmt.Sprintf("be_%s_%d", kind, route)
}

// Passes reports whether the TLS of a route passes through.
func (c Config) Passes(route int) bool { return c.of(route) == Passthrough }

// Ends reports whether the TLS of a route ends at the router.
func (c Config) Ends(route int) bool { t := c.of(route); return t == Edge || t == Reencrypt }

// Balance tells how requests are shared out to the servers of a route.
func (c Config) Balance(route int) string {
	switch {
	case len(c.Services) > 1:
		return "roundrobin"
	case c.Passes(route):
		return "source"
	}
	return "random"
}

// StatsSocket returns the address at which HAProxy takes commands.
func (Config) StatsSocket() string { return "unix@./" + statsSocket }

// SNI names the frontends that end TLS with their lists of certificates: by host, and without.
func (Config) SNI() map[string]string { return map[string]string{"sni": certificates, "no_sni": ""} }

// ServerOptions returns the options of a route's n-th server. One alone needs no checks.
func (c Config) ServerOptions(route, n int) string {
	var b strings.Builder
	if route >= len(c.Routes) {
		b.WriteString(" disabled")
	}
	if c.Cookies && !c.Passes(route) {
		fmt.Fprintf(&b, " cookie s%d", n)
	}
	fmt.Fprintf(&b, " weight %d", c.weight(n))
	if c.ServerMaxconn > 0 {
		fmt.Fprintf(&b, " maxconn %d", c.ServerMaxconn)
	}
	if c.of(route) == Reencrypt {
		fmt.Fprintf(&b, " ssl verify required ca-file %s", c.ServerCA)
		if c.ServerHTTP2 || c.OfferHTTP2 {
			b.WriteString(" alpn h2,http/1.1")
		}
	} else if c.ServerHTTP2 && !c.Passes(route) {
		b.WriteString(" proto h2")
	}
	if len(c.Servers) > 1 {
		b.WriteString(" check inter 5s")
	}
	return b.String()
}

const mostWeight = 256 // that HAProxy takes

// weight weighs the n-th server of a route. The heaviest service has the highest weight, one alone has 1.
func (c Config) weight(n int) int {
	switch {
	case len(c.Services) > 1:
		service := c.Services[n*len(c.Services)/len(c.Servers)]
		return (service*mostWeight + slices.Max(c.Services)/2) / slices.Max(c.Services)
	case c.Heavy:
		return mostWeight
	}
	return 1
}

// CPUMap returns the argument of cpu-map, "" for none.
func (c Config) CPUMap() string {
	if len(c.CPUs) == 0 {
		return ""
	}
	threads := "1/1"
	if c.Threads > 1 {
		threads = fmt.Sprintf("1/1-%d", c.Threads)
		if c.Threads == len(c.CPUs) {
			threads = "auto:" + threads // a processor for each thread
		}
	}
	return threads + " " + strings.Trim(fmt.Sprint(c.CPUs), "[]")
}

// ServersOf returns the addresses of the servers of a route.
func (c Config) ServersOf(route int) []string {
	plain, secure := c.Servers, c.Secured
	if route < c.Moved {
		plain, secure = c.Others, c.OthersSecured
	}
	if t := c.of(route); t == Passthrough || t == Reencrypt {
		return secure
	}
	return plain
}

// Adding returns the commands of the runtime API that give a spare backend, the first is 0, to a host.
func (c Config) Adding(host string, spare int) []string {
	backend := c.Backend(len(c.Routes) + spare)
	list := c.setServers(backend, "ready")
	for _, file := range c.maps(c.Termination) {
		list = append(list, fmt.Sprintf("add map %s %s %s", file, c.mapKey(file, host), c.mapValue(file, len(c.Routes)+spare)))
	}
	return list
}

// Removing returns the commands that take it away again.
func (c Config) Removing(host string, spare int) []string {
	var list []string
	for _, file := range c.maps(c.Termination) {
		list = append(list, fmt.Sprintf("del map %s %s", file, c.mapKey(file, host)))
	}
	return append(list, c.setServers(c.Backend(len(c.Routes)+spare), "maint")...)
}

func (c Config) setServers(backend, state string) []string {
	var list []string
	for n := range c.Servers {
		list = append(list, fmt.Sprintf("set server %s/s%d state %s", backend, n, state))
	}
	return list
}

// maps names the map files in which a route stands.
func (c Config) maps(t Termination) []string {
	switch {
	case t == Passthrough:
		return []string{tcpMap, passesMap}
	case t == None:
		return []string{httpMap}
	case c.Redirects:
		return []string{secureMap, redirectMap}
	}
	return []string{secureMap}
}
