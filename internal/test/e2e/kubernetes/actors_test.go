package kubernetes_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// Whoever the load waits for is stopped or killed while it is made: that is the first
// sentence of what broke, and ends the waiting within half a minute.
func TestWhoeverDoesNothingIsNamed(t *testing.T) {
	t.Parallel()
	density, deployments := []string{"--levels", "15", "--pace", "4"}, []string{"--levels", "30", "--pace", "2"}
	rate := []string{"--axis", "rate", "--levels", "4", "--life", "5s", "--hold", "30s"}
	const server, either = "the API server has not answered for ", "the API server, or the network to it, has not answered for "
	for _, tt := range []struct {
		component string
		signal    syscall.Signal
		first     string // what the first sentence begins with
		waits     string // for it
		args      []string
	}{
		{"kube-scheduler", syscall.SIGSTOP, "no scheduler has acted for ", "pods wait for it", density},
		{"kube-scheduler", syscall.SIGKILL, "no scheduler has acted for ", "pods wait for it", density},
		{"kube-scheduler", syscall.SIGSTOP, "no scheduler has acted for ", "pods wait for it", rate},
		{"kube-scheduler", syscall.SIGKILL, "no scheduler has acted for ", "pods wait for it", rate},
		{"simulated-nodes", syscall.SIGSTOP, "no node has acted for ", "pods wait for it", density},
		{"simulated-nodes", syscall.SIGKILL, "no node has acted for ", "pods wait for it", density},
		{"simulated-nodes", syscall.SIGSTOP, "no node has acted for ", "pods wait for it", rate},
		{"simulated-nodes", syscall.SIGKILL, "no node has acted for ", "pods wait for it", rate},
		{"kube-controller-manager", syscall.SIGSTOP, "the controller manager has not acted for ", "wait for it", deployments},
		{"kube-controller-manager", syscall.SIGKILL, "the controller manager has not acted for ", "wait for it", deployments},
		{"kube-apiserver", syscall.SIGSTOP, either, "for it", density},
		{"kube-apiserver", syscall.SIGKILL, server, "for it", density},
		{"kube-apiserver", syscall.SIGSTOP, either, "for it", rate},
		{"kube-apiserver", syscall.SIGKILL, server, "for it", rate},
		{"etcd", syscall.SIGSTOP, "etcd has not answered the API server for ", "for it", density},
		{"etcd", syscall.SIGKILL, "etcd has not answered the API server for ", "for it", density},
		{"etcd", syscall.SIGSTOP, "etcd has not answered the API server for ", "for it", rate},
		{"etcd", syscall.SIGKILL, "etcd has not answered the API server for ", "for it", rate},
	} {
		axis, ready := "density", 8
		if tt.args[0] == "--axis" {
			axis, ready = "rate", 40 // the warm-up is over
		}
		// Half a minute, and what a machine takes that others keep busy.
		const most = 45 * time.Second
		t.Run(strings.Join([]string{tt.component, tt.signal.String(), axis}, "-"), func(t *testing.T) {
			suite.Long(t, "a lab of its own whose "+tt.component+" does nothing for half a minute")
			p := suite.Program(t)
			if got := p.Run(t, "lab", "up", "dead", "--nodes", "4"); got.Code != process.ExitPass {
				t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
			}
			timeout, args := "2m", tt.args
			if suite.Size(0, 1) == 0 { // it is named before the time of the step is over
				timeout, args, ready = "10s", []string{"--levels", "8", "--pace", "4"}, 20
			}
			pid := e2e.ComponentOf(t, p, "dead", tt.component)
			workload := "node-density"
			if tt.component == "kube-controller-manager" {
				workload = writeWorkload(t, p.Dir, "deployed", "", nil, deployment)
			}
			s := p.Start(t, append([]string{"sweep", workload, "--lab", "dead", "--step-timeout", timeout, "--out", "out"}, args...)...)
			harness.Await(t, "some that are ready", func() bool {
				return p.Count("out", func(e record.Event) bool {
					o, ok := e.Body.(*record.Object)
					return ok && o.Milestone == "Ready"
				}) >= ready
			})
			begin := time.Now()
			if err := syscall.Kill(pid, tt.signal); err != nil {
				t.Fatal(err)
			}
			harness.Await(t, "the end of the step", func() bool {
				return p.Count("out", func(e record.Event) bool {
					s, ok := e.Body.(*record.StepEvent)
					return ok && s.Phase == record.PhaseEnd
				}) > 0
			})
			took := time.Since(begin)
			syscall.Kill(pid, syscall.SIGCONT)
			got := s.Wait()
			if strings.Contains(got.Stdout+got.Stderr, "context canceled") {
				t.Errorf("a cut is no reason:\n%s%s", got.Stdout, got.Stderr)
			}
			if took > most {
				t.Errorf("the step ended %v after it, want %v at most", took, most)
			}
			r := p.Result(t, "out")
			if r.BrokeFirst == nil {
				t.Fatalf("nothing broke first: %s\n%s%s", r.Why, got.Stdout, got.Stderr)
			}
			x := r.BrokeFirst.Breach
			if x.Kind != result.BreachActor || !strings.HasPrefix(x.What, tt.first) || !strings.HasSuffix(x.What, tt.waits) {
				t.Errorf("first broke %q, want %q ... %q\n%s", x.What, tt.first, tt.waits, got.Stdout)
			}
			_, list, _ := strings.Cut(got.Stdout, "What broke first")
			if lines := strings.Split(list, "\n"); len(lines) < 2 || !strings.Contains(lines[1], tt.first) {
				t.Errorf("the first sentence of what broke is another one:\n%s", got.Stdout)
			}
			t.Log(x.What, took)
		})
	}
}

// deployment has five pods that do nothing.
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: five-{{.Iteration}}-{{.Replica}}
spec:
  replicas: 5
  selector: {matchLabels: {app: "five-{{.Iteration}}-{{.Replica}}"}}
  template:
    metadata: {labels: {app: "five-{{.Iteration}}-{{.Replica}}"}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: pause
        image: registry.k8s.io/pause:3.10.1
`

// Namespaces that nobody takes away are waited for half a minute, by a command that
// says who does nothing.
func TestCleanNamesADeadControllerManager(t *testing.T) {
	suite.Long(t, "a lab of its own whose controller manager does nothing for half a minute")
	t.Parallel()
	p := suite.Program(t)
	if got := p.Run(t, "lab", "up", "dead", "--nodes", "2"); got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	pid := e2e.ComponentOf(t, p, "dead", "kube-controller-manager")
	s := p.Start(t, "sweep", "node-density", "--lab", "dead", "--levels", "10", "--hold", "1m", "--out", "out")
	harness.Await(t, "some that are ready", func() bool {
		return p.Count("out", func(e record.Event) bool {
			o, ok := e.Body.(*record.Object)
			return ok && o.Milestone == "Ready"
		}) > 0
	})
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	const why = "the controller manager, which removes namespaces, has not acted on any for 3"
	if got := p.Run(t, "clean", "--lab", "dead"); got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, why) {
		t.Errorf("exit code %d, no %q in\n%s%s", got.Code, why, got.Stdout, got.Stderr)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got := p.Run(t, "clean", "--lab", "dead"); got.Code != process.ExitPass {
		t.Errorf("once it acts again: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}
