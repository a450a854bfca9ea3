package realnode

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// The node's name and ports.
const (
	NodeName          = "real-0" // the node's name in the cluster
	KubeletPort       = 10250    // serves logs and exec to the API server
	KubeletHealthPort = 10248    // KubeletHealthPort and ProxyHealthPort answer health checks
	ProxyHealthPort   = 10256
	proxyMetricsPort  = 10249
	BridgePorts       = 1023 // the number of pods that the node's Linux bridge can join
)

// Socket is containerd's socket in the node's own view of the file system.
const Socket = "/run/containerd/containerd.sock"

// Spec describes a node, in a file for the node's first process.
type Spec struct {
	Dir         string       `json:"dir"` // the lab's
	MaxPods     int          `json:"maxPods"`
	PodCIDR     netip.Prefix `json:"podCIDR"`
	ServiceCIDR string       `json:"serviceCIDR"`
	ClusterDNS  string       `json:"clusterDNS"`           // the address that pods ask for names
	CPUs        float64      `json:"cpus"`                 // 0 for all; a part of one is a share of its time
	Processors  []int        `json:"processors,omitempty"` // that it is kept to; nil without CPUs
	MemoryBytes int64        `json:"memoryBytes"`          // 0 is all
	Link        Link         `json:"link"`
	Programs    Programs     `json:"programs"`
	// KubeletConfig and ProxyConfig are kubeconfigs; the kubelet serves with ClientCA, Cert and Key.
	KubeletConfig string `json:"kubeletConfig"`
	ProxyConfig   string `json:"proxyConfig"`
	ClientCA      string `json:"clientCA"`
	Cert          string `json:"cert"`
	Key           string `json:"key"`
	SandboxImage  string `json:"sandboxImage"` // of the pods' sandboxes; an imported image
	Labels        string `json:"labels"`       // k=v,k=v
	Sign          string `json:"sign"`         // the file that appears when the node's processes run
}

const (
	imagesDir = "images"
	specFile  = "node.json"
)

// NodeDir returns the directory of a lab's node.
func NodeDir(dir string) string { return filepath.Join(dir, "node") }

// SpecFile returns the file that Run reads.
func SpecFile(dir string) string { return filepath.Join(NodeDir(dir), specFile) }

// Configuration files in NodeDir. A containerd belongs to the lab whose file it has as an argument.
const (
	containerdFile = "containerd.toml"
	kubeletFile    = "kubelet.yaml"
	proxyFile      = "kube-proxy.yaml"
)

// ImageFile returns the path of an image that the node imports before its kubelet starts.
func ImageFile(dir, name string) string { return filepath.Join(NodeDir(dir), imagesDir, name+".tar") }

// tag, from the directory alone, is part of all the node's names outside: leftovers need no record.
func tag(dir string) string {
	sum := sha256.Sum256([]byte(filepath.Clean(dir)))
	return hex.EncodeToString(sum[:4])
}

// Write makes the node's directory with the files that its processes read.
func (s Spec) Write(m Machine) error {
	node := NodeDir(s.Dir)
	for _, sub := range []string{"", imagesDir, "kubelet", "containerd", "cni", "log", "cni.d", "settings"} {
		if err := os.MkdirAll(filepath.Join(node, sub), 0o700); err != nil {
			return err
		}
	}
	spec, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	for _, f := range []struct{ path, text string }{
		{SpecFile(s.Dir), string(spec)},
		{filepath.Join(node, containerdFile), s.containerdConfig(m)},
		{filepath.Join(node, "cni.d", "10-plimsoll.conflist"), s.cniConfig()},
		{filepath.Join(node, kubeletFile), s.kubeletConfiguration(m)},
		{filepath.Join(node, proxyFile), s.proxyConfiguration()},
	} {
		if err := os.WriteFile(f.path, []byte(f.text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Read reads the Spec of a lab's node.
func Read(file string) (Spec, error) {
	var s Spec
	data, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", file, err)
	}
	return s, nil
}

// PodRange returns the pods' addresses, by a prefix length or 0 for twice the pods, as they are freed late.
func PodRange(bits, maxPods int) (netip.Prefix, error) {
	if bits == 0 {
		const reserved = 3 // network, broadcast, the bridge's own
		bits = 32 - int(math.Ceil(math.Log2(float64(2*maxPods+reserved))))
		bits = max(16, min(24, bits))
	}
	if bits < 16 || bits > 29 {
		return netip.Prefix{}, fmt.Errorf("a prefix of %d bits: want 16 to 29", bits)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, 0, 0}), bits), nil
}

func (s Spec) containerdConfig(m Machine) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("version = 2")
	p("root = %q", "/var/lib/containerd")
	p("state = %q", filepath.Dir(Socket))
	p("[grpc]")
	p("  address = %q", Socket)
	p("[plugins.%q]", "io.containerd.internal.v1.opt")
	p("  path = %q", "/var/lib/containerd/opt")
	cri := `plugins."io.containerd.grpc.v1.cri"`
	p("[%s]", cri)
	p("  sandbox_image = %q", s.SandboxImage)
	// Without the right to lower the score, the runtime would fail before it says why.
	p("  restrict_oom_score_adj = %t", !m.MayLowerOOMScore)
	p("  [%s.cni]", cri)
	p("    bin_dir = %q", s.Programs.CNI)
	p("    conf_dir = %q", filepath.Join(NodeDir(s.Dir), "cni.d"))
	p("  [%s.containerd]", cri)
	p("    snapshotter = %q", "overlayfs")
	p("    default_runtime_name = %q", RuntimeRunc)
	for _, r := range s.Programs.Runtimes() {
		p("    [%s.containerd.runtimes.%s]", cri, r.Name)
		p("      runtime_type = %q", "io.containerd.runc.v2")
		p("      [%s.containerd.runtimes.%s.options]", cri, r.Name)
		p("        BinaryName = %q", r.Path)
		p("        ShimCgroup = %q", "/"+systemGroup(s.Dir, partShims))
	}
	return b.String()
}

// cniConfig joins the pods by one bridge. Only the service proxy's traffic leaves the node.
func (s Spec) cniConfig() string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "plimsoll",
  "plugins": [
    {
      "type": "bridge",
      "bridge": %q,
      "isGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "/var/lib/cni/networks",
        "ranges": [[{"subnet": %q}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "loopback"}
  ]
}
`, "plm-"+tag(s.Dir), s.PodCIDR)
}

func (s Spec) kubeletConfiguration(m Machine) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("apiVersion: kubelet.config.k8s.io/v1beta1")
	p("kind: KubeletConfiguration")
	p("address: %s", s.Link.Node)
	p("port: %d", KubeletPort)
	p("healthzBindAddress: %s", s.Link.Node)
	p("healthzPort: %d", KubeletHealthPort)
	p("tlsCertFile: %q", s.Cert)
	p("tlsPrivateKeyFile: %q", s.Key)
	p("authentication:")
	p("  anonymous: {enabled: false}")
	p("  webhook: {enabled: true}")
	p("  x509: {clientCAFile: %q}", s.ClientCA)
	p("authorization: {mode: Webhook}")
	p("containerRuntimeEndpoint: unix://%s", Socket)
	p("cgroupDriver: cgroupfs")
	p("cgroupRoot: /%s", group(s.Dir))
	p("failCgroupV1: false")
	p("failSwapOn: false")
	p("maxPods: %d", s.MaxPods)
	p("volumePluginDir: /var/lib/kubelet/volume-plugins")
	// Nobody answers there, but without an address the kubelet warns of each pod.
	p("clusterDNS: [%s]", s.ClusterDNS)
	p("clusterDomain: cluster.local")
	p("resolvConf: %q", "")
	p("enforceNodeAllocatable: [pods]")
	reserved := make(map[string]string)
	if cpus := float64(len(s.Processors)) - s.CPUs; cpus > 0 {
		reserved["cpu"] = fmt.Sprintf("%dm", int(math.Round(cpus*1000)))
	}
	if memory := m.MemoryBytes - s.MemoryBytes; s.MemoryBytes > 0 && memory > 0 {
		reserved["memory"] = fmt.Sprint(memory)
	}
	if len(reserved) > 0 {
		text, _ := json.Marshal(reserved)
		p("systemReserved: %s", text)
	}
	// The disk is the user's and may be fuller than a node's; images cannot be fetched again.
	p("evictionHard: {memory.available: 100Mi, nodefs.available: 256Mi, imagefs.available: 256Mi, nodefs.inodesFree: \"1%%\"}")
	p("imageGCHighThresholdPercent: 100")
	p("imageGCLowThresholdPercent: 99")
	return b.String()
}

func (s Spec) proxyConfiguration() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("apiVersion: kubeproxy.config.k8s.io/v1alpha1")
	p("kind: KubeProxyConfiguration")
	p("mode: nftables")
	p("hostnameOverride: %s", NodeName)
	p("clientConnection: {kubeconfig: %q}", s.ProxyConfig)
	p("bindAddress: %s", s.Link.Node)
	p("healthzBindAddress: %s:%d", s.Link.Node, ProxyHealthPort)
	p("metricsBindAddress: %s:%d", s.Link.Node, proxyMetricsPort)
	p("clusterCIDR: %s", s.PodCIDR)
	// An answer between two pods of one bridge comes back through the node only if the node asked.
	p("nftables: {masqueradeAll: true}")
	// The limits of connection tracking are the machine's.
	p("conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}")
	return b.String()
}

// KubeletArguments returns the kubelet's command line, without its name.
func (s Spec) KubeletArguments() []string {
	return []string{
		"--config=" + filepath.Join(NodeDir(s.Dir), kubeletFile),
		"--kubeconfig=" + s.KubeletConfig,
		"--hostname-override=" + NodeName,
		"--node-ip=" + s.Link.Node.String(),
		"--node-labels=" + s.Labels,
		"--root-dir=/var/lib/kubelet",
	}
}

// ProxyArguments returns kube-proxy's command line, without its name.
func (s Spec) ProxyArguments() []string {
	return []string{"--config=" + filepath.Join(NodeDir(s.Dir), proxyFile)}
}
