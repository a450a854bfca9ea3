package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// suite is the tests of this package that need a lab.
var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(suite.Run(m, os.Stderr)) }

// needLab is a lab of 4 nodes of 40 pods, which tests of this package share.
func needLab(t *testing.T) *harness.Program {
	t.Helper()
	return suite.Lab(t, "--nodes", "4", "--max-pods", "40")
}

// proxy is a TCP proxy in front of the API server whose connections can be cut.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	conns    map[net.Conn]bool
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, conns: make(map[net.Conn]bool)}
	t.Cleanup(func() { l.Close(); p.cut() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns[in], p.conns[out] = true, true
			p.mu.Unlock()
			go p.copy(out, in)
			go p.copy(in, out)
		}
	}()
	return p
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	io.Copy(to, from)
}

// freezer makes connections that can be frozen: open and dead.
type freezer struct {
	mu    sync.Mutex
	conns []*freezable
}

type freezable struct {
	net.Conn
	frozen atomic.Bool
}

func (c *freezable) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.frozen.Load() {
			return n, err
		}
	}
}

func (f *freezer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &freezable{Conn: conn}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns = append(f.conns, c)
	return c, nil
}

func (f *freezer) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.frozen.Store(true)
	}
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

// through writes a kubeconfig that leads through the proxy.
func (p *proxy) through(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server = "https://" + p.listener.Addr().String()
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func serverOf(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		u, err := url.Parse(c.Server)
		if err != nil {
			t.Fatal(err)
		}
		return u.Host
	}
	t.Fatal("no cluster")
	return ""
}

const podTemplate = `apiVersion: v1
kind: Pod
metadata:
  name: p-{{.Iteration}}
spec:
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  containers: [{name: pause, image: pause}]
`

const deploymentTemplate = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: d-{{.Iteration}}-{{.Replica}}
spec:
  replicas: 3
  selector: {matchLabels: {app: "d-{{.Iteration}}-{{.Replica}}"}}
  template:
    metadata:
      labels: {app: "d-{{.Iteration}}-{{.Replica}}"}
    spec:
      automountServiceAccountToken: false
      containers: [{name: pause, image: pause}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: c-{{.Iteration}}-{{.Replica}}
data: {n: "{{.Iteration}}"}
`

// labRun is one experiment on the shared lab.
type labRun struct {
	template   string
	kubeconfig string
	levels     []float64
	interval   time.Duration // of the canary
	pace       float64
	hold       time.Duration
	onStatus   func(engine.Status)
	onOpen     func(*Target)
	beforeEnd  func()                             // is called before the target is emptied
	open       func(*Cluster, *prepared.Workload) // changes the load
	n          int64                              // its number, which names what it makes; 0 for the next
}

// removed is a target that tells when it begins to be emptied for good.
type removed struct {
	*Target
	before func()
}

func (r removed) Close(done context.Context) error {
	if r.before != nil {
		r.before()
	}
	return r.Target.Close(done)
}

type statusObserver struct{ onStatus func(engine.Status) }

func (o statusObserver) Status(s engine.Status, _ func() fold.Live) {
	if o.onStatus != nil {
		o.onStatus(s)
	}
}

func (statusObserver) Stepped(result.Step) {}

func (statusObserver) Event(record.Event) {}

func (statusObserver) Chose(design.Next, [][]design.Next) {}

// runs counts the runs of this process.
var runs atomic.Int64

func (r labRun) do(t *testing.T) (result.Result, error) {
	t.Helper()
	if r.n == 0 {
		r.n = runs.Add(1)
	}
	id, uuid := fmt.Sprintf("t%d", r.n), fmt.Sprintf("%08d-0000-4000-8000-000000000000", r.n)
	if r.template == "" {
		r.template = podTemplate
	}
	if r.interval == 0 {
		r.interval = 50 * time.Millisecond
	}
	fsys := fstest.MapFS{
		"c.yml": {Data: []byte("jobs:\n- name: test\n  namespace: test-{{ .UUID | trunc 8 }}\n  iterationsPerNamespace: 50\n  objects:\n  - objectTemplate: o.yml\n    replicas: 1\n")},
		"o.yml": {Data: []byte(r.template)},
	}
	config, err := kubeburner.Load(fsys, "c.yml", kubeburner.Input{UUID: uuid})
	if err != nil {
		t.Fatal(err)
	}
	templates, err := config.Templates(fsys)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Connect(r.kubeconfig, "", system.Host{Build: record.Build{Version: "test"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	goal, err := slo.ParseGoal("ready=all Ready")
	if err != nil {
		t.Fatal(err)
	}
	x := run.Experiment{
		Spec:    result.Spec{Experiment: "test", Workload: "test", Kind: observe.Pods(), ExperimentKind: "sweep", Goals: []slo.Goal{goal}, Milestones: []string{"Created", "Scheduled", "PodReadyToStartContainers", "Initialized", "ContainersStarted", "ContainersReady", "Ready", "Deleted"}},
		Design:  design.Sweep{Levels: r.levels},
		Options: engine.Options{MaxInFlight: 16, Timeout: time.Minute, Hold: r.hold, ShortHold: r.hold, Pace: r.pace},
	}
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	err = run.Run(context.Background(), context.Background(), dir, id, x, time.Now, statusObserver{r.onStatus}, func(ctx context.Context, rec system.Recorder) (system.Instance, error) {
		load := prepared.Workload{Axis: observe.AxisPodsPerNode, Variant: prepared.Variant{Config: config, Templates: templates}, RunID: id, UUID: uuid, CanaryInterval: r.interval}
		if r.open != nil {
			r.open(c, &load)
		}
		target, err := sessionOn(c).openTarget(ctx, load, rec)
		if err == nil && r.onOpen != nil {
			r.onOpen(target)
		}
		if err != nil {
			return nil, err
		}
		return removed{target, r.beforeEnd}, nil
	})
	result, replayErr := run.Replay(dir, x)
	if replayErr != nil {
		t.Fatal(replayErr)
	}
	for _, s := range result.Steps {
		o := s.Objects
		if o.Intended != o.Created+o.CreateFailed+o.Dropped || o.Created != o.Ready+o.NeverReady+o.Lost {
			t.Errorf("step %d does not add up: %+v", s.ID, o)
		}
	}
	return result, err
}

// leftNothing fails unless the cluster is as it was.
func leftNothing(t *testing.T, kubeconfig string) {
	t.Helper()
	c, err := Connect(kubeconfig, "", system.Host{Build: record.Build{Version: "test"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	left, err := c.Leftovers(context.Background(), false, "")
	if err != nil || len(left) > 0 {
		t.Errorf("left in the cluster: %+v, %v", left, err)
	}
}

func TestAllPodsAreAccountedFor(t *testing.T) {
	t.Parallel()
	l := needLab(t)
	r, err := labRun{kubeconfig: l.Kubeconfig, levels: []float64{10, 20, 45}, hold: 300 * time.Millisecond}.do(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []result.Objects{
		{Intended: 40, Created: 40, Ready: 40},
		{Intended: 80, Created: 80, Ready: 80},
		{Intended: 180, Created: 180, Ready: 160, NeverReady: 20},
	}
	for i, s := range r.Steps {
		if s.Objects != want[i] {
			t.Errorf("step %d: %+v, want %+v", s.ID, s.Objects, want[i])
		}
		if s.WatchLag == nil || s.WatchLag.N == 0 || s.WatchLag.Unseen > 0 {
			t.Errorf("step %d: watch lag %+v", s.ID, s.WatchLag)
		}
	}
	full := r.Steps[2]
	if len(full.Reasons) != 1 || full.Reasons[0].Reason != "Too many pods" || full.Reasons[0].Places != 4 || full.Reasons[0].PlacesOf != 4 || full.Reasons[0].Count != 20 {
		t.Errorf("reasons %+v", full.Reasons)
	}
	if full.Ending != record.EndStalled || *full.EffectiveLevel != 40 || full.PerPlace.Min != 40 || full.PerPlace.Max != 40 {
		t.Errorf("ended %s, effective level %v, per node %+v", full.Ending, *full.EffectiveLevel, full.PerPlace)
	}
	for _, m := range []string{"Created", "Scheduled", "PodReadyToStartContainers", "Initialized", "ContainersStarted", "ContainersReady", "Ready"} {
		if got := r.Steps[0].Latency[m]; got.N != 40 || got.Censored != 0 || *got.P50 <= 0 || *got.P50 > 30 {
			t.Errorf("%s: %+v", m, got)
		}
	}
	leftNothing(t, l.Kubeconfig)
}

// The pods of a deployment are slots of their own, and other objects are made
// and removed with them.
func TestPodsOfControllersAreAccountedFor(t *testing.T) {
	t.Parallel()
	l := needLab(t)
	r, err := labRun{kubeconfig: l.Kubeconfig, template: deploymentTemplate, levels: []float64{6, 5}, hold: 300 * time.Millisecond}.do(t)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{24, 18} { // 20 pods are 6 iterations of 3, and 2 left over
		if s := r.Steps[i]; s.Objects.Intended != want || s.Objects.Ready != want || !passed(s.Verdict, s.VerdictWhy) {
			t.Errorf("step %d: %+v %s (%s)", s.ID, s.Objects, s.Verdict, s.VerdictWhy)
		}
	}
	if r.Steps[1].LevelReached != 4.5 {
		t.Errorf("level reached %v, want 4.5: whole iterations only", r.Steps[1].LevelReached)
	}
	leftNothing(t, l.Kubeconfig)
}

// A level counts the pods that are there already, and refuses namespaces that
// are somebody else's.
func TestWhatIsThereAlreadyCountsAndIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := needLab(t)
	c, err := Connect(l.Kubeconfig, "", system.Host{Build: record.Build{Version: "test"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	typed := c.Typed().CoreV1()
	for i := range 20 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("other-%d", i), Namespace: "default"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if _, err := typed.Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	zero := int64(0)
	defer typed.Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{})
	// Until they have a node they count in the level, and lie nowhere.
	harness.Await(t, "the others to have a node", func() bool {
		list, err := typed.Pods("default").List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == "" })
	})
	r, err := labRun{kubeconfig: l.Kubeconfig, levels: []float64{12}}.do(t)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Steps[0]; s.Objects.Intended != 28 || s.LevelReached != 12 || s.PerPlace.Others != 20 {
		t.Errorf("with 20 pods there already, level 12 on 4 nodes asked for %d more, reached %v, others %d", s.Objects.Intended, s.LevelReached, s.PerPlace.Others)
	}
	if left, err := typed.Pods("default").List(ctx, metav1.ListOptions{}); err != nil || len(left.Items) != 20 {
		t.Errorf("%d of 20 pods that are not ours are left, %v", len(left.Items), err)
	}

	next := runs.Add(1)
	name := fmt.Sprintf("test-%08d-0", next)
	if _, err := typed.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer typed.Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	_, err = labRun{kubeconfig: l.Kubeconfig, levels: []float64{12}, n: next}.do(t)
	var mistake *system.MistakeError
	if !errors.As(err, &mistake) || !strings.Contains(err.Error(), "not of this run") {
		t.Errorf("a namespace that is not ours: %v", err)
	}
	if ns, err := typed.Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("the namespace that is not ours: %v, deleted %v", err, ns.DeletionTimestamp)
	}
}

// whenRaising calls do once, after so many requests were answered.
func whenRaising(replied int, do func()) func(engine.Status) {
	var once sync.Once
	return func(s engine.Status) {
		if s.Stage == engine.StageRaising && s.Replied >= replied {
			once.Do(do)
		}
	}
}

// passed reports whether what was judged held, as far as this test can tell: a
// process that runs other tests too may have been late itself, and says so.
func passed(v slo.Verdict, why string) bool { return v == slo.Pass || late(v, why) }

func late(v slo.Verdict, why string) bool {
	return v == slo.Invalid && strings.Contains(why, "plimsoll itself was short of CPU")
}

func TestACutWatchLosesNothing(t *testing.T) {
	t.Parallel()
	l := needLab(t)
	p := newProxy(t, serverOf(t, l.Kubeconfig))
	r, err := labRun{kubeconfig: p.through(t, l.Kubeconfig), levels: []float64{40}, pace: 100, hold: 300 * time.Millisecond,
		onStatus: whenRaising(60, p.cut)}.do(t)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Steps[0]
	if s.Objects != (result.Objects{Intended: 160, Created: 160, Ready: 160}) || !passed(s.Verdict, s.VerdictWhy) {
		t.Errorf("%+v, %s (%s)", s.Objects, s.Verdict, s.VerdictWhy)
	}
	if !strings.Contains(strings.Join(r.Warnings.Lines(), "\n"), "watch of pods cut") {
		t.Errorf("the gap is not told: %q", r.Warnings)
	}
	leftNothing(t, l.Kubeconfig)
}

// A watch whose connection is open and dead is found out by the canary.
func TestADeadConnectionIsFoundOut(t *testing.T) {
	t.Parallel()
	l := needLab(t)
	var f freezer
	r, err := labRun{kubeconfig: l.Kubeconfig, levels: []float64{40}, pace: 100, hold: 300 * time.Millisecond, interval: 20 * time.Millisecond,
		open: func(c *Cluster, _ *prepared.Workload) {
			c.client.Config.Dial = f.dial // of the streams alone
			if err := c.client.RenewStream(); err != nil {
				t.Error(err)
			}
			c.client.Config.Dial = nil
		},
		onStatus: whenRaising(40, f.freeze)}.do(t)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Steps[0]
	if s.Objects.Intended != 160 || s.Objects.Ready != 160 || s.WatchLag.Unseen == 0 {
		t.Errorf("%+v, %s (%s), %+v\n%q", s.Objects, s.Verdict, s.VerdictWhy, s.WatchLag, r.Warnings)
	}
	if !strings.Contains(strings.Join(r.Warnings.Lines(), "\n"), "watch of pods cut") {
		t.Errorf("the gap is not told: %q", r.Warnings)
	}
	leftNothing(t, l.Kubeconfig)
}

func TestAnAPIServerThatIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	l := needLab(t)
	restarted := make(chan error, 1)
	r, err := labRun{kubeconfig: l.Kubeconfig, levels: []float64{40}, pace: 75, hold: 500 * time.Millisecond,
		onStatus: whenRaising(40, func() {
			go func() { restarted <- l.Command("lab", "restart", l.Lab, "kube-apiserver").Run() }()
		})}.do(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	s := r.Steps[0]
	if s.Objects.Intended != 160 || s.Objects.Ready+s.Objects.NeverReady != 160 || s.Objects.Lost != 0 || s.Objects.CreateFailed != 0 {
		t.Errorf("%+v, %s (%s)\n%q", s.Objects, s.Verdict, s.VerdictWhy, r.Warnings)
	}
	if !passed(s.Verdict, s.VerdictWhy) {
		t.Errorf("verdict %s (%s), reasons %+v", s.Verdict, s.VerdictWhy, s.Reasons)
	}
	if s.APIRequests.Retried == 0 || !strings.Contains(strings.Join(r.Warnings.Lines(), "\n"), "watch of pods cut") {
		t.Errorf("the outage is not told: %d retried, %q", s.APIRequests.Retried, r.Warnings)
	}
	leftNothing(t, l.Kubeconfig)
}

// A removal does not wait for an API server that is gone, and the result says
// what is left.
func TestARemovalOutOfReach(t *testing.T) {
	t.Parallel()
	l := needLab(t)
	p := newProxy(t, serverOf(t, l.Kubeconfig))
	r, err := labRun{kubeconfig: p.through(t, l.Kubeconfig), levels: []float64{20}, pace: 100,
		beforeEnd: func() { p.listener.Close(); p.cut() },
		open:      func(_ *Cluster, load *prepared.Workload) { load.Patience = 2 * time.Second }}.do(t)
	var unreachable *api.OutOfReachError
	if !errors.As(err, &unreachable) {
		t.Errorf("a removal whose API server went away ended with %v", err)
	}
	if n := strings.Count(err.Error(), "\n"); n > 3 {
		t.Errorf("it is told in %d lines: %v", n+1, err)
	}
	if c := r.Cleanup; !passed(r.Verdict, r.Why) || c == nil || c.Done || c.Left < 60 {
		t.Errorf("verdict %s, cleanup %+v", r.Verdict, c)
	}
	c, err := Connect(l.Kubeconfig, "", system.Host{Build: record.Build{Version: "test"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	left, err := c.Leftovers(context.Background(), false, "")
	if err != nil || len(left) != 1 {
		t.Fatalf("the run that was cut off left %+v, %v", left, err)
	}
	if err := c.Clean(context.Background(), left[0]); err != nil {
		t.Fatal(err)
	}
	leftNothing(t, l.Kubeconfig)
}

// An API server that never comes back leaves what was not seen lost, and the
// verdict inconclusive.
func TestAnAPIServerOutOfReach(t *testing.T) {
	t.Parallel()
	l := needLab(t)
	p := newProxy(t, serverOf(t, l.Kubeconfig))
	r, err := labRun{kubeconfig: p.through(t, l.Kubeconfig), levels: []float64{20}, pace: 100,
		onStatus: whenRaising(40, func() { p.listener.Close(); p.cut() }),
		open:     func(_ *Cluster, load *prepared.Workload) { load.Abandon, load.Patience = true, 2*time.Second }}.do(t)
	var unreachable *api.OutOfReachError
	if !errors.As(err, &unreachable) {
		t.Errorf("a run whose API server went away ended with %v", err)
	}
	if r.Verdict == slo.Pass {
		t.Errorf("a run whose API server went away passed: %+v", r.Steps[0].Objects)
	}
	// Requests without an answer failed; objects that were made and never seen are unknown.
	s, want := r.Steps[0], slo.Inconclusive
	if s.Objects.CreateFailed > 0 {
		want = slo.Fail
	}
	if s.Verdict != want && !late(s.Verdict, s.VerdictWhy) {
		t.Errorf("verdict %s (%s), want %s of %+v", s.Verdict, s.VerdictWhy, want, s.Objects)
	}
	c, err := Connect(l.Kubeconfig, "", system.Host{Build: record.Build{Version: "test"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	left, err := c.Leftovers(context.Background(), false, "")
	if err != nil || len(left) != 1 {
		t.Fatalf("the run that was cut off left %+v, %v", left, err)
	}
	if err := c.Clean(context.Background(), left[0]); err != nil {
		t.Fatal(err)
	}
	leftNothing(t, l.Kubeconfig)
}
