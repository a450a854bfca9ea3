package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
	"plimsoll.dev/plimsoll/workloads"
)

// documented returns the commands of this program in the fenced blocks of README.md
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
		"bin/plimsoll limit simulated --set limit=37":                                                    process.ExitPass,
		"bin/plimsoll limit simulated --axis requests --set capacity=5000":                               process.ExitPass,
		"bin/plimsoll sweep simulated --axis clients --levels 50,200,400 --set capacity=5000":            process.ExitFail,
		"bin/plimsoll limit simulated --vary limit=20,40,80 --vary places=2,4":                           process.ExitPass,
		"bin/plimsoll sweep simulated --axis requests --levels 500 --repeat 3 --vary capacity=1000,2000": process.ExitPass,
		`bin/plimsoll limit simulated --goal "fast=Ready p99 <= 60ms" --require all`:                     process.ExitPass,
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
			e2e.OnVirtualClock(t, func(t *testing.T) {
				if _, got := e2e.Measured(t, suite, strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")...); got.Code != code {
					t.Errorf("exit code %d, want %d\n%s%s", got.Code, code, got.Stdout, got.Stderr)
				}
			})
		})
	}
}

// ofNights reports whether a documented command is of docs/ci.md.
func ofNights(line string) bool { return strings.Contains(line, " nights") }

// The commands of docs/ci.md, from nothing to a red build, on a virtual clock.
func TestDocumentedNights(t *testing.T) {
	lines := slices.DeleteFunc(documented(t), func(line string) bool { return !ofNights(line) })
	t.Chdir(t.TempDir())
	e2e.OnVirtualClock(t, func(t *testing.T) {
		for i, row := range []struct {
			code int
			says string
		}{
			{process.ExitPass, "this one is the first"}, {process.ExitPass, "2 is equivalent to 1"}, {process.ExitFail, "3 is worse than 2"},
			{process.ExitFail, `<failure message="worse: the load line is 33`}, {process.ExitFail, "-10.8%"}, {process.ExitPass, filepath.Join("nights", "index.html")},
		} {
			line, _, _ := strings.Cut(lines[i], " > ")
			if got := e2e.Command(t, nil, strings.Fields(line)[1:]...); got.Code != row.code || !strings.Contains(got.Stdout, row.says) {
				t.Errorf("%s: exit code %d, want %d and %q\n%s%s", line, got.Code, row.code, row.says, got.Stdout, got.Stderr)
			}
			time.Sleep(24 * time.Hour)
		}
		if len(lines) != 6 {
			t.Errorf("docs/ci.md has the commands %q", lines)
		}
	})
}

// shows matches commands that need no row of their own: they print the same for any
// workload. Experiments take minutes, or need what this machine may lack: the test
// tells them to do nothing.
var shows = regexp.MustCompile(`^bin/plimsoll (?:workloads show|(limit|sweep|ab|run)) `)

// The commands that README.md and docs/ show are valid, and those that need
// nothing but a lab, a record or a file are run as they stand.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	type row struct {
		line   string
		codes  []int  // that it may exit with
		notRun string // why it is only parsed
	}
	table := []row{
		{"bin/plimsoll check node-density --kubeconfig ~/.kube/config", []int{process.ExitPass}, ""},
		{"bin/plimsoll sweep node-density --kubeconfig ~/.kube/config --levels 50 --out first", []int{process.ExitPass, process.ExitInvalid}, ""}, // by what else the machine does
		{"bin/plimsoll lab up --nodes 100 --start-latency uniform:500ms,1.5s", []int{process.ExitPass}, ""},
		{"bin/plimsoll lab up vms --virt --nodes 20 --time-scale 60", nil, "the tests of internal/lab/virt start such a lab"},
		{"bin/plimsoll lab up slow --virt --time-scale 60 --virt-figures qps=5,burst=10", nil, "likewise"},
		{"bin/plimsoll lab up guests --virt --real-guests 2", nil, "likewise"},
		{"bin/plimsoll rbac node-density > account.yaml", []int{process.ExitPass}, ""},
		{"bin/plimsoll image push registry.example/team --image self", nil, "the registry is an example; a test of internal/test/e2e/kubernetes runs the image"},
		{"bin/plimsoll job node-density --image registry.example/team/plimsoll:latest -- --max 250 > job.yaml", []int{process.ExitPass}, ""},
		{"bin/plimsoll lab down", []int{process.ExitPass}, ""},
		{"bin/plimsoll lab doctor", []int{process.ExitPass, process.ExitFail}, ""}, // by what the machine has
		{"bin/plimsoll check gluster-volumes --set multiplex=false", []int{process.ExitPass}, ""},
		{"bin/plimsoll lint -R manifests/ runbook.md", []int{process.ExitFail}, ""}, // the runbook has a mistake
		{"bin/plimsoll lint --fix --dry-run vm.yaml", []int{process.ExitPass}, ""},
		{"bin/plimsoll query first plimsoll_level", []int{process.ExitPass}, ""},
		{`bin/plimsoll query first 'rate(process_cpu_seconds_total{job="kube-apiserver"}[30s])' --range`, []int{process.ExitPass}, ""},
		{"bin/plimsoll kube-burner init -c examples/kube-burner/density.yml --lab-nodes 10 --local-indexing", nil, "TestKubeBurnerInit runs such a command"},
		{"bin/plimsoll workloads list", []int{process.ExitPass}, ""},
		{"bin/plimsoll workloads export node-density my-density", []int{process.ExitPass}, ""},
	}
	lines := slices.DeleteFunc(documented(t), func(line string) bool {
		return simulates(line) || ofNights(line) || strings.HasPrefix(line, "bin/plimsoll tune ") // TestDocumentedAdvice
	})
	for _, line := range lines {
		if !shows.MatchString(line) && !slices.ContainsFunc(table, func(r row) bool { return r.line == line }) {
			t.Errorf("%s is shown and not in this test's table: add it, with the exit code that it has or why it is not run", line)
		}
	}

	p := suite.Lab(t, e2e.WideLab()...)
	t.Cleanup(func() { p.Run(t, "lab", "down") })
	// What the commands name: the program, a cluster, files.
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
	// Commands that are only parsed find a cluster and a lab that do not answer,
	// and no place for a lab of their own.
	withDefault := someLabs(t, map[string]string{"default": fmt.Sprintf(readyLab, "default"), "vms": fmt.Sprintf(readyLab, "vms")})
	parsed := func(line string, further ...string) harness.Outcome {
		args, _, _ := shell(strings.Replace(line, "bin/plimsoll", "./arguments", 1))
		args = bytes.ReplaceAll(args, []byte(".kube/config\x00"), []byte("away\x00"))
		args = bytes.ReplaceAll(args, []byte("\x00examples/"), []byte("\x00../../examples/"))
		args = bytes.ReplaceAll(args, []byte("=examples/"), []byte("=../../examples/"))
		env := map[string]string{"XDG_STATE_HOME": "/dev/null"}
		if strings.Contains(line, "--lab default") || strings.Contains(line, "--lab vms") {
			env["XDG_STATE_HOME"] = withDefault
		}
		return e2e.Command(t, env, append(strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00"), further...)...)
	}
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
		want := process.ExitCouldNotRun
		if strings.Contains(row.line, " kube-burner ") {
			want = 1 // as kube-burner has it
		}
		if got := parsed(row.line); got.Code != want {
			t.Errorf("%s (not run: %s): exit code %d, want %d where there is no lab\n%s", row.line, row.notRun, got.Code, want, got.Stderr)
		}
	}
	for _, line := range lines {
		of := shows.FindStringSubmatch(line)
		if of == nil || slices.ContainsFunc(table, func(r row) bool { return r.line == line }) {
			continue
		}
		var further []string
		if of[1] != "" {
			further = []string{"--dry-run"}
		}
		if got := parsed(line, further...); got.Code != process.ExitPass {
			t.Errorf("%s %s: exit code %d\n%s", line, strings.Join(further, " "), got.Code, got.Stderr)
		}
	}
}

// The calculators print what docs/advice.md shows of them, and each has an example.
func TestDocumentedAdvice(t *testing.T) {
	page, err := os.ReadFile("../../docs/advice.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	for _, block := range regexp.MustCompile("(?s)```\nbin/plimsoll (tune [^\n]+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		command, _, _ := strings.Cut(block[1], " --write")
		args, err := exec.Command("sh", "-c", `printf '%s\0' `+command).Output()
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")
		shown[words[1]] = true
		got := e2e.Command(t, nil, words...)
		if got.Code != process.ExitPass {
			t.Errorf("%s: exit code %d\n%s", command, got.Code, got.Stderr)
		}
		for line := range strings.Lines(block[2]) {
			if !strings.Contains(got.Stdout, line) {
				t.Errorf("%s does not print %q\n%s", command, line, got.Stdout)
			}
		}
	}
	for _, name := range []string{"subnet", "kubelet", "host", "ceph", "virt", "router", "network", "plan"} {
		if !shown[name] {
			t.Errorf("docs/advice.md has no example of tune %s", name)
		}
	}
}

// Pages link to files and headings that exist.
func TestDocumentedLinks(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob("../../docs/tables/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]+))?\)`)
	heading := regexp.MustCompile(`(?m)^#+ (.+)$`)
	unwanted := regexp.MustCompile(`[^a-z0-9 _-]`)
	found := 0
	for _, file := range slices.Concat(files, tables, []string{"../../README.md", "../../CONTRIBUTING.md", "../../ARCHITECTURE.md"}) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			to := file
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(file), m[1])
			}
			target, err := os.ReadFile(to)
			if err != nil && !errors.Is(err, syscall.EISDIR) {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
			if m[2] == "" {
				continue
			}
			if !slices.ContainsFunc(heading.FindAllStringSubmatch(string(target), -1), func(h []string) bool {
				return strings.ReplaceAll(unwanted.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == m[2]
			}) {
				t.Errorf("%s links to %s#%s, a heading that the page lacks", file, m[1], m[2])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d links were found", found)
	}
}

// No cell of a table is longer than a reader takes in at once, and the pages together
// are read in two hours.
func TestPagesAreShort(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		words += len(strings.Fields(string(text)))
		for _, row := range tableRows(t, filepath.Base(file)) {
			for _, cell := range row {
				if len(cell) > 200 {
					t.Errorf("%s has a cell of %d characters, at most 200: %.60s...", file, len(cell), cell)
				}
			}
		}
	}
	if most := 30_000; words > most {
		t.Errorf("the pages have %d words, at most %d", words, most)
	}
}

// The workload that docs/workload.md has as a whole is valid, and a dry run lists its deployments.
func TestDocumentedWorkload(t *testing.T) {
	dir := e2e.DocumentedFiles(t, "../../docs/workload.md")
	for _, args := range [][]string{{"lint", filepath.Join(dir, "deployments/workload.yaml")}, {"workloads", "show", filepath.Join(dir, "deployments")}} {
		if got := e2e.Command(t, nil, args...); got.Code != process.ExitPass {
			t.Errorf("%v: exit code %d\n%s%s", args, got.Code, got.Stdout, got.Stderr)
		}
	}
	got := e2e.Command(t, nil, "limit", filepath.Join(dir, "deployments"), "--lab-nodes", "10", "--dry-run")
	if got.Code != process.ExitPass || !strings.Contains(got.Stdout, "Deployment") {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
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
