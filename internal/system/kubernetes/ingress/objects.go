package ingress

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// labelPart names what an object of the run is a part of: the clients, or the back ends of an arm.
const labelPart = "plimsoll.dev/part"

const (
	partClients = "clients"
	partBackEnd = "back-end"
)

// site holds the settings of an arm, with the server and host name that its way was given.
type site struct {
	settings
	name       string // of its objects
	controller string // of its ingress, as far as it is known
	// programmed is the time from the first request of the first client to a right answer to every one.
	programmed time.Duration
}

func (i *instance) meta(name, part string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: i.namespace, Labels: map[string]string{api.LabelManagedBy: api.ManagedBy, api.LabelRun: i.Run, labelPart: part}}
}

// pod returns the template of pods of the agent, which pass Pod Security "restricted".
func (i *instance) pod(part, image, cpu string, args ...string) corev1.PodTemplateSpec {
	yes, no, grace := true, false, int64(1)
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
	requests := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	if cpu != "" {
		limits[corev1.ResourceCPU], requests[corev1.ResourceCPU] = resource.MustParse(cpu), resource.MustParse("10m")
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: i.meta("", part).Labels},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "agent", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: args,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				Resources:       corev1.ResourceRequirements{Limits: limits, Requests: requests},
			}},
		},
	}
}

// makeNamespace makes the run's own namespace, and shows by it that the run lives.
func (i *instance) makeNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: i.meta(i.namespace, "")}
	ns.Namespace, ns.Labels[labelPart] = "", name
	ns.Annotations = map[string]string{api.AnnotationAlive: i.Now().UTC().Format(time.RFC3339)}
	ns, err := i.Client().Typed.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if api.Refused(err) {
		return system.Mistakef("the user needs the rights of a run", "this user may not create namespaces, and a run makes one of its own: %w", err)
	}
	i.opened = true
	if err != nil {
		return fmt.Errorf("create the run's namespace %s: %w", i.namespace, i.Client().Unreachable(err))
	}
	i.uid = ns.UID
	// Pods are refused before the namespace has its account.
	return i.await(ctx, "the service account of namespace "+i.namespace, func() (string, bool, error) {
		_, err := i.Client().Typed.CoreV1().ServiceAccounts(i.namespace).Get(ctx, "default", metav1.GetOptions{})
		return "", err == nil, nil
	})
}

// makeBackEnds makes the back ends of an arm, their service, and the way to them.
func (i *instance) makeBackEnds(ctx context.Context, name string, one *settings) (*site, error) {
	s := &site{settings: *one, name: name}
	if s.via == viaURL {
		return s, nil
	}
	s.mark = "plimsoll " + i.Run + "\n"
	meta := i.meta(name, name)
	pod := i.pod(name, one.image, "", "serve", "-mark", s.mark, "-size", fmt.Sprint(one.size), "-time", one.took.String(), "-at-once", fmt.Sprint(one.atOnce))
	pod.Labels[labelKind] = partBackEnd
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 5, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(backEndPort)}}}
	typed := i.Client().Typed
	_, err := typed.AppsV1().Deployments(i.namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(one.backEnds)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{labelPart: name}}, Template: pod,
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create the back ends: %w", i.Client().Unreachable(err))
	}
	service, err := typed.CoreV1().Services(i.namespace).Create(ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: map[string]string{labelPart: name}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(backEndPort)}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create the service of the back ends: %w", i.Client().Unreachable(err))
	}
	if one.via == viaService {
		s.server, s.host = joinPort(service.Spec.ClusterIP, 80), name+"."+i.namespace+".svc"
	}
	if err := i.awaitDeployment(ctx, "the back ends", name); err != nil {
		return nil, err
	}
	switch one.via {
	case viaIngress:
		err = i.makeIngress(ctx, s, meta)
	case viaGateway:
		err = i.makeHTTPRoute(ctx, s, meta)
	case viaRoute:
		err = i.makeRoute(ctx, s, meta)
	}
	return s, err
}

const (
	backEndPort = 8080
	labelKind   = "plimsoll.dev/kind"
)

func joinPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// port returns where the way takes connections, unless the user said so.
func (s *site) port() int {
	if s.secure {
		return 443
	}
	return 80
}

func (i *instance) makeIngress(ctx context.Context, s *site, meta metav1.ObjectMeta) error {
	if err := i.chooseClass(ctx, s); err != nil {
		return err
	}
	prefix := networkingv1.PathTypePrefix
	typed := i.Client().Typed.NetworkingV1().Ingresses(i.namespace)
	ingress := &networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: s.host, IngressRuleValue: networkingv1.IngressRuleValue{
		HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: s.name, Port: networkingv1.ServiceBackendPort{Number: 80}},
		}}}},
	}}}}}
	if s.class != "" {
		ingress.Spec.IngressClassName = &s.class
	}
	if s.secure {
		ingress.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{s.host}}}
	}
	if _, err := typed.Create(ctx, ingress, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the ingress: %w", i.Client().Unreachable(err))
	}
	if s.server != "" {
		return nil
	}
	return i.await(ctx, "the ingress controller to give the ingress an address (--set address=HOST:PORT says one)", func() (string, bool, error) {
		got, err := typed.Get(ctx, s.name, metav1.GetOptions{})
		if err == nil && len(got.Status.LoadBalancer.Ingress) > 0 {
			at := got.Status.LoadBalancer.Ingress[0]
			s.server = joinPort(cmp.Or(at.IP, at.Hostname), s.port())
		}
		return "", s.server != "", err
	})
}

// makeHTTPRoute makes a route of a gateway, of the Gateway API.
func (i *instance) makeHTTPRoute(ctx context.Context, s *site, meta metav1.ObjectMeta) error {
	const group = "/apis/gateway.networking.k8s.io/v1/namespaces/"
	in, gateway, _ := strings.Cut(s.gateway, "/")
	err := i.post(ctx, group+i.namespace+"/httproutes", map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": meta,
		"spec": map[string]any{
			"parentRefs": []any{map[string]any{"namespace": in, "name": gateway}}, "hostnames": []string{s.host},
			"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": s.name, "port": 80}}}},
		},
	})
	if err != nil || s.server != "" {
		return err
	}
	return i.await(ctx, "an address of gateway "+s.gateway, func() (string, bool, error) {
		var got struct {
			Status struct{ Addresses []struct{ Value string } }
		}
		err := i.get(ctx, group+in+"/gateways/"+gateway, &got)
		if err == nil && len(got.Status.Addresses) > 0 {
			s.server = joinPort(got.Status.Addresses[0].Value, s.port())
		}
		return "", s.server != "", err
	})
}

// makeRoute makes a route of OpenShift, whose router gives it a host name.
func (i *instance) makeRoute(ctx context.Context, s *site, meta metav1.ObjectMeta) error {
	routes := "/apis/route.openshift.io/v1/namespaces/" + i.namespace + "/routes"
	spec := map[string]any{"to": map[string]any{"kind": "Service", "name": s.name}, "port": map[string]any{"targetPort": "http"}}
	if s.secure {
		spec["tls"] = map[string]any{"termination": "edge"}
	}
	if err := i.post(ctx, routes, map[string]any{"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": meta, "spec": spec}); err != nil {
		return err
	}
	return i.await(ctx, "a router to admit the route", func() (string, bool, error) {
		var got struct {
			Spec   struct{ Host string }
			Status struct {
				Ingress []struct {
					Conditions []struct{ Type, Status, Message string }
				}
			}
		}
		err := i.get(ctx, routes+"/"+s.name, &got)
		for _, in := range got.Status.Ingress {
			for _, c := range in.Conditions {
				if c.Type == "Admitted" && c.Status == "True" {
					s.host = got.Spec.Host
					s.server = cmp.Or(s.server, joinPort(s.host, s.port()))
					return "", true, nil
				}
			}
		}
		return "", false, err
	})
}

func (i *instance) post(ctx context.Context, path string, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	r, err := i.Client().Do(ctx, http.MethodPost, path, nil, "application/json", text, &buf)
	if err == nil && r.Code == http.StatusNotFound {
		return system.Mistakef("install it, or load another way: --set via=service", "the cluster does not know %s", strings.SplitN(path, "/namespaces/", 2)[0])
	}
	if err = cmp.Or(err, r.Err()); err != nil {
		return fmt.Errorf("create %s: %w", path, i.Client().Unreachable(err))
	}
	return nil
}

func (i *instance) get(ctx context.Context, path string, into any) error {
	return i.Client().InJSON(ctx, path, nil, nil, into)
}

// clientJob returns the job whose pods send the load, so many of them.
func (i *instance) clientJob(n int) *batchv1.Job {
	base := i.arms[""]
	pod := i.pod(partClients, base.image, base.cpu, "client")
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Spec.NodeSelector = base.nodes
	same := func(key, value string) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: 50, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		}}
	}
	// Away from the back ends first, and from each other.
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		same(labelKind, partBackEnd), same(labelPart, partClients),
	}}}
	indexed := batchv1.IndexedCompletion
	return &batchv1.Job{ObjectMeta: i.meta(partClients, partClients), Spec: batchv1.JobSpec{
		CompletionMode: &indexed, Completions: new(int32(n)), Parallelism: new(int32(n)), BackoffLimit: new(int32(1000)), Template: pod,
	}}
}
