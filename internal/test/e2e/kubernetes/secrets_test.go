package kubernetes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// secretWorkload makes pods that hold secrets, one of which the API refuses and
// quotes.
const secretWorkload = `schema: plimsoll/workload/v1
name: secretive
help: pods that hold secrets
target: kubernetes
config: config.yml
axes:
- {name: pods-per-node, unit: pods/node, help: pods, default: {from: 1, step: 1, max: 5}}
params:
- {name: password, type: string, help: of a database}
- {name: pin, type: string, secret: true, help: of a card}
- {name: endpoint, type: string, help: where it is}
- {name: color, type: string, default: red, help: what a label says}
goals:
  ready: [all Ready]
primary: Ready p50
hold: 1s
stepTimeout: 20s
`

const secretPod = `apiVersion: v1
kind: Pod
metadata:
  name: secretive-{{.Iteration}}-{{.Replica}}
  labels: {color: "{{ if and (gt .Iteration 2) (eq .color ` + "`bad`" + `) }}token=` + e2e.Planted + ` \e[31m\u202e{{ else }}red{{ end }}"}
  annotations: {dsn: "postgres://me:` + e2e.Planted + `@db/x", pin: {{ .pin | quote }}}
spec:
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10.1
    args: ["--token={{ .password }}", "-----BEGIN EC PRIVATE KEY-----` + e2e.Planted + `"]
    env: [{name: PGPASSWORD, value: {{ .password | quote }}}, {name: ENDPOINT, value: {{ .endpoint | quote }}}]
`

// Nothing that was planted stands in a record or on the screen: not in what a run
// of pods leaves, whose API refuses them and says why, and not in what it prints.
func TestNoSecretIsOnRecord(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	if err := os.CopyFS(filepath.Join(p.Dir, "secretive"), fstest.MapFS{
		"workload.yaml": {Data: []byte(secretWorkload)}, "pod.yml": {Data: []byte(secretPod)},
		"config.yml": {Data: []byte("jobs:\n- name: secretive\n  jobType: create\n  jobIterations: 1\n  namespace: secretive-{{ .UUID | trunc 8 }}\n  namespacedIterations: true\n  iterationsPerNamespace: 100\n  objects:\n  - objectTemplate: pod.yml\n    replicas: 1\n    inputVars: {password: {{ .password | quote }}, pin: {{ .pin | quote }}, endpoint: {{ .endpoint | quote }}, color: {{ .color | quote }}}\n")},
	}); err != nil {
		t.Fatal(err)
	}
	given := []string{"--set", "password=a b/" + e2e.Planted, "--set", "pin=" + e2e.Planted + "-4711", "--set", "endpoint=https://me:" + e2e.Planted + "-2@h/?token=x" + e2e.Planted}
	sweep := func(more ...string) []string {
		return append(append([]string{"sweep", "./secretive", "--levels", "3", "--lab", p.Lab}, given...), more...)
	}
	refused := []string{"--set", "color=bad"}
	run := e2e.SaysNothing(t, p)
	run(process.ExitPass, "dry run", sweep("--dry-run")...)
	run(process.ExitPass, "outline", sweep("--dry-run", "-o", "json")...)
	run(process.ExitPass, "Report: ", sweep("--out", "held")...)
	run(process.ExitFail, "Invalid value", append(sweep("--out", "refused"), refused...)...)
	for _, dir := range []string{"held", "refused"} {
		code := map[string]int{"held": process.ExitPass, "refused": process.ExitFail}[dir]
		run(code, "", "analyze", dir, "-o", "junit")
		run(code, "", "analyze", dir, "-o", "json")
		run(process.ExitPass, "", "report", dir)
		e2e.HoldsNothing(t, filepath.Join(p.Dir, dir))
	}
	// The error names what a later run needs; the hash differs for another value.
	run(process.ExitUsage, "--set password=VALUE", "run", "--resume", "held")
	run(process.ExitUsage, "is not the one", "run", "--resume", "held", "--set", "password="+e2e.Planted)
	run(process.ExitUsage, "--set password=VALUE", "run", "held/experiment.yaml", "--dry-run")
	run(process.ExitPass, "finished", append([]string{"run", "--resume", "held"}, given...)...)
	run(process.ExitPass, "dry run", append([]string{"run", "held/experiment.yaml", "--dry-run"}, given...)...)
	run(process.ExitUsage, "only the value of a secret parameter", "run", "held/experiment.yaml", "--set", "color=red")
	run(process.ExitUsage, "is secret", append(sweep("--dry-run"), "--vary", "password="+e2e.Planted+",other-value")[:len(sweep("--dry-run"))+2]...)
	// A template reads no file outside, whatever a link says.
	if err := os.WriteFile(filepath.Join(p.Dir, "outside"), []byte(e2e.Planted), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(p.Dir, "secretive", "link")
	if err := os.Symlink("../outside", link); err != nil {
		t.Fatal(err)
	}
	pod := strings.Replace(secretPod, "args: [", `args: [{{ ReadFile "link" | quote }}, `, 1)
	if err := os.WriteFile(filepath.Join(p.Dir, "secretive", "pod.yml"), []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	run(process.ExitUsage, "escapes", sweep("--out", "linked")...)
}
