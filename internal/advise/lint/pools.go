package lint

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Labels and keys of OpenShift's machine configuration.
const (
	roleLabel    = "machineconfiguration.openshift.io/role"
	nodeRoleName = "node-role.kubernetes.io/"
	poolLabel    = "pools.operator.machineconfiguration.openshift.io/"
)

// checkPool looks whether a pool selects what is its own.
func checkPool(out *report, o *object) {
	if o.name == "" || hasHole(o.name) {
		return
	}
	roles, wrong := rolesOf(o)
	if len(roles) > 0 && !slices.ContainsFunc(roles, hasHole) {
		all := strings.Join(roles, " and ")
		if !slices.Contains(roles, o.name) {
			others := slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return r == "worker" })
			fix := fmt.Sprintf("add %s to the values", o.name)
			var edits []edit
			if len(others) == 1 {
				fix = fmt.Sprintf("write %s in place of %s", o.name, others[0])
				edits = wrong.replace(o.name)
			}
			out.find("pool-selects-other", wrong.at(), fix, fmt.Sprintf("the pool %s selects the configuration of %s, and none for %s", o.name, all, o.name), edits...)
		}
		if !slices.Contains([]string{"worker", "master", "control-plane", "arbiter"}, o.name) && !slices.Contains(roles, "worker") {
			out.find("pool-without-worker", wrong.at(), "add worker to the values: the pool then gets both", fmt.Sprintf("the pool %s selects the configuration of %s only", o.name, all))
		}
	}
	// Nodes by their role.
	for _, e := range o.get("spec", "nodeSelector", "matchLabels").entries() {
		role, ok := strings.CutPrefix(e.key(), nodeRoleName)
		if !ok || role == o.name || role == "worker" || role == "" || hasHole(role) {
			continue
		}
		out.find("pool-selects-other", e.keyAt(), fmt.Sprintf("write %s%s", nodeRoleName, o.name), fmt.Sprintf("the pool %s selects the nodes of %s", o.name, role), e.rename(nodeRoleName+o.name)...)
	}
}

// rolesOf are the roles whose configuration a pool selects, and which of them
// is wrong, if any is.
func rolesOf(o *object) (roles []string, wrong value) {
	selector := o.get("spec", "machineConfigSelector")
	if role := selector.get("matchLabels", roleLabel); role.node != nil {
		return []string{role.text()}, role
	}
	for _, e := range selector.get("matchExpressions").items() {
		if e.get("key").text() != roleLabel || e.get("operator").text() != "In" {
			continue
		}
		wrong = e.get("values")
		for _, v := range wrong.items() {
			roles = append(roles, v.text())
			if v.text() != "worker" && v.text() != o.name {
				wrong = v
			}
		}
		return roles, wrong
	}
	return nil, value{doc: o.doc}
}

// checkKubeletConfig looks at what a KubeletConfig sets.
func checkKubeletConfig(out *report, o *object) {
	spec := o.get("spec")
	config := spec.get("kubeletConfig")
	if config.node == nil {
		return
	}
	for _, key := range []string{"cgroupDriver", "clusterDNS", "clusterDomain", "featureGates", "staticPodPath", "failSwapOn"} {
		if e, ok := config.entry(key); ok {
			fix := "remove it"
			if key == "featureGates" {
				fix = "set it in the FeatureGate named cluster"
			}
			out.find("kubeletconfig-field", e.keyAt(), fix, key+" belongs to the operator")
		}
	}
	if sizing := spec.get("autoSizingReserved").node; sizing != nil && sizing.Value() == true {
		if e, ok := config.entry("systemReserved"); ok && len(e.entries()) > 0 {
			out.find("kubeletconfig-field", e.keyAt(), "keep one of autoSizingReserved and systemReserved", "systemReserved beside autoSizingReserved: true")
		}
	}
	checkKubelet(out, config)
	if spec.get("machineConfigPoolSelector").node == nil {
		out.find("kubeletconfig-selector", o.closest("spec"), `write machineConfigPoolSelector, such as matchLabels: {pools.operator.machineconfiguration.openshift.io/worker: ""}`, "the KubeletConfig selects no pool")
	}
}

// checkKubelet holds settings of a kubelet against their ranges.
func checkKubelet(out *report, config value) {
	for _, r := range []struct {
		key       string
		low, high int64
	}{
		{"maxPods", 1, math.MaxInt32}, {"podPidsLimit", -1, math.MaxInt64}, {"nodeStatusMaxImages", -1, math.MaxInt32},
		{"imageGCHighThresholdPercent", 0, 100}, {"imageGCLowThresholdPercent", 0, 100}, {"registryBurst", 0, math.MaxInt32},
		{"kubeAPIBurst", 0, math.MaxInt32}, {"kubeAPIQPS", 0, math.MaxInt32}, {"eventBurst", 0, math.MaxInt32}, {"oomScoreAdj", -1000, 1000},
		{"podsPerCore", 0, math.MaxInt32}, {"maxOpenFiles", 0, math.MaxInt64},
	} {
		v, ok := config.get(r.key).integer()
		if !ok || v >= r.low && v <= r.high {
			continue
		}
		bounds := fmt.Sprintf("write at least %d", r.low)
		if r.high < math.MaxInt32 {
			bounds = fmt.Sprintf("write %d to %d", r.low, r.high)
		}
		out.find("kubelet-range", config.get(r.key).at(), bounds, fmt.Sprintf("%s is %d", r.key, v))
	}
	low, high, at := int64(80), int64(85), value{}
	if v, ok := config.get("imageGCHighThresholdPercent").integer(); ok {
		high, at = v, config.get("imageGCHighThresholdPercent")
	}
	if v, ok := config.get("imageGCLowThresholdPercent").integer(); ok {
		low, at = v, config.get("imageGCLowThresholdPercent")
	}
	if at.node != nil && low >= high {
		out.find("kubelet-range", at.at(), "put the low threshold below the high one", fmt.Sprintf("imageGCLowThresholdPercent is %d, imageGCHighThresholdPercent %d", low, high))
	}
	for _, e := range config.get("evictionSoft").entries() {
		if config.get("evictionSoftGracePeriod", e.key()).node == nil {
			out.find("kubelet-range", e.keyAt(), "write evictionSoftGracePeriod with "+e.key()+", such as 1m30s", "evictionSoft has "+e.key()+" without a grace period")
		}
	}
	if v, ok := config.get("maxPods").integer(); ok && v > 0 {
		if per, ok := config.get("podsPerCore").integer(); ok && per > 0 {
			out.findAs(Warning, "kubelet-range", config.get("podsPerCore").at(), "write podsPerCore: 0, or mind it on smaller nodes",
				fmt.Sprintf("podsPerCore is %d: maxPods %d is reached on nodes of %d cores and more only", per, v, (v+per-1)/per))
		}
		out.maxPods = append(out.maxPods, podLimit{maxPods: v, at: config.get("maxPods").at()})
	}
}

// poolLabels are those of a MachineConfigPool.
type poolLabels struct {
	o      *object // nil for one that is known by a command alone
	labels map[string]string
}

// acrossPools holds selectors against pools, over all files.
func acrossPools(out *report) {
	pools := make(map[string]*poolLabels)
	var names []string
	ensure := func(name string) *poolLabels {
		p := pools[name]
		if p == nil {
			p = &poolLabels{labels: map[string]string{poolLabel + name: ""}}
			pools[name] = p
			names = append(names, name)
		}
		return p
	}
	var configs []*object
	wanted := make(map[string][]string) // values that selectors want, by key
	for _, o := range out.objects {
		switch o.kind {
		case "MachineConfigPool":
			if o.name != "" {
				p := ensure(o.name)
				p.o = o
				maps.Copy(p.labels, stringMap(o.get("metadata", "labels")))
			}
		case "KubeletConfig":
			configs = append(configs, o)
			for k, v := range wantedLabels(o) {
				if !slices.Contains(wanted[k], v) {
					wanted[k] = append(wanted[k], v)
				}
			}
		}
	}
	given := len(names) > 0
	for _, label := range out.labels {
		if label.kind == "MachineConfigPool" {
			given = true
			ensure(label.name).labels[label.key] = label.value
		}
	}
	// Every cluster has these two.
	ensure("master")
	if worker := ensure("worker"); worker.o == nil {
		worker.labels["machineconfiguration.openshift.io/mco-built-in"] = ""
	}
	for _, o := range configs {
		selector := o.get("spec", "machineConfigPoolSelector")
		if want := wantedLabels(o); len(want) > 0 && selector.get("matchExpressions").node == nil && !slices.ContainsFunc(slices.Collect(maps.Values(want)), hasHole) &&
			!slices.ContainsFunc(names, func(name string) bool { return matchesAll(want, pools[name].labels) }) {
			unmatched(out, o, want, selector.get("matchLabels").entries()[0].at(), given, wanted)
		}
	}
	shadowedConfigs(out, configs, names, pools)
	rolesWithoutPool(out, names)
	nodesWithoutPool(out)
}

// shadowedConfigs finds KubeletConfigs that another is for the same pool as.
func shadowedConfigs(out *report, configs []*object, names []string, pools map[string]*poolLabels) {
	taken := make(map[string]*object)  // the first KubeletConfig of a pool
	shadowed := make(map[*object]bool) // said once for each
	shadowOnce := func(o, first *object, which string) {
		if !shadowed[o] {
			shadowed[o] = true
			shadow(out, o, first, which)
		}
	}
	for _, o := range configs {
		want := wantedLabels(o)
		if len(want) == 0 || o.get("spec", "machineConfigPoolSelector", "matchExpressions").node != nil || slices.ContainsFunc(slices.Collect(maps.Values(want)), hasHole) {
			continue
		}
		for _, name := range names {
			if !matchesAll(want, pools[name].labels) {
				continue
			}
			if first := taken[name]; first != nil {
				shadowOnce(o, first, "the pool "+name)
			} else {
				taken[name] = o
			}
		}
	}
	// Two with the same selector meet on any pool, whether it is given or not.
	bySelector := make(map[string]*object)
	for _, o := range configs {
		want := wantedLabels(o)
		if len(want) == 0 || o.get("spec", "machineConfigPoolSelector", "matchExpressions").node != nil {
			continue
		}
		key := fmt.Sprintf("%q", want) // maps are printed in the order of their keys
		if first := bySelector[key]; first != nil {
			shadowOnce(o, first, "every pool that its selector matches")
		} else {
			bySelector[key] = o
		}
	}
}

// wantedLabels are those that a KubeletConfig's selector wants of its pool.
func wantedLabels(o *object) map[string]string {
	return stringMap(o.get("spec", "machineConfigPoolSelector", "matchLabels"))
}

// nodesWithoutPool holds the nodes that pools select against the roles that
// commands give to nodes: one that is almost right is a slip.
func nodesWithoutPool(out *report) {
	var roles []string
	for _, label := range out.labels {
		if role, ok := strings.CutPrefix(label.key, nodeRoleName); ok && label.kind == "Node" && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	for _, o := range out.objects {
		if o.kind != "MachineConfigPool" {
			continue
		}
		for _, e := range o.get("spec", "nodeSelector", "matchLabels").entries() {
			role, ok := strings.CutPrefix(e.key(), nodeRoleName)
			if !ok || role != o.name || slices.Contains(roles, role) || hasHole(role) {
				continue
			}
			if hint := near(role, roles, ""); hint != "" {
				out.find("pool-selects-other", e.keyAt(), hint,
					fmt.Sprintf("the pool %s selects nodes of the role %s, and the commands here give nodes the roles %s", o.name, role, strings.Join(few(roles), ", ")))
			}
		}
	}
}

// shadow says of a KubeletConfig that another is for the same pool.
func shadow(out *report, o, first *object, which string) {
	var lost []string
	for _, e := range first.get("spec", "kubeletConfig").entries() {
		if o.get("spec", "kubeletConfig", e.key()).node == nil {
			lost = append(lost, e.key())
		}
	}
	if first.name == o.name && first.name != "" {
		return // the same one, in two states
	}
	at := o.closest("metadata", "name")
	found := fmt.Sprintf("%s is for %s, and so is %s %s", o, which, first, seen(at, first.closest("metadata", "name")))
	fix := "write the settings of both into one KubeletConfig"
	if len(lost) > 0 {
		found += fmt.Sprintf(": made later, this one takes away %s", strings.Join(few(lost), ", "))
	}
	out.find("kubeletconfig-shadowed", at, fix, found)
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
func unmatched(out *report, o *object, want map[string]string, at place, given bool, wanted map[string][]string) {
	if !given {
		out.note("kubeletconfig-selector", at, "no MachineConfigPool and no command that labels one is among the files: whether the selector of %s matches was not checked", o)
		return
	}
	keys := slices.Sorted(maps.Keys(want))
	for _, k := range keys {
		v := want[k]
		fix := "write the same value into both"
		var edits []edit
		found := fmt.Sprintf("the selector of %s wants %s=%s, and ", o, k, v)
		for _, label := range out.labels {
			if label.kind != "MachineConfigPool" || label.key != k || label.value == v {
				continue
			}
			if len(wanted[k]) == 1 {
				fix = fmt.Sprintf("label the pool with %s=%s: all KubeletConfigs here want that", k, v)
				edits = label.replace(v)
			}
			out.find("kubeletconfig-selector", at, fix, fmt.Sprintf("%sa command %s labels the pool %s with %s=%s", found, seen(at, label.at), label.name, k, label.value), edits...)
			return
		}
		for _, p := range out.objects {
			have := p.get("metadata", "labels", k)
			if p.kind != "MachineConfigPool" || have.node == nil || have.text() == v {
				continue
			}
			if len(wanted[k]) == 1 && near(have.text(), []string{v}, "") != "" {
				fix = fmt.Sprintf("label the pool with %s: %s", k, v)
				edits = have.replace(v)
			}
			out.find("kubeletconfig-selector", at, fix, fmt.Sprintf("%sthe pool %s has %s=%s", found, p.name, k, have.text()), edits...)
			return
		}
	}
	label := keys[0] + "=" + want[keys[0]]
	out.find("kubeletconfig-selector", at, "label a pool: oc label machineconfigpool worker "+label, fmt.Sprintf("the selector of %s wants %s, and no pool here has that label", o, label))
}

// rolesWithoutPool finds MachineConfigs for roles that no pool selects.
func rolesWithoutPool(out *report, pools []string) {
	selected := make(map[string]bool)
	for _, name := range pools {
		selected[name] = true
	}
	given := false
	for _, o := range out.objects {
		if o.kind == "MachineConfigPool" {
			given = true
			roles, _ := rolesOf(o)
			for _, r := range roles {
				selected[r] = true
			}
		}
	}
	known := slices.Sorted(maps.Keys(selected))
	for _, o := range out.objects {
		if o.kind != "MachineConfig" {
			continue
		}
		role := o.get("metadata", "labels", roleLabel)
		switch text := role.text(); {
		case text == "":
			if o.get("metadata").node != nil {
				out.find("machineconfig-role", o.closest("metadata", "labels"), "label it with "+roleLabel+": worker, or the name of your pool", o.String()+" has no role")
			}
		case hasHole(text) || selected[text]:
		case !given:
			out.note("machineconfig-role", role.at(), "no MachineConfigPool is among the files: whether a pool has the role %s was not checked", text)
		default:
			out.find("machineconfig-role", role.at(), near(text, known, "write one of "+strings.Join(few(known), ", ")), "no pool has the role "+text)
		}
	}
}
