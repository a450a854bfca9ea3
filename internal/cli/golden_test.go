package cli_test

import (
	"encoding/json"
	"flag"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/golden"
	"plimsoll.dev/plimsoll/internal/test/harness"
	"plimsoll.dev/plimsoll/workloads"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// What commands print that need no cluster and no record is kept in testdata, a
// file for each kind of them.

func TestGoldenHelp(t *testing.T) {
	t.Parallel()
	stop := process.NewInterrupts(nil, func(string, ...any) {})
	defer stop.Close()
	root := cli.NewRootCommand(&process.Process{Stdout: io.Discard}, stop)
	var text strings.Builder
	var visit func(c *cobra.Command, path ...string)
	visit = func(c *cobra.Command, path ...string) {
		text.WriteString(e2e.Transcript(t, "", append(path, "--help")...) + "\n")
		for _, sub := range c.Commands() {
			visit(sub, append(path[:len(path):len(path)], sub.Name())...)
		}
	}
	visit(root)
	// A workload's name shows the flags of its own target.
	for _, name := range []string{"node-density", "gluster-volumes", "router"} {
		text.WriteString(e2e.Transcript(t, "", "limit", name, "--help") + "\n")
	}
	// The facts that targets declare are theirs: another target changes nothing here.
	help := text.String()
	for _, f := range process.DeclaredFacts() {
		line := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(f.Name) + ` .*` + regexp.QuoteMeta(f.What) + `.*\n`).FindString(text.String())
		if line == "" {
			t.Errorf("compare --help does not list %s: %s", f.Name, f.What)
		}
		help = strings.Replace(help, line, "", 1)
	}
	golden.Check(t, *update, "help.txt", []byte(help))
}

// builtIn returns the workloads of the program, by name.
func builtIn(t *testing.T) (list []*workload.Workload) {
	t.Helper()
	names, err := workload.Names(workloads.FS())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		w, err := process.LoadWorkload(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, w)
	}
	return list
}

// A workload has a file of its own: another one changes none that is there.
func TestGoldenWorkloads(t *testing.T) {
	t.Parallel()
	const dir = "built-in"
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split(e2e.Command(t, nil, "workloads", "list").Stdout, "\n")
	for _, w := range builtIn(t) {
		if !slices.ContainsFunc(list, func(line string) bool { return strings.Join(strings.Fields(line), " ") == w.Name+" "+w.Help }) {
			t.Errorf("%s is not listed with its help:\n%s", w.Name, strings.Join(list, "\n"))
		}
		text := e2e.Transcript(t, "", "workloads", "show", w.Name) + "\n"
		for _, a := range w.Axes {
			text += e2e.Transcript(t, "", "limit", w.Name, "--axis", a.Name, "--dry-run") + "\n"
		}
		text += e2e.Transcript(t, "", "sweep", w.Name, "--levels", "1,2", "--dry-run") + "\n" +
			e2e.Transcript(t, "", "ab", w.Name, "--level", "2", "--arm", "a:", "--arm", "b:", "--dry-run") + "\n"
		// What a cluster, or volumes, are found to be differs; see below. A path runs
		// in this machine's kernel, whose version a check prints.
		if !slices.Contains([]string{"kubernetes", "kubevirt", "volumes"}, w.Target.Name) {
			text += strings.ReplaceAll(e2e.Transcript(t, "", "check", w.Name), telemetry.Host().Kernel, "KERNEL") + "\n"
		}
		golden.Check(t, *update, dir+"/"+w.Name+".txt", []byte(text))
		files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == w.Name+".txt" })
	}
	if len(files) > 0 {
		t.Errorf("of no workload: %v", files)
	}
}

func TestGoldenDryRuns(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, line := range []string{
		"sweep vm-migration --levels 5 --set parallelMigrations=10 --set outboundMigrations=4",
		"sweep node-density --levels 5 --vary lab.maxPods=10,20 --vary cpuRequest=10m,20m",
		"limit node-density --kubeconfig testdata/kubeconfig --context prod --guard nodesNotReady=1 --guard apiErrors=5%",
		"sweep vm-zones --levels 1 --kubeconfig testdata/kubeconfig -o json",
	} {
		text.WriteString(e2e.Transcript(t, "", append(strings.Fields(line), "--dry-run")...) + "\n")
	}
	golden.Check(t, *update, "dry-run.txt", []byte(text.String()))
}

// What a check finds is kept in words and figures where nothing but the lab
// decides it. The port of the lab, the time that a request takes and what the
// clocks differ by are the machine's.
func TestGoldenChecks(t *testing.T) {
	t.Parallel()
	p := suite.Program(t) // what tests leave in a lab that they share would be seen
	if got := p.Run(t, "lab", "up", "l", "--virt", "--nodes", "4", "--max-pods", "20"); got.Code != process.ExitPass {
		t.Fatalf("lab up: exit code %d\n%s", got.Code, got.Stderr)
	}
	var lab strings.Builder
	for _, w := range builtIn(t) {
		if w.Target.Name == "kubernetes" || w.Target.Name == "kubevirt" {
			args := []string{"check", w.Name, "--lab", "l"}
			got := p.Run(t, args...)
			lab.WriteString(e2e.Shown("", args, got) + "\n")
		}
	}
	text := lab.String()
	for pattern, to := range map[string]string{
		`https://127\.0\.0\.1:\d+`:              "https://127.0.0.1:PORT",
		`(?m)^\w+ +API latency .*(\n {6,}.*)*$`: "...  API latency  ...",
		`(?m)^\w+ +clock .*(\n {6,}.*)*$`:       "...  clock  ...",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, to)
	}
	golden.Check(t, *update, "check-lab.txt", []byte(text))
}

// How many volumes a machine holds is its own figure. What is kept is the words,
// by the names of the ceilings; TestKeptRecords keeps the figures of a run.
func TestGoldenChecksOfVolumes(t *testing.T) {
	t.Parallel()
	harness.Able(t, gluster.Check(false))
	var list []ceiling.Check
	for _, name := range []string{"gluster-restart", "gluster-volumes"} {
		var found ceiling.Check
		got := e2e.Command(t, nil, "check", name, "--set", "memory=4GiB", "-o", "json")
		if err := json.Unmarshal([]byte(got.Stdout), &found); err != nil {
			t.Fatalf("%v\n%s%s", err, got.Stdout, got.Stderr)
		}
		found.Target.Version, found.Binding = "", nil
		ceilings := found.Table.Ceilings
		for i := range ceilings {
			c := &ceilings[i]
			if c.Name != "memory" {
				c.Level, c.Total, c.Limit, c.Used, c.Left = nil, nil, nil, nil, nil
			}
			c.Binds = false
		}
		slices.SortFunc(ceilings, func(a, b record.Ceiling) int { return strings.Compare(a.Name, b.Name) })
		list = append(list, found)
	}
	text, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, *update, "check-volumes.json", append(text, '\n'))
}
