package kubernetes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// burnerJobs are small configurations, each with one thing that kube-burner 2.7.3 does.
var burnerJobs = map[string]string{
	"cm.yml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'cm-{{.Iteration}}'}\n",
	"fixed.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\n",
	"role.yml":  "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'plimsoll-burner-{{.Iteration}}'}\n",
	"pod.yml":   "apiVersion: v1\nkind: Pod\nmetadata: {name: 'p-{{.Iteration}}'}\nspec: {containers: [{name: c, image: pause}]}\n",
	"d.yml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: 'd-{{.Iteration}}'}\nspec:\n  replicas: 2\n  selector: {matchLabels: {name: 'd-{{.Iteration}}'}}\n" +
		"  template: {metadata: {labels: {name: 'd-{{.Iteration}}'}}, spec: {containers: [{name: c, image: pause}]}}\n",
	"roll.yml":   "spec: {template: {metadata: {annotations: {rolled: 'r{{.Replica}}'}}}}\n",
	"job.yml":    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: 'job-{{.Iteration}}'}\nspec: {completions: 3, parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: pause}]}}}\n",
	"claim.yml":  "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: 'claim-{{.Iteration}}'}\nspec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
	"typo.yml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'typo-{{.Iteration}}'}\ndatum: {a: b}\n",
	"daemon.yml": "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: 'ds-{{.Iteration}}'}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {node-role.kubernetes.io/worker: ''}, containers: [{name: c, image: pause}]}}}\n",
	"crd.yml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gauges.burner.example}\nspec:\n  group: burner.example\n  scope: Namespaced\n  names: {kind: Gauge, plural: gauges, singular: gauge}\n" +
		"  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]\n",
	"gauge.yml":   "apiVersion: burner.example/v1\nkind: Gauge\nmetadata: {name: 'g-{{.Iteration}}'}\n",
	"account.yml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: worker}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: 'w-{{.Iteration}}'}\nspec: {serviceAccountName: worker, containers: [{name: c, image: pause}]}\n",
	"own.yml":     "apiVersion: v1\nkind: Pod\nmetadata: {name: 'n-{{.Iteration}}'}\nspec: {nodeSelector: {kubernetes.io/hostname: 'node-{{ printf \"%04d\" .Iteration }}'}, containers: [{name: c, image: pause}]}\n",
	"other.yml":   "apiVersion: v1\nkind: Pod\nmetadata: {name: 'o-{{.Iteration}}'}\nspec: {nodeSelector: {kubernetes.io/hostname: node-0001}, containers: [{name: c, image: pause}]}\n",

	"mark.yml": "metadata: {labels: {mark: 'm{{.Iteration}}'}}\n",

	"sequential.yml": "jobs:\n- {name: seq, qps: 500, burst: 50, namespace: seq, objects: [{objectTemplate: pod.yml}, {objectTemplate: cm.yml}]}\n- name: mark\n  jobType: patch\n  jobIterations: 2\n  executionMode: sequential\n  objectWait: true\n  qps: 500\n  burst: 50\n  objects:\n" +
		"  - {kind: Pod, labelSelector: {kube-burner.io/job: seq}, objectTemplate: mark.yml, patchType: merge, waitOptions: {customStatusPaths: [{key: .phase, value: Running}]}}\n  - {kind: ConfigMap, labelSelector: {kube-burner.io/job: seq}, objectTemplate: mark.yml, patchType: merge}\n",
	"waits.yml":    "jobs:\n- {name: waits, qps: 500, burst: 50, namespace: waits, objects: [{objectTemplate: pod.yml}]}\n- {name: mark, jobType: patch, executionMode: sequential, objectWait: true, waitWhenFinished: false, maxWaitTimeout: 300ms, qps: 500, burst: 50, objects: [{kind: Pod, labelSelector: {kube-burner.io/job: waits}, objectTemplate: mark.yml, patchType: merge, waitOptions: {customStatusPaths: [{key: .phase, value: Gone}]}}]}\n",
	"labels.yml":   "jobs:\n- {name: labels, qps: 500, burst: 50, namespace: labels, maxWaitTimeout: 300ms, objects: [{objectTemplate: pod.yml, waitOptions: {labelSelector: {kube-burner.io/job: labels}}}, {objectTemplate: cm.yml, waitOptions: {labelSelector: {kube-burner.io/job: labels}, customStatusPaths: [{key: .phase, value: Running}]}}]}\n",
	"watchers.yml": "jobs:\n- {name: watchers, qps: 500, burst: 50, namespace: watchers, watchers: [{kind: Pod, apiVersion: v1, labelSelector: {kube-burner.io/job: watchers}, replicas: 3}, {kind: Deployment, apiVersion: apps/v1}], objects: [{objectTemplate: pod.yml}]}\n- {name: after, qps: 500, burst: 50, namespace: after, objects: [{objectTemplate: cm.yml}]}\n",
	"gc.yml":       "jobs:\n- {name: gc, jobIterations: 2, qps: 500, burst: 50, namespace: gc, objects: [{objectTemplate: pod.yml, group: {id: 1, gc: true, pauseBeforeGC: 10ms, pauseAfterGC: 10ms}}, {objectTemplate: cm.yml, group: {id: 2}}]}\n- {name: read, jobType: read, qps: 500, burst: 50, objects: [{kind: ConfigMap, labelSelector: {kube-burner.io/job: gc}}]}\n",
	"repeat.yml":   "jobs:\n- {name: repeat, jobIterations: 5, qps: 500, burst: 50, namespace: repeat, namespacedIterations: false, objects: [{objectTemplate: cm.yml, repeatEveryNIterations: 2}]}\n",
	"groups.yml":   "jobs:\n- {name: groups, jobIterations: 2, qps: 500, burst: 50, namespace: groups, objects: [{objectTemplate: pod.yml, group: {id: 2}}, {objectTemplate: cm.yml, group: {id: 1}}]}\n",
	"churn.yml":    "jobs:\n- {name: churn, jobIterations: 2, qps: 500, burst: 50, namespace: churn, churnConfig: {cycles: 2, percent: 50}, objects: [{objectTemplate: pod.yml}, {objectTemplate: role.yml}]}\n",
	"jobs.yml":     "jobs:\n- {name: jobs, jobIterations: 2, qps: 500, burst: 50, namespace: jobs, objects: [{objectTemplate: job.yml}]}\n",
	"nothing.yml":  "jobs:\n- {name: nothing, jobType: delete, objects: [{kind: ConfigMap, labelSelector: {no: such}}]}\n",
	"rollout.yml":  "jobs:\n- {name: make, jobIterations: 2, qps: 500, burst: 50, namespace: roll, objects: [{objectTemplate: d.yml}]}\n- {name: patch, jobType: patch, qps: 500, burst: 50, objects: [{kind: Deployment, apiVersion: apps/v1, labelSelector: {kube-burner.io/job: make}, objectTemplate: roll.yml, patchType: strategic-merge}]}\n- {name: read, jobType: read, qps: 500, burst: 50, objects: [{kind: Pod, labelSelector: {kube-burner.io/job: make}}]}\n",
	"once.yml":     "jobs:\n- {name: once, jobIterations: 1, qps: 500, burst: 50, namespace: once, namespacedIterations: false, objects: [{objectTemplate: fixed.yml}]}\n",
	"claims.yml":   "jobs:\n- {name: claims, qps: 500, burst: 50, namespace: claims, maxWaitTimeout: 300ms, objects: [{objectTemplate: claim.yml}]}\n",
	"typos.yml":    "jobs:\n- {name: typos, qps: 500, burst: 50, namespace: typos, objects: [{objectTemplate: typo.yml}]}\n",
	"daemons.yml":  "jobs:\n- {name: daemons, qps: 500, burst: 50, namespace: daemons, objects: [{objectTemplate: daemon.yml}]}\n",
	"kinds.yml":    "jobs:\n- {name: define, qps: 500, burst: 50, objects: [{objectTemplate: crd.yml}]}\n- {name: use, jobIterations: 2, qps: 500, burst: 50, namespace: kinds, objects: [{objectTemplate: gauge.yml}]}\n",
	"accounts.yml": "jobs:\n- {name: accounts, jobIterations: 2, qps: 500, burst: 50, namespace: accounts, objects: [{objectTemplate: account.yml}]}\n",
	"selects.yml":  "jobs:\n- {name: selects, jobIterations: 2, qps: 500, burst: 50, namespace: selects, objects: [{objectTemplate: own.yml}, {objectTemplate: other.yml}]}\n",
	"unknown.yml":  "jobs:\n- {name: unknown, qps: 500, namespace: unknown, objects: [{objectTemplate: gauge.yml}]}\n",
}

// What kube-burner makes of a configuration is made, in its order and with its waits, and what passes there passes.
func TestWhatKubeBurnerMakes(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...) // 3 nodes
	writeFiles(t, p.Dir, burnerJobs)
	t.Run("all", func(t *testing.T) {
		for _, tt := range []struct {
			config string
			args   string
			slots  string // of the requests in order; * for any order
			ready  int    // pods of the last step
			steps  int
			fails  string // the reason
			notes  string // a note on record
		}{
			{config: "repeat.yml", slots: "ConfigMap/repeat/cm-0 ConfigMap/repeat/cm-1 ConfigMap/repeat/cm-2", steps: 1},
			{config: "groups.yml", slots: "ConfigMap/groups-0/cm-0 ConfigMap/groups-1/cm-1 groups-0/p-0 groups-1/p-1", ready: 2, steps: 1},
			{config: "churn.yml", ready: 4, steps: 1},
			{config: "jobs.yml", ready: 6, steps: 1},
			{config: "nothing.yml", slots: "list ConfigMap of job nothing", steps: 1, notes: "it states no qps"},
			{config: "rollout.yml", ready: 4, steps: 3},
			{config: "once.yml", slots: "ConfigMap/once/fixed", steps: 1},
			{config: "claims.yml", steps: 1, fails: "1 object of PersistentVolumeClaim not ready after 300ms: claims-0/claim-0: .phase is Pending, not Bound"},
			{config: "typos.yml", slots: "ConfigMap/typos-0/typo-0", steps: 1, notes: `unknown field "datum"`},
			{config: "daemons.yml", ready: 3, steps: 1},
			{config: "kinds.yml", steps: 2},
			{config: "accounts.yml", ready: 2, steps: 1},
			{config: "sequential.yml", slots: "seq-0/p-0 ConfigMap/seq-0/cm-0 patch Pod/seq-0/p-0 of mark.0 patch ConfigMap/seq-0/cm-0 of mark.0 patch Pod/seq-0/p-0 of mark.1 patch ConfigMap/seq-0/cm-0 of mark.1", ready: 1, steps: 2},
			{config: "waits.yml", ready: 1, steps: 2, fails: "1 object of Pod not ready after 300ms: waits-0/p-0: .phase is Running, not Gone"},
			{config: "labels.yml", ready: 1, steps: 1, fails: "1 object of ConfigMap not ready after 300ms: labels-0/cm-0: .phase is not there"},
			{config: "watchers.yml", slots: "watchers-0/p-0 ConfigMap/after-0/cm-0", ready: 1, steps: 2},
			{config: "gc.yml", slots: "gc-0/p-0 gc-1/p-1 delete Pod/gc-0/p-0 of gc.0 delete Pod/gc-1/p-1 of gc.0 ConfigMap/gc-0/cm-0 ConfigMap/gc-1/cm-1 read ConfigMap/gc-0/cm-0 of read.0 read ConfigMap/gc-1/cm-1 of read.0", steps: 2},
			{config: "selects.yml", ready: 4, steps: 1},
			{config: "repeat.yml", args: "--set jobs.0.jobIterations=2 --set jobs.0.namespace=fewer", slots: "ConfigMap/fewer/cm-0", steps: 1},
		} {
			t.Run(strings.ReplaceAll(tt.config+tt.args, " ", ""), func(t *testing.T) {
				t.Parallel()
				out := "r-" + strings.NewReplacer(" ", "", ".yml", "").Replace(tt.config+tt.args)
				got := p.RunTo(t, out, append([]string{"run", tt.config, "--lab", p.Lab}, strings.Fields(tt.args)...)...)
				if passed := got.Code == process.ExitPass || got.Code == process.ExitInvalid; passed != (tt.fails == "") { // beside other tests
					t.Errorf("%s: %+v", out, got)
					return
				}
				r := p.Result(t, out)
				var slots []string
				reasons := ""
				p.Count(out, func(e record.Event) bool {
					switch body := e.Body.(type) {
					case *record.Slot:
						for b := body.Before; b != nil; b = b.Before {
							slots = append(slots, b.Slot)
						}
						slots = append(slots, body.Slot)
						if body.Outcome == record.SlotFailed && tt.fails == "" {
							t.Errorf("%s: %s: %s", out, body.Slot, body.Error)
						}
						reasons += body.Error
					case *record.Note:
						reasons += body.Place + ": " + body.Text + "\n"
					}
					return false
				})
				if tt.slots != "" && strings.Join(slots, " ") != tt.slots {
					t.Errorf("%s: made %q, want %q", out, slots, tt.slots)
				}
				if !strings.Contains(reasons, tt.fails) || !strings.Contains(reasons, tt.notes) {
					t.Errorf("%s: says %s", out, reasons)
				}
				if last := r.Steps[len(r.Steps)-1]; len(r.Steps) != tt.steps || last.Objects.Ready != tt.ready || last.Objects.Intended != tt.ready {
					t.Errorf("%s: %d steps, %d of %d pods ready, want %+v: %s", out, len(r.Steps), last.Objects.Ready, last.Objects.Intended, tt, got.Stdout)
				}
				for _, b := range r.Breaches {
					if tt.fails == "" {
						t.Errorf("%s: %+v", out, b)
					}
				}
			})
		}
	})
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What cannot run is said before any load, by a dry run too.
func TestWhatKubeBurnerRefuses(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	writeFiles(t, p.Dir, burnerJobs)
	writeFiles(t, p.Dir, map[string]string{"in/far.yml": "jobs:\n- {name: far, qps: 500, burst: 50, namespace: far, objects: [{objectTemplate: ../cm.yml}]}\n", "in/default.yml": "jobs:\n- {name: default, qps: 500, namespace: default, namespacedIterations: false, objects: [{objectTemplate: ../cm.yml}]}\n"})
	for _, tt := range []struct {
		args string
		code int
		says []string
	}{
		{"run unknown.yml --dry-run --lab " + p.Lab, process.ExitUsage, []string{"the cluster knows no kind Gauge in burner.example/v1", "gauge.yml:1"}},
		{"run kinds.yml --dry-run --lab " + p.Lab, process.ExitPass, []string{"2 Gauges"}},
		{"run unknown.yml --dry-run", process.ExitPass, []string{"Gauge"}},
		{"run in/far.yml --dry-run", process.ExitUsage, []string{"lies outside the configuration's directory; --allow names"}},
		{"run in/far.yml --dry-run --allow cm.yml", process.ExitPass, []string{"1 ConfigMap"}},
		{"run in/far.yml --dry-run --allow .", process.ExitPass, []string{"1 ConfigMap"}},
		{"run in/default.yml --allow . --out d --lab " + p.Lab, process.ExitUsage, []string{"namespace default exists", "--namespace default"}},
		{"run once.yml --dry-run --set jobs.0.jobIteration=2", process.ExitUsage, []string{`did you mean "jobIterations"?`}},
		{"kube-burner init -c mising.yml --lab " + p.Lab, 1, []string{"no such file: mising.yml"}},
		{"kube-burner init -c once.yml --log-level loud --lab " + p.Lab, 1, []string{`"loud" is not a level`}},
		{"kube-burner init -c once.yml --log-level=debug --dry-run", 0, []string{"1 ConfigMap"}},
		{"check ./accounts.yml --lab " + p.Lab, process.ExitPass, nil},
	} {
		got := p.Run(t, strings.Fields(tt.args)...)
		if got.Code != tt.code || slices.ContainsFunc(tt.says, func(s string) bool { return !strings.Contains(fmt.Sprint(got.Stdout, got.Stderr), s) }) {
			t.Errorf("%s: %+v, want %d and %q", tt.args, got, tt.code, tt.says)
		}
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
