package lint

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/nearest"
)

//go:embed sysctl-keys.txt
var sysctlKeys string

// setting is a sysctl key and what it is set to.
type setting struct {
	key, value      string
	atKey, atValue  place
	replaceKey      func(string) []edit // nil if it cannot be
	replaceValue    func(string) []edit
	scope           string // settings of one scope meet on one machine
	commentsAllowed bool
}

// sysctlFile reads a file of the form of sysctl.conf.
func (l *linter) sysctlFile(t *text, scope string) {
	l.recognised = true
	for n := 1; n <= len(t.lines); n++ {
		l.sysctlLine(t, n, t.line(n), scope, false)
	}
}

// sysctlLine reads one line of such a file.
func (l *linter) sysctlLine(t *text, n int, line, scope string, commentsAllowed bool) {
	trimmed := strings.TrimSpace(line)
	if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' || hasHole(trimmed) {
		return
	}
	key, value, ok := strings.Cut(line, "=")
	if !ok {
		if !strings.HasPrefix(trimmed, "-") { // "-key" excludes it from a pattern
			l.report("sysctl-value", place{text: t, line: n, column: 1 + len(line) - len(strings.TrimLeft(line, " \t"))}, "write KEY = VALUE", fmt.Sprintf("the line is no setting: %q", trimmed))
		}
		return
	}
	keyAt := len(key) - len(strings.TrimLeft(key, " \t-"))
	valueAt := len(key) + 1 + len(value) - len(strings.TrimLeft(value, " \t"))
	start, _ := t.offset(n, 1)
	lead := t.lines[n-1]
	s := setting{
		key: strings.TrimSpace(key[keyAt:]), value: strings.TrimSpace(value), scope: scope, commentsAllowed: commentsAllowed,
		atKey: place{text: t, line: n, column: keyAt + 1}, atValue: place{text: t, line: n, column: valueAt + 1},
	}
	if start == lead && strings.HasPrefix(t.data[lead:], line) {
		// The line is written as it was read.
		s.replaceKey = func(fresh string) []edit { return []edit{{t, lead + keyAt, lead + keyAt + len(s.key), fresh}} }
		s.replaceValue = func(fresh string) []edit { return []edit{{t, lead + valueAt, lead + valueAt + len(s.value), fresh}} }
		if i := commentIn(s.value); i >= 0 && !commentsAllowed {
			bare := strings.TrimRight(s.value[:i], " \t")
			comment := strings.TrimSpace(s.value[i:])
			indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
			l.report("sysctl-comment", place{text: t, line: n, column: valueAt + i + 1}, "put the comment on a line of its own before this one",
				fmt.Sprintf("the value is %q, comment and all", s.value),
				edit{t, lead, lead, indent + comment + "\n"}, edit{t, lead + valueAt + len(bare), lead + valueAt + len(s.value), ""})
			s.value = bare
			s.replaceValue = nil // after the comment is gone
		}
	}
	l.setting(s)
}

// commentIn is where a comment begins that stands behind a value, or -1.
func commentIn(value string) int {
	for i := 1; i < len(value); i++ {
		if (value[i] == '#' || value[i] == ';') && (value[i-1] == ' ' || value[i-1] == '\t') {
			return i
		}
	}
	return -1
}

// normalKey writes a key with dots, and the name of an interface as *.
func normalKey(key string) string {
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '/' {
		// With slashes the names of interfaces may have dots.
		key = strings.NewReplacer("/", ".", ".", "/").Replace(key)
	}
	parts := strings.Split(key, ".")
	if len(parts) >= 5 && parts[0] == "net" && (parts[2] == "conf" || parts[2] == "neigh") {
		parts = []string{parts[0], parts[1], parts[2], "*", parts[len(parts)-1]}
	}
	return strings.Join(parts, ".")
}

// sysctlRange is what the kernel takes for a key.
type sysctlRange struct {
	numbers   int // how many
	low, high int64
}

// sysctlRanges are the ranges of keys that people set, from the kernel's own
// documentation (admin-guide/sysctl and networking/ip-sysctl).
func sysctlRanges() map[string]sysctlRange {
	const most = math.MaxInt32
	m := map[string]sysctlRange{
		"net.core.rmem_max": {1, 1, most}, "net.core.wmem_max": {1, 1, most}, "net.core.rmem_default": {1, 1, most}, "net.core.wmem_default": {1, 1, most},
		"net.core.netdev_max_backlog": {1, 0, most}, "net.core.netdev_budget": {1, 1, most}, "net.core.netdev_budget_usecs": {1, 0, most},
		"net.core.somaxconn": {1, 0, most}, "net.core.optmem_max": {1, 0, most}, "net.core.dev_weight": {1, 1, most}, "net.core.busy_poll": {1, 0, most}, "net.core.busy_read": {1, 0, most},
		"net.ipv4.tcp_rmem": {3, 1, most}, "net.ipv4.tcp_wmem": {3, 1, most}, "net.ipv4.tcp_mem": {3, 0, math.MaxInt64}, "net.ipv4.udp_mem": {3, 0, math.MaxInt64},
		"net.ipv4.ip_local_port_range": {2, 1, 65535}, "net.ipv4.tcp_window_scaling": {1, 0, 1}, "net.ipv4.tcp_timestamps": {1, 0, 2}, "net.ipv4.tcp_sack": {1, 0, 1},
		"net.ipv4.tcp_tw_reuse": {1, 0, 2}, "net.ipv4.tcp_fin_timeout": {1, 0, most}, "net.ipv4.tcp_max_syn_backlog": {1, 0, most}, "net.ipv4.tcp_syncookies": {1, 0, 2},
		"net.ipv4.tcp_slow_start_after_idle": {1, 0, 1}, "net.ipv4.tcp_mtu_probing": {1, 0, 2}, "net.ipv4.tcp_moderate_rcvbuf": {1, 0, 1}, "net.ipv4.tcp_no_metrics_save": {1, 0, 1},
		"net.ipv4.tcp_keepalive_time": {1, 0, most}, "net.ipv4.tcp_keepalive_intvl": {1, 0, most}, "net.ipv4.tcp_keepalive_probes": {1, 0, 255}, "net.ipv4.tcp_retries2": {1, 0, 255},
		"net.ipv4.tcp_max_tw_buckets": {1, 0, most}, "net.ipv4.ip_forward": {1, 0, 1}, "net.ipv4.tcp_ecn": {1, 0, 5},
		"net.netfilter.nf_conntrack_max": {1, 0, most}, "net.nf_conntrack_max": {1, 0, most}, "net.netfilter.nf_conntrack_buckets": {1, 0, most},
		"net.bridge.bridge-nf-call-iptables": {1, 0, 1}, "net.bridge.bridge-nf-call-ip6tables": {1, 0, 1}, "net.bridge.bridge-nf-call-arptables": {1, 0, 1},
		"vm.swappiness": {1, 0, 200}, "vm.dirty_ratio": {1, 0, 100}, "vm.dirty_background_ratio": {1, 0, 100}, "vm.overcommit_memory": {1, 0, 2}, "vm.overcommit_ratio": {1, 0, most},
		"vm.max_map_count": {1, 0, most}, "vm.min_free_kbytes": {1, 0, most}, "vm.nr_hugepages": {1, 0, math.MaxInt64}, "vm.panic_on_oom": {1, 0, 2}, "vm.vfs_cache_pressure": {1, 0, most},
		"vm.zone_reclaim_mode": {1, 0, 7}, "kernel.pid_max": {1, 301, 4194304}, "kernel.threads-max": {1, 1, most}, "kernel.panic": {1, math.MinInt32, most}, "kernel.panic_on_oops": {1, 0, 1},
		"kernel.sem": {4, 0, most}, "kernel.msgmax": {1, 0, most}, "kernel.msgmnb": {1, 0, most}, "kernel.numa_balancing": {1, 0, 3}, "kernel.randomize_va_space": {1, 0, 2},
		"kernel.keys.maxkeys": {1, 1, most}, "kernel.keys.maxbytes": {1, 1, most}, "kernel.keys.root_maxkeys": {1, 1, most}, "kernel.keys.root_maxbytes": {1, 1, most},
		"fs.file-max": {1, 0, math.MaxInt64}, "fs.nr_open": {1, 0, most}, "fs.inotify.max_user_watches": {1, 0, most}, "fs.inotify.max_user_instances": {1, 0, most},
		"fs.inotify.max_queued_events": {1, 0, most}, "fs.aio-max-nr": {1, 0, math.MaxInt64}, "fs.mount-max": {1, 0, most}, "fs.pipe-max-size": {1, 4096, most},
	}
	for _, family := range []string{"net.ipv4", "net.ipv6"} {
		for i := 1; i <= 3; i++ {
			m[fmt.Sprintf("%s.neigh.*.gc_thresh%d", family, i)] = sysctlRange{1, 0, most}
		}
		m[family+".conf.*.forwarding"] = sysctlRange{1, 0, 1}
	}
	for key, high := range map[string]int64{"arp_filter": 1, "arp_ignore": 8, "arp_announce": 2, "arp_notify": 1, "rp_filter": 2, "send_redirects": 1, "accept_redirects": 1, "proxy_arp": 1, "accept_local": 1} {
		m["net.ipv4.conf.*."+key] = sysctlRange{1, 0, high}
	}
	m["net.ipv6.conf.*.disable_ipv6"] = sysctlRange{1, 0, 1}
	m["net.ipv6.conf.*.accept_ra"] = sysctlRange{1, 0, 2}
	return m
}

// removedSysctl are keys that the kernel no longer has, and what to do instead.
func removedSysctl() map[string]string {
	scheduler := "it moved to /sys/kernel/debug/sched with Linux 5.13: set it with tuned's scheduler plugin, or leave it"
	return map[string]string{
		"net.ipv4.tcp_tw_recycle":             "remove it: it broke connections from behind NAT, and went with Linux 4.12",
		"net.ipv4.tcp_fack":                   "remove it: it does nothing since Linux 4.15",
		"net.ipv4.tcp_low_latency":            "remove it: it does nothing since Linux 4.14",
		"kernel.sched_migration_cost_ns":      scheduler,
		"kernel.sched_min_granularity_ns":     scheduler,
		"kernel.sched_wakeup_granularity_ns":  scheduler,
		"kernel.sched_latency_ns":             scheduler,
		"kernel.sched_nr_migrate":             scheduler,
		"kernel.sched_tunable_scaling":        scheduler,
		"net.ipv4.netfilter.ip_conntrack_max": "write net.netfilter.nf_conntrack_max",
		"net.netfilter.nf_conntrack_helper":   "remove it: it went with Linux 6.0; assign helpers with rules",
	}
}

// setting holds one setting against what the kernel takes, and keeps it to be
// held against others.
func (l *linter) setting(s setting) {
	if hasHole(s.key) || strings.ContainsAny(s.key, "*?$") {
		return // a pattern, or a variable
	}
	key := normalKey(s.key)
	if l.sysctl == nil {
		l.sysctl = newSysctlFacts()
	}
	if instead, ok := l.sysctl.removed[key]; ok {
		l.reportAs(Warning, "sysctl-key", s.atKey, instead, fmt.Sprintf("the kernel no longer has %s", s.key))
		return
	}
	if !l.sysctl.known[key] {
		l.unknownSysctl(s, key)
		return
	}
	l.settings = append(l.settings, s)
	r, ok := l.sysctl.ranges[key]
	if !ok || hasHole(s.value) || strings.ContainsAny(s.value, "$") {
		return
	}
	fields := strings.Fields(s.value)
	if len(fields) != r.numbers {
		l.report("sysctl-value", s.atValue, fmt.Sprintf("write %s", counted(r.numbers, "number")), fmt.Sprintf("%s is %q, and wants %s", s.key, s.value, counted(r.numbers, "number")))
		return
	}
	for _, f := range fields {
		v, err := strconv.ParseInt(f, 0, 64)
		switch {
		case err != nil:
			l.report("sysctl-value", s.atValue, "write a whole number", fmt.Sprintf("%s is %q, which is no whole number", s.key, f))
		case v < r.low || v > r.high:
			bounds := fmt.Sprintf("%d to %d", r.low, r.high)
			if r.high >= math.MaxInt32 {
				bounds = fmt.Sprintf("at least %d, at most %d", r.low, r.high)
			}
			l.report("sysctl-value", s.atValue, "write "+bounds, fmt.Sprintf("%s is %s", s.key, f))
		}
	}
	if key == "net.ipv4.tcp_window_scaling" && s.value == "0" {
		l.report("window-scaling", s.atValue, "write 1, which is the default", "net.ipv4.tcp_window_scaling is 0", replaced(s.replaceValue, "1")...)
	}
}

func replaced(replace func(string) []edit, fresh string) []edit {
	if replace == nil {
		return nil
	}
	return replace(fresh)
}

// counted is a number of things in words.
func counted(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// unknownSysctl says of a key that the kernel does not have what was meant.
func (l *linter) unknownSysctl(s setting, key string) {
	family, _, ok := strings.Cut(key, ".")
	candidates := l.sysctl.families[family]
	if !ok || len(candidates) == 0 {
		if near, found := nearest.Word(family, l.sysctl.roots); found && near != family {
			l.report("sysctl-key", s.atKey, "did you mean "+near+key[len(family):]+"?", fmt.Sprintf("there is no key %s", s.key))
		}
		return
	}
	// A key of a module that was not thought of is no mistake: only what is
	// almost a known one is.
	name := key[strings.LastIndexByte(key, '.')+1:]
	prefix := key[:len(key)-len(name)]
	var best string
	for _, c := range candidates {
		other := c[strings.LastIndexByte(c, '.')+1:]
		if other == name || c[:len(c)-len(other)] == prefix && isNear(name, other) {
			if best != "" && best != c {
				if other == name {
					continue
				}
				best = closer(key, best, c)
				continue
			}
			best = c
		}
	}
	if best == "" {
		return
	}
	fresh := best
	if strings.Contains(fresh, ".*.") {
		parts := strings.Split(s.key, ".")
		if len(parts) < 5 {
			fresh = strings.Replace(fresh, ".*.", ".all.", 1)
		} else {
			fresh = strings.Join(append(slices.Clone(parts[:len(parts)-1]), best[strings.LastIndexByte(best, '.')+1:]), ".")
		}
	}
	l.report("sysctl-key", s.atKey, "did you mean "+fresh+"?", fmt.Sprintf("the kernel has no key %s", s.key))
}

func isNear(a, b string) bool {
	_, ok := nearest.Word(a, []string{b})
	return ok && !(strings.HasPrefix(b, a) && len(b)-len(a) > 2)
}

func closer(key, a, b string) string {
	if near, ok := nearest.Word(key, []string{a, b}); ok {
		return near
	}
	return a
}

// sysctlFacts are what is known of the kernel's keys.
type sysctlFacts struct {
	known    map[string]bool
	families map[string][]string
	roots    []string
	ranges   map[string]sysctlRange
	removed  map[string]string
}

func newSysctlFacts() *sysctlFacts {
	f := &sysctlFacts{known: make(map[string]bool), families: make(map[string][]string), ranges: sysctlRanges(), removed: removedSysctl()}
	for line := range strings.Lines(sysctlKeys) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f.known[line] = true
		family, _, _ := strings.Cut(line, ".")
		if f.families[family] == nil {
			f.roots = append(f.roots, family)
		}
		f.families[family] = append(f.families[family], line)
	}
	return f
}

// acrossSettings holds settings against each other that meet on one machine.
func (l *linter) acrossSettings() {
	type latest struct {
		setting setting
		value   int64
		numbers []int64
	}
	scopes := make(map[string]map[string]latest)
	var order []string
	for _, s := range l.settings {
		// As written, for settings of one interface are not those of another.
		key := s.key
		if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '/' {
			key = strings.NewReplacer("/", ".", ".", "/").Replace(key)
		}
		if scopes[s.scope] == nil {
			scopes[s.scope] = make(map[string]latest)
			order = append(order, s.scope)
		}
		if before, ok := scopes[s.scope][key]; ok && strings.Join(strings.Fields(before.setting.value), " ") != strings.Join(strings.Fields(s.value), " ") {
			l.report("sysctl-twice", s.atKey, "keep one of the two", fmt.Sprintf("%s is %s here, and %s %s", s.key, s.value, before.setting.value, seen(s.atKey, before.setting.atKey)))
		}
		n := latest{setting: s}
		for _, f := range strings.Fields(s.value) {
			v, err := strconv.ParseInt(f, 0, 64)
			if err != nil {
				n.numbers = nil
				break
			}
			n.numbers = append(n.numbers, v)
		}
		if len(n.numbers) > 0 {
			n.value = n.numbers[0]
		}
		scopes[s.scope][key] = n
	}
	for _, scope := range order {
		all := scopes[scope]
		get := func(key string) (latest, bool) {
			v, ok := all[key]
			return v, ok && len(v.numbers) > 0
		}
		// What stands beside each other and must rise.
		for _, key := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem", "net.ipv4.udp_mem", "net.ipv4.ip_local_port_range"} {
			if v, ok := get(key); ok && !slices.IsSorted(v.numbers) {
				l.report("sysctl-order", v.setting.atValue, "write the smallest first", fmt.Sprintf("%s is %s", key, v.setting.value))
			}
		}
		for _, family := range []string{"net.ipv4", "net.ipv6"} {
			l.thresholds(family, func(key string) (int64, *setting) {
				if v, ok := get(key); ok {
					return v.value, &v.setting
				}
				return 0, nil
			})
		}
		for _, pair := range [][2]string{{"net.core.rmem_default", "net.core.rmem_max"}, {"net.core.wmem_default", "net.core.wmem_max"}, {"vm.dirty_background_ratio", "vm.dirty_ratio"}} {
			low, ok := get(pair[0])
			high, ok2 := get(pair[1])
			if ok && ok2 && low.value > high.value {
				l.report("sysctl-order", low.setting.atValue, fmt.Sprintf("write at most %d, or raise %s", high.value, pair[1]), fmt.Sprintf("%s is %d, above %s, which is %d", pair[0], low.value, pair[1], high.value))
			}
		}
		// Buffers of sockets that TCP does not use.
		for _, b := range [][2]string{{"net.core.rmem_max", "net.ipv4.tcp_rmem"}, {"net.core.wmem_max", "net.ipv4.tcp_wmem"}} {
			outer, ok := get(b[0])
			if !ok {
				continue
			}
			inner, given := all[b[1]]
			switch {
			case !given:
				l.report("sysctl-tcp-buffers", outer.setting.atKey, fmt.Sprintf("set %s as well, its third number to %d", b[1], outer.value),
					fmt.Sprintf("%s is %d, and %s is not set", b[0], outer.value, b[1]))
			case len(inner.numbers) == 3 && inner.numbers[2] < outer.value/2:
				l.report("sysctl-tcp-buffers", inner.setting.atValue, fmt.Sprintf("raise the third number to %d", outer.value),
					fmt.Sprintf("%s is %d, and TCP's own bound %s ends at %d", b[0], outer.value, b[1], inner.numbers[2]))
			}
		}
	}
}

// thresholds holds those of the neighbour table against each other, with the
// kernel's defaults for what is not set.
func (l *linter) thresholds(family string, get func(key string) (int64, *setting)) {
	defaults := [3]int64{128, 512, 1024}
	var values [3]int64
	var at [3]*setting
	any := false
	for i := range 3 {
		key := fmt.Sprintf("%s.neigh.default.gc_thresh%d", family, i+1)
		values[i], at[i] = get(key)
		if at[i] == nil {
			values[i] = defaults[i]
		} else {
			any = true
		}
	}
	if !any {
		return
	}
	for i := range 2 {
		if values[i] <= values[i+1] {
			continue
		}
		s, which := at[i], "is"
		if s == nil {
			s = at[i+1]
		}
		if at[i+1] == nil {
			which = "stays at its default of"
		}
		why := "entries are collected at the lower bound already"
		if i+1 == 2 {
			why = "no entry is made above that"
		}
		l.report("sysctl-order", s.atValue, "let gc_thresh1, 2 and 3 rise, such as 4096, 16384, 32768",
			fmt.Sprintf("gc_thresh%d is %d, and gc_thresh%d %s %d: %s", i+1, values[i], i+2, which, values[i+1], why))
	}
}
