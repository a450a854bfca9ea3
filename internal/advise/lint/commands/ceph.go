package commands

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/advise/schema"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

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
