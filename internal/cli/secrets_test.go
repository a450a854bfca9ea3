package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
)

// planted is a part of every secret that a test plants.
const planted = "s3cr3tly-planted"

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
  labels: {color: "{{ if and (gt .Iteration 2) (eq .color ` + "`bad`" + `) }}token=` + planted + ` \e[31m\u202e{{ else }}red{{ end }}"}
  annotations: {dsn: "postgres://me:` + planted + `@db/x", pin: {{ .pin | quote }}}
spec:
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10.1
    args: ["--token={{ .password }}", "-----BEGIN EC PRIVATE KEY-----` + planted + `"]
    env: [{name: PGPASSWORD, value: {{ .password | quote }}}, {name: ENDPOINT, value: {{ .endpoint | quote }}}]
`

// Nothing that was planted stands in a record or on the screen: not in what a run
// of pods leaves, whose API refuses them and says why, and not in what it prints.
func TestNoSecretIsOnRecord(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, smallLab...)
	if err := os.CopyFS(filepath.Join(p.Dir, "secretive"), fstest.MapFS{
		"workload.yaml": {Data: []byte(secretWorkload)}, "pod.yml": {Data: []byte(secretPod)},
		"config.yml": {Data: []byte("jobs:\n- name: secretive\n  jobType: create\n  jobIterations: 1\n  namespace: secretive-{{ .UUID | trunc 8 }}\n  namespacedIterations: true\n  iterationsPerNamespace: 100\n  objects:\n  - objectTemplate: pod.yml\n    replicas: 1\n    inputVars: {password: {{ .password | quote }}, pin: {{ .pin | quote }}, endpoint: {{ .endpoint | quote }}, color: {{ .color | quote }}}\n")},
	}); err != nil {
		t.Fatal(err)
	}
	given := []string{"--set", "password=a b/" + planted, "--set", "pin=" + planted + "-4711", "--set", "endpoint=https://me:" + planted + "-2@h/?token=x" + planted}
	sweep := func(more ...string) []string {
		return append(append([]string{"sweep", "./secretive", "--levels", "3", "--lab", p.Lab}, given...), more...)
	}
	refused := []string{"--set", "color=bad"}
	run := func(code int, says string, args ...string) {
		t.Helper()
		got := p.Run(t, args...)
		for _, text := range []string{got.Stdout, got.Stderr} {
			if strings.Contains(text, planted) || strings.ContainsAny(text, "\x1b\u202e") {
				t.Errorf("%v prints %q", args[:2], text)
			}
		}
		if got.Code != code || !strings.Contains(got.Stdout+got.Stderr, says) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s%s", args[:2], got.Code, code, says, got.Stdout, got.Stderr)
		}
	}
	run(process.ExitHeld, "dry run", sweep("--dry-run")...)
	run(process.ExitHeld, "outline", sweep("--dry-run", "-o", "json")...)
	run(process.ExitHeld, "Report: ", sweep("--out", "held")...)
	run(process.ExitBreached, "Invalid value", append(sweep("--out", "refused"), refused...)...)
	for _, dir := range []string{"held", "refused"} {
		code := map[string]int{"held": process.ExitHeld, "refused": process.ExitBreached}[dir]
		run(code, "", "analyze", dir, "-o", "junit")
		run(code, "", "analyze", dir, "-o", "json")
		run(process.ExitHeld, "", "report", dir)
		holdsNothing(t, filepath.Join(p.Dir, dir))
	}
	// What a later run needs is told, and the hash knows another value.
	run(process.ExitUsage, "--set password=VALUE", "run", "--resume", "held")
	run(process.ExitUsage, "is not the one", "run", "--resume", "held", "--set", "password="+planted)
	run(process.ExitUsage, "--set password=VALUE", "run", "held/experiment.yaml", "--dry-run")
	run(process.ExitHeld, "finished", append([]string{"run", "--resume", "held"}, given...)...)
	run(process.ExitHeld, "dry run", append([]string{"run", "held/experiment.yaml", "--dry-run"}, given...)...)
	run(process.ExitUsage, "only the value of a secret parameter", "run", "held/experiment.yaml", "--set", "color=red")
	run(process.ExitUsage, "is secret", append(sweep("--dry-run"), "--vary", "password="+planted+",other-value")[:len(sweep("--dry-run"))+2]...)
	// A template reads no file outside, whatever a link says.
	if err := os.WriteFile(filepath.Join(p.Dir, "outside"), []byte(planted), 0o600); err != nil {
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

// Nor does anything of what is sent to a server, or of what it answers.
func TestNoSecretOfAServerIsOnRecord(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session="+planted)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "password=%s %s", planted, r.URL)
	}))
	defer server.Close()
	list := "requests:\n- {path: '/a?token=" + planted + "', headers: {Authorization: Bearer " + planted + "}, status: 403}\n- {path: '/b?password=" + planted + "', status: 403, method: POST, body: " + planted + "}\n"
	if err := os.WriteFile(filepath.Join(p.Dir, "urls.yaml"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--set", "server=" + server.URL, "--set", "urls=urls.yaml", "--out", "run"}, {"--set", "server=" + server.URL, "--set", "urls=urls.yaml", "--dry-run"},
		{"--set", "server=http://me:" + planted + "@127.0.0.1:1"}, {"--set", "server=http://127.0.0.1:1/?token=" + planted},
	} {
		got := p.Run(t, append([]string{"sweep", "http", "--axis", "rate", "--levels", "20", "--hold", "1s", "--yes"}, args...)...)
		if strings.Contains(got.Stdout+got.Stderr, planted) {
			t.Errorf("%v prints %s%s", args, got.Stdout, got.Stderr)
		}
	}
	holdsNothing(t, filepath.Join(p.Dir, "run"))
}

// holdsNothing looks through all files of a run directory for what was planted, and
// at who may read them.
func holdsNothing(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		files++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if unzip, _ := zstd.NewReader(bytes.NewReader(data)); strings.HasSuffix(path, ".zst") {
			var text bytes.Buffer
			if _, err := unzip.WriteTo(&text); err != nil {
				return err
			}
			data = text.Bytes()
		}
		if i := bytes.Index(data, []byte(planted)); i >= 0 {
			t.Errorf("%s holds a secret: %q", path, data[max(i-80, 0):min(i+80, len(data))])
		}
		return nil
	})
	if err != nil || files < 4 {
		t.Errorf("%s has %d files: %v", dir, files, err)
	}
	type row struct {
		Slot    string `parquet:"slot"`
		Error   string `parquet:"error"`
		Message string `parquet:"message"`
	}
	rows, err := parquet.ReadFile[row](filepath.Join(dir, record.ObjectsFile))
	if text := fmt.Sprint(rows); err != nil || strings.Contains(text, planted) {
		t.Errorf("%s: %v %s", record.ObjectsFile, err, text)
	}
}
