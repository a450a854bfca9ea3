package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/proc"
)

func (s Spec) validateRealNode() error {
	if !s.RealNode {
		return nil
	}
	switch {
	case s.NodeCPUs > 0 && s.NodeCPUs < 0.1:
		return &SpecError{"processors of the real node", fmt.Sprintf("%g is less than its own processes need (0.1)", s.NodeCPUs)}
	case s.NodeMemory > 0 && s.NodeMemory < leastNodeMemory:
		return &SpecError{"memory of the real node", fmt.Sprintf("%d MiB is less than its own processes need (%d MiB)", s.NodeMemory>>20, leastNodeMemory>>20)}
	}
	if s.NodeCPUs > 0 {
		if _, err := realnode.ProcessorsOf(s.NodeCPUs); err != nil {
			return &SpecError{"processors of the real node", err.Error()}
		}
	}
	if _, err := realnode.PodRange(s.PodCIDRPrefix, s.MaxPods); err != nil {
		return &SpecError{"pod addresses of the real node", err.Error()}
	}
	return nil
}

// leastNodeMemory is enough for a kubelet, containerd and a few pods.
const leastNodeMemory = 256 << 20

func (d directory) planRealNode(spec Spec) (*realnode.Spec, error) {
	programs, err := realnode.Check()
	if err != nil {
		return nil, err
	}
	if err := realnode.CheckContainerd(programs.Versions()["containerd"]); err != nil {
		return nil, err
	}
	link, err := realnode.ChooseLink()
	if err != nil {
		return nil, err
	}
	pods, err := realnode.PodRange(spec.PodCIDRPrefix, spec.MaxPods)
	if err != nil {
		return nil, err
	}
	node := &realnode.Spec{
		Dir: string(d), MaxPods: spec.MaxPods, PodCIDR: pods, ServiceCIDR: serviceRange, ClusterDNS: clusterDNSAddress,
		CPUs: spec.NodeCPUs, MemoryBytes: int64(spec.NodeMemory), Link: link, Programs: programs,
		KubeletConfig: d.componentConfig(protocol.Kubelet), ProxyConfig: d.componentConfig(protocol.KubeProxy),
		ClientCA: d.cert(clusterCA), Cert: d.cert(protocol.Kubelet), Key: d.key(protocol.Kubelet), Labels: protocol.RealSelector,
		SandboxImage: image.AgentReference, Sign: d.readyFile(protocol.RealNode),
	}
	if node.CPUs > 0 {
		if node.Processors, err = realnode.ProcessorsOf(node.CPUs); err != nil {
			return nil, err
		}
	}
	return node, nil
}

func (s Store) writeRealNode(dir directory, node *realnode.Spec) error {
	machine, err := realnode.ThisMachine()
	if err != nil {
		return err
	}
	if err := node.Write(machine); err != nil {
		return fmt.Errorf("write the real node's configuration: %w", err)
	}
	agent, err := image.Agent(s.Executable)
	if err != nil {
		return err
	}
	if err := image.Save(agent, image.AgentReference, realnode.ImageFile(string(dir), agentImage)); err != nil {
		return err
	}
	return giveImages(filepath.Join(s.Root, ImagesDir), dir)
}

// ImagesDir is a Store's directory for archives of 'plimsoll image build', which new real nodes get.
const ImagesDir = "images"

const agentImage = "agent"

func giveImages(kept string, dir directory) error {
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

// Image returns the reference of an image that the real node got when it was made, "" for none; name is that of
// 'plimsoll image build'.
func (l *Lab) Image(name string) (reference string, err error) {
	reference, err = image.Reference(realnode.ImageFile(string(l.dir), name))
	return reference, ignoreNotExist(err)
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

// BridgeAnnotation marks a node whose pods one Linux bridge joins, which is a ceiling.
const BridgeAnnotation = "plimsoll.dev/pod-bridge"

// ServiceAddresses holds the first two numbers of service addresses that nothing else in a lab uses.
const ServiceAddresses = "10.100"

// RealNodeMeter makes a meter of what the parts of the real node use; nil without a real node.
func (l *Lab) RealNodeMeter() (*realnode.Meter, error) {
	if l.record.RealNode == nil {
		return nil, nil
	}
	return realnode.NewMeter(string(l.dir))
}

// RealNodeVersions returns the versions of the real node's programs, nil without a node.
func (l *Lab) RealNodeVersions() map[string]string {
	if l.record.RealNode == nil {
		return nil
	}
	return l.record.RealNode.Programs.Versions()
}

// RealNodeProcessors returns a confined real node's processors and the others, nil for an unconfined one.
func (l *Lab) RealNodeProcessors() (node, beside []int) {
	if l.record.RealNode == nil {
		return nil, nil
	}
	return l.record.RealNode.Processors, realnode.ProcessorsBeside(l.record.RealNode.CPUs)
}

// The images that can be made.
const (
	ImageAgent      = "agent"      // of the workloads' own containers
	ImagePostgreSQL = "postgresql" // of the workloads' database
	ImageTraefik    = "traefik"    // of the ingress controller of labs
	ImageFio        = "fio"        // of the agent with fio, for IO on volumes of a cluster
	ImageSelf       = "self"       // of this program
)

// ImageNames lists the images that MakeImage can make.
func ImageNames() []string { return append(WorkloadImages(), ImageTraefik, ImageFio, ImageSelf) }

// Traefik describes the program of the image of that name.
func Traefik() proc.Program {
	return proc.Program{
		Name: "traefik", For: "ingress", Optional: "for via=ingress in a lab", Asks: "version", Version: regexp.MustCompile(`(?m)^Version:\s+v?(\S+)`),
		Get: "make traefik, or put the program of a release (https://github.com/traefik/traefik/releases) into $PATH",
	}
}

// WorkloadImages lists the images that the workloads run.
func WorkloadImages() []string { return []string{ImageAgent, ImagePostgreSQL} }

// MakeImage makes an image of ImageNames. The caller calls done when it has used the image.
func (s Store) MakeImage(ctx context.Context, name string) (made image.Made, reference string, done func(), err error) {
	done = func() {}
	switch {
	case s.From != "" && name == ImageAgent:
		made, err = image.AgentOf(s.From)
		return made, image.AgentReference, done, err
	case s.From != "" && name == ImageSelf:
		made, err = image.SelfOf(s.From)
		return made, image.SelfReference, done, err
	case name == ImageAgent:
		made, err = image.Agent(s.Executable)
		return made, image.AgentReference, done, err
	case name == ImageSelf:
		made, err = image.Self(s.Executable)
		return made, image.SelfReference, done, err
	case name == ImageTraefik:
		from := s.From
		if beside := filepath.Join(filepath.Dir(s.Executable), "traefik"); from == "" { // of make traefik
			from, _ = exec.LookPath(beside)
		}
		found, err := Traefik().Find(ctx, from)
		if err == nil {
			made, err = image.Traefik(found.Path)
		}
		return made, image.TraefikReference(found.Version), done, err
	}
	dir, err := os.MkdirTemp("", "plimsoll-image")
	if err != nil {
		return nil, "", nil, fmt.Errorf("make image %s: %w", name, err)
	}
	done = func() { os.RemoveAll(dir) }
	reference, of := image.PostgresReference, image.PostgreSQL
	if name == ImageFio {
		reference, of = image.FioReference, image.Fio
	}
	if made, err = of(ctx, s.Executable, dir); err != nil {
		done()
	}
	return made, reference, done, err
}

// ImageFile returns the path at which a built image is kept for later labs.
func (s Store) ImageFile(name string) string { return filepath.Join(s.Root, ImagesDir, name+".tar") }

// BuildImage makes an image and keeps it in a file.
func (s Store) BuildImage(ctx context.Context, name string) (made image.Made, reference, file string, err error) {
	made, reference, done, err := s.MakeImage(ctx, name)
	if err != nil {
		return nil, "", "", err
	}
	defer done()
	file = s.ImageFile(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, "", "", fmt.Errorf("build image %s: %w", name, err)
	}
	// In one move, so that a lab never imports half of it.
	if err := image.Save(made, reference, file+".new"); err != nil {
		return nil, "", "", err
	}
	return made, reference, file, os.Rename(file+".new", file)
}
