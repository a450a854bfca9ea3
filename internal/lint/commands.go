package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"plimsoll.dev/plimsoll/internal/nearest"
	"plimsoll.dev/plimsoll/internal/strictyaml"
)

// command holds a command against the rules for it.
func (l *linter) command(c call) {
	if first := c.args[0]; l.broken && (strings.HasPrefix(first.value, "{") || strings.HasPrefix(first.value, "[")) {
		// The patch of the command before, on a line of its own.
		l.patch(c, first)
	}
	l.broken = false
	switch c.name() {
	case "oc", "kubectl":
		l.kubectl(c)
	case "ceph":
		l.ceph(c)
	case "gluster":
		l.gluster(c)
	case "sysctl":
		l.sysctlCommand(c)
	case "echo", "printf":
		l.echo(c)
	case "fio":
		l.fioCommand(c)
	}
}

// positional are the arguments that are no flags and no values of flags.
// withValue are the flags that take their value from the next argument.
func positional(args []word, withValue ...string) (words []word, flags map[string]word) {
	flags = make(map[string]word)
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.value == "--":
			return append(words, args[i+1:]...), flags
		case !strings.HasPrefix(a.value, "-") || a.value == "-":
			words = append(words, a)
		default:
			name, value, has := strings.Cut(a.value, "=")
			switch {
			case has:
				v := a
				v.value = value
				if v.inner >= 0 {
					v.inner += len(name) + 1
				}
				flags[name] = v
			case slices.Contains(withValue, a.value) && i+1 < len(args):
				i++
				flags[name] = args[i]
			case len(a.value) > 2 && a.value[1] != '-' && slices.Contains(withValue, a.value[:2]):
				v := a
				v.value = a.value[2:]
				v.inner = -1 // begins in the middle
				flags[a.value[:2]] = v
			default:
				flags[name] = a
			}
		}
	}
	return words, flags
}

// resourceKind is the kind that a name on a command line stands for, and
// whether it has no namespace.
func resourceKind(name string) (kind string, cluster bool) {
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	switch name {
	case "machineconfigpool", "machineconfigpools", "mcp":
		return "MachineConfigPool", true
	case "node", "nodes", "no":
		return "Node", true
	case "storageprofile", "storageprofiles":
		return "StorageProfile", true
	case "machineconfig", "machineconfigs", "mc":
		return "MachineConfig", true
	case "kubeletconfig", "kubeletconfigs":
		return "KubeletConfig", true
	case "storageclass", "storageclasses", "sc":
		return "StorageClass", true
	case "persistentvolume", "persistentvolumes", "pv":
		return "PersistentVolume", true
	case "clusterversion", "clusterversions":
		return "ClusterVersion", true
	case "namespace", "namespaces", "ns":
		return "Namespace", true
	case "clusterrole", "clusterroles":
		return "ClusterRole", true
	case "customresourcedefinition", "customresourcedefinitions", "crd", "crds":
		return "CustomResourceDefinition", true
	case "priorityclass", "priorityclasses", "pc":
		return "PriorityClass", true
	case "deploymentconfig", "deploymentconfigs", "dc":
		return "DeploymentConfig", false
	case "deployment", "deployments", "deploy":
		return "Deployment", false
	}
	return "", false
}

// kubectl looks at commands of oc and kubectl.
func (l *linter) kubectl(c call) {
	words, flags := positional(c.args[1:], "-n", "--namespace", "--context", "--kubeconfig", "-f", "--filename", "-p", "--patch", "--patch-file", "--type",
		"-o", "--output", "-l", "--selector", "--replicas", "--as", "--cluster", "--user", "-s", "--server", "--token", "-c", "--container", "--subresource", "--field-selector", "-e", "--env", "--to", "--to-image", "--cpu-percent", "--min", "--max", "--timeout", "--grace-period", "-k", "--kustomize")
	if len(words) == 0 {
		return
	}
	verb := words[0].value
	rest := words[1:]
	// The resource is KIND NAME... or KIND/NAME.
	kind, cluster, name := "", false, ""
	if len(rest) > 0 {
		k, n, slash := strings.Cut(rest[0].value, "/")
		kind, cluster = resourceKind(k)
		switch {
		case slash:
			name = n
		case len(rest) > 1:
			name = rest[1].value
		}
		for _, f := range []string{"-n", "--namespace"} {
			if ns, ok := flags[f]; ok && cluster && slices.Contains([]string{"edit", "patch", "label", "annotate", "delete", "apply"}, verb) {
				l.report("cluster-scoped", c.at(ns), "leave the namespace out", fmt.Sprintf("a %s has no namespace", kind))
			}
		}
	}
	switch verb {
	case "label":
		if len(rest) == 0 {
			return
		}
		labels := rest[1:]
		if !strings.Contains(rest[0].value, "/") && len(labels) > 0 && name != "" && !strings.ContainsAny(name, "=") {
			labels = labels[1:]
		}
		for _, w := range labels {
			l.labelWord(c, kind, name, w)
		}
	case "patch":
		for _, f := range []string{"-p", "--patch"} {
			p, ok := flags[f]
			switch {
			case ok && p.value == f:
				l.broken = true
				l.report("patch-syntax", c.at(p), "end the line with a backslash, or write the patch behind it", f+" stands at the end of its line, without a patch")
			case ok && p.literal:
				l.patch(c, p)
			}
		}
	case "set":
		if len(rest) > 1 && rest[0].value == "env" {
			for _, w := range rest[1:] {
				l.envWord(c, w)
			}
			for _, f := range []string{"-e", "--env"} {
				if w, ok := flags[f]; ok {
					l.envWord(c, w)
				}
			}
		}
	}
}

// labelWord reads KEY=VALUE of a label command.
func (l *linter) labelWord(c call, kind, name string, w word) {
	key, value, ok := strings.Cut(w.value, "=")
	if !ok || hasHole(w.value) || hasHole(name) {
		return
	}
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		l.report("command-label", c.at(w), "write [domain/]name, the name of at most 63 letters, digits, dashes, dots and underscores", fmt.Sprintf("%q cannot be the key of a label", key))
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		l.report("command-label", c.at(w), "write at most 63 letters, digits, dashes, dots and underscores", fmt.Sprintf("%q cannot be the value of a label", value))
		return
	}
	if kind == "" || name == "" {
		return
	}
	l.labels = append(l.labels, labelled{
		kind: kind, name: name, key: key, value: value, at: c.at(w),
		replace: func(fresh string) []edit { return c.replace(w, len(key)+1, len(w.value), fresh) },
	})
}

// envWord reads KEY=VALUE of a command that sets an environment.
func (l *linter) envWord(c call, w word) {
	key, value, ok := strings.Cut(w.value, "=")
	if !ok {
		return
	}
	v := variable{name: key, atName: c.at(w), hasValue: true, value: value, atValue: c.at(w)}
	v.rename = func(fresh string) []edit { return c.replace(w, 0, len(key), fresh) }
	l.routerVariable(v)
}

// patch reads the patch of a command.
func (l *linter) patch(c call, w word) {
	t := &text{file: c.text.file, name: "patch", data: w.value, parent: c.text, start: w.start, end: w.end, snippet: c.text.snippet}
	if w.inner >= 0 {
		t = c.text.part(w.inner, w.inner+len(w.value), "patch")
	}
	t.index()
	docs, problems := strictyaml.Documents(t.name, []byte(w.value))
	for _, d := range docs {
		problems = append(problems, d.Problems...)
	}
	if len(problems) > 0 {
		p := problems[0]
		mend := "correct its quotes and brackets; an annotation that holds JSON is one text: \"[{\\\"op\\\": ...}]\""
		l.report("patch-syntax", place{text: t, line: max(1, p.Line), column: p.Column}, mend, "the patch cannot be read: "+strings.TrimPrefix(p.Message, "not valid YAML: "))
		return
	}
	if len(docs) != 1 || docs[0].Root == nil {
		return
	}
	d := &doc{text: t, root: docs[0].Root}
	for _, which := range []string{"annotations", "labels"} {
		for _, e := range entriesOf(dig(d.root, "metadata", which)) {
			inner := strictyaml.Key("metadata."+which, e.Key)
			if isNull(e.Value) {
				continue // which removes it
			}
			if _, isText := e.Value.Value().(string); !isText {
				l.report("annotation-type", d.at(e.Value, inner), "write it as one text, in quotes", fmt.Sprintf("%s wants text, found %s", e.Key, e.Value.Describe()))
				continue
			}
			if strings.HasSuffix(e.Key, "/jsonpatch") {
				l.jsonPatch(d, e, inner)
			}
		}
	}
}

// jsonPatch reads the patch that an annotation of the HyperConverged operator
// holds.
func (l *linter) jsonPatch(d *doc, e strictyaml.Entry, path string) {
	docs, problems := strictyaml.Documents("", []byte(e.Value.Text()))
	for _, doc := range docs {
		problems = append(problems, doc.Problems...)
	}
	at := d.at(e.Value, path)
	if len(problems) > 0 || len(docs) != 1 || docs[0].Root == nil || docs[0].Root.Kind() != strictyaml.List {
		l.report("patch-syntax", at, `write a list of operations: [{"op": "add", "path": "/spec/...", "value": ...}]`, "the annotation "+e.Key+" holds no JSON patch")
		return
	}
	for _, op := range docs[0].Root.Items() {
		name := textOf(op.Get("op"))
		if !slices.Contains([]string{"add", "remove", "replace", "move", "copy", "test"}, name) {
			l.report("patch-syntax", at, "write add, remove, replace, move, copy or test", fmt.Sprintf("a JSON patch has no operation %q", name))
		}
		if p := textOf(op.Get("path")); p != "" && !strings.HasPrefix(p, "/") {
			l.report("patch-syntax", at, "begin it with /", fmt.Sprintf("a path of a JSON patch begins with /, not as %q", p))
		}
		for _, inner := range itemsOf(op.Get("value")) {
			if p := textOf(inner.Get("patch")); p != "" {
				docs, problems := strictyaml.Documents("", []byte(p))
				if len(problems) > 0 || len(docs) != 1 || len(docs[0].Problems) > 0 {
					l.report("patch-syntax", at, "correct its quotes and brackets", "the patch inside of the annotation "+e.Key+" cannot be read")
				}
			}
		}
	}
}

// cephPoolKeys are what can be set of a pool (Ceph's documentation of pools).
func cephPoolKeys() []string {
	return strings.Fields(`size min_size pg_num pgp_num pgp_num_actual pg_num_min pg_num_max pg_autoscale_mode pg_autoscale_bias bulk
		target_size_bytes target_size_ratio crush_rule hashpspool nodelete nopgchange nosizechange write_fadvise_dontneed noscrub
		nodeep-scrub hit_set_type hit_set_period hit_set_count hit_set_fpp use_gmt_hitset target_max_bytes target_max_objects
		cache_target_dirty_ratio cache_target_dirty_high_ratio cache_target_full_ratio cache_min_flush_age cache_min_evict_age
		min_read_recency_for_promote min_write_recency_for_promote hit_set_grade_decay_rate hit_set_search_last_n fast_read
		allow_ec_overwrites allow_ec_optimizations compression_mode compression_algorithm compression_required_ratio
		compression_max_blob_size compression_min_blob_size scrub_min_interval scrub_max_interval deep_scrub_interval
		scrub_priority recovery_priority recovery_op_priority csum_type csum_max_block csum_min_block fingerprint_algorithm
		dedup_tier dedup_chunk_algorithm dedup_cdc_chunk_size read_ratio eio auid`)
}

// cephPrometheusKeys are the settings of the manager's exporter.
func cephPrometheusKeys() []string {
	return strings.Fields(`server_addr server_port scrape_interval stale_cache_strategy cache rbd_stats_pools
		rbd_stats_pools_refresh_interval standby_behaviour standby_error_status_code exclude_perf_counters log_level
		log_to_cluster log_to_cluster_level log_to_file sqlite3_killpoint`)
}

// cephPool is what a script sets of a pool.
type cephPool struct {
	pool, key, value string
	at               place
}

// ceph looks at commands that set something of Ceph.
func (l *linter) ceph(c call) {
	words, _ := positional(c.args[1:], "-c", "--conf", "-i", "--id", "-n", "--name", "--cluster", "-f", "--format", "-k", "--keyring", "-m", "--monmap")
	values := make([]string, len(words))
	for i, w := range words {
		values[i] = w.value
	}
	is := func(want ...string) bool { return len(values) > len(want) && slices.Equal(values[:len(want)], want) }
	switch {
	case is("osd", "pool", "set") && len(words) >= 6:
		l.cephPool(c, words[3], words[4], words[5])
	case is("config", "set") && len(words) >= 5:
		l.cephConfig(c, words[3], words[4])
	case is("osd", "pool", "create") && len(words) >= 5:
		l.pgNum(c, words[4])
	}
}

func (l *linter) cephPool(c call, pool, key, value word) {
	keys := cephPoolKeys()
	if hasHole(key.value) {
		return
	}
	if !slices.Contains(keys, key.value) {
		var edits []edit
		mend := "write one of " + strings.Join(keys[:8], ", ") + " ..."
		if near, ok := nearest.Word(key.value, keys); ok {
			mend = "write " + near
			edits = c.replace(key, 0, len(key.value), near)
		}
		l.report("ceph-pool-key", c.at(key), mend, fmt.Sprintf("a pool has no setting %s", key.value), edits...)
		return
	}
	l.cephPools = append(l.cephPools, cephPool{pool.value, key.value, value.value, c.at(value)})
	if hasHole(value.value) {
		return
	}
	switch key.value {
	case "pg_autoscale_mode":
		if !slices.Contains([]string{"on", "off", "warn"}, value.value) {
			l.report("ceph-value", c.at(value), "write on, off or warn", fmt.Sprintf("pg_autoscale_mode cannot be %q", value.value))
		}
	case "pg_num", "pgp_num", "pg_num_min", "pg_num_max":
		l.pgNum(c, value)
	case "size", "min_size":
		if n, err := strconv.Atoi(value.value); err != nil || n < 1 || n > 10 {
			l.report("ceph-value", c.at(value), "write 1 to 10", fmt.Sprintf("%s cannot be %q", key.value, value.value))
		}
	}
}

// pgNum holds a number of placement groups against what is good.
func (l *linter) pgNum(c call, w word) {
	if hasHole(w.value) {
		return
	}
	n, err := strconv.Atoi(w.value)
	if err != nil {
		if w.value != "replicated" && w.value != "erasure" {
			l.report("ceph-value", c.at(w), "write a whole number", fmt.Sprintf("a number of placement groups cannot be %q", w.value))
		}
		return
	}
	if n < 1 || n > 1<<20 {
		l.report("ceph-value", c.at(w), "write a power of two; 100 groups for each OSD in all is the usual aim", fmt.Sprintf("a number of placement groups cannot be %d", n))
		return
	}
	if n&(n-1) != 0 {
		low := 1
		for low*2 <= n {
			low *= 2
		}
		l.report("ceph-pg-num", c.at(w), fmt.Sprintf("write %d or %d", low, 2*low), fmt.Sprintf("%d is no power of two", n))
	}
}

func (l *linter) cephConfig(c call, key, value word) {
	name, isPrometheus := strings.CutPrefix(key.value, "mgr/prometheus/")
	if !isPrometheus {
		// mgr.prometheus/..., mgr/promethues/...
		if module, _, ok := strings.Cut(strings.TrimPrefix(key.value, "mgr/"), "/"); ok && strings.HasPrefix(key.value, "mgr/") {
			if near, ok := nearest.Word(module, []string{"prometheus"}); ok && near != module {
				l.report("ceph-config-key", c.at(key), "write mgr/prometheus/...", fmt.Sprintf("the manager has no module %s", module), c.replace(key, len("mgr/"), len("mgr/")+len(module), near)...)
			}
		}
		return
	}
	keys := cephPrometheusKeys()
	if !slices.Contains(keys, name) && !hasHole(name) {
		var edits []edit
		mend := "write one of " + strings.Join(keys[:7], ", ")
		if near, ok := nearest.Word(name, keys); ok {
			mend = "write mgr/prometheus/" + near
			edits = c.replace(key, len("mgr/prometheus/"), len(key.value), near)
		}
		l.report("ceph-config-key", c.at(key), mend, fmt.Sprintf("the exporter has no setting %s", name), edits...)
		return
	}
	if (name == "scrape_interval" || name == "rbd_stats_pools_refresh_interval") && !hasHole(value.value) {
		if v, err := strconv.ParseFloat(value.value, 64); err != nil || v <= 0 {
			l.report("ceph-value", c.at(value), "write a number of seconds, without a unit", fmt.Sprintf("%s cannot be %q", name, value.value))
		}
	}
}

// acrossPoolsOfCeph finds pools whose number of groups the autoscaler changes
// back.
func (l *linter) acrossPoolsOfCeph() {
	off := make(map[string]bool)
	for _, p := range l.cephPools {
		if p.key == "pg_autoscale_mode" && p.value != "on" {
			off[p.pool] = true
		}
	}
	for _, p := range l.cephPools {
		if p.key == "pg_num" && !off[p.pool] {
			l.report("ceph-autoscaler", p.at, fmt.Sprintf("turn it off for the pool first: ceph osd pool set %s pg_autoscale_mode off", p.pool),
				fmt.Sprintf("pg_num of %s is set, and the autoscaler is not turned off for it here", p.pool))
		}
	}
}

// gluster looks at volume options.
func (l *linter) gluster(c call) {
	words, _ := positional(c.args[1:])
	if len(words) < 5 || words[0].value != "volume" || words[1].value != "set" {
		return
	}
	if key, value := words[3], words[4]; key.value == "cluster.brick-multiplex" && slices.Contains([]string{"off", "no", "disable", "false", "0"}, value.value) {
		l.report("gluster-multiplex-off", c.at(value), "leave it on: cluster.brick-multiplex on", "cluster.brick-multiplex is turned off")
	}
}

// sysctlCommand reads settings of a sysctl command.
func (l *linter) sysctlCommand(c call) {
	words, flags := positional(c.args[1:], "-r", "--pattern")
	if _, loads := flags["-p"]; loads {
		return
	}
	for _, w := range words {
		key, value, ok := strings.Cut(w.value, "=")
		if !ok {
			continue
		}
		l.setting(setting{
			key: key, value: value, atKey: c.at(w), atValue: c.at(w), scope: l.scopeOf(c.text),
			replaceKey:   func(fresh string) []edit { return c.replace(w, 0, len(key), fresh) },
			replaceValue: func(fresh string) []edit { return c.replace(w, len(key)+1, len(w.value), fresh) },
		})
	}
}

// echo reads settings that are written to a sysctl file.
func (l *linter) echo(c call) {
	if !strings.Contains(c.to, "sysctl") || len(c.args) < 2 {
		return
	}
	w := c.args[len(c.args)-1]
	key, value, ok := strings.Cut(w.value, "=")
	if !ok || strings.Contains(w.value, "\n") {
		return
	}
	l.setting(setting{key: strings.TrimSpace(key), value: strings.TrimSpace(value), atKey: c.at(w), atValue: c.at(w), scope: l.scopeOf(c.text)})
}

// Expressions that compute something.
var (
	// The product of V7: milliseconds / 1000 x Mb/s x 1024^2.
	mebibits = regexp.MustCompile(`/\s*1000\s*\)?\s*\*\s*[0-9]+\s*\*\s*(1024\s*\^\s*2|1024\s*\*\*\s*2|1024\s*\*\s*1024|1048576)`)
	// The digit 1 in place of the letter l before a bracket.
	digitForLetter = regexp.MustCompile(`(^|[^0-9A-Za-z_.])1\(`)
)

// piped holds commands whose output another reads against the rules for it.
// head is the first of the pipeline.
func (l *linter) piped(head, from, into call) {
	switch into.name() {
	case "wc":
		if len(into.args) > 1 && into.args[1].value == "-l" {
			l.countedLines(from)
		}
	case "awk", "gawk", "mawk":
		if head.name() != "ping" {
			return
		}
		for _, w := range into.args[1:] {
			if mebibits.MatchString(w.value) {
				l.report("bdp-formula", into.at(w), "for bytes write ($5/1000) * LINK * 1000000 / 8, LINK in Mb/s", "the round trip in seconds is multiplied by Mb/s and by 1024^2")
			}
		}
	case "bc":
		if from.name() == "echo" {
			for _, w := range from.args[1:] {
				if places := digitForLetter.FindAllStringIndex(w.value, -1); len(places) > 0 {
					var edits []edit
					for _, p := range places {
						edits = append(edits, from.replace(w, p[1]-2, p[1]-1, "l")...)
					}
					if len(edits) != len(places) {
						edits = nil
					}
					l.report("bc-syntax", from.at(w), "write l( with the letter, the natural logarithm of bc -l", "a number stands right before a bracket: 1(", edits...)
				}
			}
		}
	}
}

// countedLines finds lists whose first line is a header.
func (l *linter) countedLines(c call) {
	switch c.name() {
	case "lvs", "pvs", "vgs":
		_, flags := positional(c.args[1:], "-o", "--options", "-S", "--select")
		for _, f := range []string{"--noheadings", "--noheading", "--reportformat"} {
			if _, ok := flags[f]; ok {
				return
			}
		}
		l.report("counts-header", c.at(c.args[0]), fmt.Sprintf("write %s --noheadings, with a selection of what is meant (-S)", c.name()),
			fmt.Sprintf("%s prints a header, and every volume of the host, such as its root", c.name()))
	case "oc", "kubectl":
		words, flags := positional(c.args[1:], "-o", "-n", "--namespace", "-l", "--selector", "--output", "--context", "--kubeconfig", "--field-selector")
		if len(words) == 0 || words[0].value != "get" {
			return
		}
		format := flags["-o"].value + flags["--output"].value
		if _, ok := flags["--no-headers"]; ok || format != "" && format != "wide" {
			return
		}
		l.report("counts-header", c.at(c.args[0]), "write --no-headers, or -o name", fmt.Sprintf("%s get prints a header", c.name()))
	}
}
