package lab

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
)

const certLifetime = 365 * 24 * time.Hour

type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

type identity struct {
	user    string
	groups  []string
	server  bool   // it serves on 127.0.0.1
	client  bool   // it presents itself to servers
	address net.IP // a further address that it serves on
}

// before dates certificates back: a clock that is set back must not invalidate them.
func before(now time.Time) time.Time { return now.Add(-time.Hour) }

// newAuthority makes an authority with an RSA key, because API servers verify RSA signatures fastest.
func newAuthority(name string, now time.Time) (*authority, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	var made *x509.Certificate
	if err == nil {
		made, err = cert.NewSelfSignedCACert(cert.Config{CommonName: name, NotBefore: before(now)}, key)
	}
	var text []byte
	if err == nil {
		text, err = cert.EncodeCertificates(made)
	}
	if err != nil {
		return nil, fmt.Errorf("make certificate authority %s: %w", name, err)
	}
	return &authority{made, key, text}, nil
}

// issue makes a key and a certificate for it, both PEM.
func (a *authority) issue(id identity, now time.Time) (certificate, key []byte, err error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: id.user, Organization: id.groups},
		NotBefore: before(now), NotAfter: now.Add(certLifetime), KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if id.server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "virt-api.kubevirt.svc"}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(firstServiceAddress)}
		if id.address != nil {
			template.IPAddresses = append(template.IPAddresses, id.address)
		}
	}
	if id.client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err == nil {
		key, err = keyutil.MarshalPrivateKeyToPEM(private)
	}
	var der []byte
	if err == nil {
		der, err = x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("issue certificate for %s: %w", id.user, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), key, nil
}

// Names of the files in pki/ and of the users of the API server.
const (
	clusterCA        = "ca"
	etcdCA           = "etcd-ca"
	frontProxyCA     = "front-proxy-ca"
	etcdServerCert   = "etcd-server" // also etcd's peer certificate
	etcdClientCert   = "etcd-client"
	frontProxyClient = "front-proxy-client"
	serviceAccounts  = "service-accounts" // key that signs their tokens
	kubeletClient    = "kubelet-client"   // the API server's, when it calls kubelets

	userAdmin             = "plimsoll:admin" // the lab itself, for setting up
	userExperiments       = "plimsoll"
	userControllerManager = "system:kube-controller-manager"
	userScheduler         = "system:kube-scheduler"
	userSimulatedNodes    = "plimsoll:simulated-nodes"
	userFrontProxy        = "front-proxy-client"
	userKubeletClient     = "plimsoll:kubelet-client"
	userKubelet           = "system:node:" + realnode.NodeName
	userKubeProxy         = "system:kube-proxy"
	userVirt              = "system:serviceaccount:kubevirt:kubevirt-controller"
	groupNodes            = "system:nodes"
)

// writePKI makes all keys, certificates and kubeconfigs of a lab. With one authority for all, each user could
// talk to etcd and speak for others as the front proxy does.
func writePKI(dir directory, r record, now time.Time) error {
	var cluster, etcd, frontProxy *authority
	for _, a := range []struct {
		into       **authority
		name, file string
	}{{&cluster, "plimsoll-lab", clusterCA}, {&etcd, "plimsoll-lab-etcd", etcdCA}, {&frontProxy, "plimsoll-lab-front-proxy", frontProxyCA}} {
		made, err := newAuthority(a.name, now)
		if err != nil {
			return err
		}
		if err := writeFile(dir.cert(a.file), made.pem); err != nil {
			return err
		}
		*a.into = made
	}
	// The controller manager signs certificate requests with it.
	key, err := keyutil.MarshalPrivateKeyToPEM(cluster.key)
	if err != nil {
		return err
	}
	if err := writeFile(dir.key(clusterCA), key); err != nil {
		return err
	}
	if key, err = keyutil.MakeEllipticPrivateKeyPEM(); err != nil {
		return err
	}
	if err := writeFile(dir.key(serviceAccounts), key); err != nil {
		return err
	}
	for _, c := range r.certificates() {
		by := cluster
		switch c.file {
		case etcdServerCert, etcdClientCert:
			by = etcd
		case frontProxyClient:
			by = frontProxy
		}
		certificate, key, err := by.issue(c.identity, now)
		if err == nil {
			err = errors.Join(writeFile(dir.cert(c.file), certificate), writeFile(dir.key(c.file), key))
		}
		if err != nil {
			return err
		}
	}
	for _, c := range r.kubeconfigs(dir) {
		certificate, key, err := cluster.issue(c.identity, now)
		if err == nil {
			err = writeKubeconfig(c.file, r, c.user, cluster.pem, certificate, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// credential is a certificate with its key, or a kubeconfig with both.
type credential struct {
	file string
	identity
}

func (r record) certificates() []credential {
	list := []credential{
		{etcdServerCert, identity{user: "etcd", server: true, client: true}},
		{etcdClientCert, identity{user: protocol.APIServer, client: true}},
		{frontProxyClient, identity{user: userFrontProxy, client: true}},
		{protocol.APIServer, identity{user: protocol.APIServer, server: true, address: net.ParseIP(r.apiServerAddress())}},
		{kubeletClient, identity{user: userKubeletClient, client: true}},
		{protocol.ControllerManager, identity{user: protocol.ControllerManager, server: true}},
		{protocol.Scheduler, identity{user: protocol.Scheduler, server: true}},
		{protocol.SimulatedNodes, identity{user: protocol.SimulatedNodes, server: true}},
	}
	if r.HasVirt() {
		list = append(list, credential{protocol.Virt, identity{user: protocol.Virt, server: true}})
	}
	if r.RealNode != nil {
		list = append(list, credential{protocol.Kubelet, identity{user: userKubelet, groups: []string{groupNodes}, server: true, address: r.RealNode.Link.Node.AsSlice()}})
	}
	return list
}

func (r record) kubeconfigs(dir directory) []credential {
	list := []credential{
		{dir.kubeconfig(), identity{user: userExperiments, client: true}},
		{dir.componentConfig("admin"), identity{user: userAdmin, groups: []string{"system:masters"}, client: true}},
		{dir.componentConfig(protocol.ControllerManager), identity{user: userControllerManager, client: true}},
		{dir.componentConfig(protocol.Scheduler), identity{user: userScheduler, client: true}},
		// In the kubelets' group for priority and fairness; a kubelet's name would tie it to one node.
		{dir.componentConfig(protocol.SimulatedNodes), identity{user: userSimulatedNodes, groups: []string{groupNodes}, client: true}},
	}
	if r.HasVirt() {
		list = append(list, credential{dir.componentConfig(protocol.Virt), identity{user: userVirt, client: true}})
	}
	if r.RealNode != nil {
		list = append(list,
			credential{dir.componentConfig(protocol.Kubelet), identity{user: userKubelet, groups: []string{groupNodes}, client: true}},
			credential{dir.componentConfig(protocol.KubeProxy), identity{user: userKubeProxy, client: true}})
	}
	return list
}

func writeFile(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }

// Marks of a lab in its kubeconfig and in its cluster must agree: neither alone makes a lab.
const (
	MarkerExtension = "plimsoll.dev/lab" // the name of the extension of a kubeconfig's context
	// MarkerNamespace, MarkerConfigMap and MarkerKey locate the lab's ID in the cluster.
	MarkerNamespace = "kube-system"
	MarkerConfigMap = "plimsoll-lab"
	MarkerKey       = "id"
)

// Marker says which lab a kubeconfig claims to lead to.
type Marker struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// MarkerOf reads the marker of a context in a kubeconfig, "" for the current one, if it has one.
func MarkerOf(config *clientcmdapi.Config, context string) (Marker, bool) {
	context = cmp.Or(context, config.CurrentContext)
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

func writeKubeconfig(path string, r record, user string, ca, cert, key []byte) error {
	marker, err := json.Marshal(Marker{r.Name, r.ID})
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	name := "plimsoll-" + r.Name
	config.Clusters[name] = &clientcmdapi.Cluster{Server: r.apiServer(), CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[name] = &clientcmdapi.Context{
		Cluster: name, AuthInfo: name,
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

// apiServer returns the API server's URL: on the loopback, or where a real node reaches it too.
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
