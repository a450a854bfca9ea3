package lint

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/strictyaml"
)

// Labels and keys of OpenShift's machine configuration.
const (
	roleLabel    = "machineconfiguration.openshift.io/role"
	nodeRoleName = "node-role.kubernetes.io/"
	poolLabel    = "pools.operator.machineconfiguration.openshift.io/"
)

// labelled is a label that a command gives to something.
type labelled struct {
	kind       string // MachineConfigPool or Node
	name       string
	key, value string
	at         place
	replace    func(value string) []edit
}

// machineConfigPool looks whether a pool selects what is its own.
func (l *linter) machineConfigPool(o *object) {
	if o.name == "" || hasHole(o.name) {
		return
	}
	roles, at, replace := l.rolesOf(o)
	if len(roles) > 0 && !slices.ContainsFunc(roles, hasHole) {
		if !slices.Contains(roles, o.name) {
			var others []string
			for _, r := range roles {
				if r != "worker" {
					others = append(others, r)
				}
			}
			mend := fmt.Sprintf("add %s to the values", o.name)
			found := fmt.Sprintf("the pool %s selects the configuration of %s, and none for %s", o.name, strings.Join(roles, " and "), o.name)
			var edits []edit
			if len(others) == 1 {
				mend = fmt.Sprintf("write %s in place of %s", o.name, others[0])
				edits = replace(others[0], o.name)
			}
			l.report("pool-selects-other", at, mend, found, edits...)
		}
		if o.name != "worker" && o.name != "master" && o.name != "control-plane" && o.name != "arbiter" && !slices.Contains(roles, "worker") {
			l.report("pool-without-worker", at, "add worker to the values: the pool then gets both", fmt.Sprintf("the pool %s selects the configuration of %s only", o.name, strings.Join(roles, " and ")))
		}
	}
	// Nodes by their role.
	for _, e := range entriesOf(o.get("spec", "nodeSelector", "matchLabels")) {
		role, ok := strings.CutPrefix(e.Key, nodeRoleName)
		if !ok || role == o.name || role == "worker" || role == "" || hasHole(role) {
			continue
		}
		l.report("pool-selects-other", o.doc.atKey(e, o.key("spec", "nodeSelector", "matchLabels", e.Key)),
			fmt.Sprintf("write %s%s", nodeRoleName, o.name), fmt.Sprintf("the pool %s selects the nodes of %s", o.name, role), o.doc.replaceKey(e, nodeRoleName+o.name)...)
	}
}

// rolesOf are the roles whose configuration a pool selects, where they stand,
// and how one of them is replaced.
func (l *linter) rolesOf(o *object) (roles []string, at place, replace func(old, fresh string) []edit) {
	selector := o.get("spec", "machineConfigSelector")
	path := o.key("spec", "machineConfigSelector")
	if role := dig(selector, "matchLabels", roleLabel); role != nil {
		return []string{textOf(role)}, o.doc.at(role, strictyaml.Key(path, "matchLabels")), func(_, fresh string) []edit {
			return o.doc.replaceScalar(role, fresh)
		}
	}
	for i, e := range itemsOf(selector.Get("matchExpressions")) {
		if textOf(e.Get("key")) != roleLabel || textOf(e.Get("operator")) != "In" {
			continue
		}
		values := e.Get("values")
		for _, v := range itemsOf(values) {
			roles = append(roles, textOf(v))
		}
		at = o.doc.at(values, strictyaml.Key(strictyaml.Index(strictyaml.Key(path, "matchExpressions"), i), "values"))
		for _, v := range itemsOf(values) {
			if textOf(v) != "worker" && textOf(v) != o.name {
				at = o.doc.at(v, at.path) // the one that is wrong, if any is
			}
		}
		return roles, at, func(old, fresh string) []edit {
			for _, v := range itemsOf(values) {
				if textOf(v) == old {
					return o.doc.replaceScalar(v, fresh)
				}
			}
			return nil
		}
	}
	return nil, o.at("spec", "machineConfigSelector"), nil
}

// kubeletConfig looks at what a KubeletConfig sets.
func (l *linter) kubeletConfig(o *object) {
	config := o.get("spec", "kubeletConfig")
	path := o.key("spec", "kubeletConfig")
	if config == nil {
		return
	}
	for _, key := range []string{"cgroupDriver", "clusterDNS", "clusterDomain", "featureGates", "staticPodPath", "failSwapOn"} {
		if e, ok := entryOf(config, key); ok && !isNull(e.Value) {
			mend := "remove it"
			if key == "featureGates" {
				mend = "set it in the FeatureGate named cluster"
			}
			l.report("kubeletconfig-field", o.doc.atKey(e, strictyaml.Key(path, key)), mend, key+" belongs to the operator")
		}
	}
	if sizing := o.get("spec", "autoSizingReserved"); sizing != nil && sizing.Value() == true {
		if e, ok := entryOf(config, "systemReserved"); ok && len(entriesOf(e.Value)) > 0 {
			l.report("kubeletconfig-field", o.doc.atKey(e, strictyaml.Key(path, "systemReserved")), "keep one of autoSizingReserved and systemReserved", "systemReserved beside autoSizingReserved: true")
		}
	}
	l.kubeletRanges(o.doc, config, path)
	if o.get("spec", "machineConfigPoolSelector") == nil {
		l.report("kubeletconfig-selector", o.at("spec"), `write machineConfigPoolSelector, such as matchLabels: {pools.operator.machineconfiguration.openshift.io/worker: ""}`, "the KubeletConfig selects no pool")
	}
}

// kubeletRanges holds settings of a kubelet against their ranges.
func (l *linter) kubeletRanges(d *doc, config *node, path string) {
	number := func(key string) (int64, *node) {
		n := config.Get(key)
		if n == nil {
			return 0, nil
		}
		v, ok := n.Value().(int64)
		if !ok {
			return 0, nil
		}
		return v, n
	}
	for _, r := range []struct {
		key       string
		low, high int64
	}{
		{"maxPods", 1, math.MaxInt32}, {"podPidsLimit", -1, math.MaxInt64}, {"nodeStatusMaxImages", -1, math.MaxInt32},
		{"imageGCHighThresholdPercent", 0, 100}, {"imageGCLowThresholdPercent", 0, 100}, {"registryBurst", 0, math.MaxInt32},
		{"kubeAPIBurst", 0, math.MaxInt32}, {"kubeAPIQPS", 0, math.MaxInt32}, {"eventBurst", 0, math.MaxInt32}, {"oomScoreAdj", -1000, 1000},
		{"podsPerCore", 0, math.MaxInt32}, {"maxOpenFiles", 0, math.MaxInt64},
	} {
		v, n := number(r.key)
		if n == nil || v >= r.low && v <= r.high {
			continue
		}
		bounds := fmt.Sprintf("write at least %d", r.low)
		if r.high < math.MaxInt32 {
			bounds = fmt.Sprintf("write %d to %d", r.low, r.high)
		}
		l.report("kubelet-range", d.at(n, strictyaml.Key(path, r.key)), bounds, fmt.Sprintf("%s is %d", r.key, v))
	}
	low, n := number("imageGCLowThresholdPercent")
	high, m := number("imageGCHighThresholdPercent")
	if m == nil {
		high = 85
	}
	if n == nil {
		low = 80
	}
	if (n != nil || m != nil) && low >= high {
		at := n
		if at == nil {
			at = m
		}
		l.report("kubelet-range", d.at(at, path), "put the low threshold below the high one", fmt.Sprintf("imageGCLowThresholdPercent is %d, imageGCHighThresholdPercent %d", low, high))
	}
	if v, n := number("maxPods"); n != nil && v > 0 {
		l.maxPods = append(l.maxPods, podLimit{maxPods: v, at: d.at(n, strictyaml.Key(path, "maxPods"))})
	}
}

// podLimit is how many pods a node takes.
type podLimit struct {
	maxPods int64
	at      place
}

// acrossPools holds selectors against pools, over all files.
func (l *linter) acrossPools() {
	type pool struct {
		o      *object // nil for one that is known by a command alone
		name   string
		labels map[string]string
	}
	pools := make(map[string]*pool)
	var names []string
	ensure := func(name string) *pool {
		p := pools[name]
		if p == nil {
			p = &pool{name: name, labels: map[string]string{poolLabel + name: ""}}
			pools[name] = p
			names = append(names, name)
		}
		return p
	}
	var configs []*object
	for _, o := range l.objects {
		switch o.kind {
		case "MachineConfigPool":
			if o.name != "" {
				p := ensure(o.name)
				p.o = o
				maps.Copy(p.labels, stringMap(o.get("metadata", "labels")))
			}
		case "KubeletConfig":
			configs = append(configs, o)
		}
	}
	given := len(names) > 0
	for _, label := range l.labels {
		if label.kind == "MachineConfigPool" {
			given = true
			ensure(label.name).labels[label.key] = label.value
		}
	}
	// Every cluster has these two.
	for _, name := range []string{"master", "worker"} {
		p := ensure(name)
		if name == "worker" && p.o == nil {
			p.labels["machineconfiguration.openshift.io/mco-built-in"] = ""
		}
	}
	taken := make(map[string]*object)   // the first KubeletConfig of a pool
	shadowed := make(map[*object]bool)  // said once for each
	wanted := make(map[string][]string) // values that selectors want, by key
	for _, o := range configs {
		for k, v := range stringMap(o.get("spec", "machineConfigPoolSelector", "matchLabels")) {
			if !slices.Contains(wanted[k], v) {
				wanted[k] = append(wanted[k], v)
			}
		}
	}
	for _, o := range configs {
		selector := o.get("spec", "machineConfigPoolSelector")
		want := stringMap(selector.Get("matchLabels"))
		if selector == nil || selector.Get("matchExpressions") != nil || slices.ContainsFunc(slices.Collect(maps.Values(want)), hasHole) {
			continue
		}
		var matched []string
		for _, name := range names {
			if matchesAll(want, pools[name].labels) {
				matched = append(matched, name)
			}
		}
		at := o.at("spec", "machineConfigPoolSelector")
		entries := entriesOf(selector.Get("matchLabels"))
		if len(entries) > 0 {
			at = o.doc.at(entries[0].Value, o.key("spec", "machineConfigPoolSelector", "matchLabels", entries[0].Key))
		}
		if len(matched) == 0 && len(want) > 0 {
			l.unmatched(o, want, at, given, wanted)
			continue
		}
		if len(want) == 0 {
			continue
		}
		for _, name := range matched {
			first := taken[name]
			if first == nil {
				taken[name] = o
				continue
			}
			if !shadowed[o] {
				shadowed[o] = true
				l.shadow(o, first, "the pool "+name)
			}
		}
	}
	// Two with the same selector meet on any pool, whether it is given or not.
	bySelector := make(map[string]*object)
	for _, o := range configs {
		want := stringMap(o.get("spec", "machineConfigPoolSelector", "matchLabels"))
		if len(want) == 0 || o.get("spec", "machineConfigPoolSelector", "matchExpressions") != nil {
			continue
		}
		var b strings.Builder
		for _, k := range slices.Sorted(maps.Keys(want)) {
			fmt.Fprintf(&b, "%q=%q,", k, want[k])
		}
		if first := bySelector[b.String()]; first != nil && !shadowed[o] {
			shadowed[o] = true
			l.shadow(o, first, "every pool that its selector matches")
		} else if first == nil {
			bySelector[b.String()] = o
		}
	}
	l.rolesWithoutPool(names)
	l.nodesWithoutPool()
}

// nodesWithoutPool holds the nodes that pools select against the roles that
// commands give to nodes: one that is almost right is a slip.
func (l *linter) nodesWithoutPool() {
	var roles []string
	for _, label := range l.labels {
		if role, ok := strings.CutPrefix(label.key, nodeRoleName); ok && label.kind == "Node" && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	for _, o := range l.objects {
		if o.kind != "MachineConfigPool" {
			continue
		}
		for _, e := range entriesOf(o.get("spec", "nodeSelector", "matchLabels")) {
			role, ok := strings.CutPrefix(e.Key, nodeRoleName)
			if !ok || role != o.name || slices.Contains(roles, role) || hasHole(role) {
				continue
			}
			if hint := near(role, roles, ""); hint != "" {
				l.report("pool-selects-other", o.doc.atKey(e, o.key("spec", "nodeSelector", "matchLabels", e.Key)), hint,
					fmt.Sprintf("the pool %s selects nodes of the role %s, and the commands here give nodes the roles %s", o.name, role, strings.Join(few(roles), ", ")))
			}
		}
	}
}

// shadow says of a KubeletConfig that another is for the same pool.
func (l *linter) shadow(o, first *object, which string) {
	var lost []string
	have := o.get("spec", "kubeletConfig")
	for _, e := range entriesOf(first.get("spec", "kubeletConfig")) {
		if have.Get(e.Key) == nil {
			lost = append(lost, e.Key)
		}
	}
	if first.name == o.name && first.name != "" {
		return // the same one, in two states
	}
	at := o.at("metadata", "name")
	found := fmt.Sprintf("%s is for %s, and so is %s %s", o, which, first, seen(at, first.at("metadata", "name")))
	mend := "write the settings of both into one KubeletConfig"
	if len(lost) > 0 {
		found += fmt.Sprintf(": made later, this one takes away %s", strings.Join(few(lost), ", "))
	}
	l.report("kubeletconfig-shadowed", at, mend, found)
}

func matchesAll(want, have map[string]string) bool {
	for k, v := range want {
		if value, ok := have[k]; !ok || value != v {
			return false
		}
	}
	return true
}

// unmatched says of a KubeletConfig that no pool has its labels.
func (l *linter) unmatched(o *object, want map[string]string, at place, given bool, wanted map[string][]string) {
	if !given {
		l.note("kubeletconfig-selector", at, "no MachineConfigPool and no command that labels one is among the files: whether the selector of %s matches was not checked", o)
		return
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		v := want[k]
		for _, label := range l.labels {
			if label.kind != "MachineConfigPool" || label.key != k || label.value == v {
				continue
			}
			var edits []edit
			mend := fmt.Sprintf("label the pool with %s=%s: all KubeletConfigs here want that", k, v)
			if len(wanted[k]) == 1 {
				edits = label.replace(v)
			} else {
				mend = "write the same value into both"
			}
			l.report("kubeletconfig-selector", at, mend, fmt.Sprintf("the selector of %s wants %s=%s, and a command %s labels the pool %s with %s=%s",
				o, k, v, seen(at, label.at), label.name, k, label.value), edits...)
			return
		}
		for _, p := range l.objects {
			if p.kind != "MachineConfigPool" {
				continue
			}
			have := p.get("metadata", "labels", k)
			if have == nil || textOf(have) == v {
				continue
			}
			var edits []edit
			mend := "write the same value into both"
			if len(wanted[k]) == 1 && near(textOf(have), []string{v}, "") != "" {
				mend = fmt.Sprintf("label the pool with %s: %s", k, v)
				edits = p.doc.replaceScalar(have, v)
			}
			l.report("kubeletconfig-selector", at, mend, fmt.Sprintf("the selector of %s wants %s=%s, and the pool %s has %s=%s", o, k, v, p.name, k, textOf(have)), edits...)
			return
		}
	}
	key := slices.Sorted(maps.Keys(want))[0]
	l.report("kubeletconfig-selector", at, fmt.Sprintf("label a pool: oc label machineconfigpool worker %s=%s", key, want[key]),
		fmt.Sprintf("the selector of %s wants %s=%s, and no pool here has that label", o, key, want[key]))
}

// fileLine is the line of a place in its file.
func fileLine(at place) int {
	_, line, _, _ := at.text.position(at.line, at.column)
	return line
}

// rolesWithoutPool finds MachineConfigs for roles that no pool selects.
func (l *linter) rolesWithoutPool(pools []string) {
	selected := make(map[string]bool)
	for _, name := range pools {
		selected[name] = true
	}
	given := false
	for _, o := range l.objects {
		if o.kind == "MachineConfigPool" {
			given = true
			roles, _, _ := l.rolesOf(o)
			for _, r := range roles {
				selected[r] = true
			}
		}
	}
	known := slices.Sorted(maps.Keys(selected))
	for _, o := range l.objects {
		if o.kind != "MachineConfig" {
			continue
		}
		role := o.get("metadata", "labels", roleLabel)
		if textOf(role) == "" {
			if o.get("metadata", "labels") != nil || o.get("metadata") != nil {
				l.report("machineconfig-role", o.at("metadata", "labels"), "label it with "+roleLabel+": worker, or the name of your pool", o.String()+" has no role")
			}
			continue
		}
		if hasHole(textOf(role)) || selected[textOf(role)] {
			continue
		}
		if !given {
			l.note("machineconfig-role", o.doc.at(role, ""), "no MachineConfigPool is among the files: whether a pool has the role %s was not checked", textOf(role))
			continue
		}
		l.report("machineconfig-role", o.doc.at(role, o.key("metadata", "labels", roleLabel)), near(textOf(role), known, "write one of "+strings.Join(few(known), ", ")),
			fmt.Sprintf("no pool has the role %s", textOf(role)))
	}
}

// ingressController holds the router's tuning against its ranges.
func (l *linter) ingressController(o *object) {
	options := o.get("spec", "tuningOptions")
	number := func(key string) (int64, *node) {
		n := options.Get(key)
		if n == nil {
			return 0, nil
		}
		v, _ := strconv.ParseInt(textOf(n), 10, 64)
		return v, n
	}
	path := o.key("spec", "tuningOptions")
	fail := func(key string, n *node, mend string) {
		l.report("router-env", o.doc.at(n, strictyaml.Key(path, key)), mend, fmt.Sprintf("%s is %s", key, textOf(n)))
	}
	if v, n := number("maxConnections"); n != nil && v != 0 && v != -1 && (v < 2000 || v > 2_000_000) {
		fail("maxConnections", n, "write 2000 to 2000000, -1 for what the node bears, or 0 for the default of 50000")
	}
	if v, n := number("threadCount"); n != nil && (v < 1 || v > 64) {
		fail("threadCount", n, "write 1 to 64")
	}
	buffer, b := number("headerBufferBytes")
	if b != nil && buffer < 16384 {
		fail("headerBufferBytes", b, "write at least 16384; the default is 32768")
	}
	rewrite, r := number("headerBufferMaxRewriteBytes")
	if r != nil && rewrite < 4096 {
		fail("headerBufferMaxRewriteBytes", r, "write at least 4096; the default is 8192")
	}
	if b == nil {
		buffer = 32768
	}
	if r == nil {
		rewrite = 8192
	}
	if (b != nil || r != nil) && buffer >= 16384 && rewrite >= buffer {
		n := r
		if n == nil {
			n = b
		}
		l.report("router-env", o.doc.at(n, path), "make the buffer larger than what is kept for rewriting", fmt.Sprintf("headerBufferBytes is %d, headerBufferMaxRewriteBytes %d", buffer, rewrite))
	}
}
