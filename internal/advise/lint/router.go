package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/nearest"
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
	for form, names := range map[string]string{
		"text": `ALLOWED_DOMAINS ALLOW_WILDCARD_ROUTES BACKEND_PROCESS_ENDPOINTS BIND_PORTS_AFTER_SYNC BIND_PORTS_BEFORE_SYNC BLUEPRINT_ROUTE_NAMESPACE
			BLUEPRINT_ROUTE_LABELS BLUEPRINT_ROUTE_POOL_SIZE CANONICAL_HOSTNAME CAPTURE_HTTP_COOKIE CAPTURE_HTTP_REQUEST_HEADERS CAPTURE_HTTP_RESPONSE_HEADERS
			CIPHERS CIPHERSUITES COMPRESSION_MIME COOKIE_NAME DENIED_DOMAINS DISABLE_HTTP2 DISABLE_NAMESPACE_OWNERSHIP_CHECK DOMAIN DONT_LOG_NULL
			ENABLE_COMPRESSION ENABLE_INGRESS ERRORFILE_404 ERRORFILE_503 ENABLE_HTTP2 EXTENDED_VALIDATION H1_CASE_ADJUST HAPROXY_CONFIG_MANAGER HAPROXY_CONTSTATS
			HTTP_IGNORE_PROBES HTTP_HEADER_NAME_CASE_ADJUSTMENTS HTTP_REQUEST_HEADERS HTTP_RESPONSE_HEADERS IDLE_CLOSE_ON_RESPONSE IP_V4_V6_MODE LISTEN_ADDR
			LOG_FACILITY LOG_LEVEL LOG_MAX_LENGTH METRICS_HAPROXY_BASE_SCRAPE_INTERVAL METRICS_HAPROXY_EXPORTED METRICS_HAPROXY_SCRAPE_URI
			METRICS_HAPROXY_SERVER_THRESHOLD METRICS_HAPROXY_TIMEOUT METRICS_READY_HTTP_URL METRICS_TLS_CERT_FILE METRICS_TLS_KEY_FILE METRICS_TYPE
			MUTUAL_TLS_AUTH MUTUAL_TLS_AUTH_CA MUTUAL_TLS_AUTH_CRL MUTUAL_TLS_AUTH_FILTER OVERRIDE_DOMAINS OVERRIDE_HOSTNAME SERVICE_NAME SERVICE_NAMESPACE
			SERVICE_NO_SNI_PORT SERVICE_SNI_PORT SET_FORWARDED_HEADERS STATS_USERNAME STATS_PASSWORD STRICT_SNI SUBDOMAIN SYSLOG_ADDRESS SYSLOG_FORMAT
			UNIQUE_ID_FORMAT UNIQUE_ID_HEADER_NAME UNSUPPORTED_CONFIG_OVERRIDES USE_PROXY_PROTOCOL WEIGHTED_ROUNDROBIN ENABLE_EXTERNAL_CERTIFICATE`,
		"number": `MAX_DYNAMIC_SERVERS MAX_REWRITE_SIZE BUF_SIZE SERVICE_HTTPS_PORT SERVICE_HTTP_PORT STATS_PORT THREADS`,
		"time": `BACKEND_CHECK_INTERVAL CLIENT_FIN_TIMEOUT DEFAULT_CONNECT_TIMEOUT DEFAULT_CLIENT_TIMEOUT DEFAULT_SERVER_FIN_TIMEOUT DEFAULT_SERVER_TIMEOUT
			DEFAULT_TUNNEL_TIMEOUT HARD_STOP_AFTER INSPECT_DELAY SLOWLORIS_HTTP_KEEPALIVE SLOWLORIS_TIMEOUT`,
		"algorithm":   `LOAD_BALANCE_ALGORITHM TCP_BALANCE_SCHEME`,
		"connections": `MAX_CONNECTIONS`,
	} {
		for _, name := range strings.Fields(names) {
			m["ROUTER_"+name] = form
		}
	}
	return m
}

// routerTime matches what the router's template takes for a time; anything
// else it leaves out.
var routerTime = regexp.MustCompile(`^[1-9][0-9]*(us|ms|s|m|h|d)?$`)

// checkRouterVariable holds a variable against what the router reads.
func checkRouterVariable(v variable) (out report) {
	if !strings.HasPrefix(v.name, "ROUTER_") {
		return
	}
	variables := routerVariables()
	form, known := variables[v.name]
	if !known {
		if near, ok := nearest.Word(v.name, slices.Sorted(maps.Keys(variables))); ok {
			out.find("router-env", v.atName, "write "+near, fmt.Sprintf("the router reads no variable %s", v.name), v.rename(near)...)
		}
		return
	}
	if !v.hasValue || v.value == "" || hasHole(v.value) {
		return
	}
	n, err := strconv.Atoi(v.value)
	var mend string
	found := fmt.Sprintf("%s is %q", v.name, v.value)
	switch {
	case form == "connections" && err != nil && v.value != "auto":
		mend, found = "write a whole number: twice the connections that clients make", found+": the router leaves maxconn out if it is no whole number"
	case form == "connections" && err == nil && n < 1:
		mend, found = "write at least 2000", fmt.Sprintf("%s is %d", v.name, n)
	case form == "number" && (err != nil || n < 1):
		mend = "write a whole number above 0"
	case form == "time" && !routerTime.MatchString(v.value):
		mend, found = "write a number with us, ms, s, m, h or d, such as 30s", found+": the router takes its default for what is no time of HAProxy"
	case form == "algorithm" && !slices.Contains([]string{"roundrobin", "leastconn", "source", "random"}, v.value):
		mend = "write roundrobin, leastconn, source or random"
	default:
		return
	}
	out.find("router-env", v.atValue, mend, found)
	return out
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

// number is the first argument; ok is false when it is no whole number.
func (d directive) number() (n int, ok bool) {
	if len(d.words) < 2 {
		return 0, false
	}
	n, err := strconv.Atoi(d.words[1])
	return n, err == nil
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

// haproxyFile looks at HAProxy's configuration.
func haproxyFile(t *text) (out report) {
	out.recognised = true
	directives := haproxyDirectives(t)
	threads := 0 // as many as there are CPUs
	most, buffer, rewrite := 0, 16384, 0
	var atRewrite place
	for _, d := range directives {
		n, _ := d.number()
		switch {
		case n <= 0:
		case d.words[0] == "nbthread" && (d.section == "global" || d.section == ""):
			threads = n
		case d.words[0] == "maxconn" && d.section == "global":
			most = n
		case d.words[0] == "tune.bufsize":
			buffer = n
		case d.words[0] == "tune.maxrewrite":
			rewrite, atRewrite = n, t.place(d.line, d.columns[1])
		}
	}
	global := []string{"cpu-map", "nbthread", "nbproc", "tune.bufsize", "tune.maxrewrite", "daemon", "maxconnrate", "ulimit-n", "stats-file", "thread-groups"}
	for _, d := range directives {
		at := t.place(d.line, d.columns[0])
		name, inPart := d.words[0], d.section != "global" && d.section != ""
		if slices.Contains(global, name) && inPart {
			out.find("haproxy-section", at, "move it to the section global", fmt.Sprintf("%s stands in the section %s", name, d.section))
		}
		if mend, ok := removedDirectives()[name]; ok {
			out.find("haproxy-removed", at, mend, "HAProxy no longer has "+name)
		}
		if name == "cpu-map" && len(d.words) >= 3 {
			out.add(checkCPUMap(t, d, threads))
		}
		if n, ok := d.number(); ok && name == "maxconn" && inPart && most > 0 && n > most {
			out.find("haproxy-maxconn", t.place(d.line, d.columns[1]), fmt.Sprintf("raise the one of global, or write at most %d", most), fmt.Sprintf("maxconn is %d here, and %d in global", n, most))
		}
	}
	if rewrite > buffer/2 {
		out.find("haproxy-bufsize", atRewrite, fmt.Sprintf("write at most %d, or raise tune.bufsize", buffer/2), fmt.Sprintf("tune.maxrewrite is %d, tune.bufsize %d", rewrite, buffer))
	}
	return out
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

// checkCPUMap finds threads that are all put on one CPU.
func checkCPUMap(t *text, d directive, threads int) (out report) {
	process, set := d.words[1], d.words[2:]
	at := t.place(d.line, d.columns[1])
	spread := strings.Contains(process, "/") || threads == 1 || len(set) != 1
	found := "cpu-map has the process number " + process
	n, err := strconv.Atoi(strings.TrimPrefix(process, "auto:"))
	if err == nil && n < 1 {
		out.find("haproxy-section", at, "write 1: HAProxy counts its own processes from 1, this is no process ID", found)
	} else if err == nil && n > 64 && !spread {
		out.find("haproxy-section", at, "write 1: the number is HAProxy's own, and no process ID", found)
	} else if _, err := strconv.Atoi(set[0]); err == nil && !spread { // no range of CPUs
		mend, has := "write cpu-map auto:1/1-N 0-(N-1) for N threads, or nbthread 1", "a thread for each CPU by default"
		if threads > 1 {
			mend, has = fmt.Sprintf("write cpu-map auto:1/1-%d 0-%d, or nbthread 1", threads, threads-1), fmt.Sprintf("%d threads", threads)
		}
		out.find("haproxy-cpu-map", at, mend, fmt.Sprintf("cpu-map %s %s: HAProxy has %s, and all of them are put on CPU %s", process, set[0], has, set[0]))
	}
	return out
}

// checkIngressController holds the router's tuning against its ranges.
func checkIngressController(options value) (out report) {
	fail := func(v value, mend string) {
		out.find("router-env", v.at(), mend, fmt.Sprintf("%s is %s", lastOf(v.path), v.text()))
	}
	number := func(key string, otherwise int64) (int64, value, bool) {
		v := options.get(key)
		if v.node == nil {
			return otherwise, v, false
		}
		n, _ := strconv.ParseInt(v.text(), 10, 64)
		return n, v, true
	}
	if n, v, ok := number("maxConnections", 0); ok && n != 0 && n != -1 && (n < 2000 || n > 2_000_000) {
		fail(v, "write 2000 to 2000000, -1 for what the node bears, or 0 for the default of 50000")
	}
	if n, v, ok := number("threadCount", 0); ok && (n < 1 || n > 64) {
		fail(v, "write 1 to 64")
	}
	buffer, b, sized := number("headerBufferBytes", 32768)
	if sized && buffer < 16384 {
		fail(b, "write at least 16384; the default is 32768")
	}
	rewrite, r, kept := number("headerBufferMaxRewriteBytes", 8192)
	if kept && rewrite < 4096 {
		fail(r, "write at least 4096; the default is 8192")
	}
	if (sized || kept) && buffer >= 16384 && rewrite >= buffer {
		if !kept {
			r = b
		}
		out.find("router-env", options.doc.at(r.node, options.path), "make the buffer larger than what is kept for rewriting", fmt.Sprintf("headerBufferBytes is %d, headerBufferMaxRewriteBytes %d", buffer, rewrite))
	}
	return out
}
