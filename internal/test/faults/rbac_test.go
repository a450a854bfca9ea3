package faults

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// account is a service account that 'plimsoll rbac' has printed, in a lab.
type account struct {
	Name      string
	Namespace string
	Rights    []ceiling.Right

	client     kubernetes.Interface // of the lab's own user
	own        kubernetes.Interface // of the account
	kubeconfig string
	printed    []runtime.Object
}

// accountOf makes the account for runs of a workload, by what is printed for kubectl.
func accountOf(t *testing.T, p *harness.Program, args ...string) *account {
	t.Helper()
	a := &account{client: client(t, p.Kubeconfig, nil)}
	printed := p.Run(t, append([]string{"rbac"}, args...)...)
	told := p.Run(t, append([]string{"rbac", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(told.Stdout), a); err != nil || printed.Code != process.ExitPass || len(a.Rights) == 0 {
		t.Fatalf("exit code %d, %v\n%s%s", printed.Code, err, printed.Stdout, printed.Stderr)
	}
	for doc := range strings.SplitSeq(printed.Stdout, "\n---\n") {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		a.printed = append(a.printed, o)
	}
	a.put(t, nil)
	token, err := a.client.CoreV1().ServiceAccounts(a.Namespace).CreateToken(t.Context(), a.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	a.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, a.kubeconfig); err != nil {
		t.Fatal(err)
	}
	a.own = client(t, a.kubeconfig, nil)
	return a
}

// put makes what was printed, or makes it again, without the rights that are taken
// away, and returns once the server has seen it.
func (a *account) put(t *testing.T, taken func(ceiling.Right) bool) {
	t.Helper()
	left := func(where string, rules []rbacv1.PolicyRule) (kept []rbacv1.PolicyRule) {
		for _, r := range rules {
			r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(verb string) bool {
				return taken != nil && slices.ContainsFunc(a.Rights, func(x ceiling.Right) bool {
					return x.Where == where && x.Verb == verb && names(r, x.Resource) && taken(x)
				})
			})
			if len(r.Verbs) > 0 {
				kept = append(kept, r)
			}
		}
		return kept
	}
	// Each is made, and if it is there it is put instead.
	made := func(_ any, err error) bool { return err == nil }
	c, ctx := a.client.RbacV1(), t.Context()
	for _, o := range a.printed {
		ok := false
		switch o := o.(type) {
		case *corev1.ServiceAccount:
			s := a.client.CoreV1().ServiceAccounts(o.Namespace)
			ok = made(s.Create(ctx, o, metav1.CreateOptions{})) || made(s.Get(ctx, o.Name, metav1.GetOptions{}))
		case *rbacv1.ClusterRole:
			o = o.DeepCopy()
			o.Rules = left("", o.Rules)
			ok = made(c.ClusterRoles().Create(ctx, o, metav1.CreateOptions{})) || made(c.ClusterRoles().Update(ctx, o, metav1.UpdateOptions{}))
		case *rbacv1.Role:
			o = o.DeepCopy()
			o.Rules = left(o.Namespace, o.Rules)
			ok = made(c.Roles(o.Namespace).Create(ctx, o, metav1.CreateOptions{})) || made(c.Roles(o.Namespace).Update(ctx, o, metav1.UpdateOptions{}))
		case *rbacv1.ClusterRoleBinding:
			ok = made(c.ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})) || made(c.ClusterRoleBindings().Get(ctx, o.Name, metav1.GetOptions{}))
		case *rbacv1.RoleBinding:
			ok = made(c.RoleBindings(o.Namespace).Create(ctx, o, metav1.CreateOptions{})) || made(c.RoleBindings(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{}))
		}
		if !ok {
			t.Fatalf("%T of %s could not be made", o, a.Name)
		}
	}
	if a.own != nil {
		harness.Await(t, "the server has seen the roles", func() bool {
			for _, r := range a.Rights {
				if a.may(t, r) != (taken == nil || !taken(r)) {
					return false
				}
			}
			return true
		})
	}
}

// names reports whether a rule is about a resource as rights name it.
func names(rule rbacv1.PolicyRule, resource string) bool {
	if strings.HasPrefix(resource, "/") {
		return slices.Contains(rule.NonResourceURLs, resource)
	}
	name, group, _ := strings.Cut(resource, ".")
	return slices.Contains(rule.Resources, name) && slices.Contains(rule.APIGroups, group)
}

func (a *account) may(t *testing.T, r ceiling.Right) bool {
	t.Helper()
	var spec authorizationv1.SelfSubjectAccessReviewSpec
	if strings.HasPrefix(r.Resource, "/") {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.Resource, Verb: r.Verb}
	} else {
		name, group, _ := strings.Cut(r.Resource, ".")
		name, sub, _ := strings.Cut(name, "/")
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: group, Resource: name, Subresource: sub, Namespace: r.Where}
	}
	review, err := a.own.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// granted reports whether every user of a cluster may ask for it, or only a lab is asked.
func granted(asked string) bool {
	return slices.Contains([]string{
		"create selfsubjectaccessreviews.authorization.k8s.io", "create selfsubjectreviews.authentication.k8s.io",
		"get /api", "get /apis", "get /readyz", "get /version",
		"list plimsoll-limits.subresources.kubevirt.io", // a lab's own
	}, asked)
}

// unasked reports the rights that this run need not use: lost answers, pods deleted one by
// one, requests to clusters that are not labs, and kinds that a lab lacks.
func unasked(r ceiling.Right) bool {
	return r.Optional || r.Verb == "delete" && r.Resource == "pods" || strings.HasSuffix(r.Resource, ".hco.kubevirt.io")
}

// The account that is printed for a workload can run it with what it cannot do without,
// and asks for nothing that is not printed; what is taken away from it is named before
// there is any load.
func TestAccountsRunTheirWorkloads(t *testing.T) {
	suite.Long(t, "it runs workloads with and without each of their rights")
	pods, machines := []string{"--nodes", "4", "--max-pods", "60"}, []string{"--nodes", "4", "--virt", "--time-scale", "20"}
	named := make(map[ceiling.Right]bool) // each is taken away once
	for _, tt := range []struct {
		lab  []string
		args string // of rbac and check
		run  string // of sweep, besides
	}{
		{pods, "node-density", "--levels 3"},
		{pods, "node-density --axis rate", "--levels 4 --life 1s"},
		{pods, "node-density-cni", "--levels 3"},
		{pods, "node-density-heavy", "--levels 3"},
		{machines, "density-mix", "--levels 8"},
		{machines, "vm-boot-storm", "--levels 3"},
		{machines, "vm-deploy --axis machines --set run=true", "--levels 3"},
		{machines, "vm-lifecycle", "--levels 3"},
		{machines, "vm-migration --set parallelMigrations=4", "--levels 3"},
		{machines, "vm-restart", "--levels 3"},
		{machines, "vm-drain", "--levels 1"},
		{machines, "vm-zones --set rhel=1 --set fedora=1 --set windows=1", "--levels 1 --reboots 2"},
		{[]string{"--nodes", "6", "--virt", "--time-scale", "120"}, "vm-upgrade --set to=4.20.0", "--levels 2 --reboots 6"},
		{[]string{"--nodes", "2", "--virt", "--real-guests", "1"}, "vm-io --set machinesPerNode=1 --set iops=100 --set size=16Mi --set settle=1 --set runtime=5 --set sshFrom=portforward", "--levels 1"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			if strings.HasPrefix(tt.args, "vm-io") {
				for _, need := range lab.Needs() {
					if need.For == "real guests" {
						_, err := need.Find(t.Context(), "")
						harness.Able(t, err)
					}
				}
			}
			p, args := suite.Lab(t, tt.lab...), strings.Fields(tt.args)
			a := accountOf(t, p, args...)
			proxy := Start(t, a.kubeconfig, Plan{})
			check := func() (severity record.Severity, text string, code int) {
				t.Helper()
				got := p.Run(t, slices.Concat([]string{"check", "-o", "json"}, args, []string{"--kubeconfig", proxy.Kubeconfig})...)
				var c ceiling.Check
				if err := json.Unmarshal([]byte(got.Stdout), &c); err != nil {
					t.Fatalf("%v\n%s%s", err, got.Stdout, got.Stderr)
				}
				for _, f := range c.Findings {
					if f.What == "rights" {
						severity, text = f.Severity, text+f.Text+"\n"
					}
				}
				return severity, text, got.Code
			}
			sweep := func(out string) {
				t.Helper()
				args := slices.Clone(args)
				if i := slices.Index(args, "to=4.20.0"); i >= 0 && out == "needed" {
					args[i] = "to=4.20.1" // what is upgraded stays so
				}
				got := p.RunTo(t, out, slices.Concat([]string{"sweep"}, args, strings.Fields(tt.run), []string{"--kubeconfig", proxy.Kubeconfig, "--yes", "--hold", "1s"})...)
				if !decided(got.Code) {
					t.Fatalf("%s: exit code %d\n%s%s", out, got.Code, got.Stdout, got.Stderr)
				}
				if r := p.Result(t, out); r.Cleanup == nil || !r.Cleanup.Done || r.Steps[0].Objects.Ready == 0 {
					t.Errorf("%s: cleanup %+v, %+v", out, r.Cleanup, r.Steps[0].Objects)
				}
				if left := leftOf(t, p); len(left) > 0 {
					t.Errorf("%s: left: %v", out, left)
				}
			}
			if severity, text, _ := check(); severity != record.SeverityOK {
				t.Errorf("with all rights: %s", text)
			}
			sweep("all")
			asked := proxy.Counts().Asked
			for right := range maps.Keys(asked) {
				if !granted(right) && !slices.ContainsFunc(a.Rights, func(r ceiling.Right) bool { return r.Verb+" "+r.Resource == right }) {
					t.Errorf("it asked to %s, which is not printed", right)
				}
			}
			for _, r := range a.Rights {
				if !asked[r.Verb+" "+r.Resource] && !unasked(r) {
					t.Errorf("%s is printed, and it did not ask for it", r)
				}
			}
			a.put(t, func(r ceiling.Right) bool { return r.Optional })
			if severity, text, code := check(); severity != record.SeverityWarning || strings.Count(text, " may not ") != 1 || code != process.ExitPass {
				t.Errorf("without optional rights: %s, exit code %d: %s", severity, code, text)
			}
			sweep("needed")
			for _, right := range a.Rights {
				if named[right] || strings.HasSuffix(right.Resource, ".hco.kubevirt.io") {
					continue
				}
				named[right] = true
				a.put(t, func(r ceiling.Right) bool { return r == right })
				want, wantCode := record.SeverityError, process.ExitFail
				if right.Optional {
					want, wantCode = record.SeverityWarning, process.ExitPass
				}
				if severity, text, code := check(); severity != want || code != wantCode || !strings.Contains(text, " may not "+right.String()) {
					t.Errorf("without %s: %s, exit code %d: %s", right, severity, code, text)
				}
			}
		})
	}
}
