package commands

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"

	"plimsoll.dev/plimsoll/internal/advise/lint/linttest"
)

// lookAt looks at a script, or at a block of a text for people.
func lookAt(out *report.Report, t *reading.Text) {
	t.Snippet = t.Name == "block"
	ShellText(out, t)
}

func lookAcross(out *report.Report) { AcrossCephPools(out) }

func tables() []linttest.Table {
	return []linttest.Table{cephPools(), cephConfig(), kubectl(), patches(), volumes(), settings(), pipes(), blocks()}
}

func TestCephPools(t *testing.T)  { looks().Check(t, cephPools()) }
func TestCephConfig(t *testing.T) { looks().Check(t, cephConfig()) }
func TestKubectl(t *testing.T)    { looks().Check(t, kubectl()) }
func TestPatches(t *testing.T)    { looks().Check(t, patches()) }
func TestVolumes(t *testing.T)    { looks().Check(t, volumes()) }
func TestSettings(t *testing.T)   { looks().Check(t, settings()) }
func TestPipes(t *testing.T)      { looks().Check(t, pipes()) }
func TestBlocks(t *testing.T)     { looks().Check(t, blocks()) }

// cephPools hold commands that make pools or set something of them.
func cephPools() linttest.Table {
	return linttest.Table{File: "a.sh", Rows: []linttest.Row{
		{
			Why:   "Ceph refuses a setting that it does not have",
			Fires: "sudo ceph -c x.conf osd pool set rbd pg_autoscaler_mode off\n",
			Want:  `a.sh:1:38: error: a pool has no setting pg_autoscaler_mode [ceph-pool-key]`,
			But:   "the setting is spelled right, the script fills it in, or another command has it",
			Near:  "ceph osd pool set rbd pg_autoscale_mode off\nceph osd pool set rbd $KEY off\nceph osd pool get rbd pg_autoscaler_mode\n",
		},
		{
			Why:   "the autoscaler has three modes",
			Fires: "ceph osd pool set rbd pg_autoscale_mode none\n",
			Want:  `a.sh:1:41: error: pg_autoscale_mode cannot be "none" [ceph-value]`,
			But:   "these are the three, and a variable may hold any",
			Near:  "ceph osd pool set a pg_autoscale_mode on\nceph osd pool set b pg_autoscale_mode off\nceph osd pool set c pg_autoscale_mode warn\nceph osd pool set d pg_autoscale_mode \"$MODE\"\n",
		},
		{
			Why:   "a pool has at most ten replicas",
			Fires: "ceph osd pool set rbd size 11\nceph osd pool set rbd min_size 0\n",
			Want: `a.sh:1:28: error: size cannot be "11" [ceph-value]
a.sh:2:32: error: min_size cannot be "0" [ceph-value]`,
			But:  "one and ten are allowed, and other settings take larger numbers",
			Near: "ceph osd pool set rbd size 10\nceph osd pool set rbd min_size 1\nceph osd pool set rbd target_max_objects 11\n",
		},
		{
			Why:   "a number of groups is a number",
			Fires: "ceph osd pool create rbd many\n",
			Want:  `a.sh:1:26: error: a number of placement groups cannot be "many" [ceph-value]`,
			But:   "without a number the kind of the pool stands there",
			Near:  "ceph osd pool create a replicated\nceph osd pool create b erasure\nceph osd pool create c $PGS\n",
		},
		{
			Why:   "a pool has at least one group",
			Fires: "ceph osd pool create rbd 0\n",
			Want:  `a.sh:1:26: error: a number of placement groups cannot be 0 [ceph-value]`,
			But:   "one group is a power of two",
			Near:  "ceph osd pool create rbd 1\n",
		},
		{
			Why:   "more groups than Ceph takes",
			Fires: "ceph osd pool create rbd 2097152\n",
			Want:  `a.sh:1:26: error: a number of placement groups cannot be 2097152 [ceph-value]`,
			But:   "2^20 groups are allowed",
			Near:  "ceph osd pool create rbd 1048576\n",
		},
		{
			Why:   "some groups are twice as large as others",
			Fires: "ceph osd pool create rbd 1000\nceph osd pool set rbd pgp_num 96\n",
			Want: `a.sh:1:26: warning: 1000 is not a power of two [ceph-pg-num]
a.sh:2:31: warning: 96 is not a power of two [ceph-pg-num]`,
			But:  "1024 is a power of two",
			Near: "ceph osd pool create rbd 1024 1024\nceph osd pool set rbd pgp_num 1024\n",
		},
		{
			Why:   "the autoscaler changes the number back",
			Fires: "ceph osd pool set rbd pg_num 128\nceph osd pool set other pg_autoscale_mode off\nceph osd pool set rbd pg_autoscale_mode on\n",
			Want:  `a.sh:1:30: warning: pg_num of rbd is set, and the autoscaler is not turned off for it here [ceph-autoscaler]`,
			But:   "another file turns it off for this pool",
			Near:  "-- a.sh --\nceph osd pool set rbd pg_num 128\n-- b.sh --\nceph osd pool set rbd pg_autoscale_mode warn\n",
		},
	}}
}

// cephConfig holds commands that set something of Ceph's daemons.
func cephConfig() linttest.Table {
	return linttest.Table{File: "a.sh", Rows: []linttest.Row{
		{
			Why:   "the manager has no module of that name",
			Fires: "ceph config set mgr mgr/promethues/scrape_interval 60\n",
			Want:  `a.sh:1:21: error: the manager has no module promethues [ceph-config-key]`,
			But:   "other modules have settings of their own",
			Near:  "ceph config set mgr mgr/dashboard/ssl false\nceph config set global osd_promethues x\n",
		},
		{
			Why:   "the exporter has no such setting",
			Fires: "ceph config set mgr mgr/prometheus/rbd_stats_pool rbd\n",
			Want:  `a.sh:1:21: error: the exporter has no setting rbd_stats_pool [ceph-config-key]`,
			But:   "it has this one, and a script may fill in others",
			Near:  "ceph config set mgr mgr/prometheus/rbd_stats_pools rbd\nceph config set mgr mgr/prometheus/$KEY rbd\n",
		},
		{
			Why:   "an interval is a number of seconds without a unit",
			Fires: "ceph config set mgr mgr/prometheus/scrape_interval 60s\nceph config set mgr mgr/prometheus/rbd_stats_pools_refresh_interval 0\n",
			Want: `a.sh:1:52: error: scrape_interval cannot be "60s" [ceph-value]
a.sh:2:69: error: rbd_stats_pools_refresh_interval cannot be "0" [ceph-value]`,
			But:  "half a second is an interval, and other settings hold texts",
			Near: "ceph config set mgr mgr/prometheus/scrape_interval 0.5\nceph config set mgr mgr/prometheus/scrape_interval $EVERY\nceph config set mgr mgr/prometheus/log_level 60s\n",
		},
	}}
}

// kubectl holds commands of oc and kubectl without a patch.
func kubectl() linttest.Table {
	return linttest.Table{File: "a.sh", Rows: []linttest.Row{
		{
			Why:   "the change is for the whole cluster",
			Fires: "oc label -n team-a nodes/n1 a=b\nkubectl delete crd x --namespace=team-a\noc delete crds x -nteam-a\noc delete storageclasses x -n team-a\n",
			Want: `a.sh:1:13: warning: a Node has no namespace [cluster-scoped]
a.sh:2:22: warning: a CustomResourceDefinition has no namespace [cluster-scoped]
a.sh:3:18: warning: a CustomResourceDefinition has no namespace [cluster-scoped]
a.sh:4:31: warning: a StorageClass has no namespace [cluster-scoped]`,
			But:  "a Deployment has a namespace, and reading with one harms nothing",
			Near: "oc --help\noc label\noc label -n team-a deploy/n1 a=b\nkubectl get crd x --namespace=team-a\noc label nodes/n1 a=b\n",
		},
	}}
}

// patches hold commands that patch an object.
func patches() linttest.Table {
	return linttest.Table{File: "a.sh", Rows: []linttest.Row{
		{
			Why:   "the line ends before the patch",
			Fires: "oc patch mcp worker --type merge -p\n'{\"spec\": {\"paused\": true}}'\n",
			Want:  `a.sh:1:34: error: -p stands at the end of its line, without a patch [patch-syntax]`,
			But:   "a backslash continues the line",
			Near:  "oc patch mcp worker --type merge -p \\\n'{\"spec\": {\"paused\": true}}'\n",
		},
		{
			Why:   "the patch lacks a bracket",
			Fires: "oc patch mcp worker --type merge -p '{\"spec\": {\"paused\": true}'\n",
			Want:  `a.sh:1:38: error: the patch cannot be read: could not find flow mapping end token '}' [patch-syntax]`,
			But:   "a patch may be YAML, and a variable may hold any",
			Near:  "oc patch mcp worker --type merge -p 'spec: {paused: true}'\noc patch mcp worker -p \"{$SPEC\"\n",
		},
		{
			Why:   "the patch on the next line is read, too",
			Fires: "oc patch mcp worker --type merge -p\n'{\"spec\": {\"paused\": true}'\noc patch mcp worker --type json -p\n'[{\"op\": \"add\"}'\n",
			Want: `a.sh:1:34: error: -p stands at the end of its line, without a patch [patch-syntax]
a.sh:2:2: error: the patch cannot be read: could not find flow mapping end token '}' [patch-syntax]
a.sh:3:33: error: -p stands at the end of its line, without a patch [patch-syntax]
a.sh:4:2: error: the patch cannot be read: sequence end token ']' not found [patch-syntax]`,
			But:  "without a patch before it a word in brackets is something else",
			Near: "oc get mcp worker\n'{\"spec\": {\"paused\": true}'\n",
		},
		{
			Why:   "an annotation is a text: the object is refused",
			Fires: "oc patch mcp worker -p '{\"metadata\": {\"annotations\": {\"a\": [1]}, \"labels\": {\"b\": 1}}}'\n",
			Want: `a.sh:1:60: error: a wants text, found a list [annotation-type]
a.sh:1:82: error: b wants text, found the number 1 [annotation-type]`,
			But:  "in quotes it is a text, and null removes it",
			Near: "oc patch mcp worker -p '{\"metadata\": {\"annotations\": {\"a\": \"[1]\"}, \"labels\": {\"b\": \"1\", \"c\": null}}}'\n",
		},
		{
			Why:   "the operator reads a list of operations from the annotation",
			Fires: jsonPatched(`{\"op\": \"add\"}`) + jsonPatched(`[{`),
			Want: `a.sh:1:84: error: the annotation kubevirt.kubevirt.io/jsonpatch holds no JSON patch [patch-syntax]
a.sh:2:84: error: the annotation kubevirt.kubevirt.io/jsonpatch holds no JSON patch [patch-syntax]`,
			But:  "it is a list",
			Near: jsonPatched(`[{\"op\": \"add\", \"path\": \"/spec/x\", \"value\": 1}]`),
		},
		{
			Why:   "JSON patches have six operations",
			Fires: jsonPatched(`[{\"op\": \"append\", \"path\": \"/spec/x\"}]`),
			Want:  `a.sh:1:84: error: a JSON patch has no operation "append" [patch-syntax]`,
			But:   "these are the six",
			Near:  jsonPatched(`[{\"op\": \"add\"}, {\"op\": \"remove\"}, {\"op\": \"replace\"}, {\"op\": \"move\"}, {\"op\": \"copy\"}, {\"op\": \"test\"}]`),
		},
		{
			Why:   "a path begins with a slash",
			Fires: jsonPatched(`[{\"op\": \"remove\", \"path\": \"spec/x\"}]`),
			Want:  `a.sh:1:84: error: a path of a JSON patch begins with /, not as "spec/x" [patch-syntax]`,
			But:   "it begins with one",
			Near:  jsonPatched(`[{\"op\": \"remove\", \"path\": \"/spec/x\"}]`),
		},
		{
			Why:   "a patch inside of the patch lacks a bracket",
			Fires: jsonPatched(`[{\"op\": \"add\", \"path\": \"/spec/x\", \"value\": [{\"patch\": \"{a: 1\"}]}]`),
			Want:  `a.sh:1:84: error: the patch inside of the annotation kubevirt.kubevirt.io/jsonpatch cannot be read [patch-syntax]`,
			But:   "the inner patch is whole",
			Near:  jsonPatched(`[{\"op\": \"add\", \"path\": \"/spec/x\", \"value\": [{\"patch\": \"{a: 1}\"}]}]`),
		},
		{
			Why:   "the pool has no such field: the API server drops it",
			Fires: "oc patch machineconfigpools/worker --type merge --patch='{\"spec\": {\"pausd\": true}}'\n",
			Want:  `a.sh:1:49: error: spec has no field "pausd" [unknown-field]`,
			But:   "the pool has this one, and of an unknown kind nothing is known",
			Near:  "oc patch machineconfigpools/worker --type merge --patch='{\"spec\": {\"paused\": true}}'\noc patch widgets/a --type merge --patch='{\"spec\": {\"pausd\": true}}'\n",
		},
	}}
}

// jsonPatched is a command that writes a JSON patch into an annotation.
func jsonPatched(patch string) string {
	return `oc patch hco h -p '{"metadata": {"annotations": {"kubevirt.kubevirt.io/jsonpatch": "` + patch + `"}}}'` + "\n"
}

// volumes hold commands that set something of Gluster's volumes.
func volumes() linttest.Table {
	return linttest.Table{File: "a.sh", Rows: []linttest.Row{
		{
			Why:   "each brick gets a process, a port and memory of its own",
			Fires: "gluster volume set all cluster.brick-multiplex off\n",
			Want:  `a.sh:1:48: warning: cluster.brick-multiplex is turned off [gluster-multiplex-off]`,
			But:   "on is the advice, and other options may be off",
			Near:  "gluster volume set all cluster.brick-multiplex on\ngluster volume set v performance.io-cache off\ngluster volume get all cluster.brick-multiplex\ngluster volume reset all cluster.brick-multiplex off\ngluster snapshot set all cluster.brick-multiplex off\ngluster peer status\n",
		},
	}}
}

// settings hold commands that set something of the kernel. Package host has the
// rules: here is only what a command sets.
func settings() linttest.Table {
	return linttest.Table{File: "a.sh", Rows: []linttest.Row{
		{
			Why:   "sysctl sets each KEY=VALUE among its arguments",
			Fires: "sudo sysctl -w vm.swappiness=10 vm.swapiness=10\n",
			Want:  `a.sh:1:33: error: the kernel has no key vm.swapiness [sysctl-key]`,
			But:   "sysctl -p loads files; a key alone is printed",
			Near:  "sysctl -p vm.swapiness=10\nsysctl vm.swapiness\n",
		},
		{
			Why:   "echo writes a setting to a sysctl file",
			Fires: "echo 'vm.swapiness = 10' >> /etc/sysctl.d/99-a.conf\necho vm.swapiness=10 1> /etc/sysctl.d/99-b.conf\n",
			Want: `a.sh:1:6: error: the kernel has no key vm.swapiness [sysctl-key]
a.sh:2:6: error: the kernel has no key vm.swapiness [sysctl-key]`,
			But:  "another file is not the kernel's, and errors are no settings",
			Near: "echo 'vm.swapiness = 10' >> /etc/app.conf\necho 'vm.swapiness = 10' 2>> /etc/sysctl.d/99-a.conf\necho nett.core >> /etc/sysctl.d/99-a.conf\n",
		},
	}}
}

// pipes hold commands whose output another command reads.
func pipes() linttest.Table {
	return linttest.Table{File: "a.sh", Rows: []linttest.Row{
		{
			Why:   "Mb/s times 1024^2 is not bytes: the buffer is 8.4 times too large",
			Fires: "ping -c 9 host | tail -1 | awk -F/ '{print ($5/1000)*10000*1024^2}'\n",
			Want:  `a.sh:1:36: error: the round trip in seconds is multiplied by Mb/s and by 1024^2 [bdp-formula]`,
			But:   "the formula divides by 8, and other numbers than those of ping may be multiplied so",
			Near:  "ping -c 9 host | tail -1 | awk -F/ '{print ($5/1000)*10000*1000000/8}'\ncat sizes | awk '{print ($5/1000)*10000*1024^2}'\n",
		},
		{
			Why:   "the digit 1 stands in place of the letter l",
			Fires: "echo \"1(100)/1(2)\" | bc -l\n",
			Want:  `a.sh:1:6: error: a number stands right before a bracket: 1( [bc-syntax]`,
			But:   "the letter is the logarithm, 1*(2) is a product, and f1 is a function",
			Near:  "echo \"l(100)/l(2) + 1*(2) + f1(2)\" | bc -l\necho \"1(100)\" | cat\n",
		},
		{
			Why:   "the header of lvs is counted as a volume",
			Fires: "sudo lvs -o lv_name | wc -l\nnohup lvs |& wc -l\n",
			Want: `a.sh:1:6: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]
a.sh:2:7: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]`,
			But:  "the header is left out, or words are counted",
			Near: "lvs --noheadings | wc -l\nlvs -o name --reportformat json | wc -l\nlvs | wc -w\nlvs | wc\nlvs | grep brick | wc -l\nlvdisplay | wc -l\n",
		},
		{
			Why:   "the header of oc get is counted as an object",
			Fires: "oc get pods -A | wc -l\nkubectl get pods -o wide | wc -l\n",
			Want: `a.sh:1:1: warning: oc get prints a header [counts-header]
a.sh:2:1: warning: kubectl get prints a header [counts-header]`,
			But:  "the header is left out, the form has none, or a filter stands between",
			Near: "oc get pods -A --no-headers | wc -l\nkubectl get pods -o name | wc -l\noc get pods | grep Running | wc -l\noc logs pod | wc -l\noc | wc -l\n",
		},
	}}
}

// blocks hold commands as texts for people show them.
func blocks() linttest.Table {
	return linttest.Table{File: "block", Rows: []linttest.Row{
		{
			Why:   "what stands behind a prompt was typed",
			Fires: "$ lvs | wc -l\n12\n[root@a ~]# lvs | wc -l\n12\n",
			Want: `block:1:3: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]
block:3:13: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]`,
			But:  "output and comments were not typed",
			Near: "$ history\nlvs | wc -l\n# count with lvs | wc -l\n",
		},
		{
			Why:   "a command goes on behind a backslash, and in quotes",
			Fires: "$ oc patch mcp worker \\\n  -p '{\"spec\": {\"pausd\": true}}'\n$ oc patch mcp worker -p '\n# a comment\nspec: {pausd: true}'\n",
			Want: `block:2:17: error: spec has no field "pausd" [unknown-field]
block:5:8: error: spec has no field "pausd" [unknown-field]`,
			But:  "the pool has this field",
			Near: "$ oc patch mcp worker \\\n  -p '{\"spec\": {\"paused\": true}}'\n$ oc patch mcp worker -p '\n# a comment\nspec: {paused: true}'\n",
		},
		{
			Why:   "behind a here document the next prompt begins a command",
			Fires: "$ cat > notes <<EOF\n# lvs | wc -l\nEOF\n$ lvs | wc -l\n",
			Want:  `block:4:3: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]`,
			But:   "what stands in a here document is not typed as a command",
			Near:  "$ cat > notes <<EOF\n# lvs | wc -l\n$ lvs | wc -l\nEOF\n",
		},
		{
			Why:   "commands stand between lines that no shell reads",
			Fires: "lvs \\\n| wc -l\nerror: (no such volume\nlvs | wc -l\n",
			Want: `block:1:1: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]
block:4:1: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]`,
			But:  "lines that begin with another word are output",
			Near: "error: (no such volume\nrun lvs | wc -l\n",
		},
	}}
}

// A script that cannot be read is a problem if the user named it, and a note if
// it was found in a directory: shells have dialects.
func TestScriptsThatCannotBeRead(t *testing.T) {
	const text = "if true; then\n"
	for _, c := range []struct {
		asked           bool
		notes, problems int
	}{{false, 1, 0}, {true, 0, 1}} {
		out := report.Report{Tables: report.NewTables()}
		ShellText(&out, reading.NewText(reading.Input{Name: "a.sh", Data: []byte(text), Asked: c.asked}))
		if len(out.Notes) != c.notes || len(out.Problems) != c.problems || len(out.Findings) > 0 {
			t.Errorf("asked for: %v: notes %v, problems %v, findings %v", c.asked, out.Notes, out.Problems, out.Findings)
		}
	}
}

// What a command writes into a file is handed on under the name of that file,
// unless the shell changes it on the way.
func TestHereDocuments(t *testing.T) {
	const setting = "vm.swappiness = 10\n"
	const object = "apiVersion: v1\nkind: Pod\n"
	for _, c := range []struct{ why, text, want string }{
		{"cat writes to the file of its redirection", "cat > /etc/sysctl.d/9.conf <<EOF\n" + setting + "EOF\n", "/etc/sysctl.d/9.conf: " + setting},
		{"tee writes to the file among its arguments", "sudo tee -a /etc/sysctl.d/9.conf <<EOF\n" + setting + "EOF\n", "/etc/sysctl.d/9.conf: " + setting},
		{"kubectl reads a manifest", "kubectl apply -f - <<'EOF'\n" + object + "EOF\n", "manifest.yaml: " + object},
		{"what it is shows in it", "cat <<EOF | oc apply -f -\n" + object + "EOF\n", "block: " + object},
		{"the shell fills in a variable", "cat > /etc/sysctl.d/9.conf <<EOF\nvm.swappiness = $N\nEOF\n", ""},
		{"another shell reads commands", "ssh host <<EOF\n" + setting + "EOF\n", ""},
		{"a text of no known kind", "cat > notes <<EOF\nhello\nEOF\n", ""},
	} {
		var handed []string
		out := report.Report{Tables: report.NewTables(), Look: func(_ *report.Report, t *reading.Text) { handed = append(handed, t.Name+": "+t.Data) }}
		ShellText(&out, reading.NewText(reading.Input{Name: "a.sh", Data: []byte(c.text)}))
		if got := strings.Join(handed, "\n"); got != c.want || len(out.Problems)+len(out.Notes) > 0 {
			t.Errorf("%s: handed on %q, want %q (%v %v)", c.why, got, c.want, out.Problems, out.Notes)
		}
	}
}

// Labels that a command gives to pools and nodes are kept for the rules of
// objects.
func TestLabelsOfCommands(t *testing.T) {
	for _, c := range []struct{ why, text, want string }{
		{"a name behind the kind", "oc label machineconfigpool worker custom=enabled", "MachineConfigPool worker custom=enabled"},
		{"KIND/NAME, and a label that is taken away", "kubectl label no/n1 a=b c- --overwrite", "Node n1 a=b"},
		{"several names and labels", "oc label node n1 n2 a=b c=d", "Node n1 a=b, Node n1 c=d, Node n2 a=b, Node n2 c=d"},
		{"several of KIND/NAME", "oc label no/n1 no/n2 a=b", "Node n1 a=b, Node n2 a=b"},
		{"all of a kind", "oc label mcp --all a=b", "MachineConfigPool  a=b"},
		{"all that a selector matches", "oc label nodes -l x=y a=b", "Node  a=b"},
		{"no name at all: the command fails", "oc label mcp a=b", ""},
		{"a kind whose labels no rule needs", "oc label pod p a=b", ""},
		{"a name that the script fills in", "oc label mcp $POOL a=b", ""},
		{"a value that the script fills in", "oc label node n1 a=$B", ""},
	} {
		out := report.Report{Tables: report.NewTables()}
		ShellText(&out, reading.NewText(reading.Input{Name: "a.sh", Data: []byte(c.text + "\n")}))
		var got []string
		for _, l := range out.Labels {
			got = append(got, l.Kind+" "+l.Name+" "+l.Key+"="+l.Value)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s: labels %q, want %q", c.why, c.text, got, c.want)
		}
	}
}

// looks returns how this package looks at the texts of its tables.
func looks() linttest.Looks { return linttest.Looks{At: lookAt, Across: lookAcross} }

func TestEveryRuleHasARow(t *testing.T) { looks().EveryLineFires(t, tables()) }
