package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// offered returns what a shell offers next, without descriptions.
func offered(t *testing.T, env map[string]string, line ...string) (words []string) {
	t.Helper()
	got := e2e.Command(t, env, append([]string{"__complete"}, line...)...)
	for word := range strings.Lines(got.Stdout) {
		if word = strings.TrimSuffix(word, "\n"); strings.HasPrefix(word, ":") {
			return words
		}
		word, _, _ = strings.Cut(word, "\t")
		words = append(words, word)
	}
	t.Errorf("%q ends without a directive:\n%s%s", line, got.Stdout, got.Stderr)
	return nil
}

func TestCompletion(t *testing.T) {
	labs := someLabs(t, map[string]string{"mine": fmt.Sprintf(readyLab, "mine")})
	here := t.TempDir()
	t.Chdir(here)
	for _, name := range []string{"first", "plimsoll-runs/second", "plimsoll-runs/third"} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(name, record.HistoryFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("nothing", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line    []string
		want    []string
		without string
	}{
		{[]string{"limit", ""}, []string{"node-density", "simulated"}, ""},
		{[]string{"ab", ""}, []string{"node-density"}, ""},
		{[]string{"workloads", "show", ""}, []string{"node-density-cni"}, ""},
		{[]string{"limit", "simulated", ""}, nil, "simulated"},
		{[]string{"limit", "--lab", ""}, []string{"mine"}, ""},
		{[]string{"clean", "--lab", ""}, []string{"mine"}, ""},
		{[]string{"lab", "down", ""}, []string{"mine"}, ""},
		{[]string{"limit", "simulated", "--axis", ""}, []string{"objects", "requests"}, "pods-per-node"},
		{[]string{"check", "node-density", "--axis", ""}, []string{"pods-per-node", "rate"}, "objects"},
		{[]string{"limit", "simulated", "--set", ""}, []string{"limit=", "latency="}, "image="},
		{[]string{"limit", "node-density", "--guard", ""}, []string{"nodesNotReady=", "apiErrors="}, "placesNotReady="},
		{[]string{"limit", "node-density", "--require", ""}, []string{"all", "ready", "startup"}, "latency"},
		{[]string{"limit", "node-density", "--axis", "rate", "--require", ""}, []string{"all", "startup"}, "ready"},
		{[]string{"ab", "simulated", "--metric", ""}, []string{"Ready p99", "Ready max", "simulated CPU"}, "kubelet CPU"},
		{[]string{"analyze", ""}, []string{"first", "plimsoll-runs/second", "plimsoll-runs/third"}, "nothing"},
		{[]string{"compare", "first", ""}, []string{"plimsoll-runs/second"}, "first"},
		{[]string{"report", "plimsoll-runs/s"}, []string{"plimsoll-runs/second"}, "first"},
		{[]string{"run", "--resume", ""}, []string{"first"}, "nothing"},
		{[]string{"analyze", "first", "-o", ""}, []string{"text", "json", "junit"}, "or"},
		{[]string{"limit", "simulated", "-o", ""}, []string{"text", "json"}, "junit"},
		{[]string{"signatures", "show", ""}, []string{"too-many-pods"}, ""},
		{[]string{"lint", "--ignore", ""}, []string{"own-file"}, ""},
		{[]string{"limit", "no-such", "--set", ""}, nil, "limit="},
	} {
		got := offered(t, map[string]string{"XDG_STATE_HOME": labs}, c.line...)
		for _, want := range c.want {
			if !slices.Contains(got, want) {
				t.Errorf("%q: %q is not offered: %q", c.line, want, got)
			}
		}
		if c.without != "" && slices.Contains(got, c.without) {
			t.Errorf("%q: %q is offered", c.line, c.without)
		}
	}
}

// What prints JSON prints its errors as JSON too, and nothing else on standard
// output.
func TestJSONEverywhere(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir, ran := e2e.Measured(t, suite, "sweep", "simulated", "--levels", "3", "-o", "json")
		for _, c := range []struct {
			why  string
			got  harness.Outcome
			code int
			want func(v any) bool
		}{
			{"a result, with where its record is", ran, process.ExitPass, func(v any) bool {
				return v.(map[string]any)["record"] == dir && v.(map[string]any)["verdict"] == "pass"
			}},
			{"a result that is judged again", e2e.Command(t, nil, "analyze", dir, "-o", "json"), process.ExitPass, func(v any) bool { return v.(map[string]any)["record"] == dir }},
			{"the workloads", e2e.Command(t, nil, "workloads", "list", "-o", "json"), process.ExitPass, func(v any) bool {
				return slices.ContainsFunc(v.([]any), func(w any) bool { return w.(map[string]any)["name"] == "node-density" })
			}},
			{"a workload", e2e.Command(t, nil, "workloads", "show", "simulated", "-o", "json"), process.ExitPass, func(v any) bool {
				axis := v.(map[string]any)["axes"].([]any)[0].(map[string]any)
				return axis["name"] == "objects" && axis["from"] == 10.0 && axis["hold"] == 0.05
			}},
			{"the signatures", e2e.Command(t, nil, "signatures", "list", "-o", "json"), process.ExitPass, func(v any) bool { return len(v.(map[string]any)["signatures"].([]any)) > 40 }},
			{"a signature", e2e.Command(t, nil, "signatures", "show", "too-many-pods", "-o", "json"), process.ExitPass, func(v any) bool {
				return v.(map[string]any)["signatures"].([]any)[0].(map[string]any)["name"] == "too-many-pods"
			}},
			{"a workload that there is not", e2e.Command(t, nil, "workloads", "show", "simulatd", "-o", "json"), process.ExitUsage, failed(`there is no workload "simulatd"`, `did you mean "simulated"?`)},
			{"no cluster to be cleaned", e2e.Command(t, nil, "clean", "--force", "-o", "json"), process.ExitUsage, failed("which cluster?", "give --kubeconfig")},
			{"nothing to be cleaned", e2e.Command(t, nil, "clean", "--dry-run", "-o", "json"), process.ExitPass, func(v any) bool { return v.(map[string]any)["dryRun"] == true }},
			{"a lab without nodes", e2e.Command(t, nil, "lab", "up", "--nodes", "0", "-o", "json"), process.ExitUsage, failed("a lab without nodes", "")},
			{"a signature that there is not", e2e.Command(t, nil, "signatures", "show", "x", "--output=json"), process.ExitUsage, failed(`no signature "x"`, "")},
			{"a flag that there is not", e2e.Command(t, nil, "limit", "simulated", "--frm", "5", "-o", "json"), process.ExitUsage, failed("unknown flag", "--from")},
			{"a plan with a mistake", e2e.Command(t, nil, "limit", "simulated", "-o", "json", "--from", "0"), process.ExitUsage, failed("--from: 0", "")},
			{"a lab that cannot come up", e2e.Command(t, nil, "limit", "node-density", "-o", "json"), process.ExitCouldNotRun, failed("private lab", "")},
		} {
			var v any
			if err := json.Unmarshal([]byte(c.got.Stdout), &v); err != nil || c.got.Code != c.code {
				t.Errorf("%s: exit code %d, want %d, %v:\n%s%s", c.why, c.got.Code, c.code, err, c.got.Stdout, c.got.Stderr)
				continue
			}
			document, _ := v.(map[string]any)
			if e, ok := document["exitCode"]; ok && e != float64(c.code) || !c.want(v) {
				t.Errorf("%s: %s", c.why, c.got.Stdout)
			}
		}
		// No completion where nobody asked for it.
		if got := e2e.Command(t, nil, "workloads", "show", "simulatd"); got.Stdout != "" {
			t.Errorf("an error on standard output: %s", got.Stdout)
		}
	})
}

func failed(what, hint string) func(any) bool {
	return func(v any) bool {
		m := v.(map[string]any)
		text, _ := m["error"].(string)
		said, _ := m["hint"].(string)
		return m["schema"] == cli.FailureSchema && strings.Contains(text, what) && strings.Contains(said, hint)
	}
}

// The defaults of each axis are shown with it.
func TestWorkloadsShowTheDefaultsOfAxes(t *testing.T) {
	got := e2e.Command(t, nil, "workloads", "show", "simulated")
	for _, want := range []string{"by default --from 10 --step 10 --max 1000 --resolution 1 --hold 50ms", "by default --from 50 --step 50 --max 1000 --resolution 10 --hold 2s", "goals, the headline first:"} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("%q is not shown:\n%s", want, got.Stdout)
		}
	}
}
