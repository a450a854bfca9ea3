package tune

import (
	"encoding/json"
	"strings"
	"testing"

	ignition32 "github.com/coreos/ignition/v2/config/v3_2"
	"github.com/goccy/go-yaml"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	kubeletapi "k8s.io/kubelet/config/v1beta1"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Every object that is written has a reader that a test gives it to, or is
// known to have none that is to be had here. None of them is of a kind that an
// API server has by itself: they belong to operators, or to programs.
func TestEveryObjectHasAReader(t *testing.T) {
	readers := map[string]func(data []byte) error{
		"kubevirt.io/v1 KubeVirt":                                func(data []byte) error { return k8syaml.UnmarshalStrict(data, &kubevirt.KubeVirt{}) },
		"cdi.kubevirt.io/v1beta1 StorageProfile":                 func(data []byte) error { return k8syaml.UnmarshalStrict(data, &cdi.StorageProfile{}) },
		"kubelet.config.k8s.io/v1beta1 KubeletConfiguration":     func(data []byte) error { return k8syaml.UnmarshalStrict(data, &kubeletapi.KubeletConfiguration{}) },
		"machineconfiguration.openshift.io/v1 MachineConfig":     nil, // Ignition's parser, below
		"machineconfiguration.openshift.io/v1 KubeletConfig":     nil, // the kubelet reads what is in it, in a test of the program
		"machineconfiguration.openshift.io/v1 MachineConfigPool": nil, // lint's tables
		"operator.openshift.io/v1 IngressController":             nil, // lint's tables
		"operator.openshift.io/v1 Network":                       nil, // lint's tables
		"tuned.openshift.io/v1 Tuned":                            nil, // lint's tables
		"hco.kubevirt.io/v1beta1 HyperConverged":                 nil, // lint's tables
		"kubeadm.k8s.io/v1beta4 ClusterConfiguration":            nil,
	}
	seen := map[string]bool{}
	for _, a := range every(t) {
		for _, f := range a.Files {
			var object struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string `yaml:"kind"`
			}
			if !strings.HasSuffix(f.Path, ".yaml") && !strings.HasSuffix(f.Path, ".yml") || yaml.Unmarshal([]byte(f.Content), &object) != nil || object.Kind == "" {
				continue
			}
			kind := object.APIVersion + " " + object.Kind
			read, known := readers[kind]
			if !known {
				t.Errorf("%s: %s: who reads a %s?", a.Tool, f.Path, kind)
			}
			if seen[kind] = true; read == nil {
				continue
			}
			if err := read([]byte(f.Content)); err != nil {
				t.Errorf("%s: %s: %v", a.Tool, f.Path, err)
			}
			if read([]byte(f.Content+"unknownField: 1\n")) == nil {
				t.Errorf("%s: the reader minds nothing", kind)
			}
		}
	}
	for kind := range readers {
		if !seen[kind] {
			t.Errorf("no %s is written any more", kind)
		}
	}
}

// Ignition's own parser takes what MachineConfigs hold, without a complaint. It
// warns of keys that it does not know, which the operator refuses: the
// document's networkd and filesystem (V33) are two.
func TestIgnitionTakesTheMachineConfigs(t *testing.T) {
	seen := 0
	for _, a := range every(t) {
		for _, f := range a.Files {
			if !strings.Contains(f.Content, "kind: MachineConfig\n") {
				continue
			}
			seen++
			if got := ignitionSays(t, f.Content); got != "" {
				t.Errorf("%s: %s: %s", a.Tool, f.Path, got)
			}
			for _, wrong := range []struct{ from, to string }{
				{"    storage:\n", "    networkd: {}\n    storage:\n"},
				{"      - path: ", "      - filesystem: root\n        path: "},
				{"version: 3.2.0", "version: 2.2.0"},
				{"path: /", "path: "},
			} {
				changed := strings.Replace(f.Content, wrong.from, wrong.to, 1)
				if changed == f.Content {
					t.Fatalf("%s has no %q:\n%s", f.Path, wrong.from, f.Content)
				}
				if ignitionSays(t, changed) == "" {
					t.Errorf("Ignition does not mind %q", wrong.to)
				}
			}
		}
	}
	if seen < 2 {
		t.Errorf("only %d MachineConfigs were looked at: want one of kernel settings and one that drains a zone", seen)
	}
}

// ignitionSays returns Ignition's errors on the configuration in a MachineConfig,
// "" without any.
func ignitionSays(t *testing.T, manifest string) string {
	t.Helper()
	var object struct {
		Spec struct {
			Config map[string]any `yaml:"config"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	text, err := json.Marshal(object.Spec.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, report, err := ignition32.Parse(text)
	if err != nil {
		return err.Error()
	}
	return report.String()
}
