package virt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
)

const (
	subresources = "subresources.kubevirt.io"
	apiService   = "virt-api"
)

const subresourceVersion = "v1"

// usedUp returns use, limit and queue of each thing that can hold machines up; the client's use is a rate.
func (w *world) usedUp(now time.Time) map[string]map[string]float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.limiter.sent.Load() - w.limiter.waiting.Load()
	rate := 0.0
	if span := now.Sub(w.asked.at).Seconds(); span > 0 && !w.asked.at.IsZero() {
		rate = float64(sent-w.asked.sent) / span
	}
	w.asked.at, w.asked.sent = now, sent
	held, busy, waiting := 0, 0, 0
	for _, p := range w.clones.parents {
		busy, waiting = busy+1, waiting+len(p.waiting)
		if p.held {
			held++
		}
	}
	return map[string]map[string]float64{
		"virt-controller's client": {"use": rate, "limit": float64(w.limiter.QPS()), "waiting": float64(w.limiter.waiting.Load())},
		"clone workers":            {"use": float64(w.clones.busy), "limit": float64(w.Figures.CloneWorkers), "waiting": float64(len(w.clones.waiting))},
		"locks of parents":         {"use": float64(held), "limit": float64(max(busy, 1)), "waiting": float64(waiting)},
	}
}

// serveAPI answers for virt-api: subresources, and evictions of launchers.
func (w *world) serveAPI(ctx context.Context) error {
	ca, err := os.ReadFile(w.FrontProxyCA)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(w.APIPort)))
	if err != nil {
		return fmt.Errorf("listen for the API server: %w", err)
	}
	mux := http.NewServeMux()
	base := "/apis/" + subresources
	group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: subresources,
		Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: subresources + "/" + subresourceVersion, Version: subresourceVersion}}}
	group.PreferredVersion = group.Versions[0]
	mux.HandleFunc("GET "+base, func(r http.ResponseWriter, _ *http.Request) { reply(r, http.StatusOK, group) })
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: subresources + "/" + subresourceVersion}
	base += "/" + subresourceVersion
	for resource, verbs := range map[string][]string{"virtualmachines": {"start", "stop", "restart", "migrate", "addvolume", "removevolume"},
		"virtualmachineinstances": {"pause", "unpause", "addvolume", "removevolume"}} {
		for _, verb := range verbs {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource + "/" + verb, Namespaced: true, Verbs: metav1.Verbs{"update"}})
		}
	}
	list.APIResources = append(list.APIResources, metav1.APIResource{Name: "virtualmachineinstances/portforward", Namespaced: true, Verbs: metav1.Verbs{"get"}})
	mux.HandleFunc("GET "+base+"/namespaces/{namespace}/virtualmachineinstances/{name}/portforward/{port}/{protocol}", w.forward)
	mux.HandleFunc("GET "+base, func(r http.ResponseWriter, _ *http.Request) { reply(r, http.StatusOK, list) })
	mux.HandleFunc("PUT "+base+"/namespaces/{namespace}/{resource}/{name}/{verb}", w.subresource)
	mux.HandleFunc("GET "+protocol.VirtLimitsPath, func(r http.ResponseWriter, _ *http.Request) { reply(r, http.StatusOK, w.usedUp(time.Now())) })
	mux.HandleFunc("POST /evict", w.evict)
	mux.HandleFunc("GET /healthz", func(r http.ResponseWriter, _ *http.Request) { io.WriteString(r, "ok") })
	if w.Metrics != nil {
		mux.Handle("GET /metrics", w.Metrics)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(r http.ResponseWriter, request *http.Request) {
			// A caller without the API server's certificate could speak for anybody.
			if strings.HasPrefix(request.URL.Path, "/apis/") && len(request.TLS.VerifiedChains) == 0 {
				refuse(r, apierrors.NewUnauthorized("only the API server may ask"))
				return
			}
			mux.ServeHTTP(r, request)
		}),
		TLSConfig: &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool}, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0), // callers that hang up
	}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.ServeTLS(listener, w.Cert, w.Key); ctx.Err() == nil {
		return fmt.Errorf("serve the API server: %w", err)
	}
	return nil
}

func reply(r http.ResponseWriter, code int, body any) {
	r.Header().Set("Content-Type", "application/json")
	r.WriteHeader(code)
	json.NewEncoder(r).Encode(body)
}

func refuse(r http.ResponseWriter, err error) {
	var status metav1.Status
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	} else {
		status = apierrors.NewInternalError(err).ErrStatus
	}
	status.Kind, status.APIVersion = "Status", "v1"
	reply(r, int(status.Code), status)
}

func (w *world) subresource(r http.ResponseWriter, request *http.Request) {
	namespace, name, verb := request.PathValue("namespace"), request.PathValue("name"), request.PathValue("verb")
	body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
	if err == nil {
		err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			switch request.PathValue("resource") {
			case "virtualmachines":
				return w.askMachine(request.Context(), namespace, name, verb, body)
			case "virtualmachineinstances":
				return w.askInstance(request.Context(), namespace, name, verb, body)
			}
			return apierrors.NewNotFound(schema.GroupResource{Group: subresources, Resource: request.PathValue("resource")}, name)
		})
	}
	if err != nil {
		refuse(r, err)
		return
	}
	r.WriteHeader(http.StatusAccepted)
}

func conflict(resource, name, why string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: "",
		Message: fmt.Sprintf("Operation cannot be fulfilled on %s.kubevirt.io %q: %s", resource, name, why)}}
}

// askMachine starts, stops, restarts or migrates a machine, or changes its volumes.
func (w *world) askMachine(ctx context.Context, namespace, name, verb string, body []byte) error {
	const resource = "virtualmachine"
	vm, err := w.free.machines(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	vmi, err := w.free.instances(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		vmi = nil
	} else if err != nil {
		return err
	}
	runs := vmi != nil && !vmi.IsFinal() && vmi.DeletionTimestamp == nil
	strategy, err := vm.RunStrategy()
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	set := func(s kubevirt.VirtualMachineRunStrategy) error {
		vm.Spec.RunStrategy, vm.Spec.Running = &s, nil
		_, err := w.free.machines(namespace).Update(ctx, vm, metav1.UpdateOptions{})
		return err
	}
	ask := func(requests ...kubevirt.VirtualMachineStateChangeRequest) error {
		if len(vm.Status.StateChangeRequests) > 0 {
			return conflict(resource, name, "unable to complete request: stop/start already underway")
		}
		vm.Status.StateChangeRequests = requests
		_, err := w.free.machines(namespace).UpdateStatus(ctx, vm, metav1.UpdateOptions{})
		return err
	}
	start := kubevirt.VirtualMachineStateChangeRequest{Action: kubevirt.StartRequest}
	switch verb {
	case "start":
		switch {
		case runs:
			return conflict(resource, name, "VM is already running")
		case strategy == kubevirt.RunStrategyHalted:
			return set(kubevirt.RunStrategyAlways)
		case strategy == kubevirt.RunStrategyAlways:
			return conflict(resource, name, "Always does not support manual start requests")
		}
		return ask(start)
	case "stop":
		switch {
		case !runs && strategy != kubevirt.RunStrategyAlways:
			return conflict(resource, name, "VM is not running")
		case strategy == kubevirt.RunStrategyManual || strategy == kubevirt.RunStrategyOnce:
			return ask(kubevirt.VirtualMachineStateChangeRequest{Action: kubevirt.StopRequest, UID: &vmi.UID})
		}
		return set(kubevirt.RunStrategyHalted)
	case "restart":
		if !runs || strategy == kubevirt.RunStrategyHalted {
			return conflict(resource, name, "VM is not running")
		}
		return ask(kubevirt.VirtualMachineStateChangeRequest{Action: kubevirt.StopRequest, UID: &vmi.UID}, start)
	case "migrate":
		if !runs {
			return conflict(resource, name, "VM is not running")
		}
		made := &kubevirt.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "kubevirt-migrate-vm-"},
			Spec: kubevirt.VirtualMachineInstanceMigrationSpec{VMIName: name}}
		_, err := w.free.migrations(namespace).Create(ctx, made, metav1.CreateOptions{})
		return err
	case "addvolume", "removevolume":
		if err := changeVolumes(&vm.Spec.Template.Spec, verb, body); err != nil {
			return err
		}
		if _, err = w.free.machines(namespace).Update(ctx, vm, metav1.UpdateOptions{}); err != nil || !runs {
			return err
		}
		return w.askInstance(ctx, namespace, name, verb, body)
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: subresources, Resource: "virtualmachines/" + verb}, name)
}

// askInstance pauses an instance, lets it go on, or changes its volumes.
func (w *world) askInstance(ctx context.Context, namespace, name, verb string, body []byte) error {
	const resource = "virtualmachineinstance"
	vmi, err := w.free.instances(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if vmi.Status.Phase != kubevirt.Running {
		return conflict(resource, name, "VMI is not running")
	}
	switch paused := instanceIs(vmi, kubevirt.VirtualMachineInstancePaused); verb {
	case "pause":
		if paused {
			return conflict(resource, name, "VMI is already paused")
		}
		note(vmi, kubevirt.VirtualMachineInstancePaused, true, "", "")
	case "unpause":
		if !paused {
			return conflict(resource, name, "VMI is not paused")
		}
		note(vmi, kubevirt.VirtualMachineInstancePaused, false, "", "")
	case "addvolume", "removevolume":
		if err := changeVolumes(&vmi.Spec, verb, body); err != nil {
			return err
		}
	default:
		return apierrors.NewNotFound(schema.GroupResource{Group: subresources, Resource: "virtualmachineinstances/" + verb}, name)
	}
	_, err = w.free.instances(namespace).Update(ctx, vmi, metav1.UpdateOptions{})
	return err
}

func changeVolumes(spec *kubevirt.VirtualMachineInstanceSpec, verb string, body []byte) error {
	var add kubevirt.AddVolumeOptions
	if err := json.Unmarshal(body, &add); err != nil || add.Name == "" {
		return apierrors.NewBadRequest("the options of a volume need at least its name")
	}
	disks := slices.DeleteFunc(slices.Clone(spec.Domain.Devices.Disks), func(d kubevirt.Disk) bool { return d.Name == add.Name })
	volumes := slices.DeleteFunc(slices.Clone(spec.Volumes), func(v kubevirt.Volume) bool { return v.Name == add.Name })
	there := len(volumes) < len(spec.Volumes)
	switch {
	case verb == "removevolume" && !there:
		return conflict("virtualmachine", add.Name, "unable to remove volume because it is not there")
	case verb == "addvolume" && there:
		return conflict("virtualmachine", add.Name, "unable to add volume because it is there already")
	case verb == "addvolume":
		if add.VolumeSource == nil || add.Disk == nil {
			return apierrors.NewBadRequest("a volume to add needs disk and volumeSource")
		}
		disk := *add.Disk
		disk.Name = add.Name
		disks = append(disks, disk)
		volumes = append(volumes, kubevirt.Volume{Name: add.Name, VolumeSource: kubevirt.VolumeSource{
			PersistentVolumeClaim: add.VolumeSource.PersistentVolumeClaim, DataVolume: add.VolumeSource.DataVolume}})
	}
	spec.Domain.Devices.Disks, spec.Volumes = disks, volumes
	return nil
}

// evict refuses to evict the launcher of a machine that it can migrate, and migrates it.
func (w *world) evict(r http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(r, "want an AdmissionReview", http.StatusBadRequest)
		return
	}
	q := review.Request
	review.Response = &admissionv1.AdmissionResponse{UID: q.UID, Allowed: true}
	review.Request = nil
	if refusal := w.evictionOf(request.Context(), q.Namespace, q.Name, q.DryRun != nil && *q.DryRun); refusal != "" {
		review.Response.Allowed = false
		review.Response.Result = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: refusal}
	}
	reply(r, http.StatusOK, review)
}

// evictionOf says why a pod may not be evicted, "" if it may.
func (w *world) evictionOf(ctx context.Context, namespace, pod string, dry bool) string {
	launcher, ok := w.launchers.get(namespace + "/" + pod)
	if !ok || !alive(launcher) {
		return ""
	}
	owner := metav1.GetControllerOf(launcher)
	if owner == nil {
		return ""
	}
	vmi, ok := w.instances.get(namespace + "/" + owner.Name)
	if !ok || vmi.IsFinal() || vmi.Spec.EvictionStrategy == nil {
		return ""
	}
	migratable := instanceIs(vmi, kubevirt.VirtualMachineInstanceIsMigratable)
	switch s := *vmi.Spec.EvictionStrategy; {
	case s == kubevirt.EvictionStrategyNone, s == kubevirt.EvictionStrategyLiveMigrateIfPossible && !migratable:
		return ""
	case s == kubevirt.EvictionStrategyLiveMigrate && !migratable:
		return fmt.Sprintf("VMI %s is configured with an eviction strategy but is not live-migratable", vmi.Name)
	}
	node := launcher.Spec.NodeName
	if !dry && node == vmi.Status.NodeName && vmi.Status.EvacuationNodeName != node {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			now, err := w.free.instances(namespace).Get(ctx, vmi.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			now.Status.EvacuationNodeName = node
			_, err = w.free.instances(namespace).Update(ctx, now, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return fmt.Sprintf("Eviction of VMI %s could not be noted: %v", vmi.Name, err)
		}
	}
	return fmt.Sprintf("Eviction triggered evacuation of VMI %s/%s", namespace, vmi.Name)
}

// offer creates the objects that a user finds besides the definitions.
func (w *world) offer(ctx context.Context) error {
	ca, err := os.ReadFile(w.CA)
	if err != nil {
		return err
	}
	aggregator, err := aggregatorclient.NewForConfig(w.Config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	webhook := "https://localhost:" + strconv.Itoa(w.APIPort) + "/evict"
	kv := &kubevirt.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "kubevirt"}}
	kv.Spec.Configuration.EvictionStrategy = new(kubevirt.EvictionStrategyLiveMigrate)
	put := func(resource schema.GroupVersionResource, namespace string, o *unstructured.Unstructured) func() error {
		return func() error {
			_, err := w.free.dynamic.Resource(resource).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{})
			return err
		}
	}
	creates := []func() error{
		creating(ctx, w.free.CoreV1().Namespaces().Create, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}),
		creating(ctx, w.free.StorageV1().StorageClasses().Create, storageClass()),
		creating(ctx, w.free.profiles().Create, &cdi.StorageProfile{ObjectMeta: metav1.ObjectMeta{Name: StorageClass}}),
		// The name of the service leads to this process.
		creating(ctx, w.free.CoreV1().Services(Namespace).Create, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: apiService},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}),
		creating(ctx, aggregator.ApiregistrationV1().APIServices().Create, &apiregistration.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: subresourceVersion + "." + subresources},
			Spec: apiregistration.APIServiceSpec{Group: subresources, Version: subresourceVersion, GroupPriorityMinimum: 1000, VersionPriority: 15, CABundle: ca,
				Service: &apiregistration.ServiceReference{Namespace: Namespace, Name: apiService, Port: new(int32(w.APIPort))}},
		}),
		creating(ctx, w.free.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create, &admissionregistration.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "virt-launcher-pod-evict"},
			Webhooks: []admissionregistration.ValidatingWebhook{{
				Name: "virt-launcher-pod-evict.kubevirt.io", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistration.SideEffectClassNoneOnDryRun),
				ClientConfig: admissionregistration.WebhookClientConfig{URL: &webhook, CABundle: ca}, FailurePolicy: new(admissionregistration.Ignore),
				Rules: []admissionregistration.RuleWithOperations{{Operations: []admissionregistration.OperationType{admissionregistration.Create},
					Rule: admissionregistration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}}}},
			}},
		}),
		put(versionResource(), "", newVersion()),
		func() error {
			made, err := w.free.kubevirts(Namespace).Create(ctx, kv, metav1.CreateOptions{})
			if err == nil {
				made.Status = kubevirt.KubeVirtStatus{Phase: kubevirt.KubeVirtPhaseDeployed, ObservedKubeVirtVersion: "v1.8.1", OperatorVersion: "v1.8.1"}
				_, err = w.free.kubevirts(Namespace).UpdateStatus(ctx, made, metav1.UpdateOptions{})
			}
			return err
		},
	}
	for _, p := range newPools() {
		creates = append(creates, put(poolResource(), "", p))
	}
	if w.Figures.HyperConverged {
		creates = append(creates, put(hyperResource(), Namespace, newHyperConverged()))
	}
	for _, create := range creates {
		if err := create(); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("set up what belongs to virtual machines: %w", err)
		}
	}
	// The API server takes some time to reach the subresources.
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		s, err := aggregator.ApiregistrationV1().APIServices().Get(ctx, subresourceVersion+"."+subresources, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(s.Status.Conditions, func(c apiregistration.APIServiceCondition) bool {
			return c.Type == apiregistration.Available && c.Status == apiregistration.ConditionTrue
		}), nil
	})
}

func creating[T any](ctx context.Context, create func(context.Context, T, metav1.CreateOptions) (T, error), object T) func() error {
	return func() error {
		_, err := create(ctx, object, metav1.CreateOptions{})
		return err
	}
}
