package lint

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Ranges that OpenShift 3 takes when an inventory names none.
const (
	defaultClusterCIDR = "10.128.0.0/14"
	defaultPortalNet   = "172.30.0.0/16"
	defaultHostBits    = 9
)

// inventoryFile looks at an inventory of Ansible.
func inventoryFile(t *text) (out report) {
	out.recognised = true
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
				out.add(unknownGroup(t, s, name, names))
			}
			for _, e := range s.entries {
				vars[e.key] = e
			}
			for _, e := range s.entries {
				out.add(checkInventoryVariable(t, e, vars))
			}
		case "children":
			for _, e := range s.entries {
				if child := firstField(e); !groups[child] {
					out.find("inventory-group", t.place(e.line, e.keyColumn), near(child, names, "add a group of that name"), fmt.Sprintf("[%s] names the group %s, which there is not", s.name, child))
				}
			}
		}
	}
	out.add(checkInventoryNetworks(t, vars, hosts["nodes"]))
	return out
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

// unknownGroup says of variables that their group is not there.
func unknownGroup(t *text, s iniSection, name string, names []string) (out report) {
	bracket := strings.IndexByte(t.line(s.line), '[')
	openshift := slices.ContainsFunc(s.entries, func(e iniEntry) bool {
		return strings.HasPrefix(e.key, "openshift_") || strings.HasPrefix(e.key, "osm_")
	})
	const installer = "OSEv3"
	fix := near(name, names, "add the group, or write the name of one that there is: "+strings.Join(few(names), ", "))
	found := fmt.Sprintf("variables of the group %s, and there is no such group", name)
	var edits []edit
	if near, ok := nearest.Word(name, []string{installer}); ok && openshift && name != installer {
		fix = fmt.Sprintf("write [%s:vars]: OpenShift's playbooks read the group %s", near, near)
		found = fmt.Sprintf("variables of the group %s: OpenShift's playbooks read %s", name, near)
		start := t.lines[s.line-1] + bracket + 1
		edits = []edit{{t, start, start + len(name), near}}
	} else if len(names) == 0 && name == installer {
		return // a snippet without its hosts
	} else if len(names) == 0 {
		fix = "add the group with its hosts"
	}
	out.find("inventory-group", t.place(s.line, bracket+2), fix, found, edits...)
	return out
}

// checkInventoryVariable finds misspelt names of the variables that size networks.
func checkInventoryVariable(t *text, e iniEntry, vars map[string]iniEntry) (out report) {
	sizing := []string{"osm_cluster_network_cidr", "osm_host_subnet_length", "openshift_portal_net", "openshift_master_portal_net"}
	if slices.Contains(sizing, e.key) || !strings.HasPrefix(e.key, "os") && !strings.HasPrefix(e.key, "openshift") {
		return
	}
	if near, ok := nearest.Word(e.key, sizing); ok && near != e.key {
		var edits []edit
		if start := t.lines[e.line-1] + e.keyColumn - 1; vars[near].line == 0 {
			edits = []edit{{t, start, start + len(e.key), near}}
		}
		out.find("inventory-variable", t.place(e.line, e.keyColumn), "write "+near, fmt.Sprintf("the installer reads no variable %s", e.key), edits...)
	}
	return out
}

// checkInventoryNetworks holds the ranges of an inventory against each other and
// against its nodes.
func checkInventoryNetworks(t *text, vars map[string]iniEntry, nodes int64) (out report) {
	at := func(e iniEntry) place { return t.place(e.line, e.column) }
	read := func(key, otherwise string) (prefix netip.Prefix, given, ok bool) {
		e, given := vars[key]
		value := strings.Trim(e.value, `"'`)
		switch {
		case !given:
			return netip.MustParsePrefix(otherwise), false, true
		case hasHole(value):
			return prefix, true, false
		}
		prefix, ok = readPrefix(&out, at(e), value, key, func(fresh string) []edit {
			if start := t.lines[e.line-1] + e.column - 1; e.value == value && strings.HasPrefix(t.data[start:], value) {
				return []edit{{t, start, start + len(value), fresh}}
			}
			return nil // it stands in quotes
		})
		return prefix, true, ok
	}
	cluster, given, ok := read("osm_cluster_network_cidr", defaultClusterCIDR)
	portal, portalGiven, portalOK := read("openshift_portal_net", defaultPortalNet)
	if !given && !portalGiven && vars["osm_host_subnet_length"].key == "" {
		return
	}
	if ok && portalOK && cluster.Overlaps(portal) {
		e, which := vars["osm_cluster_network_cidr"], "openshift_portal_net"
		if !given {
			e = vars["openshift_portal_net"]
		}
		if !portalGiven {
			which = "the service network's default"
		}
		out.find("subnet-overlap", at(e), "move one of the two", fmt.Sprintf("the cluster network %s overlaps with %s %s", cluster, which, portal))
	}
	if !ok {
		return
	}
	host := defaultHostBits
	if e, set := vars["osm_host_subnet_length"]; set && !hasHole(e.value) {
		v, err := strconv.Atoi(strings.Trim(e.value, `"'`))
		if most := cluster.Addr().BitLen() - cluster.Bits(); err != nil || v < 2 || v > most {
			out.find("subnet", at(e), fmt.Sprintf("write the number of host bits, 2 to %d: 9 gives a node 510 addresses", most),
				fmt.Sprintf("osm_host_subnet_length is %q, in a cluster network of %s", e.value, cluster))
			return
		}
		host = v
	}
	where := at(vars["osm_cluster_network_cidr"])
	if !given {
		where = t.place(1, 1)
	}
	network := clusterNetwork{prefix: cluster, hostPrefix: cluster.Addr().BitLen() - host, at: where}
	if network.hostPrefix < cluster.Bits() {
		out.find("subnet", where, fmt.Sprintf("widen it to at least /%d", network.hostPrefix), fmt.Sprintf("a node's subnet of %d host bits is larger than the whole cluster network %s", host, cluster))
		return
	}
	out.clusters = append(out.clusters, network)
	if nodes > network.nodes() {
		out.find("subnet", where, "widen the cluster network, or narrow the subnets", fmt.Sprintf("%s in subnets of /%d is enough for %d nodes, and [nodes] has %d", cluster, network.hostPrefix, network.nodes(), nodes))
	}
	return out
}

// tunedProfile looks at a profile of tuned.
func tunedProfile(t *text) (out report) {
	out.recognised = true
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
			value := e.value
			if i := commentIn(value); i >= 0 {
				value = strings.TrimSpace(value[:i]) // tuned cuts comments off
			}
			// ">" sets a value only if it is larger than the one there is.
			value = strings.Trim(strings.TrimLeft(value, "><= "), `"'`)
			out.add(checkSetting(setting{key: e.key, value: value, scope: scopeOf(t), atKey: t.place(e.line, e.keyColumn), atValue: t.place(e.line, e.column)}))
		}
	}
	return out
}

// checkTuned looks at the profiles of the node tuning operator.
func checkTuned(spec value) (out report) {
	var names []string
	for _, p := range spec.get("profile").items() {
		if t, ok := p.doc.literal(p.node.Get("data"), "tuned.conf"); ok {
			out.add(tunedProfile(t))
		}
		names = append(names, p.get("name").text())
	}
	for _, r := range spec.get("recommend").items() {
		profile := r.get("profile")
		name := profile.text()
		if name == "" || slices.Contains(names, name) || strings.HasPrefix(name, "openshift") || hasHole(name) {
			continue
		}
		if hint := near(name, names, ""); hint != "" {
			out.find("bad-value", profile.at(), hint, fmt.Sprintf("there is no profile %s here", name))
		}
	}
	return out
}
