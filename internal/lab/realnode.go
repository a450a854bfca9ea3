package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"plimsoll.dev/plimsoll/internal/image"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
)

// RealSelector selects the real node.
const RealSelector = FidelityLabel + "=" + FidelityReal

func (r *RealNodeSpec) validate(maxPods int) error {
	if r == nil {
		return nil
	}
	switch {
	case r.CPUs < 0 || math.IsNaN(r.CPUs):
		return &SpecError{"processors of the real node", fmt.Sprintf("%g is negative", r.CPUs)}
	case r.CPUs > 0 && r.CPUs < 0.1:
		return &SpecError{"processors of the real node", fmt.Sprintf("%g is less than its own processes need (0.1)", r.CPUs)}
	case r.MemoryBytes < 0:
		return &SpecError{"memory of the real node", fmt.Sprintf("%d is negative", r.MemoryBytes)}
	case r.MemoryBytes > 0 && r.MemoryBytes < leastNodeMemory:
		return &SpecError{"memory of the real node", fmt.Sprintf("%d MiB is less than its own processes need (%d MiB)", r.MemoryBytes>>20, leastNodeMemory>>20)}
	}
	if r.CPUs > 0 {
		if _, err := realnode.ProcessorsOf(r.CPUs); err != nil {
			return &SpecError{"processors of the real node", err.Error()}
		}
	}
	if _, err := realnode.PodRange(r.PodCIDRPrefix, maxPods); err != nil {
		return &SpecError{"pod addresses of the real node", err.Error()}
	}
	return nil
}

// leastNodeMemory is what a kubelet, containerd and a few pods get along with.
const leastNodeMemory = 256 << 20

// planRealNode says what the real node is to be.
func (l *Lab) planRealNode(spec Spec) (*realnode.Spec, error) {
	programs, err := realnode.Check()
	if err != nil {
		return nil, err
	}
	if err := realnode.CheckContainerd(realnode.Version(programs.Containerd)); err != nil {
		return nil, err
	}
	link, err := realnode.ChooseLink()
	if err != nil {
		return nil, err
	}
	pods, err := realnode.PodRange(spec.RealNode.PodCIDRPrefix, spec.MaxPods)
	if err != nil {
		return nil, err
	}
	node := &realnode.Spec{
		Dir:           string(l.dir),
		MaxPods:       spec.MaxPods,
		PodCIDR:       pods,
		ServiceCIDR:   serviceRange,
		ClusterDNS:    clusterDNSAddress,
		CPUs:          spec.RealNode.CPUs,
		MemoryBytes:   spec.RealNode.MemoryBytes,
		Link:          link,
		Programs:      programs,
		KubeletConfig: l.dir.componentConfig(Kubelet),
		ProxyConfig:   l.dir.componentConfig(KubeProxy),
		ClientCA:      l.dir.cert(clusterCA),
		Cert:          l.dir.cert(Kubelet),
		Key:           l.dir.key(Kubelet),
		Labels:        RealSelector,
		SandboxImage:  image.AgentReference,
		Sign:          l.dir.sign(RealNode),
	}
	if node.CPUs > 0 {
		if node.Processors, err = realnode.ProcessorsOf(node.CPUs); err != nil {
			return nil, err
		}
	}
	return node, nil
}

// writeRealNode writes what the real node reads, and the images that it needs.
func (l *Lab) writeRealNode() error {
	machine, err := realnode.ThisMachine()
	if err != nil {
		return err
	}
	if err := l.record.RealNode.Write(machine); err != nil {
		return fmt.Errorf("write the real node's configuration: %w", err)
	}
	agent, err := image.Agent(l.store.Executable)
	if err != nil {
		return err
	}
	if err := image.Save(agent, image.AgentReference, realnode.ImageFile(string(l.dir), agentImage)); err != nil {
		return err
	}
	return l.store.giveImages(l.dir)
}

// ImagesDir is the directory, in a Store's, of images that real nodes are
// given when they are made: archives as 'plimsoll image build' keeps them.
const ImagesDir = "images"

const agentImage = "agent"

// giveImages lays the images that are kept where a real node imports them.
func (s Store) giveImages(dir directory) error {
	kept := filepath.Join(s.Root, ImagesDir)
	files, err := os.ReadDir(kept)
	if err != nil {
		return ignoreNotExist(err)
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".tar")
		if !ok || name == agentImage { // the agent is this program's own
			continue
		}
		if err := copyFile(realnode.ImageFile(string(dir), name), filepath.Join(kept, f.Name())); err != nil {
			return fmt.Errorf("give the real node image %s: %w", name, err)
		}
	}
	return nil
}

// HasImage reports whether the real node was given an image when it was made,
// by the name that 'plimsoll image build' has for it.
func (l *Lab) HasImage(name string) bool {
	_, err := os.Stat(realnode.ImageFile(string(l.dir), name))
	return err == nil
}

func copyFile(to, from string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// start starts the process of one component.
func (l *Lab) start(component string) (*child, error) {
	var apart []int
	if node := l.record.RealNode; node != nil && component != RealNode {
		apart = realnode.ProcessorsBeside(node.CPUs)
	}
	c, err := start(l.store.Executable, l.dir, component, arguments(component, l.dir, l.record), l.starter, apart)
	if err != nil || component != RealNode {
		return c, err
	}
	return c, l.record.RealNode.Attach(c.pid)
}

// waitRealNode waits until the real node takes pods.
func (l *Lab) waitRealNode(ctx context.Context) error {
	client, err := l.admin()
	if err != nil {
		return err
	}
	for _, component := range []string{Kubelet, KubeProxy} {
		if err := l.waitHealthy(ctx, component); err != nil {
			return fmt.Errorf("wait for %s: %w", component, err)
		}
	}
	described := false
	return poll(ctx, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, realnode.NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !described {
			if err := l.describeNetwork(ctx, client); err != nil {
				return err
			}
			described = true
		}
		if usable(node) {
			return nil
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return fmt.Errorf("node %s: %s", node.Name, c.Message)
			}
		}
		return fmt.Errorf("node %s says nothing of itself", node.Name)
	})
}

// BridgeAnnotation on a node says that one Linux bridge joins its pods, which
// is a ceiling.
const BridgeAnnotation = "plimsoll.dev/pod-bridge"

// describeNetwork writes into the cluster what pods' addresses on the real node
// are and that a bridge joins them: nobody else would.
func (l *Lab) describeNetwork(ctx context.Context, client kubernetes.Interface) error {
	pods := l.record.RealNode.PodCIDR.String()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}},"spec":{"podCIDR":%q,"podCIDRs":[%[2]q]}}`, BridgeAnnotation, pods)
	_, err := client.CoreV1().Nodes().Patch(ctx, realnode.NodeName, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("describe the real node's network: %w", err)
	}
	return nil
}

// ServiceAddresses are the first two numbers of a range of service addresses
// that nothing else in a laboratory takes.
const ServiceAddresses = "10.100"

// runtimeClasses are calls that make a RuntimeClass for each runtime.
func runtimeClasses(ctx context.Context, client kubernetes.Interface, programs realnode.Programs) []func() error {
	var creates []func() error
	for _, r := range programs.Runtimes() {
		creates = append(creates, func() error {
			class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Handler: r.Name}
			_, err := client.NodeV1().RuntimeClasses().Create(ctx, class, metav1.CreateOptions{})
			return err
		})
	}
	return creates
}

// probeRealNode makes a function that asks one of the real node's programs
// once whether it works.
func (l *Lab) probeRealNode(component string) (func(context.Context) error, error) {
	if component == Containerd {
		return func(ctx context.Context) error {
			processes, err := processesOf(string(l.dir))
			if err != nil {
				return err
			}
			i := slices.IndexFunc(processes, func(p process) bool { return p.component == Containerd })
			if i < 0 {
				return fmt.Errorf("containerd has no process")
			}
			// By this path its socket is reached although it lies in the node's
			// own view of the file system.
			var dialer net.Dialer
			connection, err := dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/%d/root%s", processes[i].pid, realnode.Socket))
			if err != nil {
				return err
			}
			return connection.Close()
		}, nil
	}
	port := realnode.KubeletHealthPort
	if component == KubeProxy {
		port = realnode.ProxyHealthPort
	}
	url := fmt.Sprintf("http://%s:%d/healthz", l.record.RealNode.Link.Node, port)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: probeTimeout}
	return healthy(client, url), nil
}

// restartOnRealNode kills one of the real node's programs, which the node's
// first process then starts again.
func (l *Lab) restartOnRealNode(ctx context.Context, component string) error {
	before, err := l.processOf(component)
	if err != nil {
		return err
	}
	if before == nil {
		return fmt.Errorf("it has no process: %q brings the whole node up again", "plimsoll lab restart "+RealNode)
	}
	if err := before.kill(l.store.labs()); err != nil {
		return err
	}
	err = poll(ctx, func() error {
		now, err := l.processOf(component)
		if err == nil && (now == nil || *now == *before) {
			err = fmt.Errorf("it was not started again")
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.waitHealthy(ctx, component)
}

func (l *Lab) processOf(component string) (*process, error) {
	processes, err := processesOf(string(l.dir))
	if err != nil {
		return nil, err
	}
	for _, p := range processes {
		if p.component == component {
			return &p, nil
		}
	}
	return nil, nil
}

// RealNodeMeter makes a meter of what the parts of the real node use; nil
// without one.
func (l *Lab) RealNodeMeter() (*realnode.Meter, error) {
	if l.record.RealNode == nil {
		return nil, nil
	}
	return realnode.NewMeter(string(l.dir))
}

// RealNodeDurations reads how long the kubelet's work and the runtime's took by
// the kubelet's own metrics; nothing without a real node.
func (l *Lab) RealNodeDurations(ctx context.Context) ([]realnode.Durations, error) {
	if l.record.RealNode == nil {
		return nil, nil
	}
	client, err := l.admin()
	if err != nil {
		return nil, err
	}
	metrics, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", realnode.NodeName, "proxy/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the kubelet's metrics: %w", err)
	}
	return realnode.KubeletDurations(bytes.NewReader(metrics))
}

// RealNodeVersions are the versions of the system's programs that the real
// node runs, by name; nil without a real node.
func (l *Lab) RealNodeVersions() map[string]string {
	if l.record.RealNode == nil {
		return nil
	}
	return l.record.RealNode.Programs.Versions()
}

// RealNodeProcessors says which processors a confined real node is kept to and
// which are left to the rest; both are empty if it may use all.
func (l *Lab) RealNodeProcessors() (node, beside []int) {
	if l.record.RealNode == nil {
		return nil, nil
	}
	return l.record.RealNode.Processors, realnode.ProcessorsBeside(l.record.RealNode.CPUs)
}
