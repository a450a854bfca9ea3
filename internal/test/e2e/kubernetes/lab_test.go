package kubernetes_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// The whole life of a lab at the command line.
func TestLabVerbs(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	p.State = filepath.Join(p.State, "it's a path") // which a shell splits
	must := func(args ...string) harness.Outcome {
		t.Helper()
		got := p.Run(t, args...)
		if got.Code != 0 {
			t.Fatalf("%v: exit code %d\n%s", args, got.Code, got.Stderr)
		}
		return got
	}
	up := must("lab", "up", "a", "--nodes", "3", "--max-pods", "7")
	kubeconfig := strings.TrimSpace(must("lab", "kubeconfig", "a").Stdout)
	said, err := exec.Command("sh", "-c", up.Stdout+`printf %s "$KUBECONFIG"`).Output()
	if err != nil || string(said) != kubeconfig || !strings.HasPrefix(kubeconfig, p.State) {
		t.Errorf("up prints %q, for a shell %q (%v); the kubeconfig is %q", up.Stdout, said, err, kubeconfig)
	}
	if !strings.Contains(up.Stderr, `lab "a" is up after`) || !strings.Contains(up.Stderr, "3 simulated nodes of 7 pods") {
		t.Errorf("up says %q", up.Stderr)
	}

	// Exactly the shape that the contracts fix.
	var status struct {
		Name       string `json:"name"`
		State      string `json:"state"`
		Nodes      *int   `json:"nodes"`
		Pods       *int   `json:"pods"`
		Components []struct {
			Name  string `json:"name"`
			PID   int    `json:"pid"`
			State string `json:"state"`
		} `json:"components"`
	}
	decode := func(text string, v any) {
		t.Helper()
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(v); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	decode(must("lab", "status", "a", "-o", "json").Stdout, &status)
	if status.Name != "a" || status.State != "running" || status.Nodes == nil || *status.Nodes != 3 || status.Pods == nil || *status.Pods != 0 || len(status.Components) != 5 {
		t.Errorf("status %+v", status)
	}
	for i, c := range status.Components {
		if c.Name != lab.ComponentNames()[i] || c.PID < 2 || c.State != "running" {
			t.Errorf("component %+v", c)
		}
	}
	text := must("lab", "status", "a").Stdout
	if !strings.HasPrefix(text, "lab a: running, 3 nodes, 0 pods\n") || strings.Count(text, "running") != 6 {
		t.Errorf("status as text:\n%s", text)
	}
	if text := must("lab", "list").Stdout; !strings.Contains(text, "running") || strings.Count(text, "\n") != 2 {
		t.Errorf("list:\n%s", text)
	}
	if log := must("lab", "logs", "a", "kube-apiserver").Stdout; !strings.Contains(log, "v1.36.3") {
		t.Errorf("the API server's log of %d bytes does not name its version", len(log))
	}
	before := slices.Clone(status.Components)
	if got := must("lab", "restart", "a", "kube-scheduler"); !strings.Contains(got.Stderr, "kube-scheduler is running again after") || got.Stdout != "" {
		t.Errorf("restart: %+v", got)
	}
	decode(must("lab", "status", "a", "-o", "json").Stdout, &status)
	if status.State != "running" || status.Components[3].PID == before[3].PID || status.Components[2].PID != before[2].PID {
		t.Errorf("after a restart: %+v", status)
	}

	for _, c := range status.Components {
		if err := syscall.Kill(c.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	p.LeavesNoProcess(t)
	text = must("lab", "status", "a").Stdout
	if !strings.HasPrefix(text, "lab a: broken, unknown nodes, unknown pods\n") || strings.Count(text, "stopped") != 5 {
		t.Errorf("the status of what was killed:\n%s", text)
	}
	// A null, which is no 0.
	if text := must("lab", "status", "a", "-o", "json").Stdout; !strings.Contains(text, `"nodes": null`) || !strings.Contains(text, `"pid": 0`) {
		t.Errorf("the status of what was killed, for programs:\n%s", text)
	}
	if got := must("lab", "down", "a"); got.Stdout+got.Stderr != "" {
		t.Errorf("down: %+v", got)
	}
	p.LeavesNoLab(t)
}

// However it is interrupted, a lab that is coming up leaves nothing.
func TestLabUpIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		signal  syscall.Signal
		code    int
		leavesA bool // something for the next command to remove
		why     string
	}{
		{syscall.SIGINT, process.ExitInterrupted, false, "Ctrl-C"},
		{syscall.SIGTERM, 143, false, "a service manager"},
		{syscall.SIGKILL, -1, true, "it could do nothing about it"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			p := suite.Program(t)
			w := p.Start(t, "lab", "up", "a", "--nodes", "5")
			harness.Await(t, "a component to be started", func() bool {
				files, _ := filepath.Glob(p.State + "/plimsoll/labs/a/logs/kube-apiserver.log")
				return len(files) > 0
			})
			if got := p.Run(t, "lab", "status", "a"); !strings.HasPrefix(got.Stdout, "lab a: starting") {
				t.Errorf("the status meanwhile:\n%s%s", got.Stdout, got.Stderr)
			}
			w.Signal(tt.signal)
			ended := w.Wait()
			if ended.Code != tt.code || ended.Stdout != "" {
				t.Errorf("exit code %d, want %d\n%s%s", ended.Code, tt.code, ended.Stdout, ended.Stderr)
			}
			if got := p.Run(t, "lab", "list"); strings.Contains(got.Stderr, `removed lab "a"`) != tt.leavesA || got.Stdout != "" {
				t.Errorf("the next command says\n%s%s", got.Stdout, got.Stderr)
			}
			p.LeavesNoLab(t)
			if !tt.leavesA && !strings.HasSuffix(ended.Stderr, "plimsoll: interrupted: nothing is left of lab \"a\"\n") {
				t.Errorf("it said %q", ended.Stderr)
			}
		})
	}
}

// What kubectl asks of a simulated pod is answered in words, by the API server.
func TestASimulatedPodSaysWhatItIs(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	pods := typed.CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "asked"},
		Spec:       corev1.PodSpec{NodeName: "node-0000", TerminationGracePeriodSeconds: new(int64), Containers: []corev1.Container{{Name: "c", Image: "x"}}},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pods.Delete(context.Background(), "asked", metav1.DeleteOptions{}) })
	_, err := pods.GetLogs("asked", &corev1.PodLogOptions{}).Stream(t.Context())
	if err == nil || !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "pod default/asked is simulated: no container runs, and nothing is logged") {
		t.Errorf("logs: %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"http/1.1"} // which alone can be upgraded
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+"/api/v1/namespaces/default/pods/asked/exec?container=c&command=ls&stdout=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "SPDY/3.1")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode < 400 || !strings.Contains(string(text), "is simulated: no container runs in which a command could run") {
		t.Errorf("exec: %s %s, %v", answer.Status, text, err)
	}
}
