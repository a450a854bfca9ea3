package lab

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/realnode"
)

// certLifetime is how long a lab's certificates are good for.
const certLifetime = 365 * 24 * time.Hour

// authority is a certificate authority of one lab.
type authority struct {
	name string
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
	now  time.Time
}

// identity is whom a certificate speaks for.
type identity struct {
	user   string
	groups []string
	server bool // it serves on 127.0.0.1
	client bool // it presents itself to servers
	// address is a further one that it serves on.
	address net.IP
}

// newAuthority makes an authority. Its key is RSA although that takes longer to
// make: the API server verifies a client's certificate anew for each request,
// and an RSA signature is several times cheaper to verify than an ECDSA one.
func newAuthority(name string, now time.Time) (*authority, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make certificate authority %s: %w", name, err)
	}
	template := newTemplate(pkix.Name{CommonName: name}, now)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	var cert *x509.Certificate
	if err == nil {
		cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("make certificate authority %s: %w", name, err)
	}
	return &authority{name, cert, key, certPEM(der), now}, nil
}

// newTemplate leaves the serial number to be drawn when a certificate is made.
func newTemplate(subject pkix.Name, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:   subject,
		NotBefore: now.Add(-time.Hour), // a clock set back must not invalidate it
		NotAfter:  now.Add(certLifetime),
	}
}

// issue makes a key and a certificate for it, both PEM.
func (a *authority) issue(id identity) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("issue certificate for %s: %w", id.user, err)
	}
	template := newTemplate(pkix.Name{CommonName: id.user, Organization: id.groups}, a.now)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if id.server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(firstServiceAddress)}
		if id.address != nil {
			template.IPAddresses = append(template.IPAddresses, id.address)
		}
	}
	if id.client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err == nil {
		key, err = keyPEM(private)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("issue certificate for %s: %w", id.user, err)
	}
	return certPEM(der), key, nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
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
)

// writePKI makes all keys, certificates and kubeconfigs of a lab. There
// are three authorities. With a shared one, whoever may talk to the API server
// could also talk to etcd, which knows no users; and could speak for any user
// as the front proxy of an aggregated API does.
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
	if err := writeKey(dir.key(clusterCA), cluster.key); err != nil {
		return err
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(dir.key(serviceAccounts), tokens); err != nil {
		return err
	}
	tokensPublic, err := x509.MarshalPKIXPublicKey(tokens.Public())
	if err != nil {
		return err
	}
	if err := writeFile(dir.publicKey(serviceAccounts), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: tokensPublic})); err != nil {
		return err
	}
	type certificate struct {
		file string
		by   *authority
		id   identity
	}
	certificates := []certificate{
		{etcdServerCert, etcd, identity{user: "etcd", server: true, client: true}},
		{etcdClientCert, etcd, identity{user: APIServer, client: true}},
		{frontProxyClient, frontProxy, identity{user: userFrontProxy, client: true}},
		{APIServer, cluster, identity{user: APIServer, server: true, address: net.ParseIP(r.apiServerAddress())}},
		{kubeletClient, cluster, identity{user: userKubeletClient, client: true}},
		{ControllerManager, cluster, identity{user: ControllerManager, server: true}},
		{Scheduler, cluster, identity{user: Scheduler, server: true}},
	}
	if r.RealNode != nil {
		certificates = append(certificates, certificate{Kubelet, cluster,
			identity{user: userKubelet, groups: []string{"system:nodes"}, server: true, address: r.RealNode.Link.Node.AsSlice()}})
	}
	for _, c := range certificates {
		cert, key, err := c.by.issue(c.id)
		if err != nil {
			return err
		}
		if err := writeFile(dir.cert(c.file), cert); err != nil {
			return err
		}
		if err := writeFile(dir.key(c.file), key); err != nil {
			return err
		}
	}
	type kubeconfig struct {
		path   string
		user   string
		groups []string
	}
	kubeconfigs := []kubeconfig{
		{dir.kubeconfig(), userExperiments, nil},
		{dir.componentConfig("admin"), userAdmin, []string{"system:masters"}},
		{dir.componentConfig(ControllerManager), userControllerManager, nil},
		{dir.componentConfig(Scheduler), userScheduler, nil},
		// Of the kubelets' group, so that priority and fairness treats it as
		// it treats kubelets, but not named as one: the node authorizer would
		// tie it to a single node. Its rights come from a role of its own.
		{dir.componentConfig(SimulatedNodes), userSimulatedNodes, []string{"system:nodes"}},
	}
	if r.RealNode != nil {
		kubeconfigs = append(kubeconfigs,
			kubeconfig{dir.componentConfig(Kubelet), userKubelet, []string{"system:nodes"}},
			kubeconfig{dir.componentConfig(KubeProxy), userKubeProxy, nil})
	}
	for _, c := range kubeconfigs {
		cert, key, err := cluster.issue(identity{user: c.user, groups: c.groups, client: true})
		if err != nil {
			return err
		}
		if err := writeKubeconfig(c.path, r, c.user, cluster.pem, cert, key); err != nil {
			return err
		}
	}
	return nil
}

func writeKey(path string, key crypto.Signer) error {
	data, err := keyPEM(key)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

func writeFile(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
