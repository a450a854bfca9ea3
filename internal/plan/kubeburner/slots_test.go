package kubeburner

import (
	"reflect"
	"slices"
	"testing"
)

func TestNamespaces(t *testing.T) {
	for _, c := range []struct {
		why      string
		job      Job
		from, to int
		want     []string
	}{
		{"one for each iteration", Job{Namespace: "n", NamespacedIterations: true, IterationsPerNamespace: 1}, 0, 3, []string{"n-0", "n-1", "n-2"}},
		{"shared by two", Job{Namespace: "n", NamespacedIterations: true, IterationsPerNamespace: 2}, 0, 5, []string{"n-0", "n-1", "n-2"}},
		{"from the middle", Job{Namespace: "n", NamespacedIterations: true, IterationsPerNamespace: 2}, 3, 4, []string{"n-1"}},
		{"one for all", Job{Namespace: "n"}, 0, 5, []string{"n"}},
		{"no iterations, no namespaces", Job{Namespace: "n"}, 5, 5, nil},
		{"none", Job{NamespacedIterations: true, IterationsPerNamespace: 1}, 0, 5, nil},
	} {
		got := c.job.Namespaces(c.from, c.to)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.why, got, c.want)
		}
		// The slow twin asks iteration by iteration.
		var each []string
		for i := c.from; i < c.to; i++ {
			if n := c.job.NamespaceOf(i); n != "" && !slices.Contains(each, n) {
				each = append(each, n)
			}
		}
		if !slices.Equal(got, each) {
			t.Errorf("%s: got %v, one by one %v", c.why, got, each)
		}
	}
}

func TestSlots(t *testing.T) {
	job := Job{Namespace: "n", NamespacedIterations: true, IterationsPerNamespace: 2, Objects: []Object{
		{Replicas: 2, RepeatEveryNIterations: 1},
		{Replicas: 1, RunOnce: true},
		{Replicas: 1, RepeatEveryNIterations: 2},
		{Replicas: 0},
	}}
	all := []Slot{
		{0, 0, 1, "n-0"}, {0, 0, 2, "n-0"}, {1, 0, 1, "n-0"}, {2, 0, 1, "n-0"},
		{0, 1, 1, "n-0"}, {0, 1, 2, "n-0"},
		{0, 2, 1, "n-1"}, {0, 2, 2, "n-1"}, {2, 2, 1, "n-1"},
	}
	if got := slices.Collect(job.Slots(0, 3)); !reflect.DeepEqual(got, all) {
		t.Errorf("got %v, want %v", got, all)
	}
	// Raising the load in two steps asks for the same.
	if got := append(slices.Collect(job.Slots(0, 1)), slices.Collect(job.Slots(1, 3))...); !reflect.DeepEqual(got, all) {
		t.Errorf("in two steps: got %v, want %v", got, all)
	}
	for s := range job.Slots(0, 1000) {
		if s.Iteration > 0 {
			break // stopping early is allowed
		}
	}
}

func TestPodsOf(t *testing.T) {
	type m = map[string]any
	for _, c := range []struct {
		why     string
		doc     m
		want    int
		perNode bool
	}{
		{"a pod", m{"apiVersion": "v1", "kind": "Pod"}, 1, false},
		{"a deployment without replicas", m{"apiVersion": "apps/v1", "kind": "Deployment", "spec": m{}}, 1, false},
		{"a deployment with replicas", m{"apiVersion": "apps/v1", "kind": "Deployment", "spec": m{"replicas": int64(5)}}, 5, false},
		{"none is a number too", m{"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": m{"replicas": int64(0)}}, 0, false},
		{"a stateful set", m{"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": m{"replicas": int64(3)}}, 3, false},
		{"a replication controller", m{"apiVersion": "v1", "kind": "ReplicationController"}, 1, false},
		{"a job runs some after others", m{"apiVersion": "batch/v1", "kind": "Job", "spec": m{"parallelism": int64(4), "completions": int64(10)}}, 10, false},
		{"a job without a number of its own runs this many at once", m{"apiVersion": "batch/v1", "kind": "Job", "spec": m{"parallelism": int64(4)}}, 4, false},
		{"a job that needs fewer", m{"apiVersion": "batch/v1", "kind": "Job", "spec": m{"parallelism": int64(4), "completions": int64(2)}}, 2, false},
		{"a daemon set: one a node", m{"apiVersion": "apps/v1", "kind": "DaemonSet"}, 0, true},
		{"a cron job: none yet", m{"apiVersion": "batch/v1", "kind": "CronJob"}, 0, false},
		{"something else of that name", m{"apiVersion": "example.com/v1", "kind": "Deployment"}, 0, false},
		{"a config map", m{"apiVersion": "v1", "kind": "ConfigMap"}, 0, false},
		{"not a manifest", m{}, 0, false},
	} {
		if got, perNode := PodsOf(c.doc); got != c.want || perNode != c.perNode {
			t.Errorf("%s: got %d, %v; want %d, %v", c.why, got, perNode, c.want, c.perNode)
		}
	}
}

func TestLabels(t *testing.T) {
	id := Identity{UUID: "u", RunID: "r", Job: "j", Object: 2, Iteration: "7", Replica: "3"}
	want := map[string]string{
		"kube-burner.io/uuid": "u", "kube-burner.io/runid": "r", "kube-burner.io/job": "j", "kube-burner.io/index": "2",
		"kube-burner.io/job-iteration": "7", "kube-burner.io/replica": "3", "kube-burner.io/group": "0",
	}
	if got := id.Labels(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	namespace := map[string]string{"kube-burner.io/uuid": "u", "kube-burner.io/runid": "r", "kube-burner.io/job": "j"}
	if got := NamespaceLabels("u", "r", "j"); !reflect.DeepEqual(got, namespace) {
		t.Errorf("got %v", got)
	}
}

// The disks that a machine is made with have its labels, by which jobs select them, and kube-burner's, but none of ours.
func TestLabelsOfDisks(t *testing.T) {
	machine := map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"labels": map[string]any{"group": "7"}}, "spec": map[string]any{"dataVolumeTemplates": []any{map[string]any{"metadata": map[string]any{"name": "d"}}}}}
	if err := InjectLabels(machine, map[string]string{LabelJob: "j", "plimsoll.dev/run": "r"}); err != nil {
		t.Fatal(err)
	}
	disk := machine["spec"].(map[string]any)["dataVolumeTemplates"].([]any)[0]
	if want := (map[string]any{"metadata": map[string]any{"name": "d", "labels": map[string]any{"group": "7", LabelJob: "j"}}}); !reflect.DeepEqual(disk, want) {
		t.Errorf("%v, want %v", disk, want)
	}
	machine["spec"] = map[string]any{"dataVolumeTemplates": []any{"d"}}
	if err := InjectLabels(machine, nil); err == nil || err.Error() != "spec.dataVolumeTemplates[0] is not a mapping" {
		t.Errorf("%v", err)
	}
}

func TestInjectLabels(t *testing.T) {
	type m = map[string]any
	add := map[string]string{"a": "1"}
	labelled := m{"labels": m{"a": "1"}}
	for _, c := range []struct {
		why       string
		doc, want m
	}{
		{"metadata is made when it is missing", m{"kind": "ConfigMap"}, m{"kind": "ConfigMap", "metadata": labelled}},
		{"other labels stay, the same is replaced",
			m{"kind": "Pod", "metadata": m{"name": "x", "labels": m{"a": "0", "b": "2"}}},
			m{"kind": "Pod", "metadata": m{"name": "x", "labels": m{"a": "1", "b": "2"}}}},
		{"a deployment's pods",
			m{"apiVersion": "apps/v1", "kind": "Deployment", "spec": m{"template": m{"metadata": m{"labels": m{"app": "x"}}}}},
			m{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": labelled,
				"spec": m{"template": m{"metadata": m{"labels": m{"app": "x", "a": "1"}}}}}},
		{"an object passes its labels on, as in kube-burner, but for those that its selector may ask for",
			m{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": m{"labels": m{"app": "y", "b": "2"}}, "spec": m{"template": m{"metadata": m{"labels": m{"app": "x"}}}}},
			m{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": m{"labels": m{"app": "y", "b": "2", "a": "1"}},
				"spec": m{"template": m{"metadata": m{"labels": m{"app": "x", "b": "2", "a": "1"}}}}}},
		{"a job does not",
			m{"apiVersion": "batch/v1", "kind": "Job", "metadata": m{"labels": m{"b": "2"}}, "spec": m{"template": m{}}},
			m{"apiVersion": "batch/v1", "kind": "Job", "metadata": m{"labels": m{"b": "2", "a": "1"}}, "spec": m{"template": m{"metadata": labelled}}}},
		{"a deployment without template", m{"apiVersion": "apps/v1", "kind": "Deployment", "spec": m{}},
			m{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": labelled, "spec": m{}}},
		{"a cron job's pods",
			m{"apiVersion": "batch/v1", "kind": "CronJob", "spec": m{"jobTemplate": m{"spec": m{"template": m{}}}}},
			m{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": labelled,
				"spec": m{"jobTemplate": m{"spec": m{"template": m{"metadata": labelled}}}}}},
		{"a replication controller's pods", m{"apiVersion": "v1", "kind": "ReplicationController", "spec": m{"template": m{}}},
			m{"apiVersion": "v1", "kind": "ReplicationController", "metadata": labelled, "spec": m{"template": m{"metadata": labelled}}}},
		{"a virtual machine's pod", m{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "spec": m{"template": m{}}},
			m{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": labelled, "spec": m{"template": m{"metadata": labelled}}}},
		{"a job of another API has no pod template there",
			m{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": m{"template": m{}}},
			m{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": labelled, "spec": m{"template": m{}}}},
	} {
		if err := InjectLabels(c.doc, add); err != nil || !reflect.DeepEqual(c.doc, c.want) {
			t.Errorf("%s:\n got %v, %v\nwant %v", c.why, c.doc, err, c.want)
		}
	}
	for _, c := range []struct {
		why  string
		doc  m
		want string
	}{
		{"metadata of the wrong kind", m{"metadata": "x"}, "metadata is not a mapping"},
		{"labels of the wrong kind", m{"metadata": m{"labels": []any{}}}, "metadata.labels is not a mapping"},
		{"a template of the wrong kind", m{"apiVersion": "apps/v1", "kind": "Deployment", "spec": m{"template": "x"}}, "spec.template is not a mapping"},
		{"a template's labels of the wrong kind", m{"apiVersion": "apps/v1", "kind": "Deployment", "spec": m{"template": m{"metadata": m{"labels": 1}}}},
			"spec.template.metadata.labels is not a mapping"},
	} {
		if err := InjectLabels(c.doc, add); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.why, err, c.want)
		}
	}
}

// TestLabelledPatternFills labels a pattern once and fills it for many slots.
func TestLabelledPatternFills(t *testing.T) {
	compiled := compile(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: 'p-{{.Iteration}}-{{.Replica}}'}\n", TemplateOptions{})
	pattern, ok := compiled.Specialise(Vars{})
	if !ok {
		t.Fatal("no pattern")
	}
	id := Identity{UUID: "u", RunID: "r", Job: "j", Iteration: pattern.Iteration, Replica: pattern.Replica}
	if err := InjectLabels(pattern.Docs[0], id.Labels()); err != nil {
		t.Fatal(err)
	}
	fast := pattern.Fill(12, 3)
	slow, err := compiled.Render(Vars{Iteration: 12, Replica: 3})
	if err != nil {
		t.Fatal(err)
	}
	id.Iteration, id.Replica = "12", "3"
	if err := InjectLabels(slow[0], id.Labels()); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(fast, slow) {
		t.Errorf("fast %v\nslow %v", fast, slow)
	}
}
