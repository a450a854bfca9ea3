package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/workloads"
)

// documented are the commands of this program in the fenced blocks of README.md
// and of docs/, in their order, up to a comment.
func documented(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, file := range append([]string{"../../README.md"}, files...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		inside := false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "```"):
				inside = !inside
			case inside && (strings.HasPrefix(line, "plimsoll ") || strings.HasPrefix(line, "bin/plimsoll ")):
				line, _, _ = strings.Cut(line, " #")
				lines = append(lines, "bin/plimsoll "+strings.TrimSpace(line[strings.Index(line, " ")+1:]))
			}
		}
	}
	return lines
}

// simulates reports whether a documented command loads the simulated target and
// leaves nothing that other commands read.
func simulates(line string) bool {
	return regexp.MustCompile(`^bin/plimsoll (limit|sweep|ab) simulated`).MatchString(line) && !strings.Contains(line, "--out ")
}

// The commands on the simulated target that README.md and docs/ show, on a
// virtual clock.
func TestDocumentedSimulations(t *testing.T) {
	codes := map[string]int{
		"bin/plimsoll limit simulated --set limit=37":                                                    process.ExitHeld,
		"bin/plimsoll limit simulated --axis requests --set capacity=5000":                               process.ExitHeld,
		"bin/plimsoll sweep simulated --axis clients --levels 50,200,400 --set capacity=5000":            process.ExitBreached,
		"bin/plimsoll limit simulated --vary limit=20,40,80 --vary places=2,4":                           process.ExitHeld,
		"bin/plimsoll sweep simulated --axis requests --levels 500 --repeat 3 --vary capacity=1000,2000": process.ExitHeld,
		`bin/plimsoll limit simulated --goal "fast=Ready p99 <= 60ms" --require all`:                     process.ExitHeld,
	}
	lines := slices.DeleteFunc(documented(t), func(line string) bool { return !simulates(line) })
	for line := range codes {
		if !slices.Contains(lines, line) {
			t.Errorf("%s is in this test's table and shown nowhere: take it out", line)
		}
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		code, ok := codes[line]
		if !ok {
			t.Errorf("%s is shown and not in this test's table: add it, with its exit code", line)
			continue
		}
		args, err := exec.Command("sh", "-c", strings.Replace(line, "bin/plimsoll", `printf '%s\0'`, 1)).Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(line, func(t *testing.T) {
			onVirtualClock(t, func(t *testing.T) {
				if _, got := measured(t, strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")...); got.code != code {
					t.Errorf("exit code %d, want %d\n%s%s", got.code, code, got.stdout, got.stderr)
				}
			})
		})
	}
}

// The commands that README.md and docs/ show are valid, and those that need
// nothing but a lab, a record or a file are run as they stand.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	const (
		minutes  = "it takes minutes: a search, or arms in several blocks, on a lab of its own"
		real     = "it takes minutes, on a real node"
		volumes  = "it takes minutes, with a real GlusterFS; TestVolumes makes shorter ones"
		storage  = "it takes minutes, with a real fio; TestMeasuredIO makes shorter ones"
		machines = "TestVirtualMachines makes such runs"
		thousand = "it takes three to ten minutes and gigabytes of memory"
		haproxy  = "it takes minutes, with a real HAProxy; TestMeasuredRouter makes shorter ones"
	)
	type row struct {
		line   string
		codes  []int  // that it may exit with
		notRun string // why it is only parsed
	}
	table := []row{
		{"bin/plimsoll workloads show simulated", []int{process.ExitHeld}, ""},
		{"bin/plimsoll check node-density --kubeconfig ~/.kube/config", []int{process.ExitHeld}, ""},
		{"bin/plimsoll sweep node-density --kubeconfig ~/.kube/config --levels 50 --out first", []int{process.ExitHeld, process.ExitInvalid}, ""}, // by what else the machine does
		{"bin/plimsoll limit node-density --kubeconfig ~/.kube/config --from 50 --step 25 --max 250", nil, minutes},
		{"bin/plimsoll limit node-density --slo 'Ready p99 <= 2s' --slo 'errors < 1%'", nil, minutes},
		{`bin/plimsoll limit node-density --goal "fast=Ready p99 <= 2s"`, nil, minutes},
		{"bin/plimsoll limit node-density --axis rate --lab-nodes 100", nil, minutes},
		{"bin/plimsoll ab node-density --lab-nodes 20 --level 20 --arm plain: --arm links:serviceLinks=true", nil, minutes},
		{"bin/plimsoll limit node-density --axis rate --vary lab.controlPlaneCPUs=0.5,1,2", nil, minutes},
		{"bin/plimsoll lab up --nodes 100 --start-latency uniform:500ms,1.5s", []int{process.ExitHeld}, ""},
		{"bin/plimsoll lab up vms --virt --nodes 20 --time-scale 60", nil, "the tests of internal/lab/virt start such a lab"},
		{"bin/plimsoll lab up slow --virt --time-scale 60 --virt-figures qps=5,burst=10", nil, "likewise"},
		{"bin/plimsoll ab vm-migration --lab-real-guests 1 --level 1 --arm idle:guestIOPS=0 --arm loaded:guestIOPS=200 --set guestDisk=16Mi --repeat 3 --margin 2%", nil, "TestMigrationUnderIO makes such a run"},
		{"bin/plimsoll sweep vm-io --lab-real-guests 2 --levels 1 --set machinesPerNode=2 --set size=64Mi", nil, "TestIOInGuests makes such a run"},
		{`bin/plimsoll ab vm-io --kubeconfig ~/.kube/config --level 4 --arm idle:iops=1 --arm loaded:iops=1000 --metric "read p99"`, nil, machines},
		{"bin/plimsoll sweep vm-boot-storm --lab-real-guests 2 --levels 4", nil, "TestRealGuests makes such a run"},
		{"bin/plimsoll lab up guests --virt --real-guests 2", nil, "likewise"},
		{"bin/plimsoll sweep vm-migration --lab-virt hyperconverged=true --lab-time-scale 20 --set parallelMigrations=20 --levels 20", nil, "it takes a minute; TestSettingsOfHyperConverged makes a shorter one"},
		{"bin/plimsoll sweep vm-migration --lab vms --vary parallelMigrations=5,20", nil, "it takes minutes; TestSettings makes shorter ones"},
		{"bin/plimsoll ab vm-boot-storm --lab vms --arm slow:controllerQPS=5,controllerBurst=10 --arm fast:controllerQPS=200,controllerBurst=400", nil, "likewise"},
		{"bin/plimsoll sweep vm-boot-storm --lab-time-scale 20 --levels 20,50", nil, machines},
		{"bin/plimsoll sweep vm-boot-storm --kubeconfig ~/.kube/config --levels 100", nil, machines},
		{`bin/plimsoll limit vm-boot-storm --slo "all SSHAnswered within 5m" --lab-time-scale 10`, nil, machines},
		{"bin/plimsoll sweep vm-deploy --lab-time-scale 60 --set machines=400", nil, machines},
		{"bin/plimsoll sweep vm-migration --lab-time-scale 20 --axis parallel", nil, machines},
		{"bin/plimsoll sweep vm-drain --lab-nodes 12 --lab-time-scale 20 --levels 2,4", nil, "TestDrain makes such a run"},
		{"bin/plimsoll sweep vm-deploy --axis machines --levels 1000 --set run=true --lab-nodes 20 --lab-max-pods 110 --lab-time-scale 20", nil, thousand},
		{"bin/plimsoll sweep vm-restart --levels 1000 --lab-nodes 20 --lab-max-pods 110 --lab-time-scale 5", nil, thousand},
		{"bin/plimsoll sweep vm-drain --levels 20 --set machinesPerNode=50 --set parallelMigrations=20 --set outboundMigrations=4 --lab-nodes 40 --lab-max-pods 110 --lab-time-scale 10", nil, thousand},
		{"bin/plimsoll sweep vm-zones --levels 3 --set rhel=134 --set fedora=134 --set windows=66 --set parallelMigrations=20 --set outboundMigrations=4 --lab-nodes 33 --lab-max-pods 110 --lab-time-scale 10", nil, thousand},
		{"bin/plimsoll sweep vm-lifecycle --levels 1000 --lab-nodes 20 --lab-max-pods 110 --lab-time-scale 20", nil, thousand},
		{"bin/plimsoll sweep density-mix --levels 244 --lab-nodes 33 --lab-max-pods 250 --lab-time-scale 20", nil, thousand},
		{"bin/plimsoll sweep vm-upgrade --levels 1000 --set os=rhel --set to=4.20.0 --lab-nodes 33 --lab-max-pods 110 --lab-time-scale 30", nil, thousand},
		{"bin/plimsoll sweep vm-zones --lab-nodes 9 --lab-time-scale 60", nil, "TestZones makes such a run"},
		{"bin/plimsoll sweep vm-zones --kubeconfig ~/.kube/config --levels 1 --reboots 33", nil, "likewise"},
		{"bin/plimsoll sweep vm-upgrade --lab-nodes 9 --lab-time-scale 60 --levels 50 --set to=4.20.0", nil, "TestUpgrade makes a shorter one"},
		{"bin/plimsoll sweep vm-upgrade --kubeconfig ~/.kube/config --levels 100", nil, "likewise"},
		{"bin/plimsoll sweep vm-lifecycle --lab-time-scale 20 --levels 10,50", nil, machines},
		{"bin/plimsoll limit density-mix --lab-time-scale 20", nil, machines},
		{"bin/plimsoll sweep node-density --lab default --levels 10,20,40", nil, "it makes 4000 pods, and what the machine makes of them is no matter of the command"},
		{"bin/plimsoll lab down", []int{process.ExitHeld}, ""},
		{"bin/plimsoll lab doctor", []int{process.ExitHeld, process.ExitBreached}, ""}, // by what the machine has
		{"bin/plimsoll limit node-density --lab-real-node --lab-max-pods 250 --from 20 --step 20", nil, real},
		{"bin/plimsoll limit node-density-heavy --lab-real-node --lab-max-pods 500", nil, real},
		{"bin/plimsoll ab node-density --lab-real-node --level 60 --arm runc:runtimeClass=runc --arm crun:runtimeClass=crun --repeat 5", nil, real},
		{"bin/plimsoll sweep io-volumes --levels 1,10 --set size=16MiB", nil, storage},
		{"bin/plimsoll sweep io-volumes --axis rate --levels 500 --set volumes=10 --set replica=2 --set size=16MiB", nil, storage},
		{"bin/plimsoll ab io-volumes --axis rate --level 300 --set volumes=10 --set size=4MiB --set rw=randrw --margin 20% --arm off:multiplex=false --arm on:multiplex=true", nil, storage},
		{"bin/plimsoll sweep io-volumes --set path=.+/var/tmp --set rw=randrw --set mix=70 --set verify=crc", nil, storage},
		{"bin/plimsoll limit io-volumes --axis depth --set path=.", nil, storage},
		{"bin/plimsoll limit io-volumes --axis rate --set path=. --set volumes=4", nil, storage},
		{"bin/plimsoll sweep io-volumes --axis rate --levels 100 --set volumes=4 --set size=16MiB --set beside=pgbench", nil, storage},
		{"bin/plimsoll sweep small-files --set path=.", nil, storage},
		{"bin/plimsoll limit small-files --axis rate --set path=. --set fsync=true", nil, storage},
		{"bin/plimsoll workloads show io-volumes", []int{process.ExitHeld}, ""},
		{"bin/plimsoll sweep router", nil, haproxy},
		{"bin/plimsoll sweep router --vary termination=none,edge,passthrough,reencrypt --vary pageSize=1KiB,4KiB", nil, haproxy},
		{"bin/plimsoll limit router --axis rate", nil, haproxy},
		{"bin/plimsoll workloads show router", []int{process.ExitHeld}, ""},
		{"bin/plimsoll ab router --level 40 --arm full:resumption=false,keepAlive=false --arm resumed:resumption=true,keepAlive=false", nil, haproxy},
		{"bin/plimsoll ab router --level 40 --arm regexp:routes=2000 --arm exact:routes=2000,lookup=exact", nil, haproxy},
		{"bin/plimsoll ab router --level 10 --metric change --set event=reload --set routes=2000 --arm current:openshift=current --arm old:openshift=4.11", nil, haproxy},
		{"bin/plimsoll sweep router --axis routes", nil, haproxy},
		{"bin/plimsoll sweep router --axis routes --vary openshift=current,4.11", nil, haproxy},
		{"bin/plimsoll sweep router --set requestHeader=30KiB", nil, haproxy},
		{"bin/plimsoll sweep router --set requestHeader=30KiB --set bufsize=65536", nil, haproxy},
		{"bin/plimsoll sweep router --axis idle", nil, haproxy},
		{"bin/plimsoll sweep router --axis idle --vary idleAfter=half-header,request", nil, haproxy},
		{"bin/plimsoll sweep router --axis idle --vary bufsize=16384,32768,65536", nil, haproxy},
		{"bin/plimsoll sweep router --set link=1Gbit --vary pageSize=1KiB,4KiB,16KiB", nil, haproxy},
		{"bin/plimsoll ab router --level 40 --metric change --arm runtime:event=route-runtime,churn=5 --arm reload:event=route-reload,churn=5,churnBy=reload", nil, haproxy},
		{"bin/plimsoll sweep router --set recordRequests=20", nil, haproxy},
		{"bin/plimsoll sweep router --set event=reload --slo 'errors <= 0%'", nil, haproxy},
		{"bin/plimsoll ab router --level 40 --metric change --arm reload:event=route-reload --arm runtime:event=route-runtime", nil, haproxy},
		{"bin/plimsoll ab router --level 40 --metric change --arm empty:event=route-change --arm churn:event=route-change,churn=100", nil, haproxy},
		{"bin/plimsoll sweep gluster-volumes --levels 100,300,500,1000", nil, volumes},
		{"bin/plimsoll limit gluster-volumes", nil, volumes},
		{"bin/plimsoll ab gluster-volumes --level 20 --arm off:multiplex=false --arm on:multiplex=true", nil, volumes},
		{"bin/plimsoll sweep gluster-volumes --axis rate --levels 1,2 --life 5s", nil, volumes},
		{"bin/plimsoll sweep gluster-volumes --axis deletions --levels 10,20 --set deleteAfter=10s", nil, volumes},
		{"bin/plimsoll sweep gluster-restart --levels 10,50", nil, volumes},
		{"bin/plimsoll run examples/000-brick-multiplexing.yaml", nil, volumes},
		{"bin/plimsoll check gluster-volumes --set multiplex=false", []int{process.ExitHeld}, ""},
		{"bin/plimsoll workloads show gluster-volumes", []int{process.ExitHeld}, ""},
		{`bin/plimsoll tune plan "2500 pods per node on 26 nodes" --write plan`, []int{process.ExitHeld}, ""},
		{"bin/plimsoll tune host --rtt 0.208ms --link 50Gbit", []int{process.ExitHeld}, ""},
		{"bin/plimsoll tune host --bundle node7.tar -o json", []int{process.ExitHeld}, ""},
		{"bin/plimsoll lint -R manifests/ runbook.md", []int{process.ExitBreached}, ""}, // the runbook has a mistake
		{"bin/plimsoll lint --fix --dry-run vm.yaml", []int{process.ExitHeld}, ""},
		{"bin/plimsoll sweep simulated --levels 30 --set limit=37 --require all --out nightly", []int{process.ExitHeld}, ""},
		{"bin/plimsoll analyze nightly -o junit > junit.xml", []int{process.ExitHeld}, ""},
		{"bin/plimsoll report nightly", []int{process.ExitHeld}, ""},
		{"bin/plimsoll workloads list", []int{process.ExitHeld}, ""},
		{"bin/plimsoll workloads show node-density", []int{process.ExitHeld}, ""},
		{"bin/plimsoll workloads export node-density my-density", []int{process.ExitHeld}, ""},
	}
	lines := slices.DeleteFunc(documented(t), simulates)
	for _, line := range lines {
		if !slices.ContainsFunc(table, func(r row) bool { return r.line == line }) {
			t.Errorf("%s is shown and not in this test's table: add it, with the exit code that it has or why it is not run", line)
		}
	}

	p := suite.Lab(t, wideLab...)
	t.Cleanup(func() { p.Run(t, "lab", "down") })
	// What the commands name: the program, a cluster, a host that was saved,
	// files.
	program, err := filepath.Abs(p.Command().Path)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		".kube/config": string(kubeconfig), "away": "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: https://127.0.0.1:1}}]\n",
		"collect.sh":         p.Run(t, "tune", "host", "--collect-script").Stdout,
		"manifests/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]}\n",
		"vm.yaml":            "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: a}\nspec: {runStrategy: Always, template: {spec: {domain: {devices: {}}}}}\n",
		"runbook.md":         "```\nceph osd pool set rbd pg_autoscaler_mode off\n```\n",
		"arguments":          "#!/bin/sh\nprintf '%s\\0' \"$@\"\n",
	} {
		path := filepath.Join(p.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(p.Dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(p.Dir, "bin", "plimsoll")); err != nil {
		t.Fatal(err)
	}
	shell := func(line string) (out []byte, code int, stderr string) {
		t.Helper()
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = p.Dir, append(p.Command().Env, "HOME="+p.Dir)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, _ = cmd.Output()
		return out, cmd.ProcessState.ExitCode(), said.String()
	}
	if _, code, said := shell("sh collect.sh 1 > node7.tar"); code != 0 {
		t.Fatalf("the script that saves a host: exit code %d\n%s", code, said)
	}

	// Commands that are only parsed find a cluster and a lab that do not answer,
	// and no place for a lab of their own.
	withDefault := someLabs(t, map[string]string{"default": fmt.Sprintf(readyLab, "default")})
	for _, row := range table {
		if !slices.Contains(lines, row.line) {
			t.Errorf("%s is in this test's table and shown nowhere: take it out", row.line)
			continue
		}
		if row.notRun == "" {
			out, code, said := shell(row.line)
			if !slices.Contains(row.codes, code) {
				t.Errorf("%s: exit code %d, want one of %v\n%s%s", row.line, code, row.codes, out, said)
			}
			continue
		}
		args, _, _ := shell(strings.Replace(row.line, "bin/plimsoll", "./arguments", 1))
		args = bytes.ReplaceAll(args, []byte(".kube/config\x00"), []byte("away\x00"))
		args = bytes.ReplaceAll(args, []byte("\x00examples/"), []byte("\x00../../examples/"))
		env := map[string]string{"XDG_STATE_HOME": "/dev/null"}
		if strings.Contains(row.line, "--lab default") {
			env["XDG_STATE_HOME"] = withDefault
		}
		got := command(t, env, strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")...)
		if got.code != process.ExitCouldNotRun {
			t.Errorf("%s (not run: %s): exit code %d, want 5 where there is no lab\n%s", row.line, row.notRun, got.code, got.stderr)
		}
	}
}

// Pages link to files that there are.
func TestDocumentedLinks(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#]+)`)
	found := 0
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md", "../../ARCHITECTURE.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d links were found", found)
	}
}

// Each file in examples/ runs with the workload that it names.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	for _, file := range files {
		p, err := plan.Load(file)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		w, err := workload.Load(workloads.FS(), p.Workload, process.Targets())
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if p.Default(w); p.Validate(w) != nil {
			t.Errorf("%v", p.Validate(w))
		}
		if name := strings.TrimSuffix(filepath.Base(file), ".yaml"); p.Name != name {
			t.Errorf("%s: its runs are called %s", file, p.Name)
		}
		if _, err := p.GoalsOf(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
