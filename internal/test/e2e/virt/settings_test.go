package virt_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// Settings of the cluster are changed for a run, do what they should, and are
// put back: at its end, and after SIGKILL by the next run or by clean.
func TestSettings(t *testing.T) {
	t.Parallel()
	suite.Long(t, "migrates virtual machines for a minute")
	p := suite.Lab(t, "--virt", "--nodes", "4", "--time-scale", "20")
	_, client := e2e.LabClient(t, p.Kubeconfig)
	ctx := context.Background()
	kubevirt := func() *unstructured.Unstructured {
		t.Helper()
		o, err := client.Resource(schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}).Namespace("kubevirt").Get(ctx, "kubevirt", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	limit := func() int64 {
		n, _, _ := unstructured.NestedInt64(kubevirt().Object, "spec", "configuration", "migrations", "parallelMigrationsPerCluster")
		return n
	}
	before := kubevirt()
	isBack := func(when string) {
		t.Helper()
		now := kubevirt()
		if !reflect.DeepEqual(now.Object["spec"], before.Object["spec"]) || !maps.Equal(now.GetLabels(), before.GetLabels()) || !maps.Equal(now.GetAnnotations(), before.GetAnnotations()) {
			t.Errorf("%s: the KubeVirt is not as it was: %v", when, now.Object)
		}
	}
	migrate := func(limit, dir string) []string {
		return []string{"sweep", "vm-migration", "--lab", p.Lab, "--levels", "16", "--hold", "1s", "--set", "outboundMigrations=8", "--set", "parallelMigrations=" + limit, "--out", dir}
	}

	took := make(map[string]float64)
	for _, n := range []string{"1", "16"} {
		if got := p.Run(t, migrate(n, "limit"+n)...); got.Code != process.ExitPass {
			t.Fatalf("limit %s: exit code %d\n%s%s", n, got.Code, got.Stdout, got.Stderr)
		}
		isBack("after a run")
		dir := "limit" + n
		took[n] = *p.Result(t, dir).Steps[0].Latency["Admitted"].Max
		if p.Count(dir, func(e record.Event) bool {
			note, is := e.Body.(*record.Note)
			return is && note.Warning == record.WarningSetting && strings.Contains(note.Text, "parallelMigrationsPerCluster not set -> "+n)
		}) != 1 {
			t.Errorf("the record of limit %s does not tell the change", n)
		}
	}
	if took["1"] < 2*took["16"] {
		t.Errorf("the last migration was admitted after %v s by limit", took)
	}

	for _, next := range [][]string{{"clean", "--lab", p.Lab}, migrate("2", "next")} {
		s := p.Start(t, migrate("3", filepath.Base(next[0])+"-killed")...)
		harness.Await(t, "the change", func() bool { return limit() == 3 })
		s.Kill()
		if n := limit(); n != 3 {
			t.Errorf("SIGKILL has put back %d", n)
		}
		if got := p.Run(t, next...); got.Code != 0 {
			t.Errorf("%s: exit code %d\n%s", next[0], got.Code, got.Stderr)
		}
		isBack("SIGKILL, then " + next[0])
	}

	config, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Contexts {
		delete(c.Extensions, lab.MarkerExtension)
	}
	stripped := filepath.Join(p.Dir, "stripped")
	if err := clientcmd.WriteToFile(*config, stripped); err != nil {
		t.Fatal(err)
	}
	got := p.Run(t, "sweep", "vm-migration", "--kubeconfig", stripped, "--levels", "2", "--set", "parallelMigrations=7", "--out", "refused")
	if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "parallelMigrationsPerCluster of KubeVirt kubevirt/kubevirt is changed for the run, not set -> 7") {
		t.Errorf("a cluster that is not a lab: %d\n%s", got.Code, got.Stderr)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "refused")); err == nil {
		t.Error("a run that was refused has left a record")
	}
	isBack("a run that was refused")
}

// Where there is a HyperConverged, settings are changed in it, it overwrites the
// KubeVirt, and what it has no field for is refused.
func TestSettingsOfHyperConverged(t *testing.T) {
	t.Parallel()
	suite.Long(t, "migrates virtual machines three times")
	p := suite.Lab(t, "--virt", "--nodes", "3", "--time-scale", "20", "--virt-figures", "hyperconverged=true")
	_, client := e2e.LabClient(t, p.Kubeconfig)
	limits := func() (in [2]int64) {
		t.Helper()
		for i, at := range [][]string{{"hco.kubevirt.io", "v1beta1", "hyperconvergeds", "kubevirt-hyperconverged", "spec", "liveMigrationConfig"},
			{"kubevirt.io", "v1", "kubevirts", "kubevirt", "spec", "configuration", "migrations"}} {
			o, err := client.Resource(schema.GroupVersionResource{Group: at[0], Version: at[1], Resource: at[2]}).Namespace("kubevirt").Get(context.Background(), at[3], metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			in[i], _, _ = unstructured.NestedInt64(o.Object, append(at[4:], "parallelMigrationsPerCluster")...)
		}
		return in
	}
	is := func(what string, n int64) {
		t.Helper()
		harness.Await(t, what, func() bool { return limits() == [2]int64{n, n} })
	}
	is("the HyperConverged's own limit", 5)
	kubevirts := client.Resource(schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}).Namespace("kubevirt")
	if _, err := kubevirts.Patch(context.Background(), "kubevirt", types.MergePatchType, []byte(`{"spec":{"configuration":{"migrations":{"parallelMigrationsPerCluster":9}}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	is("a KubeVirt that was changed by itself", 5)
	hyper := client.Resource(schema.GroupVersionResource{Group: "hco.kubevirt.io", Version: "v1beta1", Resource: "hyperconvergeds"}).Namespace("kubevirt")
	if _, err := hyper.Patch(context.Background(), "kubevirt-hyperconverged", types.MergePatchType, []byte(`{"spec":{"tuningPolicy":"fast"}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a policy that there is not: %v", err)
	}

	migrate := func(limit, dir string) []string {
		return []string{"sweep", "vm-migration", "--lab", p.Lab, "--levels", "8", "--hold", "1s", "--set", "parallelMigrations=" + limit, "--out", dir}
	}
	for _, next := range [][]string{{"clean", "--lab", p.Lab}, migrate("20", "next")} {
		s := p.Start(t, migrate("3", filepath.Base(next[0])+"-killed")...)
		is("the change", 3)
		s.Kill()
		if n := limits(); n != [2]int64{3, 3} {
			t.Errorf("SIGKILL has put back %d", n)
		}
		if got := p.Run(t, next...); got.Code != 0 {
			t.Errorf("%s: exit code %d\n%s", next[0], got.Code, got.Stderr)
		}
		is("SIGKILL, then "+next[0], 5)
	}
	if p.Count("next", func(e record.Event) bool {
		note, is := e.Body.(*record.Note)
		return is && note.Warning == record.WarningSetting && strings.Contains(note.Text, "HyperConverged kubevirt/kubevirt-hyperconverged: spec.liveMigrationConfig.parallelMigrationsPerCluster 5 -> 20")
	}) != 1 {
		t.Error("the record does not tell the change")
	}
	for _, param := range []string{"apiReplicas", "controllerQPS", "controllerBurst"} {
		got := p.Run(t, "sweep", "vm-boot-storm", "--lab", p.Lab, "--levels", "2", "--set", param+"=1", "--out", param)
		if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "parameter "+param+": HyperConverged kubevirt/kubevirt-hyperconverged overwrites what would be changed") {
			t.Errorf("%s: exit code %d\n%s", param, got.Code, got.Stderr)
		}
	}
}
