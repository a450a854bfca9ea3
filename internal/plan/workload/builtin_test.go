package workload_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/workloads"
)

const uuid = "0b1c2d3e-4f50-4161-8273-8495a6b7c8d9"

var targets = process.Targets()

// TestBuiltIn holds for every built-in workload.
func TestBuiltIn(t *testing.T) {
	all, err := workload.List(workloads.FS(), targets)
	if err != nil {
		t.Fatal(err)
	}
	onDisk, err := workload.Names(os.DirFS("../../../workloads"))
	if err != nil || len(all) != len(onDisk) {
		t.Errorf("embedded are %d workloads of %v, %v", len(all), onDisk, err)
	}
	for _, w := range all {
		t.Run(w.Name, func(t *testing.T) {
			p, err := w.Resolve(nil)
			if err != nil {
				t.Fatal(err)
			}
			if !w.Target.Configured {
				return // its target makes of the parameters what it likes
			}
			c, err := w.Config(p, uuid)
			if err != nil {
				t.Fatal(err)
			}
			if refused, noted := kubeburner.Served(c); len(refused)+len(noted) > 0 {
				t.Errorf("asks for what the engine does not do: %v, %v", refused, noted)
			}
			templates, err := c.Templates(w.Files())
			if err != nil {
				t.Fatal(err)
			}
			usesRunNamespaces(t, c)
			hasFastPath(t, w.Name, c, templates)
			withoutParameters(t, w, c)
			exported(t, w, c)
			for _, component := range w.Components {
				if component.Job >= len(c.Jobs) || component.Object >= len(c.Jobs[component.Job].Objects) {
					t.Errorf("there is no object of the component %s", component.Name)
				}
			}
		})
	}
}

// Machines that are logged in to are given the keys of the run in a form that cloud-init
// and KubeVirt take: a cloud-config of at most 2,048 bytes.
func TestMachinesAreGivenKeys(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	host, login := string(pem.EncodeToMemory(block)), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKK7NOlyL+dizrwEQK+rw9CgLnAQOGs+FdGtbwO+R8rw"
	for _, given := range []map[string]string{{"workload": "vm-io"}, {"workload": "vm-migration", "guestIOPS": "1000000"}} {
		w, err := workload.Load(workloads.FS(), given["workload"], targets)
		if err != nil {
			t.Fatal(err)
		}
		delete(given, "workload")
		given["sshKey"], given["sshHostKey"] = login, host
		p, err := w.Resolve(given)
		if err != nil {
			t.Fatal(err)
		}
		c, err := w.Config(p, uuid)
		if err != nil {
			t.Fatal(err)
		}
		templates, err := c.Templates(w.Files())
		if err != nil {
			t.Fatal(err)
		}
		docs, err := templates[0][0].Render(kubeburner.Vars{Iteration: 999, Replica: 15, UUID: uuid, Input: c.Jobs[0].Objects[0].InputVars})
		if err != nil {
			t.Fatal(err)
		}
		volumes, _, err := unstructured.NestedSlice(docs[0], "spec", "template", "spec", "volumes")
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := unstructured.NestedString(volumes[len(volumes)-1].(map[string]any), "cloudInitNoCloud", "userData")
		if err != nil || len(data) > 2048 || !strings.HasPrefix(data, "#cloud-config\n") {
			t.Errorf("%s: %v, %d bytes of user data:\n%s", w.Name, err, len(data), data)
		}
		var config struct {
			Root       bool              `json:"disable_root"`
			Authorized []string          `json:"ssh_authorized_keys"`
			Keys       map[string]string `json:"ssh_keys"`
			Run        []string          `json:"runcmd"`
		}
		config.Root = true
		if err := yaml.Unmarshal([]byte(data), &config); err != nil || config.Root || config.Keys["ed25519_private"] != host || len(config.Authorized) != 1 || config.Authorized[0] != login || len(config.Run) != 1 || !strings.Contains(config.Run[0], "fio ") {
			t.Errorf("%s: %v, %+v of\n%s", w.Name, err, config, data)
		}
	}
}

// usesRunNamespaces asks that two runs side by side do not meet.
func usesRunNamespaces(t *testing.T, c *kubeburner.Config) {
	for i := range c.Jobs {
		if ns := c.Jobs[i].NamespaceOf(0); !regexp.MustCompile(`-0b1c2d3e(-|$)`).MatchString(ns) {
			t.Errorf("the namespace %q is not of this run alone", ns)
		}
		if c.Jobs[i].Cleanup {
			t.Errorf("job %s removes the namespaces of other runs", c.Jobs[i].Name)
		}
	}
}

// hasFastPath asks that objects come out of stencils. Those with an address of
// a service compute with the iteration and cannot; they come by twos and threes
// on nodes that start a few pods a second.
func hasFastPath(t *testing.T, name string, c *kubeburner.Config, templates [][]*kubeburner.Template) {
	computing := map[string][]string{
		"node-density-cni":   {"service.yml", "client.yml"},
		"node-density-heavy": {"service.yml", "application.yml"},
	}
	for i, job := range c.Jobs {
		for k, object := range job.Objects {
			v := kubeburner.Vars{JobName: job.Name, UUID: uuid, RunID: "r", Input: object.InputVars}
			if slices.Contains(computing[name], templates[i][k].Name()) {
				continue
			}
			if _, ok := templates[i][k].Specialise(v); !ok {
				t.Errorf("%s has to be rendered for each object", templates[i][k].Name())
			}
		}
	}
}

// withoutParameters asks that the template's own defaults are those of the
// description: kube-burner knows only the former.
func withoutParameters(t *testing.T, w *workload.Workload, c *kubeburner.Config) {
	plain, err := kubeburner.Load(w.Files(), w.ConfigFile, kubeburner.Input{UUID: uuid})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(plain, c) {
		t.Errorf("without parameters\n%+v\nwith their defaults\n%+v", plain, c)
	}
}

func exported(t *testing.T, w *workload.Workload, c *kubeburner.Config) {
	dir := filepath.Join(t.TempDir(), w.Name)
	if err := w.Export(dir); err != nil {
		t.Fatal(err)
	}
	again, err := workload.Read(os.DirFS(dir), targets)
	if err != nil {
		t.Fatal(err)
	}
	p, err := again.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Config(p, uuid)
	if err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("the exported configuration is %+v, %v", got, err)
	}
	err = fs.WalkDir(w.Files(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		want, err := fs.ReadFile(w.Files(), name)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && string(got) != string(want) {
			t.Errorf("%s is exported differently", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNodeDensityPods(t *testing.T) {
	type m = map[string]any
	w, err := workload.Load(workloads.FS(), "node-density", targets)
	if err != nil {
		t.Fatal(err)
	}
	pod := func(annotations, extra, requests m, limits ...m) m {
		resources := m{"requests": m{}, "limits": m{}}
		if requests != nil {
			resources["requests"] = requests
		}
		for _, l := range limits {
			resources["limits"] = l
		}
		container := m{
			"name": "pause", "image": "registry.k8s.io/pause:3.10.1", "imagePullPolicy": "IfNotPresent", "resources": resources,
			"securityContext": m{"allowPrivilegeEscalation": false, "capabilities": m{"drop": []any{"ALL"}}},
		}
		metadata := m{"name": "node-density-3-1", "labels": m{"app.kubernetes.io/name": "node-density"}}
		if annotations != nil {
			metadata["annotations"] = annotations
		}
		spec := m{
			"restartPolicy": "Always", "terminationGracePeriodSeconds": int64(0), "automountServiceAccountToken": false,
			"enableServiceLinks": false, "containers": []any{container},
			"securityContext": m{"runAsNonRoot": true, "seccompProfile": m{"type": "RuntimeDefault"}},
		}
		for k, v := range extra {
			spec[k] = v
		}
		return m{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
	}
	for _, c := range []struct {
		why   string
		given map[string]string
		want  m
	}{
		{"the defaults", nil, pod(nil, nil, nil)},
		{"a runtime class", map[string]string{"runtimeClass": "crun"}, pod(nil, m{"runtimeClassName": "crun"}, nil)},
		{"a planted latency", map[string]string{"startLatency": "lognormal:1s,2s"},
			pod(m{"plimsoll.dev/start-latency": "lognormal:1s,2s"}, nil, nil)},
		{"service links", map[string]string{"serviceLinks": "true"}, pod(nil, m{"enableServiceLinks": true}, nil)},
		{"a node selector", map[string]string{"nodeSelector": "a.b/c=d,e="}, pod(nil, m{"nodeSelector": m{"a.b/c": "d", "e": ""}}, nil)},
		{"a node selector of values that look like something else", map[string]string{"nodeSelector": "a=true,b=1"},
			pod(nil, m{"nodeSelector": m{"a": "true", "b": "1"}}, nil)},
		{"requests", map[string]string{"cpuRequest": "1m", "memoryRequest": "10Mi"}, pod(nil, nil, m{"cpu": "1m", "memory": "10Mi"})},
		{"limits", map[string]string{"cpuLimit": "1", "memoryLimit": "10Mi"}, pod(nil, nil, nil, m{"cpu": "1", "memory": "10Mi"})},
		{"one request, a bare number", map[string]string{"cpuRequest": "1"}, pod(nil, nil, m{"cpu": "1"})},
		{"time to stop in", map[string]string{"gracePeriod": "1"}, pod(nil, m{"terminationGracePeriodSeconds": int64(1)}, nil)},
	} {
		p, err := w.Resolve(c.given)
		if err != nil {
			t.Fatal(err)
		}
		config, err := w.Config(p, uuid)
		if err != nil {
			t.Fatal(err)
		}
		templates, err := config.Templates(w.Files())
		if err != nil {
			t.Fatal(err)
		}
		v := kubeburner.Vars{Iteration: 3, Replica: 1, Input: config.Jobs[0].Objects[0].InputVars}
		docs, err := templates[0][0].Render(v)
		if err != nil || len(docs) != 1 || !reflect.DeepEqual(docs[0], c.want) {
			t.Errorf("%s:\n got %v, %v\nwant %v", c.why, docs, err, c.want)
		}
		pattern, ok := templates[0][0].Specialise(v)
		if !ok || !reflect.DeepEqual(pattern.Fill(3, 1), docs) {
			t.Errorf("%s: not the same the fast way", c.why)
		}
	}
	for _, c := range []struct{ why, name, text string }{
		{"an image with a space", "image", "a b"},
		{"a node selector without =", "nodeSelector", "a"},
		{"a runtime class in capitals", "runtimeClass", "Crun"},
		{"no iterations in a namespace", "namespacesPer", "0"},
		{"a negative time to stop in", "gracePeriod", "-1"},
	} {
		if _, err := w.Resolve(map[string]string{c.name: c.text}); err == nil {
			t.Errorf("%s is accepted", c.why)
		}
	}
}

func TestNodeDensityNamespaces(t *testing.T) {
	w, err := workload.Load(workloads.FS(), "node-density", targets)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Resolve(map[string]string{"namespacesPer": "10"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.Config(p, uuid)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Jobs[0].NamespaceOf(25); got != "node-density-0b1c2d3e-2" {
		t.Errorf("iteration 25 lies in %s", got)
	}
	if w.Goals[0].Key != "ready" {
		t.Errorf("the headline is %s", w.Goals[0].Key)
	}
}

// BenchmarkNodeDensityPod compares the two ways to one pod's manifest.
func BenchmarkNodeDensityPod(b *testing.B) {
	w, err := workload.Load(workloads.FS(), "node-density", targets)
	if err != nil {
		b.Fatal(err)
	}
	p, err := w.Resolve(nil)
	if err != nil {
		b.Fatal(err)
	}
	c, err := w.Config(p, uuid)
	if err != nil {
		b.Fatal(err)
	}
	templates, err := c.Templates(w.Files())
	if err != nil {
		b.Fatal(err)
	}
	v := kubeburner.Vars{Input: c.Jobs[0].Objects[0].InputVars}
	b.Run("rendered", func(b *testing.B) {
		for i := range b.N {
			v.Iteration, v.Replica = i, 1
			if _, err := templates[0][0].Render(v); err != nil {
				b.Fatal(err)
			}
		}
	})
	pattern, ok := templates[0][0].Specialise(v)
	if !ok {
		b.Fatal("no pattern")
	}
	b.Run("filled", func(b *testing.B) {
		for i := range b.N {
			pattern.Fill(i, 1)
		}
	})
}

// A client gets the address of its service, either a name or one of a range; no two
// services have the same.
func TestServicesAreCalledByTheirAddresses(t *testing.T) {
	w, err := workload.Load(workloads.FS(), "node-density-cni", targets)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		given     map[string]string
		iteration int
		address   string // of the service, "" for one that the cluster chooses
		called    string
		why       string
	}{
		{nil, 7, "", "http://server-7/", "by its name"},
		{map[string]string{"serviceAddresses": "10.100"}, 0, "10.100.0.1", "http://10.100.0.1/", "the first address of the range"},
		{map[string]string{"serviceAddresses": "10.100"}, 249, "10.100.0.250", "http://10.100.0.250/", "the last of a block"},
		{map[string]string{"serviceAddresses": "10.100"}, 250, "10.100.1.1", "http://10.100.1.1/", "the first of the next block"},
	} {
		p, err := w.Resolve(tt.given)
		if err != nil {
			t.Fatal(err)
		}
		c, err := w.Config(p, uuid)
		if err != nil {
			t.Fatal(err)
		}
		templates, err := c.Templates(w.Files())
		if err != nil {
			t.Fatal(err)
		}
		render := func(object int) map[string]any {
			docs, err := templates[0][object].Render(kubeburner.Vars{
				Iteration: tt.iteration, Replica: 1, JobName: c.Jobs[0].Name, UUID: uuid, RunID: "r", Input: c.Jobs[0].Objects[object].InputVars,
			})
			if err != nil || len(docs) != 1 {
				t.Fatalf("%s: %d documents, %v", tt.why, len(docs), err)
			}
			return docs[0]
		}
		address, _ := render(1)["spec"].(map[string]any)["clusterIP"].(string)
		if address != tt.address {
			t.Errorf("%s: the service has address %q, want %q", tt.why, address, tt.address)
		}
		if client := fmt.Sprint(render(2)); !strings.Contains(client, tt.called) {
			t.Errorf("%s: no %s in %s", tt.why, tt.called, client)
		}
	}
}
