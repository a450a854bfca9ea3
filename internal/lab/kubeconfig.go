package lab

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A lab is marked in two places that must agree, so that neither a
// copied kubeconfig nor a restored cluster passes for one: an extension of the
// kubeconfig's context, and a ConfigMap in the cluster.
const (
	// MarkerExtension is the name of the extension of a kubeconfig's context.
	MarkerExtension = "plimsoll.dev/lab"
	// MarkerNamespace, MarkerConfigMap and MarkerKey say where in the cluster
	// the lab's ID is written.
	MarkerNamespace = "kube-system"
	MarkerConfigMap = "plimsoll-lab"
	MarkerKey       = "id"
)

// Marker says which lab a kubeconfig claims to lead to.
type Marker struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// MarkerOf reads the marker from a context of a loaded kubeconfig; the empty
// context is the current one. It is false if there is none.
func MarkerOf(config *clientcmdapi.Config, context string) (Marker, bool) {
	if context == "" {
		context = config.CurrentContext
	}
	c, ok := config.Contexts[context]
	if !ok {
		return Marker{}, false
	}
	extension, ok := c.Extensions[MarkerExtension].(*runtime.Unknown)
	if !ok {
		return Marker{}, false
	}
	var m Marker
	if err := json.Unmarshal(extension.Raw, &m); err != nil || m.Name == "" || m.ID == "" {
		return Marker{}, false
	}
	return m, true
}

// writeKubeconfig writes a self-contained kubeconfig for one user.
func writeKubeconfig(path string, r record, user string, ca, cert, key []byte) error {
	marker, err := json.Marshal(Marker{r.Name, r.ID})
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	name := "plimsoll-" + r.Name
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   r.apiServer(),
		CertificateAuthorityData: ca,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[name] = &clientcmdapi.Context{
		Cluster:  name,
		AuthInfo: name,
		Extensions: map[string]runtime.Object{
			MarkerExtension: &runtime.Unknown{Raw: marker, ContentType: runtime.ContentTypeJSON},
		},
	}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	return writeFile(path, data)
}

// apiServer is where the API server is: on the loopback, or where a real node
// reaches it too.
func (r record) apiServer() string {
	return fmt.Sprintf("https://%s:%d", r.apiServerAddress(), r.Ports.APIServer)
}

func (r record) apiServerAddress() string {
	if r.RealNode != nil {
		return r.RealNode.Link.Host.String()
	}
	return "127.0.0.1"
}

func (ports) url(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }
