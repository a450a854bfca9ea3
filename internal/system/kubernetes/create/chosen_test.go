package create

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// A controller has rolled out a patch once all its pods come from the new template.
func TestRolledOut(t *testing.T) {
	const deployment = `{"metadata":{"generation":2},"spec":{"replicas":3,"strategy":{"type":"RollingUpdate"},"template":{}},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":3}}`
	const daemon = `{"metadata":{"generation":2},"spec":{"updateStrategy":{"type":"RollingUpdate"},"template":{}},"status":{"observedGeneration":2,"desiredNumberScheduled":2,"updatedNumberScheduled":2,"numberReady":2}}`
	for _, tt := range []struct {
		why, object, was, is string
		want                 bool
	}{
		{"all of them", deployment, "", "", true},
		{"its controller has not seen the patch", deployment, `"observedGeneration":2`, `"observedGeneration":1`, false},
		{"one is of the old template", deployment, `"updatedReplicas":3`, `"updatedReplicas":2`, false},
		{"an old one is left", deployment, `"replicas":3,"updatedReplicas"`, `"replicas":4,"updatedReplicas"`, false},
		{"one is not ready", deployment, `,"readyReplicas":3`, ``, false},
		{"one by default", deployment, `"replicas":3,"strategy"`, `"strategy"`, false},
		{"a ReplicaSet changes no pod", deployment, `"strategy":{"type":"RollingUpdate"},`, ``, true},
		{"a daemon on each node", daemon, "", "", true},
		{"a daemon that is missing", daemon, `"numberReady":2`, `"numberReady":1`, false},
		{"a daemon that waits for a person", strings.Replace(daemon, `"numberReady":2`, `"numberReady":1`, 1), `RollingUpdate`, `OnDelete`, true},
		{"an object without pods", `{"metadata":{"generation":2},"data":{}}`, "", "", true},
	} {
		if got := rolledOut([]byte(strings.Replace(tt.object, tt.was, tt.is, 1))); got != tt.want {
			t.Errorf("%s: %v", tt.why, got)
		}
	}
	c := &chosen{there: map[string]target{"u": {name: "d", version: 7, rolled: true}}, patched: map[string]int64{"u": 8, "gone": 9}}
	if n, name := c.rolling(); n != 1 || name != "d" {
		t.Errorf("a state from before the patch counts: %d %s", n, name)
	}
	c.there["u"] = target{name: "d", version: 8, rolled: true}
	if n, _ := c.rolling(); n != 0 {
		t.Errorf("%d objects are rolling out", n)
	}
}

// What controllers make of the run's objects has kube-burner's labels of the run, and may have no other: disks of machines.
func TestAChoiceIsOfTheRun(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	for of, want := range map[kubeburner.JobType]string{kubeburner.Patch: "a=b,kube-burner.io/runid=r", kubeburner.Delete: "a=b,kube-burner.io/runid=r", kubeburner.Read: "a=b"} {
		job := &kubeburner.Job{JobType: of, Objects: []kubeburner.Object{{APIVersion: "v1", Kind: "PersistentVolumeClaim", LabelSelector: map[string]string{"a": "b"}}}}
		m, err := newChooser(job, 0, 0, nil, prepared.Identity{Run: "r"}, mapper)
		if err != nil || m.chooses.selector != want {
			t.Errorf("%s: %+v, %v", of, m.chooses, err)
		}
	}
}

// A kind that is waited for without its API is what the entry makes, if that is of this kind.
func TestWaitForAKindWithoutItsAPI(t *testing.T) {
	made := schema.GroupVersionKind{Group: "snapshot.kubevirt.io", Version: "v1beta1", Kind: "VirtualMachineSnapshot"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(made, meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	for kind, want := range map[string]string{"VirtualMachineSnapshot": "snapshot.kubevirt.io", "Pod": ""} {
		job := &kubeburner.Job{Objects: []kubeburner.Object{{Wait: true, WaitOptions: kubeburner.WaitOptions{Kind: kind, CustomStatusPaths: []kubeburner.StatusPath{{Key: ".a", Value: "b"}}}}}}
		list, err := (&Maker{job: job, mapper: mapper}).awaitedOf([]schema.GroupVersionKind{made})
		if err != nil || len(list) != 1 || list[0].resource.Resource.Group != want {
			t.Errorf("%s: %v, %v", kind, list, err)
		}
	}
}
