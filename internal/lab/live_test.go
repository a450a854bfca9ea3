package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientwatch "k8s.io/client-go/tools/watch"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/test/harness"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// The tests of this file bring up labs. TestOneLab has one of 20 nodes.
const sharedNodes = 20

var sharedSpec = Spec{Name: "shared", Shape: Shape{Nodes: sharedNodes, MaxPods: 37,
	StartLatency: dist.Dist{Shape: dist.Uniform, A: 300 * time.Millisecond, B: 2300 * time.Millisecond}}}

// ownerOf is set in the process that TestPrivateLabs starts and kills, and
// ownerOfReal besides if its lab has a real node.
const (
	ownerOf     = "PLIMSOLL_TEST_PRIVATE_LAB_IN"
	ownerOfReal = "PLIMSOLL_TEST_PRIVATE_LAB_IS_REAL"
)

// suite is the tests of this package that need the program.
var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) {
	if root := os.Getenv(ownerOf); root != "" {
		l, err := Store{Root: root, Executable: os.Getenv(harness.BinaryVariable)}.Up(context.Background(), privateSpec())
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("up:", l.Name())
		for { // A lab that nothing refers to any more is closed with its lock.
			time.Sleep(time.Second)
			runtime.KeepAlive(l)
		}
	}
	os.Exit(suite.Run(m, os.Stderr))
}

// privateSpec is the lab of the process that is killed.
func privateSpec() Spec {
	if os.Getenv(ownerOfReal) == "" {
		return Spec{Shape: Shape{Nodes: 1}, Private: true}
	}
	return Spec{Private: true, Shape: Shape{RealNode: true, NodeCPUs: 0.5, NodeMemory: 1 << 30, PodCIDRPrefix: 26}}
}

// One lab is looked at, loaded and harmed, by one test after the other.
func TestOneLab(t *testing.T) {
	t.Parallel()
	s := liveStore(t)
	began := time.Now()
	l, err := s.Up(t.Context(), sharedSpec)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("up with %d nodes in %v", sharedNodes, time.Since(began).Round(time.Millisecond))
	for _, tt := range []struct {
		what string
		test func(*testing.T, *Lab)
	}{
		{"it is what was asked for", isWhatWasAskedFor},
		{"nothing is reachable from outside", isNotReachableFromOutside},
		{"components have an environment of their own", hasEnvironmentsOfItsOwn},
		{"planted latencies", startsPodsAsPlanted},
		{"annotated pods", startsPodsAsAnnotated},
		{"restarts", restarts},
		{"beside labs that break", standsBesideBrokenLabs},
		{"components that break", showsBrokenComponents},
	} {
		t.Run(tt.what, func(t *testing.T) { tt.test(t, l) })
	}
	if err := l.Down(context.Background()); err != nil {
		t.Error(err)
	}
	leavesNothing(t, s, "after all tests")
}

// store is a store of the test's own; whatever it leaves is a failure.
func liveStore(t *testing.T) Store {
	t.Helper()
	s := Store{Root: filepath.Join(t.TempDir(), "state"), Executable: suite.Binary(t)}
	t.Cleanup(func() {
		if labs, err := s.List(); err != nil || len(labs) > 0 {
			t.Errorf("left: %d labs, %v", len(labs), err)
			for _, l := range labs {
				l.Down(context.Background())
			}
		}
	})
	return s
}

// leavesNothing fails the test if the store has a process or a file.
func leavesNothing(t *testing.T, s Store, when string) {
	t.Helper()
	processes, err := processesUnder(s.labs())
	if err != nil || len(processes) > 0 {
		t.Errorf("%s: processes %v are left, %v", when, processes, err)
	}
	if _, err := os.Stat(s.Root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %s is left, %v", when, s.Root, err)
	}
}

// user is a client as an experiment has one.
func user(t *testing.T, l *Lab) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func stateOf(t *testing.T, l *Lab) Status {
	t.Helper()
	status, err := l.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func isWhatWasAskedFor(t *testing.T, l *Lab) {
	client := user(t, l)
	server, err := client.Discovery().ServerVersion()
	if err != nil || server.GitVersion != "v1.36.3" || server.Major != "1" || server.Minor != "36" {
		t.Errorf("the server reports %+v, %v", server, err)
	}
	marker, err := client.CoreV1().ConfigMaps(MarkerNamespace).Get(t.Context(), MarkerConfigMap, metav1.GetOptions{})
	if err != nil || marker.Data[MarkerKey] != l.ID() || l.ID() == "" {
		t.Errorf("the marker in the cluster is %v, %v, want %s", marker.Data, err, l.ID())
	}
	config, err := clientcmd.LoadFromFile(l.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := MarkerOf(config, ""); !ok || m != (Marker{"shared", l.ID()}) {
		t.Errorf("the marker in the kubeconfig is %+v, %v", m, ok)
	}
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || slices.Contains(who.Status.UserInfo.Groups, "system:masters") || who.Status.UserInfo.Username != userExperiments {
		t.Errorf("experiments are made by %+v, %v", who.Status.UserInfo, err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: protocol.SimulatedSelector})
	if err != nil || len(nodes.Items) != sharedNodes {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	for _, n := range nodes.Items {
		a := n.Status.Allocatable
		if !usable(&n) || a.Pods().Value() != 37 || a.Cpu().Value() != 32 || a.Memory().Value() != 256<<30 || n.Status.NodeInfo.KubeletVersion != "v1.36.3" {
			t.Errorf("node %s: usable %v, %v, %s", n.Name, usable(&n), a, n.Status.NodeInfo.KubeletVersion)
		}
	}
	status := stateOf(t, l)
	if status.State != Running || status.Nodes == nil || *status.Nodes != sharedNodes || status.Pods == nil || len(status.Components) != 5 {
		t.Errorf("status %+v", status)
	}
	for _, c := range status.Components {
		if c.State != Running || c.PID == 0 {
			t.Errorf("component %+v", c)
		}
		path, err := l.Logs(c.Name)
		if err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the log of %s: %v, %v", c.Name, info, err)
		}
	}
	// The first and the last address of a range of a million.
	for i, address := range []string{"10.96.0.77", "10.111.255.254"} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("service-", i)},
			Spec: corev1.ServiceSpec{ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}}}}
		if _, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Errorf("a service with %s: %v", address, err)
		}
	}
}

// listener is a socket that waits for connections or datagrams.
type listener struct {
	protocol string
	address  netip.AddrPort
}

// listeners reads the tables of sockets: those that a process holds and that
// anyone could send to.
func listeners(t *testing.T, pid int) []listener {
	t.Helper()
	own := map[string]bool{} // inodes
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("process %d has no files, %v", pid, err)
	}
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil {
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				own[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	var found []listener
	for _, protocol := range []string{"tcp", "tcp6", "udp", "udp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, protocol))
		if err != nil {
			continue // a kernel without IPv6
		}
		for _, line := range strings.Split(string(table), "\n")[1:] {
			f := strings.Fields(line)
			const listening, unconnected = "0A", "07"
			if len(f) < 10 || !own[f[9]] || f[3] != listening && f[3] != unconnected {
				continue
			}
			found = append(found, listener{protocol, parseSocket(t, f[1])})
		}
	}
	return found
}

// parseSocket reads an address as /proc/net/tcp has it: words of 32 bits in
// the order of the machine, which is taken to be a little-endian one.
func parseSocket(t *testing.T, s string) netip.AddrPort {
	t.Helper()
	host, port, _ := strings.Cut(s, ":")
	var b []byte
	for i := 0; i+8 <= len(host); i += 8 {
		word, err := strconv.ParseUint(host[i:i+8], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, byte(word), byte(word>>8), byte(word>>16), byte(word>>24))
	}
	address, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		t.Fatalf("socket %q: %v", s, err)
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(n))
}

func isNotReachableFromOutside(t *testing.T, l *Lab) {
	if got := parseSocket(t, "0100007F:1F90"); got != netip.MustParseAddrPort("127.0.0.1:8080") {
		t.Fatalf("this test reads 127.0.0.1:8080 as %v", got)
	}
	var found []int
	for _, c := range stateOf(t, l).Components {
		for _, s := range listeners(t, c.PID) {
			found = append(found, int(s.address.Port()))
			if !s.address.Addr().IsLoopback() {
				t.Errorf("%s listens on %s %v", c.Name, s.protocol, s.address)
			}
		}
	}
	p := l.record.Ports
	want := []int{p.Etcd, p.EtcdPeer, p.APIServer, p.ControllerManager, p.Scheduler, p.SimulatedNodes}
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("ports %v are listened on, want %v", found, want)
	}
}

func hasEnvironmentsOfItsOwn(t *testing.T, l *Lab) {
	for _, c := range stateOf(t, l).Components {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.PID))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range strings.Split(strings.TrimSuffix(string(env), "\x00"), "\x00") {
			name, _, _ := strings.Cut(v, "=")
			if !slices.Contains([]string{"PATH", "HOME", "TMPDIR", "GOGC", "GOMAXPROCS"}, name) {
				t.Errorf("%s has %s", c.Name, v)
			}
		}
	}
}

func testPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "main", Image: "pause"}},
			TerminationGracePeriodSeconds: new(int64),
		},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// course holds when a watch reported each change of a pod.
type course struct {
	created time.Time
	first   map[corev1.PodConditionType]time.Time // when each condition was first true
	last    *corev1.Pod
}

var kubeletConditions = []corev1.PodConditionType{
	corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
}

// follow watches the pods of a namespace until n are Ready.
func follow(t *testing.T, client kubernetes.Interface, namespace string, n int) (wait func() map[types.UID]*course) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	// An API server that is short of time ends watches that fall behind: this
	// one goes on where it was.
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := clientwatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, podsOf{client, namespace})
	if err != nil {
		t.Fatal(err)
	}
	courses := map[types.UID]*course{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ready := 0
		for event := range w.ResultChan() {
			now := time.Now()
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			c := courses[pod.UID]
			if c == nil {
				c = &course{created: now, first: map[corev1.PodConditionType]time.Time{}}
				courses[pod.UID] = c
			}
			c.last = pod
			for _, condition := range pod.Status.Conditions {
				if condition.Status == corev1.ConditionTrue && c.first[condition.Type].IsZero() {
					c.first[condition.Type] = now
					if condition.Type == corev1.PodReady {
						ready++
					}
				}
			}
			if ready == n {
				return
			}
		}
	}()
	return func() map[types.UID]*course {
		<-done
		cancel()
		w.Stop()
		return courses
	}
}

// podsOf watches the pods of a namespace.
type podsOf struct {
	client    kubernetes.Interface
	namespace string
}

func (p podsOf) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return p.client.CoreV1().Pods(p.namespace).Watch(ctx, options)
}

// quantile is the smallest value that at least q of all do not exceed.
func quantile(values []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// Pods pass through what a kubelet reports, and become Ready when it was
// planted. How much later is a matter of the machine, which 'make truth' looks
// at: here none may be early, and those planted late come late.
func startsPodsAsPlanted(t *testing.T, l *Lab) {
	client := user(t, l)
	const namespace, pods = "planted", 200
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := poll(t.Context(), func() error {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	wait := follow(t, client, namespace, pods)
	pace := time.NewTicker(10 * time.Millisecond) // 100 pods a second
	defer pace.Stop()
	for i := range pods {
		if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), testPod(fmt.Sprint("pod-", i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-pace.C
	}
	courses := wait()

	var off, planted, measured []time.Duration
	for uid, c := range courses {
		want, err := protocol.StartLatencyOf(string(uid), "", sharedSpec.StartLatency)
		if err != nil {
			t.Fatal(err)
		}
		before := c.created
		for _, kind := range kubeletConditions {
			at := c.first[kind]
			if at.IsZero() || at.Before(before) {
				t.Errorf("pod %s: %s at %v, the one before it at %v", c.last.Name, kind, at, before)
			}
			before = at
		}
		got := c.first[corev1.PodReady].Sub(c.first[corev1.PodScheduled])
		planted, measured = append(planted, want), append(measured, got)
		off = append(off, (got - want).Abs())
		s := c.last.Status
		if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Running == nil || s.ContainerStatuses[0].State.Running.StartedAt.IsZero() || s.PodIP == "" || s.StartTime == nil || s.Phase != corev1.PodRunning {
			t.Errorf("pod %s: %+v", c.last.Name, s)
		}
		if t.Failed() {
			break
		}
	}
	if len(courses) != pods {
		t.Fatalf("%d pods were seen, want %d", len(courses), pods)
	}
	t.Logf("(Ready - Scheduled) - planted: median %v, p99 %v; on a quiet machine at most 10 ms and 25 ms are wanted",
		quantile(off, 0.5).Round(time.Millisecond/10), quantile(off, 0.99).Round(time.Millisecond/10))
	for _, q := range []float64{0.1, 0.5, 0.9} {
		if got, want := quantile(measured, q), quantile(planted, q); got < want-300*time.Millisecond {
			t.Errorf("quantile %v of start latencies is %v, planted was %v", q, got, want)
		}
	}
	seconds := func(list []time.Duration) (out []float64) {
		for _, d := range list {
			out = append(out, d.Seconds())
		}
		return out
	}
	if follows := stat.Correlation(seconds(measured), seconds(planted), nil); follows < 0.8 {
		t.Errorf("what was measured goes with what was planted by a correlation of %.3f", follows)
	}

	var events *corev1.EventList
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := poll(ctx, func() error {
		var err error
		events, err = client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("source", "kubelet").String(),
		})
		if err == nil && len(events.Items) != 3*pods {
			err = fmt.Errorf("%d events of %d pods", len(events.Items), pods)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	reasons := map[string][]string{}
	for _, e := range events.Items {
		reasons[e.InvolvedObject.Name] = append(reasons[e.InvolvedObject.Name], e.Reason)
	}
	for pod, got := range reasons {
		slices.Sort(got)
		if !slices.Equal(got, []string{"Created", "Pulled", "Started"}) {
			t.Errorf("pod %s has the events %v", pod, got)
			break
		}
	}
}

// countLeases counts changes of nodes' leases until it is asked.
func countLeases(t *testing.T, client kubernetes.Interface) (count func() (int, time.Duration)) {
	t.Helper()
	list, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != sharedNodes {
		t.Errorf("%d leases of %d nodes", len(list.Items), sharedNodes)
	}
	for _, lease := range list.Items {
		if lease.Spec.LeaseDurationSeconds == nil || *lease.Spec.LeaseDurationSeconds != 40 || len(lease.OwnerReferences) != 1 {
			t.Errorf("lease %s: %+v, owners %v", lease.Name, lease.Spec, lease.OwnerReferences)
		}
	}
	w, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	n := make(chan int)
	go func() {
		count := 0
		for event := range w.ResultChan() {
			if event.Type == watch.Modified {
				count++
			}
		}
		n <- count
	}()
	return func() (int, time.Duration) {
		during := time.Since(began)
		w.Stop()
		return <-n, during
	}
}

// A pod's annotation overrides the lab's latency, and one that means
// nothing is said to mean nothing.
func startsPodsAsAnnotated(t *testing.T, l *Lab) {
	client := user(t, l)
	annotated := func(value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{protocol.StartLatencyAnnotation: value} }
	}
	wait := follow(t, client, "default", 3)
	for name, annotation := range map[string]string{"soon": "0s", "late": "1500ms", "drawn": "uniform:1.2s,1.3s", "wrong": "tomorrow"} {
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), testPod(name, annotated(annotation)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ready := make(map[string]time.Time)
	for _, c := range wait() {
		planted, err := protocol.StartLatencyOf(string(c.last.UID), c.last.Annotations[protocol.StartLatencyAnnotation], sharedSpec.StartLatency)
		if c.last.Name == "wrong" {
			if err == nil || !c.first[corev1.PodReadyToStartContainers].IsZero() {
				t.Errorf("a latency that means nothing: %v, %v", err, c.first)
			}
			continue
		}
		ready[c.last.Name] = c.first[corev1.PodReady]
		got := c.first[corev1.PodReady].Sub(c.first[corev1.PodScheduled])
		if got < planted-600*time.Millisecond {
			t.Errorf("pod %s with %v was Ready after %v, planted was %v", c.last.Name, c.last.Annotations, got, planted)
		}
	}
	if !ready["soon"].Before(ready["drawn"]) || !ready["soon"].Before(ready["late"]) {
		t.Errorf("without a latency a pod is not Ready before those that have one: %v", ready)
	}
	if err := poll(t.Context(), func() error {
		events, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{
			FieldSelector: fields.Set{"involvedObject.name": "wrong", "type": corev1.EventTypeWarning}.String(),
		})
		if err == nil && (len(events.Items) != 1 || !strings.Contains(events.Items[0].Message, `"tomorrow"`)) {
			err = fmt.Errorf("warnings %v", events.Items)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// After a restart of any component the lab is well at once, and pods
// start as before.
func restarts(t *testing.T, l *Lab) {
	client := user(t, l)
	for _, component := range ComponentNames() {
		before := stateOf(t, l)
		began := time.Now()
		if err := l.Restart(t.Context(), component); err != nil {
			t.Error(err)
			continue
		}
		took := time.Since(began)
		after := stateOf(t, l)
		if after.State != Running {
			t.Errorf("right after a restart of %s: %+v", component, after)
		}
		for i, c := range after.Components {
			if changed := c.PID != before.Components[i].PID; changed != (c.Name == component) {
				t.Errorf("after a restart of %s %s has process %d, had %d", component, c.Name, c.PID, before.Components[i].PID)
			}
		}
		name := "after-" + component
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), testPod(name), metav1.CreateOptions{}); err != nil {
			t.Errorf("after a restart of %s: %v", component, err)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := poll(ctx, func() error {
			pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err == nil && pod.Status.Phase != corev1.PodRunning {
				err = fmt.Errorf("pod %s is %s", name, pod.Status.Phase)
			}
			return err
		})
		cancel()
		if err != nil {
			t.Errorf("after a restart of %s: %v", component, err)
		}
		t.Logf("%s works again after %v, a pod runs after %v", component, took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	}
}

// Two labs side by side; one is destroyed in the ways that users find,
// and the other does not notice. Meanwhile it renews its leases at its leisure.
func standsBesideBrokenLabs(t *testing.T, one *Lab) {
	s := liveStore(t)
	leases := countLeases(t, user(t, one))
	for _, tt := range []struct {
		harm func(l *Lab) error
		why  string
	}{
		{func(l *Lab) error { return kill(t, l, ComponentNames()...) }, "all processes killed"},
		{func(l *Lab) error { return os.Remove(l.dir.path("lab.json")) }, "its record lost"},
		{func(l *Lab) error {
			// Its processes go on writing, and would hinder a removal.
			return os.Rename(string(l.dir), filepath.Join(filepath.Dir(s.Root), "away"))
		}, "its directory removed while it runs"},
	} {
		other, err := s.Up(t.Context(), Spec{Name: "other"})
		if err != nil {
			t.Fatal(err)
		}
		if status := stateOf(t, other); status.State != Running || *status.Nodes != 0 {
			t.Errorf("the other before harm: %+v", status)
		}
		if err := tt.harm(other); err != nil {
			t.Fatal(err)
		}
		again, err := s.Open("other")
		if err != nil {
			t.Fatalf("%s: %v", tt.why, err)
		}
		if status := stateOf(t, again); status.State != Broken {
			t.Errorf("%s: %+v", tt.why, status)
		}
		if err := again.Down(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.why, err)
		}
		leavesNothing(t, s, tt.why)
		if status := stateOf(t, one); status.State != Running {
			t.Errorf("%s: the other lab: %+v", tt.why, status)
		}
	}
	// One per node in a quarter of a lease, and a third more often at most.
	renewals, during := leases()
	t.Logf("%d renewals of %d leases in %v", renewals, sharedNodes, during.Round(time.Millisecond))
	if worst := 1.5 * during.Seconds() * sharedNodes / 10; float64(renewals) > worst+sharedNodes {
		t.Errorf("%d renewals of %d leases in %v", renewals, sharedNodes, during)
	}
}

// One component that is gone, or that hangs, makes the lab a broken one
// and shows which it is.
func showsBrokenComponents(t *testing.T, l *Lab) {
	if err := kill(t, l, protocol.Scheduler); err != nil {
		t.Fatal(err)
	}
	for _, c := range stateOf(t, l).Components {
		if want := map[bool]State{true: Stopped, false: Running}[c.Name == protocol.Scheduler]; c.State != want {
			t.Errorf("with its scheduler killed: %+v", c)
		}
	}
	if err := l.Restart(t.Context(), protocol.Scheduler); err != nil {
		t.Fatal(err)
	}
	status := stateOf(t, l)
	i := slices.IndexFunc(status.Components, func(c Component) bool { return c.Name == protocol.ControllerManager })
	pid := status.Components[i].PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// On a busy machine it may answer once more before it stops.
	if err := poll(t.Context(), func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(stat), ") T ") {
			err = errors.New("the controller manager has not stopped")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	status = stateOf(t, l)
	if status.State != Broken || status.Components[i].State != Broken {
		t.Errorf("with a controller manager that hangs: %+v", status)
	}
	if status.Nodes == nil {
		t.Error("a component that hangs kept the nodes from being counted")
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if status = stateOf(t, l); status.State != Running {
		t.Errorf("when it goes on: %+v", status)
	}
}

// kill ends components with SIGKILL.
func kill(t *testing.T, l *Lab, components ...string) error {
	t.Helper()
	return killAll(t.Context(), string(l.dir), func(p process) bool { return slices.Contains(components, p.component) })
}

// Whenever it is interrupted, a lab that does not come up leaves
// nothing.
func TestInterruptedUp(t *testing.T) {
	suite.Long(t, "it brings labs up")
	t.Parallel()
	s := liveStore(t)
	for _, at := range []string{"starting etcd", "starting kube-apiserver", "starting simulated-nodes"} {
		ctx, cancel := context.WithCancel(t.Context())
		s.Progress = func(what string) {
			if what == at {
				time.AfterFunc(50*time.Millisecond, cancel)
			}
		}
		began := time.Now()
		l, err := s.Up(ctx, Spec{Name: "never", Shape: Shape{Nodes: 100}})
		if l != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted when %s: %v, %v", at, l, err)
		}
		leavesNothing(t, s, at)
		t.Logf("interrupted when %s, gone after %v", at, time.Since(began).Round(time.Millisecond))
		cancel()
	}
}

// A program that cannot be the component is said to be none, with its last
// words, and leaves nothing.
func TestFailedUp(t *testing.T) {
	suite.Long(t, "it brings labs up")
	t.Parallel()
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	runs := filepath.Join(dir, "runs")
	for _, tt := range []struct {
		executable string
		want       []string
		runs       int
		why        string
	}{
		{filepath.Join(dir, "none"), []string{"start etcd", "no such file"}, 0, "no program"},
		{script("fails", "echo run >>"+runs+"; echo no etcd for you >&2; exit 7\n"), []string{`lab "a"`, "start etcd", "exit status 7", "no etcd for you"}, 1, "it ends"},
		{script("clash", "echo run >>"+runs+"; echo bind: address already in use >&2; exit 1\n"), []string{"address already in use"}, portAttempts, "a port is taken each time: others are tried"},
	} {
		os.Remove(runs)
		s := Store{Root: filepath.Join(dir, "state"), Executable: tt.executable}
		_, err := s.Up(t.Context(), Spec{Name: "a"})
		for _, part := range tt.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %v, want %q in it", tt.why, err, part)
			}
		}
		leavesNothing(t, s, tt.why)
		if data, _ := os.ReadFile(runs); bytes.Count(data, []byte("run")) != tt.runs {
			t.Errorf("%s: it was run %d times, want %d", tt.why, bytes.Count(data, []byte("run")), tt.runs)
		}
	}
}

// A private lab dies with its owner, even by SIGKILL, and the next
// command removes what is left of it.
func TestPrivateLabs(t *testing.T) {
	suite.Long(t, "it brings labs up")
	t.Parallel()
	s := liveStore(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner := exec.Command(self)
	owner.Env = append(os.Environ(), ownerOf+"="+s.Root)
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
	if status := stateOf(t, l); status.State != Running || !l.Spec().Private {
		t.Errorf("a private one: %+v", status)
	}
	var busy *BusyError
	if err := l.Down(t.Context()); !errors.As(err, &busy) || busy.PID != owner.Process.Pid {
		t.Errorf("it could be removed under its owner: %v", err)
	}
	if swept, err := sweptBy(t, s); len(swept) > 0 || err != nil {
		t.Errorf("it was swept under its owner: %v, %v", swept, err)
	}
	owner.Process.Kill()
	owner.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := poll(ctx, func() error {
		processes, err := processesUnder(s.labs())
		if err == nil && len(processes) > 0 {
			err = fmt.Errorf("%d processes outlive their owner", len(processes))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if swept, err := sweptBy(t, s); !slices.Equal(swept, []string{name}) || err != nil {
		t.Errorf("swept %v, %v, want %s", swept, err, name)
	}
	leavesNothing(t, s, "after the owner's end")
}

// A control plane that is confined gets no more than its share of the
// processors, each of its processes is in the group, and the group goes with the
// lab.
func TestAConfinedControlPlane(t *testing.T) {
	suite.Long(t, "it brings labs up")
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	t.Parallel()
	s := liveStore(t)
	l, err := s.Up(t.Context(), Spec{Name: "confined", Shape: Shape{Nodes: 2, ControlPlaneCPUs: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	components, err := l.Components()
	if err != nil {
		t.Fatal(err)
	}
	group := "" // its own: other labs have others, and a killed run may have left one
	for _, c := range components {
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", c.PID))
		if err != nil {
			t.Fatal(err)
		}
		name := regexp.MustCompile(`plimsoll-\w+-control-plane`).FindString(string(groups))
		inside := name != ""
		if group == "" {
			group = name
		}
		if want := c.Name != protocol.SimulatedNodes; inside != want {
			t.Errorf("%s in the control plane's group: %t, want %t:\n%s", c.Name, inside, want, groups)
		}
	}
	if l.Spec().ControlPlaneCPUs != 0.5 {
		t.Errorf("the lab says %+v", l.Spec())
	}
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(root, group)); err == nil {
			t.Errorf("left: %s in %s", group, root)
		}
	}
}
