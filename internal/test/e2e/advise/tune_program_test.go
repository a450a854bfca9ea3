package advise_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// The kubelet itself reads what is written for it: the one in the program, up
// to where it would begin to run. It decodes leniently what it cannot decode
// strictly, and says so.
func TestTheKubeletTakesItsConfiguration(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	dir := t.TempDir()
	// Whatever the test's machine has, kubelets refuse to run on version 1 of control
	// groups unless a flag allows it.
	dropIns := filepath.Join(dir, "kubelet.conf.d")
	if err := os.Mkdir(dropIns, 0o700); err != nil {
		t.Fatal(err)
	}
	const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	if err := os.WriteFile(filepath.Join(dropIns, "10-test.conf"), []byte(head+"failCgroupV1: false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kubelet := func(config string) string {
		path := filepath.Join(dir, "kubelet.yaml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		// A lock that is asked for and not named is what it stops at, behind all
		// looks at its configuration. Its certificate it has written by then.
		got := p.Run(t, "component", "kubelet", "--config", path, "--config-dir", dropIns, "--exit-on-lock-contention",
			"--root-dir", filepath.Join(dir, "kubelet"), "--cert-dir", filepath.Join(dir, "pki"))
		if got.Code == 0 {
			t.Fatalf("the kubelet ran\n%s", got.Stderr)
		}
		return got.Stderr
	}
	const atTheLock = "no lock file specified"
	complaint := func(says string) bool {
		return !strings.Contains(says, atTheLock) || strings.Contains(says, "strict decoding")
	}
	rows := []string{
		"--max-pods 500",
		"--max-pods 2500 --host-prefix 20 --cores 112 --memory 512Gi",
		"--max-pods 250 --measured kubelet@100=0.4,300Mi --measured kubelet@250=0.9,450Mi --measured sshd@250=0.1,20Mi --even-spread=false",
	}
	random := rand.New(rand.NewPCG(14, 9))
	for range suite.Size(1, 8) {
		rows = append(rows, strings.Join(drawFlags(random, variedParameters()["kubelet"]), " "))
	}
	taken := 0
	for i, args := range rows {
		for _, platform := range []string{"kubernetes", "openshift"} {
			written := t.TempDir()
			got := p.Run(t, append(append([]string{"tune", "kubelet", "--write", written}, strings.Fields(args)...), "--platform", platform)...)
			files, err := filepath.Glob(filepath.Join(written, "kubelet*"))
			if err != nil || got.Code > process.ExitFail && i < 3 {
				t.Fatalf("tune kubelet %s: %d %v\n%s", args, got.Code, err, got.Stderr)
			}
			if len(files) == 0 {
				continue // what was drawn is refused
			}
			taken++
			data, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			config := string(data)
			if platform == "openshift" {
				// What the machine config operator hands on to the kubelet.
				var object struct {
					Spec struct {
						KubeletConfig yaml.MapSlice `yaml:"kubeletConfig"`
					} `yaml:"spec"`
				}
				if err := yaml.Unmarshal(data, &object); err != nil {
					t.Fatal(err)
				}
				if data, err = yaml.Marshal(object.Spec.KubeletConfig); err != nil {
					t.Fatal(err)
				}
				config = head + string(data)
			}
			if says := kubelet(config); complaint(says) {
				t.Errorf("%s for %s:\n%s\n%s", args, platform, config, says)
			}
			for _, wrong := range []struct{ from, to string }{{"maxPods:", "maxPodz:"}, {"maxPods: ", "maxPods: -"}, {"kubeAPIBurst: ", "kubeAPIBurst: many"}} {
				if !strings.Contains(config, wrong.from) || i >= 3 {
					continue // what stays at its default is not written; three are enough to see that it minds
				}
				if says := kubelet(strings.Replace(config, wrong.from, wrong.to, 1)); !complaint(says) {
					t.Errorf("the kubelet does not mind %q\n%s", wrong.to, says)
				}
			}
		}
	}
	if taken < len(rows) {
		t.Errorf("only %d of %d configurations were written", taken, 2*len(rows))
	}
}

// A node of a cluster is read by a pod on it, which is gone afterwards.
func TestTuneReadsANode(t *testing.T) {
	suite.Long(t, "a real node is brought up")
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	got := p.Run(t, "tune", "host", "--node", "real-0", "--lab", p.Lab, "--interval", "200ms", "-o", "json")
	var a answer.Answer
	if err := json.Unmarshal([]byte(got.Stdout), &a); err != nil || got.Code != process.ExitPass {
		t.Fatalf("%d %v\n%s", got.Code, err, got.Stderr)
	}
	if !strings.HasSuffix(a.Title, "against node real-0") || a.Result("packets") == nil || a.Result("squeezed") == nil {
		t.Errorf("%s: %+v", a.Title, a.Results)
	}
	// Settings that no namespace has of its own are the machine's.
	machine := p.Run(t, "tune", "host", "--live", "--interval", "10ms", "--pods", "100", "-o", "json")
	var live answer.Answer
	if err := json.Unmarshal([]byte(machine.Stdout), &live); err != nil {
		t.Fatalf("%v\n%s", err, machine.Stderr)
	}
	node := p.Run(t, "tune", "host", "--node", "real-0", "--lab", p.Lab, "--interval", "10ms", "--pods", "100", "-o", "json")
	var b answer.Answer
	if err := json.Unmarshal([]byte(node.Stdout), &b); err != nil {
		t.Fatalf("%v\n%s", err, node.Stderr)
	}
	found := map[string]string{}
	for _, f := range b.Findings {
		found[f.What] = f.Now
	}
	for _, f := range live.Findings {
		if (f.What == "kernel.threads-max" || f.What == "fs.nr_open") && found[f.What] != f.Now {
			t.Errorf("%s: %q on the node, %q on its machine", f.What, found[f.What], f.Now)
		}
	}
	if got := p.Run(t, "tune", "network", "--node", "real-0", "--lab", p.Lab); got.Code != process.ExitPass || !strings.Contains(got.Stdout, "read from interface eth0") {
		t.Errorf("%d %s\n%s", got.Code, got.Stdout, got.Stderr)
	}
	for _, tt := range []struct {
		why  string
		args []string
		code int
		want string
	}{
		{"a node that is not there", []string{"--node", "nope", "--lab", p.Lab}, process.ExitUsage, "there is no such node"},
		{"a namespace that is not there", []string{"--node", "real-0", "--lab", p.Lab, "--namespace", "nope"}, process.ExitUsage, `namespaces "nope" not found`},
		{"an image that cannot be pulled", []string{"--node", "real-0", "--lab", p.Lab, "--node-image", "127.0.0.1:1/none:1"}, process.ExitCouldNotRun, "its pod does not start"},
	} {
		if got := p.Run(t, append([]string{"tune", "host"}, tt.args...)...); got.Code != tt.code || !strings.Contains(got.Stderr, tt.want) {
			t.Errorf("%s: %d %s", tt.why, got.Code, got.Stderr)
		}
	}
	if got := p.Run(t, "lab", "status", p.Lab, "-o", "json"); !strings.Contains(got.Stdout, `"pods": 0`) {
		t.Errorf("pods are left: %s", got.Stdout)
	}
}

// A simulated node has no host to read.
func TestTuneReadsNoSimulatedNode(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	got := p.Run(t, "tune", "host", "--node", "node-0000", "--lab", p.Lab)
	if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "simulated") {
		t.Errorf("%d %s", got.Code, got.Stderr)
	}
}
