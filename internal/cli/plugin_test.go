package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// Under the name of a plugin, help, errors and hints are commands that kubectl runs. The cluster must be
// named there, too: a plugin does not take kubectl's.
func TestKubectlPlugin(t *testing.T) {
	for _, tt := range []struct{ why, name, args, says, not string }{
		{"help", "/krew/bin/kubectl-plimsoll", "limit --help", "kubectl plimsoll limit WORKLOAD", ""},
		{"examples", "kubectl-plimsoll", "limit --help", "\n  kubectl plimsoll limit node-density", ""},
		{"help of a group", "kubectl-plimsoll.exe", "--help", "kubectl plimsoll [command]", ""},
		{"an error, its hint, and the cluster", "kubectl-plimsoll", "clean --force", "kubectl plimsoll: which cluster?", ""},
		{"a hint with a command", "kubectl-plimsoll", "analyze no-such-run", "kubectl plimsoll: ", ""},
		{"a typo", "kubectl-plimsoll", "limit --hodl 3s", "kubectl plimsoll: unknown flag: --hodl", ""},
		{"an error as JSON", "kubectl-plimsoll", "lab list all -o json", `"hint": "see 'kubectl plimsoll lab list --help'"`, ""},
		{"the version", "kubectl-plimsoll", "version", "plimsoll 0", "kubectl"},
		{"its own name", "/usr/bin/plimsoll", "limit --help", "  plimsoll limit node-density", "kubectl plimsoll"},
	} {
		p := e2e.InMemory(t, map[string]string{"KUBECONFIG": "/ignored"}, strings.Fields(tt.args)...)
		p.Name = tt.name
		var all bytes.Buffer
		p.Stdout, p.Stderr = &all, &all
		cli.Main(p)
		got := all.String()
		if !strings.Contains(got, tt.says) || tt.not != "" && strings.Contains(got, tt.not) {
			t.Errorf("%s: want %q, not %q, in\n%s", tt.why, tt.says, tt.not, got)
		}
		if tt.not == "" {
			for line := range strings.Lines(got) {
				if strings.Contains(strings.ReplaceAll(line, "kubectl plimsoll", ""), "plimsoll limit") {
					t.Errorf("%s: a command of another name: %s", tt.why, line)
				}
			}
		}
	}
}
