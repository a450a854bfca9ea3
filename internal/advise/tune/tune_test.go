package tune

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/ceph"
	"plimsoll.dev/plimsoll/internal/advise/tune/cluster"
	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/advise/tune/virt"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

var update = flag.Bool("update", false, "write golden files anew")

// answered fails the test unless the calculator answered.
func answered(t *testing.T, a *answer.Answer, err error) *answer.Answer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range a.Sources {
		if strings.HasPrefix(s.Title, "unknown source") {
			t.Errorf("%s cites %s, which is not in the table of sources", a.Tool, s.ID)
		}
	}
	cited := map[string]bool{}
	for _, s := range a.Sources {
		cited[s.ID] = true
	}
	for _, step := range a.Steps {
		for _, id := range step.Sources {
			if !cited[id] {
				t.Errorf("%s: a step names %s, which is not among the sources", a.Tool, id)
			}
		}
	}
	return a
}

func wantResult(t *testing.T, a *answer.Answer, name string, want any) {
	t.Helper()
	if got := a.Result(name); got != want {
		t.Errorf("%s: %s = %v (%T), want %v (%T)", a.Tool, name, got, got, want, want)
	}
}

// correction finds what is said of a row, or fails the test.
func correction(t *testing.T, a *answer.Answer, row string) answer.Correction {
	t.Helper()
	for _, c := range a.Corrections {
		if c.Row == row {
			return c
		}
	}
	t.Fatalf("%s says nothing about the error in %s", a.Tool, row)
	return answer.Correction{}
}

// finding finds what was found about something, or fails the test.
func finding(t *testing.T, a *answer.Answer, what string) answer.Finding {
	t.Helper()
	var have []string
	for _, f := range a.Findings {
		if strings.Contains(f.What, what) {
			return f
		}
		have = append(have, f.What)
	}
	t.Fatalf("%s finds nothing about %q, only %q", a.Tool, what, have)
	return answer.Finding{}
}

func fileOf(t *testing.T, a *answer.Answer, path string) string {
	t.Helper()
	var have []string
	for _, f := range a.Files {
		if f.Path == path {
			return f.Content
		}
		have = append(have, f.Path)
	}
	t.Fatalf("%s has no file %s, only %v", a.Tool, path, have)
	return ""
}

// readObject is a Kubernetes object with the specification S, of which no field may
// be unknown.
type readObject[S any] struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Spec S
}

func objectOf[S any](t *testing.T, a *answer.Answer, path string) (o readObject[S]) {
	t.Helper()
	if err := yaml.UnmarshalWithOptions([]byte(fileOf(t, a, path)), &o, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return o
}

// The specifications that several tests read.
type (
	readSelector struct {
		MatchLabels      map[string]string `yaml:"matchLabels"`
		MatchExpressions []struct {
			Key, Operator string
			Values        []string
		} `yaml:"matchExpressions"`
	}
	readPool struct {
		MachineConfigSelector readSelector `yaml:"machineConfigSelector"`
		NodeSelector          readSelector `yaml:"nodeSelector"`
		MaxUnavailable        int          `yaml:"maxUnavailable"`
		Paused                bool
	}
	readTuning struct {
		MaxConnections int `yaml:"maxConnections"`
		Threads        int `yaml:"threadCount"`
		Buffer         int `yaml:"headerBufferBytes"`
		Rewrite        int `yaml:"headerBufferMaxRewriteBytes"`
	}
	readIngress struct {
		Domain   string
		Replicas int
		Routes   readSelector `yaml:"routeSelector"`
		Tuning   readTuning   `yaml:"tuningOptions"`
	}
)

// What makes no sense is refused, with the parameter that is wrong.
func TestNonsenseIsRefused(t *testing.T) {
	v := virt.Virt{VMs: count(100), Nodes: count(10)}
	with := func(change func(v *virt.Virt)) func() error {
		return func() error {
			changed := v
			change(&changed)
			_, err := virt.Tune(changed)
			return err
		}
	}
	for why, tt := range map[string]struct {
		param string
		try   func() error
	}{
		"a pool of no name that an API server takes": {"pool", func() error {
			_, err := cluster.TuneKubelet(cluster.Kubelet{MaxPods: count(500), Pool: param.Given("gpu_1", "flag")})
			return err
		}},
		"a label that no object has": {"label", func() error {
			_, err := cluster.TuneKubelet(cluster.Kubelet{MaxPods: count(500), Label: param.Given("a=b/c", "flag")})
			return err
		}},
		"a domain in capitals": {"domain", func() error {
			_, err := host.TuneRouter(host.Router{Routes: count(5000), Domain: param.Given("Apps.example.com", "flag")})
			return err
		}},
		"a round trip of hours": {"rtt", func() error {
			_, err := host.TuneHost(rttAndLink(10*time.Hour, 1e9))
			return err
		}},
		"a plan with fewer maxPods than pods": {"max-pods", func() error {
			_, err := TunePlan(Plan{VMs: count(3000), Nodes: count(100), MaxPods: count(20)})
			return err
		}},
		"a migration to no other node": {"nodes", with(func(v *virt.Virt) { v.Nodes, v.Migrate = count(1), count(50) })},
		"more zones than nodes":        {"zones", with(func(v *virt.Virt) { v.Zones = count(30) })},
		"a class twice": {"class", with(func(v *virt.Virt) {
			v.VMs, v.Classes = param.In[int64]{}, []virt.VMClass{{Name: "a", Count: 1, Memory: 1 << 30}, {Name: "a", Count: 2, Memory: 1 << 30}}
		})},
		"a machine without memory": {"class", with(func(v *virt.Virt) {
			v.VMs, v.Classes = param.In[int64]{}, []virt.VMClass{{Name: "a", Count: 1, Cores: 1}}
		})},
	} {
		var param *param.Error
		if err := tt.try(); !errors.As(err, &param) || param.Name != tt.param {
			t.Errorf("%s: %v, want one about --%s", why, err, tt.param)
		}
	}
	if shape, err := virt.ParseDataset("0x8x20Mi"); err == nil {
		t.Errorf("a data set of nothing was taken: %v", shape)
	}
}

// Parameters of several parts say what is wrong with which.
func TestParametersOfParts(t *testing.T) {
	for _, tt := range []struct{ param, text, err string }{
		{"class", "rhel=1500,1,4Gi", ""},
		{"class", "rhel=1,500,1,4Gi,14s", "is not a duration"}, // commas part the parts
		{"class", "rhel=1500,500m,4Gi,14s", ""},
		{"class", "rhel=1500,1", "want NAME=COUNT,CORES,MEMORY[,TIME], for example --class rhel=1500,1,4Gi,14s"},
		{"class", "=1500,1,4Gi", "is not a name"},
		{"class", "rhel=1500,1,4Gi,14s,5", "is not a duration"},
		{"class", "rhel=many,1,4Gi", "is not a whole number"},
		{"measured", "kubelet@250=0.8,450Mi", ""},
		{"measured", "kubelet=0.8,450Mi", "want NAME@PODS=CORES,MEMORY"},
		{"measured", "kubelet@250=0.8", "want NAME@PODS=CORES,MEMORY"},
		{"measured", "", "want NAME@PODS=CORES,MEMORY"},
	} {
		var p Plan
		if err := given(&p, "--"+tt.param, tt.text); (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("--%s %q: %v, want %q", tt.param, tt.text, err, tt.err)
		}
	}
	var c ceph.Ceph
	if err := given(&c, "--pool", "a=50%", "--pool", "b=0.2,6"); err != nil || !slices.Equal(c.Pools, []ceph.CephPool{{Name: "a", Share: 0.5}, {Name: "b", Share: 0.2, Size: 6}}) {
		t.Errorf("%v %+v", err, c.Pools)
	}
	var v virt.Virt
	if err := given(&v, "--clone-measured", "100=5m", "--clones", "1,000"); err != nil || v.CloneReadings[0] != (virt.CloneReading{Bulk: 100, Seconds: 300, From: "flag --clone-measured"}) || v.Clones != param.Given[int64](1000, "flag --clones") {
		t.Errorf("%v %+v %+v", err, v.CloneReadings, v.Clones)
	}
}

// given reads flags into the parameters of a calculator.
func given(params any, args ...string) error {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := settings.AddFlags(set, params, func(settings.Field) bool { return true })
	if err := set.Parse(args); err != nil {
		return err
	}
	return flags.Fill(params)
}

// What tags say of parameters can be read, and is what the calculators have.
func TestDeclaredParameters(t *testing.T) {
	said := map[string]string{}
	for _, of := range []any{&Plan{}, &ceph.Ceph{}, &virt.Virt{}, &host.Host{}, &host.Network{}, &host.Router{}, &cluster.Subnet{}, &cluster.Kubelet{}} {
		name := reflect.TypeOf(of).Elem().Name()
		for _, f := range settings.Fields(of) {
			said[name+" "+f.Flag] = f.Tag.Get("help") + " (default " + f.Tag.Get("default") + ")"
			low, high, _ := strings.Cut(f.Tag.Get("range"), "..")
			for _, text := range []string{f.Tag.Get("default"), low, high, f.Tag.Get("example")} {
				if text == "" {
					continue
				}
				if err := given(of, "--"+f.Flag+"="+text); err != nil {
					t.Errorf("%s: --%s cannot be %s: %v", name, f.Flag, text, err)
				}
			}
		}
	}
	for flag, part := range map[string]string{
		"Host format": ": " + strings.Join(host.HostFormats(), ", "), "Subnet reserved": fmt.Sprintf("(default %d)", ceiling.ReservedAddresses),
		"Virt own-pods": fmt.Sprintf("(default %d)", ceiling.ReservedAddresses), "Virt max-pods": fmt.Sprintf("(default %d)", ceiling.OpenShiftMaxPods),
		"Kubelet headroom": "(default 20%)",
	} {
		if !strings.Contains(said[flag], part) {
			t.Errorf("%s says %q, want %q", flag, said[flag], part)
		}
	}
}

func count(n int64) param.In[int64] { return param.Given(n, "flag") }

func TestRender(t *testing.T) {
	a, err := ceph.Tune(ceph.Ceph{OSDs: count(141), Replicas: count(3)})
	answered(t, a, err)
	text, err := answer.Render(a, "table", 100)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, *update, "ceph.txt", text)
	for _, line := range strings.Split(string(text), "\n") {
		// Addresses and commands are to be copied: they are not parted.
		if len([]rune(line)) > 100 && !strings.Contains(line, "://") {
			t.Errorf("a line is wider than 100 columns: %q", line)
		}
	}
	data, err := answer.Render(a, "json", 0)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, *update, "ceph.json", data)
	var fromJSON, fromYAML answer.Answer
	if err := json.Unmarshal(data, &fromJSON); err != nil {
		t.Fatal(err)
	}
	inYAML, err := answer.Render(a, "yaml", 0)
	if err != nil {
		t.Fatal(err)
	}
	if inYAML, err = yaml.YAMLToJSON(inYAML); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(inYAML, &fromYAML); err != nil {
		t.Fatal(err)
	}
	one, _ := json.Marshal(fromJSON)
	other, _ := json.Marshal(fromYAML)
	if string(one) != string(other) {
		t.Errorf("yaml says something else than json:\n%s\n%s", one, other)
	}
	if _, err := answer.Render(a, "xml", 0); err == nil {
		t.Error("a form that does not exist was rendered")
	}
}

func TestWriteWritesAllOrNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	files := []answer.File{{Path: "a/one", Content: "1"}, {Path: "two", Content: "2"}}
	paths, err := answer.Write(dir, files, false)
	if err != nil || len(paths) != 2 {
		t.Fatalf("%v, %v", paths, err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	if read("a/one") != "1" || read("two") != "2" {
		t.Errorf("one %q, two %q", read("a/one"), read("two"))
	}

	// One of the two exists: the other must not come about.
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := answer.Write(dir, files, false); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), filepath.Join(dir, "two")) {
		t.Errorf("over a file that exists: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("half of it was written, or a directory for it is left")
	}

	// With force what is there is replaced, and kept where a later file fails.
	files[1].Content = "3"
	if _, err := answer.Write(dir, files, true); err != nil || read("two") != "3" {
		t.Errorf("with force: %v, two %q", err, read("two"))
	}
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	bad := []answer.File{{Path: "two", Content: "4"}, {Path: "fresh", Content: "5"}, {Path: "b/c/d", Content: "5"}, {Path: "b/e", Content: "5"}, {Path: "directory", Content: "6"}}
	if _, err := answer.Write(dir, bad, true); err == nil {
		t.Error("a directory was written over")
	}
	if read("two") != "3" {
		t.Errorf("the former file is lost: %q", read("two"))
	}
	for _, name := range []string{"fresh", "b"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was left by a write that failed", name)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files were left: %v %v", left, err)
	}
	if _, err := answer.Write(dir, []answer.File{{Path: "../out", Content: "x"}}, true); err == nil {
		t.Error("a path led out of the directory")
	}
}
