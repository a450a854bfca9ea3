package storage_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// Clients in pods do the IO of a storage class together, each on a claim of its own, which goes with its pod.
func TestIOOnClaims(t *testing.T) {
	suite.Long(t, "a lab of its own, and an image with fio in it")
	t.Parallel()
	p := e2e.WithImage(t, suite, "fio", "packages of Debian")
	typed, _ := e2e.LabClient(t, strings.TrimSpace(p.Run(t, "lab", "kubeconfig", "l").Stdout))
	const class = "disk"
	late := storagev1.VolumeBindingWaitForFirstConsumer
	if _, err := typed.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &late}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	nodes, err := typed.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatal(nodes, err)
	}
	there := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{nodes.Items[0].Labels[corev1.LabelHostname]}},
	}}}}}
	for _, name := range []string{"a", "b"} {
		if _, err := typed.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: class, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, NodeAffinity: there,
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: t.TempDir()}},
		}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const small = "size=16MiB"
	for _, tt := range []struct {
		out, of string // and the fact of what the IO was on
		args    []string
		sides   []string
	}{
		{"bare", "directories of nodes, because the lab has no storage class", []string{"sweep", "claims", "--set", "rw=randrw", "--set", "engine=psync", "--axis", "rate", "--levels", "100", "--hold", "2s"}, []string{"read", "write"}},
		{"claimed", "claims of 512Mi of storage class disk", []string{"sweep", "claims", "--levels", "1,2", "--hold", "2s", "--set", "class=disk", "--set", "claim=512Mi"}, []string{"read"}},
	} {
		p.RunTo(t, tt.out, append(tt.args, "--lab", "l", "--set", "clients=2", "--set", small, "--slo", "errors <= 0%")...)
		r := p.Result(t, tt.out)
		if len(r.Steps) == 0 {
			t.Errorf("%s: %s", tt.out, r.Why)
		}
		for _, s := range r.Steps {
			if s.Metrics["throughput"] <= 0 || s.Latency["Complete"].N == 0 {
				t.Errorf("%s, at %g: %v, %+v", tt.out, s.Level, s.Metrics, s.Latency)
			}
		}
		var sides, places []string
		p.Count(tt.out, func(e record.Event) bool {
			if w, is := e.Body.(*record.Window); is && w.Done > 0 {
				sides = append(sides, w.Component)
				for place := range w.ByPlace {
					places = append(places, place)
				}
			}
			return false
		})
		slices.Sort(sides)
		slices.Sort(places)
		if sides, places = slices.Compact(sides), slices.Compact(places); !slices.Equal(sides, tt.sides) || len(places) != 2 {
			t.Errorf("%s: windows of %v, of the clients %v", tt.out, sides, places)
		}
		facts := p.Environment(t, tt.out).Facts
		if n := slices.IndexFunc(facts, func(f record.Fact) bool { return f.Name == "claims" }); n < 0 || facts[n].Value != tt.of {
			t.Errorf("%s: %+v", tt.out, facts)
		}
	}
	if claims, err := typed.CoreV1().PersistentVolumeClaims("").List(t.Context(), metav1.ListOptions{}); err != nil || len(claims.Items) > 0 {
		t.Errorf("claims that are left: %v, %v", claims, err)
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("a run left %+v", left)
	}
	for _, tt := range []struct{ why, set, says string }{
		{"a class that is misspelt", "class=disc", `did you mean "disk"?`},
		{"a file that is larger than its claim", "claim=1Mi", "is larger than the claim, 1Mi"},
	} {
		out := filepath.Join("mistakes", strings.ReplaceAll(tt.set, "=", "-"))
		if got := p.Run(t, "sweep", "claims", "--levels", "1", "--lab", "l", "--out", out, "--set", tt.set, "--set", small); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, tt.says) {
			t.Errorf("%s: exit code %d, %s", tt.why, got.Code, got.Stderr)
		}
	}
}
