package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/nearest"
)

// variable is a variable of an environment that is set somewhere.
type variable struct {
	name            string
	value           string
	hasValue        bool // a value that is known
	atName, atValue place
	rename          func(string) []edit
}

// routerVariables are what the router's template reads, and what each may be.
func routerVariables() map[string]string {
	m := make(map[string]string)
	for _, name := range strings.Fields(`
		ROUTER_ALLOWED_DOMAINS ROUTER_ALLOW_WILDCARD_ROUTES ROUTER_BACKEND_CHECK_INTERVAL ROUTER_BACKEND_PROCESS_ENDPOINTS
		ROUTER_BIND_PORTS_AFTER_SYNC ROUTER_BIND_PORTS_BEFORE_SYNC ROUTER_BLUEPRINT_ROUTE_NAMESPACE ROUTER_BLUEPRINT_ROUTE_LABELS
		ROUTER_BLUEPRINT_ROUTE_POOL_SIZE ROUTER_CANONICAL_HOSTNAME ROUTER_CAPTURE_HTTP_COOKIE ROUTER_CAPTURE_HTTP_REQUEST_HEADERS
		ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS ROUTER_CIPHERS ROUTER_CIPHERSUITES ROUTER_CLIENT_FIN_TIMEOUT ROUTER_COMPRESSION_MIME
		ROUTER_COOKIE_NAME ROUTER_DEFAULT_CONNECT_TIMEOUT ROUTER_DEFAULT_CLIENT_TIMEOUT ROUTER_DEFAULT_SERVER_FIN_TIMEOUT
		ROUTER_DEFAULT_SERVER_TIMEOUT ROUTER_DEFAULT_TUNNEL_TIMEOUT ROUTER_DENIED_DOMAINS ROUTER_DISABLE_HTTP2
		ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK ROUTER_DOMAIN ROUTER_DONT_LOG_NULL ROUTER_ENABLE_COMPRESSION
		ROUTER_ENABLE_INGRESS ROUTER_ERRORFILE_404 ROUTER_ERRORFILE_503 ROUTER_ENABLE_HTTP2 ROUTER_EXTENDED_VALIDATION ROUTER_H1_CASE_ADJUST
		ROUTER_HAPROXY_CONFIG_MANAGER ROUTER_HAPROXY_CONTSTATS ROUTER_HARD_STOP_AFTER ROUTER_HTTP_IGNORE_PROBES ROUTER_HTTP_HEADER_NAME_CASE_ADJUSTMENTS
		ROUTER_HTTP_REQUEST_HEADERS ROUTER_HTTP_RESPONSE_HEADERS ROUTER_IDLE_CLOSE_ON_RESPONSE ROUTER_INSPECT_DELAY ROUTER_IP_V4_V6_MODE ROUTER_LISTEN_ADDR
		ROUTER_LOAD_BALANCE_ALGORITHM ROUTER_LOG_FACILITY ROUTER_LOG_LEVEL ROUTER_LOG_MAX_LENGTH ROUTER_MAX_CONNECTIONS ROUTER_MAX_DYNAMIC_SERVERS
		ROUTER_MAX_REWRITE_SIZE ROUTER_BUF_SIZE ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL ROUTER_METRICS_HAPROXY_EXPORTED
		ROUTER_METRICS_HAPROXY_SCRAPE_URI ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD ROUTER_METRICS_HAPROXY_TIMEOUT ROUTER_METRICS_READY_HTTP_URL
		ROUTER_METRICS_TLS_CERT_FILE ROUTER_METRICS_TLS_KEY_FILE ROUTER_METRICS_TYPE ROUTER_MUTUAL_TLS_AUTH
		ROUTER_MUTUAL_TLS_AUTH_CA ROUTER_MUTUAL_TLS_AUTH_CRL ROUTER_MUTUAL_TLS_AUTH_FILTER ROUTER_OVERRIDE_DOMAINS ROUTER_OVERRIDE_HOSTNAME
		ROUTER_SERVICE_HTTPS_PORT ROUTER_SERVICE_HTTP_PORT ROUTER_SERVICE_NAME ROUTER_SERVICE_NAMESPACE ROUTER_SERVICE_NO_SNI_PORT
		ROUTER_SERVICE_SNI_PORT ROUTER_SET_FORWARDED_HEADERS ROUTER_SLOWLORIS_HTTP_KEEPALIVE ROUTER_SLOWLORIS_TIMEOUT
		ROUTER_STATS_PORT ROUTER_STATS_USERNAME ROUTER_STATS_PASSWORD ROUTER_STRICT_SNI ROUTER_SUBDOMAIN ROUTER_SYSLOG_ADDRESS ROUTER_SYSLOG_FORMAT
		ROUTER_TCP_BALANCE_SCHEME ROUTER_THREADS ROUTER_UNIQUE_ID_FORMAT ROUTER_UNIQUE_ID_HEADER_NAME ROUTER_UNSUPPORTED_CONFIG_OVERRIDES
		ROUTER_USE_PROXY_PROTOCOL ROUTER_WEIGHTED_ROUNDROBIN ROUTER_ENABLE_EXTERNAL_CERTIFICATE`) {
		m[name] = ""
	}
	for _, name := range strings.Fields("ROUTER_BUF_SIZE ROUTER_MAX_REWRITE_SIZE ROUTER_THREADS ROUTER_MAX_DYNAMIC_SERVERS ROUTER_SERVICE_HTTPS_PORT ROUTER_SERVICE_HTTP_PORT ROUTER_STATS_PORT") {
		m[name] = "number"
	}
	m["ROUTER_MAX_CONNECTIONS"] = "connections"
	for _, name := range strings.Fields(`ROUTER_CLIENT_FIN_TIMEOUT ROUTER_DEFAULT_CONNECT_TIMEOUT ROUTER_DEFAULT_CLIENT_TIMEOUT ROUTER_DEFAULT_SERVER_FIN_TIMEOUT
		ROUTER_DEFAULT_SERVER_TIMEOUT ROUTER_DEFAULT_TUNNEL_TIMEOUT ROUTER_HARD_STOP_AFTER ROUTER_INSPECT_DELAY ROUTER_SLOWLORIS_HTTP_KEEPALIVE
		ROUTER_SLOWLORIS_TIMEOUT ROUTER_BACKEND_CHECK_INTERVAL`) {
		m[name] = "time"
	}
	m["ROUTER_TCP_BALANCE_SCHEME"] = "algorithm"
	m["ROUTER_LOAD_BALANCE_ALGORITHM"] = "algorithm"
	return m
}

// routerTime matches what the router's template takes for a time; anything
// else it leaves out.
var routerTime = regexp.MustCompile(`^[1-9][0-9]*(us|ms|s|m|h|d)?$`)

// routerVariable holds a variable against what the router reads.
func (l *linter) routerVariable(v variable) {
	if !strings.HasPrefix(v.name, "ROUTER_") {
		return
	}
	if l.routerFacts == nil {
		l.routerFacts = routerVariables()
	}
	form, known := l.routerFacts[v.name]
	if !known {
		var names []string
		for name := range l.routerFacts {
			names = append(names, name)
		}
		slices.Sort(names)
		if near, ok := nearest.Word(v.name, names); ok {
			l.report("router-env", v.atName, "write "+near, fmt.Sprintf("the router reads no variable %s", v.name), v.rename(near)...)
		}
		return
	}
	if !v.hasValue || v.value == "" || hasHole(v.value) {
		return
	}
	n, err := strconv.Atoi(v.value)
	switch form {
	case "connections":
		if v.value == "auto" {
			return
		}
		if err != nil {
			l.report("router-env", v.atValue, "write a whole number: twice the connections that clients make", fmt.Sprintf("%s is %q: the router leaves maxconn out if it is no whole number", v.name, v.value))
		} else if n < 1 {
			l.report("router-env", v.atValue, "write at least 2000", fmt.Sprintf("%s is %d", v.name, n))
		}
	case "number":
		if err != nil || n < 1 {
			l.report("router-env", v.atValue, "write a whole number above 0", fmt.Sprintf("%s is %q", v.name, v.value))
		}
	case "time":
		if !routerTime.MatchString(v.value) {
			l.report("router-env", v.atValue, "write a number with us, ms, s, m, h or d, such as 30s", fmt.Sprintf("%s is %q: the router takes its default for what is no time of HAProxy", v.name, v.value))
		}
	case "algorithm":
		if !slices.Contains([]string{"roundrobin", "leastconn", "source", "random"}, v.value) {
			l.report("router-env", v.atValue, "write roundrobin, leastconn, source or random", fmt.Sprintf("%s is %q", v.name, v.value))
		}
	}
}

// haproxySections begin a part of HAProxy's configuration.
func haproxySections() []string {
	return []string{"global", "defaults", "frontend", "backend", "listen", "peers", "resolvers", "userlist", "program", "cache", "mailers", "http-errors", "ring", "fcgi-app", "log-forward", "crt-store", "traces"}
}

// directive is a line of HAProxy's configuration.
type directive struct {
	words   []string
	columns []int
	line    int
	section string // "" before the first
}

// haproxyDirectives reads HAProxy's configuration line by line.
func haproxyDirectives(t *text) (directives []directive) {
	section := ""
	for n := 1; n <= len(t.lines); n++ {
		d := directive{line: n, section: section}
		line := t.line(n)
		for i := 0; i < len(line); {
			if line[i] == ' ' || line[i] == '\t' {
				i++
				continue
			}
			if line[i] == '#' {
				break
			}
			start := i
			for i < len(line) && line[i] != ' ' && line[i] != '\t' {
				if line[i] == '\\' {
					i++
				}
				i++
			}
			i = min(i, len(line))
			d.words = append(d.words, line[start:i])
			d.columns = append(d.columns, start+1)
		}
		if len(d.words) == 0 {
			continue
		}
		if d.columns[0] == 1 && slices.Contains(haproxySections(), d.words[0]) {
			section = d.words[0]
			continue
		}
		directives = append(directives, d)
	}
	return directives
}

// haproxy looks at HAProxy's configuration.
func (l *linter) haproxy(t *text) {
	l.recognised = true
	directives := haproxyDirectives(t)
	threads := 0 // as many as there are CPUs
	globalMax := 0
	numbers := make(map[string]int)
	places := make(map[string]place)
	for _, d := range directives {
		n := 0
		if len(d.words) > 1 {
			n, _ = strconv.Atoi(d.words[1])
		}
		switch {
		case d.words[0] == "nbthread" && n > 0 && (d.section == "global" || d.section == ""):
			threads = n
		case d.words[0] == "maxconn" && d.section == "global" && n > 0:
			globalMax = n
		case (d.words[0] == "tune.bufsize" || d.words[0] == "tune.maxrewrite") && n > 0:
			numbers[d.words[0]] = n
			places[d.words[0]] = place{text: t, line: d.line, column: d.columns[1]}
		}
	}
	global := []string{"cpu-map", "nbthread", "nbproc", "tune.bufsize", "tune.maxrewrite", "daemon", "maxconnrate", "ulimit-n", "stats-file", "thread-groups"}
	for _, d := range directives {
		at := place{text: t, line: d.line, column: d.columns[0]}
		if slices.Contains(global, d.words[0]) && d.section != "global" && d.section != "" {
			l.report("haproxy-section", at, "move it to the section global", fmt.Sprintf("%s stands in the section %s", d.words[0], d.section))
		}
		if mend, ok := removedDirectives()[d.words[0]]; ok {
			l.report("haproxy-removed", at, mend, fmt.Sprintf("HAProxy no longer has %s", d.words[0]))
		}
		if d.words[0] == "cpu-map" && len(d.words) >= 3 {
			l.cpuMap(t, d, threads)
		}
		if d.words[0] == "maxconn" && d.section != "global" && d.section != "" && globalMax > 0 && len(d.words) > 1 {
			if n, err := strconv.Atoi(d.words[1]); err == nil && n > globalMax {
				l.report("haproxy-maxconn", place{text: t, line: d.line, column: d.columns[1]}, fmt.Sprintf("raise the one of global, or write at most %d", globalMax), fmt.Sprintf("maxconn is %d here, and %d in global", n, globalMax))
			}
		}
	}
	if rewrite, ok := numbers["tune.maxrewrite"]; ok {
		buffer, set := numbers["tune.bufsize"]
		if !set {
			buffer = 16384
		}
		if rewrite > buffer/2 {
			l.report("haproxy-bufsize", places["tune.maxrewrite"], fmt.Sprintf("write at most %d, or raise tune.bufsize", buffer/2), fmt.Sprintf("tune.maxrewrite is %d, tune.bufsize %d", rewrite, buffer))
		}
	}
}

// removedDirectives are those that HAProxy no longer has.
func removedDirectives() map[string]string {
	rule := "write http-request or http-response rules"
	m := map[string]string{"nbproc": "use threads instead, nbthread; it went with HAProxy 2.5"}
	for _, name := range strings.Fields("reqadd reqallow reqiallow reqdel reqidel reqdeny reqideny reqpass reqipass reqrep reqirep reqtarpit reqitarpit rspadd rspdel rspidel rspdeny rspideny rsprep rspirep") {
		m[name] = rule + "; it went with HAProxy 2.1"
	}
	return m
}

// cpuMap finds threads that are all put on one CPU.
func (l *linter) cpuMap(t *text, d directive, threads int) {
	process, set := d.words[1], d.words[2:]
	at := place{text: t, line: d.line, column: d.columns[1]}
	bare := strings.TrimPrefix(process, "auto:")
	if n, err := strconv.Atoi(bare); err == nil && n < 1 {
		l.report("haproxy-section", at, "write 1: HAProxy counts its own processes from 1, this is no process ID", fmt.Sprintf("cpu-map has the process number %s", process))
		return
	}
	if strings.Contains(process, "/") || threads == 1 || len(set) != 1 {
		return
	}
	if n, err := strconv.Atoi(bare); err == nil && n > 64 {
		l.report("haproxy-section", at, "write 1: the number is HAProxy's own, and no process ID", fmt.Sprintf("cpu-map has the process number %s", process))
		return
	}
	if _, err := strconv.Atoi(set[0]); err != nil {
		return // a range of CPUs
	}
	mend := "write cpu-map auto:1/1-N 0-(N-1) for N threads, or nbthread 1"
	if threads > 1 {
		mend = fmt.Sprintf("write cpu-map auto:1/1-%d 0-%d, or nbthread 1", threads, threads-1)
	}
	many := "a thread for each CPU by default"
	if threads > 1 {
		many = fmt.Sprintf("%d threads", threads)
	}
	l.report("haproxy-cpu-map", at, mend, fmt.Sprintf("cpu-map %s %s: HAProxy has %s, and all of them are put on CPU %s", process, set[0], many, set[0]))
}
