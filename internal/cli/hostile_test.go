package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
	"plimsoll.dev/plimsoll/internal/text/size"
)

// What a plan, a workload, a job file, a template or a record of somebody else's
// names is neither run nor written over.
func TestWhatAPlanBringsInIsData(t *testing.T) {
	t.Parallel()
	_, err := fio.Find(context.Background(), "")
	harness.Able(t, err)
	_, err = haproxy.Find(context.Background(), "")
	harness.Able(t, err)
	p := suite.Program(t)
	ran, precious, outside := filepath.Join(p.Dir, "ran"), filepath.Join(p.Dir, "precious"), filepath.Join(t.TempDir(), "outside")
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	kept := strings.Repeat("kept ", 10_000)
	write(precious, kept, 0o666)
	write(outside, "[a]\nrw=read\n", 0o666)
	write("evil", "#!/bin/sh\ntouch "+ran+"\necho fio-3.41\n", 0o755)
	if err := os.Symlink(outside, filepath.Join(p.Dir, "inside.fio")); err != nil {
		t.Fatal(err)
	}
	plan := func(text string) []string {
		write("plan.yaml", "schema: plimsoll/experiment/v1\n"+text, 0o644)
		return []string{"run", "plan.yaml", "--out", "refused"}
	}
	job := func(options string) func() []string {
		return func() []string {
			write("job.fio", "[a]\nrw=write\nsize=64k\n"+options+"\n", 0o644)
			return plan("workload: io-volumes\nparams: {path: ., job: job.fio}\naxis: {levels: [1]}\n")
		}
	}
	template := func(lines string) func() []string {
		return func() []string {
			text, err := os.ReadFile("../system/router/haproxy/router.cfg.tmpl")
			if err != nil {
				t.Fatal(err)
			}
			write("router.cfg", strings.Replace(string(text), "global\n", "global\n"+lines+"\n", 1), 0o644)
			return plan("workload: router\nparams: {template: router.cfg}\naxis: {name: connections, levels: [1]}\nhold: 1s\n")
		}
	}
	of := func(text string) func() []string { return func() []string { return plan(text) } }
	config := func(user string) func() []string {
		return func() []string {
			write("kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {"+user+"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n", 0o600)
			return plan("workload: node-density\ntarget: {kubeconfig: kubeconfig}\naxis: {levels: [1]}\n")
		}
	}
	own := func(target, params, template string) func() []string {
		return func() []string {
			write("own/workload.yaml", "schema: plimsoll/workload/v1\nname: own\nhelp: of somebody else's\ntarget: "+target+"\n"+params+"goals: {ready: [all Ready]}\nprimary: Ready p50\n", 0o644)
			write("own/config.yml", "jobs:\n- name: own\n  jobType: create\n  jobIterations: 1\n  namespace: own\n  objects: [{objectTemplate: pod.yml, replicas: 1}]\n", 0o644)
			write("own/pod.yml", template, 0o644)
			return plan("workload: ./own\n")
		}
	}
	const pods = "config: config.yml\naxes: [{name: pods-per-node, unit: pods/node, help: pods, default: {from: 1, step: 1, max: 5}}]\n"
	for _, c := range []struct {
		why  string
		args func() []string
		says string
	}{
		{"a job that loads code", job("ioengine=external:" + p.Dir + "/evil"), "ioengine"},
		{"a job that maps a file over", job("iomem=mmapshared:" + precious), "iomem"},
		{"a job that runs a command first", job("exec_prerun=" + p.Dir + "/evil"), "exec_prerun"},
		{"a job on a file of others", job("filename=/proc/self/root" + precious), "filename"},
		{"a job on a file above its own", job("filename=../../../precious"), "filename"},
		{"a job that logs to a file", job("write_iolog=" + precious), "write_iolog"},
		{"a job that includes another", job("include " + outside), "include"},
		{"a template that loads Lua", template("  lua-load " + p.Dir + "/evil"), "lua-load"},
		{"a template that runs checks", template("  external-check\n  insecure-fork-wanted"), "external-check"},
		{"a template that sends a file as an error", template("defaults\n  errorfile 503 " + precious), "errorfile"},
		{"a template that writes where it runs", template("  pidfile " + precious), "pidfile"},
		{"a plan's own fio", of("workload: io-volumes\nparams: {path: ., fio: ./evil}\naxis: {levels: [1]}\n"), "params.fio names the program ./evil"},
		{"a plan's own fio, by a whole path", of("workload: io-volumes\nparams: {path: ., fio: " + p.Dir + "/evil}\naxis: {levels: [1]}\n"), "params.fio names the program"},
		{"an arm's own HAProxy", of("workload: router\naxis: {name: connections, level: 1}\narms: [{name: a}, {name: b, params: {haproxy: ./evil}}]\nrepeat: 2\n"), "arms[1].params.haproxy names the program ./evil"},
		{"a cell's own fio", of("workload: io-volumes\nparams: {path: .}\nvary: {fio: ['', ./evil]}\naxis: {levels: [1]}\n"), "vary.fio[1] names the program ./evil"},
		{"a job elsewhere on this machine", of("workload: io-volumes\nparams: {path: ., job: " + outside + "}\naxis: {levels: [1]}\n"), "names the file " + outside},
		{"a link that leads there", of("workload: io-volumes\nparams: {path: ., job: inside.fio}\naxis: {levels: [1]}\n"), "names the file inside.fio"},
		{"a workload's own fio", own("io", "axes: [{name: volumes, unit: volumes, help: volumes, default: {from: 1, step: 1, max: 5}}]\nparams: [{name: fio, type: string, default: ./evil, help: a program}]\n", ""), "must be empty"},
		{"a kubeconfig that runs a program", config("exec: {apiVersion: client.authentication.k8s.io/v1, command: " + p.Dir + "/evil, interactiveMode: Never}"), "names the program " + p.Dir + "/evil"},
		{"a kubeconfig that sends a file", config("tokenFile: " + outside), "names the file " + outside},
		{"a workload with a hook", func() []string {
			args := own("kubernetes", pods, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")()
			write("own/config.yml", "jobs:\n- name: own\n  jobType: create\n  jobIterations: 1\n  namespace: own\n  hooks: [{cmd: ["+p.Dir+"/evil], when: beforeJobExecution}]\n  objects: [{objectTemplate: pod.yml, replicas: 1}]\n", 0o644)
			return args
		}, "hooks run where a configuration is run as it stands"},
		{"a template that reads the environment", own("kubernetes", pods, `{{ env "HOME" }}`), `calls "env"`},
		{"a template that reads outside", own("kubernetes", pods, `a: {{ ReadFile "../precious" }}`), "../precious"},
		{"a template that reads a file of any size", func() []string {
			args := own("kubernetes", pods, `a: {{ ReadFile "large" }}`)()
			write("own/large", strings.Repeat("x", size.MaxFile+1), 0o644)
			return args
		}, "4194304 bytes (4 MiB), which is the most"},
		{"a template that reads what has no end", func() []string {
			args := own("kubernetes", pods, `a: {{ ReadFile "pipe" }}`)()
			if err := unix.Mkfifo(filepath.Join(p.Dir, "own", "pipe"), 0o644); err != nil {
				t.Fatal(err)
			}
			return args
		}, "pipe is not a file that can be read whole"},
		{"a job file of any size", func() []string {
			write("large.fio", "[a]\nrw=read\n"+strings.Repeat("#\n", size.MaxFile/2), 0o644)
			return plan("workload: io-volumes\nparams: {path: ., job: large.fio}\naxis: {levels: [1]}\n")
		}, "4194304 bytes (4 MiB), which is the most"},
		{"user data that ends its YAML, and begins another object", of("workload: vm-io\nparams: {image: \"a\\n---\\nkind: Secret\"}\naxis: {levels: [1]}\n"), "image"},
		{"a command in the user data of machines", of("workload: vm-io\nparams: {block: \"4k; touch " + ran + "\"}\naxis: {levels: [1]}\n"), "block"},
		{"a name that ends a text of C", of("name: \"a\\0b\"\nworkload: simulated\naxis: {levels: [1]}\n"), `"a\x00b" has a character that cannot be printed`},
		{"a name that begins a line of its own", of("name: \"a\\nplimsoll: all is well\"\nworkload: simulated\naxis: {levels: [1]}\n"), "has a character that cannot be printed"},
		{"an arm that steers the terminal", of("workload: simulated\naxis: {level: 1}\narms: [{name: a}, {name: \"b\\e[31m\"}]\nrepeat: 2\n"), "arms[1].name"},
		{"a workload outside", of("workload: ../../../etc\naxis: {levels: [1]}\n"), "names the workload ../../../etc"},
		{"a namespace that is a way up", of("workload: node-density\ntarget: {namespace: ../nodes}\naxis: {levels: [1]}\n"), `"../nodes" is not the name of a namespace`},
		{"a namespace that begins another object of a manifest", func() []string {
			return []string{"rbac", "node-density", "--namespace", "a}\n---\nkind: Secret"}
		}, "is not the name of a namespace"},
		{"a workload whose name begins another object", func() []string {
			args := own("kubernetes", pods, "")()
			write("own/workload.yaml", "schema: plimsoll/workload/v1\nname: \"own}\\n---\\nkind: Secret\"\nhelp: x\ntarget: kubernetes\n"+pods+"goals: {ready: [all Ready]}\nprimary: Ready p50\n", 0o644)
			return args
		}, "must consist of lower case letters"},
		{"a lab that is a way up", of("workload: node-density\ntarget: {labName: ../../own}\naxis: {levels: [1]}\n"), `lab name: "../../own" has '.'`},
		{"a registry that is a way up", of("workload: node-density-cni\ntarget: {images: registry.example/../x}\naxis: {levels: [1]}\n"), `no part of a name is ".."`},
		{"a registry with a password", func() []string {
			return []string{"sweep", "node-density-cni", "--levels", "1", "--dry-run", "--images", "http://user:" + e2e.Planted + "@registry.example/x"}
		}, `image "registry.example/x/plimsoll-agent:latest": it has no scheme, no user`},
		{"a plan whose aliases are a billion values", of("workload: simulated\nparams:\n  a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n  b: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n  c: &c [*b, *b, *b, *b, *b, *b, *b, *b]\n  d: &d [*c, *c, *c, *c, *c, *c, *c, *c]\n  e: &e [*d, *d, *d, *d, *d, *d, *d, *d]\n  f: &f [*e, *e, *e, *e, *e, *e, *e, *e]\n  g: [*f, *f, *f, *f, *f, *f, *f, *f]\n"), "aliases blow this up"},
		{"a plan that nests without end", of("workload: simulated\nparams: " + strings.Repeat("[", 100_000) + "\n"), "values nest more than 500 deep"},
		{"a file to check that fills the memory", func() []string {
			write("large.yaml", "", 0o644)
			if err := os.Truncate(filepath.Join(p.Dir, "large.yaml"), 64<<20+1); err != nil {
				t.Fatal(err)
			}
			return []string{"lint", "large.yaml"}
		}, "more than 64 MiB, which is the most"},
		{"a workload whose template lies outside", func() []string {
			args := own("kubernetes", pods, "")()
			write("own/config.yml", "jobs:\n- name: own\n  jobType: create\n  jobIterations: 1\n  namespace: own\n  objects: [{objectTemplate: "+precious+", replicas: 1}]\n", 0o644)
			return args
		}, precious},
	} {
		got := p.Run(t, c.args()...)
		if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, c.says) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", c.why, got.Code, process.ExitUsage, c.says, got.Stderr)
		}
		if text, err := os.ReadFile(precious); err != nil || string(text) != kept {
			t.Fatalf("%s: overwrote a file: %v", c.why, err)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Fatalf("%s: ran a program", c.why)
		}
		if strings.Contains(got.Stdout+got.Stderr, e2e.Planted) {
			t.Errorf("%s: it shows the password: %s", c.why, got.Stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "refused")); err == nil {
		t.Error("a run directory was made")
	}
	// The name of an experiment is a part of one directory's name, whatever it leads to.
	for _, name := range []string{"../outside", "/etc/outside", "..", strings.Repeat("long", 100)} {
		if got := p.Run(t, plan("name: " + name + "\nworkload: simulated\naxis: {levels: [1]}\nhold: 1ms\n")[:2]...); got.Code != process.ExitPass {
			t.Errorf("the name %.20q: exit code %d\n%s", name, got.Code, got.Stderr)
		}
	}
	if runs, err := filepath.Glob(filepath.Join(p.Dir, "plimsoll-runs", "*", record.HistoryFile)); err != nil || len(runs) != 4 {
		t.Errorf("4 names have led to %q, %v", runs, err)
	}
	// A dry run names them, and runs nothing either.
	got := p.Run(t, append(plan("workload: io-volumes\nparams: {path: ., fio: ./evil, job: inside.fio}\naxis: {levels: [1]}\n"), "--dry-run")...)
	if _, err := os.Stat(ran); err == nil || !strings.Contains(got.Stdout, "would use: the program ./evil, if --allow names it, too (params.fio); the file inside.fio, if --allow names it, too (params.job); the directory . (params.path)") {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	// Who allows it is taken at their word.
	got = p.Run(t, append(plan("workload: io-volumes\nparams: {path: ., fio: ./evil}\naxis: {levels: [1]}\n"), "--allow", "evil")...)
	if _, err := os.Stat(ran); err != nil {
		t.Errorf("what is allowed was not run: %v\n%s", err, got.Stderr)
	}
}

// A plan may come from somebody else. Files, directories and addresses elsewhere that it
// names are neither read, written to nor asked unless the command line names them, too. A
// dry run lists them, lint reports them, and neither reads them.
func TestWhatAPlanNamesElsewhere(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret.yaml")
	if err := errors.Join(os.WriteFile(secret, []byte("jobs: hunter2\nhunter2\n"), 0o600), os.Symlink(outside, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "plan.yaml")
	for _, tt := range []struct{ why, text, names string }{
		{"a list of requests", "workload: http\nparams: {server: 'http://127.0.0.1:1', urls: SECRET}\naxis: {name: connections, levels: [1]}", "file SECRET"},
		{"a list behind a link", "workload: http\nparams: {server: 'http://127.0.0.1:1', urls: DIR/link/secret.yaml}\naxis: {name: connections, levels: [1]}", "file DIR/link/secret.yaml"},
		{"certificates of an arm", "workload: http\nparams: {server: 'https://127.0.0.1:1'}\naxis: {name: connections, level: 1}\narms: [{name: a}, {name: b, params: {ca: SECRET}}]\nrepeat: 2", "file SECRET"},
		{"a template", "workload: router\nparams: {template: SECRET}\naxis: {name: connections, levels: [1]}", "file SECRET"},
		{"a directory that is written to", "workload: io-volumes\nparams: {path: OUTSIDE}\naxis: {levels: [1]}", "directory OUTSIDE"},
		{"one of several directories", "workload: io-volumes\nparams: {path: DIR+OUTSIDE}\naxis: {levels: [1]}", "directory OUTSIDE"},
		{"a directory behind a link", "workload: small-files\nparams: {path: DIR/link}\naxis: {name: workers, levels: [1]}", "directory DIR/link"},
		{"a directory of a cell", "workload: small-files\nvary: {path: [DIR, OUTSIDE]}\naxis: {name: workers, levels: [1]}", "directory OUTSIDE"},
		{"a workload", "workload: OUTSIDE\naxis: {levels: [1]}", "workload OUTSIDE"},
		{"a configuration", "workload: SECRET\naxis: {levels: [1]}", "workload SECRET"},
		{"a kubeconfig", "workload: node-density\ntarget: {kubeconfig: SECRET}\naxis: {levels: [1]}", "file SECRET"},
		{"a Prometheus", "workload: simulated\nprometheus: {url: 'http://127.0.0.1:1/x'}\naxis: {levels: [1]}", "address http://127.0.0.1:1/x"},
	} {
		fill := strings.NewReplacer("OUTSIDE", outside, "SECRET", secret, "DIR", dir).Replace
		if err := os.WriteFile(file, []byte("schema: plimsoll/experiment/v1\n"+fill(tt.text)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		names := fill(tt.names)
		for _, args := range [][]string{{"run", file, "--out", filepath.Join(dir, "r")}, {"run", file, "--dry-run"}, {"lint", file}} {
			got := e2e.Command(t, nil, args...)
			want := process.ExitUsage
			if args[0] == "lint" {
				want = process.ExitFail
			}
			if all := got.Stdout + got.Stderr; got.Code != want || !strings.Contains(all, "names the "+names) || strings.Contains(all, "hunter2") {
				t.Errorf("%s: %q: exit code %d\n%s", tt.why, args, got.Code, all)
			}
			if len(args) == 3 && !strings.Contains(got.Stdout, "the "+names+", if --allow names it, too") {
				t.Errorf("%s is not listed: %s", tt.why, got.Stdout)
			}
		}
		_, name, _ := strings.Cut(names, " ")
		got := e2e.Command(t, nil, "run", file, "--dry-run", "--allow", name)
		if strings.Contains(got.Stdout+got.Stderr, "--allow") {
			t.Errorf("%s: it was allowed: %s%s", tt.why, got.Stdout, got.Stderr)
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("there is now %v, %v", entries, err)
	}
}
