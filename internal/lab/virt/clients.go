package virt

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// clients are one component's: its requests share one limit.
type clients struct {
	kubernetes.Interface
	dynamic   dynamic.Interface
	virt, cdi rest.Interface
	codec     runtime.ParameterCodec
}

// newClients makes the clients of a component; without a limiter nothing holds
// them up.
func newClients(base *rest.Config, component string, limiter flowcontrol.RateLimiter) (c clients, err error) {
	config := rest.CopyConfig(base)
	config.UserAgent = component
	config.QPS, config.RateLimiter = -1, limiter
	scheme := runtime.NewScheme()
	// It registers the version by a variable that is the environment's.
	kubevirtVersion := schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}
	scheme.AddKnownTypes(kubevirtVersion,
		&kubevirt.VirtualMachine{}, &kubevirt.VirtualMachineList{}, &kubevirt.VirtualMachineInstance{}, &kubevirt.VirtualMachineInstanceList{},
		&kubevirt.VirtualMachineInstanceMigration{}, &kubevirt.VirtualMachineInstanceMigrationList{}, &kubevirt.KubeVirt{}, &kubevirt.KubeVirtList{})
	metav1.AddToGroupVersion(scheme, kubevirtVersion)
	if err := cdi.AddToScheme(scheme); err != nil {
		return c, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	c.codec = runtime.NewParameterCodec(scheme)
	typed := rest.CopyConfig(config)
	typed.APIPath = "/apis"
	typed.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	typed.GroupVersion = &kubevirtVersion
	if c.virt, err = rest.RESTClientFor(typed); err != nil {
		return c, err
	}
	typed.GroupVersion = &cdi.SchemeGroupVersion
	if c.cdi, err = rest.RESTClientFor(typed); err != nil {
		return c, err
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return c, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.Interface, err = kubernetes.NewForConfig(config)
	return c, err
}

func (c clients) machines(namespace string) *gentype.ClientWithList[*kubevirt.VirtualMachine, *kubevirt.VirtualMachineList] {
	return gentype.NewClientWithList("virtualmachines", c.virt, c.codec, namespace,
		func() *kubevirt.VirtualMachine { return &kubevirt.VirtualMachine{} }, func() *kubevirt.VirtualMachineList { return &kubevirt.VirtualMachineList{} })
}

func (c clients) instances(namespace string) *gentype.ClientWithList[*kubevirt.VirtualMachineInstance, *kubevirt.VirtualMachineInstanceList] {
	return gentype.NewClientWithList("virtualmachineinstances", c.virt, c.codec, namespace,
		func() *kubevirt.VirtualMachineInstance { return &kubevirt.VirtualMachineInstance{} },
		func() *kubevirt.VirtualMachineInstanceList { return &kubevirt.VirtualMachineInstanceList{} })
}

func (c clients) migrations(namespace string) *gentype.ClientWithList[*kubevirt.VirtualMachineInstanceMigration, *kubevirt.VirtualMachineInstanceMigrationList] {
	return gentype.NewClientWithList("virtualmachineinstancemigrations", c.virt, c.codec, namespace,
		func() *kubevirt.VirtualMachineInstanceMigration { return &kubevirt.VirtualMachineInstanceMigration{} },
		func() *kubevirt.VirtualMachineInstanceMigrationList {
			return &kubevirt.VirtualMachineInstanceMigrationList{}
		})
}

func (c clients) kubevirts(namespace string) *gentype.ClientWithList[*kubevirt.KubeVirt, *kubevirt.KubeVirtList] {
	return gentype.NewClientWithList("kubevirts", c.virt, c.codec, namespace,
		func() *kubevirt.KubeVirt { return &kubevirt.KubeVirt{} }, func() *kubevirt.KubeVirtList { return &kubevirt.KubeVirtList{} })
}

func (c clients) volumes(namespace string) *gentype.ClientWithList[*cdi.DataVolume, *cdi.DataVolumeList] {
	return gentype.NewClientWithList("datavolumes", c.cdi, c.codec, namespace,
		func() *cdi.DataVolume { return &cdi.DataVolume{} }, func() *cdi.DataVolumeList { return &cdi.DataVolumeList{} })
}

func (c clients) profiles() *gentype.ClientWithList[*cdi.StorageProfile, *cdi.StorageProfileList] {
	return gentype.NewClientWithList("storageprofiles", c.cdi, c.codec, "",
		func() *cdi.StorageProfile { return &cdi.StorageProfile{} }, func() *cdi.StorageProfileList { return &cdi.StorageProfileList{} })
}

func (c clients) sources(namespace string) *gentype.ClientWithList[*cdi.DataSource, *cdi.DataSourceList] {
	return gentype.NewClientWithList("datasources", c.cdi, c.codec, namespace,
		func() *cdi.DataSource { return &cdi.DataSource{} }, func() *cdi.DataSourceList { return &cdi.DataSourceList{} })
}

// limiter is a limit of requests that can be changed while they are made, and
// counts them.
type limiter struct {
	now           atomic.Pointer[flowcontrol.RateLimiter]
	sent, waiting atomic.Int64
}

func (l *limiter) set(qps float64, burst int) {
	made := flowcontrol.NewTokenBucketRateLimiter(float32(qps), burst)
	l.now.Store(&made)
}

func (l *limiter) TryAccept() bool { return (*l.now.Load()).TryAccept() }
func (l *limiter) Accept()         { (*l.now.Load()).Accept() }
func (l *limiter) Stop()           {}
func (l *limiter) QPS() float32    { return (*l.now.Load()).QPS() }

func (l *limiter) Wait(ctx context.Context) error {
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	l.sent.Add(1)
	return (*l.now.Load()).Wait(ctx)
}

// object is what a store holds.
type object interface {
	runtime.Object
	metav1.Object
}

// lister is what a client of one kind can do for a store.
type lister[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// store is the objects of one kind as last heard of.
type store[T object] struct{ cache.SharedIndexInformer }

// follow makes a store; selector is one of labels, empty for all.
func follow[T object, L runtime.Object](client lister[L], example T, selector string, indexers cache.Indexers) store[T] {
	with := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = selector
		return o
	}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, with(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, with(o))
		},
	}, example, 0, indexers)
	informer.SetTransform(func(o any) (any, error) {
		if m, ok := o.(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
		return o, nil
	})
	return store[T]{informer}
}

// get is an object by "namespace/name"; it must not be changed.
func (s store[T]) get(key string) (T, bool) {
	o, ok, _ := s.GetStore().GetByKey(key)
	found, _ := o.(T)
	return found, ok
}

// by is the objects that an index has under a value.
func (s store[T]) by(index, value string) []T {
	list, _ := s.GetIndexer().ByIndex(index, value)
	return typed[T](list)
}

func (s store[T]) all() []T { return typed[T](s.GetStore().List()) }

func typed[T object](list []any) []T {
	all := make([]T, 0, len(list))
	for _, o := range list {
		if one, ok := o.(T); ok {
			all = append(all, one)
		}
	}
	return all
}

// each calls f with every object that changes, gone too.
func (s store[T]) each(f func(o T)) {
	handle := func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if one, ok := o.(T); ok {
			f(one)
		}
	}
	s.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, o any) { handle(o) }, DeleteFunc: handle})
}

// key is how stores and queues name an object.
func key(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// controller brings objects of one kind to where they should be.
type controller struct {
	name    string
	queue   workqueue.TypedRateLimitingInterface[string]
	workers int
	// sync looks at one object; it is called again after the time that it
	// returns, 0 for not before the object changes.
	sync func(ctx context.Context, key string) (time.Duration, error)
}

func newController(name string, workers int, sync func(ctx context.Context, key string) (time.Duration, error)) *controller {
	return &controller{name, workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, 5*time.Second)), workers, sync}
}

// work takes one object after the other until the queue is shut down.
func (c *controller) work(ctx context.Context, failed func(key string, err error)) {
	for {
		key, shut := c.queue.Get()
		if shut {
			return
		}
		again, err := c.sync(ctx, key)
		switch {
		case err != nil && ctx.Err() == nil:
			// Someone else wrote first, or what was heard of is old.
			if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !errors.Is(err, errStale) &&
				!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				failed(key, err)
			}
			c.queue.AddRateLimited(key)
		default:
			c.queue.Forget(key)
			if again > 0 {
				c.queue.AddAfter(key, again)
			}
		}
		c.queue.Done(key)
	}
}

// errStale says that an object is unknown as it is: it is looked at again.
var errStale = errors.New("what is known of it is old")
