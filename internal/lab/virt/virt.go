package virt

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"plimsoll.dev/plimsoll/internal/plan/planted"
	"plimsoll.dev/plimsoll/internal/proc"
)

//go:generate go run generate.go

//go:embed crds.json.gz
var definitions []byte

// Definitions returns the resource definitions that a lab with virtual machines serves.
func Definitions() ([]apiextensions.CustomResourceDefinition, error) {
	r, err := gzip.NewReader(bytes.NewReader(definitions))
	if err != nil {
		return nil, fmt.Errorf("read the resource definitions: %w", err)
	}
	var all []apiextensions.CustomResourceDefinition
	if err := json.NewDecoder(r).Decode(&all); err != nil {
		return nil, fmt.Errorf("read the resource definitions: %w", err)
	}
	return all, nil
}

// Options say what to simulate.
type Options struct {
	Config           *rest.Config
	Figures          planted.Virt // at the scale of time
	Scale            float64      // the factor by which the simulation is faster
	Nodes            int          // that must be prepared before machines can be made
	Real             RealOptions  // of guests that QEMU runs
	APIPort, SSHPort int          // At APIPort the API server reaches the API of virt-api, at SSHPort guests answer
	// Cert and Key are files for the API, CA of its authority; FrontProxyCA is the authority of its callers.
	Cert, Key, CA, FrontProxyCA string
	Metrics                     http.Handler // served beside the API, or nil
	Ready                       func()       // called once machines can be made
	Log                         *slog.Logger
}

// Namespace holds KubeVirt's own objects.
const Namespace = "kubevirt"

type world struct {
	Options

	limiter *limiter
	control clients // virt-controller's, limited
	free    clients // of virt-handler, the importer and the nodes' operator

	machines                                                 store[*kubevirt.VirtualMachine]
	instances                                                store[*kubevirt.VirtualMachineInstance]
	migrations                                               store[*kubevirt.VirtualMachineInstanceMigration]
	kubevirts                                                store[*kubevirt.KubeVirt]
	volumes                                                  store[*cdi.DataVolume]
	profiles                                                 store[*cdi.StorageProfile]
	sources                                                  store[*cdi.DataSource]
	launchers                                                store[*corev1.Pod]
	claims                                                   store[*corev1.PersistentVolumeClaim]
	persistent                                               store[*corev1.PersistentVolume]
	nodes                                                    store[*corev1.Node]
	pools, configs, snapshots, restores, versions, operators store[*unstructured.Unstructured]
	hyper                                                    store[*unstructured.Unstructured] // only with Figures.HyperConverged

	machineControl, instanceControl, migrationControl                      *controller
	volumeControl, nodeControl, profileControl, pvControl, kubevirtControl *controller

	guests *guests
	real   *realGuests

	mu      sync.Mutex
	config  kubevirt.KubeVirtConfiguration
	boots   bootLine
	gate    *gate
	clones  *cloneQueue
	cloning map[string]*clone // by the key of its volume
	cloned  chan struct{}     // receives when the storage has something new to wait for
	moments map[moment]time.Time
	counted map[string]int // of the things of which every n-th goes wrong
	asked   struct {       // the last usedUp, for the rate of virt-controller's requests
		at   time.Time
		sent int64
	}
}

// moment names something that an object waits for.
type moment struct {
	object types.UID
	what   string
}

// since returns when it was first called for this.
func (w *world) since(object types.UID, what string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.moments[moment{object, what}]
	if !ok {
		at = time.Now()
		w.moments[moment{object, what}] = at
	}
	return at
}

// left returns what remains of a duration since the first call for this.
func (w *world) left(object types.UID, what string, duration time.Duration) time.Duration {
	return time.Until(w.since(object, what).Add(duration))
}

func (w *world) forget(object types.UID, what ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range what {
		delete(w.moments, moment{object, one})
	}
}

// scaled is for durations that are not among the plan's figures.
func (w *world) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) / w.Scale) }

// every reports whether this is an n-th one, which goes wrong. The caller holds the lock.
func (w *world) every(n int, what string) bool {
	if n == 0 {
		return false
	}
	w.counted[what]++
	return w.counted[what]%n == 0
}

// Run simulates until ctx ends.
func Run(ctx context.Context, o Options) error {
	w := &world{Options: o, limiter: &limiter{}, gate: newGate(), clones: newCloneQueue(o.Figures), cloning: map[string]*clone{}, cloned: make(chan struct{}, 1),
		moments: map[moment]time.Time{}, counted: map[string]int{},
		real:  &realGuests{RealOptions: o.Real, tied: proc.NewTie(), slots: map[string]int{}, runs: map[types.UID]*realGuest{}},
		boots: bootLine{share: o.Figures.BootShare, growth: o.Figures.BootGrowth}}
	defer w.real.tied.Close()
	w.configure(kubevirt.KubeVirtConfiguration{})
	var err error
	if w.control, err = newClients(o.Config, "virt-controller", w.limiter); err != nil {
		return fmt.Errorf("make clients: %w", err)
	}
	if w.free, err = newClients(o.Config, "plimsoll-virt", nil); err != nil {
		return fmt.Errorf("make clients: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	if w.guests, err = listenGuests(o.SSHPort); err != nil {
		return err
	}
	group.Go(func() error { return w.guests.serve(ctx) })
	group.Go(func() error { return w.serveAPI(ctx) })
	if err := w.install(ctx); err != nil {
		return err
	}
	w.wire()
	informers := []cache.SharedIndexInformer{w.machines, w.instances, w.migrations, w.kubevirts, w.volumes, w.profiles, w.sources, w.launchers, w.claims, w.persistent, w.nodes}
	for _, s := range w.asData() {
		informers = append(informers, s)
	}
	for _, i := range informers {
		group.Go(func() error {
			i.Run(ctx.Done())
			return nil
		})
	}
	for _, i := range informers {
		if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			return ctx.Err()
		}
	}
	for _, c := range []*controller{w.machineControl, w.instanceControl, w.migrationControl, w.volumeControl, w.nodeControl, w.profileControl, w.pvControl, w.kubevirtControl} {
		for range c.workers {
			group.Go(func() error {
				c.work(ctx, func(key string, err error) {
					w.Log.Warn("will try again", "controller", c.name, "object", key, "error", err)
				})
				return nil
			})
		}
		context.AfterFunc(ctx, c.queue.ShutDown)
	}
	group.Go(func() error { return w.runClones(ctx) })
	group.Go(func() error { return w.runPools(ctx) })
	group.Go(func() error { return w.runOthers(ctx) })
	if err := w.offer(ctx); err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return w.prepared() >= o.Nodes, nil })
	if err != nil {
		return group.Wait()
	}
	o.Ready()
	return group.Wait()
}

func (w *world) asData() map[schema.GroupVersionResource]*store[*unstructured.Unstructured] {
	all := map[schema.GroupVersionResource]*store[*unstructured.Unstructured]{poolResource(): &w.pools, configResource(): &w.configs,
		snapshotResource(): &w.snapshots, restoreResource(): &w.restores, versionResource(): &w.versions, operatorResource(): &w.operators}
	if w.Figures.HyperConverged {
		all[hyperResource()] = &w.hyper
	}
	return all
}

// served waits until all kinds can be listed: an informer that is refused retries only after a second or more.
func (w *world) served(ctx context.Context) error {
	resources := slices.Collect(maps.Keys(w.asData()))
	for _, kind := range []string{"virtualmachines", "virtualmachineinstances", "virtualmachineinstancemigrations", "kubevirts"} {
		resources = append(resources, resourceOf("kubevirt.io", "v1", kind))
	}
	for _, kind := range []string{"datavolumes", "storageprofiles", "datasources"} {
		resources = append(resources, resourceOf("cdi.kubevirt.io", "v1beta1", kind))
	}
	for _, resource := range resources {
		err := wait.PollUntilContextCancel(ctx, 25*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, err := w.free.dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
			return err == nil, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) configure(c kubevirt.KubeVirtConfiguration) {
	qps, burst := w.Figures.QPS, w.Figures.Burst
	if r := c.ControllerConfiguration; r != nil && r.RestClient != nil && r.RestClient.RateLimiter != nil {
		if bucket := r.RestClient.RateLimiter.TokenBucketRateLimiter; bucket != nil && bucket.QPS > 0 && bucket.Burst > 0 {
			qps, burst = float64(bucket.QPS)*w.Scale, bucket.Burst
		}
	}
	w.limiter.now.Store(new(flowcontrol.NewTokenBucketRateLimiter(float32(qps), burst)))
	w.mu.Lock()
	w.config = c
	w.gate.limits = limits{cluster: 5, outbound: 2} // KubeVirt's defaults
	if m := c.MigrationConfiguration; m != nil {
		if m.ParallelMigrationsPerCluster != nil {
			w.gate.limits.cluster = int(*m.ParallelMigrationsPerCluster)
		}
		if m.ParallelOutboundMigrationsPerNode != nil {
			w.gate.limits.outbound = int(*m.ParallelOutboundMigrationsPerNode)
		}
	}
	begin := w.gate.admit()
	w.mu.Unlock()
	for _, key := range begin {
		w.migrationControl.queue.Add(key)
	}
}

const (
	byOwner = "owner" // launchers by the instance, instances by the machine
	byNode  = "node"
	byClaim = "claim" // launchers by the claims that they use
)

func (w *world) wire() {
	pods := "kubevirt.io=virt-launcher"
	byOwnerOf := indexed(func(o metav1.Object) (owners []string) {
		if owner := metav1.GetControllerOf(o); owner != nil {
			owners = []string{string(owner.UID)}
		}
		return owners
	})
	f := w.free
	w.machines = follow(f.machines(""), &kubevirt.VirtualMachine{}, "", nil)
	w.instances = follow(f.instances(""), &kubevirt.VirtualMachineInstance{}, "", nil)
	w.migrations = follow(f.migrations(""), &kubevirt.VirtualMachineInstanceMigration{}, "", cache.Indexers{
		byOwner: indexed(func(m *kubevirt.VirtualMachineInstanceMigration) []string {
			return []string{m.Namespace + "/" + m.Spec.VMIName}
		})})
	w.kubevirts = follow(f.kubevirts(""), &kubevirt.KubeVirt{}, "", nil)
	w.volumes = follow(f.volumes(""), &cdi.DataVolume{}, "", cache.Indexers{byOwner: byOwnerOf})
	w.profiles = follow(f.profiles(), &cdi.StorageProfile{}, "", nil)
	w.sources = follow(f.sources(""), &cdi.DataSource{}, "", nil)
	w.launchers = follow(f.CoreV1().Pods(""), &corev1.Pod{}, pods, cache.Indexers{byOwner: byOwnerOf,
		byNode: indexed(func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} }),
		byClaim: indexed(func(p *corev1.Pod) (claims []string) {
			for _, v := range p.Spec.Volumes {
				if v.PersistentVolumeClaim != nil {
					claims = append(claims, p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName)
				}
			}
			return claims
		})})
	w.claims = follow(f.CoreV1().PersistentVolumeClaims(""), &corev1.PersistentVolumeClaim{}, "", nil)
	w.persistent = follow(f.CoreV1().PersistentVolumes(), &corev1.PersistentVolume{}, "", nil)
	w.nodes = follow(f.CoreV1().Nodes(), &corev1.Node{}, "", nil)
	for resource, into := range w.asData() {
		*into = follow(f.dynamic.Resource(resource), &unstructured.Unstructured{}, "", nil)
	}

	w.machineControl = newController("machines", 10, w.syncMachine)
	w.instanceControl = newController("instances", 10, w.syncInstance)
	w.migrationControl = newController("migrations", 5, w.syncMigration)
	w.volumeControl = newController("volumes", 10, w.syncVolume)
	w.nodeControl = newController("nodes", 4, w.syncNode)
	w.profileControl = newController("profiles", 1, w.syncProfile)
	w.pvControl = newController("persistent volumes", 4, w.syncPersistent)
	w.kubevirtControl = newController("settings", 1, w.syncKubeVirt)

	w.machines.each(func(o *kubevirt.VirtualMachine) { w.machineControl.queue.Add(key(o)) })
	w.instances.each(func(o *kubevirt.VirtualMachineInstance) {
		w.instanceControl.queue.Add(key(o))
		w.machineControl.queue.Add(key(o)) // of the same name
		for _, m := range w.migrations.by(byOwner, key(o)) {
			if !m.IsFinal() {
				w.migrationControl.queue.Add(key(m))
			}
		}
	})
	w.migrations.each(func(o *kubevirt.VirtualMachineInstanceMigration) { w.migrationControl.queue.Add(key(o)) })
	w.volumes.each(func(o *cdi.DataVolume) {
		w.volumeControl.queue.Add(key(o))
		if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == kindMachine {
			w.machineControl.queue.Add(o.Namespace + "/" + owner.Name)
		}
	})
	w.claims.each(func(o *corev1.PersistentVolumeClaim) { w.volumeControl.queue.Add(key(o)) })
	w.persistent.each(func(o *corev1.PersistentVolume) {
		if o.Status.Phase == corev1.VolumeReleased {
			w.pvControl.queue.Add(o.Name)
		}
	})
	w.launchers.each(func(o *corev1.Pod) {
		if owner := metav1.GetControllerOf(o); owner != nil {
			w.instanceControl.queue.Add(o.Namespace + "/" + owner.Name)
			if o.Labels[kubevirt.MigrationJobLabel] != "" {
				for _, m := range w.migrations.by(byOwner, o.Namespace+"/"+owner.Name) {
					w.migrationControl.queue.Add(key(m))
				}
			}
		}
	})
	w.nodes.each(func(o *corev1.Node) {
		w.nodeControl.queue.Add(o.Name)
		// Seldom enough: a node confirms its conditions every few minutes.
		for _, pod := range w.launchers.by(byNode, o.Name) {
			w.instanceControl.queue.Add(pod.Namespace + "/" + metav1.GetControllerOf(pod).Name)
		}
	})
	w.profiles.each(func(o *cdi.StorageProfile) { w.profileControl.queue.Add(o.Name) })
	w.kubevirts.each(func(o *kubevirt.KubeVirt) {
		if o.DeletionTimestamp == nil {
			w.configure(o.Spec.Configuration)
		}
		if w.Figures.HyperConverged {
			w.kubevirtControl.queue.Add(key(o))
		}
	})
	if w.Figures.HyperConverged {
		w.hyper.each(func(*unstructured.Unstructured) {
			for _, o := range w.kubevirts.all() {
				w.kubevirtControl.queue.Add(key(o))
			}
		})
	}
}

// install defines the resources and waits until the API server serves them.
func (w *world) install(ctx context.Context) error {
	all, err := Definitions()
	if err != nil {
		return err
	}
	if w.Figures.HyperConverged {
		all = append(all, hyperDefinition())
	}
	config := rest.CopyConfig(w.Config)
	config.QPS = -1
	client, err := apiextensionsclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	group, making := errgroup.WithContext(ctx)
	for i := range all {
		group.Go(func() error {
			if _, err := crds.Create(making, &all[i], metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("define %s: %w", all[i].Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := crds.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("wait for the definitions: %w", err)
		}
		established := 0
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == apiextensions.Established && c.Status == apiextensions.ConditionTrue {
					established++
				}
			}
		}
		return established >= len(all), nil
	})
	if err != nil {
		return err
	}
	return w.served(ctx)
}
