package ingress

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

const partController = "controller"

// Ports of Traefik's pod.
const (
	plainPort  = 8000
	securePort = 8443
	pingPort   = 8080 // Traefik's own for its health
)

// traefikController is the name of Traefik in ingress classes.
const traefikController = "traefik.io/ingress-controller"

// controllerMemory bounds the memory of a Traefik, in which each connection has buffers.
const controllerMemory = "1Gi"

// chooseClass chooses the ingress class of an arm, and records its controller. A lab without any class gets a
// controller of the run's own.
func (i *instance) chooseClass(ctx context.Context, s *site) error {
	if i.classes == nil {
		list, err := i.Client().Typed.NetworkingV1().IngressClasses().List(ctx, metav1.ListOptions{})
		if err != nil && !api.Refused(err) {
			return fmt.Errorf("list the ingress classes: %w", i.Client().Unreachable(err))
		}
		i.classes = make(map[string]string)
		i.brings = err == nil && len(list.Items) == 0 && i.Lab() != nil
		if err != nil {
			return nil // the API server knows the default class
		}
		for _, c := range list.Items {
			i.classes[c.Name] = c.Spec.Controller
			if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
				i.standard = c.Name
			}
		}
	}
	if i.brings && s.class == "" {
		return i.makeController(ctx, s)
	}
	if s.shards > 1 && s.class == "" {
		return system.ParamMistake("shards", "--set class=a+b", "each needs an ingress class of its own")
	}
	s.class = cmp.Or(s.class, i.standard)
	var known bool
	names := slices.Sorted(maps.Keys(i.classes))
	if s.controller, known = i.classes[s.class]; len(names) > 0 && !known {
		if s.class == "" {
			return system.ParamMistake("class", "--set class="+names[0], "no ingress class is the default; there are: %s", strings.Join(names, ", "))
		}
		return system.ParamMistake("class", nearest.Hint(s.class, names, "there are: "+strings.Join(names, ", ")), "there is no ingress class %s", s.class)
	}
	return nil
}

// makeController makes a Traefik for an arm, with an ingress class or a gateway of its own. What is not in the run's
// namespace goes with it.
func (i *instance) makeController(ctx context.Context, s *site) error {
	reference, err := i.Image(lab.ImageTraefik, "load a class or a gateway of the lab's own, with --set class=NAME or --set gateway=NAMESPACE/NAME")
	if err != nil {
		return err
	}
	name := strings.Replace(s.wayName(), partBackEnd, partController, 1)
	meta, wide := i.meta(name, name), i.meta(i.namespace+"-"+name, name)
	wide.Namespace, wide.OwnerReferences = "", []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: i.namespace, UID: i.uid}}
	s.controller = "Traefik " + reference[strings.LastIndexByte(reference, ':')+1:]
	kind, spec := route{networkingv1.SchemeGroupVersion.String(), "IngressClass", "ingressclasses"}, map[string]any{"controller": traefikController}
	if s.via == viaGateway {
		kind, spec = route{gatewayVersion, "GatewayClass", "gatewayclasses"}, map[string]any{"controllerName": traefikGateways}
		if err := i.defineGateways(ctx); err != nil {
			return err
		}
	}
	i.beside = append(i.beside, kind.path("", wide.Name))
	for _, rbac := range []string{"clusterroles/", "clusterrolebindings/"} {
		i.beside = append(i.beside, "/apis/rbac.authorization.k8s.io/v1/"+rbac+wide.Name)
	}
	if err := i.send(ctx, http.MethodPost, kind.path("", ""), kind.object(wide, spec), nil); err != nil {
		return err
	}
	typed, none := i.Client().Typed, metav1.CreateOptions{}
	service, err := typed.CoreV1().Services(i.namespace).Create(ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: map[string]string{labelPart: name}, Ports: []corev1.ServicePort{
			{Name: "http", Port: 80, TargetPort: intstr.FromInt32(plainPort)}, {Name: "https", Port: 443, TargetPort: intstr.FromInt32(securePort)},
		},
	}}, none)
	if err != nil {
		return fmt.Errorf("create the service of the ingress controller: %w", i.Client().Unreachable(err))
	}
	args := []string{
		"--global.checknewversion=false", "--global.sendanonymoususage=false", "--ping=true",
		fmt.Sprintf("--entrypoints.web.address=:%d", plainPort), fmt.Sprintf("--entrypoints.websecure.address=:%d", securePort), "--entrypoints.websecure.http.tls=true",
	}
	read, status := []string{"get", "list", "watch"}, []string{"update"}
	rules := []rbacv1.PolicyRule{
		{Verbs: read, APIGroups: []string{""}, Resources: []string{"services", "secrets", "nodes", "namespaces", "configmaps"}},
		{Verbs: read, APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}},
	}
	if s.via == viaGateway {
		args = append(args, "--providers.kubernetesgateway=true", "--providers.kubernetesgateway.labelselector="+labelPart+"="+name+","+api.LabelRun+"="+i.Run, "--providers.kubernetesgateway.statusaddress.ip="+service.Spec.ClusterIP)
		group, _, _ := strings.Cut(gatewayVersion, "/")
		rules = append(rules, rbacv1.PolicyRule{Verbs: read, APIGroups: []string{group}, Resources: []string{"*"}}, rbacv1.PolicyRule{Verbs: status, APIGroups: []string{group}, Resources: []string{"*/status"}})
		err = i.makeGateway(ctx, s, meta, wide.Name)
	} else {
		s.class = wide.Name
		args = append(args, "--providers.kubernetesingress=true", "--providers.kubernetesingress.ingressclass="+s.class, "--providers.kubernetesingress.ingressendpoint.ip="+service.Spec.ClusterIP)
		rules = append(rules, rbacv1.PolicyRule{Verbs: read, APIGroups: []string{networkingv1.GroupName}, Resources: []string{"ingresses", "ingressclasses"}}, rbacv1.PolicyRule{Verbs: status, APIGroups: []string{networkingv1.GroupName}, Resources: []string{"ingresses/status"}})
	}
	if err != nil {
		return err
	}
	pod := i.pod(name, reference, s.controllerShare(), args...)
	pod.Labels[labelKind] = partController
	pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken = name, new(true)
	c := &pod.Spec.Containers[0]
	c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse(controllerMemory)
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ping", Port: intstr.FromInt32(pingPort)}}}
	_, account := typed.CoreV1().ServiceAccounts(i.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, none)
	_, role := typed.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: wide, Rules: rules}, none)
	_, binding := typed.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: wide, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: wide.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: i.namespace, Name: name}},
	}, none)
	_, deployment := typed.AppsV1().Deployments(i.namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{labelPart: name}}, Template: pod,
	}}, none)
	if err := cmp.Or(account, role, binding, deployment); err != nil {
		return fmt.Errorf("create the ingress controller: %w", i.Client().Unreachable(err))
	}
	if err := i.awaitDeployment(ctx, "the ingress controller", name); err != nil {
		return err
	}
	pods, err := typed.CoreV1().Pods(i.namespace).List(ctx, metav1.ListOptions{LabelSelector: labelPart + "=" + name})
	if err != nil {
		return fmt.Errorf("list the pods of the ingress controller: %w", i.Client().Unreachable(err))
	}
	i.owned.Lock()
	defer i.owned.Unlock()
	for _, pod := range pods.Items {
		i.owned.sites[string(pod.UID)] = s.name
	}
	return nil
}

// awaitDeployment waits until all pods of a deployment of the run are ready.
func (i *instance) awaitDeployment(ctx context.Context, what, name string) error {
	return i.await(ctx, what, awaitBound, func() (string, bool, error) {
		d, err := i.Client().Typed.AppsV1().Deployments(i.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		why := i.waiting(ctx, name)
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				why = cmp.Or(why, c.Message) // such as a quota's, or Pod Security's
			}
		}
		return why, d.Status.ReadyReplicas == *d.Spec.Replicas, nil
	})
}
