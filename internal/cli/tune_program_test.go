package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// The kubelet itself reads what is written for it: the one in the program, up
// to where it would begin to run. It decodes leniently what it cannot decode
// strictly, and says so.
func TestTheKubeletTakesItsConfiguration(t *testing.T) {
	p := newProgram(t)
	dir := t.TempDir()
	// Whatever of its own the test's machine has, kubelets refuse to run on
	// version 1 of control groups unless they are told to.
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
		// looks at its configuration and before it does anything.
		got := p.run(t, "component", "kubelet", "--config", path, "--config-dir", dropIns, "--exit-on-lock-contention")
		if got.code == 0 {
			t.Fatalf("the kubelet ran\n%s", got.stderr)
		}
		return got.stderr
	}
	const atTheLock = "no lock file specified"
	complaint := func(says string) bool {
		return !strings.Contains(says, atTheLock) || strings.Contains(says, "strict decoding")
	}
	for _, args := range []string{
		"--max-pods 500",
		"--max-pods 2500 --host-prefix 20 --cores 112 --memory 512Gi",
		"--max-pods 250 --measured kubelet@100=0.4,300Mi --measured kubelet@250=0.9,450Mi --measured sshd@250=0.1,20Mi --even-spread=false",
	} {
		for _, platform := range []string{"kubernetes", "openshift"} {
			written := t.TempDir()
			if got := command(t, nil, append([]string{"tune", "kubelet", "--platform", platform, "--write", written}, strings.Fields(args)...)...); got.code != exitHeld {
				t.Fatalf("tune kubelet %s: %d\n%s", args, got.code, got.stderr)
			}
			name := map[string]string{"kubernetes": "kubelet-config.yaml", "openshift": "kubeletconfig-worker.yaml"}[platform]
			data, err := os.ReadFile(filepath.Join(written, name))
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
				if !strings.Contains(config, wrong.from) {
					continue // what stays at its default is not written
				}
				if says := kubelet(strings.Replace(config, wrong.from, wrong.to, 1)); !complaint(says) {
					t.Errorf("the kubelet does not mind %q\n%s", wrong.to, says)
				}
			}
		}
	}
}
