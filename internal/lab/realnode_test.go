package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/proc"
)

// realNodes is held by the test that has a real node: each takes many of the
// inotify instances of its user, of which kernels give 128 in all.
var realNodes sync.Mutex

// needRealNode skips the test on a machine that cannot have a real node. The
// test is the only one of this package that has one, until its end.
func needRealNode(t *testing.T) realnode.Programs {
	t.Helper()
	suite.Binary(t)
	programs, err := realnode.Check()
	if err != nil {
		t.Skip(err)
	}
	realNodes.Lock()
	t.Cleanup(realNodes.Unlock)
	return programs
}

// traces is all of the machine that a real node could change.
func traces(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	// Other tests mount things of their own meanwhile, and have labs.
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "containerd") || strings.Contains(line, "kubelet") || strings.Contains(line, "/labs/") {
			found["mounts"] += line
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		// realnode.Leftovers tells of the nodes', and the router's tests of theirs,
		// which come and go meanwhile.
		if !strings.HasPrefix(i.Name, "plm") && !strings.HasPrefix(i.Name, "plr") {
			found["interfaces"] += i.Name + " "
		}
	}
	if nft, err := (proc.Program{Name: "nft"}).Find(t.Context(), ""); err == nil {
		rules, err := exec.Command(nft.Path, "list", "ruleset").Output()
		found["rules"] = fmt.Sprint(string(rules), err)
	}
	for _, setting := range []string{"net/ipv4/ip_forward", "vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"} {
		value, _ := os.ReadFile(filepath.Join("/proc/sys", setting))
		found[setting] = string(value)
	}
	for _, dir := range []string{"/var/lib/kubelet", "/var/lib/cni", "/run/containerd", "/var/log/pods", "/var/log/containers", "/opt/containerd", "/run/netns"} {
		_, err := os.Stat(dir)
		found[dir] = fmt.Sprint(err == nil)
	}
	return found
}

// leavesNoTrace fails the test unless the machine is as it was.
func leavesNoTrace(t *testing.T, s Store, dir string, before map[string]string) {
	t.Helper()
	leavesNothing(t, s, "after the real node")
	if left := realnode.Leftovers(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for what, now := range traces(t) {
		if now != before[what] {
			t.Errorf("%s were\n%s\nand are\n%s", what, before[what], now)
		}
	}
}

// realPod is a pod that plays one of the agent's roles.
func realPod(name, class string, args ...string) *corev1.Pod {
	return testPod(name, func(p *corev1.Pod) {
		p.Spec.Containers[0].Image = image.AgentReference
		p.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
		p.Spec.Containers[0].Args = args
		p.Spec.AutomountServiceAccountToken = new(bool)
		p.Spec.TerminationGracePeriodSeconds = new(int64(1))
		if class != "" {
			p.Spec.RuntimeClassName = &class
		}
	})
}

func TestRealNode(t *testing.T) {
	t.Parallel()
	programs := needRealNode(t)
	before := traces(t)
	s := liveStore(t)
	l, err := s.Up(t.Context(), Spec{Name: "real", Shape: Shape{RealNode: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Down(context.Background()) })
	if status := stateOf(t, l); status.State != Running || *status.Nodes != 1 || len(status.Components) != 8 {
		t.Errorf("it is %+v", status)
	}
	client := user(t, l)
	node, err := client.CoreV1().Nodes().Get(t.Context(), realnode.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if node.Labels[protocol.FidelityLabel] != protocol.FidelityReal || node.Status.Allocatable.Pods().Value() != protocol.DefaultMaxPods || !strings.HasPrefix(node.Status.NodeInfo.ContainerRuntimeVersion, "containerd://") {
		t.Errorf("the node: %v, %v, %v", node.Labels, node.Status.Allocatable, node.Status.NodeInfo)
	}
	if node.Spec.PodCIDR != "10.244.0.0/24" || node.Annotations[BridgeAnnotation] == "" {
		t.Errorf("the node's network is told as %q, %v", node.Spec.PodCIDR, node.Annotations)
	}
	pods := suite.Size(8, 30)
	for _, runtime := range programs.Runtimes() {
		t.Run(runtime.Name, func(t *testing.T) { runPods(t, client, runtime.Name, pods) })
	}
	t.Run("service", func(t *testing.T) { reachService(t, client) })
	t.Run("restarts", func(t *testing.T) {
		for _, component := range []string{protocol.Containerd, protocol.Kubelet, protocol.KubeProxy} {
			if err := l.Restart(t.Context(), component); err != nil {
				t.Errorf("%v", err)
			}
		}
		runPods(t, client, "", 3)
	})
	// A warning about every pod would pass for what kept pods from being ready.
	events, err := client.CoreV1().Events("podsrunc").List(t.Context(), metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == "MissingClusterDNS" {
			t.Errorf("%s: %s", e.Reason, e.Message)
			break
		}
	}
	meter, err := l.RealNodeMeter()
	if err != nil {
		t.Fatal(err)
	}
	uses, err := meter.Read(func(string) string { return "test" })
	if err != nil {
		t.Error(err)
	}
	// The shims of all pods until now have ended before anybody read them.
	for _, part := range []string{"kubelet", "containerd", "kube-proxy", "pods", realnode.PartRuntime, realnode.PartWhole} {
		i := slices.IndexFunc(uses, func(u realnode.Use) bool { return u.Part == part })
		if i < 0 || uses[i].CPUSeconds <= 0 || uses[i].RSSBytes < 0 {
			t.Errorf("use of %s is not told: %+v", part, uses)
		}
	}
	durations, err := l.Histograms(t.Context(), protocol.Kubelet)
	if i := slices.IndexFunc(durations, func(d realnode.Histogram) bool { return d.Name == "start_container" }); err != nil || i < 0 || durations[i].Count == 0 {
		t.Errorf("how long containers took to start is not told: %+v, %v", durations, err)
	}
	// A kubelet starts one worker for each pod: nothing else can be of more pods.
	told := make(map[string]uint64)
	for _, d := range durations {
		told[d.Name] = d.Count
	}
	for name, n := range told {
		if strings.HasPrefix(name, "pod start") && n > told["wait for a worker"] {
			t.Errorf("%q counts %d times for %d pods", name, n, told["wait for a worker"])
		}
	}
	// Something runs when it is taken down.
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), realPod("last", "", "pause"), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if err := l.Down(t.Context()); err != nil {
		t.Error(err)
	}
	leavesNoTrace(t, s, string(l.dir), before)
}

// runPods runs pods of one runtime until they are Ready, and removes them.
func runPods(t *testing.T, client kubernetes.Interface, class string, n int) {
	t.Helper()
	namespace := "pods" + class
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	wait := follow(t, client, namespace, n)
	for i := range n {
		create := func() error {
			_, err := client.CoreV1().Pods(namespace).Create(t.Context(), realPod(fmt.Sprintf("p%d", i), class, "pause"), metav1.CreateOptions{})
			return err
		}
		if err := poll(t.Context(), create); err != nil { // the namespace's account comes a moment later
			t.Fatal(err)
		}
	}
	for _, course := range wait() {
		if course.last.Status.PodIP == "" || course.last.Spec.NodeName != realnode.NodeName {
			t.Errorf("pod %s on %q has address %q", course.last.Name, course.last.Spec.NodeName, course.last.Status.PodIP)
		}
	}
	t.Logf("%d pods of runtime %q are Ready after %v", n, class, time.Since(began).Round(time.Millisecond))
	if err := client.CoreV1().Pods(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := poll(ctx, func() error {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(list.Items))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// reachService lets one pod call others by the address of their service.
func reachService(t *testing.T, client kubernetes.Interface) {
	const namespace = "default"
	server := realPod("server", "", "serve", "-address", ":8080")
	server.Labels = map[string]string{"app": "server"}
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), server, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service, err := client.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "server"},
		Spec: corev1.ServiceSpec{Selector: server.Labels,
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	caller := realPod("caller", "", "get", "-timeout", "2s", "http://"+service.Spec.ClusterIP+"/")
	caller.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), caller, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = poll(ctx, func() error {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, "caller", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodSucceeded {
			err = fmt.Errorf("the caller is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// Logs go from the API server to the kubelet.
	log, err := client.CoreV1().Pods(namespace).GetLogs("server", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(log), "listening on") {
		t.Errorf("the server's log is %q, %v", log, err)
	}
	for _, name := range []string{"server", "caller"} {
		if err := client.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

// A private lab with a confined real node, whose owner is killed.
func TestPrivateRealNode(t *testing.T) {
	suite.Long(t, "a real node is killed with its owner")
	t.Parallel()
	needRealNode(t)
	before := traces(t)
	s := liveStore(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner := exec.Command(self)
	owner.Env = append(os.Environ(), ownerOf+"="+s.Root, ownerOfReal+"=1")
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	var name string
	if _, err := fmt.Fscanf(out, "up: %s\n", &name); err != nil {
		owner.Process.Kill()
		owner.Wait()
		t.Fatal(err)
	}
	l, err := s.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	client := user(t, l)
	node, err := client.CoreV1().Nodes().Get(t.Context(), realnode.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cpu, memory := node.Status.Allocatable.Cpu().MilliValue(), node.Status.Allocatable.Memory().Value(); cpu != 500 || memory > 1<<30 {
		t.Errorf("half a processor and 1 GiB are %d m and %d bytes", cpu, memory)
	}
	runPods(t, client, "", 3)
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), realPod("last", "", "pause"), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	owner.Process.Kill()
	owner.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = poll(ctx, func() error {
		processes, err := processesUnder(s.labs())
		if err == nil && len(processes) > 0 {
			err = fmt.Errorf("%d processes outlive their owner", len(processes))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if swept, err := sweptBy(t, s); !slices.Equal(swept, []string{name}) || err != nil {
		t.Errorf("swept %v, %v, want %s", swept, err, name)
	}
	leavesNoTrace(t, s, string(l.dir), before)
}

func TestRealNodesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		says  string
		why   string
	}{
		{Shape{NodeCPUs: -1}, "want at least 0", "less than no processor"},
		{Shape{NodeCPUs: 0.01}, "its own processes", "too little for a kubelet"},
		{Shape{NodeCPUs: 100_000}, "there are", "more than there are"},
		{Shape{NodeMemory: 1 << 20}, "its own processes", "too little memory for a kubelet"},
		{Shape{PodCIDRPrefix: 31}, "16 to 29", "no address for a pod"},
	} {
		c.shape.RealNode = true
		err := Spec{Name: "a", Shape: c.shape}.withDefaults().validate()
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.why, err, c.says)
		}
	}
}

// An application is ready while its database answers, and only then.
func TestProbesFollowTheDatabase(t *testing.T) {
	suite.Long(t, "a database's image is made")
	t.Parallel()
	needRealNode(t)
	before := traces(t)
	s := liveStore(t)
	kept := filepath.Join(s.Root, ImagesDir)
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	database, err := image.PostgreSQL(t.Context(), s.Executable, t.TempDir())
	var none *image.NoPackagesError
	if errors.As(err, &none) {
		os.RemoveAll(s.Root)
		t.Skip(err)
	}
	if err == nil {
		err = image.Save(database, image.PostgresReference, filepath.Join(kept, "postgresql.tar"))
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Up(t.Context(), Spec{Name: "database", Shape: Shape{RealNode: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Down(context.Background()) })
	client := user(t, l)
	pods := client.CoreV1().Pods("default")
	newDatabase := func() {
		pod := realPod("database", "")
		pod.Labels = map[string]string{"app": "database"}
		pod.Spec.Containers[0].Image = image.PostgresReference
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	newDatabase()
	const address = ServiceAddresses + ".0.1"
	_, err = client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "database"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "database"}, ClusterIP: address,
			Ports: []corev1.ServicePort{{Port: 5432}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	application := realPod("application", "", "app", "-database", address+":5432", "-timeout", "1s")
	application.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}},
		PeriodSeconds: 1, TimeoutSeconds: 2,
	}
	if _, err := pods.Create(t.Context(), application, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await := func(ready corev1.ConditionStatus, when string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		err := poll(ctx, func() error {
			pod, err := pods.Get(ctx, "application", metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == ready {
					return nil
				}
			}
			return fmt.Errorf("the application is %+v", pod.Status.ContainerStatuses)
		})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	await(corev1.ConditionTrue, "with its database")
	if err := pods.Delete(t.Context(), "database", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(corev1.ConditionFalse, "without its database")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := poll(ctx, func() error {
		_, err := pods.Get(ctx, "database", metav1.GetOptions{})
		if err == nil {
			return errors.New("the database is still there")
		}
		return ignoreNotFound(err)
	}); err != nil {
		t.Fatal(err)
	}
	newDatabase()
	await(corev1.ConditionTrue, "with a new database")
	if err := l.Down(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(s.Root); err != nil {
		t.Error(err)
	}
	leavesNoTrace(t, s, string(l.dir), before)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Without Traefik's program, or with another one, the image is not made, and the error says what to do.
func TestTraefikThatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho 'Version:      3.6.12'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, says := range map[string]string{
		"": "missing for ingress: traefik", filepath.Join(dir, "none"): "none was not found", script: "not a Linux program", "/bin/true": "does not tell a version of traefik",
	} {
		_, _, done, err := Store{Root: dir, Executable: filepath.Join(dir, "plimsoll"), From: from}.MakeImage(t.Context(), ImageTraefik)
		done()
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("of %q: %v, want %q", from, err, says)
		}
		if missing, is := errors.AsType[*proc.MissingError](err); is != (from == "") || is && !strings.Contains(missing.Remedy(), "make traefik") {
			t.Errorf("of %q: %v", from, err)
		}
	}
}
