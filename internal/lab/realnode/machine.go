package realnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/proc"
)

// Names of the runtimes and their RuntimeClasses.
const (
	RuntimeRunc = "runc"
	RuntimeCrun = "crun"
)

// Programs holds the paths of the system's programs that a node runs. Without Crun the node lacks that runtime.
type Programs struct {
	Containerd string `json:"containerd"`
	Ctr        string `json:"ctr"`
	Shim       string `json:"shim"`
	Runc       string `json:"runc"`
	Crun       string `json:"crun"`
	Nft        string `json:"nft"`
	CNI        string `json:"cni"` // the directory of the network plug-ins
}

// Runtime is a program that runs containers.
type Runtime struct{ Name, Path string }

// Runtimes lists the runtimes of the node, the default first.
func (p Programs) Runtimes() []Runtime {
	runtimes := []Runtime{{RuntimeRunc, p.Runc}}
	if p.Crun != "" {
		runtimes = append(runtimes, Runtime{RuntimeCrun, p.Crun})
	}
	return runtimes
}

// Needs lists the programs that a node runs.
func Needs() []proc.Program {
	const version = "--version"
	needs := []proc.Program{
		{Name: "containerd", Package: "containerd", Asks: version, Suits: CheckContainerd},
		{Name: "ctr", Package: "containerd"},
		{Name: "containerd-shim-runc-v2", Package: "containerd"},
		{Name: RuntimeRunc, Package: "runc", Asks: version},
		{Name: RuntimeCrun, Package: "crun", Asks: version, Optional: "to compare runtimes"},
		{Name: "nft", Package: "nftables"},
		{Name: plugins, Package: "containernetworking-plugins", Look: findPlugins},
	}
	for i := range needs {
		needs[i].For = "real node"
	}
	return needs
}

const plugins = "CNI plugins"

// findPlugins returns the directory with all network plug-ins of the node, "" if no directory has them.
func findPlugins() string {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		lacks := func(plugin string) bool {
			_, err := os.Stat(filepath.Join(dir, plugin))
			return err != nil
		}
		if !slices.ContainsFunc([]string{"bridge", "host-local", "loopback"}, lacks) {
			return dir
		}
	}
	return ""
}

// Check finds the node's programs, or returns a *proc.MissingError.
func Check() (Programs, error) {
	at, missing := proc.Look("a real node", Rootless, Needs())
	if _, err := findHierarchy(); err != nil {
		missing.What = append(missing.What, err.Error())
	}
	return Programs{
		Containerd: at["containerd"], Ctr: at["ctr"], Shim: at["containerd-shim-runc-v2"], Runc: at[RuntimeRunc], Crun: at[RuntimeCrun], Nft: at["nft"], CNI: at[plugins],
	}, missing.Err()
}

// Rootless says what works without root.
const Rootless = "simulated nodes need none"

// Versions returns the versions of containerd and of the runtimes, by name.
func (p Programs) Versions() map[string]string {
	paths, versions := map[string]string{"containerd": p.Containerd}, make(map[string]string)
	for _, r := range p.Runtimes() {
		paths[r.Name] = r.Path
	}
	for _, n := range Needs() {
		if path := paths[n.Name]; path != "" {
			found, _ := n.Find(context.Background(), path) // "" if it prints none
			versions[n.Name] = found.Version
		}
	}
	return versions
}

// oldestContainerd is a minor version of containerd 1: the kubelet needs its runtime interface.
const oldestContainerd = 6

// CheckContainerd returns an error if the kubelet cannot talk to this version of containerd.
func CheckContainerd(version string) error {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return fmt.Errorf("containerd prints no version")
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("containerd's version is %q: %w", version, err)
	}
	if major < 1 || major == 1 && minor < oldestContainerd {
		return fmt.Errorf("containerd is %s: 1.%d or newer is needed", version, oldestContainerd)
	}
	return nil
}

// Machine describes the whole machine.
type Machine struct {
	MemoryBytes      int64
	MayLowerOOMScore bool // processes may be made less likely to be killed when memory is short
}

func formatList(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}
