package kubernetes_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// lockDown makes a namespace that enforces restricted Pod Security, with a policy
// that wants limits of memory, a quota that wants CPU requests and holds few pods,
// and a pod of somebody else. It returns the kubeconfig of a user who may do nothing
// outside of it but see nodes.
func lockDown(t *testing.T, p *harness.Program, name string, pods int64) string {
	t.Helper()
	ctx := t.Context()
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	made := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "locked": name},
	}}, metav1.CreateOptions{})
	made(err)
	_, err = typed.CoreV1().ConfigMaps(name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{})
	made(err)
	_, err = typed.CoreV1().ResourceQuotas(name).Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
		corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI), corev1.ResourceRequestsCPU: resource.MustParse("100"),
	}}}, metav1.CreateOptions{})
	made(err)
	harness.Await(t, "the quota to count", func() bool {
		q, err := typed.CoreV1().ResourceQuotas(name).Get(ctx, "few", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0
	})

	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"locked": name}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}}},
		},
		Validations: []admissionv1.Validation{{
			Expression: "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && 'memory' in c.resources.limits)",
			Message:    "each container wants a memory limit",
		}},
	}}
	_, err = typed.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
	made(err)
	_, err = typed.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	made(err)

	// What the program asks for, and nothing else.
	var within, around []rbacv1.PolicyRule
	for _, w := range lockedWorkloads() {
		got := p.Run(t, "rbac", w, "--namespace", name)
		for text := range strings.SplitSeq(got.Stdout, "---\n") {
			var role rbacv1.Role
			if err := yaml.Unmarshal([]byte(text), &role); err != nil {
				t.Fatalf("rbac %s: %v in %s", w, err, got.Stdout)
			}
			switch role.Kind {
			case "Role":
				within = append(within, role.Rules...)
			case "ClusterRole":
				around = append(around, role.Rules...)
			}
		}
	}
	user := e2e.AsUser(t, p, name, around...)
	_, err = typed.RbacV1().Roles(name).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: within}, metav1.CreateOptions{})
	made(err)
	_, err = typed.RbacV1().RoleBindings(name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
	}, metav1.CreateOptions{})
	made(err)
	harness.Await(t, "the policy to hold", func() bool {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "try"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		}}}}
		_, err := typed.CoreV1().Pods(name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "each container wants a memory limit")
	})
	return user
}

// lockedWorkloads returns the workloads that run there.
func lockedWorkloads() []string {
	return []string{"node-density", "node-density-cni", "node-density-heavy"}
}

// In a namespace of a cluster that is locked down the workloads run to a line with
// the parameters that the refusals name; what is somebody else's stays.
func TestWorkloadsRunWhereTheClusterIsLockedDown(t *testing.T) {
	t.Parallel()
	suite.Long(t, "three searches in a namespace of a lab")
	p := suite.Lab(t, e2e.WideLab()...)
	const name = "locked-down"
	user := lockDown(t, p, name, 13)
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	there := func() (list []string) {
		for object := range inventory(t, p.Kubeconfig) {
			kind, _, _ := strings.Cut(object, " ")
			if strings.Contains(object, " "+name+"/") && kind != "events" && kind != "events.events.k8s.io" {
				list = append(list, object)
			}
		}
		slices.Sort(list)
		return list
	}
	before := there()
	where := []string{"--kubeconfig", user, "--namespace", name}
	sets := regexp.MustCompile(`--set (\S+=\S+)`)
	for _, w := range lockedWorkloads() {
		var given []string
		refused := func(what string, got harness.Outcome) bool {
			said := sets.FindAllStringSubmatch(got.Stdout+got.Stderr, -1)
			fresh := false
			for _, m := range said {
				if !slices.Contains(given, m[1]) {
					given, fresh = append(given, "--set", m[1]), true
				}
			}
			if fresh && !strings.Contains(got.Stdout+got.Stderr, name) && !strings.Contains(got.Stdout+got.Stderr, "few") {
				t.Errorf("%s %s: the refusal names no policy:\n%s%s", what, w, got.Stdout, got.Stderr)
			}
			return fresh
		}
		first := p.RunTo(t, w+"-refused", append([]string{"limit", w, "--yes"}, where...)...)
		if first.Code != process.ExitUsage || !slices.Equal(there(), before) {
			t.Errorf("%s: a start that was refused: exit code %d, there is %q\n%s", w, first.Code, there(), first.Stderr)
		}
		for range 4 {
			got := p.Run(t, append(append([]string{"check", w}, given...), where...)...)
			if !refused("check", got) {
				break
			}
			if got.Code != process.ExitFail {
				t.Errorf("check %s %q: exit code %d\n%s%s", w, given, got.Code, got.Stdout, got.Stderr)
			}
		}
		if len(given) == 0 {
			t.Errorf("%s: no refusal names a parameter:\n%s", w, first.Stderr)
		}
		args := append(append([]string{"limit", w, "--yes", "--from", "2", "--step", "4", "--max", "20", "--resolution", "2", "--confirm", "1", "--hold", "500ms", "--step-timeout", "4s", "--pace", "200", "--slo", "all Ready"}, given...), where...)
		got := p.RunTo(t, w, args...)
		r := p.Result(t, w)
		if got.Code != process.ExitPass || r.LoadLine == nil || r.LoadLine.Level == nil || *r.LoadLine.Level != 6 || r.Cleanup == nil || !r.Cleanup.Done {
			t.Errorf("%s %q: exit code %d\n%s%s", w, given, got.Code, got.Stdout, got.Stderr)
			continue
		}
		// The quota's own words name what binds, also where a controller was refused.
		if failed := r.Steps[slices.IndexFunc(r.Steps, func(s result.Step) bool { return s.Verdict == slo.Fail })]; !strings.Contains(failed.Reasons[0].Message, "exceeded quota: few") || !strings.Contains(got.Stdout, "exceeded quota: few") {
			t.Errorf("%s: reasons %+v\n%s", w, failed.Reasons, got.Stdout)
		}
		if after := there(); !slices.Equal(after, before) {
			t.Errorf("%s: there was %q, and now %q", w, before, after)
		}
	}
	// What a killed run left is found and removed, by the same user.
	started := p.Start(t, append([]string{"sweep", "node-density", "--levels", "3", "--hold", "1m", "--yes", "--out", "killed", "--set", "cpuRequest=10m", "--set", "memoryLimit=64Mi"}, where...)...)
	harness.Await(t, "pods of the run", func() bool {
		pods, err := typed.CoreV1().Pods(name).List(t.Context(), metav1.ListOptions{})
		return started.Ended() || err == nil && len(pods.Items) > 3
	})
	started.Kill()
	if got := p.Run(t, append([]string{"clean", "--force"}, where...)...); got.Code != process.ExitPass || !slices.Equal(there(), before) {
		t.Errorf("clean: exit code %d, there is %q and was %q\n%s%s", got.Code, there(), before, got.Stdout, got.Stderr)
	}
}
