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
	var fix string
	found := fmt.Sprintf("%s is %q", v.name, v.value)
	switch {
	case form == "connections" && err != nil && v.value != "auto":
		fix, found = "write a whole number: twice the connections that clients make", found+": the router leaves maxconn out if it is no whole number"
	case form == "connections" && err == nil && n < 1:
		fix, found = "write at least 2000", fmt.Sprintf("%s is %d", v.name, n)
	case form == "number" && (err != nil || n < 1):
		fix = "write a whole number above 0"
	case form == "time" && !routerTime.MatchString(v.value):
		fix, found = "write a number with us, ms, s, m, h or d, such as 30s", found+": the router takes its default for what is no time of HAProxy"
	case form == "algorithm" && !slices.Contains([]string{"roundrobin", "leastconn", "source", "random"}, v.value):
		fix = "write roundrobin, leastconn, source or random"
	default:
		return
	}
	out.find("router-env", v.atValue, fix, found)
	return out
}

// Lines of HAProxy's configuration: one that puts a process on a single CPU, and
// the one that says how many threads there are.
var (
	cpuMapLine  = regexp.MustCompile(`(?m)^\s*cpu-map\s+((?:auto:)?[0-9]+)\s+([0-9]+)\s*(?:#.*)?$`)
	threadsLine = regexp.MustCompile(`(?m)^\s*nbthread\s+([0-9]+)`)
)

// haproxyFile finds threads that are all put on one CPU, which haproxy -c takes.
func haproxyFile(t *text) (out report) {
	out.recognised = true
	fix, has := "write cpu-map auto:1/1-N 0-(N-1) for N threads, or nbthread 1", "a thread for each CPU by default"
	if m := threadsLine.FindStringSubmatch(t.data); m != nil {
		threads, _ := strconv.Atoi(m[1])
		if threads == 1 {
			return out
		}
		fix, has = fmt.Sprintf("write cpu-map auto:1/1-%d 0-%d, or nbthread 1", threads, threads-1), fmt.Sprintf("%d threads", threads)
	}
	for _, m := range cpuMapLine.FindAllStringSubmatchIndex(t.data, -1) {
		process, cpu := t.data[m[2]:m[3]], t.data[m[4]:m[5]]
		out.find("haproxy-cpu-map", t.placeAt(m[2]), fix, fmt.Sprintf("cpu-map %s %s: HAProxy has %s, and all of them are put on CPU %s", process, cpu, has, cpu))
	}
	return out
}
