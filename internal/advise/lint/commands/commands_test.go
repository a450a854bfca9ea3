package commands

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

// lookAt looks at a script, or at a block of a text for people.
func lookAt(out *report.Report, t *reading.Text) {
	t.Snippet = t.Name == "block"
	ShellText(out, t)
}

func lookAcross(out *report.Report) { AcrossCephPools(out) }

func tables() []table {
	return []table{cephPools(), cephConfig(), kubectl(), patches(), volumes(), settings(), pipes(), blocks()}
}

func TestCephPools(t *testing.T)  { cephPools().check(t) }
func TestCephConfig(t *testing.T) { cephConfig().check(t) }
func TestKubectl(t *testing.T)    { kubectl().check(t) }
func TestPatches(t *testing.T)    { patches().check(t) }
func TestVolumes(t *testing.T)    { volumes().check(t) }
func TestSettings(t *testing.T)   { settings().check(t) }
func TestPipes(t *testing.T)      { pipes().check(t) }
func TestBlocks(t *testing.T)     { blocks().check(t) }

// cephPools hold commands that make pools or set something of them.
func cephPools() table {
	return table{"a.sh", []row{
		{
			why:   "Ceph refuses a setting that it does not have",
			fires: "sudo ceph -c x.conf osd pool set rbd pg_autoscaler_mode off\n",
			want:  `a.sh:1:38: error: a pool has no setting pg_autoscaler_mode [ceph-pool-key]`,
			but:   "the setting is spelled right, the script fills it in, or another command has it",
			near:  "ceph osd pool set rbd pg_autoscale_mode off\nceph osd pool set rbd $KEY off\nceph osd pool get rbd pg_autoscaler_mode\n",
		},
		{
			why:   "the autoscaler has three modes",
			fires: "ceph osd pool set rbd pg_autoscale_mode none\n",
			want:  `a.sh:1:41: error: pg_autoscale_mode cannot be "none" [ceph-value]`,
			but:   "these are the three, and a variable may hold any",
			near:  "ceph osd pool set a pg_autoscale_mode on\nceph osd pool set b pg_autoscale_mode off\nceph osd pool set c pg_autoscale_mode warn\nceph osd pool set d pg_autoscale_mode \"$MODE\"\n",
		},
		{
			why:   "a pool has at most ten replicas",
			fires: "ceph osd pool set rbd size 11\nceph osd pool set rbd min_size 0\n",
			want: `a.sh:1:28: error: size cannot be "11" [ceph-value]
a.sh:2:32: error: min_size cannot be "0" [ceph-value]`,
			but:  "one and ten are allowed, and other settings take larger numbers",
			near: "ceph osd pool set rbd size 10\nceph osd pool set rbd min_size 1\nceph osd pool set rbd target_max_objects 11\n",
		},
		{
			why:   "a number of groups is a number",
			fires: "ceph osd pool create rbd many\n",
			want:  `a.sh:1:26: error: a number of placement groups cannot be "many" [ceph-value]`,
			but:   "without a number the kind of the pool stands there",
			near:  "ceph osd pool create a replicated\nceph osd pool create b erasure\nceph osd pool create c $PGS\n",
		},
		{
			why:   "a pool has at least one group",
			fires: "ceph osd pool create rbd 0\n",
			want:  `a.sh:1:26: error: a number of placement groups cannot be 0 [ceph-value]`,
			but:   "one group is a power of two",
			near:  "ceph osd pool create rbd 1\n",
		},
		{
			why:   "more groups than Ceph takes",
			fires: "ceph osd pool create rbd 2097152\n",
			want:  `a.sh:1:26: error: a number of placement groups cannot be 2097152 [ceph-value]`,
			but:   "2^20 groups are allowed",
			near:  "ceph osd pool create rbd 1048576\n",
		},
		{
			why:   "some groups are twice as large as others",
			fires: "ceph osd pool create rbd 1000\nceph osd pool set rbd pgp_num 96\n",
			want: `a.sh:1:26: warning: 1000 is no power of two [ceph-pg-num]
a.sh:2:31: warning: 96 is no power of two [ceph-pg-num]`,
			but:  "1024 is a power of two",
			near: "ceph osd pool create rbd 1024 1024\nceph osd pool set rbd pgp_num 1024\n",
		},
		{
			why:   "the autoscaler changes the number back",
			fires: "ceph osd pool set rbd pg_num 128\nceph osd pool set other pg_autoscale_mode off\nceph osd pool set rbd pg_autoscale_mode on\n",
			want:  `a.sh:1:30: warning: pg_num of rbd is set, and the autoscaler is not turned off for it here [ceph-autoscaler]`,
			but:   "another file turns it off for this pool",
			near:  "-- a.sh --\nceph osd pool set rbd pg_num 128\n-- b.sh --\nceph osd pool set rbd pg_autoscale_mode warn\n",
		},
	}}
}

// cephConfig holds commands that set something of Ceph's daemons.
func cephConfig() table {
	return table{"a.sh", []row{
		{
			why:   "the manager has no module of that name",
			fires: "ceph config set mgr mgr/promethues/scrape_interval 60\n",
			want:  `a.sh:1:21: error: the manager has no module promethues [ceph-config-key]`,
			but:   "other modules have settings of their own",
			near:  "ceph config set mgr mgr/dashboard/ssl false\nceph config set global osd_promethues x\n",
		},
		{
			why:   "the exporter has no such setting",
			fires: "ceph config set mgr mgr/prometheus/rbd_stats_pool rbd\n",
			want:  `a.sh:1:21: error: the exporter has no setting rbd_stats_pool [ceph-config-key]`,
			but:   "it has this one, and a script may fill in others",
			near:  "ceph config set mgr mgr/prometheus/rbd_stats_pools rbd\nceph config set mgr mgr/prometheus/$KEY rbd\n",
		},
		{
			why:   "an interval is a number of seconds without a unit",
			fires: "ceph config set mgr mgr/prometheus/scrape_interval 60s\nceph config set mgr mgr/prometheus/rbd_stats_pools_refresh_interval 0\n",
			want: `a.sh:1:52: error: scrape_interval cannot be "60s" [ceph-value]
a.sh:2:69: error: rbd_stats_pools_refresh_interval cannot be "0" [ceph-value]`,
			but:  "half a second is an interval, and other settings hold texts",
			near: "ceph config set mgr mgr/prometheus/scrape_interval 0.5\nceph config set mgr mgr/prometheus/scrape_interval $EVERY\nceph config set mgr mgr/prometheus/log_level 60s\n",
		},
	}}
}

// kubectl holds commands of oc and kubectl without a patch.
func kubectl() table {
	return table{"a.sh", []row{
		{
			why:   "the change is for the whole cluster",
			fires: "oc label -n team-a nodes/n1 a=b\nkubectl delete crd x --namespace=team-a\noc delete crds x -nteam-a\noc delete storageclasses x -n team-a\n",
			want: `a.sh:1:13: warning: a Node has no namespace [cluster-scoped]
a.sh:2:22: warning: a CustomResourceDefinition has no namespace [cluster-scoped]
a.sh:3:18: warning: a CustomResourceDefinition has no namespace [cluster-scoped]
a.sh:4:31: warning: a StorageClass has no namespace [cluster-scoped]`,
			but:  "a Deployment has a namespace, and reading with one harms nothing",
			near: "oc --help\noc label\noc label -n team-a deploy/n1 a=b\nkubectl get crd x --namespace=team-a\noc label nodes/n1 a=b\n",
		},
	}}
}

// patches hold commands that patch an object.
func patches() table {
	return table{"a.sh", []row{
		{
			why:   "the line ends before the patch",
			fires: "oc patch mcp worker --type merge -p\n'{\"spec\": {\"paused\": true}}'\n",
			want:  `a.sh:1:34: error: -p stands at the end of its line, without a patch [patch-syntax]`,
			but:   "a backslash continues the line",
			near:  "oc patch mcp worker --type merge -p \\\n'{\"spec\": {\"paused\": true}}'\n",
		},
		{
			why:   "the patch lacks a bracket",
			fires: "oc patch mcp worker --type merge -p '{\"spec\": {\"paused\": true}'\n",
			want:  `a.sh:1:38: error: the patch cannot be read: could not find flow mapping end token '}' [patch-syntax]`,
			but:   "a patch may be YAML, and a variable may hold any",
			near:  "oc patch mcp worker --type merge -p 'spec: {paused: true}'\noc patch mcp worker -p \"{$SPEC\"\n",
		},
		{
			why:   "the patch on the next line is read, too",
			fires: "oc patch mcp worker --type merge -p\n'{\"spec\": {\"paused\": true}'\noc patch mcp worker --type json -p\n'[{\"op\": \"add\"}'\n",
			want: `a.sh:1:34: error: -p stands at the end of its line, without a patch [patch-syntax]
a.sh:2:2: error: the patch cannot be read: could not find flow mapping end token '}' [patch-syntax]
a.sh:3:33: error: -p stands at the end of its line, without a patch [patch-syntax]
a.sh:4:2: error: the patch cannot be read: sequence end token ']' not found [patch-syntax]`,
			but:  "without a patch before it a word in brackets is something else",
			near: "oc get mcp worker\n'{\"spec\": {\"paused\": true}'\n",
		},
		{
			why:   "an annotation is a text: the object is refused",
			fires: "oc patch mcp worker -p '{\"metadata\": {\"annotations\": {\"a\": [1]}, \"labels\": {\"b\": 1}}}'\n",
			want: `a.sh:1:60: error: a wants text, found a list [annotation-type]
a.sh:1:82: error: b wants text, found the number 1 [annotation-type]`,
			but:  "in quotes it is a text, and null removes it",
			near: "oc patch mcp worker -p '{\"metadata\": {\"annotations\": {\"a\": \"[1]\"}, \"labels\": {\"b\": \"1\", \"c\": null}}}'\n",
		},
		{
			why:   "the operator reads a list of operations from the annotation",
			fires: jsonPatched(`{\"op\": \"add\"}`) + jsonPatched(`[{`),
			want: `a.sh:1:84: error: the annotation kubevirt.kubevirt.io/jsonpatch holds no JSON patch [patch-syntax]
a.sh:2:84: error: the annotation kubevirt.kubevirt.io/jsonpatch holds no JSON patch [patch-syntax]`,
			but:  "it is a list",
			near: jsonPatched(`[{\"op\": \"add\", \"path\": \"/spec/x\", \"value\": 1}]`),
		},
		{
			why:   "JSON patches have six operations",
			fires: jsonPatched(`[{\"op\": \"append\", \"path\": \"/spec/x\"}]`),
			want:  `a.sh:1:84: error: a JSON patch has no operation "append" [patch-syntax]`,
			but:   "these are the six",
			near:  jsonPatched(`[{\"op\": \"add\"}, {\"op\": \"remove\"}, {\"op\": \"replace\"}, {\"op\": \"move\"}, {\"op\": \"copy\"}, {\"op\": \"test\"}]`),
		},
		{
			why:   "a path begins with a slash",
			fires: jsonPatched(`[{\"op\": \"remove\", \"path\": \"spec/x\"}]`),
			want:  `a.sh:1:84: error: a path of a JSON patch begins with /, not as "spec/x" [patch-syntax]`,
			but:   "it begins with one",
			near:  jsonPatched(`[{\"op\": \"remove\", \"path\": \"/spec/x\"}]`),
		},
		{
			why:   "a patch inside of the patch lacks a bracket",
			fires: jsonPatched(`[{\"op\": \"add\", \"path\": \"/spec/x\", \"value\": [{\"patch\": \"{a: 1\"}]}]`),
			want:  `a.sh:1:84: error: the patch inside of the annotation kubevirt.kubevirt.io/jsonpatch cannot be read [patch-syntax]`,
			but:   "the inner patch is whole",
			near:  jsonPatched(`[{\"op\": \"add\", \"path\": \"/spec/x\", \"value\": [{\"patch\": \"{a: 1}\"}]}]`),
		},
		{
			why:   "the pool has no such field: the API server drops it",
			fires: "oc patch machineconfigpools/worker --type merge --patch='{\"spec\": {\"pausd\": true}}'\n",
			want:  `a.sh:1:49: error: spec has no field "pausd" [unknown-field]`,
			but:   "the pool has this one, and of an unknown kind nothing is known",
			near:  "oc patch machineconfigpools/worker --type merge --patch='{\"spec\": {\"paused\": true}}'\noc patch widgets/a --type merge --patch='{\"spec\": {\"pausd\": true}}'\n",
		},
	}}
}

// jsonPatched is a command that writes a JSON patch into an annotation.
func jsonPatched(patch string) string {
	return `oc patch hco h -p '{"metadata": {"annotations": {"kubevirt.kubevirt.io/jsonpatch": "` + patch + `"}}}'` + "\n"
}

// volumes hold commands that set something of Gluster's volumes.
func volumes() table {
	return table{"a.sh", []row{
		{
			why:   "each brick gets a process, a port and memory of its own",
			fires: "gluster volume set all cluster.brick-multiplex off\n",
			want:  `a.sh:1:48: warning: cluster.brick-multiplex is turned off [gluster-multiplex-off]`,
			but:   "on is the advice, and other options may be off",
			near:  "gluster volume set all cluster.brick-multiplex on\ngluster volume set v performance.io-cache off\ngluster volume get all cluster.brick-multiplex\ngluster volume reset all cluster.brick-multiplex off\ngluster snapshot set all cluster.brick-multiplex off\ngluster peer status\n",
		},
	}}
}

// settings hold commands that set something of the kernel. Package host has the
// rules: here is only what a command sets.
func settings() table {
	return table{"a.sh", []row{
		{
			why:   "sysctl sets each KEY=VALUE among its arguments",
			fires: "sudo sysctl -w vm.swappiness=10 vm.swapiness=10\n",
			want:  `a.sh:1:33: error: the kernel has no key vm.swapiness [sysctl-key]`,
			but:   "sysctl -p loads files; a key alone is printed",
			near:  "sysctl -p vm.swapiness=10\nsysctl vm.swapiness\n",
		},
		{
			why:   "echo writes a setting to a sysctl file",
			fires: "echo 'vm.swapiness = 10' >> /etc/sysctl.d/99-a.conf\necho vm.swapiness=10 1> /etc/sysctl.d/99-b.conf\n",
			want: `a.sh:1:6: error: the kernel has no key vm.swapiness [sysctl-key]
a.sh:2:6: error: the kernel has no key vm.swapiness [sysctl-key]`,
			but:  "another file is not the kernel's, and errors are no settings",
			near: "echo 'vm.swapiness = 10' >> /etc/app.conf\necho 'vm.swapiness = 10' 2>> /etc/sysctl.d/99-a.conf\necho nett.core >> /etc/sysctl.d/99-a.conf\n",
		},
	}}
}

// pipes hold commands whose output another command reads.
func pipes() table {
	return table{"a.sh", []row{
		{
			why:   "Mb/s times 1024^2 is not bytes: the buffer is 8.4 times too large",
			fires: "ping -c 9 host | tail -1 | awk -F/ '{print ($5/1000)*10000*1024^2}'\n",
			want:  `a.sh:1:36: error: the round trip in seconds is multiplied by Mb/s and by 1024^2 [bdp-formula]`,
			but:   "the formula divides by 8, and other numbers than those of ping may be multiplied so",
			near:  "ping -c 9 host | tail -1 | awk -F/ '{print ($5/1000)*10000*1000000/8}'\ncat sizes | awk '{print ($5/1000)*10000*1024^2}'\n",
		},
		{
			why:   "the digit 1 stands in place of the letter l",
			fires: "echo \"1(100)/1(2)\" | bc -l\n",
			want:  `a.sh:1:6: error: a number stands right before a bracket: 1( [bc-syntax]`,
			but:   "the letter is the logarithm, 1*(2) is a product, and f1 is a function",
			near:  "echo \"l(100)/l(2) + 1*(2) + f1(2)\" | bc -l\necho \"1(100)\" | cat\n",
		},
		{
			why:   "the header of lvs is counted as a volume",
			fires: "sudo lvs -o lv_name | wc -l\nnohup lvs |& wc -l\n",
			want: `a.sh:1:6: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]
a.sh:2:7: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]`,
			but:  "the header is left out, or words are counted",
			near: "lvs --noheadings | wc -l\nlvs -o name --reportformat json | wc -l\nlvs | wc -w\nlvs | wc\nlvs | grep brick | wc -l\nlvdisplay | wc -l\n",
		},
		{
			why:   "the header of oc get is counted as an object",
			fires: "oc get pods -A | wc -l\nkubectl get pods -o wide | wc -l\n",
			want: `a.sh:1:1: warning: oc get prints a header [counts-header]
a.sh:2:1: warning: kubectl get prints a header [counts-header]`,
			but:  "the header is left out, the form has none, or a filter stands between",
			near: "oc get pods -A --no-headers | wc -l\nkubectl get pods -o name | wc -l\noc get pods | grep Running | wc -l\noc logs pod | wc -l\noc | wc -l\n",
		},
	}}
}

// blocks hold commands as texts for people show them.
func blocks() table {
	return table{"block", []row{
		{
			why:   "what stands behind a prompt was typed",
			fires: "$ lvs | wc -l\n12\n[root@a ~]# lvs | wc -l\n12\n",
			want: `block:1:3: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]
block:3:13: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]`,
			but:  "output and comments were not typed",
			near: "$ history\nlvs | wc -l\n# count with lvs | wc -l\n",
		},
		{
			why:   "a command goes on behind a backslash, and in quotes",
			fires: "$ oc patch mcp worker \\\n  -p '{\"spec\": {\"pausd\": true}}'\n$ oc patch mcp worker -p '\n# a comment\nspec: {pausd: true}'\n",
			want: `block:2:17: error: spec has no field "pausd" [unknown-field]
block:5:8: error: spec has no field "pausd" [unknown-field]`,
			but:  "the pool has this field",
			near: "$ oc patch mcp worker \\\n  -p '{\"spec\": {\"paused\": true}}'\n$ oc patch mcp worker -p '\n# a comment\nspec: {paused: true}'\n",
		},
		{
			why:   "behind a here document the next prompt begins a command",
			fires: "$ cat > notes <<EOF\n# lvs | wc -l\nEOF\n$ lvs | wc -l\n",
			want:  `block:4:3: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]`,
			but:   "what stands in a here document is not typed as a command",
			near:  "$ cat > notes <<EOF\n# lvs | wc -l\n$ lvs | wc -l\nEOF\n",
		},
		{
			why:   "commands stand between lines that no shell reads",
			fires: "lvs \\\n| wc -l\nerror: (no such volume\nlvs | wc -l\n",
			want: `block:1:1: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]
block:4:1: warning: lvs prints a header, and every volume of the host, such as its root [counts-header]`,
			but:  "lines that begin with another word are output",
			near: "error: (no such volume\nrun lvs | wc -l\n",
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
