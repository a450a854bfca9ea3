// Package host finds wrong settings in sysctl files, profiles of tuned and HAProxy's configuration.
package host

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// SysctlFile reads a file in the format of sysctl.conf.
func SysctlFile(out *report.Report, t *reading.Text) {
	out.Recognised = true
	for n := 1; n <= len(t.Lines); n++ {
		line := t.Line(n)
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' || reading.HasHole(trimmed) {
			continue
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		s, ok := assignment(t, n)
		if !ok {
			if trimmed[0] != '-' { // "-key" excludes it from a pattern
				out.Find("sysctl-value", t.Place(n, 1+len(indent)), "write KEY = VALUE", fmt.Sprintf("the line is not a setting: %q", trimmed))
			}
			continue
		}
		lead, valueAt := t.Lines[n-1], s.AtValue.Column-1
		if start, _ := t.Offset(n, 1); start == lead {
			// Without a byte order mark the line is written as it was read.
			end := lead + valueAt + len(s.Value)
			if i := commentIn(s.Value); i >= 0 {
				bare := strings.TrimRight(s.Value[:i], " \t")
				out.Find("sysctl-comment", t.Place(n, valueAt+i+1), "put the comment on a line of its own before this one",
					fmt.Sprintf("the value is %q, comment and all", s.Value),
					reading.Edit{Text: t, Start: lead, End: lead, With: indent + strings.TrimSpace(s.Value[i:]) + "\n"}, reading.Edit{Text: t, Start: lead + valueAt + len(bare), End: end, With: ""})
				s.Value = bare // its own edits come after the comment is gone
			} else {
				s.ReplaceValue = func(fresh string) []reading.Edit {
					return []reading.Edit{{Text: t, Start: lead + valueAt, End: end, With: fresh}}
				}
			}
		}
		CheckSetting(out, s)
	}
}

func assignment(t *reading.Text, n int) (s report.Setting, ok bool) {
	key, value, ok := strings.Cut(t.Line(n), "=")
	keyAt := len(key) - len(strings.TrimLeft(key, " \t-"))
	valueAt := len(key) + 1 + len(value) - len(strings.TrimLeft(value, " \t"))
	return report.Setting{
		Key: strings.TrimSpace(key[keyAt:]), Value: strings.TrimSpace(value), Scope: reading.ScopeOf(t),
		AtKey: t.Place(n, keyAt+1), AtValue: t.Place(n, valueAt+1),
	}, ok
}

func commentIn(value string) int {
	for i := 1; i < len(value); i++ {
		if (value[i] == '#' || value[i] == ';') && (value[i-1] == ' ' || value[i-1] == '\t') {
			return i
		}
	}
	return -1
}

func dotted(key string) string {
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '/' {
		// With slashes the names of interfaces may have dots.
		return strings.NewReplacer("/", ".", ".", "/").Replace(key)
	}
	return key
}

// normalKey writes a key with dots, and * for the name of an interface.
func normalKey(key string) string {
	key = dotted(key)
	parts := strings.Split(key, ".")
	if len(parts) >= 5 && parts[0] == "net" && (parts[2] == "conf" || parts[2] == "neigh") {
		parts = []string{parts[0], parts[1], parts[2], "*", parts[len(parts)-1]}
	}
	return strings.Join(parts, ".")
}

// CheckSetting checks a setting against the kernel's bounds, and keeps it for comparison with others.
func CheckSetting(out *report.Report, s report.Setting) {
	if reading.HasHole(s.Key) || strings.ContainsAny(s.Key, "*?$") {
		return // a pattern, or a variable
	}
	key := normalKey(s.Key)
	kernel := out.Kernel
	if instead, ok := kernel.Removed[key]; ok {
		out.FindAs(report.Warning, "sysctl-key", s.AtKey, instead, fmt.Sprintf("the kernel no longer has %s", s.Key))
		return
	}
	r, ok := kernel.Known[key]
	if !ok {
		unknownSysctl(out, s, key)
		return
	}
	out.Settings = append(out.Settings, s)
	if r.Numbers == 0 || reading.HasHole(s.Value) || strings.ContainsAny(s.Value, "$") {
		return
	}
	fields := strings.Fields(s.Value)
	if len(fields) != r.Numbers {
		out.Find("sysctl-value", s.AtValue, fmt.Sprintf("write %s", counted(r.Numbers, "number")), fmt.Sprintf("%s is %q, and wants %s", s.Key, s.Value, counted(r.Numbers, "number")))
		return
	}
	for _, f := range fields {
		v, err := strconv.ParseInt(f, 0, 64)
		switch {
		case err != nil:
			out.Find("sysctl-value", s.AtValue, "write a whole number", fmt.Sprintf("%s is %q, which is not a whole number", s.Key, f))
		case v < r.Low || v > r.High:
			bounds := fmt.Sprintf("%d to %d", r.Low, r.High)
			if r.High >= math.MaxInt32 {
				bounds = fmt.Sprintf("at least %d, at most %d", r.Low, r.High)
			}
			out.Find("sysctl-value", s.AtValue, "write "+bounds, fmt.Sprintf("%s is %s", s.Key, f))
		}
	}
	if key == "net.ipv4.ip_forward" && s.Value == "0" && !strings.HasPrefix(s.Scope, "pod:") {
		out.Find("ip-forward", s.AtValue, "write 1 on nodes of a cluster", "net.ipv4.ip_forward is 0")
	}
	if key == "net.ipv4.tcp_window_scaling" && s.Value == "0" {
		var edits []reading.Edit
		if s.ReplaceValue != nil {
			edits = s.ReplaceValue("1")
		}
		out.Find("window-scaling", s.AtValue, "write 1, which is the default", "net.ipv4.tcp_window_scaling is 0", edits...)
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// unknownSysctl suggests a key for one that the kernel does not have.
func unknownSysctl(out *report.Report, s report.Setting, key string) {
	family, _, ok := strings.Cut(key, ".")
	kernel := out.Kernel
	candidates := kernel.Families[family]
	if !ok || len(candidates) == 0 {
		if near, found := nearest.Word(family, kernel.Roots); found && near != family {
			out.Find("sysctl-key", s.AtKey, "did you mean "+near+key[len(family):]+"?", fmt.Sprintf("unknown key %s", s.Key))
		}
		return
	}
	// The table may lack the module: only a key almost like a known one, or at another place, is a mistake.
	name := key[strings.LastIndexByte(key, '.')+1:]
	prefix := key[:len(key)-len(name)]
	var close []string
	for _, c := range candidates {
		other := c[strings.LastIndexByte(c, '.')+1:]
		if other == name || c[:len(c)-len(other)] == prefix && isNear(name, other) {
			close = append(close, c)
		}
	}
	best, ok := nearest.Word(key, close)
	if !ok && len(close) > 0 {
		best = close[0]
	}
	if best == "" {
		return
	}
	fresh := best
	if strings.Contains(fresh, ".*.") {
		parts := strings.Split(s.Key, ".")
		if len(parts) < 5 {
			fresh = strings.Replace(fresh, ".*.", ".all.", 1)
		} else {
			fresh = strings.Join(append(slices.Clone(parts[:len(parts)-1]), best[strings.LastIndexByte(best, '.')+1:]), ".")
		}
	}
	out.Find("sysctl-key", s.AtKey, "did you mean "+fresh+"?", fmt.Sprintf("the kernel has no key %s", s.Key))
}

func isNear(a, b string) bool {
	_, ok := nearest.Word(a, []string{b})
	return ok && !(strings.HasPrefix(b, a) && len(b)-len(a) > 2)
}

// scope holds the last setting of each key on one machine.
type scope map[string]latest

// latest is a setting with its numbers; nil unless it has numbers only.
type latest struct {
	report.Setting
	numbers []int64
}

func (s scope) get(key string) (latest, bool) {
	v, ok := s[key]
	return v, ok && len(v.numbers) > 0
}

// AcrossSettings compares settings that meet on one machine.
func AcrossSettings(out *report.Report) {
	scopes := make(map[string]scope)
	var order []string
	for _, s := range out.Settings {
		// As written: settings of one interface are not those of another.
		key := dotted(s.Key)
		if scopes[s.Scope] == nil {
			scopes[s.Scope] = make(scope)
			order = append(order, s.Scope)
		}
		fields := strings.Fields(s.Value)
		if before, ok := scopes[s.Scope][key]; ok && !slices.Equal(strings.Fields(before.Value), fields) {
			out.Find("sysctl-twice", s.AtKey, "keep one of the two", fmt.Sprintf("%s is %s here, and %s %s", s.Key, s.Value, before.Value, reading.Seen(s.AtKey, before.AtKey)))
		}
		n := latest{Setting: s}
		for _, field := range fields {
			v, err := strconv.ParseInt(field, 0, 64)
			if err != nil {
				n.numbers = nil
				break
			}
			n.numbers = append(n.numbers, v)
		}
		scopes[s.Scope][key] = n
	}
	for _, name := range order {
		all := scopes[name]
		// Numbers that must rise.
		for _, key := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem", "net.ipv4.udp_mem", "net.ipv4.ip_local_port_range"} {
			if v, ok := all.get(key); ok && !slices.IsSorted(v.numbers) {
				out.Find("sysctl-order", v.AtValue, "write the smallest first", fmt.Sprintf("%s is %s", key, v.Value))
			}
		}
		for _, family := range []string{"net.ipv4", "net.ipv6"} {
			checkThresholds(out, all, family)
		}
		for _, pair := range [][2]string{{"net.core.rmem_default", "net.core.rmem_max"}, {"net.core.wmem_default", "net.core.wmem_max"}, {"vm.dirty_background_ratio", "vm.dirty_ratio"}} {
			low, ok := all.get(pair[0])
			high, ok2 := all.get(pair[1])
			if ok && ok2 && low.numbers[0] > high.numbers[0] {
				out.Find("sysctl-order", low.AtValue, fmt.Sprintf("write at most %d, or raise %s", high.numbers[0], pair[1]), fmt.Sprintf("%s is %d, above %s, which is %d", pair[0], low.numbers[0], pair[1], high.numbers[0]))
			}
		}
		// Limits of sockets that TCP does not use.
		for _, b := range [][2]string{{"net.core.rmem_max", "net.ipv4.tcp_rmem"}, {"net.core.wmem_max", "net.ipv4.tcp_wmem"}} {
			outer, ok := all.get(b[0])
			if !ok {
				continue
			}
			most := outer.numbers[0]
			inner, given := all[b[1]]
			switch {
			case !given:
				out.Find("sysctl-tcp-buffers", outer.AtKey, fmt.Sprintf("set %s as well, its third number to %d", b[1], most), fmt.Sprintf("%s is %d, and %s is not set", b[0], most, b[1]))
			case len(inner.numbers) == 3 && inner.numbers[2] < most/2:
				out.Find("sysctl-tcp-buffers", inner.AtValue, fmt.Sprintf("raise the third number to %d", most),
					fmt.Sprintf("%s is %d, and TCP's own bound %s ends at %d", b[0], most, b[1], inner.numbers[2]))
			}
		}
	}
}

// checkThresholds compares the neighbour table's thresholds, with the kernel's defaults for others.
func checkThresholds(out *report.Report, all scope, family string) {
	values := [3]int64{128, 512, 1024}
	var given [3]bool
	var at [3]reading.Place
	for i := range values {
		if v, ok := all.get(fmt.Sprintf("%s.neigh.default.gc_thresh%d", family, i+1)); ok {
			values[i], given[i], at[i] = v.numbers[0], true, v.AtValue
		}
	}
	for i, why := range []string{"entries are collected at the lower bound already", "no entry is made above that"} {
		if values[i] <= values[i+1] {
			continue
		}
		where, which := at[i], "is"
		if !given[i] {
			where = at[i+1]
		}
		if !given[i+1] {
			which = "stays at its default of"
		}
		out.Find("sysctl-order", where, "let gc_thresh1, 2 and 3 rise, such as 4096, 16384, 32768",
			fmt.Sprintf("gc_thresh%d is %d, and gc_thresh%d %s %d: %s", i+1, values[i], i+2, which, values[i+1], why))
	}
}

// TunedProfile reads a profile of tuned and checks its settings of the plug-in sysctl.
func TunedProfile(out *report.Report, t *reading.Text) {
	out.Recognised = true
	plugin := ""
	var settings []report.Setting // of the section
	end := func(next string) {
		if plugin == "sysctl" {
			for _, s := range settings {
				CheckSetting(out, s)
			}
		}
		plugin, settings = next, nil
	}
	for n := 1; n <= len(t.Lines); n++ {
		line := strings.TrimSpace(t.Line(n))
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if name, _, closed := strings.Cut(line[1:], "]"); line[0] == '[' && closed {
			end(name)
			continue
		}
		s, ok := assignment(t, n)
		switch s.Key {
		case "type":
			plugin = s.Value
		case "replace", "enabled", "priority", "devices":
		default:
			if i := commentIn(s.Value); i >= 0 {
				s.Value = strings.TrimSpace(s.Value[:i]) // tuned cuts comments off
			}
			// ">" only raises the present value.
			s.Value = strings.Trim(strings.TrimLeft(s.Value, "><= "), `"'`)
			if ok {
				settings = append(settings, s)
			}
		}
	}
	end("")
}

// CheckTuned reads the profiles of the node tuning operator.
func CheckTuned(out *report.Report, spec reading.Value) {
	var names []string
	for _, p := range spec.Get("profile").Items() {
		if t, ok := p.Get("data").Literal("tuned.conf"); ok {
			TunedProfile(out, t)
		}
		names = append(names, p.Get("name").Text())
	}
	for _, r := range spec.Get("recommend").Items() {
		profile := r.Get("profile")
		name := profile.Text()
		if name == "" || slices.Contains(names, name) || strings.HasPrefix(name, "openshift") || reading.HasHole(name) {
			continue
		}
		if hint := report.Near(name, names, ""); hint != "" {
			out.Find("bad-value", profile.At(), hint, fmt.Sprintf("profile %s does not exist in this file", name))
		}
	}
}
