package cli_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

func TestMistakesAreExplained(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	misspelt := write("misspelt.yaml", "schema: plimsoll/experiment/v1\nworkload: node-density\nstepTimout: 5m\naxis: {name: pods-per-node}\n")
	badLevel := write("level.yaml", "schema: plimsoll/experiment/v1\nworkload: node-density\naxis:\n  search:\n    from: 10\n    max: 5\n")
	badGoal := write("goal.yaml", "schema: plimsoll/experiment/v1\nworkload: node-density\ngoals:\n  ready: [all Readdy]\n")
	noContext := write("kubeconfig", "apiVersion: v1\nkind: Config\ncontexts:\n- name: prod\n  context: {cluster: a, user: b}\nclusters:\n- name: a\n  cluster: {server: https://127.0.0.1:1}\nusers:\n- name: b\n  user: {}\n")
	for _, tt := range []struct {
		args string
		want []string // parts of standard error
		why  string
	}{
		{"limt", []string{`no command "limt"`, `did you mean "limit"?`}, "a verb"},
		{"lab upp", []string{`no command 'lab upp'`, `did you mean "up"?`}, "a verb of lab"},
		{"workloads exprt", []string{`did you mean "export"?`}, "a verb of workloads"},
		{"limit", []string{"which workload?"}, "nothing named"},
		{"limit node-density extra", []string{`unexpected argument "extra"`}, "one name too many"},
		{"limit node-densty", []string{`no workload "node-densty"`, `did you mean "node-density"?`}, "a workload"},
		{"limit ./nowhere", []string{"no workload in ./nowhere"}, "a workload's directory"},
		{"limit node-density --axis pods-per-nod", []string{`--axis`, `did you mean "pods-per-node"?`}, "an axis"},
		{"limit node-density --slo all_objects_Ready", []string{"--slo", "not understood"}, "an objective's form"},
		{"limit node-density --slo Readdy_p99_<=_5s", []string{"--slo", `no milestone "Readdy"`, `did you mean "Ready"?`}, "an objective's milestone"},
		{"limit node-density --slo Ready_p99_<_5", []string{"--slo", `"5" is not a duration`}, "an objective without a unit"},
		{"limit node-density --goal fast", []string{"--goal", "NAME=SLO"}, "a goal without objectives"},
		{"limit node-density --lab-node 5", []string{"unknown flag: --lab-node", "did you mean --lab-nodes?"}, "a flag"},
		{"limit node-density --lab-nodes five", []string{"invalid argument"}, "a flag's number"},
		{"limit node-density --lab-nodes 0", []string{"--lab-nodes: a lab without nodes"}, "a lab without nodes"},
		{"limit node-density --lab-nodes -3", []string{"--lab-nodes: -3 is not a number of simulated nodes", "hint: for example --lab-nodes 10"}, "a negative number of nodes"},
		{"limit node-density --lab-max-pods 0", []string{"--lab-max-pods: 0 is not", "hint: for example --lab-max-pods 110"}, "nodes without room"},
		{"limit node-density --lab-max-pods -1", []string{"--lab-max-pods: -1 is not", "hint: "}, "a negative room"},
		{"lab up --nodes 0", []string{"--nodes: a lab without nodes", "hint: for example --nodes 10"}, "a lab of one's own without nodes"},
		{"lab up --nodes -1", []string{"--nodes: -1 is not", "hint: "}, "a negative number of nodes"},
		{"lab up --max-pods 0", []string{"--max-pods: 0 is not", "hint: for example --max-pods 110"}, "nodes without room"},
		{"ab node-density --arm a --arm b: --level 10", []string{`--arm "a": want NAME:k=v,k=v`, "hint: for example"}, "an arm without a colon"},
		{"ab node-density --arm a:5 --arm b: --level 10", []string{`--arm a: "5": want k=v`}, "an arm's value without a name"},
		{"ab node-density --arm a: --arm a: --level 10", []string{`two arms "a"`}, "two arms of one name"},
		{"ab node-density --arm a: --level 10", []string{"needs two arms", "hint: for example --arm a:image=x --arm b:image=y"}, "one arm"},
		{"limit node-density --lab-node-cpus 1", []string{"--lab-node-cpus: it belongs to a real node", "hint: add --lab-real-node"}, "a real node's processors without one"},
		{"limit node-density --lab-nodes 0", []string{"hint: for example --lab-nodes 10"}, "a hint about a flag to who used flags"},
		{"limit node-density --lab-nodes 3 --lab x", []string{"more than one target", "hint: keep one of --lab-nodes, --lab-max-pods ..., --lab, --kubeconfig and --in-cluster"}, "a private lab and another"},
		{"limit node-density --context c", []string{"--context: ", "hint: name the file as well: --kubeconfig"}, "a context of no file"},
		{"ab node-density --arm a: --arm b:imge=x --level 10", []string{`"imge"`, `"image"`}, "an arm's parameter"},
		{"ab node-density --arm a: --arm b: --level 10 --margin 5", []string{"not a margin", "percentage"}, "a margin without a sign"},
		{"ab node-density --arm a: --arm b: --level 10 --alpha 2", []string{"not an error rate"}, "an error rate"},
		{"ab node-density --arm a: --arm b: --level 10 --metric Redy_p50", []string{`no milestone "Redy"`, `did you mean "Ready"?`}, "a metric"},
		{"limit node-density --require redy", []string{"--require: there is no goal", `did you mean "ready"?`}, "a goal to require"},
		{"sweep node-density --levels 5 --goal all=errors_<_1% --require all", []string{"--require: ", "give the goal another name"}, "a goal by the name of all"},
		{"ab node-density --arm a: --arm b: --level 10 --require all", []string{"unknown flag: --require"}, "a comparison has no goals to require"},
		{"limit node-density --hold -5s", []string{`"--hold"`, "negative"}, "a negative hold"},
		{"limit node-density --budget -1m", []string{`"--budget"`, "negative"}, "a negative budget"},
		{"limit node-density --lab-start-latency 1s", []string{"--lab-start-latency", "no shape"}, "a delay without a shape"},
		{"limit node-density --set imge=x", []string{"--set imge", `"image"`}, "a parameter"},
		{"limit node-density --set image", []string{"--set", "want k=v"}, "a parameter without a value"},
		{"limit node-density --set namespacesPer=many", []string{"namespacesPer"}, "a parameter of another type"},
		{"limit node-density --set image=a --set image=b", []string{"given twice"}, "a parameter given twice"},
		{"limit node-density --from 0", []string{"--from: 0", "above 0"}, "no level"},
		{"limit node-density --from 100 --max 50", []string{"--max", "below from"}, "an empty range"},
		{"limit node-density --step 1 --resolution 5", []string{"--step", "below the resolution"}, "a step within the resolution"},
		{"limit node-density --confirm 5/3", []string{"--confirm", "1 <= N <= M"}, "more passes than trials"},
		{"limit node-density --pace fast", []string{"--pace", "or max"}, "a pace"},
		{"limit node-density --guard nodesNotRead=1", []string{"--guard", `did you mean "nodesNotReady"?`}, "a guard"},
		{"limit node-density --guard nodesNotReady=5%", []string{"--guard nodesNotReady", "this guard counts", "hint: "}, "a percentage of what is counted"},
		{"limit node-density --guard apiErrors=5", []string{"--guard apiErrors: 5 has no unit", "hint: write 5%"}, "a percentage without its sign"},
		{"limit node-density --guard apiErrors=0.05", []string{"--guard apiErrors: 0.05 has no unit"}, "a share for a percentage"},
		{"limit node-density --guard pending=5 --guard pending=6", []string{"--guard pending is given twice"}, "a guard given twice"},
		{"limit node-density --guard nodesNotReady=no", []string{"--guard", "not a bound"}, "a guard's bound"},
		{"limit node-density --lab nowhere", []string{`no lab "nowhere"`, "lab up nowhere"}, "a lab"},
		{"limit node-density --lab a --kubeconfig " + noContext, []string{"more than one target"}, "two targets"},
		{"limit node-density --kubeconfig /no/such/file", []string{"no kubeconfig /no/such/file"}, "a kubeconfig"},
		{"limit node-density --in-cluster --kubeconfig " + noContext, []string{"more than one target"}, "a pod's cluster and another"},
		{"limit node-density --in-cluster", []string{"does not run in a pod: KUBERNETES_SERVICE_HOST", "hint: name the cluster with --kubeconfig FILE"}, "a pod's cluster, outside of one"},
		{"sweep node-density --in-cluster --levels 1 --dry-run", []string{"does not run in a pod"}, "a pod's cluster, outside of one, for a dry run"},
		{"ab node-density --in-cluster --level 1 --arm a: --arm b:serviceLinks=true", []string{"does not run in a pod"}, "a pod's cluster, outside of one, for arms"},
		{"check node-density --in-cluster", []string{"does not run in a pod"}, "a pod's cluster to look at, outside of one"},
		{"clean --in-cluster", []string{"does not run in a pod"}, "a pod's cluster to clean, outside of one"},
		{"clean --in-cluster --lab a", []string{"--lab and --in-cluster each name a cluster"}, "two clusters to clean"},
		{"limit node-density --context prod", []string{"--context", "without the kubeconfig"}, "a context alone"},
		{"limit node-density --kubeconfig " + noContext + " --context prd", []string{"no such context", "prod"}, "a context"},
		{"limit node-density --kubeconfig " + noContext, []string{"no current-context", "prod"}, "no context at all"},
		{"limit node-density --life 5s", []string{"--life: the axis pods-per-node removes nothing as it ages"}, "a life on an axis without one"},
		{"limit router --life 5s", []string{"--life: the axis connections removes nothing as it ages"}, "the life of what another target does not make"},
		{"lab restart a b c", []string{`unexpected argument "c"`}, "more than a lab and a component"},
		{"workloads show node-density --set image=a", []string{"--set is for kube-burner configurations, and node-density is a workload"}, "a variable of what has none"},
		{"run nowhere.yaml --budget 10", []string{"--budget", `"10" is not a duration`}, "a budget without a unit"},
		{"limit http --set urls=../../examples/http/urls.yaml --set server=127.0.0.1:8080", []string{`"127.0.0.1:8080" has no scheme`, "write --set server=http://127.0.0.1:8080"}, "an address without a scheme"},
		{"limit router --lab-nodes 5", []string{"--lab-nodes belongs to the targets kubernetes, kubevirt, ingress and claims, and router loads the target router", "hint: leave it out"}, "a flag of another target"},
		{"check router --lab l", []string{"--lab belongs to the targets kubernetes, kubevirt, ingress and claims, and router loads the target router"}, "another target to look at"},
		{"sweep simulated --levels 1 --yes", []string{"--yes belongs to the targets kubernetes, kubevirt, http, ingress and claims, and simulated loads the target simulated"}, "consent to what nobody is asked for"},
		{"limit node-density -o jsn", []string{`did you mean "json"?`}, "an output format"},
		{"sweep node-density", []string{"--levels"}, "a sweep without levels"},
		{"sweep node-density --levels 10,x", []string{`wants a number, found the text "x", for example --levels 100,200,300`}, "a level"},
		{"sweep node-density --levels 10,-1", []string{"--levels", "-1 is not a level"}, "a negative level"},
		{"run nofile.yaml", []string{"nofile.yaml does not exist"}, "a file"},
		{"run " + dir + "/mispelt.yaml", []string{`did you mean "misspelt.yaml"?`}, "a file's name"},
		{"run " + misspelt, []string{"misspelt.yaml:3:", "stepTimout", "stepTimeout"}, "a key of a plan, with file and line"},
		{"run " + badLevel, []string{"level.yaml:6:", "below from"}, "a value of a plan, with file and line"},
		{"run " + badGoal, []string{"goal.yaml:4:", `"Readdy"`, "Ready"}, "a goal of a plan, with file and line"},
		{"run", []string{"which file?"}, "no file"},
		{"run plan.yaml --resume " + dir, []string{"starts a run", "hint: leave out one"}, "to begin and to go on"},
		{"run --resume " + dir + "/none", []string{"not a run directory", "does not exist"}, "no directory to go on in"},
		{"run --resume " + dir, []string{"not a run directory"}, "a directory without a record to go on with"},
		{"run --resume " + dir + " --lab l", []string{"--lab: a resumed run keeps its target"}, "another target"},
		{"run --resume " + dir + " --out x", []string{"--out: a resumed run keeps its directory"}, "another directory"},
		{"analyze " + dir, []string{"not a run directory"}, "a directory without a record"},
		{"analyze " + dir + "/none", []string{"does not exist"}, "no directory"},
		{"clean --wait", []string{"which cluster?"}, "no cluster to wait for"},
		{"clean --context prod", []string{"which cluster?"}, "a context alone to clean"},
		{"clean --run r1", []string{"run r1 left nothing here"}, "a run that there was not"},
		{"check node-densty", []string{`no workload "node-densty"`, `did you mean "node-density"?`}, "a workload to look at"},
		{"check node-density extra", []string{`unexpected argument "extra"`}, "one name too many"},
		{"check node-density --axis pods-per-nod", []string{"--axis", `did you mean "pods-per-node"?`}, "an axis to look at"},
		{"check node-density --set imge=x", []string{"--set imge", `"image"`}, "a parameter to look at"},
		{"check --set image=x", []string{"--set needs a workload", "hint: for example"}, "a parameter of no workload"},
		{"check --axis rate", []string{"--axis needs a workload"}, "an axis of no workload"},
		{"check --lab nowhere", []string{`no lab "nowhere"`, "lab up nowhere"}, "a lab to look at"},
		{"check --lab a --kubeconfig " + noContext, []string{"more than one target"}, "two targets to look at"},
		{"check --context prod", []string{"--context", "without the kubeconfig"}, "a context alone to look at"},
		{"check --kubeconfig /no/such/file", []string{"no kubeconfig /no/such/file"}, "a kubeconfig to look at"},
		{"check --lab-nodes 0", []string{"--lab-nodes: a lab without nodes"}, "a lab without nodes to look at"},
		{"check --yes", []string{"unknown flag: --yes"}, "there is nothing to confirm"},
		{"check -o jsn", []string{`did you mean "json"?`}, "an output format of a check"},
		{"workloads export node-density", []string{"a workload and a directory"}, "half of an export"},
		{"workloads export node-density " + dir, []string{"exist"}, "an export over something"},
		{"tune cepf", []string{"no command 'tune cepf'", `did you mean "ceph"?`}, "a calculator"},
		{"tune ceph", []string{"--osds: is needed", "hint: for example --osds 141"}, "a parameter that is needed"},
		{"tune ceph --osds 0 --replicas 0", []string{"--osds: must be 1 to 1000000, is 0", "--replicas: must be 1 to 100, is 0"}, "two mistakes at once"},
		{"tune ceph --osds many", []string{"--osds", "not a whole number"}, "a parameter's number"},
		{"tune ceph --osds 0", []string{"--osds: must be 1 to 1000000, is 0"}, "a parameter's range"},
		{"tune ceph --osds 3 --pool vms=80", []string{"--pool", "80%"}, "a share without a sign"},
		{"tune ceph --osds 3 -o jsn", []string{`-o "jsn"`, `did you mean "json"?`}, "a form of answers"},
		{"tune ceph --osds 3 --force", []string{"--force without --write"}, "force without files"},
		{"tune subnet --cluster-cidr 10.130.0.0/14", []string{"--cluster-cidr", "the range is 10.128.0.0/14"}, "an address inside its range"},
		{"tune subnet --cluster-cidr 10.128.0.0", []string{"no prefix length"}, "a range without a length"},
		{"tune subnet --platform kubernets", []string{"--platform", `did you mean "kubernetes"?`}, "a platform"},
		{"tune subnet --platform kubernetes", []string{"--cluster-cidr: is needed"}, "no size at all"},
		{"tune subnet --nodes 100000 --pods-per-node 2500", []string{"no private range", "hint: "}, "more than there are addresses"},
		{"tune subnet --context prod", []string{"without the kubeconfig"}, "a context alone"},
		{"tune subnet --kubeconfig /no/such/file", []string{"no kubeconfig /no/such/file"}, "a kubeconfig"},
		{"tune kubelet --max-pods 5 --kubeconfig " + noContext + " --context prd", []string{"no such context", "prod"}, "a context"},
		{"tune subnet --lab nowhere", []string{`no lab "nowhere"`}, "a lab"},
		{"tune host", []string{"nothing was said of the host", "hint: for example --live"}, "no host"},
		{"tune host --rtt 0.208 --link 50Gbit", []string{"--rtt", "write 0.208ms"}, "a time without a unit"},
		{"tune host --rtt 0.208ms --link 50Gbt", []string{"--link", `did you mean "Gbit"?`}, "a speed's unit"},
		{"tune host --rtt 0.208ms", []string{"--link: is needed"}, "half of two"},
		{"tune host --bundle " + dir, []string{"neither proc/sys nor", "collect-script"}, "a directory that is no bundle"},
		{"tune host --bundle " + dir + "/none", []string{"there is no directory or archive"}, "no directory"},
		{"tune host --bundle " + misspelt, []string{"want a directory"}, "a file for a directory"},
		{"tune host --neighbours 5 --format puppet", []string{"--format", "machineconfig"}, "a form of files"},
		{"tune host --live --bundle " + dir, []string{"both name a host"}, "two hosts"},
		{"tune host --neighbours 5 --interval 5s", []string{"--interval without a host"}, "an interval of nothing"},
		{"tune kubelet", []string{"--max-pods: is needed", "hint: for example --max-pods 500"}, "no number of pods"},
		{"tune kubelet --max-pods 500 --measured kubelet=5", []string{"NAME@PODS=CORES,MEMORY"}, "a cost's form"},
		{"tune kubelet --max-pods 500 --label enabled", []string{"--label", "KEY=VALUE"}, "a label's form"},
		{"tune kubelet --max-pods 500 --run " + dir, []string{"--run: there is no", "result.json"}, "a directory that is no run"},
		{"tune virt", []string{"--vms: is needed"}, "no machines"},
		{"tune virt --class rhel=5", []string{"NAME=COUNT,CORES,MEMORY"}, "a class's form"},
		{"tune virt --vms 5 --kubevirt new", []string{"--kubevirt", "not a version"}, "a version"},
		{"tune virt --dataset 300x8", []string{"DIRECTORIESxFILESxSIZE"}, "a data set's form"},
		{"tune virt --clones 5 --clone-measured 10", []string{"BULK=TIME"}, "a bulk's form"},
		{"tune router --encryption edgy", []string{"--encryption", `did you mean "edge"?`}, "an encryption"},
		{"tune router --cpus 3-1", []string{"--cpus", "not a list of CPUs"}, "a list of CPUs"},
		{"tune network --mtu 600", []string{"--mtu: 600 leaves"}, "an MTU"},
		{"tune network --overlay vlan", []string{"--overlay", "vxlan"}, "an overlay"},
		{"tune plan --nodes 26", []string{"--pods-per-node: is needed"}, "a target"},
		{"tune plan --pods 5 --pods-per-node 5 --nodes 2", []string{"both say how many"}, "two targets"},
		{"analyze x -o junt", []string{`did you mean "junit"?`}, "a format of analyze"},
		{"limit simulated -o junit", []string{"want text or json"}, "a format that only analyze has"},
		{"version --outpt json", []string{"did you mean --output?"}, "a flag of a small command"},
	} {
		args := strings.Fields(tt.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		// KUBECONFIG must not matter to any of them.
		got := e2e.Command(t, map[string]string{"KUBECONFIG": noContext}, args...)
		if got.Code != process.ExitUsage {
			t.Errorf("%s (%s): exit code %d, want 2\n%s", tt.args, tt.why, got.Code, got.Stderr)
		}
		if got.Stdout != "" {
			t.Errorf("%s (%s): standard output is not for mistakes: %q", tt.args, tt.why, got.Stdout)
		}
		for _, part := range tt.want {
			if !strings.Contains(got.Stderr, part) {
				t.Errorf("%s (%s): standard error lacks %q:\n%s", tt.args, tt.why, part, got.Stderr)
			}
		}
	}
}

func TestHelpGoesToStandardOutput(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"limit", "--help"}, {"lab"}, {"workloads"}, {"completion", "bash"}, {"version"}, {"workloads", "list"}, {"workloads", "show", "node-density"}} {
		got := e2e.Command(t, nil, args...)
		if got.Code != 0 || got.Stdout == "" || got.Stderr != "" {
			t.Errorf("%v: exit code %d, %d bytes on standard output, standard error %q", args, got.Code, len(got.Stdout), got.Stderr)
		}
	}
}

// A lab that cannot come up is not a mistake of the user's.
func TestALabThatFailsIsNoUsageError(t *testing.T) {
	t.Chdir(t.TempDir())
	got := e2e.Command(t, nil, "limit", "node-density")
	if got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "private lab") {
		t.Errorf("exit code %d, want 5: %s", got.Code, got.Stderr)
	}
	if _, err := os.Stat("plimsoll-runs"); err == nil {
		t.Error("a run that never began left a directory")
	}
}

func TestAnUnreachableClusterIsNoUsageError(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: prod\ncontexts:\n- name: prod\n  context: {cluster: a, user: b}\nclusters:\n- name: a\n  cluster: {server: https://127.0.0.1:1}\nusers:\n- name: b\n  user: {token: hunter2}\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"limit", "node-density", "--yes"}, {"check", "node-density"}, {"check"}} {
		got := e2e.Command(t, nil, append(args, "--kubeconfig", kubeconfig)...)
		if got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "cannot be reached") {
			t.Errorf("%v: exit code %d, want 5: %s", args, got.Code, got.Stderr)
		}
		if strings.Contains(got.Stdout+got.Stderr, "hunter2") {
			t.Errorf("%v: the token is in the output", args)
		}
	}
}

// A dry run of a configuration that runs as it stands has the amounts of the run.
func TestADryRunCountsWhatARunMakes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pods.yml": "jobs:\n- {name: first, hooks: [{cmd: [touch, a b], when: beforeJobExecution}, {cmd: [tail, -f, x], when: afterChurn, background: true}], jobType: create, jobIterations: 3, namespace: first, objects: [{objectTemplate: pod.yml, replicas: 1, runOnce: true}, {objectTemplate: pod.yml, replicas: 5, repeatEveryNIterations: 2}]}\n" +
			"- {name: second, jobType: create, jobIterations: 6, namespace: second, namespacedIterations: true, iterationsPerNamespace: 2, objects: [{objectTemplate: pod.yml, replicas: 2}]}\nmetricsEndpoints: [{endpoint: 'http://prometheus:9090', alerts: [a.yml]}]\n",
		"a.yml":   "[{expr: up == 0, severity: error}]",
		"pod.yml": "apiVersion: v1\nkind: Pod\nmetadata: {name: \"a{{.Iteration}}-{{.Replica}}-{{randAlpha 5}}\"}\nspec: {containers: [{name: a, image: registry.example/a}]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := e2e.Command(t, nil, "run", filepath.Join(dir, "pods.yml"), "--dry-run")
	for _, want := range []string{"; 3 namespaces, first-0 to first-2; 11 Pods; 3 namespaces, second-0 to second-2; 12 Pods\n", "the file a.yml (profile); the address http://prometheus:9090 (profiles), if --allow names it, too", "would run: touch 'a b' (beforeJobExecution of job first); tail -f x (afterChurn of job first, in the background)\n"} {
		if got.Code != process.ExitPass || !strings.Contains(got.Stdout, want) || strings.Contains(got.Stdout, "iteration") {
			t.Errorf("exit code %d, want %q: %s%s", got.Code, want, got.Stdout, got.Stderr)
		}
	}
}

// A check of nothing names what to give, and brings no lab up.
func TestACheckOfNothingNamesWhatToGive(t *testing.T) {
	for _, args := range [][]string{{"check"}, {"check", "node-density"}, {"check", "vm-deploy"}, {"check", "node-density", "--namespace", "team"}} {
		got := e2e.Command(t, nil, args...)
		if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "no cluster or lab is named") || !strings.Contains(got.Stderr, "--kubeconfig FILE or --lab NAME") {
			t.Errorf("%v: exit code %d: %s", args, got.Code, got.Stderr)
		}
	}
}

// What a run refuses before it asks a system anything, a dry run and lint refuse as well,
// in the same words.
func TestADryRunRefusesWhatTheRunRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"passwd":   "root:x:0:0:root:/root:/bin/sh\n",
		"noctx":    "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: x}}]\n",
		"evil.fio": "[a]\nrw=read\nexec_prerun=/bin/true\n", "none.pem": "no certificate\n",
		"lua.cfg": "global\n  lua-load /x\n", "wrong.cfg": "global\n  maxconn many\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	noHAProxy := func() error {
		_, err := haproxy.Find(t.Context(), "")
		return err
	}
	for _, c := range []struct {
		why, workload, axis, level, params, target string
		says                                       string
		lacks                                      func() error // what a run needs that is not here
	}{
		{"a file that is no kubeconfig", "node-density", "pods-per-node", "1", "", "kubeconfig: passwd", "passwd is not a kubeconfig", nil},
		{"a kubeconfig that is not there", "node-density", "pods-per-node", "1", "", "kubeconfig: absent", "there is no kubeconfig absent", nil},
		{"a context without its cluster", "vm-deploy", "machines", "1", "", "kubeconfig: noctx", `names the cluster "x"`, nil},
		{"a lab that does not fit", "node-density", "pods-per-node", "110", "", "lab: {nodes: 100000}", "are available", nil},
		{"a lab that does not exist", "node-density", "pods-per-node", "1", "", "labName: nosuch", `there is no lab "nosuch"`, nil},
		{"a certificate that is not there", "router", "connections", "1", "certificate: absent.pem", "", "certificate: ", nil},
		{"a certificate that is none", "router", "connections", "1", "certificate: none.pem", "", "certificate: ", noHAProxy},
		{"a template that is not allowed", "router", "connections", "1", "template: lua.cfg", "", "lua-load", noHAProxy},
		{"a template that HAProxy refuses", "router", "connections", "1", "template: wrong.cfg", "", "template: wrong.cfg: ", noHAProxy},
		{"streams on a schedule", "router", "rate", "100", "streams: '2', http: '2', termination: edge", "", "streams", nil},
		{"a job that runs a command first", "io-volumes", "volumes", "1", "path: ., job: evil.fio", "", "exec_prerun", nil},
		{"a path that is a file", "io-volumes", "volumes", "1", "path: none.pem", "", "is not a directory", nil},
		{"a size that is none", "io-volumes", "volumes", "1", "path: ., size: 3 apples", "", "size", nil},
		{"a size of responses that is too much", "network-path", "streams", "1", "size: '99999999999'", "", "size", nil},
		{"offloads that do not exist", "network-path", "streams", "1", "path: nowhere", "", "path", nil},
	} {
		if c.lacks != nil && c.lacks() != nil {
			continue
		}
		text := "schema: plimsoll/experiment/v1\nworkload: " + c.workload + "\naxis: {name: " + c.axis + ", levels: [" + c.level + "]}\n"
		if c.params != "" {
			text += "params: {" + c.params + "}\n"
		}
		if c.target != "" {
			text += "target: {" + c.target + "}\n"
		}
		if err := os.WriteFile("plan.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		state := map[string]string{"XDG_STATE_HOME": dir}
		ran := e2e.Command(t, state, "run", "plan.yaml", "--out", "run")
		for _, args := range [][]string{{"run", "plan.yaml", "--dry-run"}, {"lint", "plan.yaml"}} {
			got := e2e.Command(t, state, args...)
			said := got.Stdout + got.Stderr
			if got.Code != process.ExitUsage && !(args[0] == "lint" && got.Code == process.ExitFail) || !strings.Contains(said, c.says) {
				t.Errorf("%s: %v: exit code %d, want %q: %s", c.why, args, got.Code, c.says, said)
			}
		}
		if ran.Code != process.ExitUsage || !strings.Contains(ran.Stderr, c.says) {
			t.Errorf("%s: the run ends with %d, want %q: %s", c.why, ran.Code, c.says, ran.Stderr)
		}
	}
}

func TestExportedWorkloadCanBeUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mine")
	if got := e2e.Command(t, nil, "workloads", "export", "node-density", dir); got.Code != 0 {
		t.Fatalf("export: %d %s", got.Code, got.Stderr)
	}
	if got := e2e.Command(t, nil, "workloads", "show", dir); got.Code != 0 || !strings.Contains(got.Stdout, "pods-per-node") {
		t.Errorf("show: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// Every command stands in the help once.
func TestCommandsStandOnce(t *testing.T) {
	stop := process.NewInterrupts(nil, nil)
	defer stop.Close()
	root := cli.NewRootCommand(&process.Process{Stdout: io.Discard}, stop)
	seen := make(map[string]bool)
	for _, c := range root.Commands() {
		if seen[c.Name()] {
			t.Errorf("there are two commands %q", c.Name())
		}
		seen[c.Name()] = true
	}
	if len(seen) < 10 {
		t.Errorf("%d commands", len(seen))
	}
}

// What a help says of a flag is so: the command has it, or the other command
// that is named with it.
func TestHelpPromisesNoFlagThatIsMissing(t *testing.T) {
	stop := process.NewInterrupts(nil, func(string, ...any) {})
	defer stop.Close()
	root := cli.NewRootCommand(&process.Process{Stdout: io.Discard}, stop)
	word := regexp.MustCompile(`--([a-z][a-z-]*)`)
	named := regexp.MustCompile(`--([a-z][a-z-]*) [A-Z]+ with ([a-z, ]+ and [a-z]+) `)
	others := map[string]bool{ // flags that the text says belong to another command
		"plimsoll image push --images":           true, // of what takes them
		"plimsoll query --scrape":                true, // of what is asked
		"plimsoll tune network --collect-script": true, // of tune host
	}
	seen := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.InitDefaultHelpFlag()
		has := func(flag string) bool {
			return c.Flags().Lookup(flag) != nil || others[c.CommandPath()+" --"+flag] ||
				slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Flags().Lookup(flag) != nil })
		}
		text := c.Long
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			for name := range strings.FieldsFuncSeq(strings.Replace(m[2], " and ", ",", 1), func(r rune) bool { return r == ',' || r == ' ' }) {
				if other, _, err := root.Find([]string{name}); err != nil || other.Flags().Lookup(m[1]) == nil {
					t.Errorf("the help of %q promises --%s with %s, which has no such flag", c.CommandPath(), m[1], name)
				}
				seen++
			}
		}
		for _, m := range word.FindAllStringSubmatch(named.ReplaceAllString(text, ""), -1) {
			if seen++; !has(m[1]) {
				t.Errorf("the help of %q promises --%s, and it has no such flag", c.CommandPath(), m[1])
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
	if seen < 20 {
		t.Errorf("only %d flags are spoken of", seen)
	}
}

func TestTargetsRefuseWhatTheyDoNotKnow(t *testing.T) {
	for _, args := range [][]string{
		{"limit", "simulated", "--lab", "x"}, {"limit", "simulated", "--lab-nodes", "3"}, {"limit", "simulated", "--kubeconfig", "k"},
		{"limit", "simulated", "--fresh", "lab"}, {"limit", "simulated", "--normal-events"}, {"limit", "simulated", "--axis", "pods-per-node"},
		{"limit", "simulated", "--guard", "nodesNotReady=1"}, {"limit", "node-density", "--axis", "objects"},
		{"ab", "simulated", "--arm", "a:", "--arm", "b:limit=3", "--metric", "kubeletCPU"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		got := e2e.Command(t, nil, append(args, "--out", dir)...)
		if _, err := os.Stat(dir); got.Code != process.ExitUsage || !os.IsNotExist(err) || !strings.Contains(got.Stderr, "hint: ") {
			t.Errorf("%v: exit code %d: %s", args, got.Code, got.Stderr)
		}
	}
}

func TestADryRunDoesNothing(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"limit", "simulated"}, []string{"simulated on the target simulated, along objects: from a quarter of the predicted line, where one is known, or else 10, 20, ... up to 1000 objects/place", "would make: nothing", "nothing was done"}},
		{[]string{"limit", "simulated", "--guard", "apiErrors=5%"}, []string{"the load stops when apiErrors is 5% (requests that failed for good, with 99.9% confidence)", "nothing was done"}},
		{[]string{"sweep", "node-density-cni", "--levels", "10,20", "--lab-nodes", "3"},
			[]string{"along pods-per-node: 10 20 pods/node", "a private lab: etcd, API server, controller manager and scheduler, 3 simulated nodes of 110 pods", "1 Service for each iteration", "for each 1000 iterations", "would change: nothing", "would reboot: nothing"}},
		{[]string{"sweep", "node-density", "--levels", "10", "--lab-nodes", "1", "--lab-max-pods", "1", "--set", "namespacesPer=1"}, []string{"1 simulated node of 1 pod;", "namespace node-density-RUN-0 for each iteration"}},
		{[]string{"ab", "node-density", "--arm", "a:", "--arm", "b:serviceLinks=true", "--kubeconfig", "testdata/kubeconfig"}, []string{"the cluster of testdata/kubeconfig", "2 arms, 4..30 runs of each", "1 Pod for each iteration", "would remove: leftovers of earlier runs"}},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		got := e2e.Command(t, nil, append(c.args, "--dry-run", "--out", dir)...)
		if got.Code != 0 {
			t.Errorf("%v: exit code %d: %s", c.args, got.Code, got.Stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(got.Stdout, want) {
				t.Errorf("%v: %q is not in\n%s", c.args, want, got.Stdout)
			}
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%v: a run directory was made", c.args)
		}
		if got := e2e.Command(t, nil, append(c.args, "--dry-run", "-o", "json")...); got.Code != 0 || !json.Valid([]byte(got.Stdout)) {
			t.Errorf("%v: -o json: exit code %d: %s", c.args, got.Code, got.Stdout)
		}
	}
}

// A command whose output is read no more has one exit code, however soon it ends.
func TestAClosedPipeHasOneExitCode(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"workloads", "list"}, {"nosuch"}, {"version", "-o", "json"}, {"lint", "/nonexistent"}} {
		for range 50 {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			read.Close()
			signals := make(chan os.Signal, 4)
			p := process.Process{Args: args, LookupEnv: func(string) (string, bool) { return "", false }, Stdin: strings.NewReader(""), Stdout: write, Signals: signals}
			p.Stderr = write
			p.WatchPipes(signals)
			if code := cli.Main(p); code != process.CodeOf(syscall.SIGPIPE) {
				t.Errorf("%v: exit code %d", args, code)
				break
			}
			write.Close()
		}
	}
}

// An account is printed for a cluster that nobody names.
func TestRightsNeedNoCluster(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"node-density", "--namespace", "team-a"}, "kind: Role"},
		{[]string{"vm-upgrade", "--set", "to=4.20.0"}, "\n# counts the nodes that are rebooted, for consent\n- {apiGroups: [\"\"], resources: [nodes], verbs: [list]}"},
	} {
		if got := e2e.Command(t, nil, append([]string{"rbac"}, tt.args...)...); got.Code != 0 || !strings.Contains(got.Stdout, tt.says) {
			t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
	}
}
