package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// docs/troubleshooting.md quotes errors as commands print them.
func TestTroubleshootingQuotesErrors(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plan := file("p.yaml", "workload: node-density\nhold: 10x\n")
	config := file("kc", `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`)
	for quote, args := range map[string][]string{
		`there is no workload "node-densty"`:          {"limit", "node-densty"},
		`unknown flag: --hodl`:                        {"limit", "node-density", "--hodl", "5s"},
		`"10" is not a duration`:                      {"limit", "node-density", "--hold", "10"},
		`there is no parameter of node-density "foo"`: {"limit", "node-density", "--set", "foo=1"},
		`objective "p99 < 5" is not understood`:       {"limit", "node-density", "--slo", "p99 < 5"},
		`p.yaml:2:7: hold: "10x" is not a duration`:   {"run", plan},
		`no such context: "nope"`:                     {"limit", "node-density", "--kubeconfig", config, "--context", "nope"},
		`a is not a run directory`:                    {"compare", "a", "b"},
	} {
		got := e2e.Command(t, nil, args...)
		if said := strings.ReplaceAll(got.Stderr, dir+"/", ""); got.Code != process.ExitUsage || !strings.Contains(said, quote) {
			t.Errorf("%q: exit code %d, without %q:\n%s", args, got.Code, quote, said)
		}
		if !strings.Contains(string(page), "| `"+quote+"` |") {
			t.Errorf("the page does not quote %q", quote)
		}
	}
}
