package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// plain is a server that takes configmaps as an API server does, and whose watches
// give three of them at once.
type plain struct {
	mu   sync.Mutex
	made []string
}

func (p *plain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		var object metav1.PartialObjectMetadata
		json.Unmarshal(body, &object) // without a name where it is not JSON
		p.mu.Lock()
		p.made = append(p.made, object.Name)
		p.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		w.Write(body)
		return
	}
	for _, name := range strings.Fields("a b c") {
		fmt.Fprintf(w, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}}`+"\n", name)
	}
	http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func (p *plain) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.made)
}

// plainly starts a proxy in front of a plain server.
func plainly(t *testing.T, plan Plan) (*plain, *Proxy) {
	t.Helper()
	p := new(plain)
	server := httptest.NewServer(p)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "the server's own"}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return p, Start(t, kubeconfig, plan)
}

// inJSON returns how a client speaks to a plain server.
func inJSON(c *rest.Config) {
	c.NextProtos, c.ContentType, c.AcceptContentTypes = []string{"http/1.1"}, "application/json", "application/json"
}

// A fault is what the client sees, and whether the server has made the object does not
// depend on that. The proxy counts both.
func TestFaultsReachTheClient(t *testing.T) {
	for _, tt := range []struct {
		why   string
		do    Fault
		made  bool
		check func(err error) bool
	}{
		{"nothing", Fault{}, true, func(err error) bool { return err == nil }},
		{"a server's error", Status(500), false, apierrors.IsInternalError},
		{"unavailable", Status(503), false, apierrors.IsServiceUnavailable},
		{"a conflict", Status(409), false, apierrors.IsConflict},
		{"a timeout after the fact", StatusAfter(504), true, apierrors.IsTimeout},
		{"reset before", ResetBefore(), false, func(err error) bool { return err != nil }},
		{"reset after", ResetAfter(), true, func(err error) bool { return err != nil }},
		{"an expired certificate", ExpiredCertificate(), false, func(err error) bool { return err != nil && strings.Contains(err.Error(), "expired") }},
	} {
		t.Run(tt.why, func(t *testing.T) {
			var plan Plan
			if tt.do != (Fault{}) {
				plan.Rules = []Rule{{Do: tt.do, Most: 1}}
			}
			server, proxy := plainly(t, plan)
			object := configMap("x")
			object.Namespace = "n" // which a real API server adds
			_, err := client(t, proxy.Kubeconfig, inJSON).CoreV1().ConfigMaps("n").Create(t.Context(), object, metav1.CreateOptions{})
			if !tt.check(err) {
				t.Errorf("the client has seen %v", err)
			}
			var made, counted []string
			if tt.made {
				made, counted = []string{"x"}, []string{"n/x"}
			}
			counts := proxy.Counts()
			if got := server.names(); !slices.Equal(got, made) || !slices.Equal(counts.Created["configmaps"], counted) {
				t.Errorf("the server has made %q, the proxy counts %q", got, counts.Created)
			}
			if tt.do.Kind != "" && counts.Faults[tt.do.name()] != 1 {
				t.Errorf("faults %v", counts.Faults)
			}
			if tt.do.Code != 0 && counts.Answered("create", "configmaps", tt.do.Code) != 1 {
				t.Errorf("answers %v", counts.Answers)
			}
		})
	}
}

// The second event of a watch is what the rule makes of it, and those beside it pass.
func TestFaultedEventsReachTheClient(t *testing.T) {
	for _, tt := range []struct {
		why  string
		do   Fault
		want string
	}{
		{"nothing", Fault{Kind: late}, "a b c"},
		{"duplicated", Duplicate(), "a b b c"},
		{"dropped", Drop(), "a c"},
		{"cut", Cut(), "a broken"},
		{"gone", Gone(), "a gone"},
		{"garbage", Garbage(), "a broken"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			_, proxy := plainly(t, Plan{Rules: []Rule{{On: Watches("configmaps"), Do: tt.do, Nth: 2}}})
			w, err := client(t, proxy.Kubeconfig, inJSON).CoreV1().ConfigMaps("n").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if got := seen(w, len(strings.Fields(tt.want))); got != tt.want {
				t.Errorf("the client has seen %q, want %q", got, tt.want)
			}
			if n := proxy.Counts().Faults[tt.do.name()]; n != 1 {
				t.Errorf("faults %v", proxy.Counts().Faults)
			}
		})
	}
}
