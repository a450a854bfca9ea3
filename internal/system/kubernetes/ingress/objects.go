package ingress

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
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
	moved      bool   // the way leads to the other back ends
	meter      *meter // of the controller of a cluster that is not the run's own; nil for none
	shard      int    // of a further way, by another controller or to another pod; 0 is the first
	further    []*site
	port       int // of the back ends
	// programmed is the time from the first request of the first client to a right answer to every one.
	programmed time.Duration
}

// Marks with which the answers of the back ends go on after that of all.
const (
	markOwn   = "\n"
	markOther = " other\n" // of those that an event switches to
)

// other returns the name of the back ends that an event switches to.
func (s *site) other() string { return s.name + "-other" }

func (i *instance) meta(name, part string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: i.namespace, Labels: map[string]string{api.LabelManagedBy: api.ManagedBy, api.LabelRun: i.Run, labelPart: part}}
}

// pod returns the template of pods of a part.
func (i *instance) pod(part, image, cpu string, args ...string) corev1.PodTemplateSpec {
	return kubernetes.AgentPod(i.meta("", part).Labels, image, cpu, args...)
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
	return i.await(ctx, "the service account of namespace "+i.namespace, awaitBound, func() (string, bool, error) {
		_, err := i.Client().Typed.CoreV1().ServiceAccounts(i.namespace).Get(ctx, "default", metav1.GetOptions{})
		return "", err == nil, nil
	})
}

// makeSite makes the back ends of an arm, and the way to them.
func (i *instance) makeSite(ctx context.Context, name string, one *settings) (*site, error) {
	s := &site{settings: *one, name: name, port: backEndPort}
	if s.via == viaHost { // arms may share a node
		s.port = hostPort + len(i.Arms)
	}
	if s.via == viaURL || s.via == viaClaim {
		return s, nil
	}
	s.mark = "plimsoll " + i.Run
	err := i.makeBackEnds(ctx, s, name, markOwn)
	if err == nil && s.event == eventChange {
		err = i.makeBackEnds(ctx, s, s.other(), markOther)
	}
	classes := strings.Split(s.class, "+")
	for n := 0; err == nil && n < s.shards; n++ {
		shard := s
		if n > 0 {
			one := *s
			one.shard, one.host, one.server, one.further = n, fmt.Sprintf("shard-%d.%s", n, s.host), "", nil
			shard, s.further = &one, append(s.further, &one)
		}
		switch {
		case s.via == viaIngress:
			shard.class = classes[min(n, len(classes)-1)]
			err = i.chooseClass(ctx, shard)
		case s.via == viaGateway && s.gateway == "":
			err = i.makeController(ctx, shard)
		}
		if err == nil {
			err = i.makeWay(ctx, shard, shard.wayName())
		}
	}
	return s, err
}

// wayName names the object that leads to the back ends.
func (s *site) wayName() string {
	if s.shard == 0 {
		return s.name + "-way"
	}
	return fmt.Sprintf("%s-way-%d", s.name, s.shard)
}

// makeBackEnds makes back ends of that name, with a service.
func (i *instance) makeBackEnds(ctx context.Context, s *site, name, mark string) error {
	meta := i.meta(name, name)
	pod := i.pod(name, s.image, "", "serve", "-address", fmt.Sprintf(":%d", s.port), "-mark", s.mark+mark, "-size", fmt.Sprint(s.size), "-time", s.took.String(), "-at-once", fmt.Sprint(s.atOnce))
	pod.Labels[labelKind] = partBackEnd
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 5, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(int32(s.port))}}}
	pod.Spec.HostNetwork = s.via == viaHost
	if pod.Spec.HostNetwork { // which no other pod of a node may have
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: int32(s.port), HostPort: int32(s.port)}}
	}
	pod.Spec.Affinity = s.affinity()
	_, err := i.Client().Typed.AppsV1().Deployments(i.namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(s.backEnds)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{labelPart: name}}, Template: pod,
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the back ends: %w", i.Client().Unreachable(err))
	}
	service := route{"v1", "Service", "services"}
	if err := i.send(ctx, http.MethodPost, service.path(i.namespace, ""), service.object(meta, s.serviceSpec(name)), nil); err != nil {
		return err
	}
	return i.awaitDeployment(ctx, "the back ends", name)
}

// nodesOf chooses nodes by their pods with a label of the run.
func nodesOf(label, value string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}}
}

// away prefers nodes without such pods.
func away(nodes ...corev1.PodAffinityTerm) *corev1.Affinity {
	anti := new(corev1.PodAntiAffinity)
	for _, n := range nodes {
		anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{Weight: 50, PodAffinityTerm: n})
	}
	return &corev1.Affinity{PodAntiAffinity: anti}
}

// affinity places the back ends with respect to the clients.
func (s *settings) affinity() *corev1.Affinity {
	clients := nodesOf(labelPart, partClients)
	switch s.place {
	case placeSame:
		return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{clients}}}
	case placeOther:
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{clients}}}
	}
	return away(clients)
}

const (
	backEndPort = 8080
	hostPort    = 18080 // of the first arm's back ends in the network of their nodes
	labelKind   = "plimsoll.dev/kind"
)

func joinPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// route is the kind of an object that leads to back ends, and its zero value none.
type route struct{ version, kind, plural string }

func (s *settings) route() route {
	return map[string]route{
		viaService: {"v1", "Service", "services"}, viaIngress: {"networking.k8s.io/v1", "Ingress", "ingresses"},
		viaGateway: {gatewayVersion, "HTTPRoute", "httproutes"}, viaRoute: {"route.openshift.io/v1", "Route", "routes"},
	}[s.via]
}

// path returns the path of an object, or with "" of all in the namespace, and without that in the cluster.
func (r route) path(namespace, name string) string {
	if namespace != "" {
		namespace = "namespaces/" + namespace
	}
	return path.Join("/", map[bool]string{true: "apis", false: "api"}[strings.Contains(r.version, "/")], r.version, namespace, r.plural, name)
}

func (r route) object(meta metav1.ObjectMeta, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": r.version, "kind": r.kind, "metadata": meta, "spec": spec}
}

func (s *site) serviceSpec(backEnds string) map[string]any {
	return map[string]any{"selector": map[string]any{labelPart: backEnds}, "ports": []any{map[string]any{"name": "http", "port": 80, "targetPort": s.port}}}
}

// spec returns the specification of the way to back ends of that name.
func (s *site) spec(backEnds string) map[string]any {
	switch s.via {
	case viaIngress:
		spec := map[string]any{"rules": []any{map[string]any{"host": s.host, "http": map[string]any{"paths": []any{map[string]any{
			"path": "/", "pathType": "Prefix", "backend": map[string]any{"service": map[string]any{"name": backEnds, "port": map[string]any{"number": 80}}},
		}}}}}}
		if s.class != "" {
			spec["ingressClassName"] = s.class
		}
		if s.secure {
			spec["tls"] = []any{map[string]any{"hosts": []string{s.host}}}
		}
		return spec
	case viaGateway:
		in, gateway, _ := strings.Cut(s.gateway, "/")
		return map[string]any{
			"parentRefs": []any{map[string]any{"namespace": in, "name": gateway}}, "hostnames": []string{s.host},
			"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": backEnds, "port": 80}}}},
		}
	case viaRoute:
		spec := map[string]any{"to": map[string]any{"kind": "Service", "name": backEnds}, "port": map[string]any{"targetPort": "http"}}
		if s.secure {
			spec["tls"] = map[string]any{"termination": "edge"}
		}
		return spec
	}
	return s.serviceSpec(backEnds)
}

// findBackEnds takes the addresses of the back ends as the ways to them.
func (i *instance) findBackEnds(ctx context.Context, s *site) error {
	list, err := i.Client().Typed.CoreV1().Pods(i.namespace).List(ctx, metav1.ListOptions{LabelSelector: labelPart + "=" + s.name})
	if err != nil {
		return fmt.Errorf("list the back ends: %w", i.Client().Unreachable(err))
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
			continue
		}
		way := s
		if s.server != "" {
			one := *s
			way, one.further = &one, nil
			s.further = append(s.further, way)
			way.shard = len(s.further)
		}
		way.server, way.host = joinPort(pod.Status.PodIP, s.port), pod.Name
	}
	return nil
}

// makeWay makes the way to a site's back ends, and waits for its address unless that is known.
func (i *instance) makeWay(ctx context.Context, s *site, name string) error {
	var got struct {
		Spec   struct{ ClusterIP, Host, GatewayClassName string }
		Status struct {
			LoadBalancer struct {
				Ingress []struct{ IP, Hostname string }
			}
			Addresses []struct{ Value string }
			Ingress   []struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	kind := s.route()
	if kind == (route{}) {
		return i.findBackEnds(ctx, s)
	}
	if err := i.send(ctx, http.MethodPost, kind.path(i.namespace, ""), kind.object(i.meta(name, name), s.spec(s.name)), &got); err != nil {
		return err
	}
	at, what := kind.path(i.namespace, name), ""
	var address func() string
	switch s.via {
	case viaService:
		s.server, s.host = joinPort(got.Spec.ClusterIP, 80), name+"."+i.namespace+".svc"
		return nil
	case viaIngress:
		what = "the ingress controller to give the ingress an address (--set address=HOST:PORT says one)"
		address = func() string {
			for _, in := range got.Status.LoadBalancer.Ingress {
				return cmp.Or(in.IP, in.Hostname)
			}
			return ""
		}
	case viaGateway:
		in, gateway, _ := strings.Cut(s.gateway, "/")
		at, what = route{kind.version, "Gateway", "gateways"}.path(in, gateway), "an address of gateway "+s.gateway
		address = func() string {
			for _, a := range got.Status.Addresses {
				return a.Value
			}
			return ""
		}
	case viaRoute: // whose router gives it a host name
		s.host, what = got.Spec.Host, "a router to admit the route"
		address = func() string {
			for _, in := range got.Status.Ingress {
				for _, c := range in.Conditions {
					if c.Type == "Admitted" && c.Status == "True" {
						return s.host
					}
				}
			}
			return ""
		}
	}
	if s.server != "" {
		return nil
	}
	return i.await(ctx, what, awaitBound, func() (string, bool, error) {
		err := i.Client().InJSON(ctx, at, nil, nil, &got)
		if to := address(); err == nil && to != "" {
			if s.via == viaGateway && s.controller == "" {
				s.controller = i.controllerOf(ctx, got.Spec.GatewayClassName)
			}
			s.server = joinPort(to, map[bool]int{true: 443, false: 80}[s.secure])
		}
		return "", s.server != "", err
	})
}

// send sends a request with an object, or none, and reads the answer into one unless it is nil.
func (i *instance) send(ctx context.Context, method, at string, object, into any) error {
	verb, contentType, text := "create", "application/json", []byte(nil)
	switch method {
	case http.MethodPatch:
		verb, contentType = "change", string(types.MergePatchType)
	case http.MethodDelete:
		verb, contentType = "remove", ""
	}
	var err error
	if object != nil {
		text, err = json.Marshal(object)
	}
	if err != nil {
		return err
	}
	request, err := i.Client().Request(ctx, method, at, nil, contentType, text)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	r, err := i.Client().Send(request, new(bytes.Buffer))
	if err == nil && r.Code == http.StatusNotFound && method == http.MethodPost {
		return system.Mistakef("install it, or load another way: --set via=service", "the cluster does not know %s", strings.SplitN(at, "/namespaces/", 2)[0])
	}
	if err = cmp.Or(err, r.Err()); err != nil {
		return fmt.Errorf("%s %s: %w", verb, at, i.Client().Unreachable(err))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(r.Body, into)
}

// job returns the name of the clients' job.
func (i *instance) job() string {
	if i.jobs == 0 {
		return partClients
	}
	return fmt.Sprintf("%s-again-%d", partClients, i.jobs)
}

// makeClients makes the clients' job.
func (i *instance) makeClients(ctx context.Context) error {
	if _, err := i.Client().Typed.BatchV1().Jobs(i.namespace).Create(ctx, i.clientJob(i.made), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the clients: %w", i.Client().Unreachable(err))
	}
	return nil
}

// clientJob returns the job whose pods send the load, so many of them.
func (i *instance) clientJob(n int) *batchv1.Job {
	base := i.arms[""]
	pod := i.pod(partClients, base.image, base.cpu, "client")
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Spec.NodeSelector = base.nodes
	pod.Spec.Affinity = away(nodesOf(labelPart, partClients))
	if base.place != placeSame { // clients that are made later avoid the back ends
		pod.Spec.Affinity = away(nodesOf(labelPart, partClients), nodesOf(labelKind, partBackEnd))
	}
	if base.io != nil {
		base.io.mount(&pod.Spec, i.meta("", partClients).Labels)
	}
	indexed := batchv1.IndexedCompletion
	return &batchv1.Job{ObjectMeta: i.meta(i.job(), partClients), Spec: batchv1.JobSpec{
		CompletionMode: &indexed, Completions: new(int32(n)), Parallelism: new(int32(n)), BackoffLimit: new(int32(1000)), Template: pod,
	}}
}
