package virt_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// secretMachines are virtual machines that hold secrets, tell one as their status,
// and one of which the API refuses and quotes.
const secretMachines = `schema: plimsoll/workload/v1
name: secret-machines
help: virtual machines that hold secrets
target: kubevirt
config: config.yml
lab: virt
objects:
  noun: {one: machine, many: machines}
  place: {one: node, many: nodes}
  resources:
  - {name: machine, apiVersion: kubevirt.io/v1, kind: VirtualMachine, says: 'metadata.annotations.says'}
  - {name: instance, apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance}
  milestones:
  - {name: Running, resource: instance, path: status.phase, values: [Running], place: status.nodeName, by: starting machines}
  there: Running
  troubles:
  - {path: 'metadata.annotations.fails', values: ["yes"], message: 'metadata.annotations.dsn', final: true, class: machines, what: machines failed}
axes:
- {name: machines, means: objects, unit: machines, help: machines, loop: closed, default: {from: 1, step: 1, max: 5, resolution: 1}}
params:
- {name: password, type: string, help: of root}
- {name: pin, type: string, secret: true, help: of a card}
- {name: hostKey, type: string, help: of SSH}
- {name: color, type: string, default: red, help: what a label says}
components: [{name: machine, object: 0}]
goals: {running: [all Running]}
primary: Running p50
hold: 1s
stepTimeout: 20s
`

const secretMachine = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: secret-{{ .Iteration }}{{ if eq .color "named" }}-token={{ .pin }}{{ end }}
  labels: {color: "{{ if eq .color ` + "`bad`" + ` }}token=` + e2e.Planted + ` \e[31m\u202e{{ else }}red{{ end }}"}
  annotations:
    says: "login with password=` + e2e.Planted + ` or {{ .pin }}"
    dsn: "postgres://me:` + e2e.Planted + `@db/x"
    fails: {{ if eq .color "fails" }}"yes"{{ else }}"no"{{ end }}
spec:
  runStrategy: Always
  template:
    metadata:
      annotations: {token: {{ .pin | quote }}}
    spec:
      domain:
        resources: {requests: {memory: 64Mi}}
        devices:
          disks: [{name: root, disk: {bus: virtio}}, {name: seed, disk: {bus: virtio}}]
      volumes:
      - {name: root, containerDisk: {image: "registry.test/disk:1"}}
      - name: seed
        cloudInitNoCloud:
          userData: |
            #cloud-config
            password: {{ .password | quote }}
            chpasswd: {expire: false, users: [{name: root, password: {{ .password | quote }}, type: text}]}
            ssh_keys: {ed25519_private: {{ .hostKey | quote }}}
            write_files: [{path: /etc/token, content: "token={{ .pin }}"}]
            runcmd: [[sh, -c, "curl -u me:{{ .password }} https://me:` + e2e.Planted + `@host/"]]
          networkDataBase64: {{ printf "password: %s" .password | b64enc }}
`

// Nor does anything of virtual machines: of their user data, keys and annotations,
// and of what the API and they themselves say of them.
func TestNoSecretOfAMachineIsOnRecord(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	long := suite.Size(0, 1) == 1
	if long {
		p = suite.Lab(t, "--virt", "--nodes", "4", "--time-scale", "20")
	}
	key := "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA" + e2e.Planted + "\n-----END OPENSSH PRIVATE KEY-----\n"
	if err := os.CopyFS(filepath.Join(p.Dir, "machines"), fstest.MapFS{
		"workload.yaml": {Data: []byte(secretMachines)}, "machine.yml": {Data: []byte(secretMachine)},
		"config.yml": {Data: []byte("jobs:\n- name: machines\n  jobType: create\n  jobIterations: {{ get . \"jobIterations\" | default 1 }}\n  namespace: secret-machines-{{ .UUID | trunc 8 }}\n  objects:\n  - objectTemplate: machine.yml\n    replicas: 1\n    inputVars: {password: {{ .password | quote }}, pin: {{ .pin | quote }}, hostKey: {{ .hostKey | quote }}, color: {{ .color | quote }}}\n")},
	}); err != nil {
		t.Fatal(err)
	}
	sweep := []string{"sweep", "./machines", "--levels", "2", "--set", "password=a b/" + e2e.Planted, "--set", "pin=" + e2e.Planted + "-4711", "--set", "hostKey=" + key}
	run := e2e.SaysNothing(t, p)
	run(process.ExitPass, "dry run", append(sweep, "--dry-run")...)
	run(process.ExitPass, "outline", append(sweep, "--dry-run", "-o", "json")...)
	run(process.ExitUsage, "there is no parameter", append(sweep, "--dry-run", "--set", "token="+e2e.Planted)...)
	if !long {
		return
	}
	sweep = append(sweep, "--lab", p.Lab)
	run(process.ExitPass, "", "check", "./machines", "--lab", p.Lab, "--set", "password="+e2e.Planted, "--set", "pin="+e2e.Planted, "--set", "hostKey="+key)
	for _, c := range []struct {
		color, says string
		code        int
	}{
		{"red", "Report: ", process.ExitPass},
		{"fails", "(masked)", e2e.AnyCode},
		{"bad", "Invalid value", process.ExitUsage},
		{"named", "Invalid value", process.ExitUsage},
	} {
		run(c.code, c.says, append(sweep, "--set", "color="+c.color, "--out", c.color)...)
		if c.code == process.ExitUsage {
			if _, err := os.Stat(filepath.Join(p.Dir, c.color)); err == nil {
				t.Errorf("%s: there is a record", c.color)
			}
			continue
		}
		run(c.code, "", "analyze", c.color, "-o", "json")
		run(process.ExitPass, "", "report", c.color)
		e2e.HoldsNothing(t, filepath.Join(p.Dir, c.color), "b3BlbnNzaC1rZXktdjEA")
	}
}
