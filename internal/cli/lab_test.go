package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// someLabs returns a state directory with labs that have no processes.
func someLabs(t *testing.T, records map[string]string) string {
	t.Helper()
	state := t.TempDir()
	for name, text := range records {
		dir := filepath.Join(state, "plimsoll", "labs", name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "lab.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

const readyLab = `{"schema": "plimsoll/lab/v1", "name": %q, "id": "1", "ready": true}`

func TestLabMistakesAreExplained(t *testing.T) {
	state := someLabs(t, map[string]string{"default": fmt.Sprintf(readyLab, "default"), "big": fmt.Sprintf(readyLab, "big")})
	empty := t.TempDir()
	for _, tt := range []struct {
		args string
		env  map[string]string
		want []string // parts of standard error
		why  string
	}{
		{"lab status defalt", nil, []string{`no lab "defalt"`, `did you mean "default"?`}, "a name with a letter missing"},
		{"lab status elsewhere", nil, []string{`no lab "elsewhere"`, "there are: big, default"}, "a name like none"},
		{"lab status", map[string]string{"XDG_STATE_HOME": empty}, []string{`no lab "default"`, "lab up default"}, "there is none at all"},
		{"lab down bgi", nil, []string{`did you mean "big"?`}, "nothing is removed for a guess"},
		{"lab kubeconfig Big", nil, []string{"lab name", `'B'`}, "a name that none can have"},
		{"lab status ../default", nil, []string{"lab name", `'.'`}, "a path is no name"},
		{"lab status a b", nil, []string{`unexpected argument "b"`, "one lab at a time"}, "two names"},
		{"lab up default", nil, []string{`"default" exists already`, "lab down default"}, "it is there already"},
		{"lab up", nil, []string{`"default" exists already`}, "without a name it is the default one"},
		{"lab up a b", nil, []string{`unexpected argument "b"`}, "two names"},
		{"lab up new --nodes -1", nil, []string{"--nodes: -1 is not a number of simulated nodes", "for example --nodes 10"}, "fewer than none"},
		{"lab up new --nodes 0", nil, []string{"--nodes: a lab without nodes holds no pods"}, "none"},
		{"lab up new --nodes 100001", nil, []string{"--nodes: 100001 is not a number of simulated nodes: want 0 to 100000"}, "more than there are addresses"},
		{"lab up new --nodes many", nil, []string{`invalid argument "many"`, "--nodes"}, "no number"},
		{"lab up new --node 5", nil, []string{"unknown flag: --node", "did you mean --nodes?"}, "a flag"},
		{"lab up new --max-pods 0", nil, []string{"--max-pods: 0 is not", "want 1 to"}, "nodes that take nothing"},
		{"lab up new --max-pods -5", nil, []string{"--max-pods: -5 is not"}, "less than nothing"},
		{"lab up new --start-latency 1s", nil, []string{"--start-latency", `"1s" has no shape`, "uniform:500ms,1.5s"}, "a delay without a shape"},
		{"lab up new --start-latency normal:1s,2s", nil, []string{"--start-latency", `unknown shape "normal"`, "lognormal:P50,P99"}, "a shape that there is not"},
		{"lab up new --start-latency uniform:2s,1s", nil, []string{"--start-latency", "below the first"}, "the wrong way round"},
		{"lab up new --start-latency constant:fast", nil, []string{"--start-latency", `"fast" is not a duration`}, "no duration"},
		{"lab up new --start-latency constant:-1s", nil, []string{"--start-latency", "negative"}, "before it was asked for"},
		{"lab up -new", nil, []string{"unknown shorthand flag"}, "a name that looks like flags"},
		{"lab logs", nil, []string{"which component?", "lab logs --help"}, "no component"},
		{"lab logs kube-apisever", nil, []string{`no component "kube-apisever"`, `did you mean "kube-apiserver"?`}, "a component"},
		{"lab logs kubelet", nil, []string{`no component "kubelet"`, "simulated-nodes"}, "a component of another kind of cluster: all are named"},
		{"lab logs bigg etcd", nil, []string{`no lab "bigg"`, `did you mean "big"?`}, "another lab's log"},
		{"lab logs default etcd big", nil, []string{`unexpected argument "big"`}, "more than a lab and a component"},
		{"lab restart shceduler", nil, []string{`no component "shceduler"`}, "a component to restart"},
		{"lab restart", nil, []string{"which component?"}, "no component to restart"},
		{"lab status -o yaml", nil, []string{`-o "yaml"`, "text or json"}, "an output format"},
		{"lab list -o jsn", nil, []string{`did you mean "json"?`}, "an output format"},
		{"lab doctor -o xml", nil, []string{"text or json"}, "an output format"},
		{"lab list all", nil, []string{`unexpected argument "all"`}, "list takes no name"},
		{"lab doctor me", nil, []string{`unexpected argument "me"`}, "doctor takes no name"},
		{"lab down --all big", nil, []string{"--all", `"big"`, "contradict"}, "all and one"},
		{"lab up new --node-cpus 1", nil, []string{"--node-cpus: it belongs to a real node", "add --real-node"}, "what belongs to a real node without one"},
		{"lab up new --real-node --node-memory much", nil, []string{`"much" is not a size: want bytes such as 4096, 512Mi`}, "memory that is none"},
		{"sweep node-density --levels 1 --lab-node-cpus 1", nil, []string{"--lab-node-cpus", "real node"}, "an experiment with a part of a node that is not there"},
		{"image bild agent", nil, []string{"no command 'image bild'", `did you mean "build"?`}, "a verb of images"},
		{"image build agnet", nil, []string{`no image "agnet"`, `did you mean "agent"?`}, "an image"},
		{"image save agent", nil, []string{"an image and a file"}, "no file"},
		{"image push", nil, []string{"which registry?"}, "no registry"},
		{"image push r.example --from no/such/release", nil, []string{"--from", "no such file", "directory of a release"}, "neither file nor release"},
		{"image push r.example --registry-ca no/such.pem", nil, []string{"--registry-ca", "PEM file"}, "no authority"},
		{"image build postgresql --from .", nil, []string{"no release has it", "agent, self"}, "an image that no release has"},
		{"image list", nil, []string{"which workload?"}, "no workload"},
		{"image list node-density --set image", nil, []string{"--set"}, "a parameter without a value"},
		{"lab dwon", nil, []string{"no command 'lab dwon'", `did you mean "down"?`}, "a verb"},
		{"lab status", map[string]string{"XDG_STATE_HOME": "state"}, []string{`relative path "state"`}, "a state directory that depends on where one is"},
		{"lab status", map[string]string{"XDG_STATE_HOME": ""}, []string{"neither HOME nor XDG_STATE_HOME", "set XDG_STATE_HOME"}, "no home"},
	} {
		env := map[string]string{"XDG_STATE_HOME": state}
		maps.Copy(env, tt.env)
		got := e2e.Command(t, env, strings.Fields(tt.args)...)
		if got.Code != process.ExitUsage || got.Stdout != "" {
			t.Errorf("%s (%s): exit code %d, want 2; standard output %q\n%s", tt.args, tt.why, got.Code, got.Stdout, got.Stderr)
		}
		for _, part := range tt.want {
			if !strings.Contains(got.Stderr, part) {
				t.Errorf("%s (%s): standard error lacks %q:\n%s", tt.args, tt.why, part, got.Stderr)
			}
		}
	}
	for _, name := range []string{"default", "big"} {
		if _, err := os.Stat(filepath.Join(state, "plimsoll", "labs", name, "lab.json")); err != nil {
			t.Errorf("a mistake removed a lab: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(state, "plimsoll", "labs", "new")); err == nil {
		t.Error("a mistake made a lab")
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("looking for a lab made %v, %v", entries, err)
	}
}

// A registry that cannot be is a mistake, which is seen once there is an image.
func TestARegistryThatCannotBe(t *testing.T) {
	if !image.HasAgent() {
		t.Skip("needs the agent in the tests: make build")
	}
	if got := e2e.Command(t, nil, "image", "push", "not/A/Registry"); got.Code != process.ExitUsage || got.Stdout != "" || !strings.Contains(got.Stderr, "image") {
		t.Errorf("exit code %d, want 2; standard output %q\n%s", got.Code, got.Stdout, got.Stderr)
	}
}

// What is wrong with a lab is not a mistake of the user's.
func TestLabFailuresAreNoMistakes(t *testing.T) {
	got := e2e.Command(t, nil, "lab", "up")
	if got.Code != process.ExitCouldNotRun || got.Stdout != "" || !strings.Contains(got.Stderr, `bring up lab "default"`) {
		t.Errorf("a lab that does not come up: %d\n%s", got.Code, got.Stderr)
	}
	state := someLabs(t, map[string]string{"a": fmt.Sprintf(readyLab, "a"), "torn": `{"schema":`})
	env := map[string]string{"XDG_STATE_HOME": state}
	if got := e2e.Command(t, env, "lab", "logs", "a", "etcd"); got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "read the log of etcd") {
		t.Errorf("a log that is lost: %d\n%s", got.Code, got.Stderr)
	}
	if got := e2e.Command(t, env, "lab", "restart", "torn", "etcd"); got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "lab.json") {
		t.Errorf("a restart in a damaged lab: %d\n%s", got.Code, got.Stderr)
	}
	got = e2e.Command(t, env, "lab", "status", "torn")
	if got.Code != 0 || !strings.Contains(got.Stdout, "lab torn: broken, unknown nodes") || !strings.Contains(got.Stderr, "lab.json") || !strings.Contains(got.Stderr, "lab down torn") {
		t.Errorf("the status of a damaged lab: %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	got = e2e.Command(t, env, "lab", "list")
	if got.Code != 0 || !strings.Contains(got.Stdout, "torn") || strings.Count(got.Stdout, "broken") != 2 {
		t.Errorf("a damaged lab in the list: %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := e2e.Command(t, env, "lab", "down", "--all"); got.Code != 0 {
		t.Errorf("down of a damaged lab: %d\n%s", got.Code, got.Stderr)
	}
	if got := e2e.Command(t, env, "lab", "list"); got.Code != 0 || got.Stdout != "" || !strings.Contains(got.Stderr, "there are no labs") {
		t.Errorf("the list when there is none: %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := e2e.Command(t, env, "lab", "list", "-o", "json"); strings.TrimSpace(got.Stdout) != "[]" {
		t.Errorf("the list when there is none, for programs: %q", got.Stdout)
	}
	if got := e2e.Command(t, env, "lab", "down", "--all"); got.Code != 0 {
		t.Errorf("down of none at all: %d\n%s", got.Code, got.Stderr)
	}
}

func TestDoctorHelps(t *testing.T) {
	text, structured := e2e.Command(t, nil, "lab", "doctor"), e2e.Command(t, nil, "lab", "doctor", "-o", "json")
	var findings []lab.Requirement
	if err := json.Unmarshal([]byte(structured.Stdout), &findings); err != nil || len(findings) == 0 {
		t.Fatalf("%v in %q", err, structured.Stdout)
	}
	want := process.ExitPass
	if !lab.Healthy(findings) {
		want = process.ExitFail
	}
	if text.Code != want || structured.Code != want {
		t.Errorf("exit codes %d and %d, want %d", text.Code, structured.Code, want)
	}
	lines := strings.Split(strings.TrimSpace(text.Stdout), "\n")
	if len(lines) != len(findings)+1 {
		t.Errorf("%d lines of %d findings:\n%s", len(lines), len(findings), text.Stdout)
	}
	for _, f := range findings {
		i := slices.IndexFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, f.For) && strings.Contains(line, f.What) && strings.Contains(line, string(f.Grade))
		})
		if i < 0 || f.Grade != lab.Good && !strings.Contains(lines[i], f.Remedy) {
			t.Errorf("finding %+v is not shown with its remedy", f)
		}
	}
}

// The images of a workload are listed as its pods would name them, each once.
func TestImagesOfAWorkload(t *testing.T) {
	for _, tt := range []struct{ args, want, why string }{
		{"node-density-cni", "localhost/plimsoll-agent:latest\n", "of the nodes"},
		{"node-density-heavy --images r.example/team", "r.example/team/plimsoll-agent:latest\nr.example/team/plimsoll-postgresql:latest\n", "of a registry"},
		{"node-density-cni --set image=r.example/app:2", "r.example/app:2\n", "another"},
		{"ingress --images r.example/team", "r.example/team/plimsoll-agent:latest\n", "of clients and back ends"},
		{"simulated", "", "none"},
	} {
		got := e2e.Command(t, nil, strings.Fields("image list "+tt.args)...)
		if got.Code != 0 || got.Stdout != tt.want {
			t.Errorf("%s (%s): exit code %d, %q, want %q\n%s", tt.args, tt.why, got.Code, got.Stdout, tt.want, got.Stderr)
		}
	}
}

// In a pod, hints that name a cluster have the flag for the pod's own, too; elsewhere they do not.
func TestHintsInAPodNameItsCluster(t *testing.T) {
	pod := map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
	for _, args := range []string{"check", "clean", "clean --force", "tune host --node n", "kube-burner health-check"} {
		for in, env := range map[bool]map[string]string{true: pod, false: nil} {
			got := e2e.Command(t, env, strings.Fields(args)...)
			if strings.Contains(got.Stderr, "--in-cluster") != in || !strings.Contains(got.Stderr, "--kubeconfig FILE") {
				t.Errorf("%s, in a pod %v:\n%s%s", args, in, got.Stdout, got.Stderr)
			}
		}
	}
}

// Where the home directory cannot be written, the error says which variable names another.
func TestAHomeThatIsReadOnly(t *testing.T) {
	got := e2e.Command(t, map[string]string{"HOME": "/sys", "XDG_STATE_HOME": ""}, "lab", "up", "new")
	if got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "/sys/.local") || !strings.Contains(got.Stderr, "hint: set XDG_STATE_HOME to a directory that you may write to") {
		t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
	}
}
