package objects

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

// Labels and keys of OpenShift's machine configuration.
const (
	roleLabel    = "machineconfiguration.openshift.io/role"
	nodeRoleName = "node-role.kubernetes.io/"
	poolLabel    = "pools.operator.machineconfiguration.openshift.io/"
)

// checkPool checks that a pool selects what belongs to it.
func checkPool(out *report.Report, o *report.Object) {
	if o.Name == "" || reading.HasHole(o.Name) {
		return
	}
	roles, wrong := rolesOf(o)
	if len(roles) > 0 && !slices.ContainsFunc(roles, reading.HasHole) {
		all := strings.Join(roles, " and ")
		if !slices.Contains(roles, o.Name) {
			others := slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return r == "worker" })
			fix := fmt.Sprintf("add %s to the values", o.Name)
			var edits []reading.Edit
			if len(others) == 1 {
				fix = fmt.Sprintf("write %s in place of %s", o.Name, others[0])
				edits = wrong.Replace(o.Name)
			}
			out.Find("pool-selects-other", wrong.At(), fix, fmt.Sprintf("the pool %s selects the configuration of %s, and none for %s", o.Name, all, o.Name), edits...)
		}
		if !slices.Contains([]string{"worker", "master", "control-plane", "arbiter"}, o.Name) && !slices.Contains(roles, "worker") {
			out.Find("pool-without-worker", wrong.At(), "add worker to the values: the pool then gets both", fmt.Sprintf("the pool %s selects the configuration of %s only", o.Name, all))
		}
	}
	for _, e := range o.Get("spec", "nodeSelector", "matchLabels").Entries() {
		role, ok := strings.CutPrefix(e.Key(), nodeRoleName)
		if !ok || role == o.Name || role == "worker" || role == "" || reading.HasHole(role) {
			continue
		}
		out.Find("pool-selects-other", e.KeyAt(), fmt.Sprintf("write %s%s", nodeRoleName, o.Name), fmt.Sprintf("the pool %s selects the nodes of %s", o.Name, role), e.Rename(nodeRoleName+o.Name)...)
	}
}

// rolesOf returns the roles whose configuration a pool selects, and the value that is wrong, if any.
func rolesOf(o *report.Object) (roles []string, wrong reading.Value) {
	selector := o.Get("spec", "machineConfigSelector")
	if role := selector.Get("matchLabels", roleLabel); role.Node != nil {
		return []string{role.Text()}, role
	}
	for _, e := range selector.Get("matchExpressions").Items() {
		if e.Get("key").Text() != roleLabel || e.Get("operator").Text() != "In" {
			continue
		}
		wrong = e.Get("values")
		for _, v := range wrong.Items() {
			roles = append(roles, v.Text())
			if v.Text() != "worker" && v.Text() != o.Name {
				wrong = v
			}
		}
		return roles, wrong
	}
	return nil, reading.Value{Doc: o.Doc}
}

func checkKubeletConfig(out *report.Report, o *report.Object) {
	spec := o.Get("spec")
	config := spec.Get("kubeletConfig")
	if config.Node == nil {
		return
	}
	for _, key := range []string{"cgroupDriver", "clusterDNS", "clusterDomain", "featureGates", "staticPodPath", "failSwapOn"} {
		if e, ok := config.Entry(key); ok {
			fix := "remove it"
			if key == "featureGates" {
				fix = "set it in the FeatureGate named cluster"
			}
			out.Find("kubeletconfig-field", e.KeyAt(), fix, key+" belongs to the operator")
		}
	}
	if sizing := spec.Get("autoSizingReserved").Node; sizing != nil && sizing.Value() == true {
		if e, ok := config.Entry("systemReserved"); ok && len(e.Entries()) > 0 {
			out.Find("kubeletconfig-field", e.KeyAt(), "keep one of autoSizingReserved and systemReserved", "systemReserved beside autoSizingReserved: true")
		}
	}
	CheckKubelet(out, config)
	if spec.Get("machineConfigPoolSelector").Node == nil {
		out.Find("kubeletconfig-selector", o.Closest("spec"), `write machineConfigPoolSelector, such as matchLabels: {pools.operator.machineconfiguration.openshift.io/worker: ""}`, "the KubeletConfig selects no pool")
	}
}

// CheckKubelet checks the ranges of a kubelet's settings.
func CheckKubelet(out *report.Report, config reading.Value) {
	for _, r := range []struct {
		key       string
		low, high int64
	}{
		{"maxPods", 1, math.MaxInt32}, {"podPidsLimit", -1, math.MaxInt64}, {"nodeStatusMaxImages", -1, math.MaxInt32},
		{"imageGCHighThresholdPercent", 0, 100}, {"imageGCLowThresholdPercent", 0, 100}, {"registryBurst", 0, math.MaxInt32},
		{"kubeAPIBurst", 0, math.MaxInt32}, {"kubeAPIQPS", 0, math.MaxInt32}, {"eventBurst", 0, math.MaxInt32}, {"oomScoreAdj", -1000, 1000},
		{"podsPerCore", 0, math.MaxInt32}, {"maxOpenFiles", 0, math.MaxInt64},
	} {
		v, ok := config.Get(r.key).Integer()
		if !ok || v >= r.low && v <= r.high {
			continue
		}
		bounds := fmt.Sprintf("write at least %d", r.low)
		if r.high < math.MaxInt32 {
			bounds = fmt.Sprintf("write %d to %d", r.low, r.high)
		}
		out.Find("kubelet-range", config.Get(r.key).At(), bounds, fmt.Sprintf("%s is %d", r.key, v))
	}
	low, high, at := int64(80), int64(85), reading.Value{}
	if v, ok := config.Get("imageGCHighThresholdPercent").Integer(); ok {
		high, at = v, config.Get("imageGCHighThresholdPercent")
	}
	if v, ok := config.Get("imageGCLowThresholdPercent").Integer(); ok {
		low, at = v, config.Get("imageGCLowThresholdPercent")
	}
	if at.Node != nil && low >= high {
		out.Find("kubelet-range", at.At(), "put the low threshold below the high one", fmt.Sprintf("imageGCLowThresholdPercent is %d, imageGCHighThresholdPercent %d", low, high))
	}
	for _, e := range config.Get("evictionSoft").Entries() {
		if config.Get("evictionSoftGracePeriod", e.Key()).Node == nil {
			out.Find("kubelet-range", e.KeyAt(), "write evictionSoftGracePeriod with "+e.Key()+", such as 1m30s", "evictionSoft has "+e.Key()+" without a grace period")
		}
	}
	checkEviction(out, config)
	for _, key := range []string{"systemReserved", "kubeReserved"} {
		for _, e := range config.Get(key).Entries() {
			if q, err := resource.ParseQuantity(e.Text()); err == nil && q.Sign() < 0 {
				out.Find("kubelet-range", e.At(), "write what is to be reserved, such as 500m or 1Gi", key+"."+e.Key()+" is negative: "+e.Text())
			}
		}
	}
	if v, ok := config.Get("maxPods").Integer(); ok && v > 0 {
		if per, ok := config.Get("podsPerCore").Integer(); ok && per > 0 {
			out.FindAs(report.Warning, "kubelet-range", config.Get("podsPerCore").At(), "write podsPerCore: 0, or mind it on smaller nodes",
				fmt.Sprintf("podsPerCore is %d: maxPods %d is reached on nodes of %d cores and more only", per, v, (v+per-1)/per))
		}
		out.MaxPods = append(out.MaxPods, report.PodLimit{MaxPods: v, At: config.Get("maxPods").At()})
	}
}

// checkEviction finds hard thresholds that take away defaults: the kubelet drops all of them when evictionHard
// names one, unless mergeDefaultEvictionSettings is true.
func checkEviction(out *report.Report, config reading.Value) {
	hard, ok := config.Entry("evictionHard")
	if merge := config.Get("mergeDefaultEvictionSettings").Node; !ok || len(hard.Entries()) == 0 || merge != nil && merge.Value() == true {
		return
	}
	var lost []string
	for _, signal := range []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available"} {
		if hard.Get(signal).Node == nil {
			lost = append(lost, signal)
		}
	}
	if len(lost) > 0 {
		out.Find("kubelet-eviction", hard.KeyAt(), "write these too, such as memory.available: 100Mi and nodefs.available: 10%, or mergeDefaultEvictionSettings: true",
			"evictionHard without "+strings.Join(lost, ", "))
	}
}

// AcrossPools compares selectors with pools, over all files.
func AcrossPools(out *report.Report) {
	pools := make(map[string]map[string]string) // labels, by the pool's name
	var names []string
	ensure := func(name string) map[string]string {
		if pools[name] == nil {
			pools[name] = map[string]string{poolLabel + name: ""}
			names = append(names, name)
		}
		return pools[name]
	}
	var configs []*report.Object
	wanted := make(map[string][]string) // values that selectors want, by key
	for _, o := range out.Objects {
		switch o.Kind {
		case "MachineConfigPool":
			if o.Name != "" {
				maps.Copy(ensure(o.Name), reading.StringMap(o.Get("metadata", "labels")))
			}
		case "KubeletConfig":
			configs = append(configs, o)
			want, _ := wantedLabels(o)
			for k, v := range want {
				if !slices.Contains(wanted[k], v) {
					wanted[k] = append(wanted[k], v)
				}
			}
		}
	}
	given := len(names) > 0
	// Every cluster has these two. The operator restores this label if a manifest lacks it.
	for _, name := range []string{"master", "worker"} {
		ensure(name)["machineconfiguration.openshift.io/mco-built-in"] = ""
	}
	for _, label := range out.Labels {
		if label.Kind != "MachineConfigPool" {
			continue
		}
		given = true
		if label.Name != "" {
			ensure(label.Name)[label.Key] = label.Value
			continue
		}
		for _, labels := range pools {
			labels[label.Key] = label.Value
		}
	}
	for _, o := range configs {
		selector := o.Get("spec", "machineConfigPoolSelector")
		if want, known := wantedLabels(o); len(want) > 0 && known && selector.Get("matchExpressions").Node == nil &&
			!slices.ContainsFunc(names, func(name string) bool { return matchesAll(want, pools[name]) }) {
			unmatched(out, o, want, selector.Get("matchLabels").Entries()[0].At(), given, wanted)
		}
	}
	shadowedConfigs(out, configs, names, pools)
	rolesWithoutPool(out, names)
	nodesWithoutPool(out)
}

// shadowedConfigs finds KubeletConfigs for a pool that another KubeletConfig is for.
func shadowedConfigs(out *report.Report, configs []*report.Object, names []string, pools map[string]map[string]string) {
	first := make(map[string]*report.Object) // of a pool, or of a selector
	for _, o := range configs {
		want, known := wantedLabels(o)
		if len(want) == 0 || o.Get("spec", "machineConfigPoolSelector", "matchExpressions").Node != nil {
			continue
		}
		said := false
		meets := func(key, which string) {
			if first[key] == nil {
				first[key] = o
			} else if !said {
				said = true
				shadow(out, o, first[key], which)
			}
		}
		for _, name := range names {
			if known && matchesAll(want, pools[name]) {
				meets("pool "+name, "the pool "+name)
			}
		}
		// Two with the same selector meet on any pool. Maps print in the order of their keys.
		meets(fmt.Sprintf("%q", want), "every pool that its selector matches")
	}
}

// wantedLabels returns the labels that a KubeletConfig's selector wants, and whether all are known.
func wantedLabels(o *report.Object) (want map[string]string, known bool) {
	want = reading.StringMap(o.Get("spec", "machineConfigPoolSelector", "matchLabels"))
	return want, !slices.ContainsFunc(slices.Collect(maps.Values(want)), reading.HasHole)
}

// nodesWithoutPool compares the roles that pools select with those that commands set on nodes.
func nodesWithoutPool(out *report.Report) {
	var roles []string
	for _, label := range out.Labels {
		if role, ok := strings.CutPrefix(label.Key, nodeRoleName); ok && label.Kind == "Node" && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	for _, o := range out.Objects {
		if o.Kind != "MachineConfigPool" {
			continue
		}
		for _, e := range o.Get("spec", "nodeSelector", "matchLabels").Entries() {
			role, ok := strings.CutPrefix(e.Key(), nodeRoleName)
			if !ok || role != o.Name || slices.Contains(roles, role) || reading.HasHole(role) {
				continue
			}
			if hint := report.Near(role, roles, ""); hint != "" {
				out.Find("pool-selects-other", e.KeyAt(), hint,
					fmt.Sprintf("the pool %s selects nodes of the role %s, and the commands here give nodes the roles %s", o.Name, role, strings.Join(report.Few(roles), ", ")))
			}
		}
	}
}

// shadow reports a KubeletConfig for a pool that has another.
func shadow(out *report.Report, o, first *report.Object, which string) {
	var lost []string
	for _, e := range first.Get("spec", "kubeletConfig").Entries() {
		if o.Get("spec", "kubeletConfig", e.Key()).Node == nil {
			lost = append(lost, e.Key())
		}
	}
	if first.Name == o.Name && first.Name != "" {
		return // the same object in two states
	}
	at := o.Closest("metadata", "name")
	found := fmt.Sprintf("%s is for %s, and so is %s %s", o, which, first, reading.Seen(at, first.Closest("metadata", "name")))
	fix := "write the settings of both into one KubeletConfig"
	if len(lost) > 0 {
		found += fmt.Sprintf(": made later, this one takes away %s", strings.Join(report.Few(lost), ", "))
	}
	out.Find("kubeletconfig-shadowed", at, fix, found)
}

func matchesAll(want, have map[string]string) bool {
	for k, v := range want {
		if value, ok := have[k]; !ok || value != v {
			return false
		}
	}
	return true
}

// unmatched reports a KubeletConfig whose labels no pool has.
func unmatched(out *report.Report, o *report.Object, want map[string]string, at reading.Place, given bool, wanted map[string][]string) {
	if !given {
		out.Note("kubeletconfig-selector", at, "no MachineConfigPool and no command that labels one is among the files: whether the selector of %s matches was not checked", o)
		return
	}
	keys := slices.Sorted(maps.Keys(want))
	for _, k := range keys {
		v := want[k]
		fix := "write the same value into both"
		var edits []reading.Edit
		found := fmt.Sprintf("the selector of %s wants %s=%s, and ", o, k, v)
		for _, label := range out.Labels {
			if label.Kind != "MachineConfigPool" || label.Key != k || label.Value == v {
				continue
			}
			if len(wanted[k]) == 1 {
				fix = fmt.Sprintf("label the pool with %s=%s: all KubeletConfigs here want that", k, v)
				edits = label.Replace(v)
			}
			which := "the pool " + label.Name
			if label.Name == "" {
				which = "all pools"
			}
			out.Find("kubeletconfig-selector", at, fix, fmt.Sprintf("%sa command %s labels %s with %s=%s", found, reading.Seen(at, label.At), which, k, label.Value), edits...)
			return
		}
		for _, p := range out.Objects {
			have := p.Get("metadata", "labels", k)
			if p.Kind != "MachineConfigPool" || have.Node == nil || have.Text() == v {
				continue
			}
			if len(wanted[k]) == 1 && report.Near(have.Text(), []string{v}, "") != "" {
				fix = fmt.Sprintf("label the pool with %s: %s", k, v)
				edits = have.Replace(v)
			}
			out.Find("kubeletconfig-selector", at, fix, fmt.Sprintf("%sthe pool %s has %s=%s", found, p.Name, k, have.Text()), edits...)
			return
		}
	}
	label := keys[0] + "=" + want[keys[0]]
	out.Find("kubeletconfig-selector", at, "label a pool: oc label machineconfigpool worker "+label, fmt.Sprintf("the selector of %s wants %s, and no pool here has that label", o, label))
}

// rolesWithoutPool finds MachineConfigs for roles that no pool selects.
func rolesWithoutPool(out *report.Report, pools []string) {
	selected := make(map[string]bool)
	for _, name := range pools {
		selected[name] = true
	}
	given := false
	for _, o := range out.Objects {
		if o.Kind == "MachineConfigPool" {
			given = true
			roles, _ := rolesOf(o)
			for _, r := range roles {
				selected[r] = true
			}
		}
	}
	known := slices.Sorted(maps.Keys(selected))
	for _, o := range out.Objects {
		if o.Kind != "MachineConfig" {
			continue
		}
		role := o.Get("metadata", "labels", roleLabel)
		switch text := role.Text(); {
		case text == "":
			if o.Get("metadata").Node != nil {
				out.Find("machineconfig-role", o.Closest("metadata", "labels"), "label it with "+roleLabel+": worker, or the name of your pool", o.String()+" has no role")
			}
		case reading.HasHole(text) || selected[text]:
		case !given:
			out.Note("machineconfig-role", role.At(), "no MachineConfigPool is among the files: whether a pool has the role %s was not checked", text)
		default:
			out.Find("machineconfig-role", role.At(), report.Near(text, known, "write one of "+strings.Join(report.Few(known), ", ")), "no pool has the role "+text)
		}
	}
}
