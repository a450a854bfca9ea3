package lint

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/nearest"
	"plimsoll.dev/plimsoll/internal/strictyaml"
)

// Ranges that OpenShift 3 takes when an inventory names none.
const (
	defaultClusterCIDR = "10.128.0.0/14"
	defaultPortalNet   = "172.30.0.0/16"
	defaultHostBits    = 9
)

// inventory looks at an inventory of Ansible.
func (l *linter) inventory(t *text) {
	l.recognised = true
	sections := readINI(t)
	groups := map[string]bool{"all": true, "ungrouped": true}
	var names []string
	hosts := make(map[string]int64)
	for _, s := range sections {
		name, kind, _ := strings.Cut(s.name, ":")
		if name == "" || kind == "vars" {
			continue
		}
		groups[name] = true
		names = append(names, name)
		if kind == "" {
			for _, e := range s.entries {
				hosts[name] += hostCount(firstField(e))
			}
		}
	}
	vars := make(map[string]iniEntry)
	for _, s := range sections {
		name, kind, _ := strings.Cut(s.name, ":")
		switch kind {
		case "vars":
			if !groups[name] {
				l.group(t, s, name, names)
			}
			for _, e := range s.entries {
				vars[e.key] = e
			}
			for _, e := range s.entries {
				l.inventoryVariable(t, e, vars)
			}
		case "children":
			for _, e := range s.entries {
				if child := firstField(e); !groups[child] {
					l.report("inventory-group", place{text: t, line: e.line, column: e.keyColumn}, near(child, names, "add a group of that name"), fmt.Sprintf("[%s] names the group %s, which there is not", s.name, child))
				}
			}
		}
	}
	l.inventoryNetworks(t, vars, hosts["nodes"])
}

// firstField is the host or group that a line begins with.
func firstField(e iniEntry) string {
	first, _, _ := strings.Cut(e.key, " ")
	if first == "" {
		first = e.key
	}
	return strings.TrimSpace(first)
}

// hostCount is how many hosts a pattern such as node[1:100] stands for.
func hostCount(pattern string) int64 {
	open := strings.IndexByte(pattern, '[')
	end := strings.IndexByte(pattern, ']')
	if open < 0 || end < open {
		return 1
	}
	bounds := strings.Split(pattern[open+1:end], ":")
	if len(bounds) < 2 {
		return 1
	}
	low, err := strconv.ParseInt(bounds[0], 10, 32)
	high, err2 := strconv.ParseInt(bounds[1], 10, 32)
	if err != nil || err2 != nil || high < low {
		return 1
	}
	return high - low + 1
}

// group says of variables that their group is not there.
func (l *linter) group(t *text, s iniSection, name string, names []string) {
	at := place{text: t, line: s.line, column: 1 + strings.IndexByte(t.line(s.line), '[') + 1}
	openshift := slices.ContainsFunc(s.entries, func(e iniEntry) bool {
		return strings.HasPrefix(e.key, "openshift_") || strings.HasPrefix(e.key, "osm_")
	})
	const installer = "OSEv3"
	mend := near(name, names, "add the group, or write the name of one that there is: "+strings.Join(few(names), ", "))
	found := fmt.Sprintf("variables of the group %s, and there is no such group", name)
	var edits []edit
	if near, ok := nearest.Word(name, []string{installer}); ok && openshift && name != installer {
		mend = fmt.Sprintf("write [%s:vars]: OpenShift's playbooks read the group %s", near, near)
		found = fmt.Sprintf("variables of the group %s: OpenShift's playbooks read %s", name, near)
		start := t.lines[s.line-1] + strings.IndexByte(t.line(s.line), '[') + 1
		edits = []edit{{t, start, start + len(name), near}}
	} else if len(names) == 0 && name == installer {
		return // a snippet without its hosts
	} else if len(names) == 0 {
		mend = "add the group with its hosts"
	}
	l.report("inventory-group", at, mend, found, edits...)
}

// inventoryVariable finds misspelt names of the variables that size networks.
func (l *linter) inventoryVariable(t *text, e iniEntry, vars map[string]iniEntry) {
	sizing := []string{"osm_cluster_network_cidr", "osm_host_subnet_length", "openshift_portal_net", "openshift_master_portal_net"}
	if slices.Contains(sizing, e.key) || !strings.HasPrefix(e.key, "os") && !strings.HasPrefix(e.key, "openshift") {
		return
	}
	if near, ok := nearest.Word(e.key, sizing); ok && near != e.key {
		var edits []edit
		if start := t.lines[e.line-1] + e.keyColumn - 1; vars[near].line == 0 {
			edits = []edit{{t, start, start + len(e.key), near}}
		}
		l.report("inventory-variable", place{text: t, line: e.line, column: e.keyColumn}, "write "+near, fmt.Sprintf("the installer reads no variable %s", e.key), edits...)
	}
}

// inventoryNetworks holds the ranges of an inventory against each other and
// against its nodes.
func (l *linter) inventoryNetworks(t *text, vars map[string]iniEntry, nodes int64) {
	at := func(e iniEntry) place { return place{text: t, line: e.line, column: e.column} }
	var ranges []addressRange
	read := func(key, otherwise string) (netip.Prefix, bool, bool) {
		e, given := vars[key]
		value := strings.Trim(e.value, `"'`)
		if !given {
			p := netip.MustParsePrefix(otherwise)
			return p, false, true
		}
		if hasHole(value) {
			return netip.Prefix{}, true, false
		}
		p, ok := l.prefix(at(e), value, key, func(fresh string) []edit {
			start := t.lines[e.line-1] + e.column - 1
			if strings.HasPrefix(t.data[start:], e.value) && e.value == value {
				return []edit{{t, start, start + len(value), fresh}}
			}
			return nil
		})
		if ok {
			ranges = append(ranges, addressRange{key, p, at(e)})
		}
		return p, true, ok
	}
	cluster, given, ok := read("osm_cluster_network_cidr", defaultClusterCIDR)
	portal, portalGiven, portalOK := read("openshift_portal_net", defaultPortalNet)
	if !given && !portalGiven && vars["osm_host_subnet_length"].key == "" {
		return
	}
	if ok && portalOK && cluster.Overlaps(portal) {
		e := vars["osm_cluster_network_cidr"]
		if !given {
			e = vars["openshift_portal_net"]
		}
		which := "openshift_portal_net"
		if !portalGiven {
			which = "the service network's default"
		}
		l.report("subnet-overlap", at(e), "move one of the two", fmt.Sprintf("the cluster network %s overlaps with %s %s", cluster, which, portal))
	}
	if !ok {
		return
	}
	host := defaultHostBits
	if e, set := vars["osm_host_subnet_length"]; set && !hasHole(e.value) {
		v, err := strconv.Atoi(strings.Trim(e.value, `"'`))
		if err != nil || v < 2 || v > cluster.Addr().BitLen()-cluster.Bits() {
			l.report("subnet", at(e), fmt.Sprintf("write the number of host bits, 2 to %d: 9 gives a node 510 addresses", cluster.Addr().BitLen()-cluster.Bits()),
				fmt.Sprintf("osm_host_subnet_length is %q, in a cluster network of %s", e.value, cluster))
			return
		}
		host = v
	}
	where := at(vars["osm_cluster_network_cidr"])
	if !given {
		where = place{text: t, line: 1, column: 1}
	}
	network := clusterNetwork{prefix: cluster, hostPrefix: cluster.Addr().BitLen() - host, at: where}
	if network.hostPrefix < cluster.Bits() {
		l.report("subnet", where, fmt.Sprintf("widen it to at least /%d", network.hostPrefix), fmt.Sprintf("a node's subnet of %d host bits is larger than the whole cluster network %s", host, cluster))
		return
	}
	l.clusters = append(l.clusters, network)
	if nodes > network.nodes() {
		l.report("subnet", where, "widen the cluster network, or narrow the subnets", fmt.Sprintf("%s in subnets of /%d is enough for %d nodes, and [nodes] has %d", cluster, network.hostPrefix, network.nodes(), nodes))
	}
}

// tunedProfile looks at a profile of tuned.
func (l *linter) tunedProfile(t *text) {
	l.recognised = true
	for _, s := range readINI(t) {
		kind := s.name
		for _, e := range s.entries {
			if e.key == "type" {
				kind = e.value
			}
		}
		if kind != "sysctl" {
			continue
		}
		for _, e := range s.entries {
			if e.key == "type" || e.key == "replace" || e.key == "enabled" || e.key == "priority" || e.key == "devices" || !e.hasValue {
				continue
			}
			start := t.lines[e.line-1]
			value := e.value
			if i := commentIn(value); i >= 0 {
				value = strings.TrimSpace(value[:i]) // tuned cuts comments off
			}
			// ">" sets a value only if it is larger than the one there is.
			value = strings.TrimLeft(value, "><= ")
			l.setting(setting{
				key: e.key, value: strings.Trim(value, `"'`), commentsAllowed: true, scope: l.scopeOf(t),
				atKey: place{text: t, line: e.line, column: e.keyColumn}, atValue: place{text: t, line: e.line, column: e.column},
				replaceKey: func(fresh string) []edit {
					return []edit{{t, start + e.keyColumn - 1, start + e.keyColumn - 1 + len(e.key), fresh}}
				},
			})
		}
	}
}

// tunedObject looks at the profiles of the node tuning operator.
func (l *linter) tunedObject(o *object) {
	known := make(map[string]bool)
	var names []string
	for _, p := range itemsOf(o.get("spec", "profile")) {
		if t, ok := o.doc.literal(p.Get("data"), "tuned.conf"); ok {
			l.tunedProfile(t)
		}
		known[textOf(p.Get("name"))] = true
		names = append(names, textOf(p.Get("name")))
	}
	for i, r := range itemsOf(o.get("spec", "recommend")) {
		name := r.Get("profile")
		if textOf(name) == "" || known[textOf(name)] || strings.HasPrefix(textOf(name), "openshift") || hasHole(textOf(name)) || len(names) == 0 {
			continue
		}
		if hint := near(textOf(name), names, ""); hint != "" {
			l.report("bad-value", o.doc.at(name, strictyaml.Key(strictyaml.Index(o.key("spec", "recommend"), i), "profile")), hint, fmt.Sprintf("there is no profile %s here", textOf(name)))
		}
	}
}
