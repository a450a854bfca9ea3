package haproxy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// LineError is a line of a configuration that may not be there.
type LineError struct {
	Line  int // of the configuration that the template gave
	Found string
	Why   string
	Hint  string // what to do about it, or ""
}

// Error implements error.
func (e *LineError) Error() string {
	return fmt.Sprintf("line %d of the configuration: %q: %s", e.Line, e.Found, e.Why)
}

// words makes a set of the words of a text.
func words(text string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

// rules say what a configuration may hold: anybody may write a template, and directives can run programs,
// load code, and read, write and listen anywhere.
type rules struct {
	global, proxy map[string]bool
	// first holds the words that may follow a directive, of those that have any.
	first map[string]map[string]bool
	// These options may stand behind an address, each with so many words after it.
	bind, server, socket map[string]int
	calls                *regexp.Regexp  // functions of expressions
	files                map[string]bool // words that the name of a file follows
	reasons              map[string]string
}

func allowed() rules {
	options := func(none, one string) map[string]int {
		all := make(map[string]int)
		for w := range words(none) {
			all[w] = 0
		}
		for w := range words(one) {
			all[w] = 1
		}
		return all
	}
	actions := words(`add-header set-header del-header replace-header replace-value replace-path replace-pathq replace-uri set-path set-pathq set-uri set-query set-method
		set-var set-var-fmt unset-var set-status set-nice set-log-level deny allow accept tarpit redirect return reject capture silent-drop normalize-uri strict-mode
		sc-inc-gpc0 sc-inc-gpc1 sc-set-gpt0 track-sc0 track-sc1 track-sc2 wait-for-body wait-for-handshake disable-l7-retry close use-service`)
	secure := " ssl-min-ver ssl-max-ver ciphers ciphersuites curves verify ca-file crt alpn "
	return rules{
		global: words(`maxconn nbthread cpu-map thread-groups stats ssl-default-bind-options ssl-default-bind-ciphers ssl-default-bind-ciphersuites ssl-default-bind-curves
			ssl-default-server-options ssl-default-server-ciphers ssl-default-server-ciphersuites ssl-server-verify hard-stop-after spread-checks max-spread-checks busy-polling
			noepoll nopoll nosplice numa-cpu-mapping strict-limits maxconnrate maxsessrate maxsslconn maxsslrate maxpipes maxcomprate description node`),
		proxy: words(`mode timeout option maxconn fullconn backlog balance hash-type hash-balance-factor retries retry-on cookie bind server default-server default_backend use_backend
			use-server acl http-request http-response http-after-response tcp-request tcp-response redirect compression monitor-uri monitor stick-table stick http-reuse rate-limit
			capture id description enabled disabled stats http-check tcp-check persist ignore-persist force-persist dynamic-cookie-key unique-id-format unique-id-header max-keep-alive-queue`),
		first: map[string]map[string]bool{
			"http-request": actions, "http-response": actions, "http-after-response": actions,
			"tcp-request": words("inspect-delay connection content session"), "tcp-response": words("inspect-delay content"), "tcp-request content": actions, "tcp-request connection": actions, "tcp-request session": actions, "tcp-response content": actions,
			"option": words(`httplog tcplog httpclose http-server-close http-keep-alive forwardfor redispatch tcpka clitcpka srvtcpka dontlognull dontlog-normal logasap log-health-checks
				http-buffer-request http-ignore-probes http-no-delay http-pretend-keepalive httpchk tcp-check ssl-hello-chk abortonclose accept-invalid-http-request
				accept-invalid-http-response allbackends checkcache contstats idle-close-on-response independent-streams nolinger originalto persist prefer-last-server socket-stats
				splice-auto splice-request splice-response tcp-smart-accept tcp-smart-connect http-restrict-req-hdr-names h1-case-adjust-bogus-client h1-case-adjust-bogus-server disable-h2-upgrade`),
			"stats": words("socket timeout maxconn enable uri refresh hide-version realm show-legends show-node scope"),
			"mode":  words("http tcp"), "http-check": words("send expect disable-on-404 send-state comment"), "tcp-check": words("send send-binary expect comment"),
		},
		bind: options(`ssl accept-proxy tfo defer-accept v4v6 v6only strict-sni no-tls-tickets no-sslv3 no-tlsv10 no-tlsv11 no-tlsv12 no-tlsv13 prefer-client-ciphers allow-0rtt no-alpn`,
			secure+"crt-list name id maxconn backlog nice mss process thread shards ecdhe tcp-ut"),
		server: options(`ssl check backup disabled enabled send-proxy send-proxy-v2 check-ssl check-send-proxy no-ssl-reuse no-tls-tickets no-check no-verifyhost tfo allow-0rtt
			no-sslv3 no-tlsv10 no-tlsv11 no-tlsv12 no-tlsv13 ssl-reuse`,
			secure+`cookie weight maxconn maxqueue minconn inter fastinter downinter rise fall sni proto check-proto check-sni check-alpn port slowstart verifyhost pool-max-conn
			pool-low-conn pool-purge-delay max-reuse observe on-error on-marked-down on-marked-up error-limit id track tcp-ut shard`),
		socket: options("", "mode level expose-fd name maxconn"),
		calls: regexp.MustCompile(`^((req\.|res\.|req_|res_|shdr|s)?f?(hdr|cook)(_[a-z0-9_]+)?|hdr(_[a-z]+)?|(url_param|urlp)(_[a-z]+)?|path(_[a-z]+)?|base(_[a-z]+)?|map(_[a-z_]+)?|` +
			`(set|unset|replace|capture)-[a-z-]+|sc-[a-z0-9-]+|var|str|int|bool|ipv4|ipv6|ip|field|word|regsub|sub|add|mul|div|mod|neg|not|and|or|xor|concat|bytes|ipmask|json|length|` +
			`crc32|crc32c|djb2|sdbm|wt6|xxh3|xxh32|xxh64|sha2|hmac|digest|hex|base64|b64dec|ub64enc|ub64dec|url_dec|url_enc|rtrim|ltrim|strcmp|iif|in_table|capture\.[a-z.]+|` +
			`table_[a-z0-9_]+|sc[0-2]?_[a-z0-9_]+|src_[a-z0-9_]+|nbsrv|be_[a-z_]+|fe_[a-z_]+|srv_[a-z_]+|queue|avg_queue|connslots|rand|date|ltime|utime|http_date|` +
			`(req\.|res\.)?(ssl|payload)[a-z0-9_.]*|payload_lv|rdp_cookie|uuid|hash|random|hdr_ip|rfc[0-9]+|first|secure_memcmp|wait_end|str|strip|normalize-uri|max-age)$`),
		files: words("file lf-file errorfile errorfiles crt crt-list ca-file ca-verify-file ca-sign-file crl-file crt-base ca-base -f"),
		reasons: map[string]string{
			"lua-load": "HAProxy loads no code", "lua-load-per-thread": "HAProxy loads no code", "lua-prepend-path": "HAProxy loads no code", "external-check": "HAProxy runs no other program",
			"insecure-fork-wanted": "HAProxy runs no other program", "program": "HAProxy runs no other program", "master-worker": "this program starts and ends HAProxy", "daemon": "this program starts and ends HAProxy",
			"user": "this program says as whom HAProxy runs", "group": "this program says as whom HAProxy runs", "chroot": "HAProxy has a directory of its own", "pidfile": "this program starts and ends HAProxy",
			"log": "HAProxy writes no log here", "setenv": "HAProxy has no environment", "presetenv": "HAProxy has no environment", "peers": "HAProxy speaks with nobody but its clients and servers",
			"resolvers": "HAProxy speaks with nobody but its clients and servers",
		},
	}
}

// allow returns, as a *LineError, the first line of a configuration that may not be there.
func (c Config) allow(text string) error {
	r, section := allowed(), map[string]bool(nil)
	sections := map[string]map[string]bool{"global": r.global, "defaults": r.proxy, "frontend": r.proxy, "backend": r.proxy, "listen": r.proxy}
	for n, line := range strings.Split(text, "\n") {
		tokens, why := split(line)
		hint := ""
		if why == "" && len(tokens) > 0 {
			if next := sections[tokens[0]]; next != nil {
				section = next
			} else {
				why, hint = r.line(c, section, tokens)
			}
		}
		if why != "" {
			return &LineError{n + 1, strings.TrimSpace(line), why, hint}
		}
	}
	return nil
}

// line says why a line of a section may not be there, "" where it may.
func (r rules) line(c Config, section map[string]bool, tokens []string) (why, hint string) {
	if len(tokens) > 1 && (tokens[0] == "no" || tokens[0] == "default") {
		tokens = tokens[1:]
	}
	name, args := tokens[0], tokens[1:]
	if !section[name] && !(strings.HasPrefix(name, "tune.") && !strings.Contains(name, "lua")) {
		names := slices.Sorted(maps.Keys(section))
		if near, ok := nearest.Word(name, names); ok {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		if why = r.reasons[name]; why != "" {
			why += "; "
		}
		return fmt.Sprintf("%sa template may not have %q here, but these: %s", why, name, strings.Join(names, ", ")), hint
	}
	for key, rest := name, args; r.first[key] != nil; key, rest = key+" "+word(rest), rest[1:] {
		if len(rest) == 0 {
			break
		}
		if may := r.first[key]; !may[word(rest)] {
			return fmt.Sprintf("%q may not follow %s, but these: %s", word(rest), key, strings.Join(slices.Sorted(maps.Keys(may)), ", ")), ""
		}
	}
	if why = r.expressions(args); why != "" {
		return why, ""
	}
	switch {
	case name == "bind" && len(args) > 0:
		return c.address(args[0], args[1:], r.bind), ""
	case name == "server" && len(args) > 1:
		return c.address(args[1], args[2:], r.server), ""
	case name == "default-server":
		return behind(args, r.server), ""
	case name == "stats" && len(args) > 1 && args[0] == "socket":
		return c.address(args[1], args[2:], r.socket), ""
	}
	return "", ""
}

// word returns the first of several words, without what stands in brackets behind it.
func word(of []string) string {
	w, _, _ := strings.Cut(of[0], "(")
	return w
}

var (
	plainFile  = regexp.MustCompile(`^(\./)?[A-Za-z0-9][A-Za-z0-9._-]*$`)
	socketFile = regexp.MustCompile(`^unix@\./run/[A-Za-z0-9][A-Za-z0-9._-]*$`)
	calling    = regexp.MustCompile(`([A-Za-z0-9_.-]*)\(([^,()]*)`)
)

// expressions says what is wrong with the functions and files that words name.
func (r rules) expressions(args []string) string {
	for i, a := range args {
		if strings.HasPrefix(a, "lua.") || strings.Contains(a, "[lua.") {
			return "HAProxy loads no code"
		}
		if i > 0 && r.files[args[i-1]] && !plainFile.MatchString(a) {
			return fmt.Sprintf("the file %q must be one of HAProxy's own directory, by its name alone", a)
		}
		for _, m := range calling.FindAllStringSubmatch(a, -1) {
			name, first := m[1], m[2]
			if name != "" && !r.calls.MatchString(name) {
				return fmt.Sprintf("the function %s is not one that a template may call", name)
			}
			if strings.HasPrefix(name, "map") && !plainFile.MatchString(first) {
				return fmt.Sprintf("the file %q must be one of HAProxy's own directory, by its name alone", first)
			}
		}
	}
	return ""
}

// address says what is wrong with an address and the options behind it.
func (c Config) address(address string, args []string, options map[string]int) string {
	own := append(slices.Concat(c.Servers, c.Secured, c.Others, c.OthersSecured), c.Plain, c.Secure)
	for one := range strings.SplitSeq(address, ",") {
		if !socketFile.MatchString(one) && !slices.Contains(own, one) {
			return fmt.Sprintf("the address %q must be one of this router's or its servers', or a socket in HAProxy's own directory, such as unix@./run/a.sock", one)
		}
	}
	return behind(args, options)
}

// behind says what is wrong with options.
func behind(args []string, options map[string]int) string {
	for i := 0; i < len(args); i++ {
		follow, ok := options[args[i]]
		if !ok {
			return fmt.Sprintf("the option %q may not stand behind an address, but these: %s", args[i], strings.Join(slices.Sorted(maps.Keys(options)), ", "))
		}
		i += follow
	}
	return ""
}

// split takes a line apart as HAProxy does, but leaves out backslashes that mean nothing to it.
func split(line string) (tokens []string, why string) {
	var b strings.Builder
	quote, within := byte(0), false
	end := func() {
		if within {
			tokens = append(tokens, b.String())
		}
		b.Reset()
		within = false
	}
	for i := 0; i < len(line); i++ {
		ch := line[i]
		switch {
		case ch < ' ' && ch != '\t':
			return nil, "it holds a character that is not text"
		case ch == '$' && quote == '"':
			return nil, "HAProxy has no environment to fill in"
		case quote != 0 && ch == quote:
			quote = 0
		case quote == '\'':
			b.WriteByte(ch)
		case ch == '\\' && i+1 < len(line):
			if i++; line[i] == 'x' {
				return nil, "it holds a character by its number"
			}
			b.WriteByte(line[i])
			within = true
		case quote == 0 && (ch == '"' || ch == '\''):
			quote, within = ch, true
		case quote == 0 && (ch == ' ' || ch == '\t'):
			end()
		case quote == 0 && ch == '#':
			end()
			return tokens, ""
		default:
			b.WriteByte(ch)
			within = true
		}
	}
	if end(); quote != 0 {
		return nil, "a quotation has no end"
	}
	return tokens, ""
}
