package virt

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport/websocket"
	kubevirt "kubevirt.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/test/harness"
)

var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(suite.Run(m, os.Stderr)) }

// connect is a client of a lab of three nodes in which time passes 50 times as
// fast, with a namespace of the test's own.
func connect(t *testing.T, namespace string) (clients, *harness.Program) {
	t.Helper()
	return connectTo(t, namespace, "--virt", "--nodes", "3", "--time-scale", "50", "--virt-figures", "reboot=30s,lostAfter=20s")
}

func connectTo(t *testing.T, namespace string, args ...string) (clients, *harness.Program) {
	t.Helper()
	p := suite.Lab(t, args...)
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClients(config, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c, p
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() (string, bool)) {
	t.Helper()
	last := ""
	for began := time.Now(); time.Since(began) < 40*time.Second; time.Sleep(30 * time.Millisecond) {
		found, ok := holds()
		if ok {
			return
		}
		last = found
	}
	t.Fatalf("%s: at last %s", what, last)
}

const golden = `
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata: {name: golden}
spec:
  source: {http: {url: "http://images.invalid/rhel.qcow2"}}
  pvc: {accessModes: [ReadWriteMany], volumeMode: Block, resources: {requests: {storage: 40Gi}}}`

const machine = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: NAME}
spec:
  runStrategy: STRATEGY
  dataVolumeTemplates:
  - metadata: {name: NAME-disk}
    spec:
      source: {pvc: {name: golden, namespace: NAMESPACE}}
      pvc: {accessModes: [ReadWriteMany], volumeMode: Block, resources: {requests: {storage: 40Gi}}}
  template:
    metadata: {labels: {plimsoll.dev/os: rhel9}, creationTimestamp: null}
    spec:
      domain:
        memory: {guest: 1Gi}
        devices: {disks: [{name: root, disk: {bus: virtio}}]}
      volumes: [{name: root, dataVolume: {name: NAME-disk}}]`

func (c clients) apply(t *testing.T, namespace, text string, dry bool) error {
	t.Helper()
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	gv, err := schema.ParseGroupVersion(o.GetAPIVersion())
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.dynamic.Resource(gv.WithResource(strings.ToLower(o.GetKind())+"s")).Namespace(namespace).Create(t.Context(), &o, options)
	return err
}

func machineNamed(name, namespace, strategy string) string {
	return strings.NewReplacer("NAMESPACE", namespace, "NAME", name, "STRATEGY", strategy).Replace(machine)
}

// diskless is a machine NAME without a volume.
func diskless(namespace, strategy string) string {
	text := strings.Replace(machineNamed("NAME", namespace, strategy), "dataVolume: {name: NAME-disk}", "containerDisk: {image: none}", 1)
	return text[:strings.Index(text, "  dataVolumeTemplates")] + text[strings.Index(text, "  template:"):]
}

// The real API server takes what is right and refuses what would be pruned.
func TestDefinitionsAreStrict(t *testing.T) {
	c, _ := connect(t, "strict")
	right := machineNamed("a", "strict", "Always")
	for _, tt := range []struct{ why, text, refused string }{
		{"a machine", right, ""},
		{"a volume", golden, ""},
		{"a field that belongs below devices", strings.Replace(right, "memory: {guest: 1Gi}", "memory: {guest: 1Gi}\n        networkInterfaceMultiqueue: true", 1),
			`unknown field "spec.template.spec.domain.networkInterfaceMultiqueue"`},
		{"an eviction strategy at the level of the machine", strings.Replace(right, "  runStrategy", "  evictionStrategy: LiveMigrate\n  runStrategy", 1), `unknown field "spec.evictionStrategy"`},
		{"a timer of Hyper-V that is named otherwise", strings.Replace(right, "memory: {guest: 1Gi}", "features: {hyperv: {sync: {}}}", 1), `unknown field "spec.template.spec.domain.features.hyperv.sync"`},
		{"a migration", "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstanceMigration\nmetadata: {name: m}\nspec: {vmiName: a}", ""},
		{"a volume without a source that is known", strings.Replace(golden, "http:", "htp:", 1), `unknown field "spec.source.htp"`},
	} {
		err := c.apply(t, "strict", tt.text, true)
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s: got %v, want %q", tt.why, err, tt.refused)
		}
	}
	for _, text := range []string{
		"apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: other}\nspec: {maxUnavailable: 10, nodeSelector: {matchLabels: {zone: zone-0}}}",
		"apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 99-empty}\nspec: {config: {ignition: {version: 3.1.0}}}",
		"apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {name: other}\nspec: {cloneStrategy: copy}",
	} {
		if err := c.apply(t, "", text, true); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A machine is cloned, starts, answers, is restarted, moved by hand and by a
// drain, and goes.
func TestLifeOfMachines(t *testing.T) {
	const ns, n = "life", 6
	c, p := connect(t, ns)
	ctx := t.Context()
	if err := c.apply(t, ns, golden, false); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := c.apply(t, ns, machineNamed(fmt.Sprint("vm", i), ns, "Always"), false); err != nil {
			t.Fatal(err)
		}
	}
	running := func() (string, bool) {
		list, err := c.instances(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		up := 0
		for _, vmi := range list.Items {
			if vmi.Status.Phase == kubevirt.Running && instanceIs(&vmi, kubevirt.VirtualMachineInstanceReady) && vmi.DeletionTimestamp == nil {
				up++
			}
		}
		return fmt.Sprintf("%d of %d run", up, len(list.Items)), up == n
	}
	await(t, "machines", running)
	vmi := func(i int) *kubevirt.VirtualMachineInstance {
		got, err := c.instances(ns).Get(ctx, fmt.Sprint("vm", i), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := vmi(0)
	var phases []string
	for _, p := range first.Status.PhaseTransitionTimestamps {
		phases = append(phases, string(p.Phase))
	}
	if got := strings.Join(phases, " "); got != "Pending Scheduling Scheduled Running" {
		t.Errorf("phases %s", got)
	}
	answers := func(address string) (string, bool) {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err.Error(), false
		}
		defer connection.Close()
		line, err := bufio.NewReader(connection).ReadString('\n')
		return fmt.Sprint(line, err), strings.HasPrefix(line, "SSH-2.0-")
	}
	address := first.Annotations[SSHAnnotation]
	await(t, "the guest", func() (string, bool) { return answers(address) })
	// Through the API server too, as virtctl asks; at another port nothing listens.
	if line, err := c.forward(ctx, p.Kubeconfig, ns, "vm0", 22); !strings.HasPrefix(line, "SSH-2.0-") {
		t.Errorf("through the API server it says %q, %v", line, err)
	}
	if line, err := c.forward(ctx, p.Kubeconfig, ns, "vm0", 80); err == nil || !strings.Contains(err.Error(), "dialing VM") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("at a port where nothing listens it says %q, %v", line, err)
	}
	if line, err := c.forward(ctx, p.Kubeconfig, ns, "nobody", 22); !strings.Contains(fmt.Sprint(err), `"nobody" not found`) {
		t.Errorf("of a machine that is not there it says %q, %v", line, err)
	}

	// A restart opens a new life; while it goes down nobody answers.
	if err := c.virtctl(ctx, ns, "virtualmachines", "vm0", "restart"); err != nil {
		t.Fatal(err)
	}
	await(t, "restarted", func() (string, bool) {
		got, err := c.instances(ns).Get(ctx, "vm0", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return string(got.Status.Phase), got.UID != first.UID && got.Status.Phase == kubevirt.Running
	})
	if err := c.virtctl(ctx, ns, "virtualmachines", "vm0", "start"); !apierrors.IsConflict(err) && (err == nil || !strings.Contains(err.Error(), "already running")) {
		t.Errorf("start of a machine that runs: %v", err)
	}

	// All are moved at once: never more than two from a node, five in all.
	watching, stop := context.WithCancel(ctx)
	var seen sync.WaitGroup
	seen.Go(func() { c.watchLimits(t, watching, ns, 5, 2) })
	for i := range n {
		if err := c.virtctl(ctx, ns, "virtualmachines", fmt.Sprint("vm", i), "migrate"); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "migrations", func() (string, bool) {
		list, err := c.migrations(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		done := 0
		for _, m := range list.Items {
			if m.Status.Phase == kubevirt.MigrationSucceeded {
				done++
			}
		}
		return fmt.Sprintf("%d of %d", done, len(list.Items)), done == n
	})
	moved := vmi(1)
	if m := moved.Status.MigrationState; m == nil || !m.Completed || m.SourceNode == moved.Status.NodeName || m.TargetNode != moved.Status.NodeName {
		t.Errorf("after a migration: %+v on %s", m, moved.Status.NodeName)
	}

	// An eviction is refused and answered by a migration.
	node := moved.Status.NodeName
	pods, err := c.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: kubevirt.CreatedByLabel + "=" + string(moved.UID), FieldSelector: "spec.nodeName=" + node})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("launchers: %v, %v", pods, err)
	}
	evict := func() error {
		return c.CoreV1().Pods(ns).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pods.Items[0].Name}})
	}
	if err := evict(); !apierrors.IsTooManyRequests(err) {
		t.Errorf("eviction: %v", err)
	}
	await(t, "evacuated", func() (string, bool) {
		at := vmi(1).Status.NodeName
		return at, at != node
	})
	await(t, "the launcher it left", func() (string, bool) { err := evict(); return fmt.Sprint(err), apierrors.IsNotFound(err) })
	stop()
	seen.Wait()

	// A claim that asks for more gets it, with its volume.
	claims := c.CoreV1().PersistentVolumeClaims(ns)
	list, err := claims.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) <= n {
		t.Fatalf("claims: %v, %v", list, err)
	}
	for _, claim := range list.Items[:2] {
		if _, err := claims.Patch(ctx, claim.Name, types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"storage":"77Gi"}}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		await(t, "a larger claim", func() (string, bool) {
			got, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
			pv, err2 := c.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
			if err != nil || err2 != nil {
				return fmt.Sprint(err, err2), false
			}
			sizes := got.Status.Capacity.Storage().String() + " " + pv.Spec.Capacity.Storage().String()
			return sizes, sizes == "77Gi 77Gi"
		})
	}

	if err := c.machines(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "all gone", func() (string, bool) {
		pods, err := c.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		claims, err2 := c.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{})
		if err != nil || err2 != nil {
			return fmt.Sprint(err, err2), false
		}
		return fmt.Sprintf("%d pods, %d claims", len(pods.Items), len(claims.Items)), len(pods.Items) == 0 && len(claims.Items) == 1
	})
	if _, ok := answers(vmiAddress(moved)); ok {
		t.Error("a machine that is gone answers")
	}
}

// A configuration that comes drains and reboots the nodes of its pool, one after
// the other, and the machines on them are moved. A pool that cannot take it is
// degraded. A node that is lost takes its machines along, and they start again.
func TestNodesThatGo(t *testing.T) {
	suite.Long(t, "a roll-out over three nodes, and a node that is lost")
	const ns, n = "nodes", 4
	c, _ := connect(t, ns)
	ctx := t.Context()
	simple := diskless(ns, "Always")
	for i := range n {
		if err := c.apply(t, ns, strings.ReplaceAll(simple, "NAME", fmt.Sprint("vm", i)), false); err != nil {
			t.Fatal(err)
		}
	}
	on := func() (nodes map[string]int, phases string) {
		list, err := c.instances(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		nodes = map[string]int{}
		for _, vmi := range list.Items {
			phases += string(vmi.Status.Phase) + " "
			if vmi.Status.Phase == kubevirt.Running && vmi.DeletionTimestamp == nil && instanceIs(&vmi, kubevirt.VirtualMachineInstanceReady) {
				nodes[vmi.Status.NodeName]++
			}
		}
		return nodes, phases
	}
	running := func() (string, bool) {
		nodes, phases := on()
		sum := 0
		for _, count := range nodes {
			sum += count
		}
		return phases, sum == n
	}
	await(t, "machines", running)
	if err := c.apply(t, "", "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: zone}\nspec:\n  nodeSelector: {matchLabels: {type: kwok}}\n  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: zone}}", false); err != nil {
		t.Fatal(err)
	}
	count := func(field string) int64 {
		u, err := c.dynamic.Resource(poolResource()).Get(ctx, "zone", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n, _, _ := unstructured.NestedInt64(u.Object, "status", field)
		return n
	}
	updated := func() (string, bool) {
		return fmt.Sprint(count("updatedMachineCount")), count("updatedMachineCount") == 3 && count("readyMachineCount") == 3
	}
	await(t, "the pool", updated)
	config := "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 99-NAME, labels: {machineconfiguration.openshift.io/role: zone}}\nspec: {config: {ignition: {version: 3.1.0}}}"
	if err := c.apply(t, "", strings.ReplaceAll(config, "NAME", "a"), false); err != nil {
		t.Fatal(err)
	}
	away := 0
	await(t, "the roll-out's beginning", func() (string, bool) { now := count("updatedMachineCount"); return fmt.Sprint(now), now < 3 })
	await(t, "the roll-out", func() (string, bool) {
		nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		gone := 0
		for i := range nodes.Items {
			if !available(&nodes.Items[i]) {
				gone++
			}
		}
		away = max(away, gone)
		return updated()
	})
	if away != 1 {
		t.Errorf("at most %d nodes were away, want 1", away)
	}
	await(t, "machines after the roll-out", running)
	if list, err := c.migrations(ns).List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) < 2 {
		t.Errorf("%d migrations, %v", len(list.Items), err)
	}

	annotate := func(path, value string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, FaultAnnotation, value)
		if err := c.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error(); err != nil {
			t.Fatal(err)
		}
	}
	const zone = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/zone"
	annotate(zone, `"degraded"`)
	if err := c.apply(t, "", strings.ReplaceAll(config, "NAME", "b"), false); err != nil {
		t.Fatal(err)
	}
	await(t, "degraded", func() (string, bool) { now := count("degradedMachineCount"); return fmt.Sprint(now), now == 1 })
	annotate(zone, "null")
	await(t, "no longer degraded", updated)
	await(t, "machines after that", running)

	nodes, _ := on()
	lost := ""
	for lost = range nodes {
	}
	annotate("/api/v1/nodes/"+lost, `"lost"`)
	await(t, "machines elsewhere", func() (string, bool) {
		nodes, phases := on()
		_, all := running()
		return phases, all && nodes[lost] == 0
	})
	annotate("/api/v1/nodes/"+lost, "null")
	await(t, "the node back", updated)
	if err := c.machines(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "all gone", func() (string, bool) {
		list, err := c.instances(ns).List(ctx, metav1.ListOptions{})
		return fmt.Sprint(err), err == nil && len(list.Items) == 0
	})
}

// The limit of virt-controller's client is what machines wait for, and the
// resource KubeVirt changes it. A snapshot becomes ready and a cluster's upgrade
// says how far it is.
func TestClientLimit(t *testing.T) {
	suite.Long(t, "machines that wait for one request after the other")
	const ns, n, perMachine = "limit", 30, 6
	const qps, burst, scale = 1, 10, 20
	c, _ := connectTo(t, ns, "--virt", "--nodes", "2", "--time-scale", fmt.Sprint(scale), "--virt-figures", fmt.Sprintf("qps=%d,burst=%d,bootShare=1ms,upgrade=20s,reboot=10s", qps, burst))
	ctx := t.Context()
	simple := diskless(ns, "Halted")
	for i := range n {
		if err := c.apply(t, ns, strings.ReplaceAll(simple, "NAME", fmt.Sprint("vm", i)), false); err != nil {
			t.Fatal(err)
		}
	}
	all := func(want kubevirt.VirtualMachinePrintableStatus) func() (string, bool) {
		return func() (string, bool) {
			list, err := c.machines(ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err.Error(), false
			}
			there := 0
			for _, vm := range list.Items {
				if vm.Status.PrintableStatus == want {
					there++
				}
			}
			return fmt.Sprintf("%d %s", there, want), there == n
		}
	}
	set := func(strategy string) time.Duration {
		began := time.Now()
		for i := range n {
			if _, err := c.machines(ns).Patch(ctx, fmt.Sprint("vm", i), types.MergePatchType, fmt.Appendf(nil, `{"spec":{"runStrategy":%q}}`, strategy), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		want := kubevirt.VirtualMachineStatusRunning
		if strategy == "Halted" {
			want = kubevirt.VirtualMachineStatusStopped
		}
		await(t, "machines", all(want))
		return time.Since(began)
	}
	await(t, "machines", all(kubevirt.VirtualMachineStatusStopped))
	least := time.Second * (n*perMachine - burst) / (qps * scale)
	slow := set("Always")
	if slow < least || slow > 3*least {
		t.Errorf("with %d requests a second %d machines run after %v, want from %v on", qps*scale, n, slow, least)
	}
	raise := []byte(`{"spec":{"configuration":{"controllerConfiguration":{"restClient":{"rateLimiter":{"tokenBucketRateLimiter":{"qps":400,"burst":600}}}}}}}`)
	if _, err := c.kubevirts(Namespace).Patch(ctx, "kubevirt", types.MergePatchType, raise, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	set("Halted")
	if quick := set("Always"); quick > slow*2/3 {
		t.Errorf("with the limit raised %d machines run after %v, before after %v", n, quick, slow)
	}

	if err := c.apply(t, ns, "apiVersion: snapshot.kubevirt.io/v1beta1\nkind: VirtualMachineSnapshot\nmetadata: {name: s}\nspec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: vm0}}", false); err != nil {
		t.Fatal(err)
	}
	await(t, "the snapshot", func() (string, bool) {
		u, err := c.dynamic.Resource(snapshotResource()).Namespace(ns).Get(ctx, "s", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		ready, _, _ := unstructured.NestedBool(u.Object, "status", "readyToUse")
		return "", ready
	})
	set("Halted") // so that nothing holds up the drains of its nodes
	if _, err := c.dynamic.Resource(versionResource()).Patch(ctx, "version", types.MergePatchType, []byte(`{"spec":{"desiredUpdate":{"version":"4.20.1","image":null}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	towards := false
	await(t, "the upgrade", func() (string, bool) {
		u, err := c.dynamic.Resource(versionResource()).Get(ctx, "version", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		status := fmt.Sprint(u.Object["status"])
		towards = towards || strings.Contains(status, "Working towards 4.20.1: ")
		return status, strings.Contains(status, "Cluster version is 4.20.1")
	})
	if !towards {
		t.Error("the upgrade did not say how far it was")
	}
}

func vmiAddress(vmi *kubevirt.VirtualMachineInstance) string { return vmi.Annotations[SSHAnnotation] }

// virtctl sends the request of "virtctl VERB NAME".
func (c clients) virtctl(ctx context.Context, namespace, resource, name, verb string) error {
	return c.CoreV1().RESTClient().Put().AbsPath("/apis/subresources.kubevirt.io/v1/namespaces", namespace, resource, name, verb).Body([]byte("{}")).Do(ctx).Error()
}

// forward returns a machine's first bytes at a port, through the API server.
func (c clients) forward(ctx context.Context, kubeconfig, namespace, name string, port int) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", err
	}
	transport, made, err := websocket.RoundTripperFor(config)
	if err != nil {
		return "", err
	}
	request := c.CoreV1().RESTClient().Get().AbsPath("/apis/subresources.kubevirt.io/v1/namespaces", namespace, "virtualmachineinstances", name, "portforward", fmt.Sprint(port), "tcp")
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, request.URL().String(), nil)
	if err != nil {
		return "", err
	}
	conn, err := websocket.Negotiate(transport, made, asked, "plain.kubevirt.io")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_, line, err := conn.ReadMessage()
	return string(line), err
}

// watchLimits follows migrations and holds them against the limits after each news.
func (c clients) watchLimits(t *testing.T, ctx context.Context, namespace string, cluster, outbound int) {
	w, err := c.migrations(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	defer w.Stop()
	under, from := map[types.UID]bool{}, map[types.UID]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-w.ResultChan():
			m, ok := event.Object.(*kubevirt.VirtualMachineInstanceMigration)
			if !ok {
				return
			}
			delete(under, m.UID)
			if !m.IsFinal() && m.Status.Phase != "" && m.Status.Phase != kubevirt.MigrationPending {
				under[m.UID] = true
				if s := m.Status.MigrationState; s != nil {
					from[m.UID] = s.SourceNode
				}
			}
			counts := map[string]int{}
			for id := range under {
				if from[id] != "" {
					counts[from[id]]++
				}
			}
			for node, n := range counts {
				if n > outbound {
					t.Errorf("%d migrations from %s, limit %d", n, node, outbound)
				}
			}
			if len(under) > cluster {
				t.Errorf("%d migrations, limit %d", len(under), cluster)
			}
		}
	}
}
