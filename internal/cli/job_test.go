package cli_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/ring"
)

// rulesIn returns the rules of the roles in a manifest, in their order.
func rulesIn(manifest string) (rules []string) {
	for line := range strings.SplitSeq(manifest, "\n") {
		if strings.HasPrefix(line, "- {apiGroups") || strings.HasPrefix(line, "- {nonResourceURLs") {
			rules = append(rules, line)
		}
	}
	return rules
}

// A job has the rights of the run that it makes, in the namespaces that the run uses, and its
// program gets the flags as they were given.
func TestJobHasTheRightsAndFlagsOfItsRun(t *testing.T) {
	for _, c := range []struct {
		why          string
		flags        []string // of job
		given        []string // of limit
		rbac         string
		kinds, wants []string
	}{
		{"a run that makes its namespaces", nil, []string{"--from", "5", "--axis", "rate", "--slo", "Ready p99 <= 5s"}, "--axis rate",
			[]string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Job"},
			[]string{"limit node-density --in-cluster --yes --out /data/run --from 5 --axis rate --slo Ready p99 <= 5s", "namespace: plimsoll}", "kubectl -n plimsoll logs -f job/plimsoll-job-node-density -c run", "emptyDir: {sizeLimit: 1Gi}"}},
		{"a run in a namespace that exists", []string{"--namespace", "team-a", "--size", "300Mi"}, nil, "--namespace team-a",
			[]string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Role", "RoleBinding", "Job"},
			[]string{"limit node-density --in-cluster --yes --out /data/run --namespace team-a", "namespace: team-a}", "emptyDir: {sizeLimit: 300Mi}"}},
	} {
		got := e2e.Command(t, nil, slices.Concat([]string{"job", "node-density", "--image", "r.example/plimsoll:1"}, c.flags, []string{"--"}, c.given)...)
		rbac := e2e.Command(t, nil, strings.Fields("rbac node-density "+c.rbac)...)
		if got.Code != 0 || rbac.Code != 0 {
			t.Fatalf("%s: exit codes %d, %d\n%s%s", c.why, got.Code, rbac.Code, got.Stderr, rbac.Stderr)
		}
		if rules := rulesIn(got.Stdout); len(rules) == 0 || !slices.Equal(rules, rulesIn(rbac.Stdout)) {
			t.Errorf("%s: rights\n%s\nwant\n%s", c.why, strings.Join(rules, "\n"), strings.Join(rulesIn(rbac.Stdout), "\n"))
		}
		var kinds []string
		said := got.Stdout
		for _, text := range strings.Split(got.Stdout, "\n---\n") {
			var object struct {
				Kind string
				Spec struct {
					Template struct {
						Spec struct{ Containers []struct{ Args []string } }
					}
				}
			}
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatalf("%s: %v\n%s", c.why, err, text)
			}
			kinds = append(kinds, object.Kind)
			for _, one := range object.Spec.Template.Spec.Containers {
				said += "\n" + strings.Join(one.Args, " ")
			}
		}
		if !slices.Equal(kinds, c.kinds) {
			t.Errorf("%s: kinds %q, want %q", c.why, kinds, c.kinds)
		}
		for _, want := range append(c.wants, "\njob keep /data/run") {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", c.why, want, said)
			}
		}
	}
}

// Helm renders the chart of a job to the job itself, with the values that are given instead of its own.
func TestChartOfAJob(t *testing.T) {
	job := func(args ...string) string {
		t.Helper()
		got := e2e.Command(t, nil, slices.Concat([]string{"job", "node-density"}, args, []string{"--", "--from", "5", "--slo", "Ready p99 <= 5s"})...)
		if got.Code != 0 {
			t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
		}
		return got.Stdout
	}
	dir := filepath.Join(t.TempDir(), "a chart")
	if said := job("--image", "r.example/plimsoll:1", "--chart", dir); said != "" {
		t.Errorf("with --chart it prints %s", said)
	}
	if got := e2e.Command(t, nil, "job", "node-density", "--image", "r.example/plimsoll:1", "--chart", dir); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "give a new directory") {
		t.Errorf("a chart that exists: exit code %d\n%s", got.Code, got.Stderr)
	}
	ring.Long(t, "compiles Helm's engine")
	render := func(set ...string) string {
		t.Helper()
		cmd := exec.Command("go", slices.Concat([]string{"run", "-C", "../../tools/render", ".", dir}, set)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
		return string(out)
	}
	if got, want := render(), job("--image", "r.example/plimsoll:1"); got != want {
		t.Errorf("Helm renders\n%s\nwant\n%s", got, want)
	}
	if got, want := render("image=r.example/other:2", "size=3Gi"), job("--image", "r.example/other:2", "--size", "3Gi"); got != want {
		t.Errorf("Helm renders with other values\n%s\nwant\n%s", got, want)
	}
	if got := render("flags={--from,9}"); !strings.Contains(got, "- \"--from\"\n        - \"9\"\n        resources") {
		t.Errorf("other flags:\n%s", got)
	}
}

func TestJobRefusesWhatItsPodCannotDo(t *testing.T) {
	const job = "job node-density --image r.example/plimsoll "
	for _, c := range []struct{ args, says, why string }{
		{"job", "which workload?", "no workload"},
		{"job -- node-density", "which workload?", "a workload among the flags"},
		{"job node-density", "which image? --image is missing", "no image"},
		{"job node-density --image Not/A/Name", "--image", "what no image is called"},
		{job + "--size much", `--size "much" is not a size`, "a size"},
		{job + "--size 0", "is not a size", "no room"},
		{job + "--namespace Team", "is not the name of a namespace", "a namespace"},
		{job + "-- --form 5", "did you mean --from?", "a flag of limit"},
		{job + "-- 5", `unexpected argument "5"`, "an argument of limit"},
		{job + "-- --from 0", "from", "a level"},
		{job + "-- --kubeconfig k", "--kubeconfig names a file", "another cluster"},
		{job + "-- --out o", "--out names a directory", "another record"},
		{job + "-- --lab l", "more than one target", "a lab"},
		{job + "-- --namespace a", "--namespace after --", "a namespace of the load alone"},
		{"job simulated --image r.example/plimsoll", "in-cluster belongs to", "a workload that loads no cluster"},
		{"job ./w --image r.example/plimsoll", "./w", "a workload of this machine"},
	} {
		got := e2e.Command(t, nil, strings.Fields(c.args)...)
		if got.Code != process.ExitUsage || got.Stdout != "" || !strings.Contains(got.Stderr, c.says) {
			t.Errorf("%s (%s): exit code %d, want %q\n%s%s", c.args, c.why, got.Code, c.says, got.Stdout, got.Stderr)
		}
	}
}

// A pod waits until the record is copied, whole and without a change.
func TestTheRecordOfAJobIsCopied(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if got := e2e.Command(t, nil, "sweep", "simulated", "--levels", "1", "--hold", "1ms", "--out", dir); got.Code != 0 {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	if err := os.Remove(filepath.Join(dir, "report.html")); err != nil {
		t.Fatal(err)
	}
	got := e2e.Command(t, nil, "job", "copy", dir)
	if got.Code != 0 {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	var names []string
	for r := tar.NewReader(strings.NewReader(got.Stdout)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		names = append(names, h.Name)
		copied, err := io.ReadAll(r)
		kept, err2 := os.ReadFile(filepath.Join(dir, h.Name))
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(copied, kept) {
			t.Errorf("%s: %d bytes of %d, %v", h.Name, len(copied), len(kept), err)
		}
	}
	for _, name := range []string{"experiment.yaml", "history.jsonl.zst", "result.json", "report.html"} {
		if !slices.Contains(names, name) {
			t.Errorf("no %s among %q", name, names)
		}
	}
	if got := e2e.Command(t, nil, "job", "keep", dir); got.Code != 0 {
		t.Errorf("after the copy the pod goes on: exit code %d\n%s", got.Code, got.Stderr)
	}
}
