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

// clients of one component share one limit of requests.
type clients struct {
	kubernetes.Interface
	dynamic   dynamic.Interface
	virt, cdi rest.Interface
	codec     runtime.ParameterCodec
}

// newClients makes the clients of a component; a nil limiter does not limit them.
func newClients(base *rest.Config, component string, limiter flowcontrol.RateLimiter) (c clients, err error) {
	config := rest.CopyConfig(base)
	config.UserAgent = component
	config.QPS, config.RateLimiter = -1, limiter
	scheme := runtime.NewScheme()
	// KubeVirt's own registration takes the version from the environment.
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
	return clientOf[kubevirt.VirtualMachine, kubevirt.VirtualMachineList](c, c.virt, "virtualmachines", namespace)
}

func (c clients) instances(namespace string) *gentype.ClientWithList[*kubevirt.VirtualMachineInstance, *kubevirt.VirtualMachineInstanceList] {
	return clientOf[kubevirt.VirtualMachineInstance, kubevirt.VirtualMachineInstanceList](c, c.virt, "virtualmachineinstances", namespace)
}

func (c clients) migrations(namespace string) *gentype.ClientWithList[*kubevirt.VirtualMachineInstanceMigration, *kubevirt.VirtualMachineInstanceMigrationList] {
	return clientOf[kubevirt.VirtualMachineInstanceMigration, kubevirt.VirtualMachineInstanceMigrationList](c, c.virt, "virtualmachineinstancemigrations", namespace)
}

func (c clients) kubevirts(namespace string) *gentype.ClientWithList[*kubevirt.KubeVirt, *kubevirt.KubeVirtList] {
	return clientOf[kubevirt.KubeVirt, kubevirt.KubeVirtList](c, c.virt, "kubevirts", namespace)
}

func (c clients) volumes(namespace string) *gentype.ClientWithList[*cdi.DataVolume, *cdi.DataVolumeList] {
	return clientOf[cdi.DataVolume, cdi.DataVolumeList](c, c.cdi, "datavolumes", namespace)
}

func (c clients) profiles() *gentype.ClientWithList[*cdi.StorageProfile, *cdi.StorageProfileList] {
	return clientOf[cdi.StorageProfile, cdi.StorageProfileList](c, c.cdi, "storageprofiles", "")
}

func (c clients) sources(namespace string) *gentype.ClientWithList[*cdi.DataSource, *cdi.DataSourceList] {
	return clientOf[cdi.DataSource, cdi.DataSourceList](c, c.cdi, "datasources", namespace)
}

func clientOf[O, L any, T interface {
	*O
	object
}, M interface {
	*L
	runtime.Object
}](c clients, group rest.Interface, resource, namespace string) *gentype.ClientWithList[T, M] {
	return gentype.NewClientWithList(resource, group, c.codec, namespace, func() T { return new(O) }, func() M { return new(L) })
}

// limiter counts requests, and limits them by a rate that can change meanwhile.
type limiter struct {
	now           atomic.Pointer[flowcontrol.RateLimiter]
	sent, waiting atomic.Int64
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

type object interface {
	runtime.Object
	metav1.Object
}

type lister[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

type store[T object] struct{ cache.SharedIndexInformer }

// follow makes a store of the objects that a selector of labels matches, "" for all.
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

// get returns an object by "namespace/name"; do not change it.
func (s store[T]) get(key string) (T, bool) {
	o, ok, _ := s.GetStore().GetByKey(key)
	found, _ := o.(T)
	return found, ok
}

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

// indexed makes an index of what keys returns for objects of a type.
func indexed[T any](keys func(T) []string) cache.IndexFunc {
	return func(o any) (list []string, _ error) {
		if one, ok := o.(T); ok {
			list = keys(one)
		}
		return list, nil
	}
}

// each calls f with every object that changes or goes.
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

func key(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

type controller struct {
	name    string
	queue   workqueue.TypedRateLimitingInterface[string]
	workers int
	// sync looks at one object, and again after the returned time, or with 0 when the object changes.
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
			// Another writer was faster, or the store is old.
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

// errStale says that the store is old: the object is looked at again.
var errStale = errors.New("what is known of it is old")
