package kubernetes_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/yaml"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// The program runs as a pod, as a user without rights and with a root that it cannot write
// to, and finds the load line of its own cluster by the rights that 'plimsoll job' gives it.
func TestTheProgramRunsInTheClusterThatItLoads(t *testing.T) {
	suite.Long(t, "brings a real node up, and runs the program on it")
	_, err := realnode.Check()
	harness.Able(t, err)
	p := suite.Program(t)
	run := func(args ...string) string {
		t.Helper()
		got := p.Run(t, args...)
		if got.Code != process.ExitPass {
			t.Fatalf("%v: exit code %d\n%s%s", args, got.Code, got.Stdout, got.Stderr)
		}
		return got.Stdout
	}
	run("image", "build", "self")
	run("lab", "up", "within", "--real-node", "--nodes", "2", "--max-pods", "15")
	config := strings.TrimSpace(run("lab", "kubeconfig", "within"))
	typed, untyped := e2e.LabClient(t, config)
	ctx := t.Context()
	manifest := run("job", "node-density", "--image", image.SelfReference, "--",
		"--set", "nodeSelector="+protocol.SimulatedSelector, "--from", "10", "--step", "10", "--max", "20", "--hold", "1s", "--confirm", "1")
	label, value, _ := strings.Cut(protocol.RealSelector, "=")
	for text := range strings.SplitSeq(manifest, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		kind := object.GroupVersionKind()
		var client dynamic.ResourceInterface = untyped.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"})
		if space := object.GetNamespace(); space != "" {
			client = client.(dynamic.NamespaceableResourceInterface).Namespace(space)
		}
		if _, err := client.Create(ctx, &object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatalf("a strict dry run: %v\n%s", err, text)
		}
		if kind.Kind == "Job" { // a simulated node would only say that it runs the program
			if err := unstructured.SetNestedField(object.Object, value, "spec", "template", "spec", "nodeSelector", label); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := client.Create(ctx, &object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	const space, job = "plimsoll", "plimsoll-job-node-density"
	pods := typed.CoreV1().Pods(space)
	var pod corev1.Pod
	state := func(container string) corev1.ContainerState {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) > 0 {
			pod = list.Items[0]
		}
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name == container {
				return s.State
			}
		}
		return corev1.ContainerState{}
	}
	logs := func() string {
		text, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{Container: "run"}).DoRaw(context.Background())
		return fmt.Sprintf("%s%v", text, err)
	}
	t.Cleanup(func() {
		if t.Failed() && pod.Name != "" {
			t.Logf("the log of the run: %s\n%+v", logs(), pod.Status)
		}
	})
	users := make(map[string]bool)
	harness.Await(t, "the program runs", func() bool {
		if state("run").Terminated != nil {
			t.Fatal("the run ended before its process was seen")
		}
		users = usersOf("/plimsoll\x00limit\x00node-density\x00--in-cluster")
		return len(users) > 0
	})
	if len(users) != 1 || !users["65532"] {
		t.Errorf("the program runs as the users %v", users)
	}
	harness.Await(t, "the run ends", func() bool { return state("run").Terminated != nil })
	if end := state("run").Terminated; end.ExitCode != process.ExitPass || !strings.Contains(logs(), "Load line of node-density: 15 pods/node") {
		t.Fatalf("exit code %d", end.ExitCode)
	}
	if state("record").Running == nil {
		t.Fatal("nothing keeps the record")
	}

	out := filepath.Join(p.Dir, "run")
	unpack(t, out, inPod(t, config, &pod, "record", "/plimsoll", "job", "copy", "/data/run"))
	if r := p.Result(t, "run"); r.LoadLine == nil || *r.LoadLine.Level != 15 || r.Cleanup == nil || !r.Cleanup.Done {
		t.Errorf("the record says %+v, %+v", r.LoadLine, r.Cleanup)
	}
	if e := p.Environment(t, "run"); e.Target.Name != "in-cluster" {
		t.Errorf("the target is %+v", e.Target)
	}
	run("analyze", "run")
	harness.Await(t, "the job is complete", func() bool {
		j, err := typed.BatchV1().Jobs(space).Get(ctx, job, metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 1
	})
}

// usersOf returns the users of the processes whose command line begins so.
func usersOf(command string) map[string]bool {
	users := make(map[string]bool)
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(line), command) {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		_, after, _ := strings.Cut(string(status), "\nUid:")
		if fields := strings.Fields(after); len(fields) > 0 {
			users[fields[0]] = true
		}
	}
	return users
}

// inPod returns the standard output of a command in a container.
func inPod(t *testing.T, kubeconfig string, pod *corev1.Pod, container string, command ...string) []byte {
	t.Helper()
	typed, _ := e2e.LabClient(t, kubeconfig)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	request := typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	var stdout, stderr bytes.Buffer
	executor, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
	if err == nil {
		err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	}
	if err != nil {
		t.Fatalf("%v in %s: %v\n%s", command, pod.Name, err, stderr.String())
	}
	return stdout.Bytes()
}

// unpack writes the files of a tar archive below a directory.
func unpack(t *testing.T, dir string, archive []byte) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			continue
		}
		data, err := io.ReadAll(r)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
}
