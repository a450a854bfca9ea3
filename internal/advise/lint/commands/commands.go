package commands

import (
	"cmp"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/lint/host"
	"plimsoll.dev/plimsoll/internal/advise/lint/objects"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/advise/schema"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// command checks a command by its rules. broken says that the one before ended where its patch belongs.
func command(out *report.Report, c call, broken bool) (nowBroken bool) {
	if first := c.args[0]; broken && (strings.HasPrefix(first.value, "{") || strings.HasPrefix(first.value, "[")) {
		// The patch of the command before is on a line of its own.
		checkPatch(out, c, first)
	}
	switch c.name() {
	case "oc", "kubectl":
		return kubectlCommand(out, c)
	case "ceph":
		cephCommand(out, c)
	case "gluster":
		glusterCommand(out, c)
	case "sysctl":
		sysctlCommand(out, c)
	case "echo", "printf":
		echoCommand(out, c)
	}
	return false
}

// positional splits arguments from flags. The flags of withValue take the next argument.
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

// resourceKind returns the kind for a name on a command line, and whether it has no namespace.
func resourceKind(name string) (kind string, cluster bool) {
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	short := map[string]string{
		"MachineConfigPool": "mcp", "Node": "no", "StorageProfile": "", "MachineConfig": "mc", "KubeletConfig": "", "StorageClass": "sc",
		"PersistentVolume": "pv", "ClusterVersion": "", "Namespace": "ns", "ClusterRole": "", "CustomResourceDefinition": "crd",
		"PriorityClass": "pc", "DeploymentConfig": "dc", "Deployment": "deploy",
	}
	for kind, short := range short {
		one := strings.ToLower(kind)
		many := one + "s"
		if strings.HasSuffix(one, "s") {
			many = one + "es"
		}
		if name != "" && (name == one || name == many || name == short || short == "crd" && name == "crds") {
			return kind, !strings.HasPrefix(kind, "Deployment")
		}
	}
	return "", false
}

func kubectlCommand(out *report.Report, c call) (broken bool) {
	words, flags := positional(c.args[1:], "-n", "--namespace", "--context", "--kubeconfig", "-f", "--filename", "-p", "--patch", "--patch-file", "--type",
		"-o", "--output", "-l", "--selector", "--replicas", "--as", "--cluster", "--user", "-s", "--server", "--token", "-c", "--container", "--subresource", "--field-selector", "-e", "--env", "--to", "--to-image", "--cpu-percent", "--min", "--max", "--timeout", "--grace-period", "-k", "--kustomize")
	if len(words) == 0 {
		return
	}
	verb := words[0].value
	rest := words[1:]
	// The resource is KIND NAME... or KIND/NAME.
	kind, cluster := "", false
	if len(rest) > 0 {
		k, _, _ := strings.Cut(rest[0].value, "/")
		kind, cluster = resourceKind(k)
		for _, f := range []string{"-n", "--namespace"} {
			if ns, ok := flags[f]; ok && cluster && slices.Contains([]string{"edit", "patch", "label", "annotate", "delete", "apply"}, verb) {
				out.Find("cluster-scoped", c.at(ns), "leave the namespace out", fmt.Sprintf("a %s has no namespace", kind))
			}
		}
	}
	switch verb {
	case "label":
		names, labels := labelled(rest, flags)
		for _, name := range names {
			for _, w := range labels {
				labelWord(out, c, kind, name, w)
			}
		}
	case "patch":
		for _, f := range []string{"-p", "--patch"} {
			p, ok := flags[f]
			switch {
			case ok && p.value == f:
				broken = true
				out.Find("patch-syntax", c.at(p), "end the line with a backslash, or write the patch behind it", f+" stands at the end of its line, without a patch")
			case ok && p.literal:
				spec := checkPatch(out, c, p)
				if k, _, _ := strings.Cut(words[min(1, len(words)-1)].value, "/"); spec.Node != nil && spec.Node.Kind == strictyaml.Mapping {
					patchFits(out, spec, k)
				}
			}
		}
	}
	return broken
}

// labelled splits the arguments of a label command into names and labels; the name "" is a selector.
func labelled(args []word, flags map[string]word) (names []string, labels []word) {
	for i, w := range args {
		_, name, slash := strings.Cut(w.value, "/")
		switch {
		case strings.Contains(w.value, "="):
			labels = append(labels, w)
		case strings.HasSuffix(w.value, "-"): // removes a label
		case slash:
			names = append(names, name)
		case i > 0:
			names = append(names, w.value)
		}
	}
	selects := slices.ContainsFunc([]string{"--all", "-l", "--selector"}, func(f string) bool { _, ok := flags[f]; return ok })
	if selects && len(names) == 0 {
		names = []string{""}
	}
	return names, labels
}

func labelWord(out *report.Report, c call, kind, name string, w word) {
	key, value, ok := strings.Cut(w.value, "=")
	if !ok || kind == "" || reading.HasHole(w.value) || reading.HasHole(name) {
		return
	}
	out.Labels = append(out.Labels, report.Labelled{
		Kind: kind, Name: name, Key: key, Value: value, At: c.at(w),
		Replace: func(fresh string) []reading.Edit { return c.replace(w, len(key)+1, len(w.value), fresh) },
	})
}

// patchFits compares a patch with the specification of its kind, in the version that fits better.
func patchFits(out *report.Report, spec reading.Value, resource string) {
	name, _, _ := strings.Cut(strings.ToLower(resource), ".")
	short := map[string]string{"mcp": "machineconfigpool", "mc": "machineconfig", "hco": "hyperconverged", "vm": "virtualmachine", "vmi": "virtualmachineinstance", "kv": "kubevirt", "dv": "datavolume"}
	name = cmp.Or(short[name], strings.TrimSuffix(name, "s"))
	var best *report.Report
	for _, s := range out.Specs(name) {
		one := report.Report{Tables: out.Tables}
		(&objects.Fit{Out: &one, Doc: spec.Doc, What: report.Article(s.Kind)}).Check(spec, s.Type)
		if best == nil || len(one.Findings) < len(best.Findings) {
			best = &one
		}
	}
	if best != nil {
		out.Findings = append(out.Findings, best.Findings...)
	}
}

func checkPatch(out *report.Report, c call, w word) (spec reading.Value) {
	t := c.text.Inner(w.start, w.end, "patch", w.value)
	if w.inner >= 0 {
		t = c.text.Part(w.inner, w.inner+len(w.value), "patch")
	}
	root, problems := reading.Single(t)
	if len(problems) > 0 {
		p := problems[0]
		fix := "correct its quotes and brackets; an annotation that holds JSON is one text: \"[{\\\"op\\\": ...}]\""
		out.Find("patch-syntax", t.Place(max(1, p.Line), p.Column), fix, "the patch cannot be read: "+strings.TrimPrefix(p.Message, "not valid YAML: "))
		return reading.Value{}
	}
	for _, which := range []string{"annotations", "labels"} {
		for _, e := range root.Get("metadata", which).Entries() {
			if reading.IsNull(e.Node) {
				continue // null removes it
			}
			if _, isText := e.Node.Value().(string); !isText {
				out.Find("annotation-type", e.At(), "write it as one text, in quotes", fmt.Sprintf("%s wants text, found %s", e.Key(), e.Node.Describe()))
			} else if strings.HasSuffix(e.Key(), "/jsonpatch") {
				jsonPatch(out, e)
			}
		}
	}
	return root.Get("spec")
}

// jsonPatch reads the patch in an annotation of the HyperConverged operator.
func jsonPatch(out *report.Report, e reading.Entry) {
	at := e.At()
	list, _ := reading.Single(&reading.Text{Data: e.Text()})
	if list.Node == nil || list.Node.Kind != strictyaml.List {
		out.Find("patch-syntax", at, `write a list of operations: [{"op": "add", "path": "/spec/...", "value": ...}]`, "the annotation "+e.Key()+" holds no JSON patch")
		return
	}
	for _, op := range list.Items() {
		name := op.Get("op").Text()
		if !slices.Contains([]string{"add", "remove", "replace", "move", "copy", "test"}, name) {
			out.Find("patch-syntax", at, "write add, remove, replace, move, copy or test", fmt.Sprintf("a JSON patch has no operation %q", name))
		}
		if p := op.Get("path").Text(); p != "" && !strings.HasPrefix(p, "/") {
			out.Find("patch-syntax", at, "begin it with /", fmt.Sprintf("a path of a JSON patch begins with /, not as %q", p))
		}
		for _, inner := range op.Get("value").Items() {
			if p := inner.Get("patch").Text(); p != "" {
				if docs, problems := strictyaml.Documents("", []byte(p)); len(problems) > 0 || len(docs) != 1 || len(docs[0].Problems) > 0 {
					out.Find("patch-syntax", at, "correct its quotes and brackets", "the patch inside of the annotation "+e.Key()+" cannot be read")
				}
			}
		}
	}
}

func glusterCommand(out *report.Report, c call) {
	words, _ := positional(c.args[1:])
	if len(words) < 5 || words[0].value != "volume" || words[1].value != "set" {
		return
	}
	if key, value := words[3], words[4]; key.value == "cluster.brick-multiplex" && slices.Contains([]string{"off", "no", "disable", "false", "0"}, value.value) {
		out.Find("gluster-multiplex-off", c.at(value), "leave it on: cluster.brick-multiplex on", "cluster.brick-multiplex is turned off")
	}
}

func sysctlCommand(out *report.Report, c call) {
	words, flags := positional(c.args[1:], "-r", "--pattern")
	if _, loads := flags["-p"]; loads {
		return
	}
	for _, w := range words {
		key, value, ok := strings.Cut(w.value, "=")
		if !ok {
			continue
		}
		host.CheckSetting(out, report.Setting{
			Key: key, Value: value, AtKey: c.at(w), AtValue: c.at(w), Scope: reading.ScopeOf(c.text),
			ReplaceValue: func(fresh string) []reading.Edit { return c.replace(w, len(key)+1, len(w.value), fresh) },
		})
	}
}

// echoCommand reads settings that echo writes to a sysctl file.
func echoCommand(out *report.Report, c call) {
	if !strings.Contains(c.to, "sysctl") || len(c.args) < 2 {
		return
	}
	w := c.args[len(c.args)-1]
	key, value, ok := strings.Cut(w.value, "=")
	if !ok || strings.Contains(w.value, "\n") {
		return
	}
	host.CheckSetting(out, report.Setting{Key: strings.TrimSpace(key), Value: strings.TrimSpace(value), AtKey: c.at(w), AtValue: c.at(w), Scope: reading.ScopeOf(c.text)})
}

// Faulty computations.
var (
	// The product of V7: milliseconds / 1000 x Mb/s x 1024^2.
	mebibits = regexp.MustCompile(`/\s*1000\s*\)?\s*\*\s*[0-9]+\s*\*\s*(1024\s*\^\s*2|1024\s*\*\*\s*2|1024\s*\*\s*1024|1048576)`)
	// The digit 1 instead of the letter l before a bracket.
	digitForLetter = regexp.MustCompile(`(^|[^0-9A-Za-z_.])1\(`)
)

// piped checks a command that reads another's output. head is the first of the pipeline.
func piped(out *report.Report, head, from, into call) {
	switch into.name() {
	case "wc":
		if len(into.args) > 1 && into.args[1].value == "-l" {
			countedLines(out, from)
		}
	case "awk", "gawk", "mawk":
		if head.name() != "ping" {
			return
		}
		for _, w := range into.args[1:] {
			if mebibits.MatchString(w.value) {
				out.Find("bdp-formula", into.at(w), "for bytes write ($5/1000) * LINK * 1000000 / 8, LINK in Mb/s", "the round trip in seconds is multiplied by Mb/s and by 1024^2")
			}
		}
	case "bc":
		if from.name() == "echo" {
			for _, w := range from.args[1:] {
				if places := digitForLetter.FindAllStringIndex(w.value, -1); len(places) > 0 {
					var edits []reading.Edit
					for _, p := range places {
						edits = append(edits, from.replace(w, p[1]-2, p[1]-1, "l")...)
					}
					if len(edits) != len(places) {
						edits = nil
					}
					out.Find("bc-syntax", from.at(w), "write l( with the letter, the natural logarithm of bc -l", "a number stands right before a bracket: 1(", edits...)
				}
			}
		}
	}
}

// countedLines finds counts of lists whose first line is a header.
func countedLines(out *report.Report, c call) {
	switch c.name() {
	case "lvs", "pvs", "vgs":
		_, flags := positional(c.args[1:], "-o", "--options", "-S", "--select")
		for _, f := range []string{"--noheadings", "--noheading", "--reportformat"} {
			if _, ok := flags[f]; ok {
				return
			}
		}
		out.Find("counts-header", c.at(c.args[0]), fmt.Sprintf("write %s --noheadings, with a selection of what is meant (-S)", c.name()),
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
		out.Find("counts-header", c.at(c.args[0]), "write --no-headers, or -o name", fmt.Sprintf("%s get prints a header", c.name()))
	}
}

func cephCommand(out *report.Report, c call) {
	words, _ := positional(c.args[1:], "-c", "--conf", "-i", "--id", "-n", "--name", "--cluster", "-f", "--format", "-k", "--keyring", "-m", "--monmap")
	values := make([]string, len(words))
	for i, w := range words {
		values[i] = w.value
	}
	is := func(want ...string) bool { return len(values) > len(want) && slices.Equal(values[:len(want)], want) }
	switch {
	case is("osd", "pool", "set") && len(words) >= 6:
		setPool(out, c, words[3], words[4], words[5])
	case is("config", "set") && len(words) >= 5:
		setCephConfig(out, c, words[3], words[4])
	case is("osd", "pool", "create") && len(words) >= 5:
		checkPGNum(out, c, words[4])
	}
}

func setPool(out *report.Report, c call, pool, key, value word) {
	if reading.HasHole(key.value) {
		return
	}
	if keys := schema.Words("ceph-pool"); !slices.Contains(keys, key.value) {
		fix, edits := suggest(c, key, "", keys, strings.Join(keys[:8], ", ")+" ...")
		out.Find("ceph-pool-key", c.at(key), fix, "a pool has no setting "+key.value, edits...)
		return
	}
	out.CephPools = append(out.CephPools, report.CephPool{Pool: pool.value, Key: key.value, Value: value.value, At: c.at(value)})
	if reading.HasHole(value.value) {
		return
	}
	switch key.value {
	case "pg_autoscale_mode":
		if !slices.Contains([]string{"on", "off", "warn"}, value.value) {
			out.Find("ceph-value", c.at(value), "write on, off or warn", fmt.Sprintf("pg_autoscale_mode cannot be %q", value.value))
		}
	case "pg_num", "pgp_num", "pg_num_min", "pg_num_max":
		checkPGNum(out, c, value)
	case "size", "min_size":
		if n, err := strconv.Atoi(value.value); err != nil || n < 1 || n > 10 {
			out.Find("ceph-value", c.at(value), "write 1 to 10", fmt.Sprintf("%s cannot be %q", key.value, value.value))
		}
	}
}

// suggest returns the fix for an unknown key, with edits if one known key was clearly meant.
func suggest(c call, key word, prefix string, known []string, some string) (fix string, edits []reading.Edit) {
	near, ok := nearest.Word(key.value[len(prefix):], known)
	if !ok {
		return "write one of " + some, nil
	}
	return "write " + prefix + near, c.replace(key, len(prefix), len(key.value), near)
}

func checkPGNum(out *report.Report, c call, w word) {
	if reading.HasHole(w.value) {
		return
	}
	n, err := strconv.Atoi(w.value)
	if err != nil {
		if w.value != "replicated" && w.value != "erasure" {
			out.Find("ceph-value", c.at(w), "write a whole number", fmt.Sprintf("a number of placement groups cannot be %q", w.value))
		}
		return
	}
	if n < 1 || n > 1<<20 {
		out.Find("ceph-value", c.at(w), "write a power of two; 100 groups for each OSD in all is the usual aim", fmt.Sprintf("a number of placement groups cannot be %d", n))
		return
	}
	if n&(n-1) != 0 {
		low := 1 << (bits.Len(uint(n)) - 1)
		out.Find("ceph-pg-num", c.at(w), fmt.Sprintf("write %d or %d", low, 2*low), fmt.Sprintf("%d is not a power of two", n))
	}
}

func setCephConfig(out *report.Report, c call, key, value word) {
	name, isPrometheus := strings.CutPrefix(key.value, "mgr/prometheus/")
	if !isPrometheus {
		// mgr.prometheus/..., mgr/promethues/...
		if module, _, ok := strings.Cut(strings.TrimPrefix(key.value, "mgr/"), "/"); ok && strings.HasPrefix(key.value, "mgr/") {
			if near, ok := nearest.Word(module, []string{"prometheus"}); ok && near != module {
				out.Find("ceph-config-key", c.at(key), "write mgr/prometheus/...", fmt.Sprintf("the manager has no module %s", module), c.replace(key, len("mgr/"), len("mgr/")+len(module), near)...)
			}
		}
		return
	}
	keys := schema.Words("ceph-exporter")
	if !slices.Contains(keys, name) && !reading.HasHole(name) {
		fix, edits := suggest(c, key, "mgr/prometheus/", keys, strings.Join(keys[:7], ", "))
		out.Find("ceph-config-key", c.at(key), fix, fmt.Sprintf("the exporter has no setting %s", name), edits...)
		return
	}
	if (name == "scrape_interval" || name == "rbd_stats_pools_refresh_interval") && !reading.HasHole(value.value) {
		if v, err := strconv.ParseFloat(value.value, 64); err != nil || v <= 0 {
			out.Find("ceph-value", c.at(value), "write a number of seconds, without a unit", fmt.Sprintf("%s cannot be %q", name, value.value))
		}
	}
}

// AcrossCephPools finds pools whose pg_num the autoscaler changes back.
func AcrossCephPools(out *report.Report) {
	off := make(map[string]bool)
	for _, p := range out.CephPools {
		if p.Key == "pg_autoscale_mode" && p.Value != "on" {
			off[p.Pool] = true
		}
	}
	for _, p := range out.CephPools {
		if p.Key == "pg_num" && !off[p.Pool] {
			out.Find("ceph-autoscaler", p.At, fmt.Sprintf("turn it off for the pool first: ceph osd pool set %s pg_autoscale_mode off", p.Pool),
				fmt.Sprintf("pg_num of %s is set, and the autoscaler is not turned off for it here", p.Pool))
		}
	}
}
