package faults

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// as returns a kubeconfig by which another user, who has these rights everywhere, uses a
// lab. It is no lab's own.
func as(t *testing.T, p *harness.Program, user string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	c := client(t, p.Kubeconfig, nil).RbacV1()
	meta := metav1.ObjectMeta{Name: "faults-" + user}
	if _, err := c.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := c.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// A user who may not list nodes, leases, namespaces or events can run where the axis needs
// none of them, and gets an error with the missing right where it does.
func TestWhatMayNotBeListedIsNotSeen(t *testing.T) {
	t.Parallel()
	suite.Long(t, "it makes runs in a lab, and the warm-up of a rate takes half a minute")
	p := suite.Lab(t, "--nodes", "4", "--max-pods", "60")
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
	}
	spaces, accounts := rule("namespaces", "create", "get", "patch", "delete"), rule("serviceaccounts", "get")
	for _, tt := range []struct {
		user  string
		rules []rbacv1.PolicyRule
		args  []string
		code  int
		says  []string
	}{
		{"nobody", nil, []string{"--levels", "5"}, process.ExitUsage, []string{"pods is forbidden", "hint: the user needs the rights of a run"}},
		{"no-spaces", []rbacv1.PolicyRule{rule("pods", "*")}, []string{"--axis", "rate", "--levels", "5"}, process.ExitUsage, []string{"this user may not create namespaces", "hint: the user needs the rights of a run"}},
		{"no-nodes", []rbacv1.PolicyRule{rule("pods", "*"), spaces, accounts}, []string{"--levels", "5"}, process.ExitUsage, []string{"a level of pods-per-node is an average over nodes, which this user may not list"}},
		{"no-watch", []rbacv1.PolicyRule{rule("pods", "*"), rule("namespaces", "*"), accounts, rule("events", "*"), rule("nodes", "list")}, []string{"--levels", "2", "--hold", "1s", "--slo", "all Ready"}, process.ExitPass, []string{"this user may not watch nodes: what becomes of them, and what they tell, is not seen"}},
		{"few", []rbacv1.PolicyRule{rule("pods", "*"), spaces, accounts}, []string{"--axis", "rate", "--levels", "5", "--hold", "1s", "--slo", "all Ready"}, process.ExitPass, []string{"this user may not list nodes, events, namespaces: what becomes of them, and what they tell, is not seen", "leases of the scheduler, the controller manager or nodes cannot be read"}},
	} {
		t.Run(tt.user, func(t *testing.T) {
			got := p.RunTo(t, tt.user, append([]string{"sweep", "node-density", "--kubeconfig", as(t, p, tt.user, tt.rules...), "--yes"}, tt.args...)...)
			text := got.Stdout + got.Stderr
			if got.Code != tt.code && !(tt.code == process.ExitPass && got.Code == process.ExitInvalid) { // a machine that is busy
				t.Errorf("exit code %d, want %d\n%s", got.Code, tt.code, text)
			}
			for _, want := range tt.says {
				if strings.Count(text, want) == 0 {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if left := leftOf(t, p); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if tt.code == process.ExitPass {
				r := p.Result(t, tt.user)
				if told := slices.DeleteFunc(slices.Clone(r.Warnings), func(w record.Warning) bool { return !strings.Contains(w.Text, "is not seen") }); len(told) != 1 {
					t.Errorf("it is told %d times what is not seen: %+v", len(told), r.Warnings)
				}
				if r.Cleanup == nil || !r.Cleanup.Done || r.Steps[0].Objects.Ready == 0 {
					t.Errorf("cleanup %+v, %+v", r.Cleanup, r.Steps[0].Objects)
				}
			}
		})
	}
}

// A right to watch that is taken away during a run: what explains or guards is one
// warning from then on, and what the load is judged by ends it, inconclusive.
func TestARightToWatchThatIsTakenAway(t *testing.T) {
	t.Parallel()
	suite.Long(t, "a right counts as taken away after 15 s")
	for _, tt := range []struct {
		resource string
		code     int
		says     string
	}{
		{"nodes", process.ExitPass, "warning: this user may not watch nodes: what becomes of them, and what they tell, is not seen"},
		{"events", process.ExitPass, "warning: this user may not watch events: what becomes of them, and what they tell, is not seen"},
		{"namespaces", process.ExitPass, "warning: this user may not watch namespaces: what becomes of them, and what they tell, is not seen"},
		{"pods", process.ExitInconclusive, "the right to watch pods was taken away, and what becomes of them is not seen: "},
	} {
		t.Run(tt.resource, func(t *testing.T) {
			p := suite.Lab(t, "--nodes", "4", "--max-pods", "60")
			proxy := Start(t, p.Kubeconfig, Plan{Seed: 7})
			s := p.Start(t, "sweep", "node-density", "--kubeconfig", proxy.Kubeconfig, "--levels", "5", "--hold", "25s", "--slo", "all Ready", "--out", tt.resource)
			harness.Await(t, "the hold", func() bool { return s.Ended() || holding().happened(record.Dir(filepath.Join(p.Dir, tt.resource))) })
			proxy.Use(Plan{Seed: 7, Rules: []Rule{{On: Watches(tt.resource), Do: Status(403)}}})
			proxy.Sever()
			got := s.Wait()
			if got.Code != tt.code && !(tt.code == process.ExitPass && got.Code == process.ExitInvalid) { // a machine that is busy
				t.Errorf("exit code %d, want %d\n%s%s", got.Code, tt.code, got.Stdout, got.Stderr)
			}
			if n := strings.Count(got.Stdout+got.Stderr, tt.says); n != 1 {
				t.Errorf("%q is said %d times in\n%s%s", tt.says, n, got.Stdout, got.Stderr)
			}
			r := p.Result(t, tt.resource)
			about := slices.DeleteFunc(r.Warnings.Lines(), func(line string) bool {
				return !strings.Contains(line, "watch "+tt.resource) && !strings.Contains(line, "watch of "+tt.resource)
			})
			if tt.code == process.ExitPass && len(about) != 1 {
				t.Errorf("warnings of it: %q", about)
			}
			if r.Cleanup == nil || !r.Cleanup.Done || r.ExitCode != got.Code {
				t.Errorf("cleanup %+v, exit code on record %d", r.Cleanup, r.ExitCode)
			}
			if left := leftOf(t, p); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
