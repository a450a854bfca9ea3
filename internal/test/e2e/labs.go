package e2e

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// SmallLab returns the shape of a lab whose nodes are soon full.
func SmallLab() []string { return []string{"--nodes", "3", "--max-pods", "15"} }

// WideLab returns the shape of a lab that has room.
func WideLab() []string { return []string{"--nodes", "2"} }

// OnRealNode returns the program with a lab of one real node that has 5 addresses
// for pods. It skips the test on a machine that cannot have a real node.
func OnRealNode(t *testing.T, suite *harness.Suite) *harness.Program {
	t.Helper()
	_, err := realnode.Check()
	harness.Able(t, err)
	return suite.Lab(t, "--real-node", "--max-pods", "30", "--pod-cidr-prefix", "29")
}

// RouterProgram returns the built program. It skips the test on a machine without an
// HAProxy.
func RouterProgram(t *testing.T, suite *harness.Suite) *harness.Program {
	t.Helper()
	_, err := haproxy.Find(context.Background(), "")
	harness.Able(t, err)
	return suite.Program(t)
}

// IOProgram returns the built program. It skips the test on a machine without a fio.
func IOProgram(t *testing.T, suite *harness.Suite) *harness.Program {
	t.Helper()
	_, err := fio.Find(context.Background(), "")
	harness.Able(t, err)
	return suite.Program(t)
}

// GlusterProgram returns the built program. It skips the test on a machine without a
// GlusterFS or without a fio.
func GlusterProgram(t *testing.T, suite *harness.Suite) *harness.Program {
	t.Helper()
	harness.Able(t, gluster.Check(false))
	return IOProgram(t, suite)
}

// WithImage returns the built program with a lab of its own, whose one node is real and has an image. It skips the test
// where the image cannot be built, of which the program says lacks.
func WithImage(t *testing.T, suite *harness.Suite, image, lacks string) *harness.Program {
	t.Helper()
	_, err := realnode.Check()
	harness.Able(t, err)
	p := suite.Program(t)
	if got := p.Run(t, "image", "build", image); strings.Contains(got.Stderr, lacks) {
		t.Skip(got.Stderr)
	} else if got.Code != process.ExitPass {
		t.Fatal(got.Stderr)
	}
	p.Lab = "l"
	if got := p.Run(t, "lab", "up", p.Lab, "--real-node", "--nodes", "0"); got.Code != process.ExitPass {
		t.Fatal(got.Stderr)
	}
	return p
}

// LabClient returns clients with all rights on a lab.
func LabClient(t *testing.T, kubeconfig string) (*kubernetes.Clientset, *dynamic.DynamicClient) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return typed, untyped
}

// AsUser writes a kubeconfig of a new user with some rights.
func AsUser(t *testing.T, p *harness.Program, name string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	ctx := context.Background()
	typed, _ := LabClient(t, p.Kubeconfig)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := typed.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(rules) > 0 {
		if _, err := typed.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := typed.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	token, err := typed.CoreV1().ServiceAccounts("default").CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	current := config.Contexts[config.CurrentContext]
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{name: {Token: token.Status.Token}}
	current.AuthInfo, current.Extensions = name, nil
	file := filepath.Join(p.Dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// ComponentOf returns the process of a component of a lab.
func ComponentOf(t *testing.T, p *harness.Program, lab, component string) int {
	t.Helper()
	var status struct {
		Components []struct {
			Name string
			PID  int
		}
	}
	if err := json.Unmarshal([]byte(p.Run(t, "lab", "status", lab, "-o", "json").Stdout), &status); err != nil {
		t.Fatal(err)
	}
	for _, c := range status.Components {
		if c.Name == component && c.PID > 0 {
			return c.PID
		}
	}
	t.Fatalf("lab %s has no process of %s", lab, component)
	return 0
}
